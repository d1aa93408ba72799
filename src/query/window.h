/* Windows as people write them (semantics, section 11). */
#ifndef GPUTALLY_QUERY_WINDOW_H
#define GPUTALLY_QUERY_WINDOW_H

#include "util/clock.h"
#include "util/error.h"

/* "7d", "24h", "today", "yesterday", "week", "lastweek", "month", "lastmonth", "FROM,TO" in RFC
 * 3339. tz: IANA zone (NULL: UTC) in which days, weeks (from Monday) and months begin. Gives whole
 * hours; *ret_widened says that an hour was cut and the window therefore widened. Windows up to
 * now (7d, 24h, today, week, month) end at the last whole hour; a day, week or month that has none
 * yet is the hour that runs. */
enum err window_parse(struct str text, const char *tz, time_ms now, struct span *ret,
                      bool *ret_widened, struct error *err);

/* Start of the day of `t` in the zone, and the name "2026-11-30" of it (buf of 16 bytes). */
time_ms day_start(time_ms t, const char *tz);
const char *day_name(time_ms t, const char *tz, char *buf);

#endif
