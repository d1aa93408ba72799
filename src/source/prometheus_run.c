/* The threads of a fetch: a handful, each with a connection and a decoder of its own, work off a
 * plan. The thread that called waits, tells of progress, and joins them.
 *
 *     plan ──piece──> thread: HTTP ── decoder ── delivery ──> intake        (as many as in_flight)
 *
 * A slow intake slows the decoder, and that the server, through TCP: nothing piles up. */
#include <stdlib.h>
#include <time.h>

#include "source/prometheus_impl.h"

#define IN_FLIGHT_MAX 64 /* also the most that options allow */
#define REPORT_EVERY_MS 100
#define STEP_MS HOUR_MS                /* first piece of a metric, where answers are no streams */
#define TARGET ((uint64_t)500000)      /* samples that such an answer should have: 14 MB of JSON */
#define TARGET_LOADS ((uint64_t)20000) /* likewise of sums: each is of some 200 samples */
#define TIMEOUTS_MAX 3                 /* in a row: shorter pieces do not help then */

static void run_fail(struct prometheus_run *run, enum err code, const struct error *err)
{
    pthread_mutex_lock(&run->lock);
    if (run->code == ERR_OK) {
        run->code = code;
        run->err = *err;
    }
    pthread_mutex_unlock(&run->lock);
    plan_stop(run->plan);
}

/* Did too many pieces in a row time out? */
static bool run_timed_out(struct prometheus_run *run, enum err code)
{
    pthread_mutex_lock(&run->lock);
    run->timeouts = code == ERR_NETWORK ? run->timeouts + 1 : 0;
    bool too_many = run->timeouts > TIMEOUTS_MAX;
    pthread_mutex_unlock(&run->lock);
    return too_many;
}

/* A lane is one thread's at a time, and so is its metric's count. */
static void count_series(struct prometheus_run *run, const struct wanted_metric *metric,
                         uint64_t more)
{
    size_t n;
    const struct wanted_metric *wanted = wanted_metrics(&n);
    if (metric >= wanted && metric < wanted + n)
        run->prometheus->series[metric - wanted] += more;
}

static bool run_piece(struct prometheus_run *run, struct asker *asker, const struct piece *piece)
{
    struct error err = {0};
    uint64_t before = delivery_count(asker->delivery);
    uint64_t series = delivery_series_count(asker->delivery);
    prometheus_watch(run, piece->metric, asker->delivery);
    enum err e = run->loads ? prometheus_load_piece(asker, piece, &err)
                 : run->prometheus->api == PROMETHEUS_QUERY
                     ? prometheus_query_piece(asker, piece, &err)
                     : prometheus_read_piece(asker, piece, &err);
    bool timed_out = run_timed_out(run, e);
    count_series(run, piece->metric, delivery_series_count(asker->delivery) - series);
    if (e == ERR_OK) {
        plan_done(run->plan, piece, delivery_count(asker->delivery) - before);
        return true;
    }
    if (asker->too_large && !timed_out && plan_halve(run->plan, piece))
        return true;
    if (asker->too_large && e == ERR_LIMIT && !err.text[sizeof err.text / 2])
        strcat(err.text, "; that is for a minute of it: narrow it with --matcher, or raise the "
                         "server's limit");
    if (e != ERR_STOPPED)
        error_prefix(&err, "reading %s", piece->metric->name);
    run_fail(run, e, &err);
    return false;
}

static void *run_thread(void *context)
{
    struct prometheus_run *run = context;
    const volatile int *stop = run->progress ? run->progress->stop : NULL;
    struct asker asker = {.prometheus = run->prometheus,
                          .client = http_client_new(run->prometheus->site, stop),
                          .delivery = delivery_new(run->intake, &run->tally),
                          .intake = run->intake,
                          .tally = &run->tally};
    struct piece piece;
    while (plan_take(run->plan, &piece) && run_piece(run, &asker, &piece))
        ;
    delivery_free(asker.delivery);
    http_client_free(asker.client);
    pthread_mutex_lock(&run->lock);
    run->running--;
    pthread_cond_signal(&run->home);
    pthread_mutex_unlock(&run->lock);
    return NULL;
}

static void run_report(struct prometheus_run *run)
{
    struct progress *progress = run->progress;
    if (!progress || !progress->report)
        return;
    struct progress now = *progress;
    char what[300];
    snprintf(what, sizeof what, "reading %s", http_site_url(run->prometheus->site));
    now.what = what;
    now.series = atomic_load_explicit(&run->tally.series, memory_order_relaxed);
    now.samples = atomic_load_explicit(&run->tally.samples, memory_order_relaxed);
    now.bytes = atomic_load_explicit(&run->tally.bytes, memory_order_relaxed);
    now.done = plan_progress(run->plan);
    progress->report(progress->context, &now);
}

/* Wait until all threads are home; report now and then, without the lock. */
static void run_wait(struct prometheus_run *run)
{
    pthread_mutex_lock(&run->lock);
    while (run->running > 0) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += REPORT_EVERY_MS * 1000000L;
        until.tv_sec += until.tv_nsec / 1000000000L;
        until.tv_nsec %= 1000000000L;
        pthread_cond_timedwait(&run->home, &run->lock, &until);
        pthread_mutex_unlock(&run->lock);
        run_report(run);
        pthread_mutex_lock(&run->lock);
    }
    pthread_mutex_unlock(&run->lock);
}

static void run_threads(struct prometheus_run *run, size_t lanes_n)
{
    pthread_t threads[IN_FLIGHT_MAX];
    size_t wanted = (size_t)run->prometheus->in_flight, started = 0;
    if (wanted > lanes_n)
        wanted = lanes_n;
    run->running = (int)wanted;
    for (; started < wanted; started++)
        if (pthread_create(&threads[started], NULL, run_thread, run) != 0)
            break;
    pthread_mutex_lock(&run->lock);
    run->running -= (int)(wanted - started);
    pthread_mutex_unlock(&run->lock);
    if (started == 0 && wanted) {
        struct error err;
        run_fail(run, error_set(&err, ERR_LIMIT, "no thread could be started"), &err);
    }
    run_wait(run);
    for (size_t i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
}

/* Work off lanes, all of them. */
void prometheus_run_lanes(struct prometheus_run *run, const struct plan_lane *lanes, size_t n)
{
    bool streams = run->prometheus->api == PROMETHEUS_REMOTE_READ;
    if (run->loads)
        run->plan = plan_new(lanes, n, STEP_MS, TARGET_LOADS);
    else
        run->plan = plan_new(lanes, n, streams ? TIME_MAX : STEP_MS, TARGET);
    run_threads(run, n);
    run_report(run);
    plan_free(run->plan);
    run->plan = NULL;
}
