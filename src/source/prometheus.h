/* A Prometheus-compatible server as a source: Prometheus itself, Thanos, Mimir, VictoriaMetrics,
 * managed services.
 *
 * What it asks, in order of trial: remote read (POST URL/api/v1/read) with streamed XOR chunks, or
 * with samples where the server answers so; where the server has no remote read, range selectors in
 * instant queries (URL/api/v1/query?query=metric{…}[1h]&time=T). Both give raw samples with their
 * own stamps. It never asks query_range, which invents stamps. Requests are split by metric and
 * time so that no answer is unbounded, and halved where a server says that one is too large.
 *
 * Secrets (tokens, passwords, user:password@ in the URL) never reach an id, an error or a note. */
#ifndef GPUTALLY_SOURCE_PROMETHEUS_H
#define GPUTALLY_SOURCE_PROMETHEUS_H

#include "source/source.h"

enum prometheus_api { /* how to read: tests and users with a broken server choose */
                      PROMETHEUS_AUTO,
                      PROMETHEUS_REMOTE_READ, /* streamed chunks, or samples if the server answers
                                                 so */
                      PROMETHEUS_REMOTE_READ_SAMPLES, /* only samples are asked for */
                      PROMETHEUS_QUERY,
};

/* Texts are copied by prometheus_source_new. NULL: not given. */
struct prometheus_options {
    const char *url;               /* http(s)://[user:password@]host[:port][/prefix] */
    const char *bearer_token_file; /* read anew for each try: tokens rotate */
    const char *user;              /* basic auth */
    const char *password_file;     /* read anew for each try */
    const char *client_cert, *client_key, *ca_file; /* PEM files */
    bool insecure;                                  /* do not verify the server's certificate */
    const char *const *headers;                     /* "X-Scope-OrgID: team-a" */
    size_t headers_n;
    const char *proxy;   /* URL; NULL: as the environment says (http_proxy, …) */
    const char *matcher; /* more of a PromQL selector: cluster="prod",job=~"dcgm.*" */
    enum prometheus_api api;
    time_ms connect_timeout_ms; /* 10 s */
    time_ms idle_timeout_ms;    /* an answer that stands still for so long is cut: 120 s */
    int retries;                /* of one request: 5 */
    time_ms backoff_ms;         /* before the first retry, doubled for each next one: 500 ms */
    int in_flight;              /* requests at once: 4 */
    uint64_t narrow_from; /* pods from which on only those are read that share a namespace with
                             GPUs: 2000 */
};
void prometheus_options_defaults(struct prometheus_options *ret);

/* Checks the options and reads the secret files once (ERR_USAGE, ERR_IO); does not connect: survey
 * does. The source owns copies of everything. */
enum err prometheus_source_new(const struct prometheus_options *options, struct source **ret,
                               struct error *err);

#endif
