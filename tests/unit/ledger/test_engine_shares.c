/* Parts of devices (MIG, replicas, fractions) and work counters through the engine, the figures
 * worked out by hand: $3.60 a GPU and hour is 1000 nano
 * a ms, so a minute is 60,000,000 nano. (semantics, sections 3 to 8) */
#include <math.h>

#include "fleet_fixture.h"

#define MINUTE (MINUTE_MS * NANO_PER_MS)
#define A "UUID=GPU-a,gpu=0,Hostname=n1,modelName=NVIDIA A100-SXM4-80GB"
#define B "UUID=GPU-b,gpu=1,Hostname=n1,modelName=NVIDIA A100-SXM4-80GB"
#define P ",namespace=ns,pod=p,container=c"
#define NODE "node=n1,provider_id=aws:///x/i-1"

/* ------------------------------------------------------------------ MIG */

static void a_layout_that_changes_is_charged_by_what_was_there(void **state)
{
    (void)state;
    struct fleet f;
    fleet_open(&f, GPU_PRICE);
    const char *gr = "DCGM_FI_PROF_GR_ENGINE_ACTIVE";
    fleet_samples(&f, gr, A ",GPU_I_ID=1,GPU_I_PROFILE=3g.40gb" P, 0, 30, 0.5);
    fleet_samples(&f, gr, A ",GPU_I_ID=2,GPU_I_PROFILE=4g.40gb", 0, 30, 0);
    fleet_samples(&f, gr, A ",GPU_I_ID=7,GPU_I_PROFILE=1g.10gb,namespace=ns,pod=q,container=c", 30,
                  60, 1);
    fleet_book(&f, 0, 1);
    const struct row *three = fleet_row(&f, 0, "GPU-a/1", "p");
    const struct row *four = fleet_row(&f, 0, "GPU-a/2", "");
    const struct row *one = fleet_row(&f, 0, "GPU-a/7", "q");
    const struct row *rest = fleet_row(&f, 0, "GPU-a", "");
    /* 3/7, 4/7 and 1/7 of half a device-hour, 6/7 left over: to the nano by largest remainder */
    assert_in_range(three->cost, 771428571, 771428572);
    assert_in_range(four->cost, 1028571428, 1028571429);
    assert_in_range(one->cost, 257142857, 257142858);
    assert_in_range(rest->category[CATEGORY_UNPARTITIONED], 1542857142, 1542857143);
    assert_int_equal(three->cost + four->cost + one->cost + rest->cost, GPU_PRICE);
    assert_int_equal(three->share_den, 7);
    assert_int_equal(three->gpu_num, 3 * 30 * MINUTE_MS);
    assert_money(four, STRANDED, four->cost);
    fleet_close(&f);
}

static void a_board_s_power_is_shared_out_to_its_instances(void **state)
{
    (void)state;
    struct fleet f;
    fleet_open(&f, GPU_PRICE);
    const char *one = A ",GPU_I_ID=1,GPU_I_PROFILE=3g.40gb" P;
    const char *two = A ",GPU_I_ID=2,GPU_I_PROFILE=2g.20gb";
    fleet_samples(&f, "DCGM_FI_PROF_GR_ENGINE_ACTIVE", one, 0, 60, 0.5);
    fleet_samples(&f, "DCGM_FI_PROF_GR_ENGINE_ACTIVE", two, 0, 60, 0);
    fleet_samples(&f, "DCGM_FI_DEV_POWER_USAGE", one, 0, 60, 280); /* repeated, not added */
    fleet_samples(&f, "DCGM_FI_DEV_POWER_USAGE", two, 0, 60, 280);
    fleet_book(&f, 0, 1);
    assert_int_equal(fleet_row(&f, 0, "GPU-a/1", "p")->energy_mj, INT64_C(120) * 3600000);
    assert_int_equal(fleet_row(&f, 0, "GPU-a/2", "")->energy_mj, INT64_C(80) * 3600000);
    assert_int_equal(fleet_row(&f, 0, "GPU-a", "")->energy_mj, INT64_C(80) * 3600000);
    fleet_close(&f);
}

static void gpu_util_of_an_instance_is_no_measurement(void **state)
{
    (void)state;
    struct fleet f;
    fleet_open(&f, GPU_PRICE);
    fleet_samples(&f, "DCGM_FI_DEV_GPU_UTIL", A ",GPU_I_ID=1,GPU_I_PROFILE=7g.80gb" P, 0, 60, 0);
    fleet_samples(&f, "DCGM_FI_DEV_FB_USED", A ",GPU_I_ID=1,GPU_I_PROFILE=7g.80gb" P, 0, 60, 9);
    fleet_book(&f, 0, 1);
    assert_money(fleet_row(&f, 0, "GPU-a/1", "p"), UNOBSERVED, GPU_PRICE);
    fleet_close(&f);
}

/* ------------------------------------------------------------------ sharing */

static void a_hundred_pods_on_one_device_hold_a_hundredth_each(void **state)
{
    (void)state;
    struct fleet f;
    fleet_open(&f, GPU_PRICE);
    for (int i = 0; i < 100; i++) {
        char labels[200];
        snprintf(labels, sizeof labels, A ",namespace=ns,container=c,pod=p%02d,vgpu=%d", i, i);
        fleet_gpu(&f, labels, 0, 60, 80, 0.8);
    }
    fleet_book(&f, 0, 1);
    assert_int_equal(f.rows_n, 100);
    for (size_t i = 0; i < f.rows_n; i++) {
        assert_int_equal(f.rows[i].cost, GPU_PRICE / 100);
        assert_money(&f.rows[i], USED, GPU_PRICE / 125);
    }
    fleet_close(&f);
}

static void replicas_that_nobody_has_are_unheld(void **state)
{
    (void)state;
    struct fleet f;
    fleet_open(&f, GPU_PRICE);
    fleet_record(&f, "kube_node_info", NODE, 0, 60, 1);
    fleet_record(&f, "kube_node_labels", "node=n1,label_nvidia_com_gpu_replicas=4", 0, 60, 1);
    fleet_gpu(&f, A P ",vgpu=0", 0, 60, 100, 1);
    fleet_gpu(&f, A P ",vgpu=1", 0, 60, 100, 1);
    fleet_gpu(&f, A ",namespace=ns,pod=q,container=c,vgpu=2", 0, 60, 100, 1);
    fleet_book(&f, 0, 1);
    assert_int_equal(fleet_row(&f, 0, "GPU-a", "p")->cost, GPU_PRICE / 2);
    assert_int_equal(fleet_row(&f, 0, "GPU-a", "q")->cost, GPU_PRICE / 4);
    assert_money(fleet_row(&f, 0, "GPU-a", ""), STRANDED, GPU_PRICE / 4);
    fleet_close(&f);
}

static void add_shared_pod(struct fleet *f, const char *name, const char *resource, double amount)
{
    char labels[200];
    snprintf(labels, sizeof labels, "node=n1,namespace=ns,pod=%s,uid=u-%s", name, name);
    fleet_record(f, "kube_pod_info", labels, 0, 60, 1);
    snprintf(labels, sizeof labels, "node=n1,namespace=ns,pod=%s,uid=u-%s,container=c,resource=%s",
             name, name, resource);
    fleet_record(f, "kube_pod_container_resource_requests", labels, 0, 60, amount);
    snprintf(labels, sizeof labels, A ",namespace=ns,container=c,pod=%s", name);
    fleet_gpu(f, labels, 0, 60, 100, 1);
}

static void fractions_hold_what_they_ask_for_and_the_rest_is_unheld(void **state)
{
    (void)state;
    struct fleet f;
    fleet_open(&f, GPU_PRICE);
    fleet_record(&f, "kube_node_info", NODE, 0, 60, 1);
    add_shared_pod(&f, "p", "nvidia_com_gpucores", 30);
    add_shared_pod(&f, "q", "alibabacloud_com_gpu_milli", 125);
    fleet_book(&f, 0, 1);
    assert_int_equal(fleet_row(&f, 0, "GPU-a", "p")->cost, GPU_PRICE * 30 / 100);
    assert_int_equal(fleet_row(&f, 0, "GPU-a", "q")->cost, GPU_PRICE * 125 / 1000);
    assert_int_equal(fleet_row(&f, 0, "GPU-a", "")->cost, GPU_PRICE * 575 / 1000);
    fleet_close(&f);
}

/* Thousandths that do not divide each other, more than the device has, on a node of 7 GPUs: the
 * shares are exact in spite of their denominators, and the weighted times are rounded. */
static void odd_fractions_beyond_the_kept_denominator_still_balance(void **state)
{
    (void)state;
    struct fleet f;
    fleet_open(&f, 3333333331);
    fleet_record(&f, "kube_node_info", NODE, 0, 60, 1);
    static const double milli[] = {997, 991, 983, 977, 971, 967, 953};
    for (int i = 0; i < 7; i++) {
        char name[16];
        snprintf(name, sizeof name, "p%d", i);
        add_shared_pod(&f, name, "alibabacloud_com_gpu_milli", milli[i]);
        snprintf(name, sizeof name, "%d", i);
        char labels[100];
        snprintf(labels, sizeof labels, "UUID=GPU-x%d,gpu=%d,Hostname=n1", i, i + 1);
        if (i < 6)
            fleet_gpu(&f, labels, 0, 60, 0, 0);
    }
    fleet_book(&f, 0, 1);
    assert_int_equal(f.hours[0].booked, INT64_C(7) * 3333333331);
    int64_t sum = 0;
    for (int i = 0; i < 7; i++) {
        char name[16];
        snprintf(name, sizeof name, "p%d", i);
        const struct row *row = fleet_row(&f, 0, "GPU-a", name);
        int64_t ideal = (int64_t)(3333333331.0 * milli[i] / 6839 + 0.5);
        assert_in_range(row->cost, ideal - 1, ideal + 1);
        assert_int_equal(row->share_den, milli[i] == 977 ? 7 : SHARE_DEN_MAX); /* 977 / 6839 */
        sum += row->gpu_num * SHARE_DEN_MAX / row->share_den;
    }
    assert_in_range(sum, HOUR_MS * SHARE_DEN_MAX - 7, HOUR_MS * SHARE_DEN_MAX + 7);
    fleet_close(&f);
}

/* ------------------------------------------------------------------ work counters */

static const struct row *book_work(struct fleet *f)
{
    fleet_gpu(f, A P, 0, 60, 100, 1);
    fleet_book(f, 0, 1);
    return fleet_row(f, 0, "GPU-a", "p");
}

static void a_counter_that_restarts_counts_from_nothing(void **state)
{
    (void)state;
    struct fleet f;
    fleet_open(&f, GPU_PRICE);
    const char *tokens = "vllm:generation_tokens_total", *who = "namespace=ns,pod=p";
    fleet_sample(&f, tokens, who, -MINUTE_MS, 1000);
    fleet_sample(&f, tokens, who, MINUTE_MS, 1500);
    fleet_sample(&f, tokens, who, 2 * MINUTE_MS, 40);
    fleet_sample(&f, tokens, who, 3 * MINUTE_MS, 100);
    assert_int_equal(book_work(&f)->work[WORK_GENERATION_TOKENS], 500 + 40 + 60);
    fleet_close(&f);
}

static void a_sample_that_is_no_number_is_no_restart(void **state)
{
    (void)state;
    struct fleet f;
    fleet_open(&f, GPU_PRICE);
    const char *tokens = "vllm:generation_tokens_total", *who = "namespace=ns,pod=p";
    fleet_sample(&f, tokens, who, MINUTE_MS, 1000);
    fleet_sample(&f, tokens, who, 2 * MINUTE_MS, (double)NAN);
    fleet_sample(&f, tokens, who, 3 * MINUTE_MS, -1);
    fleet_sample(&f, tokens, who, 4 * MINUTE_MS, 1e300);
    fleet_sample(&f, tokens, who, 5 * MINUTE_MS, 1007);
    assert_int_equal(book_work(&f)->work[WORK_GENERATION_TOKENS], 7);
    fleet_close(&f);
}

static void an_increase_without_a_row_is_reported_apart(void **state)
{
    (void)state;
    struct fleet f;
    fleet_open(&f, GPU_PRICE);
    fleet_sample(&f, "vllm:prompt_tokens_total", "namespace=ns,pod=elsewhere", MINUTE_MS, 0);
    fleet_sample(&f, "vllm:prompt_tokens_total", "namespace=ns,pod=elsewhere", 2 * MINUTE_MS, 12);
    book_work(&f);
    bool told = false;
    for (size_t i = 0; i < f.notes_n; i++)
        told = told || (f.notes[i].kind == NOTE_UNPLACED && f.notes[i].count == 12);
    assert_true(told);
    fleet_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_layout_that_changes_is_charged_by_what_was_there),
        cmocka_unit_test(a_board_s_power_is_shared_out_to_its_instances),
        cmocka_unit_test(gpu_util_of_an_instance_is_no_measurement),
        cmocka_unit_test(a_hundred_pods_on_one_device_hold_a_hundredth_each),
        cmocka_unit_test(replicas_that_nobody_has_are_unheld),
        cmocka_unit_test(fractions_hold_what_they_ask_for_and_the_rest_is_unheld),
        cmocka_unit_test(odd_fractions_beyond_the_kept_denominator_still_balance),
        cmocka_unit_test(a_counter_that_restarts_counts_from_nothing),
        cmocka_unit_test(a_sample_that_is_no_number_is_no_restart),
        cmocka_unit_test(an_increase_without_a_row_is_reported_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
