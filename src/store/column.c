/* The shapes. Values are written as k = (v - least) / step, where step divides all of them (stamps
 * in whole half-minutes, ratios in millionths), then as
 *
 *   CONSTANT  nothing
 *   PLAIN     all k in the same number of bits
 *   RUNS      for each run the least k and a width, then k above it in that width: an idle holder's
 *             rows cost nothing beside a busy one's
 *   CLASSES   two bits that choose one of four widths, then k in that
 *   WORDS     up to 16 distinct k, listed, then the index of each
 *   SPLIT     k / a whole number and the rest, as two columns: times that are whole steps and a few
 *             repeating rests
 *
 * and PLAIN and CLASSES also of the differences of neighbours. Bits lie in little-endian order. */
#include "store/column.h"

#include <stdlib.h>

#include "store/column_format.h"

#define SPLIT_VALUES_MIN 32
#define SPLIT_WIDTH_MIN 14

void varint_put(struct strbuf *out, uint64_t v)
{
    while (v >= 128) {
        strbuf_addc(out, (char)(v | 128));
        v >>= 7;
    }
    strbuf_addc(out, (char)v);
}

static int varint_bits(uint64_t v)
{
    int width = width_of(v);
    return 8 * (width <= 7 ? 1 : (width + 6) / 7);
}

/* Bits are or-ed into zeroed bytes; `bytes` has COLUMN_PADDING to spare. */
struct bits {
    uint8_t *bytes;
    size_t at; /* bit */
};

static void bits_put(struct bits *bits, uint64_t v, int width)
{
    uint8_t *p = bits->bytes + (bits->at >> 3);
    int shift = (int)(bits->at & 7);
    uint64_t word;
    memcpy(&word, p, sizeof word);
    word |= v << shift;
    memcpy(p, &word, sizeof word);
    if (shift + width > 64)
        p[8] = (uint8_t)(v >> (64 - shift));
    bits->at += (size_t)width;
}

/* Room for so many bits at the end of `out`, zeroed. */
static struct bits bits_begin(struct strbuf *out, size_t bits)
{
    size_t bytes = (bits + 7) / 8 + COLUMN_PADDING;
    mem_reserve(out->text, out->n, out->room, bytes + 1);
    memset(out->text + out->n, 0, bytes);
    return (struct bits){(uint8_t *)out->text + out->n, 0};
}

static void bits_end(struct strbuf *out, const struct bits *bits)
{
    out->n += (bits->at + 7) / 8;
    out->text[out->n] = 0;
}

/* What the packer knows of a column. */
struct survey {
    int64_t least;
    uint64_t step;
    const uint64_t *k;
    size_t n;
    int width;
    bool part; /* of a split: not split again */
    struct runs runs;
};
static void pack(struct strbuf *out, const int64_t *values, size_t n, struct runs runs, bool part);

static uint64_t gcd(uint64_t a, uint64_t b)
{
    while (b) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static uint64_t step_of(const int64_t *values, size_t n, int64_t least)
{
    uint64_t step = 0;
    for (size_t i = 0; i < n && step != 1; i++) {
        uint64_t above = (uint64_t)values[i] - (uint64_t)least;
        if (step == 0)
            step = above;
        else if (above % step)
            step = gcd(step, above % step);
    }
    return step ? step : 1;
}

/* The four widths that make it smallest, given how many values have which width. */
static size_t best_classes(const size_t *count, int widest, int *ret)
{
    int widths[65], kinds = 0;
    for (int w = 0; w <= widest; w++)
        if (count[w] || w == widest)
            widths[kinds++] = w;
    size_t below[66] = {0}; /* values of the first i widths */
    size_t total = 0;
    for (int i = 0; i < kinds; i++) {
        total += count[widths[i]];
        below[i + 1] = total;
    }
    size_t best = SIZE_MAX;
    int last = kinds - 1;
    for (int a = 0; a <= last; a++)
        for (int b = a; b <= last; b++)
            for (int c = b; c <= last; c++) {
                size_t bits = below[a + 1] * (size_t)widths[a] +
                              (below[b + 1] - below[a + 1]) * (size_t)widths[b] +
                              (below[c + 1] - below[b + 1]) * (size_t)widths[c] +
                              (total - below[c + 1]) * (size_t)widths[last];
                if (bits < best) {
                    best = bits;
                    ret[0] = widths[a], ret[1] = widths[b], ret[2] = widths[c];
                    ret[3] = widths[last];
                }
            }
    return best + 2 * total + CLASSES * WIDTH_BITS;
}

static size_t classes_bits(const uint64_t *k, size_t n, int widest, int *ret)
{
    size_t count[65] = {0};
    for (size_t i = 0; i < n; i++)
        count[width_of(k[i])]++;
    /* Neighbouring widths are put together where there are many, to keep the search short. */
    int kinds = 0;
    for (int w = 0; w <= widest; w++)
        kinds += count[w] != 0;
    for (int w = 1; w < widest && kinds > 12; w++)
        if (count[w] && w % 4) {
            count[w + 1] += count[w];
            kinds -= count[w + 1] != count[w];
            count[w] = 0;
        }
    return best_classes(count, widest, ret);
}

static void put_classes(struct strbuf *out, const uint64_t *k, size_t n, const int *widths)
{
    struct bits bits = bits_begin(out, CLASSES * WIDTH_BITS + n * (2 + (size_t)widths[3]));
    for (int c = 0; c < CLASSES; c++)
        bits_put(&bits, (uint64_t)widths[c], WIDTH_BITS);
    for (size_t i = 0; i < n; i++) {
        int class = 0;
        while (width_of(k[i]) > widths[class])
            class ++;
        bits_put(&bits, (uint64_t) class, 2);
    }
    for (size_t i = 0; i < n; i++) {
        int class = 0;
        while (width_of(k[i]) > widths[class])
            class ++;
        bits_put(&bits, k[i], widths[class]);
    }
    bits_end(out, &bits);
}

static void put_plain(struct strbuf *out, const uint64_t *k, size_t n, int width)
{
    strbuf_addc(out, (char)width);
    struct bits bits = bits_begin(out, n * (size_t)width);
    for (size_t i = 0; i < n; i++)
        bits_put(&bits, k[i], width);
    bits_end(out, &bits);
}

struct run_shape {
    uint64_t least;
    int width;
};

static struct run_shape run_of(const struct survey *survey, size_t r)
{
    uint64_t least = UINT64_MAX, most = 0;
    for (uint32_t i = survey->runs.starts[r]; i < survey->runs.starts[r + 1]; i++) {
        least = survey->k[i] < least ? survey->k[i] : least;
        most = survey->k[i] > most ? survey->k[i] : most;
    }
    return least > most ? (struct run_shape){0, 0}
                        : (struct run_shape){least, width_of(most - least)};
}

static size_t runs_bits(const struct survey *survey, int *ret_least_width)
{
    size_t bits = 8;
    uint64_t most = 0;
    for (size_t r = 0; r < survey->runs.n; r++) {
        struct run_shape run = run_of(survey, r);
        most |= run.least;
        bits += (survey->runs.starts[r + 1] - survey->runs.starts[r]) * (size_t)run.width;
    }
    *ret_least_width = width_of(most);
    return bits + survey->runs.n * (size_t)(WIDTH_BITS + *ret_least_width);
}

static void put_runs(struct strbuf *out, const struct survey *survey, size_t size, int least_width)
{
    strbuf_addc(out, (char)least_width);
    struct bits bits = bits_begin(out, size);
    for (size_t r = 0; r < survey->runs.n; r++) {
        struct run_shape run = run_of(survey, r);
        bits_put(&bits, run.least, least_width);
        bits_put(&bits, (uint64_t)run.width, WIDTH_BITS);
    }
    for (size_t r = 0; r < survey->runs.n; r++) {
        struct run_shape run = run_of(survey, r);
        for (uint32_t i = survey->runs.starts[r]; i < survey->runs.starts[r + 1]; i++)
            bits_put(&bits, survey->k[i] - run.least, run.width);
    }
    bits_end(out, &bits);
}

/* Distinct values in order of coming; 0 where there are more than WORDS_MAX. */
static size_t words_of(const uint64_t *k, size_t n, uint64_t *words)
{
    size_t count = 0;
    for (size_t i = 0; i < n; i++) {
        size_t w = 0;
        if (i && k[i] == k[i - 1])
            continue;
        while (w < count && words[w] != k[i])
            w++;
        if (w < count)
            continue;
        if (count == WORDS_MAX)
            return 0;
        words[count++] = k[i];
    }
    return count;
}

static size_t words_bits(const uint64_t *words, size_t count, size_t n)
{
    size_t bits = 8 + n * (size_t)width_of(count - 1);
    for (size_t w = 0; w < count; w++)
        bits += (size_t)varint_bits(words[w]);
    return bits;
}

static void put_words(struct strbuf *out, const uint64_t *k, size_t n, const uint64_t *words,
                      size_t count)
{
    strbuf_addc(out, (char)count);
    for (size_t w = 0; w < count; w++)
        varint_put(out, words[w]);
    int width = width_of(count - 1);
    struct bits bits = bits_begin(out, n * (size_t)width);
    for (size_t i = 0, w = 0; i < n; i++) {
        if (words[w] != k[i])
            for (w = 0; words[w] != k[i];)
                w++;
        bits_put(&bits, w, width);
    }
    bits_end(out, &bits);
}

/* A whole number by which the rests are few; 0 where none of the usual steps makes it so. */
static uint64_t splitter_of(const struct survey *survey)
{
    static const uint64_t steps_ms[] = {30000, 15000, 60000, 10000, 5000};
    if (survey->part || survey->n < SPLIT_VALUES_MIN || survey->width < SPLIT_WIDTH_MIN ||
        survey->width > 40)
        return 0;
    for (size_t s = 0; s < sizeof steps_ms / sizeof *steps_ms; s++) {
        uint64_t by = steps_ms[s] / gcd(steps_ms[s], survey->step), words[WORDS_MAX];
        size_t count = 0, i = 0;
        for (; by > 1 && i < survey->n; i++) {
            uint64_t rest = survey->k[i] % by;
            size_t w = 0;
            while (w < count && words[w] != rest)
                w++;
            if (w == count) {
                if (count == WORDS_MAX)
                    break;
                words[count++] = rest;
            }
        }
        if (by > 1 && i == survey->n)
            return by;
    }
    return 0;
}

static void put_head(struct strbuf *out, enum shape shape, int flags, const struct survey *survey)
{
    bool step = survey->step != 1 && shape != SHAPE_CONSTANT;
    strbuf_addc(out, (char)((int)shape | flags | (step ? SHAPE_STEP : 0)));
    varint_put(out, zigzag(survey->least));
    if (step)
        varint_put(out, survey->step);
}

static void pack_split(struct strbuf *out, const struct survey *survey, uint64_t by)
{
    int64_t *part = mem_alloc(survey->n * sizeof *part);
    put_head(out, SHAPE_SPLIT, 0, survey);
    varint_put(out, by);
    for (size_t i = 0; i < survey->n; i++)
        part[i] = (int64_t)(survey->k[i] / by);
    pack(out, part, survey->n, survey->runs, true);
    for (size_t i = 0; i < survey->n; i++)
        part[i] = (int64_t)(survey->k[i] % by);
    pack(out, part, survey->n, survey->runs, true);
    free(part);
}

static void pack_best(struct strbuf *out, const struct survey *survey, uint64_t *delta)
{
    size_t n = survey->n, best, bits;
    int widths[CLASSES], delta_widths[CLASSES], least_width = 0, delta_width = 0;
    uint64_t words[WORDS_MAX], any = 0;
    enum shape shape = SHAPE_PLAIN;
    int flags = 0;
    best = 8 + n * (size_t)survey->width;
    size_t words_n = words_of(survey->k, n, words);
    if (words_n && (bits = words_bits(words, words_n, n)) < best)
        best = bits, shape = SHAPE_WORDS;
    if (survey->runs.n > 1 && (bits = runs_bits(survey, &least_width)) < best)
        best = bits, shape = SHAPE_RUNS;
    if ((bits = classes_bits(survey->k, n, survey->width, widths)) < best)
        best = bits, shape = SHAPE_CLASSES;
    for (size_t i = 0; i < n; i++)
        any |= delta[i] = zigzag((int64_t)(survey->k[i] - (i ? survey->k[i - 1] : 0)));
    delta_width = width_of(any);
    if ((bits = 8 + n * (size_t)delta_width) < best)
        best = bits, shape = SHAPE_PLAIN, flags = SHAPE_DELTA;
    if ((bits = classes_bits(delta, n, delta_width, delta_widths)) < best)
        best = bits, shape = SHAPE_CLASSES, flags = SHAPE_DELTA;
    uint64_t by = splitter_of(survey);
    if (by) {
        struct strbuf split = {0};
        pack_split(&split, survey, by);
        bool smaller = split.n * 8 < best + 8 * (size_t)varint_bits(survey->step);
        if (smaller)
            strbuf_add(out, strbuf_str(&split));
        strbuf_release(&split);
        if (smaller)
            return;
    }
    const uint64_t *k = flags ? delta : survey->k;
    put_head(out, shape, flags, survey);
    if (shape == SHAPE_PLAIN)
        put_plain(out, k, n, flags ? delta_width : survey->width);
    else if (shape == SHAPE_WORDS)
        put_words(out, k, n, words, words_n);
    else if (shape == SHAPE_RUNS)
        put_runs(out, survey, best, least_width);
    else
        put_classes(out, k, n, flags ? delta_widths : widths);
}

static void pack(struct strbuf *out, const int64_t *values, size_t n, struct runs runs, bool part)
{
    int64_t least = INT64_MAX, most = INT64_MIN;
    for (size_t i = 0; i < n; i++) {
        least = values[i] < least ? values[i] : least;
        most = values[i] > most ? values[i] : most;
    }
    struct survey survey = {.least = n ? least : 0, .step = 1, .n = n, .part = part, .runs = runs};
    if (least >= most) {
        put_head(out, SHAPE_CONSTANT, 0, &survey);
        return;
    }
    uint64_t *k = mem_alloc(2 * n * sizeof *k);
    survey.step = step_of(values, n, least);
    for (size_t i = 0; i < n; i++) {
        k[i] = (uint64_t)values[i] - (uint64_t)least;
        if (survey.step != 1)
            k[i] /= survey.step;
    }
    survey.k = k;
    survey.width = width_of(((uint64_t)most - (uint64_t)least) / survey.step);
    pack_best(out, &survey, k + n);
    free(k);
}

void column_pack(struct strbuf *out, const int64_t *values, size_t n, struct runs runs)
{
    pack(out, values, n, runs, false);
}
