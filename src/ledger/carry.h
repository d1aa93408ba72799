/* The carry: what a slice must know of the time before it, as data. The last samples of each live
 * series go to the next slice and are fed again in front, so that nothing but the usual code knows
 * what follows from them: layouts, places, lost XIDs, standing counters, the device that a pod
 * keeps, lives of unknown start. (architecture: catch up from the watermark) */
#ifndef GPUTALLY_LEDGER_CARRY_H
#define GPUTALLY_LEDGER_CARRY_H

#include "fleet/facts.h"
#include "util/error.h"

/* What the slice that begins at `at` needs, of strips that were reviewed for hours that end there.
 */
void carry_write(const struct intake *intake, const struct facts *facts, time_ms at,
                 struct strbuf *out);
/* Feed a carry to an intake, after all that sources had for it: what is in both is in place then,
 * and only what is older than that has to be put in front. intake NULL only checks. ERR_PARSE where
 * it is not one. */
enum err carry_read(struct intake *intake, struct str carry, struct error *err);

#endif
