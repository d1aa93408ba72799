/* A device built from its rows: clean-ups first, then the time that everything covers, then what
 * follows from it: labels, losses, energy. */
#include "ledger/device.h"

#include <stdlib.h>

/* ------------------------------------------------------------------ cleaning up */

static const enum signal board[] = {SIGNAL_POWER, SIGNAL_ENERGY, SIGNAL_POWER_LIMIT, SIGNAL_XID};
static const enum signal profiling[] = {SIGNAL_SM, SIGNAL_GR, SIGNAL_TENSOR, SIGNAL_DRAM};
#define STUCK_UTIL INT64_C(50000000) /* GPU_UTIL from which a profiling 0 is not believed: 5 % */

/* DCGM measures power, energy and XIDs for the board; on instances' series they are the board's,
 * repeated. They belong to the device's own rows. */
static void lift_board_signals(struct device *device)
{
    for (size_t i = 0; i < device->instances_n; i++) {
        struct timeline *line = &device->instances[i].line;
        for (size_t k = 0; k < sizeof board / sizeof *board; k++) {
            int64_t *column = line->column[board[k]];
            if (!column)
                continue;
            timeline_add_column(&device->own, board[k]);
            int64_t *own = device->own.column[board[k]];
            size_t at = 0;
            for (size_t row = 0; row < line->n; row++) {
                while (device->own.t[at] < line->t[row])
                    at++;
                if (column[row] != SIGNAL_ABSENT && column[row] > own[at] &&
                    !(device->own_plain[k] && device->own_plain[k][at]))
                    own[at] = column[row];
            }
            free(column);
            line->column[board[k]] = NULL;
        }
        free(line->column[SIGNAL_UTIL]);
        line->column[SIGNAL_UTIL] = NULL;
    }
}

/* The device's own values of board signals go before those that instances repeat. */
static void mark_own_board(struct device *device, bool set)
{
    for (size_t k = 0; k < sizeof board / sizeof *board; k++) {
        if (!set) {
            free(device->own_plain[k]);
            device->own_plain[k] = NULL;
            continue;
        }
        const int64_t *column = device->own.column[board[k]];
        if (!column)
            continue;
        device->own_plain[k] = mem_alloc(device->own.n + 1);
        for (size_t row = 0; row < device->own.n; row++)
            device->own_plain[k][row] = column[row] != SIGNAL_ABSENT;
    }
}

static void drop_stuck(struct timeline *line)
{
    const int64_t *util = line->column[SIGNAL_UTIL];
    const int64_t *sm = line->column[SIGNAL_SM], *gr = line->column[SIGNAL_GR];
    if (!util || !(sm || gr))
        return;
    for (size_t row = 0; row < line->n; row++) {
        bool zero = (sm && sm[row] == 0) || (gr && gr[row] == 0);
        if (!zero || util[row] < STUCK_UTIL)
            continue;
        if (!line->stuck)
            line->stuck = mem_zalloc(line->n, 1);
        line->stuck[row] = 1;
        for (size_t k = 0; k < sizeof profiling / sizeof *profiling; k++)
            if (line->column[profiling[k]])
                line->column[profiling[k]][row] = SIGNAL_ABSENT;
    }
}

static void drop_row(struct timeline *line, time_ms t)
{
    size_t low = 0, high = line->n;
    while (low < high) {
        size_t mid = (low + high) / 2;
        if (line->t[mid] < t)
            low = mid + 1;
        else
            high = mid;
    }
    for (int s = 0; low < line->n && line->t[low] == t && s < SIGNAL_COUNT; s++)
        if (line->column[s])
            line->column[s][low] = SIGNAL_ABSENT;
}

static int64_t overlap_ms(struct span hours, time_ms from, time_ms to)
{
    from = from > hours.from ? from : hours.from;
    to = to < hours.to ? to : hours.to;
    return to > from ? to - from : 0;
}

/* An energy counter that stands still for frozen_ms or more while power is drawn is an old text
 * served again: all of it is absent, but for the first stamp of the standstill. */
static void drop_frozen(struct device *device, const struct facts *facts)
{
    const struct settings *settings = facts->settings;
    struct timeline *own = &device->own;
    int64_t *energy = own->column[SIGNAL_ENERGY], *power = own->column[SIGNAL_POWER];
    if (!energy || !power)
        return;
    bool stands = false;
    for (size_t row = 1; row < own->n; row++)
        stands |= energy[row] == energy[row - 1] || energy[row] == SIGNAL_ABSENT;
    if (!stands)
        return;
    for (size_t first = 0; first < own->n;) {
        if (energy[first] == SIGNAL_ABSENT) {
            first++;
            continue;
        }
        size_t last = first, next = first + 1;
        for (; next < own->n; next++) {
            if (energy[next] == SIGNAL_ABSENT)
                continue;
            if (energy[next] != energy[first] || power[next] == SIGNAL_ABSENT || power[next] <= 0)
                break;
            last = next;
        }
        if (last > first && own->t[last] - own->t[first] >= settings->frozen_ms) {
            int64_t still = energy[first];
            device->frozen_ms += overlap_ms(facts->hours, own->t[first], own->t[last]);
            for (size_t row = first + 1; row <= last; row++) {
                if (energy[row] != still)
                    continue;
                for (size_t i = 0; i < device->instances_n; i++)
                    drop_row(&device->instances[i].line, own->t[row]);
                drop_row(own, own->t[row]);
            }
        }
        first = next;
    }
}

void device_clean(struct device *device, const struct facts *facts)
{
    if (device->instances_n) {
        mark_own_board(device, true);
        lift_board_signals(device);
        mark_own_board(device, false);
    }
    drop_stuck(&device->own);
    for (size_t i = 0; i < device->instances_n; i++)
        drop_stuck(&device->instances[i].line);
    drop_frozen(device, facts);
}

/* ------------------------------------------------------------------ samples */

static bool says_something(const struct device *device, size_t row, size_t *at)
{
    bool any = timeline_row_has_any(&device->own, row);
    time_ms t = device->own.t[row];
    for (size_t i = 0; i < device->instances_n; i++) {
        const struct timeline *line = &device->instances[i].line;
        if (at[i] < line->n && line->t[at[i]] == t)
            any |= timeline_row_has_any(line, at[i]++);
    }
    return any;
}

void device_find_samples(struct device *device, size_t *sample_of)
{
    size_t n = device->own.n;
    if (timeline_is_full(&device->own)) {
        device->sample_t = device->own.t;
        device->samples_n = n;
        for (size_t row = 0; sample_of && row < n; row++)
            sample_of[row] = row;
        return;
    }
    device->sample_t = mem_alloc((n + 1) * sizeof *device->sample_t);
    size_t *at = mem_zalloc(device->instances_n + 1, sizeof *at);
    for (size_t row = 0; row < n; row++) {
        bool any = says_something(device, row, at);
        if (sample_of)
            sample_of[row] = any ? device->samples_n : SIZE_MAX;
        if (any)
            device->sample_t[device->samples_n++] = device->own.t[row];
    }
    free(at);
}

/* ------------------------------------------------------------------ labels */

static bool same_names(const struct named_set *a, const struct named_set *b)
{
    return a == b || (a->n == b->n && memcmp(a->at, b->at, a->n * sizeof *a->at) == 0);
}

/* Labels cover time by the stamps at which the device has any row. */
static void find_labels(const struct device *device, struct timeline *line,
                        const struct settings *settings)
{
    const struct timeline *own = &device->own;
    size_t at = 0;
    for (size_t k = 0; k < line->names_n; k++) {
        const struct named_set *set = line->names[k].set;
        size_t end = k + 1 < line->names_n ? line->names[k + 1].row : line->n;
        for (size_t row = line->names[k].row; set && row < end; row++) {
            if (line == own)
                at = row;
            else
                while (own->t[at] < line->t[row])
                    at++;
            struct label_run *last = line->labels_n ? &line->labels[line->labels_n - 1] : NULL;
            bool follows =
                last && at == last->i1 + 1 && own->t[at] - own->t[at - 1] <= settings->gap_ms;
            if (follows && same_names(last->set, set)) {
                last->i1 = at;
                continue;
            }
            struct label_run fresh = {cover_start(own->t, at, settings), at, at, set};
            mem_push(line->labels, line->labels_n, line->labels_room, fresh);
        }
    }
}

/* ------------------------------------------------------------------ lost */

static bool is_lost(const struct settings *settings, int64_t xid)
{
    for (size_t i = 0; i < settings->lost_xids_n; i++)
        if (settings->lost_xids[i] == xid)
            return true;
    return false;
}

struct xid_run {
    bool lost;
    time_ms start, first; /* of what its first sample covers; its first stamp */
};

/* From the start of what the first sample with the XID covers, but for activity there; activity
 * after its stamp ends it for good, although the gauge stays. (semantics, section 7) */
static void mark_lost(struct device *device, struct xid_run run, time_ms end,
                      const struct spans *active)
{
    time_ms again = TIME_MAX;
    for (size_t i = spans_after(active, run.first); i < active->n; i++) {
        again = active->at[i].from > run.first ? active->at[i].from : run.first;
        break;
    }
    struct span before = {run.start, run.first < end ? run.first : end};
    spans_without(before, active, &device->lost);
    spans_push(&device->lost, run.first, again < end ? again : end);
}

static void find_losses(struct device *device, const struct settings *settings)
{
    const struct timeline *own = &device->own;
    const int64_t *xid = own->column[SIGNAL_XID];
    bool any = false;
    for (size_t row = 0; xid && row < own->n && !any; row++)
        any = xid[row] > 0 && is_lost(settings, xid[row]);
    if (!any)
        return;
    struct spans active = {0};
    for (size_t i = 0; i <= device->instances_n; i++) {
        const struct timeline *line = i ? &device->instances[i - 1].line : own;
        for (size_t k = 0; k < line->active.n; k++)
            spans_push(&active, line->active.at[k].from, line->active.at[k].to);
    }
    spans_normalise(&active);
    struct xid_run run = {0};
    bool open = false;
    time_ms before = TIME_MIN;
    for (size_t row = 0; row < own->n; row++) {
        if (xid[row] == SIGNAL_ABSENT)
            continue;
        bool near = before != TIME_MIN && own->t[row] - before <= settings->gap_ms;
        struct xid_run next = {is_lost(settings, xid[row]),
                               near ? before : own->t[row] - settings->step_ms, own->t[row]};
        before = own->t[row];
        if (open && next.lost == run.lost)
            continue;
        if (open && run.lost)
            mark_lost(device, run, next.start, &active);
        run = next;
        open = true;
    }
    if (open && run.lost)
        mark_lost(device, run, TIME_MAX, &active);
    spans_normalise(&device->lost);
    spans_release(&active);
}

/* ------------------------------------------------------------------ energy */

static void add_energy(struct device *device, struct energy energy)
{
    if (energy.from < energy.to)
        mem_push(device->energy, device->energy_n, device->energy_room, energy);
}

/* Samples of a signal one after another, with what each covers. */
struct cover {
    const struct timeline *own;
    const int64_t *column;
    size_t row, previous; /* SIZE_MAX: none */
};

static bool next_sample(struct cover *cover)
{
    if (!cover->column)
        return false;
    if (cover->row != SIZE_MAX)
        cover->previous = cover->row;
    size_t row = cover->row == SIZE_MAX ? 0 : cover->row + 1;
    while (row < cover->own->n && cover->column[row] == SIGNAL_ABSENT)
        row++;
    cover->row = row;
    return row < cover->own->n;
}

/* The next interval of the counter: both ends there, within the gap, and it did not fall. */
static bool next_grown(struct cover *cover, const struct settings *settings, struct energy *ret)
{
    while (next_sample(cover)) {
        if (cover->previous == SIZE_MAX)
            continue;
        time_ms start = cover->own->t[cover->previous], end = cover->own->t[cover->row];
        int64_t grown = cover->column[cover->row] - cover->column[cover->previous];
        if (grown < 0 || end - start > settings->gap_ms)
            continue;
        *ret = (struct energy){start, end, start, end, (grown + 500) / 1000, 0};
        return true;
    }
    return false;
}

static bool next_power(struct cover *cover, const struct settings *settings, struct energy *ret)
{
    if (!next_sample(cover))
        return false;
    time_ms end = cover->own->t[cover->row], start = end - settings->step_ms;
    if (cover->previous != SIZE_MAX && end - cover->own->t[cover->previous] <= settings->gap_ms)
        start = cover->own->t[cover->previous];
    *ret = (struct energy){start, end, start, end, -1, cover->column[cover->row]};
    return true;
}

/* Does the counter alone tell it all, stamp by stamp, from its first to its last? Gives its rows.
 */
static bool counter_is_whole(const struct timeline *own, const struct settings *settings,
                             size_t *ret_from, size_t *ret_to)
{
    const int64_t *energy = own->column[SIGNAL_ENERGY], *power = own->column[SIGNAL_POWER];
    size_t from = 0, to = own->n;
    while (energy && from < to && energy[from] == SIGNAL_ABSENT)
        from++;
    while (energy && from < to && energy[to - 1] == SIGNAL_ABSENT)
        to--;
    if (!energy || from == to)
        return false;
    bool whole = true;
    for (size_t row = from + 1; row < to; row++) /* absent is the smallest, so it falls */
        whole &=
            energy[row] >= energy[row - 1] && own->t[row] - own->t[row - 1] <= settings->gap_ms;
    for (size_t row = 0; power && row < from; row++)
        whole &= power[row] == SIGNAL_ABSENT;
    for (size_t row = to; power && row < own->n; row++)
        whole &= power[row] == SIGNAL_ABSENT;
    *ret_from = from;
    *ret_to = to;
    return whole;
}

/* Energy of every stretch of time: the counter's where it has it, else power x time. */
static void find_energy(struct device *device, const struct settings *settings)
{
    struct timeline *own = &device->own;
    size_t from, to;
    if (counter_is_whole(own, settings, &from, &to)) {
        const int64_t *watts = own->column[SIGNAL_POWER];
        time_ms first = own->t[from], start = first - settings->step_ms;
        if (watts && watts[from] != SIGNAL_ABSENT) /* before the counter's first stamp */
            add_energy(device, (struct energy){start, first, start, first, -1, watts[from]});
        device->counter = own->column[SIGNAL_ENERGY];
        device->counter_from = from;
        device->counter_to = to;
        own->column[SIGNAL_ENERGY] = NULL;
        return;
    }
    struct cover counter = {own, own->column[SIGNAL_ENERGY], SIZE_MAX, SIZE_MAX};
    struct cover power = {own, own->column[SIGNAL_POWER], SIZE_MAX, SIZE_MAX};
    struct energy grown, watts;
    bool has_grown = next_grown(&counter, settings, &grown);
    bool has_power = next_power(&power, settings, &watts);
    time_ms at = TIME_MIN;
    while (has_grown || has_power) {
        if (has_grown && grown.end <= at) {
            has_grown = next_grown(&counter, settings, &grown);
        } else if (has_power && watts.end <= at) {
            has_power = next_power(&power, settings, &watts);
        } else if (has_grown && (grown.start <= at || !has_power || grown.start <= watts.start)) {
            grown.from = grown.start > at ? grown.start : at;
            add_energy(device, grown);
            at = grown.to;
        } else {
            time_ms until = has_grown && grown.start < watts.end ? grown.start : watts.end;
            watts.from = watts.start > at ? watts.start : at;
            watts.to = until;
            add_energy(device, watts);
            at = until;
        }
    }
}

/* ------------------------------------------------------------------ all of it */

void device_build(struct device *device, const struct facts *facts)
{
    const struct settings *settings = facts->settings;
    device_make_rows(device, facts);
    for (size_t i = 0; i <= device->instances_n; i++) {
        struct timeline *line = i ? &device->instances[i - 1].line : &device->own;
        timeline_make_pieces(line, settings);
        find_labels(device, line, settings);
    }
    find_losses(device, settings);
    find_energy(device, settings);
    if (device->places_n)
        device->model = device->places[device->places_n - 1].model;
    timeline_drop_rows(&device->own);
    for (size_t i = 0; i < device->instances_n; i++)
        timeline_drop_rows(&device->instances[i].line);
}

const struct layout *device_layout_at(const struct device *device, time_ms t)
{
    size_t i = device->layouts_n;
    while (i > 0 && device->layouts[i - 1].since > t)
        i--;
    return i > 0 && device->layouts[i - 1].n ? &device->layouts[i - 1] : NULL;
}

void devices_release(struct devices *devices)
{
    for (size_t i = 0; i < devices->n; i++) {
        struct device *device = devices->at[i];
        if (device->sample_t != device->own.t)
            free(device->sample_t);
        timeline_release(&device->own);
        for (size_t k = 0; k < device->instances_n; k++)
            timeline_release(&device->instances[k].line);
        free(device->instances);
        free(device->strips);
        free(device->counter);
        free(device->places);
        free(device->layouts);
        free(device->energy);
        spans_release(&device->lost);
        arena_release(&device->arena);
        free(device);
    }
    free(devices->at);
    *devices = (struct devices){0};
}
