/* One pass over the ledger, node by node and on all cores: each chunk of nodes has books of its
 * own, which are put one behind the other in the end. Days of a node come in order, so that what
 * held up to now is what the last rows say. */
#include "insight/books.h"

#include <stdlib.h>

#include "fleet/intake.h"
#include "insight/books_gather.h"
#include "insight/books_load.h"

#define NOW_MS (2 * HOUR_MS)

struct gathering {
    struct books *books;
    struct book_part *parts;
    size_t n;
};

static void begin_parts(void *context, size_t n)
{
    struct gathering *gathering = context;
    gathering->parts = mem_zalloc(n, sizeof *gathering->parts);
    gathering->n = n;
    for (size_t i = 0; i < n; i++)
        book_part_init(&gathering->parts[i], gathering->books);
}

static bool take_day(void *context, size_t chunk, const struct node_day *day)
{
    struct book_part *part = &((struct gathering *)context)->parts[chunk];
    struct books *books = &part->books;
    for (size_t i = 0; i < day->notes_n; i++)
        if (day->notes[i].kind == NOTE_EXEMPT)
            mem_push(books->wishes, books->wishes_n, books->wishes_room, day->notes[i]);
    book_part_add(part, day);
    return true;
}

/* Put a part behind what there is: its nodes are in no other, its workloads may be. */
static void add_part(struct books *books, struct idmap *map, const struct books *part)
{
    size_t nodes = books->nodes_n;
    size_t *workloads = mem_alloc((part->workloads_n + 1) * sizeof *workloads);
    for (size_t i = 0; i < part->workloads_n; i++) {
        const struct book_workload *more = &part->workloads[i];
        workloads[i] =
            book_workload_index(books, map, more->cluster, more->namespace, more->workload);
        struct book_workload *of = &books->workloads[workloads[i]];
        of->gpus_a_pod = more->gpus_a_pod > of->gpus_a_pod ? more->gpus_a_pod : of->gpus_a_pod;
        book_sum_join(&of->sum, &more->sum);
    }
    for (size_t i = 0; i < part->nodes_n; i++)
        mem_push(books->nodes, books->nodes_n, books->nodes_room, part->nodes[i]);
    for (size_t i = 0; i < part->cells_n; i++) {
        struct book_cell *cell = &books->cells[books->cells_n++];
        *cell = part->cells[i];
        cell->node_index += nodes;
        if (cell->workload != SIZE_MAX) {
            cell->workload = workloads[cell->workload];
            books->workloads[cell->workload].cells_n++;
        }
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
    struct books *books = gathering->books;
    struct idmap workloads = {0};
    size_t cells = 0;
    for (size_t i = 0; i < gathering->n; i++)
        cells += gathering->parts[i].books.cells_n;
    mem_reserve(books->cells, books->cells_n, books->cells_room, cells + 1);
    for (size_t i = 0; i < gathering->n; i++) {
        add_part(books, &workloads, &gathering->parts[i].books);
        book_part_release(&gathering->parts[i]);
    }
    idmap_release(&workloads);
    free(gathering->parts);
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

/* The cells of each workload, and its sum. */
static void add_up(struct books *books)
{
    size_t at = 0;
    books->of_workloads = mem_alloc((books->cells_n + 1) * sizeof *books->of_workloads);
    for (size_t i = 0; i < books->workloads_n; i++) {
        struct book_workload *of = &books->workloads[i];
        of->cells = books->of_workloads + at;
        at += of->cells_n;
        of->cells_n = 0;
        of->sum.worked_until = TIME_MIN;
    }
    for (size_t c = 0; c < books->cells_n; c++) {
        if (books->cells[c].workload == SIZE_MAX)
            continue;
        struct book_workload *of = &books->workloads[books->cells[c].workload];
        of->cells[of->cells_n++] = c;
        book_sum_add_cell(&of->sum, &books->cells[c]);
    }
    for (size_t i = 0; i < books->workloads_n; i++) {
        struct book_workload *of = &books->workloads[i];
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
    const struct store_node_reader reader = {
        .context = &gathering, .begin = begin_parts, .day = take_day};
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
    number_pools(books);
    add_up(books);
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
