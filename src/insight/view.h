/* What the idle scan reads: what every GPU and its host did on each of the days, and hour by hour
 * since the GPU last worked. Built once from the store, through query/; then read-only.
 *
 * Sums of ratios are ms x 1e-9, each over its own seen time. One thread. */
#ifndef GPUTALLY_INSIGHT_VIEW_H
#define GPUTALLY_INSIGHT_VIEW_H

#include "fleet/config.h"
#include "query/hours.h"
#include "util/names.h"

enum view_signal { VIEW_UTIL, VIEW_MEMORY, VIEW_POWER, VIEW_SIGNALS };
extern const char *const view_signal_words[VIEW_SIGNALS]; /* "util", "memory", "power" */

struct view_sum {
    int64_t up_ms, covered_ms, held_ms;
    wide_t sum[VIEW_SIGNALS];
    int64_t seen_ms[VIEW_SIGNALS];
};

/* Times as in struct device_hour. */
struct view_hour {
    time_ms hour, worked_until, idle_from;
    int64_t up_ms, observed_ms, idle_after_ms;
};

/* The last VIEW_RECENT_MS of the window. */
#define VIEW_RECENT_MS (3 * HOUR_MS)
struct view_recent {
    int64_t up_ms, observed_ms;
    bool worked; /* some observed instant was low or busy */
};

/* Hours that are remembered one by one, for the longest run: the last year of the window. */
#define VIEW_STILL_HOURS_MAX (366 * 24)

struct view_device {
    name_t cluster, node, device, model; /* node: where it was last */
    struct view_sum *days;               /* [view.days_n] */
    uint64_t *still; /* [view_still_words()], bit h: in the h-th hour of view.still it stood still
                        on that node, observed for half of the time or more */
    struct view_recent recent;
    struct view_hour *tail; /* from the hour in which it last worked on */
    size_t tail_n, tail_room;
    int64_t limit_mw; /* where no series says it; 0 unknown */
};

struct view_price {
    time_ms hour;
    money_t price; /* an hour */
    int32_t gpus;
    int64_t up_ms;
    uint32_t flags;
};

/* What a node's host did on a day; -1 where it is not known. */
struct view_host {
    int64_t cpu_max;   /* 1e-9: the highest mean of five minutes */
    int64_t net_bytes; /* in and out */
};

struct view_node {
    name_t cluster, node, instance_type, pool, region, cloud;
    enum capacity_type capacity;
    size_t first, n;          /* of view.devices */
    struct view_price *hours; /* ascending */
    size_t hours_n, hours_room;
    struct view_host *days;                         /* [view.days_n] */
    int64_t requested_mcpu, requested_memory_bytes; /* the most at a time on these days; -1 */
    int64_t cpus;                                   /* -1 */
};

/* What a model drew in hours in which nobody held the GPU and nothing ran. */
struct view_floor_hour {
    int64_t ratio; /* 1e-9 of the limit */
    int64_t samples;
};
struct view_floor {
    name_t model;
    struct view_floor_hour *hours; /* in no order */
    size_t n, room;
};

struct view {
    struct names *names;
    struct span window;
    struct span *days; /* oldest first; inside or before the window */
    size_t days_n;
    struct view_device *devices; /* by cluster, node, device */
    size_t devices_n, devices_room;
    struct view_node *nodes; /* that have devices; by cluster, node */
    size_t nodes_n, nodes_room;
    struct view_floor *floors; /* one a model */
    size_t floors_n, floors_room;
    struct span still;           /* whole hours: what the bits of view_device.still are about */
    const struct prices *prices; /* borrowed; NULL: the catalogue alone */
};
static inline size_t view_still_hours(const struct view *view)
{
    return (size_t)((view->still.to - view->still.from) / HOUR_MS);
}
static inline size_t view_still_words(const struct view *view)
{
    return (view_still_hours(view) + 63) / 64;
}

struct view_options {
    struct span window; /* whole hours; the days are the last complete ones before its end */
    int days;
    const char *tz;
    const struct power_limit *limits; /* configured */
    size_t limits_n;
    const struct prices *prices; /* what could be rented instead; NULL: the catalogue alone */
};
enum err view_read(struct store *store, const struct view_options *options, struct view **ret,
                   struct error *err);
void view_free(struct view *view); /* NULL is fine */

#endif
