/* Records into objects, versions and observed times.
 *
 * An observation of a kind is a list, or any later record of the connection that followed it: the
 * server told everything up to then. So after a list the time that is observed grows with each
 * record, and only a new list ends it: between the last record before it and the list lies time of
 * which nothing is known. An object that the list lacks was last seen at the former and is missing
 * from the latter; one that an event says is gone was there until that moment.
 *
 * Texts are not interned: names of pods come and go for years. An object costs its bytes as they
 * were encoded, some 100 bytes of its own and a slot in the table of names, by hash (128 bits with
 * a random seed: nobody can make two names meet). */
#include "source/kube_history_impl.h"

#include <stdlib.h>
#include <sys/random.h>
#include <xxhash.h>

#define KUBE_VERSIONS_MAX 4096 /* of an object; the oldest go */
#define LOGS_MAX 4096          /* kinds times clusters */

struct kube_history *kube_history_new(void)
{
    struct kube_history *h = mem_zalloc(1, sizeof *h);
    pthread_mutex_init(&h->lock, NULL);
    if (getrandom(&h->seed, sizeof h->seed, 0) != (ssize_t)sizeof h->seed)
        h->seed = (uint64_t)clock_now();
    return h;
}

void kube_history_free(struct kube_history *h)
{
    if (!h)
        return;
    for (size_t i = 0; i < h->objects_n; i++) {
        for (uint32_t k = 0; k < h->objects[i].n; k++)
            free(h->objects[i].versions[k].bytes);
        free(h->objects[i].versions);
    }
    for (size_t i = 0; i < h->logs_n; i++) {
        free(h->logs[i].cluster);
        spans_release(&h->logs[i].observed);
    }
    free(h->logs);
    free(h->objects);
    idmap_release(&h->at);
    arena_release(&h->arena);
    strbuf_release(&h->scratch);
    pthread_mutex_destroy(&h->lock);
    free(h);
}

/* ------------------------------------------------------------------ who it is */

struct identity {
    struct str namespace, kind, name, uid;
    time_ms end; /* of a pod */
    bool finished, deleted;
};

static void of_node(void *context, const struct kube_node *node)
{
    struct identity *id = context;
    id->name = node->name;
    id->uid = node->uid;
}

static void of_pod(void *context, const struct kube_pod *pod)
{
    struct identity *id = context;
    id->namespace = pod->namespace;
    id->name = pod->name;
    id->uid = pod->uid;
    id->finished = str_eq(pod->phase, STR("Succeeded")) || str_eq(pod->phase, STR("Failed"));
    id->deleted = pod->deletion != TIME_MIN;
    if (pod->finished != TIME_MIN)
        id->end = pod->finished;
}

static void of_owner(void *context, const struct kube_owner *owner)
{
    struct identity *id = context;
    id->namespace = owner->namespace;
    id->kind = owner->kind;
    id->name = owner->name;
    id->uid = owner->uid;
}

static void of_namespace(void *context, const struct kube_namespace *ns)
{
    ((struct identity *)context)->name = ns->name;
}

static void of_slice(void *context, const struct kube_slice *slice)
{
    ((struct identity *)context)->name = slice->name;
}

static void of_claim(void *context, const struct kube_claim *claim)
{
    struct identity *id = context;
    id->namespace = claim->namespace;
    id->name = claim->name;
    id->uid = claim->uid;
}

static void of_quota(void *context, const struct kube_quota *quota)
{
    struct identity *id = context;
    id->namespace = quota->namespace;
    id->name = quota->name;
}

static void of_priority(void *context, const struct kube_priority *priority)
{
    ((struct identity *)context)->name = priority->name;
}

static enum err identify(struct kube_history *h, const struct kube_record *record,
                         struct identity *ret, struct error *err)
{
    struct kube_sink sink = {.context = ret,
                             .node = of_node,
                             .pod = of_pod,
                             .owner = of_owner,
                             .namespace = of_namespace,
                             .slice = of_slice,
                             .claim = of_claim,
                             .quota = of_quota,
                             .priority = of_priority};
    *ret = (struct identity){STR_NONE, STR_NONE, STR_NONE, STR_NONE, TIME_MAX, false, false};
    arena_clear(&h->arena);
    return kube_record_object(record->kind, record->object, &h->arena, &sink, err);
}

static struct idkey key_of(XXH128_hash_t hash)
{
    struct idkey key = IDKEY((uint32_t)hash.low64, (uint32_t)(hash.low64 >> 32),
                             (uint32_t)hash.high64, (uint32_t)(hash.high64 >> 32));
    return key;
}

struct idkey kube_object_key(struct kube_history *h, size_t log, struct str namespace,
                             struct str kind, struct str name)
{
    const struct str parts[] = {namespace, kind, name};
    strbuf_clear(&h->scratch);
    strbuf_add(&h->scratch, (struct str){(const char *)&log, sizeof log});
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        strbuf_add(&h->scratch, parts[i]);
        strbuf_addc(&h->scratch, '\n'); /* no name has one */
    }
    return key_of(XXH3_128bits_withSeed(h->scratch.text, h->scratch.n, h->seed));
}

static struct idkey hash_uid(const struct kube_history *h, struct str uid)
{
    return uid.n ? key_of(XXH3_128bits_withSeed(uid.p, uid.n, h->seed)) : IDKEY(0);
}

static bool same_key(struct idkey a, struct idkey b)
{
    return memcmp(&a, &b, sizeof a) == 0;
}

/* ------------------------------------------------------------------ observations */

static struct kube_log *log_of(struct kube_history *h, const struct kube_record *record)
{
    for (size_t i = 0; i < h->logs_n; i++)
        if (h->logs[i].kind == record->kind && str_eq(str_of(h->logs[i].cluster), record->cluster))
            return &h->logs[i];
    if (h->logs_n == LOGS_MAX)
        return NULL;
    struct kube_log log = {.kind = record->kind,
                           .cluster = str_dup(record->cluster),
                           .seen = TIME_MIN,
                           .before = TIME_MIN};
    mem_push(h->logs, h->logs_n, h->logs_room, log);
    return &h->logs[h->logs_n - 1];
}

/* All up to t is known: a new stretch where `apart`, else the one in hand goes on. */
static void observe(struct kube_log *log, time_ms t, bool apart)
{
    struct spans *spans = &log->observed;
    if (log->seen != TIME_MIN && t <= log->seen)
        return;
    if (apart || spans->n == 0)
        spans_push(spans, t, t + 1);
    else
        spans->at[spans->n - 1].to = t + 1;
    log->seen = t;
}

static void object_ends(struct kube_object *object, time_ms gone, time_ms last)
{
    object->gone = gone;
    object->last = last > object->first ? last : object->first;
}

/* A list is complete: what it did not name is gone. */
static void end_list(struct kube_history *h, struct kube_log *log)
{
    uint32_t at = (uint32_t)(log - h->logs);
    log->listing = false;
    for (size_t i = 0; i < h->objects_n; i++) {
        struct kube_object *object = &h->objects[i];
        if (object->log == at && object->gone == TIME_MAX && object->mark != log->mark)
            object_ends(object, log->list_t, log->before);
    }
    observe(log, log->list_t, !log->from_memory);
}

/* ------------------------------------------------------------------ versions */

static void drop_version(struct kube_history *h, struct kube_object *object, uint32_t at)
{
    h->bytes -= object->versions[at].n;
    h->versions--;
    free(object->versions[at].bytes);
    object->n--;
    memmove(&object->versions[at], &object->versions[at + 1],
            (object->n - at) * sizeof *object->versions);
}

static void add_version(struct kube_history *h, struct kube_object *object, struct str bytes,
                        time_ms lacked, time_ms first)
{
    struct kube_version version = {lacked, first, mem_alloc(bytes.n), (uint32_t)bytes.n};
    memcpy(version.bytes, bytes.p, bytes.n);
    if (object->n == KUBE_VERSIONS_MAX)
        drop_version(h, object, 0);
    if (object->n == object->room) { /* most have one for ever */
        object->room = object->room ? object->room * 2 : 1;
        object->versions = mem_realloc(object->versions, object->room, sizeof version);
    }
    object->versions[object->n++] = version;
    h->bytes += bytes.n;
    h->versions++;
}

/* A pod that has an end, rewritten to say it: where a later record forgot it, or none ever gave a
 * time and it was seen to be over at t. One that nobody saw running was over before its deletion:
 * that is not its end then. */
struct rewriting {
    struct strbuf out;
    time_ms end; /* TIME_MAX: none, and it is not deleted */
};

static void with_end(void *context, const struct kube_pod *pod)
{
    struct rewriting *rewriting = context;
    struct kube_pod copy = *pod;
    if (rewriting->end == TIME_MAX)
        copy.deletion = TIME_MIN;
    else
        copy.finished = rewriting->end;
    kube_record_pod(&rewriting->out, &copy);
}

/* True: *bytes is what to keep, in rewriting.out. */
static bool rewrite_end(struct kube_history *h, const struct kube_object *object,
                        const struct kube_record *record, struct identity *id,
                        struct rewriting *rewriting)
{
    if (record->kind != KUBE_KIND_POD || id->end != TIME_MAX)
        return false;
    if (object->end != TIME_MAX)
        rewriting->end = object->end;
    else if (id->finished && !object->finished && object->n > 0)
        rewriting->end = record->t;
    else if (!(object->over && id->finished && id->deleted))
        return false;
    struct kube_sink sink = {.context = rewriting, .pod = with_end};
    arena_clear(&h->arena);
    if (kube_record_object(record->kind, record->object, &h->arena, &sink, NULL) != ERR_OK)
        return false;
    id->end = rewriting->end;
    id->deleted = id->deleted && id->end != TIME_MAX;
    return true;
}

/* True: the object is not as it was. */
static bool set_version(struct kube_history *h, struct kube_object *object,
                        const struct kube_record *record, struct identity *id, time_ms lacked)
{
    struct rewriting rewriting = {{0}, TIME_MAX};
    struct str bytes = record->object;
    if (record->snapshot && object->n && kube_kind_has_versions(record->kind) &&
        record->since <= object->versions[object->n - 1].first)
        return false; /* it is known */
    if (rewrite_end(h, object, record, id, &rewriting))
        bytes = strbuf_str(&rewriting.out);
    const struct kube_version *last = object->n ? &object->versions[object->n - 1] : NULL;
    bool news = !last || last->n != bytes.n || memcmp(last->bytes, bytes.p, bytes.n) != 0;
    if (news) {
        bool told = record->snapshot && record->since != TIME_MIN;
        time_ms first = told ? record->since : record->t;
        if (last && (!kube_kind_has_versions(record->kind) || first <= last->first)) {
            first = last->first;
            lacked = last->lacked;
            drop_version(h, object, object->n - 1);
        }
        add_version(h, object, bytes, lacked, first);
    }
    object->finished = id->finished;
    object->over = id->finished && id->end == TIME_MAX && !id->deleted;
    object->end = id->end;
    strbuf_release(&rewriting.out);
    return news;
}

/* ------------------------------------------------------------------ objects */

static struct kube_object *new_object(struct kube_history *h, const struct kube_record *record,
                                      size_t log, struct idkey key, struct idkey uid)
{
    uint32_t at = (uint32_t)h->objects_n, newest = idmap_get(&h->at, key);
    if (h->objects_n == KUBE_HISTORY_OBJECTS_MAX)
        return NULL;
    struct kube_object object = {
        .key = key,
        .uid = uid,
        .log = (uint32_t)log,
        .older = newest == IDMAP_NONE ? KUBE_NO_OBJECT : newest,
        .first = record->first != TIME_MIN ? record->first : record->t,
        .last = TIME_MAX,
        .gone = TIME_MAX,
        .end = TIME_MAX,
    };
    if (newest != IDMAP_NONE && record->snapshot && record->act == KUBE_ACT_DELETED) {
        object.older = h->objects[newest].older; /* its name has another by now */
        h->objects[newest].older = at;
    } else {
        idmap_set(&h->at, key, at);
    }
    mem_push(h->objects, h->objects_n, h->objects_room, object);
    return &h->objects[at];
}

/* Up to when the object was known not to be so: the moment itself where a watch tells, the
 * observation before where a list does. */
static time_ms lacked_at(const struct kube_log *log, const struct kube_record *record)
{
    if (record->snapshot)
        return record->lacked;
    if (log->listing)
        return log->before;
    return log->seen == TIME_MIN ? TIME_MIN : record->t;
}

/* The object of this name and uid where it is known. What a watch or a list tells of a name is
 * about the newest: one with another uid has ended. */
static struct kube_object *known_object(struct kube_history *h, const struct kube_log *log,
                                        const struct kube_record *record, struct idkey key,
                                        struct idkey uid)
{
    uint32_t at = idmap_get(&h->at, key);
    bool has_uid = !same_key(uid, IDKEY(0));
    if (at == IDMAP_NONE)
        return NULL;
    if (record->snapshot) {
        while (at != KUBE_NO_OBJECT && !(same_key(h->objects[at].uid, uid) &&
                                         (has_uid || h->objects[at].first == record->first)))
            at = h->objects[at].older;
        if (at == KUBE_NO_OBJECT)
            return NULL;
    }
    struct kube_object *object = &h->objects[at];
    if (same_key(object->uid, uid) && (object->gone == TIME_MAX || has_uid)) {
        if (record->act == KUBE_ACT_OBJECT)
            object->gone = object->last = TIME_MAX; /* whatever was thought of it */
        return object;
    }
    if (object->gone == TIME_MAX)
        object_ends(object, record->t, log->listing ? log->before : record->t);
    return NULL;
}

static enum err add_object(struct kube_history *h, struct kube_log *log,
                           const struct kube_record *record, bool *ret_new, struct error *err)
{
    struct identity id;
    enum err e = identify(h, record, &id, err);
    if (e != ERR_OK)
        return e;
    size_t at = (size_t)(log - h->logs);
    struct idkey key = kube_object_key(h, at, id.namespace, id.kind, id.name);
    struct idkey uid = hash_uid(h, id.uid);
    struct kube_object *object = known_object(h, log, record, key, uid);
    time_ms lacked = lacked_at(log, record);
    bool fresh = !object;
    if (fresh) {
        object = new_object(h, record, at, key, uid);
        if (!object)
            return error_set(err, ERR_LIMIT, "more than %u Kubernetes objects: no more are kept",
                             KUBE_HISTORY_OBJECTS_MAX);
        object->lacked = lacked;
    }
    *ret_new = set_version(h, object, record, &id, lacked) || fresh;
    object->mark = log->mark;
    if (record->act == KUBE_ACT_DELETED && object->gone == TIME_MAX) {
        object_ends(object, record->t, record->last != TIME_MIN ? record->last : record->t);
        *ret_new = true;
    }
    return ERR_OK;
}

enum err kube_history_add(struct kube_history *h, struct str bytes, bool *ret_new,
                          struct error *err)
{
    struct kube_record record;
    bool news = true;
    enum err e = kube_record_read(bytes, &record, err);
    if (e != ERR_OK)
        return e;
    pthread_mutex_lock(&h->lock);
    struct kube_log *log = log_of(h, &record);
    if (!log) {
        pthread_mutex_unlock(&h->lock);
        return error_set(err, ERR_LIMIT, "more than %d kinds of objects and clusters", LOGS_MAX);
    }
    switch (record.act) {
    case KUBE_ACT_LIST:
        log->listing = true;
        log->list_t = record.t;
        log->from_memory = record.snapshot;
        log->before = log->seen;
        log->mark++;
        break;
    case KUBE_ACT_LISTED:
        if (log->listing)
            end_list(h, log);
        break;
    case KUBE_ACT_OBJECT:
    case KUBE_ACT_DELETED:
        e = add_object(h, log, &record, &news, err);
        if (e == ERR_OK && news && !log->listing && !record.snapshot)
            observe(log, record.t, false);
        news = news || log->listing;
        break;
    case KUBE_ACT_SEEN:
        news = log->listing || (log->seen != TIME_MIN && record.t > log->seen);
        if (news && !log->listing)
            observe(log, record.t, false);
        log->listing = false; /* it was given up */
        break;
    }
    pthread_mutex_unlock(&h->lock);
    if (e == ERR_OK && ret_new)
        *ret_new = news;
    return e;
}

time_ms kube_history_seen(struct kube_history *h, enum kube_kind kind, struct str cluster)
{
    time_ms seen = TIME_MIN;
    pthread_mutex_lock(&h->lock);
    for (size_t i = 0; i < h->logs_n; i++)
        if (h->logs[i].kind == kind && str_eq(str_of(h->logs[i].cluster), cluster))
            seen = h->logs[i].seen;
    pthread_mutex_unlock(&h->lock);
    return seen;
}

bool kube_history_listing(struct kube_history *h)
{
    bool listing = false;
    pthread_mutex_lock(&h->lock);
    for (size_t i = 0; i < h->logs_n; i++)
        listing |= h->logs[i].listing;
    pthread_mutex_unlock(&h->lock);
    return listing;
}

bool kube_history_extent(struct kube_history *h, struct span *ret)
{
    struct span all = {TIME_MAX, TIME_MIN};
    pthread_mutex_lock(&h->lock);
    for (size_t i = 0; i < h->logs_n; i++) {
        const struct spans *spans = &h->logs[i].observed;
        if (spans->n && spans->at[0].from < all.from)
            all.from = spans->at[0].from;
        if (spans->n && spans->at[spans->n - 1].to > all.to)
            all.to = spans->at[spans->n - 1].to;
    }
    pthread_mutex_unlock(&h->lock);
    if (all.to == TIME_MIN)
        return false;
    *ret = all;
    return true;
}

bool kube_history_has_owner(struct kube_history *h, struct str cluster, struct str namespace,
                            struct str kind, struct str name, struct str uid)
{
    bool found = false;
    pthread_mutex_lock(&h->lock);
    for (size_t i = 0; i < h->logs_n && !found; i++) {
        if (h->logs[i].kind != KUBE_KIND_OWNER || !str_eq(str_of(h->logs[i].cluster), cluster))
            continue;
        uint32_t at = idmap_get(&h->at, kube_object_key(h, i, namespace, kind, name));
        found = at != IDMAP_NONE && same_key(h->objects[at].uid, hash_uid(h, uid));
    }
    pthread_mutex_unlock(&h->lock);
    return found;
}
