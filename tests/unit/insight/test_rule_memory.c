/* Smaller GPUs, and what inference servers that take all memory in advance need: one workload on an
 * H100 (132 SMs, 989 TFLOPS, 3352 GB/s, 79.6 GiB) at $4 an hour in aws us-east-1, where an L4 (58,
 * 121, 300, 22.5 GiB) is $0.80, an L40S (142, 362, 864, 45.0 GiB) $1.80, and an A100 of 40 GB
 * (108, 312, 1555) what the test says. */
#include "../../lib/hand_ledger.h"

#define LIST                                                                                       \
    "cloud,region,instance_type,usd_per_hour,gpus,gpu_model,vcpus,memory_gib\n"                    \
    "aws,us-east-1,m.l4,0.8,1,L4,8,32\n"                                                           \
    "aws,us-east-1,m.l40s,1.8,1,L40S,16,64\n"                                                      \
    "aws,us-east-1,m.mi,0.1,1,MI210,16,64\n"                                                       \
    "aws,us-east-1,m.t4,0.1,1,T4,16,64\n"

struct wanted {
    struct stay stay;
    int dram;         /* percent + 1; 0: not exported */
    int kv_percent;   /* highest use of the KV cache; below 0: not exported */
    int kv_hours;     /* for so many hours */
    int64_t cpu_mcpu; /* limit of a pod; 0: not known */
    bool nowhere;     /* cloud and region are not known */
    const char *list;
};

static struct book_workload *subject(struct books *books, struct ledger *ledger)
{
    for (size_t i = 0; i < books->workloads_n; i++)
        if (books->workloads[i].workload == put(ledger, "Deployment/api"))
            return &books->workloads[i];
    return NULL;
}

static void set_books(struct ledger *ledger, const struct wanted *wanted)
{
    for (size_t i = 0; i < ledger->batch.rows_n && wanted->dram; i++) {
        struct row *row = &ledger->batch.rows[i];
        row->measure[MEASURE_DRAM] = HOUR_MS * (NANO / 100) * (wanted->dram - 1);
        row->measure_seen_ms[MEASURE_DRAM] = HOUR_MS;
    }
    must(store_open(":memory:", STORE_WRITE, ledger->names, &ledger->store, &failure));
    must(store_begin(ledger->store, &failure));
    must(store_append(ledger->store, &ledger->batch, &failure));
    must(store_commit(ledger->store, NULL, &failure));
    must(books_read(ledger->store, ledger->batch.hours, NULL, &ledger->books, &failure));
    struct book_workload *of = subject(ledger->books, ledger);
    assert_non_null(of);
    of->load.kv_max = wanted->kv_percent < 0 ? -1 : NANO / 100 * wanted->kv_percent;
    of->load.kv_seen_ms = wanted->kv_percent < 0 ? 0 : wanted->kv_hours * HOUR_MS;
    of->load.cpu_limit_mcpu = wanted->cpu_mcpu ? wanted->cpu_mcpu : -1;
    for (size_t i = 0; i < ledger->books->nodes_n && !wanted->nowhere; i++) {
        ledger->books->nodes[i].facts.cloud = put(ledger, "aws");
        ledger->books->nodes[i].facts.region = put(ledger, "us-east-1");
    }
}

static struct findings *judged(void **state, struct wanted wanted)
{
    struct ledger *ledger = *state;
    struct prices *prices = prices_new();
    struct price_policy policy = {.vcpu = -1, .gib = -1, .no_catalogue = true};
    wanted.stay.node = "n1";
    wanted.stay.device = "GPU-1";
    wanted.stay.workload = "Deployment/api";
    wanted.stay.to = HOURS;
    node(ledger, "n1", CAPACITY_ON_DEMAND, 0);
    stays(ledger, wanted.stay);
    neighbour(ledger, "n1");
    set_books(ledger, &wanted);
    must(prices_add_csv_text(prices, "p.csv", str_of(wanted.list ? wanted.list : LIST), &failure));
    prices_set_policy(prices, &policy);
    prices_ready(prices);
    ledger->books->prices = prices;
    ledger->findings = recommend(ledger->books, "USD");
    ledger->books->prices = NULL;
    prices_free(prices);
    return ledger->findings;
}

static const char *refused(const struct findings *findings, enum rule_id rule)
{
    assert_null(of_rule(findings, rule));
    for (size_t i = 0; i < findings->refusals_n; i++)
        if (findings->refusals[i].rule == rule &&
            memmem(findings->refusals[i].subject.p, findings->refusals[i].subject.n, "api", 3))
            return findings->refusals[i].reason.p;
    return "";
}

static struct wanted service(void)
{
    return (struct wanted){
        .stay = {.type = WORKLOAD_INFERENCE, .u = 4, .e = 40, .mem_gib = 10, .tensor = 1 + 1},
        .dram = 2 + 1,
        .kv_percent = -1};
}

/* 5 % of SMs are 11.4 % there, 1.25 % of TFLOPS 10.2 %, 2.5 % of the bandwidth 27.9 %; 11 GiB fit.
 * $0.80 instead of $4: four fifths of $2,920. */
static void a_service_with_room_fits_the_cheapest_model(void **state)
{
    struct findings *findings = judged(state, service());
    const struct finding *finding = of_rule(findings, RULE_SMALLER_GPU);
    assert_non_null(finding);
    assert_true(str_eq(finding->what, STR("fits a L4 in place of its H100-SXM5-80GB")));
    assert_dollars(finding->saving, 2336);
    assert_int_equal(finding->confidence, CONFIDENCE_HIGH);
    assert_non_null(strstr(finding->action.p, "m.l4"));
    assert_dollars(findings_saving(findings), 2336);
    bool stated = false;
    for (size_t i = 0; i < finding->evidence_n; i++)
        stated |= str_eq(finding->evidence[i].value, STR("2.5 % x 3352 / 300 GB/s = 27.9 %"));
    assert_true(stated);
}

/* 10 % of the bandwidth are 111.7 % of an L4's and 38.8 % of an L40S's. */
static void bandwidth_may_need_a_larger_one(void **state)
{
    struct wanted wanted = service();
    wanted.dram = 8 + 1;
    const struct finding *finding = of_rule(judged(state, wanted), RULE_SMALLER_GPU);
    assert_non_null(finding);
    assert_true(str_starts(finding->what, STR("fits a L40S")));
    assert_dollars(finding->saving, 2920 * (4 - 1.8) / 4);
}

/* 21 GiB and 10 % are 23.1: more than an L4 has. */
static void memory_has_a_headroom(void **state)
{
    struct wanted wanted = service();
    wanted.stay.mem_gib = 21;
    const struct finding *finding = of_rule(judged(state, wanted), RULE_SMALLER_GPU);
    assert_non_null(finding);
    assert_true(str_starts(finding->what, STR("fits a L40S")));
}

/* Each pod may take 12 CPUs, and m.l4 has 8. */
static void the_machine_has_cpus_for_its_pods(void **state)
{
    struct wanted wanted = service();
    wanted.cpu_mcpu = 12000;
    const struct finding *finding = of_rule(judged(state, wanted), RULE_SMALLER_GPU);
    assert_non_null(finding);
    assert_true(str_starts(finding->what, STR("fits a L40S")));
}

#define A100_LIST(price)                                                                           \
    "cloud,region,instance_type,usd_per_hour,gpus,gpu_model\naws,us-east-1,m.a100," price          \
    ",1,A100-SXM4-40GB\n"

static struct wanted batch(const char *list)
{
    struct wanted wanted = service();
    wanted.stay.type = WORKLOAD_OTHER;
    wanted.stay.model = "NVIDIA A100-SXM4-80GB";
    wanted.stay.u = 40;
    wanted.stay.e = 100;
    wanted.list = list;
    return wanted;
}

/* What ends takes 2039 / 1555 = 1.311 times as long on the A100 of 40 GB, all of its time: at $2.40
 * the work costs $3.147 instead of $4, which saves 21.3 %. */
static void what_ends_is_judged_by_the_cost_of_the_work(void **state)
{
    struct findings *findings = judged(state, batch(A100_LIST("2.4")));
    const struct finding *finding = of_rule(findings, RULE_SMALLER_GPU);
    assert_non_null(finding);
    assert_dollars(finding->saving, 622.68);
}

/* At $3.10 an hour the work costs $4.065: less an hour, and more for what is done. */
static void a_cheaper_hour_may_be_a_dearer_run(void **state)
{
    struct findings *findings = judged(state, batch(A100_LIST("3.1")));
    assert_non_null(strstr(refused(findings, RULE_SMALLER_GPU), "cost no less"));
}

static void training_has_its_own_rule_first(void **state)
{
    struct wanted wanted = service();
    wanted.stay.type = WORKLOAD_TRAINING;
    assert_non_null(strstr(refused(judged(state, wanted), RULE_SMALLER_GPU), "batch size"));
}

static void a_gpu_that_is_filled_is_not_too_large(void **state)
{
    struct wanted wanted = service();
    wanted.stay.mem_gib = 60;
    assert_string_equal(refused(judged(state, wanted), RULE_SMALLER_GPU), "");
}

static void without_sm_activity_nothing_is_said(void **state)
{
    struct wanted wanted = service();
    wanted.stay.flags = FLAG_U_UTIL;
    assert_non_null(strstr(refused(judged(state, wanted), RULE_SMALLER_GPU), "SM activity"));
}

/* 5 % everywhere: 11.4, 40.9 and 55.9 % of an L4. */
static void missing_signals_are_stood_in_for_and_lower_the_confidence(void **state)
{
    struct wanted wanted = service();
    wanted.dram = 0;
    wanted.stay.tensor = 0;
    const struct finding *finding = of_rule(judged(state, wanted), RULE_SMALLER_GPU);
    assert_non_null(finding);
    assert_true(str_starts(finding->what, STR("fits a L4")));
    assert_int_equal(finding->confidence, CONFIDENCE_LOW);
    assert_non_null(strstr(finding->reasons.p, "stands in"));
}

/* 55 % of the SMs, which may all multiply: 150 % of an L40S's TFLOPS. */
static void a_chip_at_work_has_no_smaller_one(void **state)
{
    struct wanted wanted = service();
    wanted.dram = 0;
    wanted.stay.tensor = 0;
    wanted.stay.u = 50;
    assert_non_null(strstr(refused(judged(state, wanted), RULE_SMALLER_GPU), "too slow"));
}

static void without_a_place_nothing_has_a_price(void **state)
{
    struct wanted wanted = service();
    wanted.nowhere = true;
    assert_non_null(strstr(refused(judged(state, wanted), RULE_SMALLER_GPU), "cloud and region"));
}

static void without_memory_nothing_is_said(void **state)
{
    struct wanted wanted = service();
    wanted.stay.mem_gib = 0;
    assert_non_null(
        strstr(refused(judged(state, wanted), RULE_SMALLER_GPU), "memory is not known"));
}

static struct wanted server(int kv_percent, int kv_hours)
{
    struct wanted wanted = service();
    wanted.stay.mem_gib = 72; /* 90 % of 80 */
    wanted.kv_percent = kv_percent;
    wanted.kv_hours = kv_hours;
    return wanted;
}

static void memory_taken_in_advance_needs_the_kv_cache(void **state)
{
    struct findings *findings = judged(state, server(-1, 0));
    assert_non_null(strstr(refused(findings, RULE_SMALLER_GPU), "KV-cache"));
    assert_non_null(strstr(refused(findings, RULE_MIG_FIT), "KV-cache"));
}

static void a_kv_cache_that_is_seen_half_of_the_time_is_not_enough(void **state)
{
    assert_non_null(
        strstr(refused(judged(state, server(10, 84)), RULE_SMALLER_GPU), "for a part of the time"));
}

/* Half of 72 GiB is thought to be cache, of which 10 % were in use: 36 + 3.6 = 39.6 GiB, with 10 %
 * 43.6: an L40S has 44.99. It fits if the weights take (44.99 / 1.1 - 7.2) / 0.9 = 37.4 GiB. */
static void a_kv_cache_that_stays_empty_fits_a_smaller_gpu_on_a_condition(void **state)
{
    const struct finding *finding = of_rule(judged(state, server(10, HOURS)), RULE_SMALLER_GPU);
    assert_non_null(finding);
    assert_true(str_starts(finding->what, STR("fits a L40S")));
    assert_int_equal(finding->confidence, CONFIDENCE_LOW);
    assert_non_null(strstr(finding->action.p, "at most 37.4 GiB"));
}

/* 36 + 21.6 GiB and 10 % are 63.4: nothing that is smaller has that, and 4g.40gb has 39.5. */
static void a_kv_cache_in_use_needs_its_gpu(void **state)
{
    struct findings *findings = judged(state, server(60, HOURS));
    assert_non_null(strstr(refused(findings, RULE_SMALLER_GPU), "memory enough"));
    assert_non_null(strstr(refused(findings, RULE_MIG_FIT), "KV cache"));
}

#define with_ledger(test) cmocka_unit_test_setup_teardown(test, ledger_new, ledger_free)
int main(void)
{
    const struct CMUnitTest tests[] = {
        with_ledger(a_service_with_room_fits_the_cheapest_model),
        with_ledger(bandwidth_may_need_a_larger_one),
        with_ledger(memory_has_a_headroom),
        with_ledger(the_machine_has_cpus_for_its_pods),
        with_ledger(what_ends_is_judged_by_the_cost_of_the_work),
        with_ledger(a_cheaper_hour_may_be_a_dearer_run),
        with_ledger(training_has_its_own_rule_first),
        with_ledger(a_gpu_that_is_filled_is_not_too_large),
        with_ledger(without_sm_activity_nothing_is_said),
        with_ledger(missing_signals_are_stood_in_for_and_lower_the_confidence),
        with_ledger(a_chip_at_work_has_no_smaller_one),
        with_ledger(without_a_place_nothing_has_a_price),
        with_ledger(without_memory_nothing_is_said),
        with_ledger(memory_taken_in_advance_needs_the_kv_cache),
        with_ledger(a_kv_cache_that_is_seen_half_of_the_time_is_not_enough),
        with_ledger(a_kv_cache_that_stays_empty_fits_a_smaller_gpu_on_a_condition),
        with_ledger(a_kv_cache_in_use_needs_its_gpu),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
