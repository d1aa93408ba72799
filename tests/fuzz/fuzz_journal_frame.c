/* Any bytes as what a segment file holds, behind a sound checksum: columns of samples, definitions,
 * entries of an index, heads. What is read fits into what was given, and samples that were read are
 * written as they came. */
#include <stdlib.h>

#include "source/journal_frame.h"
#include "util/error.h"

/* Stretches say of each sample what its number and stamp do, and values are the same. */
static void stretches(struct str raw, const struct frame_samples *samples)
{
    uint32_t low, high, n = (uint32_t)samples->n, at = 0;
    struct frame frame = {.kind = FRAME_SAMPLES, .plain = true, .count = n};
    if (!frame_samples_check(&frame, raw, &low, &high))
        abort();
    double *values = malloc(n * sizeof *values);
    frame_values_read(raw, n, values);
    invariant(memcmp(values, samples->v, n * sizeof *values) == 0);
    struct frame_stretches all = frame_stretches(raw, n);
    struct frame_stretch stretch;
    while (frame_stretch_next(&all, &stretch)) {
        invariant(stretch.at == at && stretch.n > 0 && stretch.n <= n - at);
        for (uint32_t i = 0; i < stretch.n; i++, at++) {
            invariant(samples->number[at] >= low && samples->number[at] <= high);
            invariant(samples->number[at] >> 1 == stretch.series + i &&
                      samples->t[at] == stretch.t);
        }
    }
    invariant(at == n);
    free(values);
}

static void samples(struct str bytes, uint32_t count, bool plain)
{
    struct frame frame = {.kind = FRAME_SAMPLES, .plain = plain, .count = count};
    struct frame_samples samples = {0}, again = {0};
    struct strbuf raw = {0};
    if (frame_samples_read(&frame, bytes, &samples)) {
        invariant(samples.n == count);
        if (plain)
            stretches(bytes, &samples);
        frame_samples_put(&samples, &raw);
        frame.plain = true;
        invariant(frame_samples_read(&frame, strbuf_str(&raw), &again));
        invariant(count == 0 || memcmp(samples.t, again.t, count * sizeof *again.t) == 0);
        invariant(count == 0 || memcmp(samples.v, again.v, count * sizeof *again.v) == 0);
    } else {
        invariant(samples.n == 0);
    }
    frame_samples_release(&samples);
    frame_samples_release(&again);
    strbuf_release(&raw);
}

static void definitions(struct str bytes)
{
    struct label labels[16];
    const char *p = bytes.p, *end = bytes.p + bytes.n;
    size_t n;
    while (frame_definition_read(&p, end, labels, 16, &n)) {
        invariant(n <= 16 && p <= end);
        for (size_t i = 0; i < n; i++)
            invariant(labels[i].name.p >= bytes.p && labels[i].value.p + labels[i].value.n <= end);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    struct str bytes = {(const char *)data + 2, size - 2};
    struct frame_entry *entries;
    struct frame frame;
    struct segment_head head;
    uint64_t at;
    size_t n;
    samples(bytes, data[1], false);
    samples(bytes, data[1], true);
    definitions(bytes);
    if (frame_entries_read(bytes, 1 << 20, &entries, &n))
        free(entries);
    if (bytes.n >= FRAME_HEADER_BYTES)
        frame_read(bytes.p, 0, &frame);
    segment_head_read(bytes, &head);
    segment_trailer_read(bytes, 0, &at);
    frame = (struct frame){.raw = data[0] * 16u};
    struct strbuf raw = {0};
    struct str view;
    frame_unpack(&frame, bytes, &raw, &view);
    strbuf_release(&raw);
    return 0;
}
