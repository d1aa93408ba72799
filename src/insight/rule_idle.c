/* Allocated but idle, and idle notebooks.
 *
 * Judged by GPU time over a day or more, so that a pause between epochs is not idleness; time that
 * was not observed counts as in use. Advice to stop needs idle days up to now that are observed;
 * before that, whoever holds it is asked. */
#include "insight/finding.h"

/* The thresholds that both rules have. */
struct limits {
    enum threshold_id held, observed, idle, stop;
};
static const struct limits limits_of_rules[] = {
    [RULE_IDLE_WORKLOAD] = {THRESHOLD_IDLE_WORKLOAD_HELD, THRESHOLD_IDLE_WORKLOAD_OBSERVED,
                            THRESHOLD_IDLE_WORKLOAD_IDLE, THRESHOLD_IDLE_WORKLOAD_STOP},
    [RULE_IDLE_NOTEBOOK] = {THRESHOLD_IDLE_NOTEBOOK_HELD, THRESHOLD_IDLE_NOTEBOOK_OBSERVED,
                            THRESHOLD_IDLE_NOTEBOOK_IDLE, THRESHOLD_IDLE_NOTEBOOK_STOP},
};

/* Idle is nothing at all, not a little all the time: nearly all of it in the histogram's first bin
 * (SM activity under 5 %), and where GPU_UTIL is missing, so that kernels are not seen, next to
 * none. */
static bool does_nothing(const struct books *books, const struct book_sum *sum)
{
    int64_t idle = books_threshold(books, THRESHOLD_IDLE_WORKLOAD_IDLE);
    int64_t activity = books_threshold(books, THRESHOLD_IDLE_WORKLOAD_ACTIVITY);
    if (sum->flags & FLAG_E_SM && sum->u >= (wide_t)sum->observed_ms * activity)
        return false;
    return ratio_reached(sum->state_ns[STATE_IDLE], sum->observed_ns, idle) &&
           ratio_reached((wide_t)sum->hist_u_ns[0], sum->observed_ns, idle);
}

static bool enough(const struct books *books, const struct book_sum *sum, enum rule_id rule)
{
    const struct limits *limits = &limits_of_rules[rule];
    return books_is_now(books, sum->last) &&
           book_is_judged(books, sum, limits->held, limits->observed);
}

/* Has no GPU of it worked for some days, and is that seen? *ret_since: since when. */
static bool may_be_stopped(const struct books *books, const struct book_workload *of,
                           enum rule_id rule, time_ms *ret_since)
{
    const struct limits *limits = &limits_of_rules[rule];
    time_ms since = TIME_MIN;
    int64_t observed = 0, span = 0;
    for (size_t c = 0; c < of->cells_n; c++) {
        const struct book_cell *cell = &books->cells[of->cells[c]];
        time_ms begin = cell->worked_until > cell->first ? cell->worked_until : cell->first;
        if (!books_is_now(books, cell->last) && cell->worked_until == TIME_MIN)
            continue;
        since = begin > since ? begin : since;
        observed += cell->idle_observed_ms;
        span += cell->last - begin;
    }
    *ret_since = since;
    return since > TIME_MIN && books->window.to - since >= books_threshold(books, limits->stop) &&
           ratio_reached(observed, span, books_threshold(books, limits->observed));
}

static void claim_idle(const struct books *books, struct finding *finding,
                       const struct book_workload *of)
{
    for (size_t c = 0; c < of->cells_n; c++) {
        const struct book_cell *cell = &books->cells[of->cells[c]];
        finding_claim(finding, of->cells[c],
                      books_month(books, of->sum.first, cell->category[CATEGORY_HELD_IDLE]));
    }
}

static struct finding *found(const struct books *books, struct findings *findings,
                             const struct book_workload *of, enum rule_id rule)
{
    const struct book_sum *sum = &of->sum;
    const struct limits *limits = &limits_of_rules[rule];
    struct finding *finding = finding_add(findings, rule, finding_workload(findings, of),
                                          names_text(books->names, of->owner));
    finding->window_cost = sum->category[CATEGORY_HELD_IDLE];
    finding->month = books_month(books, sum->first, finding->window_cost);
    finding->user = of->load.user == NAME_NONE ? STR_NONE : names_text(books->names, of->load.user);
    finding->what = finding_text(
        findings, "%.*s%sholds %.*s in the window and is idle in %.*s of what is observed",
        STR_ARG(finding->user), finding->user.n ? "'s session " : "",
        STR_ARG(finding_gpu_hours(findings, sum->held_ns)),
        STR_ARG(finding_percent(findings, sum->state_ns[STATE_IDLE], sum->observed_ns)));
    finding_evidence_at(findings, finding, "held", finding_gpu_hours(findings, sum->held_ns),
                        limits->held);
    finding_evidence_at(findings, finding, "idle",
                        finding_percent(findings, sum->state_ns[STATE_IDLE], sum->observed_ns),
                        limits->idle);
    finding_evidence(findings, finding, "mean SM activity",
                     finding_percent(findings, sum->u, (wide_t)sum->observed_ms * NANO), "");
    finding_evidence(findings, finding, "last work (to the hour)",
                     sum->worked_until == TIME_MIN ? STR("none in the window")
                                                   : finding_time(findings, sum->worked_until),
                     "");
    finding_coverage(findings, finding, sum, limits->observed);
    finding->confidence = CONFIDENCE_MEDIUM; /* its CPU is unchecked */
    finding_price(findings, finding, &books->nodes[books->cells[of->cells[0]].node_index]);
    finding->arithmetic =
        finding_text(findings, "held idle %.*s since %.*s x 730 h / %.*s",
                     STR_ARG(finding_money(findings, finding->window_cost)),
                     STR_ARG(finding_time(findings, sum->first)),
                     STR_ARG(finding_hours(findings, books->window.to - sum->first)));
    finding->depends = STR("the freed GPUs being used by others, or their nodes removed");
    claim_idle(books, finding, of);
    return finding;
}

/* A server that is asked now and then waits for the next request. */
static bool serves(const struct book_workload *of)
{
    return of->load.requests > 0 || of->load.tokens > 0 || of->load.running_max > 0;
}

static struct str idle_action(const struct book_workload *of, bool stop)
{
    if (serves(of))
        return STR("it serves, and is idle between its requests: scale it by load, down to zero "
                   "(KEDA, Knative), or let several models share a GPU");
    return stop ? STR("stop it, or scale it to zero, once its holder has said that it does not "
                      "work on the CPU")
                : STR("ask its holder what it is kept for; if its work is on the CPU, a machine "
                      "without GPUs does it");
}

void rule_idle_workload(const struct books *books, struct findings *findings)
{
    for (size_t i = 0; i < books->workloads_n; i++) {
        const struct book_workload *of = &books->workloads[i];
        const struct book_sum *sum = &of->sum;
        time_ms since;
        if (of->type == WORKLOAD_INTERACTIVE || !enough(books, sum, RULE_IDLE_WORKLOAD))
            continue;
        bool stop = may_be_stopped(books, of, RULE_IDLE_WORKLOAD, &since);
        if ((!stop && !does_nothing(books, sum)) ||
            finding_exists(findings, RULE_IDLE_SERVER, finding_workload(findings, of)) ||
            finding_works_on_cpu(findings, of))
            continue;
        struct finding *finding = found(books, findings, of, RULE_IDLE_WORKLOAD);
        finding->since = since;
        finding->remedy = stop && !serves(of) ? REMEDY_STOP : REMEDY_WORDS;
        finding->action = idle_action(of, stop);
        finding->risk = stop ? STR("medium: state in GPU memory is lost when it is stopped")
                             : STR("none: nothing is stopped");
    }
}

void rule_idle_notebook(const struct books *books, struct findings *findings)
{
    for (size_t i = 0; i < books->workloads_n; i++) {
        const struct book_workload *of = &books->workloads[i];
        const struct book_sum *sum = &of->sum;
        time_ms since;
        if (of->type != WORKLOAD_INTERACTIVE || !enough(books, sum, RULE_IDLE_NOTEBOOK) ||
            !ratio_reached(sum->state_ns[STATE_IDLE], sum->observed_ns,
                           books_threshold(books, THRESHOLD_IDLE_NOTEBOOK_IDLE)) ||
            finding_works_on_cpu(findings, of))
            continue;
        bool stop = may_be_stopped(books, of, RULE_IDLE_NOTEBOOK, &since);
        struct finding *finding = found(books, findings, of, RULE_IDLE_NOTEBOOK);
        finding->since = stop ? since : TIME_MIN;
        finding->remedy = stop ? REMEDY_STOP : REMEDY_WORDS;
        finding->action =
            stop ? STR("stop it, and turn on culling of idle notebooks")
                 : STR("turn on culling after an hour without work; share the GPU by time-slicing "
                       "(no isolation between users, and no attribution by pod)");
        finding->risk = STR("medium: unsaved state of the session is lost when it is culled");
    }
}
