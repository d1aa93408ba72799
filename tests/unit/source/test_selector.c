/* Selectors taken apart into matchers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "source/selector.h"

static struct arena arena;

static enum err parse(const char *text, struct selector *ret, struct error *err)
{
    *ret = (struct selector){.n = 0};
    return selector_parse(str_of(text), &arena, ret, err);
}

static void expect(const struct remote_read_matcher *matcher, enum remote_read_match match,
                   const char *name, const char *value)
{
    assert_int_equal(matcher->match, match);
    assert_true(str_eq(matcher->name, str_of(name)));
    assert_true(str_eq(matcher->value, str_of(value)));
}

static void every_operator_is_read(void **state)
{
    (void)state;
    struct selector selector;
    assert_int_equal(parse("a=\"1\", b!=\"2\" ,c=~\"x|y\",d!~'z.*'", &selector, NULL), ERR_OK);
    assert_int_equal(selector.n, 4);
    expect(&selector.items[0], REMOTE_READ_EQ, "a", "1");
    expect(&selector.items[1], REMOTE_READ_NEQ, "b", "2");
    expect(&selector.items[2], REMOTE_READ_RE, "c", "x|y");
    expect(&selector.items[3], REMOTE_READ_NRE, "d", "z.*");
}

static void nothing_is_no_matcher(void **state)
{
    (void)state;
    struct selector selector;
    assert_int_equal(parse("", &selector, NULL), ERR_OK);
    assert_int_equal(selector.n, 0);
    assert_int_equal(parse("  ", &selector, NULL), ERR_OK);
    assert_int_equal(parse("a=\"\",", &selector, NULL), ERR_OK);
    assert_int_equal(selector.n, 1);
    expect(&selector.items[0], REMOTE_READ_EQ, "a", "");
}

static void strings_are_unescaped_as_in_promql(void **state)
{
    (void)state;
    struct selector selector;
    assert_int_equal(parse("a=\"q\\\"\\\\ \\n}\",b=`raw\\d`,c='it\\'s'", &selector, NULL), ERR_OK);
    expect(&selector.items[0], REMOTE_READ_EQ, "a", "q\"\\ \n}");
    expect(&selector.items[1], REMOTE_READ_EQ, "b", "raw\\d");
    expect(&selector.items[2], REMOTE_READ_EQ, "c", "it's");
}

static void what_is_no_selector_is_refused_with_its_place(void **state)
{
    (void)state;
    static const char *const wrong[] = {"a",         "a=",           "a=1",      "a=\"1",
                                        "{a=\"1\"}", "=\"1\"",       "a==\"1\"", "a=\"1\" b=\"2\"",
                                        "9=\"1\"",   "a=\"\\u1234\""};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct selector selector;
        struct error err = {0};
        assert_int_equal(parse(wrong[i], &selector, &err), ERR_USAGE);
        assert_non_null(strstr(err.text, "is no selector"));
    }
}

static void a_selector_has_a_cap(void **state)
{
    (void)state;
    struct strbuf text = {0};
    struct selector selector;
    for (int i = 0; i < SELECTOR_MATCHERS_MAX; i++)
        strbuf_addf(&text, "a%d=\"x\",", i);
    assert_int_equal(parse(text.text, &selector, NULL), ERR_OK);
    strbuf_addf(&text, "more=\"x\"");
    assert_int_equal(parse(text.text, &selector, NULL), ERR_USAGE);
    strbuf_release(&text);
    arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_operator_is_read),
        cmocka_unit_test(nothing_is_no_matcher),
        cmocka_unit_test(strings_are_unescaped_as_in_promql),
        cmocka_unit_test(what_is_no_selector_is_refused_with_its_place),
        cmocka_unit_test(a_selector_has_a_cap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
