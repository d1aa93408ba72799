/* The command line goes over the configuration. Everything that was read lives until it is
 * unloaded, so that a reload has the old and the new beside each other. */
#include "cmd/serve_load.h"

#include <stdlib.h>

#include "cmd/cmd.h"
#include "cmd/flow.h"

/* What a setup was read from, and lives in. */
struct loaded {
    struct options options;
};

void serve_unload(struct service_setup *setup)
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
    struct source_config source = {.cluster = "", .book = "", .tenant = ""};
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

static enum err read_all(struct service_setup *setup, struct options *options, const char *path,
                         struct error *err)
{
    enum err code = options_read_config(options, path, err);
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
    return code == ERR_OK ? sources_of(options, serve, err) : code;
}

enum err serve_load(const struct options *outer, const char *path, struct service_setup *ret,
                    struct error *err)
{
    struct loaded *loaded = mem_zalloc(1, sizeof *loaded);
    *ret = (struct service_setup){.loaded = loaded};
    enum err code = options_parse(outer->argc, outer->argv, &loaded->options, err);
    if (code == ERR_OK)
        code = read_all(ret, &loaded->options, path, err);
    if (code != ERR_OK)
        serve_unload(ret);
    return code;
}
