/* Whole hours through the engine, the figures worked out by hand: $3.60 a GPU and hour is 1000 nano
 * a ms, so a minute is 60,000,000 nano. (semantics, sections 3 to 8) */
#include <math.h>

#include "fleet_fixture.h"

#define MINUTE (MINUTE_MS * NANO_PER_MS)
#define A "UUID=GPU-a,gpu=0,Hostname=n1,modelName=NVIDIA A100-SXM4-80GB"
#define B "UUID=GPU-b,gpu=1,Hostname=n1,modelName=NVIDIA A100-SXM4-80GB"
#define P ",namespace=ns,pod=p,container=c"
#define NODE "node=n1,provider_id=aws:///x/i-1"

/* ------------------------------------------------------------------ categories */

static void a_busy_hour_is_used_and_slack(void **state)
{
    (void)state;
    struct fleet f;
    fleet_open(&f, GPU_PRICE);
    fleet_gpu(&f, A P, 0, 60, 100, 0.75);
    fleet_book(&f, 0, 1);
    const struct row *row = fleet_row(&f, 0, "GPU-a", "p");
    assert_int_equal(row->cost, GPU_PRICE);
    assert_money(row, USED, 2700000000);
    assert_money(row, SLACK, 900000000);
    assert_int_equal(row->state_ms[STATE_BUSY], HOUR_MS);
    assert_int_equal(row->u, HOUR_MS * 750000000);
    assert_int_equal(row->e, HOUR_MS * 1000000000);
    assert_int_equal(row->hist_u_num[15], HOUR_MS); /* [0.75, 0.80) */
    assert_int_equal(row->hist_e_num[19], HOUR_MS);
    assert_int_equal(f.rows_n, 1);
    assert_int_equal(f.hours[0].booked, GPU_PRICE);
    assert_int_equal(f.hours[0].up_ms, HOUR_MS);
    /* the first sample has no predecessor */
    assert_int_equal(row->flags,
                     FLAG_UP_SAMPLES | FLAG_PRICE_OVERRIDE | FLAG_OWNER_DEFAULT | FLAG_STEP);
    fleet_close(&f);
}

static void states_divide_the_dollars_by_their_own_samples(void **state)
{
    (void)state;
    struct fleet f;
    fleet_open(&f, GPU_PRICE);
    fleet_gpu(&f, A P, 0, 10, 9, 0.05);   /* idle: 0.05 used, 0.95 held idle */
    fleet_gpu(&f, A P, 10, 30, 50, 0.20); /* low: 0.20 used, 0.80 slack */
    fleet_gpu(&f, A P, 30, 60, 50, 0.30); /* busy from 0.30 on */
    fleet_book(&f, 0, 1);
    const struct row *row = fleet_row(&f, 0, "GPU-a", "p");
    assert_int_equal(row->state_ms[STATE_IDLE], 10 * MINUTE_MS);
    assert_int_equal(row->state_ms[STATE_LOW], 20 * MINUTE_MS);
    assert_int_equal(row->state_ms[STATE_BUSY], 30 * MINUTE_MS);
    assert_money(row, HELD_IDLE, 10 * MINUTE * 95 / 100);
    assert_money(row, SLACK, 20 * MINUTE * 80 / 100 + 30 * MINUTE * 70 / 100);
    assert_money(row, USED, 10 * MINUTE * 5 / 100 + 20 * MINUTE / 5 + 30 * MINUTE * 3 / 10);
    fleet_close(&f);
}

static void a_gap_of_a_held_gpu_is_unobserved_and_not_idle(void **state)
{
    (void)state;
    struct fleet f;
    fleet_open(&f, GPU_PRICE);
    fleet_gpu(&f, A P, 0, 20, 100, 1);
    fleet_gpu(&f, A P, 40, 60, 100, 1);
    fleet_record(&f, "kube_node_info", NODE, 0, 60, 1);
    fleet_record(&f, "kube_pod_info", "node=n1,namespace=ns,pod=p,uid=u1", 0, 60, 1);
    fleet_record(&f, "kube_pod_container_resource_requests",
                 "node=n1,namespace=ns,pod=p,uid=u1,container=c,resource=nvidia_com_gpu", 0, 60, 1);
    fleet_book(&f, 0, 1);
    const struct row *row = fleet_row(&f, 0, "GPU-a", "p");
    assert_int_equal(row->held_ms, HOUR_MS);
    assert_int_equal(row->observed_ms, 40 * MINUTE_MS);
    assert_money(row, UNOBSERVED, 20 * MINUTE);
    assert_money(row, USED, 40 * MINUTE);
    assert_money(row, HELD_IDLE, 0);
    assert_true(row->flags & FLAG_KEPT_DEVICE);
    fleet_close(&f);
}

static void an_unheld_gpu_is_stranded_where_another_is_held_and_empty_where_none_is(void **state)
{
    (void)state;
    struct fleet f;
    fleet_open(&f, GPU_PRICE);
    fleet_gpu(&f, A P, 0, 30, 100, 1);
    fleet_gpu(&f, A, 30, 60, 0, 0);
    fleet_gpu(&f, B, 0, 60, 0, 0);
    fleet_book(&f, 0, 1);
    assert_money(fleet_row(&f, 0, "GPU-b", ""), STRANDED, 30 * MINUTE);
    assert_money(fleet_row(&f, 0, "GPU-b", ""), EMPTY, 30 * MINUTE);
    assert_money(fleet_row(&f, 0, "GPU-a", ""), EMPTY, 30 * MINUTE);
    assert_money(fleet_row(&f, 0, "GPU-a", "p"), USED, 30 * MINUTE);
    fleet_close(&f);
}

static void work_of_nobody_is_unattributed(void **state)
{
    (void)state;
    struct fleet f;
    fleet_open(&f, GPU_PRICE);
    fleet_gpu(&f, A, 0, 15, 10, 0.01);
    fleet_gpu(&f, A, 15, 60, 9, 0.99); /* e decides: 9 % is no work */
    fleet_book(&f, 0, 1);
    const struct row *row = fleet_row(&f, 0, "GPU-a", "");
    assert_money(row, UNATTRIBUTED, 15 * MINUTE);
    assert_money(row, EMPTY, 45 * MINUTE);
    assert_int_equal(row->held_ms, 0);
    fleet_close(&f);
}

static void no_price_is_no_money_but_the_hours_count(void **state)
{
    (void)state;
    struct fleet f;
    fleet_open(&f, 0);
    fleet_gpu(&f, A P, 0, 60, 100, 1);
    fleet_book(&f, 0, 1);
    const struct row *row = fleet_row(&f, 0, "GPU-a", "p");
    assert_int_equal(row->cost, 0);
    assert_true(row->flags & FLAG_UNPRICED);
    assert_int_equal(row->gpu_num, HOUR_MS);
    assert_int_equal(row->gpu_u_num, HOUR_MS * 1000000000);
    fleet_close(&f);
}

/* ------------------------------------------------------------------ where a device is */

static void every_host_called_localhost_is_the_node_of_its_own_address(void **state)
{
    (void)state;
    struct fleet f;
    fleet_open(&f, GPU_PRICE);
    fleet_gpu(&f, "UUID=GPU-a,gpu=0,Hostname=localhost,instance=10.0.0.1:9400", 0, 60, 100, 1);
    fleet_gpu(&f, "UUID=GPU-b,gpu=0,Hostname=localhost,instance=10.0.0.2:9400", 0, 60, 100, 1);
    fleet_book(&f, 0, 1);
    assert_string_equal(fleet_text(&f, fleet_row(&f, 0, "GPU-a", "")->key.node), "10.0.0.1");
    assert_string_equal(fleet_text(&f, fleet_row(&f, 0, "GPU-b", "")->key.node), "10.0.0.2");
    assert_int_equal(f.hours_n, 2);
    fleet_close(&f);
}

static void a_hostname_in_another_case_is_the_node_that_kubernetes_knows(void **state)
{
    (void)state;
    struct fleet f;
    fleet_open(&f, GPU_PRICE);
    fleet_record(&f, "kube_node_info", NODE, 0, 60, 1);
    fleet_gpu(&f, "UUID=GPU-a,gpu=0,hostname=N1" P, 0, 60, 100, 1);
    fleet_book(&f, 0, 1);
    assert_int_equal(f.hours_n, 1);
    assert_string_equal(fleet_text(&f, f.hours[0].node), "n1");
    fleet_close(&f);
}

static void a_hostname_that_is_a_pod_is_that_pods_node(void **state)
{
    (void)state;
    struct fleet f;
    fleet_open(&f, GPU_PRICE);
    fleet_record(&f, "kube_node_info", NODE, 0, 60, 1);
    fleet_record(&f, "kube_pod_info", "node=n1,namespace=mon,pod=dcgm-x2,uid=u9", 0, 60, 1);
    fleet_gpu(&f, "UUID=GPU-a,gpu=0,Hostname=dcgm-x2" P, 0, 60, 100, 1);
    fleet_book(&f, 0, 1);
    assert_int_equal(f.hours_n, 1);
    assert_string_equal(fleet_text(&f, f.hours[0].node), "n1");
    fleet_close(&f);
}

static void replicas_of_a_uuid_are_one_device(void **state)
{
    (void)state;
    struct fleet f;
    fleet_open(&f, GPU_PRICE);
    fleet_gpu(&f, "UUID=GPU-a::0,gpu=0,Hostname=n1,namespace=ns,pod=p,container=c", 0, 60, 80, .8);
    fleet_gpu(&f, "UUID=GPU-a::3,gpu=0,Hostname=n1,namespace=ns,pod=q,container=c", 0, 60, 80, .8);
    fleet_book(&f, 0, 1);
    assert_int_equal(f.hours[0].booked, GPU_PRICE); /* one GPU, not two */
    assert_int_equal(f.hours[0].gpus, 1);
    const struct row *p = fleet_row(&f, 0, "GPU-a", "p"), *q = fleet_row(&f, 0, "GPU-a", "q");
    assert_int_equal(p->cost, GPU_PRICE / 2);
    assert_int_equal(q->cost, GPU_PRICE / 2);
    assert_true(p->flags & FLAG_SHARED_ESTIMATE);
    assert_int_equal(p->share_den, 2);
    assert_int_equal(p->gpu_num, HOUR_MS);
    fleet_close(&f);
}

static void both_copies_of_an_ha_pair_are_one_sample(void **state)
{
    (void)state;
    static const char *const copies[] = {A P ",prometheus_replica=0", A P ",prometheus_replica=1"};
    struct fleet f;
    fleet_open(&f, GPU_PRICE);
    for (int i = 0; i < 2; i++) {
        fleet_gpu(&f, copies[i], 0, 60, 100, 0.5);
        fleet_samples(&f, "DCGM_FI_DEV_POWER_USAGE", copies[i], 0, 60, 400);
        fleet_samples(&f, "DCGM_FI_DEV_FB_USED", copies[i], 0, 60, 1000);
    }
    fleet_book(&f, 0, 1);
    assert_int_equal(f.rows_n, 1);
    const struct row *row = fleet_row(&f, 0, "GPU-a", "p");
    assert_int_equal(row->cost, GPU_PRICE);
    assert_int_equal(row->u, HOUR_MS * 500000000);
    assert_int_equal(row->energy_mj, INT64_C(400) * 3600 * 1000); /* 400 Wh, once */
    assert_int_equal(row->mem_max_bytes, 1000 * 1048576);
    assert_int_equal(row->share_den, 1);
    fleet_close(&f);
}

static void a_device_that_moves_leaves_its_old_node(void **state)
{
    (void)state;
    struct fleet f;
    fleet_open(&f, GPU_PRICE);
    fleet_gpu(&f, "UUID=GPU-a,gpu=0,Hostname=n1", 0, 60, 0, 0);
    fleet_gpu(&f, "UUID=GPU-m,gpu=1,Hostname=n1", 0, 20, 0, 0);
    fleet_gpu(&f, "UUID=GPU-m,gpu=1,Hostname=n2", 40, 60, 0, 0);
    fleet_gpu(&f, "UUID=GPU-b,gpu=0,Hostname=n2", 0, 60, 0, 0);
    fleet_book(&f, 0, 1);
    assert_int_equal(f.hours_n, 2);
    int64_t on[2] = {0};
    for (size_t i = 0; i < f.rows_n; i++)
        if (strcmp(fleet_text(&f, f.rows[i].key.device), "GPU-m") == 0)
            on[strcmp(fleet_text(&f, f.rows[i].key.node), "n1") != 0] += f.rows[i].gpu_num;
    assert_int_equal(on[0], 20 * MINUTE_MS);
    assert_int_equal(on[1], 20 * MINUTE_MS);
    fleet_close(&f);
}

/* ------------------------------------------------------------------ telemetry that lies */

static void a_counter_that_stands_while_power_is_drawn_is_an_old_text(void **state)
{
    (void)state;
    struct fleet f;
    fleet_open(&f, GPU_PRICE);
    fleet_gpu(&f, A P, 0, 60, 100, 1);
    fleet_samples(&f, "DCGM_FI_DEV_POWER_USAGE", A P, 0, 60, 100);
    fleet_record(&f, "kube_node_info", NODE, 0, 60, 1);
    for (int i = 1; i <= 120; i++) { /* grows for 20 minutes, then stands */
        int grown = i < 40 ? i : 40;
        fleet_sample(&f, "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", A P, i * SCRAPE_MS,
                     3000000.0 * grown);
    }
    fleet_book(&f, 0, 1);
    const struct row *row = fleet_row(&f, 0, "GPU-a", "p");
    assert_int_equal(row->observed_ms, 20 * MINUTE_MS);
    assert_int_equal(row->held_ms, HOUR_MS); /* labels hold also where values are absent */
    assert_money(row, UNOBSERVED, 40 * MINUTE);
    assert_money(row, USED, 20 * MINUTE);
    assert_int_equal(row->energy_mj, 40 * 3000000); /* 30 s of power before the first, 39 grown */
    fleet_close(&f);
}

static void a_counter_that_stands_for_less_than_five_minutes_is_believed(void **state)
{
    (void)state;
    struct fleet f;
    fleet_open(&f, GPU_PRICE);
    fleet_gpu(&f, A P, 0, 60, 100, 1);
    fleet_samples(&f, "DCGM_FI_DEV_POWER_USAGE", A P, 0, 60, 100);
    for (int i = 1; i <= 120; i++) /* stands from minute 20 to 24.5 */
        fleet_sample(&f, "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", A P, i * SCRAPE_MS,
                     3000000.0 * (i >= 40 && i < 50 ? 40 : i));
    fleet_book(&f, 0, 1);
    assert_int_equal(fleet_row(&f, 0, "GPU-a", "p")->observed_ms, HOUR_MS);
    fleet_close(&f);
}

static void a_lost_xid_that_stays_ends_with_the_first_activity(void **state)
{
    (void)state;
    struct fleet f;
    fleet_open(&f, GPU_PRICE);
    fleet_gpu(&f, A P, 0, 20, 100, 1);
    fleet_samples(&f, "DCGM_FI_DEV_XID_ERRORS", A P, 0, 20, 0);
    fleet_samples(&f, "DCGM_FI_DEV_XID_ERRORS", A P, 20, 60, 79); /* sticky */
    fleet_gpu(&f, A P, 40, 60, 100, 1);                           /* and it works again */
    fleet_book(&f, 0, 1);
    const struct row *row = fleet_row(&f, 0, "GPU-a", "p");
    assert_money(row, UNHEALTHY, 20 * MINUTE);
    assert_money(row, USED, 40 * MINUTE);
    fleet_close(&f);
}

static void another_xid_is_no_loss(void **state)
{
    (void)state;
    struct fleet f;
    fleet_open(&f, GPU_PRICE);
    fleet_gpu(&f, A P, 0, 60, 100, 1);
    fleet_samples(&f, "DCGM_FI_DEV_XID_ERRORS", A P, 0, 60, 31);
    fleet_book(&f, 0, 1);
    assert_money(fleet_row(&f, 0, "GPU-a", "p"), UNHEALTHY, 0);
    fleet_close(&f);
}

/* Two GPUs, of which a resource has `left` allocatable, as `copies` of kube-state-metrics say. */
static void lack(struct fleet *f, const char *resource, int left, int copies)
{
    for (int copy = 0; copy < copies; copy++) {
        char labels[100];
        snprintf(labels, sizeof labels, "node=n1,resource=%s,instance=ksm-%d", resource, copy);
        fleet_record(f, "kube_node_status_capacity", labels, 0, 60, 2);
        fleet_record(f, "kube_node_status_allocatable", labels, 0, 60, left);
    }
}

static int64_t unhealthy_of_two(struct fleet *f)
{
    fleet_record(f, "kube_node_info", NODE, 0, 60, 1);
    fleet_gpu(f, A, 0, 60, 0, 0);
    fleet_gpu(f, B, 0, 60, 0, 0);
    fleet_book(f, 0, 1);
    return fleet_row(f, 0, "GPU-a", "")->category[CATEGORY_UNHEALTHY] +
           fleet_row(f, 0, "GPU-b", "")->category[CATEGORY_UNHEALTHY];
}

static void a_slot_that_two_resources_lack_is_unhealthy_once(void **state)
{
    (void)state;
    struct fleet f;
    fleet_open(&f, GPU_PRICE);
    lack(&f, "nvidia_com_gpu", 0, 1);
    lack(&f, "nvidia_com_gpu_shared", 0, 1);
    assert_int_equal(unhealthy_of_two(&f), 2 * GPU_PRICE);
    fleet_close(&f);
}

static void copies_of_a_record_lack_a_slot_once(void **state)
{
    (void)state;
    struct fleet f;
    fleet_open(&f, GPU_PRICE);
    lack(&f, "nvidia_com_gpu", 1, 2);
    assert_int_equal(unhealthy_of_two(&f), GPU_PRICE);
    assert_money(fleet_row(&f, 0, "GPU-b", ""), UNHEALTHY, GPU_PRICE); /* the highest index */
    fleet_close(&f);
}

static void profiling_of_zero_beside_a_busy_gpu_is_stuck(void **state)
{
    (void)state;
    struct fleet f;
    fleet_open(&f, GPU_PRICE);
    fleet_gpu(&f, A P, 0, 60, 50, 0);
    fleet_book(&f, 0, 1);
    const struct row *row = fleet_row(&f, 0, "GPU-a", "p");
    assert_true(row->flags & FLAG_STUCK_COUNTER);
    assert_true(row->flags & FLAG_U_UTIL);
    assert_int_equal(row->u, HOUR_MS * 500000000);
    fleet_close(&f);
}

static void gpu_util_scaled_to_one_is_read_as_a_ratio(void **state)
{
    (void)state;
    struct fleet f;
    fleet_open(&f, GPU_PRICE);
    fleet_samples(&f, "DCGM_FI_DEV_GPU_UTIL", A P, 0, 60, 0.62);
    fleet_samples(&f, "DCGM_FI_PROF_GR_ENGINE_ACTIVE", A P, 0, 60, 0.60);
    fleet_book(&f, 0, 1);
    const struct row *row = fleet_row(&f, 0, "GPU-a", "p");
    assert_int_equal(row->e, HOUR_MS * 620000000);
    assert_true(row->flags & FLAG_UNIT_GUESS);
    fleet_close(&f);
}

static void fractions_of_a_percent_beside_an_engine_that_rests_stay_percent(void **state)
{
    (void)state;
    struct fleet f;
    fleet_open(&f, GPU_PRICE);
    fleet_samples(&f, "DCGM_FI_DEV_GPU_UTIL", A P, 0, 60, 0.62);
    fleet_samples(&f, "DCGM_FI_PROF_GR_ENGINE_ACTIVE", A P, 0, 60, 0.006);
    fleet_book(&f, 0, 1);
    const struct row *row = fleet_row(&f, 0, "GPU-a", "p");
    assert_int_equal(row->e, HOUR_MS * 6200000);
    assert_false(row->flags & FLAG_UNIT_GUESS);
    assert_money(row, HELD_IDLE, 60 * MINUTE * 994 / 1000);
    fleet_close(&f);
}

/* Means of percents have fractions: an exporter beside it that shows 35 % says which they are. */
static void another_exporter_of_the_job_says_that_it_is_percent(void **state)
{
    (void)state;
    struct fleet f;
    fleet_open(&f, GPU_PRICE);
    fleet_samples(&f, "DCGM_FI_DEV_GPU_UTIL", A P ",job=dcgm,instance=a:9400", 0, 60, 0.62);
    fleet_samples(&f, "DCGM_FI_DEV_GPU_UTIL", B ",job=dcgm,instance=b:9400", 0, 60, 35);
    fleet_book(&f, 0, 1);
    const struct row *row = fleet_row(&f, 0, "GPU-a", "p");
    assert_int_equal(row->e, HOUR_MS * 6200000);
    assert_false(row->flags & FLAG_UNIT_GUESS);
    fleet_close(&f);
}

/* Another job proves nothing, and neither do exporters without a job; nor is a job's word stronger
 * than the engine beside it. */
static void another_job_does_not_say_what_it_is(void **state)
{
    static const char *const others[][2] = {{",job=dcgm,instance=a:9400", ",job=x,instance=b:9400"},
                                            {",instance=a:9400", ",instance=b:9400"}};
    (void)state;
    for (int i = 0; i < 3; i++) {
        char a[200], b[200];
        struct fleet f;
        fleet_open(&f, GPU_PRICE);
        snprintf(a, sizeof a, A P "%s", others[i % 2][0]);
        snprintf(b, sizeof b, B "%s", i == 2 ? ",job=dcgm,instance=b:9400" : others[i][1]);
        fleet_samples(&f, "DCGM_FI_DEV_GPU_UTIL", a, 0, 60, 0.62);
        if (i == 2)
            fleet_samples(&f, "DCGM_FI_PROF_GR_ENGINE_ACTIVE", a, 0, 60, 0.60);
        fleet_samples(&f, "DCGM_FI_DEV_GPU_UTIL", b, 0, 60, 35);
        fleet_book(&f, 0, 1);
        const struct row *row = fleet_row(&f, 0, "GPU-a", "p");
        assert_int_equal(row->e, HOUR_MS * 620000000);
        assert_true(row->flags & FLAG_UNIT_GUESS);
        fleet_close(&f);
    }
}

static void whole_percents_of_an_idle_fleet_are_never_taken_for_ratios(void **state)
{
    (void)state;
    struct fleet f;
    fleet_open(&f, GPU_PRICE);
    fleet_samples(&f, "DCGM_FI_DEV_GPU_UTIL", A P, 0, 60, 1);
    fleet_samples(&f, "DCGM_FI_DEV_GPU_UTIL", B P, 0, 60, 0);
    fleet_book(&f, 0, 1);
    assert_int_equal(fleet_row(&f, 0, "GPU-a", "p")->e, HOUR_MS * 10000000);
    fleet_close(&f);
}

/* ------------------------------------------------------------------ however it is cut */

/* Nodes with plain, shared and split devices, gaps, pods that come and go. */
static void feed(struct fleet *f, uint64_t seed, int from, int to)
{
    struct random random = {seed};
    for (int g = 0; g < 12; g++) {
        bool mig = g % 4 == 3;
        for (int piece = 0; piece < 60; piece++) {
            char labels[240];
            int at = piece * 6;
            int pod = (int)random_below(&random, 5);
            double percent = (double)random_below(&random, 101), sm = percent / 100 * 0.8;
            bool silent = random_below(&random, 8) == 0;
            snprintf(labels, sizeof labels,
                     "UUID=GPU-%d,gpu=%d,Hostname=n%d,modelName=NVIDIA A100%s%s", g, g % 4, g / 4,
                     mig ? ",GPU_I_PROFILE=3g.40gb,GPU_I_ID=" : "",
                     mig ? (piece / 20 == 1 ? "2" : "1") : "");
            if (pod < 4)
                snprintf(labels + strlen(labels), sizeof labels - strlen(labels),
                         ",namespace=ns,container=c,pod=p%d", pod);
            if (silent || at < from || at >= to)
                continue;
            if (!mig)
                fleet_samples(f, "DCGM_FI_DEV_GPU_UTIL", labels, at, at + 6, percent);
            fleet_samples(f, "DCGM_FI_PROF_SM_ACTIVE", labels, at, at + 6, sm);
            fleet_samples(f, "DCGM_FI_DEV_POWER_USAGE", labels, at, at + 6, 70 + percent * 3);
        }
    }
}

static void assert_same_rows(const struct fleet *a, const struct fleet *b)
{
    assert_int_equal(a->rows_n, b->rows_n);
    for (size_t i = 0; i < a->rows_n; i++) {
        struct row x = a->rows[i], y = b->rows[i];
        const name_t *p = &x.key.cluster, *q = &y.key.cluster;
        for (size_t k = 0; k < 8; k++)
            assert_string_equal(fleet_text(a, p[k]), fleet_text(b, q[k]));
        assert_string_equal(fleet_text(a, x.facts.workload), fleet_text(b, y.facts.workload));
        x.key = y.key;
        x.facts = y.facts;
        assert_memory_equal(&x, &y, sizeof x);
    }
}

static void four_threads_book_the_same_as_one(void **state)
{
    (void)state;
    struct random random = random_new();
    for (int round = 0; round < 3; round++) {
        uint64_t seed = random_next(&random);
        struct fleet one, four;
        fleet_open(&one, 3456789013);
        fleet_open(&four, 3456789013);
        four.threads = 4;
        feed(&one, seed, 0, 360);
        feed(&four, seed, 0, 360);
        fleet_book(&one, 0, 6);
        fleet_book(&four, 0, 6);
        assert_true(one.rows_n > 40);
        assert_same_rows(&one, &four);
        fleet_close(&one);
        fleet_close(&four);
    }
}

static int by_key(const void *a, const void *b, void *names)
{
    return row_key_cmp(names, &((const struct row *)a)->key, &((const struct row *)b)->key);
}

/* With the carry, and samples an hour to both sides as sources read them. */
static void slices_book_the_same_as_the_whole(void **state)
{
    (void)state;
    struct random random = random_new();
    for (int round = 0; round < 3; round++) {
        uint64_t seed = random_next(&random);
        struct fleet whole, cut;
        fleet_open(&whole, 3456789013);
        fleet_open(&cut, 3456789013);
        feed(&whole, seed, 0, 360);
        fleet_book(&whole, 0, 6);
        for (int hour = 0; hour < 6; hour += 2) {
            struct error err;
            assert_int_equal(intake_restore(cut.intake, strbuf_str(&cut.carry), &err), ERR_OK);
            feed(&cut, seed, hour * 60 - 60, hour * 60 + 180);
            fleet_book(&cut, hour, hour + 2);
        }
        qsort_r(whole.rows, whole.rows_n, sizeof *whole.rows, by_key, whole.names);
        qsort_r(cut.rows, cut.rows_n, sizeof *cut.rows, by_key, cut.names);
        assert_same_rows(&whole, &cut);
        fleet_close(&whole);
        fleet_close(&cut);
    }
}

struct halting {
    volatile int stop;
    size_t batches, rest; /* rest: the one at the end, with notes */
};

static void stop_at_the_third(void *context, const struct row_batch *batch)
{
    struct halting *halting = context;
    halting->rest += batch->rows_n == 0;
    if (++halting->batches == 3)
        __atomic_store_n(&halting->stop, 1, __ATOMIC_RELAXED);
}

/* Of 64 nodes those that somebody had begun are emitted, one a thread; never the end. */
static void who_is_asked_to_stop_ends_between_nodes(void **state)
{
    (void)state;
    for (int threads = 1; threads <= 4; threads++) {
        struct fleet f;
        struct halting halting = {0};
        fleet_open(&f, GPU_PRICE);
        for (int i = 0; i < 64; i++) {
            char labels[80];
            snprintf(labels, sizeof labels, "UUID=GPU-%d,gpu=0,Hostname=n%d" P, i, i);
            fleet_gpu(&f, labels, 0, 60, 50, 0.5);
        }
        struct engine_options options = {&f.settings, f.prices, f.owners, threads, &halting.stop};
        struct span hours = {T0, T0 + HOUR_MS};
        assert_int_equal(
            engine_book(f.intake, hours, &options, stop_at_the_third, &halting, NULL, NULL),
            ERR_STOPPED);
        assert_true(halting.batches >= 3 && halting.batches <= 3 + (size_t)threads);
        assert_int_equal(halting.rest, 0);
        fleet_close(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_busy_hour_is_used_and_slack),
        cmocka_unit_test(states_divide_the_dollars_by_their_own_samples),
        cmocka_unit_test(a_gap_of_a_held_gpu_is_unobserved_and_not_idle),
        cmocka_unit_test(an_unheld_gpu_is_stranded_where_another_is_held_and_empty_where_none_is),
        cmocka_unit_test(work_of_nobody_is_unattributed),
        cmocka_unit_test(no_price_is_no_money_but_the_hours_count),
        cmocka_unit_test(every_host_called_localhost_is_the_node_of_its_own_address),
        cmocka_unit_test(a_hostname_in_another_case_is_the_node_that_kubernetes_knows),
        cmocka_unit_test(a_hostname_that_is_a_pod_is_that_pods_node),
        cmocka_unit_test(replicas_of_a_uuid_are_one_device),
        cmocka_unit_test(both_copies_of_an_ha_pair_are_one_sample),
        cmocka_unit_test(a_device_that_moves_leaves_its_old_node),
        cmocka_unit_test(a_counter_that_stands_while_power_is_drawn_is_an_old_text),
        cmocka_unit_test(a_counter_that_stands_for_less_than_five_minutes_is_believed),
        cmocka_unit_test(a_lost_xid_that_stays_ends_with_the_first_activity),
        cmocka_unit_test(another_xid_is_no_loss),
        cmocka_unit_test(a_slot_that_two_resources_lack_is_unhealthy_once),
        cmocka_unit_test(copies_of_a_record_lack_a_slot_once),
        cmocka_unit_test(profiling_of_zero_beside_a_busy_gpu_is_stuck),
        cmocka_unit_test(gpu_util_scaled_to_one_is_read_as_a_ratio),
        cmocka_unit_test(fractions_of_a_percent_beside_an_engine_that_rests_stay_percent),
        cmocka_unit_test(another_exporter_of_the_job_says_that_it_is_percent),
        cmocka_unit_test(another_job_does_not_say_what_it_is),
        cmocka_unit_test(whole_percents_of_an_idle_fleet_are_never_taken_for_ratios),
        cmocka_unit_test(four_threads_book_the_same_as_one),
        cmocka_unit_test(slices_book_the_same_as_the_whole),
        cmocka_unit_test(who_is_asked_to_stop_ends_between_nodes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
