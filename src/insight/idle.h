/* The idle scan (semantics, section 10): verdicts for GPUs and nodes over complete days, and since
 * when they stand still. A pure function of the view. */
#ifndef GPUTALLY_INSIGHT_IDLE_H
#define GPUTALLY_INSIGHT_IDLE_H

#include "insight/instead.h"
#include "insight/view.h"

#define IDLE_UTIL_BELOW (NANO / 10)  /* average GPU_UTIL, 1e-9 */
#define IDLE_MEMORY_BELOW (NANO / 5) /* average memory used / total */
#define IDLE_POWER_BELOW                                                                           \
    (NANO / 100 * 15) /* average power / limit, and what `auto` never goes below */
#define IDLE_CPU_BELOW (NANO / 100 * 5)      /* highest mean of five minutes of the day */
#define IDLE_NETWORK_BELOW INT64_C(30000000) /* bytes in and out of a day */
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

/* The longest run of whole hours of the window without work, each observed for half or more; where
 * the last stretch is longer, that. */
struct idle_run {
    bool any;
    struct span span;
};

/* What a GPU did in the last three hours, for a badge: at work in some observed instant; or idle,
 * nine tenths of its time being observed. */
#define IDLE_BADGE_TABLE(X)                                                                        \
    X(UNKNOWN, "not enough data")                                                                  \
    X(IDLE, "idle 3 h")                                                                            \
    X(BUSY, "busy")
enum idle_badge {
#define X(name, word) BADGE_##name,
    IDLE_BADGE_TABLE(X)
#undef X
        BADGE_COUNT
};
extern const char *const idle_badge_words[BADGE_COUNT];
struct idle_recent {
    enum idle_badge badge;
    int64_t observed; /* 1e-9 of the up time in the three hours; 0 where it was not up */
};

struct idle_device {
    const struct view_device *device;
    enum idle_verdict verdict;
    bool unchecked[VIEW_SIGNALS]; /* on some day */
    int64_t power_below;          /* 1e-9 of the limit */
    struct idle_since since;
    struct idle_run longest;
    struct idle_recent recent;
    struct idle_day *days;
    size_t sufficient_days;
};

enum idle_host_signal { HOST_CPU, HOST_NETWORK, HOST_SIGNALS };
extern const char *const idle_host_words[HOST_SIGNALS]; /* "cpu", "network" */
struct idle_host_day {
    struct view_host host;
    enum idle_check check[HOST_SIGNALS];
    bool sufficient, failed; /* sufficient: for one of its GPUs */
};

/* The second pattern: the GPUs do next to nothing while the CPUs work. */
struct idle_cpu_bound {
    bool is;
    int64_t util;    /* 1e-9: GPU_UTIL over the node's GPUs and days; -1 not known */
    int64_t cpu_max; /* 1e-9, of the days; -1 not known */
    struct instead instead;
};

struct idle_node {
    const struct view_node *node;
    enum idle_verdict verdict;
    struct idle_device *devices;
    size_t devices_n;
    struct idle_since since;
    struct idle_run longest; /* of hours in which all its GPUs stood still */
    struct idle_recent recent;
    struct idle_host_day *days;
    bool unchecked[HOST_SIGNALS]; /* on some day */
    struct idle_cpu_bound cpu_bound;
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
/* Where only some of a node's GPUs are seen (store/lens.h): what is said of whole nodes is taken
 * back, but that one of its GPUs is at work. */
void idle_scan_doubt_nodes(struct idle_scan *scan);

/* idle_since.c: of some devices of one node. */
void idle_since_of(const struct view *view, const struct view_node *node,
                   const struct view_device *devices, size_t n, time_ms gap_ms,
                   struct idle_since *ret);

/* idle_host.c: the node's days from its devices' (judged), and whether its work is on the CPU. */
void idle_host_judge(struct idle_scan *scan, struct idle_node *node);

/* idle_recent.c: of some devices of one node; `longest` needs `since`. */
void idle_longest_of(const struct view *view, const struct view_device *devices, size_t n,
                     const struct idle_since *since, struct idle_run *ret);
void idle_recent_of(const struct view_device *devices, size_t n, struct idle_recent *ret);

#endif
