/* Any bytes as a body: the first byte says whether they are it, or the message inside of a sound
 * block. What is decoded is whole: samples lie in series, labels in the bytes. */
#include "wire/remote_write.h"
#include "wire/snappy_block.h"

static void look(const struct remote_write *request)
{
    size_t samples = 0;
    invariant(request->series_n <= REMOTE_WRITE_SERIES_MAX);
    for (size_t i = 0; i < request->series_n; i++) {
        const struct remote_write_series *series = &request->series[i];
        struct label labels[REMOTE_WRITE_LABELS_MAX];
        const char *why = NULL;
        size_t n;
        invariant(series->first == samples);
        samples += series->n;
        invariant(series->labels.p >= request->decoded.text &&
                  series->labels.p + series->labels.n <=
                      request->decoded.text + request->decoded.n);
        bool good = remote_write_labels(series->labels, labels, &n, &why);
        invariant(good == !why);
        for (size_t l = 0; good && l < n; l++)
            invariant(labels[l].name.n + labels[l].value.n <= series->labels.n);
    }
    invariant(samples == request->samples_n);
}

/* What is read on trust and turns out to be labels is what reading all of it gives; and reading
 * over gives that in any case. */
static void trust(const struct remote_write *strict, bool good, struct str block)
{
    struct remote_write quick = {0};
    bool read = remote_write_read_on_trust(&quick, block, (size_t)1 << 20, NULL) == ERR_OK;
    bool labels = read;
    for (size_t i = 0; i < quick.series_n; i++)
        labels &= !quick.series[i].trusted || remote_write_are_labels(quick.series[i].labels);
    invariant(read || !good);
    if (read && !labels)
        invariant((remote_write_read_over(&quick, NULL) == ERR_OK) == good);
    else
        invariant(read == good);
    invariant(quick.series_n == strict->series_n && quick.samples_n == strict->samples_n);
    for (size_t i = 0; i < quick.series_n; i++) {
        const struct remote_write_series *a = &quick.series[i], *b = &strict->series[i];
        invariant(str_eq(a->labels, b->labels) && a->first == b->first && a->n == b->n);
    }
    for (size_t i = 0; i < quick.samples_n; i++)
        invariant(quick.t[i] == strict->t[i] &&
                  memcmp(&quick.v[i], &strict->v[i], sizeof(double)) == 0);
    remote_write_release(&quick);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct remote_write request = {0};
    struct strbuf block = {0};
    if (size == 0)
        return 0;
    struct str bytes = {(const char *)data + 1, size - 1};
    if (data[0] % 2)
        snappy_block_encode(bytes, &block);
    else
        strbuf_add(&block, bytes);
    bool good = remote_write_read(&request, strbuf_str(&block), (size_t)1 << 20, NULL) == ERR_OK;
    trust(&request, good, strbuf_str(&block));
    if (good)
        look(&request);
    else
        invariant(request.series_n == 0 && request.samples_n == 0);
    strbuf_release(&block);
    remote_write_release(&request);
    return 0;
}
