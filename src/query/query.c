/* Grouping: each row (or sum of rows) becomes atoms, the atoms a group, and the group adds up. */
#include "query/query.h"

#include <stdlib.h>

#include "query/keys.h"

/* A set of pairs of names (cluster, and a node or device of it). */
struct pairs {
    uint64_t *slots; /* 0: free */
    size_t n, mask;
};

struct run {
    struct keys keys;
    struct filters filters;
    struct result *result;
    struct query *query;
    bool splits;                     /* a key or filter divides rows by category */
    atom_t (*atoms)[QUERY_KEYS_MAX]; /* [group] */
    size_t groups_room;
    uint32_t *table; /* group + 1; 0: free */
    size_t table_mask;
    struct pairs gpus, nodes;
};

static uint64_t mix(uint64_t hash, uint64_t v)
{
    hash = (hash ^ v) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ (hash >> 29);
}

static void pairs_add(struct pairs *pairs, name_t a, name_t b)
{
    uint64_t pair = (uint64_t)a << 32 | b;
    invariant(pair); /* a device and a node always have names */
    if (pairs->n * 2 >= pairs->mask) {
        struct pairs larger = {.mask = pairs->mask ? pairs->mask * 2 + 1 : 255};
        larger.slots = mem_zalloc(larger.mask + 1, sizeof *larger.slots);
        for (size_t i = 0; pairs->slots && i <= pairs->mask; i++)
            if (pairs->slots[i])
                pairs_add(&larger, (name_t)(pairs->slots[i] >> 32), (name_t)pairs->slots[i]);
        free(pairs->slots);
        *pairs = larger;
    }
    size_t at = mix(0, pair) & pairs->mask;
    while (pairs->slots[at] && pairs->slots[at] != pair)
        at = (at + 1) & pairs->mask;
    pairs->n += pairs->slots[at] == 0;
    pairs->slots[at] = pair;
}

static void grow_table(struct run *run)
{
    size_t mask = run->table_mask ? run->table_mask * 2 + 1 : 1023;
    uint32_t *table = mem_zalloc(mask + 1, sizeof *table);
    for (size_t g = 0; g < run->result->groups_n; g++) {
        uint64_t hash = 0;
        for (size_t k = 0; k < run->query->keys_n; k++)
            hash = mix(hash, run->atoms[g][k]);
        size_t at = hash & mask;
        while (table[at])
            at = (at + 1) & mask;
        table[at] = (uint32_t)g + 1;
    }
    free(run->table);
    run->table = table;
    run->table_mask = mask;
}

static struct figures *group_of(struct run *run, const struct facets *facets)
{
    atom_t atoms[QUERY_KEYS_MAX] = {0};
    size_t n = run->query->keys_n;
    uint64_t hash = 0;
    for (size_t k = 0; k < n; k++) {
        atoms[k] = keys_atom(&run->keys, run->query->keys[k], facets);
        hash = mix(hash, atoms[k]);
    }
    struct result *result = run->result;
    if (result->groups_n * 2 >= run->table_mask)
        grow_table(run);
    size_t at = hash & run->table_mask;
    while (run->table[at] && memcmp(run->atoms[run->table[at] - 1], atoms, n * sizeof *atoms) != 0)
        at = (at + 1) & run->table_mask;
    if (!run->table[at]) {
        size_t room = run->groups_room;
        mem_reserve(result->groups, result->groups_n, room, 1);
        if (room != run->groups_room) {
            run->atoms = mem_realloc(run->atoms, room, sizeof *run->atoms);
            run->groups_room = room;
        }
        memset(&result->groups[result->groups_n], 0, sizeof *result->groups);
        memcpy(run->atoms[result->groups_n], atoms, sizeof atoms);
        run->table[at] = (uint32_t)++result->groups_n;
    }
    return &result->groups[run->table[at] - 1].figures;
}

/* A row's money by category: a part has its money and nothing else, since hours of a row that was
 * busy for some of them cannot be told apart by its money (an unpriced row has none). */
static void add_parts(struct run *run, struct facets facets, const struct figures *whole)
{
    for (int c = 0; c < CATEGORY_COUNT; c++) {
        facets.category = c;
        if (!whole->category[c] || !filters_pass(&run->filters, FILTERS_OF_PARTS, &facets))
            continue;
        struct figures part = {.cost = whole->category[c], .rows = whole->rows};
        part.category[c] = whole->category[c];
        figures_add(group_of(run, &facets), &part);
        part.rows = 0;
        figures_add(&run->result->total, &part);
    }
}

static void add_row(struct run *run, const struct row *row)
{
    struct facets facets = {&row->key, &row->facts, -1};
    if (run->filters.any_on_nodes && !filters_pass(&run->filters, FILTERS_OF_NODES, &facets))
        return;
    run->result->booked = money_add(run->result->booked, row->cost);
    pairs_add(&run->gpus, row->key.cluster, row->key.device);
    if (run->query->filters_n && !filters_pass(&run->filters, FILTERS_OF_ROWS, &facets))
        return;
    if (run->splits) {
        struct figures whole = {0};
        figures_add_row(&whole, row);
        run->result->total.rows++;
        add_parts(run, facets, &whole);
        return;
    }
    figures_add_row(group_of(run, &facets), row);
    figures_add_row(&run->result->total, row);
}

static void add_node_hour(struct run *run, const struct node_hour *hour)
{
    struct row_key key = {.hour = hour->hour, .cluster = hour->cluster, .node = hour->node};
    struct row_facts facts = {.instance_type = hour->instance_type,
                              .pool = hour->pool,
                              .region = hour->region,
                              .cloud = hour->cloud,
                              .capacity = hour->capacity};
    struct facets facets = {&key, &facts, -1};
    if (run->filters.any_on_nodes && !filters_pass(&run->filters, FILTERS_OF_NODES, &facets))
        return;
    run->result->node_hours++;
    run->result->price = money_add(run->result->price, hour->booked);
    pairs_add(&run->nodes, hour->cluster, hour->node);
}

static void add_note(struct result *result, size_t *room, const struct note *note)
{
    for (size_t i = 0; i < result->notes_n; i++) {
        struct note *known = &result->notes[i];
        if (known->kind == note->kind && known->subject == note->subject &&
            known->text == note->text) {
            known->count += note->count;
            known->from = note->from < known->from ? note->from : known->from;
            known->to = note->to > known->to ? note->to : known->to;
            return;
        }
    }
    mem_push(result->notes, result->notes_n, *room, *note);
}

static bool take(void *context, const struct row_batch *batch)
{
    struct run *run = context;
    struct span *recorded = &run->result->recorded;
    if (batch->rows_n || batch->node_hours_n) {
        if (recorded->from >= recorded->to)
            *recorded = batch->hours;
        recorded->to = batch->hours.to;
    }
    for (size_t i = 0; i < batch->rows_n; i++)
        add_row(run, &batch->rows[i]);
    for (size_t i = 0; i < batch->node_hours_n; i++)
        add_node_hour(run, &batch->node_hours[i]);
    size_t room = run->result->notes_n;
    for (size_t i = 0; i < batch->notes_n; i++)
        add_note(run->result, &room, &batch->notes[i]);
    return true;
}

static void finish(struct run *run)
{
    struct result *result = run->result;
    char buf[TIME_TEXT_MAX];
    for (size_t g = 0; g < result->groups_n; g++)
        for (size_t k = 0; k < run->query->keys_n; k++)
            result->groups[g].keys[k] = str_keep(
                &result->arena, keys_text(&run->keys, run->query->keys[k], run->atoms[g][k], buf));
    result->gpus = run->gpus.n;
    result->nodes = run->nodes.n;
}

static void run_release(struct run *run)
{
    filters_release(&run->filters);
    keys_release(&run->keys);
    free(run->atoms);
    free(run->table);
    free(run->gpus.slots);
    free(run->nodes.slots);
}

enum err query_run(struct store *store, const struct query *query, struct result **ret,
                   struct error *err)
{
    struct result *result = mem_zalloc(1, sizeof *result);
    result->query = *query;
    result->names = store_names(store);
    struct run run = {.result = result, .query = &result->query};
    enum err code = keys_init(&run.keys, result->names, query->tz, err);
    filters_init(&run.filters, query, &run.keys);
    run.splits = run.filters.splits;
    for (size_t k = 0; k < query->keys_n; k++)
        run.splits |= key_splits(query->keys[k]);
    if (!code)
        code = store_read_rows(store, query->window, take, &run, err);
    if (!code) {
        finish(&run);
        *ret = result;
    } else {
        result_free(result);
    }
    run_release(&run);
    return code;
}
