/* The endpoints over a ledger: /api/v1/…, /allocation, /metrics, /healthz, /readyz (docs/api.md).
 *
 *     api_new -> api_routes (into a server) -> api_configure, api_touch while it runs -> api_free
 *                                                                      (after http_server_stop)
 *
 * Every worker of the server has its own read-only handle of the database, so that an answer is of
 * one state of it. Finished answers are kept under (generation of the ledger, what was asked, view)
 * in a cache with a cap.
 *
 * What the service knows beside the ledger (GPUs now, its own health) comes by `live` and the
 * callbacks; each may be NULL: then the ledger's last hour, or nothing, stands for it. Callbacks
 * are made on any thread of the server and must be quick. */
#ifndef GPUTALLY_SERVE_API_H
#define GPUTALLY_SERVE_API_H

#include "fleet/config.h"
#include "serve/http.h"
#include "serve/live_claims.h"
#include "util/money.h"

/* ---- what the service knows ---- */

struct health_check {
    char name[64]; /* "database", "source prometheus http://…" */
    bool ok;
    char why[256]; /* where not ok: what is the matter and what to do */
};

/* A source and how it does. */
struct source_stat {
    char name[128], cluster[64],
        kind[32]; /* kind: "prometheus", "scrape", "remote_write", "kube" */
    bool up;
    time_ms watermark;                  /* booked up to; TIME_MIN: nothing yet */
    int64_t samples_total, bytes_total; /* taken */
    int64_t rejected_total;             /* samples that were refused */
    int64_t failures_total;             /* tries that failed */
    int64_t queue_depth;                /* -1: has no queue */
};
/* Another figure of the service: a gauge or (name ends in _total) a counter, with at most one
 * label. Names begin with "gputally_"; name, help and label are static. */
struct service_figure {
    const char *name, *help, *label; /* label: "reason"; NULL none */
    char label_value[64];
    double value;
};
#define SOURCE_STATS_MAX 256
#define SERVICE_FIGURES_MAX 128
struct service_stats {
    size_t sources_n, figures_n;
    struct source_stat sources[SOURCE_STATS_MAX];
    struct service_figure figures[SERVICE_FIGURES_MAX]; /* alike names stand together */
};

/* ---- the API ---- */

/* Borrowed until api_configure has replaced it or api_free was called. */
struct api_settings {
    const struct config *config;
    const char *title;     /* what a report is called where no cluster has a name; NULL: none */
    const char *tz;        /* NULL: UTC */
    const char *currency;  /* "USD" */
    bool has_sources;      /* it collects: list prices are said to be list prices */
    bool settings_changed; /* hours were booked with other settings */
    size_t metric_teams;   /* teams that /metrics tells apart; 0: 50. The rest is "other" */
};

struct live;
struct api_options {
    const char *db;
    struct api_settings settings;
    size_t cache_bytes; /* 0: 64 MiB */
    void *context;      /* of what follows */
    /* GPUs now, as the newest samples say; NULL: from the last hour of the ledger. */
    struct live *live;
    void (*look)(
        void *context); /* somebody looks at live: fetch what is newer; may wait a little */
    /* Which pods claims have put on GPUs now: adds them. NULL: none. */
    void (*placed)(void *context, struct live_claims *ret);
    /* Fill at most room checks; returns how many. NULL: the database is the only one. */
    size_t (*checks)(void *context, struct health_check *ret, size_t room);
    void (*stats)(void *context, struct service_stats *ret);
};

struct api;
/* Opens the database once, to see that it can be read. ERR_NOT_FOUND, ERR_STORE. A database that is
 * not there yet or cannot be read is fine where missing_ok: endpoints answer 503 until it can be.
 */
enum err api_new(const struct api_options *options, bool missing_ok, struct api **ret,
                 struct error *err);
void api_free(struct api *api); /* NULL is fine */

/* Adds all routes; fills worker_new, worker_free, on_request and context of the options of the
 * server: call it between filling them and http_server_new, then api_routes after. on_request of
 * before is called too. api_count_routes comes once other routes are there as well, before the
 * server starts. Another server may be made so while one runs. */
void api_prepare(struct api *api, struct http_options *options);
void api_routes(struct api *api, struct http_server *server);
void api_count_routes(struct api *api, const struct http_server *server);

/* Other settings from now on; returns when nobody uses the old ones any more. */
void api_configure(struct api *api, const struct api_settings *settings);
/* From here on what the page asks first is answered before it asks, on a thread of its own: now,
 * and when the ledger or the hour has changed. Once; after signals are blocked. Where no thread is
 * to be had nothing happens. The stop comes before what the callbacks stand on goes; api_free does
 * it too. */
void api_ahead_start(struct api *api);
void api_ahead_stop(struct api *api);
/* The ledger has changed (after a commit). Changes that other processes make are seen without. */
void api_touch(struct api *api);

/* ---- the page (assets.c) ---- */

/* "/" and "/assets/" + name, from report/page.h; in a build without the page they answer 404. */
void assets_routes(struct api *api, struct http_server *server);
/* api_page.c: the page with its first answers inside. False: there is none for this state of the
 * ledger, or who asks may not see all of it. */
bool api_page_give(struct api *api, const struct http_request *request, struct http_answer *answer);

#endif
