/* The balance of a node and hour: the only place where money is rounded (semantics, section 7). */
#ifndef GPUTALLY_LEDGER_BALANCE_H
#define GPUTALLY_LEDGER_BALANCE_H

#include "ledger/accrue.h"

/* What a node cost during a stretch of an hour, exactly: price_num / price_den nano an hour. */
struct node_cost {
    int64_t price_num, price_den;
    int64_t ms;
};

/* Give the n tallies of one node and hour (in the byte order of their keys after the hour) their
 * cost and categories; returns what the node cost, rounded once: what they add up to. */
money_t balance_hour(struct tally **tallies, size_t n, const struct node_cost *costs,
                     size_t costs_n);

#endif
