/* Unpacking is written out here: a live remote-write body is nearly all copies of a few dozen bytes
 * from the series before, for which the library, built for any processor, takes more than twice as
 * long: a quarter of live ingest. Copies and short literals are moved in steps of MOVE_BYTES, past
 * their end, into room that the output has to spare; what comes after overwrites it. Near the end
 * of the block, and for what is rare, every byte is looked at. */
#include "wire/snappy_block.h"

#include <snappy-c.h>
#include <stdint.h>

/* The densest element of the format is a copy of 64 bytes in 3. */
#define COPY_BYTES 64
#define COPY_ELEMENT_BYTES 3
#define MOVE_BYTES                                                                                 \
    ((size_t)64) /* at once, at most; no copy is longer, nor a literal of one byte's length */
#define STEP_BYTES 16

/* An element's kind is in the two low bits of its first byte. */
enum { LITERAL = 0, COPY_1 = 1, COPY_2 = 2, COPY_4 = 3 };
#define LITERAL_SHORT ((size_t)60) /* up to here the length is in the first byte */

/* MOVE_BYTES from `from`, which may overlap `to` from STEP_BYTES before it on. */
static inline void move(char *to, const char *from)
{
    memcpy(to, from, STEP_BYTES);
    memcpy(to + STEP_BYTES, from + STEP_BYTES, STEP_BYTES);
    memcpy(to + 2 * STEP_BYTES, from + 2 * STEP_BYTES, STEP_BYTES);
    memcpy(to + 3 * STEP_BYTES, from + 3 * STEP_BYTES, STEP_BYTES);
}

static inline size_t number_at(const char *p, size_t n)
{
    size_t v = 0;
    for (size_t i = n; i-- > 0;)
        v = v << 8 | (uint8_t)p[i];
    return v;
}

/* Where a block is unpacked to; behind `stop` there are MOVE_BYTES to spare. */
struct room {
    char *begin, *stop;
};

/* n bytes that were written `offset` bytes before, to out; false where there is no such place, or
 * no room. */
static inline bool copy(const struct room *room, char *out, size_t offset, size_t n)
{
    if (offset - 1 >= (size_t)(out - room->begin) || n > (size_t)(room->stop - out))
        return false;
    const char *from = out - offset;
    if (offset >= STEP_BYTES)
        move(out, from);
    else
        for (size_t i = 0; i < n; i++)
            out[i] = from[i];
    return true;
}

/* A literal at p: what follows it; NULL where it is cut, or more than there is room for. */
static const char *literal(const struct room *room, const char *p, const char *end, char **out)
{
    size_t n = ((uint8_t)*p++ >> 2) + 1;
    if (n > LITERAL_SHORT) {
        size_t bytes = n - LITERAL_SHORT;
        if (bytes > (size_t)(end - p))
            return NULL;
        n = number_at(p, bytes) + 1;
        p += bytes;
    }
    if (n > (size_t)(end - p) || n > (size_t)(room->stop - *out))
        return NULL;
    memcpy(*out, p, n);
    *out += n;
    return p + n;
}

static inline size_t short_bytes(uint8_t tag)
{
    return (size_t)(tag >> 2 & 7) + 4;
}

static inline size_t short_offset(const char *p)
{
    return (size_t)((uint8_t)p[0] >> 5) << 8 | (uint8_t)p[1];
}

/* Any element at p, every byte looked at: what follows it. */
static const char *element(const struct room *room, const char *p, const char *end, char **out)
{
    static const size_t more[] = {[COPY_1] = 1, [COPY_2] = 2, [COPY_4] = 4};
    uint8_t tag = (uint8_t)*p, kind = tag & 3;
    if (kind == LITERAL)
        return literal(room, p, end, out);
    if ((size_t)(end - p) <= more[kind])
        return NULL;
    size_t n = kind == COPY_1 ? short_bytes(tag) : (size_t)(tag >> 2) + 1;
    size_t offset = kind == COPY_1 ? short_offset(p) : number_at(p + 1, more[kind]);
    if (!copy(room, *out, offset, n))
        return NULL;
    *out += n;
    return p + 1 + more[kind];
}

/* Do the elements from p to end fill the room? */
static bool unpack(const struct room *room, const char *p, const char *end)
{
    char *out = room->begin, *at;
    while (p && (size_t)(end - p) > MOVE_BYTES) {
        uint8_t tag = (uint8_t)*p;
        size_t n = (size_t)(tag >> 2) + 1;
        if ((tag & 3) == COPY_2) {
            if (!copy(room, out, number_at(p + 1, 2), n))
                return false;
            p += 3;
            out += n;
        } else if ((tag & 3) == LITERAL && n <= LITERAL_SHORT) {
            if (n > (size_t)(room->stop - out))
                return false;
            move(out, p + 1);
            p += 1 + n;
            out += n;
        } else if ((tag & 3) == COPY_1) {
            n = short_bytes(tag);
            if (!copy(room, out, short_offset(p), n))
                return false;
            p += 2;
            out += n;
        } else {
            at = out; /* so that `out` itself may stay in a register */
            p = element(room, p, end, &at);
            out = at;
        }
    }
    for (; p && p < end; out = at) {
        at = out;
        p = element(room, p, end, &at);
    }
    return p && out == room->stop;
}

enum err snappy_block_decode(struct str block, size_t max_bytes, struct strbuf *ret,
                             struct error *err)
{
    size_t n, head = 0;
    if (snappy_uncompressed_length(block.p, block.n, &n) != SNAPPY_OK)
        return error_set(err, ERR_PARSE, "not a snappy block: its length cannot be read");
    if (n > max_bytes)
        return error_set(err, ERR_LIMIT,
                         "a snappy block of %zu bytes declares %zu bytes, the limit is %zu",
                         block.n, n, max_bytes);
    if (n / COPY_BYTES > block.n / COPY_ELEMENT_BYTES + 1)
        return error_set(err, ERR_PARSE,
                         "a snappy block of %zu bytes cannot hold the %zu it declares", block.n, n);
    while ((uint8_t)block.p[head++] & 128) /* the length, which is sound */
        ;
    mem_reserve(ret->text, ret->n, ret->room, n + MOVE_BYTES + 1);
    struct room room = {ret->text + ret->n, ret->text + ret->n + n};
    if (!unpack(&room, block.p + head, block.p + block.n)) {
        ret->text[ret->n] = 0;
        return error_set(err, ERR_PARSE, "not a snappy block: its bytes do not decode");
    }
    ret->n += n;
    ret->text[ret->n] = 0;
    return ERR_OK;
}

void snappy_block_encode(struct str bytes, struct strbuf *ret)
{
    size_t n = snappy_max_compressed_length(bytes.n);
    mem_reserve(ret->text, ret->n, ret->room, n + 1);
    snappy_status status = snappy_compress(bytes.p, bytes.n, ret->text + ret->n, &n);
    invariant(status == SNAPPY_OK);
    ret->n += n;
    ret->text[ret->n] = 0;
}
