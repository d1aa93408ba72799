/* hash_bytes with AVX-512: CMakeLists.txt compiles this file for such processors, and only for
 * them. */
#include "util/hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

uint64_t hash_bytes_avx512(struct str bytes, const unsigned char secret[HASH_SECRET_BYTES])
{
    return XXH3_64bits_withSecret(bytes.p, bytes.n, secret, HASH_SECRET_BYTES);
}
