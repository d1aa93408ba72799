/* Grouping: each sum of rows that the store hands over becomes atoms, the atoms a group, and the
 * group adds up. The keys and filters say how fine those sums must be. */
#include "query/query.h"

#include <stdlib.h>

#include "query/keys.h"
#include "store/scan.h"

/* A set of (cluster, name): a bit for each name of a cluster. Clusters are few. */
struct pairs {
    struct of_cluster {
        name_t cluster;
        uint64_t *bits;
        size_t words;
    } * clusters;
    size_t clusters_n, clusters_room;
    uint64_t n;
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
    size_t notes_room;
};

static uint64_t mix(uint64_t hash, uint64_t v)
{
    hash = (hash ^ v) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ (hash >> 29);
}

static struct of_cluster *pairs_of(struct pairs *pairs, name_t cluster)
{
    for (size_t i = 0; i < pairs->clusters_n; i++)
        if (pairs->clusters[i].cluster == cluster)
            return &pairs->clusters[i];
    mem_push(pairs->clusters, pairs->clusters_n, pairs->clusters_room,
             ((struct of_cluster){.cluster = cluster}));
    return &pairs->clusters[pairs->clusters_n - 1];
}

static void pairs_add(struct pairs *pairs, struct of_cluster *of, name_t name)
{
    size_t word = name / 64;
    if (word >= of->words) {
        size_t words = of->words * 2 > word + 1 ? of->words * 2 : word + 64;
        of->bits = mem_realloc(of->bits, words, sizeof *of->bits);
        memset(of->bits + of->words, 0, (words - of->words) * sizeof *of->bits);
        of->words = words;
    }
    uint64_t bit = UINT64_C(1) << (name % 64);
    pairs->n += (of->bits[word] & bit) == 0;
    of->bits[word] |= bit;
}

static void pairs_release(struct pairs *pairs)
{
    for (size_t i = 0; i < pairs->clusters_n; i++)
        free(pairs->clusters[i].bits);
    free(pairs->clusters);
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
static void add_by_category(struct run *run, struct facets facets, const struct figures *whole)
{
    for (int c = 0; c < CATEGORY_COUNT; c++) {
        facets.category = c;
        if (!whole->category[c] || !filters_pass(&run->filters, FILTERS_OF_PARTS, &facets))
            continue;
        struct figures part = {.cost = whole->category[c]};
        part.category[c] = whole->category[c];
        figures_add(group_of(run, &facets), &part);
        figures_add(&run->result->total, &part);
    }
}

static void take_part(void *context, const struct scan_part *part)
{
    struct run *run = context;
    struct facets facets = {part->key, part->facts, -1};
    if (run->filters.any_on_nodes && !filters_pass(&run->filters, FILTERS_OF_NODES, &facets))
        return;
    sum_add(&run->result->booked, part->figures->cost);
    if (run->query->filters_n && !filters_pass(&run->filters, FILTERS_OF_ROWS, &facets))
        return;
    if (run->splits) {
        add_by_category(run, facets, part->figures);
        return;
    }
    figures_add(group_of(run, &facets), part->figures);
    figures_add(&run->result->total, part->figures);
}

static void take_node(void *context, const struct scan_node *node)
{
    struct run *run = context;
    struct facets facets = {&node->key, &node->facts, -1};
    if (run->filters.any_on_nodes && !filters_pass(&run->filters, FILTERS_OF_NODES, &facets))
        return;
    run->result->node_hours += node->hours;
    sum_add(&run->result->price, node->booked);
    pairs_add(&run->nodes, pairs_of(&run->nodes, node->key.cluster), node->key.node);
    struct of_cluster *gpus = pairs_of(&run->gpus, node->key.cluster);
    for (size_t i = 0; i < node->devices_n; i++)
        pairs_add(&run->gpus, gpus, node->devices[i]);
}

static void take_note(void *context, const struct note *note)
{
    struct run *run = context;
    struct result *result = run->result;
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
    mem_push(result->notes, result->notes_n, run->notes_room, *note);
}

/* Blocks of nodes that the filters on cluster and node leave out need not be opened. */
static bool wants_node(void *context, name_t cluster, name_t node)
{
    struct run *run = context;
    struct row_key key = {.cluster = cluster, .node = node};
    struct row_facts facts = {0};
    struct facets facets = {&key, &facts, -1};
    return filters_pass_key(&run->filters, KEY_CLUSTER, &facets) &&
           filters_pass_key(&run->filters, KEY_NODE, &facets);
}

static enum scan_detail detail_of(const struct run *run, enum key key)
{
    switch (key) {
    case KEY_HOUR:
        return SCAN_ROWS;
    case KEY_DAY: /* a UTC day is a day of the store; another zone's is not */
        return zone_is_utc(run->keys.zone) ? SCAN_TEAMS : SCAN_ROWS;
    case KEY_NODE:
    case KEY_GPU:
    case KEY_INSTANCE:
    case KEY_WORKLOAD:
    case KEY_POD:
    case KEY_CONTAINER:
        return SCAN_SERIES;
    default:
        return SCAN_TEAMS;
    }
}

/* How fine a scan the key asks for. */
static void refine(const struct run *run, enum key key, struct scan *scan)
{
    enum scan_detail detail = detail_of(run, key);
    if (detail > scan->detail)
        scan->detail = detail;
    if (key == KEY_WORKLOAD || key == KEY_POD)
        scan->texts = SCAN_TEXTS_ALL;
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
    pairs_release(&run->gpus);
    pairs_release(&run->nodes);
}

static enum err scan(struct store *store, struct run *run, struct error *err)
{
    struct scan scan = {.hours = run->query->window,
                        .detail = SCAN_TEAMS,
                        .texts = SCAN_TEXTS_KINDS,
                        .context = run,
                        .part = take_part,
                        .node = take_node,
                        .note = take_note};
    for (size_t k = 0; k < run->query->keys_n; k++)
        refine(run, run->query->keys[k], &scan);
    for (size_t i = 0; i < run->query->filters_n; i++)
        refine(run, run->query->filters[i].key, &scan);
    if (run->filters.on[KEY_NODE] || run->filters.on[KEY_CLUSTER])
        scan.wants_node = wants_node;
    return store_scan(store, &scan, &run->result->recorded, err);
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
        code = scan(store, &run, err);
    if (!code) {
        finish(&run);
        *ret = result;
    } else {
        result_free(result);
    }
    run_release(&run);
    return code;
}
