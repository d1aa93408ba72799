/* Time zones by their IANA name, from the system's files (TZif, RFC 8536).
 *
 * Read by ourselves and not by setenv("TZ") and localtime_r: the environment is shared by all
 * threads, and libraries read it. A zone is immutable once loaded and lives for the process; any
 * thread may ask. */
#ifndef GPUTALLY_QUERY_ZONE_H
#define GPUTALLY_QUERY_ZONE_H

#include "util/clock.h"
#include "util/error.h"

struct zone;

/* NULL or "UTC": UTC, without a file. Unknown names: ERR_USAGE. Loaded once (a lock), then O(1). */
enum err zone_load(const char *name, const struct zone **ret, struct error *err);

bool zone_is_utc(const struct zone *zone); /* the days of the zone are those of UTC, always */

/* Offset from UTC at an instant, ms; local = UTC + offset. O(log changes). */
time_ms zone_offset(const struct zone *zone, time_ms t);

/* The first instant whose local time is `local` (ms since 1970 as the wall clock shows it) or,
 * where the clocks jump over it, the instant of the jump. */
time_ms zone_instant(const struct zone *zone, time_ms local);

#endif
