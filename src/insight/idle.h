/* The idle scan (semantics, section 10): verdicts for GPUs and nodes over complete days, and since
 * when they stand still. A pure function of the view. */
#ifndef GPUTALLY_INSIGHT_IDLE_H
#define GPUTALLY_INSIGHT_IDLE_H

#include "insight/view.h"

#define IDLE_UTIL_BELOW (NANO / 10)  /* average GPU_UTIL, 1e-9 */
#define IDLE_MEMORY_BELOW (NANO / 5) /* average memory used / total */
#define IDLE_POWER_BELOW                                                                           \
    (NANO / 100 * 15) /* average power / limit, and what `auto` never goes below */
#define IDLE_FLOOR_MARGIN (NANO / 100 * 5)   /* `auto`: so much above the learned floor */
#define IDLE_ADVICE_MS (3 * DAY_MS)          /* idle since: a finding where it lasted so long … */
#define IDLE_ADVICE_OBSERVED (NANO / 10 * 9) /* … and so much of it is observed */

enum idle_check { IDLE_UNCHECKED, IDLE_MET, IDLE_FAILED };
extern const char *const idle_check_words[];

/* X(NAME, "word in machine formats and for people") */
#define IDLE_VERDICT_TABLE(X)                                                                      \
    X(IDLE, "idle")                                                                                \
    X(PARTLY, "partly idle")                                                                       \
    X(NOT, "not idle")                                                                             \
    X(UNKNOWN, "not enough data")
enum idle_verdict {
#define X(name, word) VERDICT_##name,
    IDLE_VERDICT_TABLE(X)
#undef X
        VERDICT_COUNT
};
extern const char *const idle_verdict_words[VERDICT_COUNT];

struct idle_day {
    int64_t mean[VIEW_SIGNALS]; /* 1e-9, rounded to the nearest; -1 unchecked */
    enum idle_check check[VIEW_SIGNALS];
    int64_t up_ms, observed_ms, held_ms;
    bool sufficient, failed;
};

/* The last stretch up to now in which nothing ran. Gaps: unobserved time, to the hour: the hours of
 * [from, to) that it touches, and how much of them it is. */
struct idle_gap {
    struct span span;
    int64_t ms;
};
struct idle_since {
    bool any;
    struct span span;
    int64_t observed_ms;
    bool priced;    /* cost is known */
    money_t cost;   /* of the GPUs that stand still, over the span */
    money_t hourly; /* the last hour's price of these GPUs; priced */
    struct idle_gap *gaps;
    size_t gaps_n, gaps_room;
};
/* Has it lasted, and been seen, long enough to advise that something be stopped? */
bool idle_since_is_finding(const struct idle_since *since);

struct idle_device {
    const struct view_device *device;
    enum idle_verdict verdict;
    bool unchecked[VIEW_SIGNALS]; /* on some day */
    int64_t power_below;          /* 1e-9 of the limit */
    struct idle_since since;
    struct idle_day *days;
    size_t sufficient_days;
};

/* CPU and network of nodes are not collected: they are unchecked on every node. */
struct idle_node {
    const struct view_node *node;
    enum idle_verdict verdict;
    struct idle_device *devices;
    size_t devices_n;
    struct idle_since since;
};

struct idle_floor {
    name_t model;
    int64_t ratio; /* 1e-9 of the limit */
    int64_t samples;
};

struct idle_scan {
    const struct view *view;
    struct idle_device *devices; /* in the view's order */
    size_t devices_n;
    struct idle_node *nodes;
    size_t nodes_n;
    struct idle_floor *floors; /* learned ones */
    size_t floors_n, floors_room;
    struct arena arena;
};

/* gap_ms: settings.gap_ms. The view must live as long. */
struct idle_scan *idle_scan_new(const struct view *view, const struct idle_settings *settings,
                                time_ms gap_ms);
void idle_scan_free(struct idle_scan *scan); /* NULL is fine */

/* idle_since.c: of some devices of one node. */
void idle_since_of(const struct view *view, const struct view_node *node,
                   const struct view_device *devices, size_t n, time_ms gap_ms,
                   struct idle_since *ret);

#endif
