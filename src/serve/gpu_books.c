#include "serve/gpu_books.h"

#include <stdlib.h>

#include "insight/idle.h"

struct held_book {
    struct gpu_book public;
    atomic_int refs;
    struct span extent;
    uint64_t generation;
    time_ms made; /* monotonic */
};

struct gpu_books {
    pthread_mutex_t making; /* whoever makes a book */
    pthread_mutex_t lock;   /* of the current one */
    struct held_book *book; /* NULL: none yet */
};

struct gpu_books *gpu_books_new(void)
{
    struct gpu_books *books = mem_zalloc(1, sizeof *books);
    pthread_mutex_init(&books->making, NULL);
    pthread_mutex_init(&books->lock, NULL);
    return books;
}

void gpu_book_release(const struct gpu_book *public)
{
    struct held_book *book = (struct held_book *)(uintptr_t) public;
    if (!book || atomic_fetch_sub(&book->refs, 1) > 1)
        return;
    free(book->public.gpus);
    idmap_release(&book->public.by_device);
    idmap_release(&book->public.by_pod);
    names_free(book->public.names);
    free(book);
}

void gpu_books_free(struct gpu_books *books)
{
    if (!books)
        return;
    if (books->book)
        gpu_book_release(&books->book->public);
    pthread_mutex_destroy(&books->making);
    pthread_mutex_destroy(&books->lock);
    free(books);
}

static bool find(const struct gpu_book *book, const struct str *texts, struct idkey *ret)
{
    *ret = IDKEY(NAME_NONE);
    for (size_t i = 0; i < 3; i++)
        if (texts[i].n && !names_find(book->names, texts[i], &ret->part[i]))
            return false;
    return true;
}

const struct gpu_known *gpu_book_slot(const struct gpu_book *book, struct str cluster,
                                      struct str device, struct str instance)
{
    struct idkey key;
    if (!find(book, (const struct str[]){cluster, device, instance}, &key))
        return NULL;
    uint32_t at = idmap_get(&book->by_device, key);
    return at == IDMAP_NONE ? NULL : &book->gpus[at];
}

const struct gpu_known *gpu_book_pod(const struct gpu_book *book, struct str cluster,
                                     struct str namespace, struct str pod)
{
    struct idkey key;
    if (!find(book, (const struct str[]){cluster, namespace, pod}, &key))
        return NULL;
    uint32_t at = idmap_get(&book->by_pod, key);
    return at == IDMAP_NONE ? NULL : &book->gpus[at];
}

/* ---- making one ---- */

/* Sums of the rows of a slot. */
struct slot {
    struct gpu_known known;
    money_t cost;
    int64_t gpu_ms, held_ms; /* weighted by share; of the holder that is known */
    wide_t e, sm, mem_byte_ms;
    int64_t observed_ms, sm_ms, mem_ms, energy_mj;
};
struct last_hour {
    name_t cluster;
    time_ms hour;
};
struct making {
    struct names *names;
    struct last_hour *clusters; /* few: in no order */
    size_t clusters_n, clusters_room;
    struct slot *slots;
    size_t n, room;
    struct idmap since; /* (cluster, device): place in starts */
    time_ms *starts;
    size_t starts_n, starts_room;
};

static struct last_hour *cluster_of(const struct making *making, name_t cluster)
{
    for (size_t i = 0; i < making->clusters_n; i++)
        if (making->clusters[i].cluster == cluster)
            return &making->clusters[i];
    return NULL;
}

static bool note_hours(void *context, const struct node_hour *hours, size_t n)
{
    struct making *making = context;
    for (size_t i = 0; i < n; i++) {
        struct last_hour *last = cluster_of(making, hours[i].cluster);
        if (!last)
            mem_push(making->clusters, making->clusters_n, making->clusters_room,
                     ((struct last_hour){hours[i].cluster, hours[i].hour}));
        else if (hours[i].hour > last->hour)
            last->hour = hours[i].hour;
    }
    return true;
}

/* Rows of an hour come slot by slot. */
static struct slot *slot_of(struct making *making, const struct row *row)
{
    const struct row_key *key = &row->key;
    struct slot *last = making->n ? &making->slots[making->n - 1] : NULL;
    if (last && last->known.device == key->device && last->known.instance == key->instance &&
        last->known.node == key->node && last->known.cluster == key->cluster &&
        last->known.at == key->hour + HOUR_MS)
        return last;
    struct slot slot = {.known = {.cluster = key->cluster,
                                  .node = key->node,
                                  .device = key->device,
                                  .instance = key->instance,
                                  .model = row->facts.model,
                                  .at = key->hour + HOUR_MS}};
    mem_push(making->slots, making->n, making->room, slot);
    return &making->slots[making->n - 1];
}

static void add_row(struct making *making, const struct row *row)
{
    struct slot *slot = slot_of(making, row);
    int64_t den = row->share_den ? row->share_den : 1, held_ms = row->gpu_held_num / den;
    slot->cost += row->cost;
    slot->gpu_ms += row->gpu_num / den;
    slot->e += row->e;
    slot->observed_ms += row->observed_ms;
    slot->sm += row->measure[MEASURE_SM];
    slot->sm_ms += row->measure_seen_ms[MEASURE_SM];
    slot->mem_byte_ms += (wide_t)row->mem_byte_ms;
    slot->mem_ms += row->mem_seen_ms;
    slot->energy_mj += row->energy_mj;
    if (row->mem_total_bytes > slot->known.memory_total)
        slot->known.memory_total = row->mem_total_bytes;
    if (row->key.pod == NAME_NONE || held_ms <= slot->held_ms)
        return;
    slot->held_ms = held_ms;
    slot->known.namespace = row->key.namespace;
    slot->known.pod = row->key.pod;
    slot->known.workload = row->facts.workload;
    slot->known.team = row->facts.owner;
    slot->known.unlabelled = row->flags & (FLAG_BY_COUNT | FLAG_KEPT_DEVICE);
}

static bool take_rows(void *context, const struct row_batch *batch)
{
    struct making *making = context;
    for (size_t i = 0; i < batch->rows_n; i++) {
        const struct row *row = &batch->rows[i];
        const struct last_hour *last = cluster_of(making, row->key.cluster);
        if (last && last->hour == row->key.hour)
            add_row(making, row);
    }
    return true;
}

static enum err read_since(struct store *store, struct making *making, const struct config *config,
                           struct span extent, struct error *err)
{
    struct view *view = NULL;
    struct view_options options = {.window = extent, .days = 1, .prices = config->prices};
    if (options.window.from < extent.to - GPU_BOOKS_IDLE_MS)
        options.window.from = extent.to - GPU_BOOKS_IDLE_MS;
    enum err code = view_read(store, &options, &view, err);
    if (code)
        return code;
    for (size_t n = 0; n < view->nodes_n; n++)
        for (size_t i = 0; i < view->nodes[n].n; i++) {
            const struct view_device *device = &view->devices[view->nodes[n].first + i];
            struct idle_since since;
            idle_since_of(view, &view->nodes[n], device, 1, config->settings.gap_ms, &since);
            if (since.any) {
                idmap_set(&making->since, IDKEY(device->cluster, device->device),
                          (uint32_t)making->starts_n);
                mem_push(making->starts, making->starts_n, making->starts_room, since.span.from);
            }
            free(since.gaps);
        }
    view_free(view);
    return ERR_OK;
}

static int64_t mean(wide_t sum, int64_t over)
{
    return over > 0 ? (int64_t)(sum / over) : -1;
}

/* device_ms: of all slots of the device, so that a slot has its share of price and power. */
static void finish_slot(const struct making *making, struct slot *slot, int64_t device_ms)
{
    struct gpu_known *known = &slot->known;
    uint32_t since = idmap_get(&making->since, IDKEY(known->cluster, known->device));
    known->util = mean(slot->e, slot->observed_ms);
    known->sm = mean(slot->sm, slot->sm_ms);
    known->memory_used = mean(slot->mem_byte_ms, slot->mem_ms);
    known->memory_total = known->memory_total ? known->memory_total : -1;
    known->power_mw = slot->energy_mj ? mean((wide_t)slot->energy_mj * 1000, device_ms) : -1;
    known->price_hour =
        slot->cost && device_ms > 0 ? (money_t)((wide_t)slot->cost * HOUR_MS / device_ms) : -1;
    known->idle_since = since == IDMAP_NONE ? TIME_MIN : making->starts[since];
}

static bool same_device(const struct gpu_known *a, const struct gpu_known *b)
{
    return a->device == b->device && a->node == b->node && a->cluster == b->cluster;
}

/* Into the book; what is left of a device that is split is no slot. */
static void finish(const struct making *making, struct gpu_book *book)
{
    book->gpus = mem_zalloc(making->n + 1, sizeof *book->gpus);
    for (size_t i = 0, end; i < making->n; i = end) {
        int64_t device_ms = 0;
        for (end = i;
             end < making->n && same_device(&making->slots[end].known, &making->slots[i].known);
             end++)
            device_ms += making->slots[end].gpu_ms;
        for (size_t k = i; k < end; k++) {
            struct slot *slot = &making->slots[k];
            if (end - i > 1 && slot->known.instance == NAME_NONE)
                continue;
            finish_slot(making, slot, device_ms);
            struct gpu_known *known = &book->gpus[book->n];
            *known = slot->known;
            idmap_set(&book->by_device, IDKEY(known->cluster, known->device, known->instance),
                      (uint32_t)book->n);
            if (known->pod != NAME_NONE)
                idmap_set(&book->by_pod, IDKEY(known->cluster, known->namespace, known->pod),
                          (uint32_t)book->n);
            book->n++;
        }
    }
}

/* Slots in order of place also where clusters have different last hours. */
static int by_place(const void *a, const void *b, void *names)
{
    const struct gpu_known *x = &((const struct slot *)a)->known,
                           *y = &((const struct slot *)b)->known;
    struct row_key left = {
        .cluster = x->cluster, .node = x->node, .device = x->device, .instance = x->instance};
    struct row_key right = {
        .cluster = y->cluster, .node = y->node, .device = y->device, .instance = y->instance};
    return row_key_cmp(names, &left, &right);
}

static enum err read_rows(struct store *store, struct making *making, struct span extent,
                          struct error *err)
{
    struct span hours = {extent.to, extent.to}, back = extent;
    if (back.from < extent.to - GPU_BOOKS_BACK_MS)
        back.from = extent.to - GPU_BOOKS_BACK_MS;
    enum err code = query_node_hours(store, back, note_hours, making, err);
    for (size_t i = 0; i < making->clusters_n; i++)
        if (making->clusters[i].hour < hours.from)
            hours.from = making->clusters[i].hour;
    if (!code)
        code = query_rows(store, hours, take_rows, making, err);
    if (making->n)
        qsort_r(making->slots, making->n, sizeof *making->slots, by_place, making->names);
    return code;
}

static enum err read_ledger(struct store *store, const struct config *config, struct span extent,
                            struct gpu_book *book, struct error *err)
{
    struct making making = {.names = book->names};
    enum err code = read_rows(store, &making, extent, err);
    if (!code)
        code = read_since(store, &making, config, extent, err);
    if (!code)
        finish(&making, book);
    idmap_release(&making.since);
    free(making.clusters);
    free(making.slots);
    free(making.starts);
    return code;
}

/* On a handle of its own: the caller's may be cut to a view. */
static enum err make(const struct api_call *call, struct held_book **ret, struct error *err)
{
    struct held_book *book = mem_zalloc(1, sizeof *book);
    struct store *store = NULL;
    atomic_init(&book->refs, 1);
    book->public.names = names_new();
    book->extent = call->extent;
    book->generation = call->generation;
    book->made = clock_monotonic();
    enum err code = ERR_OK;
    if (call->extent.from < call->extent.to)
        code = store_open(call->api->db, STORE_READ, book->public.names, &store, err);
    if (store) {
        code = read_ledger(store, call->settings->config, call->extent, &book->public, err);
        store_close(store);
    }
    if (code)
        gpu_book_release(&book->public);
    else
        *ret = book;
    return code;
}

/* ---- the current one ---- */

static bool is_fresh(const struct held_book *book, const struct api_call *call)
{
    return book->extent.to == call->extent.to &&
           (book->generation == call->generation ||
            clock_monotonic() - book->made < GPU_BOOKS_FRESH_MS);
}

/* Held; NULL: none. *ret_fresh: it is of now. */
static struct held_book *current(struct gpu_books *books, const struct api_call *call,
                                 bool *ret_fresh)
{
    pthread_mutex_lock(&books->lock);
    struct held_book *book = books->book;
    if (book)
        atomic_fetch_add(&book->refs, 1);
    *ret_fresh = book && is_fresh(book, call);
    pthread_mutex_unlock(&books->lock);
    return book;
}

static void put(struct gpu_books *books, struct held_book *book)
{
    atomic_fetch_add(&book->refs, 1);
    pthread_mutex_lock(&books->lock);
    struct held_book *old = books->book;
    books->book = book;
    pthread_mutex_unlock(&books->lock);
    if (old)
        gpu_book_release(&old->public);
}

enum err gpu_books_take(struct gpu_books *books, struct api_call *call, const struct gpu_book **ret,
                        struct error *err)
{
    bool fresh;
    enum err code = ERR_OK;
    struct held_book *book = current(books, call, &fresh);
    if (!fresh && !book) { /* the first: all wait for it */
        pthread_mutex_lock(&books->making);
        book = current(books, call, &fresh);
        if (fresh)
            pthread_mutex_unlock(&books->making);
    } else if (!fresh && pthread_mutex_trylock(&books->making) != 0) {
        fresh = true; /* somebody makes the next one */
    }
    if (!fresh) {
        struct held_book *next = NULL;
        code = make(call, &next, err);
        if (next) {
            put(books, next);
            if (book)
                gpu_book_release(&book->public);
            book = next;
        }
        pthread_mutex_unlock(&books->making);
    }
    if (code && book)
        gpu_book_release(&book->public);
    if (!code)
        *ret = &book->public;
    return code;
}
