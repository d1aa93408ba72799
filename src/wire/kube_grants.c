/* What Kubernetes grants: devices by dynamic allocation, amounts by quota, precedence by priority
 * class. */
#include <string.h>

#include "wire/kube_objects_impl.h"

/* An attribute's text, its name bare or with a domain in front ("gpu.nvidia.com/uuid"). */
static struct str attribute_of(json_t *attributes, const char *name)
{
    const char *key;
    json_t *value;
    json_object_foreach(attributes, key, value)
    {
        const char *slash = strrchr(key, '/');
        if (strcmp(slash ? slash + 1 : key, name) == 0)
            return text_at(value, "string");
    }
    return STR_NONE;
}

void kube_read_slice(struct kube_reader *r, const json_t *object)
{
    const json_t *spec = json_object_get(object, "spec"), *pool = json_object_get(spec, "pool");
    json_t *list;
    size_t n = array_size_at(spec, "devices", &list);
    struct kube_device *devices = arena_alloc(&r->arena, n * sizeof *devices);
    for (size_t i = 0; i < n; i++) {
        const json_t *device = json_array_get(list, i);
        const json_t *basic = json_object_get(device, "basic");
        json_t *attributes = json_object_get(basic ? basic : device, "attributes");
        devices[i] = (struct kube_device){
            .name = text_at(device, "name"),
            .uuid = attribute_of(attributes, "uuid"),
            .parent_uuid = attribute_of(attributes, "parentUUID"),
            .profile = attribute_of(attributes, "profile"),
            .product = attribute_of(attributes, "productName"),
            .type = attribute_of(attributes, "type"),
        };
    }
    const json_t *generation = json_object_get(pool, "generation");
    struct kube_slice slice = {
        .name = text_at(json_object_get(object, "metadata"), "name"),
        .driver = text_at(spec, "driver"),
        .pool = text_at(pool, "name"),
        .node = text_at(spec, "nodeName"),
        .generation = json_integer_value(generation),
        .devices = devices,
        .devices_n = n,
    };
    r->counts.slices++;
    if (r->sink.slice)
        r->sink.slice(r->sink.context, &slice);
}

void kube_read_claim(struct kube_reader *r, const json_t *object)
{
    const json_t *metadata = json_object_get(object, "metadata");
    const json_t *status = json_object_get(object, "status");
    const json_t *allocated = json_object_get(json_object_get(status, "allocation"), "devices");
    json_t *results, *reserved;
    size_t results_n = array_size_at(allocated, "results", &results);
    size_t reserved_n = array_size_at(status, "reservedFor", &reserved);
    struct kube_allocation *allocations = arena_alloc(&r->arena, results_n * sizeof *allocations);
    struct kube_consumer *consumers = arena_alloc(&r->arena, reserved_n * sizeof *consumers);
    struct kube_claim claim = {
        .namespace = text_at(metadata, "namespace"),
        .name = text_at(metadata, "name"),
        .uid = text_at(metadata, "uid"),
        .allocations = allocations,
        .consumers = consumers,
    };
    for (size_t i = 0; i < results_n; i++) {
        const json_t *result = json_array_get(results, i);
        if (!true_at(result, "adminAccess"))
            allocations[claim.allocations_n++] =
                (struct kube_allocation){text_at(result, "request"), text_at(result, "driver"),
                                         text_at(result, "pool"), text_at(result, "device")};
    }
    for (size_t i = 0; i < reserved_n; i++) {
        const json_t *consumer = json_array_get(reserved, i);
        if (str_eq(text_at(consumer, "resource"), STR("pods")))
            consumers[claim.consumers_n++] =
                (struct kube_consumer){text_at(consumer, "name"), text_at(consumer, "uid")};
    }
    r->counts.claims++;
    if (r->sink.claim)
        r->sink.claim(r->sink.context, &claim);
}

void kube_read_quota(struct kube_reader *r, const json_t *object)
{
    const json_t *metadata = json_object_get(object, "metadata");
    const json_t *status = json_object_get(object, "status");
    json_t *hard = json_object_get(status, "hard");
    if (!json_is_object(hard)) /* not looked at yet by its controller */
        hard = json_object_get(json_object_get(object, "spec"), "hard");
    struct kube_quota quota = {
        .namespace = text_at(metadata, "namespace"),
        .name = text_at(metadata, "name"),
    };
    quota.hard_n = kube_quantities(r, hard, NULL, &quota.hard);
    quota.used_n = kube_quantities(r, json_object_get(status, "used"), NULL, &quota.used);
    r->counts.quotas++;
    if (r->sink.quota)
        r->sink.quota(r->sink.context, &quota);
}

void kube_read_priority(struct kube_reader *r, const json_t *object)
{
    struct kube_priority priority = {
        .name = text_at(json_object_get(object, "metadata"), "name"),
        .preemption = text_at(object, "preemptionPolicy"),
        .value = json_integer_value(json_object_get(object, "value")),
        .global_default = true_at(object, "globalDefault"),
    };
    r->counts.priorities++;
    if (r->sink.priority)
        r->sink.priority(r->sink.context, &priority);
}
