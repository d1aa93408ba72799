/* Rules of the house, on books made by hand: taints, quotas, priorities, pools. */
#include "../../lib/hand_ledger.h"

#define RULES_OF(state) (((struct ledger *)*state)->findings)

/* A busy fleet of one node with one workload of each type that is asked for; then its books are
 * changed by `change`, and the rules are applied. */
typedef void (*change_fn)(struct ledger *ledger);
static struct findings *with_books(void **state, enum workload_type second, change_fn change)
{
    struct ledger *ledger = *state;
    with_one(
        state,
        (struct stay){.workload = "Deployment/b", .type = second, .u = 60, .e = 80, .mem_gib = 60});
    findings_free(ledger->findings);
    if (change)
        change(ledger);
    ledger->findings = recommend(ledger->books, "USD");
    return ledger->findings;
}

static struct book_namespace namespace_of(struct ledger *ledger, const char *name)
{
    return (struct book_namespace){.last = {.hour = H0 + (HOURS - 1) * HOUR_MS,
                                            .namespace = put(ledger, name),
                                            .gpu_quota = -1,
                                            .gpu_pods = 2}};
}

static void add(struct ledger *ledger, struct book_namespace namespace)
{
    mem_push(ledger->books->namespaces, ledger->books->namespaces_n, ledger->books->namespaces_room,
             namespace);
}

static void open_to_cpu_pods(struct ledger *ledger)
{
    struct book_host *host = &ledger->books->nodes[0].host;
    host->gpu_taint = MACHINE_TAINT_NONE;
    host->cpu_pods = 3;
    host->cpu_workloads = put(ledger, "web/Deployment/shop");
}

static void cpu_pods_on_untainted_gpu_nodes_are_told(void **state)
{
    const struct finding *finding =
        of_rule(with_books(state, WORKLOAD_TRAINING, open_to_cpu_pods), RULE_MISSING_TAINT);
    assert_non_null(finding);
    assert_true(str_eq(finding->owner, STR("platform")));
    assert_int_equal(finding->saving, 0);
    assert_true(str_eq(finding->evidence[0].value, STR("web/Deployment/shop")));
    assert_true(
        str_eq(finding->command, STR("kubectl taint nodes n1 nvidia.com/gpu=present:NoSchedule")));
}

static void tainted(struct ledger *ledger)
{
    open_to_cpu_pods(ledger);
    ledger->books->nodes[0].host.gpu_taint = MACHINE_TAINT_PRESENT;
}

static void taint_unknown(struct ledger *ledger)
{
    open_to_cpu_pods(ledger);
    ledger->books->nodes[0].host.gpu_taint = MACHINE_TAINT_UNKNOWN;
}

static void tainted_nodes_and_unknown_taints_raise_nothing(void **state)
{
    struct ledger *ledger = *state;
    assert_null(of_rule(with_books(state, WORKLOAD_TRAINING, tainted), RULE_MISSING_TAINT));
    findings_free(ledger->findings);
    taint_unknown(ledger);
    ledger->findings = recommend(ledger->books, "USD");
    assert_null(of_rule(ledger->findings, RULE_MISSING_TAINT));
}

static void quotas_elsewhere(struct ledger *ledger)
{
    struct book_namespace ns = namespace_of(ledger, "ns"), other = namespace_of(ledger, "other");
    ns.last.quotas_known = other.last.quotas_known = true;
    other.last.gpu_quota = 8;
    add(ledger, ns);
    add(ledger, other);
}

/* Both of the node's GPUs are ns's: $8 an hour for 168 hours. */
static void a_namespace_without_quota_is_told(void **state)
{
    struct findings *findings = with_books(state, WORKLOAD_TRAINING, quotas_elsewhere);
    const struct finding *finding = of_rule(findings, RULE_NO_QUOTA);
    assert_non_null(finding);
    assert_true(str_eq(finding->subject, STR("namespace ns")));
    assert_dollars(finding->window_cost, 1344);
    size_t n = 0;
    for (size_t i = 0; i < findings->n; i++)
        n += findings->items[i].rule == RULE_NO_QUOTA;
    assert_int_equal(n, 1);
}

static void no_quotas_at_all(struct ledger *ledger)
{
    add(ledger, namespace_of(ledger, "ns"));
}

static void where_no_quotas_are_exported_nothing_is_said(void **state)
{
    assert_null(of_rule(with_books(state, WORKLOAD_TRAINING, no_quotas_at_all), RULE_NO_QUOTA));
}

static struct book_namespace without_priority(struct ledger *ledger)
{
    struct book_namespace ns = namespace_of(ledger, "ns");
    ns.last.priorities_known = true;
    ns.last.gpu_pods_without_priority = 1;
    return ns;
}

static void pods_wait(struct ledger *ledger)
{
    struct book_namespace waiting = namespace_of(ledger, "other");
    waiting.last.gpu_pods = 0;
    waiting.pending_gpu_ms = 8 * HOUR_MS;
    add(ledger, without_priority(ledger));
    add(ledger, waiting);
}

static void nobody_waits(struct ledger *ledger)
{
    add(ledger, without_priority(ledger));
}

static void classes_unknown(struct ledger *ledger)
{
    pods_wait(ledger);
    ledger->books->namespaces[0].last.priorities_known = false;
}

static void pods_without_class_matter_where_others_wait(void **state)
{
    const struct finding *finding =
        of_rule(with_books(state, WORKLOAD_TRAINING, pods_wait), RULE_NO_PRIORITY);
    assert_non_null(finding);
    assert_true(str_eq(finding->evidence[0].value, STR("8.0 GPU-hours")) ||
                str_eq(finding->evidence[0].value, STR("8.0")));
}

static void where_nobody_waits_classes_do_not_matter(void **state)
{
    assert_null(of_rule(with_books(state, WORKLOAD_TRAINING, nobody_waits), RULE_NO_PRIORITY));
}

static void classes_that_are_not_exported_prove_nothing(void **state)
{
    assert_null(of_rule(with_books(state, WORKLOAD_TRAINING, classes_unknown), RULE_NO_PRIORITY));
}

static void unlike_work_and_pods_that_wait_want_pools(void **state)
{
    assert_non_null(of_rule(with_books(state, WORKLOAD_INFERENCE, pods_wait), RULE_MIXED_POOL));
}

static void unlike_work_that_fits_is_left_alone(void **state)
{
    assert_null(of_rule(with_books(state, WORKLOAD_INFERENCE, nobody_waits), RULE_MIXED_POOL));
}

static void one_type_of_work_is_no_mix(void **state)
{
    assert_null(of_rule(with_books(state, WORKLOAD_TRAINING, pods_wait), RULE_MIXED_POOL));
}

static void without_namespaces_and_hosts_nothing_is_said(void **state)
{
    assert_int_equal(with_books(state, WORKLOAD_TRAINING, NULL)->n, 0);
}

#define test(name) cmocka_unit_test_setup_teardown(name, ledger_new, ledger_free)

int main(void)
{
    const struct CMUnitTest tests[] = {
        test(cpu_pods_on_untainted_gpu_nodes_are_told),
        test(tainted_nodes_and_unknown_taints_raise_nothing),
        test(a_namespace_without_quota_is_told),
        test(where_no_quotas_are_exported_nothing_is_said),
        test(pods_without_class_matter_where_others_wait),
        test(where_nobody_waits_classes_do_not_matter),
        test(classes_that_are_not_exported_prove_nothing),
        test(unlike_work_and_pods_that_wait_want_pools),
        test(unlike_work_that_fits_is_left_alone),
        test(one_type_of_work_is_no_mix),
        test(without_namespaces_and_hosts_nothing_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
