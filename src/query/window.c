#include "query/window.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "query/zone.h"
#include "util/suggest.h"

#define COUNT_MAX 100000

static const char *const words[] = {"today", "yesterday", "week", "lastweek", "month", "lastmonth"};

static const struct zone *zone_of(const char *tz)
{
    const struct zone *zone;
    if (zone_load(tz, &zone, NULL))
        zone_load(NULL, &zone, NULL);
    return zone;
}

static time_ms floor_to(time_ms t, time_ms unit)
{
    time_ms rest = t % unit;
    return t - (rest < 0 ? rest + unit : rest);
}

/* Local midnight of the day that is `days` after the one of t. */
static time_ms midnight(const struct zone *zone, time_ms t, int64_t days)
{
    time_ms local = floor_to(t + zone_offset(zone, t), DAY_MS);
    return zone_instant(zone, local + days * DAY_MS);
}

time_ms day_start(time_ms t, const char *tz)
{
    return midnight(zone_of(tz), t, 0);
}

static struct tm local_time(const struct zone *zone, time_ms t)
{
    time_t seconds = (time_t)(floor_to(t + zone_offset(zone, t), 1000) / 1000);
    struct tm tm;
    gmtime_r(&seconds, &tm);
    return tm;
}

const char *day_name(time_ms t, const char *tz, char *buf)
{
    struct tm tm = local_time(zone_of(tz), t);
    strftime(buf, 16, "%Y-%m-%d", &tm);
    return buf;
}

/* The first of the month that is `months` after the one of t. */
static time_ms month_start(const struct zone *zone, time_ms t, int months)
{
    struct tm tm = local_time(zone, t);
    struct tm first = {.tm_year = tm.tm_year, .tm_mon = tm.tm_mon + months, .tm_mday = 1};
    return zone_instant(zone, (time_ms)timegm(&first) * 1000);
}

static time_ms week_start(const struct zone *zone, time_ms t, int weeks)
{
    struct tm tm = local_time(zone, t);
    return midnight(zone, t, -(tm.tm_wday + 6) % 7 + weeks * 7);
}

static bool named(struct str text, const struct zone *zone, time_ms now, struct span *ret)
{
    if (str_eq(text, STR("today")))
        *ret = (struct span){midnight(zone, now, 0), hour_floor(now)};
    else if (str_eq(text, STR("yesterday")))
        *ret = (struct span){midnight(zone, now, -1), midnight(zone, now, 0)};
    else if (str_eq(text, STR("week")))
        *ret = (struct span){week_start(zone, now, 0), hour_floor(now)};
    else if (str_eq(text, STR("lastweek")))
        *ret = (struct span){week_start(zone, now, -1), week_start(zone, now, 0)};
    else if (str_eq(text, STR("month")))
        *ret = (struct span){month_start(zone, now, 0), hour_floor(now)};
    else if (str_eq(text, STR("lastmonth")))
        *ret = (struct span){month_start(zone, now, -1), month_start(zone, now, 0)};
    else
        return false;
    if (ret->from >= ret->to) /* it has just begun: the hour that runs */
        ret->to = hour_floor(ret->from) + HOUR_MS;
    return true;
}

static bool counted(struct str text, time_ms now, struct span *ret)
{
    long long count;
    if (text.n < 2 || !str_to_i64((struct str){text.p, text.n - 1}, &count) || count < 1 ||
        count > COUNT_MAX)
        return false;
    char unit = text.p[text.n - 1];
    time_ms length = unit == 'h' ? HOUR_MS : unit == 'd' ? DAY_MS : unit == 'w' ? 7 * DAY_MS : 0;
    ret->to = hour_floor(now);
    ret->from = ret->to - count * length;
    return length != 0;
}

static struct str trimmed(struct str s)
{
    while (s.n && s.p[0] == ' ')
        s.p++, s.n--;
    while (s.n && s.p[s.n - 1] == ' ')
        s.n--;
    return s;
}

static enum err edge(struct str text, const struct zone *zone, time_ms *ret, struct error *err)
{
    text = trimmed(text);
    if (!time_parse(text, ret))
        return error_set(err, ERR_USAGE,
                         "\"%.*s\" is no time: write 2026-11-30 or 2026-11-30T06:00:00Z",
                         STR_ARG(text));
    if (text.n == sizeof "2026-11-30" - 1)
        *ret = zone_instant(zone, *ret);
    return ERR_OK;
}

static enum err between(struct str text, const char *comma, const struct zone *zone,
                        struct span *ret, struct error *err)
{
    size_t head = (size_t)(comma - text.p);
    enum err code = edge((struct str){text.p, head}, zone, &ret->from, err);
    if (!code)
        code = edge((struct str){comma + 1, text.n - head - 1}, zone, &ret->to, err);
    if (!code && ret->from >= ret->to)
        code = error_set(err, ERR_USAGE, "the window %.*s ends before it begins", STR_ARG(text));
    return code;
}

static enum err unknown(struct str text, struct error *err)
{
    const char *near = suggest(text, words, sizeof words / sizeof *words);
    return error_set(
        err, ERR_USAGE,
        "\"%.*s\" is no window%s%s%s: write 7d, 24h, today, yesterday, week, lastweek, "
        "month, lastmonth, or FROM,TO (2026-11-01,2026-12-01)",
        STR_ARG(text), near ? " (did you mean " : "", near ? near : "", near ? "?)" : "");
}

enum err window_parse(struct str text, const char *tz, time_ms now, struct span *ret,
                      bool *ret_widened, struct error *err)
{
    const struct zone *zone;
    enum err code = zone_load(tz, &zone, err);
    if (code)
        return code;
    text = trimmed(text);
    struct span exact;
    const char *comma = memchr(text.p, ',', text.n);
    if (comma)
        code = between(text, comma, zone, &exact, err);
    else if (!named(text, zone, now, &exact) && !counted(text, now, &exact))
        code = unknown(text, err);
    if (code)
        return code;
    *ret = (struct span){hour_floor(exact.from), hour_ceil(exact.to)};
    *ret_widened = ret->from != exact.from || ret->to != exact.to;
    return ERR_OK;
}
