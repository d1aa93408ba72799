/* Training that uses little of its GPUs: what to change in the program before any other hardware is
 * thought of. Each sign is a figure of the ledger that points at one cause; signs whose signal is
 * not exported are named as unchecked, and without any sign the advice is to profile. The money is
 * that of whole pods that could go if the rest ran at the target, as in low-use. */
#include "insight/finding.h"

#define CPU_FULL (NANO / 100 * 90)    /* of the CPU limit, in the highest five minutes */
#define WAITS_BELOW (NANO / 100 * 60) /* of the time with a kernel */
#define RUNS_FROM (NANO / 100 * 80)   /* of the time with a kernel */
#define ROOMY (NANO / 100 * 60)       /* of the memory, at its peak */
#define FULL (NANO / 100 * 90)        /* likewise */
#define TENSOR_NONE (NANO / 100 * 2)  /* of the time */

enum answer { UNCHECKED, NO, YES };

static enum answer answer_of(bool known, bool yes)
{
    return !known ? UNCHECKED : yes ? YES : NO;
}

static bool knows_memory(const struct book_workload *of)
{
    return of->sum.mem_total_bytes > 0 && of->sum.mem_seen_ms > 0;
}

static enum answer loads_on_cpu(const struct book_workload *of)
{
    const struct book_load *load = &of->load;
    bool known = load->cpu_seen_ms > 0 && load->cpu_max_mcpu >= 0 && load->cpu_limit_mcpu > 0;
    return answer_of(known, ratio_reached(load->cpu_max_mcpu, load->cpu_limit_mcpu, CPU_FULL));
}

static enum answer waits(const struct book_workload *of)
{
    return answer_of(of->sum.observed_ms > 0,
                     of->sum.e < (wide_t)of->sum.observed_ms * WAITS_BELOW);
}

static enum answer runs_small_kernels(const struct book_workload *of)
{
    return answer_of(of->sum.observed_ms > 0, of->sum.e >= (wide_t)of->sum.observed_ms * RUNS_FROM);
}

static enum answer has_room(const struct book_workload *of)
{
    return answer_of(knows_memory(of),
                     !ratio_reached(of->sum.mem_max_bytes, of->sum.mem_total_bytes, ROOMY));
}

static enum answer is_full(const struct book_workload *of)
{
    return answer_of(knows_memory(of),
                     ratio_reached(of->sum.mem_max_bytes, of->sum.mem_total_bytes, FULL));
}

static enum answer leaves_tensor_cores(const struct book_workload *of)
{
    int64_t seen = of->sum.measure_seen_ms[MEASURE_TENSOR];
    return answer_of(seen > 0, of->sum.measure[MEASURE_TENSOR] < (wide_t)seen * TENSOR_NONE);
}

static const struct sign {
    const char *needs; /* the signal */
    enum answer (*look)(const struct book_workload *of);
    const char *advice;
} signs[] = {
    {"container CPU and its limit", loads_on_cpu,
     "its data loading fills its CPU limit: more CPUs and loader workers, cheaper decoding"},
    {"GPU_UTIL", waits,
     "its GPUs wait between steps: prefetch, more loader workers, data nearer to the node"},
    {"GPU_UTIL", runs_small_kernels,
     "kernels run all the time and fill little of the chip: a larger batch, fused kernels, CUDA "
     "graphs"},
    {"memory", has_room, "its memory has room: a larger batch"},
    {"memory", is_full, "its memory is full: gradient accumulation, activation checkpointing"},
    {"tensor activity", leaves_tensor_cores,
     "the tensor cores do nothing: mixed precision (bf16 or fp16)"},
};
#define SIGNS_N (sizeof signs / sizeof *signs)

/* The advice of all signs that point at something, then what could not be looked at. */
static struct str advice(struct findings *findings, const struct book_workload *of,
                         struct str *ret_unchecked)
{
    struct str text = STR_NONE, unchecked = STR_NONE;
    for (size_t i = 0; i < SIGNS_N; i++) {
        enum answer answer = signs[i].look(of);
        struct str *list = answer == YES ? &text : &unchecked;
        const char *item = answer == YES ? signs[i].advice : signs[i].needs;
        bool said = answer == UNCHECKED && i && signs[i - 1].needs == signs[i].needs;
        if (answer != NO && !said)
            *list = finding_text(findings, "%.*s%s%s", STR_ARG(*list),
                                 list->n == 0    ? ""
                                 : answer == YES ? "; "
                                                 : ", ",
                                 item);
    }
    *ret_unchecked = unchecked;
    return text.n ? text
                  : STR("profile a few steps (nsys, the framework's profiler): no figure "
                        "points at one cause");
}

static bool is_low(const struct books *books, const struct book_workload *of)
{
    const struct book_sum *sum = &of->sum;
    wide_t idle = sum->state_ns[STATE_IDLE], low = sum->state_ns[STATE_LOW];
    return of->type == WORKLOAD_TRAINING && books_is_now(books, sum->last) &&
           book_is_judged(books, sum, THRESHOLD_TRAINING_USE_HELD,
                          THRESHOLD_TRAINING_USE_OBSERVED) &&
           ratio_reached(idle + low, sum->observed_ns,
                         books_threshold(books, THRESHOLD_TRAINING_USE_LOW));
}

static void say(const struct books *books, struct findings *findings, struct finding *finding,
                const struct book_workload *of)
{
    const struct book_sum *sum = &of->sum;
    wide_t under = sum->state_ns[STATE_IDLE] + sum->state_ns[STATE_LOW];
    struct str unchecked;
    finding->what = finding_text(findings,
                                 "trains, and is under 30 %% used in %.*s of what is "
                                 "observed",
                                 STR_ARG(finding_percent(findings, under, sum->observed_ns)));
    finding_use(findings, finding, sum, THRESHOLD_TRAINING_USE_LOW);
    if (knows_memory(of))
        finding_evidence(findings, finding, "peak memory",
                         finding_percent(findings, sum->mem_max_bytes, sum->mem_total_bytes), "");
    if (sum->measure_seen_ms[MEASURE_TENSOR] > 0)
        finding_evidence(findings, finding, "mean tensor activity",
                         finding_percent(findings, sum->measure[MEASURE_TENSOR],
                                         (wide_t)sum->measure_seen_ms[MEASURE_TENSOR] * NANO),
                         "");
    if (of->load.cpu_seen_ms > 0 && of->load.cpu_limit_mcpu > 0)
        finding_evidence(findings, finding, "highest CPU of its limit",
                         finding_percent(findings, of->load.cpu_max_mcpu, of->load.cpu_limit_mcpu),
                         "");
    finding_coverage(findings, finding, sum, THRESHOLD_TRAINING_USE_OBSERVED);
    finding->action = advice(findings, of, &unchecked);
    if (unchecked.n)
        finding->reasons = finding_text(findings, "%.*s; unchecked: %.*s",
                                        STR_ARG(finding->reasons), STR_ARG(unchecked));
    finding->confidence = CONFIDENCE_LOW;
    finding_price(findings, finding, &books->nodes[books->cells[of->cells[0]].node_index]);
    finding->risk = STR("low: nothing is taken away");
}

void rule_training_use(const struct books *books, struct findings *findings)
{
    for (size_t i = 0; i < books->workloads_n; i++) {
        const struct book_workload *of = &books->workloads[i];
        if (!is_low(books, of))
            continue;
        struct str subject = finding_workload(findings, of);
        if (finding_exists(findings, RULE_IDLE_WORKLOAD, subject) ||
            finding_works_on_cpu(findings, of))
            continue;
        struct finding *finding =
            finding_add(findings, RULE_TRAINING_USE, subject, names_text(books->names, of->owner));
        finding->window_cost =
            of->sum.category[CATEGORY_SLACK] + of->sum.category[CATEGORY_HELD_IDLE];
        finding->month = books_month(books, of->sum.first, finding->window_cost);
        say(books, findings, finding, of);
        finding_claim_pods(findings, finding, of, THRESHOLD_TRAINING_USE_TARGET);
        finding->remedy = REMEDY_WORDS; /* its pods are ranks of one run: none can be left out */
    }
}
