/* By hand from protobuf.dev/programming-guides/encoding, and round trips. What a real server sends
 * is in test_remote_read.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "wire/protobuf.h"

static struct protobuf_field one(const char *bytes, size_t n)
{
    struct protobuf_reader reader = protobuf_reader((struct str){bytes, n});
    struct protobuf_field field;
    assert_true(protobuf_next(&reader, &field));
    assert_ptr_equal(reader.p, reader.end);
    assert_null(reader.broken);
    return field;
}
#define ONE(text) one(text, sizeof text - 1)

static void fields_of_every_type_are_read(void **state)
{
    (void)state;
    struct protobuf_field field = ONE("\x08\x96\x01");
    assert_true(field.number == 1 && field.type == PROTOBUF_VARINT && field.value == 150);
    field = ONE("\x12\x07testing");
    assert_true(field.number == 2 && str_eq(field.bytes, STR("testing")));
    field = ONE("\x10\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01");
    assert_true((int64_t)field.value == -2);
    field = ONE("\x09\0\0\0\0\0\0\xf8\x3f");
    assert_true(field.type == PROTOBUF_FIXED64 && protobuf_double(field.value) == 1.5);
    field = ONE("\x0d\x01\x02\x03\x04");
    assert_true(field.type == PROTOBUF_FIXED32 && field.value == 0x04030201);
    field = ONE("\xf8\xff\xff\xff\x0f\x00");
    assert_int_equal(field.number, (1 << 29) - 1);
    field = ONE("\x12\x00");
    assert_int_equal(field.bytes.n, 0);
}

static void broken(const char *bytes, size_t n, const char *why)
{
    char *copy = malloc(n);
    memcpy(copy, bytes, n);
    struct protobuf_reader reader = protobuf_reader((struct str){copy, n});
    struct protobuf_field field;
    assert_false(protobuf_next(&reader, &field));
    assert_string_equal(reader.broken, why);
    assert_false(protobuf_next(&reader, &field));
    free(copy);
}
#define BROKEN(text, why) broken(text, sizeof text - 1, why)

static void broken_bytes_are_refused(void **state)
{
    (void)state;
    BROKEN("\x08", "a number is cut or too long");
    BROKEN("\x08\x80", "a number is cut or too long");
    BROKEN("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", "a number is cut or too long");
    BROKEN("\x08\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", "a number is cut or too long");
    BROKEN("\x80", "a field's tag is cut or too long");
    BROKEN("\x00\x01", "a field's number is out of range");
    BROKEN("\x80\x80\x80\x80\x10\x00", "a field's number is out of range");
    BROKEN("\x12\x02x", "a length reaches past the end");
    BROKEN("\x12\x80\x80\x80\x80\x0cxxxx", "a length reaches past the end"); /* 3 GiB */
    BROKEN("\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01xxxx", "a length reaches past the end");
    BROKEN("\x12", "a length is cut or too long");
    BROKEN("\x09\0\0\0\0\0\0\0", "a fixed field is cut");
    BROKEN("\x0d\0\0\0", "a fixed field is cut");
    BROKEN("\x0b", "a field's type is not known"); /* groups */
    BROKEN("\x0f", "a field's type is not known");
}

static void what_is_written_is_read(void **state)
{
    (void)state;
    struct strbuf buf = {0};
    for (int bit = 0; bit < 64; bit++)
        protobuf_put_uint64(&buf, (uint32_t)bit + 1, UINT64_C(1) << bit);
    protobuf_put_uint64(&buf, 100, UINT64_MAX);
    protobuf_put_double(&buf, 101, -0.1);
    protobuf_put_bytes(&buf, 102, STR("a\0b"));
    struct protobuf_reader reader = protobuf_reader(strbuf_str(&buf));
    struct protobuf_field field;
    for (int bit = 0; bit < 64; bit++) {
        assert_true(protobuf_next(&reader, &field));
        assert_true(field.number == (uint32_t)bit + 1 && field.value == UINT64_C(1) << bit);
    }
    assert_true(protobuf_next(&reader, &field) && field.value == UINT64_MAX);
    assert_true(protobuf_next(&reader, &field) && protobuf_double(field.value) == -0.1);
    assert_true(protobuf_next(&reader, &field) && str_eq(field.bytes, STR("a\0b")));
    assert_false(protobuf_next(&reader, &field));
    assert_null(reader.broken);
    strbuf_release(&buf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields_of_every_type_are_read),
        cmocka_unit_test(broken_bytes_are_refused),
        cmocka_unit_test(what_is_written_is_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
