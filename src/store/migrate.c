/* The schema, as steps from one version to the next: a database of any older version is brought to
 * today's by the steps that it lacks, in one transaction. PRAGMA user_version counts the steps
 * done; application_id says that the file is ours at all.
 *
 *   name      the texts of names that last, once; ids are 1, 2, … without holes
 *   place     the nodes (cluster and node as ids of names) of the books (likewise; 0 is the one
 *             without a name); ids likewise
 *   block     rows and node-hours of a place's UTC day, packed (block.h): key is (day x 2^24 +
 *             place) x 2^5, hours has a bit for each hour of the day that there is anything of
 *   segment   the same of days in progress: hours of a place's day, key + a number from 1
 *   gpu_hours what the GPUs of a place did in a UTC day (device_hours.c); key is day x 2^24 + place
 *   load_hours what hosts, workloads and namespaces did in a UTC day (load_hours.c), by kind; of
 *             workloads and namespaces the place is their cluster's, the one without a node
 *   day       roll-ups of a UTC day (rollup.c): sums by team and the like, and what its nodes cost
 *   hour_sums the same of each hour (hour_sums.c), of days that have many rows
 *   note      what sources had to say about hours of a book
 *   progress  how far each set of sources is booked, and what its next run needs to know */
#include "store/internal.h"

#define APPLICATION_ID 0x67707531 /* "gpu1" */

static const char *const steps[] = {
    "CREATE TABLE name(id INTEGER PRIMARY KEY, text TEXT NOT NULL) STRICT;"
    "CREATE TABLE place(id INTEGER PRIMARY KEY, cluster INTEGER NOT NULL,"
    "  node INTEGER NOT NULL) STRICT;"
    "CREATE TABLE block(key INTEGER PRIMARY KEY, hours INTEGER NOT NULL, data BLOB NOT NULL)"
    "  STRICT;"
    "CREATE TABLE segment(key INTEGER PRIMARY KEY, hours INTEGER NOT NULL, data BLOB NOT NULL)"
    "  STRICT;"
    "CREATE TABLE day(day INTEGER PRIMARY KEY, hours INTEGER NOT NULL, rows INTEGER NOT NULL,"
    "  sums BLOB NOT NULL, nodes BLOB NOT NULL) STRICT;"
    "CREATE TABLE note(kind INTEGER NOT NULL, subject TEXT NOT NULL, text TEXT NOT NULL,"
    "  first INTEGER NOT NULL, past INTEGER NOT NULL, count INTEGER NOT NULL,"
    "  PRIMARY KEY(first, past, kind, subject, text)) STRICT, WITHOUT ROWID;"
    "CREATE TABLE progress(source TEXT PRIMARY KEY, watermark INTEGER NOT NULL,"
    "  carry BLOB NOT NULL, settings TEXT NOT NULL) STRICT;",
    "CREATE TABLE gpu_hours(key INTEGER PRIMARY KEY, data BLOB NOT NULL) STRICT;",
    "ALTER TABLE place ADD COLUMN book INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE note RENAME TO old_note;"
    /* columns of the key first, in its order: SQLite 3.40 finds errors that are none elsewise */
    "CREATE TABLE note(first INTEGER NOT NULL, past INTEGER NOT NULL, kind INTEGER NOT NULL,"
    "  subject TEXT NOT NULL, text TEXT NOT NULL, book TEXT NOT NULL, count INTEGER NOT NULL,"
    "  PRIMARY KEY(first, past, kind, subject, text, book)) STRICT, WITHOUT ROWID;"
    "INSERT INTO note SELECT first, past, kind, subject, text, '', count FROM old_note;"
    "DROP TABLE old_note;",
    ("CREATE TABLE load_hours(kind INTEGER NOT NULL, day INTEGER NOT NULL, place INTEGER NOT NULL,"
     "  data BLOB NOT NULL, PRIMARY KEY(kind, day, place)) STRICT, WITHOUT ROWID;"),
    "CREATE TABLE hour_sums(key INTEGER PRIMARY KEY, data BLOB NOT NULL) STRICT;",
};
#define VERSION (int)(sizeof steps / sizeof *steps)

static enum err pragma_int(struct store *store, const char *sql, int64_t *ret, struct error *err)
{
    sqlite3_stmt *statement;
    int rc = sqlite3_prepare_v2(store->db, sql, -1, &statement, NULL);
    if (rc == SQLITE_OK) {
        rc = sqlite3_step(statement);
        *ret = rc == SQLITE_ROW ? sqlite3_column_int64(statement, 0) : 0;
        sqlite3_finalize(statement);
    }
    return rc == SQLITE_ROW ? ERR_OK : db_fail(store, rc, "reading its version", err);
}

static enum err apply(struct store *store, int from, struct error *err)
{
    int rc = sqlite3_exec(store->db, "BEGIN IMMEDIATE", NULL, NULL, NULL);
    for (int i = from; rc == SQLITE_OK && i < VERSION; i++)
        rc = sqlite3_exec(store->db, steps[i], NULL, NULL, NULL);
    char sql[128];
    snprintf(sql, sizeof sql, "PRAGMA application_id=%d; PRAGMA user_version=%d; COMMIT",
             APPLICATION_ID, VERSION);
    if (rc == SQLITE_OK)
        rc = sqlite3_exec(store->db, sql, NULL, NULL, NULL);
    if (rc == SQLITE_OK)
        return ERR_OK;
    enum err code = db_fail(store, rc, "bringing it to this version's schema", err);
    sqlite3_exec(store->db, "ROLLBACK", NULL, NULL, NULL);
    return code;
}

enum err store_migrate(struct store *store, struct error *err)
{
    int64_t application = 0, version = 0, tables = 0;
    enum err code = pragma_int(store, "PRAGMA application_id", &application, err);
    if (!code)
        code = pragma_int(store, "PRAGMA user_version", &version, err);
    if (!code)
        code = pragma_int(store, "SELECT count(*) FROM sqlite_schema", &tables, err);
    if (code)
        return code;
    if (application != APPLICATION_ID && (application != 0 || tables != 0))
        return error_set(err, ERR_STORE,
                         "%s is a SQLite database of another program: name another file",
                         store->path);
    if (version > VERSION)
        return error_set(err, ERR_STORE,
                         "%s was written by a newer gputally (schema %lld; this one knows up to "
                         "%d): use that version or a newer one",
                         store->path, (long long)version, VERSION);
    if (version == VERSION)
        return ERR_OK;
    if (store->mode == STORE_WRITE || sqlite3_db_readonly(store->db, "main") == 0)
        return apply(store, (int)version, err);
    if (tables == 0)
        return error_set(err, ERR_NOT_FOUND, "%s is empty: nothing has been collected into it yet",
                         store->path);
    return error_set(err, ERR_STORE,
                     "%s was written by an older gputally (schema %lld): gputally collect --db %s "
                     "brings it to this version",
                     store->path, (long long)version, store->path);
}
