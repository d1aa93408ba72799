/* Samples of a segment's frames, put in order of series. Inside of the journal.
 *
 * A live batch has one sample a series: given as they come, everything behind would be called for
 * each. So frames are gathered, as packed as they are on disk, until there are GATHER_SAMPLES; then
 * each series' samples are laid side by side and given as one run.
 *
 * Frames that share no series need not be sorted together: they form groups, and a group is sorted
 * and given before the next, in the same memory. Senders and targets keep to their own series, so
 * that mostly a part of the fleet is in hand at a time and stays in the caches. Frames that may
 * share series keep their order: a series' samples are given as they were appended.
 *
 * Zero-initialise; one thread owns it. */
#ifndef GPUTALLY_SOURCE_JOURNAL_GATHER_H
#define GPUTALLY_SOURCE_JOURNAL_GATHER_H

#include "source/journal_frame.h"

#define GATHER_SAMPLES ((size_t)1 << 20)

struct gather {
    struct strbuf bytes; /* payloads of plain frames, one after the other */
    struct gather_frame *frames;
    size_t frames_n, frames_room;
    size_t samples;
    struct frame_samples scratch; /* of one frame */
    /* The group in hand, in order of series: those from `low` on. */
    uint32_t low, *place; /* where the samples of each series begin */
    size_t place_room;
    time_ms *t;
    double *v;
    size_t room;
};
void gather_release(struct gather *gather);
void gather_clear(struct gather *gather); /* drops what it has */

/* The samples of a frame that lie in the span, of series below series_n; raw: its unpacked payload.
 * False: they cannot be read, nothing is added. *ret_unknown is raised by the samples of other
 * series. */
bool gather_add(struct gather *gather, const struct frame *frame, struct str raw, struct span span,
                uint32_t series_n, uint64_t *ret_unknown);

/* Give everything, group by group. group: which series have samples now, [low, high), those for
 * which gather_has(). Then give() for each of them, by number. The gather is empty afterwards. */
struct gather_sink {
    void *context;
    void (*group)(void *context, const struct gather *gather, uint32_t low, uint32_t high);
    void (*give)(void *context, uint32_t series, const time_ms *t, const double *v, size_t n);
};
void gather_give(struct gather *gather, const struct gather_sink *sink);
static inline bool gather_has(const struct gather *gather, uint32_t series)
{
    return gather->place[series - gather->low + 1] > gather->place[series - gather->low];
}

#endif
