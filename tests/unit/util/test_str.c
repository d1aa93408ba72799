#include "../../lib/unit.h"
#include "util/error.h"
#include "util/str.h"

static void shorter_texts_order_before_longer_ones_with_the_same_head(void **state)
{
    (void)state;
    assert_true(str_cmp(STR("a"), STR("ab")) < 0);
    assert_true(str_cmp(STR("b"), STR("ab")) > 0);
    assert_true(str_cmp(STR("-"), STR("")) > 0);
    assert_true(str_cmp(STR("\xff"), STR("a")) > 0); /* bytes, not chars */
    assert_true(str_cmp(STR_NONE, STR_NONE) == 0);
    assert_true(str_eq_nocase(STR("GPU-1"), STR("gpu-1")));
    assert_false(str_eq_nocase(STR("GPU-1"), STR("gpu-12")));
    assert_true(str_starts(STR("nvidia_com_gpu"), STR("nvidia_com_")));
    assert_false(str_starts(STR("nvidia"), STR("nvidia_com_")));
}

static void whole_decimals_only_are_numbers(void **state)
{
    (void)state;
    long long value = 5;
    static const char *const bad[] = {"",
                                      "-",
                                      "+5",
                                      " 5",
                                      "5 ",
                                      "5.0",
                                      "0x5",
                                      "5e3",
                                      "five",
                                      "9223372036854775808",
                                      "-9223372036854775809",
                                      "99999999999999999999999999"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (str_to_i64(str_of(bad[i]), &value))
            fail_msg("'%s' is taken", bad[i]);
    assert_false(str_to_i64((struct str){"5\0006", 3}, &value));
    assert_int_equal(value, 5);
    assert_true(str_to_i64(STR("-12"), &value));
    assert_int_equal(value, -12);
    assert_true(str_to_i64(STR("9223372036854775807"), &value));
    assert_int_equal(value, INT64_MAX);
    assert_true(str_to_i64((struct str){"123", 2}, &value));
    assert_int_equal(value, 12);
}

static void globs_take_stars_marks_and_sets(void **state)
{
    (void)state;
    assert_true(str_glob(STR("team-*"), STR("team-a")));
    assert_true(str_glob(STR("*"), STR("")));
    assert_true(str_glob(STR("a*"), STR("a/b"))); /* no character is special to a star */
    assert_true(str_glob(STR("*"), STR(".hidden")));
    assert_true(str_glob(STR("gpu-[0-3]"), STR("gpu-2")));
    assert_false(str_glob(STR("gpu-?"), STR("gpu-10")));
}

static void a_buffer_grows_and_keeps_its_nul(void **state)
{
    (void)state;
    struct strbuf buf = {0};
    assert_int_equal(strbuf_str(&buf).n, 0);
    for (int i = 0; i < 1000; i++)
        strbuf_addf(&buf, "%d,", i);
    strbuf_addc(&buf, 'x');
    strbuf_add(&buf, STR("\0y"));
    assert_int_equal(buf.n, 10 * 2 + 90 * 3 + 900 * 4 + 3);
    assert_int_equal(buf.text[buf.n], 0);
    strbuf_clear(&buf);
    assert_string_equal(strbuf_str(&buf).p, "");
    strbuf_release(&buf);
    assert_null(buf.text);
}

static void an_empty_label_is_none(void **state)
{
    (void)state;
    struct label labels[] = {{STR("pod"), STR("")}, {STR("gpu"), STR("0")}};
    assert_int_equal(labels_get(labels, 2, STR("pod")).n, 0);
    assert_int_equal(labels_get(labels, 2, STR("node")).n, 0);
    assert_string_equal(labels_get(labels, 2, STR("gpu")).p, "0");
}

static void context_goes_in_front_of_an_error(void **state)
{
    (void)state;
    struct error err;
    assert_int_equal(error_set(&err, ERR_PARSE, "line %d", 3), ERR_PARSE);
    assert_int_equal(error_prefix(&err, "%s", "prices.csv"), ERR_PARSE);
    assert_string_equal(err.text, "prices.csv: line 3");
    assert_int_equal(error_set(NULL, ERR_IO, "x"), ERR_IO);
    char *text = malloc(2 * ERROR_TEXT_MAX);
    memset(text, 'a', 2 * ERROR_TEXT_MAX);
    text[2 * ERROR_TEXT_MAX - 1] = 0;
    error_set(&err, ERR_IO, "%s", text);
    error_prefix(&err, "%s", text);
    assert_int_equal(strlen(err.text), ERROR_TEXT_MAX - 1);
    free(text);
}

static void an_arena_gives_aligned_memory_and_takes_it_back_at_once(void **state)
{
    (void)state;
    struct arena arena = {0};
    for (size_t i = 1; i < 2000; i += 7) {
        char *p = arena_zalloc(&arena, i * 100);
        assert_int_equal((uintptr_t)p % 16, 0);
        assert_int_equal(p[0] + p[i * 100 - 1], 0);
        memset(p, 'x', i * 100);
    }
    assert_true(arena.used > 2000000);
    arena_clear(&arena);
    assert_int_equal(arena.used, 0);
    assert_string_equal(str_keep(&arena, STR("kept")).p, "kept");
    arena_release(&arena);
    arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shorter_texts_order_before_longer_ones_with_the_same_head),
        cmocka_unit_test(whole_decimals_only_are_numbers),
        cmocka_unit_test(globs_take_stars_marks_and_sets),
        cmocka_unit_test(a_buffer_grows_and_keeps_its_nul),
        cmocka_unit_test(an_empty_label_is_none),
        cmocka_unit_test(context_goes_in_front_of_an_error),
        cmocka_unit_test(an_arena_gives_aligned_memory_and_takes_it_back_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
