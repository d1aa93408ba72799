/* Busy-looking but useless without SM activity: power near what the model draws when idle. The
 * catalogue has the H100 SXM at 700 W; 5 points of that stand above its idle draw. */
#include "../../lib/hand_ledger.h"
#include "fleet/catalogue.h"

static int floor_w(void)
{
    const struct gpu_model *model = catalogue_gpu(STR("NVIDIA H100 80GB HBM3"));
    assert_non_null(model);
    assert_true(model->idle_mw > 0 && model->power_limit_mw > 0);
    return (model->idle_mw + model->power_limit_mw / 20) / 1000;
}

static struct stay spinning(int watts)
{
    return (struct stay){.workload = "Job/hang",
                         .type = WORKLOAD_TRAINING,
                         .u = 99,
                         .e = 99,
                         .sm_hidden = 1,
                         .watts = watts};
}

static void full_use_at_idle_power_is_useless(void **state)
{
    struct findings *findings = with_one(state, spinning(floor_w()));
    const struct finding *finding = of_rule(findings, RULE_BUSY_USELESS);
    assert_non_null(finding);
    assert_int_equal(finding->confidence, CONFIDENCE_LOW);
    assert_dollars(finding->month, 2920);
}

static void full_use_at_working_power_is_work(void **state)
{
    assert_null(of_rule(with_one(state, spinning(floor_w() + 2)), RULE_BUSY_USELESS));
}

static void without_power_nothing_is_said(void **state)
{
    assert_null(of_rule(with_one(state, spinning(0)), RULE_BUSY_USELESS));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(full_use_at_idle_power_is_useless, ledger_new, ledger_free),
        cmocka_unit_test_setup_teardown(full_use_at_working_power_is_work, ledger_new, ledger_free),
        cmocka_unit_test_setup_teardown(without_power_nothing_is_said, ledger_new, ledger_free),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
