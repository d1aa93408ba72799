/* Time-slicing where the GPU has no MIG: several pods that use little take turns on one GPU.
 *
 * Pods of a pool are packed, the largest memory first: their memory with its headroom must fit
 * beside each other (nothing keeps one from taking more), the peaks of their use must add up to
 * less than the chip, and no more than so many share one. What is saved are whole GPUs. Sharing by
 * turns has a price that the finding names: no isolation of memory and errors, and exporters no
 * longer say which pod used the GPU, so that its dollars are divided evenly. */
#include <stdlib.h>

#include "insight/need.h"

static const struct need_limits limits = {
    THRESHOLD_TIME_SLICING_OBSERVED, THRESHOLD_TIME_SLICING_PERCENTILE,
    THRESHOLD_TIME_SLICING_HEADROOM, THRESHOLD_TIME_SLICING_PREALLOCATED,
    THRESHOLD_TIME_SLICING_KV_SHARE};

struct sharer {
    const struct book_workload *of;
    const struct book_node *node;
    const struct gpu_model *gpu;
    struct need need;
    size_t copies;
};

struct shared_gpu {
    int64_t bytes; /* with headroom */
    int percent;
    int pods;
};

static bool is_looked_at(const struct books *books, const struct book_workload *of,
                         const struct gpu_model *gpu)
{
    const struct book_cell *sum = &of->sum;
    return gpu && !gpu->mig_slices && of->type != WORKLOAD_TRAINING && of->gpus_a_pod == 1 &&
           books_is_now(books, sum->last) && !sum->shared && sum->cost > 0 &&
           sum->held_ns >= (wide_t)books_threshold(books, THRESHOLD_TIME_SLICING_HELD) * 1000000 &&
           ratio_reached(sum->observed_ns, sum->held_ns, books_threshold(books, limits.observed)) &&
           sum->u < (wide_t)sum->observed_ms * books_threshold(books, THRESHOLD_TIME_SLICING_USE);
}

static void refuse(const struct books *books, struct findings *findings,
                   const struct book_workload *of, const char *why)
{
    refusal_add(findings, RULE_TIME_SLICING, finding_workload(findings, of),
                names_text(books->names, of->owner), why);
}

static struct sharer *sharers(const struct books *books, struct findings *findings, size_t *ret_n)
{
    struct sharer *list = NULL;
    size_t room = 0;
    *ret_n = 0;
    for (size_t i = 0; i < books->workloads_n; i++) {
        const struct book_workload *of = &books->workloads[i];
        const struct gpu_model *gpu = catalogue_gpu(names_text(books->names, of->model));
        if (!is_looked_at(books, of, gpu))
            continue;
        struct sharer each = {.of = of, .gpu = gpu};
        need_of(books, of, gpu, &limits, &each.need);
        if (each.need.why) {
            refuse(books, findings, of, each.need.why);
            continue;
        }
        for (size_t c = 0; c < of->cells_n; c++)
            each.copies += books_is_now(books, books->cells[of->cells[c]].last);
        each.node = &books->nodes[books->cells[of->cells[of->cells_n - 1]].node_index];
        mem_push(list, *ret_n, room, each);
    }
    return list;
}

static int64_t with_headroom(const struct books *books, const struct need *need)
{
    wide_t with = (wide_t)NANO + books_threshold(books, limits.headroom);
    return (int64_t)((need->memory_bytes * with + NANO - 1) / NANO);
}

static bool place(const struct books *books, struct shared_gpu *gpu, const struct sharer *of)
{
    int64_t bytes = gpu->bytes + with_headroom(books, &of->need);
    int percent = gpu->percent + of->need.peak_percent;
    bool alone = gpu->pods == 0; /* as it is now */
    bool fits = bytes <= of->need.total_bytes &&
                (wide_t)percent * NANO <=
                    100 * (wide_t)books_threshold(books, THRESHOLD_TIME_SLICING_LOAD) &&
                gpu->pods < books_threshold(books, THRESHOLD_TIME_SLICING_PODS);
    if (!fits && !alone)
        return false;
    *gpu = (struct shared_gpu){bytes, percent, gpu->pods + 1};
    return true;
}

static int largest_first(const void *a, const void *b)
{
    const struct sharer *const *left = a, *const *right = b;
    int64_t l = (*left)->need.memory_bytes, r = (*right)->need.memory_bytes;
    return (l < r) - (l > r);
}

/* GPUs that the pods of all these need, first fit. */
static size_t pack(const struct books *books, struct sharer **pool, size_t n)
{
    struct shared_gpu *gpus = NULL;
    size_t gpus_n = 0, room = 0;
    qsort(pool, n, sizeof *pool, largest_first);
    for (size_t i = 0; i < n; i++)
        for (size_t copy = 0; copy < pool[i]->copies; copy++) {
            size_t at = 0;
            while (at < gpus_n && !place(books, &gpus[at], pool[i]))
                at++;
            if (at < gpus_n)
                continue;
            mem_push(gpus, gpus_n, room, ((struct shared_gpu){0}));
            place(books, &gpus[gpus_n - 1], pool[i]);
        }
    free(gpus);
    return gpus_n;
}

static void found(const struct books *books, struct findings *findings, const struct sharer *of,
                  size_t held, size_t needed)
{
    const struct book_cell *sum = &of->of->sum;
    struct finding *finding =
        finding_add(findings, RULE_TIME_SLICING, finding_workload(findings, of->of),
                    names_text(books->names, of->of->owner));
    finding->window_cost = sum->cost;
    finding->month = books_month(books, sum->first, sum->cost);
    finding->what = finding_text(findings, "could share its %.*s by turns", STR_ARG(of->gpu->name));
    need_evidence(findings, finding, &of->need, &limits);
    finding_evidence(findings, finding, "memory of the GPU",
                     finding_gib(findings, of->need.total_bytes), "peaks and the headroom");
    finding_evidence(findings, finding, "GPUs of the pool's candidates",
                     finding_text(findings, "%zu held, %zu needed", held, needed), "");
    finding_coverage(findings, finding, sum, limits.observed);
    finding->confidence = CONFIDENCE_LOW;
    finding_price(findings, finding, of->node);
    finding->arithmetic =
        finding_text(findings, "%zu of %zu GPUs come free: that share of %.*s a month",
                     held - needed, held, STR_ARG(finding_money(findings, finding->month)));
    finding->depends = STR("the other workloads of its pool sharing too, and the pool shrinking by "
                           "the GPUs that come free");
    finding->action =
        STR("set time-slicing replicas in the device plugin's configuration for a pool "
            "of its own, and let these pods ask for one replica each");
    finding->risk =
        STR("high: no isolation (memory, errors and latency of one pod are those of all) "
            "and no attribution (exporters do not say which pod used the GPU, so that "
            "its dollars are divided by its pods)");
    need_doubts(findings, finding, &of->need, &limits,
                of->need.total_bytes / (int64_t)((held + needed - 1) / needed));
    for (size_t c = 0; c < of->of->cells_n; c++) {
        money_t month = books_month(books, sum->first, books->cells[of->of->cells[c]].cost);
        finding_claim(finding, of->of->cells[c],
                      (money_t)((wide_t)month * (wide_t)(held - needed) / (wide_t)held));
    }
}

static void judge_pool(const struct books *books, struct findings *findings, struct sharer **pool,
                       size_t n)
{
    size_t held = 0;
    for (size_t i = 0; i < n; i++)
        held += pool[i]->copies;
    size_t needed = pack(books, pool, n);
    for (size_t i = 0; i < n; i++) {
        if (needed < held)
            found(books, findings, pool[i], held, needed);
        else
            refuse(books, findings, pool[i]->of,
                   "it could share its GPU by time-slicing, without isolation and without "
                   "attribution, but nothing else of its pool fits beside it: no GPU comes free");
    }
}

void rule_time_slicing(const struct books *books, struct findings *findings)
{
    size_t n;
    struct sharer *list = sharers(books, findings, &n);
    struct sharer **pool = mem_zalloc(n + 1, sizeof *pool);
    bool *done = mem_zalloc(n + 1, sizeof *done);
    for (size_t i = 0; i < n; i++) {
        size_t pool_n = 0;
        for (size_t k = i; k < n && !done[i]; k++)
            if (book_same_pool(list[k].node, list[i].node) && list[k].gpu == list[i].gpu &&
                !done[k])
                pool[pool_n++] = &list[k];
        for (size_t k = 0; k < pool_n; k++)
            done[pool[k] - list] = true;
        if (pool_n)
            judge_pool(books, findings, pool, pool_n);
    }
    free(done);
    free(pool);
    free(list);
}
