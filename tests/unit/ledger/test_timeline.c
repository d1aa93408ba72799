/* Rows to pieces: which time a sample describes. (semantics, section 4) */
#include "../../lib/unit.h"
#include "ledger/timeline.h"

#define ABSENT SIGNAL_ABSENT
#define S 1000 /* ms a second */

static struct settings settings; /* step 30 s, gap 300 s */

static struct timeline line_of(size_t n, const time_ms *t)
{
    struct timeline line = {.n = n, .room = n};
    line.t = mem_alloc(n * sizeof *line.t);
    memcpy(line.t, t, n * sizeof *line.t);
    return line;
}

static void column(struct timeline *line, enum signal signal, const int64_t *v)
{
    timeline_add_column(line, signal);
    memcpy(line->column[signal], v, line->n * sizeof *v);
}
#define T(...) ((const time_ms[]){__VA_ARGS__})
#define I(...) ((const int64_t[]){__VA_ARGS__})

static void assert_piece(const struct timeline *line, size_t i, time_ms from, time_ms to)
{
    assert_true(i < line->pieces_n);
    assert_int_equal(line->from[i], from);
    assert_int_equal(line->to[i], to);
}

static void the_first_sample_covers_a_step_and_the_next_reach_back(void **state)
{
    (void)state;
    struct timeline line = line_of(3, T(100 * S, 130 * S, 175 * S));
    column(&line, SIGNAL_SM, I(1, 2, 3));
    timeline_make_pieces(&line, &settings);
    assert_int_equal(line.pieces_n, 3);
    assert_piece(&line, 0, 70 * S, 100 * S);
    assert_piece(&line, 1, 100 * S, 130 * S);
    assert_piece(&line, 2, 130 * S, 175 * S);
    assert_int_equal(line.piece[SIGNAL_SM][2], 3);
    assert_ptr_equal(line.to, line.t); /* every row is a piece: stamps are kept once */
    assert_true(line.flags && line.flags[0] == PIECE_STEP && line.flags[1] == 0);
    assert_int_equal(line.covered.n, 1);
    timeline_release(&line);
}

static void a_distance_of_the_gap_is_covered_and_a_longer_one_is_not(void **state)
{
    (void)state;
    struct timeline line = line_of(3, T(0, 300 * S, 600 * S + 1));
    column(&line, SIGNAL_UTIL, I(1, 2, 3));
    timeline_make_pieces(&line, &settings);
    assert_piece(&line, 1, 0, 300 * S);
    assert_piece(&line, 2, 570 * S + 1, 600 * S + 1);
    assert_int_equal(line.covered.n, 2);
    timeline_release(&line);
}

static void an_absent_value_is_no_sample_and_is_reached_over(void **state)
{
    (void)state;
    struct timeline line = line_of(4, T(0, 30 * S, 60 * S, 90 * S));
    column(&line, SIGNAL_SM, I(5, ABSENT, ABSENT, 8));
    timeline_make_pieces(&line, &settings);
    int64_t ms = 0;
    for (size_t i = 1; i < line.pieces_n; i++) {
        assert_int_equal(line.piece[SIGNAL_SM][i], 8);
        ms += line.to[i] - line.from[i];
    }
    assert_ptr_not_equal(line.to, line.t);
    assert_int_equal(ms, 90 * S);
    timeline_release(&line);
}

static void each_signal_covers_time_by_its_own_samples(void **state)
{
    (void)state;
    struct timeline line = line_of(3, T(0, 60 * S, 90 * S));
    column(&line, SIGNAL_UTIL, I(1, ABSENT, 3));    /* (0, 90] */
    column(&line, SIGNAL_SM, I(ABSENT, 7, ABSENT)); /* a step before 60 */
    timeline_make_pieces(&line, &settings);
    for (size_t i = 0; i < line.pieces_n; i++) {
        bool sm = line.from[i] >= 30 * S && line.to[i] <= 60 * S;
        assert_int_equal(line.piece[SIGNAL_SM][i], sm ? 7 : ABSENT);
        assert_int_equal(line.piece[SIGNAL_UTIL][i], line.to[i] <= 0 ? 1 : 3);
    }
    assert_int_equal(line.pieces_n, 4);
    timeline_release(&line);
}

static void memory_covers_but_is_no_activity(void **state)
{
    (void)state;
    struct timeline line = line_of(2, T(0, 30 * S));
    column(&line, SIGNAL_MEM_USED, I(1, 1));
    timeline_make_pieces(&line, &settings);
    assert_int_equal(line.covered.n, 1);
    assert_int_equal(line.active.n, 0);
    timeline_release(&line);
}

static void nothing_but_absent_values_make_no_piece(void **state)
{
    (void)state;
    struct timeline line = line_of(2, T(0, 30 * S));
    column(&line, SIGNAL_SM, I(ABSENT, ABSENT));
    timeline_make_pieces(&line, &settings);
    assert_int_equal(line.pieces_n, 0);
    assert_int_equal(timeline_piece_after(&line, 0), 0);
    timeline_release(&line);
}

static void a_piece_is_found_by_its_end(void **state)
{
    (void)state;
    struct timeline line = line_of(3, T(0, 30 * S, 60 * S));
    column(&line, SIGNAL_SM, I(1, 2, 3));
    timeline_make_pieces(&line, &settings);
    assert_int_equal(timeline_piece_after(&line, -100 * S), 0);
    assert_int_equal(timeline_piece_after(&line, -1), 0);
    assert_int_equal(timeline_piece_after(&line, 0), 1);
    assert_int_equal(timeline_piece_after(&line, 60 * S), 3);
    timeline_release(&line);
}

static void memory_s_total_is_the_sum_where_no_series_says_it(void **state)
{
    (void)state;
    struct timeline line = line_of(3, T(0, 30 * S, 60 * S));
    column(&line, SIGNAL_MEM_USED, I(10, 10, 10));
    column(&line, SIGNAL_MEM_FREE, I(80, 80, ABSENT));
    column(&line, SIGNAL_MEM_RESERVED, I(5, ABSENT, 5));
    timeline_make_pieces(&line, &settings);
    assert_int_equal(timeline_memory_total(&line, 0), 95);
    timeline_release(&line);
    line = line_of(1, T(0));
    column(&line, SIGNAL_MEM_USED, I(10));
    column(&line, SIGNAL_MEM_TOTAL, I(81));
    timeline_make_pieces(&line, &settings);
    assert_int_equal(timeline_memory_total(&line, 0), 81);
    timeline_release(&line);
    line = line_of(1, T(0));
    column(&line, SIGNAL_MEM_USED, I(10));
    timeline_make_pieces(&line, &settings);
    assert_int_equal(timeline_memory_total(&line, 0), 0);
    timeline_release(&line);
}

/* Random columns against the definition, instant by instant. */
static int64_t value_at(const struct timeline *rows, const int64_t *v, time_ms t)
{
    size_t previous = SIZE_MAX;
    for (size_t i = 0; i < rows->n; i++) {
        if (v[i] == ABSENT)
            continue;
        bool near = previous != SIZE_MAX && rows->t[i] - rows->t[previous] <= settings.gap_ms;
        time_ms start = near ? rows->t[previous] : rows->t[i] - settings.step_ms;
        if (previous != SIZE_MAX && start < rows->t[previous])
            start = rows->t[previous];
        if (t >= start && t < rows->t[i])
            return v[i];
        previous = i;
    }
    return ABSENT;
}

static void pieces_say_of_every_instant_what_the_rows_say(void **state)
{
    (void)state;
    struct random random = random_new();
    static const enum signal signals[] = {SIGNAL_UTIL, SIGNAL_SM, SIGNAL_MEM_USED};
    enum { ROWS = 12 };
    for (int round = 0; round < 200; round++) {
        time_ms t[ROWS], at = 0;
        int64_t v[3][ROWS];
        for (int i = 0; i < ROWS; i++) {
            at += random_below(&random, 4) ? 30 * S : random_below(&random, 500) * S + 1;
            t[i] = at;
            for (int s = 0; s < 3; s++)
                v[s][i] = random_below(&random, 3) ? random_below(&random, 50) : ABSENT;
        }
        struct timeline line = line_of(ROWS, t), rows = {.t = t, .n = ROWS};
        for (int s = 0; s < 3; s++)
            column(&line, signals[s], v[s]);
        timeline_make_pieces(&line, &settings);
        for (time_ms instant = -40 * S; instant < at + S; instant += 3 * S + 17) {
            size_t i = timeline_piece_after(&line, instant);
            bool inside = i < line.pieces_n && line.from[i] <= instant;
            for (int s = 0; s < 3; s++) {
                const int64_t *piece = line.piece[signals[s]];
                int64_t got = inside && piece ? piece[i] : ABSENT;
                assert_int_equal(got, value_at(&rows, v[s], instant));
            }
            assert_int_equal(inside, spans_hold(&line.covered, instant));
        }
        timeline_release(&line);
    }
}

int main(void)
{
    settings_defaults(&settings);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_sample_covers_a_step_and_the_next_reach_back),
        cmocka_unit_test(a_distance_of_the_gap_is_covered_and_a_longer_one_is_not),
        cmocka_unit_test(an_absent_value_is_no_sample_and_is_reached_over),
        cmocka_unit_test(each_signal_covers_time_by_its_own_samples),
        cmocka_unit_test(memory_covers_but_is_no_activity),
        cmocka_unit_test(nothing_but_absent_values_make_no_piece),
        cmocka_unit_test(a_piece_is_found_by_its_end),
        cmocka_unit_test(memory_s_total_is_the_sum_where_no_series_says_it),
        cmocka_unit_test(pieces_say_of_every_instant_what_the_rows_say),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
