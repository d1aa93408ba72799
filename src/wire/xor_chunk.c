/* The bit stream behind the first two samples' heads:
 *
 *   time   0 | 10 + 14 bits | 110 + 17 | 1110 + 20 | 1111 + 64    delta of deltas
 *   value  0 (same) | 10 + bits in the last window | 11 + 5 (leading) + 6 (width) + bits
 *
 * The reader keeps no bit buffer, only a position: each sample loads the eight bytes at its
 * position anew. So the next position depends on the bytes only where a window changes; everywhere
 * else the processor runs ahead on predicted branches. A buffer that is shifted and refilled chains
 * every sample to the one before it.
 *
 * Loads may look LOOK_AHEAD bytes past the sample's start. Where the chunk has no such bytes left,
 * its tail is copied in front of zeros and read there. */
#include "wire/xor_chunk.h"

#include "wire/protobuf.h"

#define SAMPLE_BITS_MAX (4 + 64 + 2 + 5 + 6 + 64)
#define LOOK_AHEAD ((size_t)(SAMPLE_BITS_MAX / 8 + 1 + 8))
#define PEEK_BITS 57u /* bits of a peek that are good wherever it begins */
#define RUN 8u        /* samples without any change that are put at once */

struct bits {
    const uint8_t *base;
    uint64_t at;   /* the position, in bits */
    uint64_t stop; /* samples may start up to here */
};

struct series_state {
    uint64_t t, delta, value;
    unsigned lead, width;
};

static inline uint64_t peek(const uint8_t *base, uint64_t at)
{
    uint64_t word;
    memcpy(&word, base + (at >> 3), sizeof word);
    return __builtin_bswap64(word) << (at & 7);
}

/* 1 to 64 bits at the position. */
static inline uint64_t take(struct bits *bits, unsigned n)
{
    uint64_t high = 0;
    if (n > 32) {
        high = peek(bits->base, bits->at) >> 32;
        bits->at += 32;
        n -= 32;
    }
    uint64_t low = peek(bits->base, bits->at) >> (64 - n);
    bits->at += n;
    return high << n | low;
}

/* A delta of deltas that is not 0; word is the peek at the position. */
static inline uint64_t take_dod(struct bits *bits, uint64_t word)
{
    unsigned n;
    if (word >> 62 == 2) {
        bits->at += 2;
        n = 14;
    } else if (word >> 61 == 6) {
        bits->at += 3;
        n = 17;
    } else if (word >> 60 == 14) {
        bits->at += 4;
        n = 20;
    } else {
        bits->at += 4;
        return take(bits, 64);
    }
    uint64_t raw = take(bits, n);
    return raw > UINT64_C(1) << (n - 1) ? raw - (UINT64_C(1) << n) : raw;
}

/* The value's turn; word is the peek at the position. Its bits are loaded anew even where the peek
 * has them: whether it does is a coin toss in noisy data, a load is not. */
static inline bool take_value(struct bits *bits, uint64_t word, struct series_state *state)
{
    if (!(word >> 63)) {
        bits->at += 1;
        return true;
    }
    bits->at += 2;
    if (word >> 62 & 1) {
        bits->at += 11;
        state->lead = (unsigned)(word >> 57) & 31;
        state->width = (unsigned)(word >> 51) & 63;
        if (state->width == 0)
            state->width = 64;
        if (state->lead + state->width > 64)
            return false;
    }
    uint64_t raw;
    if (state->width <= PEEK_BITS) {
        raw = peek(bits->base, bits->at) >> (64 - state->width);
        bits->at += state->width;
    } else {
        raw = take(bits, state->width);
    }
    state->value ^= raw << (64 - state->lead - state->width);
    return true;
}

static inline void put(const struct series_state *state, size_t i, time_ms *t, double *v)
{
    t[i] = (time_ms)state->t;
    memcpy(&v[i], &state->value, sizeof v[i]);
}

/* RUN samples that are like the ones before. */
static inline void put_run(struct series_state *state, size_t i, time_ms *t, double *v)
{
    double value;
    memcpy(&value, &state->value, sizeof value);
    for (unsigned k = 0; k < RUN; k++) {
        t[i + k] = (time_ms)(state->t + (k + 1) * state->delta);
        v[i + k] = value;
    }
    state->t += RUN * state->delta;
}

/* Decode from sample i on while positions allow; returns how far it came, *ret_sound false where a
 * window is none. */
static inline size_t run(struct bits *restrict into, struct series_state *restrict with, size_t i,
                         size_t n, time_ms *restrict t, double *restrict v, bool *ret_sound)
{
    struct bits bits = *into;
    struct series_state state = *with;
    bool sound = true;
    while (i < n && bits.at <= bits.stop) {
        uint64_t word = peek(bits.base, bits.at);
        if (!(word >> (64 - 2 * RUN)) && n - i >= RUN && bits.at + 2 * RUN <= bits.stop) {
            put_run(&state, i, t, v);
            bits.at += 2 * RUN;
            i += RUN;
            continue;
        }
        if (!(word >> 63)) {
            bits.at += 1;
            word <<= 1;
        } else {
            state.delta += take_dod(&bits, word);
            word = peek(bits.base, bits.at);
        }
        state.t += state.delta;
        if (!take_value(&bits, word, &state)) {
            sound = false;
            break;
        }
        put(&state, i++, t, v);
    }
    *into = bits;
    *with = state;
    *ret_sound = sound;
    return i;
}

/* The second sample has a whole delta and then its value; later ones are in run(). */
static size_t decode_rest(const char *p, const char *end, struct series_state *state, size_t n,
                          time_ms *t, double *v)
{
    size_t left = (size_t)(end - p), i = 1;
    struct bits bits = {(const uint8_t *)p, 0, 0};
    uint8_t tail[3 * LOOK_AHEAD + 8];
    bool sound = true, second = true;
    if (left > 2 * LOOK_AHEAD) {
        bits.stop = (left - LOOK_AHEAD) * 8;
        if (!take_value(&bits, peek(bits.base, 0), state))
            return i;
        second = false;
        put(state, i, t, v);
        i = run(&bits, state, i + 1, n, t, v, &sound);
        if (i == n || !sound)
            return i;
    }
    size_t from = bits.at / 8;
    memset(tail, 0, sizeof tail);
    memcpy(tail, bits.base + from, left - from);
    bits = (struct bits){tail, bits.at % 8, (left - from) * 8};
    if (second) {
        if (!take_value(&bits, peek(tail, 0), state) || bits.at > bits.stop)
            return i;
        put(state, i++, t, v);
    }
    i = run(&bits, state, i, n, t, v, &sound);
    return bits.at > bits.stop && sound ? i - 1 : i;
}

enum err xor_chunk_decode(struct str data, time_ms *t, double *v, size_t room, size_t *ret_n,
                          struct error *err)
{
    *ret_n = 0;
    if (data.n < 2)
        return error_set(err, ERR_PARSE, "a chunk of %zu bytes has no sample count", data.n);
    size_t n = xor_chunk_count(data), got = 0;
    if (n > room)
        return error_set(err, ERR_LIMIT, "a chunk of %zu samples, with room for %zu", n, room);
    if (n == 0)
        return ERR_OK;
    const char *p = data.p + 2, *end = data.p + data.n;
    uint64_t first;
    if (!protobuf_varint(&p, end, &first) || end - p < 8)
        goto cut;
    struct series_state state = {
        .width = 64, .t = first >> 1 ^ -(first & 1), .value = peek((const uint8_t *)p, 0)};
    put(&state, 0, t, v);
    got = 1;
    p += 8;
    if (n > 1) {
        if (!protobuf_varint(&p, end, &state.delta))
            goto cut;
        state.t += state.delta;
        got = decode_rest(p, end, &state, n, t, v);
        if (got < n)
            goto cut;
    }
    *ret_n = n;
    return ERR_OK;
cut:
    *ret_n = got;
    return error_set(err, ERR_PARSE, "a chunk of %zu bytes breaks off after %zu of %zu samples",
                     data.n, got, n);
}
