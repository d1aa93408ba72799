/* The JSON answers of Prometheus's HTTP API, read in pieces of any size:
 *
 *   query, query_range    data: {resultType, result}: vector, matrix, scalar
 *   series                data: list of label objects
 *   labels, label values  data: list of strings
 *
 * with status, error, errorType, warnings and infos in any order. Keys that are not known are
 * skipped. A text may hold several answers one after the other (a file of JSON lines).
 *
 * Memory is one token, one series' labels and a batch of samples, whatever the size of the answer
 * (where a series' values stand before its metric, those values too). One thread owns a reader.
 * Source: prometheus.io/docs/prometheus/latest/querying/api */
#ifndef GPUTALLY_WIRE_QUERY_JSON_H
#define GPUTALLY_WIRE_QUERY_JSON_H

#include "util/clock.h"
#include "util/error.h"
#include "util/str.h"

#define QUERY_JSON_TOKEN_MAX ((size_t)1 << 20) /* bytes of a string or number */
#define QUERY_JSON_DEPTH_MAX 64
#define QUERY_JSON_LABELS_MAX 256
#define QUERY_JSON_LABELS_BYTES_MAX ((size_t)4 << 20) /* of one series */
#define QUERY_JSON_EARLY_MAX                                                                       \
    ((size_t)1 << 22)              /* values of a series that stand before its metric              \
                                    */
#define QUERY_JSON_WARNINGS_MAX 16 /* kept; more are counted only */
#define QUERY_JSON_BATCH 1024      /* samples of a delivery, at most */

struct query_json_sink {
    void *context;
    /* A series (of a result, or of /series); the texts live during the call only. False: nobody
     * wants it, its values are skipped. A scalar comes as a series without labels. */
    bool (*series)(void *context, const struct label *labels, size_t n);
    /* Values of the series named last: stamps in ms (rounded), values with NaN, ±Inf. */
    void (*samples)(void *context, const time_ms *t, const double *v, size_t n);
    /* An element of a list of strings (label values); the text lives during the call. May be NULL.
     */
    void (*text)(void *context, struct str text);
};

/* What the answer says about itself. Texts live until the reader is freed. */
struct query_json_answer {
    bool status_seen, success;                    /* "status": "success" */
    struct str error_type, error;                 /* empty where there are none */
    struct str warnings[QUERY_JSON_WARNINGS_MAX]; /* warnings first come, then infos are apart */
    size_t warnings_n, warnings_total;
    size_t infos_total;
    uint64_t bytes, series, samples, texts;
    uint64_t refused_series; /* labels that are not UTF-8 or not texts */
    uint64_t histograms;     /* histogram samples, skipped */
    uint64_t bad_values;     /* pairs that are not [time, "number"], skipped */
};

struct query_json;
struct query_json *query_json_new(const struct query_json_sink *sink);
void query_json_free(struct query_json *json); /* NULL is fine */
/* ERR_PARSE: no JSON; ERR_LIMIT: a cap above. Nothing can follow an error. */
enum err query_json_feed(struct query_json *json, struct str bytes, struct error *err);
/* The end: ERR_NETWORK where the text was cut inside a value, ERR_PROTOCOL where it is JSON but has
 * no status (no answer of Prometheus). An answer with status error is ERR_OK here: see the answer.
 */
enum err query_json_finish(struct query_json *json, struct error *err);
const struct query_json_answer *query_json_answer(const struct query_json *json);

#endif
