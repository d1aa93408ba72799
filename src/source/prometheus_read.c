/* A piece by remote read. The answer says by its type whether it is a stream of chunks (decoded as
 * it comes) or one block of samples (gathered, with a cap: a piece that passes it is asked again in
 * halves). */
#include "source/prometheus_impl.h"

#include <inttypes.h>

#define SAMPLES_BODY_MAX ((size_t)64 << 20)     /* bytes of a block, compressed */
#define SAMPLES_DECODED_MAX ((size_t)128 << 20) /* and decoded */

struct reading {
    struct asker *asker;
    struct remote_read_sink sink;
    struct remote_read_stream *stream; /* one of the two */
    struct strbuf body;
    uint64_t broken_chunks, histograms;
    enum err chunk_err;
};

static bool on_series(void *context, size_t query, const struct label *labels, size_t n)
{
    (void)query;
    return delivery_series(((struct reading *)context)->asker->delivery, labels, n);
}

static void on_chunk(void *context, enum chunk_encoding encoding, time_ms first, time_ms last,
                     struct str data)
{
    struct reading *reading = context;
    (void)first, (void)last;
    if (encoding != CHUNK_XOR)
        reading->histograms++;
    else if (delivery_chunk(reading->asker->delivery, data, NULL) != ERR_OK)
        reading->broken_chunks++;
}

static void on_samples(void *context, const time_ms *t, const double *v, size_t n)
{
    delivery_samples(((struct reading *)context)->asker->delivery, t, v, n);
}

static enum err read_begin(void *context, const struct http_answer *answer, struct error *err)
{
    struct reading *reading = context;
    const struct prometheus *prometheus = reading->asker->prometheus;
    remote_read_stream_free(reading->stream);
    reading->stream = NULL;
    strbuf_clear(&reading->body);
    reading->broken_chunks = reading->histograms = 0;
    enum err e = prometheus_check_type(prometheus, answer, err);
    if (e != ERR_OK)
        return e;
    if (strncmp(answer->content_type, REMOTE_READ_STREAMED_TYPE,
                strlen(REMOTE_READ_STREAMED_TYPE)) == 0)
        reading->stream = remote_read_stream_new(&reading->sink);
    else if (strncmp(answer->content_type, REMOTE_READ_CONTENT_TYPE,
                     strlen(REMOTE_READ_CONTENT_TYPE)) != 0)
        return error_set(err, ERR_UNSUPPORTED, "%s answers remote read with '%s'",
                         http_site_url(prometheus->site), answer->content_type);
    return ERR_OK;
}

static enum err named(const struct reading *reading, enum err e, struct error *err)
{
    if (e != ERR_OK)
        error_prefix(err, "%s", http_site_url(reading->asker->prometheus->site));
    return e;
}

static enum err read_piece(void *context, struct str bytes, struct error *err)
{
    struct reading *reading = context;
    atomic_fetch_add_explicit(&reading->asker->tally->bytes, bytes.n, memory_order_relaxed);
    if (reading->stream)
        return named(reading, remote_read_stream_feed(reading->stream, bytes, err), err);
    if (reading->body.n + bytes.n > SAMPLES_BODY_MAX) {
        reading->asker->too_large = true;
        return error_set(err, ERR_LIMIT, "an answer of remote read is larger than %zu MiB",
                         SAMPLES_BODY_MAX >> 20);
    }
    strbuf_add(&reading->body, bytes);
    return ERR_OK;
}

static enum err read_finish(void *context, struct error *err)
{
    struct reading *reading = context;
    enum err e;
    if (reading->stream) {
        e = remote_read_stream_finish(reading->stream, err);
    } else {
        struct remote_read_stats stats = {0};
        e = remote_read_samples(strbuf_str(&reading->body), &reading->sink, &stats, err);
        reading->asker->too_large |= e == ERR_LIMIT;
        reading->histograms += stats.histograms;
    }
    delivery_flush(reading->asker->delivery);
    return named(reading, e, err);
}

/* Chunks that could not be decoded although their frame's checksum was right. */
static void note_chunks(const struct reading *reading, const struct piece *piece)
{
    if (reading->broken_chunks && reading->asker->intake)
        intake_note(reading->asker->intake, NOTE_REJECTED, str_of(piece->metric->name),
                    (int64_t)reading->broken_chunks,
                    STR("chunks of the server that cannot be decoded"));
}

static enum err request_body(struct asker *asker, const struct piece *piece, struct strbuf *ret,
                             struct error *err)
{
    struct arena arena = {0};
    struct selector selector = asker->prometheus->common;
    enum err e = selector_parse(str_of(piece->metric->match), &arena, &selector, err);
    if (e == ERR_OK &&
        !selector_add(&selector, REMOTE_READ_EQ, STR("__name__"), str_of(piece->metric->name)))
        e = error_set(err, ERR_LIMIT, "the selector has too many matchers");
    if (e == ERR_OK) {
        struct remote_read_query query = {.start = piece->first,
                                          .end = piece->last,
                                          .matchers = selector.items,
                                          .matchers_n = selector.n};
        remote_read_request(&query, 1, asker->prometheus->api != PROMETHEUS_REMOTE_READ_SAMPLES,
                            ret);
    }
    arena_release(&arena);
    return e;
}

enum err prometheus_read_piece(struct asker *asker, const struct piece *piece, struct error *err)
{
    static const char *const headers[] = {
        "Content-Encoding: " REMOTE_READ_CONTENT_ENCODING,
        "X-Prometheus-Remote-Read-Version: " REMOTE_READ_VERSION,
        "Accept: " REMOTE_READ_STREAMED_TYPE ", " REMOTE_READ_CONTENT_TYPE,
    };
    struct reading reading = {.asker = asker};
    reading.sink = (struct remote_read_sink){
        .context = &reading, .series = on_series, .chunk = on_chunk, .samples = on_samples};
    struct strbuf body = {0};
    struct http_answer answer = {0};
    asker->too_large = false;
    enum err e = request_body(asker, piece, &body, err);
    if (e != ERR_OK)
        goto out;
    delivery_range(asker->delivery, piece->first, piece->last);
    struct http_request request = {.path = "/api/v1/read",
                                   .body = strbuf_str(&body),
                                   .content_type = REMOTE_READ_CONTENT_TYPE,
                                   .headers = headers,
                                   .headers_n = sizeof headers / sizeof *headers,
                                   .begin = read_begin,
                                   .piece = read_piece,
                                   .finish = read_finish,
                                   .context = &reading};
    e = http_ask(asker->client, &request, &answer, err);
    asker->too_large |= answer.too_large;
    if (e == ERR_OK)
        note_chunks(&reading, piece);
out:
    remote_read_stream_free(reading.stream);
    strbuf_release(&reading.body);
    strbuf_release(&body);
    return e;
}
