/* Reading rows back, in order of hour and then of key, a day at a time. */
#include <stdlib.h>

#include "store/block.h"
#include "store/internal.h"

#define BATCH_ROWS 4096

enum err store_read_begin(struct store *store, struct error *err)
{
    if (store->writing || store->reading++ > 0)
        return ERR_OK;
    enum err code = db_run_simple(store, STATEMENT_BEGIN_READ, "beginning to read", err);
    if (!code)
        code = dictionary_refresh(store, err);
    if (code)
        store_read_end(store);
    return code;
}

void store_read_end(struct store *store)
{
    if (store->writing || --store->reading > 0)
        return;
    if (!sqlite3_get_autocommit(store->db))
        db_run_simple(store, STATEMENT_COMMIT, "ending to read", NULL);
}

enum err store_days(struct store *store, struct span hours, int64_t **ret, size_t *ret_n,
                    struct error *err)
{
    *ret = NULL;
    *ret_n = 0;
    if (hours.from >= hours.to)
        return ERR_OK;
    sqlite3_stmt *get = db_statement(store, STATEMENT_DAYS, err);
    if (!get)
        return ERR_STORE;
    sqlite3_bind_int64(get, 1, day_of(hours.from));
    sqlite3_bind_int64(get, 2, day_of(hours.to - 1));
    size_t room = 0;
    int rc;
    while ((rc = sqlite3_step(get)) == SQLITE_ROW)
        mem_push(*ret, *ret_n, room, sqlite3_column_int64(get, 0));
    enum err code = rc == SQLITE_DONE ? ERR_OK : db_fail(store, rc, "reading days", err);
    sqlite3_reset(get);
    return code;
}

static enum err read_day(struct store *store, int64_t day, struct row_batch *ret, struct error *err)
{
    sqlite3_stmt *get = db_statement(store, STATEMENT_BLOCKS_OF_DAY, err);
    if (!get)
        return ERR_STORE;
    sqlite3_bind_int64(get, 1, day);
    enum err code = ERR_OK;
    int rc = SQLITE_DONE;
    while (!code && (rc = sqlite3_step(get)) == SQLITE_ROW)
        code = block_unpack(store, db_text(get, 3), ret, err);
    if (!code && rc != SQLITE_DONE)
        code = db_fail(store, rc, "reading rows", err);
    sqlite3_reset(get);
    return code;
}

static int by_key(const void *a, const void *b, void *names)
{
    const struct row *left = a, *right = b;
    return row_key_cmp(names, &left->key, &right->key);
}

static int by_hour_node(const void *a, const void *b, void *names)
{
    const struct node_hour *left = a, *right = b;
    struct row_key l = {.hour = left->hour, .cluster = left->cluster, .node = left->node};
    struct row_key r = {.hour = right->hour, .cluster = right->cluster, .node = right->node};
    return row_key_cmp(names, &l, &r);
}

/* Hand the day's rows over, an hour at a time, in pieces; node-hours come with the first piece. */
static bool emit_day(struct row_batch *day, struct span hours, store_row_fn each, void *context)
{
    size_t row = 0, node_hour = 0;
    while (row < day->rows_n || node_hour < day->node_hours_n) {
        time_ms hour = row < day->rows_n ? day->rows[row].key.hour : TIME_MAX;
        if (node_hour < day->node_hours_n && day->node_hours[node_hour].hour < hour)
            hour = day->node_hours[node_hour].hour;
        struct row_batch batch = {.names = day->names, .hours = {hour, hour + HOUR_MS}};
        batch.node_hours = day->node_hours + node_hour;
        while (node_hour < day->node_hours_n && day->node_hours[node_hour].hour == hour)
            node_hour++, batch.node_hours_n++;
        do {
            batch.rows = day->rows + row;
            batch.rows_n = 0;
            while (row < day->rows_n && day->rows[row].key.hour == hour &&
                   batch.rows_n < BATCH_ROWS)
                row++, batch.rows_n++;
            if (hour >= hours.from && hour < hours.to && !each(context, &batch))
                return false;
            batch.node_hours_n = 0;
        } while (row < day->rows_n && day->rows[row].key.hour == hour);
    }
    return true;
}

static enum err read_rows(struct store *store, struct span hours, store_row_fn each, void *context,
                          struct error *err)
{
    int64_t *days;
    size_t n;
    bool more = true;
    struct row_batch batch = {.names = store->names};
    enum err code = store_days(store, hours, &days, &n, err);
    for (size_t i = 0; i < n && !code && more; i++) {
        row_batch_clear(&batch);
        code = read_day(store, days[i], &batch, err);
        if (code)
            break;
        if (batch.rows_n)
            qsort_r(batch.rows, batch.rows_n, sizeof *batch.rows, by_key, store->names);
        if (batch.node_hours_n)
            qsort_r(batch.node_hours, batch.node_hours_n, sizeof *batch.node_hours, by_hour_node,
                    store->names);
        more = emit_day(&batch, hours, each, context);
    }
    row_batch_clear(&batch);
    if (!code && more) {
        batch.hours = hours;
        code = notes_read(store, hours, &batch, err);
        if (!code && batch.notes_n)
            each(context, &batch);
    }
    row_batch_release(&batch);
    free(days);
    return code;
}

enum err store_read_rows(struct store *store, struct span hours, store_row_fn each, void *context,
                         struct error *err)
{
    enum err code = store_read_begin(store, err);
    if (code)
        return code;
    code = read_rows(store, hours, each, context, err);
    store_read_end(store);
    return code;
}

static enum err hours_of_day(struct store *store, int64_t day, uint32_t *ret, struct error *err)
{
    sqlite3_stmt *get = db_statement(store, STATEMENT_DAY_HOURS, err);
    if (!get)
        return ERR_STORE;
    sqlite3_bind_int64(get, 1, day);
    *ret = 0;
    int rc;
    while ((rc = sqlite3_step(get)) == SQLITE_ROW)
        *ret |= (uint32_t)sqlite3_column_int64(get, 0) & 0xffffff;
    enum err code = rc == SQLITE_DONE ? ERR_OK : db_fail(store, rc, "reading days", err);
    sqlite3_reset(get);
    return code;
}

static enum err extent(struct store *store, struct span *ret, struct error *err)
{
    sqlite3_stmt *get = db_statement(store, STATEMENT_DAY_FIRST_LAST, err);
    if (!get)
        return ERR_STORE;
    int rc = sqlite3_step(get);
    bool empty = rc == SQLITE_ROW && sqlite3_column_type(get, 0) == SQLITE_NULL;
    int64_t first = rc == SQLITE_ROW ? sqlite3_column_int64(get, 0) : 0;
    int64_t last = rc == SQLITE_ROW ? sqlite3_column_int64(get, 1) : 0;
    enum err code = rc == SQLITE_ROW ? ERR_OK : db_fail(store, rc, "reading days", err);
    sqlite3_reset(get);
    if (!code && empty)
        code = error_set(err, ERR_NOT_FOUND, "%s is empty: nothing has been collected into it yet",
                         store->path);
    uint32_t head = 0, tail = 0;
    if (!code)
        code = hours_of_day(store, first, &head, err);
    if (!code)
        code = hours_of_day(store, last, &tail, err);
    if (!code && (!head || !tail))
        code = db_corrupt(store, "a day without hours", err);
    if (!code)
        *ret = (struct span){first * DAY_MS + __builtin_ctz(head) * HOUR_MS,
                             last * DAY_MS + (32 - __builtin_clz(tail)) * HOUR_MS};
    return code;
}

enum err store_extent(struct store *store, struct span *ret, struct error *err)
{
    enum err code = store_read_begin(store, err);
    if (code)
        return code;
    code = extent(store, ret, err);
    store_read_end(store);
    return code;
}
