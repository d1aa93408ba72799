#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "util/config_file.h"

static struct error error;

static struct config_file *parsed(const char *text)
{
    struct config_file *file = NULL;
    if (config_file_parse("c.yaml", str_of(text), &file, &error))
        fail_msg("%s", error.text);
    return file;
}

static const char *refused(const char *text)
{
    struct config_file *file = NULL;
    error.text[0] = 0;
    if (config_file_parse("c.yaml", str_of(text), &file, &error) == ERR_OK)
        fail_msg("taken: %s", text);
    return error.text;
}

static void a_tree_with_lines_and_columns(void **state)
{
    (void)state;
    struct config_file *file = parsed("# first\nprices:\n  files: [a.csv, 'b.csv']\n  none: ~\n");
    struct config_node root = config_root(file), prices = config_get(root, STR("prices"));
    struct config_node files = config_get(prices, STR("files"));
    assert_int_equal(config_kind(root), CONFIG_MAP);
    assert_int_equal(config_kind(files), CONFIG_LIST);
    assert_int_equal(config_count(files), 2);
    assert_true(str_eq(config_text(config_item(files, 1)), STR("b.csv")));
    assert_int_equal(config_line(config_item(files, 1)), 3);
    assert_int_equal(config_column(config_item(files, 1)), 18);
    assert_int_equal(config_kind(config_get(prices, STR("none"))), CONFIG_NOTHING);
    assert_int_equal(config_kind(config_get(prices, STR("absent"))), CONFIG_NOTHING);
    config_error(config_item(files, 0), &error, "no such file");
    assert_string_equal(error.text, "c.yaml:3:11: no such file");
    config_file_free(file);
}

static void json_is_read_as_it_is(void **state)
{
    (void)state;
    struct config_file *file =
        parsed("{\n \"a\": {\"n1\": \"3.6\"},\n \"b\": null, \"c\": [79]\n}");
    struct config_node root = config_root(file);
    assert_true(str_eq(config_text(config_get(config_get(root, STR("a")), STR("n1"))), STR("3.6")));
    assert_int_equal(config_kind(config_get(root, STR("b"))), CONFIG_NOTHING);
    config_file_free(file);
}

static void a_byte_order_mark_is_passed_over(void **state)
{
    (void)state;
    struct config_file *file = parsed("\xef\xbb\xbf"
                                      "a: 1\n");
    assert_true(str_eq(config_text(config_get(config_root(file), STR("a"))), STR("1")));
    config_file_free(file);
}

static void an_empty_file_has_no_root(void **state)
{
    (void)state;
    struct config_file *file = parsed("# nothing\n");
    assert_int_equal(config_kind(config_root(file)), CONFIG_NOTHING);
    assert_int_equal(config_count(config_root(file)), 0);
    config_file_free(file);
}

static void what_is_no_yaml_is_refused_with_its_place(void **state)
{
    (void)state;
    assert_ptr_equal(strstr(refused("a: [1, 2\nb: 3\n"), "c.yaml:2:"), error.text);
    assert_string_equal(refused("a: 1\nb: 2\na: 3\n"),
                        "c.yaml:3:1: key 'a' stands here twice: keep one of them");
    assert_string_equal(refused("[a, b]: 1\n"), "c.yaml:1:1: a key has to be a plain text");
    assert_string_equal(refused("a: 1\n---\nb: 2\n"),
                        "c.yaml:3:1: a second document begins: keep one in a file");
    assert_non_null(strstr(refused("a: \xff\xfe"), "c.yaml:"));
}

static void deep_nesting_is_refused_and_aliases_do_not_grow(void **state)
{
    (void)state;
    char deep[2 * 100 + 1];
    memset(deep, '[', 100);
    memset(deep + 100, ']', 100);
    deep[200] = 0;
    assert_string_equal(refused(deep), "c.yaml:1:33: nested deeper than 32 levels");
    char *hostile = mem_alloc(CONFIG_FILE_MAX + 1); /* takes libyaml minutes */
    memset(hostile, '[', CONFIG_FILE_MAX);
    hostile[CONFIG_FILE_MAX] = 0;
    assert_string_equal(refused(hostile), "c.yaml:1:33: nested deeper than 32 levels");
    for (size_t i = 0; i < CONFIG_FILE_MAX; i++)
        hostile[i] = "- &a x\n"[i % 7];
    assert_string_equal(refused(hostile), "c.yaml:1001:3: more than 1000 anchors");
    for (size_t i = 0; i < CONFIG_FILE_MAX; i++)
        hostile[i] = "%TAG !a! b\n"[i % 11];
    assert_string_equal(refused(hostile), "c.yaml: more than 100 lines begin with %");
    free(hostile);
    struct config_file *file = parsed("a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\nd: &d [*d]\n");
    assert_int_equal(config_count(config_get(config_root(file), STR("c"))), 2);
    config_file_free(file);
}

static void an_unknown_key_names_the_nearest(void **state)
{
    (void)state;
    static const char *const keys[] = {"prices", "owners", "types"};
    struct config_file *file = parsed("\n\n\n  pricess: 1\n");
    config_unknown_key(config_pair(config_root(file), 0, NULL), keys, 3, &error);
    assert_string_equal(error.text, "c.yaml:4:3: unknown key 'pricess': did you mean 'prices'?");
    config_file_free(file);
    file = parsed("xyzzy: 1\n");
    config_unknown_key(config_pair(config_root(file), 0, NULL), keys, 3, &error);
    assert_string_equal(error.text,
                        "c.yaml:1:1: unknown key 'xyzzy': known here are prices, owners, types");
    config_file_free(file);
}

static void durations_take_units(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        time_ms bare, ms; /* ms -1: refused */
    } cases[] = {
        {"30s", 0, 30000},     {"5m", 0, 300000},
        {"1h30m", 0, 5400000}, {"2d", 0, 172800000},
        {"1w", 0, 604800000},  {"500ms", 0, 500},
        {"1.5h", 0, 5400000},  {"0s", 0, 0},
        {"30", 1000, 30000},   {"0.5", 1000, 500},
        {"30", 0, -1},         {"", 1000, -1},
        {"s", 0, -1},          {"-5s", 0, -1},
        {"5 s", 0, -1},        {"5min", 0, -1},
        {"1h30", 1000, -1},    {"0.0001s", 0, -1},
        {"1e3s", 0, -1},       {"36525d", 0, 36525 * DAY_MS},
        {"36526d", 0, -1},     {"1..5s", 0, -1},
        {".s", 0, -1},         {"99999999999999999999999999999999999999999999d", 0, -1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        time_ms ms = -1;
        bool fits = duration_parse(str_of(cases[i].text), cases[i].bare, &ms);
        if (fits != (cases[i].ms >= 0) || ms != cases[i].ms)
            fail_msg("%s: %lld", cases[i].text, (long long)ms);
    }
}

static void decimals_are_exact_or_refused(void **state)
{
    (void)state;
    int64_t value = -1;
    assert_true(decimal_parse(STR("15.25"), 3, INT64_MAX, &value));
    assert_int_equal(value, 15250);
    assert_true(decimal_parse(STR("7"), 0, 7, &value));
    assert_int_equal(value, 7);
    assert_true(decimal_parse(STR("1.500"), 1, INT64_MAX, &value)); /* zeros say nothing more */
    assert_int_equal(value, 15);
    assert_true(decimal_parse(STR(".5"), 2, INT64_MAX, &value));
    assert_int_equal(value, 50);
    assert_false(decimal_parse(STR("1.25"), 1, INT64_MAX, &value));
    assert_false(decimal_parse(STR("8"), 0, 7, &value));
    assert_false(decimal_parse(STR("0.8"), 1, 7, &value));
    assert_false(decimal_parse(STR("-1"), 1, 7, &value));
    assert_false(decimal_parse(STR(""), 1, 7, &value));
    assert_false(decimal_parse(STR("."), 1, 7, &value));
    assert_false(decimal_parse(STR("1.2.3"), 4, INT64_MAX, &value));
    assert_false(decimal_parse(STR("99999999999999999999"), 0, INT64_MAX, &value));
    assert_true(decimal_parse(STR("9223372036854775807"), 0, INT64_MAX, &value));
    assert_int_equal(value, INT64_MAX);
    assert_false(decimal_parse(STR("9223372036854775808"), 0, INT64_MAX, &value));
}

static void scalars_say_what_would_fit(void **state)
{
    (void)state;
    struct config_file *file = parsed("m: 1,20\nt: yesterday\nd: 30\nr: 110%\nb: maybe\ni: 5000\n");
    struct config_node root = config_root(file);
    int64_t value;
    bool flag;
    assert_int_equal(config_as_money(config_get(root, STR("m")), NANO, &value, &error), ERR_CONFIG);
    assert_string_equal(error.text, "c.yaml:1:4: '1,20' is no price: write it as 12.34");
    config_as_time(config_get(root, STR("t")), &value, &error);
    assert_string_equal(error.text,
                        "c.yaml:2:4: 'yesterday' is no time: write it as 2026-11-30T00:00:00Z");
    config_as_duration(config_get(root, STR("d")), 0, &value, &error);
    assert_string_equal(error.text, "c.yaml:3:4: '30' is no duration: write it as 30s, 5m or 6h");
    config_as_ratio(config_get(root, STR("r")), &value, &error);
    assert_string_equal(error.text, "c.yaml:4:4: '110%' is no ratio: write it as 0.1 or 10%");
    config_as_bool(config_get(root, STR("b")), &flag, &error);
    assert_string_equal(error.text, "c.yaml:5:4: true or false is needed here");
    config_as_int(config_get(root, STR("i")), 0, 4999, &value, &error);
    assert_string_equal(error.text, "c.yaml:6:4: a whole number from 0 to 4999 is needed here");
    config_file_free(file);
}

static void ratios_are_kept_in_nano(void **state)
{
    (void)state;
    struct config_file *file = parsed("[0.1, 10%, 12.5 %, 1, 0, 0.0000000005]");
    static const int64_t wanted[] = {100000000, 100000000, 125000000, NANO, 0};
    for (size_t i = 0; i < 5; i++) {
        int64_t value = -1;
        assert_int_equal(config_as_ratio(config_item(config_root(file), i), &value, &error),
                         ERR_OK);
        assert_int_equal(value, wanted[i]);
    }
    int64_t value;
    assert_int_equal(config_as_ratio(config_item(config_root(file), 5), &value, &error),
                     ERR_CONFIG);
    config_file_free(file);
}

static void a_file_that_is_not_there_says_so(void **state)
{
    (void)state;
    struct config_file *file = NULL;
    assert_int_equal(config_file_read("/nowhere/c.yaml", &file, &error), ERR_IO);
    assert_string_equal(error.text, "cannot open /nowhere/c.yaml: No such file or directory");
    assert_int_equal(config_file_read("/", &file, &error), ERR_IO);
    assert_null(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_tree_with_lines_and_columns),
        cmocka_unit_test(json_is_read_as_it_is),
        cmocka_unit_test(a_byte_order_mark_is_passed_over),
        cmocka_unit_test(an_empty_file_has_no_root),
        cmocka_unit_test(what_is_no_yaml_is_refused_with_its_place),
        cmocka_unit_test(deep_nesting_is_refused_and_aliases_do_not_grow),
        cmocka_unit_test(an_unknown_key_names_the_nearest),
        cmocka_unit_test(durations_take_units),
        cmocka_unit_test(decimals_are_exact_or_refused),
        cmocka_unit_test(scalars_say_what_would_fit),
        cmocka_unit_test(ratios_are_kept_in_nano),
        cmocka_unit_test(a_file_that_is_not_there_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
