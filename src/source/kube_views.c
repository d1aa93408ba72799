/* Views to objects. A node whose GPUs only ResourceSlices publish has none in its capacity: they
 * are counted there from the slices. */
#include "source/kube_views.h"

#include "source/kube_claims.h"

/* Whole units, rounded up as Kubernetes rounds a quantity. */
static const struct resource_count *counts_of(struct arena *arena,
                                              const struct kube_quantity *quantities, size_t n)
{
    struct resource_count *counts = arena_alloc(arena, n * sizeof *counts);
    for (size_t i = 0; i < n; i++)
        counts[i] = (struct resource_count){
            quantities[i].resource,
            quantities[i].milli / 1000 + (quantities[i].milli % 1000 > 0),
        };
    return counts;
}

void kube_view_node(struct arena *arena, const struct kube_node *node, struct str cluster,
                    struct node_object *ret)
{
    *ret = (struct node_object){
        .cluster = cluster,
        .name = node->name,
        .provider_id = node->provider_id,
        .internal_ip = node->internal_ip,
        .created = node->created,
        .unschedulable = node->unschedulable,
        .labels = node->labels,
        .labels_n = node->labels_n,
        .capacity = counts_of(arena, node->capacity, node->capacity_n),
        .allocatable = counts_of(arena, node->allocatable, node->allocatable_n),
        .capacity_n = node->capacity_n,
        .allocatable_n = node->allocatable_n,
        .ignore = labels_get(node->annotations, node->annotations_n, STR("gputally.io/ignore")),
    };
    for (size_t i = 0; i < node->taints_n && !ret->tainted; i++)
        ret->tainted = taint_keeps_away(node->taints[i].key, node->taints[i].effect);
    for (size_t i = 0; i < node->annotations_n && !ret->ignored; i++)
        ret->ignored = str_eq(node->annotations[i].name, STR("gputally.io/ignore"));
}

const struct label *kube_view_annotations(struct arena *arena, const struct label *annotations,
                                          size_t n, size_t *ret_n)
{
    struct label *copy = arena_alloc(arena, n * sizeof *copy);
    *ret_n = 0;
    for (size_t i = 0; i < n; i++)
        if (annotations[i].value.n <= KUBE_ANNOTATION_MAX)
            copy[(*ret_n)++] = annotations[i];
    return copy;
}

static const struct container_object *containers_of(struct arena *arena, const struct kube_pod *pod)
{
    struct container_object *copy = arena_alloc(arena, pod->containers_n * sizeof *copy);
    for (size_t i = 0; i < pod->containers_n; i++) {
        const struct kube_container *c = &pod->containers[i];
        copy[i] = (struct container_object){
            .name = c->name,
            .init = c->init,
            .sidecar = c->sidecar,
            .requests = counts_of(arena, c->requests, c->requests_n),
            .requests_n = c->requests_n,
            .limit_mcpu = c->cpu_limit_milli,
        };
        for (size_t k = 0; k < c->requests_n; k++) {
            int64_t milli = c->requests[k].milli;
            if (str_eq(c->requests[k].resource, STR("cpu")))
                copy[i].mcpu = milli;
            else if (str_eq(c->requests[k].resource, STR("memory")))
                copy[i].memory_bytes = milli / 1000;
        }
    }
    return copy;
}

void kube_view_pod(struct arena *arena, const struct kube_pod *pod, struct str cluster,
                   struct pod_object *ret)
{
    *ret = (struct pod_object){
        .cluster = cluster,
        .namespace = pod->namespace,
        .name = pod->name,
        .uid = pod->uid,
        .node = pod->node,
        .owner_kind = pod->owner_kind,
        .owner_name = pod->owner_name,
        .phase = pod->phase,
        .priority_class = pod->priority_class,
        .created = pod->created,
        .scheduled = pod->scheduled,
        .started = pod->started,
        .finished = pod->finished,
        .deleted = pod->deletion,
        .labels = pod->labels,
        .labels_n = pod->labels_n,
        .containers = containers_of(arena, pod),
        .containers_n = pod->containers_n,
        .devices = pod->claims,
        .devices_n = pod->claims_n,
    };
    ret->annotations =
        kube_view_annotations(arena, pod->annotations, pod->annotations_n, &ret->annotations_n);
}

void kube_view_quota(struct intake *intake, struct str cluster, const struct kube_quota *quota)
{
    for (size_t i = 0; i < quota->hard_n; i++)
        intake_quota(intake, cluster, quota->namespace, quota->hard[i].resource,
                     quota->hard[i].milli / 1000);
}

static bool has_gpus(const struct node_object *node, struct str vendor)
{
    for (size_t i = 0; i < node->capacity_n; i++)
        if (str_starts(node->capacity[i].resource, vendor) && node->capacity[i].count > 0)
            return true;
    return false;
}

/* The counts and one more. */
static const struct resource_count *with_count(struct arena *arena,
                                               const struct resource_count *counts, size_t n,
                                               struct resource_count more)
{
    struct resource_count *all = arena_alloc(arena, (n + 1) * sizeof *all);
    for (size_t i = 0; i < n; i++)
        all[i] = counts[i];
    all[n] = more;
    return all;
}

void kube_view_published(struct arena *arena, struct kube_claims *claims, struct node_object *node)
{
    static const struct {
        struct str resource, vendor;
    } known[] = {{{"nvidia.com/gpu", 14}, {"nvidia.com/", 11}},
                 {{"amd.com/gpu", 11}, {"amd.com/", 8}}};
    for (size_t k = 0; k < sizeof known / sizeof *known; k++) {
        int64_t cards = kube_claims_cards(claims, node->name, known[k].resource);
        if (cards == 0 || has_gpus(node, known[k].vendor))
            continue;
        struct resource_count count = {known[k].resource, cards};
        node->capacity = with_count(arena, node->capacity, node->capacity_n++, count);
        node->allocatable = with_count(arena, node->allocatable, node->allocatable_n++, count);
    }
}
