/* serve: what the service is told comes from the configuration and, over it, from the command line
 * and the environment; all of them are read again by each reload. */
#include "serve/service.h"

#include <stdlib.h>

#include "cmd/cmd.h"
#include "cmd/flow.h"

/* What a setup was read from, and lives in. */
struct loaded {
    struct options options;
};

static void unload(struct service_setup *setup)
{
    struct loaded *loaded = setup->loaded;
    serve_config_release(&setup->serve);
    config_free(loaded->options.config);
    options_release(&loaded->options);
    free(loaded);
    *setup = (struct service_setup){0};
}

static enum err words_of(const struct options *options, struct serve_config *serve,
                         struct error *err)
{
    const char *level = options_text(options, OPTION_LOG_LEVEL);
    const char *format = options_text(options, OPTION_LOG_FORMAT);
    if (level && !log_level_of(str_of(level), &serve->log_level))
        return options_refuse(options, OPTION_LOG_LEVEL, err,
                              "'%s' is none of error, warn, info, debug", level);
    if (format && !log_format_of(str_of(format), &serve->log_format))
        return options_refuse(options, OPTION_LOG_FORMAT, err, "'%s' is none of logfmt, json",
                              format);
    return ERR_OK;
}

static enum err times_of(const struct options *options, struct serve_config *serve,
                         struct error *err)
{
    static const struct {
        enum option_id id;
        size_t at;
        time_ms least;
    } table[] = {{OPTION_EVERY, offsetof(struct serve_config, every_ms), 1000},
                 {OPTION_HISTORY, offsetof(struct serve_config, history_ms), HOUR_MS},
                 {OPTION_RETAIN, offsetof(struct serve_config, retain_ms), DAY_MS}};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        time_ms *at = (time_ms *)(void *)((char *)serve + table[i].at);
        long long ms = *at;
        enum err code = options_duration(options, table[i].id, &ms, err);
        if (code == ERR_OK && options_text(options, table[i].id) && ms < table[i].least)
            code = options_refuse(options, table[i].id, err, "that is less than %llds",
                                  (long long)table[i].least / 1000);
        if (code != ERR_OK)
            return code;
        *at = ms;
    }
    return ERR_OK;
}

/* --prometheus and --kube-json: one more cluster, in the book without a name, so that a database
 * that `collect` filled goes on. */
static enum err sources_of(const struct options *options, struct serve_config *serve,
                           struct error *err)
{
    const struct option_values *lists = &options->values[OPTION_KUBE_JSON];
    struct source_config source = {.cluster = "", .book = ""};
    struct str cluster = options->config->cluster;
    if (cluster.n)
        source.cluster = cluster.p;
    if (options_text(options, OPTION_PROMETHEUS)) {
        source.kind = SOURCE_KIND_PROMETHEUS;
        enum err code = flow_prometheus(options, &source.prometheus, err);
        if (code != ERR_OK)
            return code;
        serve_config_add(serve, &source);
    }
    if (lists->n) {
        source.kind = SOURCE_KIND_KUBE_JSON;
        source.files = lists->items;
        source.files_n = lists->n;
        serve_config_add(serve, &source);
    }
    return ERR_OK;
}

static enum err read_all(struct service_setup *setup, struct options *options, struct error *err)
{
    enum err code = options_read_config(options, err);
    setup->config = options->config;
    if (code == ERR_OK)
        code = flow_settings(options, setup->config, &setup->tz, err);
    if (code == ERR_OK)
        code = serve_config_read(setup->config, &setup->serve, err);
    struct serve_config *serve = &setup->serve;
    if (options_text(options, OPTION_DB))
        serve->db = options_text(options, OPTION_DB);
    if (options_text(options, OPTION_LISTEN))
        serve->listen = options_text(options, OPTION_LISTEN);
    if (code == ERR_OK)
        code = words_of(options, serve, err);
    if (code == ERR_OK)
        code = times_of(options, serve, err);
    if (code == ERR_OK)
        code = sources_of(options, serve, err);
    return code == ERR_OK ? serve_config_finish(serve, err) : code;
}

static enum err load(void *context, struct service_setup *ret, struct error *err)
{
    const struct options *outer = context;
    struct loaded *loaded = mem_zalloc(1, sizeof *loaded);
    *ret = (struct service_setup){.loaded = loaded};
    enum err code = options_parse(outer->argc, outer->argv, &loaded->options, err);
    if (code == ERR_OK)
        code = read_all(ret, &loaded->options, err);
    if (code != ERR_OK)
        unload(ret);
    return code;
}

static void ready(void *context, const char *url)
{
    (void)context;
    printf("gputally serves at %s\n", url);
    fflush(stdout);
}

/* For tests only: GPUTALLY_TEST_CLOCK=TIME,SPEED plays a fleet's time, days of it in seconds. */
static enum err test_clock(struct error *err)
{
    const char *text = getenv("GPUTALLY_TEST_CLOCK");
    if (!text)
        return ERR_OK;
    const char *comma = strchr(text, ',');
    char *end = NULL;
    double speed = comma ? strtod(comma + 1, &end) : 0;
    time_ms base;
    if (!comma || *end || !(speed > 0) ||
        !time_parse((struct str){text, (size_t)(comma - text)}, &base))
        return error_set(err, ERR_USAGE, "GPUTALLY_TEST_CLOCK is TIME,SPEED");
    clock_pretend(base, speed);
    return ERR_OK;
}

int cmd_serve(const struct options *options)
{
    struct error err = {0};
    struct service_options service = {
        .load = load, .unload = unload, .context = (void *)(uintptr_t)options, .ready = ready};
    enum err code = test_clock(&err);
    if (code == ERR_OK)
        code = service_run(&service, &err);
    return code == ERR_OK ? EXIT_DONE : fail(&err);
}
