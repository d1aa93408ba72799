/* Reads a source and prints what it delivers, a line a series: labels, count of samples, sum, first
 * and last stamp. For tests that compare sources with files and with each other.
 *
 *     source_dump [--api auto|remote-read|samples|query] [--in-flight N] [--retries N] [--backoff
 * MS]
 *                 [--idle MS] [--token FILE] [--user NAME --password-file FILE] [--header H]
 *                 [--ca-file F] [--client-cert F --client-key F] [--proxy URL] [--matcher M]
 * [--narrow-from PODS] [--survey] [--quiet] prometheus URL | openmetrics FILE FROM_MS TO_MS
 * METRIC[{MATCH}]...
 *
 * Exit 1 with the error on standard error; notes go there too. */
#include <inttypes.h>
#include <math.h>
#include <signal.h>

#include "../lib/recording_intake.h"
#include "source/openmetrics_file.h"
#include "source/prometheus.h"

static volatile int stop;

static void on_signal(int number)
{
    __atomic_store_n(&stop, number, __ATOMIC_RELAXED);
}

static double exact_sum(const struct recorded_series *series)
{
    double sum = 0, rest = 0; /* Neumaier */
    for (size_t i = 0; i < series->n; i++) {
        double v = series->samples[i].v, next = sum + v;
        if (isnan(v))
            continue;
        rest += fabs(sum) >= fabs(v) ? (sum - next) + v : (v - next) + sum;
        sum = next;
    }
    return sum + rest;
}

static int fail(const struct error *err)
{
    fprintf(stderr, "error %d: %s\n", err->code, err->text);
    return 1;
}

static void want(char *text)
{
    char *brace = strchr(text, '{');
    if (brace) {
        *brace = '\0';
        brace[strlen(brace + 1)] = '\0';
    }
    recorder_want(text, brace ? brace + 1 : "",
                  strncmp(text, "kube_", 5) == 0 ? METRIC_GROUP_KUBE
                  : strcmp(text, "up") == 0      ? METRIC_GROUP_TARGETS
                                                 : METRIC_GROUP_GPU);
}

static int run(struct source *source, struct span window, bool survey, bool quiet)
{
    struct error err = {0};
    struct progress progress = {.stop = &stop};
    struct fetch fetch = {.kube = window, .gpu = window};
    if (survey) {
        struct span extent;
        double rate;
        if (source->ops->survey(source, window, &extent, &rate, &progress, &err) != ERR_OK)
            return fail(&err);
        fprintf(stderr, "survey %" PRId64 " %" PRId64 " %.0f\n", extent.from, extent.to, rate);
    }
    if (source->ops->fetch(source, &fetch, RECORDER, &progress, &err) != ERR_OK)
        return fail(&err);
    recorder_settle();
    for (size_t i = 0; i < recorder.n && !quiet; i++) {
        const struct recorded_series *series = recorder.series[i];
        if (series->n)
            printf("%s\t%zu\t%.17g\t%" PRId64 "\t%" PRId64 "\n", series->text, series->n,
                   exact_sum(series), series->samples[0].t, series->samples[series->n - 1].t);
    }
    for (size_t i = 0; i < recorder.notes_n; i++)
        fprintf(stderr, "note %d %s %" PRId64 " %s\n", recorder.notes[i].kind,
                recorder.notes[i].subject, recorder.notes[i].count, recorder.notes[i].text);
    fprintf(stderr, "%s", recorder.failures.text ? recorder.failures.text : "");
    return recorder.broken_promises ? 1 : 0;
}

int main(int argc, char **argv)
{
    struct prometheus_options options;
    struct error err = {0};
    struct source *source = NULL;
    bool survey = false, quiet = false;
    const char *headers[16];
    int at = 1;
    prometheus_options_defaults(&options);
    options.headers = headers;
    for (; at < argc && strncmp(argv[at], "--", 2) == 0; at++) {
        const char *name = argv[at] + 2;
        survey |= strcmp(name, "survey") == 0;
        quiet |= strcmp(name, "quiet") == 0;
        if (strcmp(name, "survey") == 0 || strcmp(name, "quiet") == 0 || at + 1 == argc)
            continue;
        const char *value = argv[++at];
        if (strcmp(name, "api") == 0)
            options.api = strcmp(value, "query") == 0     ? PROMETHEUS_QUERY
                          : strcmp(value, "samples") == 0 ? PROMETHEUS_REMOTE_READ_SAMPLES
                          : strcmp(value, "auto") == 0    ? PROMETHEUS_AUTO
                                                          : PROMETHEUS_REMOTE_READ;
        else if (strcmp(name, "in-flight") == 0)
            options.in_flight = atoi(value);
        else if (strcmp(name, "narrow-from") == 0)
            options.narrow_from = (uint64_t)atoi(value);
        else if (strcmp(name, "retries") == 0)
            options.retries = atoi(value);
        else if (strcmp(name, "backoff") == 0)
            options.backoff_ms = atoi(value);
        else if (strcmp(name, "idle") == 0)
            options.idle_timeout_ms = atoi(value);
        else if (strcmp(name, "token") == 0)
            options.bearer_token_file = value;
        else if (strcmp(name, "user") == 0)
            options.user = value;
        else if (strcmp(name, "password-file") == 0)
            options.password_file = value;
        else if (strcmp(name, "ca-file") == 0)
            options.ca_file = value;
        else if (strcmp(name, "client-cert") == 0)
            options.client_cert = value;
        else if (strcmp(name, "client-key") == 0)
            options.client_key = value;
        else if (strcmp(name, "proxy") == 0)
            options.proxy = value;
        else if (strcmp(name, "matcher") == 0)
            options.matcher = value;
        else if (strcmp(name, "header") == 0 && options.headers_n < 16)
            headers[options.headers_n++] = value;
    }
    if (argc - at < 5) {
        fprintf(stderr, "see the head of source_dump.c\n");
        return 2;
    }
    signal(SIGINT, on_signal);
    signal(SIGTERM, on_signal);
    options.url = argv[at + 1];
    const char *path = argv[at + 1];
    struct span window = {strtoll(argv[at + 2], NULL, 10), strtoll(argv[at + 3], NULL, 10)};
    for (int i = at + 4; i < argc; i++)
        want(argv[i]);
    enum err e = strcmp(argv[at], "prometheus") == 0
                     ? prometheus_source_new(&options, &source, &err)
                     : openmetrics_source_new(&path, 1, 0, &source, &err);
    int status = e == ERR_OK ? run(source, window, survey, quiet) : fail(&err);
    source_free(source);
    recorder_clear();
    return status;
}
