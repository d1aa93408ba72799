/* Roll-ups of the days that are being written. A day that is booked hour by hour is not summed up
 * anew each time: its roll-up stays in memory, and what is added to the day is added to it. As soon
 * as anything else happens to the day (hours replaced, cleared, put together) it is forgotten, and
 * made from the blocks again at commit. A slice spans two days at most, so two are kept. */
#include <stdlib.h>

#include "store/hour_sums.h"

static enum err drop_day(struct store *store, int64_t day, struct error *err)
{
    sqlite3_stmt *drop = db_statement(store, STATEMENT_DAY_DROP, err);
    if (!drop)
        return ERR_STORE;
    sqlite3_bind_int64(drop, 1, day);
    enum err code = db_run(store, drop, "dropping a day", err);
    return code ? code : hour_sums_drop(store, day, err);
}

static enum err put_day(struct store *store, struct rollup *rollup, struct error *err)
{
    struct strbuf sums = {0}, nodes = {0};
    enum err code = rollup_pack_sums(store, &rollup->sums, &sums, err);
    if (!code)
        code = rollup_pack_nodes(store, rollup, &nodes, err);
    sqlite3_stmt *put = code ? NULL : db_statement(store, STATEMENT_DAY_PUT, err);
    if (put) {
        sqlite3_bind_int64(put, 1, rollup->day);
        sqlite3_bind_int64(put, 2, rollup->hours);
        sqlite3_bind_int64(put, 3, (sqlite3_int64)rollup->rows_n);
        sqlite3_bind_blob64(put, 4, sums.text, sums.n, SQLITE_STATIC);
        sqlite3_bind_blob64(put, 5, nodes.text, nodes.n, SQLITE_STATIC);
        code = db_run(store, put, "writing a day", err);
        sqlite3_clear_bindings(put);
    } else if (!code) {
        code = ERR_STORE;
    }
    strbuf_release(&sums);
    strbuf_release(&nodes);
    return code ? code : hour_sums_put(store, rollup, err);
}

static struct rollup *slot_of(struct store *store, int64_t day)
{
    struct rollup **slot = &store->rollups[day & 1];
    if (!*slot)
        *slot = mem_zalloc(1, sizeof **slot);
    return *slot;
}

bool day_is_dirty(const struct store *store, int64_t day)
{
    for (size_t i = 0; i < store->dirty_days_n; i++)
        if (store->dirty_days[i] == day)
            return true;
    return false;
}

/* Has the day had anything before this transaction? */
static enum err is_known(struct store *store, int64_t day, bool *ret, struct error *err)
{
    sqlite3_stmt *get = db_statement(store, STATEMENT_DAY_KNOWN, err);
    if (!get)
        return ERR_STORE;
    sqlite3_bind_int64(get, 1, day);
    int rc = sqlite3_step(get);
    *ret = rc == SQLITE_ROW;
    enum err code =
        rc == SQLITE_ROW || rc == SQLITE_DONE ? ERR_OK : db_fail(store, rc, "reading a day", err);
    sqlite3_reset(get);
    return code;
}

enum err day_added(struct store *store, int64_t day, uint32_t place, bool first, struct error *err)
{
    struct rollup *rollup = slot_of(store, day);
    if (!rollup->whole || rollup->day != day) {
        bool known = true;
        enum err code = first ? is_known(store, day, &known, err) : ERR_OK;
        if (code || known)
            return code;
        rollup_clear(rollup, day, hour_sums_wanted(store));
        rollup->whole = true;
    }
    rollup_add(rollup, store->names, store->packing, place, UINT32_MAX);
    return ERR_OK;
}

void day_changed(struct store *store, int64_t day)
{
    struct rollup *rollup = slot_of(store, day);
    if (rollup->day == day)
        rollup->whole = false;
}

void days_forget(struct store *store)
{
    for (int i = 0; i < 2; i++)
        if (store->rollups[i])
            store->rollups[i]->whole = false;
}

void days_release(struct store *store)
{
    for (int i = 0; i < 2; i++)
        if (store->rollups[i]) {
            rollup_release(store->rollups[i]);
            free(store->rollups[i]);
            store->rollups[i] = NULL;
        }
}

enum err day_write(struct store *store, int64_t day, struct error *err)
{
    struct rollup *rollup = slot_of(store, day);
    if (!rollup->whole || rollup->day != day) {
        rollup_clear(rollup, day, hour_sums_wanted(store));
        enum err code = rollup_add_blocks(store, rollup, err);
        if (code)
            return code;
        rollup->whole = true;
    }
    return rollup->hours ? put_day(store, rollup, err) : drop_day(store, day, err);
}

static enum err add_hour_sums(struct store *store, int64_t day, struct error *err)
{
    bool has;
    enum err code = hour_sums_are_there(store, day, &has, err);
    if (code || has)
        return code;
    code = store_begin(store, err);
    if (!code)
        code = day_write(store, day, err);
    if (!code)
        return store_commit(store, NULL, err);
    store_rollback(store);
    return code;
}

enum err days_add_hour_sums(struct store *store, struct error *err)
{
    struct day *days = NULL;
    size_t n = 0;
    enum err code = store_days(store, (struct span){TIME_MIN, TIME_MAX}, &days, &n, err);
    for (size_t i = 0; i < n; i++) {
        enum err why = add_hour_sums(store, days[i].day, code ? NULL : err);
        code = code ? code : why;
    }
    free(days);
    return code;
}
