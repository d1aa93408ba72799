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
    X(PLACES_AFTER, "SELECT id, cluster, node, book FROM place WHERE id > ?1 ORDER BY id")         \
    X(PLACE_ADD, "INSERT INTO place(id, cluster, node, book) VALUES(?1, ?2, ?3, ?4)")              \
    X(BLOCK_GET, "SELECT data FROM block WHERE key = ?1")                                          \
    X(BLOCK_PUT, "INSERT OR REPLACE INTO block(key, hours, data) VALUES(?1, ?2, ?3)")              \
    X(BLOCK_DROP, "DELETE FROM block WHERE key = ?1")                                              \
    X(SEGMENT_GET, "SELECT data FROM segment WHERE key = ?1")                                      \
    X(SEGMENT_PUT, "INSERT OR REPLACE INTO segment(key, hours, data) VALUES(?1, ?2, ?3)")          \
    X(SEGMENT_DROP, "DELETE FROM segment WHERE key = ?1")                                          \
    X(BLOCKS, "SELECT key, hours, data FROM block WHERE key >= ?1 AND key < ?2 UNION ALL "         \
              "SELECT key, hours, data FROM segment WHERE key >= ?1 AND key < ?2 ORDER BY key")    \
    X(BLOCK_HOURS, "SELECT key, hours FROM block WHERE key >= ?1 AND key < ?2 UNION ALL "          \
                   "SELECT key, hours FROM segment WHERE key >= ?1 AND key < ?2 ORDER BY key")     \
    X(DAYS, "SELECT day, hours, rows FROM day WHERE day >= ?1 AND day <= ?2 ORDER BY day")         \
    X(DAY_GET, "SELECT sums, nodes FROM day WHERE day = ?1")                                       \
    X(DAY_PUT, "INSERT OR REPLACE INTO day(day, hours, rows, sums, nodes) "                        \
               "VALUES(?1, ?2, ?3, ?4, ?5)")                                                       \
    X(DAY_KNOWN, "SELECT 1 FROM day WHERE day = ?1")                                               \
    X(DAY_DROP, "DELETE FROM day WHERE day = ?1")                                                  \
    X(HOUR_SUMS, "SELECT key, data FROM hour_sums WHERE key >= ?1 AND key < ?2 ORDER BY key")      \
    X(HOUR_SUMS_PUT, "INSERT INTO hour_sums(key, data) VALUES(?1, ?2) ON CONFLICT(key) "           \
                     "DO UPDATE SET data = excluded.data WHERE data <> excluded.data")             \
    X(HOUR_SUMS_DROP, "DELETE FROM hour_sums WHERE key >= ?1 AND key < ?2")                        \
    X(FIRST_DAY, "SELECT day, hours FROM day ORDER BY day LIMIT 1")                                \
    X(LAST_DAY, "SELECT day, hours FROM day ORDER BY day DESC LIMIT 1")                            \
    X(GPU_HOURS, "SELECT key, data FROM gpu_hours WHERE key >= ?1 AND key < ?2 ORDER BY key")      \
    X(GPU_HOURS_KEYS, "SELECT key FROM gpu_hours WHERE key >= ?1 AND key < ?2")                    \
    X(GPU_HOURS_GET, "SELECT data FROM gpu_hours WHERE key = ?1")                                  \
    X(GPU_HOURS_PUT, "INSERT OR REPLACE INTO gpu_hours(key, data) VALUES(?1, ?2)")                 \
    X(GPU_HOURS_DROP, "DELETE FROM gpu_hours WHERE key = ?1")                                      \
    X(LOAD_HOURS, "SELECT day, place, data FROM load_hours "                                       \
                  "WHERE kind = ?1 AND day >= ?2 AND day <= ?3 ORDER BY day, place")               \
    X(LOAD_HOURS_KEYS, "SELECT day, place FROM load_hours "                                        \
                       "WHERE kind = ?1 AND day >= ?2 AND day <= ?3")                              \
    X(LOAD_HOURS_GET, "SELECT data FROM load_hours WHERE kind = ?1 AND day = ?2 AND place = ?3")   \
    X(LOAD_HOURS_PUT,                                                                              \
      "INSERT OR REPLACE INTO load_hours(kind, day, place, data) VALUES(?1, ?2, ?3, ?4)")          \
    X(LOAD_HOURS_DROP, "DELETE FROM load_hours WHERE kind = ?1 AND day = ?2 AND place = ?3")       \
    X(NOTE_PUT, "INSERT OR REPLACE INTO note(kind, subject, text, first, past, count, book) "      \
                "VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7)")                                              \
    X(NOTES_OF, "SELECT kind, subject, text, count, first, past FROM note "                        \
                "WHERE past > ?1 AND first < ?2 ORDER BY first, past, kind, subject, text, book")  \
    X(NOTES_DROP,                                                                                  \
      "DELETE FROM note WHERE first >= ?1 AND past <= ?2 AND (?3 IS NULL OR book = ?3)")           \
    X(NOTES_CUT_TAIL,                                                                              \
      "UPDATE OR REPLACE note SET past = ?1 WHERE first < ?1 AND past > ?1 AND past <= ?2 "        \
      "AND (?3 IS NULL OR book = ?3)")                                                             \
    X(NOTES_CUT_HEAD,                                                                              \
      "UPDATE OR REPLACE note SET first = ?2 WHERE first >= ?1 AND first < ?2 AND past > ?2 "      \
      "AND (?3 IS NULL OR book = ?3)")                                                             \
    X(PROGRESS_PUT, "INSERT OR REPLACE INTO progress(source, watermark, carry, settings) "         \
                    "VALUES(?1, ?2, ?3, ?4)")                                                      \
    X(DATA_VERSION, "PRAGMA data_version")                                                         \
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

/* Nodes that have rows; ids on disk are 1, 2, … */
struct place {
    name_t cluster, node;
};
#define PLACE_BITS 24
struct places {
    struct place *items; /* [id - 1] */
    name_t *books;       /* [id - 1]: the book that it is of */
    size_t n, room, books_n, books_room;
    size_t committed_n;
    uint32_t *table; /* id; 0 free */
    size_t mask;
};

/* Blocks of a write transaction that are not handed to SQLite yet: they are written in order of
 * key, so that pages fill up, and one that is appended to again is not written twice. */
struct pending_block {
    int64_t key;
    uint32_t hours; /* 0: to be deleted */
    struct strbuf data;
};
struct pending {
    struct pending_block *items;
    size_t n, room;
    size_t bytes;
    uint32_t *table; /* item + 1; 0 free */
    size_t mask;
};

struct block;
struct rollup;
struct store_lens;
struct store {
    sqlite3 *db;
    char *path;
    enum store_mode mode;
    bool frozen; /* a reader of a read-only file system */
    struct names *names;
    struct lock lock;
    struct dictionary dictionary;
    sqlite3_stmt *statements[STATEMENT_COUNT];
    struct places places;
    name_t book;    /* that is written */
    bool all_books; /* are cleared */
    struct pending pending;
    int64_t *dirty_days; /* whose roll-ups do not equal their blocks yet */
    size_t dirty_days_n, dirty_days_room;
    struct block *packing, *reading; /* room for blocks, block.h */
    struct row_batch merged;         /* room for a node's day */
    struct rollup *rollups[2];       /* of even and of odd days, see days.c */
    /* Sums of hours are kept of days that have at least so many rows for each; 0: of none. */
    uint32_t rows_a_sum;
    bool in_memory;
    bool writing;
    int reading_depth;       /* of store_read_begin */
    struct store_lens *lens; /* NULL: everything is seen */
    int64_t data_version;    /* that was seen last; 0: none */
    bool interrupted;        /* atomic: nothing is read any more */
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
/* ERR_STORE once store_interrupt() was called, for what works long between two statements. */
enum err db_go_on(const struct store *store, struct error *err);
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

/* places.c */
enum err places_refresh(struct store *store, struct error *err);
enum err places_put(struct store *store, struct place place, uint32_t *ret, struct error *err);
bool places_get(const struct store *store, int64_t id, struct place *ret);
/* Is it of the book that is written (or of any, while all are cleared)? Unknown places are: who
 * opens them says that the file is damaged. */
bool places_is_written(const struct store *store, int64_t id);
void places_committed(struct store *store);
void places_rolled_back(struct store *store);
void places_release(struct store *store);

static inline int64_t block_key(int64_t day, uint32_t place)
{
    return day * (1 << PLACE_BITS) + place;
}

/* A place's day may stand in several blocks, its *segments*, each of other hours: a day that is
 * booked hour by hour is not packed again each time. Number 0 is the one that stays when the day is
 * over, in the table `block`; the others lie in `segment`, whose pages are used again. */
#define SEGMENT_BITS 5
static inline int64_t cell_key(int64_t day, uint32_t place, uint32_t segment)
{
    return block_key(day, place) * (1 << SEGMENT_BITS) + segment;
}
static inline int64_t cell_day(int64_t key)
{
    return key >> (PLACE_BITS + SEGMENT_BITS);
}
static inline uint32_t cell_place(int64_t key)
{
    return (uint32_t)(key >> SEGMENT_BITS) & ((1u << PLACE_BITS) - 1);
}

/* cells.c: blocks by key, in a write transaction. */
/* Hand a block's bytes to `each`; *ret_found false, and no call, where there is none. */
enum err cell_read(struct store *store, int64_t key, struct strbuf *ret, bool *ret_found,
                   struct error *err);
enum err cell_write(struct store *store, int64_t key, uint32_t hours, struct str data,
                    struct error *err); /* hours 0: drop it */
struct segment {
    int64_t key;
    uint32_t hours;
};
/* The segments of a place's day, [1 << SEGMENT_BITS], in order of key. */
enum err cells_of_place(struct store *store, int64_t day, uint32_t place, struct segment *ret,
                        size_t *ret_n, struct error *err);
enum err cells_flush(struct store *store, struct error *err);
void cells_forget(struct store *store); /* what is pending */
void cells_release(struct store *store);
/* Everything that was appended is in SQLite, and all roll-ups equal their rows. */
enum err store_settle(struct store *store, struct error *err);

/* days.c: the roll-ups of days that are being written. */
/* store->packing, which holds hours that the day had nothing of before, was added to the day. */
/* first: the day is not among dirty_days yet. */
enum err day_added(struct store *store, int64_t day, uint32_t place, bool first, struct error *err);
bool day_is_dirty(const struct store *store, int64_t day);
void day_changed(struct store *store, int64_t day); /* anything else happened to the day */
void days_forget(struct store *store);              /* what is known of any day */
void days_release(struct store *store);
enum err day_write(struct store *store, int64_t day, struct error *err);
/* hour_sums.c made anew for each day that has none; a transaction of its own a day. Days whose
 * blocks cannot be read stay as they are, and the first error is returned. */
enum err days_add_hour_sums(struct store *store, struct error *err);

struct day {
    int64_t day;
    uint32_t hours; /* bit h: there are rows or node-hours of hour h */
    uint64_t rows;
};
/* Days of the hours that the store has anything of, ascending; the caller frees. */
enum err store_days(struct store *store, struct span hours, struct day **ret, size_t *ret_n,
                    struct error *err);
/* The hours of `span` that lie in the day, as bits. */
uint32_t hours_in_day(struct span span, int64_t day);
/* The part of [from, to) that may have keys: block_key() of days far off would wrap. */
struct span store_span_with_keys(struct span span);

/* device_hours.c: what GPUs did, of the nodes and hours of a batch; and of all nodes. */
enum err device_hours_put(struct store *store, const struct row_batch *batch, struct error *err);
enum err device_hours_clear(struct store *store, struct span hours, struct error *err);

/* Can a value of the table be read? */
enum err device_hours_check(struct store *store, int64_t key, struct str packed, struct error *err);

/* load_hours.c: what hosts, workloads and namespaces did; likewise. */
enum err load_hours_put(struct store *store, const struct row_batch *batch, struct error *err);
enum err load_hours_clear(struct store *store, struct span hours, struct error *err);
enum err load_hours_verify(struct store *store, struct error *err); /* all can be read */
enum err load_hours_check(struct store *store, int kind, int64_t day, int64_t place,
                          struct str packed, struct error *err); /* this one can be */

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
