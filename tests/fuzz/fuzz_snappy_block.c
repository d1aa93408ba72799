/* Any bytes as a block: never more than the cap comes out; what is encoded comes back. */
#include "wire/snappy_block.h"

#define CAP ((size_t)1 << 20)

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);
int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    struct str bytes = {(const char *)data, size};
    struct strbuf out = {0}, block = {0};
    if (snappy_block_decode(bytes, CAP, &out, NULL) == ERR_OK)
        invariant(out.n <= CAP);
    else
        invariant(out.n == 0);
    strbuf_clear(&out);
    snappy_block_encode(bytes, &block);
    invariant(snappy_block_decode(strbuf_str(&block), size, &out, NULL) == ERR_OK);
    invariant(str_eq(strbuf_str(&out), bytes));
    strbuf_release(&out);
    strbuf_release(&block);
    return 0;
}
