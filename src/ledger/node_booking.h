/* The parts of booking a node, for node_book.c only: the state of it; the life in hand, its price
 * and size, and when its slots were held (node_life.c); rows (node_tally.c); slots that are
 * unhealthy because capacity exceeds allocatable (node_short.c). One thread books a node. */
#ifndef GPUTALLY_LEDGER_NODE_BOOKING_H
#define GPUTALLY_LEDGER_NODE_BOOKING_H

#include "ledger/balance.h"
#include "ledger/cuts.h"
#include "ledger/node_book.h"

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
    struct idmap late_by_pod; /* namespace, pod -> index of ret->late */
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
    struct idmap held_by_slot; /* device, instance -> index of held */
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

/* Get ready for a life as it is priced at `at`; false where it has no GPUs. */
bool booking_enter(struct booking *booking, const struct life *life, time_ms at);

/* When the slot was held; made where it is not there. O(1). */
struct spans *booking_held(struct booking *booking, const struct device *device, name_t instance);
/* Of the life that was entered: put all times in which its slots are held to booking_held. */
void booking_mark_held(struct booking *booking, struct cuts *cuts);
/* When the node had its first holder, where that was at most starting_max after its creation; the
 * creation itself otherwise. */
time_ms booking_first_holder(struct booking *booking, struct cuts *cuts);

/* The row of an hour, slot and holder (NULL: unheld); made where it is not there. O(1). instance:
 * the slot's, or NAME_NONE for what no instance of a split device has. */
struct tally *booking_tally(struct booking *booking, time_ms hour, const struct slot *slot,
                            name_t instance, const struct holder *holder);

/* Is the slot's device under an XID that marks it as lost? */
bool slot_is_lost(const struct slot *slot, time_ms t);
/* As many slots as capacity exceeds allocatable at t, less the lost ones: unheld ones, silent ones
 * first, then from the highest index down. sick[slots.n] (zeroed): the unhealthy share of each
 * slot. (semantics, section 7) */
void booking_find_short(struct booking *booking, time_ms t, struct frac *sick);

#endif
