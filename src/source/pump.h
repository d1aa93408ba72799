/* Reads an input ahead on a thread of its own, so that reading and unpacking go on while the blocks
 * before are decoded. Two blocks, handed over in turns. */
#ifndef GPUTALLY_SOURCE_PUMP_H
#define GPUTALLY_SOURCE_PUMP_H

#include "source/input.h"

#define PUMP_BLOCK_BYTES ((size_t)1 << 20)

struct pump;
/* Takes the input over, also on errors (ERR_LIMIT: no thread can be started). */
enum err pump_new(struct input *input, struct pump **ret, struct error *err);
/* The next block, good until the next call; empty at the end. Errors as of input_read, after the
 * blocks before them. */
enum err pump_next(struct pump *pump, struct str *ret, struct error *err);
/* For progress: what the reader has read so far. */
uint64_t pump_read_bytes(const struct pump *pump);
uint64_t pump_total_bytes(const struct pump *pump); /* 0 unknown */
void pump_free(struct pump *pump); /* NULL is fine; waits for the thread, closes the input */

#endif
