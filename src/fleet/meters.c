/* Meters: adding up samples of loads (fleet/loads.h). Increases are added as whole numbers, so that
 * the order of series and threads changes nothing. */
#include <math.h>
#include <stdlib.h>

#include "fleet/intake_data.h"

/* Of the kept unit; what is above is no measurement. Sums of an hour stay far below 2^63. */
#define COUNTER_MAX 1e17
#define GAUGE_MAX 1e10
#define SUM_MAX INT64_C(100000000000000000)

/* The bin of a slot, made where it is not there; mostly the last. */
static struct load_bin *bin_of(struct meter *meter, int64_t slot)
{
    size_t at = meter->bins_n;
    if (at && meter->bins[at - 1].slot >= slot) {
        size_t low = 0;
        while (low < at) {
            size_t mid = (low + at) / 2;
            if (meter->bins[mid].slot < slot)
                low = mid + 1;
            else
                at = mid;
        }
        if (meter->bins[at].slot == slot)
            return &meter->bins[at];
    }
    mem_reserve(meter->bins, meter->bins_n, meter->bins_room, 1);
    memmove(&meter->bins[at + 1], &meter->bins[at], (meter->bins_n - at) * sizeof *meter->bins);
    meter->bins[at] = (struct load_bin){.slot = slot};
    meter->bins_n++;
    return &meter->bins[at];
}

const struct load_bin *meter_bin(const struct meter *meter, int64_t slot)
{
    size_t low = 0, high = meter->bins_n;
    while (low < high) {
        size_t mid = (low + high) / 2;
        if (meter->bins[mid].slot < slot)
            low = mid + 1;
        else
            high = mid;
    }
    return low < meter->bins_n && meter->bins[low].slot == slot ? &meter->bins[low] : NULL;
}

static void add_reading(struct meter *meter, time_ms t, int64_t v)
{
    size_t at = meter->readings_n;
    if (at && meter->readings[at - 1].t >= t) {
        size_t low = 0;
        while (low < at) {
            size_t mid = (low + at) / 2;
            if (meter->readings[mid].t < t)
                low = mid + 1;
            else
                at = mid;
        }
        if (meter->readings[at].t == t) {
            if (meter->readings[at].sum < SUM_MAX)
                meter->readings[at].sum += v;
            meter->readings[at].series++;
            return;
        }
    }
    mem_reserve(meter->readings, meter->readings_n, meter->readings_room, 1);
    memmove(&meter->readings[at + 1], &meter->readings[at],
            (meter->readings_n - at) * sizeof *meter->readings);
    meter->readings[at] = (struct load_reading){t, v, 1};
    meter->readings_n++;
}

/* From one sample to the next. Where a counter went back it began anew from 0; a host's processors
 * say nothing then, since some of them go back a little at times. */
static void add_increase(struct load_series *series, time_ms t, int64_t before, int64_t now)
{
    struct meter *meter = series->meter;
    bool host = meter->name->load == LOAD_CPU;
    if (now < before && host)
        return;
    int64_t grown = now >= before ? now - before : now;
    struct load_bin *bin = bin_of(meter, load_slot(t));
    if (bin->sum > SUM_MAX)
        return;
    bin->sum += grown;
    if (series->idle)
        bin->idle += grown;
    if (!series->counts_cpu)
        return;
    if (series->counted != bin->slot && series->first_counted != bin->slot)
        bin->cpus++;
    series->counted = bin->slot;
}

/* A counter's sample, in front of what is added up or behind it. */
static void add_count(struct load_series *series, time_ms t, int64_t v)
{
    if (!series->any) {
        series->any = true;
        series->first = series->last = t;
        series->first_value = series->last_value = v;
        series->counted = series->first_counted = INT64_MIN;
    } else if (t > series->last) {
        add_increase(series, t, series->last_value, v);
        if (series->first_counted == INT64_MIN)
            series->first_counted = series->counted;
        series->last = t;
        series->last_value = v;
    } else if (t < series->first) {
        int64_t counted = series->counted;
        add_increase(series, series->first, v, series->first_value);
        series->first_counted = load_slot(series->first);
        series->counted = counted;
        series->first = t;
        series->first_value = v;
    }
}

/* A gauge's sample, once: those of a stamp that was there already are repetitions. */
static void add_gauge(struct load_series *series, time_ms t, int64_t v)
{
    if (series->any && t <= series->last)
        return;
    series->any = true;
    series->last = t;
    add_reading(series->meter, t, v);
}

static void add_one(struct load_series *series, time_ms t, int64_t v)
{
    if (load_is_gauge(series->meter->name->load))
        add_gauge(series, t, v);
    else
        add_count(series, t, v);
}

void load_append(struct load_series *series, bool in_order, time_ms until, const time_ms *t,
                 const double *v, size_t n)
{
    const struct load_name *name = series->meter->name;
    bool gauge = load_is_gauge(name->load);
    double most = gauge ? GAUGE_MAX : COUNTER_MAX;
    if (in_order)
        pthread_mutex_lock(&series->meter->lock);
    for (size_t i = 0; i < n; i++) {
        double scaled = v[i] * name->scale;
        if (!(scaled >= 0 && scaled < most) || !time_is_sane(t[i]))
            continue; /* stale markers are no numbers either */
        series->taken++;
        struct load_sample sample = {t[i], (int64_t)(scaled + 0.5)};
        if (!in_order)
            mem_push(series->samples, series->n, series->room, sample);
        else if (gauge || t[i] <= until)
            add_one(series, sample.t, sample.v);
    }
    if (in_order)
        pthread_mutex_unlock(&series->meter->lock);
}

static int by_time(const void *a, const void *b)
{
    const struct load_sample *x = a, *y = b;
    if (x->t != y->t)
        return x->t < y->t ? -1 : 1;
    return (x->v > y->v) - (x->v < y->v);
}

void load_settle(struct load_series *series)
{
    if (!series->n)
        return;
    bool sorted = true;
    for (size_t i = 1; i < series->n && sorted; i++)
        sorted = series->samples[i].t > series->samples[i - 1].t;
    if (!sorted)
        qsort(series->samples, series->n, sizeof *series->samples, by_time);
    for (size_t i = 0; i < series->n; i++)
        if (i == 0 || series->samples[i].t != series->samples[i - 1].t)
            add_one(series, series->samples[i].t, series->samples[i].v);
}

bool load_last(const struct load_series *series, time_ms at, time_ms *ret_t, double *ret_v)
{
    double scale = series->meter->name->scale;
    if (!series->any || load_is_gauge(series->meter->name->load))
        return false;
    for (size_t i = series->n; i-- > 0;)
        if (series->samples[i].t <= at) {
            *ret_t = series->samples[i].t;
            *ret_v = (double)series->samples[i].v / scale;
            return true;
        }
    *ret_t = series->last;
    *ret_v = (double)series->last_value / scale;
    return series->n == 0 && series->last <= at;
}

void load_series_release(struct load_series *series)
{
    free(series->samples);
    series->samples = NULL;
    series->n = series->room = 0;
}

void meter_release(struct meter *meter)
{
    free(meter->bins);
    free(meter->readings);
    pthread_mutex_destroy(&meter->lock);
}
