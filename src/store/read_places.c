/* Rows of some nodes: their blocks are sought, and no others are opened. */
#include <stdlib.h>

#include "store/block.h"
#include "store/internal.h"
#include "store/lens.h"

struct reading {
    struct store *store;
    const struct day *day;
    uint32_t hours; /* of the day that are wanted */
    struct row_batch *batch;
    store_row_fn each;
    void *context;
    bool more;
};

/* 0 or 1 blocks: a place has one a day (several after an import of several books). */
static enum err read_place(struct reading *reading, uint32_t place, struct error *err)
{
    struct store *store = reading->store;
    struct place at = store->places.items[place - 1];
    sqlite3_stmt *get = db_statement(store, STATEMENT_BLOCKS, err);
    if (!get)
        return ERR_STORE;
    sqlite3_bind_int64(get, 1, cell_key(reading->day->day, place, 0));
    sqlite3_bind_int64(get, 2, cell_key(reading->day->day, place + 1, 0));
    enum err code = ERR_OK;
    int rc = SQLITE_DONE;
    while (!code && reading->more && (rc = sqlite3_step(get)) == SQLITE_ROW) {
        if (!((uint32_t)sqlite3_column_int64(get, 1) & reading->hours))
            continue;
        row_batch_clear(reading->batch);
        reading->batch->names = store->names;
        code = block_open(store, store->reading, reading->day->day, at.cluster, at.node,
                          db_text(get, 2), BLOCK_NAMES_ALL, err);
        if (!code)
            code = block_rows(store, store->reading, reading->hours, reading->batch, err);
        if (!code && store->lens)
            lens_cut(store->lens, reading->batch);
        reading->more = code || reading->each(reading->context, reading->batch);
    }
    if (!code && reading->more && rc != SQLITE_DONE)
        code = db_fail(store, rc, "reading rows", err);
    sqlite3_reset(get);
    return code;
}

enum err store_read_rows_of(struct store *store, struct span hours, store_wants_node_fn wants,
                            store_row_fn each, void *context, struct error *err)
{
    struct day *days = NULL;
    size_t n = 0;
    struct row_batch batch = {0};
    enum err code = store_read_begin(store, err);
    if (code)
        return code;
    hours = store_span_with_keys(hours);
    code = store_days(store, hours, &days, &n, err);
    struct reading reading = {
        .store = store, .batch = &batch, .each = each, .context = context, .more = true};
    for (size_t i = 0; i < n && !code; i++) {
        reading.day = &days[i];
        reading.hours = hours_in_day(hours, days[i].day);
        for (uint32_t p = 0; p < store->places.n && !code && reading.more; p++)
            if (wants(context, store->places.items[p].cluster, store->places.items[p].node))
                code = read_place(&reading, p + 1, err);
    }
    free(days);
    row_batch_release(&batch);
    store_read_end(store);
    return code;
}
