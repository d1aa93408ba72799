#include "util/hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

_Static_assert(HASH_SECRET_BYTES >= XXH3_SECRET_SIZE_MIN, "the secret is too short");

uint64_t hash_bytes_plain(struct str bytes, const unsigned char secret[HASH_SECRET_BYTES])
{
    return XXH3_64bits_withSecret(bytes.p, bytes.n, secret, HASH_SECRET_BYTES);
}

uint64_t hash_bytes(struct str bytes, const unsigned char secret[HASH_SECRET_BYTES])
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f"))
        return hash_bytes_avx512(bytes, secret);
    if (__builtin_cpu_supports("avx2"))
        return hash_bytes_avx2(bytes, secret);
#endif
    return hash_bytes_plain(bytes, secret);
}
