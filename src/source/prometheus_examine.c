/* Questions of the doctor to a Prometheus-compatible server. Each is one instant query at the end
 * of the window; one that fails leaves its check unasked, and never the others.
 *
 * - Clocks: node_time_seconds is what a node's clock said when it was scraped, timestamp() when
 * that was by the server's clock; their difference is at least the time that the answer took. Ours
 *   against the server's: time() without a time.
 * - Down: up of the jobs that have GPU metrics; and the first words of why, from the list of
 * targets where the server has one.
 * - Oversampled: an energy counter of a GPU that draws power changes with every measurement, so
 * that samples over changes says how often each value is stored.
 * - Series: samples of a scrape as the server counts them, and by name of metric. */
#include "source/prometheus_impl.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>

#include "source/examine.h"
#include "util/idmap.h"

#define SKEW_MS 10000  /* clocks that differ less are good enough for samples of 15 s */
#define JOBS_MAX 16    /* with GPU metrics, that are looked at */
#define TWICE 1.5      /* each value is stored so often or more */
#define CHANGES_MIN 20 /* from so few changes an hour nothing is concluded */
#define TARGETS_BYTES_MAX ((size_t)16 << 20)
#define SAMPLE_BYTES_MIN 1.0 /* on disk; Prometheus's storage documentation: 1 to 2 */
#define SAMPLE_BYTES_MAX 2.0

struct examiner {
    struct prometheus *prometheus;
    struct asker asker;
    struct tally tally;
    struct exam *exam;
    time_ms at;
    double value; /* of the last query: the sum of its values, NAN none */
    size_t values;
    struct str jobs[JOBS_MAX];
    size_t jobs_n;
    struct arena arena;
    uint64_t unread, all; /* series of metrics that nobody here reads */
    struct strbuf why;    /* of the first target that is down */
};

static struct str label_of(const struct label *labels, size_t n, const char *const *names)
{
    for (; *names; names++) {
        struct str found = labels_get(labels, n, str_of(*names));
        if (found.n)
            return found;
    }
    return STR("?");
}

/* One query; what it says goes to `each`. False: it was not answered. */
static bool ask(struct examiner *examiner, prometheus_value_fn each, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static bool ask(struct examiner *examiner, prometheus_value_fn each, const char *format, ...)
{
    struct strbuf query = {0};
    va_list args;
    va_start(args, format);
    strbuf_addv(&query, format, args);
    va_end(args);
    examiner->value = (double)NAN;
    examiner->values = 0;
    enum err e = prometheus_instant(&examiner->asker, strbuf_str(&query), examiner->at, each,
                                    examiner, NULL);
    strbuf_release(&query);
    return e == ERR_OK;
}

static void take_sum(void *context, const struct label *labels, size_t n, double v)
{
    struct examiner *examiner = context;
    (void)labels, (void)n;
    if (isnan(v))
        return;
    examiner->value = examiner->values++ ? examiner->value + v : v;
}

/* ---- clocks ---- */

static void take_clock(void *context, const struct label *labels, size_t n, double v)
{
    static const char *const names[] = {"node", "nodename", "kubernetes_node", "instance", NULL};
    struct examiner *examiner = context;
    examiner->values++;
    if (!(fabs(v) * 1000 >= SKEW_MS) || fabs(v) > 1e12)
        return;
    struct str node = label_of(labels, n, names);
    exam_add(examiner->exam, EXAM_CLOCK, (int64_t)fabs(v), "%.*s is %.0f s %s", STR_ARG(node),
             fabs(v), v < 0 ? "behind" : "ahead");
}

static void examine_clocks(struct examiner *examiner, const char *matcher)
{
    struct exam *exam = examiner->exam;
    bool asked =
        ask(examiner, take_clock, "node_time_seconds{%s} - timestamp(node_time_seconds{%s})",
            matcher, matcher) &&
        examiner->values > 0;
    time_ms at = examiner->at, before = clock_now();
    examiner->at = TIME_MIN;
    if (ask(examiner, take_sum, "time()") && !isnan(examiner->value)) {
        time_ms server = (time_ms)(examiner->value * 1000), after = clock_now();
        time_ms off = before > server ? before - server : server > after ? after - server : 0;
        if (llabs(off) >= SKEW_MS)
            exam_add(exam, EXAM_CLOCK, llabs(off) / 1000, "this machine is %lld s %s the server %s",
                     (long long)(llabs(off) / 1000), off < 0 ? "behind" : "ahead of",
                     http_site_url(examiner->prometheus->site));
        asked = true;
    }
    examiner->at = at;
    exam->asked[EXAM_CLOCK] |= asked;
}

/* ---- jobs with GPU metrics ---- */

static void take_job(void *context, const struct label *labels, size_t n, double v)
{
    struct examiner *examiner = context;
    struct str job = labels_get(labels, n, STR("job"));
    (void)v;
    if (job.n && !memchr(job.p, '"', job.n) && !memchr(job.p, '\\', job.n) &&
        examiner->jobs_n < JOBS_MAX)
        examiner->jobs[examiner->jobs_n++] = str_keep(&examiner->arena, job);
}

static void add_names(struct strbuf *out, enum signal signal)
{
    for (size_t i = 0; i < signal_names_n; i++)
        if (signal_names[i].signal == signal)
            strbuf_addf(out, "%s%s", out->n ? "|" : "", signal_names[i].metric);
}

static void find_jobs(struct examiner *examiner, const char *comma, const char *matcher)
{
    struct strbuf names = {0};
    add_names(&names, SIGNAL_UTIL);
    add_names(&names, SIGNAL_GR);
    add_names(&names, SIGNAL_POWER);
    ask(examiner, take_job, "count by (job) ({__name__=~\"%s\"%s%s})", names.text, comma, matcher);
    strbuf_release(&names);
}

static void take_down(void *context, const struct label *labels, size_t n, double v)
{
    static const char *const names[] = {"node", "nodename", "instance", NULL};
    struct examiner *examiner = context;
    examiner->values++;
    if (v != 0)
        return;
    exam_add(examiner->exam, EXAM_DOWN, 1, "%.*s of job %.*s", STR_ARG(label_of(labels, n, names)),
             STR_ARG(labels_get(labels, n, STR("job"))));
}

/* Why: {"data":{"activeTargets":[{"health":"down","lastError":"…","labels":{"job":…}}]}} */
static enum err why_begin(void *context, const struct http_answer *answer, struct error *err)
{
    (void)answer, (void)err;
    strbuf_clear(&((struct examiner *)context)->why);
    return ERR_OK;
}

static enum err why_piece(void *context, struct str bytes, struct error *err)
{
    struct examiner *examiner = context;
    if (examiner->why.n + bytes.n > TARGETS_BYTES_MAX)
        return error_set(err, ERR_LIMIT, "the list of targets is too long");
    strbuf_add(&examiner->why, bytes);
    return ERR_OK;
}

static enum err why_finish(void *context, struct error *err)
{
    (void)context, (void)err;
    return ERR_OK;
}

static void say_why(struct examiner *examiner)
{
    struct http_answer answer = {0};
    struct http_request request = {.path = "/api/v1/targets",
                                   .query = STR("state=active"),
                                   .begin = why_begin,
                                   .piece = why_piece,
                                   .finish = why_finish,
                                   .context = examiner};
    if (http_ask(examiner->asker.client, &request, &answer, NULL) != ERR_OK)
        return;
    json_t *root = json_loadb(examiner->why.text, examiner->why.n, 0, NULL);
    json_t *targets = json_object_get(json_object_get(root, "data"), "activeTargets");
    for (size_t i = 0; i < json_array_size(targets); i++) {
        const json_t *target = json_array_get(targets, i);
        const json_t *labels = json_object_get(target, "labels");
        const char *why = json_string_value(json_object_get(target, "lastError"));
        const char *health = json_string_value(json_object_get(target, "health"));
        const char *job = json_string_value(json_object_get(labels, "job"));
        const char *instance = json_string_value(json_object_get(labels, "instance"));
        bool ours = false;
        for (size_t k = 0; job && k < examiner->jobs_n; k++)
            ours |= str_eq(examiner->jobs[k], str_of(job));
        if (!ours || !why || !*why || !health || strcmp(health, "down") != 0)
            continue;
        exam_add(examiner->exam, EXAM_DOWN, 2, "%.80s: %.200s", instance ? instance : "?", why);
        break; /* one says what kind it is */
    }
    json_decref(root);
}

static void examine_down(struct examiner *examiner, const char *comma, const char *matcher)
{
    for (size_t i = 0; i < examiner->jobs_n; i++)
        if (ask(examiner, take_down, "up{job=\"%.*s\"%s%s}", STR_ARG(examiner->jobs[i]), comma,
                matcher) &&
            examiner->values)
            examiner->exam->asked[EXAM_DOWN] = true;
    if (examiner->exam->found[EXAM_DOWN])
        say_why(examiner);
}

/* ---- how often, and how much ---- */

/* Seconds between the scrapes of a job; NAN where that is not known. */
static double interval_of(struct examiner *examiner, struct str job, const char *comma,
                          const char *matcher)
{
    bool told = ask(examiner, take_sum, "avg(count_over_time(up{job=\"%.*s\"%s%s}[1h]))",
                    STR_ARG(job), comma, matcher);
    return told && examiner->value >= 1 ? 3600 / examiner->value : (double)NAN;
}

static void examine_interval(struct examiner *examiner, struct str job, double interval,
                             const char *comma, const char *matcher)
{
    struct strbuf names = {0};
    add_names(&names, SIGNAL_ENERGY);
    const char *energy = names.text;
    bool told =
        ask(examiner, take_sum, "sum(count_over_time({__name__=~\"%s\",job=\"%.*s\"%s%s}[1h]))",
            energy, STR_ARG(job), comma, matcher);
    double samples = examiner->value;
    told = told && ask(examiner, take_sum, "sum(changes({__name__=~\"%s\",job=\"%.*s\"%s%s}[1h]))",
                       energy, STR_ARG(job), comma, matcher);
    strbuf_release(&names);
    if (!told || !(examiner->value >= CHANGES_MIN) || isnan(samples))
        return;
    examiner->exam->asked[EXAM_OVERSAMPLED] = true;
    double times = samples / examiner->value;
    if (times >= TWICE)
        exam_add(examiner->exam, EXAM_OVERSAMPLED, (int64_t)(times * 10),
                 "job %.*s is scraped every %.0f s and measures every %.0f s: each value is kept "
                 "%.1f times",
                 STR_ARG(job), interval, interval * times, times);
}

static void take_metric(void *context, const struct label *labels, size_t n, double v)
{
    struct examiner *examiner = context;
    struct str name = labels_get(labels, n, STR("__name__"));
    if (!(v >= 0 && v < 1e12))
        return;
    examiner->all += (uint64_t)v;
    if (!signal_of_metric(name))
        examiner->unread += (uint64_t)v;
}

static void examine_series(struct examiner *examiner, struct str job, double interval,
                           const char *comma, const char *matcher)
{
    examiner->unread = examiner->all = 0;
    if (!ask(examiner, take_metric, "count by (__name__) ({job=\"%.*s\"%s%s})", STR_ARG(job), comma,
             matcher) ||
        !examiner->all || isnan(interval))
        return;
    double day = (double)examiner->all * 86400 / interval;
    examiner->exam->asked[EXAM_SERIES] = true;
    exam_add(examiner->exam, EXAM_SERIES, (int64_t)examiner->all,
             "job %.*s: %" PRIu64 " series every %.0f s, %.1f million samples a day, %.1f to %.1f "
             "GB a month on disk; %.0f %% of the series are read here",
             STR_ARG(job), examiner->all, interval, day / 1e6, day * 30 * SAMPLE_BYTES_MIN / 1e9,
             day * 30 * SAMPLE_BYTES_MAX / 1e9,
             100.0 * (double)(examiner->all - examiner->unread) / (double)examiner->all);
}

/* ---- labels of kube-state-metrics ---- */

static double count_of(struct examiner *examiner, const char *metric, const char *match,
                       const char *comma, const char *matcher)
{
    bool told =
        ask(examiner, take_sum, "count(%s{%s%s%s})", metric, match, *match ? comma : "", matcher);
    return told && !isnan(examiner->value) ? examiner->value : 0;
}

static void examine_labels(struct examiner *examiner, const char *comma, const char *matcher)
{
    struct exam *exam = examiner->exam;
    double nodes = count_of(examiner, "kube_node_info", "", comma, matcher);
    if (nodes <= 0)
        return; /* no kube-state-metrics at all is another check's */
    exam->asked[EXAM_HIDDEN] = true;
    double typed = count_of(examiner, "kube_node_labels",
                            "label_node_kubernetes_io_instance_type!=\"\"", comma, matcher) +
                   count_of(examiner, "kube_node_labels",
                            "label_beta_kubernetes_io_instance_type!=\"\"", comma, matcher);
    if (typed <= 0)
        exam_add(exam, EXAM_HIDDEN, (int64_t)nodes,
                 "kube_node_labels of %.0f nodes has no instance type: "
                 "--metric-labels-allowlist=nodes=[*]",
                 nodes);
    double pods = count_of(examiner, "kube_pod_info", "", comma, matcher);
    if (pods > 0 && count_of(examiner, "kube_pod_labels", "", comma, matcher) <= 0)
        exam_add(exam, EXAM_HIDDEN, (int64_t)pods,
                 "kube_pod_labels is not there: --metric-labels-allowlist=pods=[team,"
                 "app.kubernetes.io/name,app.kubernetes.io/part-of]");
    if (count_of(examiner, "kube_namespace_created", "", comma, matcher) > 0 &&
        count_of(examiner, "kube_namespace_labels", "", comma, matcher) <= 0)
        exam_add(exam, EXAM_HIDDEN, 1,
                 "kube_namespace_labels is not there: "
                 "--metric-labels-allowlist=namespaces=[team]");
}

enum err prometheus_examine(struct source *source, time_ms at, struct exam *exam,
                            struct progress *progress, struct error *err)
{
    struct prometheus *prometheus = (struct prometheus *)source;
    struct examiner examiner = {.prometheus = prometheus, .exam = exam};
    const char *matcher = prometheus->matcher, *comma = *matcher ? "," : "";
    examiner.at = at / 1000 * 1000;
    examiner.asker = (struct asker){.prometheus = prometheus,
                                    .client = http_client_new(prometheus->site, progress->stop),
                                    .tally = &examiner.tally};
    examine_clocks(&examiner, matcher);
    find_jobs(&examiner, comma, matcher);
    examine_down(&examiner, comma, matcher);
    for (size_t i = 0; i < examiner.jobs_n; i++) {
        double interval = interval_of(&examiner, examiner.jobs[i], comma, matcher);
        examine_interval(&examiner, examiner.jobs[i], interval, comma, matcher);
        examine_series(&examiner, examiner.jobs[i], interval, comma, matcher);
    }
    examine_labels(&examiner, comma, matcher);
    http_client_free(examiner.asker.client);
    arena_release(&examiner.arena);
    strbuf_release(&examiner.why);
    return progress_stopped(progress->stop) ? error_set(err, ERR_STOPPED, "stopped") : ERR_OK;
}
