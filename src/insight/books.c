/* One pass over the ledger, node by node and on all cores: each chunk of nodes has books of its
 * own, which are put one behind the other, in order of chunk: by whoever ends the one that is next,
 * while the others read on. Days of a node come in order, so that what held up to now is what the
 * last rows say. */
#include "insight/books.h"

#include <pthread.h>
#include <stdlib.h>

#include "fleet/intake.h"
#include "insight/books_gather.h"
#include "insight/books_load.h"

#define NOW_MS (2 * HOUR_MS)

struct chunk {
    struct book_part *part; /* NULL: it has not begun, or is joined */
    bool ended;
};

struct gathering {
    struct books *books;    /* whoever is joining has them, … */
    struct idmap workloads; /* … and theirs */
    struct chunk *chunks;   /* the lock's, but for the part of one that is being read */
    size_t n;
    pthread_mutex_t lock; /* of what follows */
    size_t joined;        /* chunks before this one are in the books */
    bool joining;
    struct book_part **spare; /* [n]: parts that others can use again */
    size_t spare_n;
};

static void begin_parts(void *context, size_t n)
{
    struct gathering *gathering = context;
    gathering->chunks = mem_zalloc(n, sizeof *gathering->chunks);
    gathering->spare = mem_zalloc(n, sizeof *gathering->spare);
    gathering->n = n;
}

/* A part for a chunk that begins. */
static struct book_part *new_part(struct gathering *gathering)
{
    pthread_mutex_lock(&gathering->lock);
    struct book_part *part = gathering->spare_n ? gathering->spare[--gathering->spare_n] : NULL;
    pthread_mutex_unlock(&gathering->lock);
    if (!part)
        part = mem_zalloc(1, sizeof *part);
    book_part_begin(part, gathering->books);
    return part;
}

/* Notes come last, in a day of their own, when all parts are joined. */
static bool take_day(void *context, size_t chunk, const struct node_day *day)
{
    struct gathering *gathering = context;
    struct books *books = gathering->books;
    struct chunk *of = &gathering->chunks[chunk];
    for (size_t i = 0; i < day->notes_n; i++)
        if (day->notes[i].kind == NOTE_EXEMPT)
            mem_push(books->wishes, books->wishes_n, books->wishes_room, day->notes[i]);
    if (day->notes_n)
        return true;
    if (!of->part)
        of->part = new_part(gathering);
    book_part_add(of->part, day);
    return true;
}

/* Put a part behind what there is: its nodes are in no other, its workloads may be. */
static void add_part(struct books *books, struct idmap *map, const struct books *part)
{
    size_t nodes = books->nodes_n, cells = books->cells_n;
    size_t *workloads = mem_alloc((part->workloads_n + 1) * sizeof *workloads);
    for (size_t i = 0; i < part->workloads_n; i++) {
        const struct book_workload *more = &part->workloads[i];
        workloads[i] =
            book_workload_index(books, map, more->cluster, more->namespace, more->workload);
        struct book_workload *of = &books->workloads[workloads[i]];
        of->gpus_a_pod = more->gpus_a_pod > of->gpus_a_pod ? more->gpus_a_pod : of->gpus_a_pod;
        book_sum_join(&of->sum, &more->sum);
    }
    for (size_t i = 0; i < part->nodes_n; i++) {
        mem_push(books->nodes, books->nodes_n, books->nodes_room, part->nodes[i]);
        books->nodes[books->nodes_n - 1].cells += cells;
    }
    mem_reserve(books->cells, books->cells_n, books->cells_room, part->cells_n + 1);
    for (size_t i = 0; i < part->cells_n; i++) {
        struct book_cell *cell = &books->cells[books->cells_n++];
        *cell = part->cells[i];
        cell->node_index += nodes;
        if (cell->workload != SIZE_MAX) {
            cell->workload = workloads[cell->workload];
            books->workloads[cell->workload].cells_n++;
        }
    }
    if (part->window.from < books->window.from)
        books->window.from = part->window.from;
    if (part->window.to > books->window.to)
        books->window.to = part->window.to;
    free(workloads);
}

/* With the lock held before and after, not meanwhile. */
static void join_next(struct gathering *gathering)
{
    struct book_part *part = gathering->chunks[gathering->joined].part;
    gathering->chunks[gathering->joined].part = NULL;
    pthread_mutex_unlock(&gathering->lock);
    if (part)
        add_part(gathering->books, &gathering->workloads, &part->books);
    pthread_mutex_lock(&gathering->lock);
    if (part)
        gathering->spare[gathering->spare_n++] = part;
    gathering->joined++;
}

/* Nobody waits: whoever comes while somebody is joining leaves its part to them. */
static void end_part(void *context, size_t chunk)
{
    struct gathering *gathering = context;
    if (gathering->chunks[chunk].part)
        book_part_add_up(gathering->chunks[chunk].part);
    pthread_mutex_lock(&gathering->lock);
    gathering->chunks[chunk].ended = true;
    bool joins = !gathering->joining;
    gathering->joining = true;
    while (joins && gathering->joined < gathering->n && gathering->chunks[gathering->joined].ended)
        join_next(gathering);
    if (joins)
        gathering->joining = false;
    pthread_mutex_unlock(&gathering->lock);
}

static void number_pools(struct books *books)
{
    struct idmap pools = {0};
    for (size_t i = 0; i < books->nodes_n; i++) {
        struct book_node *node = &books->nodes[i];
        bool fresh;
        node->pool =
            idmap_add(&pools, IDKEY(node->cluster, node->facts.pool, node->facts.instance_type),
                      (uint32_t)i, &fresh);
    }
    idmap_release(&pools);
}

/* The cells of each workload, and what is known of all of them. */
static void list_cells(struct books *books)
{
    size_t at = 0;
    books->of_workloads = mem_alloc((books->cells_n + 1) * sizeof *books->of_workloads);
    for (size_t i = 0; i < books->workloads_n; i++) {
        struct book_workload *of = &books->workloads[i];
        of->cells = books->of_workloads + at;
        at += of->cells_n;
        of->cells_n = 0;
        of->owner = of->sum.facts.owner;
        of->model = of->sum.facts.model;
        of->type = of->sum.facts.type;
    }
    for (size_t c = 0; c < books->cells_n; c++) {
        if (books->cells[c].workload == SIZE_MAX)
            continue;
        struct book_workload *of = &books->workloads[books->cells[c].workload];
        of->cells[of->cells_n++] = c;
    }
}

static void free_part(struct book_part *part)
{
    if (part)
        book_part_release(part);
    free(part);
}

static enum err gather(struct gathering *gathering, struct store *store, struct span window,
                       struct error *err)
{
    const struct store_node_reader reader = {
        .context = gathering, .begin = begin_parts, .day = take_day, .end = end_part};
    pthread_mutex_init(&gathering->lock, NULL);
    enum err code = query_nodes(store, window, &reader, err);
    for (size_t i = gathering->joined; i < gathering->n; i++) /* of what failed */
        free_part(gathering->chunks[i].part);
    while (gathering->spare_n)
        free_part(gathering->spare[--gathering->spare_n]);
    free(gathering->chunks);
    free(gathering->spare);
    pthread_mutex_destroy(&gathering->lock);
    return code;
}

enum err books_read(struct store *store, struct span window, const struct thresholds *thresholds,
                    struct books **ret, struct error *err)
{
    struct books *books = mem_zalloc(1, sizeof *books);
    struct gathering gathering = {.books = books};
    books->names = store_names(store);
    books->window = (struct span){TIME_MAX, TIME_MIN};
    if (thresholds)
        books->thresholds = *thresholds;
    else
        thresholds_defaults(&books->thresholds);
    enum err code = gather(&gathering, store, window, err);
    if (!code)
        code = books_read_loads(books, &gathering.workloads, store, window, err);
    idmap_release(&gathering.workloads);
    if (books->window.from >= books->window.to)
        books->window = window;
    if (code) {
        books_free(books);
        return code;
    }
    number_pools(books);
    list_cells(books);
    *ret = books;
    return ERR_OK;
}

void books_free(struct books *books)
{
    if (!books)
        return;
    free(books->cells);
    free(books->of_workloads);
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
