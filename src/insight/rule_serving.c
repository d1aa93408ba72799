/* A server that nobody asks: its counters stand still, its queue is empty, and its GPU does
 * nothing, while its model fills the memory. GPU activity alone cannot tell a server that waits for
 * the next request from one that will never get one; its own counters can. Where they say one thing
 * and the GPU another, the GPU is in use. */
#include "insight/finding.h"

static bool has_counters(const struct book_load *load)
{
    return load->serving_seen_ms > 0 &&
           (load->requests >= 0 || load->tokens >= 0 || load->running_max >= 0);
}

/* Is it long enough that counters which cover most of its life saw no request? *ret_since: since
 * when. */
static bool is_quiet(const struct books *books, const struct book_workload *of, time_ms *ret_since)
{
    const struct book_sum *sum = &of->sum;
    time_ms since = of->load.served_until > sum->first ? of->load.served_until : sum->first;
    wide_t seen = (wide_t)of->load.serving_seen_ms * (of->gpus_a_pod > 0 ? of->gpus_a_pod : 1);
    *ret_since = since;
    return books->window.to - since >= books_threshold(books, THRESHOLD_IDLE_SERVER_QUIET) &&
           ratio_reached(seen, sum->held_ms,
                         books_threshold(books, THRESHOLD_IDLE_SERVER_OBSERVED)) &&
           book_is_judged(books, sum, THRESHOLD_IDLE_SERVER_HELD, THRESHOLD_IDLE_SERVER_OBSERVED);
}

static void claim(const struct books *books, struct finding *finding,
                  const struct book_workload *of)
{
    for (size_t c = 0; c < of->cells_n; c++) {
        const struct book_cell *cell = &books->cells[of->cells[c]];
        if (!books_is_now(books, cell->last))
            continue;
        time_ms begin = cell->first > finding->since ? cell->first : finding->since;
        time_ms life = books->window.to - cell->first;
        money_t month = books_month(books, cell->first, cell->cost);
        finding_claim(finding, of->cells[c], month);
        finding->month += month;
        if (life > 0)
            finding->window_cost +=
                (money_t)((wide_t)cell->cost * (books->window.to - begin) / life);
    }
}

static void say(const struct books *books, struct findings *findings, struct finding *finding,
                const struct book_workload *of)
{
    const struct book_load *load = &of->load;
    const struct book_sum *sum = &of->sum;
    struct str for_ms = finding_hours(findings, books->window.to - finding->since);
    finding->what =
        finding_text(findings, "serves, and has had no request for %.*s", STR_ARG(for_ms));
    finding_evidence_at(findings, finding, "without a request for", for_ms,
                        THRESHOLD_IDLE_SERVER_QUIET);
    if (load->requests >= 0)
        finding_evidence(findings, finding, "requests in the window",
                         finding_text(findings, "%lld", (long long)load->requests), "");
    if (load->waiting_max >= 0)
        finding_evidence(findings, finding, "longest queue",
                         finding_text(findings, "%lld", (long long)load->waiting_max), "");
    if (sum->mem_total_bytes > 0)
        finding_evidence(findings, finding, "peak memory",
                         finding_text(findings, "%.*s of %.*s",
                                      STR_ARG(finding_gib(findings, sum->mem_max_bytes)),
                                      STR_ARG(finding_gib(findings, sum->mem_total_bytes))),
                         "");
    finding_coverage(findings, finding, sum, THRESHOLD_IDLE_SERVER_OBSERVED);
    finding_price(findings, finding, &books->nodes[books->cells[of->cells[0]].node_index]);
    finding->arithmetic = finding_text(
        findings, "what its GPUs cost, at the pace of %.*s since %.*s, for 730 h",
        STR_ARG(finding_money(findings, sum->cost)), STR_ARG(finding_time(findings, sum->first)));
    finding->remedy = REMEDY_STOP;
    finding->action = STR("scale it to zero, and let requests start it again (KEDA, Knative); or "
                          "put its model beside others on one server");
    finding->depends = STR("its freed GPUs being used by others, or their nodes removed");
    finding->risk = STR("low: the next request waits until the model is loaded");
}

void rule_idle_server(const struct books *books, struct findings *findings)
{
    for (size_t i = 0; i < books->workloads_n; i++) {
        const struct book_workload *of = &books->workloads[i];
        time_ms since;
        if (!has_counters(&of->load) || !books_is_now(books, of->sum.last) ||
            !is_quiet(books, of, &since))
            continue;
        struct str subject = finding_workload(findings, of);
        struct str owner = names_text(books->names, of->owner);
        if (of->sum.worked_until > since) {
            refusal_add(findings, RULE_IDLE_SERVER, subject, owner,
                        "its counters saw no request, and yet its GPU works: it counts as in use");
            continue;
        }
        struct finding *finding = finding_add(findings, RULE_IDLE_SERVER, subject, owner);
        finding->since = since;
        claim(books, finding, of);
        say(books, findings, finding, of);
    }
}
