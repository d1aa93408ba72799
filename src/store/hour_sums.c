/* Sums of the hours of a day, beside its roll-up: for windows that cut the day, for days of other
 * zones than UTC and for reports by the hour, which would open the blocks of all nodes otherwise.
 *
 * The table hour_sums has a value of the day's nodes and devices with their hours, key day x 32,
 * and one for each hour that has rows, packed as a day's sums are, key day x 32 + 1 + hour. They
 * are written in the transaction that writes the day, and only where they are few beside the rows
 * that they sum up: a small ledger's blocks are read as fast, and sums as many as rows would be as
 * large. */
#include "store/hour_sums.h"

#define KEYS_A_DAY 32 /* of which 25 are used */
#define KEY_NODES 0
#define KEY_HOURS 1
#define KEYS_USED (KEY_HOURS + 24)

static int64_t key_of(int64_t day, int key)
{
    return day * KEYS_A_DAY + key;
}

bool hour_sums_wanted(const struct store *store)
{
    return store->rows_a_sum > 0;
}

/* They are few beside the rows. */
bool hour_sums_are_due(const struct store *store, const struct rollup *rollup)
{
    return hour_sums_wanted(store) && rollup->of_hours && rollup->hour_sums_n &&
           rollup->rows_n / rollup->hour_sums_n >= store->rows_a_sum;
}

enum err hour_sums_drop(struct store *store, int64_t day, struct error *err)
{
    sqlite3_stmt *drop = db_statement(store, STATEMENT_HOUR_SUMS_DROP, err);
    if (!drop)
        return ERR_STORE;
    sqlite3_bind_int64(drop, 1, key_of(day, 0));
    sqlite3_bind_int64(drop, 2, key_of(day + 1, 0));
    return db_run(store, drop, "dropping sums of hours", err);
}

/* The value of a key as it should stand on disk; empty: there is none. */
static enum err pack(struct store *store, const struct rollup *rollup, int key, struct strbuf *ret,
                     struct error *err)
{
    strbuf_clear(ret);
    if (key == KEY_NODES)
        return rollup_pack_node_hours(store, rollup, ret, err);
    const struct rollup_sums *sums = &rollup->of_hours[key - KEY_HOURS];
    return sums->n ? rollup_pack_sums(store, sums, ret, err) : ERR_OK;
}

/* What is as it was is not written again: a day that is booked by the hour changes by an hour. */
static enum err put(struct store *store, int64_t key, const struct strbuf *packed,
                    struct error *err)
{
    sqlite3_stmt *put =
        db_statement(store, packed->n ? STATEMENT_HOUR_SUMS_PUT : STATEMENT_HOUR_SUMS_DROP, err);
    if (!put)
        return ERR_STORE;
    sqlite3_bind_int64(put, 1, key);
    if (packed->n)
        sqlite3_bind_blob64(put, 2, packed->text, packed->n, SQLITE_STATIC);
    else
        sqlite3_bind_int64(put, 2, key + 1);
    enum err code = db_run(store, put, "writing sums of hours", err);
    sqlite3_clear_bindings(put);
    return code;
}

enum err hour_sums_put(struct store *store, struct rollup *rollup, struct error *err)
{
    if (!hour_sums_are_due(store, rollup)) {
        rollup->unwritten = 0xffffff;
        return hour_sums_drop(store, rollup->day, err);
    }
    struct strbuf packed = {0};
    enum err code = ERR_OK;
    for (int key = 0; key < KEYS_USED && !code; key++) {
        if (key != KEY_NODES && !(rollup->unwritten >> (key - KEY_HOURS) & 1))
            continue;
        code = pack(store, rollup, key, &packed, err);
        if (!code)
            code = put(store, key_of(rollup->day, key), &packed, err);
    }
    rollup->unwritten = code ? 0xffffff : 0;
    strbuf_release(&packed);
    return code;
}

/* All values of a day, in order of key. */
static sqlite3_stmt *values_of(struct store *store, int64_t day, struct error *err)
{
    sqlite3_stmt *get = db_statement(store, STATEMENT_HOUR_SUMS, err);
    if (get) {
        sqlite3_bind_int64(get, 1, key_of(day, 0));
        sqlite3_bind_int64(get, 2, key_of(day + 1, 0));
    }
    return get;
}

static int key_in(sqlite3_stmt *get, int64_t day)
{
    return (int)(sqlite3_column_int64(get, 0) - key_of(day, 0));
}

enum err hour_sums_are_there(struct store *store, int64_t day, bool *ret, struct error *err)
{
    sqlite3_stmt *get = values_of(store, day, err);
    if (!get)
        return ERR_STORE;
    int rc = sqlite3_step(get);
    *ret = rc == SQLITE_ROW && key_in(get, day) == KEY_NODES;
    sqlite3_reset(get);
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? ERR_OK
                                                 : db_fail(store, rc, "reading sums of hours", err);
}

static enum err scan_sums(struct store *store, sqlite3_stmt *get, int64_t day, uint32_t hours,
                          const struct scan *scan, struct error *err)
{
    uint32_t missing;
    enum err code = rollup_scan_node_hours(store, day, db_text(get, 1), hours, scan, &missing, err);
    int rc = SQLITE_DONE;
    missing &= hours;
    while (!code && missing && (rc = sqlite3_step(get)) == SQLITE_ROW) {
        int hour = key_in(get, day) - KEY_HOURS;
        if (hour >= 24 || !(missing >> hour & 1))
            continue;
        missing &= ~(1u << hour);
        code = rollup_scan_sums(store, day * DAY_MS + hour * HOUR_MS, db_text(get, 1), scan, err);
    }
    if (!code && missing)
        code = rc == SQLITE_DONE ? db_corrupt(store, "sums of hours are missing", err)
                                 : db_fail(store, rc, "reading sums of hours", err);
    return code;
}

enum err hour_sums_scan(struct store *store, int64_t day, uint32_t hours, const struct scan *scan,
                        bool *ret_found, struct error *err)
{
    enum err code = ERR_OK;
    sqlite3_stmt *get = values_of(store, day, err);
    if (!get)
        return ERR_STORE;
    int rc = sqlite3_step(get);
    *ret_found = rc == SQLITE_ROW && key_in(get, day) == KEY_NODES;
    if (*ret_found)
        code = scan_sums(store, get, day, hours, scan, err);
    else if (rc != SQLITE_ROW && rc != SQLITE_DONE)
        code = db_fail(store, rc, "reading sums of hours", err);
    sqlite3_reset(get);
    return code;
}

/* The values that are left to read, from the first one of the day on. */
static enum err compare(struct store *store, sqlite3_stmt *get, const struct rollup *rollup,
                        int *rc, struct error *err)
{
    struct strbuf packed = {0};
    enum err code = ERR_OK;
    for (int key = 0; key < KEYS_USED && !code; key++) {
        code = pack(store, rollup, key, &packed, err);
        bool there = *rc == SQLITE_ROW && key_in(get, rollup->day) == key;
        if (!code && !str_eq(there ? db_text(get, 1) : STR_NONE, strbuf_str(&packed)))
            code = db_corrupt(store, "sums of hours are not those of their rows", err);
        if (!code && there)
            *rc = sqlite3_step(get);
    }
    strbuf_release(&packed);
    return code;
}

enum err hour_sums_verify(struct store *store, const struct rollup *rollup, struct error *err)
{
    sqlite3_stmt *get = values_of(store, rollup->day, err);
    if (!get)
        return ERR_STORE;
    enum err code = ERR_OK;
    int rc = sqlite3_step(get);
    if (rc == SQLITE_ROW && rollup->of_hours)
        code = compare(store, get, rollup, &rc, err);
    if (!code && rc == SQLITE_ROW)
        code = db_corrupt(store, "there are sums of hours that have no rows", err);
    else if (!code && rc != SQLITE_DONE)
        code = db_fail(store, rc, "reading sums of hours", err);
    sqlite3_reset(get);
    return code;
}
