#include "store/lens_hours.h"

#include <stdlib.h>

#include "store/internal.h"
#include "store/lens.h"
#include "store/scan.h"

/* Hours before the last year of a span are not seen: bits are kept for every GPU. */
#define LENS_HOURS_MAX (366 * 24)

struct looking {
    struct lens_hours *hours;
    const struct store_lens *lens;
};

static size_t words_of(const struct lens_hours *hours)
{
    return ((size_t)((hours->span.to - hours->span.from) / HOUR_MS) + 63) / 64;
}

static void take_part(void *context, const struct scan_part *part)
{
    const struct looking *looking = context;
    struct lens_hours *hours = looking->hours;
    const struct row_key *key = part->key;
    bool is_new;
    uint32_t at = idmap_add(&hours->by_gpu, IDKEY(key->cluster, key->node, key->device),
                            (uint32_t)hours->n, &is_new);
    if (is_new) {
        struct lens_gpu gpu = {mem_zalloc(words_of(hours), sizeof *gpu.own),
                               mem_zalloc(words_of(hours), sizeof *gpu.others), false};
        mem_push(hours->gpus, hours->n, hours->room, gpu);
    }
    struct lens_gpu *gpu = &hours->gpus[at];
    size_t h = (size_t)((key->hour - hours->span.from) / HOUR_MS);
    bool passes = lens_passes(looking->lens, key, part->facts);
    (passes ? gpu->own : gpu->others)[h / 64] |= UINT64_C(1) << (h % 64);
    gpu->any |= passes;
}

static void no_node(void *context, const struct scan_node *node)
{
    (void)context, (void)node;
}

static void no_note(void *context, const struct note *note)
{
    (void)context, (void)note;
}

/* Of the span what the ledger has, and of that the last year: a window may be of any length. */
static struct span seen_of(struct store *store, struct span span)
{
    struct span extent = {0};
    struct error none = {0};
    if (store_extent(store, &extent, &none) != ERR_OK)
        return (struct span){0};
    span.from = span.from > extent.from ? span.from : extent.from;
    span.to = span.to < extent.to ? span.to : extent.to;
    if (span.to - span.from > LENS_HOURS_MAX * HOUR_MS)
        span.from = span.to - LENS_HOURS_MAX * HOUR_MS;
    return (struct span){hour_floor(span.from), hour_ceil(span.to)};
}

enum err lens_hours_read(struct store *store, struct span span, struct lens_hours *ret,
                         struct error *err)
{
    struct store_lens *lens = store->lens;
    struct looking looking = {ret, lens};
    struct span recorded;
    *ret = (struct lens_hours){.span = seen_of(store, span)};
    struct scan scan = {.hours = ret->span,
                        .detail = SCAN_ROWS,
                        .texts = SCAN_TEXTS_KINDS,
                        .context = &looking,
                        .part = take_part,
                        .node = no_node,
                        .note = no_note};
    if (ret->span.from >= ret->span.to)
        return ERR_OK;
    store->lens = NULL; /* the rows of others are what is looked for */
    enum err code = store_scan(store, &scan, &recorded, err);
    store->lens = lens;
    return code;
}

void lens_hours_release(struct lens_hours *hours)
{
    for (size_t i = 0; i < hours->n; i++) {
        free(hours->gpus[i].own);
        free(hours->gpus[i].others);
    }
    free(hours->gpus);
    idmap_release(&hours->by_gpu);
}

bool lens_hours_cut(const struct lens_hours *hours, struct device_hour *hour)
{
    uint32_t at = idmap_get(&hours->by_gpu, IDKEY(hour->cluster, hour->node, hour->device));
    if (at == IDMAP_NONE || !hours->gpus[at].any)
        return false;
    if (hour->hour < hours->span.from || hour->hour >= hours->span.to)
        return false;
    const struct lens_gpu *gpu = &hours->gpus[at];
    size_t h = (size_t)((hour->hour - hours->span.from) / HOUR_MS);
    if ((gpu->own[h / 64] & ~gpu->others[h / 64]) >> (h % 64) & 1)
        return true;
    *hour = (struct device_hour){.hour = hour->hour,
                                 .cluster = hour->cluster,
                                 .node = hour->node,
                                 .device = hour->device,
                                 .model = hour->model,
                                 .up_ms = hour->up_ms,
                                 .worked_until = TIME_MIN,
                                 .idle_from = TIME_MIN};
    return true;
}
