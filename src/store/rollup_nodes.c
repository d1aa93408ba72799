/* The nodes of a day's roll-up as a packed value, a group of columns: the day's, and the same with
 * what each hour had of them. Of hours a node's line has bits, and what they cost is a column an
 * hour, less the hour's before: most prices stay all day, and so do most GPUs. */
#include <stdlib.h>

#include "store/rollup.h"
#include "store/rollup_format.h"

#define FORMAT 1
#define FORMAT_HOURS 2
#define NODES_MAX (1u << 20)
#define DEVICES_MAX (1u << 24)

static const size_t node_names[] = {
    offsetof(struct rollup_node, facts.instance_type), offsetof(struct rollup_node, facts.pool),
    offsetof(struct rollup_node, facts.region), offsetof(struct rollup_node, facts.cloud)};
#define NODE_NAMES (sizeof node_names / sizeof *node_names)
enum {
    NODE_PLACE = NODE_NAMES,
    NODE_CAPACITY,
    NODE_HOURS,   /* how many; by the hour: which, as bits */
    NODE_BOOKED,  /* of the day; by the hour 0: it stands in columns of its own */
    NODE_DEVICES, /* how many of the devices are new with this line */
    NODE_COLUMNS
};
#define NODE_KEYS (NODE_CAPACITY + 1) /* columns that tell entries apart */
/* Then the devices' names and, by the hour, their hours and what nodes cost in each. */
#define DAY_COLUMNS (NODE_COLUMNS + 1)
#define HOURS_COLUMNS (DAY_COLUMNS + 1 + 24)

/* A node's entry as it stands on disk, and a device of a node. */
struct node_line {
    int64_t columns[NODE_COLUMNS];
    uint32_t hours;
    money_t booked[24];
};
struct device_line {
    uint32_t place, id, hours;
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

static enum err node_line(struct store *store, const struct rollup_node *node,
                          struct node_line *ret, struct error *err)
{
    *ret = (struct node_line){
        .columns = {[NODE_PLACE] = node->place, [NODE_CAPACITY] = (int64_t)node->facts.capacity},
        .hours = node->hours};
    memcpy(ret->booked, node->booked, sizeof ret->booked);
    for (size_t k = 0; k < NODE_NAMES; k++) {
        name_t name;
        uint32_t id;
        memcpy(&name, (const char *)node + node_names[k], sizeof name);
        enum err code = dictionary_put(store, name, &id, err);
        if (code)
            return code;
        ret->columns[k] = id;
    }
    return ERR_OK;
}

/* Entries in order, those that are alike added up. */
static enum err node_lines(struct store *store, const struct rollup *rollup,
                           struct node_line *lines, size_t *ret_n, struct error *err)
{
    size_t n = 0;
    for (size_t i = 0; i < rollup->nodes_n; i++) {
        enum err code = node_line(store, &rollup->nodes[i], &lines[i], err);
        if (code)
            return code;
    }
    if (rollup->nodes_n)
        qsort(lines, rollup->nodes_n, sizeof *lines, by_node);
    for (size_t i = 0; i < rollup->nodes_n; i++) {
        if (!n || by_node(&lines[n - 1], &lines[i]) != 0) {
            lines[n++] = lines[i];
            continue;
        }
        lines[n - 1].hours |= lines[i].hours;
        for (int h = 0; h < 24; h++)
            sum_add(&lines[n - 1].booked[h], lines[i].booked[h]);
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
        devices[i].hours = rollup->devices[i].hours;
        enum err code = dictionary_put(store, rollup->devices[i].name, &devices[i].id, err);
        if (code)
            return code;
    }
    if (rollup->devices_n)
        qsort(devices, rollup->devices_n, sizeof *devices, by_device);
    for (size_t i = 0; i < rollup->devices_n; i++) {
        if (n && by_device(&devices[n - 1], &devices[i]) == 0) {
            devices[n - 1].hours |= devices[i].hours;
            continue;
        }
        devices[n++] = devices[i];
        while (line < lines_n && lines[line].columns[NODE_PLACE] != devices[i].place)
            line++;
        invariant(line < lines_n); /* devices come with a node-hour of their place */
        lines[line].columns[NODE_DEVICES]++;
    }
    *ret_n = n;
    return ERR_OK;
}

/* Nodes and devices as they are packed: in order, and room for a column. */
struct lines {
    struct node_line *nodes;
    struct device_line *devices;
    size_t n, devices_n;
    int64_t *values;
};

static enum err lines_of(struct store *store, const struct rollup *rollup, struct lines *ret,
                         struct error *err)
{
    ret->nodes = mem_alloc((rollup->nodes_n + 1) * sizeof *ret->nodes);
    ret->devices = mem_alloc((rollup->devices_n + 1) * sizeof *ret->devices);
    ret->values = mem_alloc((rollup->nodes_n + rollup->devices_n + 1) * sizeof *ret->values);
    enum err code = node_lines(store, rollup, ret->nodes, &ret->n, err);
    if (!code)
        code = device_lines(store, rollup, ret->devices, &ret->devices_n, ret->nodes, ret->n, err);
    return code;
}

static void lines_release(struct lines *lines)
{
    free(lines->nodes);
    free(lines->devices);
    free(lines->values);
}

static void put_lines(struct group_writer *group, const struct lines *lines)
{
    for (int c = 0; c < (int)NODE_COLUMNS; c++) {
        for (size_t i = 0; i < lines->n; i++)
            lines->values[i] = lines->nodes[i].columns[c];
        group_put(group, lines->values, lines->n, no_runs);
    }
    for (size_t i = 0; i < lines->devices_n; i++)
        lines->values[i] = lines->devices[i].id;
    group_put(group, lines->values, lines->devices_n, no_runs);
}

static void put_line_hours(struct group_writer *group, const struct lines *lines)
{
    for (size_t i = 0; i < lines->devices_n; i++)
        lines->values[i] = lines->devices[i].hours;
    group_put(group, lines->values, lines->devices_n, no_runs);
    for (int h = 0; h < 24; h++) {
        for (size_t i = 0; i < lines->n; i++) {
            const money_t *booked = lines->nodes[i].booked;
            lines->values[i] = (int64_t)((uint64_t)booked[h] - (h ? (uint64_t)booked[h - 1] : 0));
        }
        group_put(group, lines->values, lines->n, no_runs);
    }
}

enum err rollup_pack_nodes(struct store *store, const struct rollup *rollup, struct strbuf *ret,
                           struct error *err)
{
    struct lines lines = {0};
    struct group_writer group = {0};
    enum err code = lines_of(store, rollup, &lines, err);
    for (size_t i = 0; i < lines.n && !code; i++) {
        struct node_line *line = &lines.nodes[i];
        line->columns[NODE_HOURS] = __builtin_popcount(line->hours);
        for (int h = 0; h < 24; h++)
            sum_add(&line->columns[NODE_BOOKED], line->booked[h]);
    }
    strbuf_clear(ret);
    if (!code) {
        put_lines(&group, &lines);
        strbuf_addc(ret, FORMAT);
        varint_put(ret, lines.n);
        varint_put(ret, lines.devices_n);
        group_end(&group, ret);
    }
    lines_release(&lines);
    return code;
}

enum err rollup_pack_node_hours(struct store *store, const struct rollup *rollup,
                                struct strbuf *ret, struct error *err)
{
    struct lines lines = {0};
    struct group_writer group = {0};
    uint32_t with_sums = 0;
    enum err code = lines_of(store, rollup, &lines, err);
    for (size_t i = 0; i < lines.n && !code; i++)
        lines.nodes[i].columns[NODE_HOURS] = lines.nodes[i].hours;
    for (int h = 0; h < 24; h++)
        with_sums |= (uint32_t)(rollup->of_hours[h].n > 0) << h;
    strbuf_clear(ret);
    if (!code) {
        put_lines(&group, &lines);
        put_line_hours(&group, &lines);
        strbuf_addc(ret, FORMAT_HOURS);
        varint_put(ret, with_sums);
        varint_put(ret, lines.n);
        varint_put(ret, lines.devices_n);
        group_end(&group, ret);
    }
    lines_release(&lines);
    return code;
}

/* A packed day's nodes, laid open. */
struct nodes {
    bool by_hour;
    uint32_t with_sums; /* by_hour: hours that have sums */
    struct unpacked_node {
        uint32_t place;
        struct row_facts facts;
        uint32_t hours; /* as NODE_HOURS */
        uint32_t devices_n;
        money_t booked; /* of what is asked for */
    } * items;
    size_t n;
    name_t *devices;
    uint32_t *device_hours; /* by_hour */
    size_t devices_n;
};

static const size_t unpacked_names[NODE_NAMES] = {
    offsetof(struct unpacked_node, facts.instance_type), offsetof(struct unpacked_node, facts.pool),
    offsetof(struct unpacked_node, facts.region), offsetof(struct unpacked_node, facts.cloud)};

static bool set_node_field(const struct store *store, struct nodes *nodes, size_t i, int column,
                           int64_t v)
{
    struct place place;
    struct unpacked_node *node = &nodes->items[i];
    switch (column) {
    case NODE_PLACE:
        node->place = (uint32_t)v;
        return places_get(store, v, &place);
    case NODE_CAPACITY:
        node->facts.capacity = (enum capacity_type)v;
        return v >= 0 && v < CAPACITY_TYPE_COUNT;
    case NODE_HOURS:
        node->hours = (uint32_t)v;
        return v >= 0 && v <= (nodes->by_hour ? 0xffffff : 24);
    case NODE_BOOKED:
        node->booked = v;
        return true;
    default:
        node->devices_n = (uint32_t)v;
        return v >= 0 && v <= DEVICES_MAX;
    }
}

/* By the hour: each device's hours, and what nodes cost in `hours`. */
static bool get_line_hours(struct group_reader *group, struct nodes *ret, uint32_t hours,
                           int64_t *values)
{
    if (!group_get(group, values, ret->devices_n, no_runs))
        return false;
    for (size_t i = 0; i < ret->devices_n; i++)
        ret->device_hours[i] = (uint32_t)values[i];
    int64_t *booked = mem_zalloc(ret->n + 1, sizeof *booked);
    bool fine = true;
    for (int h = 0; h < 24 && fine; h++) {
        fine = group_get(group, values, ret->n, no_runs);
        for (size_t i = 0; i < ret->n && fine; i++) {
            sum_add(&booked[i], values[i]);
            if (hours >> h & 1)
                sum_add(&ret->items[i].booked, booked[i]);
        }
    }
    free(booked);
    return fine;
}

static bool get_lines(const struct store *store, struct group_reader *group, struct nodes *ret,
                      uint32_t hours)
{
    size_t n = ret->n, devices = ret->devices_n;
    int64_t *values = mem_alloc(((n > devices ? n : devices) + 1) * sizeof *values);
    bool fine = true;
    for (size_t k = 0; k < NODE_NAMES && fine; k++)
        fine = rollup_get_names(store, group, ret->items, n, sizeof *ret->items, unpacked_names[k],
                                values);
    for (int c = NODE_PLACE; c < (int)NODE_COLUMNS && fine; c++) {
        fine = group_get(group, values, n, no_runs);
        for (size_t i = 0; i < n && fine; i++)
            fine = set_node_field(store, ret, i, c, values[i]);
    }
    fine = fine &&
           rollup_get_names(store, group, ret->devices, devices, sizeof *ret->devices, 0, values);
    if (fine && ret->by_hour)
        fine = get_line_hours(group, ret, hours, values);
    free(values);
    return fine;
}

static bool unpack_nodes(const struct store *store, struct str in, uint32_t hours,
                         struct nodes *ret)
{
    uint64_t n, devices, with_sums = 0;
    struct group_reader group;
    if (!in.n || *in.p != (ret->by_hour ? FORMAT_HOURS : FORMAT))
        return false;
    in.p++, in.n--;
    if ((ret->by_hour && !varint_get(&in, &with_sums)) || !varint_get(&in, &n) ||
        !varint_get(&in, &devices) || n > NODES_MAX || devices > DEVICES_MAX ||
        with_sums > 0xffffff ||
        !group_begin(&group, &in, ret->by_hour ? HOURS_COLUMNS : DAY_COLUMNS))
        return false;
    ret->with_sums = (uint32_t)with_sums;
    ret->items = mem_zalloc(n, sizeof *ret->items);
    ret->n = n;
    ret->devices = mem_zalloc(devices, sizeof *ret->devices);
    ret->device_hours = ret->by_hour ? mem_zalloc(devices, sizeof *ret->device_hours) : NULL;
    ret->devices_n = devices;
    return get_lines(store, &group, ret, hours);
}

/* Of the devices [from, to) those that have rows in `hours`, put together at their begin. */
static size_t devices_in(const struct nodes *nodes, size_t from, size_t to, uint32_t hours)
{
    size_t n = 0;
    if (!nodes->by_hour)
        return to - from;
    for (size_t i = from; i < to; i++)
        if (nodes->device_hours[i] & hours)
            nodes->devices[from + n++] = nodes->devices[i];
    return n;
}

static bool hand_over_nodes(const struct store *store, int64_t day, const struct nodes *nodes,
                            uint32_t hours, const struct scan *scan)
{
    size_t from = 0, to = 0, devices_n = 0;
    for (size_t i = 0; i < nodes->n; i++) {
        const struct unpacked_node *node = &nodes->items[i];
        if (i == 0 || nodes->items[i - 1].place != node->place) {
            from = to;
            to += node->devices_n;
            if (to > nodes->devices_n)
                return false;
            devices_n = devices_in(nodes, from, to, hours);
        }
        uint32_t seen =
            nodes->by_hour ? (uint32_t)__builtin_popcount(node->hours & hours) : node->hours;
        if (!seen)
            continue;
        struct place place = store->places.items[node->place - 1];
        struct scan_node each = {
            .key = {.hour = day * DAY_MS, .cluster = place.cluster, .node = place.node},
            .facts = node->facts,
            .hours = seen,
            .booked = node->booked,
            .devices = nodes->devices + from,
            .devices_n = devices_n};
        scan->node(scan->context, &each);
    }
    return true;
}

static enum err scan_nodes(struct store *store, int64_t day, struct str packed, uint32_t hours,
                           const struct scan *scan, struct nodes *nodes, struct error *err)
{
    char *bytes = rollup_with_slack(packed);
    enum err code = ERR_OK;
    if (!unpack_nodes(store, (struct str){bytes, packed.n}, hours, nodes) ||
        !hand_over_nodes(store, day, nodes, hours, scan))
        code = db_corrupt(store, "a day's nodes cannot be read", err);
    free(nodes->items);
    free(nodes->devices);
    free(nodes->device_hours);
    free(bytes);
    return code;
}

enum err rollup_scan_nodes(struct store *store, int64_t day, struct str packed,
                           const struct scan *scan, struct error *err)
{
    struct nodes nodes = {.by_hour = false};
    return scan_nodes(store, day, packed, 0, scan, &nodes, err);
}

enum err rollup_scan_node_hours(struct store *store, int64_t day, struct str packed, uint32_t hours,
                                const struct scan *scan, uint32_t *ret_with_sums, struct error *err)
{
    struct nodes nodes = {.by_hour = true};
    enum err code = scan_nodes(store, day, packed, hours, scan, &nodes, err);
    *ret_with_sums = nodes.with_sums;
    return code;
}
