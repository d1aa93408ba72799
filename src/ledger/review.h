/* The review: all strips of an intake are looked at once, before anything is built of them. It
 * settles them, and finds what is asked of a strip while its rows are packed: the node and the
 * holder that its labels name, in which units its exporter sends, whether it says anything, and
 * its last stamp (fleet/intake_data.h). */
#ifndef GPUTALLY_LEDGER_REVIEW_H
#define GPUTALLY_LEDGER_REVIEW_H

#include "fleet/facts.h"
#include "util/error.h"

/* to: the end of the hours that are booked. ERR_IO: what was packed cannot be read back, or does
 * not fit what was written. One thread. */
enum err strips_review(struct intake *intake, const struct facts *facts, time_ms to,
                       struct error *err);

/* The strip's rows as plain ones, as often as they are needed. ERR_IO. */
enum err strip_fetch(struct strip *strip, struct error *err);

#endif
