/* Complete days: of a zone, before an instant. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "query/hours.h"

static time_ms at(const char *text)
{
    time_ms t;
    assert_true(time_parse(str_of(text), &t));
    return t;
}

static void days_end_before_the_instant(void **state)
{
    (void)state;
    struct span days[2];
    assert_int_equal(query_complete_days(at("2026-11-30T17:00:00Z"), NULL, 2, days, NULL), ERR_OK);
    assert_int_equal(days[0].from, at("2026-11-28T00:00:00Z"));
    assert_int_equal(days[0].to, at("2026-11-29T00:00:00Z"));
    assert_int_equal(days[1].to, at("2026-11-30T00:00:00Z"));
}

static void a_day_that_just_ended_is_complete(void **state)
{
    (void)state;
    struct span day;
    assert_int_equal(query_complete_days(at("2026-11-30T00:00:00Z"), NULL, 1, &day, NULL), ERR_OK);
    assert_int_equal(day.from, at("2026-11-29T00:00:00Z"));
}

/* Berlin leaves summer time on 2026-10-25: that day has 25 hours. */
static void a_day_of_the_zone_may_have_25_hours(void **state)
{
    (void)state;
    struct span days[2];
    assert_int_equal(
        query_complete_days(at("2026-10-26T12:00:00Z"), "Europe/Berlin", 2, days, NULL), ERR_OK);
    assert_int_equal(days[0].from, at("2026-10-24T00:00:00+02:00"));
    assert_int_equal(days[1].from, at("2026-10-25T00:00:00+02:00"));
    assert_int_equal(days[1].to, at("2026-10-26T00:00:00+01:00"));
    assert_int_equal(days[1].to - days[1].from, 25 * HOUR_MS);
}

static void an_unknown_zone_is_refused(void **state)
{
    (void)state;
    struct span day;
    assert_int_equal(query_complete_days(0, "Europe/Nowhere", 1, &day, NULL), ERR_USAGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(days_end_before_the_instant),
        cmocka_unit_test(a_day_that_just_ended_is_complete),
        cmocka_unit_test(a_day_of_the_zone_may_have_25_hours),
        cmocka_unit_test(an_unknown_zone_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
