/* From samples to frames. A batch packs by itself, on its owner's thread; only the append is one
 * after the other.
 *
 * A series is named under the segment's lock: it gets a number, and its definition waits for the
 * next frame that anybody appends. So a receiver that finds a series which another one has just
 * named never appends samples in front of the definition, whoever comes first. */
#include <stdlib.h>

#include "fleet/intake.h"
#include "source/journal_impl.h"
#include "wire/utf8.h"

struct journal_batch *journal_batch_new(struct journal *journal)
{
    struct journal_batch *batch = mem_zalloc(1, sizeof *batch);
    batch->journal = journal;
    batch->packer = frame_packer_new();
    return batch;
}

void journal_batch_free(struct journal_batch *batch)
{
    if (!batch)
        return;
    journal_abandon(batch);
    frame_samples_release(&batch->gpu);
    frame_samples_release(&batch->kube);
    frame_packer_free(batch->packer);
    strbuf_release(&batch->raw);
    strbuf_release(&batch->packed);
    strbuf_release(&batch->definitions);
    free(batch->live);
    free(batch);
}

void journal_announce(struct journal_batch *batch)
{
    if (!batch->announced)
        atomic_fetch_add(&batch->journal->announced, 1);
    batch->announced = true;
}

/* It has come, or will not. */
static void arrive(struct journal_batch *batch)
{
    bool last = batch->announced && atomic_fetch_sub(&batch->journal->announced, 1) == 1;
    batch->announced = false;
    if (last && batch->segment)
        segment_join(batch->segment);
}

uint64_t journal_begin(struct journal_batch *batch)
{
    invariant(!batch->segment);
    batch->segment = journal_pin(batch->journal);
    return batch->segment->head.number;
}

void journal_abandon(struct journal_batch *batch)
{
    struct segment *segment = batch->segment;
    arrive(batch);
    batch->segment = NULL;
    batch->gpu.n = batch->kube.n = 0;
    if (segment)
        journal_unpin(segment, batch->packer);
}

void journal_find(struct journal_batch *batch, const struct journal_key *keys, size_t n,
                  struct journal_series *ret)
{
    struct segment *segment = batch->segment;
    uint32_t before = SERIES_FIRST;
    pthread_mutex_lock(&segment->names);
    for (size_t i = 0; i < n; i++)
        ret[i] = series_table_get(&segment->table, keys[i], &before);
    pthread_mutex_unlock(&segment->names);
}

/* Labels that are not empty, by name; false where they name no series. */
static bool sort_labels(const struct label *labels, size_t n, struct label *out, size_t *ret_n,
                        const char **ret_reason)
{
    size_t kept = 0, bytes = 0;
    *ret_reason = "too many labels";
    for (size_t i = 0; i < n; i++) {
        if (labels[i].value.n == 0)
            continue;
        if (kept == JOURNAL_LABELS_MAX)
            return false;
        bytes += labels[i].name.n + labels[i].value.n;
        size_t at = kept++;
        for (; at > 0 && str_cmp(labels[i].name, out[at - 1].name) < 0; at--)
            out[at] = out[at - 1];
        out[at] = labels[i];
    }
    *ret_reason = "its labels are too long";
    if (bytes > JOURNAL_LABELS_BYTES_MAX)
        return false;
    *ret_reason = "a label name stands twice";
    for (size_t i = 1; i < kept; i++)
        if (str_eq(out[i].name, out[i - 1].name))
            return false;
    *ret_reason = "a label is not UTF-8, or has no name";
    for (size_t i = 0; i < kept; i++)
        if (out[i].name.n == 0 || !utf8_valid(out[i].name) || !utf8_valid(out[i].value))
            return false;
    *ret_n = kept;
    return true;
}

/* Names lock held: a number for a series that has none. */
static struct journal_series new_series(struct segment *segment, bool kube, struct str definition,
                                        live_ref live)
{
    struct journal_series series = {segment->series++ << 1 | (kube ? SERIES_KUBE : 0), live};
    strbuf_add(&segment->pending, definition);
    segment->pending_n++;
    return series;
}

bool journal_define(struct journal_batch *batch, struct journal_key key, const struct label *labels,
                    size_t n, struct journal_series *ret, const char **ret_reason)
{
    struct label sorted[JOURNAL_LABELS_MAX];
    struct segment *segment = batch->segment;
    struct journal_series series = {JOURNAL_UNWANTED, LIVE_NONE};
    struct journal_key canonical = {0, 0};
    size_t kept;
    if (!sort_labels(labels, n, sorted, &kept, ret_reason))
        return false;
    struct str name = labels_get(sorted, kept, STR("__name__"));
    *ret_reason = "it has no name";
    if (name.n == 0)
        return false;
    bool wanted = intake_wants_metric(name);
    if (wanted) {
        strbuf_clear(&batch->raw);
        frame_definition_put(sorted, kept, &batch->raw);
        canonical = journal_key(batch->journal, strbuf_str(&batch->raw));
        if (batch->journal->live)
            series.live = live_series(batch->journal->live, sorted, kept);
    }
    pthread_mutex_lock(&segment->names);
    if (wanted) {
        uint32_t first = SERIES_FIRST;
        struct journal_series known = series_table_get(&segment->table, canonical, &first);
        bool kube = str_starts(name, STR("kube_"));
        series = known.number != JOURNAL_UNKNOWN
                     ? known
                     : new_series(segment, kube, strbuf_str(&batch->raw), series.live);
        series_table_put(&segment->table, canonical, series);
    }
    if (key.low | key.high)
        series_table_put(&segment->table, key, series);
    pthread_mutex_unlock(&segment->names);
    *ret = series;
    return true;
}

void journal_naming_begin(struct journal_batch *batch)
{
    pthread_mutex_lock(&batch->segment->naming);
}

void journal_naming_end(struct journal_batch *batch)
{
    pthread_mutex_unlock(&batch->segment->naming);
}

void journal_add(struct journal_batch *batch, struct journal_series series, const time_ms *t,
                 const double *v, size_t n)
{
    if (n == 0 || series.number >= JOURNAL_UNWANTED)
        return;
    bool kube = series.number & SERIES_KUBE;
    struct frame_samples *samples = kube ? &batch->kube : &batch->gpu;
    frame_samples_reserve(samples, n);
    for (size_t i = 0; i < n; i++)
        samples->number[samples->n + i] = series.number;
    memcpy(samples->t + samples->n, t, n * sizeof *t);
    memcpy(samples->v + samples->n, v, n * sizeof *v);
    if (!kube && batch->journal->live) {
        mem_reserve(batch->live, samples->n, batch->live_room, n);
        for (size_t i = 0; i < n; i++)
            batch->live[samples->n + i] = series.live;
    }
    samples->n += n;
}

void journal_add_each(struct journal_batch *batch, const struct journal_series *series,
                      const time_ms *t, const double *v, size_t n)
{
    struct frame_samples *gpu = &batch->gpu;
    bool live = batch->journal->live;
    frame_samples_reserve(gpu, n);
    if (live)
        mem_reserve(batch->live, gpu->n, batch->live_room, n);
    size_t at = gpu->n;
    for (size_t i = 0; i < n; i++) {
        uint32_t number = series[i].number;
        if (number >= JOURNAL_UNWANTED)
            continue;
        if (number & SERIES_KUBE) {
            journal_add(batch, series[i], &t[i], &v[i], 1);
            continue;
        }
        gpu->number[at] = number;
        gpu->t[at] = t[i];
        gpu->v[at] = v[i];
        if (live)
            batch->live[at] = series[i].live;
        at++;
    }
    gpu->n = at;
}

size_t journal_batch_samples(const struct journal_batch *batch)
{
    return batch->gpu.n + batch->kube.n;
}

/* Samples as a frame behind batch->packed. */
static void pack(struct journal_batch *batch, const struct frame_samples *samples, bool kube,
                 struct segment_frames *frames)
{
    struct strbuf *out = &batch->packed;
    struct frame *frame = &frames->frame[frames->n];
    if (samples->n == 0)
        return;
    *frame = (struct frame){
        .kind = FRAME_SAMPLES, .kube = kube, .plain = true, .count = (uint32_t)samples->n};
    frame->first = frame->last = samples->t[0];
    for (size_t i = 1; i < samples->n; i++) {
        frame->first = samples->t[i] < frame->first ? samples->t[i] : frame->first;
        frame->last = samples->t[i] > frame->last ? samples->t[i] : frame->last;
    }
    mem_reserve(out->text, out->n, out->room, FRAME_HEADER_BYTES);
    out->n += FRAME_HEADER_BYTES;
    size_t at = out->n;
    frame_samples_put(samples, out);
    frame->raw = frame->packed = (uint32_t)(out->n - at);
    frame_seal(frame, (struct str){out->text + at, frame->packed});
    frames->n++;
}

/* To the file, *ret_upto bytes of which then have to be synced, and to the latest values: these
 * need no promise, and are told while others are synced rather than by all at once when they were.
 */
static enum err append(struct journal_batch *batch, uint64_t *ret_upto, struct error *err)
{
    struct segment_frames frames = {.n = 0};
    struct live *live = batch->journal->live;
    strbuf_clear(&batch->packed);
    pack(batch, &batch->gpu, false, &frames);
    pack(batch, &batch->kube, true, &frames);
    frames.bytes = batch->packed.text;
    frames.bytes_n = batch->packed.n;
    enum err e = segment_append(batch, &frames, ret_upto, err);
    arrive(batch);
    if (e == ERR_OK && live)
        live_samples(live, batch->live, batch->gpu.t, batch->gpu.v, batch->gpu.n);
    return e;
}

static void note_commit(struct journal_batch *batch, enum err code, bool sync,
                        const struct error *err)
{
    struct journal *journal = batch->journal;
    pthread_mutex_lock(&journal->lock);
    struct journal_stats *stats = &journal->stats;
    stats->batches++;
    stats->samples += code == ERR_OK ? journal_batch_samples(batch) : 0;
    stats->failed_commits += code != ERR_OK;
    snprintf(stats->failing, sizeof stats->failing, "%s", code == ERR_OK ? "" : err->text);
    if (code == ERR_OK && sync)
        stats->synced_at = journal->now(journal->context);
    pthread_mutex_unlock(&journal->lock);
}

enum err journal_commit(struct journal_batch *batch, bool sync, struct error *err)
{
    struct error own = {0};
    enum err e = ERR_OK;
    invariant(batch->segment);
    if (journal_batch_samples(batch)) {
        uint64_t upto = 0;
        e = append(batch, &upto, &own);
        if (e == ERR_OK && sync)
            e = segment_sync(batch->segment, upto, &own);
        note_commit(batch, e, sync, &own);
    }
    journal_abandon(batch);
    journal_tend_now_and_then(batch->journal);
    if (e != ERR_OK && err)
        *err = own;
    return e;
}
