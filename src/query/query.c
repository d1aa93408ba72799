/* Grouping: each sum of rows that the store hands over becomes atoms, the atoms a group, and the
 * group adds up. The keys and filters say how fine those sums must be. */
#include "query/query.h"

#include <stdlib.h>

#include "query/grouping.h"
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

/* Queries that one scan answers: they differ in their keys only. */
struct run {
    struct keys keys;
    struct filters filters;
    const struct query *query; /* the first one */
    struct grouping groupings[QUERY_RUN_MAX];
    size_t groupings_n;
    struct result found; /* what does not depend on the keys */
    struct pairs gpus, nodes;
    size_t notes_room;
};

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

static void take_part(void *context, const struct scan_part *part)
{
    struct run *run = context;
    struct facets facets = {part->key, part->facts, -1};
    if (run->filters.any_on_nodes && !filters_pass(&run->filters, FILTERS_OF_NODES, &facets))
        return;
    sum_add(&run->found.booked, part->figures->cost);
    if (run->query->filters_n && !filters_pass(&run->filters, FILTERS_OF_ROWS, &facets))
        return;
    if (!filters_hold(&run->filters, &facets))
        return;
    for (size_t i = 0; i < run->groupings_n; i++)
        grouping_add(&run->groupings[i], &facets, part->figures);
}

static void take_node(void *context, const struct scan_node *node)
{
    struct run *run = context;
    struct facets facets = {&node->key, &node->facts, -1};
    if (run->filters.any_on_nodes && !filters_pass(&run->filters, FILTERS_OF_NODES, &facets))
        return;
    run->found.node_hours += node->hours;
    sum_add(&run->found.price, node->booked);
    pairs_add(&run->nodes, pairs_of(&run->nodes, node->key.cluster), node->key.node);
    struct of_cluster *gpus = pairs_of(&run->gpus, node->key.cluster);
    for (size_t i = 0; i < node->devices_n; i++)
        pairs_add(&run->gpus, gpus, node->devices[i]);
}

static void take_note(void *context, const struct note *note)
{
    struct run *run = context;
    struct result *result = &run->found;
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

/* Rows that no filter passes need not be added up, beyond their cost. */
static bool wants_series(void *context, const struct row_key *key, const struct row_facts *facts)
{
    struct run *run = context;
    struct facets facets = {key, facts, -1};
    return filters_pass(&run->filters, FILTERS_OF_NODES, &facets) &&
           filters_pass(&run->filters, FILTERS_OF_ROWS, &facets);
}

static enum scan_detail detail_of_key(const struct run *run, enum key key)
{
    switch (key) {
    case KEY_HOUR:
        return SCAN_HOURS;
    case KEY_DAY: /* a UTC day is a day of the store; another zone's is not */
        return zone_is_utc(run->keys.zone) ? SCAN_TEAMS : SCAN_HOURS;
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

static size_t keys_n(const struct query *query)
{
    return query->keys_n + query->filters_n + query->where_n;
}

/* Conditions that hold others have no key of their own: theirs is 0, a cheap one. */
static enum key key_of(const struct query *query, size_t i)
{
    if (i < query->keys_n)
        return query->keys[i];
    i -= query->keys_n;
    return i < query->filters_n ? query->filters[i].key
                                : query->where[i - query->filters_n].filter.key;
}

/* How fine a scan the query asks for, by its keys, filters and conditions. */
static enum scan_detail detail_of(const struct run *run, const struct query *query)
{
    enum scan_detail detail = SCAN_TEAMS;
    for (size_t i = 0; i < keys_n(query); i++)
        detail |= detail_of_key(run, key_of(query, i));
    return detail;
}

/* Does a scan of that detail answer what asks for another one? Where blocks are opened anyway, a
 * finer one costs less than opening them again. */
static bool answers(enum scan_detail detail, enum scan_detail asked)
{
    return asked == detail || (asked == SCAN_SERIES && detail == SCAN_ROWS);
}

static enum scan_texts texts_of(const struct query *query)
{
    enum scan_texts texts = SCAN_TEXTS_KINDS;
    for (size_t i = 0; i < keys_n(query); i++) {
        enum key key = key_of(query, i);
        enum scan_texts needed = key == KEY_POD        ? SCAN_TEXTS_PODS
                                 : key == KEY_WORKLOAD ? SCAN_TEXTS_WORKLOADS
                                                       : SCAN_TEXTS_KINDS;
        texts = needed < texts ? needed : texts;
    }
    return texts;
}

/* What all of the answers have in common; notes are copied, each answer has its own. */
static void finish(struct run *run)
{
    run->found.gpus = run->gpus.n;
    run->found.nodes = run->nodes.n;
    for (size_t i = 0; i < run->groupings_n; i++) {
        struct result *result = run->groupings[i].result;
        result->node_hours = run->found.node_hours;
        result->gpus = run->found.gpus;
        result->nodes = run->found.nodes;
        result->price = run->found.price;
        result->booked = run->found.booked;
        result->recorded = run->found.recorded;
        result->notes_n = run->found.notes_n;
        result->notes = mem_alloc((result->notes_n + 1) * sizeof *result->notes);
        if (result->notes_n)
            memcpy(result->notes, run->found.notes, result->notes_n * sizeof *result->notes);
        grouping_finish(&run->groupings[i]);
    }
}

static void run_release(struct run *run)
{
    for (size_t i = 0; i < run->groupings_n; i++)
        grouping_release(&run->groupings[i]);
    free(run->found.notes);
    filters_release(&run->filters);
    keys_release(&run->keys);
    pairs_release(&run->gpus);
    pairs_release(&run->nodes);
}

static void begin_grouping(struct run *run, const struct query *query, struct names *names)
{
    struct result *result = mem_zalloc(1, sizeof *result);
    result->query = *query;
    result->names = names;
    struct grouping grouping = {.keys = &run->keys,
                                .filters = &run->filters,
                                .result = result,
                                .splits = run->filters.splits};
    for (size_t k = 0; k < query->keys_n; k++)
        grouping.splits |= key_splits(query->keys[k]);
    run->groupings[run->groupings_n++] = grouping;
}

/* The first query that has no answer yet, and those after it that the same scan answers. */
static enum err run_scan(struct store *store, const struct query *queries, size_t n,
                         struct result **ret, struct error *err)
{
    struct run run = {.query = queries};
    struct result **to[QUERY_RUN_MAX];
    enum err code = keys_init(&run.keys, store_names(store), queries->tz, err);
    filters_init(&run.filters, queries, &run.keys);
    enum scan_detail detail = code ? SCAN_TEAMS : detail_of(&run, queries);
    for (size_t i = 0; i < n && !code; i++)
        if (!ret[i] && answers(detail, detail_of(&run, &queries[i]))) {
            to[run.groupings_n] = &ret[i];
            begin_grouping(&run, &queries[i], store_names(store));
        }
    struct scan scan = {.hours = queries->window,
                        .detail = detail,
                        .texts = SCAN_TEXTS_KINDS,
                        .context = &run,
                        .part = take_part,
                        .node = take_node,
                        .note = take_note};
    for (size_t i = 0; i < run.groupings_n; i++) {
        enum scan_texts needed = texts_of(&run.groupings[i].result->query);
        scan.texts = needed < scan.texts ? needed : scan.texts;
    }
    if (run.filters.on[KEY_NODE] || run.filters.on[KEY_CLUSTER])
        scan.wants_node = wants_node;
    if (queries->filters_n && !run.filters.on[KEY_DAY] && !run.filters.on[KEY_HOUR])
        scan.wants_series = wants_series;
    if (!code)
        code = store_scan(store, &scan, &run.found.recorded, err);
    if (!code)
        finish(&run);
    for (size_t i = 0; i < run.groupings_n; i++)
        if (!code)
            *to[i] = run.groupings[i].result;
        else
            result_free(run.groupings[i].result);
    run_release(&run);
    return code;
}

enum err query_run_beside(struct store *store, const struct query *queries, size_t n,
                          struct result **ret, struct error *err)
{
    struct result *results[QUERY_RUN_MAX] = {NULL};
    invariant(n <= QUERY_RUN_MAX);
    enum err code = ERR_OK;
    for (size_t i = 0; i < n && !code; i++)
        if (!results[i])
            code = run_scan(store, queries + i, n - i, results + i, err);
    for (size_t i = 0; i < n; i++)
        if (!code)
            ret[i] = results[i];
        else
            result_free(results[i]);
    return code;
}

enum err query_run(struct store *store, const struct query *query, struct result **ret,
                   struct error *err)
{
    return query_run_beside(store, query, 1, ret, err);
}
