/* Windows and zones. Expected instants are worked out by hand from the zones' rules: Berlin is
 * UTC+1, in summer UTC+2 (2026: 29 March 01:00Z to 25 October 01:00Z); Kolkata is UTC+5:30; New
 * York is UTC-5, in summer UTC-4. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <time.h>

#include "query/window.h"
#include "query/zone.h"

static time_ms at(const char *text)
{
    time_ms t = 0;
    if (!time_parse(str_of(text), &t))
        fail_msg("no time: %s", text);
    return t;
}

static void expect(const char *text, const char *tz, const char *now, const char *from,
                   const char *to, bool widened)
{
    struct span window;
    bool was_widened;
    struct error err;
    if (window_parse(str_of(text), tz, at(now), &window, &was_widened, &err) != ERR_OK)
        fail_msg("%s: %s", text, err.text);
    if (window.from != at(from) || window.to != at(to)) {
        char a[TIME_TEXT_MAX], b[TIME_TEXT_MAX];
        fail_msg("%s: %s to %s", text, time_format(window.from, a), time_format(window.to, b));
    }
    assert_int_equal(was_widened, widened);
}

#define NOW "2026-11-30T10:20:30Z" /* a Monday */

static void counted_windows_end_at_the_last_whole_hour(void **state)
{
    (void)state;
    expect("24h", NULL, NOW, "2026-11-29T10:00:00Z", "2026-11-30T10:00:00Z", false);
    expect("7d", NULL, NOW, "2026-11-23T10:00:00Z", "2026-11-30T10:00:00Z", false);
    expect("2w", NULL, NOW, "2026-11-16T10:00:00Z", "2026-11-30T10:00:00Z", false);
    expect(" 1h ", NULL, "2026-11-30T10:00:00Z", "2026-11-30T09:00:00Z", "2026-11-30T10:00:00Z",
           false);
}

static void named_windows_begin_at_midnight_of_the_zone(void **state)
{
    (void)state;
    expect("today", NULL, NOW, "2026-11-30T00:00:00Z", "2026-11-30T10:00:00Z", false);
    expect("yesterday", NULL, NOW, "2026-11-29T00:00:00Z", "2026-11-30T00:00:00Z", false);
    expect("week", NULL, "2026-12-03T10:20:00Z", "2026-11-30T00:00:00Z", "2026-12-03T10:00:00Z",
           false);
    expect("week", NULL, NOW, "2026-11-30T00:00:00Z", "2026-11-30T10:00:00Z", false);
    expect("lastweek", NULL, NOW, "2026-11-23T00:00:00Z", "2026-11-30T00:00:00Z", false);
    expect("lastweek", NULL, "2026-11-29T23:00:00Z", "2026-11-16T00:00:00Z", "2026-11-23T00:00:00Z",
           false);
    expect("month", NULL, NOW, "2026-11-01T00:00:00Z", "2026-11-30T10:00:00Z", false);
    expect("lastmonth", NULL, "2026-01-15T00:00:00Z", "2025-12-01T00:00:00Z",
           "2026-01-01T00:00:00Z", false);
    expect("today", "Europe/Berlin", NOW, "2026-11-29T23:00:00Z", "2026-11-30T10:00:00Z", false);
    expect("yesterday", "America/New_York", NOW, "2026-11-29T05:00:00Z", "2026-11-30T05:00:00Z",
           false);
    /* late on Sunday in New York it is Monday in UTC */
    expect("week", "America/New_York", "2026-11-30T03:00:00Z", "2026-11-23T05:00:00Z",
           "2026-11-30T03:00:00Z", false);
}

static void days_of_the_change_of_clocks_have_23_and_25_hours(void **state)
{
    (void)state;
    expect("yesterday", "Europe/Berlin", "2026-03-30T10:00:00Z", "2026-03-28T23:00:00Z",
           "2026-03-29T22:00:00Z", false);
    expect("yesterday", "Europe/Berlin", "2026-10-26T10:00:00Z", "2026-10-24T22:00:00Z",
           "2026-10-25T23:00:00Z", false);
    expect("lastweek", "Europe/Berlin", "2026-03-31T10:00:00Z", "2026-03-22T23:00:00Z",
           "2026-03-29T22:00:00Z", false);
    /* far beyond the listed changes: by the rule of the footer */
    expect("yesterday", "Europe/Berlin", "2061-03-28T10:00:00Z", "2061-03-26T23:00:00Z",
           "2061-03-27T22:00:00Z", false);
    /* Santiago changes at midnight: that day begins at 01:00 */
    expect("yesterday", "America/Santiago", "2026-09-07T12:00:00Z", "2026-09-06T04:00:00Z",
           "2026-09-07T03:00:00Z", false);
}

/* New York's clocks go back on 2026-11-01 at 06:00Z, and forward on 2027-03-14 at 07:00Z. */
static void words_of_the_calendar_hold_over_the_change_of_clocks(void **state)
{
    static const struct {
        const char *now, *word, *from, *to;
    } cases[] = {
        {"2026-11-01T05:30:00Z", "today", "2026-11-01T04:00:00Z", "2026-11-01T05:00:00Z"},
        {"2026-11-01T06:30:00Z", "today", "2026-11-01T04:00:00Z", "2026-11-01T06:00:00Z"},
        {"2026-11-01T06:30:00Z", "month", "2026-11-01T04:00:00Z", "2026-11-01T06:00:00Z"},
        {"2026-11-01T06:30:00Z", "24h", "2026-10-31T06:00:00Z", "2026-11-01T06:00:00Z"},
        {"2026-11-01T12:00:00Z", "week", "2026-10-26T04:00:00Z", "2026-11-01T12:00:00Z"},
        {"2026-11-02T12:00:00Z", "yesterday", "2026-11-01T04:00:00Z", "2026-11-02T05:00:00Z"},
        {"2026-11-03T12:00:00Z", "lastweek", "2026-10-26T04:00:00Z", "2026-11-02T05:00:00Z"},
        {"2026-11-15T12:00:00Z", "lastmonth", "2026-10-01T04:00:00Z", "2026-11-01T04:00:00Z"},
        {"2026-12-15T12:00:00Z", "lastmonth", "2026-11-01T04:00:00Z", "2026-12-01T05:00:00Z"},
        {"2027-03-14T07:30:00Z", "today", "2027-03-14T05:00:00Z", "2027-03-14T07:00:00Z"},
        {"2027-03-15T12:00:00Z", "yesterday", "2027-03-14T05:00:00Z", "2027-03-15T04:00:00Z"},
        {"2027-03-16T12:00:00Z", "lastweek", "2027-03-08T05:00:00Z", "2027-03-15T04:00:00Z"},
        {"2027-04-10T12:00:00Z", "lastmonth", "2027-03-01T05:00:00Z", "2027-04-01T04:00:00Z"},
        {"2027-03-20T12:00:00Z", "2027-03-14,2027-03-15", "2027-03-14T05:00:00Z",
         "2027-03-15T04:00:00Z"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        expect(cases[i].word, "America/New_York", cases[i].now, cases[i].from, cases[i].to, false);
}

/* Nothing of them has ended: they are the hour that runs, of which no ledger has rows yet. */
static void a_day_week_or_month_that_begins_is_the_hour_that_runs(void **state)
{
    static const struct {
        const char *now, *word, *tz, *from, *to;
        bool widened;
    } cases[] = {
        {"2026-11-30T00:00:00Z", "today", NULL, "2026-11-30T00:00:00Z", "2026-11-30T01:00:00Z",
         false},
        {"2026-11-30T00:59:59Z", "today", NULL, "2026-11-30T00:00:00Z", "2026-11-30T01:00:00Z",
         false},
        {"2026-11-30T01:00:00Z", "today", NULL, "2026-11-30T00:00:00Z", "2026-11-30T01:00:00Z",
         false},
        {"2026-11-30T00:20:00Z", "week", NULL, "2026-11-30T00:00:00Z", "2026-11-30T01:00:00Z",
         false},
        {"2027-01-01T00:20:00Z", "month", NULL, "2027-01-01T00:00:00Z", "2027-01-01T01:00:00Z",
         false},
        {"2026-11-29T23:10:00Z", "today", "Europe/Berlin", "2026-11-29T23:00:00Z",
         "2026-11-30T00:00:00Z", false},
        /* midnight at 18:30Z: before 19:00Z, and before and after the half hour */
        {"2026-11-29T18:30:00Z", "today", "Asia/Kolkata", "2026-11-29T18:00:00Z",
         "2026-11-29T19:00:00Z", true},
        {"2026-11-29T18:59:00Z", "today", "Asia/Kolkata", "2026-11-29T18:00:00Z",
         "2026-11-29T19:00:00Z", true},
        {"2026-11-29T19:01:00Z", "today", "Asia/Kolkata", "2026-11-29T18:00:00Z",
         "2026-11-29T19:00:00Z", true},
        /* Santiago's 6 September begins at 01:00, 04:00Z */
        {"2026-09-06T04:30:00Z", "today", "America/Santiago", "2026-09-06T04:00:00Z",
         "2026-09-06T05:00:00Z", false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        expect(cases[i].word, cases[i].tz, cases[i].now, cases[i].from, cases[i].to,
               cases[i].widened);
}

static void windows_that_cut_hours_are_widened(void **state)
{
    (void)state;
    expect("2026-11-30T01:15:00Z,2026-11-30T02:00:01Z", NULL, NOW, "2026-11-30T01:00:00Z",
           "2026-11-30T03:00:00Z", true);
    expect("2026-11-01,2026-12-01", NULL, NOW, "2026-11-01T00:00:00Z", "2026-12-01T00:00:00Z",
           false);
    expect("2026-11-01, 2026-12-01", "Europe/Berlin", NOW, "2026-10-31T23:00:00Z",
           "2026-11-30T23:00:00Z", false);
    expect("2026-11-30T00:00:00+02:00,2026-11-30T04:00:00Z", NULL, NOW, "2026-11-29T22:00:00Z",
           "2026-11-30T04:00:00Z", false);
    /* midnight of half-hour zones lies inside an hour */
    expect("yesterday", "Asia/Kolkata", NOW, "2026-11-28T18:00:00Z", "2026-11-29T19:00:00Z", true);
}

static void refuse(const char *text, const char *tz, const char *word)
{
    struct span window = {1, 2};
    bool widened;
    struct error err;
    assert_int_equal(
        window_parse(str_of(text), tz, at("2026-11-30T00:20:00Z"), &window, &widened, &err),
        ERR_USAGE);
    if (!strstr(err.text, word))
        fail_msg("%s: \"%s\" does not say %s", text, err.text, word);
    assert_int_equal(window.from, 1);
}

static void what_is_no_window_is_refused_with_a_word_of_help(void **state)
{
    (void)state;
    refuse("yesterda", NULL, "did you mean yesterday");
    refuse("7x", NULL, "7d");
    refuse("0d", NULL, "7d");
    refuse("-3d", NULL, "7d");
    refuse("99999999999999999999d", NULL, "7d");
    refuse("", NULL, "7d");
    refuse("2026-11-30,2026-11-01", NULL, "ends before");
    refuse("2026-11-30,tomorrow", NULL, "tomorrow");
    refuse("7d", "Europe/Berlim", "Europe/Berlim");
    refuse("7d", "../../../etc/passwd", "time zone");
    refuse("7d", "", "time zone");
}

/* The C library reads the same files by its own code. */
static void offsets_are_those_of_the_c_library(void **state)
{
    (void)state;
    static const char *const zones[] = {
        "Europe/Berlin",     "America/New_York", "Asia/Kolkata",      "Australia/Lord_Howe",
        "Africa/Cairo",      "Asia/Tehran",      "America/Sao_Paulo", "Pacific/Apia",
        "Africa/Casablanca", "Europe/Dublin",    "Pacific/Chatham",   "America/Santiago",
        "Etc/GMT+5",         "Asia/Kathmandu",   "Antarctica/Troll",  "UTC"};
    for (size_t z = 0; z < sizeof zones / sizeof *zones; z++) {
        const struct zone *zone;
        struct error err;
        if (zone_load(zones[z], &zone, &err) != ERR_OK)
            fail_msg("%s", err.text);
        setenv("TZ", zones[z], 1);
        tzset();
        for (time_t t = 0; t < INT64_C(4000000000); t += 11 * 3600 + 1800) {
            struct tm tm;
            localtime_r(&t, &tm);
            if (zone_offset(zone, (time_ms)t * 1000) != (time_ms)tm.tm_gmtoff * 1000)
                fail_msg("%s at %lld: %lld, not %ld", zones[z], (long long)t,
                         (long long)zone_offset(zone, (time_ms)t * 1000) / 1000, tm.tm_gmtoff);
        }
    }
    unsetenv("TZ");
}

static void days_have_names(void **state)
{
    (void)state;
    char name[16];
    assert_string_equal(day_name(at("2026-11-30T23:30:00Z"), "Europe/Berlin", name), "2026-12-01");
    assert_string_equal(day_name(at("2026-11-30T23:30:00Z"), NULL, name), "2026-11-30");
    assert_int_equal(day_start(at("2026-10-25T12:00:00Z"), "Europe/Berlin"),
                     at("2026-10-24T22:00:00Z"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counted_windows_end_at_the_last_whole_hour),
        cmocka_unit_test(named_windows_begin_at_midnight_of_the_zone),
        cmocka_unit_test(days_of_the_change_of_clocks_have_23_and_25_hours),
        cmocka_unit_test(words_of_the_calendar_hold_over_the_change_of_clocks),
        cmocka_unit_test(a_day_week_or_month_that_begins_is_the_hour_that_runs),
        cmocka_unit_test(windows_that_cut_hours_are_widened),
        cmocka_unit_test(what_is_no_window_is_refused_with_a_word_of_help),
        cmocka_unit_test(offsets_are_those_of_the_c_library),
        cmocka_unit_test(days_have_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
