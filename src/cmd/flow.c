/* The main job: from options to a filled store.
 *
 * Which window is meant where nobody says: 7 days with a server, for files the time that they have,
 * for a database alone the last 7 days that it has. */
#include "cmd/flow.h"

#include <stdlib.h>

#include "cmd/cmd.h"
#include "insight/exempt.h"
#include "query/window.h"
#include "query/zone.h"
#include "source/kube_file.h"
#include "source/openmetrics_file.h"
#include "source/prometheus.h"

#define DEFAULT_WINDOW "7d"
#define DEFAULT_WINDOW_MS (7 * DAY_MS)

/* ---- the configuration ---- */

/* What the configuration says of findings is checked by every command: a mistake is told before
 * anything is run. */
static enum err check_findings(const struct config *config, struct error *err)
{
    struct thresholds thresholds;
    struct exemptions exemptions = {0};
    enum err code = thresholds_read(config, &thresholds, err);
    if (code == ERR_OK)
        code = exemptions_add_config(&exemptions, config, err);
    exemptions_release(&exemptions);
    return code;
}

enum err flow_settings(const struct options *options, struct config *config, const char **ret_tz,
                       struct error *err)
{
    const char *prices = options_text(options, OPTION_PRICES);
    const char *owners = options_text(options, OPTION_OWNERS);
    long long step = config->settings.step_ms, gap = config->settings.gap_ms;
    enum err code = ERR_OK;
    if (prices)
        code = config_add_prices(config, prices, err);
    if (code == ERR_OK && owners)
        code = config_set_owners(config, owners, err);
    if (code == ERR_OK)
        code = options_duration(options, OPTION_STEP, &step, err);
    if (code == ERR_OK)
        code = options_duration(options, OPTION_GAP, &gap, err);
    if (code != ERR_OK)
        return code;
    config->settings.step_ms = step;
    config->settings.gap_ms = gap;
    const char *tz = options_text(options, OPTION_TZ);
    if (!tz && config->tz.n)
        tz = config->tz.p;
    if (options_text(options, OPTION_CURRENCY)) /* prices of the catalogue are in USD */
        config->currency = str_of(options_text(options, OPTION_CURRENCY));
    const struct zone *zone;
    code = zone_load(tz, &zone, err);
    if (code == ERR_OK)
        code = config_finish(config, err);
    if (code == ERR_OK)
        code = check_findings(config, err);
    if (code == ERR_OK)
        *ret_tz = tz;
    return code;
}

static enum err read_settings(struct flow *flow, struct error *err)
{
    enum err code = flow_settings(flow->options, flow->config, &flow->tz, err);
    flow->currency = flow->config->currency.p;
    return code;
}

static enum err read_window(struct flow *flow, struct error *err)
{
    const char *text = options_text(flow->options, OPTION_WINDOW);
    const struct config *config = flow->config;
    if (text) {
        struct error inner = {0};
        if (window_parse(str_of(text), flow->tz, clock_now(), &flow->window, &flow->window_widened,
                         &inner) != ERR_OK)
            return options_refuse(flow->options, OPTION_WINDOW, err, "%s", inner.text);
        flow->window_given = true;
    } else if (config->from > TIME_MIN && config->to < TIME_MAX) {
        flow->window = (struct span){hour_floor(config->from), hour_ceil(config->to)};
        flow->window_widened = flow->window.from != config->from || flow->window.to != config->to;
        flow->window_given = true;
    }
    return ERR_OK;
}

/* ---- the sources ---- */

void flow_add_source(struct flow *flow, struct source *source)
{
    mem_push(flow->sources, flow->sources_n, flow->sources_room, source);
}

static enum err prometheus_way(const struct options *options, enum prometheus_api *ret,
                               struct error *err)
{
    const char *text = options_text(options, OPTION_PROMETHEUS_API);
    if (!text || strcmp(text, "auto") == 0)
        *ret = PROMETHEUS_AUTO;
    else if (strcmp(text, "remote-read") == 0)
        *ret = PROMETHEUS_REMOTE_READ;
    else if (strcmp(text, "query") == 0)
        *ret = PROMETHEUS_QUERY;
    else
        return options_refuse(options, OPTION_PROMETHEUS_API, err,
                              "'%s' is none of auto, remote-read, query", text);
    return ERR_OK;
}

enum err flow_prometheus(const struct options *options, struct prometheus_options *ret,
                         struct error *err)
{
    prometheus_options_defaults(ret);
    ret->url = options_text(options, OPTION_PROMETHEUS);
    ret->bearer_token_file = options_text(options, OPTION_BEARER_TOKEN_FILE);
    ret->user = options_text(options, OPTION_BASIC_AUTH_USER);
    ret->password_file = options_text(options, OPTION_BASIC_AUTH_PASSWORD_FILE);
    ret->client_cert = options_text(options, OPTION_CLIENT_CERT);
    ret->client_key = options_text(options, OPTION_CLIENT_KEY);
    ret->ca_file = options_text(options, OPTION_CA_FILE);
    ret->headers = options->values[OPTION_HEADER].items;
    ret->headers_n = options->values[OPTION_HEADER].n;
    ret->proxy = options_text(options, OPTION_PROXY);
    ret->matcher = options_text(options, OPTION_MATCHER);
    return prometheus_way(options, &ret->api, err);
}

static enum err add_prometheus(struct flow *flow, struct error *err)
{
    struct prometheus_options ways;
    struct source *source;
    enum err code = flow_prometheus(flow->options, &ways, err);
    if (code == ERR_OK)
        code = prometheus_source_new(&ways, &source, err);
    if (code != ERR_OK)
        return code;
    flow_add_source(flow, source);
    flow->has_server = true;
    return ERR_OK;
}

static enum err add_sources(struct flow *flow, struct error *err)
{
    const struct options *options = flow->options;
    const struct option_values *texts = &options->values[OPTION_OPENMETRICS];
    const struct option_values *lists = &options->values[OPTION_KUBE_JSON];
    struct source *source;
    enum err code = ERR_OK;
    if (options_text(options, OPTION_PROMETHEUS))
        code = add_prometheus(flow, err);
    if (code == ERR_OK && texts->n) {
        time_ms stamp = flow->window_given ? flow->window.to : 0;
        code = openmetrics_source_new(texts->items, texts->n, stamp, &source, err);
        if (code == ERR_OK)
            flow_add_source(flow, source);
    }
    if (code == ERR_OK && lists->n) {
        const char *cluster = flow->config->cluster.n ? flow->config->cluster.p : NULL;
        code = kube_file_source_new(lists->items, lists->n, cluster, &source, err);
        if (code == ERR_OK)
            flow_add_source(flow, source);
    }
    return code;
}

static enum err need_source(const struct flow *flow, struct error *err)
{
    const struct options *options = flow->options;
    bool telemetry = options->values[OPTION_PROMETHEUS].n || options->values[OPTION_OPENMETRICS].n;
    bool lists = options->values[OPTION_KUBE_JSON].n;
    if (options->command->bit == IN_DEMO || telemetry || lists)
        return ERR_OK;
    if (options->command->bit == IN_COLLECT)
        return error_set(err, ERR_USAGE,
                         "nothing to collect from: give --prometheus URL or "
                         "--openmetrics FILE");
    if (!options->values[OPTION_DB].n)
        return error_set(err, ERR_USAGE,
                         "nothing to read from: give --prometheus URL, --openmetrics FILE or "
                         "--db FILE (%s demo shows a report without any)",
                         options->program);
    return ERR_OK;
}

enum err flow_open(const struct options *options, struct flow *ret, struct error *err)
{
    *ret = (struct flow){.options = options, .config = options->config, .names = names_new()};
    meter_start(&ret->meter, options_switch(options, OPTION_QUIET),
                options_switch(options, OPTION_VERBOSE));
    enum err code = need_source(ret, err);
    if (code == ERR_OK)
        code = read_settings(ret, err);
    if (code == ERR_OK)
        code = read_window(ret, err);
    if (code == ERR_OK)
        code = add_sources(ret, err);
    if (code == ERR_OK) /* a later run with others can then say so */
        config_describe(ret->config, &ret->settings);
    return code;
}

/* ---- the window where nobody says ---- */

/* What a survey takes as "since when?": wider than any file, and no sum of hours wraps. */
#define EVERYTHING ((struct span){-((time_ms)1 << 51), (time_ms)1 << 51})

static enum err window_of_files(struct flow *flow, struct error *err)
{
    struct span all = {TIME_MAX, TIME_MIN};
    for (size_t i = 0; i < flow->sources_n; i++) {
        struct progress progress = meter_progress(&flow->meter);
        struct source *source = flow->sources[i];
        struct span extent = {0};
        double rate;
        progress.what = source->id;
        enum err code = source->ops->survey(source, EVERYTHING, &extent, &rate, &progress, err);
        if (code == ERR_IO)
            error_prefix(err, "reading telemetry");
        if (code != ERR_OK)
            return code;
        if (strcmp(source->ops->kind, "kube-json") == 0 || extent.from > extent.to)
            continue;
        all.from = extent.from < all.from ? extent.from : all.from;
        all.to = extent.to > all.to ? extent.to : all.to;
    }
    if (all.from > all.to)
        return error_set(err, ERR_NOT_FOUND,
                         "%s has no GPU samples with time stamps: give a window with --window "
                         "FROM,TO, or a file whose lines have stamps",
                         flow->sources[0]->id);
    flow->window = (struct span){hour_floor(all.from), hour_ceil(all.to)};
    return ERR_OK;
}

static enum err window_of_store(struct flow *flow, struct error *err)
{
    struct span extent;
    if (store_extent(flow->store, &extent, err) != ERR_OK)
        return error_set(err, ERR_NOT_FOUND,
                         "%s has no booked hours: fill it with %s collect --db %s --prometheus URL",
                         options_text(flow->options, OPTION_DB), flow->options->program,
                         options_text(flow->options, OPTION_DB));
    flow->window = extent;
    if (extent.to - extent.from > DEFAULT_WINDOW_MS)
        flow->window.from = extent.to - DEFAULT_WINDOW_MS;
    return ERR_OK;
}

static enum err choose_window(struct flow *flow, struct error *err)
{
    if (flow->window_given)
        return ERR_OK;
    if (flow->sources_n == 0)
        return window_of_store(flow, err);
    if (!flow->has_server)
        return window_of_files(flow, err);
    return window_parse(STR(DEFAULT_WINDOW), flow->tz, clock_now(), &flow->window,
                        &flow->window_widened, err);
}

/* ---- collecting ---- */

static enum err open_store(struct flow *flow, struct error *err)
{
    const char *path = options_text(flow->options, OPTION_DB);
    if (flow->sources_n == 0)
        return store_open(path, STORE_READ, flow->names, &flow->store, err);
    return store_open(path ? path : ":memory:", STORE_WRITE, flow->names, &flow->store, err);
}

static void say_collected(struct flow *flow)
{
    const struct collect_report *report = &flow->collected;
    struct strbuf text = {0};
    text_scaled(&text, (double)report->samples, "");
    strbuf_add(&text, STR(" samples ("));
    text_scaled(&text, (double)report->bytes, "B");
    strbuf_add(&text, STR(") in "));
    text_duration(&text, (double)(clock_monotonic() - flow->meter.began) / 1000);
    meter_say(&flow->meter, "read %llu series, %s; booked %llu rows",
              (unsigned long long)report->series, text.text, (unsigned long long)report->rows);
    strbuf_release(&text);
}

static enum err run_collect(struct flow *flow, struct error *err)
{
    const struct options *options = flow->options;
    const char *book = options_text(options, OPTION_BOOK);
    long long threads = 0, slice = 0;
    enum err code = options_number(options, OPTION_THREADS, 1, &threads, err);
    if (code == ERR_OK)
        code = options_duration(options, OPTION_SLICE, &slice, err);
    if (code == ERR_OK && (slice % HOUR_MS || threads > 1024))
        code = error_set(err, ERR_USAGE, "--slice takes whole hours, --threads at most 1024");
    if (code != ERR_OK)
        return code;
    struct collect_options collect = {
        .sources = flow->sources,
        .sources_n = flow->sources_n,
        .store = flow->store,
        .names = flow->names,
        .engine = {.settings = &flow->config->settings,
                   .prices = flow->config->prices,
                   .owners = flow->config->owners,
                   .threads = (int)threads},
        .book = str_of(book ? book : ""),
        .cluster = flow->config->cluster,
        .window = flow->window,
        .rebook = options_switch(options, OPTION_REBOOK),
        .slice_ms = slice,
        .settings = strbuf_str(&flow->settings),
        .progress = meter_progress(&flow->meter),
    };
    for (size_t i = 0; i < flow->sources_n; i++)
        meter_say(&flow->meter, "reading %s", flow->sources[i]->id);
    code = collect_run(&collect, &flow->collected, err);
    meter_clear(&flow->meter);
    if (code == ERR_OK)
        say_collected(flow);
    if (code == ERR_IO)
        error_prefix(err, "reading telemetry");
    return code;
}

/* --retain: hours that are older than the newest by more than that are dropped. */
static enum err retain(struct flow *flow, struct error *err)
{
    long long keep = 0;
    struct span extent;
    enum err code = options_duration(flow->options, OPTION_RETAIN, &keep, err);
    if (code != ERR_OK || keep == 0)
        return code;
    if (keep < DAY_MS)
        return options_refuse(flow->options, OPTION_RETAIN, err, "a day is the least: 1d");
    code = store_extent(flow->store, &extent, err);
    if (code == ERR_NOT_FOUND)
        return ERR_OK;
    return code == ERR_OK ? store_retain(flow->store, extent.to - keep, err) : code;
}

/* A server by its URL, a file by its own name: what a reader knows it by. */
static const char *title_of(const struct flow *flow)
{
    const struct option_values *files = &flow->options->values[OPTION_OPENMETRICS];
    const char *path = files->n ? files->items[0] : options_text(flow->options, OPTION_DB);
    if (flow->has_server)
        return flow->sources[0]->id;
    if (!path)
        return NULL;
    if (strcmp(path, "-") == 0)
        return "standard input";
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

enum err flow_collect(struct flow *flow, struct error *err)
{
    if (!flow->title)
        flow->title = title_of(flow);
    enum err code = open_store(flow, err);
    if (code == ERR_OK)
        code = choose_window(flow, err);
    meter_clear(&flow->meter);
    if (code == ERR_OK && flow->sources_n)
        code = run_collect(flow, err);
    return code == ERR_OK ? retain(flow, err) : code;
}

void flow_close(struct flow *flow)
{
    meter_clear(&flow->meter);
    for (size_t i = 0; i < flow->sources_n; i++)
        source_free(flow->sources[i]);
    free(flow->sources);
    strbuf_release(&flow->settings);
    store_close(flow->store);
    names_free(flow->names);
    *flow = (struct flow){0};
}
