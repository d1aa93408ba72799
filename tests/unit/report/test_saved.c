/* Reading saved reports back: what is read, and that anything else is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

#include "report/saved.h"

#define HEAD                                                                                       \
    "{\"schema\": \"gputally.report/1\", \"window\": {\"from\": \"2026-11-23T00:00:00Z\", "        \
    "\"to\": \"2026-11-30T00:00:00Z\"}, \"recorded\": null, \"currency\": \"USD\", "
#define BY                                                                                         \
    "\"by\": [\"team\"], \"filters\": [{\"key\": \"pool\", \"not\": true, \"value\": \"a\"}], "
#define TOTALS                                                                                     \
    "\"totals\": {\"cost\": \"3.000000000\", \"used\": \"1.000000001\", \"gpu_hours\": 1.5, "      \
    "\"flags\": {\"unpriced\": {\"gpu_hours\": 0.5, \"cost\": \"0.000000000\"}}}, "
#define ROWS                                                                                       \
    "\"rows\": [{\"team\": \"search\", \"gpu_hours\": 1, \"cost\": \"2.000000000\", \"used\": "    \
    "\"1.000000001\"}, {\"team\": null, \"gpu_hours\": 0.5, \"cost\": \"1.000000000\", \"used\": " \
    "\"0.000000000\"}]}"

static enum err read(const char *text, struct diff_side *ret, struct error *err)
{
    return saved_report_read(str_of(text), "old.json", ret, err);
}

static void a_report_is_read_to_the_last_digit(void **state)
{
    (void)state;
    struct diff_side side;
    struct error err = {0};
    if (read(HEAD BY TOTALS ROWS, &side, &err) != ERR_OK)
        fail_msg("%s", err.text);
    assert_int_equal(side.window.to - side.window.from, 7 * DAY_MS);
    assert_int_equal(side.recorded.to, 0);
    assert_string_equal(side.filters.p, "pool!=a");
    assert_string_equal(side.name.p, "old.json");
    assert_true(side.hours_known);
    assert_int_equal(side.total.used, NANO + 1);
    assert_true(side.total.gpu_nano == 3 * NANO / 2);
    assert_true(side.unpriced_nano == NANO / 2);
    assert_int_equal(side.entries_n, 2);
    assert_string_equal(side.entries[0].keys[0].p, "search");
    assert_string_equal(side.entries[1].keys[0].p, "-"); /* not held */
    diff_side_release(&side);
}

static void hours_by_category_mean_nothing(void **state)
{
    (void)state;
    struct diff_side side;
    assert_int_equal(read(HEAD "\"by\": [], \"filters\": [{\"key\": \"cause\", \"not\": false, "
                               "\"value\": \"empty\"}], " TOTALS
                               "\"rows\": [{\"gpu_hours\": 0, \"cost\": \"3.000000000\", \"used\": "
                               "\"1.000000001\"}]}",
                          &side, NULL),
                     ERR_OK);
    assert_false(side.hours_known);
    diff_side_release(&side);
}

static void what_is_no_report_is_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",
        "[]",
        "3",
        "{\"schema\": \"gputally.idle/1\"}",
        "{\"schema\": \"gputally.report/1\"}",
        HEAD "\"by\": \"team\", " TOTALS ROWS,
        HEAD "\"by\": [1], \"filters\": [], " TOTALS ROWS,
        HEAD "\"by\": [\"a\",\"b\",\"c\",\"d\",\"e\",\"f\",\"g\"], \"filters\": [], " TOTALS ROWS,
        HEAD BY ROWS,
        HEAD BY TOTALS "\"rows\": {}}",
        HEAD BY TOTALS "\"rows\": [3]}",
        HEAD BY TOTALS "\"rows\": []}", /* does not add up */
        HEAD BY "\"totals\": {\"cost\": 3, \"used\": \"0\", \"gpu_hours\": 1}, " ROWS,
        HEAD BY "\"totals\": {\"cost\": \"-3\", \"used\": \"0\", \"gpu_hours\": 1}, " ROWS,
        HEAD BY
        "\"totals\": {\"cost\": \"3\", \"used\": \"1.000000001\", \"gpu_hours\": -1}, " ROWS,
        HEAD BY
        "\"totals\": {\"cost\": \"3\", \"used\": \"1.000000001\", \"gpu_hours\": 1e30}, " ROWS,
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct diff_side side;
        struct error err = {0};
        if (read(texts[i], &side, &err) != ERR_PARSE || !strstr(err.text, "old.json"))
            fail_msg("text %zu: %s", i, err.text);
        diff_side_release(&side);
    }
}

static void a_report_that_was_cut_anywhere_is_refused(void **state)
{
    (void)state;
    static const char whole[] = HEAD BY TOTALS ROWS;
    for (size_t n = 0; n < sizeof whole - 1; n++) {
        struct diff_side side;
        assert_int_equal(saved_report_read((struct str){whole, n}, "old.json", &side, NULL),
                         ERR_PARSE);
        diff_side_release(&side);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_report_is_read_to_the_last_digit),
        cmocka_unit_test(hours_by_category_mean_nothing),
        cmocka_unit_test(what_is_no_report_is_refused),
        cmocka_unit_test(a_report_that_was_cut_anywhere_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
