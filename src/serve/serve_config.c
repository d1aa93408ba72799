/* A table of keys a section: where the value goes and how it is read (util/config_table.h). Entries
 * of `sources:` have the keys of all sources and those of their kind. */
#include "serve/serve_config.h"

#include <stdlib.h>

#include "source/http_site.h"
#include "util/config_table.h"

const char *const source_kind_words[SOURCE_KINDS] = {
#define X(id, word) word,
    SOURCE_KIND_TABLE(X)
#undef X
};

#define EVERY_MIN_MS 1000
#define RETRIES_MAX 100
#define TEAMS_MAX 10000
#define JOURNAL_CAP_MIN (256ull << 20)

/* ---- values ---- */

/* What a section is read into. */
struct reading {
    struct serve_config *serve;
    struct source_config *source;
};

/* One text or a list of them. */
static enum err read_texts(const struct config_reading *reading, struct config_node node,
                           config_read_fn each, const char ***ret, size_t *ret_n, struct error *err)
{
    bool list = config_kind(node) == CONFIG_LIST;
    size_t n = list ? config_count(node) : 1;
    const char **texts = arena_alloc(reading->arena, (n + 1) * sizeof *texts);
    for (size_t i = 0; i < n; i++) {
        struct config_node item = list ? config_item(node, i) : node;
        enum err code = each(reading, &texts[i], item, err);
        if (code)
            return code;
    }
    *ret = texts;
    *ret_n = n;
    return ERR_OK;
}

/* ---- serve ---- */

static enum err read_hosts(const struct config_reading *of, void *at, struct config_node node,
                           struct error *err)
{
    struct reading *reading = of->context;
    (void)at;
    return read_texts(of, node, config_into_text, &reading->serve->hosts, &reading->serve->hosts_n,
                      err);
}

static enum err read_tls(const struct config_reading *of, void *at, struct config_node node,
                         struct error *err)
{
    struct reading *reading = of->context;
    (void)at;
    static const struct config_key keys[] = {
        {"cert", config_into_path, offsetof(struct serve_config, tls_cert)},
        {"key", config_into_path, offsetof(struct serve_config, tls_key)},
        {"client_ca", config_into_path, offsetof(struct serve_config, tls_client_ca)},
    };
    struct serve_config *serve = reading->serve;
    serve->tls_at = node;
    if (config_kind(node) != CONFIG_MAP)
        return config_error(node, err, "tls is a mapping, such as {cert: FILE, key: FILE}");
    enum err code = CONFIG_READ_TABLE(of, node, keys, reading->serve, err);
    if (!code && (!serve->tls_cert || !serve->tls_key))
        return config_error(node, err, "tls needs both cert and key");
    return code;
}

static bool is_time(const char *field)
{
    size_t n = strlen(field);
    return n > 3 && strcmp(&field[n - 3], "_ms") == 0;
}

#define LISTEN_FORM "write it as ADDRESS:PORT, such as 127.0.0.1:9475, with a port of 0 to 65535"

static enum err read_listen(const struct config_reading *of, void *at, struct config_node node,
                            struct error *err)
{
    enum err code = config_into_text(of, at, node, err);
    const char *listen = code ? NULL : *(const char **)at;
    if (listen && !http_listen_is_address(listen))
        code = config_error(node, err, "'%.100s' is no address to listen at: " LISTEN_FORM, listen);
    return code;
}

static enum err read_limits(const struct config_reading *of, void *at, struct config_node node,
                            struct error *err)
{
    struct reading *reading = of->context;
    (void)at;
    static const struct {
        const char *name;
        size_t at;
        const char *field; /* with its unit */
    } table[] = {
#define X(name, standard, key, meaning) {key, offsetof(struct http_limits, name), #name},
        HTTP_LIMIT_TABLE(X)
#undef X
    };
    const char *names[sizeof table / sizeof *table];
    const size_t n = sizeof table / sizeof *table;
    if (config_kind(node) != CONFIG_MAP)
        return config_error(node, err, "limits is a mapping, such as {connections: 1000}");
    for (size_t k = 0; k < n; k++)
        names[k] = table[k].name;
    for (size_t i = 0; i < config_count(node); i++) {
        struct config_node value, key = config_pair(node, i, &value);
        size_t k = 0;
        enum err code = config_find_key(key, names, n, &k, err);
        int64_t *to = (int64_t *)(void *)((char *)&reading->serve->limits + table[k].at);
        if (!code)
            code = is_time(table[k].field) ? config_as_duration(value, 0, to, err)
                                           : config_as_int(value, 1, INT64_MAX / 2, to, err);
        if (!code && *to == 0)
            code = config_error(value, err, "a time over 0 is needed here, such as 10s");
        if (code)
            return code;
    }
    return ERR_OK;
}

static enum err read_log_level(const struct config_reading *of, void *at, struct config_node node,
                               struct error *err)
{
    (void)of;
    return log_level_of(config_text(node), at)
               ? ERR_OK
               : config_error(node, err, "level is error, warn, info or debug");
}

static enum err read_log_format(const struct config_reading *of, void *at, struct config_node node,
                                struct error *err)
{
    (void)of;
    return log_format_of(config_text(node), at)
               ? ERR_OK
               : config_error(node, err, "format is logfmt or json");
}

static enum err read_log(const struct config_reading *of, void *at, struct config_node node,
                         struct error *err)
{
    static const struct config_key keys[] = {
        {"level", read_log_level, offsetof(struct serve_config, log_level)},
        {"format", read_log_format, offsetof(struct serve_config, log_format)},
    };
    const struct reading *reading = of->context;
    (void)at;
    if (config_kind(node) != CONFIG_MAP)
        return config_error(node, err, "log is a mapping, such as {level: info, format: json}");
    return CONFIG_READ_TABLE(of, node, keys, reading->serve, err);
}

static enum err read_every(const struct config_reading *of, void *at, struct config_node node,
                           struct error *err)
{
    struct reading *reading = of->context;
    (void)at;
    enum err code = config_as_duration(node, 0, &reading->serve->every_ms, err);
    if (!code && reading->serve->every_ms < EVERY_MIN_MS)
        return config_error(node, err, "every is 1s at the least");
    return code;
}

static enum err read_retain(const struct config_reading *of, void *at, struct config_node node,
                            struct error *err)
{
    struct reading *reading = of->context;
    (void)at;
    enum err code = config_as_duration(node, 1, &reading->serve->retain_ms, err);
    if (!code && reading->serve->retain_ms && reading->serve->retain_ms < DAY_MS)
        return config_error(node, err, "retain is 1d at the least, or 0 for ever");
    return code;
}

static enum err read_teams(const struct config_reading *of, void *at, struct config_node node,
                           struct error *err)
{
    struct reading *reading = of->context;
    (void)at;
    int64_t n;
    enum err code = config_as_int(node, 1, TEAMS_MAX, &n, err);
    if (!code)
        reading->serve->metric_teams = (size_t)n;
    return code;
}

/* "16GiB", "500MB", bytes. */
static enum err read_journal_cap(const struct config_reading *of, void *at, struct config_node node,
                                 struct error *err)
{
    struct reading *reading = of->context;
    (void)at;
    static const struct {
        const char *unit;
        uint64_t bytes;
    } units[] = {{"MB", 1000000},     {"GB", 1000000000},  {"TB", 1000000000000},
                 {"MiB", 1ull << 20}, {"GiB", 1ull << 30}, {"TiB", 1ull << 40}};
    struct str text = config_text(node);
    size_t digits = 0;
    long long number;
    while (digits < text.n && text.p[digits] >= '0' && text.p[digits] <= '9')
        digits++;
    struct str unit = {text.p + digits, text.n - digits};
    if (str_to_i64((struct str){text.p, digits}, &number) && number > 0 && number < 1000000)
        for (size_t i = 0; i < sizeof units / sizeof *units; i++)
            if (str_eq(unit, str_of(units[i].unit)) &&
                (uint64_t)number * units[i].bytes >= JOURNAL_CAP_MIN) {
                reading->serve->journal_cap_bytes = (uint64_t)number * units[i].bytes;
                return ERR_OK;
            }
    return config_error(node, err, "'%.*s' is no size: write it as 16GiB or 500MB, 256MiB at least",
                        STR_ARG(text));
}

#define SERVE_AT(field) offsetof(struct serve_config, field)
static const struct config_key serve_keys[] = {
    {"db", config_into_path, SERVE_AT(db)},
    {"journal", config_into_path, SERVE_AT(journal)},
    {"journal_cap", read_journal_cap, 0},
    {"listen", read_listen, SERVE_AT(listen)},
    {"hosts", read_hosts, 0},
    {"tls", read_tls, 0},
    {"limits", read_limits, 0},
    {"every", read_every, 0},
    {"history", config_into_duration, SERVE_AT(history_ms)},
    {"retain", read_retain, 0},
    {"metric_teams", read_teams, 0},
    {"log", read_log, 0},
};

/* ---- sources ---- */

static enum err read_headers(const struct config_reading *of, void *at, struct config_node node,
                             struct error *err)
{
    struct reading *reading = of->context;
    (void)at;
    struct prometheus_options *to = &reading->source->prometheus;
    if (config_kind(node) != CONFIG_MAP)
        return config_error(node, err, "headers is a mapping, such as {X-Scope-OrgID: team-a}");
    size_t n = config_count(node);
    const char **headers = arena_alloc(&reading->serve->arena, (n + 1) * sizeof *headers);
    for (size_t i = 0; i < n; i++) {
        struct config_node value, key = config_pair(node, i, &value);
        struct str text;
        struct strbuf line = {0};
        enum err code = config_as_text(value, &text, err);
        if (code)
            return code;
        strbuf_addf(&line, "%.*s: %.*s", STR_ARG(config_text(key)), STR_ARG(text));
        headers[i] = str_keep(&reading->serve->arena, strbuf_str(&line)).p;
        strbuf_release(&line);
    }
    to->headers = headers;
    to->headers_n = n;
    return ERR_OK;
}

static enum err read_api(const struct config_reading *of, void *at, struct config_node node,
                         struct error *err)
{
    struct reading *reading = of->context;
    (void)at;
    static const char *const words[] = {"auto", "remote-read", "query"};
    static const enum prometheus_api ways[] = {PROMETHEUS_AUTO, PROMETHEUS_REMOTE_READ,
                                               PROMETHEUS_QUERY};
    for (size_t i = 0; i < 3; i++)
        if (str_eq(config_text(node), str_of(words[i]))) {
            reading->source->prometheus.api = ways[i];
            return ERR_OK;
        }
    return config_error(node, err, "api is auto, remote-read or query");
}

static enum err read_files(const struct config_reading *of, void *at, struct config_node node,
                           struct error *err)
{
    struct reading *reading = of->context;
    (void)at;
    return read_texts(of, node, config_into_path, &reading->source->files,
                      &reading->source->files_n, err);
}

static enum err read_targets(const struct config_reading *of, void *at, struct config_node node,
                             struct error *err)
{
    struct reading *reading = of->context;
    (void)at;
    return read_texts(of, node, config_into_text, &reading->source->targets,
                      &reading->source->targets_n, err);
}

static enum err read_labels(const struct config_reading *of, void *at, struct config_node node,
                            struct error *err)
{
    struct reading *reading = of->context;
    (void)at;
    struct arena *arena = &reading->serve->arena;
    if (config_kind(node) != CONFIG_MAP)
        return config_error(node, err, "labels is a mapping, such as {node: gpu-1}");
    size_t n = config_count(node);
    struct label *labels = arena_alloc(arena, (n + 1) * sizeof *labels);
    for (size_t i = 0; i < n; i++) {
        struct config_node value, key = config_pair(node, i, &value);
        struct str text;
        enum err code = config_as_text(value, &text, err);
        if (code)
            return code;
        labels[i] = (struct label){str_keep(arena, config_text(key)), str_keep(arena, text)};
    }
    reading->source->labels = labels;
    reading->source->labels_n = n;
    return ERR_OK;
}

static enum err read_exporters(const struct config_reading *of, void *at, struct config_node node,
                               struct error *err)
{
    struct reading *reading = of->context;
    (void)at;
    if (!str_eq(config_text(node), STR("kubernetes")))
        return config_error(node, err, "exporters is kubernetes, or left out");
    reading->source->from_kube = true;
    return ERR_OK;
}

static enum err read_drop(const struct config_reading *of, void *at, struct config_node node,
                          struct error *err)
{
    struct reading *reading = of->context;
    (void)at;
    const char **texts;
    size_t n;
    enum err code = read_texts(of, node, config_into_text, &texts, &n, err);
    if (code)
        return code;
    struct str *drop = arena_alloc(&reading->serve->arena, (n + 1) * sizeof *drop);
    for (size_t i = 0; i < n; i++)
        drop[i] = str_of(texts[i]);
    reading->source->drop = drop;
    reading->source->drop_n = n;
    return ERR_OK;
}

/* A name that may be empty: the book without a name. */
static enum err read_book(const struct config_reading *of, void *at, struct config_node node,
                          struct error *err)
{
    struct reading *reading = of->context;
    (void)at;
    struct str text;
    enum err code = config_as_text(node, &text, err);
    if (!code)
        reading->source->book = str_keep(&reading->serve->arena, text).p;
    return code;
}

/* On the command line a bare HOST:PORT is taken for http; what stands in a file for years says it.
 */
static enum err read_url(const struct config_reading *of, void *at, struct config_node node,
                         struct error *err)
{
    enum err code = config_into_text(of, at, node, err);
    if (!code && !http_url_has_scheme(*(const char **)at))
        return config_error(node, err, HTTP_SCHEME_NEEDED);
    return code;
}

#define SOURCE_AT(field) offsetof(struct source_config, field)
/* The kind is read before the other keys, which depend on it. */
#define SOURCE_KEYS                                                                                \
    {"kind", NULL, 0}, {"cluster", config_into_text, SOURCE_AT(cluster)},                          \
    {                                                                                              \
        "book", read_book, 0                                                                       \
    }
#define LOGIN_KEYS                                                                                 \
    {"bearer_token_file", config_into_path, SOURCE_AT(prometheus.bearer_token_file)},              \
        {"user", config_into_text, SOURCE_AT(prometheus.user)},                                    \
        {"password_file", config_into_path, SOURCE_AT(prometheus.password_file)},                  \
        {"client_cert", config_into_path, SOURCE_AT(prometheus.client_cert)},                      \
        {"client_key", config_into_path, SOURCE_AT(prometheus.client_key)},                        \
        {"ca_file", config_into_path, SOURCE_AT(prometheus.ca_file)},                              \
        {"insecure", config_into_bool, SOURCE_AT(prometheus.insecure)},                            \
        {"headers", read_headers, 0},                                                              \
    {                                                                                              \
        "proxy", config_into_text, SOURCE_AT(prometheus.proxy)                                     \
    }
static const struct config_key prometheus_keys[] = {
    SOURCE_KEYS,
    LOGIN_KEYS,
    {"url", read_url, SOURCE_AT(prometheus.url)},
    {"matcher", config_into_text, SOURCE_AT(prometheus.matcher)},
    {"api", read_api, 0},
};
static const struct config_key kube_json_keys[] = {
    SOURCE_KEYS,
    {"files", read_files, 0},
};

static const struct config_key scrape_keys[] = {
    SOURCE_KEYS,
    LOGIN_KEYS,
    {"targets", read_targets, 0},
    {"files", read_files, 0},
    {"exporters", read_exporters, 0},
    {"labels", read_labels, 0},
    {"job", config_into_text, SOURCE_AT(job)},
    {"scheme", config_into_text, SOURCE_AT(scheme)},
    {"path", config_into_text, SOURCE_AT(path)},
    {"interval", config_into_duration, SOURCE_AT(interval_ms)},
    {"timeout", config_into_duration, SOURCE_AT(timeout_ms)},
};
static const struct config_key remote_write_keys[] = {
    SOURCE_KEYS,
    {"tenant", config_into_text, SOURCE_AT(tenant)},
    {"replica_labels", read_drop, 0},
};
static const struct config_key kubernetes_keys[] = {
    SOURCE_KEYS,
    {"kubeconfig", config_into_path, SOURCE_AT(login.kubeconfig)},
    {"context", config_into_text, SOURCE_AT(login.context)},
    {"allow_exec", config_into_bool, SOURCE_AT(login.allow_exec)},
};

#define KIND(table, key)                                                                           \
    {                                                                                              \
        table, sizeof table / sizeof *table, key                                                   \
    }
static const struct kind_keys {
    const struct config_key *keys;
    size_t n;
    const char *needs; /* a key that must be there; NULL: none */
} kinds[SOURCE_KINDS] = {
    [SOURCE_KIND_PROMETHEUS] = KIND(prometheus_keys, "url"),
    [SOURCE_KIND_KUBE_JSON] = KIND(kube_json_keys, "files"),
    [SOURCE_KIND_SCRAPE] = KIND(scrape_keys, NULL),
    [SOURCE_KIND_REMOTE_WRITE] = KIND(remote_write_keys, NULL),
    [SOURCE_KIND_KUBERNETES] = KIND(kubernetes_keys, NULL),
};

static enum err kind_of(struct config_node entry, enum source_kind *ret, struct error *err)
{
    struct config_node node = config_get(entry, STR("kind"));
    struct str word = config_text(node);
    *ret = SOURCE_KIND_PROMETHEUS;
    if (config_kind(node) == CONFIG_NOTHING)
        return ERR_OK;
    for (int i = 0; i < SOURCE_KINDS; i++)
        if (str_eq(word, str_of(source_kind_words[i]))) {
            *ret = (enum source_kind)i;
            return ERR_OK;
        }
    struct strbuf known = {0};
    for (int i = 0; i < SOURCE_KINDS; i++)
        strbuf_addf(&known, "%s%s", i ? ", " : "", source_kind_words[i]);
    enum err code =
        config_error(node, err, "unknown kind '%.*s': it is one of %s", STR_ARG(word), known.text);
    strbuf_release(&known);
    return code;
}

static enum err read_source(const struct config_reading *of, void *at, struct config_node entry,
                            struct error *err)
{
    struct reading *reading = of->context;
    (void)at;
    struct source_config source = {.cluster = "", .tenant = "", .at = entry};
    reading->source = &source;
    if (config_kind(entry) != CONFIG_MAP)
        return config_error(entry, err,
                            "a source is a mapping, such as {url: http://prometheus:9090}");
    enum err code = kind_of(entry, &source.kind, err);
    if (code)
        return code;
    const struct kind_keys *kind = &kinds[source.kind];
    prometheus_options_defaults(&source.prometheus);
    code = config_read_table(of, entry, kind->keys, kind->n, &source, err);
    if (code)
        return code;
    if (source.kind == SOURCE_KIND_SCRAPE && !source.targets_n && !source.files_n &&
        !source.from_kube)
        return config_error(
            entry, err, "a source of kind scrape needs targets, files, or exporters: kubernetes");
    if (kind->needs && config_kind(config_get(entry, str_of(kind->needs))) == CONFIG_NOTHING)
        return config_error(entry, err, "a source of kind %s needs %s",
                            source_kind_words[source.kind], kind->needs);
    if (!source.book)
        source.book = source.cluster;
    mem_push(reading->serve->sources, reading->serve->sources_n, reading->serve->sources_room,
             source);
    return ERR_OK;
}

enum err serve_config_read(struct config *config, struct serve_config *ret, struct error *err)
{
    *ret = (struct serve_config){.listen = SERVE_LISTEN,
                                 .every_ms = SERVE_EVERY_MS,
                                 .history_ms = SERVE_HISTORY_MS,
                                 .log_level = LOG_INFO};
    http_limits_defaults(&ret->limits);
    struct reading reading = {.serve = ret};
    struct config_reading of = {.arena = &ret->arena, .context = &reading};
    struct config_node serve = config->sections[CONFIG_SERVE_SECTION];
    struct config_node sources = config->sections[CONFIG_SOURCES_SECTION];
    if (config_kind(serve) != CONFIG_NOTHING && config_kind(serve) != CONFIG_MAP)
        return config_error(serve, err, "serve is a mapping, such as {listen: 127.0.0.1:9475}");
    enum err code = CONFIG_READ_TABLE(&of, serve, serve_keys, ret, err);
    if (!code && config_kind(sources) != CONFIG_NOTHING && config_kind(sources) != CONFIG_LIST)
        return config_error(sources, err, "sources is a list: put a - before each of them");
    if (!code && config_count(sources) > SERVE_SOURCES_MAX)
        return config_error(sources, err, "more than %d sources", SERVE_SOURCES_MAX);
    for (size_t i = 0; i < config_count(sources) && !code; i++)
        code = read_source(&of, NULL, config_item(sources, i), err);
    return code ? code : alert_config_read(config, &ret->alerts, err);
}

void serve_config_release(struct serve_config *serve)
{
    free(serve->sources);
    alert_config_release(&serve->alerts);
    arena_release(&serve->arena);
    *serve = (struct serve_config){0};
}

void serve_config_add(struct serve_config *serve, const struct source_config *source)
{
    mem_push(serve->sources, serve->sources_n, serve->sources_room, *source);
}

/* One receiver for a tenant, one Kubernetes API for a cluster. */
static enum err check_pairs(const struct serve_config *serve, struct error *err)
{
    for (size_t i = 0; i < serve->sources_n; i++)
        for (size_t k = 0; k < i; k++) {
            const struct source_config *a = &serve->sources[k], *b = &serve->sources[i];
            if (a->kind != b->kind)
                continue;
            if (a->kind == SOURCE_KIND_REMOTE_WRITE && strcmp(a->tenant, b->tenant) == 0)
                return config_error(b->at, err,
                                    "another receiver takes these samples: give each the name of "
                                    "a token as tenant");
            if (strcmp(a->book, b->book) != 0)
                continue;
            if (a->kind == SOURCE_KIND_KUBERNETES || a->kind == SOURCE_KIND_REMOTE_WRITE)
                return config_error(b->at, err, "a second source of kind %s for this cluster",
                                    source_kind_words[b->kind]);
            if (strcmp(a->cluster, b->cluster) != 0)
                return config_error(b->at, err, "clusters '%s' and '%s' in one book", a->cluster,
                                    b->cluster);
        }
    return ERR_OK;
}

enum err serve_config_finish(struct serve_config *serve, struct error *err)
{
    if (!serve->db)
        return error_set(err, ERR_CONFIG,
                         "no database is named: give --db FILE, or serve: {db: FILE} in the "
                         "configuration");
    if (!http_listen_is_address(serve->listen))
        return error_set(err, ERR_CONFIG, "'%.100s' is no address to listen at: " LISTEN_FORM,
                         serve->listen);
    if (!serve->journal) {
        struct strbuf path = {0};
        strbuf_addf(&path, "%s.journal", serve->db);
        serve->journal = str_keep(&serve->arena, strbuf_str(&path)).p;
        strbuf_release(&path);
    }
    enum err code = check_pairs(serve, err);
    if (code)
        return code;
    size_t books = 0;
    for (size_t i = 0; i < serve->sources_n; i++) {
        bool seen = false;
        for (size_t k = 0; k < i && !seen; k++)
            seen = strcmp(serve->sources[k].book, serve->sources[i].book) == 0;
        books += !seen;
    }
    if (books > SERVE_BOOKS_MAX)
        return error_set(err, ERR_CONFIG, "more than %d clusters", SERVE_BOOKS_MAX);
    return ERR_OK;
}
