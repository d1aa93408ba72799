/* Any bytes as messages in messages; every view must lie within its message. */
#include "wire/protobuf.h"

#include "util/error.h"

#define DEPTH_MAX 8

static void walk(struct str message, int depth)
{
    struct protobuf_reader reader = protobuf_reader(message);
    struct protobuf_field field;
    while (protobuf_next(&reader, &field)) {
        invariant(field.number > 0 && !reader.broken);
        if (field.type != PROTOBUF_BYTES)
            continue;
        invariant(field.bytes.p >= message.p &&
                  field.bytes.p + field.bytes.n <= message.p + message.n);
        if (depth < DEPTH_MAX)
            walk(field.bytes, depth + 1);
    }
    invariant(reader.p == reader.end);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    walk((struct str){(const char *)data, size}, 0);
    return 0;
}
