/* Columns of integers as few bytes: what a fleet's samples are while nobody looks at them.
 *
 * Values go in blocks of up to PACK_BLOCK. Of a block the least value is taken off, or, where that
 * leaves less, off the differences of neighbours (stamps, counters); what all have as a common
 * power of two and of five is divided out, since decimals and MiB are what exporters send; and what
 * is left lies in as many bits as the largest of them needs. Packed and unpacked values are the
 * same for every int64_t. A few ns a value.
 *
 *     block:  tag, then where values are: [bits of absent ones] [first value] least  [bits]
 *     tag:    PACK_* flags; shift; power of five; width, a byte each */
#ifndef GPUTALLY_FLEET_PACK_H
#define GPUTALLY_FLEET_PACK_H

#include "fleet/signals.h"

#define PACK_BLOCK 128

/* Append n values, SIGNAL_ABSENT among them. */
void pack_values(struct strbuf *out, const int64_t *v, size_t n);

/* The n values at p, which were packed together; where they end, or NULL where the bytes up to
 * `end` are none of ours. Reads nothing outside of them, whatever they are. */
const char *unpack_values(const char *p, const char *end, int64_t *v, size_t n);

#endif
