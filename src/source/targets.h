/* What is scraped: jobs, and the targets of each, from a static list, from files as Prometheus's
 * file_sd_configs reads them (JSON or YAML, read again when they change), and from whoever
 * discovers them (Kubernetes).
 *
 * A file that cannot be read or is no list of targets leaves what it said before in force and is
 * told in the stats: a typo must not make a fleet unobserved.
 *
 * Any thread may call anything; targets_list() gives an immutable, counted list. */
#ifndef GPUTALLY_SOURCE_TARGETS_H
#define GPUTALLY_SOURCE_TARGETS_H

#include "source/http_site.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/str.h"

#define TARGETS_MAX (1u << 16)
#define TARGETS_LABELS_MAX 64
#define TARGETS_REFRESH_MS ((time_ms)5000) /* files are looked at this often */
#define SCRAPE_INTERVAL_MS ((time_ms)15000)
#define SCRAPE_TIMEOUT_MS ((time_ms)10000)
#define SCRAPE_BODY_MAX ((size_t)32 << 20) /* unpacked */

/* A job; texts are copied. */
struct scrape_job {
    const char *name;                  /* label job */
    const char *scheme, *path;         /* NULL: "http", "/metrics" */
    time_ms interval_ms, timeout_ms;   /* 0: as above; a timeout is at most the interval */
    size_t body_max;                   /* 0: as above */
    struct http_site_options site;     /* login, certificates, headers, proxy; its url is ignored */
    const char *const *static_targets; /* "host:port" */
    size_t static_targets_n;
    const struct label *static_labels;
    size_t static_labels_n;
    const char *const *files; /* paths; the last part may be a pattern (dcgm-*.json) */
    size_t files_n;
};

/* One target, as a discoverer gives it; texts are copied. The labels `__scheme__` and
 * `__metrics_path__` override the job's, others that begin with __ are dropped. */
struct target_found {
    struct str address; /* host:port */
    /* node, cluster and the like, and what the exporter's own pod is: `pod`, `namespace` and
     * `container` go to the series `up` only, since the ledger tells by it that a pod label names
     * the exporter (semantics, section 4); the others are added to series without such a label. */
    const struct label *labels;
    size_t labels_n;
};

struct targets;
/* ERR_CONFIG, ERR_USAGE: a job that cannot be; ERR_IO: a secret or certificate that cannot be read.
 */
enum err targets_new(const struct scrape_job *jobs, size_t n, struct targets **ret,
                     struct error *err);
void targets_free(struct targets *targets); /* lists live on; NULL is fine */

/* What `provider` ("kubernetes") found for a job, all of it: replaces what it said before. The same
 * address from two providers is one target. ERR_NOT_FOUND: no such job; ERR_LIMIT: over TARGETS_MAX
 * (what fits is taken). */
enum err targets_set(struct targets *targets, const char *job, const char *provider,
                     const struct target_found *found, size_t n, struct error *err);
/* Look at the files, where TARGETS_REFRESH_MS have passed (a file is at most CONFIG_FILE_MAX
 * bytes); the scraper does. */
void targets_refresh(struct targets *targets);

struct target_job {
    char *name;
    time_ms interval_ms, timeout_ms;
    size_t body_max;
    struct http_site *site;
};
struct target {
    const struct target_job *job;
    char *url;            /* scheme://host:port/path */
    char *instance;       /* label instance: host:port unless the labels have one */
    struct label *labels; /* job and instance among them; sorted by name */
    size_t labels_n;
    struct label *own; /* pod, namespace, container of the exporter */
    size_t own_n;
    uint64_t id; /* of url and all labels: the same target in the next list has the same */
};
struct target_list {
    const struct target *targets; /* by id */
    size_t n;
    uint64_t version; /* another one where anything changed */
};
const struct target_list *targets_list(struct targets *targets);
void target_list_release(const struct target_list *list);

struct targets_stats {
    uint64_t targets, files, bad_files;
    char bad[ERROR_TEXT_MAX]; /* the last bad file, and why; "" none */
};
void targets_stats(struct targets *targets, struct targets_stats *ret);

#endif
