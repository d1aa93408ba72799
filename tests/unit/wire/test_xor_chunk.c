/* Against the encoder of tests/lib, and by hand. The
 * chunks of a real server are in test_remote_read.c. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#include "../../lib/xor_encode.h"
#include "wire/xor_chunk.h"

#define BYTES_MAX ((size_t)2 << 20)

static uint8_t bytes[BYTES_MAX];
static time_ms t[XOR_CHUNK_SAMPLES_MAX], got_t[XOR_CHUNK_SAMPLES_MAX];
static double v[XOR_CHUNK_SAMPLES_MAX], got_v[XOR_CHUNK_SAMPLES_MAX];

/* The chunk of samples 0..n. */
static struct str encode(size_t n)
{
    struct xor_encoder to = {bytes, 0};
    memset(bytes, 0, sizeof bytes);
    return xor_encode(&to, t, v, n);
}

/* Decode from a copy that ends where the chunk does, so that a sanitizer sees every byte too far.
 */
static enum err decode(struct str chunk, size_t room, size_t *ret_n)
{
    struct error err;
    char *copy = malloc(chunk.n ? chunk.n : 1);
    memcpy(copy, chunk.p, chunk.n);
    enum err code = xor_chunk_decode((struct str){copy, chunk.n}, got_t, got_v, room, ret_n, &err);
    free(copy);
    return code;
}

static void same(size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (got_t[i] != t[i] || xor_bits(got_v[i]) != xor_bits(v[i]))
            fail_msg("sample %zu: %lld %a, expected %lld %a", i, (long long)got_t[i], got_v[i],
                     (long long)t[i], v[i]);
    }
}

static void round_trip(size_t n)
{
    size_t got;
    assert_int_equal(decode(encode(n), n, &got), ERR_OK);
    assert_int_equal(got, n);
    same(n);
}

static uint64_t seed;
static uint64_t next(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed;
}

/* tsdb/docs/format/chunks.md, worked by hand: t 1, 16, 31; v 0, 0, 1.0 (0x3ff0...). */
static void a_chunk_by_hand(void **state)
{
    (void)state;
    /* count 3, varint 1 = 2, eight zero bytes, delta 15; value same: 0; dod 0: 0; value new
     * window: 11, leading 2: 00010, width 10: 001010, ten ones. */
    static const char chunk[] = "\0\3\2\0\0\0\0\0\0\0\0\x0f"
                                "\x31"  /* 0 0 11 0001 */
                                "\x15"  /* 0 001010 1 */
                                "\xff"  /* 1111 1111 */
                                "\x80"; /* 1 */
    size_t n;
    assert_int_equal(decode((struct str){chunk, sizeof chunk - 1}, 3, &n), ERR_OK);
    assert_int_equal(n, 3);
    assert_int_equal(got_t[0], 1);
    assert_int_equal(got_t[1], 16);
    assert_int_equal(got_t[2], 31);
    assert_true(got_v[0] == 0 && got_v[1] == 0 && got_v[2] == 1);
}

static void chunks_of_every_kind_come_back(void **state)
{
    (void)state;
    static const double special[] = {0, -0.0, 1, -1, 97, 0.1, 1e300, 5e-324, 140737488355328.0};
    for (size_t n = 0; n <= 130; n++) {
        for (size_t i = 0; i < n; i++) {
            t[i] = 1780272000000 + 30000 * (time_ms)i;
            v[i] = 42;
        }
        round_trip(n);
        for (size_t i = 0; i < n; i++)
            v[i] = special[i % 9];
        round_trip(n);
    }
    v[3] = NAN;
    v[4] = INFINITY;
    v[5] = -INFINITY;
    round_trip(100);
}

static void every_width_of_a_time_step_comes_back(void **state)
{
    (void)state;
    static const int64_t steps[] = {
        0,     1,      -1,     8191,   8192,   8193,   -8191,   -8192,   65535,           65536,
        65537, -65535, -65536, 524287, 524288, 524289, -524287, -524288, INT64_C(1) << 40};
    size_t n = sizeof steps / sizeof *steps;
    t[0] = -5;
    t[1] = 30000000;
    int64_t delta = t[1] - t[0];
    for (size_t i = 0; i < n; i++) {
        delta += steps[i];
        t[i + 2] = t[i + 1] + delta;
    }
    for (size_t i = 0; i < n + 2; i++)
        v[i] = (double)i;
    round_trip(n + 2);
}

static void random_chunks_come_back(void **state)
{
    (void)state;
    seed = (uint64_t)time(NULL) * 2654435761u + 1;
    print_message("seed %llu\n", (unsigned long long)seed);
    for (int round = 0; round < 3000; round++) {
        size_t n = 1 + next() % 300;
        unsigned calm = next() % 8, width = next() % 64;
        t[0] = (time_ms)(next() >> 20);
        v[0] = (double)(next() % 100);
        for (size_t i = 1; i < n; i++) {
            time_ms step = next() % 8 >= calm ? 30000 : (time_ms)(next() >> (20 + next() % 44));
            t[i] = t[i - 1] + step;
            uint64_t bits = xor_bits(v[i - 1]) ^ (next() % 8 >= calm ? 0 : next() >> width);
            memcpy(&v[i], &bits, sizeof bits);
        }
        round_trip(n);
    }
}

static void the_largest_chunk_comes_back(void **state)
{
    (void)state;
    seed = 88172645463325252u;
    for (size_t i = 0; i < XOR_CHUNK_SAMPLES_MAX; i++) {
        t[i] = (time_ms)(i * 15000 + next() % 3);
        uint64_t bits = next();
        memcpy(&v[i], &bits, sizeof bits);
    }
    round_trip(XOR_CHUNK_SAMPLES_MAX);
}

static void a_chunk_cut_anywhere_gives_what_is_whole(void **state)
{
    (void)state;
    seed = 42;
    for (size_t i = 0; i < 60; i++) {
        t[i] = (time_ms)(i * 15000 + next() % 3);
        v[i] = (double)(next() % 101);
    }
    struct str chunk = encode(60);
    size_t before = 0, n;
    for (size_t cut = 0; cut < chunk.n; cut++) {
        assert_int_equal(decode((struct str){chunk.p, cut}, 60, &n), ERR_PARSE);
        assert_true(n >= before && n < 60);
        same(n);
        before = n;
    }
    assert_true(before >= 58);
}

static void a_window_beyond_the_value_is_refused(void **state)
{
    (void)state;
    struct xor_encoder to = {bytes, 0};
    memset(bytes, 0, sizeof bytes);
    xor_put(&to, 2, 16);
    xor_put(&to, 0, 8);
    xor_put(&to, 0, 64);
    xor_put(&to, 0, 8);
    xor_put(&to, 3, 2);
    xor_put(&to, 31, 5); /* 31 leading zeros and 63 bits */
    xor_put(&to, 63, 6);
    xor_put(&to, 0, 64);
    size_t n;
    assert_int_equal(decode((struct str){(const char *)bytes, (to.bit + 7) / 8}, 2, &n), ERR_PARSE);
    assert_int_equal(n, 1);
}

static void room_is_checked_before_anything_is_written(void **state)
{
    (void)state;
    size_t n;
    got_t[0] = -77;
    assert_int_equal(decode((struct str){"\xff\xff", 2}, 65534, &n), ERR_LIMIT);
    assert_int_equal(n, 0);
    assert_int_equal(decode((struct str){"\xff\xff", 2}, 65535, &n), ERR_PARSE);
    assert_int_equal(n, 0);
    assert_int_equal(got_t[0], -77);
    assert_int_equal(xor_chunk_count((struct str){"\xff\xff", 2}), 65535);
    assert_int_equal(xor_chunk_count((struct str){"\xff", 1}), 0);
}

static void stale_markers_are_one_nan_only(void **state)
{
    (void)state;
    uint64_t bits = STALE_NAN_BITS;
    memcpy(&v[1], &bits, sizeof bits);
    v[0] = 5;
    v[2] = NAN;
    for (int i = 0; i < 3; i++)
        t[i] = i;
    round_trip(3);
    assert_false(is_stale(got_v[0]));
    assert_true(is_stale(got_v[1]));
    assert_false(is_stale(got_v[2]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_chunk_by_hand),
        cmocka_unit_test(chunks_of_every_kind_come_back),
        cmocka_unit_test(every_width_of_a_time_step_comes_back),
        cmocka_unit_test(random_chunks_come_back),
        cmocka_unit_test(the_largest_chunk_comes_back),
        cmocka_unit_test(a_chunk_cut_anywhere_gives_what_is_whole),
        cmocka_unit_test(a_window_beyond_the_value_is_refused),
        cmocka_unit_test(room_is_checked_before_anything_is_written),
        cmocka_unit_test(stale_markers_are_one_nan_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
