/* Which rows the idle scan shows: a node as one row where it stands still as a whole, else its GPUs
 * that do. */
#include "report/idle_rows.h"

#include <stdlib.h>

static bool is_finding(enum idle_verdict verdict, const struct idle_since *since)
{
    return verdict == VERDICT_IDLE || verdict == VERDICT_PARTLY || idle_since_is_finding(since);
}

static int dearest_first(const void *a, const void *b)
{
    const struct idle_row *left = a, *right = b;
    money_t l = left->since->any && left->since->priced ? left->since->cost : 0;
    money_t r = right->since->any && right->since->priced ? right->since->cost : 0;
    if (l != r)
        return l > r ? -1 : 1;
    return left->node != right->node
               ? (left->node < right->node ? -1 : 1)
               : (left->device > right->device) - (left->device < right->device);
}

struct idle_row *idle_rows(const struct idle_scan *scan, bool all, size_t *ret_n)
{
    struct idle_row *rows = NULL;
    size_t n = 0, room = 0;
    for (size_t i = 0; i < scan->nodes_n; i++) {
        const struct idle_node *node = &scan->nodes[i];
        bool advice = idle_since_is_finding(&node->since);
        bool whole = !all && is_finding(node->verdict, &node->since);
        struct idle_row row = {node,          NULL,          &node->since, &node->longest,
                               &node->recent, node->verdict, advice};
        if (whole && node->devices_n > 1)
            mem_push(rows, n, room, row);
        for (size_t d = 0; d < node->devices_n; d++) {
            const struct idle_device *device = &node->devices[d];
            row = (struct idle_row){node,
                                    device,
                                    &device->since,
                                    &device->longest,
                                    &device->recent,
                                    device->verdict,
                                    idle_since_is_finding(&device->since)};
            if (all ||
                (!(whole && node->devices_n > 1) && is_finding(device->verdict, &device->since)))
                mem_push(rows, n, room, row);
        }
    }
    if (!all && n)
        qsort(rows, n, sizeof *rows, dearest_first);
    *ret_n = n;
    return rows;
}

size_t idle_report_findings(const struct idle_scan *scan)
{
    size_t n;
    free(idle_rows(scan, false, &n));
    return n + idle_cpu_nodes(scan);
}

bool idle_host_works(const struct idle_node *node, size_t days_n)
{
    for (size_t d = 0; d < days_n; d++)
        if (node->days[d].sufficient && node->days[d].failed)
            return true;
    return false;
}

static const struct idle_device *devices_of(const struct idle_row *row, size_t *ret_n)
{
    *ret_n = row->device ? 1 : row->node->devices_n;
    return row->device ? row->device : row->node->devices;
}

int64_t idle_row_mean(const struct idle_row *row, size_t days_n, enum view_signal signal)
{
    size_t n;
    const struct idle_device *devices = devices_of(row, &n);
    int64_t most = -1;
    for (size_t i = 0; i < n; i++)
        for (size_t d = 0; d < days_n; d++)
            if (devices[i].days[d].sufficient && devices[i].days[d].mean[signal] > most)
                most = devices[i].days[d].mean[signal];
    return most;
}

int64_t idle_row_held(const struct idle_row *row, size_t days_n)
{
    size_t n;
    const struct idle_device *devices = devices_of(row, &n);
    wide_t held = 0, up = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t d = 0; d < days_n; d++) {
            held += devices[i].days[d].held_ms;
            up += devices[i].days[d].up_ms;
        }
    return up > 0 ? (int64_t)(held * NANO / up) : -1;
}
