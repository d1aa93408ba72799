#include "ledger/cuts.h"

#include <stdlib.h>

static void add(struct cuts *cuts, time_ms low, time_ms high, time_ms t)
{
    if (t > low && t < high)
        mem_push(cuts->at, cuts->n, cuts->room, t);
}

static void add_spans(struct cuts *cuts, time_ms low, time_ms high, const struct spans *spans)
{
    for (size_t i = spans_after(spans, low); i < spans->n && spans->at[i].from < high; i++) {
        add(cuts, low, high, spans->at[i].from);
        add(cuts, low, high, spans->at[i].to);
    }
}

/* When pods of these names come and go. */
static void add_pods(struct cuts *cuts, const struct facts *facts, name_t cluster, time_ms low,
                     time_ms high, const struct named_set *set)
{
    for (size_t k = 0; k < set->n; k++) {
        uint32_t at =
            idmap_get(&facts->pods_named, IDKEY(cluster, set->at[k].namespace, set->at[k].pod));
        for (size_t i = 0; at != IDMAP_NONE && i < facts->by_name[at].n; i++) {
            const struct pod *pod = &facts->pods[facts->by_name[at].pods[i]];
            add(cuts, low, high, pod->since);
            add(cuts, low, high, pod->until);
            add_spans(cuts, low, high, &pod->not_holding);
        }
    }
}

static void add_line(struct cuts *cuts, const struct facts *facts, const struct device *device,
                     const struct timeline *line, time_ms low, time_ms high)
{
    const time_ms *stamps = device->own.t;
    add_spans(cuts, low, high, &line->covered);
    size_t first = 0, last = line->labels_n;
    while (first < last) {
        size_t mid = (first + last) / 2;
        if (stamps[line->labels[mid].i1] < low)
            first = mid + 1;
        else
            last = mid;
    }
    for (size_t r = first; r < line->labels_n && line->labels[r].start <= high; r++) {
        const struct label_run *run = &line->labels[r];
        add(cuts, low, high, run->start);
        add(cuts, low, high, stamps[run->i0]);
        add(cuts, low, high, stamps[run->i1]);
        add_pods(cuts, facts, device->cluster, low, high, run->set);
    }
}

static int by_time(const void *a, const void *b)
{
    time_ms x = *(const time_ms *)a, y = *(const time_ms *)b;
    return (x > y) - (x < y);
}

void cuts_find(struct cuts *cuts, const struct facts *facts, const struct node *node,
               const struct life *life, time_ms low, time_ms high, time_ms more)
{
    cuts->n = 0;
    mem_push(cuts->at, cuts->n, cuts->room, low);
    mem_push(cuts->at, cuts->n, cuts->room, high);
    add(cuts, low, high, more);
    for (time_ms hour = hour_floor(low) + HOUR_MS; hour < high; hour += HOUR_MS)
        add(cuts, low, high, hour);
    for (size_t i = 0; i < life->mounts_n; i++) {
        const struct mount *mount = &life->mounts[i];
        const struct device *device = mount->device;
        add(cuts, low, high, mount->since);
        add(cuts, low, high, mount->until);
        for (size_t k = 0; k < device->layouts_n; k++)
            add(cuts, low, high, device->layouts[k].since);
        add_line(cuts, facts, device, &device->own, low, high);
        for (size_t k = 0; k < device->instances_n; k++)
            add_line(cuts, facts, device, &device->instances[k].line, low, high);
        add_spans(cuts, low, high, &device->lost);
    }
    for (size_t i = 0; i < node->pods_n; i++)
        add_spans(cuts, low, high, &facts->pods[node->pods[i]].counted);
    add_spans(cuts, low, high, &node->cordoned);
    for (size_t i = 0; i < node->shortages_n; i++) {
        add(cuts, low, high, node->shortages[i].span.from);
        add(cuts, low, high, node->shortages[i].span.to);
    }
    add_spans(cuts, low, high, &node->watch->known);
    qsort(cuts->at, cuts->n, sizeof *cuts->at, by_time);
    size_t kept = 0;
    for (size_t i = 0; i < cuts->n; i++)
        if (kept == 0 || cuts->at[i] != cuts->at[kept - 1])
            cuts->at[kept++] = cuts->at[i];
    cuts->n = kept;
}

void cuts_release(struct cuts *cuts)
{
    free(cuts->at);
    *cuts = (struct cuts){0};
}
