/* Chunks hold 120 samples and handing samples to the intake takes locks, so that chunks are decoded
 * one behind the other into two columns that fit into the cache, and handed on in thousands. */
#include "source/delivery.h"

#include <stdlib.h>

#include "util/error.h"

#define FLUSH_FROM ((size_t)4096)
#define ROOM (FLUSH_FROM + XOR_CHUNK_SAMPLES_MAX)

struct delivery {
    struct intake *intake;
    struct tally *tally;
    time_ms first, last;
    series_id id;
    uint64_t count, series;
    struct seen *seen[DELIVERY_WATCHERS_MAX];
    size_t place[DELIVERY_WATCHERS_MAX]; /* in seen, of the series in hand */
    size_t seen_n;
    size_t n;
    time_ms t[ROOM];
    double v[ROOM];
};

struct delivery *delivery_new(struct intake *intake, struct tally *tally)
{
    struct delivery *delivery = mem_alloc(sizeof *delivery); /* pages are touched when needed */
    delivery->intake = intake;
    delivery->tally = tally;
    delivery->first = TIME_MIN;
    delivery->last = TIME_MAX;
    delivery->id = SERIES_UNWANTED;
    delivery->count = delivery->series = 0;
    delivery->seen_n = 0;
    delivery->n = 0;
    return delivery;
}

void delivery_free(struct delivery *delivery)
{
    free(delivery);
}

void delivery_range(struct delivery *delivery, time_ms first, time_ms last)
{
    delivery_flush(delivery);
    delivery->first = first;
    delivery->last = last;
}

void delivery_flush(struct delivery *delivery)
{
    if (delivery->n && delivery->id != SERIES_UNWANTED) {
        intake_append(delivery->intake, delivery->id, delivery->t, delivery->v, delivery->n);
        atomic_fetch_add_explicit(&delivery->tally->samples, delivery->n, memory_order_relaxed);
        delivery->count += delivery->n;
        for (size_t i = 0; i < delivery->seen_n; i++)
            seen_stamps(delivery->seen[i], delivery->place[i], delivery->t[0],
                        delivery->t[delivery->n - 1]);
    }
    delivery->n = 0;
}

bool delivery_series(struct delivery *delivery, const struct label *labels, size_t n)
{
    delivery_flush(delivery);
    delivery->id = intake_series(delivery->intake, labels, n);
    if (delivery->id == SERIES_UNWANTED)
        return false;
    atomic_fetch_add_explicit(&delivery->tally->series, 1, memory_order_relaxed);
    delivery->series++;
    for (size_t i = 0; i < delivery->seen_n; i++)
        delivery->place[i] = seen_place(delivery->seen[i], labels, n);
    return true;
}

/* Keep, of the samples from place `from` on, those in the range. */
static void cut_to_range(struct delivery *delivery, size_t from)
{
    size_t n = delivery->n;
    if (from == n || (delivery->t[from] >= delivery->first && delivery->t[n - 1] <= delivery->last))
        return;
    size_t kept = from;
    for (size_t i = from; i < n; i++) {
        delivery->t[kept] = delivery->t[i];
        delivery->v[kept] = delivery->v[i];
        kept += delivery->t[i] >= delivery->first && delivery->t[i] <= delivery->last;
    }
    delivery->n = kept;
}

/* The samples from place `from` on were added: hand on what stands before them where they reach
 * back over it, since a call of the intake takes samples in order. */
static void added(struct delivery *delivery, size_t from)
{
    cut_to_range(delivery, from);
    size_t more = delivery->n - from;
    if (from && more && delivery->t[from] <= delivery->t[from - 1]) {
        delivery->n = from;
        delivery_flush(delivery);
        memmove(delivery->t, delivery->t + from, more * sizeof *delivery->t);
        memmove(delivery->v, delivery->v + from, more * sizeof *delivery->v);
        delivery->n = more;
    }
    if (delivery->n >= FLUSH_FROM)
        delivery_flush(delivery);
}

void delivery_samples(struct delivery *delivery, const time_ms *t, const double *v, size_t n)
{
    while (n) {
        size_t from = delivery->n, part = n < XOR_CHUNK_SAMPLES_MAX ? n : XOR_CHUNK_SAMPLES_MAX;
        memcpy(delivery->t + from, t, part * sizeof *t);
        memcpy(delivery->v + from, v, part * sizeof *v);
        delivery->n += part;
        added(delivery, from);
        t += part;
        v += part;
        n -= part;
    }
}

enum err delivery_chunk(struct delivery *delivery, struct str data, struct error *err)
{
    size_t from = delivery->n, n = 0;
    enum err e =
        xor_chunk_decode(data, delivery->t + from, delivery->v + from, ROOM - from, &n, err);
    delivery->n += n;
    added(delivery, from);
    return e;
}

uint64_t delivery_count(const struct delivery *delivery)
{
    return delivery->count;
}

uint64_t delivery_series_count(const struct delivery *delivery)
{
    return delivery->series;
}

void delivery_watch(struct delivery *delivery, struct seen *const *seen, size_t n)
{
    invariant(n <= DELIVERY_WATCHERS_MAX);
    delivery_flush(delivery);
    memcpy(delivery->seen, seen, n * sizeof *seen);
    delivery->seen_n = n;
}
