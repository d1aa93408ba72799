/* What Kubernetes says: lives of nodes, lives and requests of pods, owners. Times are minutes after
 * T0. (semantics, sections 3, 5 and 6) */
#include <math.h>

#include "../../lib/unit.h"
#include "fleet/facts.h"
#include "fleet/objects.h"

#define T0 INT64_C(1767225600000)
#define MINUTE_MS INT64_C(60000)
#define AT(minute) (T0 + (minute)*MINUTE_MS)
#define LABELS_MAX 16

struct world {
    struct settings settings;
    struct names *names;
    struct intake *intake;
    struct facts *facts;
};

static void world_open(struct world *world)
{
    settings_defaults(&world->settings);
    world->names = names_new();
    world->intake = intake_new(&world->settings, world->names);
    world->facts = NULL;
}

static void world_close(struct world *world)
{
    facts_free(world->facts);
    intake_free(world->intake);
    names_free(world->names);
}

static series_id series(struct world *world, const char *metric, const char *pairs)
{
    struct label labels[LABELS_MAX] = {{STR("__name__"), str_of(metric)}};
    size_t n = 1;
    char *text = str_dup(str_of(pairs)), *rest = text, *pair;
    while ((pair = strsep(&rest, ","))) {
        char *value = strchr(pair, '=');
        if (!value)
            continue;
        *value++ = 0;
        labels[n++] = (struct label){str_of(pair), str_of(value)};
    }
    series_id id = intake_series(world->intake, labels, n);
    free(text);
    return id;
}

/* A sample each minute in [from, to]. */
static void record(struct world *world, const char *metric, const char *labels, int from, int to,
                   double v)
{
    series_id id = series(world, metric, labels);
    for (int minute = from; minute <= to; minute++) {
        time_ms t = AT(minute);
        intake_append(world->intake, id, &t, &v, 1);
    }
}

static void settle(struct world *world)
{
    world->facts = facts_new(world->intake, (struct span){T0, T0 + 6 * HOUR_MS});
}

static name_t name(struct world *world, const char *text)
{
    return names_put(world->names, str_of(text));
}

static const struct node *node(struct world *world, const char *text)
{
    return facts_find_node(world->facts, NAME_NONE, name(world, text));
}

static const struct pod *pod(struct world *world, const char *text)
{
    for (size_t i = 0; i < world->facts->pods_n; i++)
        if (world->facts->pods[i].name == name(world, text))
            return &world->facts->pods[i];
    return NULL;
}

/* ------------------------------------------------------------------ nodes */

static void a_life_runs_from_creation_to_six_hours_beyond_the_newest_observation(void **state)
{
    (void)state;
    struct world w;
    world_open(&w);
    record(&w, "kube_node_info", "node=n1,provider_id=aws:///a/i-1", 0, 60, 1);
    record(&w, "kube_node_created", "node=n1", 0, 60, (double)(AT(-100) / 1000));
    settle(&w);
    assert_int_equal(node(&w, "n1")->lives_n, 1);
    assert_int_equal(node(&w, "n1")->lives[0].up, AT(-100));
    assert_int_equal(node(&w, "n1")->lives[0].down, AT(60) + 6 * HOUR_MS);
    assert_true(str_eq(node(&w, "n1")->lives[0].cloud, STR("aws")));
    world_close(&w);
}

static void a_node_that_newer_observations_lack_ended_with_its_last_one(void **state)
{
    (void)state;
    struct world w;
    world_open(&w);
    record(&w, "kube_node_info", "node=n1", 0, 30, 1);
    record(&w, "kube_node_info", "node=n2", 0, 60, 1);
    settle(&w);
    assert_int_equal(node(&w, "n1")->lives[0].down, AT(30));
    assert_int_equal(node(&w, "n1")->lives[0].up, AT(0) - 30000); /* unknown: one step */
    assert_int_equal(node(&w, "n1")->lives[0].created, TIME_MIN);
    world_close(&w);
}

static void a_name_with_another_machine_behind_it_is_another_life(void **state)
{
    (void)state;
    struct world w;
    world_open(&w);
    record(&w, "kube_node_info", "node=n1,provider_id=aws:///a/i-1", 0, 20, 1);
    record(&w, "kube_node_info", "node=n1,provider_id=aws:///a/i-2", 40, 60, 1);
    record(&w, "kube_node_created", "node=n1,x=1", 0, 20, (double)(AT(-5) / 1000));
    record(&w, "kube_node_created", "node=n1,x=2", 40, 60, (double)(AT(35) / 1000));
    settle(&w);
    assert_int_equal(node(&w, "n1")->lives_n, 2);
    assert_int_equal(node(&w, "n1")->lives[0].down, AT(20));
    assert_int_equal(node(&w, "n1")->lives[1].up, AT(35));
    world_close(&w);
}

/* Two kube-state-metrics, ten seconds apart, say the same of a machine that is replaced. */
static void copies_of_records_make_no_more_lives(void **state)
{
    (void)state;
    struct world w;
    world_open(&w);
    for (int copy = 0; copy < 2; copy++) {
        char labels[60];
        snprintf(labels, sizeof labels, "node=n1,instance=ksm-%d", copy);
        series_id info = series(&w, "kube_node_info", labels);
        series_id created = series(&w, "kube_node_created", labels);
        for (int minute = 0; minute <= 60; minute++) {
            time_ms t = AT(minute) + copy * 10000;
            double one = 1, when = (double)(AT(minute < 30 ? -100 : 29) / 1000);
            intake_append(w.intake, info, &t, &one, 1);
            intake_append(w.intake, created, &t, &when, 1);
        }
    }
    settle(&w);
    const struct node *n1 = node(&w, "n1");
    assert_int_equal(n1->lives_n, 2);
    assert_int_equal(n1->lives[0].up, AT(-100));
    assert_int_equal(n1->lives[0].down, AT(29) + 10000);
    assert_int_equal(n1->lives[1].up, AT(29) + 10000);
    assert_int_equal(n1->lives[1].down, AT(60) + 10000 + 6 * HOUR_MS);
    world_close(&w);
}

static void an_outage_of_the_observer_does_not_end_a_life(void **state)
{
    (void)state;
    struct world w;
    world_open(&w);
    record(&w, "kube_node_info", "node=n1,provider_id=aws:///a/i-1", 0, 20, 1);
    record(&w, "kube_node_info", "node=n1,provider_id=aws:///a/i-1", 200, 220, 1);
    settle(&w);
    assert_int_equal(node(&w, "n1")->lives_n, 1);
    assert_int_equal(node(&w, "n1")->lives[0].last, AT(220));
    world_close(&w);
}

static void a_creation_that_is_no_time_is_not_known(void **state)
{
    (void)state;
    struct world w;
    world_open(&w);
    record(&w, "kube_node_info", "node=n1", 0, 20, 1);
    record(&w, "kube_node_created", "node=n1", 0, 20, 1e300);
    settle(&w);
    assert_int_equal(node(&w, "n1")->lives[0].created, TIME_MIN);
    assert_int_equal(node(&w, "n1")->lives[0].up, AT(0) - 30000);
    world_close(&w);
}

static void capacity_above_allocatable_is_a_shortage_while_it_lasts(void **state)
{
    (void)state;
    struct world w;
    world_open(&w);
    record(&w, "kube_node_info", "node=n1", 0, 60, 1);
    record(&w, "kube_node_status_capacity", "node=n1,resource=nvidia_com_gpu", 0, 60, 8);
    record(&w, "kube_node_status_allocatable", "node=n1,resource=nvidia_com_gpu", 0, 19, 8);
    record(&w, "kube_node_status_allocatable", "node=n1,resource=nvidia_com_gpu", 20, 40, 6);
    record(&w, "kube_node_status_allocatable", "node=n1,resource=nvidia_com_gpu", 41, 60, 8);
    settle(&w);
    const struct node *n1 = node(&w, "n1");
    assert_int_equal(n1->shortages_n, 1);
    assert_int_equal(n1->shortages[0].missing, 2);
    assert_int_equal(n1->shortages[0].span.from, AT(19));
    assert_int_equal(n1->shortages[0].span.to, AT(40));
    assert_int_equal(n1->capacity[0].count, 8);
    world_close(&w);
}

static void counts_that_are_none_say_nothing(void **state)
{
    (void)state;
    struct world w;
    world_open(&w);
    record(&w, "kube_node_info", "node=n1", 0, 5, 1);
    record(&w, "kube_node_status_capacity", "node=n1,resource=nvidia_com_gpu", 0, 5, 1e300);
    record(&w, "kube_node_status_allocatable", "node=n1,resource=nvidia_com_gpu", 0, 5, -1e300);
    record(&w, "kube_pod_info", "node=n1,namespace=ns,pod=p,uid=u", 0, 5, 1);
    record(&w, "kube_pod_container_resource_requests",
           "namespace=ns,pod=p,uid=u,container=c,resource=nvidia_com_gpu", 0, 5, (double)NAN);
    settle(&w);
    assert_int_equal(node(&w, "n1")->capacity[0].count, 0);
    assert_int_equal(node(&w, "n1")->shortages_n, 0);
    assert_int_equal(pod(&w, "p")->requested, 0);
    world_close(&w);
}

static void a_list_s_node_is_up_throughout_from_its_creation(void **state)
{
    (void)state;
    struct world w;
    world_open(&w);
    struct resource_count gpus = {STR("nvidia.com/gpu"), 8}, left = {STR("nvidia.com/gpu"), 7};
    struct label type = {STR("node.kubernetes.io/instance-type"), STR("p5.48xlarge")};
    struct node_object object = {.name = STR("n1"),
                                 .provider_id = STR("aws:///a/i-1"),
                                 .created = AT(10),
                                 .unschedulable = true,
                                 .labels = &type,
                                 .labels_n = 1,
                                 .capacity = &gpus,
                                 .capacity_n = 1,
                                 .allocatable = &left,
                                 .allocatable_n = 1};
    intake_node(w.intake, &object);
    settle(&w);
    const struct node *n1 = node(&w, "n1");
    assert_int_equal(n1->lives[0].up, AT(10));
    assert_int_equal(n1->lives[0].down, TIME_MAX);
    assert_true(str_eq(n1->lives[0].attributes.instance_type, STR("p5.48xlarge")));
    assert_true(spans_hold(&n1->cordoned, AT(60)));
    assert_int_equal(n1->shortages[0].missing, 1);
    world_close(&w);
}

/* ------------------------------------------------------------------ pods */

static void a_pod_holds_from_schedule_to_completion(void **state)
{
    (void)state;
    struct world w;
    world_open(&w);
    record(&w, "kube_pod_info", "node=n1,namespace=ns,pod=p,uid=u", 10, 60, 1);
    record(&w, "kube_pod_start_time", "namespace=ns,pod=p,uid=u", 10, 60, (double)(AT(6) / 1000));
    record(&w, "kube_pod_status_scheduled_time", "namespace=ns,pod=p,uid=u", 10, 60,
           (double)(AT(5) / 1000));
    record(&w, "kube_pod_completion_time", "namespace=ns,pod=p,uid=u", 41, 60,
           (double)(AT(40) / 1000));
    settle(&w);
    assert_int_equal(pod(&w, "p")->since, AT(5));
    assert_int_equal(pod(&w, "p")->until, AT(40));
    world_close(&w);
}

static void what_nobody_recorded_lies_between_the_observations_that_lack_the_pod(void **state)
{
    (void)state;
    struct world w;
    world_open(&w);
    record(&w, "kube_node_info", "node=n1", 0, 60, 1);
    record(&w, "kube_pod_info", "node=n1,namespace=ns,pod=p,uid=u", 10, 30, 1);
    settle(&w);
    assert_int_equal(pod(&w, "p")->since, AT(9));
    assert_int_equal(pod(&w, "p")->until, AT(31));
    world_close(&w);
}

static void a_finished_phase_holds_nothing_where_no_time_is_known(void **state)
{
    (void)state;
    struct world w;
    world_open(&w);
    record(&w, "kube_pod_info", "node=n1,namespace=ns,pod=p,uid=u", 0, 60, 1);
    record(&w, "kube_pod_status_phase", "namespace=ns,pod=p,uid=u,phase=Succeeded", 0, 29, 0);
    record(&w, "kube_pod_status_phase", "namespace=ns,pod=p,uid=u,phase=Succeeded", 30, 60, 1);
    settle(&w);
    assert_true(spans_hold(&pod(&w, "p")->counted, AT(28)));
    assert_false(spans_hold(&pod(&w, "p")->counted, AT(29))); /* the record reaches back */
    assert_false(spans_hold(&pod(&w, "p")->counted, AT(45)));
    uint32_t index;
    assert_true(
        facts_incarnation(w.facts, NAME_NONE, name(&w, "ns"), name(&w, "p"), AT(20), &index));
    assert_false(
        facts_incarnation(w.facts, NAME_NONE, name(&w, "ns"), name(&w, "p"), AT(45), &index));
    world_close(&w);
}

static void a_name_that_kubernetes_never_said_is_taken_at_its_word(void **state)
{
    (void)state;
    struct world w;
    world_open(&w);
    settle(&w);
    uint32_t index = 5;
    assert_true(facts_incarnation(w.facts, NAME_NONE, name(&w, "ns"), name(&w, "p"), T0, &index));
    assert_int_equal(index, POD_NONE);
    world_close(&w);
}

static void pods_of_one_name_are_told_apart_by_time(void **state)
{
    (void)state;
    struct world w;
    world_open(&w);
    record(&w, "kube_node_info", "node=n1", -5, 60, 1);
    record(&w, "kube_pod_info", "node=n1,namespace=ns,pod=web-0,uid=u1", 0, 20, 1);
    record(&w, "kube_pod_info", "node=n1,namespace=ns,pod=web-0,uid=u2", 30, 60, 1);
    settle(&w);
    uint32_t first, second, none;
    name_t ns = name(&w, "ns"), web = name(&w, "web-0");
    assert_true(facts_incarnation(w.facts, NAME_NONE, ns, web, AT(10), &first));
    assert_true(facts_incarnation(w.facts, NAME_NONE, ns, web, AT(40), &second));
    assert_int_equal(w.facts->pods[first].uid, name(&w, "u1"));
    assert_int_equal(w.facts->pods[second].uid, name(&w, "u2"));
    assert_false(facts_incarnation(w.facts, NAME_NONE, ns, web, AT(-3), &none));
    assert_false(facts_incarnation(w.facts, NAME_NONE, ns, web, AT(25), &none));
    world_close(&w);
}

static void request(struct world *world, const char *metric, const char *container, double count)
{
    char labels[200];
    snprintf(labels, sizeof labels, "namespace=ns,pod=p,uid=u,container=%s,resource=nvidia_com_gpu",
             container);
    record(world, metric, labels, 0, 5, count);
}

static void requests_count_as_kubernetes_counts_them(void **state)
{
    (void)state;
    struct world w;
    world_open(&w);
    record(&w, "kube_pod_info", "node=n1,namespace=ns,pod=p,uid=u", 0, 5, 1);
    request(&w, "kube_pod_container_resource_requests", "main", 2);
    request(&w, "kube_pod_container_resource_requests", "other", 1);
    request(&w, "kube_pod_init_container_resource_requests", "a-sidecar", 1);
    request(&w, "kube_pod_init_container_resource_requests", "b-init", 6);
    record(&w, "kube_pod_init_container_info",
           "namespace=ns,pod=p,uid=u,container=a-sidecar,restart_policy=Always", 0, 5, 1);
    settle(&w);
    /* max(6 + the sidecar's 1 before it, 2 + 1 + 1) */
    assert_int_equal(pod(&w, "p")->requested, 7);
    world_close(&w);
}

static void a_fraction_is_one_gpu_in_part(void **state)
{
    (void)state;
    struct world w;
    world_open(&w);
    record(&w, "kube_pod_info", "node=n1,namespace=ns,pod=p,uid=u", 0, 5, 1);
    record(&w, "kube_pod_container_resource_requests",
           "namespace=ns,pod=p,uid=u,container=c,resource=nvidia_com_gpucores", 0, 5, 40);
    settle(&w);
    assert_int_equal(pod(&w, "p")->fraction.num, 2);
    assert_int_equal(pod(&w, "p")->fraction.den, 5);
    assert_int_equal(pod(&w, "p")->requested, 1);
    world_close(&w);
}

static void a_pod_of_twenty_thousand_requests_is_cut_off(void **state)
{
    (void)state;
    struct world w;
    world_open(&w);
    for (int i = 0; i < 20000; i++) {
        char container[20];
        snprintf(container, sizeof container, "c%d", i);
        time_ms t = T0;
        double one = 1;
        char labels[100];
        snprintf(labels, sizeof labels,
                 "namespace=ns,pod=p,uid=u,container=%s,resource=nvidia_com_gpu", container);
        intake_append(w.intake, series(&w, "kube_pod_container_resource_requests", labels), &t,
                      &one, 1);
    }
    settle(&w);
    assert_in_range(pod(&w, "p")->requested, 1, 1024);
    world_close(&w);
}

/* ------------------------------------------------------------------ owners and labels */

static void the_topmost_controller_is_the_workload(void **state)
{
    (void)state;
    struct world w;
    world_open(&w);
    record(&w, "kube_pod_info", "node=n1,namespace=ns,pod=p,uid=u", 0, 5, 1);
    record(&w, "kube_pod_owner", "namespace=ns,pod=p,uid=u,owner_kind=Job,owner_name=train-1", 0, 5,
           1);
    record(&w, "kube_job_owner",
           "namespace=ns,job_name=train-1,owner_kind=CronJob,owner_name=train", 0, 5, 1);
    intake_owner(w.intake, STR_NONE, STR("ns"), STR("CronJob"), STR("train"), STR("Workflow"),
                 STR("nightly"));
    settle(&w);
    name_t workload = facts_workload(w.facts, 0, name(&w, "p"));
    assert_string_equal(names_text(w.names, workload).p, "Workflow/nightly");
    assert_string_equal(names_text(w.names, facts_workload(w.facts, POD_NONE, name(&w, "bare"))).p,
                        "Pod/bare");
    world_close(&w);
}

static void owners_that_own_each_other_end_somewhere(void **state)
{
    (void)state;
    struct world w;
    world_open(&w);
    record(&w, "kube_pod_owner", "namespace=ns,pod=p,uid=u,owner_kind=A,owner_name=a", 0, 5, 1);
    intake_owner(w.intake, STR_NONE, STR("ns"), STR("A"), STR("a"), STR("B"), STR("b"));
    intake_owner(w.intake, STR_NONE, STR("ns"), STR("B"), STR("b"), STR("A"), STR("a"));
    settle(&w);
    struct str text = names_text(w.names, facts_workload(w.facts, 0, name(&w, "p")));
    assert_true(str_eq(text, STR("A/a")) || str_eq(text, STR("B/b")));
    world_close(&w);
}

static struct holder_labels meaning(struct world *world, const char *labels)
{
    series(world, "DCGM_FI_DEV_GPU_UTIL", labels);
    settle(world);
    return facts_holder_labels(world->facts, world->intake->strips[0]);
}

static void bare_labels_are_the_exporters_where_the_job_renames(void **state)
{
    (void)state;
    struct world w;
    world_open(&w);
    series(&w, "DCGM_FI_DEV_GPU_UTIL", "UUID=G,job=j,pod=exp,namespace=mon");
    series(&w, "DCGM_FI_DEV_GPU_UTIL", "UUID=H,job=j,pod=exp,namespace=mon,exported_pod=p");
    settle(&w);
    struct holder_labels held = facts_holder_labels(w.facts, w.intake->strips[0]);
    assert_int_equal(held.pod, NAME_NONE);
    assert_int_equal(held.exporter_pod, name(&w, "exp"));
    held = facts_holder_labels(w.facts, w.intake->strips[1]);
    assert_int_equal(held.pod, name(&w, "p"));
    world_close(&w);
}

static void bare_labels_are_the_exporters_where_its_container_is_known(void **state)
{
    (void)state;
    struct world w;
    world_open(&w);
    struct holder_labels held =
        meaning(&w, "UUID=G,job=j,pod=exp,namespace=mon,container=nvidia-dcgm-exporter");
    assert_int_equal(held.pod, NAME_NONE);
    assert_int_equal(held.namespace, NAME_NONE);
    world_close(&w);
}

static void bare_labels_are_the_exporters_where_the_target_is_that_pod(void **state)
{
    (void)state;
    struct world w;
    world_open(&w);
    record(&w, "up", "job=j,instance=10.0.0.1:9400,pod=exp", 0, 5, 1);
    struct holder_labels held =
        meaning(&w, "UUID=G,job=j,instance=10.0.0.1:9400,pod=exp,namespace=mon");
    assert_int_equal(held.pod, NAME_NONE);
    world_close(&w);
}

static void bare_labels_of_others_are_the_workloads(void **state)
{
    (void)state;
    struct world w;
    world_open(&w);
    record(&w, "up", "job=j,instance=10.0.0.2:9400,pod=exp", 0, 5, 1);
    struct holder_labels held =
        meaning(&w, "UUID=G,job=j,instance=10.0.0.1:9400,pod=p,namespace=ns,container=main");
    assert_int_equal(held.pod, name(&w, "p"));
    assert_int_equal(held.container, name(&w, "main"));
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_life_runs_from_creation_to_six_hours_beyond_the_newest_observation),
        cmocka_unit_test(a_node_that_newer_observations_lack_ended_with_its_last_one),
        cmocka_unit_test(a_name_with_another_machine_behind_it_is_another_life),
        cmocka_unit_test(copies_of_records_make_no_more_lives),
        cmocka_unit_test(an_outage_of_the_observer_does_not_end_a_life),
        cmocka_unit_test(a_creation_that_is_no_time_is_not_known),
        cmocka_unit_test(capacity_above_allocatable_is_a_shortage_while_it_lasts),
        cmocka_unit_test(counts_that_are_none_say_nothing),
        cmocka_unit_test(a_list_s_node_is_up_throughout_from_its_creation),
        cmocka_unit_test(a_pod_holds_from_schedule_to_completion),
        cmocka_unit_test(what_nobody_recorded_lies_between_the_observations_that_lack_the_pod),
        cmocka_unit_test(a_finished_phase_holds_nothing_where_no_time_is_known),
        cmocka_unit_test(a_name_that_kubernetes_never_said_is_taken_at_its_word),
        cmocka_unit_test(pods_of_one_name_are_told_apart_by_time),
        cmocka_unit_test(requests_count_as_kubernetes_counts_them),
        cmocka_unit_test(a_fraction_is_one_gpu_in_part),
        cmocka_unit_test(a_pod_of_twenty_thousand_requests_is_cut_off),
        cmocka_unit_test(the_topmost_controller_is_the_workload),
        cmocka_unit_test(owners_that_own_each_other_end_somewhere),
        cmocka_unit_test(bare_labels_are_the_exporters_where_the_job_renames),
        cmocka_unit_test(bare_labels_are_the_exporters_where_its_container_is_known),
        cmocka_unit_test(bare_labels_are_the_exporters_where_the_target_is_that_pod),
        cmocka_unit_test(bare_labels_of_others_are_the_workloads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
