/* Snapshots of the history, and what it may forget. */
#include <stdlib.h>

#include "source/kube_history_impl.h"

struct snapshot {
    struct kube_history *h;
    enum err (*write)(void *context, time_ms t, struct str record, struct error *err);
    void *context;
    struct strbuf out;
};

static enum err write_record(struct snapshot *s, const struct kube_record *record,
                             struct error *err)
{
    strbuf_clear(&s->out);
    kube_record_write(&s->out, record);
    return s->write(s->context, record->t, strbuf_str(&s->out), err);
}

/* A living object with all its versions, or one that is gone with its last. */
static enum err write_object(struct snapshot *s, const struct kube_log *log, time_ms t,
                             const struct kube_object *object, struct error *err)
{
    bool gone = object->gone != TIME_MAX;
    struct kube_record record = kube_record_of(gone ? KUBE_ACT_DELETED : KUBE_ACT_OBJECT, log->kind,
                                               gone ? object->gone : t, str_of(log->cluster));
    record.snapshot = true;
    record.first = object->first;
    record.last = gone ? object->last : TIME_MIN;
    for (uint32_t i = gone ? object->n - 1 : 0; i < object->n; i++) {
        const struct kube_version *version = &object->versions[i];
        record.lacked = i == 0 ? object->lacked : version->lacked;
        record.since = version->first;
        record.object = (struct str){version->bytes, version->n};
        enum err e = write_record(s, &record, err);
        if (e != ERR_OK)
            return e;
    }
    return ERR_OK;
}

static enum err write_log(struct snapshot *s, size_t at, struct error *err)
{
    const struct kube_log *log = &s->h->logs[at];
    time_ms t = log->seen;
    if (t == TIME_MIN)
        return ERR_OK;
    struct kube_record record = kube_record_of(KUBE_ACT_LIST, log->kind, t, str_of(log->cluster));
    record.snapshot = true;
    enum err e = write_record(s, &record, err);
    for (size_t i = 0; e == ERR_OK && i < s->h->objects_n; i++)
        if (s->h->objects[i].log == at)
            e = write_object(s, log, t, &s->h->objects[i], err);
    record.act = KUBE_ACT_LISTED;
    return e == ERR_OK ? write_record(s, &record, err) : e;
}

enum err kube_history_snapshot(struct kube_history *h,
                               enum err (*write)(void *context, time_ms t, struct str record,
                                                 struct error *err),
                               void *context, struct error *err)
{
    struct snapshot s = {h, write, context, {0}};
    enum err e = ERR_OK;
    pthread_mutex_lock(&h->lock);
    for (size_t i = 0; e == ERR_OK && i < h->logs_n; i++)
        if (!h->logs[i].listing)
            e = write_log(&s, i, err);
    pthread_mutex_unlock(&h->lock);
    strbuf_release(&s.out);
    return e;
}

static void free_version(struct kube_history *h, struct kube_version *version)
{
    h->bytes -= version->n;
    h->versions--;
    free(version->bytes);
}

/* Versions that ended before t; the newest stays. */
static void forget_versions(struct kube_history *h, struct kube_object *object, time_ms t)
{
    uint32_t past = 0;
    while (past + 1 < object->n && object->versions[past + 1].first <= t)
        free_version(h, &object->versions[past++]);
    object->n -= past;
    memmove(object->versions, object->versions + past, object->n * sizeof *object->versions);
}

/* The table of names and the chains of their older bearers, anew. */
static void index_objects(struct kube_history *h)
{
    idmap_release(&h->at);
    for (size_t i = 0; i < h->objects_n; i++) {
        struct kube_object *object = &h->objects[i];
        uint32_t newest = idmap_get(&h->at, object->key);
        if (newest != IDMAP_NONE && object->gone != TIME_MAX &&
            object->gone <= h->objects[newest].first) {
            object->older = h->objects[newest].older;
            h->objects[newest].older = (uint32_t)i;
            continue;
        }
        object->older = newest == IDMAP_NONE ? KUBE_NO_OBJECT : newest;
        idmap_set(&h->at, object->key, (uint32_t)i);
    }
}

/* Controllers that were asked for one by one are never told to be gone: they go when nobody names
 * them any more. */
struct naming {
    struct kube_history *h;
    size_t owners; /* the log of such controllers, of the cluster in hand */
    struct idmap named;
};

static void name_owner(struct naming *naming, struct str namespace, struct str kind,
                       struct str name)
{
    if (kind.n)
        idmap_set(&naming->named, kube_object_key(naming->h, naming->owners, namespace, kind, name),
                  1);
}

static void pod_names(void *context, const struct kube_pod *pod)
{
    name_owner(context, pod->namespace, pod->owner_kind, pod->owner_name);
}

static void owner_names(void *context, const struct kube_owner *owner)
{
    name_owner(context, owner->namespace, owner->owner_kind, owner->owner_name);
}

static void find_named(struct kube_history *h, time_ms t, struct idmap *ret)
{
    struct naming naming = {.h = h};
    struct kube_sink sink = {.context = &naming, .pod = pod_names, .owner = owner_names};
    for (naming.owners = 0; naming.owners < h->logs_n; naming.owners++) {
        const struct kube_log *owners = &h->logs[naming.owners];
        for (size_t i = 0; owners->kind == KUBE_KIND_OWNER && i < h->objects_n; i++) {
            const struct kube_object *object = &h->objects[i];
            const struct kube_log *log = &h->logs[object->log];
            const struct kube_version *version = &object->versions[object->n - 1];
            if (object->gone <= t || strcmp(log->cluster, owners->cluster) != 0)
                continue;
            arena_clear(&h->arena);
            kube_record_object(log->kind, (struct str){version->bytes, version->n}, &h->arena,
                               &sink, NULL);
        }
    }
    *ret = naming.named;
}

/* Is the object of no use to any hour from t on? */
static bool is_over(const struct kube_history *h, const struct kube_object *object, time_ms t,
                    const struct idmap *named)
{
    return object->gone <= t || (h->logs[object->log].kind == KUBE_KIND_OWNER &&
                                 object->first <= t && idmap_get(named, object->key) == IDMAP_NONE);
}

void kube_history_forget(struct kube_history *h, time_ms t)
{
    size_t kept = 0;
    struct idmap named = {0};
    pthread_mutex_lock(&h->lock);
    find_named(h, t, &named);
    for (size_t i = 0; i < h->objects_n; i++) {
        struct kube_object *object = &h->objects[i];
        if (!is_over(h, object, t, &named)) {
            forget_versions(h, object, t);
            h->objects[kept++] = *object;
            continue;
        }
        for (uint32_t k = 0; k < object->n; k++)
            free_version(h, &object->versions[k]);
        free(object->versions);
    }
    idmap_release(&named);
    if (kept < h->objects_n) {
        h->objects_n = kept;
        index_objects(h);
    }
    for (size_t i = 0; i < h->logs_n; i++) {
        struct spans *spans = &h->logs[i].observed;
        size_t past = spans_after(spans, t);
        past = past > 0 && past == spans->n ? past - 1 : past; /* the newest is asked for */
        spans->n -= past;
        if (past > 0)
            memmove(spans->at, spans->at + past, spans->n * sizeof *spans->at);
    }
    pthread_mutex_unlock(&h->lock);
}

struct kube_history_size kube_history_size(struct kube_history *h)
{
    struct kube_history_size size = {0};
    pthread_mutex_lock(&h->lock);
    for (size_t i = 0; i < h->objects_n; i++) {
        enum kube_kind kind = h->logs[h->objects[i].log].kind;
        bool alive = h->objects[i].gone == TIME_MAX;
        size.nodes += alive && kind == KUBE_KIND_NODE;
        size.pods += alive && kind == KUBE_KIND_POD;
        size.bytes += h->objects[i].room * sizeof *h->objects[i].versions;
    }
    size.objects = h->objects_n;
    size.versions = h->versions;
    size.bytes += h->bytes + h->objects_room * sizeof *h->objects +
                  (h->at.mask + 1) * (sizeof(struct idkey) + sizeof(uint32_t));
    pthread_mutex_unlock(&h->lock);
    return size;
}
