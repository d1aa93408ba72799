/* Under 30 % used: at work, but with most of the chip doing nothing. What better use saves is not
 * known before somebody looks; claimed are the whole pods that could go if the rest ran at a
 * stated use, with low confidence: a single pod that is used better frees nothing by itself. */
#include "insight/finding.h"

/* GPUs that it holds now, and those of them that could go: whole pods. */
static size_t freed(const struct books *books, const struct book_workload *of, size_t *ret_now)
{
    const struct book_cell *sum = &of->sum;
    size_t now = 0, pod = of->gpus_a_pod > 0 ? (size_t)of->gpus_a_pod : 1;
    for (size_t c = 0; c < of->cells_n; c++)
        now += books_is_now(books, books->cells[of->cells[c]].last);
    *ret_now = now;
    if (sum->observed_ms <= 0 || sum->shared)
        return 0;
    wide_t den = (wide_t)sum->observed_ms * books_threshold(books, THRESHOLD_LOW_USE_TARGET);
    if (den <= 0)
        return 0;
    size_t needed = (size_t)((sum->u * (wide_t)now + den - 1) / den);
    needed = needed < pod ? pod : (needed + pod - 1) / pod * pod;
    return needed < now ? now - needed : 0;
}

static struct str advice(enum workload_type type)
{
    switch (type) {
    case WORKLOAD_TRAINING:
        return STR("larger batches, mixed precision, gradient accumulation and more data loading "
                   "workers, before any other hardware");
    case WORKLOAD_INFERENCE:
        return STR("fewer replicas, larger batches, or scaling by load; then a smaller GPU");
    default:
        return STR("look at what it waits for; a smaller GPU or a part of one may do");
    }
}

/* A workload that is found idle is not also found little used. */
static bool is_found_idle(const struct findings *findings, struct str subject)
{
    for (size_t i = 0; i < findings->n; i++)
        if (findings->items[i].rule == RULE_IDLE_WORKLOAD &&
            str_eq(findings->items[i].subject, subject))
            return true;
    return false;
}

static bool is_low(const struct books *books, const struct book_workload *of)
{
    const struct book_cell *sum = &of->sum;
    wide_t idle = sum->state_ns[STATE_IDLE], low = sum->state_ns[STATE_LOW];
    return of->type != WORKLOAD_INTERACTIVE && books_is_now(books, sum->last) &&
           sum->held_ns >= (wide_t)books_threshold(books, THRESHOLD_LOW_USE_HELD) * 1000000 &&
           ratio_reached(sum->observed_ns, sum->held_ns,
                         books_threshold(books, THRESHOLD_LOW_USE_OBSERVED)) &&
           ratio_reached(idle + low, sum->observed_ns,
                         books_threshold(books, THRESHOLD_LOW_USE_LOW)) &&
           !ratio_reached(idle, sum->observed_ns, books_threshold(books, THRESHOLD_LOW_USE_IDLE));
}

void rule_low_use(const struct books *books, struct findings *findings)
{
    for (size_t i = 0; i < books->workloads_n; i++) {
        const struct book_workload *of = &books->workloads[i];
        const struct book_cell *sum = &of->sum;
        if (!is_low(books, of) || is_found_idle(findings, finding_workload(findings, of)))
            continue;
        struct finding *finding =
            finding_add(findings, RULE_LOW_USE, finding_workload(findings, of),
                        names_text(books->names, of->owner));
        wide_t under = sum->state_ns[STATE_IDLE] + sum->state_ns[STATE_LOW];
        finding->window_cost = sum->category[CATEGORY_SLACK] + sum->category[CATEGORY_HELD_IDLE];
        finding->month = books_month(books, sum->first, finding->window_cost);
        finding->what = finding_text(findings, "is under 30 %% used in %.*s of what is observed",
                                     STR_ARG(finding_percent(findings, under, sum->observed_ns)));
        finding_evidence_at(findings, finding, "idle or low",
                            finding_percent(findings, under, sum->observed_ns),
                            THRESHOLD_LOW_USE_LOW);
        finding_evidence(findings, finding, "mean SM activity",
                         finding_percent(findings, sum->u, (wide_t)sum->observed_ms * NANO), "");
        finding_evidence(findings, finding, "mean GPU_UTIL",
                         finding_percent(findings, sum->e, (wide_t)sum->observed_ms * NANO), "");
        finding_coverage(findings, finding, sum, THRESHOLD_LOW_USE_OBSERVED);
        finding_price(findings, finding, &books->nodes[books->cells[of->cells[0]].node_index]);
        finding->confidence = CONFIDENCE_LOW;
        size_t now, less = freed(books, of, &now);
        finding->arithmetic = finding_text(
            findings, "%zu of its %zu GPUs could go at %.*s use: that share of %.*s a month", less,
            now, STR_ARG(finding_threshold(findings, THRESHOLD_LOW_USE_TARGET)),
            STR_ARG(finding_money(findings, books_month(books, sum->first, sum->cost))));
        finding->depends = less ? STR("whether fewer pods can carry the load")
                                : STR("nothing is claimed: better use of one pod frees no GPU, it "
                                      "ends sooner or carries more");
        finding->action = advice(of->type);
        finding->risk = STR("low: nothing is taken away");
        for (size_t c = 0; c < of->cells_n; c++) {
            const struct book_cell *cell = &books->cells[of->cells[c]];
            money_t month = books_month(books, sum->first, cell->cost);
            if (less)
                finding_claim(finding, of->cells[c],
                              (money_t)((wide_t)month * (wide_t)less / (wide_t)now));
        }
    }
}
