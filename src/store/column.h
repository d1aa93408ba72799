/* Columns of whole numbers, packed to few bits: what blocks and roll-ups are made of.
 *
 * Columns are short (a node's day: some 200 values) and most are noise, constant, or a handful of
 * values, so a general compressor has nothing to learn from; the packer tries a few shapes and
 * takes the smallest. Any values may be given: what does not fit a shape costs bits, never
 * exactness. */
#ifndef GPUTALLY_STORE_COLUMN_H
#define GPUTALLY_STORE_COLUMN_H

#include <stdint.h>

#include "util/str.h"

/* Readers load whole words: this many bytes after the packed ones must be readable. */
#define COLUMN_PADDING 16

void varint_put(struct strbuf *out, uint64_t v);
bool varint_get(struct str *in, uint64_t *ret);
static inline uint64_t zigzag(int64_t v)
{
    return (uint64_t)v << 1 ^ (uint64_t)(v >> 63);
}
static inline int64_t unzigzag(uint64_t v)
{
    return (int64_t)(v >> 1 ^ (0 - (v & 1)));
}

/* Runs of the column that are likely to be alike (a series' rows): run r is [starts[r],
 * starts[r + 1]), starts[0] = 0, starts[n] = length. NULL, 0: no runs. */
struct runs {
    const uint32_t *starts;
    size_t n;
};

/* Append the packed column. O(n) and some 2 us. */
void column_pack(struct strbuf *out, const int64_t *values, size_t n, struct runs runs);
/* Take a packed column off the front of `in`; false where it is not one of n values and runs. */
bool column_unpack(struct str *in, int64_t *values, size_t n, struct runs runs);
/* Past a packed column that nobody wants the values of: takes the same bytes, and refuses the same.
 */
bool column_skip(struct str *in, size_t n, struct runs runs);

#endif
