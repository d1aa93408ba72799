/* Reading rows node by node, on all cores: for whoever adds up over time and has to hold something
 * for every GPU. In order of hour over a whole fleet, what it holds of a GPU has left the
 * processor's caches before the next hour comes, and nothing that it does needs that order.
 *
 *     cells of all days -> sorted by (node's name, day) -> chunks of nodes -> a thread a chunk
 *
 * All threads see one state of the database, since they take turns with one handle to read a
 * chunk's bytes; what is dear is unpacking, which needs nothing of a handle but its dictionary.
 * Nodes come in order of their names, and chunks do not depend on the number of threads, so that
 * what is made of them does not either. */
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "store/block.h"
#include "store/internal.h"
#include "store/lens.h"

#define CHUNK_NODES 32
#define THREADS_MAX 8
#define UNWANTED UINT32_MAX
#define FEW 8 /* less than one of so many places: they are sought */

struct cell {
    int64_t key;
    uint32_t rank; /* of its node's name */
};

struct job {
    struct node_reading *reading;
    size_t chunk;
    const struct cell *cells;
    size_t n;
    struct strbuf bytes;  /* of all cells */
    struct str *packed;   /* [n]: of each */
    size_t *order;        /* [n]: by key, as they lie in the file */
    struct block *blocks; /* of a day: one, or its segments, or those of several books */
    size_t blocks_n;
    struct day_series *series; /* of all blocks */
    size_t series_n, series_room;
    struct node_hour *hours;
    size_t hours_n, hours_room;
    enum err code;
    struct error err;
    bool more;
};

struct node_reading {
    struct store *store;
    struct span window;
    uint32_t *ranks; /* [place - 1]: places of one node have one, or UNWANTED */
    size_t wanted;   /* places */
    struct cell *cells;
    size_t n, room;
    struct job jobs[THREADS_MAX];
    size_t jobs_n;
    const struct store_node_reader *reader;
    pthread_mutex_t lock; /* of the handle, and of what follows */
    size_t next, chunk;   /* cell and number of the next chunk */
    bool stopped;
    size_t failed; /* chunk of … */
    enum err code;
    struct error err;
};

static int by_names(const void *a, const void *b, void *context)
{
    const struct store *store = context;
    const struct place *left = &store->places.items[*(const uint32_t *)a];
    const struct place *right = &store->places.items[*(const uint32_t *)b];
    int order =
        str_cmp(names_text(store->names, left->cluster), names_text(store->names, right->cluster));
    return order ? order
                 : str_cmp(names_text(store->names, left->node),
                           names_text(store->names, right->node));
}

static void rank_places(struct node_reading *reading)
{
    struct store *store = reading->store;
    const struct store_node_reader *reader = reading->reader;
    size_t n = store->places.n;
    uint32_t *order = mem_alloc((n + 1) * sizeof *order), rank = 0;
    reading->ranks = mem_zalloc(n + 1, sizeof *reading->ranks);
    for (size_t i = 0; i < n; i++)
        order[i] = (uint32_t)i;
    if (n)
        qsort_r(order, n, sizeof *order, by_names, store);
    for (size_t i = 0; i < n; i++) {
        rank += i > 0 && by_names(&order[i - 1], &order[i], store) != 0;
        reading->ranks[order[i]] = rank;
    }
    free(order);
    for (size_t i = 0; i < n; i++) {
        const struct place *place = &store->places.items[i];
        bool wanted = !reader->wants || reader->wants(reader->context, place->cluster, place->node);
        reading->wanted += wanted;
        if (!wanted)
            reading->ranks[i] = UNWANTED;
    }
}

static int by_rank(const void *a, const void *b)
{
    const struct cell *left = a, *right = b;
    if (left->rank != right->rank)
        return left->rank < right->rank ? -1 : 1;
    return (left->key > right->key) - (left->key < right->key);
}

/* The cells with keys [from, to) that have any of the hours and are wanted. */
static enum err find_cells_between(struct node_reading *reading, int64_t from, int64_t to,
                                   struct error *err)
{
    struct store *store = reading->store;
    sqlite3_stmt *get = db_statement(store, STATEMENT_BLOCK_HOURS, err);
    if (!get)
        return ERR_STORE;
    sqlite3_bind_int64(get, 1, from);
    sqlite3_bind_int64(get, 2, to);
    enum err code = ERR_OK;
    int rc = SQLITE_DONE;
    while (!code && (rc = sqlite3_step(get)) == SQLITE_ROW) {
        struct cell cell = {.key = sqlite3_column_int64(get, 0)};
        uint32_t place = cell_place(cell.key);
        struct place known;
        uint32_t seen = (uint32_t)sqlite3_column_int64(get, 1) &
                        hours_in_day(reading->window, cell_day(cell.key));
        if (!places_get(store, place, &known))
            code = db_corrupt(store, "a block of an unknown node", err);
        cell.rank = !code && place ? reading->ranks[place - 1] : UNWANTED;
        if (seen && cell.rank != UNWANTED)
            mem_push(reading->cells, reading->n, reading->room, cell);
    }
    if (!code && rc != SQLITE_DONE)
        code = db_fail(store, rc, "reading rows", err);
    sqlite3_reset(get);
    return code;
}

/* Of a day the places that are wanted, one by one: who passes by reads all others' blocks. */
static enum err seek_cells(struct node_reading *reading, int64_t day, struct error *err)
{
    enum err code = ERR_OK;
    for (uint32_t p = 0; p < reading->store->places.n && !code; p++)
        if (reading->ranks[p] != UNWANTED)
            code =
                find_cells_between(reading, cell_key(day, p + 1, 0), cell_key(day, p + 2, 0), err);
    return code;
}

/* In order of node and day. */
static enum err find_cells(struct node_reading *reading, struct span hours, struct error *err)
{
    struct store *store = reading->store;
    struct day *days = NULL;
    size_t n = 0;
    enum err code = ERR_OK;
    if (reading->wanted * FEW >= store->places.n)
        code = find_cells_between(reading, cell_key(day_of(hours.from), 0, 0),
                                  cell_key(day_of(hours.to - 1) + 1, 0, 0), err);
    else
        code = store_days(store, hours, &days, &n, err);
    for (size_t i = 0; i < n && !code; i++)
        code = seek_cells(reading, days[i].day, err);
    free(days);
    if (reading->n)
        qsort(reading->cells, reading->n, sizeof *reading->cells, by_rank);
    return code;
}

/* The end of a chunk that begins at `from`. */
static size_t chunk_end(const struct node_reading *reading, size_t from)
{
    size_t to = from;
    for (int nodes = 0; to < reading->n; to++) {
        nodes += to == from || reading->cells[to].rank != reading->cells[to - 1].rank;
        if (nodes > CHUNK_NODES)
            break;
    }
    return to;
}

static int by_key_of(const void *a, const void *b, void *cells)
{
    const struct cell *left = (const struct cell *)cells + *(const size_t *)a;
    const struct cell *right = (const struct cell *)cells + *(const size_t *)b;
    return (left->key > right->key) - (left->key < right->key);
}

/* In the order of the file, which has the nodes of a day side by side. */
static enum err read_bytes(struct store *store, struct job *job, struct error *err)
{
    strbuf_clear(&job->bytes);
    job->packed = mem_realloc(job->packed, job->n + 1, sizeof *job->packed);
    job->order = mem_realloc(job->order, job->n + 1, sizeof *job->order);
    for (size_t i = 0; i < job->n; i++)
        job->order[i] = i;
    if (job->n)
        qsort_r(job->order, job->n, sizeof *job->order, by_key_of, (void *)job->cells);
    for (size_t k = 0; k < job->n; k++) {
        size_t i = job->order[k], begin = job->bytes.n;
        bool whole = (job->cells[i].key & ((1 << SEGMENT_BITS) - 1)) == 0;
        sqlite3_stmt *get =
            db_statement(store, whole ? STATEMENT_BLOCK_GET : STATEMENT_SEGMENT_GET, err);
        if (!get)
            return ERR_STORE;
        sqlite3_bind_int64(get, 1, job->cells[i].key);
        int rc = sqlite3_step(get);
        if (rc == SQLITE_ROW)
            strbuf_add(&job->bytes, db_text(get, 0));
        job->packed[i] = (struct str){NULL, job->bytes.n - begin};
        sqlite3_reset(get);
        if (rc == SQLITE_DONE)
            return db_corrupt(store, "a block is missing", err);
        if (rc != SQLITE_ROW)
            return db_fail(store, rc, "reading rows", err);
    }
    const char *p = job->bytes.text; /* it does not move any more */
    for (size_t k = 0; k < job->n; k++) {
        job->packed[job->order[k]].p = p;
        p += job->packed[job->order[k]].n;
    }
    return ERR_OK;
}

static int by_key(const void *a, const void *b, void *context)
{
    const struct day_series *left = a, *right = b;
    const struct names *names = context;
    const struct row_key *l = &left->key, *r = &right->key;
    int order = l->device == r->device
                    ? 0
                    : str_cmp(names_text(names, l->device), names_text(names, r->device));
    if (!order && l->instance != r->instance)
        order = str_cmp(names_text(names, l->instance), names_text(names, r->instance));
    if (!order && l->namespace != r->namespace)
        order = str_cmp(names_text(names, l->namespace), names_text(names, r->namespace));
    if (!order)
        order = str_cmp(left->pod, right->pod);
    if (!order && l->container != r->container)
        order = str_cmp(names_text(names, l->container), names_text(names, r->container));
    return order ? order : (l->hour > r->hour) - (l->hour < r->hour);
}

static int by_hour(const void *a, const void *b)
{
    const struct node_hour *left = a, *right = b;
    return (left->hour > right->hour) - (left->hour < right->hour);
}

/* What of an open block lies in the hours, which have no holes. */
static void add_block(struct job *job, const struct block *block, const struct row_histogram *u,
                      uint32_t hours)
{
    for (size_t s = 0; s < block->series_n; s++) {
        const struct series *of = &block->series[s];
        uint32_t seen = of->hours & hours;
        if (!seen)
            continue;
        uint32_t before = of->hours & ((seen & -seen) - 1);
        struct day_series series = {.key = of->key,
                                    .facts = of->facts,
                                    .hours = seen,
                                    .from = block->starts[s] + (size_t)__builtin_popcount(before),
                                    .n = (size_t)__builtin_popcount(seen),
                                    .columns = block->columns,
                                    .zero = block->zero,
                                    .u = *u};
        series.key.hour = block->day * DAY_MS + __builtin_ctz(seen) * HOUR_MS;
        if (of->pod)
            series.pod = block->strings.texts[of->pod - 1];
        mem_push(job->series, job->series_n, job->series_room, series);
    }
    for (size_t i = 0; i < block->node_hours_n; i++) {
        const struct node_hour *hour = &block->node_hours[i];
        if (hours >> ((hour->hour - block->day * DAY_MS) / HOUR_MS) & 1)
            mem_push(job->hours, job->hours_n, job->hours_room, *hour);
    }
}

static enum err open_cell(struct job *job, size_t cell, struct block *block)
{
    struct store *store = job->reading->store;
    const struct store_node_reader *reader = job->reading->reader;
    struct place place = {0};
    struct row_histogram u = {0};
    int64_t key = job->cells[cell].key;
    places_get(store, cell_place(key), &place);
    enum err code =
        block_open(store, block, cell_day(key), place.cluster, place.node, job->packed[cell],
                   reader->pods ? BLOCK_NAMES_PODS : BLOCK_NAMES_WORKLOADS, &job->err);
    if (!code && reader->columns != NODE_COLUMNS_HOT)
        code =
            block_columns(store, block, reader->columns == NODE_COLUMNS_ALL ? &u : NULL, &job->err);
    if (!code)
        add_block(job, block, &u, hours_in_day(job->reading->window, cell_day(key)));
    return code;
}

/* The cells [from, to) of one node and day: several where it has segments, or is in several books.
 */
static void emit_day(struct job *job, size_t from, size_t to)
{
    struct store *store = job->reading->store;
    for (; job->blocks_n < to - from; job->blocks_n++) {
        job->blocks = mem_realloc(job->blocks, job->blocks_n + 1, sizeof *job->blocks);
        job->blocks[job->blocks_n] = (struct block){0};
    }
    struct node_day day = {.day = cell_day(job->cells[from].key)};
    job->series_n = job->hours_n = 0;
    for (size_t i = from; i < to && !job->code; i++)
        job->code = open_cell(job, i, &job->blocks[i - from]);
    if (job->code)
        return;
    if (to - from > 1 && job->series_n)
        qsort_r(job->series, job->series_n, sizeof *job->series, by_key, store->names);
    if (to - from > 1 && job->hours_n)
        qsort(job->hours, job->hours_n, sizeof *job->hours, by_hour);
    if (store->lens)
        lens_cut_day(store->lens, day.day, job->series, &job->series_n, job->hours, &job->hours_n);
    day.series = job->series;
    day.series_n = job->series_n;
    day.node_hours = job->hours;
    day.node_hours_n = job->hours_n;
    const struct store_node_reader *reader = job->reading->reader;
    if (day.series_n || day.node_hours_n)
        job->more = reader->day(reader->context, job->chunk, &day);
}

static void run_job(struct job *job)
{
    job->more = true;
    for (size_t from = 0, to; from < job->n && !job->code && job->more; from = to) {
        const struct cell *first = &job->cells[from];
        for (to = from + 1; to < job->n; to++)
            if (job->cells[to].rank != first->rank ||
                cell_day(job->cells[to].key) != cell_day(first->key))
                break;
        job->code = db_go_on(job->reading->store, &job->err);
        if (!job->code)
            emit_day(job, from, to);
    }
}

/* The next chunk's bytes into the job; false where there is none, or nobody wants it. */
static bool take_chunk(struct job *job)
{
    struct node_reading *reading = job->reading;
    pthread_mutex_lock(&reading->lock);
    bool taken = !reading->stopped && reading->next < reading->n;
    if (taken) {
        size_t to = chunk_end(reading, reading->next);
        job->chunk = reading->chunk++;
        job->cells = reading->cells + reading->next;
        job->n = to - reading->next;
        reading->next = to;
        job->code = read_bytes(reading->store, job, &job->err);
    }
    pthread_mutex_unlock(&reading->lock);
    return taken;
}

/* Of several failures the one of the first chunk is told. */
static void end_chunk(struct job *job)
{
    struct node_reading *reading = job->reading;
    pthread_mutex_lock(&reading->lock);
    if (job->code && (!reading->code || job->chunk < reading->failed)) {
        reading->code = job->code;
        reading->err = job->err;
        reading->failed = job->chunk;
    }
    reading->stopped |= job->code || !job->more;
    pthread_mutex_unlock(&reading->lock);
}

static void *work(void *context)
{
    struct job *job = context;
    const struct store_node_reader *reader = job->reading->reader;
    while (take_chunk(job)) {
        run_job(job);
        if (!job->code && job->more && reader->end)
            reader->end(reader->context, job->chunk);
        end_chunk(job);
    }
    return NULL;
}

/* On the calling thread too; where no thread is to be had, that one does more. */
static enum err run_chunks(struct node_reading *reading, struct error *err)
{
    pthread_t threads[THREADS_MAX];
    size_t n = 0;
    for (size_t i = 0; i < reading->jobs_n; i++)
        reading->jobs[i].reading = reading;
    while (n + 1 < reading->jobs_n &&
           pthread_create(&threads[n], NULL, work, &reading->jobs[n + 1]) == 0)
        n++;
    if (reading->jobs_n)
        work(&reading->jobs[0]);
    for (size_t i = 0; i < n; i++)
        pthread_join(threads[i], NULL);
    if (reading->code && err)
        *err = reading->err;
    return reading->code;
}

static enum err read_notes(struct node_reading *reading, struct span hours, struct error *err)
{
    const struct store_node_reader *reader = reading->reader;
    struct row_batch batch = {.names = reading->store->names, .hours = hours};
    enum err code = notes_read(reading->store, hours, &batch, err);
    struct node_day day = {.notes = batch.notes, .notes_n = batch.notes_n};
    if (!code && batch.notes_n)
        reader->day(reader->context, 0, &day);
    row_batch_release(&batch);
    return code;
}

static enum err read_all(struct node_reading *reading, struct span hours, struct error *err)
{
    size_t chunks = 0;
    rank_places(reading);
    enum err code = hours.from < hours.to ? find_cells(reading, hours, err) : ERR_OK;
    if (code)
        return code;
    for (size_t at = 0; at < reading->n; at = chunk_end(reading, at))
        chunks++;
    reading->jobs_n = chunks < reading->jobs_n ? chunks : reading->jobs_n;
    reading->reader->begin(reading->reader->context, chunks ? chunks : 1);
    code = run_chunks(reading, err);
    return code || reading->stopped ? code : read_notes(reading, hours, err);
}

static void release_job(struct job *job)
{
    for (size_t b = 0; b < job->blocks_n; b++)
        block_release(&job->blocks[b]);
    free(job->blocks);
    free(job->series);
    free(job->hours);
    strbuf_release(&job->bytes);
    free(job->packed);
    free(job->order);
}

enum err store_read_nodes(struct store *store, struct span hours,
                          const struct store_node_reader *reader, struct error *err)
{
    hours = store_span_with_keys(hours);
    struct node_reading *reading = mem_zalloc(1, sizeof *reading);
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    reading->store = store;
    reading->window = hours;
    reading->reader = reader;
    pthread_mutex_init(&reading->lock, NULL);
    reading->jobs_n = store->lens || cores < 1 ? 1
                      : cores > THREADS_MAX    ? THREADS_MAX
                                               : (size_t)cores;
    enum err code = store_read_begin(store, err);
    if (!code) {
        code = read_all(reading, hours, err);
        store_read_end(store);
    }
    for (size_t i = 0; i < reading->jobs_n; i++)
        release_job(&reading->jobs[i]);
    pthread_mutex_destroy(&reading->lock);
    free(reading->cells);
    free(reading->ranks);
    free(reading);
    return code;
}
