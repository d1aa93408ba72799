/* Changes to pods and pools: fewer of them, taking turns, without GPUs, kept away. What is written
 * is right by the Kubernetes API: apps/v1 (spec.replicas, spec.template.spec), core/v1
 * (nodeSelector, resources, ConfigMap data), and the device plugin's configuration (v1,
 * sharing.timeSlicing). */
#include "../../lib/hand_ledger.h"

#include <yaml.h>

#include "report/patch.h"

static struct patch_set *patches_of(void **state)
{
    struct ledger *ledger = *state;
    struct findings_report report = {
        .findings = ledger->findings, .title = "test", .currency = "USD"};
    return patch_new(&report);
}

/* Its documents load. */
static const struct patch_file *file_named(const struct patch_set *set, const char *name)
{
    for (size_t i = 0; i < set->n; i++) {
        struct str text = strbuf_str(&set->files[i].text);
        yaml_parser_t parser;
        yaml_document_t document;
        bool more = true;
        assert_true(yaml_parser_initialize(&parser));
        yaml_parser_set_input_string(&parser, (const unsigned char *)text.p, text.n);
        while (more) {
            if (!yaml_parser_load(&parser, &document))
                fail_msg("%s\n%.*s", parser.problem, STR_ARG(text));
            more = yaml_document_get_root_node(&document);
            yaml_document_delete(&document);
        }
        yaml_parser_delete(&parser);
    }
    for (size_t i = 0; i < set->n; i++)
        if (str_eq(set->files[i].name, str_of(name)))
            return &set->files[i];
    fail_msg("no file %s", name);
    return NULL;
}

static void assert_has(const struct patch_file *file, const char *part)
{
    if (!strstr(file->text.text, part))
        fail_msg("lacks\n%s\nin\n%s", part, file->text.text);
}

static void assert_lacks(const struct patch_file *file, const char *part)
{
    if (strstr(file->text.text, part))
        fail_msg("has\n%s\nin\n%s", part, file->text.text);
}

/* Four pods of a GPU each, beside busy neighbours; container "server". */
static void four_pods(struct ledger *ledger, const char *workload, const char *model,
                      struct stay stay)
{
    for (int i = 0; i < 4; i++) {
        char name[16], device[24], pod[16];
        snprintf(name, sizeof name, "n%d", i);
        snprintf(device, sizeof device, "GPU-%d", i);
        snprintf(pod, sizeof pod, "p-%d", i);
        stay.node = name, stay.device = device, stay.pod = pod;
        stay.workload = workload, stay.model = model, stay.to = HOURS;
        node(ledger, name, CAPACITY_ON_DEMAND, 0);
        stays(ledger, stay);
        neighbour(ledger, name);
    }
    for (size_t i = 0; i < ledger->batch.rows_n; i++)
        ledger->batch.rows[i].key.container = put(ledger, "server");
}

/* 4 x 12 % is 48 %: one pod does it at 60 %. 70 of 80 GiB, so that no slice would do. */
static void fewer_pods_are_replicas(void **state)
{
    struct ledger *ledger = *state;
    struct stay stay = {.type = WORKLOAD_INFERENCE, .u = 12, .e = 40, .mem_gib = 70};
    four_pods(ledger, "Deployment/rank", NULL, stay);
    const struct finding *finding = of_rule(findings_of(state), RULE_LOW_USE);
    assert_non_null(finding);
    assert_int_equal(finding->remedy, REMEDY_REPLICAS);
    struct patch_set *set = patches_of(state);
    const struct patch_file *file = file_named(set, "search.yaml");
    assert_has(file, "# WARNING: it ends the others.");
    assert_has(file, "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: rank\n"
                     "  namespace: ns\nspec:\n  replicas: 1\n");
    patch_free(set);
}

/* A CronJob has no number of pods. */
static void what_has_no_replicas_has_no_document(void **state)
{
    struct ledger *ledger = *state;
    struct stay stay = {.type = WORKLOAD_INFERENCE, .u = 12, .e = 40, .mem_gib = 70};
    four_pods(ledger, "CronJob/rank", NULL, stay);
    assert_non_null(of_rule(findings_of(state), RULE_LOW_USE));
    struct patch_set *set = patches_of(state);
    assert_has(file_named(set, "search.yaml"), "# no document: how many pods this kind");
    assert_lacks(file_named(set, "search.yaml"), "replicas: ");
    patch_free(set);
}

/* It does nothing and would fit a slice: it is stopped, and nothing else is written for it. */
static void an_object_has_one_document(void **state)
{
    struct ledger *ledger = *state;
    struct stay stay = {.type = WORKLOAD_OTHER, .u = 0, .e = 0, .mem_gib = 6};
    four_pods(ledger, "Deployment/rank", NULL, stay);
    findings_of(state);
    assert_non_null(of_rule(ledger->findings, RULE_IDLE_WORKLOAD));
    assert_non_null(of_rule(ledger->findings, RULE_MIG_FIT));
    struct patch_set *set = patches_of(state);
    const struct patch_file *file = file_named(set, "search.yaml");
    assert_int_equal(file->documents, 1);
    assert_has(file, "spec:\n  replicas: 0\n");
    assert_has(file, "# no document: another change of the same object");
    patch_free(set);
}

/* Pods of a training run are its ranks. */
static void training_is_not_scaled(void **state)
{
    struct ledger *ledger = *state;
    struct stay stay = {.type = WORKLOAD_TRAINING, .u = 12, .e = 40, .mem_gib = 70};
    four_pods(ledger, "StatefulSet/ranks", NULL, stay);
    assert_non_null(of_rule(findings_of(state), RULE_TRAINING_USE));
    struct patch_set *set = patches_of(state);
    assert_lacks(file_named(set, "search.yaml"), "replicas: ");
    patch_free(set);
}

/* 30 GiB and a tenth are 33 of 80: two lie beside each other. */
static void pods_that_take_turns_go_to_nodes_that_share(void **state)
{
    struct ledger *ledger = *state;
    struct stay stay = {.type = WORKLOAD_INFERENCE, .u = 12, .e = 40, .mem_gib = 30};
    four_pods(ledger, "Deployment/ocr", "Tesla T4", stay);
    assert_non_null(of_rule(findings_of(state), RULE_TIME_SLICING));
    struct patch_set *set = patches_of(state);
    assert_has(file_named(set, "search.yaml"),
               "spec:\n  template:\n    spec:\n      nodeSelector:\n"
               "        nvidia.com/device-plugin.config: shared-2\n");
    const struct patch_file *platform = file_named(set, "platform.yaml");
    assert_has(platform, "#   kubectl label nodes NODE nvidia.com/device-plugin.config=shared-2\n");
    assert_has(platform, "apiVersion: v1\nkind: ConfigMap\nmetadata:\n"
                         "  name: gputally-time-slicing\n  namespace: gpu-operator\ndata:\n"
                         "  shared-2: |\n    version: v1\n    sharing:\n      timeSlicing:\n"
                         "        failRequestsGreaterThanOne: true\n        resources:\n"
                         "        - name: nvidia.com/gpu\n          replicas: 2\n");
    assert_lacks(platform, "shared-4");
    patch_free(set);
}

static void a_slice_is_cut_by_a_label(void **state)
{
    struct ledger *ledger = *state;
    struct stay stay = {.type = WORKLOAD_INFERENCE, .u = 9, .e = 30, .mem_gib = 6};
    four_pods(ledger, "Deployment/ocr", NULL, stay);
    assert_non_null(of_rule(findings_of(state), RULE_MIG_FIT));
    struct patch_set *set = patches_of(state);
    assert_has(file_named(set, "search.yaml"),
               "#   kubectl label nodes NODE --overwrite nvidia.com/mig.config=all-1g.10gb\n");
    patch_free(set);
}

/* 8 of 96 CPUs requested: some machine of the catalogue has them. */
static void cpu_work_moves_without_its_gpu(void **state)
{
    struct ledger *ledger = *state;
    struct stay stay = {.workload = "Deployment/etl", .u = 1, .e = 2, .mem_gib = 2};
    node(ledger, "n1", CAPACITY_ON_DEMAND, 0);
    for (int i = 0; i < 2; i++) {
        stay.node = "n1", stay.device = i ? "GPU-1" : "GPU-2", stay.to = HOURS;
        stays(ledger, stay);
    }
    for (size_t i = 0; i < ledger->batch.rows_n; i++)
        ledger->batch.rows[i].key.container = put(ledger, "etl");
    findings_free(findings_of(state));
    struct book_node *of = &ledger->books->nodes[0];
    of->facts.cloud = put(ledger, "aws");
    of->facts.region = put(ledger, "us-east-1");
    of->host = (struct book_host){.cpu_max = NANO / 100 * 80,
                                  .cpus = 96,
                                  .cpu_seen_ms = HOURS * HOUR_MS,
                                  .requested_mcpu = 8000,
                                  .requested_memory_bytes = INT64_C(16) << 30,
                                  .cpu_pods = -1,
                                  .daemon_pods = -1};
    ledger->findings = recommend(ledger->books, "USD");
    const struct finding *finding = of_rule(ledger->findings, RULE_CPU_NODE);
    assert_non_null(finding);
    struct patch_set *set = patches_of(state);
    const struct patch_file *file = file_named(set, "search.yaml");
    assert_has(file, "kind: Deployment\nmetadata:\n  name: etl\n  namespace: ns\nspec:\n"
                     "  template:\n    spec:\n      containers:\n      - name: etl\n"
                     "        resources:\n          limits:\n            nvidia.com/gpu: \"0\"\n"
                     "          requests:\n            nvidia.com/gpu: \"0\"\n"
                     "      nodeSelector:\n        node.kubernetes.io/instance-type: ");
    char type[64];
    snprintf(type, sizeof type, "instance-type: %.*s\n", STR_ARG(finding->target));
    assert_has(file, type);
    assert_has(file, "# WARNING: its pods are started anew");
    patch_free(set);
}

/* Both nodes of the pool are open; one has a name that is none. */
static void open_nodes_are_tainted_in_one_command(void **state)
{
    struct ledger *ledger = *state;
    static const char *const names[] = {"n1", "n2", "$(reboot)"};
    for (size_t i = 0; i < 3; i++) {
        node(ledger, names[i], CAPACITY_ON_DEMAND, 0);
        neighbour(ledger, names[i]);
    }
    findings_free(findings_of(state));
    for (size_t i = 0; i < ledger->books->nodes_n; i++) {
        ledger->books->nodes[i].host.gpu_taint = MACHINE_TAINT_NONE;
        ledger->books->nodes[i].host.cpu_pods = 1;
        ledger->books->nodes[i].facts.cloud = put(ledger, "gcp");
    }
    ledger->findings = recommend(ledger->books, "USD");
    assert_non_null(of_rule(ledger->findings, RULE_MISSING_TAINT));
    struct patch_set *set = patches_of(state);
    const struct patch_file *file = file_named(set, "platform.yaml");
    assert_has(file, "#   kubectl taint nodes n1 n2 nvidia.com/gpu=present:NoSchedule\n");
    assert_has(file, "#   gcloud container node-pools update gpu --cluster CLUSTER --node-taints "
                     "nvidia.com/gpu=present:NoSchedule\n");
    patch_free(set);
}

#define with_ledger(test) cmocka_unit_test_setup_teardown(test, ledger_new, ledger_free)
int main(void)
{
    const struct CMUnitTest tests[] = {
        with_ledger(fewer_pods_are_replicas),
        with_ledger(what_has_no_replicas_has_no_document),
        with_ledger(an_object_has_one_document),
        with_ledger(training_is_not_scaled),
        with_ledger(pods_that_take_turns_go_to_nodes_that_share),
        with_ledger(a_slice_is_cut_by_a_label),
        with_ledger(cpu_work_moves_without_its_gpu),
        with_ledger(open_nodes_are_tainted_in_one_command),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
