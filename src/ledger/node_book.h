/* Booking of one node: its lives are walked from cut to cut, times between which nobody comes or
 * goes and no price changes; every slot's time is booked to its holders (semantics, 4 to 8). */
#ifndef GPUTALLY_LEDGER_NODE_BOOK_H
#define GPUTALLY_LEDGER_NODE_BOOK_H

#include "ledger/engine.h"
#include "ledger/holders.h"

struct late_time {
    name_t namespace, pod;
    int64_t ms;
};
struct node_book_result {
    struct row_batch batch; /* rows in order; node_hours */
    struct late_time *late; /* finished pods that labels went on to name */
    size_t late_n, late_room;
    int64_t shared_ms; /* in which several pods held parts of one sampled device */
};

/* Thread-safe over nodes: facts, sightings and devices are only read. */
void node_book(struct facts *facts, const struct sightings *sightings, const struct node *node,
               struct span hours, const struct engine_options *options,
               struct node_book_result *ret);
void node_book_result_release(struct node_book_result *result);

#endif
