/* CPU work on a GPU machine: the GPUs do next to nothing while the CPUs work. What it saves is the
 * price of the node less that of the cheapest general-purpose machine that has what its pods
 * request (semantics, section 10); the same pattern stands in the idle scan, over its days.
 *
 * The node's GPUs are judged together, held or not: one card that works keeps the node. Nodes whose
 * CPUs nobody measures are told together, where somebody holds their GPUs. */
#include <stdlib.h>

#include "insight/finding.h"
#include "insight/instead.h"

/* What the GPUs of a node did. */
struct gpus {
    wide_t e, observed_ns, gpu_ns; /* e: ns x 1e-9 */
    bool held, sm_only;
    name_t owner; /* of the holders; NAME_NONE: several, or none */
};

static struct gpus *gpus_of_nodes(const struct books *books)
{
    struct gpus *list = mem_zalloc(books->nodes_n, sizeof *list);
    for (size_t c = 0; c < books->cells_n; c++) {
        const struct book_cell *cell = &books->cells[c];
        struct gpus *of = &list[cell->node_index];
        of->gpu_ns += cell->gpu_ns;
        of->observed_ns += cell->observed_ns;
        if (cell->observed_ms > 0)
            of->e += cell->e / cell->observed_ms * cell->observed_ns;
        of->sm_only |= (cell->flags & FLAG_E_SM) != 0;
        if (cell->workload == SIZE_MAX)
            continue;
        of->owner = !of->held || of->owner == cell->facts.owner ? cell->facts.owner : NAME_NONE;
        of->held = true;
    }
    return list;
}

static bool gpus_do_nothing(const struct books *books, const struct book_node *node,
                            const struct gpus *gpus)
{
    return books_is_now(books, node->last) && node->booked > 0 && gpus->observed_ns > 0 &&
           node->last - node->first >= books_threshold(books, THRESHOLD_CPU_NODE_FOR) &&
           ratio_reached(gpus->observed_ns, gpus->gpu_ns,
                         books_threshold(books, THRESHOLD_CPU_NODE_OBSERVED)) &&
           gpus->e < gpus->observed_ns * books_threshold(books, THRESHOLD_CPU_NODE_UTIL);
}

static struct instead instead_of(const struct books *books, const struct book_node *node)
{
    struct instead_node wanted = {.cloud = names_text(books->names, node->facts.cloud),
                                  .region = names_text(books->names, node->facts.region),
                                  .at = books->window.to - 1,
                                  .priced = !(node->flags & FLAG_UNPRICED),
                                  .price = node->price,
                                  .requested_mcpu = node->host.requested_mcpu,
                                  .requested_memory_bytes = node->host.requested_memory_bytes};
    struct instead instead;
    instead_find(books->prices, &wanted, &instead);
    return instead;
}

static void claim(const struct books *books, struct finding *finding, size_t index,
                  const struct instead *instead)
{
    const struct book_node *node = &books->nodes[index];
    for (size_t c = node->cells; c < node->cells + node->cells_n && node->price; c++) {
        money_t month = books_month(books, node->first, books->cells[c].cost);
        money_t saved = (money_t)((wide_t)month * instead->saving / node->price);
        finding_claim_kept(finding, c, saved, month - saved);
    }
}

static struct str cpus(struct findings *findings, int64_t mcpu)
{
    long long whole = (long long)(mcpu / 1000), tenth = (long long)(mcpu % 1000 / 100);
    return tenth ? finding_text(findings, "%lld.%lld CPUs", whole, tenth)
                 : finding_text(findings, "%lld CPUs", whole);
}

static void evidence(const struct books *books, struct findings *findings, struct finding *finding,
                     const struct book_node *node, const struct gpus *gpus)
{
    const struct book_host *host = &node->host;
    finding_evidence_at(
        findings, finding, gpus->sm_only ? "GPU_UTIL (SM activity stands in)" : "GPU_UTIL",
        finding_percent(findings, gpus->e, gpus->observed_ns * NANO), THRESHOLD_CPU_NODE_UTIL);
    finding_evidence_at(findings, finding, "CPU, highest 5 min",
                        finding_percent(findings, host->cpu_max, NANO), THRESHOLD_CPU_NODE_CPU);
    finding_evidence(findings, finding, "CPU, mean",
                     finding_percent(findings, host->cpu, (wide_t)host->cpu_seen_ms * NANO), "");
    finding_evidence_at(findings, finding, "observed",
                        finding_percent(findings, gpus->observed_ns, gpus->gpu_ns),
                        THRESHOLD_CPU_NODE_OBSERVED);
    finding_evidence(findings, finding, "requested by its pods",
                     finding_text(findings, "%.*s, %.*s",
                                  STR_ARG(cpus(findings, host->requested_mcpu)),
                                  STR_ARG(finding_gib(findings, host->requested_memory_bytes))),
                     "");
    wide_t ms = node->last - node->first;
    bool whole = 10 * (wide_t)host->cpu_seen_ms >= 9 * ms;
    finding->confidence = whole && !gpus->sm_only ? CONFIDENCE_HIGH : CONFIDENCE_MEDIUM;
    finding->reasons =
        finding_text(findings, "its CPUs are measured for %.*s of %.*s",
                     STR_ARG(finding_hours(findings, host->cpu_seen_ms)),
                     STR_ARG(finding_hours(findings, books->window.to - node->first)));
}

/* Requests say what its pods are promised, not what they take: they may take more now. */
static void say_risk(struct findings *findings, struct finding *finding,
                     const struct book_host *host, const struct price_offer *offer)
{
    int64_t peak =
        host->cpus > 0 ? (int64_t)((wide_t)host->cpu_max * host->cpus / (NANO / 1000)) : -1;
    finding->risk = STR("medium: ask the holder; the pods must run without a GPU");
    if (peak <= offer->vcpus_milli)
        return;
    finding->confidence = CONFIDENCE_LOW;
    finding->risk =
        finding_text(findings,
                     "high: at its peak %.*s are busy, and the machine has %.*s: the work takes "
                     "longer, or needs "
                     "higher requests",
                     STR_ARG(cpus(findings, peak)), STR_ARG(cpus(findings, offer->vcpus_milli)));
}

static void found(const struct books *books, struct findings *findings, size_t index,
                  const struct gpus *gpus, const struct instead *instead)
{
    const struct book_node *node = &books->nodes[index];
    const struct price_offer *offer = &instead->offer;
    struct str owner =
        gpus->owner == NAME_NONE ? STR("platform") : names_text(books->names, gpus->owner);
    struct finding *finding =
        finding_add(findings, RULE_CPU_NODE, finding_node(findings, node), owner);
    money_t saved = (money_t)((wide_t)node->booked * instead->saving / node->price);
    finding->window_cost = saved;
    finding->month = books_month(books, node->first, saved);
    finding->what = finding_text(
        findings, "its GPUs do next to nothing (%.*s) while its CPUs work (up to %.*s)",
        STR_ARG(finding_percent(findings, gpus->e, gpus->observed_ns * NANO)),
        STR_ARG(finding_percent(findings, node->host.cpu_max, NANO)));
    evidence(books, findings, finding, node, gpus);
    finding_price(findings, finding, node);
    struct str source = finding_offer_source(findings, offer);
    finding->arithmetic = finding_text(
        findings,
        "%.*s an hour less %.*s of %.*s (%.*s): %.*s of what the node cost since %.*s x 730 h / "
        "%.*s",
        STR_ARG(finding_money(findings, node->price)),
        STR_ARG(finding_money(findings, offer->price)), STR_ARG(offer->instance_type),
        STR_ARG(source), STR_ARG(finding_percent(findings, instead->saving, node->price)),
        STR_ARG(finding_time(findings, node->first)),
        STR_ARG(finding_hours(findings, books->window.to - node->first)));
    finding->depends = STR("all of its pods moving, and the node being given back");
    finding->action =
        finding_text(findings,
                     "move its pods to a machine without GPUs: %.*s has %.*s and %.*s, and is the "
                     "cheapest that has what they request",
                     STR_ARG(offer->instance_type), STR_ARG(cpus(findings, offer->vcpus_milli)),
                     STR_ARG(finding_gib(findings, (int64_t)((wide_t)offer->memory_milli_gib *
                                                             (INT64_C(1) << 30) / 1000))));
    finding->remedy = REMEDY_INSTANCE_TYPE;
    finding->target = finding_text(findings, "%.*s", STR_ARG(offer->instance_type));
    say_risk(findings, finding, &node->host, offer);
    claim(books, finding, index, instead);
}

static void refuse(struct findings *findings, const struct book_node *node, const char *why)
{
    refusal_add(findings, RULE_CPU_NODE, finding_node(findings, node), STR("platform"), why);
}

void rule_cpu_node(const struct books *books, struct findings *findings)
{
    struct gpus *list = gpus_of_nodes(books);
    size_t unmeasured = 0;
    for (size_t i = 0; i < books->nodes_n; i++) {
        const struct book_node *node = &books->nodes[i];
        if (!gpus_do_nothing(books, node, &list[i]))
            continue;
        if (node->host.cpu_seen_ms <= 0) {
            unmeasured += list[i].held;
            continue;
        }
        if (node->host.cpu_max <= books_threshold(books, THRESHOLD_CPU_NODE_CPU))
            continue;
        struct instead instead = instead_of(books, node);
        if (!instead.found)
            refuse(findings, node,
                   finding_text(findings,
                                "its work is on the CPU, but no other machine is named: %s",
                                instead.why)
                       .p);
        else if (instead.saving <= 0)
            refuse(findings, node,
                   "its work is on the CPU, but the cheapest machine that is large "
                   "enough costs no less");
        else
            found(books, findings, i, &list[i], &instead);
    }
    if (unmeasured)
        refusal_add(findings, RULE_CPU_NODE,
                    finding_text(findings, "%zu node%s", unmeasured, unmeasured == 1 ? "" : "s"),
                    STR("platform"),
                    "somebody holds GPUs there that do next to nothing; whether the work is on the "
                    "CPU is not known: node_exporter's CPU is missing");
    free(list);
}
