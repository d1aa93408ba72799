/* The ledger's store: hours in, hours out (semantics 8; architecture: store/).
 *
 * A store keeps rows by hour and node. Appending is idempotent: a batch replaces whatever the store
 * had of its (hours x node) cells, and in the same transaction moves the source's watermark and
 * saves the carry. One writer (a lock file keeps a second one out), any number of readers. What was
 * committed survives a crash at any moment; what was not is not there at all.
 *
 * A store has its own dictionary of names on disk; in memory ids are those of the `struct names`
 * that it was opened with: batches given and taken speak those ids. */
#ifndef GPUTALLY_STORE_STORE_H
#define GPUTALLY_STORE_STORE_H

#include "store/row_columns.h"

struct store;

enum store_mode { STORE_READ, STORE_WRITE };

/* path: a file, or ":memory:". STORE_WRITE makes it where it is not there, migrates older schemas
 * and takes the lock (ERR_LOCKED says which process has it). */
enum err store_open(const char *path, enum store_mode mode, struct names *names, struct store **ret,
                    struct error *err);
struct names *store_names(const struct store *store); /* those it was opened with */
/* Speak the ids of `names` from here on, outside of transactions; ids of the names before mean
 * nothing any more, and the book is the one without a name. For a handle that lives long: names of
 * pods come and go, and `struct names` forgets none. NULL: none, and only closing and another call
 * of this work until then. After an error only closing works. */
enum err store_use_names(struct store *store, struct names *names, struct error *err);
void store_close(struct store *store); /* NULL is fine; rolls an open transaction back */
/* A reader of a read-only file system. As long as it is open no other handle of this process can
 * write the database, though the file system may be writable by now: do not keep it. */
bool store_is_frozen(const struct store *store);

/* Several sets of sources (clusters) may keep their books in one database, each under a name; the
 * first of a database has none. What is written, cleared and looked at by store_has_rows is of one
 * book, and leaves the others as they are; everything else reads all books together. The same node
 * in two books is there twice. Outside of transactions. */
void store_use_book(struct store *store, struct str book);

/* Write: begin, any number of appends, then commit (or rollback). The writer thread only. */
enum err store_begin(struct store *store, struct error *err);
/* Forget every row, node-hour and note of [hours.from, hours.to) of the book; a booking of hours
 * begins so, since a node that was there may be gone. */
enum err store_clear_hours(struct store *store, struct span hours, struct error *err);
enum err store_append(struct store *store, const struct row_batch *batch, struct error *err);
/* The source's books are closed up to `watermark`; carry: what the next run needs to know (opaque,
 * replaces the last one; may be empty). settings: a text that names prices, owners and settings, so
 * that a later run can say that they changed. */
struct store_progress {
    struct str source; /* stable id of the set of sources */
    time_ms watermark; /* TIME_MIN: nothing yet */
    struct str carry;
    struct str settings;
};
enum err store_commit(struct store *store, const struct store_progress *progress,
                      struct error *err);
void store_rollback(struct store *store);

/* The last committed progress of a source; texts live in `arena`. ERR_NOT_FOUND where none. */
enum err store_read_progress(struct store *store, struct str source, struct arena *arena,
                             struct store_progress *ret, struct error *err);

/* Reads between these two see one state of the database. They nest, and cost nothing inside a
 * write. The end also after an error of the reads between, not after one of the begin. */
enum err store_read_begin(struct store *store, struct error *err);
void store_read_end(struct store *store);
/* Has another handle committed since the last call? True on the first one. Cheap. */
bool store_has_changed(struct store *store);
/* End what the handle is reading, from another thread: it gives ERR_STORE soon, and so does
 * whatever it is asked for afterwards. */
void store_interrupt(struct store *store);

/* Read rows of [hours.from, hours.to) in the order of row_batch, in batches of bounded size; `each`
 * returns false to stop. A batch holds rows of one hour; the hour's node-hours come with its first
 * batch; the notes of the window, where there are any, come last, in a batch without rows. */
typedef bool (*store_row_fn)(void *context, const struct row_batch *batch);
enum err store_read_rows(struct store *store, struct span hours, store_row_fn each, void *context,
                         struct error *err);

/* The same rows node by node, as they lie in their blocks, on as many threads as there are cores:
 * for whoever adds up over time, or looks at some nodes only. Nodes are in chunks, in order of
 * their names; `begin` is told how many, before any call of `day` (at least 1), which gets a node's
 * UTC day at a time, in order of node and day. Calls of one chunk come one after the other, those
 * of different chunks at any time and on any thread. Notes come last, in chunk 0. */
enum node_columns {
    NODE_COLUMNS_ALL,
    NODE_COLUMNS_ROWS, /* without histograms: the series' `u` is not there */
    NODE_COLUMNS_HOT,  /* those of HOT_COLUMN_TABLE only: of others and of `u` there is nothing */
};
struct store_node_reader {
    void *context;
    enum node_columns columns;
    bool pods; /* pods have their names; else some name, and day_series.pod alone is theirs */
    bool (*wants)(void *context, name_t cluster, name_t node); /* others are not read; NULL: all */
    void (*begin)(void *context, size_t chunks);
    bool (*day)(void *context, size_t chunk, const struct node_day *day); /* false: stop */
    /* After the last day of a chunk, unless something failed or stopped it; NULL: nobody asks. */
    void (*end)(void *context, size_t chunk);
};
enum err store_read_nodes(struct store *store, struct span hours,
                          const struct store_node_reader *reader, struct error *err);

/* Read what GPUs did in [hours.from, hours.to): a call for each node and UTC day that has any, in
 * order of day; inside a call in order of device and hour. `each` returns false to stop. A database
 * that an older version filled has none of its hours. */
typedef bool (*store_device_hours_fn)(void *context, const struct device_hour *hours, size_t n);
enum device_hour_fields {
    DEVICE_HOURS_ALL,
    DEVICE_HOURS_STREAK, /* idle since when, and what idle GPUs draw: covered, held, util, mem and
                            power fields (but for the limit) are 0, and not unpacked */
};
enum err store_read_device_hours(struct store *store, struct span hours,
                                 enum device_hour_fields fields, store_device_hours_fn each,
                                 void *context, struct error *err);

/* Read what nodes cost in [hours.from, hours.to): likewise, in order of hour. */
typedef bool (*store_node_hours_fn)(void *context, const struct node_hour *hours, size_t n);
enum err store_read_node_hours(struct store *store, struct span hours, store_node_hours_fn each,
                               void *context, struct error *err);

/* Read what hosts, workloads and namespaces did in [hours.from, hours.to): calls in order of UTC
 * day, inside a call in order of hour. Databases that older versions filled have none. `each`
 * returns false to stop. */
typedef bool (*store_machine_hours_fn)(void *context, const struct machine_hour *hours, size_t n);
enum err store_read_machine_hours(struct store *store, struct span hours,
                                  store_machine_hours_fn each, void *context, struct error *err);
typedef bool (*store_workload_hours_fn)(void *context, const struct workload_hour *hours, size_t n);
enum err store_read_workload_hours(struct store *store, struct span hours,
                                   store_workload_hours_fn each, void *context, struct error *err);
typedef bool (*store_namespace_hours_fn)(void *context, const struct namespace_hour *hours,
                                         size_t n);
enum err store_read_namespace_hours(struct store *store, struct span hours,
                                    store_namespace_hours_fn each, void *context,
                                    struct error *err);

/* Has the book rows of [hours.from, hours.to)? */
enum err store_has_rows(struct store *store, struct span hours, bool *ret, struct error *err);

/* First and past-last hour that has rows; ERR_NOT_FOUND where it is empty. */
enum err store_extent(struct store *store, struct span *ret, struct error *err);

/* Drop hours before `before` (rounded down to an hour) of all books, in a transaction of its own.
 */
enum err store_retain(struct store *store, time_ms before, struct error *err);

/* Read everything: the file is sound, sums equal their rows, and the rows of every node and hour
 * add up to what the node cost. Takes about as long as exporting the ledger. *ret_without (NULL:
 * not asked for): sound days that lack the sums of hours (hour_sums.h) which they would be written
 * with today; they are read from their blocks. */
enum err store_verify(struct store *store, size_t *ret_without, struct error *err);

#endif
