/* The longest run without work, and what the last hours were: two views beside "idle since", of the
 * bits and sums that the view keeps of each GPU. */
#include "insight/idle.h"

const char *const idle_badge_words[BADGE_COUNT] = {
#define X(name, word) word,
    IDLE_BADGE_TABLE(X)
#undef X
};

static bool all_still(const struct view_device *devices, size_t n, size_t hour)
{
    for (size_t i = 0; i < n; i++)
        if (!(devices[i].still[hour / 64] >> (hour % 64) & 1))
            return false;
    return n > 0;
}

void idle_longest_of(const struct view *view, const struct view_device *devices, size_t n,
                     const struct idle_since *since, struct idle_run *ret)
{
    size_t hours = view_still_hours(view), run = 0, best = 0, best_end = 0;
    for (size_t h = 0; h < hours; h++) {
        run = all_still(devices, n, h) ? run + 1 : 0;
        if (run > best) {
            best = run;
            best_end = h + 1;
        }
    }
    time_ms to = view->still.from + (time_ms)best_end * HOUR_MS;
    *ret = (struct idle_run){best > 0, {to - (time_ms)best * HOUR_MS, to}};
    if (since->any && since->span.to - since->span.from > (time_ms)best * HOUR_MS)
        *ret = (struct idle_run){true, since->span};
}

void idle_recent_of(const struct view_device *devices, size_t n, struct idle_recent *ret)
{
    bool worked = false;
    *ret = (struct idle_recent){BADGE_UNKNOWN, n ? NANO : 0};
    for (size_t i = 0; i < n; i++) {
        const struct view_recent *recent = &devices[i].recent;
        wide_t observed = (wide_t)recent->observed_ms * NANO;
        int64_t share = recent->up_ms > 0 ? (int64_t)(observed / recent->up_ms) : 0;
        ret->observed = share < ret->observed ? share : ret->observed;
        worked |= recent->worked;
    }
    if (worked)
        ret->badge = BADGE_BUSY;
    else if (ret->observed >= IDLE_ADVICE_OBSERVED)
        ret->badge = BADGE_IDLE;
}
