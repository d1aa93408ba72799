/* Protocol buffers on the wire: a reader over a view of bytes, and a writer into a strbuf.
 *
 * The reader never reads past its view, allocates nothing and copies nothing: byte fields are views
 * of the input. It knows no schema: the caller switches on the field's number and asks for the type
 * that it expects. Field numbers that the caller does not know are skipped by the next call.
 * Source: protobuf.dev/programming-guides/encoding. Any thread; groups are refused. */
#ifndef GPUTALLY_WIRE_PROTOBUF_H
#define GPUTALLY_WIRE_PROTOBUF_H

#include <stdint.h>

#include "util/str.h"

enum protobuf_type {
    PROTOBUF_VARINT = 0,
    PROTOBUF_FIXED64 = 1,
    PROTOBUF_BYTES = 2,
    PROTOBUF_FIXED32 = 5,
};

struct protobuf_reader {
    const char *p, *end;
    const char *broken; /* why the bytes are no message; NULL while they are */
};

/* One field: value for numbers (raw bits; int64 as two's complement), bytes for byte fields. */
struct protobuf_field {
    uint32_t number;
    enum protobuf_type type;
    uint64_t value;
    struct str bytes;
};

static inline struct protobuf_reader protobuf_reader(struct str bytes)
{
    return (struct protobuf_reader){bytes.p, bytes.p + bytes.n, NULL};
}

/* The next field; false at the end of the message and where it is broken (see reader->broken). */
bool protobuf_next(struct protobuf_reader *reader, struct protobuf_field *ret);

/* A varint of at most 10 bytes; false (p untouched) where it is cut or longer. */
bool protobuf_varint(const char **p, const char *end, uint64_t *ret);

double protobuf_double(uint64_t bits);

/* Writing: fields in any order; a nested message is built in a strbuf of its own and put as bytes.
 */
#define PROTOBUF_VARINT_MAX 10
/* A varint at p, where there is room for it: what follows it. */
static inline char *protobuf_varint_at(char *p, uint64_t value)
{
    for (; value >= 128; value >>= 7)
        *p++ = (char)(value | 128);
    *p++ = (char)value;
    return p;
}
void protobuf_put_varint(struct strbuf *buf, uint64_t value); /* no tag */
void protobuf_put_uint64(struct strbuf *buf, uint32_t number, uint64_t value);
void protobuf_put_double(struct strbuf *buf, uint32_t number, double value);
void protobuf_put_bytes(struct strbuf *buf, uint32_t number, struct str bytes);

#endif
