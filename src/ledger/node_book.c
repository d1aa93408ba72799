/* Booking of a node: its lives from cut to cut, every slot's time to its holders, and at the end
 * the balance of each hour (semantics, sections 6 and 7). node_booking.h names the other parts. */
#include "ledger/node_booking.h"

#include <stdlib.h>

#include "ledger/device_hours.h"
#include "util/error.h"

#define RATIO_ONE INT64_C(1000000000)

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
            loose = accrue_unattributed(
                portion->slot->line, booking->facts->settings, stretch->span,
                booking_held(booking, portion->slot->device, portion->instance));
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
        booking_tally(booking, stretch->hour, slot, portion->instance, portion->holder);
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
    bool lost = slot_is_lost(slot, stretch->span.from);
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
        if (slot_is_lost(slot, stretch->span.from))
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
        bool fresh;
        uint32_t at = idmap_add(&booking->late_by_pod, IDKEY(label->namespace, label->pod),
                                (uint32_t)ret->late_n, &fresh);
        struct late_time none = {label->namespace, label->pod, 0};
        if (fresh)
            mem_push(ret->late, ret->late_n, ret->late_room, none);
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
    if (booking->price.known &&
        __builtin_mul_overflow(booking->price.num, booking->price.per_gpu ? stretch.gpus : 1,
                               &stretch.price_num))
        stretch.price_num = INT64_MAX; /* thousands of GPUs at a million an hour each */
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
    booking_find_short(booking, span.from, sick);
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
    if (low >= high || !booking_enter(booking, life, low))
        return;
    booking->starting_until = booking_first_holder(booking, cuts);
    while (low < high) { /* one round a price */
        booking_enter(booking, life, low);
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

/* When any part of the device was held. */
static void held_at_all(const struct booking *booking, const struct device *device,
                        struct spans *ret)
{
    for (size_t i = 0; i <= device->instances_n; i++) {
        name_t instance = i ? device->instances[i - 1].id : NAME_NONE;
        uint32_t at = idmap_get(&booking->held_by_slot, IDKEY(device->uuid, instance));
        for (size_t k = 0; at != IDMAP_NONE && k < booking->held[at].spans.n; k++)
            spans_push(ret, booking->held[at].spans.at[k].from, booking->held[at].spans.at[k].to);
    }
    spans_normalise(ret);
}

static void add_device_hours(struct booking *booking, const struct life *life)
{
    struct span span = {life->up > booking->hours.from ? life->up : booking->hours.from,
                        life->down < booking->hours.to ? life->down : booking->hours.to};
    for (size_t i = 0; i < life->mounts_n; i++) {
        struct spans held = {0};
        held_at_all(booking, life->mounts[i].device, &held);
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
    idmap_release(&booking->held_by_slot);
    idmap_release(&booking->late_by_pod);
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
            booking_enter(&booking, &node->lives[i], node->lives[i].up))
            booking_mark_held(&booking, &cuts);
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
