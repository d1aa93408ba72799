/* A day's or an hour's sums as a packed value, a group of columns. Nodes are in rollup_nodes.c. */
#include <stdlib.h>

#include "store/rollup.h"
#include "store/rollup_format.h"

#define FORMAT 1
#define SUMS_MAX (1u << 19)
#define WIDE_UNIT 1000000 /* most wide figures are ns that were ms */

/* Figures, as columns: 64 bits in one, 128 bits in three (rest of 10^6, low, high). */
#define MONEY(field, count_)                                                                       \
    {                                                                                              \
        offsetof(struct figures, field), count_, false                                             \
    }
#define WIDE(field, count_)                                                                        \
    {                                                                                              \
        offsetof(struct figures, field), count_, true                                              \
    }
static const struct {
    size_t at, count;
    bool wide;
} figure_fields[] = {
    MONEY(cost, 1),
    MONEY(category, CATEGORY_COUNT),
    MONEY(cost_held, 1),
    WIDE(gpu_ns, 1),
    WIDE(gpu_held_ns, 1),
    WIDE(gpu_observed_held_ns, 1),
    WIDE(gpu_observed_ns, 1),
    WIDE(gpu_state_held_ns, STATE_COUNT),
    WIDE(gpu_u_held, 1),
    WIDE(u_seen_held_ns, 1),
    WIDE(energy_mj, 1),
    WIDE(mem_byte_ms, 1),
    WIDE(mem_seen_ms, 1),
    MONEY(mem_max_bytes, 1),
    MONEY(work, WORK_COUNT),
    WIDE(flag_gpu_ns, FLAG_COUNT),
    MONEY(flag_cost, FLAG_COUNT),
    MONEY(rows, 1),
};
#define FIGURE_FIELDS (sizeof figure_fields / sizeof *figure_fields)
#define FIGURE_COLUMNS                                                                             \
    (1 + CATEGORY_COUNT + 1 + 3 * (4 + STATE_COUNT + 5) + 1 + WORK_COUNT + 3 * FLAG_COUNT +        \
     FLAG_COUNT + 1)

static const size_t key_names[] = {offsetof(struct rollup_sum, key.cluster),
                                   offsetof(struct rollup_sum, key.namespace),
                                   offsetof(struct rollup_sum, key.pod),
                                   offsetof(struct rollup_sum, facts.model),
                                   offsetof(struct rollup_sum, facts.workload),
                                   offsetof(struct rollup_sum, facts.owner),
                                   offsetof(struct rollup_sum, facts.instance_type),
                                   offsetof(struct rollup_sum, facts.pool),
                                   offsetof(struct rollup_sum, facts.region),
                                   offsetof(struct rollup_sum, facts.cloud)};
#define KEY_NAMES (sizeof key_names / sizeof *key_names)
#define SUM_COLUMNS (KEY_NAMES + 2 + FIGURE_COLUMNS)

/* A sum's key as it stands on disk, and where the sum is. */
struct sum_order {
    uint32_t ids[KEY_NAMES + 2]; /* names, capacity, type */
    uint32_t index;
};

static int by_ids(const void *a, const void *b)
{
    const struct sum_order *left = a, *right = b;
    for (size_t k = 0; k < KEY_NAMES + 2; k++)
        if (left->ids[k] != right->ids[k])
            return left->ids[k] < right->ids[k] ? -1 : 1;
    return 0;
}

static enum err order_sums(struct store *store, const struct rollup_sums *sums,
                           struct sum_order *order, struct error *err)
{
    for (size_t i = 0; i < sums->n; i++) {
        const struct rollup_sum *sum = &sums->items[i];
        order[i].index = (uint32_t)i;
        order[i].ids[KEY_NAMES] = (uint32_t)sum->facts.capacity;
        order[i].ids[KEY_NAMES + 1] = (uint32_t)sum->facts.type;
        for (size_t k = 0; k < KEY_NAMES; k++) {
            name_t name;
            memcpy(&name, (const char *)sum + key_names[k], sizeof name);
            enum err code = dictionary_put(store, name, &order[i].ids[k], err);
            if (code)
                return code;
        }
    }
    if (sums->n)
        qsort(order, sums->n, sizeof *order, by_ids);
    return ERR_OK;
}

/* The sums being packed, in order. */
struct ordered {
    const struct rollup_sum *sums;
    const struct sum_order *order;
    size_t n;
    int64_t *values; /* room for a column */
};

static const char *figures_of(const struct ordered *sums, size_t i)
{
    return (const char *)&sums->sums[sums->order[i].index].figures;
}

static void put_wide(struct group_writer *group, const struct ordered *sums, size_t at)
{
    for (int part = 0; part < 3; part++) {
        for (size_t i = 0; i < sums->n; i++) {
            wide_t v;
            memcpy(&v, figures_of(sums, i) + at, sizeof v);
            sums->values[i] = part == 0   ? (int64_t)(v % WIDE_UNIT)
                              : part == 1 ? (int64_t)(v / WIDE_UNIT)
                                          : (int64_t)((v / WIDE_UNIT) >> 64);
        }
        group_put(group, sums->values, sums->n, no_runs);
    }
}

static void put_figures(struct group_writer *group, const struct ordered *sums)
{
    for (size_t f = 0; f < FIGURE_FIELDS; f++)
        for (size_t k = 0; k < figure_fields[f].count; k++) {
            size_t at = figure_fields[f].at + k * (figure_fields[f].wide ? 16 : 8);
            if (figure_fields[f].wide) {
                put_wide(group, sums, at);
                continue;
            }
            for (size_t i = 0; i < sums->n; i++)
                memcpy(&sums->values[i], figures_of(sums, i) + at, sizeof *sums->values);
            group_put(group, sums->values, sums->n, no_runs);
        }
}

enum err rollup_pack_sums(struct store *store, const struct rollup_sums *packing,
                          struct strbuf *ret, struct error *err)
{
    size_t n = packing->n;
    struct sum_order *order = mem_alloc((n + 1) * sizeof *order);
    struct ordered sums = {packing->items, order, n, mem_alloc((n + 1) * sizeof(int64_t))};
    struct group_writer group = {0};
    enum err code = order_sums(store, packing, order, err);
    for (size_t k = 0; k < KEY_NAMES + 2 && !code; k++) {
        for (size_t i = 0; i < n; i++)
            sums.values[i] = order[i].ids[k];
        group_put(&group, sums.values, n, no_runs);
    }
    if (!code) {
        put_figures(&group, &sums);
        invariant(group.next == SUM_COLUMNS);
    }
    strbuf_clear(ret);
    strbuf_addc(ret, FORMAT);
    varint_put(ret, n);
    group_end(&group, ret);
    free(sums.values);
    free(order);
    return code;
}

bool rollup_get_names(const struct store *store, struct group_reader *group, void *items, size_t n,
                      size_t item_size, size_t at, int64_t *values)
{
    if (!group_get(group, values, n, no_runs))
        return false;
    for (size_t i = 0; i < n; i++) {
        name_t name;
        if (!dictionary_get(store, (uint64_t)values[i], &name))
            return false;
        memcpy((char *)items + i * item_size + at, &name, sizeof name);
    }
    return true;
}

static bool get_wide(struct group_reader *group, struct rollup_sum *sums, size_t n, size_t at,
                     int64_t *values)
{
    for (int part = 0; part < 3; part++) {
        if (group_skip_zero(group))
            continue;
        if (!group_get(group, values, n, no_runs))
            return false;
        for (size_t i = 0; i < n; i++) {
            char *field = (char *)&sums[i].figures + at;
            wide_t v, unit = part == 0 ? 1 : WIDE_UNIT;
            memcpy(&v, field, sizeof v);
            /* unsigned: damaged bytes may wrap, and must not trap */
            unsigned __int128 more = part == 2   ? (unsigned __int128)(uint64_t)values[i] << 64
                                     : part == 1 ? (unsigned __int128)(uint64_t)values[i]
                                                 : (unsigned __int128)(wide_t)values[i];
            v = (wide_t)((unsigned __int128)v + more * (unsigned __int128)unit);
            memcpy(field, &v, sizeof v);
        }
    }
    return true;
}

static bool get_figures(struct group_reader *group, struct rollup_sum *sums, size_t n,
                        int64_t *values)
{
    for (size_t f = 0; f < FIGURE_FIELDS; f++)
        for (size_t k = 0; k < figure_fields[f].count; k++) {
            size_t at = figure_fields[f].at + k * (figure_fields[f].wide ? 16 : 8);
            if (figure_fields[f].wide) {
                if (!get_wide(group, sums, n, at, values))
                    return false;
                continue;
            }
            if (group_skip_zero(group))
                continue;
            if (!group_get(group, values, n, no_runs))
                return false;
            for (size_t i = 0; i < n; i++)
                memcpy((char *)&sums[i].figures + at, &values[i], sizeof *values);
        }
    return true;
}

static bool unpack_sums(const struct store *store, struct str in, time_ms hour,
                        struct rollup_sum **ret, size_t *ret_n)
{
    uint64_t n;
    struct group_reader group;
    if (!in.n || *in.p != FORMAT)
        return false;
    in.p++, in.n--;
    if (!varint_get(&in, &n) || n > SUMS_MAX || !group_begin(&group, &in, SUM_COLUMNS))
        return false;
    *ret = mem_zalloc(n, sizeof **ret);
    *ret_n = n;
    int64_t *values = mem_alloc((n + 1) * sizeof *values);
    bool fine = true;
    for (size_t k = 0; k < KEY_NAMES && fine; k++)
        fine = rollup_get_names(store, &group, *ret, n, sizeof **ret, key_names[k], values);
    fine = fine && group_get(&group, values, n, no_runs);
    for (size_t i = 0; i < n && fine; i++) {
        fine = values[i] >= 0 && values[i] < CAPACITY_TYPE_COUNT;
        (*ret)[i].facts.capacity = (enum capacity_type)values[i];
    }
    fine = fine && group_get(&group, values, n, no_runs);
    for (size_t i = 0; i < n && fine; i++) {
        fine = values[i] >= 0 && values[i] < WORKLOAD_TYPE_COUNT;
        (*ret)[i].facts.type = (enum workload_type)values[i];
        (*ret)[i].key.hour = hour;
    }
    fine = fine && get_figures(&group, *ret, n, values);
    free(values);
    return fine;
}

char *rollup_with_slack(struct str packed)
{
    char *copy = mem_zalloc(packed.n + COLUMN_PADDING, 1);
    if (packed.n)
        memcpy(copy, packed.p, packed.n);
    return copy;
}

enum err rollup_scan_sums(struct store *store, time_ms hour, struct str packed,
                          const struct scan *scan, struct error *err)
{
    char *bytes = rollup_with_slack(packed);
    struct rollup_sum *sums = NULL;
    size_t n = 0;
    enum err code = ERR_OK;
    if (!unpack_sums(store, (struct str){bytes, packed.n}, hour, &sums, &n))
        code = db_corrupt(store, "a day's sums cannot be read", err);
    for (size_t i = 0; i < n && !code; i++)
        scan->part(scan->context,
                   &(struct scan_part){&sums[i].key, &sums[i].facts, &sums[i].figures});
    free(sums);
    free(bytes);
    return code;
}
