/* Idle since: from the hours after the last work, backwards.
 *
 *     ... work | seen seen      gap      seen seen | now
 *              ^ candidate               ^ candidate
 *
 * The stretch begins at an observed instant, the earliest from which at least half up to now is
 * observed. Inside an hour only its first observed instant is known (and how much follows), so gaps
 * are known to the hour. Of several GPUs an instant is observed where all are: of an hour, at most
 * what the least observed of them has. */
#include <stdlib.h>

#include "insight/idle.h"

/* Money of shares of a node is added up in nano x ms / (GPUs x this): exact up to 16 GPUs. */
#define SHARE_UNIT 720720

struct stretch {
    const struct view *view;
    const struct view_device *devices;
    size_t n;
    time_ms worked;         /* up to when one of them did; TIME_MIN */
    struct span life;       /* while all were up, up to now */
    struct idle_gap *hours; /* span: from the first observed instant; ms: observed */
    size_t hours_n, hours_room;
};

/* Most tails have all their hours: the place of an hour is then known. */
static const struct view_hour *hour_at(const struct view_device *device, time_ms hour)
{
    if (!device->tail_n || hour < device->tail[0].hour)
        return NULL;
    size_t low = 0, high = device->tail_n,
           guess = (size_t)((hour - device->tail[0].hour) / HOUR_MS);
    if (guess < high && device->tail[guess].hour == hour)
        return &device->tail[guess];
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (device->tail[middle].hour < hour)
            low = middle + 1;
        else
            high = middle;
    }
    return low < device->tail_n && device->tail[low].hour == hour ? &device->tail[low] : NULL;
}

static const struct view_price *price_at(const struct view_node *node, time_ms hour)
{
    size_t low = 0, high = node->hours_n;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (node->hours[middle].hour < hour)
            low = middle + 1;
        else
            high = middle;
    }
    return low < node->hours_n && node->hours[low].hour == hour ? &node->hours[low] : NULL;
}

/* Now: the window's end; where only samples say that the node is up, the last of them. False: the
 * node is not up now. */
static bool find_now(struct stretch *stretch, const struct view_node *node, time_ms gap_ms)
{
    time_ms last = stretch->view->window.to - HOUR_MS;
    int64_t up_ms = HOUR_MS;
    for (size_t i = 0; i < stretch->n; i++) {
        const struct view_hour *hour = hour_at(&stretch->devices[i], last);
        if (!hour)
            return false;
        up_ms = hour->up_ms < up_ms ? hour->up_ms : up_ms;
    }
    const struct view_price *price = price_at(node, last);
    stretch->life.to = stretch->view->window.to;
    if (up_ms == HOUR_MS)
        return true;
    if (!price || !(price->flags & FLAG_UP_SAMPLES) || HOUR_MS - up_ms > gap_ms)
        return false;
    stretch->life.to = last + up_ms;
    return true;
}

/* Back from the last hour, to where one of them was not there or worked. */
static void find_begin(struct stretch *stretch)
{
    time_ms last = stretch->view->window.to - HOUR_MS, hour = last;
    stretch->life.from = stretch->view->window.to;
    stretch->worked = TIME_MIN;
    for (size_t i = 0; i < stretch->n; i++) {
        const struct view_device *device = &stretch->devices[i];
        if (device->tail[0].worked_until > stretch->worked)
            stretch->worked = device->tail[0].worked_until;
    }
    for (;; hour -= HOUR_MS) {
        int64_t up_ms = HOUR_MS;
        for (size_t i = 0; i < stretch->n; i++) {
            const struct view_hour *each = hour_at(&stretch->devices[i], hour);
            int64_t up = each ? each->up_ms : 0;
            up_ms = up < up_ms ? up : up_ms;
        }
        if (!up_ms)
            break;
        stretch->life.from = hour < last ? hour + HOUR_MS - up_ms : hour;
        if ((up_ms < HOUR_MS && hour < last) || hour <= stretch->worked)
            break;
    }
}

/* The hours from the begin on: first observed instant, and how much is observed from it on. */
static void observe(struct stretch *stretch)
{
    time_ms begin = stretch->worked > stretch->life.from ? stretch->worked : stretch->life.from;
    for (time_ms hour = hour_floor(begin); hour < stretch->life.to; hour += HOUR_MS) {
        struct idle_gap each = {{TIME_MIN, hour + HOUR_MS}, HOUR_MS};
        for (size_t i = 0; i < stretch->n; i++) {
            const struct view_hour *of = hour_at(&stretch->devices[i], hour);
            int64_t ms = of ? of->idle_after_ms : 0;
            each.ms = ms < each.ms ? ms : each.ms;
            if (of && of->idle_from > each.span.from)
                each.span.from = of->idle_from;
        }
        if (each.span.from < begin)
            each.span.from = begin;
        if (each.span.to > stretch->life.to)
            each.span.to = stretch->life.to;
        int64_t room = each.span.to - each.span.from;
        each.ms = room <= 0 ? 0 : each.ms < room ? each.ms : room;
        mem_push(stretch->hours, stretch->hours_n, stretch->hours_room, each);
    }
}

/* The first hour from whose first observed instant at least half is observed; hours_n: none. */
static size_t first_hour(const struct stretch *stretch)
{
    int64_t observed = 0;
    size_t found = stretch->hours_n;
    for (size_t i = stretch->hours_n; i-- > 0;) {
        const struct idle_gap *hour = &stretch->hours[i];
        observed += hour->ms;
        if (hour->ms > 0 && 2 * observed >= stretch->life.to - hour->span.from)
            found = i;
    }
    return found;
}

static void add_gap(struct idle_since *since, struct span span, int64_t ms)
{
    struct idle_gap *last = since->gaps_n ? &since->gaps[since->gaps_n - 1] : NULL;
    if (last && last->span.to == span.from) {
        last->span.to = span.to;
        last->ms += ms;
        return;
    }
    struct idle_gap gap = {span, ms};
    mem_push(since->gaps, since->gaps_n, since->gaps_room, gap);
}

static void find_gaps(const struct stretch *stretch, size_t first, struct idle_since *ret)
{
    for (size_t i = first; i < stretch->hours_n; i++) {
        const struct idle_gap *hour = &stretch->hours[i];
        struct span span = {hour_floor(hour->span.to - 1), hour->span.to};
        if (i == first)
            span.from = hour->span.from;
        ret->observed_ms += hour->ms;
        if (hour->ms < span.to - span.from)
            add_gap(ret, span, span.to - span.from - hour->ms);
    }
}

static void find_cost(const struct stretch *stretch, const struct view_node *node,
                      struct idle_since *ret)
{
    wide_t sum = 0;
    ret->priced = true;
    for (time_ms hour = hour_floor(ret->span.from); hour < ret->span.to; hour += HOUR_MS) {
        const struct view_price *price = price_at(node, hour);
        time_ms from = hour > ret->span.from ? hour : ret->span.from;
        time_ms to = hour + HOUR_MS < ret->span.to ? hour + HOUR_MS : ret->span.to;
        if (!price || price->flags & FLAG_UNPRICED || price->gpus <= 0) {
            ret->priced = false;
            return;
        }
        wide_t share = (wide_t)price->price * (wide_t)stretch->n;
        sum += share * (to - from) * (SHARE_UNIT / price->gpus);
        ret->hourly = money_round(share, price->gpus);
    }
    ret->cost = money_round(sum, (wide_t)SHARE_UNIT * HOUR_MS);
}

void idle_since_of(const struct view *view, const struct view_node *node,
                   const struct view_device *devices, size_t n, time_ms gap_ms,
                   struct idle_since *ret)
{
    struct stretch stretch = {.view = view, .devices = devices, .n = n};
    *ret = (struct idle_since){0};
    if (n == 0 || !find_now(&stretch, node, gap_ms))
        return;
    find_begin(&stretch);
    observe(&stretch);
    size_t first = first_hour(&stretch);
    if (first < stretch.hours_n) {
        ret->any = true;
        ret->span = (struct span){stretch.hours[first].span.from, stretch.life.to};
        find_gaps(&stretch, first, ret);
        find_cost(&stretch, node, ret);
    }
    free(stretch.hours);
}

bool idle_since_is_finding(const struct idle_since *since)
{
    int64_t ms = since->span.to - since->span.from;
    return since->any && ms >= IDLE_ADVICE_MS &&
           (wide_t)since->observed_ms * NANO >= (wide_t)ms * IDLE_ADVICE_OBSERVED;
}
