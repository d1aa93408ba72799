/* Prometheus's XOR chunk: up to 65,535 samples as deltas of deltas of time and XORs of values.
 *
 * Pure: bytes in, two columns out; nothing is allocated. Any thread.
 * Source: prometheus tsdb/docs/format/chunks.md, tsdb/chunkenc/xor.go */
#ifndef GPUTALLY_WIRE_XOR_CHUNK_H
#define GPUTALLY_WIRE_XOR_CHUNK_H

#include <stdint.h>

#include "util/clock.h"
#include "util/error.h"
#include "util/str.h"

/* As prompb.Chunk.Encoding has them. */
enum chunk_encoding {
    CHUNK_UNKNOWN = 0,
    CHUNK_XOR = 1,
    CHUNK_HISTOGRAM = 2,
    CHUNK_FLOAT_HISTOGRAM = 3,
};

#define XOR_CHUNK_SAMPLES_MAX ((size_t)65535)

/* How many samples the chunk says it has; 0 where it is too short to say. */
static inline size_t xor_chunk_count(struct str data)
{
    return data.n < 2 ? 0 : (size_t)((uint8_t)data.p[0] << 8 | (uint8_t)data.p[1]);
}

/* Decode into t (ms) and v, which hold `room` samples each; *ret_n is how many. Stale markers come
 * as the NaN that they are (is_stale). ERR_LIMIT where room is too small (see xor_chunk_count),
 * ERR_PARSE where the bytes end before the samples do: then *ret_n samples before the cut are good.
 * t is what the chunk says, ascending or not. */
enum err xor_chunk_decode(struct str data, time_ms *t, double *v, size_t room, size_t *ret_n,
                          struct error *err);

/* Prometheus's stale marker: this one NaN says that the series ended before this stamp. */
#define STALE_NAN_BITS UINT64_C(0x7ff0000000000002)
static inline bool is_stale(double v)
{
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    return bits == STALE_NAN_BITS;
}

#endif
