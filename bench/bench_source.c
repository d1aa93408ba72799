/* Reading from a Prometheus-compatible server without booking: what the source and the intake cost.
 *
 *     bench_source URL FROM_MS TO_MS SLICE_HOURS [IN_FLIGHT] [query|samples]
 *
 * prints samples, bytes, wall and CPU seconds. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "ledger/engine.h"
#include "source/prometheus.h"

static double cpu_s(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

static uint64_t bytes_now;

static void told(void *context, const struct progress *progress)
{
    (void)context;
    bytes_now = progress->bytes;
}

static int fail(const struct error *err)
{
    fprintf(stderr, "%s\n", err->text);
    return 1;
}

int main(int argc, char **argv)
{
    if (argc < 5) {
        fprintf(stderr, "bench_source URL FROM_MS TO_MS SLICE_HOURS [IN_FLIGHT] [query|samples]\n");
        return 2;
    }
    struct prometheus_options options;
    prometheus_options_defaults(&options);
    options.url = argv[1];
    if (argc > 5)
        options.in_flight = atoi(argv[5]);
    if (argc > 6)
        options.api =
            strcmp(argv[6], "query") == 0 ? PROMETHEUS_QUERY : PROMETHEUS_REMOTE_READ_SAMPLES;
    struct span window = {strtoll(argv[2], NULL, 10), strtoll(argv[3], NULL, 10)}, extent;
    struct error err = {0};
    struct source *source;
    struct settings settings;
    struct progress progress = {.report = told};
    struct names *names = names_new();
    double rate;
    settings_defaults(&settings);
    if (prometheus_source_new(&options, &source, &err) != ERR_OK ||
        source->ops->survey(source, window, &extent, &rate, &progress, &err) != ERR_OK)
        return fail(&err);
    uint64_t samples = 0, bytes = 0;
    time_ms began = clock_monotonic(), length = strtoll(argv[4], NULL, 10) * HOUR_MS;
    double cpu = cpu_s();
    for (time_ms from = window.from; from < window.to; from += length) {
        struct fetch fetch = {.hours = {from, from + length}};
        struct engine_stats stats;
        engine_reach(&settings, fetch.hours, &fetch.kube, &fetch.gpu);
        struct intake *intake = intake_new(&settings, names);
        if (source->ops->fetch(source, &fetch, intake, &progress, &err) != ERR_OK)
            return fail(&err);
        intake_stats(intake, &stats);
        samples += stats.samples;
        bytes += bytes_now;
        intake_free(intake);
    }
    cpu = cpu_s() - cpu;
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    printf("%" PRIu64 " samples, %.1f MB, %.2f s, %.2f s CPU: %.1f M samples a CPU second; peak "
           "%.0f MB\n",
           samples, (double)bytes / 1e6, (double)(clock_monotonic() - began) / 1000, cpu,
           (double)samples / cpu / 1e6, (double)usage.ru_maxrss / 1024);
    source_free(source);
    names_free(names);
    return 0;
}
