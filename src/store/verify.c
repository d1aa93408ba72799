/* Is the database what it should be? SQLite's own check, and ours: every block can be read, what
 * GPUs did too, every roll-up (of days, and of hours where a day has them) equals its blocks, and
 * the rows of each node and hour add up to what the node cost. */
#include <stdlib.h>

#include "store/hour_sums.h"

static enum err check_pages(struct store *store, struct error *err)
{
    sqlite3_stmt *check;
    int rc = sqlite3_prepare_v2(store->db, "PRAGMA integrity_check(1)", -1, &check, NULL);
    if (rc != SQLITE_OK)
        return db_fail(store, rc, "checking it", err);
    rc = sqlite3_step(check);
    enum err code = ERR_OK;
    if (rc != SQLITE_ROW)
        code = db_fail(store, rc, "checking it", err);
    else if (!str_eq(db_text(check, 0), STR("ok")))
        code = db_corrupt(store, (const char *)sqlite3_column_text(check, 0), err);
    sqlite3_finalize(check);
    return code;
}

enum err block_check_balance(struct store *store, const struct block *block, struct error *err)
{
    wide_t rows[24] = {0};
    for (size_t i = 0; i < block->rows_n; i++)
        rows[block->hours[i]] += block->columns[COLUMN_COST][i];
    for (size_t i = 0; i < block->node_hours_n; i++)
        rows[(block->node_hours[i].hour - block->day * DAY_MS) / HOUR_MS] -=
            block->node_hours[i].booked;
    for (int h = 0; h < 24; h++)
        if (rows[h] != 0) {
            char hour[TIME_TEXT_MAX];
            struct str node = names_text(store->names, block->node);
            return error_set(err, ERR_STORE,
                             "%s: the rows of node %.*s at %s do not add up to what it cost: book "
                             "that hour again",
                             store->path, STR_ARG(node),
                             time_format(block->day * DAY_MS + h * HOUR_MS, hour));
        }
    return ERR_OK;
}

struct day_check {
    struct store *store;
    struct rollup rollup;
    struct row_batch rows; /* only to see that they can be read */
    size_t without;        /* days that lack sums of hours */
};

static enum err check_block(struct day_check *check, int64_t key, struct str packed,
                            struct error *err)
{
    struct store *store = check->store;
    uint32_t id = cell_place(key);
    struct place place;
    if (!places_get(store, id, &place))
        return db_corrupt(store, "a block of an unknown node", err);
    enum err code = block_open(store, store->reading, check->rollup.day, place.cluster, place.node,
                               packed, BLOCK_NAMES_KINDS, err);
    if (code)
        return code;
    rollup_add(&check->rollup, store->names, store->reading, id, UINT32_MAX);
    code = block_check_balance(store, store->reading, err);
    row_batch_clear(&check->rows);
    return code ? code : block_rows(store, store->reading, UINT32_MAX, &check->rows, err);
}

static enum err check_blocks(struct day_check *check, struct error *err)
{
    struct store *store = check->store;
    sqlite3_stmt *get = db_statement(store, STATEMENT_BLOCKS, err);
    if (!get)
        return ERR_STORE;
    sqlite3_bind_int64(get, 1, cell_key(check->rollup.day, 0, 0));
    sqlite3_bind_int64(get, 2, cell_key(check->rollup.day + 1, 0, 0));
    enum err code = ERR_OK;
    int rc = SQLITE_DONE;
    while (!code && (rc = sqlite3_step(get)) == SQLITE_ROW)
        code = check_block(check, sqlite3_column_int64(get, 0), db_text(get, 2), err);
    if (!code && rc != SQLITE_DONE)
        code = db_fail(store, rc, "reading rows", err);
    sqlite3_reset(get);
    return code;
}

/* Packing is a function of the sums and the dictionary, so equal roll-ups are equal bytes. */
static enum err check_rollup(struct day_check *check, const struct day *day, struct error *err)
{
    struct store *store = check->store;
    struct strbuf sums = {0}, nodes = {0};
    enum err code = rollup_pack_sums(store, &check->rollup.sums, &sums, err);
    if (!code)
        code = rollup_pack_nodes(store, &check->rollup, &nodes, err);
    sqlite3_stmt *get = code ? NULL : db_statement(store, STATEMENT_DAY_GET, err);
    if (get) {
        sqlite3_bind_int64(get, 1, day->day);
        int rc = sqlite3_step(get);
        if (rc != SQLITE_ROW)
            code = db_fail(store, rc, "reading a day", err);
        else if (!str_eq(db_text(get, 0), strbuf_str(&sums)) ||
                 !str_eq(db_text(get, 1), strbuf_str(&nodes)) ||
                 day->hours != check->rollup.hours || day->rows != check->rollup.rows_n)
            code = db_corrupt(store, "a day's sums are not those of its rows", err);
        sqlite3_reset(get);
    } else if (!code) {
        code = ERR_STORE;
    }
    strbuf_release(&sums);
    strbuf_release(&nodes);
    return code;
}

static enum err check_day(struct day_check *check, const struct day *day, struct error *err)
{
    bool by_hour;
    enum err code = hour_sums_are_there(check->store, day->day, &by_hour, err);
    if (code)
        return code;
    rollup_clear(&check->rollup, day->day, by_hour || hour_sums_wanted(check->store));
    code = check_blocks(check, err);
    if (!code)
        code = check_rollup(check, day, err);
    check->without += !code && !by_hour && hour_sums_are_due(check->store, &check->rollup);
    return code ? code : hour_sums_verify(check->store, &check->rollup, err);
}

static bool is_read(void *context, const struct device_hour *hours, size_t n)
{
    (void)context, (void)hours, (void)n;
    return true;
}

enum err store_verify(struct store *store, size_t *ret_without, struct error *err)
{
    struct day *days = NULL;
    size_t n = 0;
    struct day_check check = {.store = store};
    enum err code = store_read_begin(store, err);
    if (code)
        return code;
    code = check_pages(store, err);
    if (!code)
        code = store_days(store, (struct span){TIME_MIN, TIME_MAX}, &days, &n, err);
    for (size_t i = 0; i < n && !code; i++)
        code = check_day(&check, &days[i], err);
    if (!code)
        code = store_read_device_hours(store, (struct span){TIME_MIN, TIME_MAX}, DEVICE_HOURS_ALL,
                                       is_read, NULL, err);
    if (!code)
        code = load_hours_verify(store, err);
    store_read_end(store);
    if (!code && ret_without)
        *ret_without = check.without;
    rollup_release(&check.rollup);
    row_batch_release(&check.rows);
    free(days);
    return code;
}
