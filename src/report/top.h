/* The live view of `gputally top`: GPUs now, as /api/v1/gpus says, on a screen of text. Reading and
 * drawing are pure; the terminal is cmd/'s. One thread. */
#ifndef GPUTALLY_REPORT_TOP_H
#define GPUTALLY_REPORT_TOP_H

#include "util/clock.h"
#include "util/error.h"
#include "util/memory.h"
#include "util/money.h"

#define TOP_GPUS_MAX 200000

/* A GPU. Absent: empty texts, -1, TIME_MIN. Texts live in the list's arena. */
struct top_gpu {
    struct str cluster, node, device, model;
    struct str namespace, workload, team; /* the holder; empty namespace: nobody; workload: else the
                                             pod */
    int64_t util, sm;                     /* 1e-9 */
    int64_t memory_used, memory_total;    /* bytes */
    int64_t power_w;
    money_t price_hour; /* -1 unpriced */
    time_ms idle_since, at;
    bool of_hour; /* means of the hour that ends at `at`; else values of samples */
    int index;    /* of its node, in order of device */
};
struct top_list {
    struct top_gpu *gpus;
    size_t n, room;
    struct arena arena;
};
void top_list_release(struct top_list *list);
/* The answer of /api/v1/gpus. ERR_PARSE. */
enum err top_read(struct str json, struct top_list *ret, struct error *err);

/* The currency that /api/v1/meta says; "USD" where it says none. */
void top_currency(struct str json, char *ret, size_t room);

/* X(ID, "word") */
#define TOP_SORT_TABLE(X)                                                                          \
    X(NODE, "node")                                                                                \
    X(COST, "cost")                                                                                \
    X(IDLE, "idle")                                                                                \
    X(USE, "use")                                                                                  \
    X(MEMORY, "memory")                                                                            \
    X(POWER, "power")
enum top_sort {
#define X(id, word) TOP_SORT_##id,
    TOP_SORT_TABLE(X)
#undef X
        TOP_SORTS
};
extern const char *const top_sort_words[TOP_SORTS];

struct top_view {
    enum top_sort sort; /* largest first; by node in order of names */
    struct str filter;  /* a part of node, workload, team or model; team=NAME; empty: all */
    bool teams;         /* one row a team */
    size_t offset;      /* rows above the screen */
    size_t lines, columns;
    bool colour;
    bool typing; /* the filter is being typed */
    time_ms now;
    const char *title, *currency;
    const char *trouble; /* why the figures are old; NULL: they are not */
};
/* A screen of view->lines lines (0: everything), each at most view->columns wide. Orders the list.
 * Returns how many rows there are, for scrolling. */
size_t top_render(struct top_list *list, const struct top_view *view, struct strbuf *out);

#endif
