/* GPUs now: each cluster by the best that is known of it. The ledger is made by hand: cluster "far"
 * is in it alone, "near" has samples too. */
#include "serve/live_view.h"

#include "../../lib/unit.h"

#define T0 INT64_C(1796083200000) /* 2026-12-01T00:00Z */
#define IDLE_BELOW (NANO / 10)

struct lab {
    struct live *live;
    struct gpu_book book;
    struct gpu_known slots[8];
    struct live_claims claims;
};

static name_t put(struct lab *lab, const char *text)
{
    return names_put(lab->book.names, str_of(text));
}

static struct gpu_known *know(struct lab *lab, const char *cluster, const char *device,
                              const char *instance, const char *pod, const char *team)
{
    struct gpu_known *slot = &lab->slots[lab->book.n];
    *slot = (struct gpu_known){.cluster = put(lab, cluster),
                               .node = put(lab, "n"),
                               .device = put(lab, device),
                               .instance = put(lab, instance),
                               .namespace = put(lab, *pod ? "ns" : ""),
                               .pod = put(lab, pod),
                               .team = put(lab, team),
                               .workload = put(lab, *pod ? "Job/x" : ""),
                               .util = NANO / 2,
                               .sm = -1,
                               .memory_used = -1,
                               .memory_total = -1,
                               .power_mw = -1,
                               .price_hour = 4 * NANO,
                               .idle_since = TIME_MIN,
                               .at = T0 - HOUR_MS};
    idmap_set(&lab->book.by_device, IDKEY(slot->cluster, slot->device, slot->instance),
              (uint32_t)lab->book.n);
    if (*pod)
        idmap_set(&lab->book.by_pod, IDKEY(slot->cluster, slot->namespace, slot->pod),
                  (uint32_t)lab->book.n);
    lab->book.n++;
    return slot;
}

static void sample(struct lab *lab, const char *metric, const char *device, const char *instance,
                   const char *pod, time_ms t, double v)
{
    const struct label labels[] = {
        {STR("__name__"), str_of(metric)},     {STR("cluster"), STR("near")},
        {STR("UUID"), str_of(device)},         {STR("GPU_I_ID"), str_of(instance)},
        {STR("Hostname"), STR("n")},           {STR("exported_pod"), str_of(pod)},
        {STR("exported_namespace"), STR("ns")}};
    live_ref ref = live_series(lab->live, labels, *pod ? 7 : 5);
    live_samples(lab->live, &ref, &t, &v, 1);
}

static int open_lab(void **state)
{
    struct lab *lab = mem_zalloc(1, sizeof *lab);
    lab->live = live_new();
    lab->book = (struct gpu_book){.names = names_new(), .gpus = lab->slots};
    *state = lab;
    return 0;
}

static int close_lab(void **state)
{
    struct lab *lab = *state;
    live_free(lab->live);
    live_claims_release(&lab->claims);
    names_free(lab->book.names);
    idmap_release(&lab->book.by_device);
    idmap_release(&lab->book.by_pod);
    free(lab);
    return 0;
}

struct seen {
    char text[4000];
    size_t n;
    struct gpu_now last;
};

/* "cluster device:instance team basis" of each. */
static bool see(void *context, const struct gpu_now *gpu)
{
    struct seen *seen = context;
    seen->n += (size_t)snprintf(seen->text + seen->n, sizeof seen->text - seen->n,
                                "%.*s %.*s:%.*s %.*s %s\n", STR_ARG(gpu->cluster),
                                STR_ARG(gpu->device), STR_ARG(gpu->instance), STR_ARG(gpu->team),
                                gpu->of_hour ? "hour" : "sample");
    seen->last = *gpu;
    return true;
}

/* "device:instance pod team" of each. */
static bool see_pod(void *context, const struct gpu_now *gpu)
{
    struct seen *seen = context;
    seen->n += (size_t)snprintf(seen->text + seen->n, sizeof seen->text - seen->n,
                                "%.*s:%.*s %.*s %.*s\n", STR_ARG(gpu->device),
                                STR_ARG(gpu->instance), STR_ARG(gpu->pod), STR_ARG(gpu->team));
    return true;
}

static void look(struct live *live, struct lab *lab, struct seen *seen)
{
    live_view(live, &(struct live_view_of){IDLE_BELOW, &lab->book, &lab->claims}, see, seen);
}

static void a_cluster_with_samples_is_shown_by_them_the_others_by_their_last_hour(void **state)
{
    struct lab *lab = *state;
    struct seen seen = {0};
    know(lab, "far", "GPU-1", "", "p", "search");
    know(lab, "near", "GPU-2", "", "p", "vision");
    know(lab, "near", "GPU-gone", "", "", "");
    know(lab, "zoo", "GPU-3", "", "", "");
    sample(lab, "DCGM_FI_DEV_GPU_UTIL", "GPU-2", "", "p", T0, 40);
    look(lab->live, lab, &seen);
    assert_string_equal(seen.text, "far GPU-1: search hour\n"
                                   "near GPU-2: vision sample\n"
                                   "zoo GPU-3:  hour\n");
    seen = (struct seen){0};
    look(NULL, lab, &seen);
    assert_string_equal(seen.text, "far GPU-1: search hour\nnear GPU-2: vision hour\n"
                                   "near GPU-gone:  hour\nzoo GPU-3:  hour\n");
}

/* A pod of the same name in another cluster, or one that the ledger has not booked, has no team. */
static void a_team_is_that_of_the_pod_and_never_guessed(void **state)
{
    struct lab *lab = *state;
    struct seen seen = {0};
    know(lab, "far", "GPU-1", "", "new", "search");
    know(lab, "near", "GPU-2", "", "old", "vision");
    sample(lab, "DCGM_FI_DEV_GPU_UTIL", "GPU-2", "", "new", T0, 40);
    look(lab->live, lab, &seen);
    assert_int_equal(seen.last.team.n, 0);
    assert_int_equal(seen.last.price_hour, 4 * NANO);
    sample(lab, "DCGM_FI_DEV_GPU_UTIL", "GPU-9", "", "old", T0, 40); /* it moved */
    struct live *live = lab->live;
    live_snapshot_release(live_snapshot(live, 0));
    look(live, lab, &seen);
    assert_true(str_eq(seen.last.team, STR("vision")));
    assert_int_equal(seen.last.price_hour, -1); /* of a GPU that is not booked */
}

/* Without pods in the labels all GPUs would seem free; but where labels name pods, one that they do
 * not name is free now, whoever held it in the last hour. */
static void holders_that_were_laid_by_count_are_the_ledgers(void **state)
{
    struct lab *lab = *state;
    struct seen seen = {0};
    know(lab, "near", "GPU-1", "", "counted", "search")->unlabelled = true;
    know(lab, "near", "GPU-2", "", "named", "vision");
    sample(lab, "DCGM_FI_DEV_GPU_UTIL", "GPU-1", "", "", T0, 40);
    sample(lab, "DCGM_FI_DEV_GPU_UTIL", "GPU-2", "", "", T0, 40);
    look(lab->live, lab, &seen);
    assert_string_equal(seen.text, "near GPU-1: search sample\nnear GPU-2:  sample\n");
    assert_int_equal(seen.last.pod.n, 0);
}

static void the_board_of_a_split_gpu_is_no_slot(void **state)
{
    struct lab *lab = *state;
    struct seen seen = {0};
    know(lab, "near", "GPU-2", "1", "", "")->price_hour = NANO;
    sample(lab, "DCGM_FI_DEV_POWER_USAGE", "GPU-2", "", "", T0, 300);
    sample(lab, "DCGM_FI_PROF_GR_ENGINE_ACTIVE", "GPU-2", "1", "", T0, 0.5);
    sample(lab, "DCGM_FI_PROF_GR_ENGINE_ACTIVE", "GPU-2", "2", "", T0, 0.5);
    look(lab->live, lab, &seen);
    assert_string_equal(seen.text, "near GPU-2:1  sample\nnear GPU-2:2  sample\n");
}

static time_ms since(struct lab *lab)
{
    struct seen seen = {0};
    live_snapshot_release(live_snapshot(lab->live, 0));
    look(lab->live, lab, &seen);
    return seen.last.idle_since;
}

static void idle_since_is_the_last_work_seen_else_the_ledgers(void **state)
{
    struct lab *lab = *state;
    sample(lab, "DCGM_FI_DEV_GPU_UTIL", "GPU-2", "", "", T0, 5);
    assert_int_equal(since(lab), T0); /* nobody knows of any work: since it was watched */
    know(lab, "near", "GPU-2", "", "", "")->idle_since = T0 - 5 * HOUR_MS;
    assert_int_equal(since(lab), T0 - 5 * HOUR_MS);
    sample(lab, "DCGM_FI_DEV_GPU_UTIL", "GPU-2", "", "", T0 + 1000, 50);
    assert_true(since(lab) == TIME_MIN);
    sample(lab, "DCGM_FI_DEV_GPU_UTIL", "GPU-2", "", "", T0 + 2000, 0);
    assert_int_equal(since(lab), T0 + 1000);
}

/* SM activity that is no longer sent is not shown as if it were of now. */
static void a_signal_that_fell_silent_is_not_known(void **state)
{
    struct lab *lab = *state;
    struct seen seen = {0};
    sample(lab, "DCGM_FI_PROF_SM_ACTIVE", "GPU-2", "", "", T0, 0.7);
    sample(lab, "DCGM_FI_DEV_GPU_UTIL", "GPU-2", "", "", T0 + LIVE_VIEW_OLD_MS + 1, 50);
    look(lab->live, lab, &seen);
    assert_int_equal(seen.last.sm, -1);
    assert_int_equal(seen.last.util, NANO / 2);
    assert_int_equal(seen.last.at, T0 + LIVE_VIEW_OLD_MS + 1);
}

static void claim(struct lab *lab, const char *cluster, const char *device, const char *pod)
{
    live_claims_add(&lab->claims, str_of(cluster), str_of(device), STR("ns"), str_of(pod));
}

/* An exporter that knows nothing of claims names no pod: whom the claim is for holds it, at once,
 * and with the ledger's words once it has booked the pod. */
static void a_claim_says_who_holds_what_labels_do_not(void **state)
{
    struct lab *lab = *state;
    struct seen seen = {0};
    know(lab, "near", "GPU-1", "", "booked", "search");
    know(lab, "near", "GPU-2", "", "gone", "search"); /* its claim was given back */
    know(lab, "near", "GPU-4", "", "booked", "search");
    claim(lab, "near", "GPU-1", "booked");
    claim(lab, "near", "GPU-3", "new");
    claim(lab, "near", "GPU-4", "booked");
    claim(lab, "far", "GPU-2", "elsewhere");
    for (int i = 1; i <= 3; i++)
        sample(lab, "DCGM_FI_DEV_GPU_UTIL", (const char *[]){"GPU-1", "GPU-2", "GPU-3"}[i - 1], "",
               "", T0, 40);
    sample(lab, "DCGM_FI_DEV_GPU_UTIL", "GPU-4", "", "labelled", T0, 40); /* labels go first */
    live_view(lab->live, &(struct live_view_of){IDLE_BELOW, &lab->book, &lab->claims}, see_pod,
              &seen);
    assert_string_equal(seen.text, "GPU-1: booked search\nGPU-2:  \nGPU-3: new \n"
                                   "GPU-4: labelled \n");
}

/* Of a claim for an instance telemetry's number is known, or only the profile: then the ledger has
 * laid it on one. */
static void a_claim_for_an_instance_is_that_instances(void **state)
{
    struct lab *lab = *state;
    struct seen seen = {0};
    know(lab, "near", "GPU-1", "3", "a", "search");
    know(lab, "near", "GPU-1", "5", "b", "vision");
    know(lab, "near", "GPU-1", "7", "c", "vision");
    claim(lab, "near", "GPU-1/3", "a");
    claim(lab, "near", "GPU-1/2g.20gb/MIG-x", "b");
    sample(lab, "DCGM_FI_PROF_GR_ENGINE_ACTIVE", "GPU-1", "3", "", T0, 0.4);
    sample(lab, "DCGM_FI_PROF_GR_ENGINE_ACTIVE", "GPU-1", "5", "", T0, 0.4);
    sample(lab, "DCGM_FI_PROF_GR_ENGINE_ACTIVE", "GPU-1", "7", "", T0, 0.4);
    live_view(lab->live, &(struct live_view_of){IDLE_BELOW, &lab->book, &lab->claims}, see_pod,
              &seen);
    assert_string_equal(seen.text, "GPU-1:3 a search\nGPU-1:5 b vision\nGPU-1:7  \n");
}

int main(void)
{
#define test(name) cmocka_unit_test_setup_teardown(name, open_lab, close_lab)
    const struct CMUnitTest tests[] = {
        test(a_cluster_with_samples_is_shown_by_them_the_others_by_their_last_hour),
        test(a_team_is_that_of_the_pod_and_never_guessed),
        test(holders_that_were_laid_by_count_are_the_ledgers),
        test(a_claim_says_who_holds_what_labels_do_not),
        test(a_claim_for_an_instance_is_that_instances),
        test(the_board_of_a_split_gpu_is_no_slot),
        test(idle_since_is_the_last_work_seen_else_the_ledgers),
        test(a_signal_that_fell_silent_is_not_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
