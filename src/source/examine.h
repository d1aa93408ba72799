/* What a source says of itself when it is asked, for `doctor`: not what GPUs did, but how it was
 * measured. The figures of the ledger cannot show these: clocks that differ, targets that are down,
 * values that are stored twice, labels that an allow-list hides, and what it costs to keep.
 *
 * An examination asks for the last hour of the window. A question that the source cannot answer
 * stays unasked, which is told apart from "nothing found". */
#ifndef GPUTALLY_SOURCE_EXAMINE_H
#define GPUTALLY_SOURCE_EXAMINE_H

#include "util/clock.h"
#include "util/error.h"
#include "util/memory.h"

/* X(NAME, "id of the doctor's check") */
#define EXAM_TABLE(X)                                                                              \
    X(CLOCK, "clock")             /* clocks of nodes, or ours, against the server's */             \
    X(DOWN, "down")               /* exporters that do not answer */                               \
    X(OVERSAMPLED, "oversampled") /* scraped more often than the exporter measures */              \
    X(HIDDEN, "hidden-labels")    /* labels that kube-state-metrics does not let through */        \
    X(SERIES, "series")           /* what is kept, and what of it is read here */

enum exam_kind {
#define X(name, id) EXAM_##name,
    EXAM_TABLE(X)
#undef X
        EXAM_COUNT
};
extern const char *const exam_ids[EXAM_COUNT];

#define EXAM_ITEMS_MAX 1000 /* of a kind; more are counted only */

struct exam_item {
    enum exam_kind kind;
    struct str text;
    int64_t count; /* seconds of a clock, targets, series, …; what orders the items */
};

struct exam {
    bool asked[EXAM_COUNT]; /* the source answered */
    size_t found[EXAM_COUNT];
    struct exam_item *items;
    size_t n, room;
    struct arena arena;
};
void exam_release(struct exam *exam);
/* Text is kept. */
void exam_add(struct exam *exam, enum exam_kind kind, int64_t count, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

#endif
