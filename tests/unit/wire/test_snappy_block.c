#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "wire/snappy_block.h"

static void blocks_come_back(void **state)
{
    (void)state;
    struct strbuf bytes = {0}, block = {0}, out = {0};
    struct error err;
    strbuf_add(&out, STR("before"));
    for (int i = 0; i < 5000; i++)
        strbuf_addf(&bytes, "%d,", i % 700);
    snappy_block_encode(strbuf_str(&bytes), &block);
    assert_true(block.n < bytes.n);
    assert_int_equal(snappy_block_decode(strbuf_str(&block), bytes.n, &out, &err), ERR_OK);
    assert_int_equal(out.n, 6 + bytes.n);
    assert_memory_equal(out.text, "before", 6);
    assert_memory_equal(out.text + 6, bytes.text, bytes.n);
    assert_int_equal(snappy_block_decode(strbuf_str(&block), bytes.n - 1, &out, &err), ERR_LIMIT);
    assert_int_equal(out.n, 6 + bytes.n);
    strbuf_release(&bytes);
    strbuf_release(&block);
    strbuf_release(&out);
}

static void the_densest_block_is_let_through(void **state)
{
    (void)state;
    struct strbuf bytes = {0}, block = {0}, out = {0};
    char *zeros = calloc(1, 10 << 20);
    strbuf_add(&bytes, (struct str){zeros, 10 << 20});
    snappy_block_encode(strbuf_str(&bytes), &block);
    assert_true(block.n < bytes.n / 20);
    assert_int_equal(snappy_block_decode(strbuf_str(&block), bytes.n, &out, NULL), ERR_OK);
    assert_true(str_eq(strbuf_str(&out), strbuf_str(&bytes)));
    free(zeros);
    strbuf_release(&bytes);
    strbuf_release(&block);
    strbuf_release(&out);
}

static void a_declared_length_is_believed_only_if_it_can_be(void **state)
{
    (void)state;
    struct strbuf out = {0};
    struct error err;
    assert_int_equal(
        snappy_block_decode(STR("\x80\x80\x80\x80\x0cxxxxxxxxxxxx"), 1 << 28, &out, &err),
        ERR_LIMIT); /* 3 GiB */
    assert_int_equal(snappy_block_decode(STR("\x80\x80\x80\x40xxxxxxxxxxxx"), 1 << 28, &out, &err),
                     ERR_PARSE); /* 128 MiB in 16 bytes */
    assert_int_equal(out.room, 0);
    assert_int_equal(snappy_block_decode(STR(""), 100, &out, &err), ERR_PARSE);
    assert_int_equal(snappy_block_decode(STR("\xff\xff\xff\xff\xff\xff"), 100, &out, &err),
                     ERR_PARSE);
    assert_int_equal(snappy_block_decode(STR("\x05\x0cxxxx"), 100, &out, &err), ERR_PARSE);
    assert_int_equal(out.n, 0);
    assert_int_equal(snappy_block_decode(STR("\x00"), 100, &out, &err), ERR_OK);
    assert_int_equal(out.n, 0);
    strbuf_release(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_come_back),
        cmocka_unit_test(the_densest_block_is_let_through),
        cmocka_unit_test(a_declared_length_is_believed_only_if_it_can_be),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
