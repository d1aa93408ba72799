/* Busy-looking but useless: a kernel runs all the time and the chip does next to nothing, hour
 * after hour up to now: a hung collective, a spinning kernel. GPU_UTIL alone would call it fully
 * used. Where SM activity is not exported, power near what the model draws when idle says the same,
 * with less confidence. Hours whose profiling counters are stuck prove nothing. */
#include "insight/finding.h"

struct useless {
    time_ms since; /* the latest begin of its GPUs */
    money_t cost;
    wide_t sm, e, mj;
    int64_t ms;
    bool by_power;
    size_t gpus, others; /* others: GPUs that it holds now and that are not so */
};

static struct useless look_at(const struct books *books, const struct book_workload *of)
{
    struct useless ret = {.since = TIME_MIN};
    for (size_t c = 0; c < of->cells_n; c++) {
        const struct book_cell *cell = &books->cells[of->cells[c]];
        if (!books_is_now(books, cell->last))
            continue;
        if (cell->useless_since == TIME_MAX) {
            ret.others++;
            continue;
        }
        ret.gpus++;
        ret.since = cell->useless_since > ret.since ? cell->useless_since : ret.since;
        ret.cost += cell->useless_cost;
        ret.sm += cell->useless_sm;
        ret.e += cell->useless_e;
        ret.mj += cell->useless_mj;
        ret.ms += cell->useless_ms;
        ret.by_power |= cell->useless_by_power;
    }
    return ret;
}

static void claim(const struct books *books, struct finding *finding,
                  const struct book_workload *of)
{
    for (size_t c = 0; c < of->cells_n; c++) {
        const struct book_cell *cell = &books->cells[of->cells[c]];
        if (books_is_now(books, cell->last) && cell->useless_since != TIME_MAX)
            finding_claim(finding, of->cells[c],
                          books_month(books, cell->useless_since, cell->useless_cost));
    }
}

void rule_busy_useless(const struct books *books, struct findings *findings)
{
    for (size_t i = 0; i < books->workloads_n; i++) {
        const struct book_workload *of = &books->workloads[i];
        struct useless useless = look_at(books, of);
        if (!useless.gpus ||
            books->window.to - useless.since < books_threshold(books, THRESHOLD_BUSY_USELESS_FOR))
            continue;
        struct finding *finding =
            finding_add(findings, RULE_BUSY_USELESS, finding_workload(findings, of),
                        names_text(books->names, of->owner));
        finding->since = useless.since;
        finding->window_cost = useless.cost;
        finding->what =
            finding_text(findings, "looks busy on %zu of its %zu GPUs, and does next to nothing",
                         useless.gpus, useless.gpus + useless.others);
        finding_evidence_at(findings, finding, "time with a kernel",
                            finding_percent(findings, useless.e, (wide_t)useless.ms * NANO),
                            THRESHOLD_BUSY_USELESS_KERNEL);
        if (useless.by_power)
            finding_evidence(findings, finding, "mean power",
                             finding_text(findings, "%lld W", (long long)(useless.mj / useless.ms)),
                             "near the model's idle draw");
        else
            finding_evidence_at(findings, finding, "SM activity",
                                finding_percent(findings, useless.sm, (wide_t)useless.ms * NANO),
                                THRESHOLD_BUSY_USELESS_ACTIVITY);
        finding_evidence_at(findings, finding, "for",
                            finding_hours(findings, books->window.to - useless.since),
                            THRESHOLD_BUSY_USELESS_FOR);
        finding_coverage(findings, finding, &of->sum, THRESHOLD_BUSY_USELESS_OBSERVED);
        if (useless.by_power)
            finding->confidence = CONFIDENCE_LOW;
        finding_price(findings, finding, &books->nodes[books->cells[of->cells[0]].node_index]);
        claim(books, finding, of);
        for (size_t k = 0; k < finding->claims_n; k++)
            finding->month += finding->claims[k].month;
        finding->arithmetic = finding_text(findings, "%.*s since %.*s, at that pace for 730 h",
                                           STR_ARG(finding_money(findings, useless.cost)),
                                           STR_ARG(finding_time(findings, useless.since)));
        finding->depends = STR("it not ending by itself within the month");
        finding->action =
            STR("look at its log and stack (a hung collective?), then restart it from "
                "its last checkpoint");
        finding->risk = STR("medium: work since the last checkpoint is lost by a restart");
    }
}
