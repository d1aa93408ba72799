/* Time: int64 ms since the Unix epoch, UTC; ranges are half open. An hour is a UTC hour, named by
 * the ms at which it begins. (semantics, section 2) */
#ifndef GPUTALLY_UTIL_CLOCK_H
#define GPUTALLY_UTIL_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "util/error.h"
#include "util/str.h"

typedef int64_t time_ms;
#define HOUR_MS ((time_ms)3600000)
#define DAY_MS ((time_ms)86400000)
#define TIME_MIN (-((time_ms)1 << 62))     /* before everything */
#define TIME_MAX ((time_ms)1 << 62)        /* after everything */
#define TIME_LAST INT64_C(253402300799999) /* end of the year 9999: the latest that is believed */

/* A half-open range [from, to). */
struct span {
    time_ms from, to;
};

static inline time_ms hour_floor(time_ms t)
{
    time_ms rest = t % HOUR_MS;
    return t - (rest < 0 ? rest + HOUR_MS : rest);
}
static inline time_ms hour_ceil(time_ms t)
{
    return hour_floor(t + HOUR_MS - 1);
}

/* Is it a time that something of the world can have? Others would overflow in sums. */
static inline bool time_is_sane(time_ms t)
{
    return t >= -TIME_LAST && t <= TIME_LAST;
}
/* Seconds since the epoch, as metrics give them; TIME_MIN where that is no time. */
static inline time_ms time_of_seconds(double seconds)
{
    return seconds >= 0 && seconds * 1000 <= (double)TIME_LAST ? (time_ms)(seconds * 1000)
                                                               : TIME_MIN;
}

time_ms clock_now(void);
time_ms clock_monotonic(void);
time_ms clock_boot(void); /* monotonic, and runs on while the machine sleeps */

/* For tests that play days of a fleet in seconds: from now on clock_now() begins at `base` and runs
 * `speed` times as fast as the world. Once, before there are threads. The other clocks stay. */
void clock_pretend(time_ms base, double speed);
double clock_speed(void); /* 1 unless pretended */

/* RFC 3339 with an offset ("2026-11-30T00:00:00Z", fractions of a second kept to the ms); a bare
 * date means midnight UTC. False where it is neither. */
bool time_parse(struct str text, time_ms *ret);

#define TIME_TEXT_MAX 40
/* RFC 3339 in UTC, with ms only where there are any; buf holds TIME_TEXT_MAX bytes; returns buf. */
const char *time_format(time_ms t, char *buf);

#endif
