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
 * It is not samples that are sorted but pieces: series that follow each other at one stamp, cut at
 * the edges of tiles of GATHER_TILE series. What is then laid side by side at a time is a tile, in
 * a few KiB.
 *
 * Zero-initialise; one thread owns it. */
#ifndef GPUTALLY_SOURCE_JOURNAL_GATHER_H
#define GPUTALLY_SOURCE_JOURNAL_GATHER_H

#include "source/journal_frame.h"

#define GATHER_SAMPLES ((size_t)1 << 20)
#define GATHER_TILE 16u

struct gather {
    struct strbuf bytes; /* payloads of plain frames, one after the other */
    struct gather_frame *frames;
    size_t frames_n, frames_room;
    size_t samples;
    struct frame_samples scratch; /* of one frame */
    /* The group in hand, of series from `low` on: values frame by frame, pieces of them, … */
    uint32_t low;
    double *values;
    size_t values_room;
    struct gather_piece *pieces, *sorted; /* sorted: by tile */
    size_t pieces_n, pieces_room, sorted_room;
    uint32_t *tiles; /* where the pieces of each tile begin */
    bool *has;       /* of each series: any samples */
    size_t tiles_room, has_room;
    /* … and a tile's samples in order of series. */
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
    return gather->has[series - gather->low];
}

#endif
