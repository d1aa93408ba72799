/* Levels over time (ledger/load_book.h): how many pods, how much of what they ask for. */
#include <stdlib.h>

#include "ledger/load_book.h"

void sweep_add(struct sweep *sweep, struct span span, const int64_t delta[SWEEP_LEVELS])
{
    if (span.from >= span.to)
        return;
    struct sweep_event event = {.t = span.from};
    memcpy(event.delta, delta, sizeof event.delta);
    mem_push(sweep->events, sweep->n, sweep->room, event);
    event.t = span.to;
    for (int i = 0; i < SWEEP_LEVELS; i++)
        event.delta[i] = -delta[i];
    mem_push(sweep->events, sweep->n, sweep->room, event);
}

static int by_time(const void *a, const void *b)
{
    const struct sweep_event *x = a, *y = b;
    return (x->t > y->t) - (x->t < y->t);
}

/* All events of an instant, then the level: who goes as another comes is not there beside it. */
void sweep_hours(struct sweep *sweep, struct span hours, sweep_fn each, void *context)
{
    int64_t level[SWEEP_LEVELS] = {0};
    size_t next = 0;
    if (sweep->n)
        qsort(sweep->events, sweep->n, sizeof *sweep->events, by_time);
    for (time_ms hour = hours.from; hour < hours.to; hour += HOUR_MS) {
        int64_t most[SWEEP_LEVELS] = {0};
        wide_t level_ms[SWEEP_LEVELS] = {0};
        for (time_ms t = hour; t < hour + HOUR_MS;) {
            for (; next < sweep->n && sweep->events[next].t <= t; next++)
                for (int i = 0; i < SWEEP_LEVELS; i++)
                    level[i] += sweep->events[next].delta[i];
            time_ms until = next < sweep->n && sweep->events[next].t < hour + HOUR_MS
                                ? sweep->events[next].t
                                : hour + HOUR_MS;
            for (int i = 0; i < SWEEP_LEVELS; i++) {
                most[i] = level[i] > most[i] ? level[i] : most[i];
                level_ms[i] += (wide_t)level[i] * (until - t);
            }
            t = until;
        }
        each(context, hour, most, level_ms);
    }
}

void sweep_release(struct sweep *sweep)
{
    free(sweep->events);
    *sweep = (struct sweep){0};
}
