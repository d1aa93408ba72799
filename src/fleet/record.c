/* Records as runs (fleet/intake_data.h): kube-state-metrics says the same at every scrape, so days
 * of a series are a few runs. */
#include "fleet/intake_data.h"

#include <stdlib.h>

name_t record_label(const struct record *record, name_t name)
{
    for (uint32_t i = 0; i < record->labels_n; i++)
        if (record->labels[i].name == name)
            return record->labels[i].value;
    return NAME_NONE;
}

static bool same_value(double a, double b)
{
    return memcmp(&a, &b, sizeof a) == 0;
}

void record_add(struct record *record, time_ms t, double v)
{
    if (record->n) {
        struct run *run = &record->runs[record->n - 1];
        time_ms last = run_last(run);
        if (t <= last) {
            if (t == last && same_value(v, run->v))
                return;
            record->unsorted = true;
        } else if (same_value(v, run->v) && !record->unsorted && run->n < UINT32_MAX) {
            if (run->n == 1)
                run->dt = t - run->t0;
            if (t - last == run->dt) {
                run->n++;
                return;
            }
        }
    }
    struct run fresh = {.t0 = t, .dt = 0, .v = v, .n = 1};
    mem_push(record->runs, record->n, record->room, fresh);
}

static int by_start(const void *a, const void *b)
{
    const struct run *x = a, *y = b;
    return (x->t0 > y->t0) - (x->t0 < y->t0);
}

void record_settle(struct record *record)
{
    if (!record->unsorted)
        return;
    struct run *singles = NULL;
    size_t n = 0, room = 0;
    for (size_t i = 0; i < record->n; i++)
        for (uint32_t k = 0; k < record->runs[i].n; k++) {
            struct run one = {.t0 = record->runs[i].t0 + record->runs[i].dt * (time_ms)k,
                              .v = record->runs[i].v,
                              .n = 1};
            mem_push(singles, n, room, one);
        }
    qsort(singles, n, sizeof *singles, by_start);
    record->n = 0;
    record->unsorted = false;
    for (size_t i = 0; i < n; i++)
        if (i == 0 || singles[i].t0 != singles[i - 1].t0)
            record_add(record, singles[i].t0, singles[i].v);
    free(singles);
}
