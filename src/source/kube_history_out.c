/* Facts of a slice out of the history.
 *
 * The same facts come whatever the slices, and whether a slice is booked as time passes or from a
 * journal: what is delivered depends on the hours that are booked and on what was seen, not on when
 * it is asked. Objects are handed on in the order in which they were first seen.
 *
 * A claim is given to one pod after another: a pod gets the devices that its claim had last before
 * the pod ended. Claims go to kube_claims by version ("NAMESPACE/NAME" and a number), and pods name
 * the version. */
#include <stdlib.h>

#include "source/kube_claims.h"
#include "source/kube_history_impl.h"
#include "source/kube_views.h"

/* One delivery. Texts of views live in the history, arrays in the arena. */
struct delivery {
    struct kube_history *h;
    struct span hours;
    struct intake *intake;
    struct arena arena, one; /* one: of the object in hand */
    struct names *texts;     /* of the claims */
    struct kube_claims *claims;
    const struct kube_object *object;
    const struct kube_log *log;
    struct observed observed;
    int64_t unknown; /* devices of claims that no slice tells of */
};

static struct str cluster_of(const struct delivery *d)
{
    return str_of(d->log->cluster);
}

static void read_version(struct delivery *d, const struct kube_version *version,
                         const struct kube_sink *sink)
{
    arena_clear(&d->one);
    struct str bytes = {version->bytes, version->n};
    /* it was read when it came */
    invariant(kube_record_object(d->log->kind, bytes, &d->one, sink, NULL) == ERR_OK);
}

/* Is it over so long before the slice that nothing of it can matter? */
static bool is_past(const struct delivery *d, const struct kube_object *object)
{
    time_ms end = object->end < object->gone ? object->end : object->gone;
    return end <= d->hours.from - KUBE_HISTORY_REACH_MS;
}

/* The version that counts at the end of the slice: the last that began before, else the first. */
static uint32_t version_at(const struct kube_object *object, time_ms t)
{
    uint32_t i = object->n - 1;
    while (i > 0 && object->versions[i].first >= t)
        i--;
    return i;
}

/* Walk the objects of a kind, in order. */
static void each(struct delivery *d, enum kube_kind kind,
                 void (*deliver)(struct delivery *d, const struct kube_object *object))
{
    for (size_t i = 0; i < d->h->objects_n; i++) {
        d->object = &d->h->objects[i];
        d->log = &d->h->logs[d->object->log];
        if (d->log->kind == kind && !is_past(d, d->object))
            deliver(d, d->object);
    }
}

/* ------------------------------------------------------------------ claims and slices */

static void on_slice(void *context, const struct kube_slice *slice)
{
    struct delivery *d = context;
    kube_claims_add_slice(d->claims, slice);
}

static void deliver_slice(struct delivery *d, const struct kube_object *object)
{
    struct kube_sink sink = {.context = d, .slice = on_slice};
    read_version(d, &object->versions[0], &sink);
}

/* The name of a claim's version among the claims; lives in the arena. */
static struct str version_name(struct delivery *d, const struct kube_object *claim,
                               uint32_t version)
{
    struct strbuf name = {0};
    strbuf_addf(&name, "%zu.%u", (size_t)(claim - d->h->objects), version);
    struct str copy = str_keep(&d->arena, strbuf_str(&name));
    strbuf_release(&name);
    return copy;
}

struct claim_version {
    struct delivery *d;
    uint32_t version;
    bool allocated;
};

static void on_claim(void *context, const struct kube_claim *claim)
{
    struct claim_version *v = context;
    struct kube_claim copy = *claim;
    copy.name = version_name(v->d, v->d->object, v->version);
    copy.consumers_n = 0; /* pods name their claims */
    kube_claims_add_claim(v->d->claims, &copy);
}

static void deliver_claim(struct delivery *d, const struct kube_object *object)
{
    for (uint32_t i = 0; i < object->n; i++) {
        struct claim_version v = {d, i, false};
        struct kube_sink sink = {.context = &v, .claim = on_claim};
        read_version(d, &object->versions[i], &sink);
    }
}

static void is_allocated(void *context, const struct kube_claim *claim)
{
    struct claim_version *v = context;
    v->allocated = claim->allocations_n > 0;
}

/* The version of a pod's claim that it had: the last with devices before the pod's end. */
static struct str claim_of_pod(struct delivery *d, struct str namespace, struct str name,
                               time_ms until)
{
    const struct kube_object *pod = d->object;
    const struct kube_log *log = d->log;
    struct str found = name;
    for (size_t i = 0; i < d->h->logs_n; i++) {
        if (d->h->logs[i].kind != KUBE_KIND_CLAIM || strcmp(d->h->logs[i].cluster, log->cluster))
            continue;
        uint32_t at = idmap_get(&d->h->at, kube_object_key(d->h, i, namespace, STR_NONE, name));
        for (; at != IDMAP_NONE && at != KUBE_NO_OBJECT; at = d->h->objects[at].older) {
            const struct kube_object *claim = &d->h->objects[at];
            for (uint32_t k = claim->n; k-- > 0;) {
                struct claim_version v = {d, k, false};
                struct kube_sink sink = {.context = &v, .claim = is_allocated};
                struct arena scratch = {0};
                struct str bytes = {claim->versions[k].bytes, claim->versions[k].n};
                kube_record_object(KUBE_KIND_CLAIM, bytes, &scratch, &sink, NULL);
                arena_release(&scratch);
                if (v.allocated && (claim->versions[k].first < until || k == 0)) {
                    found = version_name(d, claim, k);
                    goto out;
                }
            }
        }
    }
out:
    d->object = pod;
    d->log = log;
    return found;
}

/* ------------------------------------------------------------------ nodes */

static void on_node(void *context, const struct kube_node *node)
{
    struct delivery *d = context;
    struct node_object object;
    kube_view_node(&d->one, node, cluster_of(d), &object);
    kube_view_published(&d->one, d->claims, &object);
    object.observed = &d->observed;
    intake_node(d->intake, &object);
}

static void deliver_node(struct delivery *d, const struct kube_object *object)
{
    struct kube_sink sink = {.context = d, .node = on_node};
    for (uint32_t i = 0; i < object->n; i++) {
        const struct kube_version *version = &object->versions[i];
        bool newest = i + 1 == object->n;
        if (i > 0 && version->lacked >= d->hours.to)
            return; /* it will be so; one that a list told may have been so before that list */
        const struct kube_version *next = newest ? NULL : &object->versions[i + 1];
        /* Where the next state was told by a list, this one is known up to the observation before.
         */
        time_ms last = newest                          ? kube_object_last(d->h, object)
                       : next->lacked > version->first ? next->lacked
                                                       : version->first;
        if (!newest && last <= d->hours.from - KUBE_HISTORY_REACH_MS)
            continue;
        d->observed = (struct observed){version->lacked, version->first, last,
                                        newest ? object->gone : next->first};
        read_version(d, version, &sink);
    }
}

/* ------------------------------------------------------------------ pods */

static void on_pod(void *context, const struct kube_pod *pod)
{
    struct delivery *d = context;
    struct pod_object object;
    time_ms scheduled = pod->scheduled != TIME_MIN ? pod->scheduled : pod->started;
    if (scheduled != TIME_MIN && scheduled >= d->hours.to + HOUR_MS)
        return;
    kube_view_pod(&d->one, pod, cluster_of(d), &object);
    if (object.devices_n) {
        time_ms until = d->object->end < d->object->gone ? d->object->end : d->object->gone;
        struct str *claims = arena_alloc(&d->one, object.devices_n * sizeof *claims);
        for (size_t i = 0; i < object.devices_n; i++)
            claims[i] = claim_of_pod(d, pod->namespace, object.devices[i], until);
        struct kube_pod who = *pod;
        who.uid = STR_NONE;
        object.devices = kube_claims_devices(d->claims, &who, claims, object.devices_n,
                                             &object.devices_n, &d->unknown);
    }
    object.observed = &d->observed;
    intake_pod(d->intake, &object);
}

static void deliver_pod(struct delivery *d, const struct kube_object *object)
{
    struct kube_sink sink = {.context = d, .pod = on_pod};
    d->observed = (struct observed){object->lacked, object->first, kube_object_last(d->h, object),
                                    object->gone};
    read_version(d, &object->versions[object->n - 1], &sink);
}

/* ------------------------------------------------------------------ the rest */

static void on_owner(void *context, const struct kube_owner *owner)
{
    struct delivery *d = context;
    if (owner->owner_kind.n)
        intake_owner(d->intake, cluster_of(d), owner->namespace, owner->kind, owner->name,
                     owner->owner_kind, owner->owner_name);
}

static void deliver_owner(struct delivery *d, const struct kube_object *object)
{
    struct kube_sink sink = {.context = d, .owner = on_owner};
    read_version(d, &object->versions[0], &sink);
}

static void on_namespace(void *context, const struct kube_namespace *ns)
{
    struct delivery *d = context;
    size_t n;
    const struct label *annotations =
        kube_view_annotations(&d->one, ns->annotations, ns->annotations_n, &n);
    intake_namespace(d->intake, cluster_of(d), ns->name, ns->labels, ns->labels_n, annotations, n);
}

static void deliver_namespace(struct delivery *d, const struct kube_object *object)
{
    struct kube_sink sink = {.context = d, .namespace = on_namespace};
    read_version(d, &object->versions[version_at(object, d->hours.to)], &sink);
}

static void on_quota(void *context, const struct kube_quota *quota)
{
    struct delivery *d = context;
    kube_view_quota(d->intake, cluster_of(d), quota);
}

static void deliver_quota(struct delivery *d, const struct kube_object *object)
{
    struct kube_sink sink = {.context = d, .quota = on_quota};
    if (object->gone >= d->hours.to)
        read_version(d, &object->versions[version_at(object, d->hours.to)], &sink);
}

/* ------------------------------------------------------------------ controllers */

struct naming {
    struct arena arena;
    struct kube_controller controller;
};

static void keep_controller(struct naming *n, const struct kube_controller *c)
{
    n->controller = (struct kube_controller){
        str_keep(&n->arena, c->namespace), str_keep(&n->arena, c->api),
        str_keep(&n->arena, c->kind), str_keep(&n->arena, c->name), str_keep(&n->arena, c->uid)};
}

static void pod_names(void *context, const struct kube_pod *pod)
{
    keep_controller(context,
                    &(struct kube_controller){pod->namespace, pod->owner_api, pod->owner_kind,
                                              pod->owner_name, pod->owner_uid});
}

static void owner_names(void *context, const struct kube_owner *owner)
{
    keep_controller(context,
                    &(struct kube_controller){owner->namespace, owner->owner_api, owner->owner_kind,
                                              owner->owner_name, owner->owner_uid});
}

/* The controller of an object; of none, or of another cluster's: its kind is empty. */
static void name_controller(struct kube_history *h, const struct kube_object *object,
                            struct str cluster, struct naming *n)
{
    const struct kube_log *log = &h->logs[object->log];
    const struct kube_version *version = &object->versions[object->n - 1];
    struct kube_sink sink = {.context = n, .pod = pod_names, .owner = owner_names};
    bool has = log->kind == KUBE_KIND_POD || log->kind == KUBE_KIND_REPLICASET ||
               log->kind == KUBE_KIND_JOB || log->kind == KUBE_KIND_OWNER;
    n->controller = (struct kube_controller){.kind = STR_NONE};
    if (has && str_eq(str_of(log->cluster), cluster))
        kube_record_object(log->kind, (struct str){version->bytes, version->n}, &n->arena, &sink,
                           NULL);
}

void kube_history_controllers(struct kube_history *h, struct str cluster,
                              void (*want)(void *context, const struct kube_controller *controller),
                              void *context)
{
    struct naming n = {.controller = {.kind = STR_NONE}};
    bool more = true;
    for (size_t i = 0; more; i++) {
        arena_clear(&n.arena);
        pthread_mutex_lock(&h->lock);
        more = i < h->objects_n;
        if (more)
            name_controller(h, &h->objects[i], cluster, &n);
        pthread_mutex_unlock(&h->lock);
        if (more && n.controller.kind.n)
            want(context, &n.controller);
    }
    arena_release(&n.arena);
}

/* ------------------------------------------------------------------ all of it */

/* The times at which nodes and pods of a cluster both were observed. */
static void deliver_observed(struct delivery *d, const struct kube_log *nodes)
{
    struct spans both = {0};
    for (size_t i = 0; i < d->h->logs_n; i++) {
        const struct kube_log *pods = &d->h->logs[i];
        if (pods->kind != KUBE_KIND_POD || strcmp(pods->cluster, nodes->cluster))
            continue;
        for (size_t a = 0, b = 0; a < nodes->observed.n && b < pods->observed.n;) {
            struct span x = nodes->observed.at[a], y = pods->observed.at[b];
            spans_push(&both, x.from > y.from ? x.from : y.from, x.to < y.to ? x.to : y.to);
            if (x.to < y.to)
                a++;
            else
                b++;
        }
    }
    intake_observed(d->intake, str_of(nodes->cluster), both.at, both.n);
    spans_release(&both);
}

void kube_history_deliver(struct kube_history *h, struct span hours, struct intake *intake)
{
    struct delivery d = {.h = h, .hours = hours, .intake = intake, .texts = names_new()};
    d.claims = kube_claims_new(d.texts, &d.arena);
    pthread_mutex_lock(&h->lock);
    each(&d, KUBE_KIND_SLICE, deliver_slice);
    each(&d, KUBE_KIND_CLAIM, deliver_claim);
    each(&d, KUBE_KIND_NODE, deliver_node);
    each(&d, KUBE_KIND_POD, deliver_pod);
    each(&d, KUBE_KIND_REPLICASET, deliver_owner);
    each(&d, KUBE_KIND_JOB, deliver_owner);
    each(&d, KUBE_KIND_OWNER, deliver_owner);
    each(&d, KUBE_KIND_NAMESPACE, deliver_namespace);
    each(&d, KUBE_KIND_QUOTA, deliver_quota);
    for (size_t i = 0; i < h->logs_n; i++)
        if (h->logs[i].kind == KUBE_KIND_NODE)
            deliver_observed(&d, &h->logs[i]);
    pthread_mutex_unlock(&h->lock);
    if (d.unknown)
        intake_note(intake, NOTE_PARTIAL, STR("Kubernetes"), d.unknown,
                    STR("devices of resource claims are in no ResourceSlice that was seen"));
    kube_claims_free(d.claims);
    names_free(d.texts);
    arena_release(&d.arena);
    arena_release(&d.one);
}
