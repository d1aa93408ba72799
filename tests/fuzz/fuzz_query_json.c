/* Any bytes as an answer: whole, cut in two and byte by byte they must give the same, and what we
 * call JSON must be JSON to jansson. The first byte is where to cut. */
#include <stdlib.h>

#include <jansson.h>

#include "wire/query_json.h"
#include "wire/utf8.h"

struct digest {
    uint64_t sum;
    uint32_t series;
};

static void mix(struct digest *digest, const void *bytes, size_t n)
{
    const unsigned char *p = bytes;
    for (size_t i = 0; i < n; i++)
        digest->sum = (digest->sum ^ p[i]) * UINT64_C(0x100000001b3);
}

static bool on_series(void *context, const struct label *labels, size_t n)
{
    struct digest *digest = context;
    invariant(n <= QUERY_JSON_LABELS_MAX);
    for (size_t i = 0; i < n; i++) {
        mix(digest, labels[i].name.p, labels[i].name.n);
        mix(digest, labels[i].value.p, labels[i].value.n);
    }
    return digest->series++ % 5 != 4;
}

static void on_samples(void *context, const time_ms *t, const double *v, size_t n)
{
    invariant(n > 0 && n <= QUERY_JSON_BATCH);
    for (size_t i = 0; i < n; i++) {
        mix(context, &t[i], sizeof t[i]);
        mix(context, &v[i], sizeof v[i]);
    }
}

static void on_text(void *context, struct str text)
{
    mix(context, text.p, text.n);
}

static struct digest read_text(const char *p, size_t n, size_t cut, enum err *ret)
{
    struct digest digest = {0};
    struct query_json_sink sink = {&digest, on_series, on_samples, on_text};
    struct query_json *x = query_json_new(&sink);
    size_t piece = cut <= n ? cut : 1;
    enum err code = ERR_OK;
    for (size_t i = 0; i < n && !code;) {
        size_t take = piece && n - i > piece ? piece : n - i;
        code = query_json_feed(x, (struct str){p + i, take}, NULL);
        i += take;
        if (cut <= n)
            piece = 0;
    }
    if (!code)
        code = query_json_finish(x, NULL);
    query_json_free(x);
    *ret = code;
    return digest;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    size_t n = size - 1, cut = n * data[0] / 255;
    char *copy = malloc(n ? n : 1);
    memcpy(copy, data + 1, n);
    enum err a, b, c;
    struct digest whole = read_text(copy, n, n, &a), two = read_text(copy, n, cut, &b),
                  bytes = read_text(copy, n, n + 1, &c);
    invariant(a == b && a == c);
    invariant(whole.series == two.series && whole.series == bytes.series);
    if (!a)
        invariant(whole.sum == two.sum && whole.sum == bytes.sum);
    json_error_t error;
    json_t *root = json_loadb(copy, n, JSON_REJECT_DUPLICATES | JSON_DISABLE_EOF_CHECK, &error);
    invariant(!root || a != ERR_PARSE || error.position < (int)n);
    json_decref(root);
    free(copy);
    return 0;
}
