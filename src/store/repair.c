/* What is sound in a damaged database, as a new one.
 *
 * Nothing is written to the damaged file. Its tables are read key by key; where SQLite cannot read
 * on, keys further along are tried, ever further, and then the first readable one between is found
 * by halving: a damaged page costs what was on it. What was read is opened and added up as `db
 * check` does, and goes into the new file byte by byte under the ids that it had, so that names and
 * places are those of the old file up to the first one that is missing. Sums of days are made anew.
 */
#include <stdlib.h>
#include <unistd.h>

#include "store/block.h"
#include "store/internal.h"
#include "store/maintain.h"
#include "store/rollup.h"

#define BLOCKS_A_COMMIT 4096
#define HOURS_BEGIN (10957 * DAY_MS) /* 2000: no GPU was booked before */

struct repair {
    const struct store_repair *options;
    struct store_repaired *report;
    struct store *old, *fresh;
    struct row_batch rows; /* only to see that they can be read */
};

/* ---- telling ---- */

static void tell(struct repair *repair, const struct place *place, struct span hours,
                 const char *why)
{
    struct span *all = &repair->report->hours;
    struct names *names = repair->old->names;
    bool first = all->from >= all->to;
    if (hours.from >= HOURS_BEGIN) { /* else the key is damaged too */
        all->from = first || hours.from < all->from ? hours.from : all->from;
        all->to = first || hours.to > all->to ? hours.to : all->to;
    }
    if (!repair->options->dropped)
        return;
    struct store_dropped dropped = {
        .cluster = place ? names_text(names, place->cluster).p : NULL,
        .node = place ? names_text(names, place->node).p : NULL,
        .hours = hours,
        .why = why,
    };
    repair->options->dropped(repair->options->context, &dropped);
}

static struct span span_of_bits(int64_t day, uint32_t hours)
{
    if (!hours)
        return (struct span){day * DAY_MS, (day + 1) * DAY_MS};
    return (struct span){day * DAY_MS + __builtin_ctz(hours) * HOUR_MS,
                         day * DAY_MS + (32 - __builtin_clz(hours)) * HOUR_MS};
}

/* ---- reading what is damaged ---- */

/* A statement that gives the first row whose key is >= ?1; columns as the table wants. */
struct reader {
    sqlite3_stmt *next;
    int64_t last;         /* no keys are beyond */
    uint64_t *unreadable; /* stretches that were passed over */
};

static bool readable(struct reader *reader, int64_t from, bool *ret_end)
{
    sqlite3_reset(reader->next);
    sqlite3_bind_int64(reader->next, 1, from);
    int rc = sqlite3_step(reader->next);
    *ret_end = rc == SQLITE_DONE;
    return rc == SQLITE_ROW || rc == SQLITE_DONE;
}

/* Leave the statement at the first readable row from a key on; false: there is none. */
static bool read_from(struct reader *reader, int64_t from)
{
    bool end;
    if (readable(reader, from, &end))
        return !end;
    ++*reader->unreadable;
    int64_t bad = from, good = from;
    for (int64_t step = 1;; step *= 2) {
        if (step > reader->last - from) /* nothing at the end can be read */
            return false;
        good = from + step;
        if (readable(reader, good, &end))
            break;
        bad = good;
    }
    while (good - bad > 1) {
        int64_t middle = bad + (good - bad) / 2;
        if (readable(reader, middle, &end))
            good = middle;
        else
            bad = middle;
    }
    return readable(reader, good, &end) && !end;
}

static enum err prepare(struct store *store, const char *sql, sqlite3_stmt **ret, struct error *err)
{
    int rc = sqlite3_prepare_v2(store->db, sql, -1, ret, NULL);
    return rc ? db_fail(store, rc, "reading it", err) : ERR_OK;
}

/* ---- tables by key ---- */

static enum err is_sound(struct repair *repair, int64_t key, struct str packed, struct error *err)
{
    struct store *old = repair->old;
    struct place place;
    if (!places_get(old, cell_place(key), &place))
        return db_corrupt(old, "a block of an unknown node", err);
    row_batch_clear(&repair->rows);
    repair->rows.names = old->names;
    enum err code = block_open(old, old->reading, cell_day(key), place.cluster, place.node, packed,
                               BLOCK_NAMES_ALL, err);
    if (!code)
        code = block_check_balance(old, old->reading, err);
    if (!code)
        code = block_rows(old, old->reading, UINT32_MAX, &repair->rows, err);
    return code;
}

static uint32_t hours_of(const struct row_batch *rows, int64_t day)
{
    uint32_t hours = 0;
    for (size_t i = 0; i < rows->rows_n; i++)
        hours |= 1u << ((rows->rows[i].key.hour - day * DAY_MS) / HOUR_MS);
    for (size_t i = 0; i < rows->node_hours_n; i++)
        hours |= 1u << ((rows->node_hours[i].hour - day * DAY_MS) / HOUR_MS);
    return hours;
}

static void drop_block(struct repair *repair, int64_t key, uint32_t hours, const char *why)
{
    struct place place;
    bool known = places_get(repair->old, cell_place(key), &place);
    repair->report->dropped++;
    tell(repair, known ? &place : NULL, span_of_bits(cell_day(key), hours), why);
}

static enum err keep_block(struct repair *repair, sqlite3_stmt *row, struct error *err)
{
    int64_t key = sqlite3_column_int64(row, 0);
    uint32_t hours = (uint32_t)sqlite3_column_int64(row, 1) & 0xffffff;
    struct error why = {0};
    struct str packed = db_text(row, 2);
    if (is_sound(repair, key, packed, &why)) {
        drop_block(repair, key, hours, "its rows cannot be read or do not add up");
        return ERR_OK;
    }
    repair->report->kept++;
    return cell_write(repair->fresh, key, hours_of(&repair->rows, cell_day(key)), packed, err);
}

static enum err commit_some(struct repair *repair, struct error *err)
{
    enum err code = store_commit(repair->fresh, NULL, err);
    return code ? code : store_begin(repair->fresh, err);
}

static enum err copy_blocks(struct repair *repair, const char *sql, struct error *err)
{
    struct reader reader = {.last = INT64_MAX / 4, .unreadable = &repair->report->unreadable};
    enum err code = prepare(repair->old, sql, &reader.next, err);
    uint64_t since = 0;
    for (int64_t key = -(INT64_MAX / 4); !code && read_from(&reader, key);) {
        key = sqlite3_column_int64(reader.next, 0) + 1;
        code = keep_block(repair, reader.next, err);
        if (!code && ++since % BLOCKS_A_COMMIT == 0)
            code = commit_some(repair, err);
    }
    sqlite3_finalize(reader.next);
    return code;
}

static enum err put_raw(struct store *store, const char *sql, sqlite3_stmt *row, int columns,
                        struct error *err)
{
    sqlite3_stmt *put;
    enum err code = prepare(store, sql, &put, err);
    if (code)
        return code;
    for (int i = 0; i < columns; i++)
        sqlite3_bind_value(put, i + 1, sqlite3_column_value(row, i));
    code = db_run(store, put, "writing", err);
    sqlite3_finalize(put);
    return code;
}

static enum err copy_gpu_hours(struct repair *repair, struct error *err)
{
    struct reader reader = {.last = INT64_MAX / 4, .unreadable = &repair->report->unreadable};
    enum err code =
        prepare(repair->old, "SELECT key, data FROM gpu_hours WHERE key >= ?1 ORDER BY key LIMIT 1",
                &reader.next, err);
    for (int64_t key = -(INT64_MAX / 4); !code && read_from(&reader, key);) {
        key = sqlite3_column_int64(reader.next, 0);
        bool sound = device_hours_check(repair->old, key, db_text(reader.next, 1), NULL) == ERR_OK;
        repair->report->kept_other += sound;
        repair->report->dropped_other += !sound;
        if (sound)
            code = put_raw(repair->fresh, "INSERT INTO gpu_hours(key, data) VALUES(?1, ?2)",
                           reader.next, 2, err);
        key++;
    }
    sqlite3_finalize(reader.next);
    return code;
}

/* ---- tables that are read in one go, as far as they can be ---- */

typedef enum err (*row_fn)(struct repair *repair, sqlite3_stmt *row, struct error *err);

static enum err copy_rows(struct repair *repair, const char *sql, row_fn each, struct error *err)
{
    sqlite3_stmt *get;
    enum err code = ERR_OK;
    int rc = sqlite3_prepare_v2(repair->old->db, sql, -1, &get, NULL);
    while (!rc && !code && (rc = sqlite3_step(get)) == SQLITE_ROW) {
        code = each(repair, get, err);
        rc = SQLITE_OK;
    }
    repair->report->unreadable += !code && rc != SQLITE_DONE;
    sqlite3_finalize(get);
    return code;
}

static enum err keep_load_hours(struct repair *repair, sqlite3_stmt *row, struct error *err)
{
    bool sound =
        load_hours_check(repair->old, sqlite3_column_int(row, 0), sqlite3_column_int64(row, 1),
                         sqlite3_column_int64(row, 2), db_text(row, 3), NULL) == ERR_OK;
    repair->report->kept_other += sound;
    repair->report->dropped_other += !sound;
    if (!sound)
        return ERR_OK;
    return put_raw(repair->fresh,
                   "INSERT INTO load_hours(kind, day, place, data) VALUES(?1, ?2, ?3, ?4)", row, 4,
                   err);
}

static enum err keep_note(struct repair *repair, sqlite3_stmt *row, struct error *err)
{
    repair->report->notes++;
    return put_raw(repair->fresh,
                   "INSERT OR REPLACE INTO note(kind, subject, text, first, past, count, book) "
                   "VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7)",
                   row, 7, err);
}

static enum err keep_position(struct repair *repair, sqlite3_stmt *row, struct error *err)
{
    repair->report->positions++;
    return put_raw(repair->fresh,
                   "INSERT OR REPLACE INTO progress(source, watermark, carry, settings) "
                   "VALUES(?1, ?2, ?3, ?4)",
                   row, 4, err);
}

static enum err keep_name(struct repair *repair, sqlite3_stmt *row, struct error *err)
{
    if (sqlite3_column_int64(row, 0) > (sqlite3_int64)repair->old->dictionary.n)
        return ERR_OK; /* after one that is missing */
    return put_raw(repair->fresh, "INSERT INTO name(id, text) VALUES(?1, ?2)", row, 2, err);
}

static enum err keep_place(struct repair *repair, sqlite3_stmt *row, struct error *err)
{
    if (sqlite3_column_int64(row, 0) > (sqlite3_int64)repair->old->places.n)
        return ERR_OK;
    return put_raw(repair->fresh,
                   "INSERT INTO place(id, cluster, node, book) VALUES(?1, ?2, ?3, ?4)", row, 4,
                   err);
}

/* What the old file's sums say that its blocks did not have any more. */
static enum err compare_day(struct repair *repair, sqlite3_stmt *row, struct error *err)
{
    int64_t day = sqlite3_column_int64(row, 0);
    uint32_t hours = (uint32_t)sqlite3_column_int64(row, 1) & 0xffffff;
    uint64_t rows = (uint64_t)sqlite3_column_int64(row, 2), found = 0;
    struct day *days = NULL;
    size_t n = 0;
    struct span whole = {day * DAY_MS, (day + 1) * DAY_MS};
    enum err code = store_days(repair->fresh, whole, &days, &n, err);
    for (size_t i = 0; i < n; i++)
        found += days[i].rows;
    free(days);
    if (!code && found < rows)
        tell(repair, NULL, span_of_bits(day, hours), "rows of that day are missing");
    return code;
}

/* ---- the whole ---- */

static enum err copy_all(struct repair *repair, struct error *err)
{
    struct store *fresh = repair->fresh;
    enum err code = store_begin(fresh, err);
    if (!code)
        code = copy_rows(repair, "SELECT id, text FROM name ORDER BY id", keep_name, err);
    if (!code)
        code = copy_rows(repair, "SELECT id, cluster, node, book FROM place ORDER BY id",
                         keep_place, err);
    if (!code)
        code = dictionary_refresh(fresh, err);
    if (!code)
        code = places_refresh(fresh, err);
    if (!code)
        code = copy_blocks(
            repair, "SELECT key, hours, data FROM block WHERE key >= ?1 ORDER BY key LIMIT 1", err);
    if (!code)
        code = copy_blocks(
            repair, "SELECT key, hours, data FROM segment WHERE key >= ?1 ORDER BY key LIMIT 1",
            err);
    if (!code)
        code = copy_gpu_hours(repair, err);
    if (!code)
        code = copy_rows(repair, "SELECT kind, day, place, data FROM load_hours", keep_load_hours,
                         err);
    if (!code)
        code = copy_rows(repair, "SELECT kind, subject, text, first, past, count, book FROM note",
                         keep_note, err);
    if (!code)
        code = copy_rows(repair, "SELECT source, watermark, carry, settings FROM progress",
                         keep_position, err);
    if (!code)
        code = store_commit(fresh, NULL, err);
    if (!code)
        code = copy_rows(repair, "SELECT day, hours, rows FROM day ORDER BY day", compare_day, err);
    return code;
}

/* As store_open does it, but without names and places. */
static enum err open_damaged(const char *path, struct names *names, struct store **ret,
                             struct error *err)
{
    struct store *store = mem_zalloc(1, sizeof *store);
    store->path = str_dup(str_of(path));
    store->mode = STORE_READ;
    store->names = names;
    store->packing = mem_zalloc(1, sizeof *store->packing);
    store->reading = mem_zalloc(1, sizeof *store->reading);
    enum err code = db_open(store, err);
    if (!code)
        code = store_migrate(store, err);
    if (code) {
        store_close(store);
        return code;
    }
    *ret = store;
    return ERR_OK;
}

enum err store_repair(const char *path, const char *to, const struct store_repair *options,
                      struct store_repaired *ret, struct error *err)
{
    struct repair repair = {.options = options, .report = ret};
    struct names *names = names_new(), *fresh_names = names_new();
    struct lock lock = {0};
    *ret = (struct store_repaired){0};
    enum err code = ERR_OK;
    if (access(to, F_OK) == 0)
        code = error_set(err, ERR_USAGE, "%s is there already: name a file that is not", to);
    if (!code && access(path, F_OK) != 0)
        code = error_set(err, ERR_NOT_FOUND, "there is no database %s", path);
    if (!code)
        code = lock_take(&lock, path, err);
    if (!code)
        code = open_damaged(path, names, &repair.old, err);
    if (!code)
        code = store_open(to, STORE_WRITE, fresh_names, &repair.fresh, err);
    if (!code) {
        ret->unreadable += dictionary_refresh(repair.old, NULL) != ERR_OK;
        ret->unreadable += places_refresh(repair.old, NULL) != ERR_OK;
        code = copy_all(&repair, err);
    }
    store_close(repair.fresh);
    store_close(repair.old);
    lock_release(&lock);
    row_batch_release(&repair.rows);
    names_free(fresh_names);
    names_free(names);
    return code;
}
