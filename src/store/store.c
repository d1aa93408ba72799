/* The store's handle: open, transactions, appends, progress. Reading is in read.c.
 *
 * The unit on disk is a block: hours of a node's UTC day (block.h). An append writes the hours that
 * it brings as a segment of the day; blocks that have some of those hours are unpacked, and what is
 * left of them is packed with it. At the end of the day its segments become one. */
#include <stdlib.h>

#include "store/block.h"

#define SEGMENTS_MAX 6 /* of a node's day; more are put together */
#define ROWS_A_SUM 32  /* sums of hours take 80 to 200 bytes each, rows 10 to 40 */
#include "store/internal.h"

/* Names and places of one moment: a writer that commits between the two would look like damage. */
static enum err refresh(struct store *store, struct error *err)
{
    enum err code = store_read_begin(store, err);
    if (!code)
        store_read_end(store);
    return code;
}

enum err store_open(const char *path, enum store_mode mode, struct names *names, struct store **ret,
                    struct error *err)
{
    struct store *store = mem_zalloc(1, sizeof *store);
    store->path = str_dup(str_of(path));
    store->mode = mode;
    store->names = names;
    store->in_memory = strcmp(path, ":memory:") == 0;
    store->rows_a_sum = store->in_memory ? 0 : ROWS_A_SUM; /* those are asked once or twice */
    store->packing = mem_zalloc(1, sizeof *store->packing);
    store->reading = mem_zalloc(1, sizeof *store->reading);
    enum err code = db_open(store, err);
    if (!code)
        code = store_migrate(store, err);
    if (!code)
        code = refresh(store, err);
    if (code) {
        store_close(store);
        return code;
    }
    *ret = store;
    return ERR_OK;
}

enum err store_use_names(struct store *store, struct names *names, struct error *err)
{
    invariant(!store->writing && !store->reading_depth);
    dictionary_release(store);
    places_release(store);
    days_forget(store);
    row_batch_clear(&store->merged);
    store->names = names;
    store->book = NAME_NONE;
    return names ? refresh(store, err) : ERR_OK;
}

struct names *store_names(const struct store *store)
{
    return store->names;
}

bool store_is_frozen(const struct store *store)
{
    return store->frozen;
}

void store_close(struct store *store)
{
    if (!store)
        return;
    store_rollback(store);
    dictionary_release(store);
    places_release(store);
    cells_release(store);
    days_release(store);
    block_release(store->packing);
    block_release(store->reading);
    row_batch_release(&store->merged);
    free(store->packing);
    free(store->reading);
    db_close(store);
    free(store->path);
    free(store);
}

enum err store_begin(struct store *store, struct error *err)
{
    invariant(store->mode == STORE_WRITE && !store->writing && !store->reading_depth);
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
    store->dirty_days_n = 0;
    cells_forget(store);
    days_forget(store);
    dictionary_rolled_back(store);
    places_rolled_back(store);
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
        code = store_settle(store, err);
    if (!code)
        code = db_run_simple(store, STATEMENT_COMMIT, "committing", err);
    if (code) {
        store_rollback(store);
        return code;
    }
    store->writing = false;
    dictionary_committed(store);
    places_committed(store);
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

static uint32_t hour_bit(time_ms hour)
{
    return 1u << ((hour - day_of(hour) * DAY_MS) / HOUR_MS);
}

/* A node's day as it stands, appended to `ret`. */
static enum err read_cell(struct store *store, int64_t key, struct place place,
                          struct row_batch *ret, struct error *err)
{
    struct strbuf packed = {0};
    bool found;
    struct block *block = store->reading;
    enum err code = cell_read(store, key, &packed, &found, err);
    if (!code && found)
        code = block_open(store, block, cell_day(key), place.cluster, place.node,
                          strbuf_str(&packed), BLOCK_NAMES_ALL, err);
    if (!code && found)
        code = block_rows(store, block, UINT32_MAX, ret, err);
    strbuf_release(&packed);
    return code;
}

static enum err put_cell(struct store *store, int64_t key, const struct row_batch *rows,
                         struct error *err)
{
    if (rows->rows_n == 0 && rows->node_hours_n == 0)
        return cell_write(store, key, 0, STR_NONE, err);
    uint32_t hours = 0;
    for (size_t i = 0; i < rows->rows_n; i++)
        hours |= hour_bit(rows->rows[i].key.hour);
    for (size_t i = 0; i < rows->node_hours_n; i++)
        hours |= hour_bit(rows->node_hours[i].hour);
    struct strbuf packed = {0};
    enum err code = block_pack(store, rows, &packed, err);
    if (!code)
        code = cell_write(store, key, hours, strbuf_str(&packed), err);
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

static bool is_in_order(const struct row_batch *rows)
{
    for (size_t i = 1; i < rows->rows_n; i++)
        if (row_key_cmp(rows->names, &rows->rows[i - 1].key, &rows->rows[i].key) > 0)
            return false;
    for (size_t i = 1; i < rows->node_hours_n; i++)
        if (rows->node_hours[i - 1].hour >= rows->node_hours[i].hour)
            return false;
    return true;
}

static void put_in_order(struct row_batch *rows)
{
    if (is_in_order(rows))
        return;
    qsort_r(rows->rows, rows->rows_n, sizeof *rows->rows, by_key, rows->names);
    /* A day's node-hours are few: insertion sort, the later one of an hour stays. */
    size_t n = 0;
    for (size_t i = 0; i < rows->node_hours_n; i++) {
        struct node_hour hour = rows->node_hours[i];
        size_t at = n;
        while (at && rows->node_hours[at - 1].hour > hour.hour)
            at--;
        if (at && rows->node_hours[at - 1].hour == hour.hour) {
            rows->node_hours[at - 1] = hour;
            continue;
        }
        memmove(&rows->node_hours[at + 1], &rows->node_hours[at], (n - at) * sizeof hour);
        rows->node_hours[at] = hour;
        n++;
    }
    rows->node_hours_n = n;
}

/* Rows and node-hours of a batch by the node and day that they are of. */
struct piece {
    struct place place;
    int64_t day;
    uint32_t index; /* of the row; node-hours after all rows */
};

static int by_place_day(const void *a, const void *b)
{
    const struct piece *left = a, *right = b;
    if (left->place.cluster != right->place.cluster)
        return left->place.cluster < right->place.cluster ? -1 : 1;
    if (left->place.node != right->place.node)
        return left->place.node < right->place.node ? -1 : 1;
    if (left->day != right->day)
        return left->day < right->day ? -1 : 1;
    return (left->index > right->index) - (left->index < right->index);
}

static struct piece *pieces_of(const struct row_batch *batch)
{
    size_t n = batch->rows_n + batch->node_hours_n;
    struct piece *pieces = mem_alloc((n + 1) * sizeof *pieces);
    bool sorted = true;
    for (size_t i = 0; i < n; i++) {
        struct piece *piece = &pieces[i];
        piece->index = (uint32_t)i;
        if (i < batch->rows_n) {
            const struct row_key *key = &batch->rows[i].key;
            piece->place = (struct place){key->cluster, key->node};
            piece->day = day_of(key->hour);
        } else {
            const struct node_hour *hour = &batch->node_hours[i - batch->rows_n];
            piece->place = (struct place){hour->cluster, hour->node};
            piece->day = day_of(hour->hour);
        }
        sorted &= i == 0 || by_place_day(piece - 1, piece) <= 0;
    }
    if (!sorted)
        qsort(pieces, n, sizeof *pieces, by_place_day);
    return pieces;
}

/* A node's day and what a batch has of it: pieces [0, n). */
struct cell {
    struct place place;
    uint32_t id;
    int64_t day;
    const struct row_batch *batch;
    const struct piece *pieces;
    size_t n;
    struct segment segments[1 << SEGMENT_BITS];
    size_t segments_n;
};

/* Whether all segments are put together now: at the end of the day, and where there are many. */
static bool is_time_to_join(const struct store *store, const struct cell *cell, uint32_t replaced)
{
    size_t segments = cell->n > 0;
    uint32_t hours = cell->n ? replaced : 0;
    for (size_t s = 0; s < cell->segments_n; s++) {
        segments += (cell->segments[s].hours & ~replaced) != 0;
        hours |= cell->segments[s].hours & ~replaced;
    }
    return segments > SEGMENTS_MAX || (hours >> 23 && segments > 1 && !store->in_memory);
}

/* Take those segments out of the store that the batch replaces hours of, or all; keep their other
 * hours in store->merged. */
static enum err take_segments(struct store *store, const struct cell *cell, bool *ret_any,
                              uint32_t *ret_used, struct error *err)
{
    uint32_t replaced = hours_in_day(cell->batch->hours, cell->day);
    bool join = is_time_to_join(store, cell, replaced);
    enum err code = ERR_OK;
    *ret_any = false;
    *ret_used = 0;
    for (size_t s = 0; s < cell->segments_n && !code; s++) {
        const struct segment *segment = &cell->segments[s];
        if (!join && !(segment->hours & replaced)) {
            *ret_used |= 1u << (segment->key & ((1 << SEGMENT_BITS) - 1));
            continue;
        }
        *ret_any = true;
        if (segment->hours & ~replaced)
            code = read_cell(store, segment->key, cell->place, &store->merged, err);
        if (!code)
            code = cell_write(store, segment->key, 0, STR_NONE, err);
    }
    take_out(&store->merged, cell->batch->hours);
    return code;
}

/* What is to be written: the batch as it is where it is of this cell alone, else merged. */
static const struct row_batch *rows_of(struct store *store, const struct cell *cell, bool any)
{
    const struct row_batch *batch = cell->batch;
    if (!any && cell->n == batch->rows_n + batch->node_hours_n && is_in_order(batch))
        return batch;
    struct row_batch *merged = &store->merged;
    for (size_t p = 0; p < cell->n; p++) {
        size_t i = cell->pieces[p].index;
        if (i < batch->rows_n)
            mem_push(merged->rows, merged->rows_n, merged->rows_room, batch->rows[i]);
        else
            mem_push(merged->node_hours, merged->node_hours_n, merged->node_hours_room,
                     batch->node_hours[i - batch->rows_n]);
    }
    put_in_order(merged);
    return merged;
}

/* The number of a new segment: 0 for one that ends the day. */
static uint32_t number_of(uint32_t used, int64_t day, const struct row_batch *rows)
{
    time_ms last = rows->rows_n ? rows->rows[rows->rows_n - 1].key.hour
                                : rows->node_hours[rows->node_hours_n - 1].hour;
    bool ends = last == (day + 1) * DAY_MS - HOUR_MS;
    return (uint32_t)__builtin_ctz(~(ends ? used : used | 1));
}

/* Replace the batch's hours of a node's day by its pieces. */
static enum err merge_cell(struct store *store, struct cell *cell, struct error *err)
{
    bool any, first = !day_is_dirty(store, cell->day);
    uint32_t used;
    enum err code = places_put(store, cell->place, &cell->id, err);
    if (!code)
        code = cells_of_place(store, cell->day, cell->id, cell->segments, &cell->segments_n, err);
    if (code)
        return code;
    row_batch_clear(&store->merged);
    store->merged.names = store->names;
    code = take_segments(store, cell, &any, &used, err);
    if (code)
        return code;
    if (any)
        day_changed(store, cell->day);
    const struct row_batch *rows = rows_of(store, cell, any);
    if (rows->rows_n == 0 && rows->node_hours_n == 0)
        return ERR_OK;
    uint32_t number = number_of(used, cell->day, rows);
    code = put_cell(store, cell_key(cell->day, cell->id, number), rows, err);
    return code || any ? code : day_added(store, cell->day, cell->id, first, err);
}

enum err store_append(struct store *store, const struct row_batch *batch, struct error *err)
{
    invariant(store->writing && batch->names == store->names);
    size_t n = batch->rows_n + batch->node_hours_n;
    struct piece *pieces = pieces_of(batch);
    enum err code = notes_put(store, batch->notes, batch->notes_n, err);
    if (!code)
        code = device_hours_put(store, batch, err);
    if (!code)
        code = load_hours_put(store, batch, err);
    for (size_t at = 0; at < n && !code;) {
        struct cell cell = {.place = pieces[at].place, .batch = batch};
        /* Days of the batch that the node has nothing of are emptied too. */
        for (cell.day = day_of(batch->hours.from); cell.day <= day_of(batch->hours.to - 1) && !code;
             cell.day++) {
            cell.pieces = &pieces[at];
            cell.n = 0;
            while (at < n && pieces[at].day == cell.day &&
                   pieces[at].place.node == cell.place.node &&
                   pieces[at].place.cluster == cell.place.cluster)
                at++, cell.n++;
            code = merge_cell(store, &cell, err);
        }
    }
    free(pieces);
    return code;
}

/* Blocks of the book that is written which have some of the day's hours. */
static enum err cells_with_hours(struct store *store, const struct day *day, int64_t **keys,
                                 size_t *n, size_t *room, struct error *err)
{
    sqlite3_stmt *find = db_statement(store, STATEMENT_BLOCK_HOURS, err);
    if (!find)
        return ERR_STORE;
    sqlite3_bind_int64(find, 1, cell_key(day->day, 0, 0));
    sqlite3_bind_int64(find, 2, cell_key(day->day + 1, 0, 0));
    int rc;
    while ((rc = sqlite3_step(find)) == SQLITE_ROW) {
        int64_t key = sqlite3_column_int64(find, 0);
        if ((uint32_t)sqlite3_column_int64(find, 1) & day->hours &&
            places_is_written(store, cell_place(key)))
            mem_push(*keys, *n, *room, key);
    }
    enum err code = rc == SQLITE_DONE ? ERR_OK : db_fail(store, rc, "reading rows", err);
    sqlite3_reset(find);
    return code;
}

static enum err clear_cell(struct store *store, int64_t key, struct span hours, struct error *err)
{
    struct place place;
    if (!places_get(store, cell_place(key), &place))
        return db_corrupt(store, "a block of an unknown node", err);
    struct row_batch *rest = &store->merged;
    row_batch_clear(rest);
    rest->names = store->names;
    int64_t day = cell_day(key);
    day_changed(store, day);
    if (hours_in_day(hours, day) == 0xffffff)
        return cell_write(store, key, 0, STR_NONE, err);
    enum err code = read_cell(store, key, place, rest, err);
    take_out(rest, hours);
    return code ? code : put_cell(store, key, rest, err);
}

static enum err cells_of_hours(struct store *store, struct span hours, int64_t **keys, size_t *n,
                               struct error *err)
{
    size_t room = 0, days_n = 0;
    struct day *days = NULL;
    enum err code = store_days(store, hours, &days, &days_n, err);
    for (size_t i = 0; i < days_n && !code; i++) {
        days[i].hours &= hours_in_day(hours, days[i].day);
        if (days[i].hours)
            code = cells_with_hours(store, &days[i], keys, n, &room, err);
    }
    free(days);
    return code;
}

enum err store_clear_hours(struct store *store, struct span hours, struct error *err)
{
    invariant(store->writing);
    int64_t *keys = NULL;
    size_t n = 0;
    enum err code = notes_clear(store, hours, err);
    if (!code)
        code = device_hours_clear(store, hours, err);
    if (!code)
        code = load_hours_clear(store, hours, err);
    if (!code)
        code = store_settle(store, err); /* what was appended before is cleared too */
    if (!code)
        code = cells_of_hours(store, hours, &keys, &n, err);
    for (size_t i = 0; i < n && !code; i++)
        code = clear_cell(store, keys[i], hours, err);
    free(keys);
    return code;
}

static enum err has_rows(struct store *store, int64_t key, struct span hours, bool *ret,
                         struct error *err)
{
    struct place place;
    if (!places_get(store, cell_place(key), &place))
        return db_corrupt(store, "a block of an unknown node", err);
    row_batch_clear(&store->merged);
    enum err code = read_cell(store, key, place, &store->merged, err);
    for (size_t i = 0; i < store->merged.rows_n && !*ret; i++) {
        time_ms hour = store->merged.rows[i].key.hour;
        *ret = hour >= hours.from && hour < hours.to;
    }
    return code;
}

enum err store_has_rows(struct store *store, struct span hours, bool *ret, struct error *err)
{
    int64_t *keys = NULL;
    size_t n = 0;
    *ret = false;
    enum err code = store_read_begin(store, err);
    if (code)
        return code;
    code = cells_of_hours(store, hours, &keys, &n, err);
    for (size_t i = 0; i < n && !code && !*ret; i++)
        code = has_rows(store, keys[i], hours, ret, err);
    store_read_end(store);
    free(keys);
    return code;
}

void store_use_book(struct store *store, struct str book)
{
    invariant(!store->writing);
    store->book = names_put(store->names, book);
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
    store->all_books = true;
    code = store_clear_hours(store, (struct span){extent.from, hour_floor(before)}, err);
    store->all_books = false;
    return code ? (store_rollback(store), code) : store_commit(store, NULL, err);
}
