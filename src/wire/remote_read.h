/* Prometheus remote read: the request, and both kinds of answers.
 *
 *   Content-Type: application/x-protobuf, Content-Encoding: snappy
 *       one snappy block of a ReadResponse: samples. remote_read_samples().
 *   Content-Type: application/x-streamed-protobuf; proto=prometheus.ChunkedReadResponse
 *       frames of {varint length, CRC-32C big-endian, ChunkedReadResponse}: chunks as the server
 *       stores them. struct remote_read_stream takes them in pieces of any size.
 *
 * A series may come in several frames: its labels are then said again. Chunks may overlap the asked
 * range and each other (out-of-order data, replicas); the caller cuts and merges.
 * Source: prometheus.io/docs/prometheus/latest/querying/remote_read_api; prompb/remote.proto */
#ifndef GPUTALLY_WIRE_REMOTE_READ_H
#define GPUTALLY_WIRE_REMOTE_READ_H

#include "util/clock.h"
#include "util/error.h"
#include "util/str.h"
#include "wire/xor_chunk.h"

#define REMOTE_READ_FRAME_MAX ((size_t)64 << 20) /* bytes of a frame; servers aim at 1 MiB */
#define REMOTE_READ_BODY_MAX ((size_t)256 << 20) /* bytes of a ReadResponse, decoded */
#define REMOTE_READ_LABELS_MAX 256               /* labels of a series */
#define REMOTE_READ_BATCH 1024                   /* samples of a delivery, at most */

enum remote_read_match {
    REMOTE_READ_EQ = 0,
    REMOTE_READ_NEQ = 1,
    REMOTE_READ_RE = 2,
    REMOTE_READ_NRE = 3,
};

struct remote_read_matcher {
    enum remote_read_match match;
    struct str name, value; /* __name__ for the metric; regexes are anchored by the server */
};

struct remote_read_query {
    time_ms start, end; /* both inclusive: for a half-open span, end = to - 1 */
    const struct remote_read_matcher *matchers;
    size_t matchers_n;
};

/* Append to `ret` the body of the POST, compressed: a ReadRequest of n queries. streamed: chunks
 * are accepted (and preferred); samples always are. */
void remote_read_request(const struct remote_read_query *queries, size_t n, bool streamed,
                         struct strbuf *ret);

/* What to put into the request's headers. */
#define REMOTE_READ_CONTENT_TYPE "application/x-protobuf"
#define REMOTE_READ_CONTENT_ENCODING "snappy"
#define REMOTE_READ_VERSION "0.1.0" /* X-Prometheus-Remote-Read-Version */
#define REMOTE_READ_STREAMED_TYPE                                                                  \
    "application/x-streamed-protobuf" /* the answer's type begins so */

struct remote_read_sink {
    void *context;
    /* A series of query number `query`. Labels are sorted by name; the texts live during the call
     * only. False: nobody wants it, its data is skipped. */
    bool (*series)(void *context, size_t query, const struct label *labels, size_t n);
    /* A chunk of the series named last: encoding as in the answer (CHUNK_XOR is decoded by
     * xor_chunk_decode; other known ones are histograms), first and last stamp as declared, and the
     * bytes, a view that lives during the call. Used by streams only. */
    void (*chunk)(void *context, enum chunk_encoding encoding, time_ms first, time_ms last,
                  struct str data);
    /* Samples of the series named last, in order. Used by remote_read_samples only. */
    void (*samples)(void *context, const time_ms *t, const double *v, size_t n);
};

struct remote_read_stats {
    uint64_t bytes, frames, series, chunks, samples;
    uint64_t refused_series; /* too many labels, nameless or not UTF-8 */
    uint64_t histograms;     /* histogram samples in a ReadResponse, skipped */
};

/* A body of one snappy block, whole. ERR_LIMIT, or ERR_PARSE where it is no ReadResponse; what came
 * before the broken place was delivered. stats may be NULL, and is added to. */
enum err remote_read_samples(struct str body, const struct remote_read_sink *sink,
                             struct remote_read_stats *stats, struct error *err);

/* A stream of frames. One thread owns it; it holds one partial frame at most. */
struct remote_read_stream;
struct remote_read_stream *remote_read_stream_new(const struct remote_read_sink *sink);
void remote_read_stream_free(struct remote_read_stream *stream); /* NULL is fine */
/* The next bytes. ERR_LIMIT, ERR_PARSE (bad CRC, no message): nothing can follow an error. */
enum err remote_read_stream_feed(struct remote_read_stream *stream, struct str bytes,
                                 struct error *err);
/* The end of the body: ERR_NETWORK where it was cut inside a frame. */
enum err remote_read_stream_finish(struct remote_read_stream *stream, struct error *err);
const struct remote_read_stats *remote_read_stream_stats(const struct remote_read_stream *stream);

#endif
