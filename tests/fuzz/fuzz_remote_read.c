/* Any bytes as the body of an answer. The first byte chooses: as they are (cut by the second), as
 * the message of a frame whose length and CRC are right, or as a ReadResponse in a sound block; so
 * that the messages are reached in spite of the CRC. */
#include "wire/crc32c.h"
#include "wire/protobuf.h"
#include "wire/remote_read.h"
#include "wire/snappy_block.h"

struct sums {
    uint64_t series, chunks, samples;
};

static bool on_series(void *context, size_t query, const struct label *labels, size_t n)
{
    struct sums *sums = context;
    (void)query;
    invariant(n <= REMOTE_READ_LABELS_MAX);
    for (size_t i = 0; i < n; i++)
        invariant(labels[i].name.n > 0);
    return sums->series++ % 5 != 4;
}

static void on_chunk(void *context, enum chunk_encoding encoding, time_ms first, time_ms last,
                     struct str data)
{
    static time_ms t[XOR_CHUNK_SAMPLES_MAX];
    static double v[XOR_CHUNK_SAMPLES_MAX];
    struct sums *sums = context;
    size_t n = 0;
    (void)first;
    (void)last;
    sums->chunks++;
    if (encoding == CHUNK_XOR)
        xor_chunk_decode(data, t, v, XOR_CHUNK_SAMPLES_MAX, &n, NULL);
    sums->samples += n;
}

static void on_samples(void *context, const time_ms *t, const double *v, size_t n)
{
    struct sums *sums = context;
    (void)t;
    (void)v;
    invariant(n > 0 && n <= REMOTE_READ_BATCH);
    sums->samples += n;
}

static struct sums stream(struct str bytes, size_t cut, enum err *ret)
{
    struct sums sums = {0};
    struct remote_read_sink sink = {&sums, on_series, on_chunk, on_samples};
    struct remote_read_stream *x = remote_read_stream_new(&sink);
    enum err code = remote_read_stream_feed(x, (struct str){bytes.p, cut}, NULL);
    if (!code)
        code = remote_read_stream_feed(x, (struct str){bytes.p + cut, bytes.n - cut}, NULL);
    if (!code)
        code = remote_read_stream_finish(x, NULL);
    remote_read_stream_free(x);
    *ret = code;
    return sums;
}

static void same_in_two(struct str bytes, size_t cut)
{
    enum err a, b;
    struct sums whole = stream(bytes, bytes.n, &a), two = stream(bytes, cut, &b);
    invariant(a == b && memcmp(&whole, &two, sizeof whole) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    struct str bytes = {(const char *)data + 2, size - 2};
    struct sums sums = {0};
    struct remote_read_sink sink = {&sums, on_series, on_chunk, on_samples};
    struct strbuf built = {0};
    if (data[0] % 3 == 0) {
        same_in_two(bytes, bytes.n * data[1] / 255);
        remote_read_samples(bytes, &sink, NULL, NULL);
    } else if (data[0] % 3 == 1) {
        uint32_t crc = crc32c(0, bytes);
        protobuf_put_varint(&built, bytes.n);
        for (int shift = 24; shift >= 0; shift -= 8)
            strbuf_addc(&built, (char)(crc >> shift));
        strbuf_add(&built, bytes);
        same_in_two(strbuf_str(&built), built.n * data[1] / 255);
    } else {
        snappy_block_encode(bytes, &built);
        remote_read_samples(strbuf_str(&built), &sink, NULL, NULL);
    }
    strbuf_release(&built);
    return 0;
}
