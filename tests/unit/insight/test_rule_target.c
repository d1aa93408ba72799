/* Targets of teams, namespaces and workloads, and the scorecard. One GPU of "search" at a given use
 * for a week, beside another of the same team at 90
 * %, both in the namespace "ns", $672 each.
 */
#include "../../lib/hand_ledger.h"
#include "fleet/config.h"

static struct findings *with_targets(void **state, struct stay stay, const char *yaml)
{
    struct ledger *ledger = *state;
    struct config *config = config_new();
    struct error err = {0};
    stay.workload = "Deployment/api";
    stay.type = WORKLOAD_INFERENCE;
    stay.requests = 10;
    with_one(state, stay);
    findings_free(ledger->findings);
    if (config_read_text(config, "c.yaml", str_of(yaml), &err) ||
        thresholds_read(config, &ledger->books->thresholds, &err))
        fail_msg("%s", err.text);
    ledger->findings = recommend(ledger->books, "USD");
    /* the texts of targets are read no more */
    config_free(config);
    return ledger->findings;
}

static struct stay at(int percent)
{
    return (struct stay){.u = percent, .e = 95, .mem_gib = 70};
}

/* search holds both GPUs: (50 + 90) / 2 = 70 %. */
static void a_team_below_its_target_is_told(void **state)
{
    struct findings *findings = with_targets(state, at(50), "targets: {search: 71%}");
    const struct finding *finding = of_rule(findings, RULE_BELOW_TARGET);
    assert_non_null(finding);
    assert_true(str_eq(finding->subject, STR("team search")));
    assert_true(str_eq(finding->owner, STR("search")));
    assert_int_equal(finding->saving, 0);
    assert_dollars(finding->window_cost, 672 * 0.5 + 672 * 0.1);
    assert_true(str_eq(finding->evidence[0].value, STR("70.0 %")));
}

static void a_team_at_its_target_is_left_alone(void **state)
{
    assert_null(of_rule(with_targets(state, at(50), "targets: {'se*': 70%}"), RULE_BELOW_TARGET));
}

static void time_that_is_not_observed_proves_nothing(void **state)
{
    struct stay unseen = at(-1);
    assert_null(of_rule(with_targets(state, unseen, "targets: {search: 99%}"), RULE_BELOW_TARGET));
}

static void a_team_without_a_target_is_told_where_others_have_one(void **state)
{
    struct findings *findings = with_targets(state, at(50), "targets: {vision: 50%}");
    const struct finding *finding = of_rule(findings, RULE_NO_TARGET);
    assert_non_null(finding);
    assert_true(str_eq(finding->owner, STR("finance")));
    assert_dollars(finding->window_cost, 1344);
}

/* (50 + 90) / 2 = 70 % of the namespace; the workload alone has 50 %. */
static void a_namespace_below_its_target_is_told(void **state)
{
    struct findings *findings = with_targets(state, at(50), "targets: {namespaces: {'n*': 71%}}");
    const struct finding *finding = of_rule(findings, RULE_BELOW_TARGET);
    assert_non_null(finding);
    assert_true(str_eq(finding->subject, STR("namespace ns")));
    assert_dollars(finding->window_cost, 672 * 0.5 + 672 * 0.1);
    assert_null(of_rule(findings, RULE_NO_TARGET));
}

static void a_workload_below_its_target_is_told(void **state)
{
    static const char *const globs[] = {"ns/api", "ns/Deployment/*", "*/api"};
    for (size_t i = 0; i < sizeof globs / sizeof *globs; i++) {
        char yaml[80];
        snprintf(yaml, sizeof yaml, "targets: {workloads: {'%s': 51%%}, teams: {search: 70%%}}",
                 globs[i]);
        const struct finding *finding =
            of_rule(with_targets(state, at(50), yaml), RULE_BELOW_TARGET);
        assert_non_null(finding);
        assert_true(str_eq(finding->subject, STR("workload ns/Deployment/api")));
        assert_true(str_eq(finding->owner, STR("search")));
        assert_dollars(finding->window_cost, 672 * 0.5);
        ledger_free(state);
        ledger_new(state);
    }
}

static void a_workload_at_its_target_is_left_alone(void **state)
{
    assert_null(of_rule(with_targets(state, at(50), "targets: {workloads: {ns/api: 50%}}"),
                        RULE_BELOW_TARGET));
}

/* The other workload has no target, of whatever kind: half of the money. */
static void a_team_is_asked_for_what_has_no_target_of_its_own(void **state)
{
    const struct finding *finding =
        of_rule(with_targets(state, at(50), "targets: {workloads: {ns/api: 50%}}"), RULE_NO_TARGET);
    assert_non_null(finding);
    assert_true(str_eq(finding->subject, STR("team search")));
    assert_dollars(finding->window_cost, 672);
}

static const struct evidence *of_card(const struct finding *card, const char *name)
{
    for (size_t i = 0; i < card->evidence_n; i++)
        if (str_eq(card->evidence[i].name, str_of(name)))
            return &card->evidence[i];
    fail_msg("no evidence %s", name);
    return NULL;
}

/* No request was counted for the server; nobody owns it; its neighbour has the only target. */
static void the_scorecard_counts_dollars_of_what_is_missing(void **state)
{
    struct ledger *ledger = *state;
    struct stay stay = at(50);
    stay.workload = "Deployment/api", stay.type = WORKLOAD_INFERENCE, stay.owner = "unowned";
    struct findings *findings = with_one(state, stay);
    const struct finding *card = of_rule(findings, RULE_SCORECARD);
    assert_non_null(card);
    assert_dollars(card->window_cost, 672);
    assert_dollars(card->month, 4 * 730);
    assert_int_equal(card->saving, 0);
    assert_true(
        str_eq(of_card(card, "without an owner")->value, STR("$672.00, 50.0 %, 1 workload")));
    assert_true(
        str_eq(of_card(card, "without a unit metric")->value, STR("$672.00, 50.0 %, 1 workload")));
    assert_true(str_starts(of_card(card, "without a target")->value, STR("not asked")));
    ledger->books->thresholds.targets[0] = (struct target){TARGET_WORKLOAD, STR("ns/api"), 1};
    ledger->books->thresholds.targets_n = 1;
    findings_free(ledger->findings);
    ledger->findings = recommend(ledger->books, "USD");
    card = of_rule(ledger->findings, RULE_SCORECARD);
    assert_true(
        str_eq(of_card(card, "without a target")->value, STR("$672.00, 50.0 %, 1 workload")));
    assert_dollars(card->window_cost, 1344);
}

/* Counted, owned, and nobody is asked for a target. Training needs no unit. */
static void where_nothing_is_missing_there_is_no_scorecard(void **state)
{
    assert_null(of_rule(with_targets(state, at(50), ""), RULE_SCORECARD));
}

/* Half has no owner, but only that is missing: unowned says it. A share of 51 % is not reached. */
static void the_scorecard_needs_two_that_reach_its_share(void **state)
{
    struct stay stay = at(50);
    stay.workload = "Deployment/api", stay.type = WORKLOAD_INFERENCE, stay.owner = "unowned";
    stay.requests = 1;
    assert_null(of_rule(with_one(state, stay), RULE_SCORECARD));
    ledger_free(state);
    ledger_new(state);
    struct ledger *ledger = *state;
    stay.requests = 0;
    assert_non_null(of_rule(with_one(state, stay), RULE_SCORECARD));
    ledger->books->thresholds.values[THRESHOLD_SCORECARD_SHARE] = NANO / 100 * 51;
    findings_free(ledger->findings);
    ledger->findings = recommend(ledger->books, "USD");
    assert_null(of_rule(ledger->findings, RULE_SCORECARD));
}

static void where_nobody_has_a_target_nothing_is_said(void **state)
{
    struct findings *findings = with_targets(state, at(50), "");
    assert_null(of_rule(findings, RULE_NO_TARGET));
    assert_null(of_rule(findings, RULE_BELOW_TARGET));
}

static void what_is_no_target_is_said_with_its_place(void **state)
{
    static const char *const cases[] = {"targets: [a]",
                                        "targets: {a: much}",
                                        "targets: {a: 0%}",
                                        "targets: {a: 120%}",
                                        "targets: {workload: {a: 50%}}",
                                        "targets: {workloads: {a: 0%}}",
                                        "targets: {namespaces: {a: {b: 50%}}}"};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct config *config = config_new();
        struct thresholds thresholds;
        struct error err = {0};
        assert_int_equal(config_read_text(config, "c.yaml", str_of(cases[i]), &err), ERR_OK);
        assert_int_equal(thresholds_read(config, &thresholds, &err), ERR_CONFIG);
        assert_non_null(strstr(err.text, "c.yaml:1:"));
        config_free(config);
    }
}

#define test(name) cmocka_unit_test_setup_teardown(name, ledger_new, ledger_free)

int main(void)
{
    const struct CMUnitTest tests[] = {
        test(a_team_below_its_target_is_told),
        test(a_team_at_its_target_is_left_alone),
        test(time_that_is_not_observed_proves_nothing),
        test(a_team_without_a_target_is_told_where_others_have_one),
        test(a_namespace_below_its_target_is_told),
        test(a_workload_below_its_target_is_told),
        test(a_workload_at_its_target_is_left_alone),
        test(a_team_is_asked_for_what_has_no_target_of_its_own),
        test(the_scorecard_counts_dollars_of_what_is_missing),
        test(where_nothing_is_missing_there_is_no_scorecard),
        test(the_scorecard_needs_two_that_reach_its_share),
        test(where_nobody_has_a_target_nothing_is_said),
        test(what_is_no_target_is_said_with_its_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
