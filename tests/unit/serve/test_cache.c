/* Answers that are kept: bounded, by last use, and held by who sends them. */
#include "serve/cache.h"

#include <string.h>

#include "../../lib/unit.h"
#include "serve/http_impl.h"

static struct cached *put(struct cache *cache, const char *key, size_t bytes, char fill)
{
    struct strbuf plain = {0}, gzip = {0};
    for (size_t i = 0; i < bytes; i++)
        strbuf_addc(&plain, fill);
    return cache_put(cache, str_of(key), &plain, &gzip);
}

static void what_was_put_is_got(void **state)
{
    (void)state;
    struct cache *cache = cache_new(1 << 20);
    assert_null(cache_get(cache, STR("a")));
    cached_release(put(cache, "a", 100, 'x'));
    struct cached *got = cache_get(cache, STR("a"));
    assert_non_null(got);
    assert_int_equal(got->plain.n, 100);
    assert_int_equal(got->plain.p[99], 'x');
    assert_null(cache_get(cache, STR("b")));
    cached_release(got);
    struct cache_counts counts;
    cache_counts(cache, &counts);
    assert_int_equal(counts.hits, 1);
    assert_int_equal(counts.misses, 2);
    cache_free(cache);
}

static void what_is_kept_nowhere_lives_while_it_is_held(void **state)
{
    (void)state;
    struct strbuf plain = {0}, gzip = {0};
    strbuf_add(&plain, STR("page"));
    struct cached *one = cached_new(&plain, &gzip), *other = cached_hold(one);
    assert_null(plain.text); /* taken over */
    cached_release(one);
    assert_true(str_eq(other->plain, STR("page")));
    assert_int_equal(other->gzip.n, 0);
    cached_release(other); /* a leak would be told */
}

static void the_oldest_goes_first_and_bytes_stay_below_the_cap(void **state)
{
    (void)state;
    char key[16];
    struct cache *cache = cache_new(100000);
    struct cache_counts counts;
    cached_release(put(cache, "kept", 1000, 'k'));
    for (int i = 0; i < 200; i++) {
        snprintf(key, sizeof key, "%d", i);
        cached_release(put(cache, key, 1000, 'x'));
        cached_release(cache_get(cache, STR("kept")));
        cache_counts(cache, &counts);
        assert_true(counts.bytes <= 100000);
    }
    cached_release(cache_get(cache, STR("kept"))); /* used all the time */
    assert_null(cache_get(cache, STR("0")));
    struct cached *last = cache_get(cache, STR("199"));
    assert_non_null(last);
    cached_release(last);
    cache_free(cache);
}

static void an_answer_that_is_held_outlives_the_cache(void **state)
{
    (void)state;
    struct cache *cache = cache_new(10000);
    struct cached *held = put(cache, "a", 500, 'q');
    for (int i = 0; i < 50; i++) {
        char key[16];
        snprintf(key, sizeof key, "%d", i);
        cached_release(put(cache, key, 500, 'x'));
    }
    assert_null(cache_get(cache, STR("a")));
    cache_free(cache);
    assert_int_equal(held->plain.p[499], 'q');
    cached_release(held);
}

static void what_is_too_large_is_given_and_not_kept(void **state)
{
    (void)state;
    struct cache *cache = cache_new(10000);
    struct cached *large = put(cache, "large", 9000, 'l');
    assert_int_equal(large->plain.n, 9000);
    assert_null(cache_get(cache, STR("large")));
    cached_release(large);
    cache_free(cache);
}

/* ---- gzip ---- */

static void packed_text_unpacks_to_itself(void **state)
{
    (void)state;
    struct random random = random_new();
    for (int round = 0; round < 30; round++) {
        struct strbuf plain = {0}, packed = {0}, back = {0};
        int64_t n = random_below(&random, 200000);
        for (int64_t i = 0; i < n; i++)
            strbuf_addc(&plain, (char)random_below(&random, round % 3 ? 4 : 256));
        http_pack(strbuf_str(&plain), &packed);
        assert_true(packed.n > 0);
        assert_true(gzip_unpack(strbuf_str(&packed), plain.n, &back));
        assert_true(str_eq(strbuf_str(&plain), strbuf_str(&back)));
        if (plain.n) /* neither longer nor shorter than it says */
            assert_false(gzip_unpack(strbuf_str(&packed), plain.n - 1, &back));
        assert_false(gzip_unpack(strbuf_str(&packed), plain.n + 1, &back));
        packed.n /= 2;
        if (plain.n)
            assert_false(gzip_unpack(strbuf_str(&packed), plain.n, &back));
        strbuf_release(&plain);
        strbuf_release(&packed);
        strbuf_release(&back);
    }
}

static void accept_encoding_is_read_as_rfc_9110_says(void **state)
{
    (void)state;
    const struct {
        const char *accept;
        bool gzip;
    } cases[] = {{"", false},
                 {"gzip", true},
                 {"GZIP", true},
                 {"x-gzip", true},
                 {"br, gzip", true},
                 {"gzip;q=0.5, br", true},
                 {"gzip;q=0", false},
                 {"gzip;q=0.0", false},
                 {"gzip; q=0.000", false},
                 {"gzip;q=0.001", true},
                 {"*", true},
                 {"*;q=0", false},
                 {"gzip;q=0, *", false},
                 {"*;q=0, gzip", true},
                 {"identity", false},
                 {"gzipped", false},
                 {"deflate, br", false},
                 {" gzip ", true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (gzip_is_accepted(str_of(cases[i].accept)) != cases[i].gzip)
            fail_msg("'%s'", cases[i].accept);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_put_is_got),
        cmocka_unit_test(what_is_kept_nowhere_lives_while_it_is_held),
        cmocka_unit_test(the_oldest_goes_first_and_bytes_stay_below_the_cap),
        cmocka_unit_test(an_answer_that_is_held_outlives_the_cache),
        cmocka_unit_test(what_is_too_large_is_given_and_not_kept),
        cmocka_unit_test(packed_text_unpacks_to_itself),
        cmocka_unit_test(accept_encoding_is_read_as_rfc_9110_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
