/* Samples as a frame's payload, a column after the other, so that a sample of a live batch takes
 * some four bytes and a few nanoseconds, without a compressor.
 *
 *     bytes of numbers (u32)   bytes of stamps (u32)   numbers   stamps   shapes   digits   8 zeros
 *
 * Numbers and stamps are differences from the one before, as runs: in a live batch series follow
 * each other and stamps stand still, so that a whole column may be one run. Values are what
 * exporters print, decimals of a few digits: a shape (a byte a sample) says how many bytes the
 * whole number of them has and how often it is to be divided by ten. Division rounds as reading the
 * decimal does, so that the value is the same to the bit; what is no such decimal stands as its
 * eight bytes. The zeros let eight bytes be read from where the last digits begin.
 *
 * Earlier versions laid values into eight planes of a byte each, packed by zstd: such frames are
 * read. */
#include <math.h>
#include <stdlib.h>

#include "source/journal_frame.h"
#include "util/error.h"
#include "wire/protobuf.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "digits are copied as they lie");

#define PLANES 8
#define HEAD_BYTES 8
#define TAIL_BYTES 8
#define NUMBER_BYTES_MAX 6 /* of a run of one: a difference of 33 bits */
#define STAMP_BYTES_MAX (PROTOBUF_VARINT_MAX + 1)
#define NUMBER_STEP 2                /* from a series to the next one of its class */
#define LENGTH_MASK 15               /* of a shape; the rest is the exponent, or … */
#define SHAPE_RAW 0xf8               /* eight bytes of the double */
#define WHOLE_MAX 9007199254740992.0 /* 2^53: up to here a double is a whole number exactly */

static const double powers[16] = {1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1, 1, 1, 1, 1, 1};
static const uint64_t masks[16] = {0,
                                   0xff,
                                   0xffff,
                                   0xffffff,
                                   0xffffffff,
                                   0xffffffffff,
                                   0xffffffffffff,
                                   0xffffffffffffff,
                                   0xffffffffffffffff};

void frame_samples_reserve(struct frame_samples *samples, size_t more)
{
    if (samples->n + more <= samples->room)
        return;
    size_t room = samples->room * 2 > samples->n + more ? samples->room * 2 : samples->n + more;
    samples->number = mem_realloc(samples->number, room, sizeof *samples->number);
    samples->t = mem_realloc(samples->t, room, sizeof *samples->t);
    samples->v = mem_realloc(samples->v, room, sizeof *samples->v);
    samples->room = room;
}

void frame_samples_release(struct frame_samples *samples)
{
    free(samples->number);
    free(samples->t);
    free(samples->v);
    *samples = (struct frame_samples){0};
}

static inline uint64_t zigzag(uint64_t difference)
{
    return difference << 1 ^ (uint64_t)((int64_t)difference >> 63);
}

static inline uint64_t unzigzag(uint64_t value)
{
    return value >> 1 ^ (0 - (value & 1));
}

static inline uint64_t bits_of(double v)
{
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    return bits;
}

static inline double double_of(uint64_t bits)
{
    double v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

/* ---- writing */

static void put_length(char *p, size_t n)
{
    for (int i = 0; i < 4; i++)
        p[i] = (char)(n >> (8 * i));
}

static inline char *put_run(char *p, uint64_t difference, size_t n)
{
    return protobuf_varint_at(protobuf_varint_at(p, zigzag(difference)), n);
}

static char *put_numbers(char *p, const uint32_t *number, size_t n)
{
    uint64_t before = 0;
    for (size_t i = 0, end; i < n; i = end) {
        uint64_t step = number[i] - before;
        for (end = i + 1; end < n && (uint64_t)number[end] - number[end - 1] == step;)
            end++;
        p = put_run(p, step, end - i);
        before = number[end - 1];
    }
    return p;
}

static char *put_stamps(char *p, const time_ms *t, size_t n)
{
    uint64_t before = 0;
    for (size_t i = 0, end; i < n; i = end) {
        uint64_t step = (uint64_t)t[i] - before;
        for (end = i + 1; end < n && (uint64_t)t[end] - (uint64_t)t[end - 1] == step;)
            end++;
        p = put_run(p, step, end - i);
        before = (uint64_t)t[end - 1];
    }
    return p;
}

/* v times a power of ten as a whole number, where dividing gives v again to the bit. */
static inline bool is_decimal(double v, double power, int64_t *ret)
{
    double scaled = v * power;
    if (!(fabs(scaled) < WHOLE_MAX))
        return false;
    *ret = (int64_t)(scaled + copysign(0.5, scaled));
    return bits_of((double)*ret / power) == bits_of(v);
}

/* How exporters print: whole numbers, ratios to six places, watts to three, seconds to nine. */
static inline uint8_t shape_of(double v, uint64_t *ret_digits)
{
    int64_t whole;
    unsigned exponent = 0;
    if (!(fabs(v) < WHOLE_MAX) || bits_of((double)(whole = (int64_t)v)) != bits_of(v)) {
        exponent = is_decimal(v, 1e3, &whole)   ? 3
                   : is_decimal(v, 1e6, &whole) ? 6
                   : is_decimal(v, 1e9, &whole) ? 9
                                                : 15;
        if (exponent == 15) {
            *ret_digits = bits_of(v);
            return SHAPE_RAW;
        }
    }
    uint64_t digits = *ret_digits = zigzag((uint64_t)whole);
    unsigned length = digits ? (71 - (unsigned)__builtin_clzll(digits)) / 8 : 0;
    return (uint8_t)(exponent << 4 | length);
}

void frame_samples_put(const struct frame_samples *samples, struct strbuf *ret)
{
    size_t n = samples->n;
    mem_reserve(ret->text, ret->n, ret->room,
                HEAD_BYTES + n * (NUMBER_BYTES_MAX + STAMP_BYTES_MAX + 1 + sizeof(double)) +
                    TAIL_BYTES + 1);
    char *begin = ret->text + ret->n, *numbers = begin + HEAD_BYTES;
    char *stamps = put_numbers(numbers, samples->number, n);
    char *shapes = put_stamps(stamps, samples->t, n);
    char *p = shapes + n;
    put_length(begin, (size_t)(stamps - numbers));
    put_length(begin + 4, (size_t)(shapes - stamps));
    for (size_t i = 0; i < n; i++) {
        uint64_t digits;
        uint8_t shape = shape_of(samples->v[i], &digits);
        shapes[i] = (char)shape;
        memcpy(p, &digits, sizeof digits);
        p += shape & LENGTH_MASK;
    }
    memset(p, 0, TAIL_BYTES);
    ret->n = (size_t)(p + TAIL_BYTES - ret->text);
    ret->text[ret->n] = 0;
}

/* ---- reading */

static uint32_t get_length(const char *p)
{
    uint32_t v = 0;
    for (int i = 4; i-- > 0;)
        v = v << 8 | (uint8_t)p[i];
    return v;
}

/* A varint that is mostly one byte. */
static inline bool get_varint(const char **p, const char *end, uint64_t *ret)
{
    if (*p < end && (uint8_t) * *p < 128) {
        *ret = (uint8_t) * (*p)++;
        return true;
    }
    return protobuf_varint(p, end, ret);
}

/* The next run of at most `most` samples. */
static inline bool get_run(const char **p, const char *end, size_t most, uint64_t *ret_step,
                           size_t *ret_n)
{
    uint64_t difference, n;
    if (!get_varint(p, end, &difference) || !get_varint(p, end, &n) || n == 0 || n > most)
        return false;
    *ret_step = unzigzag(difference);
    *ret_n = (size_t)n;
    return true;
}

/* The next run of numbers after `value`, all of which are numbers. */
static inline bool get_number_run(const char **p, const char *end, size_t most, uint64_t value,
                                  uint64_t *ret_step, size_t *ret_n)
{
    if (!get_run(p, end, most, ret_step, ret_n))
        return false;
    /* Neither step nor run is more than 33 bits, so that no sum wraps round unseen. */
    return *ret_step + UINT32_MAX <= 2 * (uint64_t)UINT32_MAX &&
           value + *ret_step * *ret_n <= UINT32_MAX;
}

static bool read_numbers(const char *p, const char *end, size_t n, uint32_t *number)
{
    uint64_t value = 0, step;
    for (size_t i = 0, run; i < n; i += run) {
        if (!get_number_run(&p, end, n - i, value, &step, &run))
            return false;
        for (size_t k = 0; k < run; k++)
            number[i + k] = (uint32_t)(value += step);
    }
    return p == end;
}

static bool read_stamps(const char *p, const char *end, size_t n, time_ms *t)
{
    uint64_t value = 0, step;
    for (size_t i = 0, run; i < n; i += run) {
        if (!get_run(&p, end, n - i, &step, &run))
            return false;
        for (size_t k = 0; k < run; k++)
            t[i + k] = (time_ms)(value += step);
    }
    return p == end;
}

/* Shapes at p, digits behind them up to end, where the zeros stand. */
static bool read_values(const char *p, const char *end, size_t n, double *v)
{
    const uint8_t *shapes = (const uint8_t *)p;
    const char *digits = p + n;
    for (size_t i = 0; i < n; i++) {
        unsigned shape = shapes[i], length = shape & LENGTH_MASK;
        if (length > (size_t)(end - digits) || length > sizeof(double))
            return false;
        uint64_t bits;
        memcpy(&bits, digits, sizeof bits);
        digits += length;
        bits &= masks[length];
        v[i] = shape == SHAPE_RAW ? double_of(bits)
                                  : (double)(int64_t)unzigzag(bits) / powers[shape >> 4];
    }
    return digits == end;
}

/* Where the columns of a payload begin. */
struct columns {
    const char *numbers, *stamps, *shapes, *end;
};

static bool find_columns(struct str raw, size_t n, struct columns *ret)
{
    if (raw.n < HEAD_BYTES + TAIL_BYTES || raw.n - HEAD_BYTES - TAIL_BYTES < n)
        return false;
    size_t room = raw.n - HEAD_BYTES - TAIL_BYTES - n;
    size_t numbers_n = get_length(raw.p), stamps_n = get_length(raw.p + 4);
    if (numbers_n > room || stamps_n > room - numbers_n)
        return false;
    ret->numbers = raw.p + HEAD_BYTES;
    ret->stamps = ret->numbers + numbers_n;
    ret->shapes = ret->stamps + stamps_n;
    ret->end = raw.p + raw.n - TAIL_BYTES;
    return true;
}

static bool read_columns(struct str raw, size_t n, struct frame_samples *samples)
{
    struct columns columns;
    if (!find_columns(raw, n, &columns))
        return false;
    size_t at = samples->n;
    frame_samples_reserve(samples, n);
    return read_numbers(columns.numbers, columns.stamps, n, samples->number + at) &&
           read_stamps(columns.stamps, columns.shapes, n, samples->t + at) &&
           read_values(columns.shapes, columns.end, n, samples->v + at);
}

/* The smallest and the largest number; false where there are not n sound ones. */
static bool check_numbers(const char *p, const char *end, size_t n, uint32_t *ret_low,
                          uint32_t *ret_high)
{
    uint64_t value = 0, step, low = UINT32_MAX, high = 0;
    for (size_t i = 0, run; i < n; i += run) {
        if (!get_number_run(&p, end, n - i, value, &step, &run))
            return false;
        uint64_t first = value + step;
        value += step * run;
        low = first < low ? first : low;
        low = value < low ? value : low;
        high = first > high ? first : high;
        high = value > high ? value : high;
    }
    *ret_low = (uint32_t)low;
    *ret_high = (uint32_t)high;
    return p == end;
}

bool frame_samples_check(const struct frame *frame, struct str raw, uint32_t *ret_low,
                         uint32_t *ret_high)
{
    struct columns columns;
    size_t n = frame->count, digits = 0, stamps = 0, run;
    uint64_t step;
    if (n == 0 || !find_columns(raw, n, &columns) ||
        !check_numbers(columns.numbers, columns.stamps, n, ret_low, ret_high))
        return false;
    const char *p = columns.stamps;
    for (; stamps < n; stamps += run)
        if (!get_run(&p, columns.shapes, n - stamps, &step, &run))
            return false;
    unsigned most = 0;
    for (size_t i = 0; i < n; i++) {
        unsigned length = (uint8_t)columns.shapes[i] & LENGTH_MASK;
        most = length > most ? length : most;
        digits += length;
    }
    return p == columns.shapes && most <= sizeof(double) &&
           digits == (size_t)(columns.end - columns.shapes) - n;
}

void frame_values_read(struct str raw, uint32_t count, double *ret)
{
    struct columns columns;
    bool good =
        find_columns(raw, count, &columns) && read_values(columns.shapes, columns.end, count, ret);
    invariant(good);
}

struct frame_stretches frame_stretches(struct str raw, uint32_t count)
{
    struct columns columns;
    bool good = find_columns(raw, count, &columns);
    invariant(good);
    return (struct frame_stretches){.numbers = {columns.numbers, columns.stamps, 0, 0, 0},
                                    .stamps = {columns.stamps, columns.shapes, 0, 0, 0},
                                    .count = count};
}

/* Is there a next sample, and how does its number or stamp differ? */
static inline void run_look(struct frame_run *run, size_t most)
{
    bool good = run->left || get_run(&run->p, run->end, most, &run->step, &run->left);
    invariant(good);
}

static inline void run_take(struct frame_run *run, size_t n)
{
    run->value += run->step * n;
    run->left -= n;
}

bool frame_stretch_next(struct frame_stretches *stretches, struct frame_stretch *ret)
{
    struct frame_run *numbers = &stretches->numbers, *stamps = &stretches->stamps;
    uint32_t left = stretches->count - stretches->at;
    size_t n = 1;
    if (left == 0)
        return false;
    run_look(numbers, left);
    run_look(stamps, left);
    run_take(numbers, 1);
    run_take(stamps, 1);
    ret->series = (uint32_t)(numbers->value >> 1);
    ret->at = stretches->at;
    ret->t = (time_ms)stamps->value;
    for (size_t more; n < left; n += more) {
        run_look(numbers, left - n);
        run_look(stamps, left - n);
        if (numbers->step != NUMBER_STEP || stamps->step != 0)
            break;
        more = numbers->left < stamps->left ? numbers->left : stamps->left;
        run_take(numbers, more);
        run_take(stamps, more);
    }
    ret->n = (uint32_t)n;
    stretches->at += (uint32_t)n;
    return true;
}

/* ---- as earlier versions wrote: length of the numbers, differences one by one, planes */

static bool read_old_numbers(const char *p, const char *end, size_t n, uint32_t *number)
{
    uint64_t value = 0, difference;
    for (size_t i = 0; i < n; i++) {
        if (!get_varint(&p, end, &difference))
            return false;
        value += unzigzag(difference);
        if (value > UINT32_MAX)
            return false;
        number[i] = (uint32_t)value;
    }
    return p == end;
}

static bool read_old_stamps(const char *p, const char *end, size_t n, time_ms *t)
{
    uint64_t value = 0, difference;
    for (size_t i = 0; i < n; i++) {
        if (!get_varint(&p, end, &difference))
            return false;
        value += unzigzag(difference);
        t[i] = (time_ms)value;
    }
    return p == end;
}

static bool read_planes(struct str raw, size_t n, struct frame_samples *samples)
{
    if (raw.n < 4 || (raw.n - 4) / (2 + PLANES) < n)
        return false;
    size_t stamps = get_length(raw.p), planes = raw.n - PLANES * n;
    if (stamps < 4 || stamps > planes)
        return false;
    frame_samples_reserve(samples, n);
    size_t at = samples->n;
    if (!read_old_numbers(raw.p + 4, raw.p + stamps, n, samples->number + at) ||
        !read_old_stamps(raw.p + stamps, raw.p + planes, n, samples->t + at))
        return false;
    const uint8_t *p = (const uint8_t *)raw.p + planes;
    for (size_t i = 0; i < n; i++) {
        uint64_t bits = 0;
        for (size_t plane = 0; plane < PLANES; plane++)
            bits |= (uint64_t)p[plane * n + i] << (8 * plane);
        samples->v[at + i] = double_of(bits);
    }
    return true;
}

bool frame_samples_read(const struct frame *frame, struct str raw, struct frame_samples *samples)
{
    size_t n = frame->count;
    if (n == 0 || !(frame->plain ? read_columns(raw, n, samples) : read_planes(raw, n, samples)))
        return false;
    samples->n += n;
    return true;
}
