#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#include "wire/number.h"

static void same_as_strtod(const char *text)
{
    double v, expected = strtod(text, NULL), quick;
    if (!number_parse(str_of(text), &v))
        fail_msg("%s is refused", text);
    if (memcmp(&v, &expected, sizeof v) != 0)
        fail_msg("%s is %a, expected %a", text, v, expected);
    const char *end = number_scan(text, &quick);
    if (end && *end == 0 && memcmp(&quick, &expected, sizeof v) != 0)
        fail_msg("%s is %a in the short form, expected %a", text, quick, expected);
}

static void hard_numbers_are_the_nearest_double(void **state)
{
    (void)state;
    static const char *const texts[] = {"0",
                                        "-0",
                                        "1",
                                        "41",
                                        "42.0E0",
                                        "+4.3e+01",
                                        "12.47",
                                        ".5",
                                        "5.",
                                        "1e22",
                                        "1e23",
                                        "1e-22",
                                        "9007199254740992",
                                        "9007199254740993",
                                        "9007199254740993.0",
                                        "9007199254740992e22",
                                        "1.7976931348623157e308",
                                        "1.7976931348623159e308",
                                        "4.9e-324",
                                        "2.4e-324",
                                        "1e400",
                                        "1e-400",
                                        "1e99999999999",
                                        "0e99999999999",
                                        "0.000000000000000000000001",
                                        "123456789012345678901234567890",
                                        "0.1000000000000000055511151231257827",
                                        "2.2250738585072011e-308",
                                        "140737488355328.0",
                                        "9223372036854775792",
                                        "1.8e+13",
                                        "8.41e21",
                                        "4294967295",
                                        "6.02214076e23",
                                        "0.30000000000000004",
                                        "1780272000.123",
                                        "000000000000000000000000000001.5",
                                        "100000000000000000000000000000000000000000e-41",
                                        "0.00000000000000000000000000000000000000001234",
                                        "179769313486231580793e289"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        same_as_strtod(texts[i]);
}

static void random_numbers_are_the_nearest_double(void **state)
{
    (void)state;
    unsigned seed = (unsigned)time(NULL);
    print_message("seed %u\n", seed);
    for (int i = 0; i < 200000; i++) {
        char text[64];
        uint64_t bits =
            (uint64_t)rand_r(&seed) << 33 ^ (uint64_t)rand_r(&seed) << 11 ^ (uint64_t)rand_r(&seed);
        double v;
        memcpy(&v, &bits, sizeof v);
        if (!isfinite(v) || i % 2)
            v = (double)rand_r(&seed) / (double)(1 + rand_r(&seed) % 100000);
        snprintf(text, sizeof text, i % 3 ? "%.*g" : "%.*e", 1 + rand_r(&seed) % 20, v);
        same_as_strtod(text);
    }
}

/* Halfway between two doubles, and one digit to either side. */
static void ties_round_to_even(void **state)
{
    (void)state;
    unsigned seed = (unsigned)time(NULL);
    print_message("seed %u\n", seed);
    for (int i = 0; i < 20000; i++) {
        uint64_t whole =
            (UINT64_C(1) << 53 | (uint64_t)rand_r(&seed) << 20) + (unsigned)rand_r(&seed) % 5000;
        int shift = rand_r(&seed) % 9;
        for (int by = -1; by <= 1; by++) {
            char text[64];
            uint64_t digits = ((whole << 1 | 1) << shift) + (uint64_t)by;
            snprintf(text, sizeof text, "%llu", (unsigned long long)digits);
            same_as_strtod(text);
            snprintf(text, sizeof text, "%llu.5", (unsigned long long)(whole + (unsigned)by));
            same_as_strtod(text);
        }
    }
}

static void what_is_no_number_is_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {"",     " ",     "-",   "+",      ".",      "-.",
                                        "e5",   "1e",    "1e+", "1e5.5",  "0x10",   "1_000",
                                        "1,5",  "--1",   "1 ",  " 1",     "twelve", "infinit",
                                        "nan1", "1.2.3", "1f",  "NaN(1)", "0x1p3"};
    double v;
    time_ms t;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        if (number_parse(str_of(texts[i]), &v))
            fail_msg("'%s' is %a", texts[i], v);
        assert_false(number_parse_seconds(str_of(texts[i]), &t));
    }
    char text[NUMBER_TEXT_MAX + 2];
    memset(text, '1', sizeof text);
    assert_true(number_parse((struct str){text, NUMBER_TEXT_MAX}, &v) && isinf(v));
    assert_false(number_parse((struct str){text, NUMBER_TEXT_MAX + 1}, &v));
}

static void words_are_numbers_too(void **state)
{
    (void)state;
    double v;
    assert_true(number_parse(STR("NaN"), &v) && isnan(v));
    assert_true(number_parse(STR("nan"), &v) && isnan(v));
    assert_true(number_parse(STR("+Inf"), &v) && isinf(v) && v > 0);
    assert_true(number_parse(STR("-inf"), &v) && isinf(v) && v < 0);
    assert_true(number_parse(STR("Infinity"), &v) && isinf(v));
}

static void seconds_are_rounded_to_ms(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        time_ms t;
    } cases[] = {{"0", 0},
                 {"1", 1000},
                 {"-1", -1000},
                 {"1.0004", 1000},
                 {"1.0005", 1001},
                 {"-1.0005", -1001},
                 {"1.00049999999999999999999999", 1000},
                 {"0.0004", 0},
                 {"1780272000.123", 1780272000123},
                 {"1.780272e9", 1780272000000},
                 {"1e-300", 0},
                 {"5e-4", 1},
                 {"49e-5", 0},
                 {"0e400", 0},
                 {"4611686018427387", 4611686018427387000}};
    time_ms t;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (!number_parse_seconds(str_of(cases[i].text), &t) || t != cases[i].t)
            fail_msg("%s is %lld", cases[i].text, (long long)t);
    }
    assert_false(number_parse_seconds(STR("4611686018427388"), &t)); /* beyond TIME_MAX */
    assert_false(number_parse_seconds(STR("1e300"), &t));
    assert_false(number_parse_seconds(STR("-1e99999999999"), &t));
    assert_false(number_parse_seconds(STR("NaN"), &t));
    assert_false(number_parse_seconds(STR("Inf"), &t));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hard_numbers_are_the_nearest_double),
        cmocka_unit_test(random_numbers_are_the_nearest_double),
        cmocka_unit_test(ties_round_to_even),
        cmocka_unit_test(what_is_no_number_is_refused),
        cmocka_unit_test(words_are_numbers_too),
        cmocka_unit_test(seconds_are_rounded_to_ms),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
