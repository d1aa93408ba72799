/* The scorecard: money of workloads for which nobody answers, since they have no owner, nothing
 * that counts what they do, or no target. It saves nothing by itself. Only inference is asked for a
 * unit (training and notebooks have runs and hours), and for a target only where somebody has one.
 * A single lack is left to its own rule. */
#include "insight/finding.h"

#define SHOWN 5

enum lack { LACK_OWNER, LACK_UNIT, LACK_TARGET, LACKS };

struct card {
    money_t held, money[LACKS]; /* of the window */
    size_t workloads[LACKS];
    money_t any;   /* of workloads that lack something, each once */
    time_ms first; /* of them */
};

static bool has_unit(const struct book_workload *of)
{
    bool counted = of->load.serving_seen_ms > 0;
    for (int w = 0; w < WORK_COUNT; w++)
        counted |= of->sum.work[w] > 0;
    return counted;
}

static bool lacks(const struct books *books, const struct book_workload *of, enum lack what)
{
    int64_t target;
    switch (what) {
    case LACK_OWNER:
        return str_eq(names_text(books->names, of->owner), STR("unowned"));
    case LACK_UNIT:
        return of->type == WORKLOAD_INFERENCE && !has_unit(of);
    case LACK_TARGET:
        return books->thresholds.targets_n && !rule_target_of(books, of, &target);
    case LACKS:
        break;
    }
    return false;
}

static struct card read_card(const struct books *books)
{
    struct card card = {.first = TIME_MAX};
    for (size_t i = 0; i < books->workloads_n; i++) {
        const struct book_workload *of = &books->workloads[i];
        bool any = false;
        card.held += of->sum.cost;
        for (int k = 0; k < LACKS; k++) {
            if (!lacks(books, of, (enum lack)k))
                continue;
            any = true;
            card.money[k] += of->sum.cost;
            card.workloads[k]++;
        }
        if (!any)
            continue;
        card.any += of->sum.cost;
        card.first = of->sum.first < card.first ? of->sum.first : card.first;
    }
    return card;
}

void rule_scorecard(const struct books *books, struct findings *findings)
{
    static const char *const names[LACKS] = {"without an owner", "without a unit metric",
                                             "without a target"};
    struct card card = read_card(books);
    int reached = 0;
    for (int k = 0; k < LACKS; k++)
        reached +=
            card.money[k] > 0 && ratio_reached(card.money[k], card.held,
                                               books_threshold(books, THRESHOLD_SCORECARD_SHARE));
    if (reached < 2) /* one alone is in a finding of its own */
        return;
    struct finding *finding =
        finding_add(findings, RULE_SCORECARD, STR("fleet all"), STR("finance"));
    finding->window_cost = card.any;
    finding->month = books_month(books, card.first, card.any);
    finding->what = finding_text(findings,
                                 "spends %.*s of its held money on workloads that lack an owner, a "
                                 "unit metric or a target",
                                 STR_ARG(finding_percent(findings, card.any, card.held)));
    for (int k = 0; k < LACKS; k++) {
        struct str value = finding_text(
            findings, "%.*s, %.*s, %zu workload%s", STR_ARG(finding_money(findings, card.money[k])),
            STR_ARG(finding_percent(findings, card.money[k], card.held)), card.workloads[k],
            card.workloads[k] == 1 ? "" : "s");
        if (k == LACK_TARGET && !books->thresholds.targets_n)
            finding_evidence(findings, finding, names[k],
                             STR("not asked: no targets are configured"), "");
        else
            finding_evidence_at(findings, finding, names[k], value, THRESHOLD_SCORECARD_SHARE);
    }
    finding->reasons = STR("from the owner rules, the metrics that were read, and targets:");
    finding->arithmetic = finding_text(
        findings, "of %.*s held in the window; what lacks several is counted once in the sum",
        STR_ARG(finding_money(findings, card.held)));
    finding->depends = STR("nothing: it saves nothing by itself");
    finding->action = STR("take the findings unowned, no-unit and no-target, the largest first");
    finding->risk = STR("none");
}

/* ---- inference without a counter has no price a token ---- */

static bool is_uncounted(const struct books *books, const struct book_workload *of)
{
    return lacks(books, of, LACK_UNIT) && books_is_now(books, of->sum.last) &&
           of->sum.held_ns >= (wide_t)books_threshold(books, THRESHOLD_NO_UNIT_HELD) * 1000000;
}

static bool is_first_of_owner(const struct books *books, size_t index)
{
    for (size_t i = 0; i < index; i++)
        if (books->workloads[i].owner == books->workloads[index].owner &&
            is_uncounted(books, &books->workloads[i]))
            return false;
    return true;
}

/* One finding a team. */
void rule_no_unit(const struct books *books, struct findings *findings)
{
    for (size_t i = 0; i < books->workloads_n; i++) {
        const struct book_workload *first = &books->workloads[i];
        struct str owner = names_text(books->names, first->owner), named = STR_NONE;
        size_t n = 0;
        if (!is_uncounted(books, first) || !is_first_of_owner(books, i))
            continue;
        struct finding *finding = finding_add(
            findings, RULE_NO_UNIT, finding_text(findings, "team %.*s", STR_ARG(owner)), owner);
        for (size_t k = i; k < books->workloads_n; k++) {
            const struct book_workload *of = &books->workloads[k];
            if (of->owner != first->owner || !is_uncounted(books, of))
                continue;
            finding->window_cost += of->sum.cost;
            finding->month += books_month(books, of->sum.first, of->sum.cost);
            if (n++ < SHOWN)
                named =
                    finding_text(findings, "%.*s%s%.*s/%.*s", STR_ARG(named), named.n ? ", " : "",
                                 STR_ARG(names_text(books->names, of->namespace)),
                                 STR_ARG(names_text(books->names, of->workload)));
        }
        finding->what = finding_text(findings,
                                     "has %zu inference workload%s without a counter of requests "
                                     "or tokens: what one costs is not known, nor whether anybody "
                                     "asks",
                                     n, n == 1 ? "" : "s");
        finding_evidence(findings, finding, "such workloads", named, "none");
        finding->reasons = STR("no metric of vLLM, SGLang, TGI or Triton names their pods");
        finding->arithmetic = STR("no saving is claimed");
        finding->depends = STR("nothing: it saves nothing by itself");
        finding->action = STR("scrape their metrics endpoints (docs/signals.md has the names)");
        finding->risk = STR("none");
    }
}
