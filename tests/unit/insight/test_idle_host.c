/* What the idle scan says of hosts, of streaks and of the last hours: a node of two GPUs at $8 an
 * hour in aws us-east-1, eight days, of which the last seven are judged. The host's hours are laid
 * into the view by hand. */
#include "../../lib/unit.h"
#include "insight/idle.h"

#define DAY0 (INT64_C(1795996800000)) /* 2026-11-30T00:00Z */
#define DAYS 8
#define HOURS (DAYS * 24)
#define END (DAY0 + DAYS * DAY_MS)
#define MB INT64_C(1000000)

struct fleet {
    struct names *names;
    struct row_batch batch;
    struct store *store;
    struct prices *prices;
    struct view *view;
    struct idle_scan *scan;
};

static struct device_hour *hour_of(struct fleet *fleet, int gpu, int hour)
{
    return &fleet->batch.device_hours[gpu * HOURS + hour];
}

/* util in percent; below 0: nothing is observed. */
static void set(struct fleet *fleet, int gpu, int from, int to, int util)
{
    for (int h = from; h < to; h++) {
        struct device_hour *hour = hour_of(fleet, gpu, h);
        int64_t seen = util < 0 ? 0 : HOUR_MS;
        hour->covered_ms = hour->observed_ms = seen;
        hour->util = util < 0 ? 0 : HOUR_MS * (NANO / 100) * util;
        hour->util_seen_ms = hour->mem_seen_ms = hour->power_seen_ms = seen;
        bool works = util >= 5;
        hour->worked_until = works ? hour->hour + HOUR_MS : TIME_MIN;
        hour->idle_from = works || util < 0 ? TIME_MIN : hour->hour;
        hour->idle_after_ms = works ? 0 : seen;
    }
}

static int fleet_new(void **state)
{
    struct fleet *fleet = mem_zalloc(1, sizeof *fleet);
    struct names *names = fleet->names = names_new();
    fleet->batch = (struct row_batch){.names = names, .hours = {DAY0, END}};
    for (int h = 0; h < HOURS; h++) {
        struct node_hour cost = {.hour = DAY0 + h * HOUR_MS,
                                 .node = names_put(names, STR("n1")),
                                 .region = names_put(names, STR("us-east-1")),
                                 .cloud = names_put(names, STR("aws")),
                                 .price = 8 * NANO,
                                 .up_ms = HOUR_MS,
                                 .gpus = 2};
        mem_push(fleet->batch.node_hours, fleet->batch.node_hours_n, fleet->batch.node_hours_room,
                 cost);
    }
    for (int gpu = 0; gpu < 2; gpu++)
        for (int h = 0; h < HOURS; h++) {
            struct device_hour hour = {.hour = DAY0 + h * HOUR_MS,
                                       .node = names_put(names, STR("n1")),
                                       .device =
                                           names_put(names, gpu ? STR("GPU-b") : STR("GPU-a")),
                                       .model = names_put(names, STR("TEST-400W")),
                                       .up_ms = HOUR_MS,
                                       .power_limit_mw = 400000};
            mem_push(fleet->batch.device_hours, fleet->batch.device_hours_n,
                     fleet->batch.device_hours_room, hour);
        }
    for (int gpu = 0; gpu < 2; gpu++)
        set(fleet, gpu, 0, HOURS, 0);
    fleet->prices = prices_new();
    must(prices_add_csv_text(fleet->prices, "p.csv",
                             STR("cloud,region,instance_type,usd_per_hour,gpus,vcpus,memory_gib\n"
                                 "aws,us-east-1,c.small,0.2,0,4,16\n"
                                 "aws,us-east-1,c.large,1.5,0,32,128\n"
                                 "aws,us-east-1,c.huge,9,0,192,768\n"),
                             &failure));
    prices_ready(fleet->prices);
    *state = fleet;
    return 0;
}

static int fleet_free(void **state)
{
    struct fleet *fleet = *state;
    idle_scan_free(fleet->scan);
    view_free(fleet->view);
    store_close(fleet->store);
    prices_free(fleet->prices);
    row_batch_release(&fleet->batch);
    names_free(fleet->names);
    free(fleet);
    return 0;
}

static void view_of(struct fleet *fleet)
{
    must(store_open(":memory:", STORE_WRITE, fleet->names, &fleet->store, &failure));
    must(store_begin(fleet->store, &failure));
    must(store_append(fleet->store, &fleet->batch, &failure));
    must(store_commit(fleet->store, NULL, &failure));
    struct view_options options = {.window = {DAY0, END}, .days = 7, .prices = fleet->prices};
    must(view_read(fleet->store, &options, &fleet->view, &failure));
    assert_int_equal(fleet->view->nodes_n, 1);
}

/* A day's host: percent of CPU at its highest, MB of network; below 0: not known. */
static void host(struct fleet *fleet, size_t day, int cpu, int megabytes)
{
    fleet->view->nodes[0].days[day] =
        (struct view_host){cpu < 0 ? -1 : NANO / 100 * cpu, megabytes < 0 ? -1 : MB * megabytes};
}

static void hosts(struct fleet *fleet, int cpu, int megabytes)
{
    for (size_t d = 0; d < 7; d++)
        host(fleet, d, cpu, megabytes);
}

static const struct idle_node *judged(struct fleet *fleet)
{
    const struct idle_settings settings = {.days = 7, .floor_samples = 100, .power_auto = true};
    fleet->scan = idle_scan_new(fleet->view, &settings, 300000);
    return &fleet->scan->nodes[0];
}

static void a_quiet_host_leaves_an_idle_node_idle(void **state)
{
    view_of(*state);
    hosts(*state, 4, 29);
    const struct idle_node *node = judged(*state);
    assert_int_equal(node->verdict, VERDICT_IDLE);
    assert_false(node->unchecked[HOST_CPU] || node->unchecked[HOST_NETWORK]);
    assert_false(node->cpu_bound.is);
}

/* 5 % is not below 5 %; the GPUs are then the cards that stand still on a node that does not. */
static void a_cpu_at_the_threshold_on_one_day_is_work(void **state)
{
    view_of(*state);
    hosts(*state, 1, 1);
    host(*state, 3, 5, 1);
    const struct idle_node *node = judged(*state);
    assert_int_equal(node->days[3].check[HOST_CPU], IDLE_FAILED);
    assert_int_equal(node->verdict, VERDICT_NOT);
    assert_int_equal(node->devices[0].verdict, VERDICT_PARTLY);
    assert_int_equal(node->devices[1].verdict, VERDICT_PARTLY);
}

static void thirty_megabytes_a_day_are_work(void **state)
{
    view_of(*state);
    hosts(*state, 1, 1);
    host(*state, 6, 1, 30);
    assert_int_equal(judged(*state)->verdict, VERDICT_NOT);
}

static void a_host_that_nobody_measures_is_unchecked(void **state)
{
    view_of(*state);
    hosts(*state, -1, 3);
    host(*state, 2, 1, -1);
    const struct idle_node *node = judged(*state);
    assert_int_equal(node->verdict, VERDICT_IDLE);
    assert_true(node->unchecked[HOST_CPU] && node->unchecked[HOST_NETWORK]);
    assert_int_equal(node->cpu_bound.cpu_max, NANO / 100);
}

/* The third day is observed for 11 of 24 hours: what its host did says nothing. */
static void a_day_that_is_not_sufficient_does_not_count_for_the_host(void **state)
{
    for (int gpu = 0; gpu < 2; gpu++)
        set(*state, gpu, 72, 85, -1);
    view_of(*state);
    hosts(*state, 1, 1);
    host(*state, 2, 90, 900);
    const struct idle_node *node = judged(*state);
    assert_false(node->days[2].sufficient);
    assert_int_equal(node->verdict, VERDICT_UNKNOWN);
}

/* 31 CPUs and 100 GiB: c.large at $1.50 instead of $8. */
static void cpu_work_on_a_gpu_node_has_a_machine_instead(void **state)
{
    struct fleet *fleet = *state;
    view_of(fleet);
    hosts(fleet, 51, 1);
    fleet->view->nodes[0].requested_mcpu = 31000;
    fleet->view->nodes[0].requested_memory_bytes = INT64_C(100) << 30;
    const struct idle_node *node = judged(fleet);
    assert_true(node->cpu_bound.is);
    assert_int_equal(node->cpu_bound.util, 0);
    assert_true(node->cpu_bound.instead.found);
    assert_true(str_eq(node->cpu_bound.instead.offer.instance_type, STR("c.large")));
    assert_int_equal(node->cpu_bound.instead.saving, 13 * NANO / 2);
}

static void half_of_the_cpus_is_not_above_half(void **state)
{
    view_of(*state);
    hosts(*state, 50, 1);
    assert_false(judged(*state)->cpu_bound.is);
}

/* Both GPUs at 20 % for half of the time: 10 % in all, which is not below 10 %. */
static void gpus_at_ten_percent_are_not_cpu_bound(void **state)
{
    for (int gpu = 0; gpu < 2; gpu++)
        for (int h = 0; h < HOURS; h += 2)
            set(*state, gpu, h, h + 1, 20);
    view_of(*state);
    hosts(*state, 90, 1);
    const struct idle_node *node = judged(*state);
    assert_int_equal(node->cpu_bound.util, NANO / 10);
    assert_false(node->cpu_bound.is);
}

static void without_requests_no_machine_is_named(void **state)
{
    struct fleet *fleet = *state;
    view_of(fleet);
    hosts(fleet, 90, 1);
    const struct idle_node *node = judged(fleet);
    assert_true(node->cpu_bound.is);
    assert_false(node->cpu_bound.instead.found);
    assert_non_null(strstr(node->cpu_bound.instead.why, "request"));
}

static void a_machine_that_is_too_small_everywhere_is_said(void **state)
{
    struct fleet *fleet = *state;
    view_of(fleet);
    hosts(fleet, 90, 1);
    fleet->view->nodes[0].requested_mcpu = 200000;
    const struct idle_node *node = judged(fleet);
    assert_false(node->cpu_bound.instead.found);
    assert_non_null(strstr(node->cpu_bound.instead.why, "large enough"));
}

/* At work at hours 10, 60 and 61, and since 190: runs of 10, 49 and 128 hours. */
static void the_longest_run_need_not_be_the_last(void **state)
{
    set(*state, 0, 10, 11, 50);
    set(*state, 0, 60, 62, 50);
    set(*state, 0, 190, HOURS, 50);
    view_of(*state);
    const struct idle_node *node = judged(*state);
    assert_false(node->devices[0].since.any);
    assert_int_equal(node->devices[0].longest.span.from, DAY0 + 62 * HOUR_MS);
    assert_int_equal(node->devices[0].longest.span.to, DAY0 + 190 * HOUR_MS);
    assert_int_equal(node->devices[1].longest.span.to, END);
    assert_int_equal(node->longest.span.from, DAY0 + 62 * HOUR_MS); /* both stand still */
}

/* Unobserved from hour 50 to 60, at work since 190: 50 and 130 hours. */
static void a_run_of_hours_ends_where_nobody_looks(void **state)
{
    set(*state, 0, 50, 60, -1);
    set(*state, 0, 190, HOURS, 50);
    view_of(*state);
    const struct idle_node *node = judged(*state);
    assert_int_equal(node->devices[0].longest.span.from, DAY0 + 60 * HOUR_MS);
    assert_int_equal(node->devices[0].longest.span.to, DAY0 + 190 * HOUR_MS);
}

static void the_last_stretch_is_never_longer_than_the_longest(void **state)
{
    set(*state, 0, 100, 110, -1);
    view_of(*state);
    const struct idle_node *node = judged(*state);
    assert_int_equal(node->devices[0].since.span.from, DAY0);
    assert_int_equal(node->devices[0].longest.span.from, DAY0);
    assert_int_equal(node->devices[0].longest.span.to, END);
}

static void a_gpu_that_never_rests_has_no_run(void **state)
{
    set(*state, 0, 0, HOURS, 50);
    view_of(*state);
    const struct idle_node *node = judged(*state);
    assert_false(node->devices[0].longest.any);
    assert_false(node->longest.any);
}

static void the_badge_tells_the_last_three_hours(void **state)
{
    set(*state, 0, HOURS - 4, HOURS - 3, 50); /* before them */
    set(*state, 1, HOURS - 3, HOURS - 2, 50);
    view_of(*state);
    const struct idle_node *node = judged(*state);
    assert_int_equal(node->devices[0].recent.badge, BADGE_IDLE);
    assert_int_equal(node->devices[0].recent.observed, NANO);
    assert_int_equal(node->devices[1].recent.badge, BADGE_BUSY);
    assert_int_equal(node->recent.badge, BADGE_BUSY);
}

/* One of three hours is not observed: 66.7 %, under nine tenths. */
static void a_badge_needs_nine_tenths_of_its_time(void **state)
{
    set(*state, 0, HOURS - 2, HOURS - 1, -1);
    view_of(*state);
    const struct idle_node *node = judged(*state);
    assert_int_equal(node->devices[0].recent.badge, BADGE_UNKNOWN);
    assert_int_equal(node->devices[0].recent.observed, 666666666);
    assert_int_equal(node->devices[1].recent.badge, BADGE_IDLE);
    assert_int_equal(node->recent.badge, BADGE_UNKNOWN);
}

#define with_fleet(test) cmocka_unit_test_setup_teardown(test, fleet_new, fleet_free)
int main(void)
{
    const struct CMUnitTest tests[] = {
        with_fleet(a_quiet_host_leaves_an_idle_node_idle),
        with_fleet(a_cpu_at_the_threshold_on_one_day_is_work),
        with_fleet(thirty_megabytes_a_day_are_work),
        with_fleet(a_host_that_nobody_measures_is_unchecked),
        with_fleet(a_day_that_is_not_sufficient_does_not_count_for_the_host),
        with_fleet(cpu_work_on_a_gpu_node_has_a_machine_instead),
        with_fleet(half_of_the_cpus_is_not_above_half),
        with_fleet(gpus_at_ten_percent_are_not_cpu_bound),
        with_fleet(without_requests_no_machine_is_named),
        with_fleet(a_machine_that_is_too_small_everywhere_is_said),
        with_fleet(the_longest_run_need_not_be_the_last),
        with_fleet(a_run_of_hours_ends_where_nobody_looks),
        with_fleet(the_last_stretch_is_never_longer_than_the_longest),
        with_fleet(a_gpu_that_never_rests_has_no_run),
        with_fleet(the_badge_tells_the_last_three_hours),
        with_fleet(a_badge_needs_nine_tenths_of_its_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
