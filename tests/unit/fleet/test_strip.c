/* Strips: however samples come, in which pieces and order, the settled columns are the same. */
#include <math.h>

#include "../../lib/unit.h"
#include "fleet/intake_data.h"

#define ABSENT SIGNAL_ABSENT

static void strip_open(struct strip *strip)
{
    *strip = (struct strip){0};
    pthread_mutex_init(&strip->lock, NULL);
}

static void append(struct strip *strip, enum signal signal, enum signal_unit unit, size_t n,
                   const time_ms *t, const double *v)
{
    strip_append(strip, signal, unit, t, v, n);
}

static void assert_rows(struct strip *strip, enum signal signal, size_t n, const time_ms *t,
                        const int64_t *v)
{
    strip_settle(strip);
    assert_int_equal(strip->n, n);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(strip->t[i], t[i]);
        assert_int_equal(strip->column[signal][i], v[i]);
    }
}
#define T(...) ((const time_ms[]){__VA_ARGS__})
#define D(...) ((const double[]){__VA_ARGS__})
#define I(...) ((const int64_t[]){__VA_ARGS__})

static void signals_of_one_scrape_share_their_stamps(void **state)
{
    (void)state;
    struct strip strip;
    strip_open(&strip);
    append(&strip, SIGNAL_UTIL, UNIT_PERCENT, 3, T(10, 20, 30), D(1, 2, 3));
    append(&strip, SIGNAL_SM, UNIT_RATIO, 3, T(10, 20, 30), D(0.1, 0.2, 0.3));
    assert_int_equal(strip.odd_n, 0);
    assert_rows(&strip, SIGNAL_UTIL, 3, T(10, 20, 30), I(10000000, 20000000, 30000000));
    assert_rows(&strip, SIGNAL_SM, 3, T(10, 20, 30), I(100000000, 200000000, 300000000));
    strip_clear(&strip);
}

static void a_signal_without_a_sample_at_a_stamp_is_absent_there(void **state)
{
    (void)state;
    struct strip strip;
    strip_open(&strip);
    append(&strip, SIGNAL_UTIL, UNIT_PERCENT, 4, T(10, 20, 30, 40), D(1, 2, 3, 4));
    append(&strip, SIGNAL_SM, UNIT_RATIO, 2, T(20, 40), D(1, 0));
    assert_rows(&strip, SIGNAL_SM, 4, T(10, 20, 30, 40), I(ABSENT, 1000000000, ABSENT, 0));
    strip_clear(&strip);
}

static void stamps_of_their_own_are_merged_in(void **state)
{
    (void)state;
    struct strip strip;
    strip_open(&strip);
    append(&strip, SIGNAL_UTIL, UNIT_PERCENT, 2, T(20, 40), D(2, 4));
    append(&strip, SIGNAL_SM, UNIT_RATIO, 4, T(5, 20, 30, 50), D(1, 1, 1, 1));
    assert_rows(&strip, SIGNAL_UTIL, 5, T(5, 20, 30, 40, 50),
                I(ABSENT, 20000000, ABSENT, 40000000, ABSENT));
    assert_rows(&strip, SIGNAL_SM, 5, T(5, 20, 30, 40, 50),
                I(1000000000, 1000000000, 1000000000, ABSENT, 1000000000));
    strip_clear(&strip);
}

static void the_same_stamp_twice_is_one_sample_the_first(void **state)
{
    (void)state;
    struct strip strip;
    strip_open(&strip);
    append(&strip, SIGNAL_UTIL, UNIT_PERCENT, 2, T(10, 20), D(1, 2));
    append(&strip, SIGNAL_UTIL, UNIT_PERCENT, 2, T(10, 20), D(7, 7));
    append(&strip, SIGNAL_UTIL, UNIT_PERCENT, 2, T(20, 30), D(7, 3));
    assert_rows(&strip, SIGNAL_UTIL, 3, T(10, 20, 30), I(10000000, 20000000, 30000000));
    strip_clear(&strip);
}

static void a_value_takes_the_place_of_an_absent_one(void **state)
{
    (void)state;
    struct strip strip;
    strip_open(&strip);
    append(&strip, SIGNAL_UTIL, UNIT_PERCENT, 2, T(10, 20), D(4294967295.0, 2));
    append(&strip, SIGNAL_UTIL, UNIT_PERCENT, 1, T(10), D(5));
    assert_int_equal(strip.rejected, 1);
    assert_rows(&strip, SIGNAL_UTIL, 2, T(10, 20), I(50000000, 20000000));
    strip_clear(&strip);
}

static void what_is_no_measurement_is_absent_and_counted(void **state)
{
    (void)state;
    struct strip strip;
    strip_open(&strip);
    append(&strip, SIGNAL_SM, UNIT_RATIO, 5, T(1, 2, 3, 4, 5),
           D((double)NAN, 140737488355328.0, 1.2, 1.6, -0.1));
    assert_int_equal(strip.rejected, 4);
    assert_rows(&strip, SIGNAL_SM, 5, T(1, 2, 3, 4, 5),
                I(ABSENT, ABSENT, 1000000000, ABSENT, ABSENT));
    strip_clear(&strip);
}

static void percent_or_ratio_is_kept_as_it_came(void **state)
{
    (void)state;
    struct strip strip;
    strip_open(&strip);
    append(&strip, SIGNAL_UTIL, UNIT_PERCENT_OR_RATIO, 4, T(1, 2, 3, 4), D(0.5, 50, 100, 101));
    assert_int_equal(strip.rejected, 1);
    assert_rows(&strip, SIGNAL_UTIL, 4, T(1, 2, 3, 4),
                I(500000000, INT64_C(50000000000), INT64_C(100000000000), ABSENT));
    strip_clear(&strip);
}

static void a_put_sample_that_no_cleaning_gives_is_dropped(void **state)
{
    (void)state;
    struct strip strip;
    strip_open(&strip);
    strip_put(&strip, SIGNAL_SM, UNIT_RATIO, 10, 1000000000);
    strip_put(&strip, SIGNAL_SM, UNIT_RATIO, 20, 1000000001);
    strip_put(&strip, SIGNAL_SM, UNIT_RATIO, 30, -1);
    strip_put(&strip, SIGNAL_SM, UNIT_RATIO, TIME_MAX, 0);
    strip_put(&strip, SIGNAL_SM, UNIT_RATIO, 40, ABSENT);
    assert_rows(&strip, SIGNAL_SM, 2, T(10, 40), I(1000000000, ABSENT));
    strip_clear(&strip);
}

/* ------------------------------------------------------------------ in any order */

#define ROWS 60
static const enum signal used[3] = {SIGNAL_UTIL, SIGNAL_SM, SIGNAL_POWER};
static const enum signal_unit unit_of[3] = {UNIT_PERCENT, UNIT_RATIO, UNIT_WATT};

struct plan {
    time_ms t[3][ROWS];
    double v[3][ROWS];
    size_t n[3];
};

static void make_plan(struct plan *plan, struct random *random)
{
    for (int s = 0; s < 3; s++) {
        plan->n[s] = 0;
        for (int i = 0; i < ROWS; i++) {
            if (random_below(random, 5) == 0)
                continue;
            plan->t[s][plan->n[s]] = 1000 + i * 30 + (random_below(random, 10) == 0 ? s : 0);
            plan->v[s][plan->n[s]++] = (double)random_below(random, 12) / 10;
        }
    }
}

/* Pieces of random length, of random signals; some pieces come again. */
static void deliver(struct strip *strip, const struct plan *plan, struct random *random)
{
    size_t at[3] = {0};
    while (at[0] < plan->n[0] || at[1] < plan->n[1] || at[2] < plan->n[2]) {
        size_t s = (size_t)random_below(random, 3);
        size_t n = (size_t)random_below(random, 20) + 1;
        n = n < plan->n[s] - at[s] ? n : plan->n[s] - at[s];
        size_t back = at[s] && random_below(random, 4) == 0 ? 1 : 0;
        strip_append(strip, used[s], unit_of[s], plan->t[s] + at[s] - back,
                     plan->v[s] + at[s] - back, n + back);
        at[s] += n;
    }
}

static void pieces_in_any_order_give_the_same_rows(void **state)
{
    (void)state;
    struct random random = random_new();
    for (int round = 0; round < 300; round++) {
        struct plan plan;
        make_plan(&plan, &random);
        struct strip plain, pieces;
        strip_open(&plain);
        strip_open(&pieces);
        for (int s = 0; s < 3; s++)
            strip_append(&plain, used[s], unit_of[s], plan.t[s], plan.v[s], plan.n[s]);
        deliver(&pieces, &plan, &random);
        strip_settle(&plain);
        strip_settle(&pieces);
        assert_int_equal(plain.n, pieces.n);
        assert_memory_equal(plain.t, pieces.t, plain.n * sizeof *plain.t);
        for (int s = 0; s < 3; s++)
            assert_memory_equal(plain.column[used[s]], pieces.column[used[s]],
                                plain.n * sizeof(int64_t));
        strip_clear(&plain);
        strip_clear(&pieces);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(signals_of_one_scrape_share_their_stamps),
        cmocka_unit_test(a_signal_without_a_sample_at_a_stamp_is_absent_there),
        cmocka_unit_test(stamps_of_their_own_are_merged_in),
        cmocka_unit_test(the_same_stamp_twice_is_one_sample_the_first),
        cmocka_unit_test(a_value_takes_the_place_of_an_absent_one),
        cmocka_unit_test(what_is_no_measurement_is_absent_and_counted),
        cmocka_unit_test(percent_or_ratio_is_kept_as_it_came),
        cmocka_unit_test(a_put_sample_that_no_cleaning_gives_is_dropped),
        cmocka_unit_test(pieces_in_any_order_give_the_same_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
