/* What the ledger says of each GPU that samples of now do not: whose its holder is, what it costs,
 * since when it stands still; and, where a cluster has no samples of now, what it did in the
 * cluster's last hour.
 *
 * A book is immutable, of the whole ledger (who looks with a view is cut where it is shown), and
 * made anew when an hour was booked: at 10,000 GPUs that takes about a second, so that one who
 * comes meanwhile takes the last one. Any thread. */
#ifndef GPUTALLY_SERVE_GPU_BOOKS_H
#define GPUTALLY_SERVE_GPU_BOOKS_H

#include "serve/api_impl.h"
#include "util/idmap.h"

#define GPU_BOOKS_BACK_MS (26 * HOUR_MS)    /* a cluster without an hour since is not "now" */
#define GPU_BOOKS_IDLE_MS (14 * DAY_MS)     /* idle since: at most so long ago */
#define GPU_BOOKS_FRESH_MS (10 * 60 * 1000) /* hours that are booked again are seen after this */

/* A slot in the last hour of its cluster. -1, NAME_NONE, TIME_MIN: not known. */
struct gpu_known {
    name_t cluster, node, device, instance, model;
    name_t namespace, pod, workload, team; /* who held it for the longest; NAME_NONE: nobody */
    bool unlabelled;                       /* no label said so, at some time of the hour */
    int64_t util, sm;                      /* 1e-9, means of the hour */
    int64_t memory_used, memory_total, power_mw;
    money_t price_hour; /* of the slot */
    time_ms idle_since, at;
};
struct gpu_book {
    struct names *names;
    struct gpu_known *gpus; /* by cluster, node, device, instance */
    size_t n;
    struct idmap by_device; /* (cluster, device, instance) */
    struct idmap by_pod;    /* (cluster, namespace, pod): a slot that it held for the longest */
};
/* NULL where the ledger does not have it. */
const struct gpu_known *gpu_book_slot(const struct gpu_book *book, struct str cluster,
                                      struct str device, struct str instance);
const struct gpu_known *gpu_book_pod(const struct gpu_book *book, struct str cluster,
                                     struct str namespace, struct str pod);

struct gpu_books;
struct gpu_books *gpu_books_new(void);
void gpu_books_free(struct gpu_books *books); /* NULL is fine */
enum err gpu_books_take(struct gpu_books *books, struct api_call *call, const struct gpu_book **ret,
                        struct error *err);
void gpu_book_release(const struct gpu_book *book); /* NULL is fine */

#endif
