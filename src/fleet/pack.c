#include "fleet/pack.h"

#define FIVES_MAX 9 /* 10^9: whole numbers of what is kept in 1e-9 */
#define BYTES_MAX (4 + PACK_BLOCK / 8 + 2 * 10 + PACK_BLOCK * 8 + 8) /* of a packed block */

enum { PACK_NONE = 1, PACK_SOME = 2, PACK_STEPS = 4 }; /* all absent; some; of differences */

/* Powers of five, and what divides by them exactly: their inverses modulo 2^64. */
static const uint64_t five[FIVES_MAX + 1] = {1,    5,     25,    125,    625,
                                             3125, 15625, 78125, 390625, 1953125};
static const uint64_t fifth[FIVES_MAX + 1] = {
    1,
    0xcccccccccccccccd,
    0x8f5c28f5c28f5c29,
    0x1cac083126e978d5,
    0xd288ce703afb7e91,
    0x5d4e8fb00bcbe61d,
    0x790fb65668c26139,
    0xe5032477ae8d46a5,
    0xc767074b22e90e21,
    0x8e47ce423a2e9c6d,
};

/* ------------------------------------------------------------------ numbers and bits */

static char *put_number(char *out, uint64_t v)
{
    for (; v >= 0x80; v >>= 7)
        *out++ = (char)(v | 0x80);
    *out++ = (char)v;
    return out;
}

static const char *get_number(const char *p, const char *end, uint64_t *ret)
{
    uint64_t v = 0;
    for (unsigned shift = 0; p < end && shift < 64; shift += 7) {
        unsigned char byte = (unsigned char)*p++;
        v |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            *ret = v;
            return p;
        }
    }
    return NULL;
}

/* Signed numbers that are small either way. */
static uint64_t fold(uint64_t v)
{
    return v << 1 ^ (uint64_t) - (int64_t)(v >> 63);
}

static uint64_t unfold(uint64_t v)
{
    return v >> 1 ^ (uint64_t) - (int64_t)(v & 1);
}

static char *put_bits(char *out, const uint64_t *x, size_t n, unsigned width)
{
    uint64_t word = 0;
    unsigned have = 0;
    for (size_t i = 0; i < n && width; i++) {
        word |= x[i] << have;
        have += width;
        if (have < 64)
            continue;
        memcpy(out, &word, sizeof word);
        out += sizeof word;
        have -= 64;
        word = have ? x[i] >> (width - have) : 0;
    }
    memcpy(out, &word, sizeof word);
    return out + (have + 7) / 8;
}

/* width up to 64 - 7, and 8 bytes behind the bits that may be read. */
static void get_narrow_bits(const char *p, uint64_t *x, size_t n, unsigned width)
{
    uint64_t mask = (UINT64_C(1) << width) - 1;
    for (size_t i = 0, bit = 0; i < n; i++, bit += width) {
        uint64_t word;
        memcpy(&word, p + bit / 8, sizeof word);
        x[i] = word >> bit % 8 & mask;
    }
}

static void get_wide_bits(const char *p, const char *end, uint64_t *x, size_t n, unsigned width)
{
    uint64_t word = 0, mask = width < 64 ? (UINT64_C(1) << width) - 1 : UINT64_MAX;
    unsigned have = 0;
    for (size_t i = 0; i < n; i++) {
        if (have >= width) {
            x[i] = word & mask;
            word >>= width;
            have -= width;
            continue;
        }
        uint64_t next = 0;
        size_t left = (size_t)(end - p), bytes = left < sizeof next ? left : sizeof next;
        memcpy(&next, p, bytes);
        p += bytes;
        x[i] = (word | next << have) & mask;
        unsigned taken = width - have; /* of the next word */
        word = taken < 64 ? next >> taken : 0;
        have = 64 - taken;
    }
}

static const char *get_bits(const char *p, const char *end, uint64_t *x, size_t n, unsigned width)
{
    size_t bytes = (n * width + 7) / 8;
    if ((size_t)(end - p) < bytes)
        return NULL;
    if (width <= 57 && (size_t)(end - p) - bytes >= sizeof(uint64_t))
        get_narrow_bits(p, x, n, width);
    else
        get_wide_bits(p, p + bytes, x, n, width);
    return p + bytes;
}

/* ------------------------------------------------------------------ packing */

/* Numbers in a row: the least and the largest, and the bits in which they differ. */
struct range {
    int64_t least, most;
    uint64_t differ;
};

static void range_add(struct range *range, int64_t v, int64_t first)
{
    range->least = v < range->least ? v : range->least;
    range->most = v > range->most ? v : range->most;
    range->differ |= (uint64_t)v ^ (uint64_t)first;
}

/* Adds wrap: what is added again gives the values, whatever they are. */
static inline int64_t step_of(const int64_t *v, size_t i)
{
    return (int64_t)((uint64_t)v[i] - (uint64_t)v[i - 1]);
}

/* Of n > 0 values, and of the differences of neighbours. */
static void find_ranges(const int64_t *v, size_t n, struct range *values, struct range *steps)
{
    *values = (struct range){v[0], v[0], 0};
    *steps = (struct range){INT64_MAX, INT64_MIN, 0};
    for (size_t i = 1; i < n; i++) {
        range_add(values, v[i], v[0]);
        range_add(steps, step_of(v, i), step_of(v, 1));
    }
}

static uint64_t width_of(const struct range *range)
{
    return (uint64_t)range->most - (uint64_t)range->least;
}

/* Takes the least off, and divides out what all have in common; gives the bits that the largest
 * then needs. x holds numbers of the range. */
static unsigned reduce(uint64_t *x, size_t n, const struct range *range, char *ret_shift,
                       char *ret_fives)
{
    *ret_shift = *ret_fives = 0;
    if (!range->differ)
        return 0;
    uint64_t least = (uint64_t)range->least, any = 0;
    unsigned shift = (unsigned)__builtin_ctzll(range->differ), fives = FIVES_MAX;
    for (size_t i = 0; i < n && fives; i++)
        while (fives && ((x[i] - least) >> shift) * fifth[fives] > UINT64_MAX / five[fives])
            fives--;
    uint64_t by = fifth[fives];
    for (size_t i = 0; i < n; i++) {
        x[i] = ((x[i] - least) >> shift) * by;
        any |= x[i];
    }
    *ret_shift = (char)shift;
    *ret_fives = (char)fives;
    return 64 - (unsigned)__builtin_clzll(any);
}

/* Values without absent ones among them, n > 0, behind the tag. */
static char *put_values(char *tag, char *out, const int64_t *v, size_t n)
{
    uint64_t x[PACK_BLOCK];
    struct range values, steps;
    find_ranges(v, n, &values, &steps);
    const struct range *range = &values;
    if (n > 1 && width_of(&steps) < width_of(&values)) {
        range = &steps;
        tag[0] |= PACK_STEPS;
        out = put_number(out, fold((uint64_t)v[0]));
        for (size_t i = 1; i < n; i++)
            x[i - 1] = (uint64_t)step_of(v, i);
        n--;
    } else {
        memcpy(x, v, n * sizeof *x);
    }
    unsigned width = reduce(x, n, range, &tag[1], &tag[2]);
    tag[3] = (char)width;
    return put_bits(put_number(out, fold((uint64_t)range->least)), x, n, width);
}

/* Of which some are absent. */
static char *put_sparse(char *tag, const int64_t *v, size_t n)
{
    int64_t there[PACK_BLOCK];
    char *absent = tag + 4;
    size_t kept = 0, bytes = (n + 7) / 8;
    memset(absent, 0, bytes);
    for (size_t i = 0; i < n; i++) {
        there[kept] = v[i];
        kept += v[i] != SIGNAL_ABSENT;
        absent[i / 8] |= (char)((v[i] == SIGNAL_ABSENT) << i % 8);
    }
    *tag = kept ? PACK_SOME : PACK_NONE;
    return kept ? put_values(tag, absent + bytes, there, kept) : tag + 1;
}

static char *put_block(char *tag, const int64_t *v, size_t n)
{
    bool absent = false;
    for (size_t i = 0; i < n; i++)
        absent |= v[i] == SIGNAL_ABSENT;
    if (absent)
        return put_sparse(tag, v, n);
    *tag = 0;
    return put_values(tag, tag + 4, v, n);
}

void pack_values(struct strbuf *out, const int64_t *v, size_t n)
{
    for (size_t at = 0; at < n; at += PACK_BLOCK) {
        char block[BYTES_MAX];
        char *end = put_block(block, v + at, n - at < PACK_BLOCK ? n - at : PACK_BLOCK);
        strbuf_add(out, (struct str){block, (size_t)(end - block)});
    }
}

/* ------------------------------------------------------------------ unpacking */

/* n > 0 values, without absent ones. */
static const char *get_values(const unsigned char *tag, const char *p, const char *end, int64_t *v,
                              size_t n)
{
    uint64_t x[PACK_BLOCK], first = 0, least;
    bool steps = tag[0] & PACK_STEPS;
    if (tag[1] > 63 || tag[2] > FIVES_MAX || tag[3] > 64)
        return NULL;
    if (steps && (p = get_number(p, end, &first)) == NULL)
        return NULL;
    if ((p = get_number(p, end, &least)) == NULL ||
        (p = get_bits(p, end, x, n - steps, tag[3])) == NULL)
        return NULL;
    uint64_t by = five[tag[2]];
    unsigned shift = tag[1];
    least = unfold(least);
    if (!steps) {
        for (size_t i = 0; i < n; i++)
            v[i] = (int64_t)(least + (x[i] * by << shift));
        return p;
    }
    uint64_t value = unfold(first);
    v[0] = (int64_t)value;
    for (size_t i = 1; i < n; i++) {
        value += least + (x[i - 1] * by << shift);
        v[i] = (int64_t)value;
    }
    return p;
}

static const char *get_block(const char *p, const char *end, int64_t *v, size_t n)
{
    const unsigned char *tag = (const unsigned char *)p, *absent;
    if (p == end)
        return NULL;
    if (tag[0] == PACK_NONE) {
        for (size_t i = 0; i < n; i++)
            v[i] = SIGNAL_ABSENT;
        return p + 1;
    }
    if (tag[0] & ~(PACK_SOME | PACK_STEPS) || end - p < 4)
        return NULL;
    p += 4;
    if (!(tag[0] & PACK_SOME))
        return get_values(tag, p, end, v, n);
    absent = (const unsigned char *)p;
    if ((size_t)(end - p) < (n + 7) / 8)
        return NULL;
    p += (n + 7) / 8;
    int64_t there[PACK_BLOCK];
    size_t kept = 0, at = 0;
    for (size_t i = 0; i < n; i++)
        kept += !(absent[i / 8] >> i % 8 & 1);
    if (!kept || (p = get_values(tag, p, end, there, kept)) == NULL)
        return NULL;
    for (size_t i = 0; i < n; i++)
        v[i] = absent[i / 8] >> i % 8 & 1 ? SIGNAL_ABSENT : there[at++];
    return p;
}

const char *unpack_values(const char *p, const char *end, int64_t *v, size_t n)
{
    for (size_t at = 0; p && at < n; at += PACK_BLOCK)
        p = get_block(p, end, v + at, n - at < PACK_BLOCK ? n - at : PACK_BLOCK);
    return p;
}
