/* What a fetch asks for, and in which order.
 *
 *     near:  every metric, as far as samples of the hours need it        (prometheus_run.c reads)
 *     far:   further to both sides, where somebody fell silent at an edge of the hours
 *
 * In a large cluster most pods have nothing to do with GPUs. Metrics of pods and their owners are
 * then asked for last, and of those namespaces only that GPU requests and GPU metrics named. */
#include <stdlib.h>

#include "source/prometheus_impl.h"

#define MATCH_MAX ((size_t)4096) /* bytes of a selector that lists names */
#define MATCH_NODES_MAX                                                                            \
    ((size_t)65536) /* likewise of nodes: without them all pods are asked for                      \
                     */

/* Stamps of these metrics count as observations of Kubernetes (semantics, section 6). */
static bool is_observation(const struct wanted_metric *metric)
{
    return strcmp(metric->name, "kube_node_info") == 0 ||
           strcmp(metric->name, "kube_pod_info") == 0;
}

static bool is_request(const struct wanted_metric *metric)
{
    return metric->group == METRIC_GROUP_KUBE && strstr(metric->name, "_resource_requests") != NULL;
}

/* Of pods and what owns them, of which a cluster may have many that no GPU is concerned with. */
static bool is_of_pods(const struct wanted_metric *metric)
{
    static const char *const heads[] = {"kube_pod_", "kube_replicaset_", "kube_job_"};
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++)
        if (strncmp(metric->name, heads[i], strlen(heads[i])) == 0)
            return !is_request(metric);
    return false;
}

void prometheus_watch(const struct prometheus_run *run, const struct wanted_metric *metric,
                      struct delivery *delivery)
{
    const struct prometheus *prometheus = run->prometheus;
    const struct signal_name *name = signal_of_metric(str_of(metric->name));
    bool fullest = name && name->signal == run->fullest;
    struct seen *seen[DELIVERY_WATCHERS_MAX];
    size_t n = 0;
    if (is_observation(metric))
        seen[n++] = prometheus->observers;
    if (is_observation(metric) || fullest)
        seen[n++] = prometheus->clusters;
    if (fullest)
        seen[n++] = prometheus->exporters;
    if (fullest || is_request(metric)) {
        seen[n++] = prometheus->namespaces;
        seen[n++] = prometheus->exported_namespaces;
    }
    if (is_request(metric))
        seen[n++] = prometheus->renamed_requests;
    if (strcmp(metric->name, "kube_node_status_capacity") == 0) {
        seen[n++] = prometheus->gpu_nodes;
        seen[n++] = prometheus->renamed_nodes;
    }
    delivery_watch(delivery, seen, n);
}

static bool is_present(const struct prometheus *prometheus, size_t place)
{
    return !prometheus->present || prometheus->present[place];
}

/* The GPU signal that most series have, by all its names: it stands for the presence of devices. */
static enum signal fullest_signal(const struct prometheus_run *run)
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
static struct span near_range(const struct prometheus_run *run, const struct fetch *fetch,
                              const struct wanted_metric *metric)
{
    bool tells = metric->group == METRIC_GROUP_KUBE || !run->nodes_recorded;
    bool early = !run->prometheus->fetched && tells;
    return (struct span){early ? fetch->kube.from : fetch->gpu.from, fetch->gpu.to};
}

/* Two insides of a selector as one. */
static const char *both_matches(struct arena *arena, const char *a, const char *b)
{
    if (!*a || !*b)
        return *a ? a : b;
    struct strbuf text = {0};
    strbuf_addf(&text, "%s,%s", a, b);
    const char *kept = str_keep(arena, strbuf_str(&text)).p;
    strbuf_release(&text);
    return kept;
}

/* Which metrics are asked for, and for what time. */
struct question {
    bool (*wants)(const struct wanted_metric *metric);
    const struct fetch *near; /* each metric's near range of it, or, where it is NULL … */
    time_ms first, last;      /* … these */
    const char *match;        /* more of the selectors */
    bool hosts;               /* of METRIC_GROUP_HOSTS, else of all others */
};

static void ask(struct prometheus_run *run, const struct question *question)
{
    size_t wanted_n, n = 0;
    const struct wanted_metric *wanted = wanted_metrics(&wanted_n);
    struct wanted_metric *narrowed = mem_zalloc(wanted_n, sizeof *narrowed);
    struct plan_lane *lanes = mem_zalloc(wanted_n, sizeof *lanes);
    struct arena arena = {0};
    for (size_t i = 0; i < wanted_n; i++) {
        if (!is_present(run->prometheus, i) || !question->wants(&wanted[i]) ||
            wanted[i].group == METRIC_GROUP_LOADS ||
            (wanted[i].group == METRIC_GROUP_HOSTS) != question->hosts)
            continue;
        struct span range = {question->first, question->last};
        if (question->near)
            range = near_range(run, question->near, &wanted[i]);
        const char *match = wanted[i].match;
        narrowed[i] = wanted[i];
        narrowed[i].match = both_matches(&arena, match, question->match);
        if (range.from <= range.to)
            lanes[n++] = (struct plan_lane){*question->match ? &narrowed[i] : &wanted[i],
                                            range.from, range.to};
    }
    if (n && run->code == ERR_OK)
        prometheus_run_lanes(run, lanes, n);
    arena_release(&arena);
    free(lanes);
    free(narrowed);
}

/* `label=~"regex"`, NULL-terminated; empty where the regex is, or where it is too long. */
static void add_long_match(struct strbuf *ret, const char *label, const struct strbuf *regex,
                           size_t most)
{
    if (regex->n == 0 || regex->n > most)
        return;
    strbuf_addf(ret, "%s=~\"", label);
    for (size_t i = 0; i < regex->n; i++)
        strbuf_addf(ret, strchr("\\\"", regex->text[i]) ? "\\%c" : "%c", regex->text[i]);
    strbuf_addc(ret, '"');
}

static void add_match(struct strbuf *ret, const char *label, const struct strbuf *regex)
{
    add_long_match(ret, label, regex, MATCH_MAX);
}

/* The selector of the namespaces that GPUs are used in, so far as they are known; empty: all. The
 * records' own label says whether kube-state-metrics is scraped with honorLabels. */
static void gpu_namespaces(struct prometheus *prometheus, struct strbuf *ret)
{
    struct strbuf regex = {0};
    bool unnamed;
    size_t renamed = seen_count(prometheus->renamed_requests, &unnamed);
    seen_all_regex(prometheus->namespaces, &regex);
    seen_all_regex(prometheus->exported_namespaces, &regex);
    if (renamed == 1 && unnamed)
        add_match(ret, "namespace", &regex);
    else if (renamed > 0 && !unnamed)
        add_match(ret, "exported_namespace", &regex);
    strbuf_release(&regex);
}

static bool any(const struct wanted_metric *metric)
{
    (void)metric;
    return true;
}

static bool not_of_pods(const struct wanted_metric *metric)
{
    return !is_of_pods(metric);
}

static bool of_gpus(const struct wanted_metric *metric)
{
    return metric->group == METRIC_GROUP_GPU;
}

static bool of_kube(const struct wanted_metric *metric)
{
    return metric->group == METRIC_GROUP_KUBE;
}

static bool of_kube_not_of_pods(const struct wanted_metric *metric)
{
    return of_kube(metric) && !is_of_pods(metric);
}

static bool of_pod_info(const struct wanted_metric *metric)
{
    return strcmp(metric->name, "kube_pod_info") == 0;
}

/* The selector of nodes with GPUs; empty: all, since they are not known or too many to list. */
static void gpu_nodes(struct prometheus *prometheus, struct strbuf *ret)
{
    struct strbuf regex = {0};
    bool unnamed;
    size_t renamed = seen_count(prometheus->renamed_nodes, &unnamed);
    if (renamed == 1 && unnamed) {
        seen_all_regex(prometheus->gpu_nodes, &regex);
        add_long_match(ret, "node", &regex, MATCH_NODES_MAX);
    } else if (renamed > 0 && !unnamed) {
        seen_all_regex(prometheus->renamed_nodes, &regex);
        add_long_match(ret, "exported_node", &regex, MATCH_NODES_MAX);
    }
    strbuf_release(&regex);
}

/* `label!~` of what `label=~` lists. */
static void negate(struct strbuf *match)
{
    char *at = match->n ? strstr(match->text, "=~") : NULL;
    if (at)
        *at = '!';
}

/* What runs on nodes with GPUs: requests of all pods there, and in a large cluster the pods that
 * share no namespace with GPUs. */
static void read_hosts(struct prometheus_run *run, const struct fetch *fetch)
{
    struct strbuf match = {0}, others = {0};
    gpu_nodes(run->prometheus, &match);
    ask(run, &(struct question){
                 .wants = any, .near = fetch, .match = match.n ? match.text : "", .hosts = true});
    if (run->prometheus->narrow && match.n) {
        gpu_namespaces(run->prometheus, &others);
        negate(&others);
        if (others.n) {
            strbuf_addf(&others, ",%s", match.text);
            ask(run, &(struct question){.wants = of_pod_info, .near = fetch, .match = others.text});
        }
    }
    strbuf_release(&match);
    strbuf_release(&others);
}

/* Loads of hosts, and of containers in namespaces with GPUs. */
static void read_loads(struct prometheus_run *run, const struct fetch *fetch)
{
    struct strbuf regex = {0}, match = {0};
    seen_all_regex(run->prometheus->namespaces, &regex);
    seen_all_regex(run->prometheus->exported_namespaces, &regex);
    add_match(&match, "namespace", &regex);
    struct span range = {fetch->gpu.from, fetch->hours.to};
    prometheus_read_loads(run, range, match.n ? match.text : "");
    strbuf_release(&regex);
    strbuf_release(&match);
}

static void read_near(struct prometheus_run *run, const struct fetch *fetch)
{
    struct strbuf match = {0};
    run->fullest = fullest_signal(run);
    if (!run->prometheus->narrow) {
        ask(run, &(struct question){.wants = any, .near = fetch, .match = ""});
        return;
    }
    ask(run, &(struct question){.wants = not_of_pods, .near = fetch, .match = ""});
    gpu_namespaces(run->prometheus, &match);
    ask(run,
        &(struct question){.wants = is_of_pods, .near = fetch, .match = match.n ? match.text : ""});
    strbuf_release(&match);
}

/* Kubernetes' records of [first, last]. */
static void read_records(struct prometheus_run *run, time_ms first, time_ms last)
{
    struct strbuf match = {0};
    if (run->prometheus->narrow)
        gpu_namespaces(run->prometheus, &match);
    ask(run, &(struct question){
                 .wants = of_kube_not_of_pods, .first = first, .last = last, .match = ""});
    ask(run,
        &(struct question){
            .wants = is_of_pods, .first = first, .last = last, .match = match.n ? match.text : ""});
    strbuf_release(&match);
}

/* GPU metrics after the near range, of the exporters that were silent there. */
static void read_silent_exporters(struct prometheus_run *run, const struct fetch *fetch)
{
    struct strbuf regex = {0}, match = {0};
    seen_silent_after_regex(run->prometheus->exporters, fetch->hours, fetch->kube.from, &regex);
    add_match(&match, "instance", &regex);
    ask(run, &(struct question){.wants = of_gpus,
                                .first = fetch->gpu.to + 1,
                                .last = fetch->kube.to,
                                .match = match.n ? match.text : ""});
    strbuf_release(&regex);
    strbuf_release(&match);
}

/* Where somebody was silent at an edge of the hours, it matters within the reach of a record when
 * they were heard before, and with what they come back: nodes may have gone, pods ended, devices
 * moved. While kube-state-metrics is silent everything is read on, else those exporters only. */
static void read_far(struct prometheus_run *run, const struct fetch *fetch)
{
    time_ms since = fetch->kube.from;
    struct silence observers = seen_silent(run->prometheus->observers, fetch->hours, since);
    struct silence exporters = seen_silent(run->prometheus->exporters, fetch->hours, since);
    if (observers.before && run->prometheus->fetched)
        read_records(run, fetch->kube.from, fetch->gpu.from - 1);
    if (fetch->gpu.to >= clock_now())
        return; /* nobody was heard of yet */
    if (observers.after) {
        read_records(run, fetch->gpu.to + 1, fetch->kube.to);
        ask(run,
            &(struct question){
                .wants = of_gpus, .first = fetch->gpu.to + 1, .last = fetch->kube.to, .match = ""});
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

static enum err ensure_api(struct prometheus *prometheus, struct prometheus_run *run,
                           struct error *err)
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
    struct prometheus_run run = {.prometheus = prometheus, .intake = intake, .progress = progress};
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
    intake_in_order(intake, fetch->hours);
    read_near(&run, fetch);
    if (run.code == ERR_OK)
        read_hosts(&run, fetch);
    if (run.code == ERR_OK)
        read_far(&run, fetch);
    if (run.code == ERR_OK)
        read_loads(&run, fetch);
    intake_in_any_order(intake);
    prometheus->fetched |= run.code == ERR_OK;
    if (run.code != ERR_OK && err)
        *err = run.err;
    pthread_cond_destroy(&run.home);
    pthread_mutex_destroy(&run.lock);
    return run.code;
}
