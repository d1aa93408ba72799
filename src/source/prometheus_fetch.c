/* A fetch: a handful of threads, each with a connection and a decoder of its own, work off the
 * plan. The thread that called waits, tells of progress, and joins them.
 *
 *     plan ──piece──> thread: HTTP ── decoder ── delivery ──> intake        (as many as in_flight)
 *
 * A slow intake slows the decoder, and that the server, through TCP: nothing piles up. */
#include "source/prometheus_impl.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#define IN_FLIGHT_MAX 64 /* also the most that options allow */
#define REPORT_EVERY_MS 100
#define STEP_MS HOUR_MS           /* first piece of a metric, where answers are no streams */
#define TARGET ((uint64_t)500000) /* samples that such an answer should have: 14 MB of JSON */
#define TIMEOUTS_MAX 3            /* in a row: shorter pieces do not help then */

struct run {
    const struct prometheus *prometheus;
    struct intake *intake;
    struct progress *progress;
    struct plan *plan;
    struct tally tally;
    pthread_mutex_t lock;
    pthread_cond_t home;
    int running;
    int timeouts;
    enum err code; /* the first failure */
    struct error err;
};

static void run_fail(struct run *run, enum err code, const struct error *err)
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
static bool run_timed_out(struct run *run, enum err code)
{
    pthread_mutex_lock(&run->lock);
    run->timeouts = code == ERR_NETWORK ? run->timeouts + 1 : 0;
    bool too_many = run->timeouts > TIMEOUTS_MAX;
    pthread_mutex_unlock(&run->lock);
    return too_many;
}

static bool run_piece(struct run *run, struct asker *asker, const struct piece *piece)
{
    struct error err = {0};
    uint64_t before = delivery_count(asker->delivery);
    enum err e = run->prometheus->api == PROMETHEUS_QUERY
                     ? prometheus_query_piece(asker, piece, &err)
                     : prometheus_read_piece(asker, piece, &err);
    bool timed_out = run_timed_out(run, e);
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
    struct run *run = context;
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

static void run_report(struct run *run)
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
static void run_wait(struct run *run)
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

static void run_threads(struct run *run, size_t lanes_n)
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

static struct plan_lane *make_lanes(const struct prometheus *prometheus, const struct fetch *fetch,
                                    size_t *ret_n)
{
    size_t wanted_n, n = 0;
    const struct wanted_metric *wanted = wanted_metrics(&wanted_n);
    struct plan_lane *lanes = mem_zalloc(wanted_n, sizeof *lanes);
    bool nodes_recorded = false;
    for (size_t i = 0; i < wanted_n; i++)
        nodes_recorded = nodes_recorded || (strcmp(wanted[i].name, "kube_node_info") == 0 &&
                                            prometheus->present && prometheus->present[i]);
    for (size_t i = 0; i < wanted_n; i++) {
        if (prometheus->present && !prometheus->present[i])
            continue;
        /* Without records of nodes it is samples that tell that a node was up. */
        bool wide = wanted[i].group == METRIC_GROUP_KUBE || !nodes_recorded;
        const struct span *span = wide ? &fetch->kube : &fetch->gpu;
        if (span->from <= span->to)
            lanes[n++] =
                (struct plan_lane){.metric = &wanted[i], .first = span->from, .last = span->to};
    }
    *ret_n = n;
    return lanes;
}

static enum err ensure_api(struct prometheus *prometheus, struct run *run, struct error *err)
{
    if (prometheus->api != PROMETHEUS_AUTO)
        return ERR_OK;
    struct asker asker = {
        .prometheus = prometheus,
        .client = http_client_new(prometheus->site, run->progress ? run->progress->stop : NULL),
        .tally = &run->tally};
    enum err e = prometheus_choose_api(prometheus, &asker, clock_now(), err);
    http_client_free(asker.client);
    return e;
}

enum err prometheus_fetch(struct source *source, const struct fetch *fetch, struct intake *intake,
                          struct progress *progress, struct error *err)
{
    struct prometheus *prometheus = (struct prometheus *)source;
    struct run run = {.prometheus = prometheus, .intake = intake, .progress = progress};
    enum err e = ensure_api(prometheus, &run, err);
    if (e != ERR_OK)
        return e;
    pthread_mutex_init(&run.lock, NULL);
    pthread_cond_init(&run.home, NULL);
    size_t n;
    struct plan_lane *lanes = make_lanes(prometheus, fetch, &n);
    if (!prometheus->has_gpus)
        intake_note(intake, NOTE_PARTIAL, str_of(http_site_url(prometheus->site)), 1,
                    STR("the server has no metrics of GPUs, only of Kubernetes: is dcgm-exporter "
                        "installed, and scraped by it?"));
    bool streams = prometheus->api == PROMETHEUS_REMOTE_READ;
    run.plan = plan_new(lanes, n, streams ? TIME_MAX : STEP_MS, TARGET);
    run_threads(&run, n);
    run_report(&run);
    if (run.code != ERR_OK && err)
        *err = run.err;
    plan_free(run.plan);
    free(lanes);
    pthread_cond_destroy(&run.home);
    pthread_mutex_destroy(&run.lock);
    return run.code;
}
