/* Any bytes as text: whole, in two pieces and byte by byte they must give the same; and a decoder
 * that read them before must give the same again. The first byte chooses the dialect, the second
 * the cut. */
#include <stdlib.h>

#include "wire/promtext.h"
#include "wire/utf8.h"

#define BYTE_BY_BYTE_MAX 512

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

static uint32_t on_series(void *context, const struct label *labels, size_t n)
{
    struct digest *digest = context;
    invariant(n >= 1 && n <= PROMTEXT_LABELS_MAX && str_eq(labels[0].name, STR("__name__")));
    invariant(labels[0].value.n > 0);
    for (size_t i = 0; i < n; i++) {
        invariant(labels[i].name.n > 0 && utf8_valid(labels[i].value));
        mix(digest, labels[i].name.p, labels[i].name.n);
        mix(digest, labels[i].value.p, labels[i].value.n);
    }
    return digest->series++ % 7 == 6 ? PROMTEXT_SKIP : digest->series;
}

static void on_samples(void *context, const uint32_t *id, const time_ms *t, const double *v,
                       size_t n)
{
    struct digest *digest = context;
    for (size_t i = 0; i < n; i++) {
        mix(digest, &id[i], sizeof id[i]);
        mix(digest, &t[i], sizeof t[i]);
        mix(digest, &v[i], sizeof v[i]);
    }
}

static void on_bad_line(void *context, uint64_t line, struct str begins, const char *reason)
{
    mix(context, &line, sizeof line);
    mix(context, begins.p, begins.n);
    mix(context, reason, strlen(reason));
}

static struct digest read_text(enum promtext_dialect dialect, const char *p, size_t n, size_t cut,
                               bool twice)
{
    struct digest digest = {0};
    struct promtext_sink sink = {&digest, on_series, on_samples, on_bad_line};
    struct promtext *x = promtext_new(dialect, &sink);
    for (int round = 0; round <= twice; round++) {
        size_t series = digest.series;
        promtext_begin(x, 1000);
        if (cut <= n) {
            promtext_feed(x, (struct str){p, cut});
            promtext_feed(x, (struct str){p + cut, n - cut});
        } else {
            for (size_t i = 0; i < n; i++)
                promtext_feed(x, (struct str){p + i, 1});
        }
        promtext_finish(x);
        const struct promtext_stats *stats = promtext_stats(x);
        invariant(stats->bytes == n);
        invariant(!round || digest.series == series);
    }
    promtext_free(x);
    return digest;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    enum promtext_dialect dialect = (enum promtext_dialect)(data[0] % 3);
    size_t n = size - 2, cut = n * data[1] / 255;
    char *copy = malloc(n ? n : 1);
    memcpy(copy, data + 2, n);
    struct digest whole = read_text(dialect, copy, n, n, true);
    struct digest two = read_text(dialect, copy, n, cut, true);
    invariant(whole.sum == two.sum);
    if (n <= BYTE_BY_BYTE_MAX) {
        struct digest bytes = read_text(dialect, copy, n, n + 1, true);
        invariant(whole.sum == bytes.sum);
    }
    free(copy);
    return 0;
}
