#include "recorded.h"

#include "wire/crc32c.h"
#include "wire/protobuf.h"
#include "wire/remote_read.h"
#include "wire/snappy_block.h"

struct seen {
    int series;        /* the one named last */
    size_t query;      /* of it */
    bool second_query; /* check query 1 instead of 0 */
    size_t at[RECORDED_SERIES];
    size_t calls, samples;
    bool refuse;
};

static bool on_series(void *context, size_t query, const struct label *labels, size_t n)
{
    struct seen *seen = context;
    seen->calls++;
    seen->series = recorded_find(labels, n);
    seen->query = query;
    return !seen->refuse && query == (seen->second_query ? 1 : 0);
}

static void on_samples(void *context, const time_ms *t, const double *v, size_t n)
{
    struct seen *seen = context;
    assert_false(seen->refuse);
    seen->samples += n;
    recorded_check(seen->series, &seen->at[seen->series], t, v, n);
}

static void on_chunk(void *context, enum chunk_encoding encoding, time_ms first, time_ms last,
                     struct str data)
{
    static time_ms t[XOR_CHUNK_SAMPLES_MAX];
    static double v[XOR_CHUNK_SAMPLES_MAX];
    size_t n;
    struct error err;
    assert_int_equal(encoding, CHUNK_XOR);
    assert_int_equal(xor_chunk_decode(data, t, v, XOR_CHUNK_SAMPLES_MAX, &n, &err), ERR_OK);
    assert_true(n > 0 && n == xor_chunk_count(data));
    assert_int_equal(t[0], first);
    assert_int_equal(t[n - 1], last);
    on_samples(context, t, v, n);
}

static struct remote_read_sink sink_of(struct seen *seen)
{
    return (struct remote_read_sink){seen, on_series, on_chunk, on_samples};
}

static void all_were_seen(const struct seen *seen, bool second)
{
    for (size_t i = 0; i < RECORDED_SERIES; i++)
        assert_int_equal(seen->at[i], !second || i == 3 ? recorded[i].n : 0);
}

static int load(void **state)
{
    (void)state;
    recorded_load();
    assert_int_equal(recorded[0].n, 300);
    assert_int_equal(recorded[5].n, 40);
    return 0;
}

static enum err stream(struct str bytes, size_t cut, struct seen *seen,
                       struct remote_read_stats *ret_stats, struct error *err)
{
    struct remote_read_sink sink = sink_of(seen);
    struct remote_read_stream *x = remote_read_stream_new(&sink);
    enum err code = remote_read_stream_feed(x, (struct str){bytes.p, cut}, err);
    if (!code)
        code = remote_read_stream_feed(x, (struct str){bytes.p + cut, bytes.n - cut}, err);
    if (!code)
        code = remote_read_stream_finish(x, err);
    if (ret_stats)
        *ret_stats = *remote_read_stream_stats(x);
    remote_read_stream_free(x);
    return code;
}

static void chunks_of_a_server_are_what_was_loaded(void **state)
{
    (void)state;
    struct strbuf body = test_file("unit/wire/data/recorded.streamed");
    for (int second = 0; second < 2; second++) {
        struct seen seen = {.second_query = second};
        struct remote_read_stats stats;
        struct error err;
        assert_int_equal(stream(strbuf_str(&body), 0, &seen, &stats, &err), ERR_OK);
        all_were_seen(&seen, second);
        assert_int_equal(stats.bytes, body.n);
        assert_int_equal(stats.series, seen.calls);
        assert_int_equal(stats.refused_series, 0);
    }
    strbuf_release(&body);
}

static void a_stream_may_be_cut_anywhere(void **state)
{
    (void)state;
    struct strbuf body = test_file("unit/wire/data/recorded.streamed");
    struct error err;
    for (size_t cut = 1; cut < body.n; cut++) {
        struct seen seen = {0};
        assert_int_equal(stream(strbuf_str(&body), cut, &seen, NULL, &err), ERR_OK);
        all_were_seen(&seen, false);
    }
    struct seen seen = {0};
    struct remote_read_sink sink = sink_of(&seen);
    struct remote_read_stream *x = remote_read_stream_new(&sink);
    for (size_t i = 0; i < body.n; i++)
        assert_int_equal(remote_read_stream_feed(x, (struct str){body.text + i, 1}, &err), ERR_OK);
    assert_int_equal(remote_read_stream_finish(x, &err), ERR_OK);
    remote_read_stream_free(x);
    all_were_seen(&seen, false);
    strbuf_release(&body);
}

static void a_cut_answer_is_an_error_and_keeps_what_came(void **state)
{
    (void)state;
    struct strbuf body = test_file("unit/wire/data/recorded.streamed");
    struct error err;
    size_t whole = 0;
    for (size_t n = 1; n < body.n; n++) {
        struct seen seen = {0};
        enum err code = stream((struct str){body.text, n}, 0, &seen, NULL, &err);
        assert_true(code == ERR_OK || code == ERR_NETWORK); /* OK between two frames */
        whole += code == ERR_OK;
    }
    assert_true(whole > 0 && whole < 20);
    struct seen seen = {0};
    assert_int_equal(stream((struct str){body.text, body.n - 1}, 0, &seen, NULL, &err),
                     ERR_NETWORK);
    all_were_seen(&seen, false); /* what was cut is query 1 */
    strbuf_release(&body);
}

static void a_flipped_bit_is_found(void **state)
{
    (void)state;
    struct strbuf body = test_file("unit/wire/data/recorded.streamed");
    struct error err;
    for (size_t i = 0; i < body.n; i += 7) {
        struct seen seen = {0};
        body.text[i] ^= (char)(1 << (i & 7));
        assert_int_not_equal(stream(strbuf_str(&body), 0, &seen, NULL, &err), ERR_OK);
        body.text[i] ^= (char)(1 << (i & 7));
    }
    strbuf_release(&body);
}

static void an_unwanted_series_is_not_decoded(void **state)
{
    (void)state;
    struct strbuf body = test_file("unit/wire/data/recorded.streamed");
    struct seen seen = {.refuse = true};
    struct remote_read_stats stats;
    struct error err;
    assert_int_equal(stream(strbuf_str(&body), 0, &seen, &stats, &err), ERR_OK);
    assert_true(seen.calls >= RECORDED_SERIES);
    assert_int_equal(seen.samples, 0);
    assert_int_equal(stats.chunks, 0);
    strbuf_release(&body);
}

static void samples_of_a_server_are_what_was_loaded(void **state)
{
    (void)state;
    struct strbuf body = test_file("unit/wire/data/recorded.samples");
    for (int second = 0; second < 2; second++) {
        struct seen seen = {.second_query = second};
        struct remote_read_sink sink = sink_of(&seen);
        struct remote_read_stats stats = {0};
        struct error err;
        assert_int_equal(remote_read_samples(strbuf_str(&body), &sink, &stats, &err), ERR_OK);
        all_were_seen(&seen, second);
        assert_int_equal(stats.samples, seen.samples);
        assert_int_equal(stats.series, RECORDED_SERIES + 1);
    }
    strbuf_release(&body);
}

/* 3 GiB in 100 bytes, in every place where a length stands. */
static void declared_lengths_allocate_nothing(void **state)
{
    (void)state;
    struct error err;
    struct seen seen = {0};
    struct remote_read_sink sink = sink_of(&seen);
    struct strbuf body = {0};
    protobuf_put_varint(&body, UINT64_C(3) << 30);
    strbuf_add(&body,
               STR("xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"));
    assert_int_equal(stream(strbuf_str(&body), 3, &seen, NULL, &err), ERR_LIMIT);
    assert_int_equal(remote_read_samples(strbuf_str(&body), &sink, NULL, &err), ERR_LIMIT);

    strbuf_clear(&body);
    protobuf_put_varint(&body, UINT64_C(200) << 20); /* within the cap, but no such block */
    strbuf_add(&body,
               STR("xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"));
    assert_int_equal(remote_read_samples(strbuf_str(&body), &sink, NULL, &err), ERR_PARSE);

    struct strbuf message = {0}, frame = {0};
    strbuf_add(&message, STR("\x0a")); /* a series of 3 GiB inside a frame that is sound */
    protobuf_put_varint(&message, UINT64_C(3) << 30);
    uint32_t crc = crc32c(0, strbuf_str(&message));
    protobuf_put_varint(&frame, message.n);
    for (int shift = 24; shift >= 0; shift -= 8)
        strbuf_addc(&frame, (char)(crc >> shift));
    strbuf_add(&frame, strbuf_str(&message));
    assert_int_equal(stream(strbuf_str(&frame), 0, &seen, NULL, &err), ERR_PARSE);
    strbuf_release(&body);
    strbuf_release(&message);
    strbuf_release(&frame);
}

/* By hand from prompb/remote.proto and types.proto. */
static void requests_are_what_the_protocol_says(void **state)
{
    (void)state;
    struct remote_read_matcher matchers[] = {
        {REMOTE_READ_EQ, STR("__name__"), STR("up")},
        {REMOTE_READ_NRE, STR("job"), STR("a|b")},
    };
    struct remote_read_query query = {1000, 2000, matchers, 2};
    static const char expected[] = "\x0a\x26"
                                   "\x08\xe8\x07"
                                   "\x10\xd0\x0f"
                                   "\x1a\x10\x08\x00\x12\x08__name__\x1a\x02up"
                                   "\x1a\x0c\x08\x03\x12\x03job\x1a\x03"
                                   "a|b"
                                   "\x12\x02\x01\x00";
    struct strbuf body = {0}, plain = {0};
    struct error err;
    remote_read_request(&query, 1, true, &body);
    assert_int_equal(snappy_block_decode(strbuf_str(&body), 1000, &plain, &err), ERR_OK);
    assert_int_equal(plain.n, sizeof expected - 1);
    assert_memory_equal(plain.text, expected, plain.n);
    strbuf_clear(&body);
    strbuf_clear(&plain);
    remote_read_request(&query, 1, false, &body);
    assert_int_equal(snappy_block_decode(strbuf_str(&body), 1000, &plain, &err), ERR_OK);
    assert_memory_equal(plain.text + plain.n - 3, "\x12\x01\x00", 3);
    strbuf_release(&body);
    strbuf_release(&plain);
}

/* RFC 3720, B.4. */
static void crc32c_is_castagnoli(void **state)
{
    (void)state;
    char bytes[32];
    struct str text = {bytes, sizeof bytes};
    memset(bytes, 0, sizeof bytes);
    assert_int_equal(crc32c(0, text), 0x8a9136aa);
    memset(bytes, 0xff, sizeof bytes);
    assert_int_equal(crc32c(0, text), 0x62a8ab43);
    for (int i = 0; i < 32; i++)
        bytes[i] = (char)i;
    assert_int_equal(crc32c(0, text), 0x46dd794e);
    assert_int_equal(crc32c(0, STR("123456789")), 0xe3069283);
    for (size_t n = 0; n <= 32; n++)
        for (size_t cut = 0; cut <= n; cut++) {
            struct str head = {bytes, cut}, tail = {bytes + cut, n - cut};
            uint32_t whole = crc32c(0, (struct str){bytes, n});
            assert_int_equal(crc32c(crc32c(0, head), tail), whole);
            assert_int_equal(crc32c_by_table(crc32c_by_table(0, head), tail), whole);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chunks_of_a_server_are_what_was_loaded),
        cmocka_unit_test(a_stream_may_be_cut_anywhere),
        cmocka_unit_test(a_cut_answer_is_an_error_and_keeps_what_came),
        cmocka_unit_test(a_flipped_bit_is_found),
        cmocka_unit_test(an_unwanted_series_is_not_decoded),
        cmocka_unit_test(samples_of_a_server_are_what_was_loaded),
        cmocka_unit_test(declared_lengths_allocate_nothing),
        cmocka_unit_test(requests_are_what_the_protocol_says),
        cmocka_unit_test(crc32c_is_castagnoli),
    };
    return cmocka_run_group_tests(tests, load, NULL);
}
