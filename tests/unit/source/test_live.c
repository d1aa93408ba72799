/* The latest values: newest wins, stale markers empty, what is silent is forgotten. */
#include "../../lib/unit.h"
#include "source/live.h"

#define T0 INT64_C(1790000000000)

static live_ref series(struct live *live, const char *metric, const char *gpu, const char *pod)
{
    const struct label labels[] = {{STR("__name__"), str_of(metric)},
                                   {STR("UUID"), str_of(gpu)},
                                   {STR("Hostname"), STR("gpu-1")},
                                   {STR("gpu"), str_of(gpu)},
                                   {STR("pod"), STR("dcgm-exporter")},
                                   {STR("exported_pod"), str_of(pod)},
                                   {STR("exported_namespace"), STR("research")}};
    return live_series(live, labels, 7);
}

static void put(struct live *live, live_ref ref, time_ms t, double v)
{
    live_samples(live, &ref, &t, &v, 1);
}

static double stale(void)
{
    uint64_t bits = UINT64_C(0x7ff0000000000002);
    double v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

static void the_newest_sample_wins(void **state)
{
    (void)state;
    struct live *live = live_new();
    live_ref util = series(live, "DCGM_FI_DEV_GPU_UTIL", "10", "a");
    live_ref power = series(live, "DCGM_FI_DEV_POWER_USAGE", "9", "");
    put(live, util, T0, 50);
    put(live, util, T0 - 1000, 99); /* late */
    put(live, power, T0 + 5, 300.5);
    put(live, LIVE_NONE, T0, 1);
    const struct live_snapshot *snapshot = live_snapshot(live, 0);
    assert_int_equal(snapshot->n, 2);
    assert_int_equal(snapshot->newest, T0 + 5);
    assert_string_equal(snapshot->gpus[0].index, "9"); /* before 10 */
    assert_int_equal(snapshot->gpus[0].value[SIGNAL_POWER], INT64_C(300500000000));
    assert_int_equal(snapshot->gpus[1].value[SIGNAL_UTIL], 500000000);
    assert_int_equal(snapshot->gpus[1].value_at[SIGNAL_UTIL], T0);
    assert_string_equal(snapshot->gpus[1].pod, "a");
    assert_string_equal(snapshot->gpus[1].namespace, "research");
    assert_string_equal(snapshot->gpus[1].node, "gpu-1");
    /* A snapshot stays as it is, also when all else is gone. */
    put(live, util, T0 + 1000, 60);
    live_free(live);
    assert_int_equal(snapshot->gpus[1].value[SIGNAL_UTIL], 500000000);
    live_snapshot_release(snapshot);
}

static void samples_of_many_devices_find_theirs_in_one_batch(void **state)
{
    (void)state;
    struct live *live = live_new();
    live_ref util = series(live, "DCGM_FI_DEV_GPU_UTIL", "1", "a");
    live_ref power = series(live, "DCGM_FI_DEV_POWER_USAGE", "1", "a");
    live_ref other = series(live, "DCGM_FI_DEV_GPU_UTIL", "2", "b");
    live_ref later = series(live, "DCGM_FI_DEV_GPU_UTIL", "1", "c"); /* of device 1, another pod */
    live_ref never = util | UINT64_C(0xff) << 16;                    /* of an epoch that is none */
    const live_ref ref[] = {util, power, LIVE_NONE, other, never, power, later, other};
    const time_ms t[] = {T0, T0, T0, T0, T0 + 9, T0 + 1, T0 + 2, T0 + 3};
    const double v[] = {50, 300, 1, 20, 99, 301, 60, stale()};
    live_samples(live, ref, t, v, 8);
    const struct live_snapshot *snapshot = live_snapshot(live, 0);
    assert_int_equal(snapshot->n, 2);
    assert_int_equal(snapshot->gpus[0].value[SIGNAL_UTIL], 600000000);
    assert_int_equal(snapshot->gpus[0].value[SIGNAL_POWER], INT64_C(301000000000));
    assert_int_equal(snapshot->gpus[0].value_at[SIGNAL_POWER], T0 + 1);
    assert_string_equal(snapshot->gpus[0].pod, "c");
    assert_int_equal(snapshot->gpus[0].at, T0 + 2);
    assert_int_equal(snapshot->gpus[1].value[SIGNAL_UTIL], SIGNAL_ABSENT);
    assert_int_equal(snapshot->gpus[1].value_at[SIGNAL_UTIL], T0 + 3);
    assert_int_equal(snapshot->gpus[1].at, T0);
    live_snapshot_release(snapshot);
    live_free(live);
}

static void another_pod_takes_the_device_over(void **state)
{
    (void)state;
    struct live *live = live_new();
    live_ref a = series(live, "DCGM_FI_DEV_GPU_UTIL", "1", "a");
    live_ref b = series(live, "DCGM_FI_DEV_GPU_UTIL", "1", "b");
    put(live, a, T0, 50);
    put(live, b, T0 + 1000, 60);
    put(live, a, T0 + 1000, stale()); /* its end, told in the same scrape */
    const struct live_snapshot *snapshot = live_snapshot(live, 0);
    assert_int_equal(snapshot->n, 1);
    assert_string_equal(snapshot->gpus[0].pod, "b");
    assert_int_equal(snapshot->gpus[0].value[SIGNAL_UTIL], 600000000);
    live_snapshot_release(snapshot);
    put(live, b, T0 + 2000, stale());
    snapshot = live_snapshot(live, 0);
    assert_int_equal(snapshot->gpus[0].value[SIGNAL_UTIL], SIGNAL_ABSENT);
    live_snapshot_release(snapshot);
    live_free(live);
}

static live_ref bare(struct live *live, const char *gpu, const char *pod, const char *container,
                     const char *job)
{
    const struct label labels[] = {{STR("__name__"), STR("DCGM_FI_DEV_GPU_UTIL")},
                                   {STR("UUID"), str_of(gpu)},
                                   {STR("job"), str_of(job)},
                                   {STR("pod"), str_of(pod)},
                                   {STR("namespace"), STR("research")},
                                   {STR("container"), str_of(container)}};
    return live_series(live, labels, 6);
}

/* Semantics, section 5, rule 1. In "a" nothing is renamed, in "b" a busy GPU shows that it is. */
static void an_exporters_own_pod_holds_nothing(void **state)
{
    (void)state;
    const struct label renamed[] = {{STR("__name__"), STR("DCGM_FI_DEV_GPU_UTIL")},
                                    {STR("UUID"), STR("4")},
                                    {STR("job"), STR("b")},
                                    {STR("pod"), STR("dcgm")},
                                    {STR("exported_pod"), STR("train")}};
    struct live *live = live_new();
    put(live, bare(live, "1", "train", "main", "a"), T0, 1);
    put(live, bare(live, "2", "dcgm", "dcgm-exporter", "a"), T0, 1);
    put(live, bare(live, "3", "dcgm", "other", "b"), T0, 1);
    put(live, live_series(live, renamed, 5), T0, 1);
    const struct live_snapshot *snapshot = live_snapshot(live, 0);
    assert_int_equal(snapshot->n, 4);
    assert_string_equal(snapshot->gpus[0].pod, "train");
    assert_string_equal(snapshot->gpus[1].pod, "");
    assert_string_equal(snapshot->gpus[1].namespace, "");
    assert_string_equal(snapshot->gpus[2].pod, "");
    assert_string_equal(snapshot->gpus[3].pod, "train");
    live_snapshot_release(snapshot);
    live_free(live);
}

/* 10 % is work, less is none; what was absent says nothing. */
static void it_knows_when_a_gpu_last_worked(void **state)
{
    (void)state;
    struct live *live = live_new();
    live_ref util = series(live, "DCGM_FI_DEV_GPU_UTIL", "1", "a");
    put(live, util, T0, 0.0 / 0.0);
    put(live, util, T0 + 1000, 10);
    put(live, util, T0 + 2000, 9);
    put(live, series(live, "DCGM_FI_DEV_GPU_UTIL", "2", "a"), T0 + 3000, 0);
    const struct live_snapshot *snapshot = live_snapshot(live, 0);
    assert_int_equal(snapshot->gpus[0].first, T0 + 1000);
    assert_int_equal(snapshot->gpus[0].worked, T0 + 1000);
    assert_int_equal(snapshot->gpus[1].first, T0 + 3000);
    assert_true(snapshot->gpus[1].worked == TIME_MIN);
    live_snapshot_release(snapshot);
    live_free(live);
}

static void replicas_and_short_uuids_are_the_ledgers_devices(void **state)
{
    (void)state;
    const struct label smi[] = {{STR("__name__"), STR("nvidia_smi_utilization_gpu_ratio")},
                                {STR("uuid"), STR("11-22")}};
    struct live *live = live_new();
    put(live, series(live, "DCGM_FI_DEV_GPU_UTIL", "GPU-x::1", "a"), T0, 1);
    put(live, series(live, "DCGM_FI_DEV_GPU_UTIL", "GPU-x::2", "b"), T0, 1);
    put(live, live_series(live, smi, 2), T0, 1);
    const struct live_snapshot *snapshot = live_snapshot(live, 0);
    assert_int_equal(snapshot->n, 2);
    assert_string_equal(snapshot->gpus[0].uuid, "GPU-11-22");
    assert_string_equal(snapshot->gpus[1].uuid, "GPU-x");
    live_snapshot_release(snapshot);
    live_free(live);
}

static void percent_and_ratio_are_told_apart_by_what_comes(void **state)
{
    (void)state;
    const struct signal_name *name = NULL;
    for (size_t i = 0; i < signal_names_n && !name; i++)
        if (signal_names[i].unit == UNIT_PERCENT_OR_RATIO)
            name = &signal_names[i];
    if (!name)
        return;
    struct live *live = live_new();
    live_ref ref = series(live, name->metric, "1", "a");
    put(live, ref, T0, 80);
    put(live, ref, T0 + 1000, 1); /* one percent now */
    const struct live_snapshot *snapshot = live_snapshot(live, 0);
    assert_int_equal(snapshot->gpus[0].value[name->signal], 10000000);
    live_snapshot_release(snapshot);
    live_free(live);
}

/* Pods come and go for ever: places are used again, and old references write nowhere. */
static void what_is_silent_is_forgotten(void **state)
{
    (void)state;
    struct live *live = live_new();
    char pod[32];
    live_ref first = series(live, "DCGM_FI_DEV_GPU_UTIL", "1", "pod-0");
    put(live, first, T0, 1);
    put(live, series(live, "DCGM_FI_DEV_GPU_UTIL", "2", "gone"), T0, 7);
    time_ms t = T0;
    for (int i = 1; i < 200; i++) {
        snprintf(pod, sizeof pod, "pod-%d", i);
        t = T0 + i * (LIVE_SILENT_MS / 4);
        put(live, series(live, "DCGM_FI_DEV_GPU_UTIL", "1", pod), t, i % 100);
    }
    const struct live_snapshot *snapshot = live_snapshot(live, 0);
    assert_int_equal(snapshot->n, 1);
    assert_string_equal(snapshot->gpus[0].pod, "pod-199");
    live_snapshot_release(snapshot);
    put(live, first, t + 1000, 55);
    snapshot = live_snapshot(live, 0);
    assert_int_equal(snapshot->gpus[0].value[SIGNAL_UTIL], 990000000);
    live_snapshot_release(snapshot);
    live_free(live);
}

static void a_snapshot_is_shared_while_it_is_fresh(void **state)
{
    (void)state;
    struct live *live = live_new();
    live_ref util = series(live, "DCGM_FI_DEV_GPU_UTIL", "1", "a");
    put(live, util, T0, 1);
    const struct live_snapshot *a = live_snapshot(live, 60000);
    put(live, util, T0 + 1000, 2);
    const struct live_snapshot *b = live_snapshot(live, 60000), *c = live_snapshot(live, 0);
    assert_ptr_equal(a, b);
    assert_ptr_not_equal(b, c);
    live_snapshot_release(a);
    live_snapshot_release(b);
    live_snapshot_release(c);
    live_free(live);
}

static void other_metrics_have_no_device(void **state)
{
    (void)state;
    struct live *live = live_new();
    assert_true(series(live, "kube_node_info", "1", "a") == LIVE_NONE);
    const struct live_snapshot *snapshot = live_snapshot(live, 0);
    assert_int_equal(snapshot->n, 0);
    live_snapshot_release(snapshot);
    live_free(live);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_newest_sample_wins),
        cmocka_unit_test(samples_of_many_devices_find_theirs_in_one_batch),
        cmocka_unit_test(another_pod_takes_the_device_over),
        cmocka_unit_test(an_exporters_own_pod_holds_nothing),
        cmocka_unit_test(it_knows_when_a_gpu_last_worked),
        cmocka_unit_test(replicas_and_short_uuids_are_the_ledgers_devices),
        cmocka_unit_test(percent_and_ratio_are_told_apart_by_what_comes),
        cmocka_unit_test(what_is_silent_is_forgotten),
        cmocka_unit_test(a_snapshot_is_shared_while_it_is_fresh),
        cmocka_unit_test(other_metrics_have_no_device),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
