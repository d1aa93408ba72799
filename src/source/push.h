/* The remote-write receiver, without HTTP: what POST /api/v1/write asks, and what it is answered.
 *
 * A sender keeps what was answered 5xx or 429 and sends it again, and drops what was answered 4xx.
 * So:
 *
 *     204  every wanted sample is in the journal, synced
 *     400  the bytes are no WriteRequest (nothing is kept), or some samples can never be kept (bad
 *          labels, too old, in the future: the rest is kept); the text says which
 *     404  no such tenant          413  too large           415  not snappy, not 1.0
 *     429  too many requests at once                        503  disk, or shutting down
 *
 * Samples may come twice, late and in any order (HA pairs, retries, several shards). Series whose
 * metric nobody wants are counted, not kept; exemplars, histograms and metadata are counted.
 *
 * Any thread may call push_write(); it blocks until the journal has synced. */
#ifndef GPUTALLY_SOURCE_PUSH_H
#define GPUTALLY_SOURCE_PUSH_H

#include "source/journal.h"

#define PUSH_BODY_MAX ((size_t)32 << 20) /* compressed; senders send well under 1 MiB */
#define PUSH_DECODED_MAX ((size_t)128 << 20)
#define PUSH_AT_ONCE 16 /* requests in hand; more are 429 */
#define PUSH_OLDEST_MS (14 * DAY_MS)
#define PUSH_FUTURE_MS ((time_ms)15 * 60 * 1000)

/* Where the samples of a tenant go. */
struct push_route {
    struct str tenant; /* the name that the access layer gives; "" the default */
    struct journal *journal;
    const struct label *labels; /* added to series that have no such label: cluster */
    size_t labels_n;
    const struct str *drop; /* names of labels that only tell replicas apart; NULL:
                               prometheus_replica, __replica__, replica, prometheus */
    size_t drop_n;
};
struct push_options {
    const struct push_route *routes; /* copied; the journals outlive the push */
    size_t routes_n;
    size_t body_max, decoded_max; /* 0: as above */
    int at_once;
    time_ms oldest_ms, future_ms;
    time_ms (*now)(void *context); /* NULL: clock_now */
    void *context;
};

struct push;
struct push *push_new(const struct push_options *options);
void push_free(struct push *push); /* no call may be in hand; NULL is fine */

struct push_request {
    struct str tenant;
    struct str content_encoding, content_type, version; /* headers as sent, "" where absent */
    struct str body;
};
struct push_answer {
    int status;
    int retry_after_s; /* for 429 and 503; 0: no such header */
    char text[512];    /* for the body; "" with 204 */
};
void push_write(struct push *push, const struct push_request *request, struct push_answer *ret);

/* From now on 503. push_write()s in hand end as they would. */
void push_stop(struct push *push);

struct push_stats {
    uint64_t requests, answers_2xx, answers_4xx, answers_5xx, answers_429;
    uint64_t bytes, series, samples; /* compressed bytes; stored samples */
    uint64_t ignored_samples;        /* of metrics that nobody wants */
    uint64_t too_old, in_future, bad_series, histograms, exemplars;
    time_ms last_ok; /* 0: never */
};
void push_stats(struct push *push, struct push_stats *ret);

#endif
