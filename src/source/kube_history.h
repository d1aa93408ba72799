/* What was seen of a Kubernetes API over time, in memory: records in (wire/kube_record.h), facts of
 * a slice out (fleet/objects.h). A watch feeds it as it goes; at start the journal feeds it what
 * was kept; a slice of any length then gets the same facts, live or replayed.
 *
 * Of each object it keeps the versions that differ in what matters, with the times between which
 * each was seen, and of each kind the times that were observed. From that (semantics, sections 5
 * and 6):
 *
 *     a pod       begins at its own times, else at the last observation that lacks it; ends at its
 *                 own end, else at the first observation that lacks it
 *     a node      lives from its creation to its last observation; in the newest one it is up; each
 *                 version's cordon and missing GPUs hold while that version was seen
 *     the rest    (labels, owners, claims) as last seen before the slice's end
 *
 * Objects that ended before `forget` are dropped. Thread-safe (a lock). About 1 kB a pod. */
#ifndef GPUTALLY_SOURCE_KUBE_HISTORY_H
#define GPUTALLY_SOURCE_KUBE_HISTORY_H

#include "fleet/intake.h"
#include "util/clock.h"
#include "util/error.h"
#include "wire/kube_record.h"

#define KUBE_HISTORY_OBJECTS_MAX (1u << 22)
#define KUBE_HISTORY_REACH_MS (6 * HOUR_MS) /* how far before a slice objects matter to it */

struct kube_history;
struct kube_history *kube_history_new(void);
void kube_history_free(struct kube_history *history); /* NULL is fine */

/* A record, in order of time. *ret_new (may be NULL): it says something that was not known, so that
 * a journal should keep it (a node's heartbeat does not). ERR_PARSE where it is no record,
 * ERR_LIMIT over the cap: it is left out, the rest stays. O(1). */
enum err kube_history_add(struct kube_history *history, struct str record, bool *ret_new,
                          struct error *err);

/* What is known for a slice that books `hours`, to an intake: nodes, pods, owners, namespaces,
 * quotas, priority classes, and the times that were observed. O(objects of the time). */
void kube_history_deliver(struct kube_history *history, struct span hours, struct intake *intake);

/* Everything that is known now as records of one list a kind, each handed to write: what a journal
 * puts in front of a new segment, so that older segments can go. An error ends it. */
enum err kube_history_snapshot(struct kube_history *history,
                               enum err (*write)(void *context, time_ms t, struct str record,
                                                 struct error *err),
                               void *context, struct error *err);

/* Versions and objects whose time ended before t are not asked for any more: t is at most the first
 * hour that may still be booked less KUBE_HISTORY_REACH_MS. */
void kube_history_forget(struct kube_history *history, time_ms t);

/* The newest observation of a kind; TIME_MIN: none. The time of no later record may be before it.
 */
time_ms kube_history_seen(struct kube_history *history, enum kube_kind kind, struct str cluster);

/* Is a list being read? Its kind is in no snapshot then. */
bool kube_history_listing(struct kube_history *history);

/* Is the controller of this name and uid known? O(1). */
bool kube_history_has_owner(struct kube_history *history, struct str cluster, struct str namespace,
                            struct str kind, struct str name, struct str uid);

/* A controller that an object names; texts live during the call. */
struct kube_controller {
    struct str namespace, api, kind, name, uid;
};
/* Those that the pods, replica sets, jobs and controllers of a cluster name, known or not, each as
 * often as it is named. want may call the history. */
void kube_history_controllers(struct kube_history *history, struct str cluster,
                              void (*want)(void *context, const struct kube_controller *controller),
                              void *context);

/* A pod that a claim of dynamic resource allocation has put on a device, now. */
struct kube_placed {
    struct str namespace, pod, device; /* device: as fleet/objects.h spells it */
};
/* All of a cluster, in no order; texts live during the call. O(claims and slices), and nothing
 * where there are no claims. */
void kube_history_placed(struct kube_history *history, struct str cluster,
                         void (*each)(void *context, const struct kube_placed *placed),
                         void *context);

struct kube_history_size {
    size_t nodes, pods, objects, versions, bytes;
};
struct kube_history_size kube_history_size(struct kube_history *history);

/* The times of which Kubernetes told, of all clusters: from the first to the last observation.
 * False: none. */
bool kube_history_extent(struct kube_history *history, struct span *ret);

#endif
