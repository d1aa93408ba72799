/* What was seen of a Kubernetes API, as records: one protobuf message each, to be kept in a journal
 * and read again. A watch has no history; records are its history.
 *
 * A record says one thing about one kind of objects at one time t (ms, the observer's clock):
 *
 *     LIST      a whole list begins: what the kind has at t, in the OBJECT records that follow
 *     OBJECT    an object as it is at t (added, changed or listed), pruned to what the books ask
 * for LISTED    the list that began is complete: what it did not name is not there at t DELETED the
 * object is gone at t; with its last state where that was told SEEN      all that happened up to t
 * has been told
 *
 * Between SEEN (or any other record of a connection) and the LIST after it lies time of which
 * nothing is known but what the list shows. A *snapshot* is a list from memory, so that a journal
 * whose old part is dropped still begins with everything: its objects carry since when they were
 * seen (`first`; as they are now, `since`) and the last observation that lacked them (`lacked`);
 * those that are gone follow as DELETED records with the last observation of them (`last`).
 *
 * Layout: field 1 version (KUBE_RECORD_VERSION), 2 act, 3 kind, 4 t, 5 cluster, 6 first, 7 lacked
 * (TIME_MIN: absent), 8 object, 9 snapshot, 10 since, 11 last. Unknown fields are skipped, so that
 * fields may be added; a record of a newer version is refused. Decoding gives the views of
 * wire/kube_objects.h; they live during the call. Any thread; bounded by the record's length and
 * KUBE_RECORD_ITEMS_MAX. */
#ifndef GPUTALLY_WIRE_KUBE_RECORD_H
#define GPUTALLY_WIRE_KUBE_RECORD_H

#include "wire/kube_objects.h"

#define KUBE_RECORD_VERSION 1
#define KUBE_RECORD_MAX ((size_t)4 << 20) /* bytes of a record */
#define KUBE_RECORD_ITEMS_MAX (1u << 16)  /* labels, containers, devices … of an object */
#define KUBE_RECORD_TEXT_MAX                                                                       \
    ((size_t)4096) /* bytes of a text; longer ones are left out                                    \
                    */

/* X(NAME, "Kind") */
#define KUBE_KIND_TABLE(X)                                                                         \
    X(NODE, "Node")                                                                                \
    X(POD, "Pod")                                                                                  \
    X(NAMESPACE, "Namespace")                                                                      \
    X(REPLICASET, "ReplicaSet")                                                                    \
    X(JOB, "Job")                                                                                  \
    X(CLAIM, "ResourceClaim")                                                                      \
    X(SLICE, "ResourceSlice")                                                                      \
    X(QUOTA, "ResourceQuota")                                                                      \
    X(PRIORITY, "PriorityClass")                                                                   \
    X(OWNER, "") /* any other controller, asked for one by one: has no lists */
enum kube_kind {
#define X(name, text) KUBE_KIND_##name,
    KUBE_KIND_TABLE(X)
#undef X
        KUBE_KIND_COUNT
};

enum kube_act {
    KUBE_ACT_LIST = 1,
    KUBE_ACT_OBJECT,
    KUBE_ACT_LISTED,
    KUBE_ACT_DELETED,
    KUBE_ACT_SEEN,
};

struct kube_record {
    enum kube_act act;
    enum kube_kind kind;
    time_ms t;
    struct str cluster;
    bool snapshot; /* from memory */
    /* of objects of a snapshot; TIME_MIN: not known, or none */
    time_ms first, lacked, since, last;
    struct str object; /* encoded by one of the functions below; empty for LIST, LISTED, SEEN */
};

/* A record of no snapshot and without an object. */
static inline struct kube_record kube_record_of(enum kube_act act, enum kube_kind kind, time_ms t,
                                                struct str cluster)
{
    return (struct kube_record){act,      kind,     t,        cluster,  false,
                                TIME_MIN, TIME_MIN, TIME_MIN, TIME_MIN, STR_NONE};
}
void kube_record_write(struct strbuf *out, const struct kube_record *record);
/* record->object and ->cluster are views of bytes. ERR_PARSE where it is no record. */
enum err kube_record_read(struct str bytes, struct kube_record *ret, struct error *err);

/* Objects, appended to out: equal objects give equal bytes. */
void kube_record_node(struct strbuf *out, const struct kube_node *node);
void kube_record_pod(struct strbuf *out, const struct kube_pod *pod);
void kube_record_namespace(struct strbuf *out, const struct kube_namespace *ns);
void kube_record_owner(struct strbuf *out, const struct kube_owner *owner);
void kube_record_claim(struct strbuf *out, const struct kube_claim *claim);
void kube_record_slice(struct strbuf *out, const struct kube_slice *slice);
void kube_record_quota(struct strbuf *out, const struct kube_quota *quota);
void kube_record_priority(struct strbuf *out, const struct kube_priority *priority);

/* An encoded object to the sink's function of its kind. arena holds arrays of views. ERR_PARSE
 * where it is none, ERR_LIMIT over the caps; nothing is handed on then. */
enum err kube_record_object(enum kube_kind kind, struct str object, struct arena *arena,
                            const struct kube_sink *sink, struct error *err);

#endif
