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

#include "fleet/signals.h"

#define IN_FLIGHT_MAX 64 /* also the most that options allow */
#define REPORT_EVERY_MS 100
#define STEP_MS HOUR_MS           /* first piece of a metric, where answers are no streams */
#define TARGET ((uint64_t)500000) /* samples that such an answer should have: 14 MB of JSON */
#define MATCH_MAX ((size_t)4096)  /* bytes of a selector of exporters */
#define TIMEOUTS_MAX 3            /* in a row: shorter pieces do not help then */

struct run {
    struct prometheus *prometheus;
    struct intake *intake;
    struct progress *progress;
    struct plan *plan;
    struct tally tally;
    bool nodes_recorded; /* Kubernetes' records tell of nodes; else GPU samples do */
    enum signal fullest; /* the GPU signal that most series have */
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

/* A lane is one thread's at a time, and so is its metric's count. */
static void count_series(struct run *run, const struct wanted_metric *metric, uint64_t more)
{
    size_t n;
    const struct wanted_metric *wanted = wanted_metrics(&n);
    if (metric >= wanted && metric < wanted + n)
        run->prometheus->series[metric - wanted] += more;
}

/* Stamps of these metrics count as observations of Kubernetes (semantics, section 6). */
static bool is_observation(const struct wanted_metric *metric)
{
    return strcmp(metric->name, "kube_node_info") == 0 ||
           strcmp(metric->name, "kube_pod_info") == 0;
}

static struct seen *watcher(const struct run *run, const struct wanted_metric *metric)
{
    const struct signal_name *name = signal_of_metric(str_of(metric->name));
    if (is_observation(metric))
        return run->prometheus->observers;
    return name && name->signal == run->fullest ? run->prometheus->exporters : NULL;
}

static bool run_piece(struct run *run, struct asker *asker, const struct piece *piece)
{
    struct error err = {0};
    uint64_t before = delivery_count(asker->delivery);
    uint64_t series = delivery_series_count(asker->delivery);
    delivery_watch(asker->delivery, watcher(run, piece->metric));
    enum err e = run->prometheus->api == PROMETHEUS_QUERY
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

/* Work off lanes, all of them. */
static void run_lanes(struct run *run, const struct plan_lane *lanes, size_t n)
{
    bool streams = run->prometheus->api == PROMETHEUS_REMOTE_READ;
    run->plan = plan_new(lanes, n, streams ? TIME_MAX : STEP_MS, TARGET);
    run_threads(run, n);
    run_report(run);
    plan_free(run->plan);
    run->plan = NULL;
}

static bool is_present(const struct prometheus *prometheus, size_t place)
{
    return !prometheus->present || prometheus->present[place];
}

/* The GPU signal that most series have, by all its names: it stands for the presence of devices. */
static enum signal fullest_signal(const struct run *run)
{
    uint64_t series[SIGNAL_COUNT] = {0};
    size_t wanted_n, best = 0;
    const struct wanted_metric *wanted = wanted_metrics(&wanted_n);
    for (size_t i = 0; i < wanted_n; i++) {
        const struct signal_name *name = signal_of_metric(str_of(wanted[i].name));
        if (name && is_present(run->prometheus, i))
            series[name->signal] += run->prometheus->series[i] + 1;
    }
    for (size_t i = 0; i < SIGNAL_COUNT; i++)
        if (series[i] > series[best])
            best = i;
    return (enum signal)best;
}

/* What is read of a metric at first: all up to gpu.to. A first fetch has no fetch before it, and
 * reads from kube.from on what tells of nodes: records, or the samples where there are none. */
static struct span near_range(const struct run *run, const struct fetch *fetch,
                              const struct wanted_metric *metric)
{
    bool tells = metric->group == METRIC_GROUP_KUBE || !run->nodes_recorded;
    bool early = !run->prometheus->fetched && tells;
    return (struct span){early ? fetch->kube.from : fetch->gpu.from, fetch->gpu.to};
}

static void read_near(struct run *run, const struct fetch *fetch)
{
    size_t wanted_n, n = 0;
    const struct wanted_metric *wanted = wanted_metrics(&wanted_n);
    struct plan_lane *lanes = mem_zalloc(wanted_n, sizeof *lanes);
    run->fullest = fullest_signal(run);
    for (size_t i = 0; i < wanted_n; i++) {
        struct span range = near_range(run, fetch, &wanted[i]);
        if (is_present(run->prometheus, i))
            lanes[n++] =
                (struct plan_lane){.metric = &wanted[i], .first = range.from, .last = range.to};
    }
    run_lanes(run, lanes, n);
    free(lanes);
}

/* [first, last] of all present metrics of a group; match: more of their selectors. */
static void read_group(struct run *run, enum metric_group group, const char *match, time_ms first,
                       time_ms last)
{
    size_t wanted_n, n = 0;
    const struct wanted_metric *wanted = wanted_metrics(&wanted_n);
    struct wanted_metric *narrowed = mem_zalloc(wanted_n, sizeof *narrowed);
    struct plan_lane *lanes = mem_zalloc(wanted_n, sizeof *lanes);
    for (size_t i = 0; i < wanted_n; i++) {
        narrowed[i] = wanted[i];
        if (*match && !*wanted[i].match)
            narrowed[i].match = match;
        if (wanted[i].group == group && is_present(run->prometheus, i))
            lanes[n++] = (struct plan_lane){&narrowed[i], first, last};
    }
    if (first <= last && run->code == ERR_OK)
        run_lanes(run, lanes, n);
    free(lanes);
    free(narrowed);
}

/* GPU metrics after the near range, of the exporters that were silent there. */
static void read_silent_exporters(struct run *run, const struct fetch *fetch)
{
    struct strbuf regex = {0}, match = {0};
    seen_silent_after_regex(run->prometheus->exporters, fetch->hours, fetch->kube.from, &regex);
    strbuf_addf(&match, "instance=~\"");
    for (size_t i = 0; i < regex.n; i++)
        strbuf_addf(&match, strchr("\\\"", regex.text[i]) ? "\\%c" : "%c", regex.text[i]);
    strbuf_addf(&match, "\"");
    read_group(run, METRIC_GROUP_GPU, match.n > MATCH_MAX ? "" : match.text, fetch->gpu.to + 1,
               fetch->kube.to);
    strbuf_release(&regex);
    strbuf_release(&match);
}

/* Where somebody was silent at an edge of the hours, it matters within the reach of a record when
 * they were heard before, and with what they come back: nodes may have gone, pods ended, devices
 * moved. While kube-state-metrics is silent everything is read on, else those exporters only. */
static void read_far(struct run *run, const struct fetch *fetch)
{
    time_ms since = fetch->kube.from;
    struct silence observers = seen_silent(run->prometheus->observers, fetch->hours, since);
    struct silence exporters = seen_silent(run->prometheus->exporters, fetch->hours, since);
    if (observers.before && run->prometheus->fetched)
        read_group(run, METRIC_GROUP_KUBE, "", fetch->kube.from, fetch->gpu.from - 1);
    if (fetch->gpu.to >= clock_now())
        return; /* nobody was heard of yet */
    if (observers.after) {
        read_group(run, METRIC_GROUP_KUBE, "", fetch->gpu.to + 1, fetch->kube.to);
        read_group(run, METRIC_GROUP_GPU, "", fetch->gpu.to + 1, fetch->kube.to);
    } else if (exporters.after) {
        read_silent_exporters(run, fetch);
    }
}

static bool nodes_recorded(const struct prometheus *prometheus)
{
    size_t n;
    const struct wanted_metric *wanted = wanted_metrics(&n);
    for (size_t i = 0; i < n; i++)
        if (strcmp(wanted[i].name, "kube_node_info") == 0)
            return prometheus->present && prometheus->present[i];
    return false;
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
    seen_begin(prometheus->observers);
    seen_begin(prometheus->exporters);
    run.nodes_recorded = nodes_recorded(prometheus);
    if (!prometheus->has_gpus)
        intake_note(intake, NOTE_PARTIAL, str_of(http_site_url(prometheus->site)), 1,
                    STR("the server has no metrics of GPUs, only of Kubernetes: is dcgm-exporter "
                        "installed, and scraped by it?"));
    read_near(&run, fetch);
    if (run.code == ERR_OK)
        read_far(&run, fetch);
    prometheus->fetched |= run.code == ERR_OK;
    if (run.code != ERR_OK && err)
        *err = run.err;
    pthread_cond_destroy(&run.home);
    pthread_mutex_destroy(&run.lock);
    return run.code;
}
