/* What the files of store/ share: the handle, its statements, its dictionary of names.
 *
 * A handle belongs to one thread. All statements of a handle are prepared once, on first use, and
 * stand in one table (db.c), so that the SQL of the store is read in one place. */
#ifndef GPUTALLY_STORE_INTERNAL_H
#define GPUTALLY_STORE_INTERNAL_H

#include <sqlite3.h>

#include "store/lock.h"
#include "store/store.h"

/* X(NAME, "SQL") */
#define STATEMENT_TABLE(X)                                                                         \
    X(BEGIN_READ, "BEGIN")                                                                         \
    X(BEGIN_WRITE, "BEGIN IMMEDIATE")                                                              \
    X(COMMIT, "COMMIT")                                                                            \
    X(NAMES_AFTER, "SELECT id, text FROM name WHERE id > ?1 ORDER BY id")                          \
    X(NAME_ADD, "INSERT INTO name(id, text) VALUES(?1, ?2)")                                       \
    X(BLOCK_GET, "SELECT data FROM block WHERE day = ?1 AND cluster = ?2 AND node = ?3")           \
    X(BLOCK_PUT,                                                                                   \
      "INSERT OR REPLACE INTO block(day, cluster, node, hours, data) VALUES(?1, ?2, ?3, ?4, ?5)")  \
    X(BLOCK_DROP, "DELETE FROM block WHERE day = ?1 AND cluster = ?2 AND node = ?3")               \
    X(BLOCKS_WITH_HOURS, "SELECT cluster, node FROM block WHERE day = ?1 AND (hours & ?2) != 0")   \
    X(BLOCKS_OF_DAY, "SELECT cluster, node, hours, data FROM block WHERE day = ?1")                \
    X(BLOCKS_BEFORE, "DELETE FROM block WHERE day < ?1")                                           \
    X(DAYS, "SELECT DISTINCT day FROM block WHERE day >= ?1 AND day <= ?2 ORDER BY day")           \
    X(DAY_HOURS, "SELECT hours FROM block WHERE day = ?1")                                         \
    X(DAY_FIRST_LAST, "SELECT min(day), max(day) FROM block")                                      \
    X(NOTE_PUT, "INSERT OR REPLACE INTO note(kind, subject, text, first, past, count) "            \
                "VALUES(?1, ?2, ?3, ?4, ?5, ?6)")                                                  \
    X(NOTES_OF, "SELECT kind, subject, text, count, first, past FROM note "                        \
                "WHERE past > ?1 AND first < ?2 ORDER BY first, past, kind, subject, text")        \
    X(NOTES_DROP, "DELETE FROM note WHERE first >= ?1 AND past <= ?2")                             \
    X(NOTES_CUT_TAIL,                                                                              \
      "UPDATE OR REPLACE note SET past = ?1 WHERE first < ?1 AND past > ?1 AND past <= ?2")        \
    X(NOTES_CUT_HEAD,                                                                              \
      "UPDATE OR REPLACE note SET first = ?2 WHERE first >= ?1 AND first < ?2 AND past > ?2")      \
    X(PROGRESS_PUT, "INSERT OR REPLACE INTO progress(source, watermark, carry, settings) "         \
                    "VALUES(?1, ?2, ?3, ?4)")                                                      \
    X(PROGRESS_GET, "SELECT watermark, carry, settings FROM progress WHERE source = ?1")

enum statement {
#define X(name, sql) STATEMENT_##name,
    STATEMENT_TABLE(X)
#undef X
        STATEMENT_COUNT
};

/* Ids on disk are 1, 2, …; 0 is none. In memory a text has the id that `names` gave it. */
struct dictionary {
    name_t *of_disk; /* [id on disk - 1] */
    size_t n, room;
    size_t committed_n; /* of those, the ones that a rollback does not take back */
    uint32_t *to_disk;  /* [id in memory]: id on disk, 0 unknown */
    size_t to_room;
};

struct store {
    sqlite3 *db;
    char *path;
    enum store_mode mode;
    struct names *names;
    struct lock lock;
    struct dictionary dictionary;
    sqlite3_stmt *statements[STATEMENT_COUNT];
    bool writing;
    int reading; /* depth of store_read_begin */
};

/* db.c */
enum err db_open(struct store *store, struct error *err);
void db_close(struct store *store);
/* The error of the last call of SQLite in words: what was done, what went wrong, what to try. */
enum err db_fail(struct store *store, int rc, const char *doing, struct error *err);
/* A statement ready to be bound: prepared where it is not, reset. NULL sets err. */
sqlite3_stmt *db_statement(struct store *store, enum statement which, struct error *err);
/* Step a statement that gives no rows, and reset it. */
enum err db_run(struct store *store, sqlite3_stmt *statement, const char *doing, struct error *err);
enum err db_run_simple(struct store *store, enum statement which, const char *doing,
                       struct error *err);
struct str db_text(sqlite3_stmt *statement, int column);
enum err db_corrupt(struct store *store, const char *what, struct error *err);

/* migrate.c: bring an open database to this program's schema (STORE_WRITE), or refuse it. */
enum err store_migrate(struct store *store, struct error *err);

/* dictionary.c */
enum err dictionary_refresh(struct store *store, struct error *err); /* names that others added */
/* Id on disk of a name; puts it (inside a write transaction) where it is new. */
enum err dictionary_put(struct store *store, name_t name, uint32_t *ret, struct error *err);
bool dictionary_get(const struct store *store, uint64_t disk, name_t *ret);
void dictionary_committed(struct store *store);
void dictionary_rolled_back(struct store *store);
void dictionary_release(struct store *store);

/* store.c: a read transaction, so that several reads see one state; nests; free inside a write. */
enum err store_read_begin(struct store *store, struct error *err);
void store_read_end(struct store *store);

/* Days of the hours that the store has anything of, ascending; the caller frees. */
enum err store_days(struct store *store, struct span hours, int64_t **ret, size_t *ret_n,
                    struct error *err);

/* notes.c. A note that the cleared hours cut keeps its count, over the hours that are left. */
enum err notes_put(struct store *store, const struct note *notes, size_t n, struct error *err);
enum err notes_clear(struct store *store, struct span hours, struct error *err);
enum err notes_read(struct store *store, struct span hours, struct row_batch *ret,
                    struct error *err);

static inline int64_t day_of(time_ms t)
{
    time_ms rest = t % DAY_MS;
    return (t - (rest < 0 ? rest + DAY_MS : rest)) / DAY_MS;
}

#endif
