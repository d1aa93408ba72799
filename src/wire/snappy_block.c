#include "wire/snappy_block.h"

#include <snappy-c.h>

/* The densest element of the format is a copy of 64 bytes in 3. */
#define COPY_BYTES 64
#define COPY_ELEMENT_BYTES 3

enum err snappy_block_decode(struct str block, size_t max_bytes, struct strbuf *ret,
                             struct error *err)
{
    size_t n;
    if (snappy_uncompressed_length(block.p, block.n, &n) != SNAPPY_OK)
        return error_set(err, ERR_PARSE, "not a snappy block: its length cannot be read");
    if (n > max_bytes)
        return error_set(err, ERR_LIMIT,
                         "a snappy block of %zu bytes declares %zu bytes, the limit is %zu",
                         block.n, n, max_bytes);
    if (n / COPY_BYTES > block.n / COPY_ELEMENT_BYTES + 1)
        return error_set(err, ERR_PARSE,
                         "a snappy block of %zu bytes cannot hold the %zu it declares", block.n, n);
    mem_reserve(ret->text, ret->n, ret->room, n + 1);
    size_t got = n;
    if (snappy_uncompress(block.p, block.n, ret->text + ret->n, &got) != SNAPPY_OK || got != n) {
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
