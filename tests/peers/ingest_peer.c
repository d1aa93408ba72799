/* The receiving end for tests: a journal that is pushed to over HTTP and filled by scrapes, and
 * what comes out of it. Times and ages are not looked at, so that fleets of any date fit.
 *
 *     ingest_peer serve JOURNAL [--fail-every N] [--slow-ms N] [--segment-bytes N]
 *                 [--job NAME --file FILE --interval-ms N [--now EPOCH_MS --speed X]]
 *         prints "port N" once it listens, "pushed …" and "scraped …" when it is told to end
 *     ingest_peer dump JOURNAL             every sample as OpenMetrics text, series by series
 *     ingest_peer book JOURNAL DB FROM TO CONFIG PRICES OWNERS STEP_MS GAP_MS
 *         books the hours from the journal */
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "collect/collect.h"
#include "fleet/config.h"
#include "serve/http.h"
#include "source/push.h"
#include "source/scrape.h"
#include "source/targets.h"

#define CENTURY_MS (36525 * DAY_MS)

static volatile sig_atomic_t ending;

static void on_signal(int number)
{
    (void)number;
    ending = 1;
}

static int failed(const struct error *err)
{
    fprintf(stderr, "error %d: %s\n", (int)err->code, err->text);
    return 1;
}

struct options {
    long fail_every, slow_ms, segment_bytes, interval_ms;
    long long now;
    double speed;
    const char *job, *file;
};

static void read_options(int argc, char **argv, struct options *ret)
{
    for (int i = 0; i + 1 < argc; i += 2) {
        const char *name = argv[i], *value = argv[i + 1];
        if (strcmp(name, "--fail-every") == 0)
            ret->fail_every = atol(value);
        else if (strcmp(name, "--slow-ms") == 0)
            ret->slow_ms = atol(value);
        else if (strcmp(name, "--segment-bytes") == 0)
            ret->segment_bytes = atol(value);
        else if (strcmp(name, "--interval-ms") == 0)
            ret->interval_ms = atol(value);
        else if (strcmp(name, "--now") == 0)
            ret->now = atoll(value);
        else if (strcmp(name, "--speed") == 0)
            ret->speed = atof(value);
        else if (strcmp(name, "--job") == 0)
            ret->job = value;
        else if (strcmp(name, "--file") == 0)
            ret->file = value;
    }
}

static struct journal *open_journal(const char *folder, const struct options *options,
                                    struct error *err)
{
    struct journal *journal = NULL;
    struct journal_options journal_options = {.folder = folder,
                                              .name = "test",
                                              .segment_bytes =
                                                  options ? (uint64_t)options->segment_bytes : 0,
                                              .cap_age_ms = CENTURY_MS};
    journal_open(&journal_options, &journal, err);
    return journal;
}

/* ---- serve */

struct receiver {
    struct push *push;
    const struct options *options;
    long requests;
};

static void on_write(void *context, const struct http_request *request, struct http_answer *answer)
{
    struct receiver *receiver = context;
    struct push_answer said;
    long number = __atomic_add_fetch(&receiver->requests, 1, __ATOMIC_RELAXED);
    if (receiver->options->slow_ms)
        usleep((useconds_t)receiver->options->slow_ms * 1000);
    if (receiver->options->fail_every && number % receiver->options->fail_every == 0) {
        answer->status = number % 2 ? 500 : 503;
        return;
    }
    struct push_request ask = {.content_encoding = http_header(request, "Content-Encoding"),
                               .content_type = http_header(request, "Content-Type"),
                               .version = http_header(request, "X-Prometheus-Remote-Write-Version"),
                               .body = request->body};
    push_write(receiver->push, &ask, &said);
    answer->status = said.status;
    answer->content_type = "text/plain";
    strbuf_add(&answer->body, str_of(said.text));
}

struct clock {
    long long start;
    time_ms begun;
    double speed;
};

static time_ms fleet_now(void *context)
{
    const struct clock *clock = context;
    return clock->start + (time_ms)((double)(clock_monotonic() - clock->begun) * clock->speed);
}

static enum err start_scraper(const struct options *options, struct journal *journal,
                              struct clock *clock, struct targets **ret_targets,
                              struct scraper **ret, struct error *err)
{
    struct scrape_job job = {.name = options->job,
                             .interval_ms = options->interval_ms,
                             .timeout_ms = 2000,
                             .files = &options->file,
                             .files_n = 1};
    enum err e = targets_new(&job, 1, ret_targets, err);
    if (e != ERR_OK)
        return e;
    *clock = (struct clock){options->now, clock_monotonic(), options->speed};
    struct scrape_options scrape = {.targets = *ret_targets,
                                    .journal = journal,
                                    .sync_ms = 500,
                                    .now = options->now ? fleet_now : NULL,
                                    .speed = options->now ? options->speed : 0,
                                    .context = clock};
    return scraper_start(&scrape, ret, err);
}

static enum err start_server(struct receiver *receiver, struct http_server **ret, struct error *err)
{
    struct http_options http = {.listen = "127.0.0.1:0"};
    struct http_route route = {.pattern = "/api/v1/write",
                               .methods = HTTP_BIT(HTTP_POST),
                               .body_max = PUSH_BODY_MAX,
                               .handle = on_write,
                               .context = receiver};
    enum err e = http_server_new(&http, ret, err);
    if (e != ERR_OK)
        return e;
    http_route_add(*ret, &route);
    return http_server_start(*ret, err);
}

static int serve(const char *folder, const struct options *options)
{
    struct error err = {0};
    struct journal *journal = open_journal(folder, options, &err);
    struct http_server *server = NULL;
    struct targets *targets = NULL;
    struct scraper *scraper = NULL;
    struct clock clock;
    if (!journal)
        return failed(&err);
    struct push_route route = {.tenant = STR_NONE, .journal = journal};
    struct push_options push = {
        .routes = &route, .routes_n = 1, .oldest_ms = CENTURY_MS, .future_ms = CENTURY_MS};
    struct receiver receiver = {.push = push_new(&push), .options = options};
    enum err e = start_server(&receiver, &server, &err);
    if (e == ERR_OK && options->file)
        e = start_scraper(options, journal, &clock, &targets, &scraper, &err);
    if (e != ERR_OK)
        return failed(&err);
    printf("port %d\n", http_server_port(server));
    fflush(stdout);
    while (!ending)
        usleep(20000);
    push_stop(receiver.push);
    http_server_stop(server, 2000);
    struct push_stats pushed;
    push_stats(receiver.push, &pushed);
    printf("pushed %" PRIu64 " requests, %" PRIu64 " samples, %" PRIu64 " ignored, %" PRIu64
           " 4xx, %" PRIu64 " 5xx\n",
           pushed.requests, pushed.samples, pushed.ignored_samples, pushed.answers_4xx,
           pushed.answers_5xx);
    if (scraper) {
        struct scrape_stats scraped;
        scraper_stats(scraper, &scraped);
        printf("scraped %" PRIu64 " times, %" PRIu64 " failures, %" PRIu64 " samples, %" PRIu64
               " bad lines, %" PRIu64 " dropped\n",
               scraped.scrapes, scraped.failures, scraped.samples, scraped.bad_lines,
               scraped.dropped_samples);
    }
    scraper_stop(scraper);
    targets_free(targets);
    push_free(receiver.push);
    journal_close(journal);
    return 0;
}

/* ---- dump */

struct dump {
    struct dumped {
        char *text;
        time_ms *t;
        double *v;
        size_t n, room, room_v;
    } * series;
    size_t n, room;
};

static uint32_t on_series(void *context, const struct label *labels, size_t n)
{
    struct dump *dump = context;
    struct strbuf text = {0};
    bool first = true;
    strbuf_add(&text, labels_get(labels, n, STR("__name__")));
    for (size_t i = 0; i < n; i++) {
        if (str_eq(labels[i].name, STR("__name__")))
            continue;
        strbuf_addf(&text, "%s%.*s=\"", first ? "{" : ",", STR_ARG(labels[i].name));
        for (size_t c = 0; c < labels[i].value.n; c++) {
            char byte = labels[i].value.p[c];
            if (byte == '\n')
                strbuf_add(&text, STR("\\n"));
            else if (byte == '"' || byte == '\\')
                strbuf_addf(&text, "\\%c", byte);
            else
                strbuf_addc(&text, byte);
        }
        strbuf_addc(&text, '"');
        first = false;
    }
    if (!first)
        strbuf_addc(&text, '}');
    for (size_t i = 0; i < dump->n; i++)
        if (strcmp(dump->series[i].text, text.text) == 0) {
            strbuf_release(&text);
            return (uint32_t)i;
        }
    struct dumped series = {.text = text.text};
    mem_push(dump->series, dump->n, dump->room, series);
    return (uint32_t)dump->n - 1;
}

static void on_samples(void *context, uint32_t number, const time_ms *t, const double *v, size_t n)
{
    struct dumped *series = &((struct dump *)context)->series[number];
    for (size_t i = 0; i < n; i++) {
        mem_reserve(series->v, series->n, series->room_v, 1);
        series->v[series->n] = v[i];
        mem_push(series->t, series->n, series->room, t[i]);
    }
}

static int text_order(const void *a, const void *b)
{
    return strcmp(((const struct dumped *)a)->text, ((const struct dumped *)b)->text);
}

static int dump_journal(const char *folder)
{
    struct error err = {0};
    struct journal *journal = open_journal(folder, NULL, &err);
    struct dump dump = {0};
    struct journal_read_stats stats;
    if (!journal)
        return failed(&err);
    struct journal_read read = {.kube = {TIME_MIN, TIME_MAX},
                                .gpu = {TIME_MIN, TIME_MAX},
                                .sink = {&dump, on_series, on_samples}};
    if (journal_read(journal, &read, &stats, &err) != ERR_OK)
        return failed(&err);
    if (dump.n)
        qsort(dump.series, dump.n, sizeof *dump.series, text_order);
    for (size_t i = 0; i < dump.n; i++)
        for (size_t s = 0; s < dump.series[i].n; s++) {
            double v = dump.series[i].v[s];
            uint64_t bits;
            memcpy(&bits, &v, sizeof bits);
            if (bits == UINT64_C(0x7ff0000000000002))
                printf("%s stale %" PRId64 "\n", dump.series[i].text, dump.series[i].t[s]);
            else
                printf("%s %.17g %" PRId64 ".%03d\n", dump.series[i].text, v,
                       dump.series[i].t[s] / 1000, (int)(dump.series[i].t[s] % 1000));
        }
    printf("# EOF\n");
    fprintf(stderr, "damaged %" PRIu64 ", nameless %" PRIu64 "\n", stats.damaged_frames,
            stats.nameless_samples);
    journal_close(journal);
    return 0;
}

/* ---- book */

static int book(char **argv)
{
    struct error err = {0};
    struct config *config = config_new();
    struct journal *journal = open_journal(argv[0], NULL, &err);
    struct names *names = names_new();
    struct store *store = NULL;
    struct collect_report report;
    struct collect_options collect = {.names = names};
    enum err e = journal ? ERR_OK : err.code;
    if (e == ERR_OK)
        e = config_read(config, argv[4], &err);
    if (e == ERR_OK)
        e = config_add_prices(config, argv[5], &err);
    if (e == ERR_OK)
        e = config_set_owners(config, argv[6], &err);
    config->settings.step_ms = atoll(argv[7]);
    config->settings.gap_ms = atoll(argv[8]);
    if (e == ERR_OK)
        e = config_finish(config, &err);
    if (e == ERR_OK)
        e = store_open(argv[1], STORE_WRITE, names, &store, &err);
    if (e != ERR_OK)
        return failed(&err);
    struct source *source = journal_source_new(journal);
    collect.sources = &source;
    collect.sources_n = 1;
    collect.store = store;
    collect.engine = (struct engine_options){
        .settings = &config->settings, .prices = config->prices, .owners = config->owners};
    if (!time_parse(str_of(argv[2]), &collect.window.from) ||
        !time_parse(str_of(argv[3]), &collect.window.to))
        return 2;
    collect.window = (struct span){hour_floor(collect.window.from), hour_ceil(collect.window.to)};
    e = collect_run(&collect, &report, &err);
    if (e != ERR_OK)
        return failed(&err);
    printf("booked %" PRIu64 " samples%s\n", report.samples, report.partial ? ", partial" : "");
    source_free(source);
    store_close(store);
    names_free(names);
    config_free(config);
    journal_close(journal);
    return 0;
}

int main(int argc, char **argv)
{
    struct options options = {.speed = 1};
    struct sigaction action = {.sa_handler = on_signal};
    sigaction(SIGTERM, &action, NULL);
    signal(SIGPIPE, SIG_IGN);
    if (argc >= 3 && strcmp(argv[1], "dump") == 0)
        return dump_journal(argv[2]);
    if (argc == 11 && strcmp(argv[1], "book") == 0)
        return book(argv + 2);
    if (argc < 3 || strcmp(argv[1], "serve") != 0)
        return 2;
    read_options(argc - 3, argv + 3, &options);
    return serve(argv[2], &options);
}
