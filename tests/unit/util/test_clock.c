#include "../../lib/unit.h"

#include <math.h>

#include "util/clock.h"

#define DAY_2026_11_30 INT64_C(1795996800000)

static time_ms parsed(const char *text)
{
    time_ms t = -1;
    if (!time_parse(str_of(text), &t))
        fail_msg("%s is refused", text);
    return t;
}

static void rfc_3339_is_read_to_the_ms(void **state)
{
    (void)state;
    assert_int_equal(parsed("1970-01-01T00:00:00Z"), 0);
    assert_int_equal(parsed("2026-11-30T00:00:00Z"), DAY_2026_11_30);
    assert_int_equal(parsed("2026-11-30t01:02:03z"), DAY_2026_11_30 + 3723000);
    assert_int_equal(parsed("2026-11-30 01:02:03.4Z"), DAY_2026_11_30 + 3723400);
    assert_int_equal(parsed("2026-11-30T01:02:03.456789Z"), DAY_2026_11_30 + 3723456);
    assert_int_equal(parsed("2026-11-30T05:30:00+05:30"), DAY_2026_11_30);
    assert_int_equal(parsed("2026-11-29T16:00:00-08:00"), DAY_2026_11_30);
    assert_int_equal(parsed("1969-12-31T23:59:59.5Z"), -500);
}

static void a_bare_date_is_midnight_utc(void **state)
{
    (void)state;
    assert_int_equal(parsed("2026-11-30"), DAY_2026_11_30);
    assert_int_equal(parsed("2024-02-29"), INT64_C(1709164800000));
}

static void what_is_no_time_is_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {"",
                                      "2026",
                                      "2026-13-01",
                                      "2026-00-10",
                                      "2026-02-29",
                                      "2100-02-29",
                                      "2026-04-31",
                                      "2026-1-01",
                                      "26-01-01",
                                      "2026-11-30T",
                                      "2026-11-30T00:00:00",
                                      "2026-11-30T24:00:00Z",
                                      "2026-11-30T00:60:00Z",
                                      "2026-11-30T00:00:61Z",
                                      "2026-11-30T00:00:00Zx",
                                      "2026-11-30T00:00:00.Z",
                                      "2026-11-30T00:00:00+5:00",
                                      "2026-11-30T00:00:00+24:00",
                                      "2026-11-30T00:00:00+00:60",
                                      "2026-11-30x00:00:00Z",
                                      "-026-11-30",
                                      "yesterday"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        time_ms t = 42;
        if (time_parse(str_of(bad[i]), &t))
            fail_msg("%s is taken", bad[i]);
        assert_int_equal(t, 42);
    }
}

static void times_are_written_in_utc_with_ms_only_where_there_are_any(void **state)
{
    (void)state;
    char buf[TIME_TEXT_MAX];
    assert_string_equal(time_format(DAY_2026_11_30, buf), "2026-11-30T00:00:00Z");
    assert_string_equal(time_format(DAY_2026_11_30 + 7, buf), "2026-11-30T00:00:00.007Z");
    assert_string_equal(time_format(-1, buf), "1969-12-31T23:59:59.999Z");
    time_format(TIME_MIN, buf); /* whatever they say, they fit */
    time_format(TIME_MAX, buf);
}

static void a_written_time_reads_back(void **state)
{
    (void)state;
    struct random random = random_new();
    for (int i = 0; i < 5000; i++) {
        char buf[TIME_TEXT_MAX];
        time_ms t = random_below(&random, TIME_LAST);
        assert_int_equal(parsed(time_format(t, buf)), t);
    }
}

static void hours_are_half_open_before_the_epoch_too(void **state)
{
    (void)state;
    assert_int_equal(hour_floor(0), 0);
    assert_int_equal(hour_floor(HOUR_MS - 1), 0);
    assert_int_equal(hour_floor(HOUR_MS), HOUR_MS);
    assert_int_equal(hour_floor(-1), -HOUR_MS);
    assert_int_equal(hour_floor(-HOUR_MS), -HOUR_MS);
    assert_int_equal(hour_ceil(0), 0);
    assert_int_equal(hour_ceil(1), HOUR_MS);
    assert_int_equal(hour_ceil(-1), 0);
}

static void seconds_of_a_metric_are_a_time_only_where_a_calendar_has_it(void **state)
{
    (void)state;
    assert_int_equal(time_of_seconds(1795996800), DAY_2026_11_30);
    assert_int_equal(time_of_seconds(0.5), 500);
    assert_int_equal(time_of_seconds(-1), TIME_MIN);
    assert_int_equal(time_of_seconds(1e300), TIME_MIN);
    assert_int_equal(time_of_seconds(NAN), TIME_MIN);
    assert_true(time_is_sane(DAY_2026_11_30));
    assert_true(time_is_sane(-1));
    assert_false(time_is_sane(TIME_MIN));
    assert_false(time_is_sane(TIME_MAX));
    assert_false(time_is_sane(INT64_MIN));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rfc_3339_is_read_to_the_ms),
        cmocka_unit_test(a_bare_date_is_midnight_utc),
        cmocka_unit_test(what_is_no_time_is_refused),
        cmocka_unit_test(times_are_written_in_utc_with_ms_only_where_there_are_any),
        cmocka_unit_test(a_written_time_reads_back),
        cmocka_unit_test(hours_are_half_open_before_the_epoch_too),
        cmocka_unit_test(seconds_of_a_metric_are_a_time_only_where_a_calendar_has_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
