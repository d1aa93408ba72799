/* CPU and network of nodes: two more thresholds of a node's days, and the pattern in which the GPUs
 * stand still because the work is on the CPU. */
#include "insight/idle.h"

const char *const idle_host_words[HOST_SIGNALS] = {"cpu", "network"};

static enum idle_check check(int64_t value, int64_t below)
{
    return value < 0 ? IDLE_UNCHECKED : value < below ? IDLE_MET : IDLE_FAILED;
}

static void judge_days(struct idle_scan *scan, struct idle_node *node)
{
    size_t days_n = scan->view->days_n;
    node->days = arena_zalloc(&scan->arena, (days_n + 1) * sizeof *node->days);
    for (size_t d = 0; d < days_n; d++) {
        struct idle_host_day *day = &node->days[d];
        day->host = node->node->days[d];
        day->check[HOST_CPU] = check(day->host.cpu_max, IDLE_CPU_BELOW);
        day->check[HOST_NETWORK] = check(day->host.net_bytes, IDLE_NETWORK_BELOW);
        for (int s = 0; s < HOST_SIGNALS; s++) {
            day->failed |= day->check[s] == IDLE_FAILED;
            node->unchecked[s] |= day->check[s] == IDLE_UNCHECKED;
        }
        for (size_t i = 0; i < node->devices_n; i++)
            day->sufficient |= node->devices[i].days[d].sufficient;
    }
}

/* Daily means weighted by the time that each GPU was observed. */
static int64_t util_of(const struct idle_node *node, size_t days_n)
{
    wide_t sum = 0, ms = 0;
    for (size_t i = 0; i < node->devices_n; i++)
        for (size_t d = 0; d < days_n; d++) {
            const struct idle_day *day = &node->devices[i].days[d];
            if (day->mean[VIEW_UTIL] < 0)
                continue;
            sum += (wide_t)day->mean[VIEW_UTIL] * day->observed_ms;
            ms += day->observed_ms;
        }
    return ms > 0 ? (int64_t)(sum / ms) : -1;
}

static void find_cpu_bound(const struct view *view, struct idle_node *node)
{
    const struct view_node *of = node->node;
    struct idle_cpu_bound *ret = &node->cpu_bound;
    ret->cpu_max = -1;
    for (size_t d = 0; d < view->days_n; d++)
        if (of->days[d].cpu_max > ret->cpu_max)
            ret->cpu_max = of->days[d].cpu_max;
    ret->util = util_of(node, view->days_n);
    ret->is =
        ret->util >= 0 && ret->util < CPU_BOUND_UTIL_BELOW && ret->cpu_max > CPU_BOUND_CPU_ABOVE;
    if (!ret->is)
        return;
    const struct view_price *last = of->hours_n ? &of->hours[of->hours_n - 1] : NULL;
    struct instead_node wanted = {.cloud = names_text(view->names, of->cloud),
                                  .region = names_text(view->names, of->region),
                                  .at = view->window.to - 1,
                                  .priced = last && !(last->flags & FLAG_UNPRICED),
                                  .price = last ? last->price : 0,
                                  .requested_mcpu = of->requested_mcpu,
                                  .requested_memory_bytes = of->requested_memory_bytes};
    instead_find(view->prices, &wanted, &ret->instead);
}

void idle_host_judge(struct idle_scan *scan, struct idle_node *node)
{
    judge_days(scan, node);
    find_cpu_bound(scan->view, node);
}
