/* What a report's filters leave of findings: two idle workloads of two teams on two nodes, and a
 * node that nobody holds. */
#include "../../lib/hand_ledger.h"

#include "insight/narrow.h"

static struct findings *three(void **state)
{
    struct ledger *ledger = *state;
    stays(ledger, (struct stay){.node = "n1",
                                .device = "GPU-1",
                                .workload = "Deployment/rank",
                                .owner = "search",
                                .to = HOURS});
    stays(ledger, (struct stay){.node = "n2",
                                .device = "GPU-2",
                                .workload = "Deployment/draw",
                                .owner = "vision",
                                .to = HOURS});
    for (int i = 0; i < 2; i++)
        stays(ledger, (struct stay){.node = "n3",
                                    .device = i ? "GPU-4" : "GPU-3",
                                    .to = HOURS,
                                    .free_as = CATEGORY_EMPTY});
    static const char *const names[] = {"n1", "n2", "n3"};
    for (int i = 0; i < 3; i++)
        node(ledger, names[i], CAPACITY_ON_DEMAND, 0);
    neighbour(ledger, "n1");
    neighbour(ledger, "n2");
    return findings_of(state);
}

static struct narrow *by(void **state, const char *filter)
{
    struct ledger *ledger = *state;
    struct narrow *narrow = NULL;
    struct query query = {.window = ledger->batch.hours};
    must(query_parse_filter(str_of(filter), &query, &failure));
    must(narrow_read(ledger->store, &query, &narrow, &failure));
    return narrow;
}

static const struct finding *about(const struct findings *findings, const char *subject)
{
    for (size_t i = 0; i < findings->n; i++)
        if (str_eq(findings->items[i].subject, str_of(subject)))
            return &findings->items[i];
    return NULL;
}

static void everything_stays_without_a_filter(void **state)
{
    struct findings *findings = three(state);
    size_t n = findings->n;
    narrow_findings(NULL, findings);
    assert_int_equal(findings->n, n);
    assert_non_null(about(findings, "workload ns/Deployment/rank"));
    assert_non_null(about(findings, "workload ns/Deployment/draw"));
    assert_non_null(about(findings, "node n3"));
    assert_true(narrow_has_gpu(NULL, STR_NONE, STR("n1"), STR("GPU-1")));
}

static void a_team_leaves_what_its_rows_are_about(void **state)
{
    struct findings *findings = three(state);
    struct narrow *narrow = by(state, "team=vision");
    narrow_findings(narrow, findings);
    const struct finding *finding = about(findings, "workload ns/Deployment/draw");
    assert_non_null(finding);
    assert_dollars(finding->saving, 2920); /* $4 x 730 h: all of it */
    assert_dollars(findings_saving(findings), 2920);
    assert_null(about(findings, "workload ns/Deployment/rank"));
    assert_null(about(findings, "node n3")); /* what nobody holds has no team */
    assert_true(narrow_has_gpu(narrow, STR_NONE, STR("n2"), STR("GPU-2")));
    assert_false(narrow_has_gpu(narrow, STR_NONE, STR("n1"), STR("GPU-1")));
    assert_false(narrow_has_gpu(narrow, STR_NONE, STR("n2"), STR("GPU-1")));
    narrow_free(narrow);
}

static void a_node_leaves_what_is_on_it(void **state)
{
    struct findings *findings = three(state);
    struct narrow *narrow = by(state, "node=n3");
    narrow_findings(narrow, findings);
    assert_non_null(about(findings, "node n3"));
    assert_null(about(findings, "workload ns/Deployment/rank"));
    assert_null(about(findings, "workload ns/Deployment/draw"));
    narrow_free(narrow);
}

static void a_filter_that_nothing_passes_leaves_nothing(void **state)
{
    struct findings *findings = three(state);
    struct narrow *narrow = by(state, "namespace=other");
    narrow_findings(narrow, findings);
    assert_int_equal(findings->n, 0);
    assert_int_equal(findings->refusals_n, 0);
    narrow_free(narrow);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(everything_stays_without_a_filter, ledger_new, ledger_free),
        cmocka_unit_test_setup_teardown(a_team_leaves_what_its_rows_are_about, ledger_new,
                                        ledger_free),
        cmocka_unit_test_setup_teardown(a_node_leaves_what_is_on_it, ledger_new, ledger_free),
        cmocka_unit_test_setup_teardown(a_filter_that_nothing_passes_leaves_nothing, ledger_new,
                                        ledger_free),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
