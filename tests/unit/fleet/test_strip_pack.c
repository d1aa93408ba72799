/* Strips whose rows are packed have the rows of those whose are not, whatever comes when. */
#include "../../lib/unit.h"
#include "fleet/intake_data.h"

#define ROWS 600
#define SIGNALS 4
static const enum signal used[SIGNALS] = {SIGNAL_UTIL, SIGNAL_SM, SIGNAL_POWER, SIGNAL_ENERGY};
static const enum signal_unit unit_of[SIGNALS] = {UNIT_PERCENT, UNIT_RATIO, UNIT_WATT,
                                                  UNIT_MILLIJOULE};

static void strip_open(struct strip *strip, struct packing *packing)
{
    *strip = (struct strip){.packing = packing};
    pthread_mutex_init(&strip->lock, NULL);
}

struct piece {
    time_ms t[64];
    double v[64];
    size_t n;
    int signal;
};

static struct piece make_piece(struct random *random, time_ms from, int signal)
{
    struct piece piece = {.n = (size_t)random_below(random, 64) + 1, .signal = signal};
    int holes = (int)random_below(random, 8);
    for (size_t i = 0; i < piece.n; i++) {
        from += holes == 0 && random_below(random, 9) == 0 ? 7 : 30;
        piece.t[i] = from;
        piece.v[i] = random_below(random, 20) == 0 ? -1 : (double)random_below(random, 100) / 100;
    }
    return piece;
}

static void append(struct strip *strip, const struct piece *piece)
{
    strip_append(strip, used[piece->signal], unit_of[piece->signal], piece->t, piece->v, piece->n);
}

static void assert_same_rows(const struct strip *a, const struct strip *b)
{
    assert_int_equal(a->n, b->n);
    assert_int_equal(a->rejected, b->rejected);
    assert_memory_equal(a->t, b->t, a->n * sizeof *a->t);
    for (int s = 0; s < SIGNAL_COUNT; s++) {
        assert_int_equal(a->column[s] != NULL, b->column[s] != NULL);
        if (a->column[s])
            assert_memory_equal(a->column[s], b->column[s], a->n * sizeof(int64_t));
    }
}

/* Signals side by side, as a journal gives them; one of them may begin late, end early, stay
 * behind; now and then a piece comes late, again, or with other stamps. */
static void deliver(struct random *random, struct strip *a, struct strip *b)
{
    time_ms at = 1000;
    int lame = (int)random_below(random, 2 * SIGNALS), from = (int)random_below(random, ROWS);
    for (int row = 0; row < ROWS; row += 30) {
        struct piece piece = make_piece(random, at, 0);
        time_ms last = piece.t[piece.n - 1];
        for (int s = 0; s < SIGNALS; s++) {
            if (s == lame && (row < from) == (from % 2))
                continue;
            piece.signal = s;
            if (random_below(random, 10) == 0)
                piece = make_piece(random, at, s);
            append(a, &piece);
            append(b, &piece);
        }
        if (random_below(random, 5) == 0) {
            struct piece late = make_piece(random, 1000 + random_below(random, at), 0);
            late.signal = (int)random_below(random, SIGNALS);
            append(a, &late);
            append(b, &late);
        }
        at = last;
    }
}

static void packed_rows_are_the_same_rows(void **state)
{
    (void)state;
    struct random random = random_new();
    size_t packed = 0;
    for (int round = 0; round < 400; round++) {
        struct packing packing = {.spill = spill_new(round % 2 ? "/tmp" : NULL),
                                  .budget_bytes = (size_t)random_below(&random, 30000)};
        struct strip plain, strip;
        strip_open(&plain, NULL);
        strip_open(&strip, &packing);
        deliver(&random, &plain, &strip);
        strip_put(&plain, SIGNAL_XID, UNIT_NUMBER, 5, 79); /* a carry's, before all others */
        strip_put(&strip, SIGNAL_XID, UNIT_NUMBER, 5, 79);
        strip_settle(&plain);
        packed += packing.used;
        for (int again = 0; again < 3; again++) {
            assert_true(strip_load(&strip));
            assert_int_equal(strip_rows(&strip), plain.n);
            assert_same_rows(&plain, &strip);
            packing.used = true; /* by other strips */
            strip_unload(&strip);
            assert_int_equal(strip_rows(&strip), plain.n);
            assert_int_equal(packing.held_bytes, 0);
        }
        strip_clear(&plain);
        strip_clear(&strip);
        spill_free(packing.spill);
    }
    assert_true(packed > 200);
}

/* 2,000 rows of two signals, of which no more than a few lie unpacked. */
static void rows_beyond_the_budget_do_not_stay(void **state)
{
    (void)state;
    struct packing packing = {.spill = spill_new(NULL)};
    struct strip strip;
    strip_open(&strip, &packing);
    for (time_ms t = 1; t <= 2000; t++) {
        double v = 1;
        strip_append(&strip, SIGNAL_UTIL, UNIT_PERCENT, &t, &v, 1);
        strip_append(&strip, SIGNAL_SM, UNIT_RATIO, &t, &v, 1);
        assert_true(strip.n <= STRIP_PACK_ROWS + 1);
    }
    assert_true(packing.used);
    assert_true(packing.held_bytes < 100 * 3 * sizeof(int64_t));
    assert_int_equal(strip.packed_rows + strip.n, 2000);
    assert_true(strip_load(&strip));
    assert_int_equal(strip.n, 2000);
    strip_clear(&strip);
    spill_free(packing.spill);
}

/* A signal that was sent once does not keep the others' rows back. */
static void a_signal_that_ended_keeps_little_back(void **state)
{
    (void)state;
    struct packing packing = {.spill = spill_new(NULL)};
    struct strip strip;
    strip_open(&strip, &packing);
    for (time_ms t = 1; t <= 1000; t++) {
        double v = 1;
        strip_append(&strip, SIGNAL_UTIL, UNIT_PERCENT, &t, &v, 1);
        if (t == 1)
            strip_append(&strip, SIGNAL_SM, UNIT_RATIO, &t, &v, 1);
        assert_true(strip.n <= STRIP_LAG_ROWS + 1);
    }
    assert_true(strip_load(&strip));
    assert_int_equal(strip.n, 1000);
    assert_int_equal(strip.column[SIGNAL_SM][0], 1000000000);
    assert_true(strip.column[SIGNAL_SM][999] == SIGNAL_ABSENT);
    strip_clear(&strip);
    spill_free(packing.spill);
}

static void what_is_not_what_was_written_is_refused(void **state)
{
    (void)state;
    struct packing packing = {.spill = spill_new(NULL)};
    struct strip strip;
    strip_open(&strip, &packing);
    for (time_ms t = 1; t <= 200; t++) {
        double v = 1;
        strip_append(&strip, SIGNAL_UTIL, UNIT_PERCENT, &t, &v, 1);
    }
    struct spill_ref right = strip.packed;
    for (int wrong = 0; wrong < 3; wrong++) {
        strip.packed = right;
        strip.packed.at -= wrong == 0;
        strip.packed.bytes -= wrong == 1;
        strip.packed.bytes = wrong == 2 ? 5 : strip.packed.bytes;
        assert_false(strip_load(&strip));
    }
    strip.packed = right;
    assert_true(strip_load(&strip));
    assert_int_equal(strip.n, 200);
    strip_clear(&strip);
    spill_free(packing.spill);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packed_rows_are_the_same_rows),
        cmocka_unit_test(rows_beyond_the_budget_do_not_stay),
        cmocka_unit_test(a_signal_that_ended_keeps_little_back),
        cmocka_unit_test(what_is_not_what_was_written_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
