/* The message is flat and always laid out in the same way by the encoders that there are: labels,
 * then samples of 11 to 20 bytes. That layout is read by hand, a compare or two a field; whatever
 * does not look like it goes through the general reader of wire/protobuf, which decides.
 *
 * A live sender's series has a dozen labels and one sample, which stands at the end: on trust, the
 * labels are not even walked over to find it. */
#include "wire/remote_write.h"

#include <stdlib.h>

#include "util/hash.h"
#include "wire/protobuf.h"
#include "wire/snappy_block.h"

enum { REQUEST_SERIES = 1, REQUEST_METADATA = 3 };
enum { SERIES_LABEL = 1, SERIES_SAMPLE = 2, SERIES_EXEMPLAR = 3, SERIES_HISTOGRAM = 4 };
enum { SAMPLE_VALUE = 1, SAMPLE_STAMP = 2 };
enum { LABEL_NAME = 1, LABEL_VALUE = 2 };

#define TAG(number, type) ((char)((number) << 3 | (type)))
#define TAG_LABEL TAG(SERIES_LABEL, PROTOBUF_BYTES)
#define TAG_SAMPLE TAG(SERIES_SAMPLE, PROTOBUF_BYTES)
#define TAG_VALUE TAG(SAMPLE_VALUE, PROTOBUF_FIXED64)
#define TAG_STAMP TAG(SAMPLE_STAMP, PROTOBUF_VARINT)
#define TAG_SERIES TAG(REQUEST_SERIES, PROTOBUF_BYTES)
#define STAMP_BYTES 6 /* of a stamp in ms from 1971 to 2109, and so … */
#define SAMPLE_BYTES (12 + STAMP_BYTES)
#define SAMPLE_BYTES_MIN 13 /* tag, length, tag, 8 bytes, tag, a varint of at least 1 */

void remote_write_release(struct remote_write *request)
{
    free(request->series);
    free(request->t);
    free(request->v);
    strbuf_release(&request->decoded);
    *request = (struct remote_write){0};
}

static void request_clear(struct remote_write *request)
{
    request->series_n = request->samples_n = 0;
    request->exemplars = request->histograms = request->metadata = 0;
}

static const char *add_sample(struct remote_write *request, time_ms t, double v)
{
    if (request->samples_n == request->samples_room) {
        size_t room = request->samples_room ? 2 * request->samples_room : 1024;
        if (room > REMOTE_WRITE_SAMPLES_MAX)
            return "";
        request->t = mem_realloc(request->t, room, sizeof *request->t);
        request->v = mem_realloc(request->v, room, sizeof *request->v);
        request->samples_room = room;
    }
    request->t[request->samples_n] = t;
    request->v[request->samples_n++] = v;
    return NULL;
}

/* Readers of parts return NULL, or why the bytes are no such part; "": there are too many. */

static const char *read_sample(struct remote_write *request, struct str bytes)
{
    struct protobuf_reader reader = protobuf_reader(bytes);
    struct protobuf_field field;
    time_ms t = 0; /* fields that are zero need not be sent */
    double v = 0;
    while (protobuf_next(&reader, &field)) {
        if (field.number == SAMPLE_VALUE && field.type == PROTOBUF_FIXED64)
            v = protobuf_double(field.value);
        else if (field.number == SAMPLE_STAMP && field.type == PROTOBUF_VARINT)
            t = (time_ms)field.value;
        else if (field.number == SAMPLE_VALUE || field.number == SAMPLE_STAMP)
            return "a sample's field has another type";
    }
    return reader.broken ? reader.broken : add_sample(request, t, v);
}

/* A sample in the layout that senders use, at p of a series that ends at end: what follows it; NULL
 * where it looks different. */
static inline const char *quick_sample(const char *p, const char *end, time_ms *ret_t,
                                       double *ret_v)
{
    if (end - p < SAMPLE_BYTES_MIN || p[0] != TAG_SAMPLE || p[2] != TAG_VALUE ||
        p[11] != TAG_STAMP || (uint8_t)p[1] > end - p - 2)
        return NULL;
    const char *stop = p + 2 + (uint8_t)p[1], *q = p + 12;
    uint64_t stamp;
    if ((uint8_t)p[1] >= 128 || !protobuf_varint(&q, stop, &stamp) || q != stop)
        return NULL;
    memcpy(ret_v, p + 3, sizeof *ret_v);
    *ret_t = (time_ms)stamp;
    return stop;
}

/* What of the labels stands in the layout that senders use: their end. */
static inline const char *quick_labels(const char *p, const char *end)
{
    while (end - p >= 2 && p[0] == TAG_LABEL) {
        uint64_t n = (uint8_t)p[1];
        const char *q = p + 2;
        if (n >= 128) {
            q = p + 1;
            if (!protobuf_varint(&q, end, &n))
                return p;
        }
        if (n > (uint64_t)(end - q))
            return p;
        p = q + n;
    }
    return p;
}

/* The fields from p on, in any order. */
static const char *read_fields(struct remote_write *request, struct remote_write_series *series,
                               const char *p, const char *end)
{
    struct protobuf_reader reader = {p, end, NULL};
    struct protobuf_field field;
    const char *why = NULL;
    while (!why && protobuf_next(&reader, &field)) {
        if (field.number >= SERIES_LABEL && field.number <= SERIES_HISTOGRAM &&
            field.type != PROTOBUF_BYTES)
            return "a field of a series has another type";
        if (field.number == SERIES_LABEL)
            series->scattered = true;
        else if (field.number == SERIES_SAMPLE)
            why = read_sample(request, field.bytes);
        request->exemplars += field.number == SERIES_EXEMPLAR;
        request->histograms += field.number == SERIES_HISTOGRAM;
    }
    return reader.broken ? reader.broken : why;
}

static const char *read_series(struct remote_write *request, struct str bytes)
{
    const char *p = bytes.p, *end = bytes.p + bytes.n;
    struct remote_write_series series = {.first = (uint32_t)request->samples_n};
    const char *labels_end = quick_labels(p, end), *why = NULL, *next;
    p = labels_end;
    time_ms t;
    double v;
    while (!why && (next = quick_sample(p, end, &t, &v))) {
        why = add_sample(request, t, v);
        p = next;
    }
    if (!why && p < end)
        why = read_fields(request, &series, p, end);
    if (why)
        return why;
    if (request->series_n == REMOTE_WRITE_SERIES_MAX)
        return "";
    const char *labels = series.scattered ? end : labels_end;
    series.labels = (struct str){bytes.p, (size_t)(labels - bytes.p)};
    series.n = (uint32_t)request->samples_n - series.first;
    if (request->secret)
        series.hash = hash_bytes(series.labels, request->secret);
    mem_push(request->series, request->series_n, request->series_room, series);
    return NULL;
}

/* Does a sample of SAMPLE_BYTES stand at p? */
static inline bool is_sample(const char *p)
{
    uint64_t bytes; /* 2 of the value, the stamp */
    memcpy(&bytes, p + SAMPLE_BYTES - sizeof bytes, sizeof bytes);
    return p[0] == TAG_SAMPLE && p[1] == SAMPLE_BYTES - 2 && p[2] == TAG_VALUE &&
           p[11] == TAG_STAMP && (bytes >> 16 & UINT64_C(0x808080808080)) == UINT64_C(0x8080808080);
}

static inline time_ms stamp_of(const char *p)
{
    uint64_t stamp = 0;
    for (int i = 0; i < STAMP_BYTES; i++)
        stamp |= (uint64_t)(p[SAMPLE_BYTES - STAMP_BYTES + i] & 127) << (7 * i);
    return (time_ms)stamp;
}

/* A series of one sample at p, on trust: what follows it. NULL, and nothing is done, where it looks
 * different. *why: as others return it. */
static inline const char *quick_series(struct remote_write *request, const char *p, const char *end,
                                       const char **why)
{
    if (end - p < 3 || p[0] != TAG_SERIES || ((uint8_t)p[1] >= 128 && (uint8_t)p[2] >= 128))
        return NULL;
    bool wide = (uint8_t)p[1] >= 128;
    size_t n = wide ? (size_t)(p[1] & 127) | (size_t)p[2] << 7 : (size_t)p[1];
    p += wide ? 3 : 2;
    if (n < SAMPLE_BYTES || n > (size_t)(end - p))
        return NULL;
    const char *sample = p + n - SAMPLE_BYTES;
    bool several = n >= 2 * SAMPLE_BYTES && is_sample(sample - SAMPLE_BYTES);
    if (!is_sample(sample) || several || request->series_n == REMOTE_WRITE_SERIES_MAX)
        return NULL;
    double v;
    memcpy(&v, sample + 3, sizeof v);
    mem_reserve(request->series, request->series_n, request->series_room, 1);
    /* Field by field where it lies: copied as a whole it would wait for its parts to be written. */
    struct remote_write_series *series = &request->series[request->series_n++];
    series->labels = (struct str){p, n - SAMPLE_BYTES};
    series->scattered = false;
    series->trusted = true;
    series->hash = request->secret ? hash_bytes(series->labels, request->secret) : 0;
    series->first = (uint32_t)request->samples_n;
    series->n = 1;
    *why = add_sample(request, stamp_of(sample), v);
    return p + n;
}

static const char *read_request(struct remote_write *request, struct str bytes, bool trust)
{
    struct protobuf_reader reader = protobuf_reader(bytes);
    struct protobuf_field field;
    const char *why = NULL, *next;
    while (!why) {
        if (trust && (next = quick_series(request, reader.p, reader.end, &why))) {
            reader.p = next;
            continue;
        }
        if (!protobuf_next(&reader, &field))
            break;
        if (field.number != REQUEST_SERIES && field.number != REQUEST_METADATA)
            continue;
        if (field.type != PROTOBUF_BYTES)
            return "a field of the request has another type";
        if (field.number == REQUEST_SERIES)
            why = read_series(request, field.bytes);
        else
            request->metadata++;
    }
    return reader.broken ? reader.broken : why;
}

static enum err read_decoded(struct remote_write *request, bool trust, struct error *err)
{
    request_clear(request);
    const char *why = read_request(request, strbuf_str(&request->decoded), trust);
    if (!why)
        return ERR_OK;
    request_clear(request);
    if (*why)
        return error_set(err, ERR_PARSE, "not a remote-write request: %s", why);
    return error_set(err, ERR_LIMIT,
                     "a request of more than %zu series or %zu samples: send less at once",
                     REMOTE_WRITE_SERIES_MAX, REMOTE_WRITE_SAMPLES_MAX);
}

static enum err read_body(struct remote_write *request, struct str body, size_t max_bytes,
                          bool trust, struct error *err)
{
    request_clear(request);
    strbuf_clear(&request->decoded);
    enum err e = snappy_block_decode(body, max_bytes, &request->decoded, err);
    return e != ERR_OK ? e : read_decoded(request, trust, err);
}

enum err remote_write_read(struct remote_write *request, struct str body, size_t max_bytes,
                           struct error *err)
{
    return read_body(request, body, max_bytes, false, err);
}

enum err remote_write_read_on_trust(struct remote_write *request, struct str body, size_t max_bytes,
                                    struct error *err)
{
    return read_body(request, body, max_bytes, true, err);
}

enum err remote_write_read_over(struct remote_write *request, struct error *err)
{
    return read_decoded(request, false, err);
}

bool remote_write_are_labels(struct str bytes)
{
    return quick_labels(bytes.p, bytes.p + bytes.n) == bytes.p + bytes.n;
}

static const char *read_label(struct str bytes, struct label *ret)
{
    struct protobuf_reader reader = protobuf_reader(bytes);
    struct protobuf_field field;
    *ret = (struct label){STR_NONE, STR_NONE};
    while (protobuf_next(&reader, &field)) {
        if (field.number != LABEL_NAME && field.number != LABEL_VALUE)
            continue;
        if (field.type != PROTOBUF_BYTES)
            return "a label's field has another type";
        *(field.number == LABEL_NAME ? &ret->name : &ret->value) = field.bytes;
    }
    return reader.broken;
}

/* A short text under the tag at p: what follows it; NULL where it looks different. */
static inline const char *quick_text(const char *p, const char *end, char tag, struct str *ret)
{
    if (end - p < 2 || p[0] != tag || (uint8_t)p[1] >= 128 || (uint8_t)p[1] > end - p - 2)
        return NULL;
    *ret = (struct str){p + 2, (uint8_t)p[1]};
    return p + 2 + (uint8_t)p[1];
}

/* A label in the layout that senders use, and short: what follows it; NULL where it looks
 * different. */
static inline const char *quick_label(const char *p, const char *end, struct label *ret)
{
    struct str label;
    const char *stop = quick_text(p, end, TAG_LABEL, &label);
    if (!stop)
        return NULL;
    p = quick_text(label.p, stop, TAG(LABEL_NAME, PROTOBUF_BYTES), &ret->name);
    p = p ? quick_text(p, stop, TAG(LABEL_VALUE, PROTOBUF_BYTES), &ret->value) : NULL;
    return p == stop ? stop : NULL;
}

bool remote_write_labels(struct str bytes, struct label labels[REMOTE_WRITE_LABELS_MAX],
                         size_t *ret_n, const char **ret_reason)
{
    struct protobuf_reader reader = protobuf_reader(bytes);
    struct protobuf_field field;
    size_t n = 0;
    const char *why = NULL, *next;
    while (!why) {
        if (n < REMOTE_WRITE_LABELS_MAX && (next = quick_label(reader.p, reader.end, &labels[n]))) {
            reader.p = next;
            n++;
            continue;
        }
        if (!protobuf_next(&reader, &field))
            break;
        if (field.number != SERIES_LABEL)
            continue;
        if (n == REMOTE_WRITE_LABELS_MAX)
            why = "too many labels";
        else
            why = read_label(field.bytes, &labels[n++]);
    }
    *ret_reason = reader.broken ? reader.broken : why;
    *ret_n = n;
    return !*ret_reason;
}
