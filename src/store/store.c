/* The store's handle: open, transactions, appends, progress. Reading is in read.c.
 *
 * The unit on disk is a node's UTC day (block.h). An append unpacks the day, takes out the hours
 * that it brings, puts its own in, and packs it again; nothing else on disk is touched. */
#include <stdlib.h>

#include "store/block.h"
#include "store/internal.h"

enum err store_open(const char *path, enum store_mode mode, struct names *names, struct store **ret,
                    struct error *err)
{
    struct store *store = mem_zalloc(1, sizeof *store);
    store->path = str_dup(str_of(path));
    store->mode = mode;
    store->names = names;
    enum err code = db_open(store, err);
    if (!code)
        code = store_migrate(store, err);
    if (!code)
        code = dictionary_refresh(store, err);
    if (code) {
        store_close(store);
        return code;
    }
    *ret = store;
    return ERR_OK;
}

struct names *store_names(const struct store *store)
{
    return store->names;
}

void store_close(struct store *store)
{
    if (!store)
        return;
    store_rollback(store);
    dictionary_release(store);
    db_close(store);
    free(store->path);
    free(store);
}

enum err store_begin(struct store *store, struct error *err)
{
    invariant(store->mode == STORE_WRITE && !store->writing && !store->reading);
    enum err code = db_run_simple(store, STATEMENT_BEGIN_WRITE, "beginning to write", err);
    store->writing = !code;
    return code;
}

void store_rollback(struct store *store)
{
    if (!store->writing)
        return;
    for (int i = 0; i < STATEMENT_COUNT; i++)
        sqlite3_reset(store->statements[i]);
    /* After a full disk SQLite may have rolled back by itself. */
    if (!sqlite3_get_autocommit(store->db))
        sqlite3_exec(store->db, "ROLLBACK", NULL, NULL, NULL);
    store->writing = false;
    dictionary_rolled_back(store);
}

static enum err put_progress(struct store *store, const struct store_progress *progress,
                             struct error *err)
{
    sqlite3_stmt *put = db_statement(store, STATEMENT_PROGRESS_PUT, err);
    if (!put)
        return ERR_STORE;
    sqlite3_bind_text(put, 1, progress->source.p, (int)progress->source.n, SQLITE_STATIC);
    sqlite3_bind_int64(put, 2, progress->watermark);
    sqlite3_bind_blob64(put, 3, progress->carry.n ? progress->carry.p : "", progress->carry.n,
                        SQLITE_STATIC);
    sqlite3_bind_text(put, 4, progress->settings.n ? progress->settings.p : "",
                      (int)progress->settings.n, SQLITE_STATIC);
    return db_run(store, put, "writing the progress", err);
}

enum err store_commit(struct store *store, const struct store_progress *progress, struct error *err)
{
    invariant(store->writing);
    enum err code = progress ? put_progress(store, progress, err) : ERR_OK;
    if (!code)
        code = db_run_simple(store, STATEMENT_COMMIT, "committing", err);
    if (code) {
        store_rollback(store);
        return code;
    }
    store->writing = false;
    dictionary_committed(store);
    return ERR_OK;
}

enum err store_read_progress(struct store *store, struct str source, struct arena *arena,
                             struct store_progress *ret, struct error *err)
{
    sqlite3_stmt *get = db_statement(store, STATEMENT_PROGRESS_GET, err);
    if (!get)
        return ERR_STORE;
    sqlite3_bind_text(get, 1, source.p, (int)source.n, SQLITE_STATIC);
    int rc = sqlite3_step(get);
    enum err code = ERR_OK;
    if (rc == SQLITE_ROW)
        *ret = (struct store_progress){.source = str_keep(arena, source),
                                       .watermark = sqlite3_column_int64(get, 0),
                                       .carry = str_keep(arena, db_text(get, 1)),
                                       .settings = str_keep(arena, db_text(get, 2))};
    else if (rc == SQLITE_DONE)
        code = error_set(err, ERR_NOT_FOUND, "%s has nothing of %.*s yet", store->path,
                         STR_ARG(source));
    else
        code = db_fail(store, rc, "reading the progress", err);
    sqlite3_reset(get);
    return code;
}

/* The hours of `span` that lie in the day, as bits. */
static uint32_t hours_in_day(struct span span, int64_t day)
{
    uint32_t bits = 0;
    for (int i = 0; i < 24; i++) {
        time_ms hour = day * DAY_MS + i * HOUR_MS;
        if (hour >= span.from && hour < span.to)
            bits |= 1u << i;
    }
    return bits;
}

static uint32_t hour_bit(time_ms hour)
{
    return 1u << ((hour - day_of(hour) * DAY_MS) / HOUR_MS);
}

struct cell {
    int64_t day;
    uint32_t cluster, node; /* ids on disk */
};

static void bind_cell(sqlite3_stmt *statement, const struct cell *cell)
{
    sqlite3_bind_int64(statement, 1, cell->day);
    sqlite3_bind_int64(statement, 2, cell->cluster);
    sqlite3_bind_int64(statement, 3, cell->node);
}

static enum err read_cell(struct store *store, const struct cell *cell, struct row_batch *ret,
                          struct error *err)
{
    sqlite3_stmt *get = db_statement(store, STATEMENT_BLOCK_GET, err);
    if (!get)
        return ERR_STORE;
    bind_cell(get, cell);
    int rc = sqlite3_step(get);
    enum err code = ERR_OK;
    if (rc == SQLITE_ROW)
        code = block_unpack(store, db_text(get, 0), ret, err);
    else if (rc != SQLITE_DONE)
        code = db_fail(store, rc, "reading rows", err);
    sqlite3_reset(get);
    return code;
}

static enum err drop_cell(struct store *store, const struct cell *cell, struct error *err)
{
    sqlite3_stmt *drop = db_statement(store, STATEMENT_BLOCK_DROP, err);
    if (!drop)
        return ERR_STORE;
    bind_cell(drop, cell);
    return db_run(store, drop, "dropping rows", err);
}

static enum err write_cell(struct store *store, const struct cell *cell,
                           const struct row_batch *rows, struct error *err)
{
    if (rows->rows_n == 0 && rows->node_hours_n == 0)
        return drop_cell(store, cell, err);
    uint32_t hours = 0;
    for (size_t i = 0; i < rows->rows_n; i++)
        hours |= hour_bit(rows->rows[i].key.hour);
    for (size_t i = 0; i < rows->node_hours_n; i++)
        hours |= hour_bit(rows->node_hours[i].hour);
    struct strbuf packed = {0};
    enum err code = block_pack(store, rows, &packed, err);
    sqlite3_stmt *put = code ? NULL : db_statement(store, STATEMENT_BLOCK_PUT, err);
    if (put) {
        bind_cell(put, cell);
        sqlite3_bind_int64(put, 4, hours);
        sqlite3_bind_blob64(put, 5, packed.text, packed.n, SQLITE_STATIC);
        code = db_run(store, put, "writing rows", err);
        sqlite3_clear_bindings(put);
    } else if (!code) {
        code = ERR_STORE;
    }
    strbuf_release(&packed);
    return code;
}

static void take_out(struct row_batch *batch, struct span hours)
{
    size_t n = 0;
    for (size_t i = 0; i < batch->rows_n; i++)
        if (batch->rows[i].key.hour < hours.from || batch->rows[i].key.hour >= hours.to)
            batch->rows[n++] = batch->rows[i];
    batch->rows_n = n;
    n = 0;
    for (size_t i = 0; i < batch->node_hours_n; i++)
        if (batch->node_hours[i].hour < hours.from || batch->node_hours[i].hour >= hours.to)
            batch->node_hours[n++] = batch->node_hours[i];
    batch->node_hours_n = n;
}

static int by_key(const void *a, const void *b, void *names)
{
    const struct row *left = a, *right = b;
    return row_key_cmp(names, &left->key, &right->key);
}

static int by_hour(const void *a, const void *b)
{
    const struct node_hour *left = a, *right = b;
    return (left->hour > right->hour) - (left->hour < right->hour);
}

/* Replace the hours of a node's day by those rows and node-hours of the batch that are of it. */
static enum err merge_cell(struct store *store, const struct cell *cell, name_t cluster,
                           name_t node, const struct row_batch *batch, struct error *err)
{
    struct row_batch merged = {.names = store->names};
    enum err code = read_cell(store, cell, &merged, err);
    if (!code) {
        take_out(&merged, batch->hours);
        for (size_t i = 0; i < batch->rows_n; i++) {
            const struct row *row = &batch->rows[i];
            if (row->key.node == node && row->key.cluster == cluster &&
                day_of(row->key.hour) == cell->day)
                mem_push(merged.rows, merged.rows_n, merged.rows_room, *row);
        }
        for (size_t i = 0; i < batch->node_hours_n; i++) {
            const struct node_hour *hour = &batch->node_hours[i];
            if (hour->node == node && hour->cluster == cluster && day_of(hour->hour) == cell->day)
                mem_push(merged.node_hours, merged.node_hours_n, merged.node_hours_room, *hour);
        }
        if (merged.rows_n)
            qsort_r(merged.rows, merged.rows_n, sizeof *merged.rows, by_key, store->names);
        if (merged.node_hours_n)
            qsort(merged.node_hours, merged.node_hours_n, sizeof *merged.node_hours, by_hour);
        code = write_cell(store, cell, &merged, err);
    }
    row_batch_release(&merged);
    return code;
}

enum err store_clear_hours(struct store *store, struct span hours, struct error *err)
{
    invariant(store->writing);
    enum err code = notes_clear(store, hours, err);
    struct cell *cells = NULL;
    size_t n = 0, room = 0;
    int64_t *days = NULL;
    size_t days_n = 0;
    if (!code)
        code = store_days(store, hours, &days, &days_n, err);
    for (size_t i = 0; i < days_n && !code; i++) {
        sqlite3_stmt *find = db_statement(store, STATEMENT_BLOCKS_WITH_HOURS, err);
        if (!find) {
            code = ERR_STORE;
            break;
        }
        sqlite3_bind_int64(find, 1, days[i]);
        sqlite3_bind_int64(find, 2, hours_in_day(hours, days[i]));
        int rc;
        while ((rc = sqlite3_step(find)) == SQLITE_ROW) {
            struct cell cell = {days[i], (uint32_t)sqlite3_column_int64(find, 0),
                                (uint32_t)sqlite3_column_int64(find, 1)};
            mem_push(cells, n, room, cell);
        }
        if (rc != SQLITE_DONE)
            code = db_fail(store, rc, "reading rows", err);
        sqlite3_reset(find);
    }
    for (size_t i = 0; i < n && !code; i++) {
        struct row_batch rest = {.names = store->names};
        code = read_cell(store, &cells[i], &rest, err);
        take_out(&rest, hours);
        if (!code)
            code = write_cell(store, &cells[i], &rest, err);
        row_batch_release(&rest);
    }
    free(cells);
    free(days);
    return code;
}

struct place {
    name_t cluster, node;
};

static int by_place(const void *a, const void *b)
{
    const struct place *left = a, *right = b;
    if (left->cluster != right->cluster)
        return left->cluster < right->cluster ? -1 : 1;
    return (left->node > right->node) - (left->node < right->node);
}

/* The nodes that a batch speaks of, each once. */
static size_t places_of(const struct row_batch *batch, struct place **ret)
{
    struct place *places = NULL;
    size_t n = 0, room = 0;
    for (size_t i = 0; i < batch->rows_n + batch->node_hours_n; i++) {
        const struct node_hour *hour = &batch->node_hours[i - batch->rows_n];
        struct place place =
            i < batch->rows_n ? (struct place){batch->rows[i].key.cluster, batch->rows[i].key.node}
                              : (struct place){hour->cluster, hour->node};
        if (n == 0 || by_place(&places[n - 1], &place) != 0)
            mem_push(places, n, room, place);
    }
    if (n)
        qsort(places, n, sizeof *places, by_place);
    size_t kept = 0;
    for (size_t i = 0; i < n; i++)
        if (i == 0 || by_place(&places[kept - 1], &places[i]) != 0)
            places[kept++] = places[i];
    *ret = places;
    return kept;
}

enum err store_append(struct store *store, const struct row_batch *batch, struct error *err)
{
    invariant(store->writing && batch->names == store->names);
    struct place *places;
    size_t n = places_of(batch, &places);
    enum err code = notes_put(store, batch->notes, batch->notes_n, err);
    for (size_t i = 0; i < n && !code; i++) {
        struct cell cell = {0};
        code = dictionary_put(store, places[i].cluster, &cell.cluster, err);
        if (!code)
            code = dictionary_put(store, places[i].node, &cell.node, err);
        for (cell.day = day_of(batch->hours.from); cell.day <= day_of(batch->hours.to - 1) && !code;
             cell.day++)
            code = merge_cell(store, &cell, places[i].cluster, places[i].node, batch, err);
    }
    free(places);
    return code;
}

enum err store_retain(struct store *store, time_ms before, struct error *err)
{
    struct span extent;
    enum err code = store_extent(store, &extent, err);
    if (code == ERR_NOT_FOUND)
        return ERR_OK;
    if (code || extent.from >= before)
        return code;
    code = store_begin(store, err);
    if (code)
        return code;
    code = store_clear_hours(store, (struct span){extent.from, hour_floor(before)}, err);
    return code ? (store_rollback(store), code) : store_commit(store, NULL, err);
}
