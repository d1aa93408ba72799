/* The machine without GPUs that could do the work of a node whose GPUs have none (semantics,
 * section 10, second pattern): the cheapest general-purpose one of the node's cloud and region with
 * the CPUs and memory that its pods request. Pure; any thread. */
#ifndef GPUTALLY_INSIGHT_INSTEAD_H
#define GPUTALLY_INSIGHT_INSTEAD_H

#include "fleet/prices.h"

#define CPU_BOUND_UTIL_BELOW (NANO / 10) /* GPU_UTIL of the node over the days, 1e-9 */
#define CPU_BOUND_CPU_ABOVE (NANO / 2)   /* highest mean of five minutes of its CPUs */

/* What is known of the node; texts may be empty, figures -1. */
struct instead_node {
    struct str cloud, region;
    time_ms at;
    bool priced;
    money_t price; /* an hour */
    int64_t requested_mcpu, requested_memory_bytes;
};

struct instead {
    struct price_offer offer; /* where `found` */
    bool found;
    money_t saving;  /* an hour: the node's price less the offer's; may be below 0 */
    const char *why; /* not found: a sentence; else NULL */
};
void instead_find(const struct prices *prices, const struct instead_node *node,
                  struct instead *ret);

#endif
