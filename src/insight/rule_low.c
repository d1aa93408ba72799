/* Under 30 % used: at work, but with most of the chip doing nothing. What better use saves is not
 * known before somebody looks. Training has a rule of its own (rule_training.c). */
#include "insight/finding.h"

static struct str advice(enum workload_type type)
{
    switch (type) {
    case WORKLOAD_INFERENCE:
        return STR("fewer replicas, larger batches, or scaling by load; then a smaller GPU");
    default:
        return STR("look at what it waits for; a smaller GPU or a part of one may do");
    }
}

static bool is_low(const struct books *books, const struct book_workload *of)
{
    const struct book_sum *sum = &of->sum;
    wide_t idle = sum->state_ns[STATE_IDLE], low = sum->state_ns[STATE_LOW];
    return of->type != WORKLOAD_INTERACTIVE && of->type != WORKLOAD_TRAINING &&
           books_is_now(books, sum->last) &&
           book_is_judged(books, sum, THRESHOLD_LOW_USE_HELD, THRESHOLD_LOW_USE_OBSERVED) &&
           ratio_reached(idle + low, sum->observed_ns,
                         books_threshold(books, THRESHOLD_LOW_USE_LOW)) &&
           !ratio_reached(idle, sum->observed_ns, books_threshold(books, THRESHOLD_LOW_USE_IDLE));
}

void rule_low_use(const struct books *books, struct findings *findings)
{
    for (size_t i = 0; i < books->workloads_n; i++) {
        const struct book_workload *of = &books->workloads[i];
        const struct book_sum *sum = &of->sum;
        if (!is_low(books, of) ||
            finding_exists(findings, RULE_IDLE_WORKLOAD, finding_workload(findings, of)) ||
            finding_works_on_cpu(findings, of))
            continue;
        struct finding *finding =
            finding_add(findings, RULE_LOW_USE, finding_workload(findings, of),
                        names_text(books->names, of->owner));
        wide_t under = sum->state_ns[STATE_IDLE] + sum->state_ns[STATE_LOW];
        finding->window_cost = sum->category[CATEGORY_SLACK] + sum->category[CATEGORY_HELD_IDLE];
        finding->month = books_month(books, sum->first, finding->window_cost);
        finding->what = finding_text(findings, "is under 30 %% used in %.*s of what is observed",
                                     STR_ARG(finding_percent(findings, under, sum->observed_ns)));
        finding_use(findings, finding, sum, THRESHOLD_LOW_USE_LOW);
        finding_coverage(findings, finding, sum, THRESHOLD_LOW_USE_OBSERVED);
        finding_price(findings, finding, &books->nodes[books->cells[of->cells[0]].node_index]);
        finding->confidence = CONFIDENCE_LOW;
        finding->action = advice(of->type);
        finding->risk = STR("low: nothing is taken away");
        finding_claim_pods(findings, finding, of, THRESHOLD_LOW_USE_TARGET);
    }
}
