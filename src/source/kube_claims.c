/* A MIG device of a slice is called PARENT/PROFILE/MIG-UUID: no attribute tells the GPU instance id
 * that telemetry goes by. */
#include "source/kube_claims.h"

#include <stdlib.h>

#include "util/idmap.h"

struct slice_device {
    int64_t generation;
    struct str device;   /* as fleet/objects.h spells it; empty: the slice does not say */
    struct str node;     /* that the slice is of; empty: of several */
    struct str physical; /* UUID of the card */
    struct str resource; /* what the card would count as; empty: no GPU */
    uint32_t pool;
};

struct claim {
    const struct kube_allocation *allocations;
    size_t allocations_n;
};

/* Pod -> claim, one link of a list. */
struct use {
    uint32_t claim, next;
};

struct kube_claims {
    struct names *texts;
    struct arena *arena;
    struct slice_device *devices;
    int64_t *pools; /* newest generation */
    struct claim *claims;
    struct use *uses;
    size_t devices_n, devices_room, pools_n, pools_room, claims_n, claims_room, uses_n, uses_room;
    struct idmap device_at, pool_at, claim_at, use_at;
    struct idmap cards; /* (node, resource) -> cards */
    bool counted;
    struct str *found; /* scratch */
    size_t found_n, found_room;
};

struct kube_claims *kube_claims_new(struct names *texts, struct arena *arena)
{
    struct kube_claims *c = mem_zalloc(1, sizeof *c);
    c->texts = texts;
    c->arena = arena;
    return c;
}

void kube_claims_free(struct kube_claims *c)
{
    if (!c)
        return;
    free(c->devices);
    free(c->pools);
    free(c->claims);
    free(c->uses);
    free(c->found);
    idmap_release(&c->device_at);
    idmap_release(&c->pool_at);
    idmap_release(&c->claim_at);
    idmap_release(&c->use_at);
    idmap_release(&c->cards);
    free(c);
}

size_t kube_claims_size(const struct kube_claims *c)
{
    return c->devices_n + c->claims_n + c->uses_n;
}

static name_t id_of(struct kube_claims *c, struct str text)
{
    return names_put(c->texts, text);
}

static struct str kept(struct kube_claims *c, struct str text)
{
    return names_text(c->texts, id_of(c, text));
}

static struct str telemetry_name(struct kube_claims *c, const struct kube_device *device)
{
    if (device->parent_uuid.n == 0)
        return kept(c, device->uuid);
    struct strbuf text = {0};
    strbuf_addf(&text, "%.*s/%.*s/%.*s", STR_ARG(device->parent_uuid), STR_ARG(device->profile),
                STR_ARG(device->uuid));
    struct str name = kept(c, strbuf_str(&text));
    strbuf_release(&text);
    return name;
}

static struct str gpu_resource(struct str driver)
{
    if (str_eq(driver, STR("gpu.nvidia.com")))
        return STR("nvidia.com/gpu");
    return str_eq(driver, STR("gpu.amd.com")) ? STR("amd.com/gpu") : STR_NONE;
}

static uint32_t pool_of(struct kube_claims *c, const struct kube_slice *slice)
{
    bool fresh;
    uint32_t at = idmap_add(&c->pool_at, IDKEY(id_of(c, slice->driver), id_of(c, slice->pool)),
                            (uint32_t)c->pools_n, &fresh);
    if (fresh)
        mem_push(c->pools, c->pools_n, c->pools_room, slice->generation);
    else if (slice->generation > c->pools[at])
        c->pools[at] = slice->generation;
    return at;
}

void kube_claims_add_slice(struct kube_claims *c, const struct kube_slice *slice)
{
    uint32_t pool = pool_of(c, slice);
    for (size_t i = 0; i < slice->devices_n; i++) {
        const struct kube_device *of = &slice->devices[i];
        struct slice_device device = {
            .generation = slice->generation,
            .device = telemetry_name(c, of),
            .node = kept(c, slice->node),
            .physical = kept(c, of->parent_uuid.n ? of->parent_uuid : of->uuid),
            .resource = gpu_resource(slice->driver),
            .pool = pool,
        };
        bool fresh;
        struct idkey key =
            IDKEY(id_of(c, slice->driver), id_of(c, slice->pool), id_of(c, of->name));
        uint32_t at = idmap_add(&c->device_at, key, (uint32_t)c->devices_n, &fresh);
        if (fresh)
            mem_push(c->devices, c->devices_n, c->devices_room, device);
        else if (device.generation >= c->devices[at].generation)
            c->devices[at] = device;
    }
}

void kube_claims_add_claim(struct kube_claims *c, const struct kube_claim *claim)
{
    struct kube_allocation *copy = arena_alloc(c->arena, claim->allocations_n * sizeof *copy);
    for (size_t i = 0; i < claim->allocations_n; i++) {
        const struct kube_allocation *a = &claim->allocations[i];
        copy[i] = (struct kube_allocation){kept(c, a->request), kept(c, a->driver),
                                           kept(c, a->pool), kept(c, a->device)};
    }
    bool fresh;
    struct claim object = {copy, claim->allocations_n};
    name_t namespace = id_of(c, claim->namespace);
    uint32_t at = idmap_add(&c->claim_at, IDKEY(namespace, id_of(c, claim->name)),
                            (uint32_t)c->claims_n, &fresh);
    if (fresh)
        mem_push(c->claims, c->claims_n, c->claims_room, object);
    else if (object.allocations_n > 0) /* a claim that is free again still tells what it had */
        c->claims[at] = object;
    for (size_t i = 0; i < claim->consumers_n; i++) {
        struct idkey pod =
            IDKEY(namespace, id_of(c, claim->consumers[i].name), id_of(c, claim->consumers[i].uid));
        struct use use = {at, idmap_get(&c->use_at, pod)};
        idmap_set(&c->use_at, pod, (uint32_t)c->uses_n);
        mem_push(c->uses, c->uses_n, c->uses_room, use);
    }
}

static bool was_found(const struct kube_claims *c, struct str device)
{
    for (size_t i = 0; i < c->found_n; i++)
        if (str_eq(c->found[i], device))
            return true;
    return false;
}

static void find_devices(struct kube_claims *c, uint32_t at, int64_t *unknown)
{
    const struct claim *claim = &c->claims[at];
    for (size_t i = 0; i < claim->allocations_n; i++) {
        const struct kube_allocation *a = &claim->allocations[i];
        uint32_t device = idmap_get(
            &c->device_at, IDKEY(id_of(c, a->driver), id_of(c, a->pool), id_of(c, a->device)));
        struct str name = device == IDMAP_NONE ? STR_NONE : c->devices[device].device;
        if (device == IDMAP_NONE)
            ++*unknown;
        else if (name.n && !was_found(c, name)) /* without a UUID: no GPU */
            mem_push(c->found, c->found_n, c->found_room, name);
    }
}

const struct str *kube_claims_devices(struct kube_claims *c, const struct kube_pod *pod,
                                      const struct str *named, size_t n, size_t *ret_n,
                                      int64_t *unknown)
{
    name_t namespace = id_of(c, pod->namespace);
    c->found_n = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t at = idmap_get(&c->claim_at, IDKEY(namespace, id_of(c, named[i])));
        if (at != IDMAP_NONE)
            find_devices(c, at, unknown);
    }
    uint32_t use = idmap_get(&c->use_at, IDKEY(namespace, id_of(c, pod->name), id_of(c, pod->uid)));
    for (; use != IDMAP_NONE; use = c->uses[use].next)
        find_devices(c, c->uses[use].claim, unknown);
    struct str *copy = arena_alloc(c->arena, c->found_n * sizeof *copy);
    for (size_t i = 0; i < c->found_n; i++)
        copy[i] = c->found[i];
    *ret_n = c->found_n;
    return copy;
}

static void count_cards(struct kube_claims *c)
{
    struct idmap seen = {0};
    for (size_t i = 0; i < c->devices_n; i++) {
        const struct slice_device *device = &c->devices[i];
        if (device->generation != c->pools[device->pool] || !device->node.n ||
            !device->physical.n || !device->resource.n)
            continue;
        bool fresh;
        name_t node = id_of(c, device->node), resource = id_of(c, device->resource);
        idmap_add(&seen, IDKEY(node, id_of(c, device->physical)), 1, &fresh);
        uint32_t before = idmap_get(&c->cards, IDKEY(node, resource));
        if (fresh)
            idmap_set(&c->cards, IDKEY(node, resource), before == IDMAP_NONE ? 1 : before + 1);
    }
    idmap_release(&seen);
    c->counted = true;
}

int64_t kube_claims_cards(struct kube_claims *c, struct str node, struct str resource)
{
    if (!c->counted)
        count_cards(c);
    uint32_t cards = idmap_get(&c->cards, IDKEY(id_of(c, node), id_of(c, resource)));
    return cards == IDMAP_NONE ? 0 : cards;
}
