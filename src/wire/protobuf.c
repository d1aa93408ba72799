#include "wire/protobuf.h"

#define FIELD_NUMBER_MAX ((UINT64_C(1) << 29) - 1)

bool protobuf_varint(const char **p, const char *end, uint64_t *ret)
{
    const char *q = *p;
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 70 && q < end; shift += 7) {
        uint8_t byte = (uint8_t)*q++;
        if (shift == 63 && byte > 1)
            return false;
        value |= (uint64_t)(byte & 127) << shift;
        if (byte < 128) {
            *p = q;
            *ret = value;
            return true;
        }
    }
    return false;
}

static bool broken(struct protobuf_reader *reader, const char *why)
{
    reader->broken = why;
    reader->p = reader->end;
    return false;
}

static bool fixed(struct protobuf_reader *reader, size_t bytes, uint64_t *ret)
{
    if ((size_t)(reader->end - reader->p) < bytes)
        return broken(reader, "a fixed field is cut");
    uint64_t value = 0;
    for (size_t i = bytes; i-- > 0;)
        value = value << 8 | (uint8_t)reader->p[i];
    reader->p += bytes;
    *ret = value;
    return true;
}

bool protobuf_next(struct protobuf_reader *reader, struct protobuf_field *ret)
{
    if (reader->p >= reader->end)
        return false;
    uint64_t tag, n;
    if (!protobuf_varint(&reader->p, reader->end, &tag))
        return broken(reader, "a field's tag is cut or too long");
    if (tag >> 3 == 0 || tag >> 3 > FIELD_NUMBER_MAX)
        return broken(reader, "a field's number is out of range");
    ret->number = (uint32_t)(tag >> 3);
    ret->type = (enum protobuf_type)(tag & 7);
    ret->value = 0;
    ret->bytes = STR_NONE;
    switch (ret->type) {
    case PROTOBUF_VARINT:
        if (!protobuf_varint(&reader->p, reader->end, &ret->value))
            return broken(reader, "a number is cut or too long");
        return true;
    case PROTOBUF_BYTES:
        if (!protobuf_varint(&reader->p, reader->end, &n))
            return broken(reader, "a length is cut or too long");
        if (n > (size_t)(reader->end - reader->p))
            return broken(reader, "a length reaches past the end");
        ret->bytes = (struct str){reader->p, (size_t)n};
        reader->p += n;
        return true;
    case PROTOBUF_FIXED64:
        return fixed(reader, 8, &ret->value);
    case PROTOBUF_FIXED32:
        return fixed(reader, 4, &ret->value);
    }
    return broken(reader, "a field's type is not known");
}

double protobuf_double(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

void protobuf_put_varint(struct strbuf *buf, uint64_t value)
{
    char bytes[PROTOBUF_VARINT_MAX];
    size_t n = 0;
    for (; value >= 128; value >>= 7)
        bytes[n++] = (char)(value | 128);
    bytes[n++] = (char)value;
    strbuf_add(buf, (struct str){bytes, n});
}

static void put_tag(struct strbuf *buf, uint32_t number, enum protobuf_type type)
{
    protobuf_put_varint(buf, (uint64_t)number << 3 | type);
}

void protobuf_put_uint64(struct strbuf *buf, uint32_t number, uint64_t value)
{
    put_tag(buf, number, PROTOBUF_VARINT);
    protobuf_put_varint(buf, value);
}

void protobuf_put_double(struct strbuf *buf, uint32_t number, double value)
{
    put_tag(buf, number, PROTOBUF_FIXED64);
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    char bytes[8];
    for (int i = 0; i < 8; i++)
        bytes[i] = (char)(bits >> (8 * i));
    strbuf_add(buf, (struct str){bytes, 8});
}

void protobuf_put_bytes(struct strbuf *buf, uint32_t number, struct str bytes)
{
    put_tag(buf, number, PROTOBUF_BYTES);
    protobuf_put_varint(buf, bytes.n);
    strbuf_add(buf, bytes);
}
