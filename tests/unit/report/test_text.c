#include "fixture.h"

#include "report/csv.h"
#include "report/text.h"

static void expect_clean(const char *name, size_t n, const char *expected)
{
    struct strbuf out = {0};
    text_clean(&out, (struct str){name, n});
    assert_string_equal(out.text ? out.text : "", expected);
    strbuf_release(&out);
}

static void names_that_are_fine_stay_as_they_are(void **state)
{
    (void)state;
    expect_clean("search", 6, "search");
    expect_clean("Größe-東京", strlen("Größe-東京"), "Größe-東京");
    expect_clean("", 0, "");
}

static void escape_sequences_and_controls_are_shown_not_obeyed(void **state)
{
    (void)state;
    expect_clean("a\x1b[2Jb", 6, "a\\x1b[2Jb");
    expect_clean("a\nb\tc\rd", 7, "a\\x0ab\\x09c\\x0dd");
    expect_clean("a\0b", 3, "a\\x00b");
    expect_clean("\x7f", 1, "\\x7f");
    expect_clean("\xc2\x9b"
                 "31m",
                 5, "\\x9b31m"); /* C1: a CSI in one character */
}

static void text_that_turns_or_hides_is_shown(void **state)
{
    (void)state;
    expect_clean("a\u202eb", 5, "a\\u202eb");
    expect_clean("a\u200bb", 5, "a\\u200bb");
    expect_clean("\ufeffa", 4, "\\ufeffa");
}

static void broken_utf8_is_shown_byte_by_byte(void **state)
{
    (void)state;
    expect_clean("a\xff"
                 "b",
                 3, "a\\xffb");
    expect_clean("\xc0\xaf", 2, "\\xc0\\xaf");          /* overlong */
    expect_clean("\xed\xa0\x80", 3, "\\xed\\xa0\\x80"); /* a surrogate */
    expect_clean("\xe6\x9d", 2, "\\xe6\\x9d");          /* cut */
}

static void width_counts_columns_not_bytes(void **state)
{
    (void)state;
    assert_int_equal(text_width(STR("search")), 6);
    assert_int_equal(text_width(STR("Größe")), 5);
    assert_int_equal(text_width(STR("東京")), 4);
    assert_int_equal(text_width(STR("e\u0301")), 1); /* e and a combining accent */
}

static void shortening_keeps_both_ends(void **state)
{
    (void)state;
    struct strbuf out = {0};
    text_shorten(&out, STR("trainer-5d9f7c-x2x9z"), 11);
    assert_string_equal(out.text, "train…x2x9z");
    strbuf_clear(&out);
    text_shorten(&out, STR("short"), 11);
    assert_string_equal(out.text, "short");
    strbuf_clear(&out);
    text_shorten(&out, STR("東京東京東京"), 6); /* wide characters are never halved */
    assert_string_equal(out.text, "東…京");
    assert_true(text_width(strbuf_str(&out)) <= 6);
    strbuf_release(&out);
}

static void expect_money(money_t amount, int places, const char *currency, const char *expected)
{
    struct strbuf out = {0};
    text_money(&out, amount, places, currency);
    assert_string_equal(out.text, expected);
    strbuf_release(&out);
}

static void money_has_thousands_and_rounds_half_up(void **state)
{
    (void)state;
    expect_money(INT64_C(16128499999999), 0, "USD", "$16,128");
    expect_money(INT64_C(16128500000000), 0, "USD", "$16,129");
    expect_money(INT64_C(6450000000), 2, "USD", "$6.45");
    expect_money(dollars(1234567), 2, "USD", "$1,234,567.00");
    expect_money(dollars(1234), 0, "CHF", "1,234 CHF");
    expect_money(dollars(1234), 0, "EUR", "€1,234");
}

static void a_little_money_is_not_zero(void **state)
{
    (void)state;
    expect_money(1, 2, "USD", "<$0.01");
    expect_money(1, 0, "USD", "<$1");
    expect_money(0, 2, "USD", "$0");
    expect_money(INT64_C(5000000), 2, "USD", "$0.01"); /* half a cent rounds up */
}

static void expect_percent(int64_t nano, int places, const char *expected)
{
    struct strbuf out = {0};
    text_percent(&out, nano, places);
    assert_string_equal(out.text, expected);
    strbuf_release(&out);
}

static void percent_says_none_and_all_only_of_none_and_all(void **state)
{
    (void)state;
    expect_percent(0, 0, "0 %");
    expect_percent(1, 0, "<1 %");
    expect_percent(614900000, 0, "61 %");
    expect_percent(615000000, 0, "62 %");
    expect_percent(999999999, 0, ">99 %");
    expect_percent(999999999, 1, ">99.9 %");
    expect_percent(994000000, 1, "99.4 %");
    expect_percent(1000000000, 1, "100 %");
}

static void machine_numbers_have_no_separators_and_no_idle_zeros(void **state)
{
    (void)state;
    struct strbuf out = {0};
    text_nano_plain(&out, (wide_t)16128 * NANO);
    strbuf_addc(&out, ' ');
    text_nano_plain(&out, 250000000);
    strbuf_addc(&out, ' ');
    text_nano_plain(&out, 1);
    strbuf_addc(&out, ' ');
    text_nano_plain(&out, 0);
    assert_string_equal(out.text, "16128 0.25 0.000000001 0");
    strbuf_release(&out);
}

static void csv_fields_are_quoted_where_they_must_be(void **state)
{
    (void)state;
    static const struct {
        const char *text, *expected;
    } cases[] = {
        {"plain", "plain"},
        {"a,b", "\"a,b\""},
        {"say \"hi\"", "\"say \"\"hi\"\"\""},
        {"two\nlines", "\"two\nlines\""},
        {"=1+1", "'=1+1"},
        {"+1", "'+1"},
        {"@x", "'@x"},
        {"-1", "'-1"},
        {"-", "-"},
        {"\tx", "'\tx"},
        {"=a,b", "\"'=a,b\""},
        {"", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct strbuf out = {0};
        strbuf_add(&out, STR_NONE);
        csv_text(&out, str_of(cases[i].text));
        assert_string_equal(out.text ? out.text : "", cases[i].expected);
        strbuf_release(&out);
    }
}

static void json_strings_are_valid_whatever_the_name(void **state)
{
    (void)state;
    struct strbuf out = {0};
    text_json(&out, (struct str){"a\"b\\c\n\x01\xff", 8});
    assert_string_equal(out.text, "a\\\"b\\\\c\\n\\u0001\xef\xbf\xbd");
    strbuf_release(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_that_are_fine_stay_as_they_are),
        cmocka_unit_test(escape_sequences_and_controls_are_shown_not_obeyed),
        cmocka_unit_test(text_that_turns_or_hides_is_shown),
        cmocka_unit_test(broken_utf8_is_shown_byte_by_byte),
        cmocka_unit_test(width_counts_columns_not_bytes),
        cmocka_unit_test(shortening_keeps_both_ends),
        cmocka_unit_test(money_has_thousands_and_rounds_half_up),
        cmocka_unit_test(a_little_money_is_not_zero),
        cmocka_unit_test(percent_says_none_and_all_only_of_none_and_all),
        cmocka_unit_test(machine_numbers_have_no_separators_and_no_idle_zeros),
        cmocka_unit_test(csv_fields_are_quoted_where_they_must_be),
        cmocka_unit_test(json_strings_are_valid_whatever_the_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
