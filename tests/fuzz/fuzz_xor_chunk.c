/* Any bytes as a chunk, against a decoder that reads one bit at a time. */
#include <stdlib.h>

#include "wire/xor_chunk.h"

struct slow {
    const uint8_t *bytes;
    size_t at, end;
    bool cut;
};

static uint64_t get(struct slow *from, unsigned n)
{
    uint64_t value = 0;
    while (n--) {
        if (from->at >= from->end) {
            from->cut = true;
            return 0;
        }
        value = value << 1 | (from->bytes[from->at / 8] >> (7 - from->at % 8) & 1);
        from->at++;
    }
    return value;
}

static uint64_t get_varint(struct slow *from)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 70 && !from->cut; shift += 7) {
        uint64_t byte = get(from, 8);
        if (shift == 63 && byte > 1)
            break;
        value |= (byte & 127) << shift;
        if (byte < 128)
            return value;
    }
    from->cut = true;
    return 0;
}

static uint64_t get_dod(struct slow *from)
{
    static const unsigned widths[] = {14, 17, 20, 64};
    unsigned ones = 0;
    while (ones < 4 && get(from, 1))
        ones++;
    if (!ones)
        return 0;
    unsigned n = widths[ones - 1];
    uint64_t raw = get(from, n);
    return n < 64 && raw > UINT64_C(1) << (n - 1) ? raw - (UINT64_C(1) << n) : raw;
}

/* tsdb/chunkenc/xor.go, read literally. */
static size_t decode_slowly(struct str data, time_ms *t, uint64_t *v)
{
    struct slow from = {(const uint8_t *)data.p, 16, data.n * 8, data.n < 2};
    size_t n = xor_chunk_count(data);
    uint64_t time = 0, delta = 0, value = 0;
    unsigned lead = 0, width = 64;
    for (size_t i = 0; i < n; i++) {
        if (i == 0) {
            uint64_t raw = get_varint(&from);
            time = raw >> 1 ^ -(raw & 1);
            value = get(&from, 64);
        } else {
            delta = i == 1 ? get_varint(&from) : delta + get_dod(&from);
            time += delta;
            if (get(&from, 1)) {
                if (get(&from, 1)) {
                    lead = (unsigned)get(&from, 5);
                    width = (unsigned)get(&from, 6);
                    width = width ? width : 64;
                    if (lead + width > 64)
                        return i;
                }
                value ^= get(&from, width) << (64 - lead - width);
            }
        }
        if (from.cut)
            return i;
        t[i] = (time_ms)time;
        v[i] = value;
    }
    return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static time_ms t[XOR_CHUNK_SAMPLES_MAX], slow_t[XOR_CHUNK_SAMPLES_MAX];
    static double v[XOR_CHUNK_SAMPLES_MAX];
    static uint64_t slow_v[XOR_CHUNK_SAMPLES_MAX];
    char *copy = malloc(size ? size : 1);
    memcpy(copy, data, size);
    struct str chunk = {copy, size};
    size_t n = 0, expected = decode_slowly(chunk, slow_t, slow_v);
    enum err code = xor_chunk_decode(chunk, t, v, XOR_CHUNK_SAMPLES_MAX, &n, NULL);
    invariant(n == expected);
    invariant((code == ERR_OK) == (size >= 2 && n == xor_chunk_count(chunk)));
    invariant(memcmp(t, slow_t, n * sizeof *t) == 0 && memcmp(v, slow_v, n * sizeof *v) == 0);
    free(copy);
    return 0;
}
