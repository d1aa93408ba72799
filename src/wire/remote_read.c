/* Two decoders that share the messages: prometheus.Label, and per kind of answer a series.
 *
 *   ReadRequest          1 queries*, 2 accepted_response_types (0 SAMPLES, 1 STREAMED_XOR_CHUNKS)
 *   Query                1 start, 2 end, 3 matchers* {1 type, 2 name, 3 value}
 *   ReadResponse         1 results* {1 timeseries*}
 *   TimeSeries           1 labels* {1 name, 2 value}, 2 samples* {1 value, 2 timestamp}, 4
 * histograms* ChunkedReadResponse  1 chunked_series*, 2 query_index ChunkedSeries        1 labels*,
 * 2 chunks* {1 min, 2 max, 3 type, 4 data}
 *
 * Protocol buffers leave the order of fields open, so a series is gone through twice, labels first,
 * and a frame once more for its query_index. That touches field heads only, not chunk bytes. */
#include "wire/remote_read.h"

#include <stdlib.h>

#include "wire/crc32c.h"
#include "wire/protobuf.h"
#include "wire/snappy_block.h"
#include "wire/utf8.h"

#define CRC_BYTES 4
#define FRAME_KEEP_BYTES ((size_t)4 << 20) /* a larger frame's buffer is given back */

void remote_read_request(const struct remote_read_query *queries, size_t n, bool streamed,
                         struct strbuf *ret)
{
    struct strbuf request = {0}, query = {0}, matcher = {0};
    for (size_t i = 0; i < n; i++) {
        strbuf_clear(&query);
        protobuf_put_uint64(&query, 1, (uint64_t)queries[i].start);
        protobuf_put_uint64(&query, 2, (uint64_t)queries[i].end);
        for (size_t k = 0; k < queries[i].matchers_n; k++) {
            const struct remote_read_matcher *m = &queries[i].matchers[k];
            strbuf_clear(&matcher);
            protobuf_put_uint64(&matcher, 1, m->match);
            protobuf_put_bytes(&matcher, 2, m->name);
            protobuf_put_bytes(&matcher, 3, m->value);
            protobuf_put_bytes(&query, 3, strbuf_str(&matcher));
        }
        protobuf_put_bytes(&request, 1, strbuf_str(&query));
    }
    protobuf_put_bytes(&request, 2, streamed ? (struct str){"\1\0", 2} : (struct str){"\0", 1});
    snappy_block_encode(strbuf_str(&request), ret);
    strbuf_release(&matcher);
    strbuf_release(&query);
    strbuf_release(&request);
}

static enum err broken(const char *why, struct error *err)
{
    return error_set(err, ERR_PARSE, "remote read answer: %s", why);
}

static enum err read_label(struct str bytes, struct label *ret, struct error *err)
{
    struct protobuf_reader reader = protobuf_reader(bytes);
    struct protobuf_field field;
    *ret = (struct label){STR_NONE, STR_NONE};
    while (protobuf_next(&reader, &field)) {
        if (field.number == 1 && field.type == PROTOBUF_BYTES)
            ret->name = field.bytes;
        else if (field.number == 2 && field.type == PROTOBUF_BYTES)
            ret->value = field.bytes;
    }
    return reader.broken ? broken(reader.broken, err) : ERR_OK;
}

/* The labels of a series (field 1 of both kinds), told to the sink. *ret_wanted: what it said. */
static enum err read_labels(struct str series, const struct remote_read_sink *sink, size_t query,
                            struct remote_read_stats *stats, bool *ret_wanted, struct error *err)
{
    struct label labels[REMOTE_READ_LABELS_MAX];
    struct protobuf_reader reader = protobuf_reader(series);
    struct protobuf_field field;
    size_t n = 0;
    bool good = true;
    while (protobuf_next(&reader, &field)) {
        if (field.number != 1 || field.type != PROTOBUF_BYTES)
            continue;
        if (n == REMOTE_READ_LABELS_MAX) {
            good = false;
            break;
        }
        enum err code = read_label(field.bytes, &labels[n], err);
        if (code)
            return code;
        good =
            good && labels[n].name.n && utf8_valid(labels[n].name) && utf8_valid(labels[n].value);
        n++;
    }
    if (reader.broken)
        return broken(reader.broken, err);
    stats->series++;
    stats->refused_series += !good;
    *ret_wanted = good && sink->series(sink->context, query, labels, n);
    return ERR_OK;
}

static enum err read_chunk(struct str bytes, const struct remote_read_sink *sink, struct error *err)
{
    struct protobuf_reader reader = protobuf_reader(bytes);
    struct protobuf_field field;
    time_ms first = 0, last = 0;
    enum chunk_encoding encoding = CHUNK_UNKNOWN;
    struct str data = STR_NONE;
    while (protobuf_next(&reader, &field)) {
        if (field.number == 1 && field.type == PROTOBUF_VARINT)
            first = (time_ms)field.value;
        else if (field.number == 2 && field.type == PROTOBUF_VARINT)
            last = (time_ms)field.value;
        else if (field.number == 3 && field.type == PROTOBUF_VARINT)
            encoding = field.value <= CHUNK_FLOAT_HISTOGRAM ? (enum chunk_encoding)field.value
                                                            : CHUNK_UNKNOWN;
        else if (field.number == 4 && field.type == PROTOBUF_BYTES)
            data = field.bytes;
    }
    if (reader.broken)
        return broken(reader.broken, err);
    sink->chunk(sink->context, encoding, first, last, data);
    return ERR_OK;
}

static enum err read_chunked_series(struct str series, const struct remote_read_sink *sink,
                                    size_t query, struct remote_read_stats *stats,
                                    struct error *err)
{
    bool wanted;
    enum err code = read_labels(series, sink, query, stats, &wanted, err);
    if (code || !wanted)
        return code;
    struct protobuf_reader reader = protobuf_reader(series);
    struct protobuf_field field;
    while (protobuf_next(&reader, &field)) {
        if (field.number != 2 || field.type != PROTOBUF_BYTES)
            continue;
        stats->chunks++;
        code = read_chunk(field.bytes, sink, err);
        if (code)
            return code;
    }
    return ERR_OK;
}

static enum err read_chunked_response(struct str message, const struct remote_read_sink *sink,
                                      struct remote_read_stats *stats, struct error *err)
{
    struct protobuf_reader reader = protobuf_reader(message);
    struct protobuf_field field;
    size_t query = 0;
    while (protobuf_next(&reader, &field))
        if (field.number == 2 && field.type == PROTOBUF_VARINT)
            query = (size_t)field.value;
    if (reader.broken)
        return broken(reader.broken, err);
    reader = protobuf_reader(message);
    while (protobuf_next(&reader, &field)) {
        if (field.number != 1 || field.type != PROTOBUF_BYTES)
            continue;
        enum err code = read_chunked_series(field.bytes, sink, query, stats, err);
        if (code)
            return code;
    }
    return ERR_OK;
}

struct sample_batch {
    time_ms t[REMOTE_READ_BATCH];
    double v[REMOTE_READ_BATCH];
    size_t n;
};

static void deliver(struct sample_batch *batch, const struct remote_read_sink *sink,
                    struct remote_read_stats *stats)
{
    stats->samples += batch->n;
    if (batch->n)
        sink->samples(sink->context, batch->t, batch->v, batch->n);
    batch->n = 0;
}

static enum err read_sample(struct str bytes, time_ms *ret_t, double *ret_v, struct error *err)
{
    struct protobuf_reader reader = protobuf_reader(bytes);
    struct protobuf_field field;
    *ret_t = 0;
    *ret_v = 0;
    while (protobuf_next(&reader, &field)) {
        if (field.number == 1 && field.type == PROTOBUF_FIXED64)
            *ret_v = protobuf_double(field.value);
        else if (field.number == 2 && field.type == PROTOBUF_VARINT)
            *ret_t = (time_ms)field.value;
    }
    return reader.broken ? broken(reader.broken, err) : ERR_OK;
}

static enum err read_time_series(struct str series, const struct remote_read_sink *sink,
                                 size_t query, struct remote_read_stats *stats, struct error *err)
{
    bool wanted;
    enum err code = read_labels(series, sink, query, stats, &wanted, err);
    if (code || !wanted)
        return code;
    struct sample_batch batch = {.n = 0};
    struct protobuf_reader reader = protobuf_reader(series);
    struct protobuf_field field;
    while (!code && protobuf_next(&reader, &field)) {
        stats->histograms += field.number == 4;
        if (field.number != 2 || field.type != PROTOBUF_BYTES)
            continue;
        code = read_sample(field.bytes, &batch.t[batch.n], &batch.v[batch.n], err);
        if (!code && ++batch.n == REMOTE_READ_BATCH)
            deliver(&batch, sink, stats);
    }
    deliver(&batch, sink, stats);
    return code;
}

static enum err read_response(struct str message, const struct remote_read_sink *sink,
                              struct remote_read_stats *stats, struct error *err)
{
    struct protobuf_reader results = protobuf_reader(message);
    struct protobuf_field result, series;
    for (size_t query = 0; protobuf_next(&results, &result);) {
        if (result.number != 1 || result.type != PROTOBUF_BYTES)
            continue;
        struct protobuf_reader reader = protobuf_reader(result.bytes);
        while (protobuf_next(&reader, &series)) {
            if (series.number != 1 || series.type != PROTOBUF_BYTES)
                continue;
            enum err code = read_time_series(series.bytes, sink, query, stats, err);
            if (code)
                return code;
        }
        if (reader.broken)
            return broken(reader.broken, err);
        query++;
    }
    return results.broken ? broken(results.broken, err) : ERR_OK;
}

enum err remote_read_samples(struct str body, const struct remote_read_sink *sink,
                             struct remote_read_stats *stats, struct error *err)
{
    struct remote_read_stats own = {0};
    struct strbuf message = {0};
    enum err code = snappy_block_decode(body, REMOTE_READ_BODY_MAX, &message, err);
    if (!code) {
        stats = stats ? stats : &own;
        stats->bytes += body.n;
        stats->frames++;
        code = read_response(strbuf_str(&message), sink, stats, err);
    }
    strbuf_release(&message);
    return code;
}

struct remote_read_stream {
    struct remote_read_sink sink;
    struct remote_read_stats stats;
    struct strbuf partial; /* the frame that has begun, with its head */
};

struct remote_read_stream *remote_read_stream_new(const struct remote_read_sink *sink)
{
    struct remote_read_stream *stream = mem_zalloc(1, sizeof *stream);
    stream->sink = *sink;
    return stream;
}

void remote_read_stream_free(struct remote_read_stream *stream)
{
    if (!stream)
        return;
    strbuf_release(&stream->partial);
    free(stream);
}

/* The length in front of a frame at p; *ret_head its bytes, *ret_body the message's. Both 0 where
 * the length has not come whole. */
static enum err frame_size(struct str bytes, size_t *ret_head, size_t *ret_body, struct error *err)
{
    const char *p = bytes.p;
    uint64_t n;
    *ret_head = *ret_body = 0;
    if (!protobuf_varint(&p, bytes.p + bytes.n, &n)) {
        if (bytes.n < PROTOBUF_VARINT_MAX)
            return ERR_OK;
        return broken("a frame's length is no number", err);
    }
    if (n > REMOTE_READ_FRAME_MAX)
        return error_set(err, ERR_LIMIT,
                         "remote read answer: a frame of %llu bytes, the limit is %zu",
                         (unsigned long long)n, REMOTE_READ_FRAME_MAX);
    *ret_head = (size_t)(p - bytes.p) + CRC_BYTES;
    *ret_body = (size_t)n;
    return ERR_OK;
}

/* A whole frame, at its length. */
static enum err read_frame(struct remote_read_stream *stream, const char *p, size_t head,
                           size_t body, struct error *err)
{
    const uint8_t *crc = (const uint8_t *)p + head - CRC_BYTES;
    uint32_t said =
        (uint32_t)crc[0] << 24 | (uint32_t)crc[1] << 16 | (uint32_t)crc[2] << 8 | crc[3];
    struct str message = {p + head, body};
    if (crc32c(0, message) != said)
        return broken("a frame's checksum is wrong", err);
    stream->stats.frames++;
    return read_chunked_response(message, &stream->sink, &stream->stats, err);
}

/* Move bytes to the frame that has begun until it is whole, then read it. */
static enum err feed_partial(struct remote_read_stream *stream, struct str *bytes,
                             struct error *err)
{
    struct strbuf *partial = &stream->partial;
    size_t head, body;
    enum err code = frame_size(strbuf_str(partial), &head, &body, err);
    while (!code && bytes->n) {
        size_t want = head ? head + body - partial->n : 1;
        size_t take = want < bytes->n ? want : bytes->n;
        strbuf_add(partial, (struct str){bytes->p, take});
        bytes->p += take;
        bytes->n -= take;
        if (!head)
            code = frame_size(strbuf_str(partial), &head, &body, err);
        if (code || !head || partial->n < head + body)
            continue;
        code = read_frame(stream, partial->text, head, body, err);
        strbuf_clear(partial);
        if (partial->room > FRAME_KEEP_BYTES)
            strbuf_release(partial);
        break;
    }
    return code;
}

enum err remote_read_stream_feed(struct remote_read_stream *stream, struct str bytes,
                                 struct error *err)
{
    stream->stats.bytes += bytes.n;
    enum err code = ERR_OK;
    while (!code && bytes.n) {
        if (stream->partial.n) {
            code = feed_partial(stream, &bytes, err);
            continue;
        }
        size_t head, body;
        code = frame_size(bytes, &head, &body, err);
        if (code)
            break;
        if (!head || bytes.n < head + body) {
            strbuf_add(&stream->partial, bytes);
            break;
        }
        code = read_frame(stream, bytes.p, head, body, err);
        bytes.p += head + body;
        bytes.n -= head + body;
    }
    return code;
}

enum err remote_read_stream_finish(struct remote_read_stream *stream, struct error *err)
{
    if (stream->partial.n)
        return error_set(
            err, ERR_NETWORK, "remote read answer: cut inside frame %llu, after %llu bytes",
            (unsigned long long)stream->stats.frames + 1, (unsigned long long)stream->stats.bytes);
    return ERR_OK;
}

const struct remote_read_stats *remote_read_stream_stats(const struct remote_read_stream *stream)
{
    return &stream->stats;
}
