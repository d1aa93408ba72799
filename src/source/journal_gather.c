#include "source/journal_gather.h"

#include <stdlib.h>

#include "util/error.h"

struct gather_frame {
    size_t at, bytes; /* its payload */
    uint32_t count;
    uint32_t low, high; /* the smallest and the largest series in it */
    uint32_t order;     /* as they were added */
};

void gather_release(struct gather *gather)
{
    strbuf_release(&gather->bytes);
    frame_samples_release(&gather->scratch);
    free(gather->frames);
    free(gather->place);
    free(gather->t);
    free(gather->v);
    *gather = (struct gather){0};
}

void gather_clear(struct gather *gather)
{
    strbuf_clear(&gather->bytes);
    gather->frames_n = gather->samples = 0;
}

/* Keep what is in the span, of series that can be. */
static void cut(struct frame_samples *samples, struct span span, uint32_t series_n,
                uint64_t *ret_unknown)
{
    size_t kept = 0;
    for (size_t i = 0; i < samples->n; i++) {
        bool known = samples->number[i] >> 1 < series_n;
        *ret_unknown += !known;
        samples->number[kept] = samples->number[i];
        samples->t[kept] = samples->t[i];
        samples->v[kept] = samples->v[i];
        kept += known && samples->t[i] >= span.from && samples->t[i] <= span.to;
    }
    samples->n = kept;
}

static void add_frame(struct gather *gather, size_t at, size_t n, uint32_t low, uint32_t high)
{
    struct gather_frame frame = {.at = at,
                                 .bytes = gather->bytes.n - at,
                                 .count = (uint32_t)n,
                                 .low = low >> 1,
                                 .high = high >> 1,
                                 .order = (uint32_t)gather->frames_n};
    mem_push(gather->frames, gather->frames_n, gather->frames_room, frame);
    gather->samples += n;
}

/* A frame that is cut, or packed in another way: as a plain one of what is kept. */
static bool add_parts(struct gather *gather, const struct frame *frame, struct str raw,
                      struct span span, uint32_t series_n, uint64_t *ret_unknown)
{
    struct frame_samples *samples = &gather->scratch;
    samples->n = 0;
    if (!frame_samples_read(frame, raw, samples))
        return false;
    cut(samples, span, series_n, ret_unknown);
    if (samples->n == 0)
        return true;
    uint32_t low = UINT32_MAX, high = 0;
    for (size_t i = 0; i < samples->n; i++) {
        low = samples->number[i] < low ? samples->number[i] : low;
        high = samples->number[i] > high ? samples->number[i] : high;
    }
    size_t at = gather->bytes.n;
    frame_samples_put(samples, &gather->bytes);
    add_frame(gather, at, samples->n, low, high);
    return true;
}

bool gather_add(struct gather *gather, const struct frame *frame, struct str raw, struct span span,
                uint32_t series_n, uint64_t *ret_unknown)
{
    uint32_t low, high;
    bool whole = frame->plain && frame->first >= span.from && frame->last <= span.to;
    if (!whole)
        return add_parts(gather, frame, raw, span, series_n, ret_unknown);
    if (!frame_samples_check(frame, raw, &low, &high))
        return false;
    if (high >> 1 >= series_n)
        return add_parts(gather, frame, raw, span, series_n, ret_unknown);
    size_t at = gather->bytes.n;
    strbuf_add(&gather->bytes, raw);
    add_frame(gather, at, frame->count, low, high);
    return true;
}

/* ---- groups */

static int by_low(const void *a, const void *b)
{
    const struct gather_frame *x = a, *y = b;
    return (x->low > y->low) - (x->low < y->low);
}

static int by_order(const void *a, const void *b)
{
    const struct gather_frame *x = a, *y = b;
    return (x->order > y->order) - (x->order < y->order);
}

/* The samples of a frame, into scratch. */
static void read_frame(struct gather *gather, const struct gather_frame *frame)
{
    struct frame plain = {.kind = FRAME_SAMPLES, .plain = true, .count = frame->count};
    struct str raw = {gather->bytes.text + frame->at, frame->bytes};
    gather->scratch.n = 0;
    bool good = frame_samples_read(&plain, raw, &gather->scratch);
    invariant(good); /* it was looked at when it came */
}

static void make_room(struct gather *gather, size_t series, size_t samples)
{
    if (series + 1 > gather->place_room) {
        gather->place_room = series + 1;
        gather->place = mem_realloc(gather->place, gather->place_room, sizeof *gather->place);
    }
    memset(gather->place, 0, (series + 1) * sizeof *gather->place);
    if (samples <= gather->room)
        return;
    gather->room = samples;
    gather->t = mem_realloc(gather->t, samples, sizeof *gather->t);
    gather->v = mem_realloc(gather->v, samples, sizeof *gather->v);
}

/* The samples of scratch, each to the next place of its series. */
static void scatter(struct gather *gather, uint32_t *place, uint32_t low)
{
    const uint32_t *number = gather->scratch.number;
    const time_ms *from_t = gather->scratch.t;
    const double *from_v = gather->scratch.v;
    time_ms *t = gather->t;
    double *v = gather->v;
    for (size_t i = 0, n = gather->scratch.n; i < n; i++) {
        uint32_t at = place[(number[i] >> 1) - low]++;
        t[at] = from_t[i];
        v[at] = from_v[i];
    }
}

/* Frames in order of coming, of series [low, high]: their samples in order of series. */
static void sort_group(struct gather *gather, const struct gather_frame *frames, size_t n,
                       uint32_t high)
{
    size_t series = high - gather->low + 1, samples = 0;
    for (size_t f = 0; f < n; f++)
        samples += frames[f].count;
    make_room(gather, series, samples);
    uint32_t *place = gather->place, low = gather->low;
    for (size_t f = 0; f < n; f++) {
        struct str raw = {gather->bytes.text + frames[f].at, frames[f].bytes};
        frame_numbers_count(raw, frames[f].count, low, place + 1);
    }
    for (size_t i = 0; i < series; i++)
        place[i + 1] += place[i];
    for (size_t f = 0; f < n; f++) {
        read_frame(gather, &frames[f]);
        scatter(gather, place, low);
    }
    memmove(place + 1, place, series * sizeof *place);
    place[0] = 0;
}

void gather_give(struct gather *gather, const struct gather_sink *sink)
{
    struct gather_frame *frames = gather->frames;
    if (gather->frames_n)
        qsort(frames, gather->frames_n, sizeof *frames, by_low);
    for (size_t from = 0, to; from < gather->frames_n; from = to) {
        uint32_t low = frames[from].low, high = frames[from].high;
        for (to = from + 1; to < gather->frames_n && frames[to].low <= high; to++)
            high = frames[to].high > high ? frames[to].high : high;
        qsort(&frames[from], to - from, sizeof *frames, by_order);
        gather->low = low;
        sort_group(gather, &frames[from], to - from, high);
        sink->group(sink->context, gather, low, high + 1);
        for (uint32_t i = 0; i <= high - low; i++) {
            size_t first = gather->place[i], n = gather->place[i + 1] - first;
            if (n)
                sink->give(sink->context, low + i, gather->t + first, gather->v + first, n);
        }
    }
    gather_clear(gather);
}
