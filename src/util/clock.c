#include "util/clock.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

/* Written before there are threads, by tests only. */
static struct {
    bool on;
    time_ms base, began;
    double speed;
} pretended = {.speed = 1};

static time_ms clock_of(clockid_t id)
{
    struct timespec now;
    clock_gettime(id, &now);
    return (time_ms)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

time_ms clock_now(void)
{
    if (pretended.on)
        return pretended.base +
               (time_ms)((double)(clock_monotonic() - pretended.began) * pretended.speed);
    return clock_of(CLOCK_REALTIME);
}

time_ms clock_monotonic(void)
{
    return clock_of(CLOCK_MONOTONIC);
}

time_ms clock_boot(void)
{
    return clock_of(CLOCK_BOOTTIME);
}

void clock_pretend(time_ms base, double speed)
{
    pretended.base = base;
    pretended.began = clock_monotonic();
    pretended.speed = speed;
    pretended.on = true;
}

double clock_speed(void)
{
    return pretended.speed;
}

/* `digits` decimal digits at *p, then `after` (0: none); moves p on. */
static bool number(const char **p, const char *end, int digits, char after, int *ret)
{
    int value = 0;
    if (end - *p < digits + (after != 0))
        return false;
    for (int i = 0; i < digits; i++, (*p)++) {
        if (**p < '0' || **p > '9')
            return false;
        value = value * 10 + (**p - '0');
    }
    if (after && *(*p)++ != after)
        return false;
    *ret = value;
    return true;
}

static bool is_date(int year, int month, int day)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return month >= 1 && month <= 12 && day >= 1 && day <= days[month - 1] + (month == 2 && leap);
}

bool time_parse(struct str text, time_ms *ret)
{
    const char *p = text.p, *end = text.p + text.n;
    int year, month, day, hour = 0, minute = 0, second = 0, ms = 0, offset = 0;
    if (!number(&p, end, 4, '-', &year) || !number(&p, end, 2, '-', &month) ||
        !number(&p, end, 2, 0, &day) || !is_date(year, month, day))
        return false;
    if (p < end) {
        if (*p != 'T' && *p != 't' && *p != ' ')
            return false;
        p++;
        if (!number(&p, end, 2, ':', &hour) || !number(&p, end, 2, ':', &minute) ||
            !number(&p, end, 2, 0, &second) || hour > 23 || minute > 59 || second > 60)
            return false;
        if (p < end && *p == '.') {
            int scale = 100;
            const char *point = p++;
            for (; p < end && *p >= '0' && *p <= '9'; p++, scale /= 10)
                ms += (*p - '0') * scale;
            if (p == point + 1)
                return false;
        }
        if (p == end)
            return false;
        char sign = *p++;
        if (sign == '+' || sign == '-') {
            int h, m;
            if (!number(&p, end, 2, ':', &h) || !number(&p, end, 2, 0, &m) || h > 23 || m > 59)
                return false;
            offset = (h * 60 + m) * (sign == '-' ? -1 : 1);
        } else if (sign != 'Z' && sign != 'z') {
            return false;
        }
        if (p != end)
            return false;
    }
    struct tm tm = {.tm_year = year - 1900,
                    .tm_mon = month - 1,
                    .tm_mday = day,
                    .tm_hour = hour,
                    .tm_min = minute,
                    .tm_sec = second};
    *ret = ((time_ms)timegm(&tm) - (time_ms)offset * 60) * 1000 + ms;
    return true;
}

const char *time_format(time_ms t, char *buf)
{
    time_ms rest = t % 1000;
    if (rest < 0)
        rest += 1000;
    time_t seconds = (time_t)((t - rest) / 1000);
    struct tm tm;
    gmtime_r(&seconds, &tm);
    size_t n = strftime(buf, TIME_TEXT_MAX, "%Y-%m-%dT%H:%M:%S", &tm);
    if (rest)
        snprintf(buf + n, TIME_TEXT_MAX - n, ".%03dZ", (int)rest);
    else
        snprintf(buf + n, TIME_TEXT_MAX - n, "Z");
    return buf;
}
