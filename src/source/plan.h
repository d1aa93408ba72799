/* Which question to ask next: the wanted metrics over their times, cut into pieces.
 *
 * A lane is one metric. Its pieces are asked one after the other, since the samples of a series
 * must be delivered by one thread at a time; several lanes run at once. A lane's pieces begin at a
 * given length, grow while answers are small, and are halved when the server finds one too large.
 * Threads: any thread may take and give back pieces (a lock); plan_take waits. */
#ifndef GPUTALLY_SOURCE_PLAN_H
#define GPUTALLY_SOURCE_PLAN_H

#include "fleet/intake.h"

#define PLAN_STEP_MIN_MS ((time_ms)60 * 1000)

struct plan_lane {
    const struct wanted_metric *metric;
    time_ms first, last; /* still to be read, both inclusive */
};

struct piece {
    const struct wanted_metric *metric;
    time_ms first, last; /* both inclusive */
    size_t lane;
};

struct plan;
/* lanes in order of reading; step_ms: length of the first piece of each; TIME_MAX: all of it, and
 * pieces do not grow. target: samples that a piece should have. */
struct plan *plan_new(const struct plan_lane *lanes, size_t n, time_ms step_ms, uint64_t target);
void plan_free(struct plan *plan); /* NULL is fine */

/* The next piece; waits while all lanes that have more are busy. False: nothing is left, or
 * plan_stop was called. */
bool plan_take(struct plan *plan, struct piece *ret);
/* The piece was read and had so many samples. */
void plan_done(struct plan *plan, const struct piece *piece, uint64_t samples);
/* The piece is too large: it comes again, halved. False where it cannot be halved any more. */
bool plan_halve(struct plan *plan, const struct piece *piece);
/* Let everybody go home. */
void plan_stop(struct plan *plan);
bool plan_finished(struct plan *plan);
double plan_progress(struct plan *plan); /* 0..1 */

#endif
