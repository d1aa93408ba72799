/* Looking after a database: copies while it is in use, taking out what is damaged, giving room
 * back. All are for files; each opens and closes what it needs. */
#ifndef GPUTALLY_STORE_MAINTAIN_H
#define GPUTALLY_STORE_MAINTAIN_H

#include "store/store.h"

/* A copy of one state of the database in a file of its own, while others read and write it. The
 * copy is verified before it gets its name; `to` must not be there yet (ERR_USAGE). */
enum err store_backup(const char *path, const char *to, struct error *err);

/* Write the file anew without the room that deleted hours left; days that were written before there
 * were sums of hours (hour_sums.h) get them. Needs the lock, and room for a second copy. Sizes in
 * bytes. */
enum err store_vacuum(const char *path, int64_t *ret_before, int64_t *ret_after, struct error *err);

/* Sums of hours (hour_sums.h) for the days that lack them, as store_verify counts them. Needs the
 * lock; what was there stays as it is. */
enum err store_add_hour_sums(const char *path, struct error *err);

/* Hours that repair could not keep: of a node, or (node NULL) of the day without knowing whose. */
struct store_dropped {
    const char *cluster, *node; /* node NULL: not known */
    struct span hours;          /* first to past-last; some in between may be there */
    const char *why;
};
struct store_repair {
    /* Told of everything that is left out. May be NULL. */
    void (*dropped)(void *context, const struct store_dropped *dropped);
    void *context;
};
struct store_repaired {
    uint64_t kept, dropped;             /* blocks: a node's day, or some hours of it */
    uint64_t kept_other, dropped_other; /* what GPUs, hosts and workloads did beside the ledger */
    uint64_t unreadable; /* stretches of the file; what was in them is told where it is known */
    uint64_t notes, positions; /* kept; how far sources are booked */
    struct span hours;         /* from the first dropped hour to past the last; empty: none */
};
/* Make a sound database at `to` (which must not be there) of what in `path` is sound: each block is
 * opened and its rows added up, sums are made anew. `path` is read only and stays as it is; its
 * lock is held meanwhile. ERR_STORE: nothing in it can be read. Verify `to` afterwards. */
enum err store_repair(const char *path, const char *to, const struct store_repair *options,
                      struct store_repaired *ret, struct error *err);

#endif
