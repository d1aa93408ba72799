/* Slots that are not there for anybody: lost devices, and as many as a node's capacity exceeds its
 * allocatable (semantics, section 7: unhealthy). */
#include <stdlib.h>

#include "ledger/node_booking.h"

bool slot_is_lost(const struct slot *slot, time_ms t)
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

/* Shortages at t, each resource once with the most that any record says: copies of a record are
 * one.
 */
static size_t shortages_at(const struct node *node, time_ms t, struct shortage *ret)
{
    size_t n = 0;
    for (size_t k = 0; k < node->shortages_n; k++) {
        const struct shortage *shortage = &node->shortages[k];
        if (t < shortage->span.from)
            break; /* they are in order of their start */
        if (t >= shortage->span.to)
            continue;
        size_t i = 0;
        while (i < n && ret[i].resource != shortage->resource)
            i++;
        if (i == n)
            ret[n++] = *shortage;
        else if (ret[i].missing < shortage->missing)
            ret[i].missing = shortage->missing;
    }
    return n;
}

/* Slots that the resource counts, in the order in which they are sick; lost ones are taken off what
 * is missing. */
static size_t candidates(const struct booking *booking, time_ms t, struct shortage *shortage,
                         struct short_order *ret)
{
    const struct slots *slots = &booking->slots;
    const struct names *names = booking->facts->names;
    struct str resource = names_text(names, shortage->resource);
    size_t n = 0;
    for (size_t i = 0; i < slots->n; i++) {
        const struct slot *slot = &slots->at[i];
        if (!slot_fits(slots, slot, names, resource))
            continue;
        if (slot_is_lost(slot, t)) {
            shortage->missing -= slot->replicas ? slot->replicas : 1;
            continue;
        }
        struct str instance =
            slot->instance == NAME_NONE ? STR("-") : names_text(names, slot->instance);
        ret[n++] = (struct short_order){i, slot->sampled, slot->index, instance};
    }
    qsort(ret, n, sizeof *ret, silent_then_high);
    return n;
}

void booking_find_short(struct booking *booking, time_ms t, struct frac *sick)
{
    if (!booking->node->shortages_n)
        return;
    struct shortage *live = mem_alloc((booking->node->capacity_n + 1) * sizeof *live);
    struct short_order *order = mem_alloc((booking->slots.n + 1) * sizeof *order);
    size_t live_n = shortages_at(booking->node, t, live);
    for (size_t k = 0; k < live_n; k++) {
        size_t n = candidates(booking, t, &live[k], order);
        for (size_t i = 0; i < n && live[k].missing > 0; i++) {
            const struct slot *slot = &booking->slots.at[order[i].slot];
            struct frac *taken = &sick[order[i].slot];
            struct frac left, unit = {1, slot->replicas ? slot->replicas : 1};
            slot_parts(slot, booking->facts->settings->share_policy, booking->parts, &left);
            left = frac_sub(left, *taken); /* another resource lacks that part already */
            while (live[k].missing > 0 && left.num > 0) {
                struct frac part = frac_min(unit, left);
                *taken = frac_add(*taken, part);
                left = frac_sub(left, part);
                live[k].missing--;
            }
        }
    }
    free(live);
    free(order);
}
