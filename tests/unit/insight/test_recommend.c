/* Every rule on ledgers made by hand: one in which it must fire, one in which it must not, one in
 * which the data for it is missing; and that no dollar is claimed twice. */
#include "../../lib/hand_ledger.h"

static void good_citizens_raise_nothing(void **state)
{
    struct findings *findings = with_one(state, (struct stay){.workload = "Deployment/api",
                                                              .type = WORKLOAD_INFERENCE,
                                                              .u = 55,
                                                              .e = 90,
                                                              .requests = 1000,
                                                              .mem_gib = 60});
    assert_int_equal(findings->n, 0);
    assert_int_equal(findings_saving(findings), 0);
}

/* Idle all week: $4 an hour, $2,920 a month. */
static void an_idle_workload_is_found(void **state)
{
    struct findings *findings = with_one(state, (struct stay){.workload = "Deployment/rank"});
    assert_int_equal(findings->n, 1);
    const struct finding *finding = of_rule(findings, RULE_IDLE_WORKLOAD);
    assert_non_null(finding);
    assert_true(str_eq(finding->subject, STR("workload ns/Deployment/rank")));
    assert_true(str_eq(finding->owner, STR("search")));
    assert_dollars(finding->window_cost, 672);
    assert_dollars(finding->saving, 2920);
    assert_true(str_starts(finding->action, STR("stop it")));
}

static void a_workload_idle_for_two_days_is_not_to_be_stopped(void **state)
{
    struct findings *findings =
        with_one(state, (struct stay){.workload = "Deployment/rank", .from = HOURS - 48});
    const struct finding *finding = of_rule(findings, RULE_IDLE_WORKLOAD);
    assert_non_null(finding);
    assert_true(str_starts(finding->action, STR("ask its holder")));
}

/* A kernel now and then: the work may be on the CPU, which nobody sees here. */
static void a_workload_with_few_kernels_is_not_to_be_stopped(void **state)
{
    struct findings *findings =
        with_one(state, (struct stay){.workload = "Job/preprocess", .u = 2, .e = 4});
    const struct finding *finding = of_rule(findings, RULE_IDLE_WORKLOAD);
    assert_non_null(finding);
    assert_non_null(strstr(finding->action.p, "CPU"));
    assert_true(str_starts(finding->action, STR("ask its holder")));
    assert_int_equal(finding->confidence, CONFIDENCE_MEDIUM);
}

static void pauses_of_a_training_are_not_idleness(void **state)
{
    struct ledger *ledger = *state;
    for (int h = 0; h < HOURS; h += 2) { /* every second hour */
        struct stay stay = {.node = "n1",
                            .device = "GPU-1",
                            .workload = "Job/train",
                            .type = WORKLOAD_TRAINING,
                            .from = h,
                            .to = h + 1,
                            .u = 80,
                            .e = 99};
        stays(ledger, stay);
        stay.from = h + 1, stay.to = h + 2, stay.u = stay.e = 0;
        stays(ledger, stay);
    }
    node(ledger, "n1", CAPACITY_ON_DEMAND, 0);
    neighbour(ledger, "n1");
    assert_null(of_rule(findings_of(state), RULE_IDLE_WORKLOAD));
}

static void unobserved_time_is_in_use(void **state)
{
    struct ledger *ledger = *state;
    /* 20 of 168 hours are not observed: 88 % */
    stays(ledger,
          (struct stay){
              .node = "n1", .device = "GPU-1", .workload = "Deployment/rank", .to = 20, .u = -1});
    struct findings *findings =
        with_one(state, (struct stay){.workload = "Deployment/rank", .from = 20});
    assert_null(of_rule(findings, RULE_IDLE_WORKLOAD));
    assert_null(of_rule(findings, RULE_LOW_USE));
}

static void a_workload_that_is_gone_is_not_found(void **state)
{
    struct ledger *ledger = *state;
    stays(ledger, (struct stay){.node = "n1",
                                .device = "GPU-1",
                                .from = 100,
                                .to = HOURS,
                                .free_as = CATEGORY_STRANDED});
    struct findings *findings =
        with_one(state, (struct stay){.workload = "Deployment/rank", .to = 100});
    assert_null(of_rule(findings, RULE_IDLE_WORKLOAD));
}

static void an_idle_notebook_is_culled(void **state)
{
    struct ledger *ledger = *state;
    struct workload_hour hour = {.hour = H0 + HOUR_MS,
                                 .namespace = names_put(ledger->names, STR("ns")),
                                 .workload = names_put(ledger->names, STR("StatefulSet/nb")),
                                 .user = names_put(ledger->names, STR("alice"))};
    mem_push(ledger->batch.workload_hours, ledger->batch.workload_hours_n,
             ledger->batch.workload_hours_room, hour);
    struct findings *findings =
        with_one(state, (struct stay){.workload = "StatefulSet/nb", .type = WORKLOAD_INTERACTIVE});
    const struct finding *finding = of_rule(findings, RULE_IDLE_NOTEBOOK);
    assert_non_null(finding);
    assert_true(str_eq(finding->user, STR("alice")));
    assert_true(str_starts(finding->what, STR("alice's session holds 168.0 GPU-hours")));
    assert_null(of_rule(findings, RULE_IDLE_WORKLOAD));
    assert_dollars(finding->saving, 2920);
}

static void a_notebook_at_work_is_left_alone(void **state)
{
    struct findings *findings = with_one(state, (struct stay){.workload = "StatefulSet/nb",
                                                              .type = WORKLOAD_INTERACTIVE,
                                                              .u = 60,
                                                              .e = 80,
                                                              .mem_gib = 70});
    assert_int_equal(findings->n, 0);
}

static void a_notebook_without_samples_is_left_alone(void **state)
{
    struct findings *findings = with_one(
        state, (struct stay){.workload = "StatefulSet/nb", .type = WORKLOAD_INTERACTIVE, .u = -1});
    assert_int_equal(findings->n, 0);
}

static struct stay hung(int from, int to)
{
    return (struct stay){.node = "n1",
                         .device = "GPU-1",
                         .workload = "Job/hang",
                         .type = WORKLOAD_TRAINING,
                         .from = from,
                         .to = to,
                         .u = 1,
                         .e = 100};
}

/* Healthy until hour 144, then a kernel spins: 24 h x $4 at that pace are $2,920 a month. */
static void a_hung_job_looks_busy(void **state)
{
    struct ledger *ledger = *state;
    struct stay healthy = hung(0, 144);
    healthy.u = 80;
    stays(ledger, healthy);
    stays(ledger, hung(144, HOURS));
    node(ledger, "n1", CAPACITY_ON_DEMAND, 0);
    neighbour(ledger, "n1");
    struct findings *findings = findings_of(state);
    const struct finding *finding = of_rule(findings, RULE_BUSY_USELESS);
    assert_non_null(finding);
    assert_int_equal(finding->since, H0 + 144 * HOUR_MS);
    assert_dollars(finding->window_cost, 96);
    assert_dollars(finding->month, 2920);
}

static void four_hours_of_spinning_are_too_short(void **state)
{
    struct ledger *ledger = *state;
    struct stay healthy = hung(0, 164);
    healthy.u = 80;
    stays(ledger, healthy);
    stays(ledger, hung(164, HOURS));
    node(ledger, "n1", CAPACITY_ON_DEMAND, 0);
    neighbour(ledger, "n1");
    assert_null(of_rule(findings_of(state), RULE_BUSY_USELESS));
}

static void without_sm_activity_nothing_is_called_useless(void **state)
{
    struct stay stay = hung(0, HOURS);
    stay.sm_hidden = 1;
    assert_null(of_rule(with_one(state, stay), RULE_BUSY_USELESS));
}

static void a_stuck_counter_proves_nothing(void **state)
{
    struct stay stay = hung(0, HOURS);
    stay.flags = FLAG_STUCK_COUNTER;
    assert_null(of_rule(with_one(state, stay), RULE_BUSY_USELESS));
}

/* Both GPUs of a node free for the week: $8 x 730. */
static struct findings *free_node(void **state, enum capacity_type capacity, enum category as,
                                  int from)
{
    struct ledger *ledger = *state;
    node(ledger, "n1", capacity, 0);
    for (int gpu = 0; gpu < 2; gpu++) {
        const char *device = gpu ? "GPU-2" : "GPU-1";
        if (from)
            stays(ledger, (struct stay){.node = "n1",
                                        .device = device,
                                        .workload = gpu ? "Job/b" : "Job/a",
                                        .type = WORKLOAD_TRAINING,
                                        .to = from,
                                        .u = 80,
                                        .e = 99});
        stays(ledger,
              (struct stay){
                  .node = "n1", .device = device, .from = from, .to = HOURS, .free_as = as});
    }
    return findings_of(state);
}

static void an_empty_node_is_removed(void **state)
{
    struct findings *findings = free_node(state, CAPACITY_ON_DEMAND, CATEGORY_EMPTY, 0);
    const struct finding *finding = of_rule(findings, RULE_NODE_EMPTY);
    assert_non_null(finding);
    assert_true(str_eq(finding->owner, STR("platform")));
    assert_dollars(finding->saving, 5840);
}

static void a_reserved_empty_node_saves_nothing(void **state)
{
    struct findings *findings = free_node(state, CAPACITY_RESERVED, CATEGORY_EMPTY, 0);
    const struct finding *finding = of_rule(findings, RULE_NODE_EMPTY);
    assert_non_null(finding);
    assert_dollars(finding->month, 5840);
    assert_int_equal(finding->saving, 0);
}

static void a_node_empty_for_some_hours_is_left_alone(void **state)
{
    struct findings *findings = free_node(state, CAPACITY_ON_DEMAND, CATEGORY_EMPTY, HOURS - 20);
    assert_null(of_rule(findings, RULE_NODE_EMPTY));
}

static void a_free_node_without_telemetry_is_not_called_empty(void **state)
{
    struct findings *findings = free_node(state, CAPACITY_ON_DEMAND, CATEGORY_UNOBSERVED, 0);
    assert_int_equal(findings->n, 0);
}

static void a_cordoned_node_is_found(void **state)
{
    struct findings *findings = free_node(state, CAPACITY_ON_DEMAND, CATEGORY_CORDONED, 0);
    assert_null(of_rule(findings, RULE_NODE_EMPTY));
    assert_dollars(of_rule(findings, RULE_NODE_CORDONED)->saving, 5840);
}

static void lost_gpus_are_found(void **state)
{
    struct findings *findings = free_node(state, CAPACITY_ON_DEMAND, CATEGORY_UNHEALTHY, 0);
    assert_dollars(of_rule(findings, RULE_NODE_UNHEALTHY)->saving, 5840);
}

static void slices_without_an_instance_save_nothing_by_themselves(void **state)
{
    struct findings *findings = free_node(state, CAPACITY_ON_DEMAND, CATEGORY_UNPARTITIONED, 0);
    const struct finding *finding = of_rule(findings, RULE_NODE_UNPARTITIONED);
    assert_non_null(finding);
    assert_int_equal(finding->saving, 0);
}

static void slow_starts_are_found(void **state)
{
    struct findings *findings = free_node(state, CAPACITY_ON_DEMAND, CATEGORY_STARTING, 0);
    assert_non_null(of_rule(findings, RULE_NODE_STARTING));
}

/* Nodes of two, on each of which one GPU is free: two such nodes repacked free one node, $8 an
 * hour; one alone frees none. */
static struct findings *fragments(void **state, int nodes)
{
    struct ledger *ledger = *state;
    static const char *const names[] = {"n1", "n2", "n3"}, *const gpus[] = {"GPU-1", "GPU-2",
                                                                            "GPU-3"};
    for (int i = 0; i < nodes; i++) {
        node(ledger, names[i], CAPACITY_ON_DEMAND, 0);
        neighbour(ledger, names[i]);
        stays(ledger,
              (struct stay){
                  .node = names[i], .device = gpus[i], .to = HOURS, .free_as = CATEGORY_STRANDED});
    }
    return findings_of(state);
}

static void repacking_frees_whole_nodes(void **state)
{
    const struct finding *finding = of_rule(fragments(state, 3), RULE_NODE_STRANDED);
    assert_non_null(finding);
    assert_dollars(finding->month, 3 * 2920);
    assert_dollars(finding->saving, 5840); /* one node, not one and a half */
}

static void one_stranded_gpu_frees_nothing(void **state)
{
    const struct finding *finding = of_rule(fragments(state, 1), RULE_NODE_STRANDED);
    assert_non_null(finding);
    assert_int_equal(finding->saving, 0);
}

/* Small services: 12 GiB, up to 12 % of the chip. Three of 2g.20gb fit on one H100. */
static struct findings *small_services(void **state, struct stay like)
{
    struct ledger *ledger = *state;
    static const char *const names[] = {"n1", "n2", "n3"},
                             *const gpus[] = {"GPU-1", "GPU-2", "GPU-3"},
                             *const workloads[] = {"Deployment/a", "Deployment/b", "Deployment/c"};
    for (int i = 0; i < 3; i++) {
        node(ledger, names[i], CAPACITY_ON_DEMAND, 0);
        neighbour(ledger, names[i]);
        like.node = names[i];
        like.device = gpus[i];
        like.workload = workloads[i];
        like.to = HOURS;
        stays(ledger, like);
    }
    return findings_of(state);
}

static void three_small_services_share_a_gpu(void **state)
{
    struct findings *findings = small_services(
        state, (struct stay){.type = WORKLOAD_INFERENCE, .u = 12, .e = 40, .mem_gib = 12});
    money_t sum = 0;
    size_t n = 0;
    for (size_t i = 0; i < findings->n; i++)
        if (findings->items[i].rule == RULE_MIG_FIT) {
            assert_true(str_starts(findings->items[i].what, STR("fits a MIG instance 2g.20gb")));
            sum += findings->items[i].saving;
            n++;
        }
    assert_int_equal(n, 3);
    assert_dollars(sum, 2 * 2920); /* two of three GPUs, whole ones */
}

/* 19 GiB and 10 % are 20.9: more than the 19.6 GiB of 2g.20gb. 3g.40gb go two on a GPU. */
static void memory_has_a_headroom(void **state)
{
    struct findings *findings = small_services(
        state, (struct stay){.type = WORKLOAD_INFERENCE, .u = 12, .e = 40, .mem_gib = 19});
    const struct finding *finding = of_rule(findings, RULE_MIG_FIT);
    assert_non_null(finding);
    assert_true(str_starts(finding->what, STR("fits a MIG instance 3g.40gb")));
    assert_dollars(finding->saving, 2920.0 / 3); /* one of three GPUs, a third each */
}

static const char *refusal_of(const struct findings *findings)
{
    assert_null(of_rule(findings, RULE_MIG_FIT));
    for (size_t i = 0; i < findings->refusals_n; i++)
        if (findings->refusals[i].rule == RULE_MIG_FIT)
            return findings->refusals[i].reason.p;
    fail_msg("nothing is refused");
    return NULL;
}

static void preallocated_memory_is_refused_with_the_reason(void **state)
{
    struct findings *findings = small_services(
        state, (struct stay){.type = WORKLOAD_INFERENCE, .u = 12, .e = 40, .mem_gib = 72});
    assert_non_null(strstr(refusal_of(findings), "KV-cache"));
}

static void training_is_refused(void **state)
{
    struct findings *findings = small_services(
        state, (struct stay){.type = WORKLOAD_TRAINING, .u = 12, .e = 40, .mem_gib = 12});
    assert_non_null(strstr(refusal_of(findings), "training"));
}

static void a_gpu_without_mig_is_refused(void **state)
{
    struct findings *findings = small_services(
        state,
        (struct stay){
            .type = WORKLOAD_INFERENCE, .model = "Tesla T4", .u = 12, .e = 40, .mem_gib = 2});
    assert_non_null(strstr(refusal_of(findings), "no MIG"));
}

static void without_memory_or_sm_activity_no_slice_is_advised(void **state)
{
    struct findings *findings =
        small_services(state, (struct stay){.type = WORKLOAD_INFERENCE, .u = 12, .e = 40});
    assert_non_null(strstr(refusal_of(findings), "memory is not known"));
}

static void a_pod_of_two_gpus_is_refused(void **state)
{
    struct ledger *ledger = *state;
    node(ledger, "n1", CAPACITY_ON_DEMAND, 0);
    for (int gpu = 0; gpu < 2; gpu++)
        stays(ledger, (struct stay){.node = "n1",
                                    .device = gpu ? "GPU-2" : "GPU-1",
                                    .workload = "Deployment/chat",
                                    .type = WORKLOAD_INFERENCE,
                                    .to = HOURS,
                                    .u = 12,
                                    .e = 40,
                                    .mem_gib = 9});
    struct findings *findings = findings_of(state);
    assert_null(of_rule(findings, RULE_MIG_FIT));
    assert_non_null(strstr(findings->refusals[0].reason.p, "across GPUs"));
}

/* Four replicas at 12 %: at 60 % one carries the load, three of four go. */
static void replicas_that_are_little_used_can_go(void **state)
{
    struct ledger *ledger = *state;
    static const char *const nodes[] = {"n1", "n2"},
                             *const gpus[] = {"GPU-1", "GPU-2", "GPU-3", "GPU-4"},
                             *const pods[] = {"a", "b", "c", "d"};
    node(ledger, "n1", CAPACITY_ON_DEMAND, 0);
    node(ledger, "n2", CAPACITY_ON_DEMAND, 0);
    for (int i = 0; i < 4; i++)
        stays(ledger, (struct stay){.node = nodes[i / 2],
                                    .device = gpus[i],
                                    .workload = "Deployment/api",
                                    .pod = pods[i],
                                    .type = WORKLOAD_INFERENCE,
                                    .to = HOURS,
                                    .u = 12,
                                    .e = 40,
                                    .mem_gib = 72});
    const struct finding *finding = of_rule(findings_of(state), RULE_LOW_USE);
    assert_non_null(finding);
    assert_dollars(finding->saving, 3 * 2920);
    assert_int_equal(finding->confidence, CONFIDENCE_LOW);
}

static void one_little_used_training_claims_nothing(void **state)
{
    struct findings *findings = with_one(
        state,
        (struct stay){
            .workload = "Job/slow", .type = WORKLOAD_TRAINING, .u = 17, .e = 70, .mem_gib = 40});
    const struct finding *finding = of_rule(findings, RULE_TRAINING_USE);
    assert_non_null(finding);
    assert_int_equal(finding->saving, 0);
    assert_non_null(strstr(finding->action.p, "larger batch"));
}

static void dollars_without_a_team_are_named(void **state)
{
    struct findings *findings = with_one(
        state,
        (struct stay){
            .workload = "Job/x", .type = WORKLOAD_TRAINING, .owner = "unowned", .u = 80, .e = 99});
    assert_int_equal(findings->n, 1);
    const struct finding *finding = of_rule(findings, RULE_UNOWNED);
    assert_non_null(finding);
    assert_dollars(finding->window_cost, 672);
    assert_int_equal(finding->saving, 0);
}

static void unpriced_nodes_are_named_and_cost_nothing(void **state)
{
    struct ledger *ledger = *state;
    node(ledger, "n1", CAPACITY_ON_DEMAND, FLAG_UNPRICED);
    stays(ledger, (struct stay){.node = "n1",
                                .device = "GPU-1",
                                .workload = "Job/x",
                                .type = WORKLOAD_TRAINING,
                                .to = HOURS,
                                .u = 80,
                                .e = 99,
                                .flags = FLAG_UNPRICED});
    struct findings *findings = findings_of(state);
    assert_int_equal(findings->n, 1);
    assert_non_null(of_rule(findings, RULE_UNPRICED));
}

/* An idle service of four replicas is found idle; what it would save by fewer replicas or slices is
 * not added to that. All of it costs 4 x $2,920, and no more is ever saved. */
static void no_dollar_is_claimed_twice(void **state)
{
    struct findings *findings = small_services(
        state, (struct stay){.type = WORKLOAD_INFERENCE, .u = 1, .e = 1, .mem_gib = 12});
    assert_non_null(of_rule(findings, RULE_IDLE_WORKLOAD));
    const struct finding *slice = of_rule(findings, RULE_MIG_FIT);
    assert_non_null(slice);
    assert_true(slice->joined.n > 0);
    assert_true(findings_saving(findings) <= 3 * 2920 * USD);
}

/* The node is paid for anyway: an idle workload on it is found, and saves nothing. */
static void on_reserved_nodes_nothing_is_saved(void **state)
{
    struct ledger *ledger = *state;
    node(ledger, "n1", CAPACITY_RESERVED, 0);
    neighbour(ledger, "n1");
    stays(ledger, (struct stay){
                      .node = "n1", .device = "GPU-1", .workload = "Deployment/rank", .to = HOURS});
    const struct finding *finding = of_rule(findings_of(state), RULE_IDLE_WORKLOAD);
    assert_non_null(finding);
    assert_dollars(finding->month, 2920);
    assert_int_equal(finding->saving, 0);
    assert_non_null(strstr(finding->joined.p, "reserved"));
}

static void ids_are_the_same_every_day(void **state)
{
    struct findings *findings = with_one(state, (struct stay){.workload = "Deployment/rank"});
    struct findings *again = recommend(findings->books, "USD");
    assert_int_equal(again->n, findings->n);
    assert_true(str_eq(again->items[0].id, findings->items[0].id));
    findings_free(again);
}

#define with_ledger(test) cmocka_unit_test_setup_teardown(test, ledger_new, ledger_free)
int main(void)
{
    const struct CMUnitTest tests[] = {
        with_ledger(good_citizens_raise_nothing),
        with_ledger(an_idle_workload_is_found),
        with_ledger(a_workload_idle_for_two_days_is_not_to_be_stopped),
        with_ledger(a_workload_with_few_kernels_is_not_to_be_stopped),
        with_ledger(pauses_of_a_training_are_not_idleness),
        with_ledger(unobserved_time_is_in_use),
        with_ledger(a_workload_that_is_gone_is_not_found),
        with_ledger(an_idle_notebook_is_culled),
        with_ledger(a_notebook_at_work_is_left_alone),
        with_ledger(a_notebook_without_samples_is_left_alone),
        with_ledger(a_hung_job_looks_busy),
        with_ledger(four_hours_of_spinning_are_too_short),
        with_ledger(without_sm_activity_nothing_is_called_useless),
        with_ledger(a_stuck_counter_proves_nothing),
        with_ledger(an_empty_node_is_removed),
        with_ledger(a_reserved_empty_node_saves_nothing),
        with_ledger(a_node_empty_for_some_hours_is_left_alone),
        with_ledger(a_free_node_without_telemetry_is_not_called_empty),
        with_ledger(a_cordoned_node_is_found),
        with_ledger(lost_gpus_are_found),
        with_ledger(slices_without_an_instance_save_nothing_by_themselves),
        with_ledger(slow_starts_are_found),
        with_ledger(repacking_frees_whole_nodes),
        with_ledger(one_stranded_gpu_frees_nothing),
        with_ledger(three_small_services_share_a_gpu),
        with_ledger(memory_has_a_headroom),
        with_ledger(preallocated_memory_is_refused_with_the_reason),
        with_ledger(training_is_refused),
        with_ledger(a_gpu_without_mig_is_refused),
        with_ledger(without_memory_or_sm_activity_no_slice_is_advised),
        with_ledger(a_pod_of_two_gpus_is_refused),
        with_ledger(replicas_that_are_little_used_can_go),
        with_ledger(one_little_used_training_claims_nothing),
        with_ledger(dollars_without_a_team_are_named),
        with_ledger(unpriced_nodes_are_named_and_cost_nothing),
        with_ledger(no_dollar_is_claimed_twice),
        with_ledger(on_reserved_nodes_nothing_is_saved),
        with_ledger(ids_are_the_same_every_day),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
