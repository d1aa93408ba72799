/* Strips: the samples of one target row of a device (fleet/intake_data.h). The common case is a
 * signal whose next samples have the stamps that another signal of the strip brought already: one
 * memcmp, and the values are cleaned straight into the column. */
#include "fleet/intake_data.h"

#include <stdlib.h>

static void clean(struct strip *strip, enum signal signal, enum signal_unit unit, const double *v,
                  size_t n, int64_t *out)
{
    if (unit == UNIT_PERCENT_OR_RATIO) {
        /* Which it is shows only when all values of the exporter are there: kept as they came. */
        for (size_t i = 0; i < n; i++) {
            bool there = v[i] >= 0 && v[i] <= 100;
            out[i] = there ? (int64_t)(v[i] * 1e9 + 0.5) : SIGNAL_ABSENT;
            strip->rejected += !there;
        }
        return;
    }
    strip->rejected += (uint32_t)signal_clean_many(signal, unit, v, n, out);
}

static void make_room(struct strip *strip, size_t more)
{
    if (strip->n + more <= strip->room)
        return;
    size_t room = strip->room + strip->room / 4; /* many strips: no half-empty ones */
    room = room > strip->n + more ? room : strip->n + more + 16;
    strip_set_room(strip, room);
}

static void add_column(struct strip *strip, enum signal signal)
{
    if (strip->column[signal])
        return;
    strip->column[signal] = mem_alloc((strip->room ? strip->room : 1) * sizeof(int64_t));
    strip_set_room(strip, strip->room);
}

size_t strip_rows_until(const struct strip *strip, time_ms t)
{
    size_t low = 0, high = strip->n;
    while (low < high) {
        size_t mid = (low + high) / 2;
        if (strip->t[mid] <= t)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

/* The row of stamp t, or n. */
static size_t row_of(const struct strip *strip, time_ms t)
{
    size_t rows = strip_rows_until(strip, t);
    return rows && strip->t[rows - 1] == t ? rows - 1 : strip->n;
}

static void append_one(struct strip *strip, enum signal signal, time_ms t, int64_t v)
{
    if (strip->n == 0 || t > strip->t[strip->n - 1]) {
        make_room(strip, 1);
        strip->t[strip->n++] = t;
        strip_fill_absent(strip, signal, strip->n - 1);
        strip->column[signal][strip->n - 1] = v;
        strip->filled[signal] = strip->n;
        return;
    }
    size_t row = row_of(strip, t);
    if (row == strip->n) {
        struct odd_sample odd = {t, v, signal, (uint32_t)strip->odd_n};
        mem_push(strip->odd, strip->odd_n, strip->odd_room, odd);
    } else if (row >= strip->filled[signal]) {
        strip_fill_absent(strip, signal, row);
        strip->column[signal][row] = v;
        strip->filled[signal] = row + 1;
    } else if (strip->column[signal][row] == SIGNAL_ABSENT) {
        strip->column[signal][row] = v;
    }
}

void strip_append(struct strip *strip, enum signal signal, enum signal_unit unit, const time_ms *t,
                  const double *v, size_t n)
{
    add_column(strip, signal);
    strip_pack_old(strip, signal);
    size_t at = strip->filled[signal];
    bool ascending = true;
    for (size_t i = 1; i < n; i++)
        ascending &= t[i] > t[i - 1];
    size_t known = strip->n - at < n ? strip->n - at : n; /* rows that are there already */
    if (ascending && n && (known == 0 || memcmp(strip->t + at, t, known * sizeof *t) == 0) &&
        (known || strip->n == 0 || t[0] > strip->t[strip->n - 1])) {
        make_room(strip, n - known);
        memcpy(strip->t + strip->n, t + known, (n - known) * sizeof *t);
        clean(strip, signal, unit, v, n, strip->column[signal] + at);
        strip->n += n - known;
        strip->filled[signal] = at + n;
        return;
    }
    for (size_t i = 0; i < n; i++) {
        int64_t value;
        clean(strip, signal, unit, &v[i], 1, &value);
        append_one(strip, signal, t[i], value);
    }
}

void strip_put(struct strip *strip, enum signal signal, enum signal_unit unit, time_ms t, int64_t v)
{
    int64_t most =
        unit == UNIT_PERCENT_OR_RATIO ? INT64_C(100000000000) : signal_most(signal, unit);
    if (!time_is_sane(t) || (v != SIGNAL_ABSENT && (v < 0 || v > most)))
        return;
    add_column(strip, signal);
    append_one(strip, signal, t, v);
}

static int by_stamp_and_order(const void *a, const void *b)
{
    const struct odd_sample *x = a, *y = b;
    if (x->t != y->t)
        return x->t < y->t ? -1 : 1;
    return (x->order > y->order) - (x->order < y->order);
}

/* Odd samples (in order) of rows that are there, as of rows that were packed when they came: what
 * is there wins. Left are those that need a row of their own. */
static void fill_rows(struct strip *strip)
{
    size_t kept = 0, row = 0;
    for (size_t i = 0; i < strip->odd_n; i++) {
        const struct odd_sample *odd = &strip->odd[i];
        while (row < strip->n && strip->t[row] < odd->t)
            row++;
        if (row == strip->n || strip->t[row] != odd->t)
            strip->odd[kept++] = *odd;
        else if (strip->column[odd->signal][row] == SIGNAL_ABSENT)
            strip->column[odd->signal][row] = odd->v;
    }
    strip->odd_n = kept;
}

void strip_settle(struct strip *strip)
{
    for (int s = 0; s < SIGNAL_COUNT; s++)
        if (strip->column[s])
            strip_fill_absent(strip, (enum signal)s, strip->n);
    if (!strip->odd_n)
        return;
    qsort(strip->odd, strip->odd_n, sizeof *strip->odd, by_stamp_and_order);
    fill_rows(strip);
    size_t fresh = 0;
    for (size_t i = 0; i < strip->odd_n; i++)
        fresh += i == 0 || strip->odd[i].t != strip->odd[i - 1].t;
    make_room(strip, fresh);
    /* Merge from the back, so that rows move once and in place. */
    size_t from = strip->n, to = strip->n + fresh, odd = strip->odd_n;
    while (odd) {
        time_ms t = strip->odd[odd - 1].t;
        if (from && strip->t[from - 1] > t) {
            from--, to--;
            strip->t[to] = strip->t[from];
            for (int s = 0; s < SIGNAL_COUNT; s++)
                if (strip->column[s])
                    strip->column[s][to] = strip->column[s][from];
            continue;
        }
        to--;
        strip->t[to] = t;
        for (int s = 0; s < SIGNAL_COUNT; s++)
            if (strip->column[s])
                strip->column[s][to] = SIGNAL_ABSENT;
        for (; odd && strip->odd[odd - 1].t == t; odd--)
            if (strip->odd[odd - 1].v != SIGNAL_ABSENT)
                strip->column[strip->odd[odd - 1].signal][to] = strip->odd[odd - 1].v;
    }
    strip->n += fresh;
    for (int s = 0; s < SIGNAL_COUNT; s++)
        strip->filled[s] = strip->n;
    strip->odd_n = 0;
}

void strip_clear(struct strip *strip)
{
    free(strip->t);
    free(strip->odd);
    strip->t = NULL;
    strip->odd = NULL;
    for (int s = 0; s < SIGNAL_COUNT; s++) {
        free(strip->column[s]);
        strip->column[s] = NULL;
        strip->filled[s] = 0;
    }
    strip->n = strip->odd_n = strip->odd_room = 0;
    strip->loaded = false;
    strip_set_room(strip, 0);
}
