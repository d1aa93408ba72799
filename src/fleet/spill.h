/* Bytes put aside: what is written once, read a few times and then forgotten, in a file without a
 * name that is gone when its descriptor is, however the process ends.
 *
 * Nothing fails for want of a disk: where no file can be made, where it takes no more, or where
 * less than SPILL_LEAVE_BYTES would be left for others, what comes stays in memory. Any thread may
 * put and get. */
#ifndef GPUTALLY_FLEET_SPILL_H
#define GPUTALLY_FLEET_SPILL_H

#include <stdint.h>

#include "util/str.h"

#define SPILL_LEAVE_BYTES ((uint64_t)256 << 20) /* of the disk that are not taken */

/* Where something lies; bytes 0: nowhere. */
struct spill_ref {
    uint64_t at, bytes;
};

struct spill;
/* folder: where the file is made, when it is first written to; NULL: in memory only. */
struct spill *spill_new(const char *folder);
void spill_free(struct spill *spill); /* NULL is fine */

struct spill_ref spill_put(struct spill *spill, struct str bytes);
/* The bytes of a reference, in place of what ret has; false: the disk does not give them back. */
bool spill_get(struct spill *spill, struct spill_ref ref, struct strbuf *ret);

#endif
