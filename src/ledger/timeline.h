/* The time of one device or MIG instance: from rows (samples at stamps) to pieces (what was so
 * during which time). (semantics, section 4)
 *
 *      rows:    t0      t1      t2   ·  gap  ·     t5
 *      pieces:  [t0-step,t0)[t0,t1)[t1,t2)    [t5-step,t5)
 *
 * A sample describes the time that ended at it: back to the previous sample of the same signal
 * where that is within the gap, else one step. Each signal covers time by its own samples; a piece
 * is a stretch in which none of them changes. Where all signals come in every scrape, which is the
 * rule, there is one piece a row. Columns, since the booking walks few signals over many rows. */
#ifndef GPUTALLY_LEDGER_TIMELINE_H
#define GPUTALLY_LEDGER_TIMELINE_H

#include "fleet/intake_data.h"
#include "util/spans.h"

/* Who is named on a slot at a stamp: holders with the replicas that the exporter counts for each.
 */
struct named {
    name_t namespace, pod, container;
    uint32_t replicas;
};
struct named_set {
    struct named *at; /* in byte order of (namespace, pod, container) */
    size_t n;
};
/* From this row on, these are named (NULL: nobody). */
struct named_from {
    size_t row;
    const struct named_set *set;
};
/* A stretch of stamps of the device, [i0, i1], at which the same holders are named; it covers
 * [start, t[i1]). */
struct label_run {
    time_ms start;
    size_t i0, i1; /* into the device's stamps */
    const struct named_set *set;
};

#define PIECE_STEP 1  /* the sample that gives u was taken as a step */
#define PIECE_STUCK 2 /* its profiling counters were stuck */

struct timeline {
    /* rows; freed once the pieces are made */
    time_ms *t;
    size_t n, room;
    int64_t *column[SIGNAL_COUNT]; /* NULL: no such signal */
    uint8_t *stuck;                /* NULL: nowhere */
    struct named_from *names;      /* in order of row; nobody before the first */
    size_t names_n, names_room;
    /* pieces */
    time_ms *from, *to; /* to: the rows' t where every row is a piece */
    size_t pieces_n, pieces_room;
    int64_t *piece[SIGNAL_COUNT]; /* of the signals that are booked; the row's column where
                                     every row is a piece */
    uint8_t *flags;               /* NULL: none anywhere */
    struct span *e_span;          /* of the sample that gives e, NULL: always the piece itself */
    struct spans covered, active; /* some signal; some activity */
    /* labels */
    struct label_run *labels;
    size_t labels_n, labels_room;
};

/* Start of what each stamp covers, with its predecessor within the gap, else a step. */
static inline time_ms cover_start(const time_ms *t, size_t i, const struct settings *settings)
{
    return i > 0 && t[i] - t[i - 1] <= settings->gap_ms ? t[i - 1] : t[i] - settings->step_ms;
}

/* From `row` on, `set` is named; rows in order. */
void timeline_name(struct timeline *line, size_t row, const struct named_set *set);
/* Has the line's every row every one of its signals? O(rows) a signal, until one is missing. */
bool timeline_is_full(const struct timeline *line);
void timeline_add_column(struct timeline *line, enum signal signal); /* filled with absent */
bool timeline_row_has_any(const struct timeline *line, size_t row);
void timeline_make_pieces(struct timeline *line, const struct settings *settings);
/* Index of the first piece that ends after t. O(log n). */
size_t timeline_piece_after(const struct timeline *line, time_ms t);
/* Memory of the device in piece i: FB_TOTAL, else USED + FREE + RESERVED; 0 where not known. */
int64_t timeline_memory_total(const struct timeline *line, size_t i);
/* The label run that covers t, or NULL. */
const struct label_run *timeline_named_at(const struct timeline *line, const time_ms *stamps,
                                          time_ms t);
void timeline_drop_rows(struct timeline *line);
void timeline_release(struct timeline *line);

#endif
