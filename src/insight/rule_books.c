/* What keeps money from having somebody who answers for it: no team, or no price. */
#include "insight/finding.h"

void rule_unowned(const struct books *books, struct findings *findings)
{
    name_t unowned;
    if (!names_find(books->names, STR("unowned"), &unowned))
        return;
    for (size_t i = 0; i < books->workloads_n; i++) {
        const struct book_workload *first = &books->workloads[i];
        bool seen = first->owner != unowned;
        for (size_t k = 0; k < i && !seen; k++)
            seen = books->workloads[k].owner == unowned &&
                   books->workloads[k].cluster == first->cluster &&
                   books->workloads[k].namespace == first->namespace;
        if (seen)
            continue;
        struct str cluster = names_text(books->names, first->cluster);
        struct finding *finding = finding_add(
            findings, RULE_UNOWNED,
            finding_text(findings, "namespace %.*s%s%.*s", STR_ARG(cluster), cluster.n ? "/" : "",
                         STR_ARG(names_text(books->names, first->namespace))),
            STR("finance"));
        wide_t held = 0;
        size_t n = 0;
        time_ms since = first->sum.first;
        for (size_t k = i; k < books->workloads_n; k++) {
            const struct book_workload *of = &books->workloads[k];
            if (of->owner != unowned || of->cluster != first->cluster ||
                of->namespace != first->namespace)
                continue;
            finding->window_cost += of->sum.cost;
            held += of->sum.held_ns;
            since = of->sum.first < since ? of->sum.first : since;
            n++;
        }
        finding->month = books_month(books, since, finding->window_cost);
        finding->what = finding_text(findings, "has %zu workload%s that no owner rule matches", n,
                                     n == 1 ? "" : "s");
        finding_evidence(findings, finding, "held", finding_gpu_hours(findings, held), "");
        finding->reasons = STR("the owner rules say so");
        finding->arithmetic = finding_text(findings, "cost of its rows: %.*s",
                                           STR_ARG(finding_money(findings, finding->window_cost)));
        finding->depends = STR("nothing: it saves nothing by itself");
        finding->action =
            STR("label its workloads with a team, or add an owner rule (docs/owners.md)");
        finding->risk = STR("none");
    }
}

void rule_unpriced(const struct books *books, struct findings *findings)
{
    for (size_t i = 0; i < books->nodes_n; i++) {
        const struct book_node *first = &books->nodes[i];
        bool seen = !(first->flags & FLAG_UNPRICED);
        for (size_t k = 0; k < i && !seen; k++)
            seen = books->nodes[k].flags & FLAG_UNPRICED &&
                   books->nodes[k].facts.instance_type == first->facts.instance_type;
        if (seen)
            continue;
        wide_t ns = 0;
        size_t n = 0;
        for (size_t k = i; k < books->nodes_n; k++)
            if (books->nodes[k].flags & FLAG_UNPRICED &&
                books->nodes[k].facts.instance_type == first->facts.instance_type) {
                ns += books->nodes[k].gpu_ns;
                n++;
            }
        struct str type = names_text(books->names, first->facts.instance_type);
        struct finding *finding = finding_add(
            findings, RULE_UNPRICED,
            finding_text(findings, "instance type %.*s", STR_ARG(type.n ? type : STR("unknown"))),
            STR("finance"));
        finding->what = finding_text(findings, "has no price: %zu node%s, %.*s", n,
                                     n == 1 ? "" : "s", STR_ARG(finding_gpu_hours(findings, ns)));
        finding_evidence(findings, finding, "unpriced", finding_gpu_hours(findings, ns), "");
        finding_price(findings, finding, first);
        finding->reasons = STR("neither the price files nor the catalogue have it");
        finding->depends = STR("nothing: it saves nothing by itself");
        finding->action = STR("add its price to a file for --prices (docs/prices.md)");
        finding->risk = STR("none");
    }
}
