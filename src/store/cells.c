/* Blocks on their way to disk. The engine delivers nodes in any order; written as they come they
 * would split pages all the time and leave a third of the file empty. */
#include <stdlib.h>

#include "store/internal.h"

#define PENDING_BYTES_MAX ((size_t)8 << 20)

static size_t slot_of(const struct pending *pending, int64_t key)
{
    size_t at = (size_t)(((uint64_t)key * UINT64_C(0x9e3779b97f4a7c15)) >> 20) & pending->mask;
    while (pending->table[at] && pending->items[pending->table[at] - 1].key != key)
        at = (at + 1) & pending->mask;
    return at;
}

static struct pending_block *find(const struct pending *pending, int64_t key)
{
    if (!pending->table)
        return NULL;
    uint32_t item = pending->table[slot_of(pending, key)];
    return item ? &pending->items[item - 1] : NULL;
}

static struct pending_block *add(struct pending *pending, int64_t key)
{
    mem_push(pending->items, pending->n, pending->room, ((struct pending_block){.key = key}));
    if (pending->n * 2 > pending->mask) {
        free(pending->table);
        pending->mask = pending->mask ? pending->mask * 2 + 1 : 255;
        pending->table = mem_zalloc(pending->mask + 1, sizeof *pending->table);
        for (size_t i = 0; i < pending->n; i++)
            pending->table[slot_of(pending, pending->items[i].key)] = (uint32_t)i + 1;
    } else {
        pending->table[slot_of(pending, key)] = (uint32_t)pending->n;
    }
    return &pending->items[pending->n - 1];
}

/* A segment of a day in progress, not the block that stays. */
static bool is_open(int64_t key)
{
    return (key & ((1 << SEGMENT_BITS) - 1)) != 0;
}

enum err cell_read(struct store *store, int64_t key, struct strbuf *ret, bool *ret_found,
                   struct error *err)
{
    const struct pending_block *block = find(&store->pending, key);
    strbuf_clear(ret);
    *ret_found = block && block->hours;
    if (block) {
        strbuf_add(ret, strbuf_str(&block->data));
        return ERR_OK;
    }
    sqlite3_stmt *get =
        db_statement(store, is_open(key) ? STATEMENT_SEGMENT_GET : STATEMENT_BLOCK_GET, err);
    if (!get)
        return ERR_STORE;
    sqlite3_bind_int64(get, 1, key);
    int rc = sqlite3_step(get);
    *ret_found = rc == SQLITE_ROW;
    if (*ret_found)
        strbuf_add(ret, db_text(get, 0));
    enum err code =
        rc == SQLITE_ROW || rc == SQLITE_DONE ? ERR_OK : db_fail(store, rc, "reading rows", err);
    sqlite3_reset(get);
    return code;
}

enum err cells_of_place(struct store *store, int64_t day, uint32_t place, struct segment *ret,
                        size_t *ret_n, struct error *err)
{
    uint32_t hours[1 << SEGMENT_BITS] = {0};
    sqlite3_stmt *get = db_statement(store, STATEMENT_BLOCK_HOURS, err);
    if (!get)
        return ERR_STORE;
    int64_t first = cell_key(day, place, 0);
    sqlite3_bind_int64(get, 1, first);
    sqlite3_bind_int64(get, 2, cell_key(day, place + 1, 0));
    int rc;
    while ((rc = sqlite3_step(get)) == SQLITE_ROW)
        hours[sqlite3_column_int64(get, 0) - first] =
            (uint32_t)sqlite3_column_int64(get, 1) & 0xffffff;
    enum err code = rc == SQLITE_DONE ? ERR_OK : db_fail(store, rc, "reading rows", err);
    sqlite3_reset(get);
    *ret_n = 0;
    for (uint32_t s = 0; s < 1 << SEGMENT_BITS; s++) {
        const struct pending_block *block = find(&store->pending, first + s);
        if (block)
            hours[s] = block->hours;
        if (hours[s])
            ret[(*ret_n)++] = (struct segment){first + s, hours[s]};
    }
    return code;
}

static void mark_day(struct store *store, int64_t day)
{
    for (size_t i = store->dirty_days_n; i-- > 0;)
        if (store->dirty_days[i] == day)
            return;
    mem_push(store->dirty_days, store->dirty_days_n, store->dirty_days_room, day);
}

enum err cell_write(struct store *store, int64_t key, uint32_t hours, struct str data,
                    struct error *err)
{
    struct pending *pending = &store->pending;
    struct pending_block *block = find(pending, key);
    if (!block)
        block = add(pending, key);
    pending->bytes -= block->data.n;
    strbuf_clear(&block->data);
    strbuf_add(&block->data, data);
    block->hours = hours;
    pending->bytes += data.n;
    mark_day(store, cell_day(key));
    return pending->bytes > PENDING_BYTES_MAX ? cells_flush(store, err) : ERR_OK;
}

static enum err write_block(struct store *store, const struct pending_block *block,
                            struct error *err)
{
    enum statement which = is_open(block->key)
                               ? (block->hours ? STATEMENT_SEGMENT_PUT : STATEMENT_SEGMENT_DROP)
                               : (block->hours ? STATEMENT_BLOCK_PUT : STATEMENT_BLOCK_DROP);
    sqlite3_stmt *put = db_statement(store, which, err);
    if (!put)
        return ERR_STORE;
    sqlite3_bind_int64(put, 1, block->key);
    if (block->hours) {
        sqlite3_bind_int64(put, 2, block->hours);
        sqlite3_bind_blob64(put, 3, block->data.text, block->data.n, SQLITE_STATIC);
    }
    enum err code = db_run(store, put, "writing rows", err);
    sqlite3_clear_bindings(put);
    return code;
}

static int by_key(const void *a, const void *b)
{
    const struct pending_block *left = a, *right = b;
    return (left->key > right->key) - (left->key < right->key);
}

enum err cells_flush(struct store *store, struct error *err)
{
    struct pending *pending = &store->pending;
    if (pending->n)
        qsort(pending->items, pending->n, sizeof *pending->items, by_key);
    enum err code = ERR_OK;
    for (size_t i = 0; i < pending->n && !code; i++)
        code = write_block(store, &pending->items[i], err);
    cells_forget(store);
    return code;
}

void cells_forget(struct store *store)
{
    struct pending *pending = &store->pending;
    for (size_t i = 0; i < pending->n; i++)
        strbuf_release(&pending->items[i].data);
    pending->n = 0;
    pending->bytes = 0;
    if (pending->table)
        memset(pending->table, 0, (pending->mask + 1) * sizeof *pending->table);
}

void cells_release(struct store *store)
{
    cells_forget(store);
    free(store->pending.items);
    free(store->pending.table);
    free(store->dirty_days);
    store->pending = (struct pending){0};
    store->dirty_days = NULL;
    store->dirty_days_n = store->dirty_days_room = 0;
}

enum err store_settle(struct store *store, struct error *err)
{
    enum err code = cells_flush(store, err);
    for (size_t i = 0; i < store->dirty_days_n && !code; i++)
        code = day_write(store, store->dirty_days[i], err);
    if (!code)
        store->dirty_days_n = 0;
    return code;
}
