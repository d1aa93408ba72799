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

void booking_find_short(struct booking *booking, time_ms t, struct frac *sick)
{
    const struct node *node = booking->node;
    struct slots *slots = &booking->slots;
    struct names *names = booking->facts->names;
    struct short_order *order = NULL;
    for (size_t k = 0; k < node->shortages_n; k++) {
        const struct shortage *shortage = &node->shortages[k];
        if (t < shortage->span.from)
            break; /* they are in order of their start */
        if (t >= shortage->span.to)
            continue;
        struct str resource = names_text(names, shortage->resource);
        int64_t missing = shortage->missing;
        size_t n = 0;
        order = order ? order : mem_alloc((slots->n + 1) * sizeof *order);
        for (size_t i = 0; i < slots->n; i++) {
            const struct slot *slot = &slots->at[i];
            if (!slot_fits(slots, slot, names, resource))
                continue;
            if (slot_is_lost(slot, t))
                missing -= slot->replicas ? slot->replicas : 1;
            struct str instance =
                slot->instance == NAME_NONE ? STR("-") : names_text(names, slot->instance);
            order[n++] = (struct short_order){i, slot->sampled, slot->index, instance};
        }
        qsort(order, n, sizeof *order, silent_then_high);
        for (size_t i = 0; i < n && missing > 0; i++) {
            const struct slot *slot = &slots->at[order[i].slot];
            if (slot_is_lost(slot, t))
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
