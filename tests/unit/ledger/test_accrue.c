/* Sums over pieces, and the tallies that they go into. (semantics, sections 4, 7 and 8) */
#include "../../lib/unit.h"
#include "ledger/accrue.h"

#define ABSENT SIGNAL_ABSENT
#define ONE INT64_C(1000000000)
#define MINUTE_MS INT64_C(60000)

static struct settings settings;

/* A line of one sample a minute, from minute 1 on. */
static void add(struct timeline *line, enum signal signal, size_t n, const int64_t *v)
{
    if (!line->t) {
        line->n = line->room = n;
        line->t = mem_alloc(n * sizeof *line->t);
        for (size_t i = 0; i < n; i++)
            line->t[i] = (time_ms)(i + 1) * MINUTE_MS;
    }
    timeline_add_column(line, signal);
    memcpy(line->column[signal], v, n * sizeof *v);
}
#define I(...) ((const int64_t[]){__VA_ARGS__})

static struct sums sums_of(struct timeline *line, time_ms from, time_ms to)
{
    struct sums sums;
    if (!line->from)
        timeline_make_pieces(line, &settings);
    accrue(line, &settings, (struct span){from, to}, &sums);
    return sums;
}

static void u_is_sm_and_e_is_gpu_util_where_they_are_there(void **state)
{
    (void)state;
    struct timeline line = {0};
    add(&line, SIGNAL_UTIL, 4, I(ONE, ONE, ABSENT, ABSENT));
    add(&line, SIGNAL_GR, 4, I(ONE / 2, ONE / 2, ONE / 2, ABSENT));
    add(&line, SIGNAL_SM, 4, I(ONE / 4, ABSENT, ABSENT, ONE / 4));
    struct sums a = sums_of(&line, MINUTE_MS / 2, MINUTE_MS);
    assert_int_equal(a.u, MINUTE_MS / 2 * (ONE / 4));
    assert_int_equal(a.e, MINUTE_MS / 2 * ONE);
    struct sums b = sums_of(&line, MINUTE_MS, 2 * MINUTE_MS); /* no SM: reaches to minute 4 */
    assert_int_equal(b.observed_ms, MINUTE_MS);
    assert_int_equal(b.u, MINUTE_MS * (ONE / 4)); /* SM's sample at 4 covers (1, 4] */
    timeline_release(&line);
}

static void engine_activity_stands_in_with_a_flag(void **state)
{
    (void)state;
    struct timeline line = {0};
    add(&line, SIGNAL_GR, 2, I(ONE / 2, ONE / 2));
    struct sums sums = sums_of(&line, MINUTE_MS, 2 * MINUTE_MS);
    assert_int_equal(sums.flags, FLAG_U_ENGINE | FLAG_E_ENGINE);
    assert_int_equal(sums.rest, MINUTE_MS * (ONE / 2));
    timeline_release(&line);
}

static void states_begin_at_their_thresholds(void **state)
{
    (void)state;
    struct timeline line = {0};
    add(&line, SIGNAL_UTIL, 5, I(0, ONE / 10 - 1, ONE / 10, ONE, ONE));
    add(&line, SIGNAL_SM, 5, I(0, ONE / 10 - 1, 0, 3 * ONE / 10 - 1, 3 * ONE / 10));
    struct sums sums = sums_of(&line, MINUTE_MS, 5 * MINUTE_MS);
    assert_int_equal(sums.state_ms[STATE_IDLE], MINUTE_MS);
    assert_int_equal(sums.state_ms[STATE_LOW], 2 * MINUTE_MS);
    assert_int_equal(sums.state_ms[STATE_BUSY], MINUTE_MS);
    timeline_release(&line);
}

static void a_ratio_of_one_is_in_the_last_bin(void **state)
{
    (void)state;
    struct timeline line = {0};
    add(&line, SIGNAL_SM, 3, I(0, ONE, ONE / 20 - 1));
    struct sums sums = sums_of(&line, MINUTE_MS, 3 * MINUTE_MS);
    assert_int_equal(sums.hist_u[HISTOGRAM_BINS - 1], MINUTE_MS);
    assert_int_equal(sums.hist_u[0], MINUTE_MS);
    timeline_release(&line);
}

/* A stretch may be cut anywhere without a change. */
static void sums_are_linear_in_time(void **state)
{
    (void)state;
    struct random random = random_new();
    for (int round = 0; round < 200; round++) {
        struct timeline line = {0};
        int64_t v[3][20];
        for (int s = 0; s < 3; s++)
            for (int i = 0; i < 20; i++)
                v[s][i] = random_below(&random, 4) ? random_below(&random, ONE + 1) : ABSENT;
        add(&line, SIGNAL_UTIL, 20, v[0]);
        add(&line, SIGNAL_SM, 20, v[1]);
        add(&line, SIGNAL_MEM_USED, 20, v[2]);
        struct sums whole = sums_of(&line, 0, 20 * MINUTE_MS), parts = {0};
        for (time_ms at = 0; at < 20 * MINUTE_MS;) {
            time_ms next = at + random_below(&random, 3 * MINUTE_MS) + 1;
            next = next < 20 * MINUTE_MS ? next : 20 * MINUTE_MS;
            struct sums part = sums_of(&line, at, next);
            parts.u += part.u;
            parts.e += part.e;
            parts.rest += part.rest;
            parts.idle_rest += part.idle_rest;
            parts.observed_ms += part.observed_ms;
            parts.mem_byte_ms += part.mem_byte_ms;
            at = next;
        }
        assert_int_equal(parts.u, whole.u);
        assert_int_equal(parts.e, whole.e);
        assert_int_equal(parts.observed_ms, whole.observed_ms);
        assert_int_equal(parts.mem_byte_ms, whole.mem_byte_ms);
        assert_int_equal(whole.u + whole.rest + whole.idle_rest, whole.observed_ms * ONE);
        assert_int_equal(parts.rest + parts.idle_rest, whole.rest + whole.idle_rest);
        timeline_release(&line);
    }
}

static void work_in_a_sample_that_somebody_held_a_part_of_is_somebody_s(void **state)
{
    (void)state;
    struct timeline line = {0};
    add(&line, SIGNAL_UTIL, 3, I(ONE, ONE, ONE));
    timeline_make_pieces(&line, &settings);
    struct spans held = {0};
    struct span span = {0, 3 * MINUTE_MS};
    assert_int_equal(accrue_unattributed(&line, &settings, span, &held),
                     2 * MINUTE_MS + settings.step_ms);
    spans_push(&held, MINUTE_MS + 5, MINUTE_MS + 6);
    assert_int_equal(accrue_unattributed(&line, &settings, span, &held),
                     MINUTE_MS + settings.step_ms);
    spans_release(&held);
    timeline_release(&line);
}

/* ------------------------------------------------------------------ energy and weights */

static struct device device_with(struct energy *energy, size_t n)
{
    return (struct device){.energy = energy, .energy_n = n};
}

static void energy_is_rounded_once_a_row_and_interval(void **state)
{
    (void)state;
    struct energy energy = {0, 3, 0, 3, 10, 0}; /* 10 mJ in 3 ms */
    struct device device = device_with(&energy, 1);
    struct tally tally = {0};
    for (time_ms t = 0; t < 3; t++) /* in three stretches of 3.33 mJ */
        tally_energy(&tally, &device, (struct span){t, t + 1}, FRAC_ONE, false);
    tally_finish(&tally);
    assert_int_equal(tally.row.energy_mj, 10);
    tally_release(&tally);
}

static void power_times_time_stands_in_for_the_counter_with_a_flag(void **state)
{
    (void)state;
    struct energy energy = {0, 30000, 0, 30000, -1, 400 * ONE}; /* 400 W for 30 s */
    struct device device = device_with(&energy, 1);
    struct tally tally = {0};
    tally_energy(&tally, &device, (struct span){0, 30000}, (struct frac){1, 4}, true);
    tally_finish(&tally);
    assert_int_equal(tally.row.energy_mj, 3000000);
    assert_int_equal(tally.row.flags, FLAG_ENERGY_POWER | FLAG_POWER_SHARE);
    tally_release(&tally);
}

static void weighted_times_are_exact_up_to_the_kept_denominator(void **state)
{
    (void)state;
    struct tally tally = {0};
    tally_share(&tally, (struct frac){1, 3})->gpu_ms += 10;
    tally_share(&tally, (struct frac){1, 4})->gpu_ms += 20;
    tally_share(&tally, (struct frac){1, 3})->gpu_ms += 5;
    tally_finish(&tally);
    assert_int_equal(tally.row.share_den, 12);
    assert_int_equal(tally.row.gpu_num, 15 * 4 + 20 * 3);
    tally_release(&tally);
}

static void finer_shares_are_rounded_and_never_overflow(void **state)
{
    (void)state;
    struct tally tally = {0};
    tally_share(&tally, (struct frac){1, 3})->gpu_ms += 3000;
    tally_share(&tally, (struct frac){1, INT64_MAX / 4})->gpu_ms += 1000;
    tally_share(&tally, (struct frac){INT64_MAX / 8, INT64_MAX / 4})->u += HOUR_MS * ONE;
    tally_finish(&tally);
    assert_int_equal(tally.row.share_den, SHARE_DEN_MAX);
    assert_in_range(tally.row.gpu_num, 1000 * SHARE_DEN_MAX - 1, 1000 * SHARE_DEN_MAX + 1);
    int64_t half = HOUR_MS * ONE / 2 * SHARE_DEN_MAX;
    assert_in_range(tally.row.gpu_u_num, half - half / 1000, half + half / 1000);
    tally_release(&tally);
}

int main(void)
{
    settings_defaults(&settings);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(u_is_sm_and_e_is_gpu_util_where_they_are_there),
        cmocka_unit_test(engine_activity_stands_in_with_a_flag),
        cmocka_unit_test(states_begin_at_their_thresholds),
        cmocka_unit_test(a_ratio_of_one_is_in_the_last_bin),
        cmocka_unit_test(sums_are_linear_in_time),
        cmocka_unit_test(work_in_a_sample_that_somebody_held_a_part_of_is_somebody_s),
        cmocka_unit_test(energy_is_rounded_once_a_row_and_interval),
        cmocka_unit_test(power_times_time_stands_in_for_the_counter_with_a_flag),
        cmocka_unit_test(weighted_times_are_exact_up_to_the_kept_denominator),
        cmocka_unit_test(finer_shares_are_rounded_and_never_overflow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
