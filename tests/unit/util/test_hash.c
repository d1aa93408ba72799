/* The hash that tables know texts by: the same on every processor, another under another secret. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "util/hash.h"

static void fill(unsigned char *bytes, size_t n, uint64_t seed)
{
    for (size_t i = 0; i < n; i++) {
        seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
        bytes[i] = (unsigned char)(seed >> 56);
    }
}

static void every_way_gives_the_same(void **state)
{
    (void)state;
    unsigned char secret[HASH_SECRET_BYTES], bytes[2100];
    fill(secret, sizeof secret, 1);
    fill(bytes, sizeof bytes, 2);
    for (size_t n = 0; n <= sizeof bytes - 3; n += n < 300 ? 1 : 37) {
        struct str text = {(const char *)bytes + n % 3, n};
        uint64_t plain = hash_bytes_plain(text, secret);
        assert_int_equal(hash_bytes(text, secret), plain);
#if defined(__x86_64__)
        if (__builtin_cpu_supports("avx2"))
            assert_int_equal(hash_bytes_avx2(text, secret), plain);
        if (__builtin_cpu_supports("avx512f"))
            assert_int_equal(hash_bytes_avx512(text, secret), plain);
#endif
    }
}

static void a_bit_of_text_or_secret_changes_it(void **state)
{
    (void)state;
    unsigned char secret[HASH_SECRET_BYTES], bytes[400];
    fill(secret, sizeof secret, 3);
    fill(bytes, sizeof bytes, 4);
    struct str text = {(const char *)bytes, sizeof bytes};
    uint64_t before = hash_bytes(text, secret);
    for (size_t i = 0; i < sizeof bytes; i++) {
        bytes[i] ^= 1;
        assert_true(hash_bytes(text, secret) != before);
        bytes[i] ^= 1;
    }
    secret[20] ^= 1;
    assert_true(hash_bytes(text, secret) != before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_way_gives_the_same),
        cmocka_unit_test(a_bit_of_text_or_secret_changes_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
