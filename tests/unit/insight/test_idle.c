/* The idle scan on hours made by hand: a node of two 400 W GPUs at $8 an hour, eight days, of which
 * the last seven are judged. */
#include "../../lib/unit.h"
#include "insight/idle.h"

#define DAY0 (INT64_C(1795996800000)) /* 2026-11-30T00:00Z */
#define DAYS 8
#define HOURS (DAYS * 24)
#define END (DAY0 + DAYS * DAY_MS)

struct fleet {
    struct names *names;
    struct row_batch batch;
    struct store *store;
    struct view *view;
    struct idle_scan *scan;
};

/* percent of each signal; -1: absent. Power in W of 400. */
struct activity {
    int util, memory, watts;
};

static struct device_hour *hour_of(struct fleet *fleet, int gpu, int hour)
{
    return &fleet->batch.device_hours[gpu * HOURS + hour];
}

static void set(struct fleet *fleet, int gpu, int from, int to, struct activity what)
{
    for (int h = from; h < to; h++) {
        struct device_hour *hour = hour_of(fleet, gpu, h);
        hour->covered_ms = HOUR_MS;
        hour->observed_ms = what.util < 0 ? 0 : HOUR_MS;
        hour->util = what.util < 0 ? 0 : HOUR_MS * (NANO / 100) * what.util;
        hour->util_seen_ms = what.util < 0 ? 0 : HOUR_MS;
        hour->mem = what.memory < 0 ? 0 : HOUR_MS * (NANO / 100) * what.memory;
        hour->mem_seen_ms = what.memory < 0 ? 0 : HOUR_MS;
        hour->power_mw_ms = what.watts < 0 ? 0 : HOUR_MS * 1000 * what.watts;
        hour->power_seen_ms = what.watts < 0 ? 0 : HOUR_MS;
        bool works = what.util >= 5;
        hour->worked_until = works ? hour->hour + HOUR_MS : TIME_MIN;
        hour->idle_from = works || what.util < 0 ? TIME_MIN : hour->hour;
        hour->idle_after_ms = works || what.util < 0 ? 0 : HOUR_MS;
    }
}

static void silence(struct fleet *fleet, int gpu, int from, int to)
{
    for (int h = from; h < to; h++) {
        struct device_hour *hour = hour_of(fleet, gpu, h);
        *hour = (struct device_hour){.hour = hour->hour,
                                     .node = hour->node,
                                     .device = hour->device,
                                     .model = hour->model,
                                     .up_ms = HOUR_MS,
                                     .worked_until = TIME_MIN,
                                     .idle_from = TIME_MIN};
    }
}

/* Both idle at 0 %, 5 %, 40 W (10 % of the limit). */
static int fleet_new(void **state)
{
    struct fleet *fleet = mem_zalloc(1, sizeof *fleet);
    struct names *names = fleet->names = names_new();
    fleet->batch = (struct row_batch){.names = names, .hours = {DAY0, END}};
    name_t node = names_put(names, STR("n1")), model = names_put(names, STR("TEST-400W"));
    for (int h = 0; h < HOURS; h++) {
        struct node_hour cost = {.hour = DAY0 + h * HOUR_MS,
                                 .node = node,
                                 .price = 8 * NANO,
                                 .booked = 0,
                                 .up_ms = HOUR_MS,
                                 .gpus = 2};
        mem_push(fleet->batch.node_hours, fleet->batch.node_hours_n, fleet->batch.node_hours_room,
                 cost);
    }
    for (int gpu = 0; gpu < 2; gpu++)
        for (int h = 0; h < HOURS; h++) {
            struct device_hour hour = {.hour = DAY0 + h * HOUR_MS,
                                       .node = node,
                                       .device =
                                           names_put(names, gpu ? STR("GPU-b") : STR("GPU-a")),
                                       .model = model,
                                       .up_ms = HOUR_MS,
                                       .power_limit_mw = 400000};
            mem_push(fleet->batch.device_hours, fleet->batch.device_hours_n,
                     fleet->batch.device_hours_room, hour);
        }
    for (int gpu = 0; gpu < 2; gpu++)
        set(fleet, gpu, 0, HOURS, (struct activity){0, 5, 40});
    *state = fleet;
    return 0;
}

static int fleet_free(void **state)
{
    struct fleet *fleet = *state;
    idle_scan_free(fleet->scan);
    view_free(fleet->view);
    store_close(fleet->store);
    row_batch_release(&fleet->batch);
    names_free(fleet->names);
    free(fleet);
    return 0;
}

static const struct idle_settings defaults = {
    .days = 7, .floor_samples = 100, .power_auto = true, .power_below = NANO / 100 * 15};

static struct idle_scan *scan_with(struct fleet *fleet, const struct idle_settings *settings)
{
    must(store_open(":memory:", STORE_WRITE, fleet->names, &fleet->store, &failure));
    must(store_begin(fleet->store, &failure));
    must(store_append(fleet->store, &fleet->batch, &failure));
    must(store_commit(fleet->store, NULL, &failure));
    struct view_options options = {.window = {DAY0, END}, .days = settings->days};
    must(view_read(fleet->store, &options, &fleet->view, &failure));
    fleet->scan = idle_scan_new(fleet->view, settings, 300000);
    assert_int_equal(fleet->scan->devices_n, 2);
    assert_int_equal(fleet->scan->nodes_n, 1);
    return fleet->scan;
}

static void a_node_below_every_threshold_on_every_day_is_idle(void **state)
{
    struct idle_scan *scan = scan_with(*state, &defaults);
    assert_int_equal(scan->nodes[0].verdict, VERDICT_IDLE);
    assert_int_equal(scan->devices[0].verdict, VERDICT_IDLE);
    assert_int_equal(scan->devices[0].days[6].mean[VIEW_POWER], NANO / 10);
    /* since the window's beginning: 192 h x $8, of which one GPU is half */
    assert_true(scan->nodes[0].since.any);
    assert_int_equal(scan->nodes[0].since.span.from, DAY0);
    assert_int_equal(scan->nodes[0].since.cost, 1536 * NANO);
    assert_int_equal(scan->devices[1].since.cost, 768 * NANO);
    assert_true(idle_since_is_finding(&scan->nodes[0].since));
}

static void a_busy_gpu_makes_its_neighbour_partly_idle(void **state)
{
    set(*state, 1, 0, HOURS, (struct activity){80, 60, 300});
    struct idle_scan *scan = scan_with(*state, &defaults);
    assert_int_equal(scan->nodes[0].verdict, VERDICT_NOT);
    assert_int_equal(scan->devices[0].verdict, VERDICT_PARTLY);
    assert_int_equal(scan->devices[1].verdict, VERDICT_NOT);
    assert_false(scan->nodes[0].since.any);
    assert_true(scan->devices[0].since.any);
}

/* 12 of 24 hours at 20 %: the day's mean is 10 %, which is not below 10 %. */
static void a_day_at_the_threshold_is_not_idle(void **state)
{
    set(*state, 0, 48, 60, (struct activity){20, 5, 40});
    struct idle_scan *scan = scan_with(*state, &defaults);
    assert_int_equal(scan->devices[0].days[1].mean[VIEW_UTIL], NANO / 10);
    assert_int_equal(scan->devices[0].days[1].check[VIEW_UTIL], IDLE_FAILED);
    assert_int_equal(scan->devices[0].verdict, VERDICT_NOT);
    /* and it has been idle since 12:00 of the third day: 132 h x $4 */
    assert_int_equal(scan->devices[0].since.span.from, DAY0 + 60 * HOUR_MS);
    assert_int_equal(scan->devices[0].since.cost, 528 * NANO);
}

static void an_average_does_not_hide_six_dead_days_after_a_busy_one(void **state)
{
    set(*state, 0, 24, 48, (struct activity){99, 90, 390});
    struct idle_scan *scan = scan_with(*state, &defaults);
    assert_int_equal(scan->devices[0].verdict, VERDICT_NOT);
    assert_int_equal(scan->devices[0].since.span.from, DAY0 + 48 * HOUR_MS);
    assert_true(idle_since_is_finding(&scan->devices[0].since));
}

static void a_day_half_unobserved_is_not_enough_data(void **state)
{
    silence(*state, 0, 72, 85); /* 13 hours of the fourth day */
    struct idle_scan *scan = scan_with(*state, &defaults);
    assert_false(scan->devices[0].days[2].sufficient);
    assert_int_equal(scan->devices[0].verdict, VERDICT_UNKNOWN);
    assert_int_equal(scan->devices[1].verdict, VERDICT_IDLE);
    assert_int_equal(scan->nodes[0].verdict, VERDICT_UNKNOWN);
    /* 13 of 192 hours are a gap, which is named, and still nine tenths are observed */
    assert_int_equal(scan->devices[0].since.gaps_n, 1);
    assert_int_equal(scan->devices[0].since.gaps[0].ms, 13 * HOUR_MS);
    assert_true(idle_since_is_finding(&scan->devices[0].since));
}

static void a_long_gap_forbids_advice_to_stop(void **state)
{
    silence(*state, 0, 72, 144); /* three of eight days */
    struct idle_scan *scan = scan_with(*state, &defaults);
    assert_int_equal(scan->devices[0].verdict, VERDICT_UNKNOWN);
    assert_true(scan->devices[0].since.any);
    assert_false(idle_since_is_finding(&scan->devices[0].since));
}

static void without_any_sample_nothing_is_said(void **state)
{
    silence(*state, 0, 0, HOURS);
    struct idle_scan *scan = scan_with(*state, &defaults);
    assert_int_equal(scan->devices[0].verdict, VERDICT_UNKNOWN);
    assert_false(scan->devices[0].since.any);
    assert_true(scan->devices[0].unchecked[VIEW_UTIL]);
}

static void a_missing_signal_is_unchecked_and_no_more(void **state)
{
    set(*state, 0, 0, HOURS, (struct activity){0, -1, 40});
    struct idle_scan *scan = scan_with(*state, &defaults);
    assert_true(scan->devices[0].unchecked[VIEW_MEMORY]);
    assert_false(scan->devices[0].unchecked[VIEW_POWER]);
    assert_int_equal(scan->devices[0].verdict, VERDICT_IDLE);
}

static void worked(struct fleet *fleet, int samples)
{
    for (int gpu = 0; gpu < 2; gpu++)
        set(fleet, gpu, 0, HOURS, (struct activity){0, 5, 72}); /* 18 % of the limit */
    for (int h = 0; h < samples; h++) {
        hour_of(fleet, 0, h)->floor_samples = 1;
        hour_of(fleet, 0, h)->floor_mw = 72000;
    }
}

/* 18 % idle power: above 15 %, but the model draws so much when idle: the bound is 23 %. */
static void an_idle_floor_is_learned_from_a_hundred_samples(void **state)
{
    worked(*state, 100);
    struct idle_scan *scan = scan_with(*state, &defaults);
    assert_int_equal(scan->devices[0].power_below, NANO / 100 * 23);
    assert_int_equal(scan->devices[1].verdict, VERDICT_IDLE);
}

/* 40 hours at 64 W, 40 at 80 W, 39 at 120 W, all of 400 W and in no order: the median is at 80 W,
 * 20 %. */
static void the_floor_is_the_median_of_what_is_seen(void **state)
{
    struct fleet *fleet = *state;
    for (int h = 0; h < 119; h++) {
        static const int watts[] = {80, 120, 64};
        hour_of(fleet, 0, h)->floor_samples = 1;
        hour_of(fleet, 0, h)->floor_mw = watts[h % 3] * 1000;
    }
    struct idle_scan *scan = scan_with(fleet, &defaults);
    assert_int_equal(scan->floors_n, 1);
    assert_int_equal(scan->floors[0].samples, 119);
    assert_int_equal(scan->floors[0].ratio, NANO / 5);
}

static void ninety_nine_samples_are_too_few_for_a_floor(void **state)
{
    worked(*state, 99);
    struct idle_scan *scan = scan_with(*state, &defaults);
    assert_int_equal(scan->devices[0].power_below, NANO / 100 * 15);
    assert_int_equal(scan->devices[0].verdict, VERDICT_NOT);
}

static void strict_power_learns_nothing(void **state)
{
    struct idle_settings strict = defaults;
    strict.power_auto = false;
    worked(*state, 150);
    struct idle_scan *scan = scan_with(*state, &strict);
    assert_int_equal(scan->devices[0].verdict, VERDICT_NOT);
}

static void an_unpriced_stretch_has_no_cost(void **state)
{
    struct fleet *fleet = *state;
    fleet->batch.node_hours[100].flags = FLAG_UNPRICED;
    struct idle_scan *scan = scan_with(fleet, &defaults);
    assert_true(scan->devices[0].since.any);
    assert_false(scan->devices[0].since.priced);
}

static void a_node_that_is_gone_is_not_idle_now(void **state)
{
    struct fleet *fleet = *state;
    for (int gpu = 0; gpu < 2; gpu++)
        hour_of(fleet, gpu, HOURS - 1)->up_ms = HOUR_MS / 2;
    struct idle_scan *scan = scan_with(fleet, &defaults);
    assert_false(scan->devices[0].since.any);
}

#define with_fleet(test) cmocka_unit_test_setup_teardown(test, fleet_new, fleet_free)
int main(void)
{
    const struct CMUnitTest tests[] = {
        with_fleet(a_node_below_every_threshold_on_every_day_is_idle),
        with_fleet(a_busy_gpu_makes_its_neighbour_partly_idle),
        with_fleet(a_day_at_the_threshold_is_not_idle),
        with_fleet(an_average_does_not_hide_six_dead_days_after_a_busy_one),
        with_fleet(a_day_half_unobserved_is_not_enough_data),
        with_fleet(a_long_gap_forbids_advice_to_stop),
        with_fleet(without_any_sample_nothing_is_said),
        with_fleet(a_missing_signal_is_unchecked_and_no_more),
        with_fleet(an_idle_floor_is_learned_from_a_hundred_samples),
        with_fleet(the_floor_is_the_median_of_what_is_seen),
        with_fleet(ninety_nine_samples_are_too_few_for_a_floor),
        with_fleet(strict_power_learns_nothing),
        with_fleet(an_unpriced_stretch_has_no_cost),
        with_fleet(a_node_that_is_gone_is_not_idle_now),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
