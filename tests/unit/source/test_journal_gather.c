/* Samples of frames, given series by series: all of them, in the order in which they came. */
#include "../../lib/unit.h"

#include "source/journal_gather.h"
#include "util/error.h"

#define SERIES 150
#define FRAMES 40
#define T0 INT64_C(1790000000000)

/* What each series is to be given, and what it was. */
struct column {
    time_ms *t;
    double *v;
    size_t n, room;
};
struct expected {
    struct column due[SERIES], given[SERIES];
    uint32_t low, high; /* of the group in hand */
    uint32_t last;      /* series; UINT32_MAX: none of this group yet */
    bool told[SERIES];  /* by gather_has() */
};

static void column_add(struct column *column, time_ms t, double v)
{
    if (column->n == column->room) {
        column->room = column->room * 2 + 8;
        column->t = mem_realloc(column->t, column->room, sizeof *column->t);
        column->v = mem_realloc(column->v, column->room, sizeof *column->v);
    }
    column->t[column->n] = t;
    column->v[column->n++] = v;
}

static void on_group(void *context, const struct gather *gather, uint32_t low, uint32_t high)
{
    struct expected *expected = context;
    assert_true(low < high && high <= SERIES);
    expected->low = low;
    expected->high = high;
    expected->last = UINT32_MAX;
    for (uint32_t i = 0; i < SERIES; i++)
        expected->told[i] = i >= low && i < high && gather_has(gather, i);
}

static void on_give(void *context, uint32_t series, const time_ms *t, const double *v, size_t n)
{
    struct expected *expected = context;
    assert_true(n > 0 && series >= expected->low && series < expected->high);
    assert_true(expected->last == UINT32_MAX || series > expected->last);
    assert_true(expected->told[series]);
    expected->last = series;
    expected->told[series] = false;
    for (size_t i = 0; i < n; i++)
        column_add(&expected->given[series], t[i], v[i]);
}

static void put(struct frame_samples *samples, uint32_t series, bool kube, time_ms t, double v)
{
    frame_samples_reserve(samples, 1);
    samples->number[samples->n] = series << 1 | kube;
    samples->t[samples->n] = t;
    samples->v[samples->n++] = v;
}

/* Stretches of series at a stamp, as senders and targets have them; single samples in any order; a
 * few samples of one series after the other. */
static void fill(struct random *random, uint32_t from, uint32_t to, bool kube,
                 struct frame_samples *samples)
{
    for (int64_t parts = 1 + random_below(random, 4); parts; parts--) {
        uint32_t series = from + (uint32_t)random_below(random, to - from);
        int64_t n = 1 + random_below(random, random_below(random, 2) ? 3 : 100);
        int64_t kind = random_below(random, 4);
        time_ms t = T0 + random_below(random, 50);
        for (int64_t i = 0; i < n; i++) {
            put(samples, series, kube, t, (double)random_below(random, 1000) / 1000);
            if (kind < 2)
                series = series + 1 < to ? series + 1 : from;
            else if (kind == 2)
                series = from + (uint32_t)random_below(random, to - from);
            t += kind == 3 || (kind == 1 && i % 20 == 19);
        }
    }
}

static void forget(struct expected *expected)
{
    for (size_t i = 0; i < SERIES; i++) {
        free(expected->due[i].t);
        free(expected->due[i].v);
        free(expected->given[i].t);
        free(expected->given[i].v);
    }
    *expected = (struct expected){0};
}

static void compare(const struct expected *expected)
{
    for (size_t i = 0; i < SERIES; i++) {
        const struct column *due = &expected->due[i], *given = &expected->given[i];
        assert_int_equal(given->n, due->n);
        if (due->n) {
            assert_memory_equal(given->t, due->t, due->n * sizeof *due->t);
            assert_memory_equal(given->v, due->v, due->n * sizeof *due->v);
        }
    }
}

static void add(struct gather *gather, const struct frame_samples *samples, bool kube,
                struct span span, uint32_t known, struct expected *expected, uint64_t *unknown)
{
    struct strbuf raw = {0};
    struct frame frame = {.kind = FRAME_SAMPLES,
                          .kube = kube,
                          .plain = true,
                          .count = (uint32_t)samples->n,
                          .first = TIME_MAX,
                          .last = TIME_MIN};
    for (size_t i = 0; i < samples->n; i++) {
        uint32_t series = samples->number[i] >> 1;
        time_ms t = samples->t[i];
        frame.first = t < frame.first ? t : frame.first;
        frame.last = t > frame.last ? t : frame.last;
        *unknown += series >= known;
        if (series < known && t >= span.from && t <= span.to)
            column_add(&expected->due[series], t, samples->v[i]);
    }
    uint64_t told = 0;
    frame_samples_put(samples, &raw);
    assert_true(gather_add(gather, &frame, strbuf_str(&raw), span, known, &told));
    *unknown -= told;
    strbuf_release(&raw);
}

static void every_sample_is_given_to_its_series_in_the_order_of_coming(void **state)
{
    (void)state;
    struct random random = random_new();
    struct gather gather = {0};
    struct expected expected = {0};
    struct frame_samples samples = {0};
    struct gather_sink sink = {&expected, on_group, on_give};
    for (int round = 0; round < 60; round++) {
        bool whole = random_below(&random, 2);
        struct span span =
            whole ? (struct span){T0 - 1, T0 + 1000} : (struct span){T0 + 5, T0 + 40};
        uint32_t known = random_below(&random, 3) ? SERIES : SERIES - 10;
        uint64_t unknown = 0;
        for (int64_t f = random_below(&random, FRAMES); f; f--) {
            uint32_t from = (uint32_t)random_below(&random, SERIES - 1);
            uint32_t to = from + 1 + (uint32_t)random_below(&random, SERIES - from);
            bool kube = random_below(&random, 5) == 0;
            samples.n = 0;
            fill(&random, from, to, kube, &samples);
            add(&gather, &samples, kube, span, known, &expected, &unknown);
        }
        gather_give(&gather, &sink);
        compare(&expected);
        assert_int_equal(unknown, 0);
        forget(&expected);
    }
    frame_samples_release(&samples);
    gather_release(&gather);
}

/* By hand: two requests of one sender, one of another, series 3 to 6 and 20. */
static void requests_of_a_sender_become_runs(void **state)
{
    (void)state;
    struct gather gather = {0};
    struct expected expected = {0};
    struct frame_samples samples = {0};
    struct gather_sink sink = {&expected, on_group, on_give};
    struct span all = {TIME_MIN, TIME_MAX};
    uint64_t unknown = 0;
    for (int step = 0; step < 2; step++) {
        samples.n = 0;
        for (uint32_t i = 3; i <= 6; i++)
            put(&samples, i, false, T0 + step, step ? 10 + i : i);
        add(&gather, &samples, false, all, SERIES, &expected, &unknown);
    }
    samples.n = 0;
    put(&samples, 20, false, T0, 7);
    add(&gather, &samples, false, all, SERIES, &expected, &unknown);
    gather_give(&gather, &sink);
    assert_int_equal(expected.low, 20); /* a group of its own */
    for (uint32_t i = 3; i <= 6; i++) {
        const struct column *given = &expected.given[i];
        assert_int_equal(given->n, 2);
        assert_true(given->t[0] == T0 && given->t[1] == T0 + 1);
        assert_true(given->v[0] == i && given->v[1] == 10 + i);
    }
    assert_int_equal(expected.given[20].n, 1);
    assert_true(expected.given[20].v[0] == 7);
    assert_int_equal(expected.given[7].n, 0);
    forget(&expected);
    frame_samples_release(&samples);
    gather_release(&gather);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_sample_is_given_to_its_series_in_the_order_of_coming),
        cmocka_unit_test(requests_of_a_sender_become_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
