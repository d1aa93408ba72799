#include "source/prometheus_live.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>

#include "source/prometheus_impl.h"
#include "wire/query_json.h"

#define ANSWER_MS 10000 /* an answer that stands still for so long is given up */
#define SPAN_LEAST_MS ((time_ms)30 * 1000)
#define LABELS_MAX 128

struct prometheus_live {
    struct source *source;
    struct live *live;
    char *cluster;
    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t wake, answered;
    pthread_t thread;
    bool started, wanted, tried; /* tried: the first question is over */
    time_ms began;               /* monotonic: the first look */
    volatile int stop;
    /* the thread's */
    time_ms span; /* of the next question */
    live_ref ref;
    time_ms last, spacing; /* of the series: newest stamp; the widest of any series */
};

/* What a page shows; energy, XIDs and the like are the books'. */
static bool is_shown(enum signal signal)
{
    return signal == SIGNAL_UTIL || signal == SIGNAL_GR || signal == SIGNAL_SM ||
           signal == SIGNAL_POWER || (signal >= SIGNAL_MEM_USED && signal <= SIGNAL_MEM_TOTAL);
}

static void write_query(const struct prometheus_live *live, struct strbuf *out)
{
    const char *more = ((const struct prometheus *)live->source)->matcher;
    strbuf_add(out, STR("{__name__=~\""));
    for (size_t i = 0, n = 0; i < signal_names_n; i++)
        if (is_shown(signal_names[i].signal))
            strbuf_addf(out, "%s%s", n++ ? "|" : "", signal_names[i].metric);
    strbuf_addf(out, "\"%s%s}[%" PRId64 "ms]", *more ? "," : "", more, live->span);
}

static bool take_series(void *context, const struct label *labels, size_t n)
{
    struct prometheus_live *live = context;
    struct label with[LABELS_MAX];
    live->last = TIME_MIN;
    if (*live->cluster && n < LABELS_MAX && !labels_get(labels, n, STR("cluster")).n) {
        memcpy(with, labels, n * sizeof *labels);
        with[n++] = (struct label){STR("cluster"), str_of(live->cluster)};
        labels = with;
    }
    live->ref = live_series(live->live, labels, n);
    return live->ref != LIVE_NONE;
}

/* A value that is no number is no sample (and VictoriaMetrics' stale markers look so). */
static void take_samples(void *context, const time_ms *t, const double *v, size_t n)
{
    struct prometheus_live *live = context;
    live_ref refs[QUERY_JSON_BATCH];
    for (size_t i = 0; i < n && i < QUERY_JSON_BATCH; i++) {
        refs[i] = isnan(v[i]) ? LIVE_NONE : live->ref;
        if (live->last != TIME_MIN && t[i] - live->last > live->spacing)
            live->spacing = t[i] - live->last;
        live->last = t[i];
    }
    live_samples(live->live, refs, t, v, n < QUERY_JSON_BATCH ? n : QUERY_JSON_BATCH);
}

/* The next selector has two samples or three of each series; where one had a single sample only,
 * the scrapes are further apart than is known. */
static void set_span(struct prometheus_live *live)
{
    time_ms span = live->spacing ? live->spacing * 5 / 2 : PROMETHEUS_LIVE_SPAN_MS;
    live->span = span < SPAN_LEAST_MS             ? SPAN_LEAST_MS
                 : span > PROMETHEUS_LIVE_SPAN_MS ? PROMETHEUS_LIVE_SPAN_MS
                                                  : span;
}

/* What fails is no error of the service's: the figures grow old, and say so; the books of the
 * server complain by themselves. */
static void ask(struct prometheus_live *live, struct http_client *client)
{
    struct tally tally = {0};
    struct error err = {0};
    struct strbuf query = {0};
    struct asker asker = {
        .prometheus = (const struct prometheus *)live->source, .client = client, .tally = &tally};
    struct query_json_sink sink = {.context = live, .series = take_series, .samples = take_samples};
    write_query(live, &query);
    live->spacing = 0;
    if (prometheus_selector(&asker, strbuf_str(&query), &sink, &err) == ERR_OK)
        set_span(live);
    strbuf_release(&query);
}

static void wait_until(struct prometheus_live *live, pthread_cond_t *what, time_ms ms,
                       const bool *until)
{
    struct timespec end;
    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_sec += ms / 1000;
    end.tv_nsec += ms % 1000 * 1000000;
    end.tv_sec += end.tv_nsec / 1000000000;
    end.tv_nsec %= 1000000000;
    while (!live->stop && !(until && *until) &&
           pthread_cond_timedwait(what, &live->lock, &end) != ETIMEDOUT)
        ;
}

static void *run(void *context)
{
    struct prometheus_live *live = context;
    const struct prometheus *prometheus = (const struct prometheus *)live->source;
    struct http_client *client = http_client_new(prometheus->site, &live->stop);
    pthread_mutex_lock(&live->lock);
    while (!live->stop) {
        if (!live->wanted) {
            pthread_cond_wait(&live->wake, &live->lock);
            continue;
        }
        live->wanted = false;
        pthread_mutex_unlock(&live->lock);
        ask(live, client);
        pthread_mutex_lock(&live->lock);
        live->tried = true;
        pthread_cond_broadcast(&live->answered);
        wait_until(live, &live->wake, PROMETHEUS_LIVE_MS, NULL);
    }
    pthread_mutex_unlock(&live->lock);
    http_client_free(client);
    return NULL;
}

enum err prometheus_live_new(const struct prometheus_options *options, const char *cluster,
                             struct live *to, struct prometheus_live **ret, struct error *err)
{
    struct prometheus_options quick = *options;
    struct source *source = NULL;
    quick.retries = 0;
    if (quick.idle_timeout_ms > ANSWER_MS)
        quick.idle_timeout_ms = ANSWER_MS;
    enum err code = prometheus_source_new(&quick, &source, err);
    if (code)
        return code;
    struct prometheus_live *live = mem_zalloc(1, sizeof *live);
    live->source = source;
    live->live = to;
    live->cluster = str_dup(str_of(cluster));
    live->span = PROMETHEUS_LIVE_SPAN_MS;
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&live->wake, &monotonic);
    pthread_cond_init(&live->answered, &monotonic);
    pthread_condattr_destroy(&monotonic);
    pthread_mutex_init(&live->lock, NULL);
    *ret = live;
    return ERR_OK;
}

void prometheus_live_free(struct prometheus_live *live)
{
    if (!live)
        return;
    pthread_mutex_lock(&live->lock);
    __atomic_store_n(&live->stop, 1, __ATOMIC_RELAXED);
    pthread_cond_broadcast(&live->wake);
    pthread_cond_broadcast(&live->answered);
    pthread_mutex_unlock(&live->lock);
    if (live->started)
        pthread_join(live->thread, NULL);
    source_free(live->source);
    pthread_cond_destroy(&live->wake);
    pthread_cond_destroy(&live->answered);
    pthread_mutex_destroy(&live->lock);
    free(live->cluster);
    free(live);
}

void prometheus_live_want(struct prometheus_live *live, time_ms wait_ms)
{
    pthread_mutex_lock(&live->lock);
    live->wanted = true;
    if (!live->started && !live->stop) {
        live->started = pthread_create(&live->thread, NULL, run, live) == 0;
        live->began = clock_monotonic();
    }
    /* the pause between two questions is the thread's own: only one that sleeps is woken */
    pthread_cond_signal(&live->wake);
    time_ms left = live->began + wait_ms - clock_monotonic();
    if (live->started && !live->tried && left > 0)
        wait_until(live, &live->answered, left, &live->tried);
    pthread_mutex_unlock(&live->lock);
}
