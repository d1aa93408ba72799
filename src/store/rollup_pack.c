/* A day's roll-up as two packed values: sums and nodes, each a group of columns. */
#include <stdlib.h>

#include "store/group.h"
#include "store/rollup.h"

#define FORMAT 1
#define SUMS_MAX (1u << 19)
#define NODES_MAX (1u << 20)
#define DEVICES_MAX (1u << 24)
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

static const struct runs no_runs = {NULL, 0};

static enum err put_names(struct store *store, struct group_writer *group, const void *items,
                          size_t n, size_t item_size, size_t at, int64_t *values, struct error *err)
{
    for (size_t i = 0; i < n; i++) {
        name_t name;
        uint32_t id;
        memcpy(&name, (const char *)items + i * item_size + at, sizeof name);
        enum err code = dictionary_put(store, name, &id, err);
        if (code)
            return code;
        values[i] = id;
    }
    group_put(group, values, n, no_runs);
    return ERR_OK;
}

static void put_wide(struct group_writer *group, const struct rollup_sum *sums, size_t n, size_t at,
                     int64_t *values)
{
    for (int part = 0; part < 3; part++) {
        for (size_t i = 0; i < n; i++) {
            wide_t v;
            memcpy(&v, (const char *)&sums[i].figures + at, sizeof v);
            values[i] = part == 0   ? (int64_t)(v % WIDE_UNIT)
                        : part == 1 ? (int64_t)(v / WIDE_UNIT)
                                    : (int64_t)((v / WIDE_UNIT) >> 64);
        }
        group_put(group, values, n, no_runs);
    }
}

static void put_figures(struct group_writer *group, const struct rollup_sum *sums, size_t n,
                        int64_t *values)
{
    for (size_t f = 0; f < FIGURE_FIELDS; f++)
        for (size_t k = 0; k < figure_fields[f].count; k++) {
            size_t at = figure_fields[f].at + k * (figure_fields[f].wide ? 16 : 8);
            if (figure_fields[f].wide) {
                put_wide(group, sums, n, at, values);
                continue;
            }
            for (size_t i = 0; i < n; i++)
                memcpy(&values[i], (const char *)&sums[i].figures + at, sizeof *values);
            group_put(group, values, n, no_runs);
        }
}

enum err rollup_pack_sums(struct store *store, const struct rollup *rollup, struct strbuf *ret,
                          struct error *err)
{
    size_t n = rollup->sums_n;
    int64_t *values = mem_alloc((n + 1) * sizeof *values);
    struct group_writer group = {0};
    enum err code = ERR_OK;
    for (size_t k = 0; k < KEY_NAMES && !code; k++)
        code = put_names(store, &group, rollup->sums, n, sizeof *rollup->sums, key_names[k], values,
                         err);
    if (!code) {
        for (size_t i = 0; i < n; i++)
            values[i] = (int64_t)rollup->sums[i].facts.capacity;
        group_put(&group, values, n, no_runs);
        for (size_t i = 0; i < n; i++)
            values[i] = (int64_t)rollup->sums[i].facts.type;
        group_put(&group, values, n, no_runs);
        put_figures(&group, rollup->sums, n, values);
        invariant(group.next == SUM_COLUMNS);
    }
    strbuf_clear(ret);
    strbuf_addc(ret, FORMAT);
    varint_put(ret, n);
    group_end(&group, ret);
    free(values);
    return code;
}

static bool get_names(const struct store *store, struct group_reader *group, void *items, size_t n,
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

static bool unpack_sums(const struct store *store, struct str in, int64_t day,
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
        fine = get_names(store, &group, *ret, n, sizeof **ret, key_names[k], values);
    fine = fine && group_get(&group, values, n, no_runs);
    for (size_t i = 0; i < n && fine; i++) {
        fine = values[i] >= 0 && values[i] < CAPACITY_TYPE_COUNT;
        (*ret)[i].facts.capacity = (enum capacity_type)values[i];
    }
    fine = fine && group_get(&group, values, n, no_runs);
    for (size_t i = 0; i < n && fine; i++) {
        fine = values[i] >= 0 && values[i] < WORKLOAD_TYPE_COUNT;
        (*ret)[i].facts.type = (enum workload_type)values[i];
        (*ret)[i].key.hour = day * DAY_MS;
    }
    fine = fine && get_figures(&group, *ret, n, values);
    free(values);
    return fine;
}

/* A packed value with the slack that columns want. */
static char *with_slack(struct str packed)
{
    char *copy = mem_zalloc(packed.n + COLUMN_PADDING, 1);
    if (packed.n)
        memcpy(copy, packed.p, packed.n);
    return copy;
}

enum err rollup_scan_sums(struct store *store, int64_t day, struct str packed,
                          const struct scan *scan, struct error *err)
{
    char *bytes = with_slack(packed);
    struct rollup_sum *sums = NULL;
    size_t n = 0;
    enum err code = ERR_OK;
    if (!unpack_sums(store, (struct str){bytes, packed.n}, day, &sums, &n))
        code = db_corrupt(store, "a day's sums cannot be read", err);
    for (size_t i = 0; i < n && !code; i++)
        scan->part(scan->context,
                   &(struct scan_part){&sums[i].key, &sums[i].facts, &sums[i].figures});
    free(sums);
    free(bytes);
    return code;
}

static const size_t node_names[] = {
    offsetof(struct rollup_node, facts.instance_type), offsetof(struct rollup_node, facts.pool),
    offsetof(struct rollup_node, facts.region), offsetof(struct rollup_node, facts.cloud)};
#define NODE_NAMES (sizeof node_names / sizeof *node_names)
enum {
    NODE_PLACE = NODE_NAMES,
    NODE_CAPACITY,
    NODE_HOURS,
    NODE_BOOKED,
    NODE_DEVICES,
    NODE_COLUMNS
};

static int64_t node_field(const struct rollup *rollup, int column, size_t i)
{
    const struct rollup_node *node = &rollup->nodes[i];
    switch (column) {
    case NODE_PLACE:
        return node->place;
    case NODE_CAPACITY:
        return (int64_t)node->facts.capacity;
    case NODE_HOURS:
        return (int64_t)node->hours;
    case NODE_BOOKED:
        return node->booked;
    default: /* NODE_DEVICES: with the first entry of a place; others of the place share them */
        return i && rollup->nodes[i - 1].place == node->place ? 0 : node->devices_n;
    }
}

enum err rollup_pack_nodes(struct store *store, const struct rollup *rollup, struct strbuf *ret,
                           struct error *err)
{
    size_t n = rollup->nodes_n, devices = rollup->devices_n;
    int64_t *values = mem_alloc(((n > devices ? n : devices) + 1) * sizeof *values);
    struct group_writer group = {0};
    enum err code = ERR_OK;
    for (size_t k = 0; k < NODE_NAMES && !code; k++)
        code = put_names(store, &group, rollup->nodes, n, sizeof *rollup->nodes, node_names[k],
                         values, err);
    for (int c = NODE_PLACE; c < NODE_COLUMNS && !code; c++) {
        for (size_t i = 0; i < n; i++)
            values[i] = node_field(rollup, c, i);
        group_put(&group, values, n, no_runs);
    }
    if (!code)
        code = put_names(store, &group, rollup->devices, devices, sizeof *rollup->devices, 0,
                         values, err);
    strbuf_clear(ret);
    strbuf_addc(ret, FORMAT);
    varint_put(ret, n);
    varint_put(ret, devices);
    group_end(&group, ret);
    free(values);
    return code;
}

static bool set_node_field(const struct store *store, struct rollup_node *node, int column,
                           int64_t v)
{
    struct place place;
    switch (column) {
    case NODE_PLACE:
        node->place = (uint32_t)v;
        return places_get(store, v, &place);
    case NODE_CAPACITY:
        node->facts.capacity = (enum capacity_type)v;
        return v >= 0 && v < CAPACITY_TYPE_COUNT;
    case NODE_HOURS:
        node->hours = (uint64_t)v;
        return v >= 0 && v <= 24;
    case NODE_BOOKED:
        node->booked = v;
        return true;
    default:
        node->devices_n = (uint32_t)v;
        return v >= 0 && v <= DEVICES_MAX;
    }
}

static bool unpack_nodes(const struct store *store, struct str in, struct rollup *ret)
{
    uint64_t n, devices;
    struct group_reader group;
    if (!in.n || *in.p != FORMAT)
        return false;
    in.p++, in.n--;
    if (!varint_get(&in, &n) || !varint_get(&in, &devices) || n > NODES_MAX ||
        devices > DEVICES_MAX || !group_begin(&group, &in, NODE_COLUMNS + 1))
        return false;
    ret->nodes = mem_zalloc(n, sizeof *ret->nodes);
    ret->devices = mem_zalloc(devices, sizeof *ret->devices);
    ret->nodes_n = n;
    ret->devices_n = devices;
    int64_t *values = mem_alloc(((n > devices ? n : devices) + 1) * sizeof *values);
    bool fine = true;
    for (size_t k = 0; k < NODE_NAMES && fine; k++)
        fine = get_names(store, &group, ret->nodes, n, sizeof *ret->nodes, node_names[k], values);
    for (int c = NODE_PLACE; c < NODE_COLUMNS && fine; c++) {
        fine = group_get(&group, values, n, no_runs);
        for (size_t i = 0; i < n && fine; i++)
            fine = set_node_field(store, &ret->nodes[i], c, values[i]);
    }
    fine = fine && get_names(store, &group, ret->devices, devices, sizeof *ret->devices, 0, values);
    free(values);
    return fine;
}

enum err rollup_scan_nodes(struct store *store, int64_t day, struct str packed,
                           const struct scan *scan, struct error *err)
{
    char *bytes = with_slack(packed);
    struct rollup rollup = {0};
    enum err code = ERR_OK;
    if (!unpack_nodes(store, (struct str){bytes, packed.n}, &rollup))
        code = db_corrupt(store, "a day's nodes cannot be read", err);
    size_t from = 0, last = 0;
    for (size_t i = 0; i < rollup.nodes_n && !code; i++) {
        const struct rollup_node *node = &rollup.nodes[i];
        if (i == 0 || rollup.nodes[i - 1].place != node->place) {
            from += last;
            last = node->devices_n;
            if (from + last > rollup.devices_n) {
                code = db_corrupt(store, "a day's nodes cannot be read", err);
                break;
            }
        }
        struct place place = store->places.items[node->place - 1];
        struct scan_node each = {
            .key = {.hour = day * DAY_MS, .cluster = place.cluster, .node = place.node},
            .facts = node->facts,
            .hours = node->hours,
            .booked = node->booked,
            .devices = rollup.devices + from,
            .devices_n = last};
        scan->node(scan->context, &each);
    }
    rollup_release(&rollup);
    free(bytes);
    return code;
}
