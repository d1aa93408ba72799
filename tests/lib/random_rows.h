/* Random ledger rows for tests of the store and of queries: every field is filled, most with what a
 * ledger would hold and some with extremes, since the store must give back whatever it was given.
 */
#ifndef GPUTALLY_TESTS_RANDOM_ROWS_H
#define GPUTALLY_TESTS_RANDOM_ROWS_H

#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "ledger/row.h"

struct dice {
    uint64_t s;
};

static inline uint64_t dice_next(struct dice *dice)
{
    uint64_t z = dice->s += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}
static inline uint64_t dice_below(struct dice *dice, uint64_t n)
{
    return dice_next(dice) % n;
}
static inline bool dice_chance(struct dice *dice, unsigned percent)
{
    return dice_below(dice, 100) < percent;
}

/* GPUTALLY_SEED, or the clock; printed, so that a failure can be run again. */
static inline uint64_t dice_seed(void)
{
    const char *text = getenv("GPUTALLY_SEED");
    uint64_t seed = (uint64_t)time(NULL) * 1000003u ^ (uint64_t)getpid();
    if (text)
        seed = strtoull(text, NULL, 10);
    fprintf(stderr, "GPUTALLY_SEED=%llu\n", (unsigned long long)seed);
    return seed;
}

static inline name_t random_name(struct dice *dice, struct names *names, const char *stem,
                                 unsigned kinds)
{
    char text[64];
    snprintf(text, sizeof text, "%s%llu", stem, (unsigned long long)dice_below(dice, kinds));
    return names_put(names, str_of(text));
}

static inline int64_t random_amount(struct dice *dice)
{
    switch (dice_below(dice, 8)) {
    case 0:
        return 0;
    case 1:
        return (int64_t)dice_below(dice, 1000);
    case 2: /* beyond what sums could hold, but a single row may */
        return dice_chance(dice, 1) ? INT64_MAX >> dice_below(dice, 20)
                                    : (int64_t)dice_below(dice, INT64_C(1) << 40);
    case 3:
        return 3600000;
    default:
        return (int64_t)dice_below(dice, 3600001);
    }
}

/* A row of an hour, node and slot. */
static inline void random_row(struct dice *dice, struct names *names, struct row *row)
{
    struct row_key key = row->key;
    memset(row, 0, sizeof *row);
    row->key = key;
    row->facts = (struct row_facts){
        .model = random_name(dice, names, "NVIDIA H", 3),
        .instance_type = random_name(dice, names, "type-", 3),
        .pool = dice_chance(dice, 30) ? NAME_NONE : random_name(dice, names, "pool-", 3),
        .region = random_name(dice, names, "region-", 2),
        .cloud = random_name(dice, names, "cloud-", 2),
        .capacity = (enum capacity_type)dice_below(dice, CAPACITY_TYPE_COUNT)};
    if (key.pod != NAME_NONE) {
        row->facts.workload =
            random_name(dice, names, dice_chance(dice, 50) ? "Job/j" : "Pod/p", 9);
        row->facts.owner = random_name(dice, names, "team-", 4);
        row->facts.type = (enum workload_type)(1 + dice_below(dice, WORKLOAD_TYPE_COUNT - 1));
    }
    row->flags = dice_chance(dice, 70) ? 0 : (uint32_t)dice_below(dice, 1u << FLAG_COUNT);
    for (int i = 0; i < CATEGORY_COUNT; i++)
        if (dice_chance(dice, 40)) {
            row->category[i] = (int64_t)dice_below(dice, INT64_C(5) * NANO);
            row->cost += row->category[i];
        }
    row->share_den = dice_chance(dice, 70) ? 1 : 1 + (uint32_t)dice_below(dice, SHARE_DEN_MAX);
    int64_t *numbers[] = {&row->held_ms,
                          &row->observed_ms,
                          &row->gpu_num,
                          &row->gpu_held_num,
                          &row->gpu_observed_num,
                          &row->u,
                          &row->e,
                          &row->mem_seen_ms,
                          &row->mem_max_bytes,
                          &row->mem_total_bytes,
                          &row->energy_mj,
                          &row->gpu_u_num};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        *numbers[i] = random_amount(dice);
    /* What is summed in 128 bits may be large, hours are hours. */
    row->gpu_num %= 3600001 * (int64_t)row->share_den;
    for (int i = 0; i < STATE_COUNT; i++) {
        row->state_ms[i] = random_amount(dice);
        row->gpu_state_num[i] = random_amount(dice);
    }
    for (int i = 0; i < HISTOGRAM_BINS; i++) {
        row->hist_u_num[i] = dice_chance(dice, 20) ? random_amount(dice) : 0;
        row->hist_e_num[i] = dice_chance(dice, 20) ? random_amount(dice) : 0;
    }
    for (int i = 0; i < MEASURE_COUNT; i++) {
        row->measure[i] = random_amount(dice);
        row->measure_seen_ms[i] = random_amount(dice);
    }
    row->mem_byte_ms = dice_chance(dice, 2) ? UINT64_MAX : (uint64_t)random_amount(dice);
    for (int i = 0; i < WORK_COUNT; i++)
        row->work[i] = dice_chance(dice, 20) ? (int64_t)dice_below(dice, 1000000) : 0;
}

/* Rows and the node-hour of one node and hour: GPUs held by nobody, one or several. */
static inline void random_node_hour(struct dice *dice, struct row_batch *batch, time_ms hour,
                                    name_t cluster, name_t node)
{
    struct names *names = batch->names;
    struct node_hour of_node = {.hour = hour,
                                .cluster = cluster,
                                .node = node,
                                .instance_type = random_name(dice, names, "type-", 3),
                                .pool = random_name(dice, names, "pool-", 3),
                                .region = random_name(dice, names, "region-", 2),
                                .cloud = random_name(dice, names, "cloud-", 2),
                                .capacity = (enum capacity_type)dice_below(dice, 4),
                                .price = (int64_t)dice_below(dice, 100 * NANO),
                                .up_ms = random_amount(dice),
                                .gpus = (int32_t)dice_below(dice, 9),
                                .flags = (uint32_t)dice_below(dice, 1u << FLAG_COUNT),
                                .price_source = random_name(dice, names, "prices.csv:", 5)};
    unsigned gpus = (unsigned)dice_below(dice, 5);
    for (unsigned g = 0; g < gpus; g++) {
        char text[96];
        struct str node_text = names_text(names, node);
        snprintf(text, sizeof text, "GPU-%.*s-%u", STR_ARG(node_text), g);
        name_t device = names_put(names, str_of(text));
        unsigned holders = (unsigned)dice_below(dice, 4);
        for (unsigned h = 0; h < (holders ? holders : 1); h++) {
            struct row row = {
                .key = {.hour = hour, .cluster = cluster, .node = node, .device = device}};
            if (dice_chance(dice, 30))
                row.key.instance = random_name(dice, names, "", 7);
            if (holders) {
                row.key.namespace = random_name(dice, names, "ns-", 4);
                snprintf(text, sizeof text, "pod-%u-%llu", h,
                         (unsigned long long)dice_below(dice, 20));
                row.key.pod = names_put(names, str_of(text));
                if (dice_chance(dice, 80)) {
                    snprintf(text, sizeof text, "%08llx-1111-4222-8333-%012llx",
                             (unsigned long long)dice_below(dice, 1u << 20),
                             (unsigned long long)dice_below(dice, 9));
                    row.key.pod_uid = names_put(names, str_of(text));
                }
                row.key.container = random_name(dice, names, "main", 2);
            }
            random_row(dice, names, &row);
            bool twice = false;
            for (size_t i = batch->rows_n; i-- > 0 && batch->rows[i].key.hour == hour && !twice;)
                twice = row_key_cmp(names, &batch->rows[i].key, &row.key) == 0;
            if (twice)
                continue;
            of_node.booked += row.cost;
            mem_push(batch->rows, batch->rows_n, batch->rows_room, row);
        }
    }
    mem_push(batch->node_hours, batch->node_hours_n, batch->node_hours_room, of_node);
}

/* Field by field: padding is of chance. */
static inline bool same_row(const struct row *a, const struct row *b)
{
#define SAME(field) (memcmp(&a->field, &b->field, sizeof a->field) == 0)
    return SAME(key.hour) && SAME(key.cluster) && SAME(key.node) && SAME(key.device) &&
           SAME(key.instance) && SAME(key.namespace) && SAME(key.pod) && SAME(key.pod_uid) &&
           SAME(key.container) && SAME(facts.model) && SAME(facts.workload) && SAME(facts.owner) &&
           SAME(facts.instance_type) && SAME(facts.pool) && SAME(facts.region) &&
           SAME(facts.cloud) && SAME(facts.capacity) && SAME(facts.type) && SAME(flags) &&
           SAME(cost) && SAME(category) && SAME(held_ms) && SAME(observed_ms) && SAME(state_ms) &&
           SAME(share_den) && SAME(gpu_num) && SAME(gpu_held_num) && SAME(gpu_observed_num) &&
           SAME(gpu_state_num) && SAME(hist_u_num) && SAME(hist_e_num) && SAME(gpu_u_num) &&
           SAME(u) && SAME(e) && SAME(measure) && SAME(measure_seen_ms) && SAME(mem_byte_ms) &&
           SAME(mem_seen_ms) && SAME(mem_max_bytes) && SAME(mem_total_bytes) && SAME(energy_mj) &&
           SAME(work);
}
static inline bool same_node_hour(const struct node_hour *a, const struct node_hour *b)
{
    return SAME(hour) && SAME(cluster) && SAME(node) && SAME(instance_type) && SAME(pool) &&
           SAME(region) && SAME(cloud) && SAME(capacity) && SAME(price) && SAME(booked) &&
           SAME(up_ms) && SAME(gpus) && SAME(flags) && SAME(price_source);
#undef SAME
}

static inline int random_rows_by_key(const void *a, const void *b, void *names)
{
    const struct row *left = a, *right = b;
    return row_key_cmp(names, &left->key, &right->key);
}
static inline void random_rows_sort(struct row_batch *batch)
{
    if (batch->rows_n)
        qsort_r(batch->rows, batch->rows_n, sizeof *batch->rows, random_rows_by_key, batch->names);
}

#endif
