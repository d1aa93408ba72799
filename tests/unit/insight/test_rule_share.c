/* Time-slicing on GPUs without MIG: T4s (which the hand-made ledger gives 80 GiB), one on each node
 * of two, at $4 an hour. */
#include "../../lib/hand_ledger.h"

/* n services on T4s of one pool. */
static struct findings *services(void **state, int n, struct stay stay)
{
    struct ledger *ledger = *state;
    for (int i = 0; i < n; i++) {
        char name[16], device[16], workload[32];
        snprintf(name, sizeof name, "n%d", i);
        snprintf(device, sizeof device, "GPU-%d", i);
        snprintf(workload, sizeof workload, "Deployment/ocr-%d", i);
        node(ledger, name, CAPACITY_ON_DEMAND, 0);
        stay.node = name;
        stay.device = device;
        stay.workload = workload;
        stay.model = stay.model ? stay.model : "Tesla T4";
        stay.to = HOURS;
        stays(ledger, stay);
        neighbour(ledger, name);
    }
    return findings_of(state);
}

static const char *refused(const struct findings *findings)
{
    assert_null(of_rule(findings, RULE_TIME_SLICING));
    for (size_t i = 0; i < findings->refusals_n; i++)
        if (findings->refusals[i].rule == RULE_TIME_SLICING)
            return findings->refusals[i].reason.p;
    return "";
}

static struct stay ocr(void)
{
    return (struct stay){.type = WORKLOAD_INFERENCE, .u = 12, .e = 40, .mem_gib = 10};
}

/* Peaks of 15 % and 11 GiB: five would go on one chip, and four may. Five GPUs become two. */
static void services_without_mig_could_share(void **state)
{
    struct findings *findings = services(state, 5, ocr());
    const struct finding *finding = of_rule(findings, RULE_TIME_SLICING);
    assert_non_null(finding);
    assert_dollars(finding->saving, 2920.0 * 3 / 5);
    assert_int_equal(finding->confidence, CONFIDENCE_LOW);
    assert_non_null(strstr(finding->risk.p, "no isolation"));
    assert_non_null(strstr(finding->risk.p, "no attribution"));
    assert_null(of_rule(findings, RULE_MIG_FIT));
}

/* 30 GiB and 10 % are 33: two of them go on 80. */
static void memory_lies_beside_each_other(void **state)
{
    struct stay stay = ocr();
    stay.mem_gib = 30;
    const struct finding *finding = of_rule(services(state, 4, stay), RULE_TIME_SLICING);
    assert_non_null(finding);
    assert_dollars(finding->saving, 2920.0 / 2);
}

/* Peaks of 30 %: three make 90 %, a fourth would be too much. Four GPUs become two. */
static void peaks_add_up_to_nine_tenths(void **state)
{
    struct stay stay = ocr();
    stay.u = 25;
    const struct finding *finding = of_rule(services(state, 4, stay), RULE_TIME_SLICING);
    assert_non_null(finding);
    assert_dollars(finding->saving, 2920.0 / 2);
}

/* 10 GiB four times (11 with the headroom) and 60 once (66): any two lie beside each other, which
 * would make three GPUs of five; without the large one any four of the small do, which leaves two.
 */
static void what_is_too_large_for_the_others_stays_out(void **state)
{
    struct ledger *ledger = *state;
    struct stay large = ocr();
    large.mem_gib = 60;
    large.node = "m", large.device = "GPU-m", large.workload = "Deployment/large";
    large.model = "Tesla T4", large.to = HOURS;
    node(ledger, "m", CAPACITY_ON_DEMAND, 0);
    stays(ledger, large);
    neighbour(ledger, "m");
    struct findings *findings = services(state, 4, ocr());
    const struct finding *finding = of_rule(findings, RULE_TIME_SLICING);
    assert_non_null(finding);
    assert_int_equal(finding->remedy, REMEDY_SHARE);
    assert_true(str_eq(finding->target, STR("4")));
    assert_dollars(finding->saving, 2920.0 * 3 / 4);
    bool told = false;
    for (size_t i = 0; i < findings->refusals_n; i++)
        told |= str_eq(findings->refusals[i].subject, STR("workload ns/Deployment/large")) &&
                strstr(findings->refusals[i].reason.p, "it is too large");
    assert_true(told);
}

/* The scheduler lays any of them together: 30 + 30 GiB with a tenth are 66, a third is too much for
 * 80, though 30 + 10 + 10 + 10 would go. By the number of pods, two to a GPU. */
static void the_largest_pods_lie_beside_each_other(void **state)
{
    struct ledger *ledger = *state;
    for (int i = 0; i < 3; i++) {
        struct stay large = ocr();
        char name[16], device[24], workload[32];
        snprintf(name, sizeof name, "m%d", i);
        snprintf(device, sizeof device, "GPU-m%d", i);
        snprintf(workload, sizeof workload, "Deployment/large-%d", i);
        large.mem_gib = 30, large.node = name, large.device = device, large.workload = workload;
        large.model = "Tesla T4", large.to = HOURS;
        node(ledger, name, CAPACITY_ON_DEMAND, 0);
        stays(ledger, large);
        neighbour(ledger, name);
    }
    const struct finding *finding = of_rule(services(state, 1, ocr()), RULE_TIME_SLICING);
    assert_non_null(finding);
    assert_true(str_eq(finding->target, STR("2")));
}

/* Facts of data/sharing.csv. */
static void models_without_time_slicing_are_refused(void **state)
{
    struct stay stay = ocr();
    stay.model = "Tesla K80";
    assert_non_null(strstr(refused(services(state, 3, stay)), "does not interrupt"));
    ledger_free(state);
    ledger_new(state);
    stay.model = "AMD Instinct MI210";
    assert_non_null(strstr(refused(services(state, 3, stay)), "AMD's device plugin"));
    ledger_free(state);
    ledger_new(state);
    stay.model = "Some GPU";
    assert_non_null(strstr(refused(services(state, 3, stay)), "the catalogue does not have it"));
}

static void one_alone_frees_no_gpu(void **state)
{
    const char *why = refused(services(state, 1, ocr()));
    assert_non_null(strstr(why, "without isolation"));
    assert_non_null(strstr(why, "no GPU comes free"));
}

static void work_that_is_too_much_for_two_stays_apart(void **state)
{
    struct stay stay = ocr();
    stay.mem_gib = 40;
    assert_non_null(strstr(refused(services(state, 3, stay)), "no GPU comes free"));
}

static void training_is_not_looked_at(void **state)
{
    struct stay stay = ocr();
    stay.type = WORKLOAD_TRAINING;
    assert_string_equal(refused(services(state, 3, stay)), "");
}

static void busy_services_are_not_looked_at(void **state)
{
    struct stay stay = ocr();
    stay.u = 30;
    assert_string_equal(refused(services(state, 3, stay)), "");
}

static void memory_that_is_not_known_is_told(void **state)
{
    struct stay stay = ocr();
    stay.mem_gib = 0;
    assert_non_null(strstr(refused(services(state, 3, stay)), "memory is not known"));
}

static void servers_that_take_all_memory_are_told(void **state)
{
    struct stay stay = ocr();
    stay.mem_gib = 72;
    assert_non_null(strstr(refused(services(state, 3, stay)), "KV-cache"));
}

#define with_ledger(test) cmocka_unit_test_setup_teardown(test, ledger_new, ledger_free)
int main(void)
{
    const struct CMUnitTest tests[] = {
        with_ledger(services_without_mig_could_share),
        with_ledger(memory_lies_beside_each_other),
        with_ledger(peaks_add_up_to_nine_tenths),
        with_ledger(what_is_too_large_for_the_others_stays_out),
        with_ledger(the_largest_pods_lie_beside_each_other),
        with_ledger(models_without_time_slicing_are_refused),
        with_ledger(one_alone_frees_no_gpu),
        with_ledger(work_that_is_too_much_for_two_stays_apart),
        with_ledger(training_is_not_looked_at),
        with_ledger(busy_services_are_not_looked_at),
        with_ledger(memory_that_is_not_known_is_told),
        with_ledger(servers_that_take_all_memory_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
