#include "ledger/node_book.h"

#include <stdlib.h>

#include "fleet/resources.h"
#include "ledger/balance.h"
#include "ledger/cuts.h"
#include "ledger/device_hours.h"
#include "util/error.h"

#define RATIO_ONE INT64_C(1000000000)
#define REPLICAS_MAX 10000 /* of one GPU; the device plugin's own limit is far below */
#define GPUS_MAX 4096      /* of one node */

/* Who a holder is, looked up once a node. */
struct identity {
    name_t workload, owner;
    enum workload_type type;
    uint32_t flags;
};

/* Times in which somebody held a slot. */
struct held {
    const struct device *device;
    name_t instance;
    struct spans spans;
};

struct booking {
    struct facts *facts;
    const struct sightings *sightings;
    const struct node *node;
    struct span hours;
    const struct engine_options *options;
    struct node_book_result *ret;
    struct arena arena;
    struct tally **tallies;
    size_t tallies_n, tallies_room;
    struct idmap tally_by_slot; /* hour, device name, instance, holder -> tally */
    struct idmap holder_by_key; /* namespace, pod, uid, container -> holder + 1 */
    uint32_t holders;
    struct identity *identities; /* by holder - 1 */
    size_t identities_n, identities_room;
    struct held *held;
    size_t held_n, held_room;
    struct node_hour_cost {
        time_ms hour;
        struct node_cost *costs;
        size_t n, room;
        struct node_hour node_hour;
    } * node_hours;
    size_t node_hours_n, node_hours_room;
    struct slots slots;
    struct part *parts;
    size_t parts_room;
    /* of the life and the price that are being booked */
    struct slot_context context;
    const struct life *life;
    struct price price;
    time_ms starting_until;
    uint32_t flags;
    struct row_facts facts_of_life;
};

/* A stretch of a life between two cuts. */
struct stretch {
    struct span span;
    time_ms hour;
    int64_t gpus;
    int64_t price_num; /* of the node */
    bool any_held, starting;
};

/* ------------------------------------------------------------------ price and size */

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
    struct price_query query = {
        .cluster = names_text(names, booking->node->cluster),
        .node = names_text(names, booking->node->name),
        .cloud = life->cloud,
        .region = life->attributes.region,
        .instance_type = life->attributes.instance_type,
        .capacity = life->attributes.capacity,
        .gpu_model = model,
        .labels = life->labels,
        .labels_n = life->labels_n,
        .at = at,
    };
    booking->price = (struct price){.den = 1, .from = TIME_MIN, .to = TIME_MAX};
    prices_find(booking->options->prices, &query, &booking->price);
    if (!booking->price.known)
        booking->price.flags |= FLAG_UNPRICED;
}

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

/* Replicas of each shared device: capacity over devices where it divides, else the node's label; 0
 * where neither says that devices are shared. */
static int64_t replicas_of(const struct booking *booking, int64_t gpus)
{
    int64_t label = booking->life->attributes.replicas;
    int64_t count = capacity_of(booking, "nvidia_com_gpu");
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

/* Get ready for a life; false where it has no GPUs. */
static bool enter(struct booking *booking, const struct life *life, time_ms at)
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

static struct spans *held_of(struct booking *booking, const struct device *device, name_t instance)
{
    for (size_t i = 0; i < booking->held_n; i++)
        if (booking->held[i].device == device && booking->held[i].instance == instance)
            return &booking->held[i].spans;
    struct held fresh = {device, instance, {0}};
    mem_push(booking->held, booking->held_n, booking->held_room, fresh);
    return &booking->held[booking->held_n - 1].spans;
}

static void mark_held(struct booking *booking, struct cuts *cuts)
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
                spans_push(held_of(booking, slot->device, slot->instance), cuts->at[i],
                           cuts->at[i + 1]);
        }
    }
}

/* When the node had its first holder, where that was at most starting_max after its creation; the
 * creation itself otherwise. */
static time_ms first_holder(struct booking *booking, struct cuts *cuts)
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

/* ------------------------------------------------------------------ tallies */

static uint32_t holder_number(struct booking *booking, const struct holder *holder)
{
    if (!holder)
        return 0;
    struct idkey key = IDKEY(holder->namespace, holder->pod, holder->uid, holder->container);
    bool fresh;
    uint32_t number = idmap_add(&booking->holder_by_key, key, booking->holders + 1, &fresh);
    if (!fresh)
        return number;
    booking->holders++;
    struct facts *facts = booking->facts;
    struct identity identity = {.workload = facts_workload(facts, holder->pod_index, holder->pod)};
    struct owner_query query;
    facts_owner_query(facts, holder->pod_index, booking->node->cluster, holder->namespace,
                      identity.workload, &query);
    bool by_default = false;
    identity.owner = names_put(
        facts->names, owners_team(booking->options->owners, &query, &booking->arena, &by_default));
    identity.type = owners_type(booking->options->owners, &query);
    identity.flags = by_default ? FLAG_OWNER_DEFAULT : 0;
    mem_push(booking->identities, booking->identities_n, booking->identities_room, identity);
    return number;
}

static name_t device_name(struct booking *booking, const struct slot *slot)
{
    if (slot->device)
        return slot->name;
    struct strbuf text = {0};
    strbuf_addf(&text, "%s@%s", names_text(booking->facts->names, slot->name).p,
                names_text(booking->facts->names, booking->node->name).p);
    name_t name = names_put(booking->facts->names, strbuf_str(&text));
    strbuf_release(&text);
    return name;
}

static struct tally *tally_of(struct booking *booking, time_ms hour, const struct slot *slot,
                              name_t instance, const struct holder *holder)
{
    uint32_t number = holder_number(booking, holder);
    struct idkey key = IDKEY((uint32_t)(hour / HOUR_MS), slot->name, instance, number);
    bool fresh;
    uint32_t at = idmap_add(&booking->tally_by_slot, key, (uint32_t)booking->tallies_n, &fresh);
    if (!fresh)
        return booking->tallies[at];
    struct tally *tally = arena_zalloc(&booking->arena, sizeof *tally);
    tally->row.key = (struct row_key){.hour = hour,
                                      .cluster = booking->node->cluster,
                                      .node = booking->node->name,
                                      .device = device_name(booking, slot),
                                      .instance = instance};
    tally->row.facts = booking->facts_of_life;
    tally->row.facts.model = slot->device ? slot->device->model : NAME_NONE;
    if (holder) {
        const struct identity *identity = &booking->identities[number - 1];
        tally->row.key.namespace = holder->namespace;
        tally->row.key.pod = holder->pod;
        tally->row.key.pod_uid = holder->uid;
        tally->row.key.container = holder->container;
        tally->row.facts.workload = identity->workload;
        tally->row.facts.owner = identity->owner;
        tally->row.facts.type = identity->type;
        tally->row.flags |= identity->flags;
    }
    mem_push(booking->tallies, booking->tallies_n, booking->tallies_room, tally);
    return tally;
}

/* ------------------------------------------------------------------ unhealthy slots */

static bool is_lost(const struct slot *slot, time_ms t)
{
    return slot->device && spans_hold(&slot->device->lost, t);
}

struct short_order {
    size_t slot;
    bool sampled;
    int64_t index;
    struct str instance;
};

static int silent_then_high(const void *a, const void *b)
{
    const struct short_order *x = a, *y = b;
    if (x->sampled != y->sampled)
        return x->sampled ? 1 : -1;
    if (x->index != y->index)
        return x->index > y->index ? -1 : 1;
    int order = str_cmp(x->instance, y->instance);
    return order ? order : (x->slot > y->slot) - (x->slot < y->slot);
}

/* As many slots as capacity exceeds allocatable, less the lost ones: unheld ones, silent ones
 * first, then from the highest index down. sick[slot]: unhealthy share of the slot. */
static void find_short(struct booking *booking, time_ms t, struct frac *sick)
{
    const struct node *node = booking->node;
    struct slots *slots = &booking->slots;
    struct names *names = booking->facts->names;
    struct short_order *order = NULL;
    for (size_t k = 0; k < node->shortages_n; k++) {
        const struct shortage *shortage = &node->shortages[k];
        if (t < shortage->span.from || t >= shortage->span.to)
            continue;
        struct str resource = names_text(names, shortage->resource);
        int64_t missing = shortage->missing;
        size_t n = 0;
        order = order ? order : mem_alloc((slots->n + 1) * sizeof *order);
        for (size_t i = 0; i < slots->n; i++) {
            const struct slot *slot = &slots->at[i];
            if (!slot_fits(slots, slot, names, resource))
                continue;
            if (is_lost(slot, t))
                missing -= slot->replicas ? slot->replicas : 1;
            struct str instance =
                slot->instance == NAME_NONE ? STR("-") : names_text(names, slot->instance);
            order[n++] = (struct short_order){i, slot->sampled, slot->index, instance};
        }
        qsort(order, n, sizeof *order, silent_then_high);
        for (size_t i = 0; i < n && missing > 0; i++) {
            const struct slot *slot = &slots->at[order[i].slot];
            if (is_lost(slot, t))
                continue;
            struct frac left, unit = {1, slot->replicas ? slot->replicas : 1};
            slot_parts(slot, booking->facts->settings->share_policy, booking->parts, &left);
            while (missing > 0 && left.num > 0) {
                struct frac part = frac_min(unit, left);
                sick[order[i].slot] = frac_add(sick[order[i].slot], part);
                left = frac_sub(left, part);
                missing--;
            }
        }
    }
    free(order);
}

/* ------------------------------------------------------------------ booking a stretch */

static enum category cause_of(const struct booking *booking, const struct stretch *stretch,
                              bool rest, bool seen)
{
    if (!seen && !spans_hold(&booking->node->watch->known, stretch->span.from))
        return CATEGORY_UNOBSERVED;
    if (stretch->starting)
        return CATEGORY_STARTING;
    if (spans_hold(&booking->node->cordoned, stretch->span.from))
        return CATEGORY_CORDONED;
    if (rest)
        return CATEGORY_UNPARTITIONED;
    return stretch->any_held ? CATEGORY_STRANDED : CATEGORY_EMPTY;
}

/* One share of a device during a stretch. */
struct portion {
    const struct slot *slot;
    name_t instance;
    struct frac share;           /* of the device */
    struct frac sick;            /* of that, unhealthy */
    const struct sums *sums;     /* NULL: nothing is known of what it did */
    const struct holder *holder; /* NULL: unheld … */
    enum category cause;         /* … and why */
    uint32_t flags;
};

static void put(const struct booking *booking, const struct stretch *stretch, struct tally *tally,
                struct frac part, enum category category, int64_t units)
{
    if (units == 0 || part.num == 0)
        return;
    struct frac share = frac_div(part, (struct frac){stretch->gpus, 1});
    tally_money(tally, stretch->price_num, booking->price.den, share)->units[category] += units;
}

static void book_money(struct booking *booking, const struct stretch *stretch,
                       const struct portion *portion, struct tally *tally)
{
    int64_t ms = stretch->span.to - stretch->span.from;
    struct frac well = frac_sub(portion->share, portion->sick);
    const struct sums *sums = portion->sums;
    put(booking, stretch, tally, portion->sick, CATEGORY_UNHEALTHY, ms * RATIO_ONE);
    if (!portion->holder) {
        int64_t loose = 0;
        if (sums && sums->observed_ms)
            loose =
                accrue_unattributed(portion->slot->line, booking->facts->settings, stretch->span,
                                    held_of(booking, portion->slot->device, portion->instance));
        put(booking, stretch, tally, well, CATEGORY_UNATTRIBUTED, loose * RATIO_ONE);
        put(booking, stretch, tally, well, portion->cause, (ms - loose) * RATIO_ONE);
        return;
    }
    int64_t observed = sums ? sums->observed_ms : 0;
    put(booking, stretch, tally, well, CATEGORY_UNOBSERVED, (ms - observed) * RATIO_ONE);
    if (!sums)
        return;
    put(booking, stretch, tally, well, CATEGORY_USED, sums->u);
    put(booking, stretch, tally, well, CATEGORY_SLACK, sums->rest);
    put(booking, stretch, tally, well, CATEGORY_HELD_IDLE, sums->idle_rest);
}

static void book_portion(struct booking *booking, const struct stretch *stretch,
                         const struct portion *portion)
{
    int64_t ms = stretch->span.to - stretch->span.from;
    const struct slot *slot = portion->slot;
    struct tally *tally =
        tally_of(booking, stretch->hour, slot, portion->instance, portion->holder);
    tally->row.flags |= portion->flags | booking->flags;
    if (!slot->device)
        tally->row.flags |= FLAG_UNSEEN;
    else if (slot->device->guessed)
        tally->row.flags |= FLAG_UNIT_GUESS;
    struct share_part *share = tally_share(tally, portion->share);
    share->gpu_ms += ms;
    if (portion->holder) {
        tally->row.held_ms += ms;
        share->held_ms += ms;
    }
    book_money(booking, stretch, portion, tally);
    if (portion->sums)
        tally_observe(tally, share, portion->sums);
    if (slot->device)
        tally_energy(tally, slot->device, stretch->span, portion->share,
                     portion->instance != NAME_NONE);
}

/* Several pods at once: exporters measure the card and not its holders. */
static bool is_shared(const struct slot *slot)
{
    for (size_t i = 1; i < slot->holders_n; i++)
        if (slot->holders[i].pod != slot->holders[0].pod ||
            slot->holders[i].namespace != slot->holders[0].namespace)
            return slot->sampled;
    return false;
}

static void book_slot(struct booking *booking, const struct stretch *stretch,
                      const struct slot *slot, struct frac sick)
{
    struct sums sums;
    const struct settings *settings = booking->facts->settings;
    if (slot->line)
        accrue(slot->line, settings, stretch->span, &sums);
    bool lost = is_lost(slot, stretch->span.from);
    if (is_shared(slot))
        booking->ret->shared_ms += stretch->span.to - stretch->span.from;
    struct frac left;
    size_t n = slot_parts(slot, settings->share_policy, booking->parts, &left);
    struct portion portion = {
        .slot = slot, .instance = slot->instance, .sums = slot->sampled ? &sums : NULL};
    for (size_t i = 0; i < n; i++) {
        portion.share = frac_mul(slot->share, booking->parts[i].share);
        portion.sick = lost ? portion.share : FRAC_ZERO;
        portion.holder = booking->parts[i].holder;
        portion.flags = booking->parts[i].flags;
        book_portion(booking, stretch, &portion);
    }
    if (left.num == 0)
        return;
    portion.share = frac_mul(slot->share, left);
    portion.sick = frac_mul(slot->share, lost ? left : sick);
    portion.holder = NULL;
    portion.flags = 0;
    portion.sums = slot->holders_n ? NULL : portion.sums;
    portion.cause = cause_of(booking, stretch, false, slot->sampled);
    book_portion(booking, stretch, &portion);
}

/* What of split devices no instance has. */
static void book_rests(struct booking *booking, const struct stretch *stretch)
{
    const struct slots *slots = &booking->slots;
    for (size_t i = 0; i < slots->n; i++) {
        const struct slot *slot = &slots->at[i];
        bool first =
            slot->instance != NAME_NONE && (i == 0 || slots->at[i - 1].device != slot->device);
        if (!first)
            continue;
        struct frac taken = FRAC_ZERO;
        bool seen = spans_hold(&slot->device->own.covered, stretch->span.from);
        for (size_t k = i; k < slots->n && slots->at[k].device == slot->device; k++) {
            taken = frac_add(taken, slots->at[k].share);
            seen = seen || slots->at[k].sampled;
        }
        if (frac_cmp(taken, FRAC_ONE) >= 0)
            continue;
        struct portion portion = {.slot = slot,
                                  .instance = NAME_NONE,
                                  .share = frac_sub(FRAC_ONE, taken),
                                  .sick = FRAC_ZERO,
                                  .cause = cause_of(booking, stretch, true, seen)};
        if (is_lost(slot, stretch->span.from))
            portion.sick = portion.share;
        book_portion(booking, stretch, &portion);
    }
}

static int64_t gpus_of(const struct slots *slots)
{
    int64_t count = 0; /* slots of a device stand together */
    for (size_t i = 0; i < slots->n; i++)
        count += i == 0 || slots->at[i].name != slots->at[i - 1].name;
    return count;
}

static struct node_hour_cost *node_hour_of(struct booking *booking, time_ms hour)
{
    for (size_t i = booking->node_hours_n; i-- > 0;)
        if (booking->node_hours[i].hour == hour)
            return &booking->node_hours[i];
    struct node_hour_cost fresh = {.hour = hour};
    mem_push(booking->node_hours, booking->node_hours_n, booking->node_hours_room, fresh);
    return &booking->node_hours[booking->node_hours_n - 1];
}

static void cost_node(struct booking *booking, const struct stretch *stretch)
{
    struct node_hour_cost *hour = node_hour_of(booking, stretch->hour);
    struct node_cost cost = {stretch->price_num, booking->price.den,
                             stretch->span.to - stretch->span.from};
    mem_push(hour->costs, hour->n, hour->room, cost);
    struct node_hour *out = &hour->node_hour;
    const struct row_facts *facts = &booking->facts_of_life;
    out->instance_type = facts->instance_type;
    out->pool = facts->pool;
    out->region = facts->region;
    out->cloud = facts->cloud;
    out->capacity = facts->capacity;
    out->price = money_round(stretch->price_num, booking->price.den);
    out->up_ms += cost.ms;
    out->gpus = (int32_t)(stretch->gpus > out->gpus ? stretch->gpus : out->gpus);
    out->flags |= booking->flags;
    if (booking->price.source)
        out->price_source = names_put(booking->facts->names, str_of(booking->price.source));
}

static void note_late(struct booking *booking, int64_t ms)
{
    struct node_book_result *ret = booking->ret;
    for (size_t i = 0; i < booking->slots.late_n; i++) {
        const struct late_label *label = &booking->slots.late[i];
        size_t at = 0;
        while (at < ret->late_n &&
               (ret->late[at].pod != label->pod || ret->late[at].namespace != label->namespace))
            at++;
        if (at == ret->late_n) {
            struct late_time fresh = {label->namespace, label->pod, 0};
            mem_push(ret->late, ret->late_n, ret->late_room, fresh);
        }
        ret->late[at].ms += ms;
    }
}

static void book_stretch(struct booking *booking, struct span span)
{
    slots_build(&booking->slots, &booking->context, span.from);
    struct slots *slots = &booking->slots;
    int64_t gpus = gpus_of(slots);
    gpus = gpus > booking->context.least_gpus ? gpus : booking->context.least_gpus;
    struct stretch stretch = {.span = span,
                              .hour = hour_floor(span.from),
                              .gpus = gpus > 0 ? gpus : 1,
                              .starting = span.from < booking->starting_until};
    if (booking->price.known)
        stretch.price_num = booking->price.num * (booking->price.per_gpu ? stretch.gpus : 1);
    size_t most = 0;
    for (size_t i = 0; i < slots->n; i++) {
        stretch.any_held = stretch.any_held || slots->at[i].holders_n;
        most = slots->at[i].holders_n > most ? slots->at[i].holders_n : most;
    }
    mem_reserve(booking->parts, (size_t)0, booking->parts_room, most + 1);
    if (slots->n)
        cost_node(booking, &stretch);
    struct frac *sick = mem_alloc((slots->n + 1) * sizeof *sick);
    for (size_t i = 0; i < slots->n; i++)
        sick[i] = FRAC_ZERO;
    find_short(booking, span.from, sick);
    for (size_t i = 0; i < slots->n; i++)
        book_slot(booking, &stretch, &slots->at[i], sick[i]);
    book_rests(booking, &stretch);
    note_late(booking, span.to - span.from);
    free(sick);
}

static void book_life(struct booking *booking, const struct life *life, struct cuts *cuts)
{
    time_ms low = life->up > booking->hours.from ? life->up : booking->hours.from;
    time_ms high = life->down < booking->hours.to ? life->down : booking->hours.to;
    if (low >= high || !enter(booking, life, low))
        return;
    booking->starting_until = first_holder(booking, cuts);
    while (low < high) { /* one round a price */
        enter(booking, life, low);
        booking->flags = booking->price.flags | life->flags;
        time_ms until =
            booking->price.to < high && booking->price.to > low ? booking->price.to : high;
        cuts_find(cuts, booking->facts, booking->node, life, low, until, booking->starting_until);
        for (size_t i = 0; i + 1 < cuts->n; i++)
            book_stretch(booking, (struct span){cuts->at[i], cuts->at[i + 1]});
        low = until;
    }
}

/* ------------------------------------------------------------------ hours of the devices */

static void add_device_hours(struct booking *booking, const struct life *life)
{
    struct span span = {life->up > booking->hours.from ? life->up : booking->hours.from,
                        life->down < booking->hours.to ? life->down : booking->hours.to};
    for (size_t i = 0; i < life->mounts_n; i++) {
        struct spans held = {0}; /* of any part of the device */
        for (size_t k = 0; k < booking->held_n; k++) {
            const struct held *part = &booking->held[k];
            for (size_t j = 0; part->device == life->mounts[i].device && j < part->spans.n; j++)
                spans_push(&held, part->spans.at[j].from, part->spans.at[j].to);
        }
        spans_normalise(&held);
        device_hours_add(&booking->ret->batch, booking->facts, booking->node, &life->mounts[i],
                         span, &held);
        spans_release(&held);
    }
}

static int by_hour_and_device(const void *a, const void *b, void *names)
{
    const struct device_hour *x = a, *y = b;
    if (x->hour != y->hour)
        return x->hour < y->hour ? -1 : 1;
    return str_cmp(names_text(names, x->device), names_text(names, y->device));
}

/* ------------------------------------------------------------------ closing */

static int by_key(const void *a, const void *b, void *names)
{
    const struct tally *x = *(struct tally *const *)a, *y = *(struct tally *const *)b;
    return row_key_cmp(names, &x->row.key, &y->row.key);
}

static void close_hours(struct booking *booking)
{
    struct row_batch *batch = &booking->ret->batch;
    if (!booking->tallies_n)
        return;
    qsort_r(booking->tallies, booking->tallies_n, sizeof(struct tally *), by_key,
            booking->facts->names);
    mem_reserve(batch->rows, batch->rows_n, batch->rows_room, booking->tallies_n);
    for (size_t first = 0; first < booking->tallies_n;) {
        time_ms hour = booking->tallies[first]->row.key.hour;
        size_t next = first;
        while (next < booking->tallies_n && booking->tallies[next]->row.key.hour == hour)
            next++;
        struct node_hour_cost *cost = node_hour_of(booking, hour);
        cost->node_hour.booked =
            balance_hour(booking->tallies + first, next - first, cost->costs, cost->n);
        cost->node_hour.hour = hour;
        cost->node_hour.cluster = booking->node->cluster;
        cost->node_hour.node = booking->node->name;
        mem_push(batch->node_hours, batch->node_hours_n, batch->node_hours_room, cost->node_hour);
        for (size_t i = first; i < next; i++) {
            tally_finish(booking->tallies[i]);
            batch->rows[batch->rows_n++] = booking->tallies[i]->row;
        }
        first = next;
    }
}

static void release(struct booking *booking)
{
    for (size_t i = 0; i < booking->tallies_n; i++)
        tally_release(booking->tallies[i]);
    for (size_t i = 0; i < booking->held_n; i++)
        spans_release(&booking->held[i].spans);
    for (size_t i = 0; i < booking->node_hours_n; i++)
        free(booking->node_hours[i].costs);
    free(booking->tallies);
    free(booking->identities);
    free(booking->held);
    free(booking->node_hours);
    free(booking->parts);
    idmap_release(&booking->tally_by_slot);
    idmap_release(&booking->holder_by_key);
    slots_release(&booking->slots);
    arena_release(&booking->arena);
}

void node_book(struct facts *facts, const struct sightings *sightings, const struct node *node,
               struct span hours, const struct engine_options *options,
               struct node_book_result *ret)
{
    struct booking booking = {.facts = facts,
                              .sightings = sightings,
                              .node = node,
                              .hours = hours,
                              .options = options,
                              .ret = ret};
    struct cuts cuts = {0};
    ret->batch.names = facts->names;
    ret->batch.hours = hours;
    for (size_t i = 0; i < node->lives_n; i++)
        if (node->lives[i].down > hours.from - facts->settings->gap_ms &&
            node->lives[i].up < hours.to + facts->settings->gap_ms &&
            enter(&booking, &node->lives[i], node->lives[i].up))
            mark_held(&booking, &cuts);
    for (size_t i = 0; i < booking.held_n; i++)
        spans_normalise(&booking.held[i].spans);
    for (size_t i = 0; i < node->lives_n; i++)
        book_life(&booking, &node->lives[i], &cuts);
    for (size_t i = 0; i < node->lives_n; i++)
        add_device_hours(&booking, &node->lives[i]);
    if (ret->batch.device_hours_n)
        qsort_r(ret->batch.device_hours, ret->batch.device_hours_n, sizeof *ret->batch.device_hours,
                by_hour_and_device, facts->names);
    close_hours(&booking);
    cuts_release(&cuts);
    release(&booking);
}

void node_book_result_release(struct node_book_result *result)
{
    row_batch_release(&result->batch);
    free(result->late);
    result->late = NULL;
    result->late_n = result->late_room = 0;
}
