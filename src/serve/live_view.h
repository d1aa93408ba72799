/* The GPUs now, each by the best that is known: the newest samples where its cluster has any, with
 * what the ledger knows beside them; else what the ledger says of the cluster's last hour. */
#ifndef GPUTALLY_SERVE_LIVE_VIEW_H
#define GPUTALLY_SERVE_LIVE_VIEW_H

#include "serve/gpu_books.h"
#include "serve/live_claims.h"
#include "source/live.h"

#define LIVE_VIEW_OLD_MS                                                                           \
    (5 * 60 * 1000) /* a signal that much older than its GPU's others is gone */

/* A slot now. Texts are valid during the call. -1, TIME_MIN: not known. */
struct gpu_now {
    struct str cluster, node, device, instance, model;
    struct str namespace, pod, workload, team; /* holder; empty: nobody, or not known */
    int64_t util, sm;                          /* 1e-9 */
    int64_t memory_used, memory_total;         /* bytes */
    int64_t power_mw;
    money_t price_hour;
    time_ms idle_since; /* TIME_MIN: works, or not known */
    bool of_hour;       /* means of the hour that ends at `at`; else values of samples */
    time_ms at;         /* of the newest sample */
};
typedef bool (*gpu_now_fn)(void *context, const struct gpu_now *gpu); /* false: stop */

struct live_view_of {
    int64_t idle_below;
    const struct gpu_book *book;
    const struct live_claims *claims;
};
/* In order of cluster, node and device. live: NULL or without GPUs: the ledger alone. A holder is
 * whom labels name, else whom a claim has put there, else whom the ledger laid there without
 * labels. What a pod's team is, the ledger says; of a pod that it has not booked yet nothing is
 * guessed. Any thread. */
void live_view(struct live *live, const struct live_view_of *of, gpu_now_fn each, void *to);

#endif
