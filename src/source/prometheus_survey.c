/* A look before the run: does the server answer, is it a Prometheus, which of the wanted metrics
 * has it, since when, and how many samples an hour.
 *
 * Since when: names of metrics are asked for [from, x] with x halved between, an hour exact.
 * Servers answer that by whole blocks, so that the start may come out too early, never too late;
 * that only costs a look into empty hours. Samples an hour: live series at a few instants of the
 * window, times the samples of the densest series in an hour. Where a server does not answer these,
 * the run goes without them. */
#include "source/prometheus_impl.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#define SAMPLES_AN_HOUR_GUESS 500000.0 /* where the server does not say: 400 GPUs */
#define LOOKS 4                        /* instants of the window at which series are counted */

struct survey {
    struct prometheus *prometheus;
    struct asker asker;
    struct tally tally;
    const struct wanted_metric *wanted;
    size_t wanted_n;
    bool *seen;     /* of a list of names: by place in wanted */
    uint64_t *most; /* series of a metric at one of the looks */
    uint64_t names;
    struct span window;
    double value; /* of an instant query: the largest */
};

static void survey_name(void *context, struct str name)
{
    struct survey *survey = context;
    survey->names++;
    for (size_t i = 0; i < survey->wanted_n; i++)
        if (str_eq(name, str_of(survey->wanted[i].name)))
            survey->seen[i] = true;
}

/* Fill seen and names with what the server has in [from, to). */
static enum err survey_names(struct survey *survey, time_ms from, time_ms to, struct error *err)
{
    survey->names = 0;
    memset(survey->seen, 0, survey->wanted_n * sizeof *survey->seen);
    return prometheus_names(&survey->asker, from, to, survey_name, survey, err);
}

static bool seen_any(const struct survey *survey, enum metric_group group)
{
    for (size_t i = 0; i < survey->wanted_n; i++)
        if (survey->seen[i] && survey->wanted[i].group == group)
            return true;
    return false;
}

static void survey_value(void *context, const struct label *labels, size_t n, double v)
{
    struct survey *survey = context;
    (void)labels, (void)n;
    if (v > survey->value)
        survey->value = v;
}

/* The largest value of an instant query, 0 where it has none or fails. */
static double survey_ask(struct survey *survey, struct strbuf *query, time_ms t)
{
    survey->value = 0;
    prometheus_instant(&survey->asker, strbuf_str(query), t, survey_value, survey, NULL);
    strbuf_clear(query);
    return survey->value;
}

/* Nodes with GPUs by kube-state-metrics: a ledger is possible without GPU metrics. */
static bool has_gpu_nodes(struct survey *survey)
{
    struct strbuf query = {0};
    bool found = false;
    time_ms length = survey->window.to - survey->window.from;
    for (int i = 0; i < LOOKS && !found; i++) {
        strbuf_addf(&query,
                    "count(kube_node_status_capacity{resource=~\"nvidia_com_.*|amd_com_.*\""
                    "%s%s})",
                    *survey->prometheus->matcher ? "," : "", survey->prometheus->matcher);
        found = survey_ask(survey, &query, survey->window.to - length / LOOKS * i) > 0;
    }
    strbuf_release(&query);
    return found;
}

/* No GPU metrics in the window: is that an error, and which one? */
static enum err without_gpus(struct survey *survey, struct error *err)
{
    const char *url = http_site_url(survey->prometheus->site);
    char from[TIME_TEXT_MAX], to[TIME_TEXT_MAX];
    uint64_t names = survey->names;
    if (seen_any(survey, METRIC_GROUP_KUBE) && has_gpu_nodes(survey))
        return ERR_OK;
    enum err e = survey_names(survey, TIME_MIN, TIME_MIN, err);
    if (e == ERR_STOPPED)
        return e;
    time_format(survey->window.from, from);
    time_format(survey->window.to, to);
    if (e == ERR_OK && seen_any(survey, METRIC_GROUP_GPU))
        return error_set(err, ERR_NOT_FOUND,
                         "%s has GPU metrics, but none from %s to %s: does it keep them that long? "
                         "Give another --window",
                         url, from, to);
    if (e == ERR_OK && survey->names == 0)
        return error_set(err, ERR_NOT_FOUND,
                         "%s has no metrics at all: is it the server that scrapes the cluster (and "
                         "the right tenant)?",
                         url);
    return error_set(err, ERR_NOT_FOUND,
                     "%s has %" PRIu64 " metrics from %s to %s, none of them of GPUs "
                     "(DCGM_FI_DEV_GPU_UTIL and the like): is dcgm-exporter installed, and scraped "
                     "by this server?",
                     url, names, from, to);
}

/* The first hour of the window that may have data. */
static enum err survey_start(struct survey *survey, time_ms *ret, struct error *err)
{
    time_ms low = survey->window.from, high = hour_ceil(survey->window.to);
    enum err e = survey_names(survey, low, low + HOUR_MS, err);
    if (e == ERR_OK && (seen_any(survey, METRIC_GROUP_GPU) || seen_any(survey, METRIC_GROUP_KUBE)))
        high = low;
    while (e == ERR_OK && high - low > HOUR_MS) {
        time_ms middle = hour_floor(low + (high - low) / 2);
        e = survey_names(survey, survey->window.from, middle, err);
        if (seen_any(survey, METRIC_GROUP_GPU) || seen_any(survey, METRIC_GROUP_KUBE))
            high = middle;
        else
            low = middle;
    }
    *ret = e == ERR_OK ? low : survey->window.from;
    return e == ERR_STOPPED || e == ERR_AUTH ? e : ERR_OK;
}

static bool has_nodes(const struct survey *survey)
{
    for (size_t i = 0; i < survey->wanted_n; i++)
        if (survey->prometheus->present[i] && strcmp(survey->wanted[i].name, "kube_node_info") == 0)
            return true;
    return false;
}

/* `{__name__=~"metric|metric|…",MATCHER}` of the GPU metrics that are there. */
static void add_gpu_metrics(const struct survey *survey, struct strbuf *query)
{
    const char *more = survey->prometheus->matcher, *between = "";
    strbuf_addf(query, "{__name__=~\"");
    for (size_t i = 0; i < survey->wanted_n; i++) {
        if (survey->wanted[i].group != METRIC_GROUP_GPU || !survey->prometheus->present[i])
            continue;
        strbuf_addf(query, "%s%s", between, survey->wanted[i].name);
        between = "|";
    }
    strbuf_addf(query, "\"%s%s}", *more ? "," : "", more);
}

static void survey_series(void *context, const struct label *labels, size_t n, double v)
{
    struct survey *survey = context;
    struct str name = labels_get(labels, n, STR("__name__"));
    survey->value += v;
    for (size_t i = 0; i < survey->wanted_n; i++)
        if (str_eq(name, str_of(survey->wanted[i].name)) && v > (double)survey->most[i])
            survey->most[i] = (uint64_t)v;
}

/* The most series that each GPU metric had at the looks; the most of all at one of them, *ret_t. */
static double survey_live(struct survey *survey, time_ms *ret_t)
{
    time_ms length = survey->window.to - survey->window.from;
    struct strbuf query = {0};
    double most = 0;
    strbuf_addf(&query, "count by (__name__) (");
    add_gpu_metrics(survey, &query);
    strbuf_addf(&query, ")");
    for (int i = 0; i < LOOKS; i++) {
        time_ms t = survey->window.to - length / LOOKS * i;
        survey->value = 0;
        prometheus_instant(&survey->asker, strbuf_str(&query), t, survey_series, survey, NULL);
        if (survey->value > most) {
            most = survey->value;
            *ret_t = t;
        }
    }
    strbuf_release(&query);
    return most;
}

/* Samples an hour of GPU metrics, 0 where it cannot be found out. */
static double survey_rate(struct survey *survey)
{
    time_ms t = survey->window.to;
    double series = survey_live(survey, &t), samples = 0;
    size_t fullest = SIZE_MAX;
    struct strbuf query = {0};
    for (size_t i = 0; i < survey->wanted_n; i++)
        if (survey->wanted[i].group == METRIC_GROUP_GPU && survey->prometheus->present[i] &&
            (fullest == SIZE_MAX || survey->most[i] > survey->most[fullest]))
            fullest = i;
    if (series > 0 && fullest != SIZE_MAX) {
        memcpy(survey->prometheus->series, survey->most, survey->wanted_n * sizeof *survey->most);
        strbuf_addf(&query, "max(count_over_time(%s{%s}[1h]))", survey->wanted[fullest].name,
                    survey->prometheus->matcher);
        samples = survey_ask(survey, &query, t);
    }
    strbuf_release(&query);
    return series * samples;
}

/* Is the cluster so large that only pods in namespaces with GPUs are read? */
static bool survey_narrow(struct survey *survey)
{
    const struct prometheus *prometheus = survey->prometheus;
    struct strbuf query = {0};
    bool narrow = false;
    time_ms length = survey->window.to - survey->window.from;
    for (int i = 0; i < LOOKS && !narrow && prometheus->narrow_from > 0 && has_nodes(survey); i++) {
        strbuf_addf(&query, "count(kube_pod_info{%s})", prometheus->matcher);
        narrow = survey_ask(survey, &query, survey->window.to - length / LOOKS * i) >=
                 (double)prometheus->narrow_from;
    }
    strbuf_release(&query);
    return narrow;
}

static void survey_present(struct survey *survey)
{
    struct prometheus *prometheus = survey->prometheus;
    if (!prometheus->present)
        prometheus->present = mem_zalloc(survey->wanted_n, sizeof *prometheus->present);
    memcpy(prometheus->present, survey->seen, survey->wanted_n * sizeof *survey->seen);
}

/* What is read around the window belongs to it: lives of pods and nodes begin before. */
static enum err survey_metrics(struct survey *survey, struct span *ret_extent,
                               double *ret_samples_an_hour, struct error *err)
{
    enum err e = survey_names(survey, survey->window.from - DAY_MS, survey->window.to, err);
    if (e == ERR_UNSUPPORTED || e == ERR_LIMIT) {
        /* Remote read without the rest of the API: everything is asked for. */
        free(survey->prometheus->present);
        survey->prometheus->present = NULL;
        *ret_samples_an_hour = SAMPLES_AN_HOUR_GUESS;
        return ERR_OK;
    }
    if (e != ERR_OK)
        return e;
    survey_present(survey);
    survey->prometheus->has_gpus = seen_any(survey, METRIC_GROUP_GPU);
    if (!survey->prometheus->has_gpus) {
        e = without_gpus(survey, err);
        if (e != ERR_OK)
            return e;
    }
    e = survey_start(survey, &ret_extent->from, err);
    if (e != ERR_OK)
        return e;
    survey->prometheus->narrow |= survey_narrow(survey);
    double rate = survey->prometheus->has_gpus ? survey_rate(survey) : 0;
    *ret_samples_an_hour = rate > 0 ? rate : SAMPLES_AN_HOUR_GUESS;
    return ERR_OK;
}

/* Remote read asked for nothing: only its status and type matter. */
static enum err probe_begin(void *context, const struct http_answer *answer, struct error *err)
{
    struct prometheus *prometheus = context;
    enum err e = prometheus_check_type(prometheus, answer, err);
    if (strstr(answer->content_type, REMOTE_READ_STREAMED_TYPE))
        prometheus->api = PROMETHEUS_REMOTE_READ;
    else if (strstr(answer->content_type, REMOTE_READ_CONTENT_TYPE))
        prometheus->api = PROMETHEUS_REMOTE_READ_SAMPLES;
    else if (e == ERR_OK)
        e = error_set(err, ERR_UNSUPPORTED, "%s answers remote read with '%s'",
                      http_site_url(prometheus->site), answer->content_type);
    return e;
}

enum err prometheus_choose_api(struct prometheus *prometheus, struct asker *asker, time_ms now,
                               struct error *err)
{
    static const char *const headers[] = {
        "Content-Encoding: " REMOTE_READ_CONTENT_ENCODING,
        "X-Prometheus-Remote-Read-Version: " REMOTE_READ_VERSION,
    };
    struct remote_read_matcher nothing = {REMOTE_READ_EQ, STR("__name__"), STR("gputally_probe")};
    struct remote_read_query query = {
        .start = now - 1000, .end = now, .matchers = &nothing, .matchers_n = 1};
    struct strbuf body = {0};
    remote_read_request(&query, 1, true, &body);
    struct http_request request = {.path = "/api/v1/read",
                                   .body = strbuf_str(&body),
                                   .content_type = REMOTE_READ_CONTENT_TYPE,
                                   .headers = headers,
                                   .headers_n = 2,
                                   .begin = probe_begin,
                                   .context = prometheus};
    struct http_answer answer = {0};
    enum err e = http_ask(asker->client, &request, &answer, err);
    strbuf_release(&body);
    if (e == ERR_STOPPED || e == ERR_IO || (e == ERR_NETWORK && answer.status == 0))
        return e;
    if (e != ERR_OK)
        prometheus->api = PROMETHEUS_QUERY;
    return ERR_OK;
}

enum err prometheus_survey(struct source *source, struct span window, struct span *ret_extent,
                           double *ret_samples_an_hour, struct progress *progress,
                           struct error *err)
{
    struct prometheus *prometheus = (struct prometheus *)source;
    struct survey survey = {.prometheus = prometheus, .window = window};
    survey.wanted = wanted_metrics(&survey.wanted_n);
    survey.seen = mem_zalloc(survey.wanted_n, sizeof *survey.seen);
    survey.most = mem_zalloc(survey.wanted_n, sizeof *survey.most);
    survey.asker = (struct asker){
        .prometheus = prometheus,
        .client = http_client_new(prometheus->site, progress ? progress->stop : NULL),
        .tally = &survey.tally};
    struct span extent = window;
    double samples = 0;
    enum err e = survey_metrics(&survey, &extent, &samples, err);
    if (e == ERR_OK && prometheus->api == PROMETHEUS_AUTO)
        e = prometheus_choose_api(prometheus, &survey.asker, clock_now(), err);
    if (e == ERR_OK && prometheus->api == PROMETHEUS_QUERY && !prometheus->present)
        e = error_set(err, ERR_PROTOCOL,
                      "%s answers neither /api/v1/label/__name__/values nor /api/v1/read: is it a "
                      "Prometheus server, and is its path prefix given?",
                      http_site_url(prometheus->site));
    if (e == ERR_OK) {
        *ret_extent = extent;
        *ret_samples_an_hour = samples;
    }
    http_client_free(survey.asker.client);
    free(survey.seen);
    free(survey.most);
    return e;
}
