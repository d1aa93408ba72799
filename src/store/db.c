/* SQLite as the store uses it: opening, statements, and errors in words.
 *
 * WAL, so that readers never wait for the writer; synchronous FULL, so that what was committed
 * survives a power cut (a commit is an hour or more of a fleet: the fsync is nothing). Only the
 * writing handle checkpoints (SQLite 3.40 can reset a WAL under a second checkpointer): readers are
 * read-only handles and do not checkpoint when they close. A database in a folder where this user
 * may not write has no -shm for the WAL: then it is read as immutable, if nobody has it open. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "store/internal.h"

#define BUSY_TIMEOUT_MS 10000
#define PAGE_BYTES 65536 /* blocks are 2 to 10 kB: small pages would end in holes */
#define WAL_PAGES 256    /* checkpoint from here: 16 MB */
#define CACHE_KIB 8192

static const char *const statement_sql[STATEMENT_COUNT] = {
#define X(name, sql) sql,
    STATEMENT_TABLE(X)
#undef X
};

static enum err fail_full(const char *path, struct error *err)
{
    return error_set(err, ERR_STORE,
                     "%s: no room left on the disk (or over a limit of file size): free some space "
                     "and run again; all that was committed before is kept",
                     path);
}

static enum err fail_read_only(const char *path, struct error *err)
{
    return error_set(err, ERR_STORE,
                     "%s: its file system is read-only: mount it writable (the kernel's log says "
                     "where it was the kernel's doing); all that was committed before is kept",
                     path);
}

/* Of the file's, or where there is none yet, of its folder's. */
static bool on_read_only(const char *path)
{
    struct statvfs about;
    struct strbuf folder = {0};
    const char *slash = strrchr(path, '/');
    strbuf_add(&folder, slash ? (struct str){path, (size_t)(slash - path) + 1} : STR("."));
    bool known = statvfs(path, &about) == 0 || statvfs(folder.text, &about) == 0;
    strbuf_release(&folder);
    return known && about.f_flag & ST_RDONLY;
}

enum err db_fail(struct store *store, int rc, const char *doing, struct error *err)
{
    const char *path = store->path;
    int why = store->db ? sqlite3_system_errno(store->db) : errno;
    switch (rc & 0xff) {
    case SQLITE_FULL:
        return fail_full(path, err);
    case SQLITE_IOERR:
        if (why == EROFS || (!why && on_read_only(path)))
            return fail_read_only(path, err);
        /* SQLite says FULL for ENOSPC only, and forgets why a write to the WAL failed. */
        if (why == ENOSPC || why == EFBIG || why == EDQUOT || (rc == SQLITE_IOERR_WRITE && !why))
            return fail_full(path, err);
        return error_set(err, ERR_STORE, "%s: %s: the disk answers with an error (%s)", path, doing,
                         why ? strerror(why) : sqlite3_errstr(rc));
    case SQLITE_NOTADB:
        return error_set(err, ERR_STORE,
                         "%s is not a gputally database (nor any SQLite file): name another file",
                         path);
    case SQLITE_CORRUPT:
        return error_set(err, ERR_STORE,
                         "%s: %s: the file is damaged: gputally db repair --db %s keeps what is "
                         "sound; or bring a backup back",
                         path, doing, path);
    case SQLITE_READONLY:
    case SQLITE_PERM:
        if (on_read_only(path))
            return fail_read_only(path, err);
        return error_set(err, ERR_STORE, "%s: %s: no permission to write the file or its folder",
                         path, doing);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return error_set(err, ERR_LOCKED,
                         "%s: %s: another program holds the database for over %d s", path, doing,
                         BUSY_TIMEOUT_MS / 1000);
    case SQLITE_CANTOPEN:
        return error_set(err, why == ENOENT ? ERR_NOT_FOUND : ERR_STORE, "cannot open %s: %s", path,
                         why ? strerror(why) : "no such file or folder");
    default:
        return error_set(err, ERR_STORE, "%s: %s: %s", path, doing,
                         store->db ? sqlite3_errmsg(store->db) : sqlite3_errstr(rc));
    }
}

enum err db_corrupt(struct store *store, const char *what, struct error *err)
{
    return error_set(
        err, ERR_STORE,
        "%s: the file is damaged (%s): gputally db repair --db %s keeps what is sound; "
        "or bring a backup back",
        store->path, what, store->path);
}

/* sqlite3_interrupt() ends what runs at that moment; what begins after it would run on. */
enum err db_go_on(const struct store *store, struct error *err)
{
    if (!__atomic_load_n(&store->interrupted, __ATOMIC_RELAXED))
        return ERR_OK;
    return error_set(err, ERR_STORE, "%s: reading was ended", store->path);
}

sqlite3_stmt *db_statement(struct store *store, enum statement which, struct error *err)
{
    sqlite3_stmt **statement = &store->statements[which];
    if (db_go_on(store, err))
        return NULL;
    if (*statement) {
        sqlite3_reset(*statement);
        return *statement;
    }
    int rc = sqlite3_prepare_v3(store->db, statement_sql[which], -1, SQLITE_PREPARE_PERSISTENT,
                                statement, NULL);
    if (rc != SQLITE_OK) {
        db_fail(store, rc, "preparing a statement", err);
        return NULL;
    }
    return *statement;
}

enum err db_run(struct store *store, sqlite3_stmt *statement, const char *doing, struct error *err)
{
    int rc = sqlite3_step(statement);
    enum err code = rc == SQLITE_DONE || rc == SQLITE_ROW ? ERR_OK : db_fail(store, rc, doing, err);
    sqlite3_reset(statement);
    return code;
}

enum err db_run_simple(struct store *store, enum statement which, const char *doing,
                       struct error *err)
{
    sqlite3_stmt *statement = db_statement(store, which, err);
    return statement ? db_run(store, statement, doing, err) : err ? err->code : ERR_STORE;
}

struct str db_text(sqlite3_stmt *statement, int column)
{
    const char *p = sqlite3_column_blob(statement, column);
    return (struct str){p ? p : "", (size_t)sqlite3_column_bytes(statement, column)};
}

static int execute(struct store *store, const char *sql)
{
    return sqlite3_exec(store->db, sql, NULL, NULL, NULL);
}

static bool in_memory(const struct store *store)
{
    return strcmp(store->path, ":memory:") == 0;
}

/* A read-only folder: nobody can be writing there, at least nobody on this machine's side. */
static int open_immutable(struct store *store)
{
    struct strbuf uri = {0};
    strbuf_add(&uri, STR("file:"));
    for (const char *p = store->path; *p; p++) {
        if (*p == '?' || *p == '#' || *p == '%')
            strbuf_addf(&uri, "%%%02x", (unsigned char)*p);
        else
            strbuf_addc(&uri, *p);
    }
    strbuf_add(&uri, STR("?immutable=1"));
    sqlite3_close_v2(store->db);
    store->db = NULL;
    int rc = sqlite3_open_v2(uri.text, &store->db,
                             SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX, NULL);
    strbuf_release(&uri);
    return rc ? rc : execute(store, "SELECT count(*) FROM sqlite_schema");
}

static bool has_wal(const struct store *store)
{
    struct strbuf path = {0};
    strbuf_addf(&path, "%s-wal", store->path);
    bool there = access(path.text, F_OK) == 0;
    strbuf_release(&path);
    return there;
}

static enum err open_reader(struct store *store, struct error *err)
{
    if (access(store->path, F_OK) != 0 && !in_memory(store))
        return error_set(err, ERR_NOT_FOUND,
                         "there is no database %s: fill one with gputally collect --db %s",
                         store->path, store->path);
    int flags = in_memory(store) ? SQLITE_OPEN_READWRITE : SQLITE_OPEN_READONLY;
    int rc = sqlite3_open_v2(store->path, &store->db, flags | SQLITE_OPEN_NOMUTEX, NULL);
    if (rc == SQLITE_OK) {
        sqlite3_busy_timeout(store->db, BUSY_TIMEOUT_MS);
        rc = execute(store, "PRAGMA query_only=1; SELECT count(*) FROM sqlite_schema");
    }
    if (((rc & 0xff) == SQLITE_CANTOPEN || (rc & 0xff) == SQLITE_READONLY) &&
        access(store->path, R_OK) == 0 && !has_wal(store))
        rc = open_immutable(store);
    if (rc != SQLITE_OK)
        return db_fail(store, rc, "opening it", err);
    sqlite3_db_config(store->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    store->frozen = !in_memory(store) && on_read_only(store->path);
    return ERR_OK;
}

static enum err open_writer(struct store *store, struct error *err)
{
    if (!in_memory(store)) {
        enum err code = lock_take(&store->lock, store->path, err);
        if (code)
            return code;
    }
    int rc =
        sqlite3_open_v2(store->path, &store->db,
                        SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, NULL);
    if (rc != SQLITE_OK)
        return db_fail(store, rc, "opening it", err);
    if (sqlite3_db_readonly(store->db, "main") == 1) /* SQLite takes what it can get */
        return db_fail(store, SQLITE_READONLY, "opening it", err);
    sqlite3_busy_timeout(store->db, BUSY_TIMEOUT_MS);
    char sql[256];
    snprintf(sql, sizeof sql,
             "PRAGMA page_size=%d; PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;"
             "PRAGMA wal_autocheckpoint=%d; PRAGMA journal_size_limit=67108864;"
             "PRAGMA cache_size=-%d",
             PAGE_BYTES, WAL_PAGES, CACHE_KIB);
    rc = execute(store, sql);
    return rc ? db_fail(store, rc, "opening it", err) : ERR_OK;
}

enum err db_open(struct store *store, struct error *err)
{
    enum err code = store->mode == STORE_WRITE ? open_writer(store, err) : open_reader(store, err);
    if (code)
        return code;
    sqlite3_extended_result_codes(store->db, 1);
    /* What comes from a file is not trusted to run anything. */
    sqlite3_db_config(store->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(store->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    return ERR_OK;
}

void db_close(struct store *store)
{
    for (int i = 0; i < STATEMENT_COUNT; i++)
        sqlite3_finalize(store->statements[i]);
    sqlite3_close_v2(store->db);
    store->db = NULL;
    lock_release(&store->lock);
}
