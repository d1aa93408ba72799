/* What the files of the history share. Seen by src/source/kube_history*.c only.
 *
 *     kube_history.c          records in: objects, their versions, the times that were observed
 *     kube_history_out.c      facts of a slice out
 *     kube_history_keep.c     snapshots, and what may be forgotten
 *     kube_placed.c           where claims put pods now */
#ifndef GPUTALLY_SOURCE_KUBE_HISTORY_IMPL_H
#define GPUTALLY_SOURCE_KUBE_HISTORY_IMPL_H

#include <pthread.h>

#include "source/kube_history.h"
#include "util/idmap.h"
#include "util/spans.h"
#include "wire/kube_record.h"

/* An object as it was from `first` on, until the next version. */
struct kube_version {
    time_ms lacked; /* the last observation before it at which it was not yet so; TIME_MIN: none */
    time_ms first;
    char *bytes; /* as kube_record_…() encodes it */
    uint32_t n;
};

#define KUBE_NO_OBJECT UINT32_MAX
struct kube_object {
    struct idkey key; /* hash of log, namespace and name */
    struct idkey uid; /* hash; zero: the kind has none */
    uint32_t log, mark;
    uint32_t older; /* the object that had the name before; KUBE_NO_OBJECT */
    time_ms lacked, first;
    time_ms last, gone;            /* of one that is gone; else TIME_MAX both */
    bool finished;                 /* a pod that has ended */
    bool over;                     /* … nobody knows when, before anybody deleted it */
    time_ms end;                   /* of a pod: its recorded end; TIME_MAX: none */
    struct kube_version *versions; /* in order of time; one unless the kind's changes matter */
    uint32_t n, room;
};

/* What was seen of one kind of one cluster. */
struct kube_log {
    enum kube_kind kind;
    char *cluster;
    struct spans observed;     /* instants are 1 ms long */
    time_ms seen, before;      /* newest observation; the one before the list that is read */
    bool listing, from_memory; /* the list that is read */
    time_ms list_t;
    uint32_t mark; /* counts lists: objects that have it are in the last one */
};

struct kube_history {
    pthread_mutex_t lock;
    uint64_t seed;
    struct kube_log *logs;
    size_t logs_n, logs_room;
    struct kube_object *objects; /* in order of their first record */
    size_t objects_n, objects_room;
    struct idmap at; /* key -> the newest object of that name */
    size_t versions, bytes;
    struct arena arena;
    struct strbuf scratch;
};

/* Do changes of the kind matter by when they came? Others are kept as they were last. */
static inline bool kube_kind_has_versions(enum kube_kind kind)
{
    return kind == KUBE_KIND_NODE || kind == KUBE_KIND_NAMESPACE || kind == KUBE_KIND_CLAIM;
}

/* The key of a name; kind: of owners, else empty. */
struct idkey kube_object_key(struct kube_history *history, size_t log, struct str namespace,
                             struct str kind, struct str name);

/* Of the log's kind: its newest observation where the object is still there. */
static inline time_ms kube_object_last(const struct kube_history *history,
                                       const struct kube_object *object)
{
    return object->gone == TIME_MAX ? history->logs[object->log].seen : object->last;
}

#endif
