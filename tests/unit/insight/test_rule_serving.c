/* Servers that nobody asks, training that uses little, and inference that nobody counts: each on a
 * ledger made by hand, whose loads are set beside it. */
#include "../../lib/hand_ledger.h"

/* The one workload of with_one(), with its load; findings anew. */
static struct findings *with_load(void **state, struct stay stay, struct book_load load)
{
    struct ledger *ledger = *state;
    with_one(state, stay);
    findings_free(ledger->findings);
    for (size_t i = 0; i < ledger->books->workloads_n; i++) {
        struct book_workload *of = &ledger->books->workloads[i];
        if (str_eq(names_text(ledger->names, of->workload), str_of(stay.workload)))
            of->load = load;
    }
    ledger->findings = recommend(ledger->books, "USD");
    return ledger->findings;
}

static struct stay quiet_server(void)
{
    return (struct stay){.workload = "Deployment/llm", .type = WORKLOAD_INFERENCE, .mem_gib = 72};
}

/* Counters that are there all week. */
static struct book_load counters(int64_t requests, int served_hour)
{
    return (struct book_load){.cpu_max_mcpu = -1,
                              .cpu_limit_mcpu = -1,
                              .serving_seen_ms = HOURS * HOUR_MS,
                              .waiting_max = 0,
                              .running_max = requests ? 1 : 0,
                              .kv_max = -1,
                              .requests = requests,
                              .tokens = requests * 100,
                              .served_until = requests ? H0 + served_hour * HOUR_MS : TIME_MIN};
}

static void a_server_without_requests_is_found(void **state)
{
    struct findings *findings = with_load(state, quiet_server(), counters(0, 0));
    const struct finding *finding = of_rule(findings, RULE_IDLE_SERVER);
    assert_non_null(finding);
    assert_true(str_eq(finding->subject, STR("workload ns/Deployment/llm")));
    assert_dollars(finding->window_cost, 672);
    assert_dollars(finding->saving, 2920);
    assert_null(of_rule(findings, RULE_IDLE_WORKLOAD)); /* said once */
}

/* The last request came 48 hours ago: 48 x $4. */
static void it_is_idle_since_its_last_request(void **state)
{
    struct findings *findings = with_load(state, quiet_server(), counters(5, HOURS - 48));
    const struct finding *finding = of_rule(findings, RULE_IDLE_SERVER);
    assert_non_null(finding);
    assert_true(finding->since == H0 + (HOURS - 48) * HOUR_MS);
    assert_dollars(finding->window_cost, 192);
}

static void a_server_that_was_asked_today_is_left_alone(void **state)
{
    assert_null(
        of_rule(with_load(state, quiet_server(), counters(5, HOURS - 23)), RULE_IDLE_SERVER));
}

static void without_counters_nothing_is_known_of_requests(void **state)
{
    struct book_load none = counters(0, 0);
    none.serving_seen_ms = 0;
    none.requests = none.tokens = none.running_max = none.waiting_max = -1;
    assert_null(of_rule(with_load(state, quiet_server(), none), RULE_IDLE_SERVER));
}

static void counters_of_half_the_week_do_not_prove_it(void **state)
{
    struct book_load half = counters(0, 0);
    half.serving_seen_ms /= 2;
    assert_null(of_rule(with_load(state, quiet_server(), half), RULE_IDLE_SERVER));
}

static void a_gpu_that_works_contradicts_its_counters(void **state)
{
    struct stay stay = quiet_server();
    stay.u = stay.e = 50;
    struct findings *findings = with_load(state, stay, counters(0, 0));
    assert_null(of_rule(findings, RULE_IDLE_SERVER));
    bool refused = false;
    for (size_t i = 0; i < findings->refusals_n; i++)
        refused |= findings->refusals[i].rule == RULE_IDLE_SERVER;
    assert_true(refused);
}

static void inference_that_nobody_counts_is_told(void **state)
{
    struct stay stay = quiet_server();
    struct book_load none = counters(0, 0);
    none.serving_seen_ms = 0;
    stay.u = 60, stay.e = 80;
    const struct finding *finding = of_rule(with_load(state, stay, none), RULE_NO_UNIT);
    assert_non_null(finding);
    assert_true(str_eq(finding->subject, STR("team search")));
    assert_true(str_eq(finding->evidence[0].value, STR("ns/Deployment/llm")));
}

static void inference_with_counters_has_a_unit(void **state)
{
    struct stay stay = quiet_server();
    stay.u = 60, stay.e = 80;
    assert_null(of_rule(with_load(state, stay, counters(900, HOURS)), RULE_NO_UNIT));
}

static void training_needs_no_serving_counter(void **state)
{
    struct stay stay = {.workload = "Job/t", .type = WORKLOAD_TRAINING, .u = 60, .e = 90};
    assert_null(of_rule(with_load(state, stay, (struct book_load){0}), RULE_NO_UNIT));
}

/* Training: a kernel runs half of the time, 20 % of the chip works. */
static struct stay slow_training(void)
{
    return (struct stay){.workload = "Job/train",
                         .type = WORKLOAD_TRAINING,
                         .u = 20,
                         .e = 50,
                         .tensor = 1 + 1,
                         .mem_gib = 40};
}

static struct book_load cpu(int64_t most, int64_t limit)
{
    struct book_load load = counters(0, 0);
    load.serving_seen_ms = 0;
    load.cpu_seen_ms = HOURS * HOUR_MS;
    load.cpu_max_mcpu = most;
    load.cpu_limit_mcpu = limit;
    return load;
}

static bool says(struct str text, const char *part)
{
    char copy[1024];
    snprintf(copy, sizeof copy, "%.*s", STR_ARG(text));
    return strstr(copy, part) != NULL;
}

static void slow_training_is_told_what_points_where(void **state)
{
    struct findings *findings = with_load(state, slow_training(), cpu(7900, 8000));
    const struct finding *finding = of_rule(findings, RULE_TRAINING_USE);
    assert_non_null(finding);
    assert_null(of_rule(findings, RULE_LOW_USE));
    assert_true(says(finding->action, "CPU limit"));          /* 99 % of it */
    assert_true(says(finding->action, "wait between steps")); /* 50 % < 60 % */
    assert_true(says(finding->action, "has room"));           /* 40 of 80 GiB */
    assert_true(says(finding->action, "mixed precision"));    /* 1 % < 2 % */
    assert_false(says(finding->action, "checkpointing"));
    assert_false(says(finding->action, "fused kernels"));
    assert_int_equal(finding->saving, 0); /* one pod: better use frees no GPU */
}

static void signs_without_their_signal_are_unchecked(void **state)
{
    struct stay stay = slow_training();
    struct book_load none = cpu(-1, -1);
    none.cpu_seen_ms = 0;
    stay.tensor = 0;
    stay.mem_gib = 0;
    const struct finding *finding = of_rule(with_load(state, stay, none), RULE_TRAINING_USE);
    assert_non_null(finding);
    assert_true(
        says(finding->reasons, "unchecked: container CPU and its limit, memory, tensor activity"));
    assert_false(says(finding->action, "CPU limit"));
    assert_false(says(finding->action, "mixed precision"));
}

static void training_at_work_is_left_alone(void **state)
{
    struct stay stay = slow_training();
    stay.u = 45, stay.e = 95;
    assert_null(of_rule(with_load(state, stay, cpu(7900, 8000)), RULE_TRAINING_USE));
}

static void training_that_is_not_observed_is_left_alone(void **state)
{
    struct stay stay = slow_training();
    stay.u = -1;
    assert_null(of_rule(with_load(state, stay, cpu(7900, 8000)), RULE_TRAINING_USE));
}

#define test(name) cmocka_unit_test_setup_teardown(name, ledger_new, ledger_free)

int main(void)
{
    const struct CMUnitTest tests[] = {
        test(a_server_without_requests_is_found),
        test(it_is_idle_since_its_last_request),
        test(a_server_that_was_asked_today_is_left_alone),
        test(without_counters_nothing_is_known_of_requests),
        test(counters_of_half_the_week_do_not_prove_it),
        test(a_gpu_that_works_contradicts_its_counters),
        test(inference_that_nobody_counts_is_told),
        test(inference_with_counters_has_a_unit),
        test(training_needs_no_serving_counter),
        test(slow_training_is_told_what_points_where),
        test(signs_without_their_signal_are_unchecked),
        test(training_at_work_is_left_alone),
        test(training_that_is_not_observed_is_left_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
