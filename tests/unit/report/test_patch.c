/* Changes to review: one file an owner, documents that say what they should, and YAML that is valid
 * whatever things are called. */
#include "../../lib/hand_ledger.h"

#include <yaml.h>

#include "report/patch.h"
#include "report/yaml.h"

static struct patch_set *patches_of(void **state)
{
    struct ledger *ledger = *state;
    struct findings_report report = {
        .findings = ledger->findings, .title = "test", .currency = "USD"};
    return patch_new(&report);
}

static const struct patch_file *file_named(const struct patch_set *set, const char *name)
{
    for (size_t i = 0; i < set->n; i++)
        if (str_eq(set->files[i].name, str_of(name)))
            return &set->files[i];
    fail_msg("no file %s", name);
    return NULL;
}

/* Loads as YAML, in so many documents; those that are no mapping must be empty. Returns how many
 * are mappings. */
static size_t documents_of(struct str text)
{
    yaml_parser_t parser;
    size_t mappings = 0;
    assert_true(yaml_parser_initialize(&parser));
    yaml_parser_set_input_string(&parser, (const unsigned char *)text.p, text.n);
    for (;;) {
        yaml_document_t document;
        if (!yaml_parser_load(&parser, &document))
            fail_msg("line %zu: %s\n%.*s", parser.problem_mark.line + 1, parser.problem,
                     STR_ARG(text));
        yaml_node_t *root = yaml_document_get_root_node(&document);
        bool mapping = root && root->type == YAML_MAPPING_NODE;
        if (root && !mapping && root->data.scalar.length)
            fail_msg("a document is no mapping:\n%.*s", STR_ARG(text));
        mappings += mapping;
        yaml_document_delete(&document);
        if (!root)
            break;
    }
    yaml_parser_delete(&parser);
    return mappings;
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

static void an_idle_deployment_is_scaled_to_zero(void **state)
{
    with_one(state, (struct stay){.workload = "Deployment/rank"});
    struct patch_set *set = patches_of(state);
    assert_int_equal(set->n, 1);
    const struct patch_file *file = file_named(set, "search.yaml");
    assert_true(str_starts(strbuf_str(&file->text), STR(PATCH_MARK)));
    assert_int_equal(documents_of(strbuf_str(&file->text)), 1);
    assert_int_equal(file->documents, 1);
    assert_has(file, "# WARNING: this ends its pods");
    assert_has(file, "# saves: $2,920.00 a month, of $2,920.00 that it costs\n");
    assert_has(file, "\napiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: rank\n"
                     "  namespace: ns\nspec:\n  replicas: 0\n");
    patch_free(set);
}

static void what_is_not_to_be_stopped_has_no_document(void **state)
{
    /* idle for two days only: its holder is asked */
    struct ledger *ledger = *state;
    node(ledger, "n1", CAPACITY_ON_DEMAND, 0);
    stays(ledger, (struct stay){.node = "n1",
                                .device = "GPU-1",
                                .workload = "Deployment/rank",
                                .from = HOURS - 48,
                                .to = HOURS});
    neighbour(ledger, "n1");
    assert_non_null(of_rule(findings_of(state), RULE_IDLE_WORKLOAD));
    struct patch_set *set = patches_of(state);
    const struct patch_file *file = file_named(set, "search.yaml");
    assert_int_equal(documents_of(strbuf_str(&file->text)), 0);
    assert_lacks(file, "replicas");
    assert_lacks(file, "kubectl apply");
    assert_has(file, "nothing here is to be applied");
    patch_free(set);
}

static void each_kind_is_stopped_its_own_way(void **state)
{
    static const struct {
        const char *workload, *change;
    } cases[] = {
        {"StatefulSet/x", "kind: StatefulSet\n"},
        {"CronJob/x", "spec:\n  suspend: true\n"},
        {"Job/x", "apiVersion: batch/v1\nkind: Job\n"},
        {"PyTorchJob/x", "spec:\n  runPolicy:\n    suspend: true\n"},
        {"RayCluster/x", "apiVersion: ray.io/v1\n"},
        {"InferenceService/x", "spec:\n  predictor:\n    minReplicas: 0\n"},
        {"Pod/x", "#   kubectl delete pod -n ns x\n"},
        {"Strange/x", "no document: how this kind of object is stopped"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        void *ledger;
        ledger_new(&ledger);
        with_one(&ledger, (struct stay){.workload = cases[i].workload});
        struct patch_set *set = patches_of(&ledger);
        documents_of(strbuf_str(&set->files[0].text));
        assert_has(&set->files[0], cases[i].change);
        patch_free(set);
        ledger_free(&ledger);
    }
}

static void a_notebook_is_stopped_by_its_annotation(void **state)
{
    /* 30 GiB and a tenth are 33 of 80: two such notebooks lie beside each other */
    with_one(state, (struct stay){
                        .workload = "Notebook/ada", .type = WORKLOAD_INTERACTIVE, .mem_gib = 30});
    struct patch_set *set = patches_of(state);
    const struct patch_file *file = file_named(set, "search.yaml");
    assert_has(file, "kind: Notebook\nmetadata:\n  name: ada\n  namespace: ns\n  annotations:\n"
                     "    kubeflow-resource-stopped: \"2026-12-07T00:00:00Z\"\n");
    assert_has(file, "#   cull:\n#     enabled: true\n");
    const struct patch_file *shared = file_named(set, "platform.yaml");
    assert_has(shared, "kind: ConfigMap\n");
    assert_has(shared, "          replicas: 2\n");
    assert_int_equal(documents_of(strbuf_str(&shared->text)), 1);
    patch_free(set);
}

static void a_notebook_whose_memory_is_not_known_shares_no_gpu(void **state)
{
    with_one(state, (struct stay){.workload = "Notebook/ada", .type = WORKLOAD_INTERACTIVE});
    struct patch_set *set = patches_of(state);
    assert_int_equal(set->n, 1);
    assert_lacks(file_named(set, "search.yaml"), "ConfigMap");
    patch_free(set);
}

static void a_small_service_asks_for_a_slice(void **state)
{
    struct ledger *ledger = *state;
    static const char *const services[] = {"Deployment/a", "Deployment/b"};
    for (size_t i = 0; i < 2; i++) {
        char name[8], device[8];
        snprintf(name, sizeof name, "n%zu", i);
        snprintf(device, sizeof device, "GPU-%zu", i);
        node(ledger, name, CAPACITY_ON_DEMAND, 0);
        stays(ledger, (struct stay){.node = name,
                                    .device = device,
                                    .workload = services[i],
                                    .type = WORKLOAD_INFERENCE,
                                    .to = HOURS,
                                    .u = 9,
                                    .e = 30,
                                    .mem_gib = 6});
        neighbour(ledger, name);
    }
    for (size_t i = 0; i < ledger->batch.rows_n; i++)
        ledger->batch.rows[i].key.container = put(ledger, "server");
    assert_non_null(of_rule(findings_of(state), RULE_MIG_FIT));
    struct patch_set *set = patches_of(state);
    const struct patch_file *file = file_named(set, "search.yaml");
    documents_of(strbuf_str(&file->text));
    assert_has(file, "spec:\n  template:\n    spec:\n      containers:\n      - name: server\n"
                     "        resources:\n          limits:\n            nvidia.com/gpu: \"0\"\n"
                     "            nvidia.com/mig-1g.10gb: \"1\"\n");
    patch_free(set);
}

static void an_empty_node_is_drained_by_hand(void **state)
{
    struct ledger *ledger = *state;
    node(ledger, "n1", CAPACITY_ON_DEMAND, 0);
    for (int i = 0; i < 2; i++)
        stays(ledger, (struct stay){.node = "n1",
                                    .device = i ? "GPU-1" : "GPU-2",
                                    .to = HOURS,
                                    .free_as = CATEGORY_EMPTY});
    findings_of(state);
    struct patch_set *set = patches_of(state);
    const struct patch_file *file = file_named(set, "platform.yaml");
    assert_int_equal(documents_of(strbuf_str(&file->text)), 0);
    assert_has(file, "# WARNING: draining moves");
    assert_has(file, "#   kubectl drain n1 --ignore-daemonsets --delete-emptydir-data\n");
    patch_free(set);
}

/* Names that break out of comments, scalars, commands or folders if they are let. */
static const char *const hostile[] = {
    "../../etc/passwd",
    "a\nkind: Secret",
    "a: b",
    "- x",
    "---",
    "...",
    "%YAML 9.9",
    "\"; rm -rf / #",
    "$(reboot)",
    "`x`",
    "\xff\xfe",
    "\xc2\x85next line",
    "\xe2\x80\xa8line separator",
    "\xef\xbb\xbf",
    "\x1b[2J",
    "\x7f",
    "null",
    "true",
    "1e3",
    "*alias",
    "&anchor",
    "!tag",
    "{a: b}",
    "tab\there",
    "\xf0\x9f\x98\x80",
    "A",
    "a",
    "",
};
#define HOSTILE_N (sizeof hostile / sizeof *hostile)

static void hostile_names_leave_the_yaml_valid(void **state)
{
    (void)state;
    for (size_t i = 0; i < HOSTILE_N; i++) {
        void *ledger;
        struct strbuf workload = {0};
        ledger_new(&ledger);
        strbuf_addf(&workload, "Deployment/%s", hostile[i]);
        with_one(&ledger, (struct stay){.workload = workload.text,
                                        .owner = hostile[i][0] ? hostile[i] : "x"});
        struct patch_set *set = patches_of(&ledger);
        assert_int_equal(set->n, 1);
        struct str name = set->files[0].name;
        size_t documents = documents_of(strbuf_str(&set->files[0].text));
        bool fine = !strcmp(hostile[i], "a") || !strcmp(hostile[i], "null") ||
                    !strcmp(hostile[i], "true") || !strcmp(hostile[i], "1e3");
        if (documents != fine)
            fail_msg("'%s': %zu documents", hostile[i], documents);
        for (size_t k = 0; k < name.n; k++)
            if (!strchr("abcdefghijklmnopqrstuvwxyz0123456789_-.", name.p[k]))
                fail_msg("'%s' is written to '%.*s'", hostile[i], STR_ARG(name));
        assert_true(name.n > 5 && name.n < 100 && name.p[0] != '.' && name.p[0] != '-');
        patch_free(set);
        strbuf_release(&workload);
        ledger_free(&ledger);
    }
}

static void hostile_nodes_get_no_commands(void **state)
{
    (void)state;
    for (size_t i = 0; i < HOSTILE_N; i++) {
        void *ledger;
        if (!hostile[i][0] || !strcmp(hostile[i], "A") || strlen(hostile[i]) < 4)
            continue;
        ledger_new(&ledger);
        node(ledger, hostile[i], CAPACITY_ON_DEMAND, 0);
        for (int k = 0; k < 2; k++)
            stays(ledger, (struct stay){.node = hostile[i],
                                        .device = k ? "GPU-1" : "GPU-2",
                                        .to = HOURS,
                                        .free_as = k ? CATEGORY_CORDONED : CATEGORY_EMPTY});
        findings_of(&ledger);
        struct patch_set *set = patches_of(&ledger);
        for (size_t k = 0; k < set->n; k++) {
            assert_int_equal(documents_of(strbuf_str(&set->files[k].text)), 0);
            if (strcmp(hostile[i], "null") && strcmp(hostile[i], "true"))
                assert_lacks(&set->files[k], "#   kubectl");
        }
        patch_free(set);
        ledger_free(&ledger);
    }
}

static void owners_that_look_alike_have_files_of_their_own(void **state)
{
    struct ledger *ledger = *state;
    static const char *const owners[] = {"a b", "a-b", "a/b", "A-B", "a.b", "A b"};
    for (size_t i = 0; i < 6; i++) {
        char name[8], device[8], workload[24];
        snprintf(name, sizeof name, "n%zu", i);
        snprintf(device, sizeof device, "GPU-%zu", i);
        snprintf(workload, sizeof workload, "Deployment/w%zu", i);
        node(ledger, name, CAPACITY_ON_DEMAND, 0);
        stays(ledger, (struct stay){.node = name,
                                    .device = device,
                                    .workload = workload,
                                    .owner = owners[i],
                                    .to = HOURS});
        neighbour(ledger, name);
    }
    findings_of(state);
    struct patch_set *set = patches_of(state);
    assert_int_equal(set->n, 6);
    for (size_t i = 0; i < set->n; i++)
        for (size_t k = 0; k < i; k++)
            if (str_eq_nocase(set->files[i].name, set->files[k].name))
                fail_msg("%.*s twice", STR_ARG(set->files[i].name));
    file_named(set, "a-b.yaml");
    patch_free(set);
}

static void scalars_are_texts_to_every_reader(void **state)
{
    static const struct {
        const char *text, *yaml;
    } cases[] = {
        {"rank", "rank"},
        {"nvidia.com/gpu", "nvidia.com/gpu"},
        {"", "\"\""},
        {"no", "\"no\""},
        {"12", "\"12\""},
        {"a: b", "\"a: b\""},
        {"a\nb", "\"a\\u000Ab\""},
        {"\xc2\x85", "\"\\u0085\""},
        {"\xff", "\"\\uFFFD\""},
        {"say \"x\\\"", "\"say \\\"x\\\\\\\"\""},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct strbuf out = {0};
        yaml_scalar(&out, str_of(cases[i].text));
        assert_string_equal(out.text, cases[i].yaml);
        strbuf_release(&out);
    }
}

#define with_ledger(test) cmocka_unit_test_setup_teardown(test, ledger_new, ledger_free)
int main(void)
{
    const struct CMUnitTest tests[] = {
        with_ledger(an_idle_deployment_is_scaled_to_zero),
        with_ledger(what_is_not_to_be_stopped_has_no_document),
        cmocka_unit_test(each_kind_is_stopped_its_own_way),
        with_ledger(a_notebook_is_stopped_by_its_annotation),
        with_ledger(a_notebook_whose_memory_is_not_known_shares_no_gpu),
        with_ledger(a_small_service_asks_for_a_slice),
        with_ledger(an_empty_node_is_drained_by_hand),
        cmocka_unit_test(hostile_names_leave_the_yaml_valid),
        cmocka_unit_test(hostile_nodes_get_no_commands),
        with_ledger(owners_that_look_alike_have_files_of_their_own),
        cmocka_unit_test(scalars_are_texts_to_every_reader),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
