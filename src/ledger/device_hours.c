#include "ledger/device_hours.h"

#include "fleet/resources.h"
#include "ledger/accrue.h"

#define RATIO_ONE INT64_C(1000000000)
#define NW_A_MW INT64_C(1000000)

static int64_t value_at(const struct timeline *line, enum signal signal, size_t i)
{
    return line->piece[signal] ? line->piece[signal][i] : SIGNAL_ABSENT;
}

static int64_t overlap(const struct spans *spans, struct span span)
{
    int64_t ms = 0;
    for (size_t i = spans_after(spans, span.from); i < spans->n && spans->at[i].from < span.to;
         i++) {
        time_ms from = spans->at[i].from > span.from ? spans->at[i].from : span.from;
        time_ms to = spans->at[i].to < span.to ? spans->at[i].to : span.to;
        ms += to - from;
    }
    return ms;
}

static void add_memory(struct device_hour *out, const struct timeline *line, size_t i, int64_t ms)
{
    int64_t used = value_at(line, SIGNAL_MEM_USED, i), total = timeline_memory_total(line, i);
    if (used == SIGNAL_ABSENT || total <= 0)
        return;
    int64_t ratio = (int64_t)((wide_t)used * RATIO_ONE / total);
    out->mem += ms * (ratio < RATIO_ONE ? ratio : RATIO_ONE);
    out->mem_seen_ms += ms;
}

static void add_power(struct device_hour *out, const struct timeline *line, size_t i, int64_t ms,
                      const struct spans *held)
{
    int64_t power = value_at(line, SIGNAL_POWER, i), limit = value_at(line, SIGNAL_POWER_LIMIT, i);
    if (limit != SIGNAL_ABSENT && limit / NW_A_MW > out->power_limit_mw)
        out->power_limit_mw = limit / NW_A_MW;
    if (power == SIGNAL_ABSENT)
        return;
    int64_t mw = power / NW_A_MW;
    out->power_mw_ms += mw * ms;
    out->power_seen_ms += ms;
    out->power_max_mw = mw > out->power_max_mw ? mw : out->power_max_mw;
    struct span piece = {line->from[i], line->to[i]};
    if (value_at(line, SIGNAL_UTIL, i) == 0 && overlap(held, piece) == 0) {
        out->floor_samples++;
        out->floor_mw += mw;
    }
}

/* The device's own samples: cover, utilisation, memory, power. */
static void add_own(struct device_hour *out, const struct timeline *line, struct span span,
                    const struct spans *held)
{
    for (size_t i = timeline_piece_after(line, span.from);
         i < line->pieces_n && line->from[i] < span.to; i++) {
        time_ms from = line->from[i] > span.from ? line->from[i] : span.from;
        time_ms to = line->to[i] < span.to ? line->to[i] : span.to;
        int64_t ms = to - from, util = value_at(line, SIGNAL_UTIL, i);
        out->covered_ms += ms;
        if (util != SIGNAL_ABSENT) {
            out->util += ms * util;
            out->util_seen_ms += ms;
        }
        add_memory(out, line, i, ms);
        add_power(out, line, i, ms, held);
    }
}

/* e of the instances by their slices; what is in no instance counts as 0. Memory is the
 * board's own: instances of unequal size have no common ratio. */
static void add_instances(struct device_hour *out, const struct facts *facts,
                          const struct device *device, const struct layout *layout,
                          struct span span)
{
    int64_t whole = mig_model_slices(names_text(facts->names, device->model)), sum = 0, seen = 0;
    for (size_t i = 0; i < layout->n; i++)
        sum += mig_compute_slices(names_text(facts->names, layout->parts[i].profile));
    whole = sum > whole ? sum : whole;
    out->util = 0;
    for (size_t i = 0; i < layout->n; i++) {
        struct sums sums;
        accrue(&device->instances[layout->parts[i].instance].line, facts->settings, span, &sums);
        int64_t slices = mig_compute_slices(names_text(facts->names, layout->parts[i].profile));
        out->util += sums.e / whole * slices;
        seen = sums.observed_ms > seen ? sums.observed_ms : seen;
    }
    out->util_seen_ms = seen;
}

/* Up to when a timeline was `low` or `busy` inside the span. */
static time_ms worked_until(const struct timeline *line, const struct settings *settings,
                            struct span span)
{
    size_t first = timeline_piece_after(line, span.from), i = first;
    while (i < line->pieces_n && line->from[i] < span.to)
        i++;
    for (; i > first; i--) {
        int64_t util = value_at(line, SIGNAL_UTIL, i - 1), gr = value_at(line, SIGNAL_GR, i - 1);
        int64_t sm = value_at(line, SIGNAL_SM, i - 1);
        int64_t u = sm != SIGNAL_ABSENT ? sm : gr != SIGNAL_ABSENT ? gr : util;
        int64_t e = util != SIGNAL_ABSENT ? util : gr != SIGNAL_ABSENT ? gr : sm;
        if (u == SIGNAL_ABSENT)
            continue;
        if ((e > u ? e : u) >= settings->idle_below || u >= settings->busy_from)
            return line->to[i - 1] < span.to ? line->to[i - 1] : span.to;
    }
    return TIME_MIN;
}

static void add_idle(struct device_hour *out, const struct facts *facts,
                     const struct device *device, const struct layout *layout, struct span span)
{
    const struct timeline *lines[64];
    size_t n = 0;
    for (size_t i = 0; layout && i < layout->n && n < 64; i++)
        lines[n++] = &device->instances[layout->parts[i].instance].line;
    if (!n)
        lines[n++] = &device->own;
    out->worked_until = out->idle_from = TIME_MIN;
    out->observed_ms = INT64_MAX;
    for (size_t i = 0; i < n; i++) {
        time_ms worked = worked_until(lines[i], facts->settings, span);
        out->worked_until = worked > out->worked_until ? worked : out->worked_until;
        int64_t observed = overlap(&lines[i]->active, span);
        out->observed_ms = observed < out->observed_ms ? observed : out->observed_ms;
    }
    struct span after = {out->worked_until > span.from ? out->worked_until : span.from, span.to};
    out->idle_after_ms = INT64_MAX;
    for (size_t i = 0; i < n; i++) { /* observed where all are */
        const struct spans *active = &lines[i]->active;
        int64_t ms = overlap(active, after);
        out->idle_after_ms = ms < out->idle_after_ms ? ms : out->idle_after_ms;
        size_t at = spans_after(active, after.from);
        if (!ms)
            continue;
        time_ms from = active->at[at].from > after.from ? active->at[at].from : after.from;
        out->idle_from = from > out->idle_from ? from : out->idle_from;
    }
    if (!out->idle_after_ms)
        out->idle_from = TIME_MIN;
}

void device_hours_add(struct row_batch *batch, const struct facts *facts, const struct node *node,
                      const struct mount *mount, struct span span, const struct spans *held)
{
    const struct device *device = mount->device;
    time_ms low = mount->since > span.from ? mount->since : span.from;
    time_ms high = mount->until < span.to ? mount->until : span.to;
    for (time_ms from = low; from < high;) {
        time_ms hour = hour_floor(from);
        time_ms to = hour + HOUR_MS < high ? hour + HOUR_MS : high;
        struct span part = {from, to};
        struct device_hour out = {.hour = hour,
                                  .cluster = node->cluster,
                                  .node = node->name,
                                  .device = device->uuid,
                                  .model = device->model,
                                  .up_ms = to - from,
                                  .held_ms = overlap(held, part)};
        const struct layout *layout = device_layout_at(device, from);
        add_own(&out, &device->own, part, held);
        if (layout)
            add_instances(&out, facts, device, layout, part);
        add_idle(&out, facts, device, layout, part);
        mem_push(batch->device_hours, batch->device_hours_n, batch->device_hours_room, out);
        from = to;
    }
}
