/* Any bytes as a block: never more than the cap comes out, and what the library that defines the
 * format makes of them; what is encoded comes back. */
#include <snappy-c.h>
#include <stdlib.h>

#include "wire/snappy_block.h"

#define CAP ((size_t)1 << 20)

/* Does the library unpack the block to these bytes? */
static bool library_says(struct str block, struct str bytes)
{
    char *out = malloc(bytes.n + 1);
    size_t n = bytes.n;
    bool good = snappy_uncompress(block.p, block.n, out, &n) == SNAPPY_OK && n == bytes.n &&
                memcmp(out, bytes.p, n) == 0;
    free(out);
    return good;
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);
int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    struct str bytes = {(const char *)data, size};
    struct strbuf out = {0}, block = {0};
    size_t declared;
    if (snappy_block_decode(bytes, CAP, &out, NULL) == ERR_OK)
        invariant(out.n <= CAP && library_says(bytes, strbuf_str(&out)));
    else
        invariant(out.n == 0 &&
                  (snappy_uncompressed_length(bytes.p, bytes.n, &declared) != SNAPPY_OK ||
                   declared > CAP ||
                   snappy_validate_compressed_buffer(bytes.p, bytes.n) != SNAPPY_OK));
    strbuf_clear(&out);
    snappy_block_encode(bytes, &block);
    invariant(snappy_block_decode(strbuf_str(&block), size, &out, NULL) == ERR_OK);
    invariant(str_eq(strbuf_str(&out), bytes));
    strbuf_release(&out);
    strbuf_release(&block);
    return 0;
}
