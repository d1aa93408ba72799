/* An encoder of Prometheus XOR chunks for tests and benchmarks, written bit by bit from
 * tsdb/docs/format/chunks.md and independent of src/wire/xor_chunk.c. */
#ifndef GPUTALLY_TESTS_XOR_ENCODE_H
#define GPUTALLY_TESTS_XOR_ENCODE_H

#include <stdint.h>

#include "util/clock.h"
#include "util/str.h"

struct xor_encoder {
    uint8_t *bytes; /* zeroed before; room is the caller's care: 19 bytes a sample are enough */
    size_t bit;
};

static inline void xor_put(struct xor_encoder *to, uint64_t value, unsigned n)
{
    while (n--) {
        if (value >> n & 1)
            to->bytes[to->bit / 8] |= (uint8_t)(0x80 >> to->bit % 8);
        to->bit++;
    }
}

static inline void xor_put_varint(struct xor_encoder *to, uint64_t value)
{
    for (; value >= 128; value >>= 7)
        xor_put(to, value | 128, 8);
    xor_put(to, value, 8);
}

static inline uint64_t xor_bits(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline bool xor_fits(int64_t dod, unsigned n)
{
    return dod >= -(INT64_C(1) << (n - 1)) + 1 && dod <= INT64_C(1) << (n - 1);
}

static inline void xor_put_dod(struct xor_encoder *to, int64_t dod)
{
    static const struct {
        unsigned mark, mark_bits, bits;
    } widths[] = {{2, 2, 14}, {6, 3, 17}, {14, 4, 20}, {15, 4, 64}};
    if (dod == 0) {
        xor_put(to, 0, 1);
        return;
    }
    size_t i = 0;
    while (i < 3 && !xor_fits(dod, widths[i].bits))
        i++;
    xor_put(to, widths[i].mark, widths[i].mark_bits);
    xor_put(to, (uint64_t)dod, widths[i].bits);
}

/* A chunk of n samples; to->bytes must be zero. */
static inline struct str xor_encode(struct xor_encoder *to, const time_ms *t, const double *v,
                                    size_t n)
{
    unsigned lead = 99, trail = 0;
    to->bit = 0;
    xor_put(to, n, 16);
    for (size_t i = 0; i < n; i++) {
        uint64_t delta = i ? (uint64_t)t[i] - (uint64_t)t[i - 1] : 0;
        if (i == 0) {
            xor_put_varint(to, (uint64_t)t[0] << 1 ^ (uint64_t)(t[0] >> 63));
            xor_put(to, xor_bits(v[0]), 64);
            continue;
        }
        if (i == 1)
            xor_put_varint(to, delta);
        else
            xor_put_dod(to, (int64_t)(delta - ((uint64_t)t[i - 1] - (uint64_t)t[i - 2])));
        uint64_t diff = xor_bits(v[i]) ^ xor_bits(v[i - 1]);
        if (!diff) {
            xor_put(to, 0, 1);
            continue;
        }
        unsigned l = (unsigned)__builtin_clzll(diff), r = (unsigned)__builtin_ctzll(diff);
        l = l > 31 ? 31 : l;
        if (lead != 99 && l >= lead && r >= trail) {
            xor_put(to, 2, 2);
        } else {
            lead = l;
            trail = r;
            xor_put(to, 3, 2);
            xor_put(to, lead, 5);
            xor_put(to, 64 - lead - trail, 6); /* 64 is written as 0 */
        }
        xor_put(to, diff >> trail, 64 - lead - trail);
    }
    return (struct str){(const char *)to->bytes, (to->bit + 7) / 8};
}

#endif
