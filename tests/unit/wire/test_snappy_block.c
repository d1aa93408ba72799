#include "../../lib/unit.h"

#include <snappy-c.h>

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

/* ---- every element, by hand; and what the library that defines the format says of any bytes */

#define A16 "aaaaaaaaaaaaaaaa"

static void each_element_is_read(void **state)
{
    (void)state;
    static const struct {
        struct str block, bytes; /* bytes none: no block */
    } cases[] = {
        {STR("\x03\x08"
             "abc"),
         STR("abc")},
        {STR("\x03\xf0\x02"
             "abc"),
         STR("abc")}, /* a byte of length */
        {STR("\x03\xf4\x02\0"
             "abc"),
         STR("abc")}, /* two */
        {STR("\x03\xf8\x02\0\0"
             "abc"),
         STR("abc")}, /* three */
        {STR("\x03\xfc\x02\0\0\0"
             "abc"),
         STR("abc")}, /* four */
        {STR("\x07\x08"
             "abc"
             "\x01\x03"),
         STR("abcabca")}, /* COPY_1: 4 bytes from 3 before */
        {STR("\x0e\x08"
             "abc"
             "\x1d\x01"),
         STR("abcccccccccccc")}, /* 11 bytes from 1 before */
        {STR("\x05\x08"
             "abc"
             "\x06\x02\0"),
         STR("abcbc")}, /* COPY_2: 2 bytes from 2 before */
        {STR("\x04\x08"
             "abc"
             "\x03\x03\0\0\0"),
         STR("abca")}, /* COPY_4: 1 byte from 3 before */
        {STR("\x13\x3c" A16 "\x0a\x10\0"), STR(A16 "aaa")},
        {STR("\x07\x08"
             "abc"
             "\x01\x04"),
         {0}}, /* from before the beginning */
        {STR("\x07\x08"
             "abc"
             "\x01\0"),
         {0}}, /* from nowhere */
        {STR("\x06\x08"
             "abc"
             "\x01\x03"),
         {0}}, /* more than is declared */
        {STR("\x08\x08"
             "abc"
             "\x01\x03"),
         {0}}, /* less */
        {STR("\x07\x08"
             "abc"
             "\x01"),
         {0}}, /* cut */
        {STR("\x05\x08"
             "abc"
             "\x06\x02"),
         {0}},
        {STR("\x04\x08"
             "abc"
             "\x03\x03\0\0"),
         {0}},
        {STR("\x03\x08"
             "ab"),
         {0}},
        {STR("\x03\xf4\x02"), {0}},
        {STR("\x03\x08"
             "abc"
             "\0"
             "d"),
         {0}}, /* more than is declared */
        {STR("\x03\xfc\xff\xff\xff\xff"
             "abc"),
         {0}}, /* 4 GiB */
    };
    struct strbuf out = {0};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        enum err e = snappy_block_decode(cases[i].block, 1000, &out, NULL);
        assert_int_equal(e, cases[i].bytes.p ? ERR_OK : ERR_PARSE);
        assert_true(str_eq(strbuf_str(&out), cases[i].bytes));
        strbuf_clear(&out);
    }
    strbuf_release(&out);
}

static void as_the_library(struct str block)
{
    struct strbuf out = {0};
    char bytes[1 << 16];
    size_t n = 0, got = sizeof bytes;
    bool good = snappy_uncompressed_length(block.p, block.n, &n) == SNAPPY_OK &&
                n <= sizeof bytes && snappy_uncompress(block.p, block.n, bytes, &got) == SNAPPY_OK;
    assert_int_equal(snappy_block_decode(block, sizeof bytes, &out, NULL) == ERR_OK, good);
    assert_true(str_eq(strbuf_str(&out), good ? (struct str){bytes, got} : STR("")));
    strbuf_release(&out);
}

/* Texts that repeat themselves from near and far, packed by the library, with bytes changed, cut
 * and put in. */
static void damaged_blocks_are_what_the_library_says(void **state)
{
    (void)state;
    struct random random = random_new();
    struct strbuf bytes = {0}, block = {0};
    for (int turn = 0; turn < 3000; turn++) {
        strbuf_clear(&bytes);
        strbuf_clear(&block);
        for (size_t want = (size_t)random_below(&random, 3000); bytes.n < want;) {
            size_t back = (size_t)random_below(&random, (int64_t)bytes.n + 1);
            size_t n = (size_t)random_below(&random, 200);
            for (size_t i = 0; i < n; i++) {
                char c = back ? bytes.text[bytes.n - back] : (char)random_next(&random);
                strbuf_add(&bytes, (struct str){&c, 1});
            }
        }
        snappy_block_encode(strbuf_str(&bytes), &block);
        as_the_library(strbuf_str(&block));
        for (int64_t n = random_below(&random, 4); n-- > 0;)
            block.text[random_below(&random, (int64_t)block.n)] = (char)random_next(&random);
        as_the_library(strbuf_str(&block));
        as_the_library((struct str){block.text, (size_t)random_below(&random, (int64_t)block.n)});
    }
    strbuf_release(&bytes);
    strbuf_release(&block);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_come_back),
        cmocka_unit_test(the_densest_block_is_let_through),
        cmocka_unit_test(a_declared_length_is_believed_only_if_it_can_be),
        cmocka_unit_test(each_element_is_read),
        cmocka_unit_test(damaged_blocks_are_what_the_library_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
