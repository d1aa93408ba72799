/* Snappy block format (the body of remote read and remote write), with a cap on the length that the
 * block declares before anything is allocated: 3 GiB can be declared in five bytes. */
#ifndef GPUTALLY_WIRE_SNAPPY_BLOCK_H
#define GPUTALLY_WIRE_SNAPPY_BLOCK_H

#include "util/error.h"
#include "util/str.h"

/* Append the decoded block to `ret`. ERR_LIMIT where it declares more than max_bytes (or more than
 * any block of that size can hold), ERR_PARSE where it is no block; `ret` is untouched on errors.
 */
enum err snappy_block_decode(struct str block, size_t max_bytes, struct strbuf *ret,
                             struct error *err);

/* Append `bytes` to `ret` as a block. */
void snappy_block_encode(struct str bytes, struct strbuf *ret);

#endif
