#include "source/plan.h"

#include <pthread.h>
#include <stdlib.h>

#define STEP_MAX_MS (2 * DAY_MS)
#define GROW_MAX 4

struct lane {
    const struct wanted_metric *metric;
    time_ms first, last, step, whole;
    bool busy;
};

struct plan {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct lane *lanes;
    size_t n;
    uint64_t target;
    bool fixed; /* pieces do not grow */
    bool stopped;
};

struct plan *plan_new(const struct plan_lane *lanes, size_t n, time_ms step_ms, uint64_t target)
{
    struct plan *plan = mem_zalloc(1, sizeof *plan);
    pthread_mutex_init(&plan->lock, NULL);
    pthread_cond_init(&plan->changed, NULL);
    plan->lanes = mem_zalloc(n ? n : 1, sizeof *plan->lanes);
    plan->n = n;
    plan->target = target;
    plan->fixed = step_ms == TIME_MAX;
    for (size_t i = 0; i < n; i++)
        plan->lanes[i] = (struct lane){.metric = lanes[i].metric,
                                       .first = lanes[i].first,
                                       .last = lanes[i].last,
                                       .step = step_ms,
                                       .whole = lanes[i].last - lanes[i].first + 1};
    return plan;
}

void plan_free(struct plan *plan)
{
    if (!plan)
        return;
    pthread_cond_destroy(&plan->changed);
    pthread_mutex_destroy(&plan->lock);
    free(plan->lanes);
    free(plan);
}

/* Lock held. *ret_more: some lane is not finished. */
static struct lane *free_lane(struct plan *plan, bool *ret_more)
{
    *ret_more = false;
    for (size_t i = 0; i < plan->n; i++) {
        struct lane *lane = &plan->lanes[i];
        if (lane->first > lane->last)
            continue;
        *ret_more = true;
        if (!lane->busy)
            return lane;
    }
    return NULL;
}

bool plan_take(struct plan *plan, struct piece *ret)
{
    bool more = true;
    struct lane *lane = NULL;
    pthread_mutex_lock(&plan->lock);
    while (!plan->stopped && !(lane = free_lane(plan, &more)) && more)
        pthread_cond_wait(&plan->changed, &plan->lock);
    if (lane) {
        lane->busy = true;
        bool whole = lane->step > lane->last - lane->first;
        *ret = (struct piece){.metric = lane->metric,
                              .first = lane->first,
                              .last = whole ? lane->last : lane->first + lane->step - 1,
                              .lane = (size_t)(lane - plan->lanes)};
    }
    pthread_mutex_unlock(&plan->lock);
    return lane != NULL;
}

void plan_done(struct plan *plan, const struct piece *piece, uint64_t samples)
{
    pthread_mutex_lock(&plan->lock);
    struct lane *lane = &plan->lanes[piece->lane];
    lane->busy = false;
    lane->first = piece->last + 1;
    if (!plan->fixed) {
        uint64_t factor = plan->target / (samples + 1);
        if (factor > GROW_MAX)
            factor = GROW_MAX;
        if (factor > 1)
            lane->step *= (time_ms)factor;
        else if (samples > plan->target * 2)
            lane->step /= 2;
        if (lane->step > STEP_MAX_MS)
            lane->step = STEP_MAX_MS;
        if (lane->step < PLAN_STEP_MIN_MS)
            lane->step = PLAN_STEP_MIN_MS;
    }
    pthread_cond_broadcast(&plan->changed);
    pthread_mutex_unlock(&plan->lock);
}

bool plan_halve(struct plan *plan, const struct piece *piece)
{
    time_ms half = (piece->last - piece->first + 1) / 2;
    if (half < PLAN_STEP_MIN_MS)
        return false;
    pthread_mutex_lock(&plan->lock);
    plan->lanes[piece->lane].busy = false;
    plan->lanes[piece->lane].step = half;
    pthread_cond_broadcast(&plan->changed);
    pthread_mutex_unlock(&plan->lock);
    return true;
}

void plan_stop(struct plan *plan)
{
    pthread_mutex_lock(&plan->lock);
    plan->stopped = true;
    pthread_cond_broadcast(&plan->changed);
    pthread_mutex_unlock(&plan->lock);
}

bool plan_finished(struct plan *plan)
{
    bool more = true;
    pthread_mutex_lock(&plan->lock);
    free_lane(plan, &more);
    pthread_mutex_unlock(&plan->lock);
    return !more;
}

double plan_progress(struct plan *plan)
{
    double done = 0;
    pthread_mutex_lock(&plan->lock);
    for (size_t i = 0; i < plan->n; i++) {
        const struct lane *lane = &plan->lanes[i];
        done +=
            lane->whole > 0 ? 1 - (double)(lane->last - lane->first + 1) / (double)lane->whole : 1;
    }
    double progress = plan->n ? done / (double)plan->n : 1;
    pthread_mutex_unlock(&plan->lock);
    return progress;
}
