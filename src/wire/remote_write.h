/* Prometheus remote write 1.0: the body of a POST.
 *
 *   Content-Type: application/x-protobuf, Content-Encoding: snappy
 *       one snappy block of a WriteRequest: series, each of labels and samples
 *
 * A request is decoded whole, into columns, before anything of it is used: bytes that are no
 * message are refused without a trace. The labels of a series stay as they came, as a view of the
 * decoded bytes: senders repeat the same label bytes with every sample, so that a reader who knows
 * a series by a hash of them need not look inside (remote_write_labels does).
 *
 * Exemplars, histograms and metadata are counted and skipped, unknown fields are skipped.
 * Source: prometheus.io/docs/specs/remote_write_spec; prompb/remote.proto, types.proto */
#ifndef GPUTALLY_WIRE_REMOTE_WRITE_H
#define GPUTALLY_WIRE_REMOTE_WRITE_H

#include "util/clock.h"
#include "util/error.h"
#include "util/str.h"

#define REMOTE_WRITE_SERIES_MAX ((size_t)1 << 19)  /* of a request; senders send 500 to 10,000 */
#define REMOTE_WRITE_SAMPLES_MAX ((size_t)1 << 20) /* of a request */
#define REMOTE_WRITE_LABELS_MAX 128                /* of a series */

#define REMOTE_WRITE_CONTENT_TYPE "application/x-protobuf"
#define REMOTE_WRITE_CONTENT_ENCODING "snappy"

struct remote_write_series {
    struct str labels; /* their bytes: fields of a TimeSeries, in the order of the sender */
    bool scattered;    /* samples stand among them: the bytes say nothing about the series */
    bool trusted;      /* not looked at: see remote_write_read_on_trust */
    uint64_t hash;     /* of the label bytes, where there is a secret */
    uint32_t first, n; /* its samples */
};

/* Zero-initialise; one thread owns it; reuse it, since its buffers stay. Everything in it lives
 * until the next remote_write_read. */
struct remote_write {
    struct remote_write_series *series;
    size_t series_n, series_room;
    time_ms *t;
    double *v;
    size_t samples_n, samples_room;
    uint64_t exemplars, histograms, metadata; /* skipped */
    const unsigned char *secret; /* yours: of util/hash.h, for the series' hashes; NULL: none */
    struct strbuf decoded;
};
void remote_write_release(struct remote_write *request);

/* Decode a body. max_bytes: what the block may declare, looked at before anything is allocated.
 * ERR_LIMIT: larger than that, or too many series or samples; ERR_PARSE: no snappy block, or no
 * WriteRequest. On errors the request holds nothing. */
enum err remote_write_read(struct remote_write *request, struct str body, size_t max_bytes,
                           struct error *err);

/* The same for who knows most series by their label bytes: what ends like a series of one sample,
 * as senders lay it out, is taken for that, and the bytes before the sample for labels, unread.
 * Bytes that were labels before are labels now; of others ask remote_write_are_labels() before
 * anything of the request is used, and where one says no, read the request over. */
enum err remote_write_read_on_trust(struct remote_write *request, struct str body, size_t max_bytes,
                                    struct error *err);
bool remote_write_are_labels(struct str bytes); /* fields that are labels, and no others */
/* Read what is decoded again, all of it. Errors as above. */
enum err remote_write_read_over(struct remote_write *request, struct error *err);

/* The labels of a series, in the sender's order: at most REMOTE_WRITE_LABELS_MAX, views. False, and
 * why, where the bytes are no labels, or too many. Whether they name a series (UTF-8, no name
 * twice) is the caller's to see. */
bool remote_write_labels(struct str bytes, struct label labels[REMOTE_WRITE_LABELS_MAX],
                         size_t *ret_n, const char **ret_reason);

#endif
