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
    if (remote_write_read(&request, strbuf_str(&block), (size_t)1 << 20, NULL) == ERR_OK)
        look(&request);
    else
        invariant(request.series_n == 0 && request.samples_n == 0);
    strbuf_release(&block);
    remote_write_release(&request);
    return 0;
}
