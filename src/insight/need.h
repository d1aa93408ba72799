/* What a workload needs of a GPU: memory and use at its peak. Sizing rules (MIG profiles, smaller
 * GPUs) judge by it.
 *
 * Inference servers take nearly all memory when they start, for weights and a KV cache in one. How
 * much of it is weights nobody exports; what is exported is how full the cache was. So the need is
 * an estimate: a share of the memory (a threshold of the rule) is thought to be cache, of which the
 * part that was ever full is needed; and a size is only advised together with what the weights may
 * take at most for it to fit, since that can be looked up in the server's log. */
#ifndef GPUTALLY_INSIGHT_NEED_H
#define GPUTALLY_INSIGHT_NEED_H

#include "fleet/catalogue.h"
#include "insight/finding.h"

/* The thresholds of a rule that are about needs. */
struct need_limits {
    enum threshold_id observed, percentile, headroom, preallocated, kv_share;
};

struct need {
    int64_t peak_bytes;   /* the most that it had; 0 not known */
    int64_t memory_bytes; /* that it needs, without headroom */
    int64_t total_bytes;  /* of the GPU that it has; 0 not known */
    bool preallocated;    /* memory_bytes is estimated from the KV cache */
    int64_t kv_max;       /* 1e-9; where preallocated */
    int peak_percent;     /* of the chip: the percentile of SM activity, rounded up to 5 points */
    const char *why;      /* it cannot be told: a sentence; else NULL */
};
void need_of(const struct books *books, const struct book_workload *of, const struct gpu_model *gpu,
             const struct need_limits *limits, struct need *ret);

/* Does the need with the rule's headroom fit into so much memory? */
bool need_fits(const struct books *books, const struct need *need, const struct need_limits *limits,
               int64_t bytes);
/* What the weights of a preallocating server may take at most, so that its need fits. */
int64_t need_weights_max(const struct books *books, const struct need *need,
                         const struct need_limits *limits, int64_t bytes);
/* Peak memory, use, and what is known of the KV cache, as evidence. */
void need_evidence(struct findings *findings, struct finding *finding, const struct need *need,
                   const struct need_limits *limits);
/* Confidence and its reason where the need is an estimate; nothing else. */
void need_doubts(struct findings *findings, struct finding *finding, const struct need *need,
                 const struct need_limits *limits, int64_t bytes);

#endif
