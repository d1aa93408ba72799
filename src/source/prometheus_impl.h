/* What the files of the Prometheus source share: the source, and a thread's means of asking. Seen
 * by src/source/prometheus*.c only.
 *
 *     prometheus.c         options, life, which way to read
 *     prometheus_survey.c  what the server has
 *     prometheus_fetch.c   what a fetch asks for, in which order
 *     prometheus_run.c     threads that work off a plan of it
 *     prometheus_read.c    a piece by remote read
 *     prometheus_examine.c what doctor asks it
 *     prometheus_loads.c   sums of what hosts and containers do
 *     prometheus_live.c    the newest samples, while somebody looks
 *     prometheus_query.c   a piece by a range selector; instant queries; lists of names */
#ifndef GPUTALLY_SOURCE_PROMETHEUS_IMPL_H
#define GPUTALLY_SOURCE_PROMETHEUS_IMPL_H

#include <pthread.h>

#include "fleet/signals.h"
#include "source/delivery.h"
#include "source/http.h"
#include "source/plan.h"
#include "source/prometheus.h"
#include "source/selector.h"

struct prometheus {
    struct source source;
    struct http_site *site;
    char *matcher; /* more of each selector; "" where there is none */
    struct arena arena;
    struct selector common; /* the same, taken apart */
    enum prometheus_api api;
    int in_flight;
    /* By place in wanted_metrics(); NULL before a survey: all are asked for. */
    bool *present;
    /* Over all fetches: who was heard of when; how many series each wanted metric had. */
    struct seen *observers, *exporters; /* instances of kube-state-metrics, and with GPUs */
    /* Where the cluster is large: values of the labels namespace and exported_namespace that GPU
     * requests and GPU metrics have; and the latter of the requests alone, where any. */
    bool narrow;
    uint64_t narrow_from; /* pods */
    struct seen *namespaces, *exported_namespaces, *renamed_requests;
    struct seen *gpu_nodes;     /* that have GPUs by their capacity, … */
    struct seen *renamed_nodes; /* … where kube-state-metrics' own label stands in front */
    struct seen *clusters;      /* of observations and GPUs */
    bool loads_refused;         /* it answers no range queries */
    uint64_t *series;
    bool fetched;  /* a fetch went well: seen knows who was there before the next one */
    bool has_gpus; /* of metrics: some are present, or it is not known */
};

/* A fetch that is under way. */
struct prometheus_run {
    struct prometheus *prometheus;
    struct intake *intake;
    struct progress *progress;
    struct plan *plan;
    struct tally tally;
    bool loads;          /* the lanes are of prometheus_loads.c */
    bool nodes_recorded; /* Kubernetes' records tell of nodes; else GPU samples do */
    enum signal fullest; /* the GPU signal that most series have */
    pthread_mutex_t lock;
    pthread_cond_t home;
    int running, timeouts;
    enum err code; /* the first failure */
    struct error err;
};
/* Lanes of loads: what a piece of them is called, asks and delivers. */
struct prometheus_load;
const struct prometheus_load *prometheus_load_of(const struct piece *piece);
struct str prometheus_load_query(const struct prometheus_load *load);
bool prometheus_load_series(const struct prometheus_load *load, struct delivery *delivery,
                            const struct label *labels, size_t n);
/* Read loads of hosts in the range, and of containers that match. Failures of the server are noted
 * and are none of the run; ERR_STOPPED. */
enum err prometheus_read_loads(struct prometheus_run *run, struct span range,
                               const char *match_of_pods);

/* Read all lanes; failures go to run->code. */
void prometheus_run_lanes(struct prometheus_run *run, const struct plan_lane *lanes, size_t n);
/* Called before a piece of the metric is read: who is to be told of its series. */
void prometheus_watch(const struct prometheus_run *run, const struct wanted_metric *metric,
                      struct delivery *delivery);

/* One thread's means of asking. */
struct asker {
    const struct prometheus *prometheus;
    struct http_client *client;
    struct delivery *delivery; /* NULL in a survey */
    struct intake *intake;     /* NULL in a survey */
    struct tally *tally;
    bool too_large; /* the last piece failed because of its size */
};

/* Read a piece into the asker's delivery. Errors as those of http_ask; too_large says whether a
 * shorter piece may do. */
enum err prometheus_read_piece(struct asker *asker, const struct piece *piece, struct error *err);
enum err prometheus_query_piece(struct asker *asker, const struct piece *piece, struct error *err);
enum err prometheus_load_piece(struct asker *asker, const struct piece *piece, struct error *err);

/* An instant query at t (TIME_MIN: the server's now); each series of the answer's vector comes with
 * its value. */
typedef void (*prometheus_value_fn)(void *context, const struct label *labels, size_t n, double v);
enum err prometheus_instant(struct asker *asker, struct str query, time_ms t,
                            prometheus_value_fn each, void *context, struct error *err);
/* A range selector up to the server's now; series and samples go to the sink as they come. */
struct query_json_sink;
enum err prometheus_selector(struct asker *asker, struct str query,
                             const struct query_json_sink *sink, struct error *err);
/* The metrics' names that the server has in [from, to]; TIME_MIN: at any time. */
typedef void (*prometheus_name_fn)(void *context, struct str name);
enum err prometheus_names(struct asker *asker, time_ms from, time_ms to, prometheus_name_fn each,
                          void *context, struct error *err);

/* Is it an answer that a program gives? A web page is ERR_PROTOCOL. */
enum err prometheus_check_type(const struct prometheus *prometheus,
                               const struct http_answer *answer, struct error *err);

/* Which way the server can be read: asks once, keeps the answer in prometheus->api. */
enum err prometheus_choose_api(struct prometheus *prometheus, struct asker *asker, time_ms now,
                               struct error *err);

enum err prometheus_survey(struct source *source, struct span window, struct span *ret_extent,
                           double *ret_samples_an_hour, struct progress *progress,
                           struct error *err);
enum err prometheus_examine(struct source *source, time_ms at, struct exam *exam,
                            struct progress *progress, struct error *err);
enum err prometheus_fetch(struct source *source, const struct fetch *fetch, struct intake *intake,
                          struct progress *progress, struct error *err);

#endif
