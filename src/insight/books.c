/* One pass over the rows, node by node and on all cores: each chunk of nodes has books of its own,
 * which are put one behind the other in the end. Rows of a node come in order of hour, so that what
 * held up to now is what the last rows say. */
#include "insight/books.h"

#include <stdlib.h>

#include "insight/books_load.h"

#include "fleet/catalogue.h"
#include "fleet/intake.h"

#define NOW_MS (2 * HOUR_MS)

struct table {
    uint32_t *slots; /* index + 1; 0 free */
    size_t mask;
};

/* GPUs of a pod in an hour; a pod is on one node. */
struct pod_hour {
    name_t cluster, namespace, pod;
    time_ms hour;
    int gpus;
};

#define LATELY 64 /* GPUs whose last cell is remembered */

struct reading {
    struct books *books;
    size_t lately[LATELY]; /* cell + 1 */
    name_t floor_model;
    bool floor_known;
    int64_t floor_mw; /* of floor_model */
    struct table cells, workloads, nodes;
    struct pod_hour *pods; /* of the hour that is being read */
    size_t pods_n, pods_room;
    struct table pod_table;
    time_ms hour;
    name_t node;
};

static uint64_t mix(uint64_t hash, uint64_t v)
{
    hash = (hash ^ v) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ (hash >> 29);
}

/* Ids of a node and its GPUs lie side by side: mixed as they are, they cancel out. */
static uint64_t hash_of(const struct row_key *key, name_t workload)
{
    uint64_t hash = mix(mix(0, (uint64_t)key->cluster << 32 | key->node), key->device);
    hash = mix(hash, (uint64_t)key->instance << 32 | key->namespace);
    return mix(hash, workload);
}

static uint64_t row_hash(const struct row *row)
{
    return hash_of(&row->key, row->facts.workload);
}

static uint64_t cell_hash(const struct book_cell *cell)
{
    const struct row_key key = {.cluster = cell->cluster,
                                .node = cell->node,
                                .device = cell->device,
                                .instance = cell->instance,
                                .namespace = cell->namespace};
    return hash_of(&key, cell->facts.workload);
}

static bool is_of_cell(const struct book_cell *cell, const struct row *row)
{
    const struct row_key *key = &row->key;
    return cell->device == key->device && cell->node == key->node &&
           cell->cluster == key->cluster && cell->instance == key->instance &&
           cell->namespace == key->namespace && cell->facts.workload == row->facts.workload;
}

static uint64_t workload_hash(const struct book_workload *of)
{
    return mix(mix(mix(1, (uint64_t)of->cluster << 32 | of->namespace), of->workload), 1);
}

static uint64_t node_hash(const struct book_node *of)
{
    return mix(mix(2, (uint64_t)of->cluster << 32 | of->node), 2);
}

/* Room for one more, all items hashed anew where the table is half full. True: it was. */
static bool grow(struct table *table, size_t n)
{
    if (n * 2 < table->mask)
        return false;
    table->mask = table->mask ? table->mask * 2 + 1 : 255;
    free(table->slots);
    table->slots = mem_zalloc(table->mask + 1, sizeof *table->slots);
    return true;
}

#define probe(table, hash, condition_of_index)                                                     \
    for (at = (size_t)(hash) & (table).mask; (table).slots[at]; at = (at + 1) & (table).mask) {    \
        size_t index = (table).slots[at] - 1;                                                      \
        if (condition_of_index)                                                                    \
            break;                                                                                 \
    }

static size_t node_index(struct reading *reading, name_t cluster, name_t name)
{
    struct books *books = reading->books;
    struct table *table = &reading->nodes;
    size_t at;
    if (grow(table, books->nodes_n))
        for (size_t i = 0; i < books->nodes_n; i++) {
            probe(*table, node_hash(&books->nodes[i]), index == i);
            table->slots[at] = (uint32_t)i + 1;
        }
    struct book_node wanted = {.cluster = cluster, .node = name, .taken_until = TIME_MIN};
    probe(*table, node_hash(&wanted),
          books->nodes[index].cluster == cluster && books->nodes[index].node == name);
    if (!table->slots[at]) {
        mem_push(books->nodes, books->nodes_n, books->nodes_room, wanted);
        table->slots[at] = (uint32_t)books->nodes_n;
    }
    return table->slots[at] - 1;
}

static size_t workload_index(struct reading *reading, const struct book_workload *of)
{
    struct books *books = reading->books;
    struct table *table = &reading->workloads;
    size_t at;
    if (grow(table, books->workloads_n))
        for (size_t i = 0; i < books->workloads_n; i++) {
            probe(*table, workload_hash(&books->workloads[i]), index == i);
            table->slots[at] = (uint32_t)i + 1;
        }
    struct book_workload wanted = {
        .cluster = of->cluster, .namespace = of->namespace, .workload = of->workload};
    probe(*table, workload_hash(&wanted),
          books->workloads[index].cluster == wanted.cluster &&
              books->workloads[index].namespace == wanted.namespace &&
              books->workloads[index].workload == wanted.workload);
    if (!table->slots[at]) {
        mem_push(books->workloads, books->workloads_n, books->workloads_room, wanted);
        table->slots[at] = (uint32_t)books->workloads_n;
    }
    return table->slots[at] - 1;
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
static int64_t remembered_floor(struct reading *reading, name_t model)
{
    if (reading->floor_model != model || !reading->floor_known) {
        reading->floor_mw = floor_of(reading->books, model);
        reading->floor_model = model;
        reading->floor_known = true;
    }
    return reading->floor_mw;
}

static size_t add_new_cell(struct reading *reading, const struct row *row)
{
    struct books *books = reading->books;
    const struct book_workload named = {.cluster = row->key.cluster,
                                        .namespace = row->key.namespace,
                                        .workload = row->facts.workload};
    struct book_cell cell = {.cluster = row->key.cluster,
                             .node = row->key.node,
                             .device = row->key.device,
                             .instance = row->key.instance,
                             .namespace = row->key.namespace,
                             .facts = row->facts,
                             .first = row->key.hour,
                             .worked_until = TIME_MIN,
                             .useless_since = TIME_MAX,
                             .floor_mw = remembered_floor(reading, row->facts.model)};
    cell.node_index = node_index(reading, cell.cluster, cell.node);
    cell.workload = row->key.pod == NAME_NONE ? SIZE_MAX : workload_index(reading, &named);
    mem_push(books->cells, books->cells_n, books->cells_room, cell);
    return books->cells_n;
}

/* Rows of a day go round the GPUs of a node, hour by hour: where each was found is remembered. */
static struct book_cell *cell_of(struct reading *reading, const struct row *row)
{
    struct books *books = reading->books;
    struct table *table = &reading->cells;
    size_t at;
    size_t *last = &reading->lately[(row->key.device ^ row->key.instance) % LATELY];
    if (*last && is_of_cell(&books->cells[*last - 1], row))
        return &books->cells[*last - 1];
    if (grow(table, books->cells_n))
        for (size_t i = 0; i < books->cells_n; i++) {
            const struct book_cell *cell = &books->cells[i];
            probe(*table, cell_hash(cell), index == i);
            table->slots[at] = (uint32_t)i + 1;
        }
    probe(*table, row_hash(row), is_of_cell(&books->cells[index], row));
    if (!table->slots[at])
        table->slots[at] = (uint32_t)add_new_cell(reading, row);
    *last = table->slots[at];
    return &books->cells[*last - 1];
}

static wide_t ns_of(int64_t num, uint32_t den)
{
    return den <= 1 ? (wide_t)num * 1000000 : (wide_t)num * 1000000 / den;
}

/* Does the chip do nothing by SM activity, or where that is not exported, by power? */
static bool does_nothing(const struct books *books, const struct book_cell *cell,
                         const struct row *row, bool *ret_by_power)
{
    int64_t sm_seen = row->measure_seen_ms[MEASURE_SM];
    *ret_by_power = sm_seen == 0;
    if (sm_seen)
        return ratio_reached(sm_seen, row->observed_ms,
                             books_threshold(books, THRESHOLD_BUSY_USELESS_OBSERVED)) &&
               !(row->flags & FLAG_STUCK_COUNTER) &&
               row->measure[MEASURE_SM] <
                   (wide_t)books_threshold(books, THRESHOLD_BUSY_USELESS_ACTIVITY) * sm_seen;
    return cell->floor_mw > 0 && row->key.instance == NAME_NONE && row->share_den <= 1 &&
           row->energy_mj > 0 &&
           (wide_t)row->energy_mj * 1000 <= (wide_t)cell->floor_mw * row->observed_ms;
}

static void add_useless(const struct books *books, struct book_cell *cell, const struct row *row)
{
    bool by_power = false;
    bool useless = row->observed_ms > 0 &&
                   ratio_reached(row->observed_ms, row->held_ms,
                                 books_threshold(books, THRESHOLD_BUSY_USELESS_OBSERVED)) &&
                   row->e >= (wide_t)books_threshold(books, THRESHOLD_BUSY_USELESS_KERNEL) *
                                 row->observed_ms &&
                   does_nothing(books, cell, row, &by_power);
    if (!useless || cell->useless_since == TIME_MAX) {
        cell->useless_since = useless ? row->key.hour : TIME_MAX;
        cell->useless_cost = 0;
        cell->useless_sm = cell->useless_e = cell->useless_mj = 0;
        cell->useless_ms = 0;
        cell->useless_by_power = false;
    }
    if (!useless)
        return;
    cell->useless_by_power |= by_power;
    cell->useless_cost += row->cost;
    cell->useless_sm += row->measure[MEASURE_SM];
    cell->useless_e += row->e;
    cell->useless_mj += row->energy_mj;
    cell->useless_ms += row->observed_ms;
}

static void add_row(const struct books *books, struct book_cell *cell, const struct row *row)
{
    cell->facts = row->facts;
    cell->container = row->key.container;
    cell->last = row->key.hour + HOUR_MS;
    cell->cost += row->cost;
    for (int c = 0; c < CATEGORY_COUNT; c++)
        cell->category[c] += row->category[c];
    uint32_t den = row->share_den;
    cell->gpu_ns += ns_of(row->gpu_num, den);
    cell->held_ns += ns_of(row->gpu_held_num, den);
    cell->observed_ns += ns_of(row->gpu_observed_num, den);
    cell->u_ns += den <= 1 ? row->gpu_u_num / 1000 : ns_of(row->gpu_u_num, den) / NANO;
    for (int s = 0; s < STATE_COUNT; s++)
        cell->state_ns[s] += ns_of(row->gpu_state_num[s], den);
    for (int b = 0; b < HISTOGRAM_BINS; b++)
        cell->hist_u_ns[b] +=
            den <= 1 ? row->hist_u_num[b] * 1000000 : (int64_t)ns_of(row->hist_u_num[b], den);
    cell->u += row->u;
    cell->e += row->e;
    cell->observed_ms += row->observed_ms;
    cell->held_ms += row->held_ms;
    cell->mem_byte_ms += row->mem_byte_ms;
    cell->mem_seen_ms += row->mem_seen_ms;
    if (row->mem_max_bytes > cell->mem_max_bytes)
        cell->mem_max_bytes = row->mem_max_bytes;
    if (row->mem_total_bytes > cell->mem_total_bytes)
        cell->mem_total_bytes = row->mem_total_bytes;
    for (int w = 0; w < WORK_COUNT; w++)
        cell->work[w] += row->work[w];
    for (int m = 0; m < MEASURE_COUNT; m++) {
        cell->measure[m] += row->measure[m];
        cell->measure_seen_ms[m] += row->measure_seen_ms[m];
    }
    cell->energy_mj += row->energy_mj;
    cell->flags |= row->flags;
    cell->shared |= den > 1;
    /* A kernel now and then is work too: what it is for is not known here. */
    wide_t hundredth = (wide_t)row->observed_ms * (NANO / 100);
    bool kernels = row->observed_ms > 0 && (row->u >= hundredth || row->e >= hundredth);
    if (kernels || row->state_ms[STATE_LOW] + row->state_ms[STATE_BUSY] > 0) {
        cell->worked_until = cell->last;
        cell->idle_observed_ms = 0;
    } else {
        cell->idle_observed_ms += row->observed_ms;
    }
    add_useless(books, cell, row);
}

/* How many GPUs a pod has in an hour: rows of the pod; an hour's rows come together. */
static void count_pod(struct reading *reading, const struct row *row, struct book_workload *of)
{
    struct table *table = &reading->pod_table;
    size_t at;
    if (row->key.hour != reading->hour || row->key.node != reading->node) {
        reading->hour = row->key.hour;
        reading->node = row->key.node;
        reading->pods_n = 0;
        if (table->slots)
            memset(table->slots, 0, (table->mask + 1) * sizeof *table->slots);
    }
    uint64_t hash = mix((uint64_t)row->key.cluster << 32 | row->key.namespace, row->key.pod);
    if (grow(table, reading->pods_n))
        for (size_t i = 0; i < reading->pods_n; i++) {
            const struct pod_hour *pod = &reading->pods[i];
            probe(*table, mix((uint64_t)pod->cluster << 32 | pod->namespace, pod->pod), index == i);
            table->slots[at] = (uint32_t)i + 1;
        }
    probe(*table, hash,
          reading->pods[index].cluster == row->key.cluster &&
              reading->pods[index].namespace == row->key.namespace &&
              reading->pods[index].pod == row->key.pod);
    if (!table->slots[at]) {
        struct pod_hour pod = {row->key.cluster, row->key.namespace, row->key.pod, row->key.hour,
                               0};
        mem_push(reading->pods, reading->pods_n, reading->pods_room, pod);
        table->slots[at] = (uint32_t)reading->pods_n;
    }
    int gpus = ++reading->pods[table->slots[at] - 1].gpus;
    of->gpus_a_pod = gpus > of->gpus_a_pod ? gpus : of->gpus_a_pod;
}

static void add_to_node(struct book_node *node, const struct row *row)
{
    int most = 0;
    for (int c = 0; c < CATEGORY_COUNT; c++) {
        node->category[c] += row->category[c];
        most = row->category[c] > row->category[most] ? c : most;
    }
    node->category_ns[most] += ns_of(row->gpu_num, row->share_den);
    node->gpu_ns += ns_of(row->gpu_num, row->share_den);
    /* Time without telemetry may have been anything; the end of the last interval is too short. */
    bool unseen = 20 * (wide_t)row->category[CATEGORY_UNOBSERVED] > row->cost;
    if (row->key.pod != NAME_NONE || row->category[CATEGORY_UNATTRIBUTED] ||
        row->category[CATEGORY_STRANDED] || unseen)
        node->taken_until = row->key.hour + HOUR_MS;
}

static void add_node_hour(struct reading *reading, const struct node_hour *hour)
{
    size_t index = node_index(reading, hour->cluster, hour->node); /* may move the nodes */
    struct book_node *node = &reading->books->nodes[index];
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
}

static void add_recorded(struct books *books, time_ms hour)
{
    if (hour < books->window.from)
        books->window.from = hour;
    if (hour + HOUR_MS > books->window.to)
        books->window.to = hour + HOUR_MS;
}

/* The books of a chunk of nodes. */
struct part {
    struct books books;
    struct reading reading;
};
struct gathering {
    struct books *books;
    struct part *parts;
    size_t n;
};

static void begin_parts(void *context, size_t n)
{
    struct gathering *gathering = context;
    gathering->parts = mem_zalloc(n, sizeof *gathering->parts);
    gathering->n = n;
    for (size_t i = 0; i < n; i++) {
        struct part *part = &gathering->parts[i];
        part->books.names = gathering->books->names;
        part->books.thresholds = gathering->books->thresholds;
        part->books.window = (struct span){TIME_MAX, TIME_MIN};
        part->reading = (struct reading){.books = &part->books, .hour = TIME_MIN};
    }
}

static bool take_rows(void *context, size_t chunk, const struct row_batch *batch)
{
    struct reading *reading = &((struct gathering *)context)->parts[chunk].reading;
    struct books *books = reading->books;
    for (size_t i = 0; i < batch->notes_n; i++)
        if (batch->notes[i].kind == NOTE_EXEMPT)
            mem_push(books->wishes, books->wishes_n, books->wishes_room, batch->notes[i]);
    for (size_t i = 0; i < batch->node_hours_n; i++) {
        add_node_hour(reading, &batch->node_hours[i]);
        add_recorded(books, batch->node_hours[i].hour);
    }
    for (size_t i = 0; i < batch->rows_n; i++) {
        const struct row *row = &batch->rows[i];
        struct book_cell *cell = cell_of(reading, row);
        add_row(books, cell, row);
        add_to_node(&books->nodes[cell->node_index], row);
        if (books->nodes[cell->node_index].facts.model == NAME_NONE)
            books->nodes[cell->node_index].facts.model = row->facts.model;
        add_recorded(books, row->key.hour);
        if (cell->workload != SIZE_MAX)
            count_pod(reading, row, &books->workloads[cell->workload]);
    }
    return true;
}

static void free_part(struct part *part)
{
    for (size_t i = 0; i < part->books.workloads_n; i++)
        free(part->books.workloads[i].cells);
    free(part->books.cells);
    free(part->books.workloads);
    free(part->books.nodes);
    free(part->books.wishes);
    free(part->reading.cells.slots);
    free(part->reading.workloads.slots);
    free(part->reading.nodes.slots);
    free(part->reading.pod_table.slots);
    free(part->reading.pods);
    *part = (struct part){0};
}

/* Put a part behind what there is: its nodes are in no other, its workloads may be. */
static void add_part(struct reading *whole, const struct books *part)
{
    struct books *books = whole->books;
    size_t nodes = books->nodes_n;
    size_t *workloads = mem_alloc((part->workloads_n + 1) * sizeof *workloads);
    for (size_t i = 0; i < part->workloads_n; i++) {
        workloads[i] = workload_index(whole, &part->workloads[i]);
        struct book_workload *of = &books->workloads[workloads[i]];
        int gpus = part->workloads[i].gpus_a_pod;
        of->gpus_a_pod = gpus > of->gpus_a_pod ? gpus : of->gpus_a_pod;
    }
    for (size_t i = 0; i < part->nodes_n; i++)
        mem_push(books->nodes, books->nodes_n, books->nodes_room, part->nodes[i]);
    mem_reserve(books->cells, books->cells_n, books->cells_room, part->cells_n + 1);
    for (size_t i = 0; i < part->cells_n; i++) {
        struct book_cell *cell = &books->cells[books->cells_n];
        *cell = part->cells[i];
        cell->node_index += nodes;
        if (cell->workload != SIZE_MAX) {
            cell->workload = workloads[cell->workload];
            struct book_workload *of = &books->workloads[cell->workload];
            mem_push(of->cells, of->cells_n, of->cells_room, books->cells_n);
        }
        books->cells_n++;
    }
    for (size_t i = 0; i < part->wishes_n; i++)
        mem_push(books->wishes, books->wishes_n, books->wishes_room, part->wishes[i]);
    if (part->window.from < books->window.from)
        books->window.from = part->window.from;
    if (part->window.to > books->window.to)
        books->window.to = part->window.to;
    free(workloads);
}

static void join_parts(struct gathering *gathering)
{
    struct reading whole = {.books = gathering->books};
    for (size_t i = 0; i < gathering->n; i++) {
        add_part(&whole, &gathering->parts[i].books);
        free_part(&gathering->parts[i]);
    }
    free(whole.workloads.slots);
    free(gathering->parts);
}

static void add_cell(struct book_workload *of, const struct book_cell *cell)
{
    struct book_cell *sum = &of->sum;
    if (sum->last == 0 || cell->first < sum->first)
        sum->first = cell->first;
    if (cell->last >= sum->last) {
        sum->last = cell->last;
        sum->facts = cell->facts;
        sum->container = cell->container;
    }
    sum->cost += cell->cost;
    for (int c = 0; c < CATEGORY_COUNT; c++)
        sum->category[c] += cell->category[c];
    sum->gpu_ns += cell->gpu_ns;
    sum->held_ns += cell->held_ns;
    sum->observed_ns += cell->observed_ns;
    sum->u_ns += cell->u_ns;
    for (int s = 0; s < STATE_COUNT; s++)
        sum->state_ns[s] += cell->state_ns[s];
    for (int b = 0; b < HISTOGRAM_BINS; b++)
        sum->hist_u_ns[b] += cell->hist_u_ns[b];
    sum->u += cell->u;
    sum->e += cell->e;
    sum->observed_ms += cell->observed_ms;
    sum->held_ms += cell->held_ms;
    sum->mem_byte_ms += cell->mem_byte_ms;
    sum->mem_seen_ms += cell->mem_seen_ms;
    if (cell->mem_max_bytes > sum->mem_max_bytes)
        sum->mem_max_bytes = cell->mem_max_bytes;
    if (cell->mem_total_bytes > sum->mem_total_bytes)
        sum->mem_total_bytes = cell->mem_total_bytes;
    for (int w = 0; w < WORK_COUNT; w++)
        sum->work[w] += cell->work[w];
    for (int m = 0; m < MEASURE_COUNT; m++) {
        sum->measure[m] += cell->measure[m];
        sum->measure_seen_ms[m] += cell->measure_seen_ms[m];
    }
    sum->energy_mj += cell->energy_mj;
    sum->flags |= cell->flags;
    sum->shared |= cell->shared || cell->instance != NAME_NONE;
    if (cell->worked_until > sum->worked_until)
        sum->worked_until = cell->worked_until;
}

static void add_up(struct books *books)
{
    for (size_t i = 0; i < books->workloads_n; i++) {
        struct book_workload *of = &books->workloads[i];
        of->sum.worked_until = TIME_MIN;
        for (size_t c = 0; c < of->cells_n; c++)
            add_cell(of, &books->cells[of->cells[c]]);
        of->owner = of->sum.facts.owner;
        of->model = of->sum.facts.model;
        of->type = of->sum.facts.type;
    }
}

enum err books_read(struct store *store, struct span window, const struct thresholds *thresholds,
                    struct books **ret, struct error *err)
{
    struct books *books = mem_zalloc(1, sizeof *books);
    struct gathering gathering = {.books = books};
    const struct store_node_reader reader = {&gathering, begin_parts, take_rows};
    books->names = store_names(store);
    books->window = (struct span){TIME_MAX, TIME_MIN};
    if (thresholds)
        books->thresholds = *thresholds;
    else
        thresholds_defaults(&books->thresholds);
    enum err code = query_nodes(store, window, &reader, err);
    join_parts(&gathering);
    if (!code)
        code = books_read_loads(books, store, window, err);
    if (books->window.from >= books->window.to)
        books->window = window;
    if (code) {
        books_free(books);
        return code;
    }
    add_up(books);
    *ret = books;
    return ERR_OK;
}

void books_free(struct books *books)
{
    if (!books)
        return;
    for (size_t i = 0; i < books->workloads_n; i++)
        free(books->workloads[i].cells);
    free(books->cells);
    free(books->workloads);
    free(books->nodes);
    free(books->namespaces);
    free(books->wishes);
    free(books);
}

money_t books_month(const struct books *books, time_ms first, money_t window_money)
{
    time_ms from = first > books->window.from ? first : books->window.from;
    time_ms ms = books->window.to - from;
    return ms > 0 ? money_round((wide_t)window_money * MONTH_HOURS * HOUR_MS, ms) : 0;
}

bool books_is_now(const struct books *books, time_ms last)
{
    return last > books->window.to - NOW_MS;
}
