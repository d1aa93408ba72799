/* Kubernetes objects into an intake (fleet/objects.h): texts are interned, requests brought to the
 * spelling of kube-state-metrics, so that what follows does not care where a fact came from. */
#include "fleet/intake_data.h"
#include "fleet/resources.h"

static struct pair *keep_pairs(struct intake *intake, const struct label *labels, size_t n)
{
    struct pair *pairs = arena_alloc(&intake->arena, n * sizeof *pairs);
    for (size_t i = 0; i < n; i++)
        pairs[i] = (struct pair){names_put(intake->names, labels[i].name),
                                 names_put(intake->names, labels[i].value)};
    return pairs;
}

static name_t spelled(struct intake *intake, struct str resource)
{
    return names_put(intake->names, resource_spell(&intake->arena, resource));
}

static int64_t count_of(const struct resource_count *counts, size_t n, struct str resource)
{
    for (size_t i = 0; i < n; i++)
        if (str_eq(counts[i].resource, resource))
            return counts[i].count;
    return -1;
}

#define OBJECT_NAMES_MAX 64 /* of an object, beside its labels, containers and devices */

/* Take the lock to keep an object with so many labels and the like; false where there is no room.
 */
static bool lock_for(struct intake *intake, size_t labels_n)
{
    pthread_mutex_lock(&intake->lock);
    if (intake_has_room(intake, labels_n + OBJECT_NAMES_MAX))
        return true;
    intake->refused++;
    pthread_mutex_unlock(&intake->lock);
    return false;
}

static time_ms sane(time_ms t)
{
    return time_is_sane(t) ? t : TIME_MIN;
}

void intake_node(struct intake *intake, const struct node_object *node)
{
    if (!lock_for(intake, node->labels_n + node->capacity_n))
        return;
    struct object_node kept = {
        .cluster = names_put(intake->names, node->cluster),
        .name = names_put(intake->names, node->name),
        .provider_id = names_put(intake->names, node->provider_id),
        .internal_ip = names_put(intake->names, node->internal_ip),
        .created = sane(node->created),
        .unschedulable = node->unschedulable,
        .ignored = node->ignored,
        .tainted = node->tainted,
        .ignore = names_put(intake->names, node->ignore),
        .labels = keep_pairs(intake, node->labels, node->labels_n),
        .labels_n = (uint32_t)node->labels_n,
        .capacity_names =
            arena_alloc(&intake->arena, node->capacity_n * sizeof *kept.capacity_names),
        .capacity = arena_alloc(&intake->arena, node->capacity_n * sizeof *kept.capacity),
        .allocatable = arena_alloc(&intake->arena, node->capacity_n * sizeof *kept.allocatable),
    };
    if (node->observed) {
        kept.watched = true;
        kept.observed = *node->observed;
    }
    for (size_t i = 0; i < node->capacity_n; i++) {
        name_t resource = spelled(intake, node->capacity[i].resource);
        int64_t count = node->capacity[i].count;
        if (!resource_is_gpu(names_text(intake->names, resource)) || count < 0 ||
            count > RESOURCE_COUNT_MAX)
            continue;
        kept.capacity_names[kept.capacity_n] = (struct pair){resource, NAME_NONE};
        kept.capacity[kept.capacity_n] = count;
        kept.allocatable[kept.capacity_n++] =
            count_of(node->allocatable, node->allocatable_n, node->capacity[i].resource);
    }
    mem_push(intake->nodes, intake->nodes_n, intake->nodes_room, kept);
    pthread_mutex_unlock(&intake->lock);
}

static bool done(struct str phase)
{
    return str_eq(phase, STR("Succeeded")) || str_eq(phase, STR("Failed"));
}

static void keep_requests(struct intake *intake, const struct pod_object *pod,
                          struct object_pod *kept)
{
    size_t most = 0;
    for (size_t i = 0; i < pod->containers_n; i++)
        most += pod->containers[i].requests_n;
    kept->requests = arena_alloc(&intake->arena, most * sizeof *kept->requests);
    for (size_t i = 0; i < pod->containers_n; i++) {
        const struct container_object *container = &pod->containers[i];
        for (size_t k = 0; k < container->requests_n; k++) {
            name_t resource = spelled(intake, container->requests[k].resource);
            int64_t count = container->requests[k].count;
            struct str text = names_text(intake->names, resource);
            if (resource_fraction(text, (double)count, &kept->fraction) || !resource_is_gpu(text) ||
                count <= 0 || count > RESOURCE_COUNT_MAX)
                continue;
            kept->requests[kept->requests_n++] = (struct object_request){
                .container = names_put(intake->names, container->name),
                .resource = resource,
                .count = count,
                .init = container->init,
                .sidecar = container->sidecar,
                .order = (uint32_t)i,
            };
        }
    }
}

static void keep_host_requests(struct intake *intake, const struct pod_object *pod,
                               struct object_pod *kept)
{
    kept->host = arena_alloc(&intake->arena, pod->containers_n * sizeof *kept->host);
    for (size_t i = 0; i < pod->containers_n; i++) {
        const struct container_object *container = &pod->containers[i];
        if ((container->init && !container->sidecar) ||
            (container->mcpu <= 0 && container->memory_bytes <= 0 && container->limit_mcpu <= 0))
            continue;
        kept->host[kept->host_n++] =
            (struct object_host_request){names_put(intake->names, container->name), container->mcpu,
                                         container->memory_bytes, container->limit_mcpu};
    }
}

void intake_pod(struct intake *intake, const struct pod_object *pod)
{
    if (!lock_for(intake, pod->labels_n + pod->annotations_n + pod->containers_n + pod->devices_n))
        return;
    time_ms since = sane(pod->scheduled) != TIME_MIN ? pod->scheduled : sane(pod->started);
    time_ms until = TIME_MAX;
    if (sane(pod->finished) != TIME_MIN)
        until = pod->finished;
    if (sane(pod->deleted) != TIME_MIN && pod->deleted < until && done(pod->phase))
        until = pod->deleted;
    bool finished = done(pod->phase) && until == TIME_MAX;
    if (pod->observed) { /* where its own times do not say */
        since = since == TIME_MIN ? sane(pod->observed->lacked) : since;
        until = until == TIME_MAX ? pod->observed->gone : until;
    }
    struct object_pod kept = {
        .cluster = names_put(intake->names, pod->cluster),
        .namespace = names_put(intake->names, pod->namespace),
        .name = names_put(intake->names, pod->name),
        .uid = names_put(intake->names, pod->uid),
        .node = names_put(intake->names, pod->node),
        .owner_kind = names_put(intake->names, pod->owner_kind),
        .owner_name = names_put(intake->names, pod->owner_name),
        .since = since,
        .until = until,
        .finished = finished,
        .pending = pod->node.n == 0 && !done(pod->phase),
        .created = sane(pod->created),
        .priority = names_put(intake->names, pod->priority_class),
        .labels = keep_pairs(intake, pod->labels, pod->labels_n),
        .labels_n = (uint32_t)pod->labels_n,
        .annotations = keep_pairs(intake, pod->annotations, pod->annotations_n),
        .annotations_n = (uint32_t)pod->annotations_n,
        .devices = arena_alloc(&intake->arena, pod->devices_n * sizeof *kept.devices),
        .devices_n = (uint32_t)pod->devices_n,
    };
    for (size_t i = 0; i < pod->devices_n; i++)
        kept.devices[i] = names_put(intake->names, pod->devices[i]);
    keep_requests(intake, pod, &kept);
    keep_host_requests(intake, pod, &kept);
    mem_push(intake->pods, intake->pods_n, intake->pods_room, kept);
    pthread_mutex_unlock(&intake->lock);
}

void intake_owner(struct intake *intake, struct str cluster, struct str namespace, struct str kind,
                  struct str name, struct str owner_kind, struct str owner_name)
{
    if (!lock_for(intake, 0))
        return;
    struct object_owner kept = {
        names_put(intake->names, cluster),    names_put(intake->names, namespace),
        names_put(intake->names, kind),       names_put(intake->names, name),
        names_put(intake->names, owner_kind), names_put(intake->names, owner_name)};
    mem_push(intake->owners, intake->owners_n, intake->owners_room, kept);
    pthread_mutex_unlock(&intake->lock);
}

void intake_namespace(struct intake *intake, struct str cluster, struct str name,
                      const struct label *labels, size_t labels_n, const struct label *annotations,
                      size_t annotations_n)
{
    if (!lock_for(intake, labels_n + annotations_n))
        return;
    struct object_namespace kept = {
        names_put(intake->names, cluster),
        names_put(intake->names, name),
        keep_pairs(intake, labels, labels_n),
        keep_pairs(intake, annotations, annotations_n),
        (uint32_t)labels_n,
        (uint32_t)annotations_n,
    };
    mem_push(intake->namespaces, intake->namespaces_n, intake->namespaces_room, kept);
    pthread_mutex_unlock(&intake->lock);
}

void intake_observed(struct intake *intake, struct str cluster, const struct span *spans, size_t n)
{
    if (!lock_for(intake, 0))
        return;
    name_t name = names_put(intake->names, cluster);
    for (size_t i = 0; i < n; i++) {
        struct object_observed kept = {name, spans[i]};
        mem_push(intake->observed, intake->observed_n, intake->observed_room, kept);
    }
    pthread_mutex_unlock(&intake->lock);
}

void intake_quota(struct intake *intake, struct str cluster, struct str namespace,
                  struct str resource, int64_t count)
{
    if (!lock_for(intake, 0))
        return;
    struct object_quota kept = {names_put(intake->names, cluster),
                                names_put(intake->names, namespace),
                                names_put(intake->names, resource), count};
    mem_push(intake->quotas, intake->quotas_n, intake->quotas_room, kept);
    pthread_mutex_unlock(&intake->lock);
}

bool taint_keeps_away(struct str key, struct str effect)
{
    static const char *const passing[] = {
        "node.kubernetes.io/", "node.cloudprovider.kubernetes.io/",
        "ToBeDeletedByClusterAutoscaler", "karpenter.sh/disrupt", "karpenter.sh/unregistered"};
    for (size_t i = 0; i < sizeof passing / sizeof *passing; i++)
        if (str_starts(key, str_of(passing[i])))
            return false;
    return str_eq(effect, STR("NoSchedule")) || str_eq(effect, STR("NoExecute"));
}
