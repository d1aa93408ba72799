/* A keyed hash of bytes, for tables that know a text again without keeping it: 64 bits of XXH3
 * under a secret of this process, so that two texts of one length that meet in it are not to be
 * expected among millions (1 in 10^6 for 4 million), and nobody can make them. 4 to 5 bytes a cycle
 * where the processor has AVX2. Any thread. */
#ifndef GPUTALLY_UTIL_HASH_H
#define GPUTALLY_UTIL_HASH_H

#include <stdint.h>

#include "util/str.h"

#define HASH_SECRET_BYTES ((size_t)192)

uint64_t hash_bytes(struct str bytes, const unsigned char secret[HASH_SECRET_BYTES]);

/* The same in one way only, for hash_bytes to choose from and for its test. */
uint64_t hash_bytes_plain(struct str bytes, const unsigned char secret[HASH_SECRET_BYTES]);
uint64_t hash_bytes_avx2(struct str bytes, const unsigned char secret[HASH_SECRET_BYTES]);
uint64_t hash_bytes_avx512(struct str bytes, const unsigned char secret[HASH_SECRET_BYTES]);

#endif
