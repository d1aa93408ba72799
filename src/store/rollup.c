#include "store/rollup.h"

#include <stdlib.h>

static void drop_hours(struct rollup *rollup)
{
    for (int h = 0; rollup->of_hours && h < 24; h++)
        free(rollup->of_hours[h].items);
    free(rollup->of_hours);
    rollup->of_hours = NULL;
}

void rollup_clear(struct rollup *rollup, int64_t day, bool by_hour)
{
    rollup->day = day;
    rollup->sums.n = rollup->nodes_n = rollup->devices_n = 0;
    rollup->hour_sums_n = rollup->hours_of_n = 0;
    rollup->hours = 0;
    rollup->unwritten = 0xffffff;
    rollup->whole = false;
    rollup->rows_n = 0;
    if (rollup->table)
        memset(rollup->table, 0, (rollup->mask + 1) * sizeof *rollup->table);
    if (!by_hour)
        drop_hours(rollup);
    else if (!rollup->of_hours)
        rollup->of_hours = mem_zalloc(24, sizeof *rollup->of_hours);
    for (int h = 0; rollup->of_hours && h < 24; h++)
        rollup->of_hours[h].n = 0;
}

void rollup_release(struct rollup *rollup)
{
    drop_hours(rollup);
    free(rollup->sums.items);
    free(rollup->table);
    free(rollup->hours_of);
    free(rollup->nodes);
    free(rollup->devices);
    *rollup = (struct rollup){0};
}

static bool same_sum(const struct rollup_sum *a, const struct rollup_sum *b)
{
    return memcmp(&a->key, &b->key, sizeof a->key) == 0 &&
           memcmp(&a->facts, &b->facts, sizeof a->facts) == 0;
}

static size_t slot_of(const struct rollup *rollup, const struct rollup_sum *sum)
{
    const struct row_facts *facts = &sum->facts;
    uint64_t parts[] = {(uint64_t)sum->key.cluster << 32 | sum->key.namespace,
                        (uint64_t)facts->model << 32 | facts->owner,
                        (uint64_t)facts->instance_type << 32 | facts->pool,
                        (uint64_t)facts->region << 32 | facts->cloud,
                        (uint64_t)facts->workload << 32 | facts->capacity << 8 | facts->type};
    uint64_t hash = sum->key.pod;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        hash = (hash ^ parts[i]) * UINT64_C(0x9e3779b97f4a7c15);
        hash ^= hash >> 29;
    }
    size_t at = hash & rollup->mask;
    while (rollup->table[at] && !same_sum(&rollup->sums.items[rollup->table[at] - 1], sum))
        at = (at + 1) & rollup->mask;
    return at;
}

/* Its number. */
static size_t find_sum(struct rollup *rollup, const struct rollup_sum *wanted)
{
    struct rollup_sums *sums = &rollup->sums;
    if (sums->n * 2 >= rollup->mask) {
        free(rollup->table);
        rollup->mask = rollup->mask ? rollup->mask * 2 + 1 : 255;
        rollup->table = mem_zalloc(rollup->mask + 1, sizeof *rollup->table);
        for (size_t i = 0; i < sums->n; i++)
            rollup->table[slot_of(rollup, &sums->items[i])] = (uint32_t)i + 1;
    }
    size_t at = slot_of(rollup, wanted);
    if (!rollup->table[at]) {
        mem_push(sums->items, sums->n, sums->room, *wanted);
        rollup->table[at] = (uint32_t)sums->n;
    }
    return rollup->table[at] - 1;
}

/* The sum of an hour that is part of a day's sum. */
static struct rollup_sum *sum_of_hour(struct rollup *rollup, size_t sum, int hour)
{
    static const struct rollup_hours_of none;
    struct rollup_sums *sums = &rollup->of_hours[hour];
    while (rollup->hours_of_n <= sum)
        mem_push(rollup->hours_of, rollup->hours_of_n, rollup->hours_of_room, none);
    uint32_t *at = &rollup->hours_of[sum].at[hour];
    if (!*at) {
        struct rollup_sum first = {.key = rollup->sums.items[sum].key,
                                   .facts = rollup->sums.items[sum].facts};
        mem_push(sums->items, sums->n, sums->room, first);
        *at = (uint32_t)sums->n;
        rollup->hour_sums_n++;
    }
    return &sums->items[*at - 1];
}

/* Rows [from, to) of a series, to a sum of the day and to those of its hours. */
static void add_rows(struct rollup *rollup, const struct block *block, size_t s, size_t from,
                     size_t to, size_t sum)
{
    rollup->rows_n += to - from;
    block_sum(block, s, from, to, &rollup->sums.items[sum].figures);
    for (size_t i = from; i < to && rollup->of_hours; i++)
        block_sum(block, s, i, i + 1, &sum_of_hour(rollup, sum, block->hours[i])->figures);
    if (rollup->hour_sums_n > ROLLUP_HOUR_SUMS_MAX)
        drop_hours(rollup);
}

/* Job of Job/name */
static name_t kind_of(struct names *names, name_t workload)
{
    struct str text = names_text(names, workload);
    const char *slash = text.n ? memchr(text.p, '/', text.n) : NULL;
    return slash ? names_put(names, (struct str){text.p, (size_t)(slash - text.p)}) : workload;
}

void rollup_add(struct rollup *rollup, struct names *names, const struct block *block,
                uint32_t place, uint32_t hours)
{
    name_t some_pod = names_put(names, STR("(pod)"));
    for (size_t s = 0; s < block->series_n; s++) {
        const struct series *series = &block->series[s];
        uint32_t bits = series->hours & hours;
        if (!bits)
            continue;
        rollup->hours |= bits;
        rollup->unwritten |= bits;
        struct rollup_sum wanted;
        memset(&wanted, 0, sizeof wanted);
        wanted.key.hour = block->day * DAY_MS;
        wanted.key.cluster = series->key.cluster;
        wanted.key.namespace = series->key.namespace;
        wanted.key.pod = series_is_held(series) ? some_pod : NAME_NONE;
        wanted.facts = series->facts;
        wanted.facts.workload = kind_of(names, series->facts.workload);
        size_t from, to;
        block_rows_of(block, s, hours, &from, &to);
        add_rows(rollup, block, s, from, to, find_sum(rollup, &wanted));
    }
    rollup_add_nodes(rollup, block, place, hours);
}

static bool same_node_facts(const struct row_facts *facts, const struct node_hour *hour)
{
    return facts->instance_type == hour->instance_type && facts->pool == hour->pool &&
           facts->region == hour->region && facts->cloud == hour->cloud &&
           facts->capacity == hour->capacity;
}

void rollup_add_nodes(struct rollup *rollup, const struct block *block, uint32_t place,
                      uint32_t hours)
{
    /* Nodes and devices may come again with another segment: they are put together when packed. */
    size_t first_node = rollup->nodes_n, first_device = rollup->devices_n;
    for (size_t i = 0; i < block->node_hours_n; i++) {
        const struct node_hour *hour = &block->node_hours[i];
        int h = (int)((hour->hour - block->day * DAY_MS) / HOUR_MS);
        uint32_t bit = 1u << h;
        if (!(bit & hours))
            continue;
        rollup->hours |= bit;
        size_t at = first_node;
        while (at < rollup->nodes_n && !same_node_facts(&rollup->nodes[at].facts, hour))
            at++;
        if (at == rollup->nodes_n) {
            struct rollup_node node = {.place = place,
                                       .facts = {.instance_type = hour->instance_type,
                                                 .pool = hour->pool,
                                                 .region = hour->region,
                                                 .cloud = hour->cloud,
                                                 .capacity = hour->capacity}};
            mem_push(rollup->nodes, rollup->nodes_n, rollup->nodes_room, node);
        }
        rollup->nodes[at].hours |= bit;
        sum_add(&rollup->nodes[at].booked[h], hour->booked);
    }
    /* Series are in order of their device. */
    for (size_t s = 0; s < block->series_n && rollup->nodes_n > first_node; s++) {
        struct rollup_device device = {place, block->series[s].key.device,
                                       block->series[s].hours & hours};
        if (!device.hours)
            continue;
        if (rollup->devices_n == first_device ||
            rollup->devices[rollup->devices_n - 1].name != device.name)
            mem_push(rollup->devices, rollup->devices_n, rollup->devices_room, device);
        else
            rollup->devices[rollup->devices_n - 1].hours |= device.hours;
    }
}

enum err rollup_add_blocks(struct store *store, struct rollup *rollup, struct error *err)
{
    sqlite3_stmt *get = db_statement(store, STATEMENT_BLOCKS, err);
    if (!get)
        return ERR_STORE;
    sqlite3_bind_int64(get, 1, cell_key(rollup->day, 0, 0));
    sqlite3_bind_int64(get, 2, cell_key(rollup->day + 1, 0, 0));
    enum err code = ERR_OK;
    int rc = SQLITE_DONE;
    while (!code && (rc = sqlite3_step(get)) == SQLITE_ROW) {
        uint32_t id = cell_place(sqlite3_column_int64(get, 0));
        struct place place;
        if (!places_get(store, id, &place)) {
            code = db_corrupt(store, "a block of an unknown node", err);
            break;
        }
        code = block_open(store, store->reading, rollup->day, place.cluster, place.node,
                          db_text(get, 2), BLOCK_NAMES_KINDS, err);
        if (!code)
            rollup_add(rollup, store->names, store->reading, id, UINT32_MAX);
    }
    if (!code && rc != SQLITE_DONE)
        code = db_fail(store, rc, "reading rows", err);
    sqlite3_reset(get);
    return code;
}
