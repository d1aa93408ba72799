/* Any bytes as packed values: refused or taken, nothing outside of them is read; and any values
 * come back as they were. */
#include <stdlib.h>

#include "fleet/pack.h"
#include "util/error.h"

#define VALUES_MAX 1000

static void unpack_any(const unsigned char *data, size_t size, size_t n)
{
    int64_t v[VALUES_MAX];
    char *bytes = malloc(size + 1); /* so that a byte too far is seen */
    if (size)
        memcpy(bytes, data, size);
    const char *end = unpack_values(bytes, bytes + size, v, n);
    invariant(!end || (end >= bytes && end <= bytes + size));
    free(bytes);
}

static void there_and_back(const int64_t *v, size_t n)
{
    struct strbuf out = {0};
    int64_t again[VALUES_MAX];
    pack_values(&out, v, n);
    const char *p = strbuf_str(&out).p;
    invariant(unpack_values(p, p + out.n, again, n) == p + out.n);
    invariant(n == 0 || memcmp(v, again, n * sizeof *v) == 0);
    strbuf_release(&out);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);
int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    int64_t v[VALUES_MAX];
    if (size < 2)
        return 0;
    unpack_any(data + 2, size - 2, (size_t)data[0] + data[1]);
    size_t n = size / sizeof *v < VALUES_MAX ? size / sizeof *v : VALUES_MAX;
    memcpy(v, data, n * sizeof *v);
    there_and_back(v, n);
    for (size_t i = 1; i < n; i++) /* neighbours that are near each other */
        v[i] = (int64_t)((uint64_t)v[i - 1] + ((uint64_t)v[i] & 0xffff) * 1000);
    there_and_back(v, n);
    return 0;
}
