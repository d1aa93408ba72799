/* A Kubernetes API as a source of facts: followed from the moment it is made until it is freed,
 * kept in a folder, delivered to any slice. Puts access, history, log and watch together.
 *
 *     API ── kube_watch ── kube_history ── fetch ── intake
 *                  └─────── kube_log ── folder
 *
 * It has no telemetry: it stands beside a source that has. */
#ifndef GPUTALLY_SOURCE_KUBE_SOURCE_H
#define GPUTALLY_SOURCE_KUBE_SOURCE_H

#include "source/kube_log.h"
#include "source/kube_watch.h"
#include "source/source.h"

#define KUBE_SOURCE_WAIT_MS ((time_ms)15 * 1000) /* a first survey waits so long for the lists */

struct kube_source_options {
    struct kube_access_options login;
    const char *cluster;                        /* in the books; NULL or "": none */
    const char *folder;                         /* of what was seen; NULL: in memory only */
    const struct kube_target_selector *targets; /* n 0: targets are not asked for */
    size_t targets_n;
    struct kube_watch_options watch; /* its times and page; the rest is ignored */
    /* as in struct kube_watch_sink; may be NULL */
    void *context;
    void (*note)(void *context, struct str text);
    void (*found)(void *context, const struct kube_target *targets, size_t n);
};

/* Reads what the folder has and begins to follow. ERR_CONFIG, ERR_USAGE, ERR_IO, ERR_LOCKED. */
enum err kube_source_new(const struct kube_source_options *options, struct source **ret,
                         struct error *err);

/* Of a source of kube_source_new: its parts, for status and metrics. */
struct kube_watch *kube_source_watch(struct source *source);
const char *kube_source_warning(const struct source *source); /* of the login; NULL: none */

/* Where claims of its cluster put pods now: see kube_history_placed(). Any thread. */
void kube_source_placed(struct source *source, struct str cluster,
                        void (*each)(void *context, const struct kube_placed *placed),
                        void *context);

/* No hour before t will be booked again: what is needed for those only is let go. */
void kube_source_release(struct source *source, time_ms t);

#endif
