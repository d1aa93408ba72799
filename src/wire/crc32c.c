#include "wire/crc32c.h"

#include <pthread.h>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

#define POLYNOMIAL 0x82f63b78u /* reflected */

static uint32_t table[256];
static pthread_once_t table_once = PTHREAD_ONCE_INIT;

static void table_make(void)
{
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t crc = i;
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? POLYNOMIAL : 0);
        table[i] = crc;
    }
}

uint32_t crc32c_by_table(uint32_t crc, struct str bytes)
{
    pthread_once(&table_once, table_make);
    crc = ~crc;
    for (size_t i = 0; i < bytes.n; i++)
        crc = crc >> 8 ^ table[(crc ^ (uint8_t)bytes.p[i]) & 255];
    return ~crc;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) static uint32_t by_instruction(uint32_t crc, struct str bytes)
{
    uint64_t sum = ~crc;
    const char *p = bytes.p, *end = bytes.p + bytes.n;
    for (; end - p >= 8; p += 8) {
        uint64_t word;
        memcpy(&word, p, sizeof word);
        sum = _mm_crc32_u64(sum, word);
    }
    for (; p < end; p++)
        sum = _mm_crc32_u8((uint32_t)sum, (uint8_t)*p);
    return ~(uint32_t)sum;
}
#endif

uint32_t crc32c(uint32_t crc, struct str bytes)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("sse4.2"))
        return by_instruction(crc, bytes);
#endif
    return crc32c_by_table(crc, bytes);
}
