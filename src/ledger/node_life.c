/* The life of a node that is being booked: what it costs, how many GPUs it has (semantics, section
 * 3), and when its slots were held. */
#include "ledger/node_booking.h"

#define REPLICAS_MAX 10000 /* of one GPU; the device plugin's own limit is far below */
#define GPUS_MAX 4096      /* of one node */

/* ------------------------------------------------------------------ price and size */

static int64_t capacity_of(const struct booking *booking, const char *resource)
{
    int64_t most = 0;
    for (size_t i = 0; i < booking->node->capacity_n; i++) {
        const struct resource_max *max = &booking->node->capacity[i];
        if (resource && !str_eq(names_text(booking->facts->names, max->resource), str_of(resource)))
            continue;
        most = max->count > most ? max->count : most;
    }
    return most;
}

static int64_t mounted_gpus(const struct life *life)
{
    int64_t count = 0; /* distinct indexes; mounts are in order of index */
    for (size_t i = 0; i < life->mounts_n; i++)
        count += i == 0 || life->mounts[i].index != life->mounts[i - 1].index;
    return count;
}

static void ask_price(struct booking *booking, time_ms at)
{
    const struct life *life = booking->life;
    struct names *names = booking->facts->names;
    struct str model = STR_NONE;
    for (size_t i = 0; i < life->mounts_n; i++) {
        struct str other = names_text(names, life->mounts[i].device->model);
        if (other.n && (model.n == 0 || str_cmp(other, model) < 0))
            model = other;
    }
    /* Capacity counts replicas where GPUs are shared; GPUs that were seen do not. */
    int64_t gpus = mounted_gpus(life);
    if (gpus == 0 && life->attributes.replicas <= 1)
        gpus = capacity_of(booking, NULL);
    struct price_query query = {
        .cluster = names_text(names, booking->node->cluster),
        .node = names_text(names, booking->node->name),
        .cloud = life->cloud,
        .region = life->attributes.region,
        .instance_type = life->attributes.instance_type,
        .capacity = life->attributes.capacity,
        .gpu_model = model,
        .provider_id = names_text(names, life->provider_id),
        .gpus = gpus < GPUS_MAX ? (int)gpus : GPUS_MAX,
        .labels = life->labels,
        .labels_n = life->labels_n,
        .at = at,
    };
    booking->price = (struct price){.den = 1, .from = TIME_MIN, .to = TIME_MAX};
    prices_find(booking->options->prices, &query, &booking->price);
    if (!booking->price.known)
        booking->price.flags |= FLAG_UNPRICED;
}

/* Replicas of each shared device: capacity over devices where it divides, else the node's label; 0
 * where neither says that devices are shared. */
static int64_t replicas_of(const struct booking *booking, int64_t gpus)
{
    int64_t label = booking->life->attributes.replicas;
    int64_t count = capacity_of(booking, "nvidia_com_gpu");
    int64_t shared = capacity_of(booking, "nvidia_com_gpu_shared"); /* renameByDefault */
    count = shared > count ? shared : count;
    bool split = false;
    for (size_t i = 0; i < booking->life->mounts_n; i++) {
        const struct device *device = booking->life->mounts[i].device;
        for (size_t k = 0; k < device->layouts_n; k++)
            split = split || device->layouts[k].n;
    }
    int64_t replicas = label;
    bool divides = gpus && !split && count > gpus && count % gpus == 0;
    if ((label == 0 || label == 1) && divides)
        replicas = count / gpus; /* a label of 1 that capacity contradicts is wrong */
    return replicas > 0 && replicas <= REPLICAS_MAX ? replicas : 0;
}

bool booking_enter(struct booking *booking, const struct life *life, time_ms at)
{
    booking->life = life;
    ask_price(booking, at);
    int64_t catalogue = booking->price.gpus, capacity = capacity_of(booking, NULL);
    if (!life->mounts_n && !catalogue && !capacity)
        return false;
    int64_t mounted = mounted_gpus(life);
    booking->context = (struct slot_context){
        .facts = booking->facts,
        .sightings = booking->sightings,
        .node = booking->node,
        .life = life,
        .least_gpus = catalogue,
        .replicas = replicas_of(booking, catalogue > mounted ? catalogue : mounted),
    };
    if (!life->mounts_n && !catalogue) {
        int64_t replicas = booking->context.replicas;
        booking->context.least_gpus =
            replicas && capacity % replicas == 0 ? capacity / replicas : capacity;
    }
    if (booking->context.least_gpus > GPUS_MAX)
        booking->context.least_gpus = GPUS_MAX;
    struct names *names = booking->facts->names;
    booking->facts_of_life = (struct row_facts){
        .instance_type = names_put(names, life->attributes.instance_type),
        .pool = names_put(names, life->attributes.pool),
        .region = names_put(names, life->attributes.region),
        .cloud = names_put(names, life->cloud),
        .capacity = life->attributes.capacity,
    };
    return true;
}

/* ------------------------------------------------------------------ when slots were held */

struct spans *booking_held(struct booking *booking, const struct device *device, name_t instance)
{
    bool fresh;
    uint32_t at = idmap_add(&booking->held_by_slot, IDKEY(device->uuid, instance),
                            (uint32_t)booking->held_n, &fresh);
    struct held none = {device, instance, {0}};
    if (fresh)
        mem_push(booking->held, booking->held_n, booking->held_room, none);
    return &booking->held[at].spans;
}

void booking_mark_held(struct booking *booking, struct cuts *cuts)
{
    time_ms gap = booking->facts->settings->gap_ms;
    time_ms low = booking->life->up, high = booking->life->down;
    low = low > booking->hours.from - gap ? low : booking->hours.from - gap;
    high = high < booking->hours.to + gap ? high : booking->hours.to + gap;
    if (low >= high)
        return;
    cuts_find(cuts, booking->facts, booking->node, booking->life, low, high, TIME_MIN);
    for (size_t i = 0; i + 1 < cuts->n; i++) {
        slots_build(&booking->slots, &booking->context, cuts->at[i]);
        for (size_t s = 0; s < booking->slots.n; s++) {
            const struct slot *slot = &booking->slots.at[s];
            if (slot->holders_n && slot->device)
                spans_push(booking_held(booking, slot->device, slot->instance), cuts->at[i],
                           cuts->at[i + 1]);
        }
    }
}

time_ms booking_first_holder(struct booking *booking, struct cuts *cuts)
{
    const struct life *life = booking->life;
    time_ms limit = life->up + booking->facts->settings->starting_max_ms;
    if (life->created == TIME_MIN || limit < booking->hours.from)
        return life->up;
    time_ms high = life->down < limit + 1 ? life->down : limit + 1;
    if (life->up >= high)
        return life->up;
    cuts_find(cuts, booking->facts, booking->node, life, life->up, high, TIME_MIN);
    for (size_t i = 0; i + 1 < cuts->n && cuts->at[i] <= limit; i++) {
        slots_build(&booking->slots, &booking->context, cuts->at[i]);
        for (size_t s = 0; s < booking->slots.n; s++)
            if (booking->slots.at[s].holders_n)
                return cuts->at[i];
    }
    return life->up;
}
