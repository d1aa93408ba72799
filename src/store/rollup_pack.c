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

static enum err order_sums(struct store *store, const struct rollup *rollup,
                           struct sum_order *order, struct error *err)
{
    for (size_t i = 0; i < rollup->sums_n; i++) {
        const struct rollup_sum *sum = &rollup->sums[i];
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
    if (rollup->sums_n)
        qsort(order, rollup->sums_n, sizeof *order, by_ids);
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

enum err rollup_pack_sums(struct store *store, const struct rollup *rollup, struct strbuf *ret,
                          struct error *err)
{
    size_t n = rollup->sums_n;
    struct sum_order *order = mem_alloc((n + 1) * sizeof *order);
    struct ordered sums = {rollup->sums, order, n, mem_alloc((n + 1) * sizeof(int64_t))};
    struct group_writer group = {0};
    enum err code = order_sums(store, rollup, order, err);
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
#define NODE_KEYS (NODE_CAPACITY + 1) /* columns that tell entries apart */

/* A node's entry as it stands on disk, and a device of a node. */
struct node_line {
    int64_t columns[NODE_COLUMNS];
};
struct device_line {
    uint32_t place, id;
};

static int by_node(const void *a, const void *b)
{
    const struct node_line *left = a, *right = b;
    int64_t order = left->columns[NODE_PLACE] - right->columns[NODE_PLACE];
    for (int c = 0; c < (int)NODE_KEYS && !order; c++)
        order = left->columns[c] - right->columns[c];
    return (order > 0) - (order < 0);
}

static int by_device(const void *a, const void *b)
{
    const struct device_line *left = a, *right = b;
    if (left->place != right->place)
        return left->place < right->place ? -1 : 1;
    return (left->id > right->id) - (left->id < right->id);
}

/* Entries in order, those that are alike added up. */
static enum err node_lines(struct store *store, const struct rollup *rollup,
                           struct node_line *lines, size_t *ret_n, struct error *err)
{
    size_t n = 0;
    for (size_t i = 0; i < rollup->nodes_n; i++) {
        const struct rollup_node *node = &rollup->nodes[i];
        struct node_line *line = &lines[i];
        *line = (struct node_line){{[NODE_PLACE] = node->place,
                                    [NODE_CAPACITY] = (int64_t)node->facts.capacity,
                                    [NODE_HOURS] = (int64_t)node->hours,
                                    [NODE_BOOKED] = node->booked}};
        for (size_t k = 0; k < NODE_NAMES; k++) {
            name_t name;
            uint32_t id;
            memcpy(&name, (const char *)node + node_names[k], sizeof name);
            enum err code = dictionary_put(store, name, &id, err);
            if (code)
                return code;
            line->columns[k] = id;
        }
    }
    if (rollup->nodes_n)
        qsort(lines, rollup->nodes_n, sizeof *lines, by_node);
    for (size_t i = 0; i < rollup->nodes_n; i++) {
        if (n && by_node(&lines[n - 1], &lines[i]) == 0) {
            lines[n - 1].columns[NODE_HOURS] += lines[i].columns[NODE_HOURS];
            sum_add(&lines[n - 1].columns[NODE_BOOKED], lines[i].columns[NODE_BOOKED]);
        } else {
            lines[n++] = lines[i];
        }
    }
    *ret_n = n;
    return ERR_OK;
}

/* Devices in order, each once; their numbers go to the first line of their place. */
static enum err device_lines(struct store *store, const struct rollup *rollup,
                             struct device_line *devices, size_t *ret_n, struct node_line *lines,
                             size_t lines_n, struct error *err)
{
    size_t n = 0, line = 0;
    for (size_t i = 0; i < rollup->devices_n; i++) {
        devices[i].place = rollup->devices[i].place;
        enum err code = dictionary_put(store, rollup->devices[i].name, &devices[i].id, err);
        if (code)
            return code;
    }
    if (rollup->devices_n)
        qsort(devices, rollup->devices_n, sizeof *devices, by_device);
    for (size_t i = 0; i < rollup->devices_n; i++) {
        if (n && by_device(&devices[n - 1], &devices[i]) == 0)
            continue;
        devices[n++] = devices[i];
        while (line < lines_n && lines[line].columns[NODE_PLACE] != devices[i].place)
            line++;
        invariant(line < lines_n); /* devices come with a node-hour of their place */
        lines[line].columns[NODE_DEVICES]++;
    }
    *ret_n = n;
    return ERR_OK;
}

enum err rollup_pack_nodes(struct store *store, const struct rollup *rollup, struct strbuf *ret,
                           struct error *err)
{
    size_t n = 0, devices_n = 0;
    struct node_line *lines = mem_alloc((rollup->nodes_n + 1) * sizeof *lines);
    struct device_line *devices = mem_alloc((rollup->devices_n + 1) * sizeof *devices);
    int64_t *values = mem_alloc((rollup->nodes_n + rollup->devices_n + 1) * sizeof *values);
    struct group_writer group = {0};
    enum err code = node_lines(store, rollup, lines, &n, err);
    if (!code)
        code = device_lines(store, rollup, devices, &devices_n, lines, n, err);
    for (int c = 0; c < (int)NODE_COLUMNS && !code; c++) {
        for (size_t i = 0; i < n; i++)
            values[i] = lines[i].columns[c];
        group_put(&group, values, n, no_runs);
    }
    for (size_t i = 0; i < devices_n && !code; i++)
        values[i] = devices[i].id;
    group_put(&group, values, devices_n, no_runs);
    strbuf_clear(ret);
    strbuf_addc(ret, FORMAT);
    varint_put(ret, n);
    varint_put(ret, devices_n);
    group_end(&group, ret);
    free(lines);
    free(devices);
    free(values);
    return code;
}

/* A packed day's nodes, laid open. */
struct nodes {
    struct rollup_node *items;
    uint32_t *devices_of; /* [item]: how many of devices are new with it */
    size_t n;
    name_t *devices;
    size_t devices_n;
};

static bool set_node_field(const struct store *store, struct nodes *nodes, size_t i, int column,
                           int64_t v)
{
    struct place place;
    struct rollup_node *node = &nodes->items[i];
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
        nodes->devices_of[i] = (uint32_t)v;
        return v >= 0 && v <= DEVICES_MAX;
    }
}

static bool unpack_nodes(const struct store *store, struct str in, struct nodes *ret)
{
    uint64_t n, devices;
    struct group_reader group;
    if (!in.n || *in.p != FORMAT)
        return false;
    in.p++, in.n--;
    if (!varint_get(&in, &n) || !varint_get(&in, &devices) || n > NODES_MAX ||
        devices > DEVICES_MAX || !group_begin(&group, &in, NODE_COLUMNS + 1))
        return false;
    *ret = (struct nodes){mem_zalloc(n, sizeof *ret->items), mem_zalloc(n, sizeof *ret->devices_of),
                          n, mem_zalloc(devices, sizeof *ret->devices), devices};
    int64_t *values = mem_alloc(((n > devices ? n : devices) + 1) * sizeof *values);
    bool fine = true;
    for (size_t k = 0; k < NODE_NAMES && fine; k++)
        fine = get_names(store, &group, ret->items, n, sizeof *ret->items, node_names[k], values);
    for (int c = NODE_PLACE; c < (int)NODE_COLUMNS && fine; c++) {
        fine = group_get(&group, values, n, no_runs);
        for (size_t i = 0; i < n && fine; i++)
            fine = set_node_field(store, ret, i, c, values[i]);
    }
    fine = fine && get_names(store, &group, ret->devices, devices, sizeof *ret->devices, 0, values);
    free(values);
    return fine;
}

static enum err hand_over_nodes(struct store *store, int64_t day, const struct nodes *nodes,
                                const struct scan *scan, struct error *err)
{
    size_t from = 0, to = 0;
    for (size_t i = 0; i < nodes->n; i++) {
        const struct rollup_node *node = &nodes->items[i];
        if (i == 0 || nodes->items[i - 1].place != node->place) {
            from = to;
            to += nodes->devices_of[i];
            if (to > nodes->devices_n)
                return db_corrupt(store, "a day's nodes cannot be read", err);
        }
        struct place place = store->places.items[node->place - 1];
        struct scan_node each = {
            .key = {.hour = day * DAY_MS, .cluster = place.cluster, .node = place.node},
            .facts = node->facts,
            .hours = node->hours,
            .booked = node->booked,
            .devices = nodes->devices + from,
            .devices_n = to - from};
        scan->node(scan->context, &each);
    }
    return ERR_OK;
}

enum err rollup_scan_nodes(struct store *store, int64_t day, struct str packed,
                           const struct scan *scan, struct error *err)
{
    char *bytes = with_slack(packed);
    struct nodes nodes = {0};
    enum err code;
    if (unpack_nodes(store, (struct str){bytes, packed.n}, &nodes))
        code = hand_over_nodes(store, day, &nodes, scan, err);
    else
        code = db_corrupt(store, "a day's nodes cannot be read", err);
    free(nodes.items);
    free(nodes.devices_of);
    free(nodes.devices);
    free(bytes);
    return code;
}
