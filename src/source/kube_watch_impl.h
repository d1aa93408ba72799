/* What the files of the watch share. Seen by src/source/kube_*.c only.
 *
 *     kube_watch.c     options, threads, records to history and sink, status
 *     kube_follow.c    one resource: list, watch, and what to do when that fails
 *     kube_version.c   has the server gone back?
 *     kube_owners.c    controllers above pods, asked for one by one
 *     kube_targets.c   exporter pods
 *
 *     followers (a thread a resource) ─┐
 *     keeper (owners)                 ─┴─ watch->lock ─ history, sink, targets, owners' queue,
 * status
 */
#ifndef GPUTALLY_SOURCE_KUBE_WATCH_IMPL_H
#define GPUTALLY_SOURCE_KUBE_WATCH_IMPL_H

#include <pthread.h>

#include "source/http.h"
#include "source/kube_access_impl.h"
#include "source/kube_watch.h"
#include "util/idmap.h"
#include "wire/kube_events.h"

#define KUBE_BACKOFF_MAX_MS ((time_ms)60 * 1000)
#define KUBE_VERSION_TEXT_MAX 128            /* bytes of a resourceVersion */
#define KUBE_CONTINUE_MAX ((size_t)64 << 10) /* bytes of a token that asks for the next page */
#define KUBE_PAGE_BYTES_MAX ((uint64_t)1 << 30)
#define KUBE_NOTES_MAX 256 /* different ones; later ones are not told */
#define KUBE_OWNER_QUEUE_MAX (1u << 20)
#define KUBE_METADATA_LIST                                                                         \
    "Accept: application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
#define KUBE_METADATA_ONE                                                                          \
    "Accept: application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"
#define KUBE_WHOLE "Accept: application/json"

struct kube_resource {
    enum kube_kind kind;
    const char *path;   /* "/api/v1/nodes"; of a group whose version is looked up: its plural */
    const char *group;  /* "resource.k8s.io"; NULL: path is whole */
    const char *plural; /* as people know it: "resourceclaims.resource.k8s.io" */
    bool metadata;      /* owners only: metadata is enough */
};
extern const struct kube_resource kube_resources[];
extern const size_t kube_resources_n;

/* One resource that is followed. Its thread's own, but for status (the watch's lock). */
struct kube_follower {
    struct kube_watch *watch;
    const struct kube_resource *resource;
    pthread_t thread;
    bool started;
    struct kube_resource_status status;
    uint64_t random;
    int failures, refusals; /* in a row; refusals: 403 and 404 */

    struct http_site *list_site, *watch_site;
    struct http_client *watch_client;
    uint64_t generation;                 /* of the access, when the sites were made */
    char path[256];                      /* empty: its version is not known yet */
    char version[KUBE_VERSION_TEXT_MAX]; /* to watch from; empty: list first */
    bool doubt;         /* the server may have gone back: it is asked before the next watch */
    bool quiet;         /* … since the last watch ended well without a word; it ended at t */
    struct strbuf more; /* the next page of the list */

    time_ms t;                  /* of the record in hand; never runs backwards */
    time_ms seen_told;          /* of the last SEEN record */
    time_ms listed_at;          /* by the monotonic clock: when the last list was complete */
    enum kube_act act;          /* of the object that comes next */
    struct kube_reader *reader; /* of the page that is read */
    bool in_list, list_ended;   /* a LIST record was told; the page's end was read */
    uint64_t page_bytes;
    struct kube_events *events;
    struct kube_event_error {
        bool is_one;
        int code;
        char text[200];
    } event_error;
    uint64_t events_now; /* of the watch in hand */
};

struct kube_owner_wish {
    char *namespace, *api, *kind, *name, *uid;
};
struct kube_target_kept {
    char *address, *node, *namespace, *pod, *uid;
    uint32_t mark;
};

struct kube_watch {
    struct kube_watch_options options; /* with what stands for 0; texts are ours */
    struct kube_watch_sink sink;
    struct kube_access *access;
    char *cluster;
    volatile int stop;
    pthread_mutex_t lock;
    pthread_cond_t wake; /* for those that wait: stopping, and the keeper for its queue */
    struct kube_follower *followers;
    pthread_t keeper;
    bool keeper_started;
    time_ms synced;
    uint64_t records, record_failures;

    uint64_t notes[KUBE_NOTES_MAX]; /* hashes of those that were told */
    size_t notes_n;

    struct kube_owner_wish *wishes; /* first in, first out, from wishes_at */
    size_t wishes_n, wishes_room, wishes_at;
    struct idmap asked; /* hash of a wish: it was asked, or waits */
    time_ms asked_since;
    uint64_t owners_asked, owners_known, seed;

    struct kube_target_selector *selectors; /* copies */
    size_t selectors_n;
    struct arena selector_texts;
    struct kube_target_kept *targets;
    size_t targets_n, targets_room;
    uint32_t targets_mark;
    bool targets_changed;
};

/* ---- kube_watch.c; all but pause and stopped take the lock */

bool kube_stopped(const struct kube_watch *watch);
/* Wait, but not beyond the end; false: it has come. */
bool kube_pause(struct kube_watch *watch, time_ms ms);
/* A pause after so many failures in a row: doubling, jittered to between half and all of it. */
time_ms kube_backoff(time_ms first, int failures, uint64_t *random);
void kube_note(struct kube_watch *watch, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* To the history, and where it is news to the sink. */
void kube_tell(struct kube_watch *watch, const struct kube_record *record);
/* text NULL: it stays. */
void kube_set_state(struct kube_follower *follower, enum kube_watch_state state, const char *text);

/* ---- kube_follow.c */
void *kube_follow(void *follower);

/* ---- kube_version.c */
/* Both are numbers, and a is less. */
bool kube_version_is_before(const char *a, const char *b);
/* Asks the server for its version; where it is before the follower's, the list is to be asked anew:
 * that is told, and the follower's version is empty afterwards. */
enum err kube_version_look(struct kube_follower *f, struct http_answer *answer, struct error *err);
void kube_version_went_back(struct kube_follower *f, const char *to);

/* ---- kube_owners.c */
/* A controller was named: it is asked for, where it is not known. Takes the lock. */
void kube_want_owner(struct kube_watch *watch, struct str namespace, struct str api,
                     struct str kind, struct str name, struct str uid);
/* What was still to be asked when the history was written. Before the threads start. */
void kube_owners_resume(struct kube_watch *watch);
void *kube_keep(void *watch);
void kube_owners_release(struct kube_watch *watch);

/* ---- kube_targets.c; with the lock held */
void kube_targets_copy(struct kube_watch *watch, const struct kube_target_selector *selectors,
                       size_t n);
void kube_targets_begin(struct kube_watch *watch); /* a list of pods begins */
void kube_targets_pod(struct kube_watch *watch, const struct kube_pod *pod, bool gone);
void kube_targets_end(struct kube_watch *watch);  /* it is complete */
void kube_targets_tell(struct kube_watch *watch); /* where they changed */
void kube_targets_release(struct kube_watch *watch);

#endif
