/* Reading columns: the shapes of column.c back into values. Bytes are not trusted: every length is
 * checked against what is there before it is used; words are loaded whole, so that up to
 * COLUMN_PADDING bytes beyond the end may be read, never used. */
#include <stdlib.h>

#include "store/column.h"
#include "store/column_format.h"

bool varint_get(struct str *in, uint64_t *ret)
{
    uint64_t v = 0;
    for (int shift = 0; shift < 64 && in->n; shift += 7) {
        uint8_t byte = (uint8_t)*in->p++;
        in->n--;
        v |= (uint64_t)(byte & 127) << shift;
        if (byte < 128) {
            *ret = v;
            return true;
        }
    }
    return false;
}

static uint64_t mask_of(int width)
{
    return width >= 64 ? UINT64_MAX : ((uint64_t)1 << width) - 1;
}

static inline uint64_t bits_get(const uint8_t *bytes, size_t at, int width)
{
    const uint8_t *p = bytes + (at >> 3);
    int shift = (int)(at & 7);
    uint64_t word;
    memcpy(&word, p, sizeof word);
    word >>= shift;
    if (shift + width > 64)
        word |= (uint64_t)p[8] << (64 - shift);
    return word & mask_of(width);
}

/* Each shape is measured before it is read: *ret is how many bytes it takes, all of which are
 * there.
 */
static bool measure_bits(struct str in, size_t bits, size_t *ret)
{
    *ret = (bits + 7) / 8;
    return in.n >= *ret;
}

static bool measure_classes(struct str in, size_t n, int widths[CLASSES], size_t *ret)
{
    const uint8_t *p = (const uint8_t *)in.p;
    size_t bits = CLASSES * WIDTH_BITS + 2 * n, count[CLASSES] = {0};
    if (!measure_bits(in, bits, ret))
        return false;
    for (size_t i = 0; i < n; i++)
        count[bits_get(p, CLASSES * WIDTH_BITS + 2 * i, 2)]++;
    for (int c = 0; c < CLASSES; c++) {
        widths[c] = (int)bits_get(p, (size_t)c * WIDTH_BITS, WIDTH_BITS);
        if (widths[c] > 64)
            return false;
        bits += count[c] * (size_t)widths[c];
    }
    return measure_bits(in, bits, ret);
}

static void take(struct str *in, size_t bytes)
{
    in->p += bytes;
    in->n -= bytes;
}

static bool get_classes(struct str *in, uint64_t *k, size_t n)
{
    const uint8_t *p = (const uint8_t *)in->p;
    int widths[CLASSES];
    size_t bytes, at = CLASSES * WIDTH_BITS + 2 * n;
    if (!measure_classes(*in, n, widths, &bytes))
        return false;
    for (size_t i = 0; k && i < n; i++) {
        int width = widths[bits_get(p, CLASSES * WIDTH_BITS + 2 * i, 2)];
        k[i] = bits_get(p, at, width);
        at += (size_t)width;
    }
    take(in, bytes);
    return true;
}

static bool get_plain(struct str *in, uint64_t *k, size_t n)
{
    if (!in->n || (uint8_t)in->p[0] > 64)
        return false;
    int width = in->p[0];
    size_t bytes;
    const uint8_t *p = (const uint8_t *)in->p + 1;
    take(in, 1);
    if (!measure_bits(*in, n * (size_t)width, &bytes))
        return false;
    if (k && width <= 57) {
        uint64_t mask = mask_of(width), word;
        for (size_t i = 0, at = 0; i < n; i++, at += (size_t)width) {
            memcpy(&word, p + (at >> 3), sizeof word);
            k[i] = word >> (at & 7) & mask;
        }
    } else if (k) {
        for (size_t i = 0; i < n; i++)
            k[i] = bits_get(p, i * (size_t)width, width);
    }
    take(in, bytes);
    return true;
}

static bool get_runs(struct str *in, uint64_t *k, struct runs runs)
{
    if (!in->n || (uint8_t)in->p[0] > 64)
        return false;
    int least_width = in->p[0];
    const uint8_t *p = (const uint8_t *)in->p + 1;
    size_t each = (size_t)(least_width + WIDTH_BITS), bits = runs.n * each, bytes;
    take(in, 1);
    if (!measure_bits(*in, bits, &bytes))
        return false;
    for (size_t r = 0; r < runs.n; r++) {
        int width = (int)bits_get(p, r * each + (size_t)least_width, WIDTH_BITS);
        if (width > 64)
            return false;
        bits += (runs.starts[r + 1] - runs.starts[r]) * (size_t)width;
    }
    if (!measure_bits(*in, bits, &bytes))
        return false;
    size_t at = runs.n * each;
    for (size_t r = 0; k && r < runs.n; r++) {
        uint64_t least = bits_get(p, r * each, least_width);
        int width = (int)bits_get(p, r * each + (size_t)least_width, WIDTH_BITS);
        for (uint32_t i = runs.starts[r]; i < runs.starts[r + 1]; i++, at += (size_t)width)
            k[i] = least + bits_get(p, at, width);
    }
    take(in, bytes);
    return true;
}

static bool get_words(struct str *in, uint64_t *k, size_t n)
{
    if (!in->n || in->p[0] < 1 || in->p[0] > WORDS_MAX)
        return false;
    uint64_t words[WORDS_MAX] = {0};
    size_t count = (size_t)in->p[0], bytes;
    take(in, 1);
    for (size_t w = 0; w < count; w++)
        if (!varint_get(in, &words[w]))
            return false;
    int width = width_of(count - 1);
    if (!measure_bits(*in, n * (size_t)width, &bytes))
        return false;
    const uint8_t *p = (const uint8_t *)in->p;
    for (size_t i = 0; k && i < n; i++)
        k[i] = words[bits_get(p, i * (size_t)width, width)];
    take(in, bytes);
    return true;
}

static bool get_column(struct str *in, int64_t *values, size_t n, struct runs runs);

static bool get_split(struct str *in, uint64_t *k, size_t n, struct runs runs)
{
    uint64_t by;
    /* A part of a split is never split itself: without this, hostile bytes nest without end. */
    if (!varint_get(in, &by) || !in->n || (in->p[0] & SHAPE_MASK) == SHAPE_SPLIT)
        return false;
    if (!get_column(in, (int64_t *)k, n, runs))
        return false;
    if (!in->n || (in->p[0] & SHAPE_MASK) == SHAPE_SPLIT)
        return false;
    int64_t *rest = k ? mem_alloc(n * sizeof *rest) : NULL;
    bool fine = get_column(in, rest, n, runs);
    for (size_t i = 0; k && fine && i < n; i++)
        k[i] = k[i] * by + (uint64_t)rest[i];
    free(rest);
    return fine;
}

/* values NULL: only past it. */
static bool get_column(struct str *in, int64_t *values, size_t n, struct runs runs)
{
    uint64_t *k = (uint64_t *)values, least, step = 1;
    if (!in->n)
        return false;
    int head = (uint8_t)*in->p;
    in->p++, in->n--;
    if (!varint_get(in, &least) || ((head & SHAPE_STEP) && !varint_get(in, &step)))
        return false;
    least = (uint64_t)unzigzag(least);
    bool fine = false;
    switch (head & SHAPE_MASK) {
    case SHAPE_CONSTANT:
        for (size_t i = 0; k && i < n; i++)
            k[i] = least;
        return true;
    case SHAPE_PLAIN:
        fine = get_plain(in, k, n);
        break;
    case SHAPE_RUNS:
        fine = get_runs(in, k, runs);
        break;
    case SHAPE_CLASSES:
        fine = get_classes(in, k, n);
        break;
    case SHAPE_WORDS:
        fine = get_words(in, k, n);
        break;
    case SHAPE_SPLIT:
        fine = get_split(in, k, n, runs);
        break;
    default:
        break;
    }
    if (!fine || !k)
        return fine;
    if (head & SHAPE_DELTA)
        for (size_t i = 0; i < n; i++)
            k[i] = (uint64_t)unzigzag(k[i]) + (i ? k[i - 1] : 0);
    for (size_t i = 0; i < n; i++)
        k[i] = least + k[i] * step;
    return true;
}

bool column_unpack(struct str *in, int64_t *values, size_t n, struct runs runs)
{
    return get_column(in, values, n, runs);
}

bool column_skip(struct str *in, size_t n, struct runs runs)
{
    return get_column(in, NULL, n, runs);
}
