/* The times at which something may change on a node: between two of them, who holds what and what
 * is known stay the same. */
#ifndef GPUTALLY_LEDGER_CUTS_H
#define GPUTALLY_LEDGER_CUTS_H

#include "ledger/holders.h"

struct cuts {
    time_ms *at; /* sorted, distinct, from the range's start to its end */
    size_t n, room;
};
/* All cuts of a node's life in [low, high], both ends included, hours among them; more (may be
 * TIME_MIN) is one more. */
void cuts_find(struct cuts *cuts, const struct facts *facts, const struct node *node,
               const struct life *life, time_ms low, time_ms high, time_ms more);
void cuts_release(struct cuts *cuts);

#endif
