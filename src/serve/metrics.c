/* /metrics: the ledger's counters, and how the service itself does. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "serve/metrics_impl.h"

#define CHECKS_MAX 64
#define NANO_OF_US 1000

static void one(struct metrics_text *text, const char *name, enum metric_kind kind,
                const char *help, int64_t value)
{
    metrics_begin(text, name, kind, help);
    metrics_sample(text, "");
    metrics_whole(text, value);
}

/* ---- the process ---- */

static int64_t resident_bytes(void)
{
    FILE *file = fopen("/proc/self/statm", "re");
    long size = 0, resident = 0;
    if (!file)
        return -1;
    int n = fscanf(file, "%ld %ld", &size, &resident);
    fclose(file);
    return n == 2 ? (int64_t)resident * sysconf(_SC_PAGESIZE) : -1;
}

static int64_t open_files(void)
{
    DIR *folder = opendir("/proc/self/fd");
    int64_t n = -3; /* ., .. and the folder itself */
    if (!folder)
        return -1;
    while (readdir(folder))
        n++;
    closedir(folder);
    return n;
}

static void write_process(struct api *api, struct metrics_text *text)
{
    struct rusage usage = {0};
    getrusage(RUSAGE_SELF, &usage);
    metrics_begin(text, "gputally_build_info", METRIC_GAUGE, "1; the version is the label.");
    metrics_sample(text, "");
    metrics_label(text, "version", str_of(GPUTALLY_VERSION));
    metrics_whole(text, 1);
    metrics_begin(text, "process_start_time_seconds", METRIC_GAUGE,
                  "When the service began, Unix time.");
    metrics_sample(text, "");
    metrics_nano(text, (wide_t)api->began * 1000000);
    metrics_begin(text, "process_cpu_seconds_total", METRIC_COUNTER, "CPU time that it has used.");
    metrics_sample(text, "");
    metrics_nano(text, ((wide_t)usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * NANO +
                           ((wide_t)usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * NANO_OF_US);
    int64_t bytes = resident_bytes(), files = open_files();
    if (bytes >= 0)
        one(text, "process_resident_memory_bytes", METRIC_GAUGE, "Memory that it has.", bytes);
    if (files >= 0)
        one(text, "process_open_fds", METRIC_GAUGE, "Files and sockets that it has open.", files);
}

/* ---- the service ---- */

static void label_source(struct metrics_text *text, const struct source_stat *source)
{
    metrics_sample(text, "");
    metrics_label(text, "source", str_of(source->name));
    metrics_label(text, "kind", str_of(source->kind));
    metrics_label(text, "cluster", str_of(source->cluster));
}

static void write_lag(struct metrics_text *text, const struct service_stats *stats)
{
    time_ms now = clock_now();
    metrics_begin(text, "gputally_source_watermark_timestamp_seconds", METRIC_GAUGE,
                  "Up to when the books of the source are closed.");
    for (size_t i = 0; i < stats->sources_n; i++)
        if (stats->sources[i].watermark != TIME_MIN) {
            label_source(text, &stats->sources[i]);
            metrics_whole(text, stats->sources[i].watermark / 1000);
        }
    metrics_begin(text, "gputally_source_lag_seconds", METRIC_GAUGE, "How long ago that is.");
    for (size_t i = 0; i < stats->sources_n; i++)
        if (stats->sources[i].watermark != TIME_MIN) {
            label_source(text, &stats->sources[i]);
            metrics_nano(text, (wide_t)(now - stats->sources[i].watermark) * 1000000);
        }
}

static void write_source_figure(struct metrics_text *text, const struct service_stats *stats,
                                const char *name, enum metric_kind kind, const char *help,
                                int64_t (*value)(const struct source_stat *source))
{
    metrics_begin(text, name, kind, help);
    for (size_t i = 0; i < stats->sources_n; i++) {
        int64_t of_source = value(&stats->sources[i]);
        if (of_source < 0)
            continue;
        label_source(text, &stats->sources[i]);
        metrics_whole(text, of_source);
    }
}

static int64_t source_up(const struct source_stat *source)
{
    return source->up;
}
static int64_t source_samples(const struct source_stat *source)
{
    return source->samples_total;
}
static int64_t source_bytes(const struct source_stat *source)
{
    return source->bytes_total;
}
static int64_t source_rejected(const struct source_stat *source)
{
    return source->rejected_total;
}
static int64_t source_failures(const struct source_stat *source)
{
    return source->failures_total;
}
static int64_t source_queue(const struct source_stat *source)
{
    return source->queue_depth;
}

static void write_sources(struct metrics_text *text, const struct service_stats *stats)
{
    if (!stats->sources_n)
        return;
    write_source_figure(text, stats, "gputally_source_up", METRIC_GAUGE,
                        "1 where the last try to read the source went well.", source_up);
    write_lag(text, stats);
    write_source_figure(text, stats, "gputally_source_samples_total", METRIC_COUNTER,
                        "Samples that were taken.", source_samples);
    write_source_figure(text, stats, "gputally_source_bytes_total", METRIC_COUNTER,
                        "Bytes that they came in.", source_bytes);
    write_source_figure(text, stats, "gputally_source_rejected_samples_total", METRIC_COUNTER,
                        "Samples that were refused.", source_rejected);
    write_source_figure(text, stats, "gputally_source_failures_total", METRIC_COUNTER,
                        "Tries to read the source that failed.", source_failures);
    write_source_figure(text, stats, "gputally_source_queue_depth", METRIC_GAUGE,
                        "Batches that wait to be taken.", source_queue);
}

static void write_figures(struct metrics_text *text, const struct service_stats *stats)
{
    for (size_t i = 0; i < stats->figures_n; i++) {
        const struct service_figure *figure = &stats->figures[i];
        size_t n = strlen(figure->name);
        bool counter = n > 6 && strcmp(figure->name + n - 6, "_total") == 0;
        if (i == 0 || strcmp(figure->name, stats->figures[i - 1].name) != 0)
            metrics_begin(text, figure->name, counter ? METRIC_COUNTER : METRIC_GAUGE,
                          figure->help);
        metrics_sample(text, "");
        if (figure->label)
            metrics_label(text, figure->label, str_of(figure->label_value));
        metrics_double(text, figure->value);
    }
}

static void write_checks(struct api *api, struct metrics_text *text)
{
    struct health_check checks[CHECKS_MAX];
    size_t n =
        api->options.checks ? api->options.checks(api->options.context, checks, CHECKS_MAX) : 0;
    if (!n)
        return;
    metrics_begin(text, "gputally_check_ok", METRIC_GAUGE, "1 where a check of /readyz is fine.");
    for (size_t i = 0; i < n; i++) {
        metrics_sample(text, "");
        metrics_label(text, "check", str_of(checks[i].name));
        metrics_whole(text, checks[i].ok);
    }
}

/* ---- HTTP ---- */

static uint64_t requests_of(const struct api_route_counts *counts)
{
    uint64_t n = 0;
    for (int c = 0; c < API_STATUS_CLASSES; c++)
        n += atomic_load(&counts->by_class[c]);
    return n;
}

static struct str route_name(const struct api_route_counts *counts)
{
    return counts->pattern ? str_of(counts->pattern) : STR("none");
}

static void write_requests(struct api *api, struct metrics_text *text)
{
    static const char *const classes[API_STATUS_CLASSES] = {"cut", "1xx", "2xx",
                                                            "3xx", "4xx", "5xx"};
    metrics_begin(text, "gputally_http_requests_total", METRIC_COUNTER,
                  "Requests by route and class of status; cut: the client went away.");
    for (size_t i = 0; i < API_ROUTES_MAX; i++)
        for (int c = 0; c < API_STATUS_CLASSES; c++) {
            uint64_t n = atomic_load(&api->counts[i].by_class[c]);
            if (!n)
                continue;
            metrics_sample(text, "");
            metrics_label(text, "route", route_name(&api->counts[i]));
            metrics_label(text, "status", str_of(classes[c]));
            metrics_whole(text, (int64_t)n);
        }
    metrics_begin(text, "gputally_http_response_bytes_total", METRIC_COUNTER,
                  "Bytes of bodies that were sent, by route.");
    for (size_t i = 0; i < API_ROUTES_MAX; i++)
        if (requests_of(&api->counts[i])) {
            metrics_sample(text, "");
            metrics_label(text, "route", route_name(&api->counts[i]));
            metrics_whole(text, (int64_t)atomic_load(&api->counts[i].bytes));
        }
}

static void write_durations(struct api *api, struct metrics_text *text)
{
    metrics_begin(text, "gputally_http_request_duration_seconds", METRIC_HISTOGRAM,
                  "From the head of a request to the last byte of its answer.");
    for (size_t i = 0; i < API_ROUTES_MAX; i++) {
        const struct api_route_counts *counts = &api->counts[i];
        if (!requests_of(counts))
            continue;
        uint64_t below = 0;
        for (size_t b = 0; b < API_BUCKETS; b++) {
            struct strbuf bound = {0};
            below += atomic_load(&counts->buckets[b]);
            if (b + 1 < API_BUCKETS)
                strbuf_addf(&bound, "%g", (double)api_bucket_us[b] / 1e6);
            else
                strbuf_add(&bound, STR("+Inf"));
            metrics_sample(text, "_bucket");
            metrics_label(text, "route", route_name(counts));
            metrics_label(text, "le", strbuf_str(&bound));
            metrics_whole(text, (int64_t)below);
            strbuf_release(&bound);
        }
        metrics_sample(text, "_sum");
        metrics_label(text, "route", route_name(counts));
        metrics_nano(text, (wide_t)atomic_load(&counts->sum_us) * NANO_OF_US);
        metrics_sample(text, "_count");
        metrics_label(text, "route", route_name(counts));
        metrics_whole(text, (int64_t)below);
    }
}

static void write_ahead(struct api *api, struct metrics_text *text)
{
    struct api_ahead_counts ahead;
    api_ahead_counts(api, &ahead);
    one(text, "gputally_ahead_answers_total", METRIC_COUNTER,
        "Answers that were made before the page asked for them.", (int64_t)ahead.made);
    one(text, "gputally_ahead_dropped_total", METRIC_COUNTER,
        "Rounds of these that a change of the ledger ended early.", (int64_t)ahead.dropped);
    metrics_begin(text, "gputally_ahead_seconds_total", METRIC_COUNTER, "Time that they took.");
    metrics_sample(text, "");
    metrics_nano(text, (wide_t)ahead.spent_us * NANO_OF_US);
}

static void write_server(struct api *api, const struct http_server *server,
                         struct metrics_text *text)
{
    struct http_counts counts;
    struct cache_counts cache;
    http_server_counts(server, &counts);
    cache_counts(api->cache, &cache);
    one(text, "gputally_http_refused_total", METRIC_COUNTER,
        "Requests without access: no or an unknown token, no scope, a wrong Host.",
        (int64_t)atomic_load(&api->refused));
    one(text, "gputally_http_connections", METRIC_GAUGE, "Connections that are open.",
        counts.connections);
    one(text, "gputally_http_queued", METRIC_GAUGE, "Requests that wait for a worker.",
        counts.queued);
    one(text, "gputally_http_working", METRIC_GAUGE, "Requests that workers have.", counts.working);
    one(text, "gputally_http_streams", METRIC_GAUGE, "Exports that are running.", counts.streams);
    one(text, "gputally_http_body_bytes", METRIC_GAUGE, "Bodies of requests in memory.",
        counts.body_bytes);
    one(text, "gputally_cache_hits_total", METRIC_COUNTER,
        "Answers that were taken from the cache.", (int64_t)cache.hits);
    one(text, "gputally_cache_misses_total", METRIC_COUNTER, "Answers that were not in it.",
        (int64_t)cache.misses);
    one(text, "gputally_cache_bytes", METRIC_GAUGE, "Memory of the answers in it.",
        (int64_t)cache.bytes);
    write_ahead(api, text);
}

enum err api_metrics(struct api_call *call, struct strbuf *out, struct error *err)
{
    struct api *api = call->api;
    struct str accept = http_header(call->request, "Accept");
    struct metrics_text text = {
        .out = out,
        .openmetrics = accept.n && strstr(accept.p, "application/openmetrics-text") != NULL};
    call->answer->cache_control = "no-store";
    if (text.openmetrics)
        call->answer->content_type = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    enum err code = call->store ? metrics_write_ledger(api->metrics, call, &text, err) : ERR_OK;
    if (code == ERR_OK && !api_is_view(call)) {
        write_process(api, &text);
        struct service_stats *stats = mem_zalloc(1, sizeof *stats);
        if (api->options.stats)
            api->options.stats(api->options.context, stats);
        write_sources(&text, stats);
        write_figures(&text, stats);
        free(stats);
        write_checks(api, &text);
        write_requests(api, &text);
        write_durations(api, &text);
        write_server(api, call->request->server, &text);
    }
    metrics_end(&text);
    return code;
}
