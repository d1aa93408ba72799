/* Ledgers made by hand for the rules of insight/: whole GPUs at $4 an hour, on nodes of two; a week
 * of 168 hours. A month is 730 hours: $2,920 a GPU. */
#ifndef GPUTALLY_TESTS_HAND_LEDGER_H
#define GPUTALLY_TESTS_HAND_LEDGER_H

#include "insight/recommend.h"
#include "unit.h"

#define H0 (INT64_C(1795996800000)) /* 2026-11-30T00:00Z */
#define HOURS 168
#define USD NANO

struct ledger {
    struct names *names;
    struct row_batch batch;
    struct store *store;
    struct books *books;
    struct findings *findings;
};

static inline int ledger_new(void **state)
{
    struct ledger *ledger = mem_zalloc(1, sizeof *ledger);
    ledger->names = names_new();
    ledger->batch = (struct row_batch){.names = ledger->names, .hours = {H0, H0 + HOURS * HOUR_MS}};
    *state = ledger;
    return 0;
}

static inline int ledger_free(void **state)
{
    struct ledger *ledger = *state;
    findings_free(ledger->findings);
    books_free(ledger->books);
    store_close(ledger->store);
    row_batch_release(&ledger->batch);
    names_free(ledger->names);
    free(ledger);
    return 0;
}

/* What stands on a GPU from hour `from` to hour `to`. */
struct stay {
    const char *node, *device, *workload, *pod; /* workload NULL: free */
    const char *owner, *model;                  /* NULL: "search", "NVIDIA H100 80GB HBM3" */
    enum workload_type type;
    int from, to;
    int u, e;              /* percent; u -1: not observed */
    int sm_hidden;         /* SM activity is not exported */
    int64_t mem_gib;       /* peak */
    int64_t requests;      /* that its counter grew by, an hour */
    int watts;             /* mean power; 0: not exported */
    int tensor;            /* percent + 1; 0: not exported */
    enum category free_as; /* where it is free */
    uint32_t flags;
};

static inline name_t put(struct ledger *ledger, const char *text)
{
    return text ? names_put(ledger->names, str_of(text)) : NAME_NONE;
}

static inline void fill_held(struct row *row, const struct stay *stay)
{
    row->held_ms = row->gpu_held_num = HOUR_MS;
    if (stay->u < 0) {
        row->category[CATEGORY_UNOBSERVED] = row->cost;
        return;
    }
    row->observed_ms = row->gpu_observed_num = HOUR_MS;
    row->u = row->gpu_u_num = HOUR_MS * (NANO / 100) * stay->u;
    row->e = HOUR_MS * (NANO / 100) * stay->e;
    if (!stay->sm_hidden) {
        row->measure[MEASURE_SM] = row->u;
        row->measure_seen_ms[MEASURE_SM] = HOUR_MS;
    }
    if (stay->tensor) {
        row->measure[MEASURE_TENSOR] = HOUR_MS * (NANO / 100) * (stay->tensor - 1);
        row->measure_seen_ms[MEASURE_TENSOR] = HOUR_MS;
    }
    row->energy_mj = HOUR_MS * stay->watts;
    row->work[WORK_REQUESTS] = stay->requests;
    int bin = stay->u >= 100 ? HISTOGRAM_BINS - 1 : stay->u / 5;
    row->hist_u_num[bin] = HOUR_MS;
    enum state state = stay->u >= 30                ? STATE_BUSY
                       : stay->u < 5 && stay->e < 5 ? STATE_IDLE
                                                    : STATE_LOW;
    row->state_ms[state] = row->gpu_state_num[state] = HOUR_MS;
    row->category[CATEGORY_USED] = row->cost / 100 * stay->u;
    row->category[state == STATE_IDLE ? CATEGORY_HELD_IDLE : CATEGORY_SLACK] =
        row->cost - row->category[CATEGORY_USED];
    if (stay->mem_gib) {
        row->mem_max_bytes = stay->mem_gib << 30;
        row->mem_total_bytes = INT64_C(80) << 30;
        row->mem_seen_ms = HOUR_MS;
    }
}

static inline void stays(struct ledger *ledger, struct stay stay)
{
    for (int h = stay.from; h < stay.to; h++) {
        struct row row;
        memset(&row, 0, sizeof row);
        row.key.hour = H0 + h * HOUR_MS;
        row.key.node = put(ledger, stay.node);
        row.key.device = put(ledger, stay.device);
        row.facts.model = put(ledger, stay.model ? stay.model : "NVIDIA H100 80GB HBM3");
        row.facts.instance_type = put(ledger, "h100x2");
        row.facts.pool = put(ledger, "gpu");
        row.cost = stay.flags & FLAG_UNPRICED ? 0 : 4 * USD;
        row.gpu_num = HOUR_MS;
        row.share_den = 1;
        row.flags = stay.flags;
        if (stay.workload) {
            row.key.namespace = put(ledger, "ns");
            row.key.pod = put(ledger, stay.pod ? stay.pod : stay.workload);
            row.facts.workload = put(ledger, stay.workload);
            row.facts.owner = put(ledger, stay.owner ? stay.owner : "search");
            row.facts.type = stay.type;
            fill_held(&row, &stay);
        } else {
            row.category[stay.free_as] = row.cost;
        }
        mem_push(ledger->batch.rows, ledger->batch.rows_n, ledger->batch.rows_room, row);
    }
}

static inline void node(struct ledger *ledger, const char *name, enum capacity_type capacity,
                        uint32_t flags)
{
    for (int h = 0; h < HOURS; h++) {
        struct node_hour hour = {.hour = H0 + h * HOUR_MS,
                                 .node = put(ledger, name),
                                 .instance_type = put(ledger, "h100x2"),
                                 .pool = put(ledger, "gpu"),
                                 .capacity = capacity,
                                 .price = flags & FLAG_UNPRICED ? 0 : 8 * USD,
                                 .booked = flags & FLAG_UNPRICED ? 0 : 8 * USD,
                                 .up_ms = HOUR_MS,
                                 .gpus = 2,
                                 .flags = flags};
        mem_push(ledger->batch.node_hours, ledger->batch.node_hours_n,
                 ledger->batch.node_hours_room, hour);
    }
}

/* A busy neighbour, so that a node of two is whole and raises nothing itself. */
static inline void neighbour(struct ledger *ledger, const char *name)
{
    char device[32], workload[32];
    snprintf(device, sizeof device, "GPU-%s-busy", name);
    snprintf(workload, sizeof workload, "Job/%s-busy", name);
    stays(ledger, (struct stay){.node = name,
                                .device = device,
                                .workload = workload,
                                .type = WORKLOAD_TRAINING,
                                .to = HOURS,
                                .u = 90,
                                .e = 99});
}

static inline struct findings *findings_of(void **state)
{
    struct ledger *ledger = *state;
    must(store_open(":memory:", STORE_WRITE, ledger->names, &ledger->store, &failure));
    must(store_begin(ledger->store, &failure));
    must(store_append(ledger->store, &ledger->batch, &failure));
    must(store_commit(ledger->store, NULL, &failure));
    must(books_read(ledger->store, ledger->batch.hours, NULL, &ledger->books, &failure));
    ledger->findings = recommend(ledger->books, "USD");
    return ledger->findings;
}

static inline const struct finding *of_rule(const struct findings *findings, enum rule_id rule)
{
    for (size_t i = 0; i < findings->n; i++)
        if (findings->items[i].rule == rule)
            return &findings->items[i];
    return NULL;
}

static inline void assert_dollars(money_t amount, double dollars)
{
    if (llabs(amount - (money_t)(dollars * 1e9)) > USD / 100)
        fail_msg("%.2f, expected %.2f", (double)amount / 1e9, dollars);
}

/* One workload on one GPU of a node, beside a busy one. */
static inline struct findings *with_one(void **state, struct stay stay)
{
    struct ledger *ledger = *state;
    stay.node = "n1";
    stay.device = "GPU-1";
    if (!stay.to)
        stay.to = HOURS;
    node(ledger, "n1", CAPACITY_ON_DEMAND, 0);
    stays(ledger, stay);
    neighbour(ledger, "n1");
    return findings_of(state);
}

#endif
