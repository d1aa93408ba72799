/* The plan of a booking: which devices there are, in which order nodes are booked, and which
 * devices are built for which nodes.
 *
 * Nodes are booked in order of (cluster, name), in groups of neighbours: the devices of a group are
 * built, its nodes are booked, and the devices are dropped again, so that what is held at once does
 * not grow with the fleet. Where no rows are packed (fleet/intake_data.h) there is one group, which
 * is the usual case.
 *
 * What a node's books are made of follows from labels alone: the devices whose samples name the
 * node, and, since a pod keeps the device on which labels showed it last, those whose labels name a
 * pod of the node, wherever they are. A device that two groups need is built for both. */
#ifndef GPUTALLY_LEDGER_PLAN_H
#define GPUTALLY_LEDGER_PLAN_H

#include "ledger/device.h"

/* Nodes [from, to) of the plan, and what is built for them. */
struct plan_group {
    size_t from, to;
    size_t needs_from, needs_to;
};

struct plan {
    struct strip **strips; /* that have rows, by device, each device's in order of arrival */
    size_t *first;         /* of each device: into strips; one more at the end */
    struct plan_device {
        name_t cluster, uuid;
        bool counted; /* what is told of devices once was told of this one */
    } * devices;      /* in order of arrival */
    size_t devices_n;
    struct node **nodes; /* in order */
    size_t nodes_n;
    struct plan_need {
        uint32_t node, device; /* by place in nodes and devices */
    } * needs;                 /* in order */
    size_t needs_n, needs_room;
    struct plan_group *groups;
    size_t groups_n, groups_room;
};

/* Of strips that were reviewed. Makes the nodes that samples name and no record does, and marks
 * pods that labels name. One thread; facts and intake must outlive the plan. */
void plan_make(struct plan *plan, struct facts *facts, struct intake *intake);
/* The devices that a group needs, none of which is built yet. */
void plan_devices(const struct plan *plan, const struct plan_group *group, struct devices *ret);
void plan_release(struct plan *plan);

#endif
