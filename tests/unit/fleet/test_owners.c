#include <unistd.h>

#include "../../lib/unit.h"
#include "fleet/owners.h"
#include "util/config_file.h"

static struct error error;
static struct arena scratch;

/* The rules of a text, by way of a file. */
static enum err read_text(const char *text, struct owners **ret)
{
    char path[TEMPORARY_MAX];
    temporary(path, "gputally-owners");
    int fd = mkstemp(path);
    assert_true(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    close(fd);
    enum err result = owners_read(path, ret, &error);
    unlink(path);
    return result;
}

static struct owners *rules_of(const char *text)
{
    struct owners *owners = NULL;
    if (read_text(text, &owners))
        fail_msg("%s", error.text);
    return owners;
}

/* The message of a file that is refused, from its place on. */
static const char *refused(const char *text)
{
    struct owners *owners = NULL;
    if (read_text(text, &owners) == ERR_OK)
        fail_msg("taken: %s", text);
    const char *at = strchr(error.text, ':');
    return at ? at + 1 : error.text;
}

static const char *team(const struct owners *owners, struct owner_query query)
{
    static char text[256];
    bool is_default;
    struct str found = owners_team(owners, &query, &scratch, &is_default);
    snprintf(text, sizeof text, "%.*s%s", STR_ARG(found), is_default ? " (default)" : "");
    return text;
}

static const char *type(const struct owners *owners, struct owner_query query)
{
    return workload_type_words[owners_type(owners, &query)];
}

#define LABELS(...)                                                                                \
    .labels = (struct label[]){__VA_ARGS__},                                                       \
    .labels_n = sizeof((struct label[]){__VA_ARGS__}) / sizeof(struct label)
#define NAMESPACE_LABELS(...)                                                                      \
    .namespace_labels = (struct label[]){__VA_ARGS__},                                             \
    .namespace_labels_n = sizeof((struct label[]){__VA_ARGS__}) / sizeof(struct label)
#define Q(...) ((struct owner_query){__VA_ARGS__})
#define L(name, value)                                                                             \
    {                                                                                              \
        STR(name), STR(value)                                                                      \
    }

/* fleetsim's case `owner-and-workload`. */
static void the_first_rule_that_matches_names_the_team(void **state)
{
    (void)state;
    struct owners *owners = rules_of("{\"rules\": [{\"namespace\": \"other\", \"team\": \"x\"},"
                                     "{\"pod_label\": \"team\", \"value\": \"*\", \"team\": "
                                     "\"{value}\"}, {\"namespace\": \"*\", \"team\": \"last\"}]}");
    assert_string_equal(team(owners, Q(.namespace = STR("other"), LABELS(L("team", "a")))), "x");
    assert_string_equal(team(owners, Q(.namespace = STR("ns1"), LABELS(L("team", "a")))), "a");
    assert_string_equal(team(owners, Q(.namespace = STR("ns1"), LABELS(L("team", "")))), "last");
    assert_string_equal(team(owners, Q(.namespace = STR("ns1"))), "last");
    assert_true(owners_configured(owners));
    owners_free(owners);
}

static void no_rule_matches_unowned_and_other(void **state)
{
    (void)state;
    struct owners *owners = rules_of("{\"rules\": [{\"namespace\": \"other\", \"team\": \"x\"}]}");
    struct owner_query query =
        Q(.namespace = STR("ns1"), .workload = STR("Job/train"), LABELS(L("team", "a")));
    assert_string_equal(team(owners, query), "unowned");
    assert_string_equal(type(owners, query), "other"); /* a file says all */
    owners_free(owners);
}

/* fleetsim's case `types`. */
static void types_by_ordered_rules(void **state)
{
    (void)state;
    struct owners *owners =
        rules_of("rules: []\n"
                 "types:\n"
                 "- {type: training, kind: Job}\n"
                 "- {type: inference, pod_label: role, value: serve}\n"
                 "- {type: interactive, kind: StatefulSet, workload: jupyter-*}\n");
    assert_string_equal(type(owners, Q(.workload = STR("Job/j"), LABELS(L("role", "serve")))),
                        "training");
    assert_string_equal(type(owners, Q(.workload = STR("Pod/p"), LABELS(L("role", "serve")))),
                        "inference");
    assert_string_equal(type(owners, Q(.workload = STR("StatefulSet/jupyter-ada"))), "interactive");
    assert_string_equal(type(owners, Q(.workload = STR("Deployment/jupyter-ada"))), "other");
    assert_string_equal(type(owners, Q(.workload = STR("Pod/p-d"))), "other");
    assert_string_equal(type(owners, Q(.workload = STR("JobSet/j"))), "other"); /* whole words */
    owners_free(owners);
}

static void the_value_is_what_matched_last(void **state)
{
    (void)state;
    struct owners *owners =
        rules_of("rules:\n"
                 "- {cluster: prod, namespace: a-*, team: 'c {value}/{value}'}\n"
                 "- {namespace: team-*, workload: '*', team: '{value}'}\n"
                 "- {namespace: '*', annotation: example.com/owner, team: '{value}'}\n"
                 "- {namespace_label: owner, value: '[a-m]*', team: 'n {value}'}\n");
    struct label annotations[] = {L("example.com/owner", "ann")};
    assert_string_equal(team(owners, Q(.cluster = STR("prod"), .namespace = STR("a-1"))),
                        "c a-1/a-1");
    assert_string_equal(team(owners, Q(.namespace = STR("a-1"))), "unowned");
    assert_string_equal(team(owners, Q(.namespace = STR("team-x"), .workload = STR("Job/j/k"))),
                        "j/k");
    assert_string_equal(
        team(owners, Q(.namespace = STR("z"), .annotations = annotations, .annotations_n = 1)),
        "ann");
    assert_string_equal(team(owners, Q(.namespace = STR("z"), NAMESPACE_LABELS(L("owner", "bob")))),
                        "n bob");
    assert_string_equal(team(owners, Q(.namespace = STR("z"), NAMESPACE_LABELS(L("owner", "zoe")))),
                        "unowned");
    owners_free(owners);
}

static void label_names_are_compared_as_kube_state_metrics_spells_them(void **state)
{
    (void)state;
    struct owners *owners =
        rules_of("rules: [{pod_label: app.kubernetes.io/part-of, team: '{value}'}]");
    assert_string_equal(team(owners, Q(LABELS(L("app_kubernetes_io_part_of", "shop")))), "shop");
    assert_string_equal(team(owners, Q(LABELS(L("app.kubernetes.io/part-of", "shop")))), "shop");
    assert_string_equal(team(owners, Q(LABELS(L("app_kubernetes_io_part_off", "shop")))),
                        "unowned");
    owners_free(owners);
}

static void defaults_go_by_common_labels_then_the_namespace(void **state)
{
    (void)state;
    struct owners *owners = owners_new_default();
    assert_false(owners_configured(owners));
    assert_string_equal(team(owners, Q(.namespace = STR("rank"), LABELS(L("team", "ranker")),
                                       NAMESPACE_LABELS(L("team", "search")))),
                        "ranker");
    assert_string_equal(team(owners, Q(.namespace = STR("vis"), LABELS(L("app", "x")),
                                       NAMESPACE_LABELS(L("team", "vision")))),
                        "vision");
    assert_string_equal(team(owners, Q(.namespace = STR("vis"), LABELS(L("cost-center", "4711")))),
                        "4711");
    /* a product's label says less than the namespace's team */
    assert_string_equal(
        team(owners, Q(.namespace = STR("vis"), LABELS(L("app.kubernetes.io/part-of", "shop")),
                       NAMESPACE_LABELS(L("team", "vision")))),
        "vision");
    assert_string_equal(
        team(owners, Q(.namespace = STR("vis"), LABELS(L("app.kubernetes.io/part-of", "shop")))),
        "shop");
    assert_string_equal(team(owners, Q(.namespace = STR("eval"))), "eval (default)");
    assert_string_equal(team(owners, Q(.cluster = STR("c"))), "unowned");
    owners_free(owners);
}

static void default_types_go_by_kind_name_and_labels(void **state)
{
    (void)state;
    static const struct {
        const char *workload, *namespace, *wanted;
    } cases[] = {
        {"PyTorchJob/x", "a", "training"},
        {"MPIJob/x", "a", "training"},
        {"RayJob/tune-lr", "a", "training"},
        {"JobSet/eval", "a", "training"},
        {"Job/embed", "a", "training"},
        {"CronJob/nightly", "a", "training"},
        {"InferenceService/x", "a", "inference"},
        {"LLMInferenceService/x", "a", "inference"},
        {"Deployment/vllm-llama", "a", "inference"},
        {"Deployment/tgi-mixtral", "a", "inference"},
        {"Job/batch-inference", "a", "inference"},
        {"Notebook/nb", "a", "interactive"},
        {"StatefulSet/jupyter-ada", "a", "interactive"},
        {"Pod/x", "jupyterhub", "interactive"},
        {"Deployment/api", "a", "other"},
        {"Pod/x", "a", "other"},
        {"", "", "other"},
    };
    struct owners *owners = owners_new_default();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct owner_query query = {.workload = str_of(cases[i].workload),
                                    .namespace = str_of(cases[i].namespace)};
        if (strcmp(type(owners, query), cases[i].wanted) != 0)
            fail_msg("%s: %s", cases[i].workload, type(owners, query));
    }
    assert_string_equal(type(owners, Q(.workload = STR("Deployment/api"),
                                       LABELS(L("serving_kserve_io_inferenceservice", "m")))),
                        "inference");
    owners_free(owners);
}

static void a_file_may_put_the_defaults_behind_its_rules(void **state)
{
    (void)state;
    struct owners *owners =
        rules_of("rules: [{namespace: kube-*, team: platform}]\ndefaults: true\n");
    assert_string_equal(team(owners, Q(.namespace = STR("kube-system"))), "platform");
    assert_string_equal(team(owners, Q(.namespace = STR("a"), LABELS(L("team", "b")))), "b");
    assert_string_equal(team(owners, Q(.namespace = STR("a"))), "a (default)");
    assert_string_equal(type(owners, Q(.workload = STR("PyTorchJob/x"))), "training");
    owners_free(owners);
}

static void two_lists_of_a_larger_file_each_replace_their_default(void **state)
{
    (void)state;
    struct config_file *file;
    struct owners *owners;
    assert_int_equal(config_file_parse("c", STR("o: [{namespace: a, team: b}]"), &file, &error),
                     ERR_OK);
    struct config_node rules = config_get(config_root(file), STR("o")), none = {0};
    assert_int_equal(owners_from_config(rules, none, &owners, &error), ERR_OK);
    config_file_free(file);
    assert_string_equal(team(owners, Q(.namespace = STR("a"))), "b");
    assert_string_equal(team(owners, Q(.namespace = STR("c"))), "unowned");
    assert_string_equal(type(owners, Q(.workload = STR("PyTorchJob/x"))), "training");
    owners_free(owners);
}

static void what_is_wrong_has_its_place(void **state)
{
    (void)state;
    assert_string_equal(refused("rules:\n- namespac: a\n  team: b\n"),
                        "2:3: unknown key 'namespac': did you mean 'namespace'?");
    assert_string_equal(refused("rules:\n- {namespace: a}\n"),
                        "2:3: this rule has no team: it says nothing");
    assert_string_equal(refused("types:\n- {kind: Job, type: trainin}\n"),
                        "2:21: unknown type 'trainin': write training, inference, interactive or "
                        "other");
    assert_string_equal(refused("types:\n- {kind: Job, type: other, team: b}\n"),
                        "2:34: team does not belong here: rules give teams, types give types");
    assert_string_equal(refused("rules:\n- {pod_label: a, annotation: b, team: c}\n"),
                        "2:30: a rule takes one of pod_label, annotation and namespace_label: "
                        "write one rule for each");
    assert_string_equal(refused("rules:\n- {namespace: a, value: b, team: c}\n"),
                        "2:25: value is that of a label: pod_label, annotation or namespace_label "
                        "is missing");
    assert_string_equal(refused("rules: {a: b}\n"), "1:8: a list of rules is needed here");
    assert_string_equal(refused("rule: []\n"), "1:1: unknown key 'rule': did you mean 'rules'?");
    assert_string_equal(refused("rules:\n- team: [a]\n"), "2:9: a text is needed here");
    assert_string_equal(refused(""), " the file is empty: an owner file has `rules:`");
    assert_non_null(strstr(refused("{\"apiVersion\": \"v1\", \"kind\": \"List\", \"items\": []}"),
                           "give it with --kube-json"));
    struct owners *owners = NULL;
    assert_int_equal(owners_read("/nowhere.yaml", &owners, &error), ERR_IO);
    assert_int_equal(owners_read("/nowhere.yaml", &owners, NULL), ERR_IO);
    assert_string_equal(error.text, "owners: cannot open /nowhere.yaml: No such file or directory");
}

static int release(void **state)
{
    (void)state;
    arena_release(&scratch);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_rule_that_matches_names_the_team),
        cmocka_unit_test(no_rule_matches_unowned_and_other),
        cmocka_unit_test(types_by_ordered_rules),
        cmocka_unit_test(the_value_is_what_matched_last),
        cmocka_unit_test(label_names_are_compared_as_kube_state_metrics_spells_them),
        cmocka_unit_test(defaults_go_by_common_labels_then_the_namespace),
        cmocka_unit_test(default_types_go_by_kind_name_and_labels),
        cmocka_unit_test(a_file_may_put_the_defaults_behind_its_rules),
        cmocka_unit_test(two_lists_of_a_larger_file_each_replace_their_default),
        cmocka_unit_test(what_is_wrong_has_its_place),
    };
    return cmocka_run_group_tests(tests, NULL, release);
}
