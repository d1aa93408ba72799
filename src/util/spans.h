/* Lists of half-open ranges, sorted and disjoint ("normal"). Zero-initialise; spans_release frees.
 */
#ifndef GPUTALLY_UTIL_SPANS_H
#define GPUTALLY_UTIL_SPANS_H

#include "util/clock.h"

struct spans {
    struct span *at;
    size_t n, room;
};
void spans_push(struct spans *spans, time_ms from, time_ms to); /* empty ones are dropped; joins to
                                                                   the last where they touch */
void spans_normalise(struct spans *spans);             /* sort, join those that touch or overlap */
bool spans_hold(const struct spans *spans, time_ms t); /* of normal ones; O(log n) */
/* Index of the first range that ends after t; n where none. */
size_t spans_after(const struct spans *spans, time_ms t);
/* out gets what is in [from, to) and not in `less` (normal). */
void spans_without(struct span part, const struct spans *less, struct spans *out);
void spans_release(struct spans *spans);

#endif
