/* What better use of a workload saves: the whole pods that could go if the others did their work.
 * It is claimed with low confidence, since nobody knows before trying that they can. */
#include "insight/finding.h"

/* GPUs that it holds now, and those of them that could go: whole pods. */
static size_t freed(const struct books *books, const struct book_workload *of,
                    enum threshold_id target, size_t *ret_now)
{
    const struct book_sum *sum = &of->sum;
    size_t now = 0, pod = of->gpus_a_pod > 0 ? (size_t)of->gpus_a_pod : 1;
    for (size_t c = 0; c < of->cells_n; c++)
        now += books_is_now(books, books->cells[of->cells[c]].last);
    *ret_now = now;
    if (sum->observed_ms <= 0 || sum->shared)
        return 0;
    wide_t den = (wide_t)sum->observed_ms * books_threshold(books, target);
    if (den <= 0)
        return 0;
    size_t needed = (size_t)((sum->u * (wide_t)now + den - 1) / den);
    needed = needed < pod ? pod : (needed + pod - 1) / pod * pod;
    return needed < now ? now - needed : 0;
}

void finding_claim_pods(struct findings *findings, struct finding *finding,
                        const struct book_workload *of, enum threshold_id target)
{
    const struct books *books = findings->books;
    size_t now, less = freed(books, of, target, &now);
    finding->confidence = CONFIDENCE_LOW;
    finding->arithmetic = finding_text(
        findings, "%zu of its %zu GPUs could go at %.*s use: that share of %.*s a month", less, now,
        STR_ARG(finding_threshold(findings, target)),
        STR_ARG(finding_money(findings, books_month(books, of->sum.first, of->sum.cost))));
    finding->depends = less ? STR("whether fewer pods can carry the load")
                            : STR("nothing is claimed: better use of one pod frees no GPU, it "
                                  "ends sooner or carries more");
    if (less) {
        size_t pod = of->gpus_a_pod > 0 ? (size_t)of->gpus_a_pod : 1;
        finding->remedy = REMEDY_REPLICAS;
        finding->target = finding_text(findings, "%zu", (now - less) / pod);
    }
    for (size_t c = 0; c < of->cells_n && less; c++) {
        const struct book_cell *cell = &books->cells[of->cells[c]];
        money_t month = books_month(books, of->sum.first, cell->cost);
        finding_claim(finding, of->cells[c], (money_t)((wide_t)month * (wide_t)less / (wide_t)now));
    }
}
