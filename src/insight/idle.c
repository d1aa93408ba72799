/* Verdicts. A threshold that failed on a day with enough data decides, whatever the other days are;
 * only what could still be idle is called "not enough data". */
#include "insight/idle.h"

#include <stdlib.h>

const char *const idle_check_words[] = {"unchecked", "met", "failed"};
const char *const idle_verdict_words[VERDICT_COUNT] = {
#define X(name, word) word,
    IDLE_VERDICT_TABLE(X)
#undef X
};

/* The ratio up to which half of the samples lie. Reorders the hours; O(n) on average. */
static int64_t median(struct view_floor_hour *hours, size_t n, int64_t samples)
{
    int64_t before = 0;
    for (;;) {
        int64_t pivot = hours[n / 2].ratio, below = 0, same = 0;
        size_t less = 0, equal = 0;
        for (size_t i = 0; i < n; i++) {
            struct view_floor_hour hour = hours[i];
            if (hour.ratio > pivot)
                continue;
            hours[i] = hours[less + equal];
            if (hour.ratio == pivot) {
                hours[less + equal++] = hour;
                same += hour.samples;
                continue;
            }
            hours[less + equal] = hours[less];
            hours[less++] = hour;
            below += hour.samples;
        }
        if (2 * (before + below) >= samples && less) {
            n = less;
        } else if (2 * (before + below + same) >= samples || less + equal == n) {
            return pivot;
        } else {
            before += below + same;
            hours += less + equal;
            n -= less + equal;
        }
    }
}

static void learn_floors(struct idle_scan *scan, int64_t least)
{
    for (size_t i = 0; i < scan->view->floors_n; i++) {
        const struct view_floor *of = &scan->view->floors[i];
        int64_t samples = 0;
        for (size_t k = 0; k < of->n; k++)
            samples += of->hours[k].samples;
        if (samples < least)
            continue;
        struct idle_floor floor = {of->model, median(of->hours, of->n, samples), samples};
        mem_push(scan->floors, scan->floors_n, scan->floors_room, floor);
    }
}

static int64_t power_below(const struct idle_scan *scan, const struct idle_settings *settings,
                           name_t model)
{
    if (!settings->power_auto)
        return settings->power_below;
    int64_t below = IDLE_POWER_BELOW;
    for (size_t i = 0; i < scan->floors_n; i++)
        if (scan->floors[i].model == model && scan->floors[i].ratio + IDLE_FLOOR_MARGIN > below)
            below = scan->floors[i].ratio + IDLE_FLOOR_MARGIN;
    return below;
}

static void judge_day(struct idle_day *ret, const struct view_sum *sum,
                      const int64_t below[VIEW_SIGNALS])
{
    *ret = (struct idle_day){
        .up_ms = sum->up_ms, .observed_ms = sum->covered_ms, .held_ms = sum->held_ms};
    ret->sufficient = sum->up_ms > 0 && 2 * sum->covered_ms >= sum->up_ms;
    for (int s = 0; s < VIEW_SIGNALS; s++) {
        int64_t seen = sum->seen_ms[s];
        ret->mean[s] = seen > 0 ? (int64_t)((sum->sum[s] + seen / 2) / seen) : -1;
        ret->check[s] = seen <= 0                               ? IDLE_UNCHECKED
                        : sum->sum[s] < (wide_t)below[s] * seen ? IDLE_MET
                                                                : IDLE_FAILED;
        ret->failed |= ret->check[s] == IDLE_FAILED;
    }
}

static void judge_device(struct idle_scan *scan, const struct idle_settings *settings,
                         struct idle_device *ret)
{
    size_t days_n = scan->view->days_n;
    bool failed = false, anything = false;
    ret->power_below = power_below(scan, settings, ret->device->model);
    const int64_t below[VIEW_SIGNALS] = {IDLE_UTIL_BELOW, IDLE_MEMORY_BELOW, ret->power_below};
    ret->days = arena_zalloc(&scan->arena, (days_n + 1) * sizeof *ret->days);
    for (size_t d = 0; d < days_n; d++) {
        struct idle_day *day = &ret->days[d];
        judge_day(day, &ret->device->days[d], below);
        failed |= day->sufficient && day->failed;
        ret->sufficient_days += day->sufficient;
        for (int s = 0; s < VIEW_SIGNALS; s++) {
            ret->unchecked[s] |= day->check[s] == IDLE_UNCHECKED;
            anything |= day->check[s] != IDLE_UNCHECKED;
        }
    }
    ret->verdict = failed                                                  ? VERDICT_NOT
                   : !anything || ret->sufficient_days < days_n || !days_n ? VERDICT_UNKNOWN
                                                                           : VERDICT_IDLE;
}

/* A node's own thresholds, judged as those of a GPU are. */
static enum idle_verdict host_verdict(const struct idle_node *node, size_t days_n)
{
    bool failed = false, sufficient = true;
    for (size_t d = 0; d < days_n; d++) {
        failed |= node->days[d].sufficient && node->days[d].failed;
        sufficient &= node->days[d].sufficient;
    }
    return failed ? VERDICT_NOT : sufficient ? VERDICT_IDLE : VERDICT_UNKNOWN;
}

/* The worst of its GPUs and its own; a GPU that is idle on a node that is not is partly idle. */
static void judge_node(struct idle_scan *scan, struct idle_node *node)
{
    idle_host_judge(scan, node);
    enum idle_verdict host = host_verdict(node, scan->view->days_n);
    bool busy = host == VERDICT_NOT, unknown = host == VERDICT_UNKNOWN;
    for (size_t i = 0; i < node->devices_n; i++) {
        busy |= node->devices[i].verdict == VERDICT_NOT;
        unknown |= node->devices[i].verdict == VERDICT_UNKNOWN;
    }
    node->verdict = busy ? VERDICT_NOT : unknown ? VERDICT_UNKNOWN : VERDICT_IDLE;
    for (size_t i = 0; busy && i < node->devices_n; i++)
        if (node->devices[i].verdict == VERDICT_IDLE)
            node->devices[i].verdict = VERDICT_PARTLY;
}

static void judge_streaks(const struct view *view, struct idle_node *node, time_ms gap_ms)
{
    const struct view_device *devices = node->devices->device;
    for (size_t d = 0; d < node->devices_n; d++) {
        struct idle_device *device = &node->devices[d];
        idle_since_of(view, node->node, device->device, 1, gap_ms, &device->since);
        idle_longest_of(view, device->device, 1, &device->since, &device->longest);
        idle_recent_of(device->device, 1, &device->recent);
    }
    idle_since_of(view, node->node, devices, node->devices_n, gap_ms, &node->since);
    idle_longest_of(view, devices, node->devices_n, &node->since, &node->longest);
    idle_recent_of(devices, node->devices_n, &node->recent);
}

struct idle_scan *idle_scan_new(const struct view *view, const struct idle_settings *settings,
                                time_ms gap_ms)
{
    struct idle_scan *scan = mem_zalloc(1, sizeof *scan);
    scan->view = view;
    scan->devices_n = view->devices_n;
    scan->devices = mem_zalloc(view->devices_n, sizeof *scan->devices);
    scan->nodes_n = view->nodes_n;
    scan->nodes = mem_zalloc(view->nodes_n, sizeof *scan->nodes);
    learn_floors(scan, settings->floor_samples);
    for (size_t i = 0; i < view->nodes_n; i++) {
        struct idle_node *node = &scan->nodes[i];
        node->node = &view->nodes[i];
        node->devices = scan->devices + node->node->first;
        node->devices_n = node->node->n;
        for (size_t d = 0; d < node->devices_n; d++) {
            struct idle_device *device = &node->devices[d];
            device->device = &view->devices[node->node->first + d];
            judge_device(scan, settings, device);
        }
        judge_node(scan, node);
        judge_streaks(view, node, gap_ms);
    }
    return scan;
}

void idle_scan_doubt_nodes(struct idle_scan *scan)
{
    for (size_t i = 0; i < scan->nodes_n; i++) {
        struct idle_node *node = &scan->nodes[i];
        if (node->verdict == VERDICT_IDLE)
            node->verdict = VERDICT_UNKNOWN;
        node->since.any = node->longest.any = false;
        node->recent = (struct idle_recent){BADGE_UNKNOWN, 0};
    }
}

void idle_scan_free(struct idle_scan *scan)
{
    if (!scan)
        return;
    for (size_t i = 0; i < scan->devices_n; i++)
        free(scan->devices[i].since.gaps);
    for (size_t i = 0; i < scan->nodes_n; i++)
        free(scan->nodes[i].since.gaps);
    free(scan->devices);
    free(scan->nodes);
    free(scan->floors);
    arena_release(&scan->arena);
    free(scan);
}
