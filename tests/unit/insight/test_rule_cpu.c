/* CPU work on GPU machines: a node of two GPUs at $8 an hour in aws us-east-1, a week; what its
 * host did is laid into the books by hand. */
#include "../../lib/hand_ledger.h"
#include "fleet/prices.h"

#define GIB (INT64_C(1) << 30)

static struct prices *list(void)
{
    struct prices *prices = prices_new();
    must(prices_add_csv_text(prices, "p.csv",
                             STR("cloud,region,instance_type,usd_per_hour,gpus,vcpus,memory_gib\n"
                                 "aws,us-east-1,c.small,0.2,0,4,16\n"
                                 "aws,us-east-1,c.large,2,0,32,128\n"
                                 "aws,us-east-1,c.dear,9,0,192,768\n"),
                             &failure));
    prices_ready(prices);
    return prices;
}

/* cpu: percent of 96 CPUs at the highest five minutes; below 0: not measured. */
static void books_with(struct ledger *ledger, int cpu, int64_t requested_mcpu)
{
    must(store_open(":memory:", STORE_WRITE, ledger->names, &ledger->store, &failure));
    must(store_begin(ledger->store, &failure));
    must(store_append(ledger->store, &ledger->batch, &failure));
    must(store_commit(ledger->store, NULL, &failure));
    must(books_read(ledger->store, ledger->batch.hours, NULL, &ledger->books, &failure));
    assert_int_equal(ledger->books->nodes_n, 1);
    struct book_node *node = &ledger->books->nodes[0];
    node->facts.cloud = put(ledger, "aws");
    node->facts.region = put(ledger, "us-east-1");
    node->host = (struct book_host){.cpu_max = -1,
                                    .cpus = 96,
                                    .requested_mcpu = requested_mcpu,
                                    .requested_memory_bytes = 100 * GIB,
                                    .cpu_pods = -1,
                                    .daemon_pods = -1};
    if (cpu < 0)
        return;
    node->host.cpu_max = NANO / 100 * cpu;
    node->host.cpu_seen_ms = HOURS * HOUR_MS;
    node->host.cpu = (wide_t)NANO / 100 * cpu * HOURS * HOUR_MS / 2;
}

static struct findings *judged(struct ledger *ledger, struct prices *prices)
{
    ledger->books->prices = prices;
    ledger->findings = recommend(ledger->books, "USD");
    ledger->books->prices = NULL;
    prices_free(prices);
    return ledger->findings;
}

/* Two GPUs of one Job, at u percent and e percent. */
static void job(struct ledger *ledger, int u, int e)
{
    node(ledger, "n1", CAPACITY_ON_DEMAND, 0);
    for (int gpu = 0; gpu < 2; gpu++)
        stays(ledger, (struct stay){.node = "n1",
                                    .device = gpu ? "GPU-1" : "GPU-0",
                                    .workload = "Job/preprocess",
                                    .type = WORKLOAD_TRAINING,
                                    .to = HOURS,
                                    .u = u,
                                    .e = e});
}

static const char *refused(const struct findings *findings)
{
    for (size_t i = 0; i < findings->refusals_n; i++)
        if (findings->refusals[i].rule == RULE_CPU_NODE)
            return findings->refusals[i].reason.p;
    return NULL;
}

/* $8 an hour less $2: 730 h x $6 = $4,380 a month. The $1,460 that c.large costs are nobody's
 * saving any more, and the Job is not told to stop. */
static void the_price_difference_to_the_machine_that_fits(void **state)
{
    job(*state, 0, 4);
    books_with(*state, 80, 30000);
    struct findings *findings = judged(*state, list());
    const struct finding *finding = of_rule(findings, RULE_CPU_NODE);
    assert_non_null(finding);
    assert_true(str_eq(finding->subject, STR("node n1")));
    assert_true(str_eq(finding->owner, STR("search")));
    assert_dollars(finding->window_cost, 1008);
    assert_dollars(finding->saving, 4380);
    assert_non_null(strstr(finding->action.p, "c.large"));
    assert_null(of_rule(findings, RULE_IDLE_WORKLOAD));
    assert_dollars(findings_saving(findings), 4380);
}

/* At its peak 77 of 96 CPUs are busy, and c.large has 32. */
static void a_machine_with_fewer_cpus_than_are_busy_is_a_risk(void **state)
{
    job(*state, 0, 4);
    books_with(*state, 80, 30000);
    const struct finding *finding = of_rule(judged(*state, list()), RULE_CPU_NODE);
    assert_non_null(finding);
    assert_int_equal(finding->confidence, CONFIDENCE_LOW);
    assert_non_null(strstr(finding->risk.p, "76.8 CPUs are busy"));
}

/* 60 CPUs only c.dear has, which costs more than the node. */
static void a_machine_that_costs_no_less_is_no_saving(void **state)
{
    job(*state, 0, 4);
    books_with(*state, 52, 60000);
    struct findings *findings = judged(*state, list());
    assert_null(of_rule(findings, RULE_CPU_NODE));
    assert_non_null(strstr(refused(findings), "costs no less"));
    assert_non_null(of_rule(findings, RULE_IDLE_WORKLOAD));
}

static void where_nothing_is_large_enough_it_is_said(void **state)
{
    job(*state, 0, 4);
    books_with(*state, 80, 200000);
    struct findings *findings = judged(*state, list());
    assert_null(of_rule(findings, RULE_CPU_NODE));
    assert_non_null(strstr(refused(findings), "large enough"));
}

static void gpus_at_work_keep_their_node(void **state)
{
    job(*state, 6, 10); /* GPU_UTIL of exactly 10 % */
    books_with(*state, 80, 30000);
    struct findings *findings = judged(*state, list());
    assert_null(of_rule(findings, RULE_CPU_NODE));
    assert_null(refused(findings));
}

static void half_of_the_cpus_is_no_peak(void **state)
{
    job(*state, 0, 4);
    books_with(*state, 50, 30000);
    struct findings *findings = judged(*state, list());
    assert_null(of_rule(findings, RULE_CPU_NODE));
    assert_null(refused(findings));
}

static void a_host_without_node_exporter_is_told(void **state)
{
    job(*state, 0, 4);
    books_with(*state, -1, 30000);
    struct findings *findings = judged(*state, list());
    assert_null(of_rule(findings, RULE_CPU_NODE));
    assert_non_null(strstr(refused(findings), "not known"));
}

static void requests_that_are_not_known_are_told(void **state)
{
    job(*state, 0, 4);
    books_with(*state, 80, -1);
    struct findings *findings = judged(*state, list());
    assert_null(of_rule(findings, RULE_CPU_NODE));
    assert_non_null(strstr(refused(findings), "request"));
}

static void gpus_that_nobody_observes_may_be_at_work(void **state)
{
    job(*state, -1, 0);
    books_with(*state, 80, 30000);
    assert_null(of_rule(judged(*state, list()), RULE_CPU_NODE));
}

#define with_ledger(test) cmocka_unit_test_setup_teardown(test, ledger_new, ledger_free)
int main(void)
{
    const struct CMUnitTest tests[] = {
        with_ledger(the_price_difference_to_the_machine_that_fits),
        with_ledger(a_machine_with_fewer_cpus_than_are_busy_is_a_risk),
        with_ledger(a_machine_that_costs_no_less_is_no_saving),
        with_ledger(where_nothing_is_large_enough_it_is_said),
        with_ledger(gpus_at_work_keep_their_node),
        with_ledger(half_of_the_cpus_is_no_peak),
        with_ledger(a_host_without_node_exporter_is_told),
        with_ledger(requests_that_are_not_known_are_told),
        with_ledger(gpus_that_nobody_observes_may_be_at_work),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
