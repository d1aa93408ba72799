/* Time-slicing where the GPU has no MIG: several pods that use little take turns on one GPU.
 *
 * The device plugin gives every GPU of a pool the same number of replicas, and the scheduler lays
 * pods on them as it likes. So a number is advised that does for any of them: the memory of the
 * largest that many pods with its headroom must fit beside each other (nothing keeps one from
 * taking more), and their highest peaks of use must add up to less than the chip. Pods that are too
 * large for that stay on GPUs of their own. What is saved are whole GPUs. Sharing by turns has a
 * price that the finding names: no isolation of memory and errors, and exporters no longer say
 * which pod used the GPU, so that its dollars are divided evenly. MPS is another thing: pods that
 * run beside each other under one server process; it is not advised. */
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
    int64_t bytes;  /* with the headroom */
    int64_t weight; /* 1e-9: what one pod takes of a GPU, of memory or of the load it may have */
    size_t copies;
};

/* More replicas than any pool has use for. */
#define REPLICAS_MAX 48

/* Pods of a pool that may share, the heaviest of them first; and how many to a GPU. */
struct plan {
    size_t from, replicas, shared, needed; /* sharers[from..]: pods, and GPUs for them */
};

static bool is_looked_at(const struct books *books, const struct book_workload *of)
{
    const struct book_sum *sum = &of->sum;
    return of->type != WORKLOAD_TRAINING && of->gpus_a_pod == 1 && books_is_now(books, sum->last) &&
           !sum->shared && sum->cost > 0 &&
           book_is_judged(books, sum, THRESHOLD_TIME_SLICING_HELD, limits.observed) &&
           sum->u < (wide_t)sum->observed_ms * books_threshold(books, THRESHOLD_TIME_SLICING_USE);
}

static void refuse(const struct books *books, struct findings *findings,
                   const struct book_workload *of, const char *why)
{
    refusal_add(findings, RULE_TIME_SLICING, finding_workload(findings, of),
                names_text(books->names, of->owner), why);
}

static int64_t with_headroom(const struct books *books, const struct need *need)
{
    wide_t with = (wide_t)NANO + books_threshold(books, limits.headroom);
    return (int64_t)((need->memory_bytes * with + NANO - 1) / NANO);
}

static int64_t weight_of(const struct books *books, const struct sharer *of)
{
    int64_t most = books_threshold(books, THRESHOLD_TIME_SLICING_LOAD);
    wide_t memory = (wide_t)of->bytes * NANO / of->need.total_bytes;
    wide_t load = (wide_t)of->need.peak_percent * (NANO / 100) * NANO / (most > 0 ? most : 1);
    wide_t more = memory > load ? memory : load;
    return more > INT64_MAX ? INT64_MAX : (int64_t)more;
}

/* Why the workload cannot take turns; NULL: it can. */
static const char *why_not(const struct books *books, struct findings *findings,
                           const struct book_workload *of, const struct gpu_model *gpu,
                           struct need *ret)
{
    if (!gpu)
        return "whether its GPU model can be shared is not known: the catalogue does not have it";
    if (!gpu->time_slicing)
        return finding_text(findings, "%.*s", STR_ARG(gpu->no_slicing)).p;
    need_of(books, of, gpu, &limits, ret);
    return ret->why;
}

static struct sharer *sharers(const struct books *books, struct findings *findings, size_t *ret_n)
{
    struct sharer *list = NULL;
    size_t room = 0;
    *ret_n = 0;
    for (size_t i = 0; i < books->workloads_n; i++) {
        const struct book_workload *of = &books->workloads[i];
        if (!is_looked_at(books, of))
            continue;
        const struct gpu_model *gpu = catalogue_gpu(names_text(books->names, of->model));
        if (gpu && gpu->mig_slices)
            continue;
        struct sharer each = {.of = of, .gpu = gpu};
        const char *why = why_not(books, findings, of, gpu, &each.need);
        if (why) {
            refuse(books, findings, of, why);
            continue;
        }
        for (size_t c = 0; c < of->cells_n; c++)
            each.copies += books_is_now(books, books->cells[of->cells[c]].last);
        each.node = &books->nodes[books->cells[of->cells[of->cells_n - 1]].node_index];
        each.bytes = with_headroom(books, &each.need);
        each.weight = weight_of(books, &each);
        mem_push(list, *ret_n, room, each);
    }
    return list;
}

static int heaviest_first(const void *a, const void *b)
{
    const struct sharer *const *left = a, *const *right = b;
    int64_t l = (*left)->weight, r = (*right)->weight;
    return (l < r) - (l > r);
}

/* The largest values so far, descending. */
struct largest {
    int64_t values[REPLICAS_MAX];
    size_t n;
};

static void largest_add(struct largest *of, int64_t value, size_t copies)
{
    for (size_t c = 0; c < copies && c < REPLICAS_MAX; c++) {
        size_t at = of->n < REPLICAS_MAX ? of->n++ : REPLICAS_MAX - 1;
        if (at == REPLICAS_MAX - 1 && of->n == REPLICAS_MAX && of->values[at] >= value)
            return;
        for (; at > 0 && of->values[at - 1] < value; at--)
            of->values[at] = of->values[at - 1];
        of->values[at] = value;
    }
}

/* How many of the largest values lie beside each other in `room`. */
static size_t largest_fit(const struct largest *of, wide_t room)
{
    size_t n = 0;
    for (wide_t sum = 0; n < of->n && (sum += of->values[n]) <= room; n++)
        ;
    return n;
}

/* Let the lightest pods in first, and keep the plan that needs the fewest GPUs. */
static struct plan plan_of(const struct books *books, struct sharer **pool, size_t n)
{
    struct largest memory = {0}, load = {0};
    int64_t pods = books_threshold(books, THRESHOLD_TIME_SLICING_PODS);
    size_t most = pods < REPLICAS_MAX ? (size_t)pods : REPLICAS_MAX, shared = 0;
    struct plan best = {.from = n};
    int64_t total = INT64_MAX; /* of the smallest GPU */
    qsort(pool, n, sizeof *pool, heaviest_first);
    for (size_t i = n; i-- > 0;) {
        largest_add(&memory, pool[i]->bytes, pool[i]->copies);
        largest_add(&load, pool[i]->need.peak_percent * (NANO / 100), pool[i]->copies);
        shared += pool[i]->copies;
        total = pool[i]->need.total_bytes < total ? pool[i]->need.total_bytes : total;
        size_t by_memory = largest_fit(&memory, total);
        size_t by_load = largest_fit(&load, books_threshold(books, THRESHOLD_TIME_SLICING_LOAD));
        size_t replicas = by_memory < by_load ? by_memory : by_load;
        replicas = replicas < most ? replicas : most;
        if (replicas < 2)
            continue;
        size_t needed = (shared + replicas - 1) / replicas;
        if (shared - needed >= best.shared - best.needed && shared > needed)
            best = (struct plan){i, replicas, shared, needed};
    }
    return best;
}

static void found(const struct books *books, struct findings *findings, const struct sharer *of,
                  const struct plan *plan)
{
    const struct book_sum *sum = &of->of->sum;
    size_t held = plan->shared, needed = plan->needed;
    struct finding *finding =
        finding_add(findings, RULE_TIME_SLICING, finding_workload(findings, of->of),
                    names_text(books->names, of->of->owner));
    finding->window_cost = sum->cost;
    finding->month = books_month(books, sum->first, sum->cost);
    finding->what = finding_text(findings, "could share its %.*s by turns", STR_ARG(of->gpu->name));
    need_evidence(findings, finding, &of->need, &limits);
    finding_evidence(findings, finding, "memory of the GPU",
                     finding_gib(findings, of->need.total_bytes), "peaks and the headroom");
    finding_evidence_at(
        findings, finding, "replicas of a GPU",
        finding_text(findings, "%zu: any of the pool's pods fit beside each other", plan->replicas),
        THRESHOLD_TIME_SLICING_PODS);
    finding_evidence(findings, finding, "time-slicing", STR("the model has it"),
                     finding_text(findings, "%.*s", STR_ARG(of->gpu->sharing_source)).p);
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
    finding->remedy = REMEDY_SHARE;
    finding->target = finding_text(findings, "%zu", plan->replicas);
    finding->action = finding_text(
        findings,
        "set %zu time-slicing replicas (timeSlicing, not mps) in the device plugin's configuration "
        "for a pool of its own, and let these pods ask for one replica each",
        plan->replicas);
    finding->risk =
        STR("high: no isolation (memory, errors and latency of one pod are those of all) "
            "and no attribution (exporters do not say which pod used the GPU, so that "
            "its dollars are divided by its pods)");
    need_doubts(findings, finding, &of->need, &limits,
                of->need.total_bytes / (int64_t)plan->replicas);
    for (size_t c = 0; c < of->of->cells_n; c++) {
        money_t month = books_month(books, sum->first, books->cells[of->of->cells[c]].cost);
        finding_claim(finding, of->of->cells[c],
                      (money_t)((wide_t)month * (wide_t)(held - needed) / (wide_t)held));
    }
}

static void judge_pool(const struct books *books, struct findings *findings, struct sharer **pool,
                       size_t n)
{
    struct plan plan = plan_of(books, pool, n);
    for (size_t i = 0; i < n; i++) {
        if (i >= plan.from)
            found(books, findings, pool[i], &plan);
        else if (plan.from < n)
            refuse(books, findings, pool[i]->of,
                   "the others of its pool can share GPUs by time-slicing, and it is too large to "
                   "lie beside any of them: it stays on a GPU of its own");
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

int64_t rule_replicas_by_memory(const struct books *books, const struct book_workload *of)
{
    const struct gpu_model *gpu = catalogue_gpu(names_text(books->names, of->model));
    struct need need;
    if (!gpu || !gpu->time_slicing || of->gpus_a_pod != 1)
        return 0;
    need_of(books, of, gpu, &limits, &need);
    if (!need.memory_bytes || !need.total_bytes || need.preallocated)
        return 0;
    int64_t fit = need.total_bytes / with_headroom(books, &need);
    int64_t most = books_threshold(books, THRESHOLD_TIME_SLICING_PODS);
    return fit < most ? fit : most;
}
