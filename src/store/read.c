/* Reading rows back, in order of hour and then of key, a day at a time. */
#include <stdlib.h>

#include "store/block.h"
#include "store/internal.h"
#include "store/lens.h"

#define BATCH_ROWS 4096
#define PASS_ROWS 100000 /* rows that are held at once: 75 MB */

enum err store_read_begin(struct store *store, struct error *err)
{
    if (store->writing)
        return store_settle(store, err); /* a writer sees what it has written */
    if (store->reading_depth++ > 0)
        return ERR_OK;
    enum err code = db_run_simple(store, STATEMENT_BEGIN_READ, "beginning to read", err);
    if (!code)
        code = dictionary_refresh(store, err);
    if (!code)
        code = places_refresh(store, err);
    if (code)
        store_read_end(store);
    return code;
}

void store_read_end(struct store *store)
{
    if (store->writing || --store->reading_depth > 0)
        return;
    if (!sqlite3_get_autocommit(store->db))
        db_run_simple(store, STATEMENT_COMMIT, "ending to read", NULL);
}

bool store_has_changed(struct store *store)
{
    sqlite3_stmt *get = db_statement(store, STATEMENT_DATA_VERSION, NULL);
    int64_t version = get && sqlite3_step(get) == SQLITE_ROW ? sqlite3_column_int64(get, 0) : 0;
    if (get)
        sqlite3_reset(get);
    bool changed = version == 0 || version != store->data_version;
    store->data_version = version;
    return changed;
}

void store_interrupt(struct store *store)
{
    __atomic_store_n(&store->interrupted, true, __ATOMIC_RELAXED);
    sqlite3_interrupt(store->db); /* what runs now */
}

uint32_t hours_in_day(struct span span, int64_t day)
{
    uint32_t bits = 0;
    for (int i = 0; i < 24; i++) {
        time_ms hour = day * DAY_MS + i * HOUR_MS;
        if (hour >= span.from && hour < span.to)
            bits |= 1u << i;
    }
    return bits;
}

struct span store_span_with_keys(struct span span)
{
    const time_ms far = DAY_MS << 24;
    span.from = span.from < -far ? -far : span.from;
    span.to = span.to > far ? far : span.to;
    return span;
}

enum err store_days(struct store *store, struct span hours, struct day **ret, size_t *ret_n,
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
    while ((rc = sqlite3_step(get)) == SQLITE_ROW) {
        struct day day = {sqlite3_column_int64(get, 0),
                          (uint32_t)sqlite3_column_int64(get, 1) & 0xffffff,
                          (uint64_t)sqlite3_column_int64(get, 2)};
        mem_push(*ret, *ret_n, room, day);
    }
    enum err code = rc == SQLITE_DONE ? ERR_OK : db_fail(store, rc, "reading days", err);
    sqlite3_reset(get);
    return code;
}

/* A day in order of hour needs all its blocks at once. As rows they would fill memory (750 bytes a
 * row), so the day is read in passes of as many hours as fit; blocks are small and quick to open.
 */
struct day_rows {
    struct store *store;
    int64_t day;
    struct row_batch *blocks; /* each in order of row_batch */
    size_t n, room;           /* room: how many are initialised */
};

static enum err open_hours(struct day_rows *rows, uint32_t hours, struct error *err)
{
    struct store *store = rows->store;
    sqlite3_stmt *get = db_statement(store, STATEMENT_BLOCKS, err);
    if (!get)
        return ERR_STORE;
    sqlite3_bind_int64(get, 1, cell_key(rows->day, 0, 0));
    sqlite3_bind_int64(get, 2, cell_key(rows->day + 1, 0, 0));
    enum err code = ERR_OK;
    int rc = SQLITE_DONE;
    rows->n = 0;
    while (!code && (rc = sqlite3_step(get)) == SQLITE_ROW) {
        if (!((uint32_t)sqlite3_column_int64(get, 1) & hours))
            continue;
        struct place place;
        if (!places_get(store, cell_place(sqlite3_column_int64(get, 0)), &place)) {
            code = db_corrupt(store, "a block of an unknown node", err);
            break;
        }
        size_t room = rows->room;
        mem_reserve(rows->blocks, rows->n, rows->room, 1);
        memset(rows->blocks + room, 0, (rows->room - room) * sizeof *rows->blocks);
        struct row_batch *batch = &rows->blocks[rows->n++];
        row_batch_clear(batch);
        code = block_open(store, store->reading, rows->day, place.cluster, place.node,
                          db_text(get, 2), BLOCK_NAMES_ALL, err);
        if (!code)
            code = block_rows(store, store->reading, hours, batch, err);
        if (store->lens)
            lens_cut(store->lens, batch);
    }
    if (!code && rc != SQLITE_DONE)
        code = db_fail(store, rc, "reading rows", err);
    sqlite3_reset(get);
    return code;
}

/* Any row or node-hour of a node's batch says which node it is. */
static struct row_key place_key(const struct row_batch *batch)
{
    if (batch->rows_n)
        return (struct row_key){.cluster = batch->rows[0].key.cluster,
                                .node = batch->rows[0].key.node};
    if (batch->node_hours_n)
        return (struct row_key){.cluster = batch->node_hours[0].cluster,
                                .node = batch->node_hours[0].node};
    return (struct row_key){0};
}

static int by_place(const void *a, const void *b, void *names)
{
    struct row_key left = place_key(a), right = place_key(b);
    return row_key_cmp(names, &left, &right);
}

static uint32_t hours_of(const struct row_batch *batch, int64_t day)
{
    uint32_t hours = 0;
    for (size_t i = 0; i < batch->rows_n; i++)
        hours |= 1u << ((batch->rows[i].key.hour - day * DAY_MS) / HOUR_MS);
    for (size_t i = 0; i < batch->node_hours_n; i++)
        hours |= 1u << ((batch->node_hours[i].hour - day * DAY_MS) / HOUR_MS);
    return hours;
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

/* Move what the others have into the first of n. */
static void join(struct row_batch *to, size_t n, struct names *names)
{
    for (struct row_batch *from = to + 1; from < to + n; from++) {
        for (size_t i = 0; i < from->rows_n; i++)
            mem_push(to->rows, to->rows_n, to->rows_room, from->rows[i]);
        for (size_t i = 0; i < from->node_hours_n; i++)
            mem_push(to->node_hours, to->node_hours_n, to->node_hours_room, from->node_hours[i]);
        row_batch_clear(from);
    }
    if (to->rows_n)
        qsort_r(to->rows, to->rows_n, sizeof *to->rows, by_key, names);
    if (to->node_hours_n)
        qsort(to->node_hours, to->node_hours_n, sizeof *to->node_hours, by_hour);
}

/* Blocks in order of place. Segments of a place have no hour in common; a node that is in two books
 * is in two blocks, whose rows must come in one order. */
static void order_blocks(struct day_rows *rows)
{
    struct names *names = rows->store->names;
    if (rows->n)
        qsort_r(rows->blocks, rows->n, sizeof *rows->blocks, by_place, names);
    for (size_t from = 0, to; from < rows->n; from = to) {
        uint32_t seen = 0;
        bool common = false;
        for (to = from; to < rows->n; to++) {
            if (to > from && by_place(&rows->blocks[from], &rows->blocks[to], names) != 0)
                break;
            uint32_t hours = hours_of(&rows->blocks[to], rows->day);
            common |= (seen & hours) != 0;
            seen |= hours;
        }
        if (common)
            join(&rows->blocks[from], to - from, names);
    }
}

static bool emit_hour(struct day_rows *rows, time_ms hour, size_t *row_at, size_t *node_hour_at,
                      struct row_batch *out, store_row_fn each, void *context)
{
    row_batch_clear(out);
    out->hours = (struct span){hour, hour + HOUR_MS};
    for (size_t b = 0; b < rows->n; b++) {
        struct row_batch *block = &rows->blocks[b];
        while (node_hour_at[b] < block->node_hours_n &&
               block->node_hours[node_hour_at[b]].hour == hour)
            mem_push(out->node_hours, out->node_hours_n, out->node_hours_room,
                     block->node_hours[node_hour_at[b]++]);
    }
    for (size_t b = 0; b < rows->n; b++) {
        struct row_batch *block = &rows->blocks[b];
        while (row_at[b] < block->rows_n && block->rows[row_at[b]].key.hour == hour) {
            mem_push(out->rows, out->rows_n, out->rows_room, block->rows[row_at[b]++]);
            if (out->rows_n == BATCH_ROWS) {
                if (!each(context, out))
                    return false;
                row_batch_clear(out);
            }
        }
    }
    return (out->rows_n == 0 && out->node_hours_n == 0) || each(context, out);
}

static bool emit_hours(struct day_rows *rows, uint32_t hours, struct row_batch *out,
                       store_row_fn each, void *context)
{
    order_blocks(rows);
    size_t *at = mem_zalloc(2 * rows->n, sizeof *at);
    bool more = true;
    for (uint32_t rest = hours; rest && more; rest &= rest - 1)
        more = emit_hour(rows, rows->day * DAY_MS + __builtin_ctz(rest) * HOUR_MS, at, at + rows->n,
                         out, each, context);
    free(at);
    return more;
}

/* The next hours of a pass: as many of the day's as are likely to fit. */
static uint32_t pass_of(uint32_t rest, const struct day *day)
{
    uint64_t an_hour = day->rows / (uint64_t)__builtin_popcount(day->hours) + 1;
    uint64_t hours = an_hour >= PASS_ROWS ? 1 : PASS_ROWS / an_hour;
    uint32_t pass = 0;
    for (uint64_t i = 0; i < hours && rest; i++) {
        pass |= rest & (0 - rest);
        rest &= rest - 1;
    }
    return pass;
}

static enum err read_rows(struct store *store, struct span hours, store_row_fn each, void *context,
                          struct error *err)
{
    struct day *days;
    size_t n;
    bool more = true;
    struct row_batch out = {.names = store->names};
    struct day_rows rows = {.store = store};
    enum err code = store_days(store, hours, &days, &n, err);
    for (size_t i = 0; i < n && !code && more; i++) {
        rows.day = days[i].day;
        uint32_t rest = days[i].hours & hours_in_day(hours, days[i].day);
        while (rest && !code && more) {
            uint32_t pass = pass_of(rest, &days[i]);
            rest &= ~pass;
            code = open_hours(&rows, pass, err);
            more = code || emit_hours(&rows, pass, &out, each, context);
        }
    }
    row_batch_clear(&out);
    if (!code && more) {
        out.hours = hours;
        code = notes_read(store, hours, &out, err);
        if (!code && out.notes_n)
            each(context, &out);
    }
    row_batch_release(&out);
    for (size_t b = 0; b < rows.room; b++)
        row_batch_release(&rows.blocks[b]);
    free(rows.blocks);
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

static enum err edge_day(struct store *store, enum statement which, struct day *ret,
                         struct error *err)
{
    sqlite3_stmt *get = db_statement(store, which, err);
    if (!get)
        return ERR_STORE;
    enum err code = ERR_OK;
    int rc = sqlite3_step(get);
    if (rc == SQLITE_ROW)
        *ret = (struct day){.day = sqlite3_column_int64(get, 0),
                            .hours = (uint32_t)sqlite3_column_int64(get, 1) & 0xffffff};
    else if (rc == SQLITE_DONE)
        code = error_set(err, ERR_NOT_FOUND, "%s is empty: nothing has been collected into it yet",
                         store->path);
    else
        code = db_fail(store, rc, "reading days", err);
    sqlite3_reset(get);
    if (!code && !ret->hours)
        code = db_corrupt(store, "a day without hours", err);
    return code;
}

enum err store_extent(struct store *store, struct span *ret, struct error *err)
{
    struct day first, last;
    enum err code = store_read_begin(store, err);
    if (code)
        return code;
    code = edge_day(store, STATEMENT_FIRST_DAY, &first, err);
    if (!code)
        code = edge_day(store, STATEMENT_LAST_DAY, &last, err);
    if (!code)
        *ret = (struct span){first.day * DAY_MS + __builtin_ctz(first.hours) * HOUR_MS,
                             last.day * DAY_MS + (32 - __builtin_clz(last.hours)) * HOUR_MS};
    store_read_end(store);
    return code;
}
