#include "wire/utf8.h"

#include <stdint.h>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#define ASCII_MASK UINT64_C(0x8080808080808080)

/* How many bytes follow this first byte; more than any text has where it is none. */
static size_t followers(unsigned char c)
{
    if (c < 0x80)
        return 0;
    if (c < 0xc2 || c > 0xf4)
        return SIZE_MAX;
    return c < 0xe0 ? 1 : c < 0xf0 ? 2 : 3;
}

static bool second_fits(unsigned char first, unsigned char second)
{
    switch (first) {
    case 0xe0:
        return second >= 0xa0;
    case 0xed:
        return second <= 0x9f;
    case 0xf0:
        return second >= 0x90;
    case 0xf4:
        return second <= 0x8f;
    }
    return true;
}

/* Behind the ASCII blocks that text begins with. */
static const unsigned char *skip_ascii(const unsigned char *p, const unsigned char *end)
{
#if defined(__SSE2__)
    for (; end - p >= 32; p += 32) {
        __m128i low = _mm_loadu_si128((const __m128i *)(const void *)p);
        __m128i high = _mm_loadu_si128((const __m128i *)(const void *)(p + 16));
        if (_mm_movemask_epi8(_mm_or_si128(low, high)))
            break;
    }
#endif
    return p;
}

bool utf8_valid(struct str text)
{
    const unsigned char *p = (const unsigned char *)text.p, *end = p + text.n;
    p = skip_ascii(p, end);
    while (p < end) {
        uint64_t word;
        if (end - p >= (ptrdiff_t)sizeof word) {
            memcpy(&word, p, sizeof word);
            if (!(word & ASCII_MASK)) {
                p += sizeof word;
                continue;
            }
        }
        unsigned char first = *p++;
        size_t more = followers(first);
        if (more > (size_t)(end - p) || (more && !second_fits(first, *p)))
            return false;
        for (; more; more--)
            if ((*p++ & 0xc0) != 0x80)
                return false;
    }
    return true;
}

void utf8_put(struct strbuf *buf, unsigned code)
{
    if (code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
        code = 0xfffd;
    char bytes[4];
    size_t n = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    static const unsigned char firsts[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (size_t i = n; i-- > 1; code >>= 6)
        bytes[i] = (char)(0x80 | (code & 0x3f));
    bytes[0] = (char)(firsts[n] | code);
    strbuf_add(buf, (struct str){bytes, n});
}
