/* Sums of the hours of a UTC day, as its roll-up has them of the whole day. A day may have none. */
#ifndef GPUTALLY_STORE_HOUR_SUMS_H
#define GPUTALLY_STORE_HOUR_SUMS_H

#include "store/rollup.h"

/* Are sums of hours to be made of this store's days at all? */
bool hour_sums_wanted(const struct store *store);
enum err hour_sums_are_there(struct store *store, int64_t day, bool *ret, struct error *err);
/* Would a day with this roll-up, made of all of its blocks by the hour, be written with some? */
bool hour_sums_are_due(const struct store *store, const struct rollup *rollup);
/* In a write transaction: those of the roll-up in place of what the day has, where they are few
 * beside its rows (store->rows_a_sum); else none. rollup->unwritten says which, and is cleared. */
enum err hour_sums_put(struct store *store, struct rollup *rollup, struct error *err);
enum err hour_sums_drop(struct store *store, int64_t day, struct error *err);
/* Parts (key.hour is their hour) and nodes of some hours (bits) of the day, handed to the scan. The
 * detail is SCAN_TEAMS or SCAN_HOURS. *ret_found false, and nothing is handed over: it has none.
 */
enum err hour_sums_scan(struct store *store, int64_t day, uint32_t hours, const struct scan *scan,
                        bool *ret_found, struct error *err);
/* What the day has (if it has any) equals what the roll-up, made of all of its blocks by the hour,
 * would put. */
enum err hour_sums_verify(struct store *store, const struct rollup *rollup, struct error *err);

#endif
