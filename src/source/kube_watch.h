/* Following a Kubernetes API: list, then watch, for ever.
 *
 * Each resource (nodes, pods, namespaces, replica sets, jobs, claims, slices, quotas, priority
 * classes) is followed by a thread of its own: listed in pages, then watched from the list's
 * resourceVersion with bookmarks; a watch that ends is resumed from the last version, and where the
 * server no longer has that (410 Gone) the list is asked again. Owners above a pod are asked for
 * one by one, as metadata, up to the top controller, custom resources included. What the account
 * may not read (403) or the server does not have (404) is told once, tried again every
 * KUBE_REFUSED_PAUSE_MS, and stops nothing else.
 *
 * What it learns goes as records (wire/kube_record.h) to a history, and those that say something
 * new to a sink, which keeps them: a watch has no history of its own. A record's time is this
 * machine's clock at its arrival, and never runs backwards.
 *
 * Exporter pods: pods that match a selector, are running and have an address, are told as scrape
 * targets, the whole set whenever it changes.
 *
 * Errors never end it: they are waited out with growing, jittered pauses (Retry-After is honoured)
 * and shown in kube_watch_status(). Sources: kubernetes.io/docs/reference/using-api/api-concepts.
 */
#ifndef GPUTALLY_SOURCE_KUBE_WATCH_H
#define GPUTALLY_SOURCE_KUBE_WATCH_H

#include "source/kube_access.h"
#include "source/kube_history.h"
#include "wire/kube_record.h"

#define KUBE_REFUSED_PAUSE_MS ((time_ms)10 * 60 * 1000) /* before a 403 or 404 is tried again */
#define KUBE_TARGETS_MAX 65536

/* A running exporter pod. */
struct kube_target {
    struct str address; /* "10.0.0.7:9400", "[fd00::7]:9400" */
    struct str node, namespace, pod, uid;
};

/* Functions are called from several threads, one at a time; strings live during the call. */
struct kube_watch_sink {
    void *context;
    /* Keep a record (the journal). An error is shown in the status; the history has the record. */
    enum err (*record)(void *context, time_ms t, struct str record, struct error *err);
    /* Something that people should know, each thing once: "may not list resourceclaims (403) …".
     * May be NULL. */
    void (*note)(void *context, struct str text);
    /* The exporter pods, whole, whenever they change, by address. May be NULL. */
    void (*targets)(void *context, const struct kube_target *targets, size_t n);
};

/* Which pods are exporters: all `labels` (n > 0) are on the pod. */
struct kube_target_selector {
    const struct label *labels;
    size_t labels_n;
    struct str port; /* name or number of a container's port; empty: "metrics", else 9400 */
};
/* app=nvidia-dcgm-exporter, app=dcgm-exporter, app.kubernetes.io/name=dcgm-exporter. */
const struct kube_target_selector *kube_target_defaults(size_t *ret_n);

struct kube_watch_options {
    const char *cluster;              /* name of the cluster in the books; NULL: none. Copied. */
    const struct kube_access *access; /* these must outlive the watch */
    struct kube_history *history;
    const struct kube_watch_sink *sink;         /* copied */
    const struct kube_target_selector *targets; /* copied; n 0: nobody asks for targets */
    size_t targets_n;
    /* 0: what stands in brackets */
    time_ms watch_ms;   /* a watch is asked to last so long (5 min, jittered up to twice that) */
    time_ms connect_ms; /* (10 s) */
    time_ms idle_ms;    /* a list that sends nothing for so long has failed (30 s) */
    time_ms backoff_ms; /* first pause after a failure; doubles up to 60 s (500 ms) */
    time_ms seen_ms;    /* SEEN records come at most so often a resource (30 s) */
    time_ms relist_ms;  /* a list is asked anew after so long, between two watches (1 d) */
    size_t page;        /* objects a page of a list (500) */
};

struct kube_watch;
/* Starts the threads; nothing is asked before that. */
enum err kube_watch_start(const struct kube_watch_options *options, struct kube_watch **ret,
                          struct error *err);
/* Ends requests and threads, and frees; takes about a second at most. NULL is fine. */
void kube_watch_stop(struct kube_watch *watch);

enum kube_watch_state {
    KUBE_WATCH_LISTING,
    KUBE_WATCH_WATCHING,
    KUBE_WATCH_WAITING, /* after a failure */
    KUBE_WATCH_REFUSED, /* 403 */
    KUBE_WATCH_ABSENT,  /* 404 */
};
extern const char *const kube_watch_state_names[]; /* "listing", … */

struct kube_resource_status {
    enum kube_kind kind;
    enum kube_watch_state state;
    time_ms seen; /* all that happened up to then is known; TIME_MIN: nothing yet */
    uint64_t lists, watches, events, failures, faults; /* faults: events or items not readable */
    char text[256]; /* the last failure; empty: none since the last success */
};
struct kube_watch_status {
    struct kube_resource_status resources[KUBE_KIND_COUNT];
    uint64_t records, record_failures; /* that the sink took and refused */
    uint64_t owners_asked, owners_known;
    time_ms seen;   /* of nodes and pods both: how far the books may go; TIME_MIN: not yet */
    time_ms synced; /* when nodes and pods had first been listed; TIME_MIN: not yet */
    char url[256];
};
void kube_watch_status(struct kube_watch *watch, struct kube_watch_status *ret);

#endif
