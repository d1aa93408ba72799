/* No dollar twice: on random fleets, whatever the rules find, what all findings save together is
 * never more than what the GPUs cost; on no GPU and on no reserved node either. */
#include "../../lib/hand_ledger.h"

#include "../../lib/unit.h"

#define GPUS_MAX 64
#define ROUNDS 40
#define GPU_USD 4

struct fleet {
    struct random random;
    struct ledger *ledger;
    size_t nodes;
    char names[GPUS_MAX][32], devices[2 * GPUS_MAX][64];
};

static bool chance(struct random *random, int percent)
{
    return random_below(random, 100) < percent;
}

/* What stands on a GPU, one after the other, with holes; some of it up to the end. */
static void add_stays(struct fleet *fleet, const char *node_name, const char *device)
{
    static const char *const owners[] = {"search", "vision", "unowned", "platform"};
    static const char *const kinds[] = {"Deployment", "Job", "StatefulSet", "Pod"};
    static const char *const models[] = {NULL, "NVIDIA A100-SXM4-80GB", "Tesla T4", "Strange"};
    static const enum category free_as[] = {CATEGORY_EMPTY,         CATEGORY_STRANDED,
                                            CATEGORY_CORDONED,      CATEGORY_STARTING,
                                            CATEGORY_UNPARTITIONED, CATEGORY_UNHEALTHY};
    struct random *random = &fleet->random;
    for (int hour = (int)random_below(random, 40); hour < HOURS;) {
        int to = chance(random, 60) ? HOURS : hour + 1 + (int)random_below(random, HOURS - hour);
        char workload[32];
        snprintf(workload, sizeof workload, "%s/w%d", kinds[random_below(random, 4)],
                 (int)random_below(random, 12));
        int u = chance(random, 50) ? 0 : (int)random_below(random, 100);
        struct stay stay = {.node = node_name,
                            .device = device,
                            .from = hour,
                            .to = to,
                            .model = models[random_below(random, 4)],
                            .free_as = free_as[random_below(random, 6)]};
        if (chance(random, 70)) {
            stay.workload = workload;
            stay.owner = owners[random_below(random, 4)];
            stay.type = (enum workload_type)random_below(random, WORKLOAD_TYPE_COUNT);
            stay.u = chance(random, 5) ? -1 : u;
            stay.e = chance(random, 30) ? 99 : u;
            stay.sm_hidden = chance(random, 10);
            stay.mem_gib = random_below(random, 80);
            stay.watts = (int)random_below(random, 700);
            stay.tensor = (int)random_below(random, 50);
            stay.requests = random_below(random, 3);
        }
        stays(fleet->ledger, stay);
        hour = to + (chance(random, 20) ? (int)random_below(random, 5) : 0);
    }
}

static void build(struct fleet *fleet)
{
    fleet->nodes = 1 + (size_t)random_below(&fleet->random, 12);
    for (size_t n = 0; n < fleet->nodes; n++) {
        enum capacity_type capacity =
            (enum capacity_type)random_below(&fleet->random, CAPACITY_UNKNOWN + 1);
        snprintf(fleet->names[n], sizeof fleet->names[n], "n%zu", n);
        node(fleet->ledger, fleet->names[n], capacity, 0);
        for (size_t g = 0; g < 2; g++) {
            char *device = fleet->devices[2 * n + g];
            snprintf(device, sizeof fleet->devices[0], "GPU-%zu-%zu", n, g);
            add_stays(fleet, fleet->names[n], device);
        }
    }
}

/* Hosts and loads, so that the rules that read them speak too. */
static void add_loads(struct fleet *fleet, struct books *books)
{
    struct random *random = &fleet->random;
    for (size_t i = 0; i < books->nodes_n; i++) {
        struct book_host *host = &books->nodes[i].host;
        host->cpu_seen_ms = HOURS * HOUR_MS;
        host->cpu = HOURS * HOUR_MS * (NANO / 100) * random_below(random, 100);
        host->cpu_max = NANO / 100 * random_below(random, 101);
        host->cpus = 96;
        host->net_seen_ms = HOURS * HOUR_MS;
        host->requested_mcpu = random_below(random, 16000);
        host->requested_memory_bytes = random_below(random, INT64_C(64) << 30);
        host->cpu_pods = (int32_t)random_below(random, 3);
        host->gpu_taint = chance(random, 50) ? MACHINE_TAINT_NONE : MACHINE_TAINT_PRESENT;
    }
    for (size_t i = 0; i < books->workloads_n; i++) {
        struct book_load *load = &books->workloads[i].load;
        if (chance(random, 50))
            continue;
        load->serving_seen_ms = HOURS * HOUR_MS;
        load->requests = chance(random, 50) ? 0 : 1000;
        load->tokens = -1;
        load->running_max = load->waiting_max = 0;
        load->served_until = chance(random, 50) ? TIME_MIN : books->window.to - 100 * HOUR_MS;
    }
}

struct sum {
    name_t node, device;
    money_t cost, saved;
    time_ms first;
    bool reserved;
};

static struct sum *sum_of(struct sum *sums, size_t *n, name_t node_name, name_t device)
{
    for (size_t i = 0; i < *n; i++)
        if (sums[i].node == node_name && sums[i].device == device)
            return &sums[i];
    sums[*n] = (struct sum){.node = node_name, .device = device, .first = TIME_MAX};
    return &sums[(*n)++];
}

/* Costs of the GPUs from the rows themselves, not from the books. */
static size_t costs(const struct ledger *ledger, struct sum *sums)
{
    size_t n = 0;
    for (size_t i = 0; i < ledger->batch.rows_n; i++) {
        const struct row *row = &ledger->batch.rows[i];
        struct sum *sum = sum_of(sums, &n, row->key.node, row->key.device);
        sum->cost += row->cost;
        sum->first = row->key.hour < sum->first ? row->key.hour : sum->first;
    }
    for (size_t i = 0; i < ledger->batch.node_hours_n; i++)
        for (size_t k = 0; k < n; k++)
            if (sums[k].node == ledger->batch.node_hours[i].node)
                sums[k].reserved = ledger->batch.node_hours[i].capacity == CAPACITY_RESERVED;
    return n;
}

static void check(const struct ledger *ledger, const struct findings *findings)
{
    struct sum *sums = mem_zalloc(2 * GPUS_MAX, sizeof *sums);
    size_t n = costs(ledger, sums);
    money_t total = 0, all = 0;
    for (size_t i = 0; i < findings->n; i++) {
        const struct finding *finding = &findings->items[i];
        money_t kept = 0, asked = 0;
        for (size_t k = 0; k < finding->claims_n; k++) {
            const struct claim *claim = &finding->claims[k];
            const struct book_cell *cell = &findings->books->cells[claim->cell];
            sum_of(sums, &n, cell->node, cell->device)->saved += claim->saved;
            assert_true(claim->saved >= 0 && claim->saved <= claim->month);
            kept += claim->saved;
            asked += claim->month;
        }
        if (finding->saving != kept || kept > asked)
            fail_msg("%.*s saves another sum than its claims", STR_ARG(finding->id));
        if (finding->exempt.n)
            assert_int_equal(finding->saving, 0);
        total += finding->saving;
        for (size_t k = 0; k < i; k++)
            if (str_eq(findings->items[k].id, finding->id))
                fail_msg("%.*s twice", STR_ARG(finding->id));
        if (i && !finding->exempt.n)
            assert_true(findings->items[i - 1].saving >= finding->saving);
    }
    for (size_t i = 0; i < n; i++) {
        time_ms ms = H0 + HOURS * HOUR_MS - sums[i].first;
        money_t month = (money_t)((wide_t)sums[i].cost * MONTH_HOURS * HOUR_MS / ms) + 1;
        if (sums[i].saved > month || (sums[i].reserved && sums[i].saved))
            fail_msg("%s saves %.2f of %.2f a month", names_text(ledger->names, sums[i].device).p,
                     (double)sums[i].saved / 1e9, (double)month / 1e9);
        all += month;
    }
    assert_int_equal(total, findings_saving(findings));
    assert_true(total <= all);
    free(sums);
}

static void nothing_is_saved_twice_on_random_fleets(void **state)
{
    struct fleet fleet = {.random = random_new()};
    size_t found = 0, rules_seen[RULE_COUNT] = {0};
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        void *ledger;
        struct exemptions exemptions = {0};
        ledger_new(&ledger);
        fleet.ledger = ledger;
        build(&fleet);
        check(ledger, findings_of(&ledger));
        add_loads(&fleet, fleet.ledger->books);
        struct findings *again = recommend(fleet.ledger->books, "USD");
        check(ledger, again);
        found += again->n;
        for (size_t i = 0; i < again->n; i++)
            rules_seen[again->items[i].rule]++;
        findings_free(again);
        must(exemptions_add(&exemptions, STR("rule=idle-*"), STR("test"), &failure));
        again = recommend_except(fleet.ledger->books, "USD", &exemptions);
        check(ledger, again);
        findings_free(again);
        exemptions_release(&exemptions);
        ledger_free(&ledger);
    }
    size_t kinds = 0;
    for (int r = 0; r < RULE_COUNT; r++)
        kinds += rules_seen[r] > 0;
    print_message("%zu findings of %zu rules\n", found, kinds);
    assert_true(kinds >= 8 && found >= ROUNDS);
}

/* $4 an hour: a GPU that is cordoned for 138 h, then idle in a workload's hands for 30, costs
 * $2,920 a month and not twice as much. */
static void cells_one_after_the_other_share_their_gpu(void **state)
{
    struct ledger *ledger = *state;
    ledger->batch.hours = (struct span){H0, H0 + HOURS * HOUR_MS};
    node(ledger, "n1", CAPACITY_ON_DEMAND, 0);
    for (int g = 0; g < 2; g++) {
        const char *device = g ? "GPU-1" : "GPU-2";
        stays(ledger,
              (struct stay){
                  .node = "n1", .device = device, .to = HOURS - 30, .free_as = CATEGORY_CORDONED});
        stays(ledger, (struct stay){.node = "n1",
                                    .device = device,
                                    .workload = "Deployment/rank",
                                    .from = HOURS - 30,
                                    .to = HOURS});
    }
    struct findings *findings = findings_of(state);
    check(ledger, findings);
    const struct finding *idle = of_rule(findings, RULE_IDLE_WORKLOAD);
    assert_non_null(idle);
    assert_dollars(idle->saving, 2 * 2920);
    assert_dollars(findings_saving(findings), 2 * 2920);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_saved_twice_on_random_fleets),
        cmocka_unit_test_setup_teardown(cells_one_after_the_other_share_their_gpu, ledger_new,
                                        ledger_free),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
