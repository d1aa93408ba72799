#include "insight/need.h"

/* A histogram, not a mean: a mean would promise that a service with rare bursts fits. */
static int peak_percent(const struct book_sum *sum, int64_t percentile)
{
    int64_t all = 0, passed = 0;
    for (int b = 0; b < HISTOGRAM_BINS; b++)
        all += sum->hist_u_ns[b];
    for (int b = 0; b < HISTOGRAM_BINS; b++) {
        passed += sum->hist_u_ns[b];
        if (ratio_reached(passed, all, percentile))
            return (b + 1) * 100 / HISTOGRAM_BINS;
    }
    return 100;
}

static const char *find_memory(const struct books *books, const struct book_workload *of,
                               const struct need_limits *limits, struct need *ret)
{
    const struct book_load *load = &of->load;
    if (!ret->peak_bytes || !ret->total_bytes)
        return "its memory is not known";
    ret->memory_bytes = ret->peak_bytes;
    if (of->type != WORKLOAD_INFERENCE ||
        !ratio_reached(ret->peak_bytes, ret->total_bytes,
                       books_threshold(books, limits->preallocated)))
        return NULL;
    ret->preallocated = true;
    ret->kv_max = load->kv_max;
    if (load->kv_max < 0 || load->kv_seen_ms <= 0)
        return "it takes nearly all memory when it starts, as inference servers do: its real need "
               "is not known without KV-cache metrics";
    if (!ratio_reached(load->kv_seen_ms, of->sum.held_ms, books_threshold(books, limits->observed)))
        return "it takes nearly all memory when it starts, and its KV-cache metrics are missing "
               "for a part of the time";
    int64_t free = NANO - (load->kv_max < NANO ? load->kv_max : NANO);
    wide_t cache = (wide_t)ret->peak_bytes * books_threshold(books, limits->kv_share) / NANO;
    ret->memory_bytes = ret->peak_bytes - (int64_t)(cache * free / NANO);
    return NULL;
}

void need_of(const struct books *books, const struct book_workload *of, const struct gpu_model *gpu,
             const struct need_limits *limits, struct need *ret)
{
    const struct book_sum *sum = &of->sum;
    *ret = (struct need){.peak_bytes = sum->mem_max_bytes,
                         .total_bytes = sum->mem_total_bytes ? sum->mem_total_bytes
                                        : gpu                ? gpu->memory_bytes
                                                             : 0,
                         .kv_max = -1};
    ret->peak_percent = peak_percent(sum, books_threshold(books, limits->percentile));
    ret->why = find_memory(books, of, limits, ret);
    if (!ret->why && sum->flags & FLAG_U_UTIL)
        ret->why =
            "SM activity is not exported: GPU_UTIL does not say how much of a chip is needed";
}

bool need_fits(const struct books *books, const struct need *need, const struct need_limits *limits,
               int64_t bytes)
{
    wide_t with = (wide_t)NANO + books_threshold(books, limits->headroom);
    return (wide_t)bytes * NANO >= need->memory_bytes * with;
}

/* weights + kv_max x (peak - weights), with the headroom, fit into `bytes`. */
int64_t need_weights_max(const struct books *books, const struct need *need,
                         const struct need_limits *limits, int64_t bytes)
{
    wide_t room = (wide_t)bytes * NANO / (NANO + books_threshold(books, limits->headroom));
    if (need->kv_max >= NANO)
        return room >= need->peak_bytes ? need->peak_bytes : 0;
    wide_t weights =
        (room * NANO - (wide_t)need->peak_bytes * need->kv_max) / (NANO - need->kv_max);
    return weights < 0 ? 0 : weights > need->peak_bytes ? need->peak_bytes : (int64_t)weights;
}

void need_evidence(struct findings *findings, struct finding *finding, const struct need *need,
                   const struct need_limits *limits)
{
    finding_evidence(findings, finding, need->preallocated ? "memory taken" : "peak memory",
                     finding_gib(findings, need->peak_bytes), "");
    if (need->preallocated) {
        finding_evidence(findings, finding, "KV cache in use at its peak",
                         finding_percent(findings, need->kv_max, NANO), "");
        finding_evidence_at(findings, finding, "memory thought to be needed",
                            finding_gib(findings, need->memory_bytes), limits->kv_share);
    }
    finding_evidence(findings, finding,
                     finding_text(findings, "SM activity, %.*s of the time",
                                  STR_ARG(finding_threshold(findings, limits->percentile)))
                         .p,
                     finding_text(findings, "up to %d %%", need->peak_percent), "");
}

void need_doubts(struct findings *findings, struct finding *finding, const struct need *need,
                 const struct need_limits *limits, int64_t bytes)
{
    if (!need->preallocated)
        return;
    struct str weights =
        finding_gib(findings, need_weights_max(findings->books, need, limits, bytes));
    finding->confidence = CONFIDENCE_LOW;
    finding->reasons = finding_text(
        findings,
        "it fits if its weights take at most %.*s of the %.*s that it takes in advance; %.*s of it "
        "is thought to be KV cache, which no metric says; %.*s",
        STR_ARG(weights), STR_ARG(finding_gib(findings, need->peak_bytes)),
        STR_ARG(finding_threshold(findings, limits->kv_share)), STR_ARG(finding->reasons));
    finding->action = finding_text(
        findings, "look up in the server's log what its weights take: at most %.*s; then %.*s",
        STR_ARG(weights), STR_ARG(finding->action));
}
