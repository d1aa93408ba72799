/* What the demo's GPUs read at any instant: means that hold between knots, and noise by a hash. */
#include <stdlib.h>

#include "cmd/demo_fleet.h"
#include "util/error.h"

#define MINUTE_MS ((time_ms)60000)
#define PULL_MS (90 * (time_ms)1000) /* from admission to the first work: pulling the image */
#define BURST_MS (40 * MINUTE_MS)    /* a notebook is used so long */
#define CHECKPOINT_EVERY_MIN 53      /* training stops to write its state */
#define CHECKPOINT_MIN 2
#define MILLION 1e6

/* Busy part of the day at t; before the window as in its first hour, after it as in its last. */
static double day_at(const struct demo_fleet *fleet, time_ms t)
{
    if (t < fleet->options.window.from)
        return fleet->day[0];
    size_t hour = (size_t)((t - fleet->options.window.from) / HOUR_MS);
    return fleet->day[hour < fleet->day_n ? hour : fleet->day_n - 1];
}

/* Mean activity of a span at t: of the chip and of the engine. Steady between knots. */
static void mean_activity(const struct demo_fleet *fleet, const struct demo_span *span, time_ms t,
                          double *ret_u, double *ret_e)
{
    const struct demo_work *work = span->work;
    double u = work->level, e = 0.98;
    if (span->pod && t < span->time.from + PULL_MS) {
        u = e = 0;
    } else if (work->activity == DEMO_SERVE) {
        u *= day_at(fleet, t);
        e = u * 1.6 < 0.95 ? u * 1.6 : 0.95;
    } else if (work->activity == DEMO_NOTEBOOK && t >= span->time.from + PULL_MS + BURST_MS) {
        u = e = 0;
    }
    *ret_u = u;
    *ret_e = e;
}

/* -1..1 of 16 bits of a hash. */
static double noise(uint64_t hash, int bits)
{
    return (double)(int16_t)(hash >> bits) / 32768;
}

static int32_t millionths(double ratio)
{
    return ratio <= 0 ? 0 : ratio >= 1 ? 1000000 : (int32_t)(ratio * MILLION + 0.5);
}

static bool writes_checkpoint(const struct demo_span *span, time_ms t)
{
    uint64_t phase = span->pod ? span->pod->salt : 0;
    return ((uint64_t)(t / MINUTE_MS) + phase) % CHECKPOINT_EVERY_MIN < CHECKPOINT_MIN;
}

void demo_slot_read(const struct demo_fleet *fleet, const struct demo_slot *slot,
                    const struct demo_span *span, time_ms t, struct demo_reading *ret)
{
    *ret = (struct demo_reading){.memory_mib = 4};
    if (!span)
        return;
    uint64_t hash = demo_hash(slot->salt, (uint64_t)t, 12);
    double u, e;
    mean_activity(fleet, span, t, &u, &e);
    if (u > 0) {
        u *= 1 + (span->work->activity == DEMO_SERVE ? 0.35 : 0.05) * noise(hash, 0);
        e *= 1 + 0.02 * noise(hash, 16);
        if (span->work->activity == DEMO_TRAIN && writes_checkpoint(span, t)) {
            u *= 0.05;
            e = 0.06;
        }
        e = e < u ? u : e;
    }
    ret->engine = millionths(e);
    ret->util_percent = (ret->engine + 5000) / 10000;
    ret->sm = millionths(u);
    ret->tensor = millionths(u * (0.55 + 0.05 * noise(hash, 32)));
    ret->dram = millionths(u * (0.48 + 0.05 * noise(hash, 48)));
    ret->memory_mib += (int32_t)(span->work->memory * (double)slot->memory_mib);
}

/* ---- energy ---- */

static int by_time(const void *a, const void *b)
{
    time_ms x = ((const struct demo_energy *)a)->t, y = ((const struct demo_energy *)b)->t;
    return (x > y) - (x < y);
}

static void add_knot(struct demo_fleet *fleet, struct demo_device *device, time_ms t)
{
    if (t > fleet->options.window.from && t < fleet->options.window.to)
        device->energy[device->energy_n++] = (struct demo_energy){.t = t};
}

static double mean_watts(const struct demo_fleet *fleet, const struct demo_device *device,
                         time_ms t)
{
    const struct demo_machine *machine = device->node->machine;
    double watts = machine->idle_w;
    for (size_t i = 0; i < device->slots_n; i++) {
        const struct demo_slot *slot = &device->slots[i];
        for (size_t k = 0; k < slot->spans_n; k++) {
            const struct demo_span *span = &slot->spans[k];
            if (t < span->time.from || t >= span->time.to)
                continue;
            double u, e;
            mean_activity(fleet, span, t, &u, &e);
            watts += slot->share * (machine->limit_w - machine->idle_w) * (0.12 * e + 0.74 * u);
        }
    }
    return watts;
}

void demo_device_charge(struct demo_fleet *fleet, struct demo_device *device)
{
    struct span window = fleet->options.window;
    size_t room = fleet->day_n + 1;
    for (size_t i = 0; i < device->slots_n; i++)
        room += device->slots[i].spans_n * 4;
    device->energy = arena_alloc(&fleet->arena, room * sizeof *device->energy);
    device->energy[device->energy_n++] = (struct demo_energy){.t = window.from};
    for (size_t i = 1; i < fleet->day_n; i++)
        add_knot(fleet, device, window.from + (time_ms)i * HOUR_MS);
    for (size_t i = 0; i < device->slots_n; i++) {
        for (size_t k = 0; k < device->slots[i].spans_n; k++) {
            struct span time = device->slots[i].spans[k].time;
            add_knot(fleet, device, time.from);
            add_knot(fleet, device, time.from + PULL_MS);
            add_knot(fleet, device, time.from + PULL_MS + BURST_MS);
            add_knot(fleet, device, time.to);
        }
    }
    invariant(device->energy_n <= room);
    qsort(device->energy, device->energy_n, sizeof *device->energy, by_time);
    double millijoules = (double)(demo_hash(device->slots[0].salt, 13, 0) % 9000000000000);
    for (size_t i = 0; i < device->energy_n; i++) {
        struct demo_energy *knot = &device->energy[i];
        if (i > 0)
            millijoules += knot[-1].watts * (double)(knot->t - knot[-1].t);
        knot->watts = mean_watts(fleet, device, knot->t);
        knot->millijoules = millijoules;
    }
}

void demo_device_read(const struct demo_fleet *fleet, const struct demo_device *device, time_ms t,
                      size_t *cursor, int64_t *ret_milliwatts, int64_t *ret_millijoules)
{
    (void)fleet;
    while (*cursor + 1 < device->energy_n && device->energy[*cursor + 1].t <= t)
        ++*cursor;
    const struct demo_energy *knot = &device->energy[*cursor];
    uint64_t hash = demo_hash(device->slots[0].salt, (uint64_t)t, 14);
    *ret_milliwatts = (int64_t)(knot->watts * (1000 + 30 * noise(hash, 0)));
    *ret_millijoules = (int64_t)(knot->millijoules + knot->watts * (double)(t - knot->t));
}

/* Hours of full activity of serving from the window's start to t. */
static double day_sum_at(const struct demo_fleet *fleet, time_ms t)
{
    double hours = (double)(t - fleet->options.window.from) / (double)HOUR_MS;
    if (hours <= 0)
        return 0;
    if (hours >= (double)fleet->day_n)
        return fleet->day_sum[fleet->day_n];
    size_t whole = (size_t)hours;
    return fleet->day_sum[whole] + fleet->day[whole] * (hours - (double)whole);
}

int64_t demo_pod_tokens(const struct demo_fleet *fleet, const struct demo_pod *pod, time_ms t)
{
    double hours = day_sum_at(fleet, t) - day_sum_at(fleet, pod->held.from + PULL_MS);
    return hours <= 0 ? 0 : (int64_t)(hours * 3600 * pod->work.level * pod->work.tokens_per_s);
}
