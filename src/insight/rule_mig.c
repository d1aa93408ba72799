/* A whole GPU for a fractional need: the MIG profile that has the workload's peak memory with some
 * to spare, and the share of the chip of its peak use (need.h).
 *
 * What is saved are whole GPUs: profiles are packed on GPUs as their placements allow, pool by pool
 * and all workloads of it together, and only the GPUs that come free count. Servers whose need is
 * an estimate are packed by themselves, so that what is known does not rest on what is thought. */
#include <stdlib.h>

#include "insight/need.h"

#define MEMORY_SLICES 8

struct candidate {
    const struct book_workload *of;
    const struct book_node *node;
    const struct mig_profile *profile;
    const struct gpu_model *gpu;
    struct need need;
    size_t copies; /* GPUs that it holds now */
};

static const struct need_limits limits = {
    THRESHOLD_MIG_FIT_OBSERVED, THRESHOLD_MIG_FIT_PERCENTILE, THRESHOLD_MIG_FIT_HEADROOM,
    THRESHOLD_MIG_FIT_PREALLOCATED, THRESHOLD_MIG_FIT_KV_SHARE};

static const struct mig_profile *fitting(const struct books *books, const struct gpu_model *gpu,
                                         const struct need *need)
{
    size_t n;
    const struct mig_profile *profiles = catalogue_mig_profiles(gpu, &n), *best = NULL;
    for (size_t i = 0; i < n; i++) {
        const struct mig_profile *each = &profiles[i];
        bool special = each->name.n && memchr(each->name.p, '+', each->name.n);
        if (special || !need_fits(books, need, &limits, each->memory_bytes) ||
            each->slices * 100 < need->peak_percent * gpu->mig_slices ||
            each->slices >= gpu->mig_slices)
            continue;
        if (!best || each->slices < best->slices ||
            (each->slices == best->slices && each->memory_slices < best->memory_slices))
            best = each;
    }
    return best;
}

/* Why not, in a sentence; NULL: it is a candidate. */
static const char *refused(const struct book_workload *of, const struct gpu_model *gpu,
                           const struct need *need, const struct mig_profile *profile)
{
    if (of->type == WORKLOAD_TRAINING)
        return "training: look at batch size and data loading first";
    if (of->gpus_a_pod > 1)
        return "a pod of it runs across GPUs, which MIG instances cannot";
    if (!gpu)
        return "the GPU model is not in the catalogue";
    if (!gpu->mig_slices)
        return "the GPU has no MIG; time-slicing at most, without isolation and without "
               "attribution";
    if (need->why)
        return need->why;
    if (!profile)
        return need->preallocated
                   ? "its weights and the part of its KV cache that was in use are thought to need "
                     "most of a GPU"
                   : "its peak needs most of a GPU";
    return NULL;
}

/* Held for a day or nearly, whole GPUs, seen, and used little on average. */
static bool is_looked_at(const struct books *books, const struct book_workload *of)
{
    const struct book_sum *sum = &of->sum;
    return books_is_now(books, sum->last) && !sum->shared &&
           book_is_judged(books, sum, THRESHOLD_MIG_FIT_HELD, THRESHOLD_MIG_FIT_OBSERVED) &&
           sum->u < (wide_t)sum->observed_ms * books_threshold(books, THRESHOLD_MIG_FIT_USE) &&
           sum->cost > 0;
}

static size_t gpus_now(const struct books *books, const struct book_workload *of)
{
    size_t n = 0;
    for (size_t c = 0; c < of->cells_n; c++)
        n += books_is_now(books, books->cells[of->cells[c]].last);
    return n;
}

static struct candidate *candidates(const struct books *books, struct findings *findings,
                                    size_t *ret_n)
{
    struct candidate *list = NULL;
    size_t room = 0;
    *ret_n = 0;
    for (size_t i = 0; i < books->workloads_n; i++) {
        const struct book_workload *of = &books->workloads[i];
        if (!is_looked_at(books, of))
            continue;
        const struct gpu_model *gpu = catalogue_gpu(names_text(books->names, of->model));
        struct need need;
        need_of(books, of, gpu, &limits, &need);
        const struct mig_profile *profile =
            gpu && gpu->mig_slices ? fitting(books, gpu, &need) : NULL;
        const char *why = refused(of, gpu, &need, profile);
        if (why) {
            refusal_add(findings, RULE_MIG_FIT, finding_workload(findings, of),
                        names_text(books->names, of->owner), why);
            continue;
        }
        size_t last = of->cells[of->cells_n - 1];
        struct candidate each = {.of = of,
                                 .node = &books->nodes[books->cells[last].node_index],
                                 .profile = profile,
                                 .gpu = gpu,
                                 .need = need,
                                 .copies = gpus_now(books, of)};
        mem_push(list, *ret_n, room, each);
    }
    return list;
}

static bool same_pool(const struct candidate *a, const struct candidate *b)
{
    return book_same_pool(a->node, b->node) && a->gpu == b->gpu &&
           a->need.preallocated == b->need.preallocated;
}

struct packed_gpu {
    unsigned memory; /* bit: memory slice taken */
    int slices;
};

/* "{0,2,4}:2": the first start at which so many memory slices are free. */
static bool place(struct packed_gpu *gpu, const struct mig_profile *profile, int mig_slices)
{
    if (gpu->slices + profile->slices > mig_slices)
        return false;
    struct str text = profile->placements;
    const char *colon = text.n ? memchr(text.p, ':', text.n) : NULL;
    int size = colon ? atoi(colon + 1) : profile->memory_slices;
    for (size_t i = 0; colon && text.p + i < colon; i++) {
        if (text.p[i] < '0' || text.p[i] > '9')
            continue;
        int start = text.p[i] - '0';
        if (start + size > MEMORY_SLICES)
            continue;
        unsigned bits = ((1u << size) - 1) << start;
        if (gpu->memory & bits)
            continue;
        gpu->memory |= bits;
        gpu->slices += profile->slices;
        return true;
    }
    return false;
}

static int largest_first(const void *a, const void *b)
{
    const struct candidate *const *left = a, *const *right = b;
    int order = (*right)->profile->memory_slices - (*left)->profile->memory_slices;
    return order ? order : (*right)->profile->slices - (*left)->profile->slices;
}

/* GPUs that instances of all these need, first fit, the largest first. */
static size_t pack(struct candidate **pool, size_t n)
{
    struct packed_gpu *gpus = NULL;
    size_t gpus_n = 0, room = 0;
    qsort(pool, n, sizeof *pool, largest_first);
    for (size_t i = 0; i < n; i++)
        for (size_t copy = 0; copy < pool[i]->copies; copy++) {
            size_t at = 0;
            while (at < gpus_n && !place(&gpus[at], pool[i]->profile, pool[i]->gpu->mig_slices))
                at++;
            if (at < gpus_n)
                continue;
            mem_push(gpus, gpus_n, room, ((struct packed_gpu){0}));
            place(&gpus[gpus_n - 1], pool[i]->profile, pool[i]->gpu->mig_slices);
        }
    free(gpus);
    return gpus_n;
}

static void found(const struct books *books, struct findings *findings, struct candidate *of,
                  size_t held, size_t needed)
{
    const struct book_sum *sum = &of->of->sum;
    struct finding *finding =
        finding_add(findings, RULE_MIG_FIT, finding_workload(findings, of->of),
                    names_text(books->names, of->of->owner));
    finding->window_cost = sum->cost;
    finding->month = books_month(books, sum->first, sum->cost);
    finding->what = finding_text(findings, "fits a MIG instance %.*s of its %.*s",
                                 STR_ARG(of->profile->name), STR_ARG(of->gpu->name));
    need_evidence(findings, finding, &of->need, &limits);
    struct str headroom = finding_threshold(findings, THRESHOLD_MIG_FIT_HEADROOM);
    finding_evidence(findings, finding, "memory of the profile",
                     finding_gib(findings, of->profile->memory_bytes),
                     finding_text(findings, "peak and %.*s", STR_ARG(headroom)).p);
    finding_evidence(
        findings, finding, "compute of the profile",
        finding_text(findings, "%d of %d slices", of->profile->slices, of->gpu->mig_slices),
        "the peak");
    finding_evidence(findings, finding, "GPUs of the pool's candidates",
                     finding_text(findings, "%zu held, %zu needed", held, needed), "");
    finding_coverage(findings, finding, sum, THRESHOLD_MIG_FIT_OBSERVED);
    finding_price(findings, finding, of->node);
    finding->arithmetic =
        finding_text(findings, "%zu of %zu GPUs come free: that share of %.*s a month",
                     held - needed, held, STR_ARG(finding_money(findings, finding->month)));
    finding->depends =
        STR("the other workloads of its pool moving too, the GPUs being partitioned, "
            "and the pool shrinking by the GPUs that come free");
    finding->remedy = REMEDY_MIG;
    finding->target = of->profile->resource;
    finding->action = finding_text(findings, "ask for %.*s: 1 in place of nvidia.com/gpu: 1",
                                   STR_ARG(of->profile->resource));
    finding->risk = STR("medium: less memory and compute than it has now; bursts shorter than a "
                        "scrape are not seen");
    need_doubts(findings, finding, &of->need, &limits, of->profile->memory_bytes);
    for (size_t c = 0; c < of->of->cells_n; c++) {
        const struct book_cell *cell = &books->cells[of->of->cells[c]];
        money_t month = books_month(books, sum->first, cell->cost);
        finding_claim(finding, of->of->cells[c],
                      (money_t)((wide_t)month * (wide_t)(held - needed) / (wide_t)held));
    }
}

void rule_mig_fit(const struct books *books, struct findings *findings)
{
    size_t n;
    struct candidate *list = candidates(books, findings, &n);
    struct candidate **pool = mem_zalloc(n + 1, sizeof *pool);
    for (size_t i = 0; i < n; i++) {
        bool first = true;
        for (size_t k = 0; k < i && first; k++)
            first = !same_pool(&list[k], &list[i]);
        if (!first)
            continue;
        size_t pool_n = 0, held = 0;
        for (size_t k = i; k < n; k++)
            if (same_pool(&list[k], &list[i])) {
                pool[pool_n++] = &list[k];
                held += list[k].copies;
            }
        size_t needed = pack(pool, pool_n);
        for (size_t k = 0; k < pool_n; k++) {
            if (needed < held)
                found(books, findings, pool[k], held, needed);
            else
                refusal_add(
                    findings, RULE_MIG_FIT, finding_workload(findings, pool[k]->of),
                    names_text(books->names, pool[k]->of->owner),
                    "it fits a MIG instance, but nothing else of its pool would share the GPU: "
                    "no GPU comes free");
        }
    }
    free(pool);
    free(list);
}
