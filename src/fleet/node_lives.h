/* What the readers of nodes share: lives, capacity, shortages. Seen by src/fleet/node*.c only.
 *
 *     nodes.c          records of kube-state-metrics
 *     node_objects.c   objects of lists and watches */
#ifndef GPUTALLY_FLEET_NODE_LIVES_H
#define GPUTALLY_FLEET_NODE_LIVES_H

#include "fleet/facts.h"

/* What tells one machine from the next that has its name. */
struct who {
    time_ms created;
    name_t provider_id, instance_type;
};

/* The node is this machine from `first` to `last`: its life goes on, or another begins, at the
 * machine's creation or, where that is not known, at `start`. Returns the life. */
struct life *node_see(struct node *node, struct who who, time_ms start, time_ms first,
                      time_ms last);

/* The resource's place in the node's capacity, made where it is not there; NULL: too many. */
struct resource_max *node_capacity_of(struct node *node, name_t resource);
void node_add_capacity(struct node *node, name_t resource, int64_t count);
void node_add_shortage(struct node *node, struct span span, int64_t missing, name_t resource);

#endif
