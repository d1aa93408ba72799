/* What `gputally serve` is told: the sections serve and sources of the configuration, and the
 * options of the command line over them (docs/serve.md, docs/configuration.md).
 *
 * Reading checks everything that can be checked without opening a connection, and says what is
 * wrong with file, line and column. Texts live in the configuration or in `arena`. */
#ifndef GPUTALLY_SERVE_SERVE_CONFIG_H
#define GPUTALLY_SERVE_SERVE_CONFIG_H

#include "fleet/config.h"
#include "serve/alert.h"
#include "serve/http.h"
#include "serve/log.h"
#include "source/kube_access.h"
#include "source/prometheus.h"

#define SERVE_LISTEN "127.0.0.1:9475"
#define SERVE_EVERY_MS ((time_ms)60 * 1000)
#define SERVE_HISTORY_MS (7 * DAY_MS)
#define SERVE_BOOKS_MAX 64
#define SERVE_SOURCES_MAX 256

/* X(ID, "kind"): what may stand under `kind:` of a source */
#define SOURCE_KIND_TABLE(X)                                                                       \
    X(PROMETHEUS, "prometheus")                                                                    \
    X(KUBE_JSON, "kube-json")                                                                      \
    X(SCRAPE, "scrape")                                                                            \
    X(REMOTE_WRITE, "remote-write")                                                                \
    X(KUBERNETES, "kubernetes")
enum source_kind {
#define X(id, word) SOURCE_KIND_##id,
    SOURCE_KIND_TABLE(X)
#undef X
        SOURCE_KINDS
};
extern const char *const source_kind_words[SOURCE_KINDS];

/* An entry of `sources:`. */
struct source_config {
    enum source_kind kind;
    const char *cluster;                  /* "" none: labels say it */
    const char *book;                     /* of the store; unless given the cluster's name */
    struct config_node at;                /* for errors; nothing: the command line */
    struct prometheus_options prometheus; /* of scrapes: how to log in */
    const char **files;                   /* kube-json; scrape: in the form of file_sd */
    size_t files_n;
    const char **targets; /* scrape: "host:port" */
    size_t targets_n;
    const char *job, *scheme, *path;
    time_ms interval_ms, timeout_ms; /* 0: the scraper's */
    struct label *labels;            /* of the targets */
    size_t labels_n;
    bool from_kube;     /* scrape: the exporter pods that the cluster's `kubernetes` finds too */
    const char *tenant; /* remote-write: the token's name; "" every token */
    struct str *drop;   /* labels that tell replicas apart; NULL: the usual ones */
    size_t drop_n;
    struct kube_access_options login; /* kubernetes */
};

struct serve_config {
    const char *db;      /* NULL: not given */
    const char *journal; /* folder of what has no history elsewhere; NULL: beside the database */
    uint64_t journal_cap_bytes; /* of each cluster; 0: the journal's */
    const char *listen;
    const char **hosts;
    size_t hosts_n;
    const char *tls_cert, *tls_key, *tls_client_ca; /* NULL: none */
    struct config_node tls_at;                      /* for errors */
    struct http_limits limits;
    time_ms every_ms;   /* between two rounds of a book */
    time_ms history_ms; /* how far back the first round reaches */
    time_ms retain_ms;  /* 0: for ever */
    size_t metric_teams;
    enum log_level log_level;
    enum log_format log_format;
    struct source_config *sources;
    size_t sources_n, sources_room;
    struct alert_config alerts;
    struct arena arena;
};

/* Defaults, and then what the configuration has. ret is to be released also after an error. */
enum err serve_config_read(struct config *config, struct serve_config *ret, struct error *err);
void serve_config_release(struct serve_config *serve);
/* A source that the command line names. Keeps the struct, not its texts. */
void serve_config_add(struct serve_config *serve, const struct source_config *source);
/* What does not depend on one section alone: a database, the journal's place beside it, books that
 * fit together. */
enum err serve_config_finish(struct serve_config *serve, struct error *err);

#endif
