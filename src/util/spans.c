#include "util/spans.h"

#include <stdlib.h>

#include "util/memory.h"

void spans_push(struct spans *spans, time_ms from, time_ms to)
{
    if (from >= to)
        return;
    if (spans->n && spans->at[spans->n - 1].to == from) {
        spans->at[spans->n - 1].to = to;
        return;
    }
    struct span span = {from, to};
    mem_push(spans->at, spans->n, spans->room, span);
}

static int by_start(const void *a, const void *b)
{
    const struct span *x = a, *y = b;
    if (x->from != y->from)
        return x->from < y->from ? -1 : 1;
    return (x->to > y->to) - (x->to < y->to);
}

void spans_normalise(struct spans *spans)
{
    if (spans->n)
        qsort(spans->at, spans->n, sizeof *spans->at, by_start);
    size_t kept = 0;
    for (size_t i = 0; i < spans->n; i++) {
        struct span span = spans->at[i];
        if (kept && span.from <= spans->at[kept - 1].to) {
            if (span.to > spans->at[kept - 1].to)
                spans->at[kept - 1].to = span.to;
        } else {
            spans->at[kept++] = span;
        }
    }
    spans->n = kept;
}

size_t spans_after(const struct spans *spans, time_ms t)
{
    size_t low = 0, high = spans->n;
    while (low < high) {
        size_t mid = (low + high) / 2;
        if (spans->at[mid].to <= t)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

bool spans_hold(const struct spans *spans, time_ms t)
{
    size_t i = spans_after(spans, t);
    return i < spans->n && spans->at[i].from <= t;
}

void spans_without(struct span part, const struct spans *less, struct spans *out)
{
    time_ms from = part.from;
    for (size_t i = spans_after(less, part.from); i < less->n && less->at[i].from < part.to; i++) {
        spans_push(out, from, less->at[i].from);
        from = less->at[i].to;
    }
    spans_push(out, from, part.to);
}

void spans_release(struct spans *spans)
{
    free(spans->at);
    *spans = (struct spans){0};
}
