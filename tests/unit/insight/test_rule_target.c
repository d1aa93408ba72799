/* Targets of teams. One GPU of "search" at a given use for a week, beside one of "other" at 90 %.
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

static void where_nobody_has_a_target_nothing_is_said(void **state)
{
    struct findings *findings = with_targets(state, at(50), "");
    assert_null(of_rule(findings, RULE_NO_TARGET));
    assert_null(of_rule(findings, RULE_BELOW_TARGET));
}

static void what_is_no_target_is_said_with_its_place(void **state)
{
    static const char *const cases[] = {"targets: [a]", "targets: {a: much}", "targets: {a: 0%}",
                                        "targets: {a: 120%}"};
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
        test(where_nobody_has_a_target_nothing_is_said),
        test(what_is_no_target_is_said_with_its_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
