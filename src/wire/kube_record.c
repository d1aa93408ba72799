/* Records of what was seen of a Kubernetes API: kube_record.h has the layout of the record itself;
 * here is that of the objects, a table of field numbers each. What is absent (empty texts,
 * TIME_MIN, zero) is not written, so that an object costs what it says.
 *
 * Protobuf because it is there (wire/protobuf.h), lets fields be added, and takes a third of the
 * JSON that it came from before any compression; a pod has some 400 bytes of what the books ask
 * for. The API's own answers are not kept: nine tenths of a pod are of no use here. */
#include "wire/kube_record_impl.h"

#define ANNOTATION_MAX 256 /* bytes of a value; nothing that owner rules look for is longer */

static void put_text(struct strbuf *out, uint32_t number, struct str text)
{
    if (text.n > 0 && text.n <= KUBE_RECORD_TEXT_MAX)
        protobuf_put_bytes(out, number, text);
}

static void put_number(struct strbuf *out, uint32_t number, int64_t value)
{
    if (value != 0)
        protobuf_put_uint64(out, number, (uint64_t)value);
}

static void put_time(struct strbuf *out, uint32_t number, time_ms t)
{
    if (t != TIME_MIN)
        protobuf_put_uint64(out, number, (uint64_t)t);
}

static void put_labels(struct strbuf *out, uint32_t number, const struct label *labels, size_t n,
                       size_t longest)
{
    struct strbuf one = {0};
    for (size_t i = 0; i < n; i++) {
        if (labels[i].value.n > longest || labels[i].name.n > KUBE_RECORD_TEXT_MAX)
            continue;
        strbuf_clear(&one);
        put_text(&one, 1, labels[i].name);
        put_text(&one, 2, labels[i].value);
        protobuf_put_bytes(out, number, strbuf_str(&one));
    }
    strbuf_release(&one);
}

static void put_quantities(struct strbuf *out, uint32_t number, const struct kube_quantity *q,
                           size_t n)
{
    struct strbuf one = {0};
    for (size_t i = 0; i < n; i++) {
        strbuf_clear(&one);
        put_text(&one, 1, q[i].resource);
        put_number(&one, 2, q[i].milli);
        protobuf_put_bytes(out, number, strbuf_str(&one));
    }
    strbuf_release(&one);
}

void kube_record_write(struct strbuf *out, const struct kube_record *record)
{
    protobuf_put_uint64(out, R_VERSION, KUBE_RECORD_VERSION);
    protobuf_put_uint64(out, R_ACT, record->act);
    protobuf_put_uint64(out, R_KIND, record->kind);
    protobuf_put_uint64(out, R_T, (uint64_t)record->t);
    put_text(out, R_CLUSTER, record->cluster);
    put_time(out, R_FIRST, record->first);
    put_time(out, R_LACKED, record->lacked);
    if (record->object.n)
        protobuf_put_bytes(out, R_OBJECT, record->object);
    put_number(out, R_SNAPSHOT, record->snapshot);
    put_time(out, R_SINCE, record->since);
    put_time(out, R_LAST, record->last);
}

void kube_record_node(struct strbuf *out, const struct kube_node *node)
{
    struct strbuf one = {0};
    put_text(out, 1, node->name);
    put_text(out, 2, node->uid);
    put_text(out, 3, node->provider_id);
    put_text(out, 4, node->internal_ip);
    put_time(out, 5, node->created);
    put_number(out, 6, node->unschedulable);
    put_labels(out, 7, node->labels, node->labels_n, KUBE_RECORD_TEXT_MAX);
    for (size_t i = 0; i < node->taints_n; i++) {
        strbuf_clear(&one);
        put_text(&one, 1, node->taints[i].key);
        put_text(&one, 2, node->taints[i].value);
        put_text(&one, 3, node->taints[i].effect);
        protobuf_put_bytes(out, 8, strbuf_str(&one));
    }
    put_quantities(out, 9, node->capacity, node->capacity_n);
    put_quantities(out, 10, node->allocatable, node->allocatable_n);
    for (size_t i = 0; i < node->annotations_n; i++) /* others change with every volume */
        if (str_starts(node->annotations[i].name, STR("gputally.io/")))
            put_labels(out, 11, &node->annotations[i], 1, KUBE_RECORD_TEXT_MAX);
    strbuf_release(&one);
}

static void put_container(struct strbuf *out, uint32_t number,
                          const struct kube_container *container)
{
    struct strbuf one = {0};
    put_text(&one, 1, container->name);
    put_number(&one, 2, container->init);
    put_number(&one, 3, container->sidecar);
    put_quantities(&one, 4, container->requests, container->requests_n);
    put_number(&one, 5, container->cpu_limit_milli);
    protobuf_put_bytes(out, number, strbuf_str(&one));
    strbuf_release(&one);
}

void kube_record_pod(struct strbuf *out, const struct kube_pod *pod)
{
    put_text(out, 1, pod->namespace);
    put_text(out, 2, pod->name);
    put_text(out, 3, pod->uid);
    put_text(out, 4, pod->node);
    put_text(out, 5, pod->phase);
    put_text(out, 6, pod->owner_kind);
    put_text(out, 7, pod->owner_name);
    put_text(out, 8, pod->owner_api);
    put_text(out, 9, pod->owner_uid);
    put_text(out, 10, pod->priority_class);
    put_time(out, 11, pod->created);
    put_time(out, 12, pod->scheduled);
    put_time(out, 13, pod->started);
    put_time(out, 14, pod->finished);
    put_time(out, 15, pod->deletion);
    put_number(out, 16, pod->deletion_grace_s + 1);
    put_labels(out, 17, pod->labels, pod->labels_n, KUBE_RECORD_TEXT_MAX);
    put_labels(out, 18, pod->annotations, pod->annotations_n, ANNOTATION_MAX);
    for (size_t i = 0; i < pod->containers_n; i++)
        put_container(out, 19, &pod->containers[i]);
    for (size_t i = 0; i < pod->claims_n; i++)
        put_text(out, 20, pod->claims[i]);
}

void kube_record_namespace(struct strbuf *out, const struct kube_namespace *ns)
{
    put_text(out, 1, ns->name);
    put_labels(out, 2, ns->labels, ns->labels_n, KUBE_RECORD_TEXT_MAX);
    put_labels(out, 3, ns->annotations, ns->annotations_n, ANNOTATION_MAX);
}

void kube_record_owner(struct strbuf *out, const struct kube_owner *owner)
{
    const struct str texts[] = {owner->namespace, owner->kind,       owner->name,
                                owner->uid,       owner->owner_kind, owner->owner_name,
                                owner->owner_api, owner->owner_uid};
    for (uint32_t i = 0; i < sizeof texts / sizeof *texts; i++)
        put_text(out, i + 1, texts[i]);
}

void kube_record_claim(struct strbuf *out, const struct kube_claim *claim)
{
    struct strbuf one = {0};
    put_text(out, 1, claim->namespace);
    put_text(out, 2, claim->name);
    put_text(out, 3, claim->uid);
    for (size_t i = 0; i < claim->allocations_n; i++) {
        const struct kube_allocation *a = &claim->allocations[i];
        strbuf_clear(&one);
        put_text(&one, 1, a->request);
        put_text(&one, 2, a->driver);
        put_text(&one, 3, a->pool);
        put_text(&one, 4, a->device);
        protobuf_put_bytes(out, 4, strbuf_str(&one));
    }
    for (size_t i = 0; i < claim->consumers_n; i++) {
        strbuf_clear(&one);
        put_text(&one, 1, claim->consumers[i].name);
        put_text(&one, 2, claim->consumers[i].uid);
        protobuf_put_bytes(out, 5, strbuf_str(&one));
    }
    strbuf_release(&one);
}

void kube_record_slice(struct strbuf *out, const struct kube_slice *slice)
{
    struct strbuf one = {0};
    put_text(out, 1, slice->name);
    put_text(out, 2, slice->driver);
    put_text(out, 3, slice->pool);
    put_text(out, 4, slice->node);
    put_number(out, 5, slice->generation);
    for (size_t i = 0; i < slice->devices_n; i++) {
        const struct kube_device *d = &slice->devices[i];
        const struct str texts[] = {d->name,    d->uuid,    d->parent_uuid,
                                    d->profile, d->product, d->type};
        strbuf_clear(&one);
        for (uint32_t k = 0; k < sizeof texts / sizeof *texts; k++)
            put_text(&one, k + 1, texts[k]);
        protobuf_put_bytes(out, 6, strbuf_str(&one));
    }
    strbuf_release(&one);
}

void kube_record_quota(struct strbuf *out, const struct kube_quota *quota)
{
    put_text(out, 1, quota->namespace);
    put_text(out, 2, quota->name);
    put_quantities(out, 3, quota->hard, quota->hard_n);
    put_quantities(out, 4, quota->used, quota->used_n);
}

void kube_record_priority(struct strbuf *out, const struct kube_priority *priority)
{
    put_text(out, 1, priority->name);
    put_text(out, 2, priority->preemption);
    put_number(out, 3, priority->value);
    put_number(out, 4, priority->global_default);
}
