#include "source/journal_gather.h"

#include <stdlib.h>

#include "util/error.h"

struct gather_frame {
    size_t at, bytes; /* its payload */
    uint32_t count;
    uint32_t low, high; /* the smallest and the largest series in it */
    uint32_t order;     /* as they were added */
};

/* Series of a tile that follow each other, at one stamp. */
struct gather_piece {
    uint32_t series, n; /* the first one's distance from the group's lowest */
    uint32_t value;     /* place of its value */
    time_ms t;
};

void gather_release(struct gather *gather)
{
    strbuf_release(&gather->bytes);
    frame_samples_release(&gather->scratch);
    free(gather->frames);
    free(gather->values);
    free(gather->pieces);
    free(gather->sorted);
    free(gather->tiles);
    free(gather->has);
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

/* Room for n items, whatever was in them. */
#define make_room(items, room, count)                                                              \
    do {                                                                                           \
        if ((count) > (room)) {                                                                    \
            free(items);                                                                           \
            (room) = (count);                                                                      \
            (items) = mem_alloc((room) * sizeof *(items));                                         \
        }                                                                                          \
    } while (0)

/* A stretch of a frame whose values begin at `values`, as pieces. */
static void add_pieces(struct gather *gather, const struct frame_stretch *stretch, uint32_t values)
{
    uint32_t series = stretch->series - gather->low, left = stretch->n;
    struct gather_piece piece = {.value = values + stretch->at, .t = stretch->t};
    memset(gather->has + series, true, left);
    for (; left; left -= piece.n) {
        uint32_t most = GATHER_TILE - series % GATHER_TILE;
        piece.series = series;
        piece.n = left < most ? left : most;
        mem_push(gather->pieces, gather->pieces_n, gather->pieces_room, piece);
        series += piece.n;
        piece.value += piece.n;
    }
}

/* Frames in order of coming: their values and pieces. */
static void take_frames(struct gather *gather, const struct gather_frame *frames, size_t n)
{
    uint32_t samples = 0;
    gather->pieces_n = 0;
    for (size_t f = 0; f < n; f++) {
        struct str raw = {gather->bytes.text + frames[f].at, frames[f].bytes};
        struct frame_stretches stretches = frame_stretches(raw, frames[f].count);
        struct frame_stretch stretch;
        frame_values_read(raw, frames[f].count, gather->values + samples);
        while (frame_stretch_next(&stretches, &stretch))
            add_pieces(gather, &stretch, samples);
        samples += frames[f].count;
    }
}

/* By tile, those of one in the order of coming. */
static void sort_pieces(struct gather *gather, size_t tiles_n)
{
    uint32_t *tiles = gather->tiles;
    memset(tiles, 0, (tiles_n + 1) * sizeof *tiles);
    make_room(gather->sorted, gather->sorted_room, gather->pieces_n);
    for (size_t i = 0; i < gather->pieces_n; i++)
        tiles[gather->pieces[i].series / GATHER_TILE + 1]++;
    for (size_t i = 0; i < tiles_n; i++)
        tiles[i + 1] += tiles[i];
    for (size_t i = 0; i < gather->pieces_n; i++)
        gather->sorted[tiles[gather->pieces[i].series / GATHER_TILE]++] = gather->pieces[i];
    memmove(tiles + 1, tiles, tiles_n * sizeof *tiles);
    tiles[0] = 0;
}

/* Frames in order of coming, of series up to `high`. */
static size_t sort_group(struct gather *gather, const struct gather_frame *frames, size_t n,
                         uint32_t high)
{
    size_t series = high - gather->low + 1, samples = 0;
    size_t tiles_n = (series + GATHER_TILE - 1) / GATHER_TILE;
    for (size_t f = 0; f < n; f++)
        samples += frames[f].count;
    make_room(gather->values, gather->values_room, samples);
    make_room(gather->has, gather->has_room, series);
    make_room(gather->tiles, gather->tiles_room, tiles_n + 1);
    memset(gather->has, false, series);
    take_frames(gather, frames, n);
    sort_pieces(gather, tiles_n);
    return tiles_n;
}

/* ---- giving */

/* Where the samples of each series of a tile begin; returns how many there are. */
static uint32_t count_tile(const struct gather_piece *pieces, size_t n,
                           uint32_t begin[GATHER_TILE + 1])
{
    memset(begin, 0, (GATHER_TILE + 1) * sizeof *begin);
    for (size_t p = 0; p < n; p++)
        for (uint32_t i = 0; i < pieces[p].n; i++)
            begin[pieces[p].series % GATHER_TILE + i + 1]++;
    for (uint32_t i = 0; i < GATHER_TILE; i++)
        begin[i + 1] += begin[i];
    return begin[GATHER_TILE];
}

/* The values of the pieces, each to the next place of its series. */
static void lay_tile(struct gather *gather, const struct gather_piece *pieces, size_t n,
                     const uint32_t begin[GATHER_TILE + 1])
{
    uint32_t place[GATHER_TILE];
    time_ms *t = gather->t;
    double *v = gather->v;
    memcpy(place, begin, sizeof place);
    for (size_t p = 0; p < n; p++) {
        const double *values = gather->values + pieces[p].value;
        uint32_t *to = place + pieces[p].series % GATHER_TILE;
        for (uint32_t i = 0, count = pieces[p].n; i < count; i++) {
            uint32_t at = to[i]++;
            t[at] = pieces[p].t;
            v[at] = values[i];
        }
    }
}

static void give_tile(struct gather *gather, size_t tile, const struct gather_sink *sink)
{
    const struct gather_piece *pieces = gather->sorted + gather->tiles[tile];
    size_t n = gather->tiles[tile + 1] - gather->tiles[tile];
    uint32_t begin[GATHER_TILE + 1], samples = count_tile(pieces, n, begin);
    if (samples > gather->room) {
        make_room(gather->t, gather->room, samples);
        free(gather->v);
        gather->v = mem_alloc(gather->room * sizeof *gather->v);
    }
    lay_tile(gather, pieces, n, begin);
    for (uint32_t i = 0; i < GATHER_TILE; i++)
        if (begin[i + 1] > begin[i])
            sink->give(sink->context, gather->low + (uint32_t)tile * GATHER_TILE + i,
                       gather->t + begin[i], gather->v + begin[i], begin[i + 1] - begin[i]);
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
        size_t tiles_n = sort_group(gather, &frames[from], to - from, high);
        sink->group(sink->context, gather, low, high + 1);
        for (size_t tile = 0; tile < tiles_n; tile++)
            give_tile(gather, tile, sink);
    }
    gather_clear(gather);
}
