/* A node's day into the books of its chunk: which cell each series is of, then its sums, then what
 * the hours tell one after the other. */
#include "insight/books_gather.h"

#include <stdlib.h>

#include "fleet/catalogue.h"

void book_part_begin(struct book_part *part, const struct books *whole)
{
    struct books *books = &part->books;
    books->names = whole->names;
    books->thresholds = whole->thresholds;
    books->window = (struct span){TIME_MAX, TIME_MIN};
    books->nodes_n = books->workloads_n = books->cells_n = 0;
    idmap_clear(&part->nodes);
    idmap_clear(&part->workloads);
    idmap_clear(&part->cells);
}

void book_part_release(struct book_part *part)
{
    free(part->books.cells);
    free(part->books.workloads);
    free(part->books.nodes);
    idmap_release(&part->nodes);
    idmap_release(&part->workloads);
    idmap_release(&part->cells);
    free(part->cell);
    free(part->order);
    free(part->done);
    free(part->pods);
    free(part->pod_slots);
    *part = (struct book_part){0};
}

static size_t node_index(struct book_part *part, name_t cluster, name_t name)
{
    struct books *books = &part->books;
    bool fresh;
    struct book_node node = {
        .cluster = cluster, .node = name, .taken_until = TIME_MIN, .cells = books->cells_n};
    uint32_t at = idmap_add(&part->nodes, IDKEY(cluster, name), (uint32_t)books->nodes_n, &fresh);
    if (fresh)
        mem_push(books->nodes, books->nodes_n, books->nodes_room, node);
    return at;
}

size_t book_workload_index(struct books *books, struct idmap *map, name_t cluster, name_t namespace,
                           name_t workload)
{
    bool fresh;
    uint32_t at =
        idmap_add(map, IDKEY(cluster, namespace, workload), (uint32_t)books->workloads_n, &fresh);
    if (fresh) {
        mem_reserve(books->workloads, books->workloads_n, books->workloads_room, 1);
        struct book_workload *of = &books->workloads[books->workloads_n++];
        memset(of, 0, sizeof *of);
        of->cluster = cluster;
        of->namespace = namespace;
        of->workload = workload;
        of->sum.worked_until = TIME_MIN;
    }
    return at;
}

/* Power, in mW, up to which a GPU of the model does nothing; 0 where that is not known well. */
static int64_t floor_of(const struct books *books, name_t model)
{
    const struct gpu_model *gpu = catalogue_gpu(names_text(books->names, model));
    if (!gpu || gpu->low_confidence || gpu->idle_mw <= 0 || gpu->power_limit_mw <= 0)
        return 0;
    wide_t more =
        (wide_t)gpu->power_limit_mw * books_threshold(books, THRESHOLD_BUSY_USELESS_POWER) / NANO;
    return gpu->idle_mw + (int64_t)more;
}

/* As most GPUs of a node are of one model, what is known of the last one is remembered. */
static int64_t remembered_floor(struct book_part *part, name_t model)
{
    if (part->floor_model != model || !part->floor_known) {
        part->floor_mw = floor_of(&part->books, model);
        part->floor_model = model;
        part->floor_known = true;
    }
    return part->floor_mw;
}

static void add_new_cell(struct book_part *part, const struct day_series *series, size_t node,
                         size_t workload)
{
    struct books *books = &part->books;
    mem_reserve(books->cells, books->cells_n, books->cells_room, 1);
    struct book_cell *cell = &books->cells[books->cells_n++];
    memset(cell, 0, sizeof *cell);
    cell->cluster = series->key.cluster;
    cell->node = series->key.node;
    cell->device = series->key.device;
    cell->instance = series->key.instance;
    cell->namespace = series->key.namespace;
    cell->first = series->key.hour;
    cell->worked_until = TIME_MIN;
    cell->useless_since = TIME_MAX;
    cell->floor_mw = remembered_floor(part, series->facts.model);
    cell->node_index = node;
    books->nodes[node].cells_n++;
    cell->workload = workload;
}

/* The cell of a series on a node. GPUs of a job stand side by side: the workload is often that of
 * the series before, which is remembered. */
static size_t cell_index(struct book_part *part, const struct day_series *series, size_t node,
                         size_t *workload, const struct day_series **before)
{
    const struct row_key *key = &series->key;
    bool same = *before && (*before)->key.namespace == key->namespace &&
                (*before)->facts.workload == series->facts.workload &&
                (*before)->key.pod == key->pod;
    if (key->pod == NAME_NONE)
        *workload = SIZE_MAX;
    else if (!same)
        *workload = book_workload_index(&part->books, &part->workloads, key->cluster,
                                        key->namespace, series->facts.workload);
    *before = series;
    struct idkey id = IDKEY((uint32_t)node, key->device, key->instance, (uint32_t)*workload + 1);
    bool fresh;
    uint32_t at = idmap_add(&part->cells, id, (uint32_t)part->books.cells_n, &fresh);
    if (fresh)
        add_new_cell(part, series, node, *workload);
    return at;
}

static int first_hour(const struct day_series *series)
{
    return __builtin_ctz(series->hours);
}

/* Cells and workloads are numbered in the order of their first rows, hour by hour. */
static void find_cells(struct book_part *part, const struct node_day *day)
{
    size_t of_hour[25] = {0};
    for (size_t s = 0; s < day->series_n; s++)
        of_hour[first_hour(&day->series[s]) + 1]++;
    for (int h = 0; h < 24; h++)
        of_hour[h + 1] += of_hour[h];
    for (size_t s = 0; s < day->series_n; s++)
        part->order[of_hour[first_hour(&day->series[s])]++] = (uint32_t)s;
    const struct row_key *key = &day->series[0].key;
    const struct day_series *before = NULL;
    size_t index = node_index(part, key->cluster, key->node), workload = SIZE_MAX;
    struct book_node *node = &part->books.nodes[index];
    for (size_t k = 0; k < day->series_n; k++) {
        const struct day_series *series = &day->series[part->order[k]];
        part->cell[part->order[k]] = cell_index(part, series, index, &workload, &before);
        if (node->facts.model == NAME_NONE)
            node->facts.model = series->facts.model;
    }
}

static void add_recorded(struct books *books, time_ms from, time_ms to)
{
    if (from < books->window.from)
        books->window.from = from;
    if (to > books->window.to)
        books->window.to = to;
}

static void add_series(struct book_part *part, const struct node_day *day)
{
    struct books *books = &part->books;
    for (size_t s = 0; s < day->series_n; s++) {
        const struct day_series *series = &day->series[s];
        struct book_cell *cell = &books->cells[part->cell[s]];
        struct book_workload *of =
            cell->workload == SIZE_MAX ? NULL : &books->workloads[cell->workload];
        book_add_series(cell, &books->nodes[cell->node_index], of ? &of->sum : NULL, series);
        add_recorded(books, series->key.hour,
                     day->day * DAY_MS + (32 - __builtin_clz(series->hours)) * HOUR_MS);
    }
}

/* The rows of one cell in order: of one series as they stand, of several (a workload's pods one
 * after the other, or together on a shared GPU) hour by hour. These stand near each other: [s, to)
 * has the series of the same slot and namespace. */
static void add_cell_hours(struct book_part *part, const struct node_day *day, size_t s, size_t to)
{
    struct book_cell *cell = &part->books.cells[part->cell[s]];
    bool alone = true;
    for (size_t k = s + 1; k < to; k++)
        alone &= part->cell[k] != part->cell[s];
    if (alone) {
        const struct day_series *series = &day->series[s];
        uint32_t rest = series->hours;
        for (size_t i = 0; i < series->n; i++, rest &= rest - 1)
            book_add_hour(&part->books, cell, series, i,
                          day->day * DAY_MS + __builtin_ctz(rest) * HOUR_MS);
        return;
    }
    for (int hour = 0; hour < 24; hour++)
        for (size_t k = s; k < to; k++) {
            const struct day_series *series = &day->series[k];
            if (part->cell[k] != part->cell[s] || !(series->hours >> hour & 1))
                continue;
            uint32_t before = series->hours & ((1u << hour) - 1);
            book_add_hour(&part->books, cell, series, (size_t)__builtin_popcount(before),
                          day->day * DAY_MS + hour * HOUR_MS);
        }
    for (size_t k = s; k < to; k++)
        part->done[k] |= part->cell[k] == part->cell[s];
}

static bool is_same_slot(const struct row_key *a, const struct row_key *b)
{
    return a->device == b->device && a->instance == b->instance && a->namespace == b->namespace;
}

static void add_hours(struct book_part *part, const struct node_day *day)
{
    memset(part->done, 0, day->series_n * sizeof *part->done);
    for (size_t from = 0, to; from < day->series_n; from = to) {
        for (to = from + 1; to < day->series_n; to++)
            if (!is_same_slot(&day->series[to].key, &day->series[from].key))
                break;
        for (size_t s = from; s < to; s++)
            if (!part->done[s])
                add_cell_hours(part, day, s, to);
    }
}

static struct pod_day *pod_of(struct book_part *part, const struct day_series *series)
{
    uint64_t hash = series->key.namespace;
    for (size_t i = 0; i < series->pod.n; i++)
        hash = (hash ^ (unsigned char)series->pod.p[i]) * UINT64_C(0x100000001b3);
    size_t at = (hash ^ hash >> 32) & part->pod_mask;
    for (; part->pod_slots[at]; at = (at + 1) & part->pod_mask) {
        struct pod_day *pod = &part->pods[part->pod_slots[at] - 1];
        if (pod->namespace == series->key.namespace && str_eq(pod->pod, series->pod))
            return pod;
    }
    struct pod_day pod = {.namespace = series->key.namespace, .pod = series->pod};
    mem_push(part->pods, part->pods_n, part->pods_room, pod);
    part->pod_slots[at] = (uint32_t)part->pods_n;
    return &part->pods[part->pods_n - 1];
}

/* How many GPUs a pod has at a time: its rows of an hour. */
static void count_pods(struct book_part *part, const struct node_day *day)
{
    memset(part->pod_slots, 0, (part->pod_mask + 1) * sizeof *part->pod_slots);
    part->pods_n = 0;
    for (size_t s = 0; s < day->series_n; s++) {
        const struct book_cell *cell = &part->books.cells[part->cell[s]];
        if (cell->workload == SIZE_MAX)
            continue;
        struct book_workload *of = &part->books.workloads[cell->workload];
        uint16_t *gpus = pod_of(part, &day->series[s])->gpus;
        for (uint32_t rest = day->series[s].hours; rest; rest &= rest - 1) {
            int n = ++gpus[__builtin_ctz(rest)];
            of->gpus_a_pod = n > of->gpus_a_pod ? n : of->gpus_a_pod;
        }
    }
}

static void add_node_hour(struct book_part *part, const struct node_hour *hour)
{
    size_t index = node_index(part, hour->cluster, hour->node); /* may move the nodes */
    struct book_node *node = &part->books.nodes[index];
    if (node->last == 0)
        node->first = hour->hour;
    node->last = hour->hour + HOUR_MS;
    node->booked += hour->booked;
    node->price = hour->price;
    node->gpus = hour->gpus;
    node->flags = hour->flags;
    node->price_source = hour->price_source;
    node->facts.instance_type = hour->instance_type;
    node->facts.pool = hour->pool;
    node->facts.region = hour->region;
    node->facts.cloud = hour->cloud;
    node->facts.capacity = hour->capacity;
    add_recorded(&part->books, hour->hour, hour->hour + HOUR_MS);
}

static void reserve(struct book_part *part, size_t n)
{
    if (n > part->room) {
        part->room = n * 2;
        part->cell = mem_realloc(part->cell, part->room, sizeof *part->cell);
        part->order = mem_realloc(part->order, part->room, sizeof *part->order);
        part->done = mem_realloc(part->done, part->room, sizeof *part->done);
    }
    if (n * 2 > part->pod_mask) {
        while (n * 2 > part->pod_mask)
            part->pod_mask = part->pod_mask ? part->pod_mask * 2 + 1 : 63;
        part->pod_slots = mem_realloc(part->pod_slots, part->pod_mask + 1, sizeof *part->pod_slots);
    }
}

void book_part_add(struct book_part *part, const struct node_day *day)
{
    for (size_t i = 0; i < day->node_hours_n; i++)
        add_node_hour(part, &day->node_hours[i]);
    if (!day->series_n)
        return;
    reserve(part, day->series_n);
    find_cells(part, day);
    add_series(part, day);
    add_hours(part, day);
    count_pods(part, day);
}

void book_part_add_up(struct book_part *part)
{
    struct books *books = &part->books;
    for (size_t c = 0; c < books->cells_n; c++)
        if (books->cells[c].workload != SIZE_MAX)
            book_sum_add_cell(&books->workloads[books->cells[c].workload].sum, &books->cells[c]);
}
