/* Nodes and pools whose GPUs nobody holds, by cause. The platform can act; what a reserved node
 * costs is paid whether it stands or not, so that giving it back saves nothing and is not claimed.
 */
#include "insight/finding.h"

/* GPU time of a threshold that is in ms of a GPU. */
static wide_t ns_at(const struct books *books, enum threshold_id id)
{
    return (wide_t)books_threshold(books, id) * 1000000;
}

static void claim_category(const struct books *books, struct finding *finding, size_t index,
                           enum category category)
{
    const struct book_node *node = &books->nodes[index];
    for (size_t c = node->cells; c < node->cells + node->cells_n; c++) {
        const struct book_cell *cell = &books->cells[c];
        finding_claim(finding, c, books_month(books, cell->first, cell->category[category]));
    }
}

/* A finding on a node, for the money of a category. */
static struct finding *found(const struct books *books, struct findings *findings, size_t index,
                             enum rule_id rule, enum category category)
{
    const struct book_node *node = &books->nodes[index];
    struct strbuf when = {0};
    rule_text(rule, &books->thresholds, &when);
    struct finding *finding =
        finding_add(findings, rule, finding_node(findings, node), STR("platform"));
    finding->window_cost = node->category[category];
    finding->month = books_month(books, node->first, finding->window_cost);
    finding_evidence(findings, finding, category_words[category],
                     finding_gpu_hours(findings, node->category_ns[category]),
                     str_keep(&findings->arena, strbuf_str(&when)).p);
    strbuf_release(&when);
    finding_evidence(findings, finding, "share of the node's cost",
                     finding_percent(findings, node->category[category], node->booked), "");
    finding_price(findings, finding, node);
    finding->reasons = STR("from the node's records and the pods that held its GPUs");
    finding->arithmetic =
        finding_text(findings, "%s %.*s since %.*s x 730 h / %.*s", category_words[category],
                     STR_ARG(finding_money(findings, finding->window_cost)),
                     STR_ARG(finding_time(findings, node->first)),
                     STR_ARG(finding_hours(findings, books->window.to - node->first)));
    return finding;
}

static bool is_reserved(const struct books *books, struct finding *finding, size_t index)
{
    if (books->nodes[index].facts.capacity != CAPACITY_RESERVED)
        return false;
    finding->depends = STR("nothing: the node is reserved and paid for anyway; use it");
    return true;
}

/* Pods without GPUs hold a node as well as others do; DaemonSets' pods do not. */
static void say_what_keeps_it(const struct books *books, struct findings *findings,
                              struct finding *finding, const struct book_node *node)
{
    const struct book_host *host = &node->host;
    if (host->daemon_pods >= 0)
        finding_evidence(findings, finding, "pods of DaemonSets",
                         finding_text(findings, "%d", (int)host->daemon_pods), "");
    if (host->cpu_pods < 0) {
        finding->action = STR("remove the node; check the pool's least size and how fast it scales "
                              "down, and that nothing but daemonsets keeps it");
        finding->risk = STR("low: nobody holds a GPU of it; CPU pods on it are not seen");
        return;
    }
    finding_evidence(findings, finding, "pods without GPUs",
                     finding_text(findings, "%d", (int)host->cpu_pods), "0");
    if (host->cpu_pods == 0) {
        finding->action = STR("remove the node; check the pool's least size and how fast it scales "
                              "down: no pod keeps it");
        finding->risk = STR("low: nothing but DaemonSets' pods runs on it");
        return;
    }
    finding->action = finding_text(
        findings,
        "move what keeps it alive (%.*s) to a node without GPUs, then remove it; taint the pool so "
        "that such pods stay away",
        STR_ARG(host->cpu_workloads == NAME_NONE ? STR("pods without GPUs")
                                                 : names_text(books->names, host->cpu_workloads)));
    finding->risk = STR("low: nobody holds a GPU of it; its CPU pods are moved");
}

void rule_node_empty(const struct books *books, struct findings *findings)
{
    for (size_t i = 0; i < books->nodes_n; i++) {
        const struct book_node *node = &books->nodes[i];
        time_ms since = node->taken_until > node->first ? node->taken_until : node->first;
        if (!books_is_now(books, node->last) || node->category[CATEGORY_EMPTY] == 0 ||
            books->window.to - since < books_threshold(books, THRESHOLD_NODE_EMPTY_EMPTY))
            continue;
        struct finding *finding = found(books, findings, i, RULE_NODE_EMPTY, CATEGORY_EMPTY);
        finding->since = since;
        finding->what = finding_text(findings, "has had no pod with a GPU for %.*s",
                                     STR_ARG(finding_hours(findings, books->window.to - since)));
        finding_evidence_at(findings, finding, "empty for",
                            finding_hours(findings, books->window.to - since),
                            THRESHOLD_NODE_EMPTY_EMPTY);
        say_what_keeps_it(books, findings, finding, node);
        finding->command = finding_text(findings, "kubectl drain %.*s --ignore-daemonsets",
                                        STR_ARG(names_text(books->names, node->node)));
        finding->depends = STR("the pool being allowed to shrink");
        if (!is_reserved(books, finding, i))
            claim_category(books, finding, i, CATEGORY_EMPTY);
    }
}

void rule_node_cordoned(const struct books *books, struct findings *findings)
{
    for (size_t i = 0; i < books->nodes_n; i++) {
        const struct book_node *node = &books->nodes[i];
        if (!books_is_now(books, node->last) ||
            node->category_ns[CATEGORY_CORDONED] < ns_at(books, THRESHOLD_NODE_CORDONED_CORDONED))
            continue;
        struct finding *finding = found(books, findings, i, RULE_NODE_CORDONED, CATEGORY_CORDONED);
        finding->what = STR("takes no pods while its GPUs are free");
        finding->action = STR("finish what it was cordoned for: uncordon it, or remove it");
        finding->command = finding_text(findings, "kubectl uncordon %.*s",
                                        STR_ARG(names_text(books->names, node->node)));
        finding->risk = STR("medium: it may be cordoned for a fault");
        finding->confidence = CONFIDENCE_MEDIUM;
        finding->depends = STR("its GPUs being used once it takes pods, or the node being removed");
        if (!is_reserved(books, finding, i))
            claim_category(books, finding, i, CATEGORY_CORDONED);
    }
}

void rule_node_unhealthy(const struct books *books, struct findings *findings)
{
    for (size_t i = 0; i < books->nodes_n; i++) {
        const struct book_node *node = &books->nodes[i];
        if (!books_is_now(books, node->last) || node->category_ns[CATEGORY_UNHEALTHY] == 0 ||
            node->category_ns[CATEGORY_UNHEALTHY] < ns_at(books, THRESHOLD_NODE_UNHEALTHY_LOST))
            continue;
        struct finding *finding =
            found(books, findings, i, RULE_NODE_UNHEALTHY, CATEGORY_UNHEALTHY);
        finding->what = STR("has GPUs that were lost (XID) or not allocatable");
        finding->action =
            STR("drain it, reset or replace the GPU; ask the provider for the machine's "
                "replacement");
        finding->command =
            finding_text(findings, "kubectl drain %.*s --ignore-daemonsets --delete-emptydir-data",
                         STR_ARG(names_text(books->names, node->node)));
        finding->risk = STR("medium: pods on its other GPUs are moved");
        finding->confidence = CONFIDENCE_MEDIUM;
        finding->depends = STR("the GPU still being lost; it may have come back");
        if (!is_reserved(books, finding, i))
            claim_category(books, finding, i, CATEGORY_UNHEALTHY);
    }
}

void rule_node_unpartitioned(const struct books *books, struct findings *findings)
{
    for (size_t i = 0; i < books->nodes_n; i++) {
        const struct book_node *node = &books->nodes[i];
        money_t part = node->category[CATEGORY_UNPARTITIONED];
        if (!books_is_now(books, node->last) || part == 0 ||
            !ratio_reached(part, node->booked,
                           books_threshold(books, THRESHOLD_NODE_UNPARTITIONED_SHARE)) ||
            node->category_ns[CATEGORY_UNPARTITIONED] <
                ns_at(books, THRESHOLD_NODE_UNPARTITIONED_FREE))
            continue;
        struct finding *finding =
            found(books, findings, i, RULE_NODE_UNPARTITIONED, CATEGORY_UNPARTITIONED);
        finding->what = STR("has parts of GPUs that no MIG instance has");
        finding->action = STR("choose MIG profiles that fill the GPU");
        finding->risk = STR("low: GPUs are partitioned anew when they are free");
        finding->depends = STR("somebody using the slices: by itself it saves nothing");
    }
}

/* Is it the first node of its pool and type? Then these are the pool's sums. */
static bool pool_sums(const struct books *books, size_t first, enum category category,
                      struct book_node *ret)
{
    *ret = books->nodes[first];
    if (ret->pool != first)
        return false;
    for (size_t i = first + 1; i < books->nodes_n; i++) {
        const struct book_node *node = &books->nodes[i];
        if (!book_same_pool(node, ret))
            continue;
        ret->booked += node->booked;
        ret->category[category] += node->category[category];
        ret->category_ns[category] += node->category_ns[category];
        ret->gpu_ns += node->gpu_ns;
        ret->first = node->first < ret->first ? node->first : ret->first;
        if (node->last >= ret->last) {
            ret->last = node->last;
            ret->price = node->price;
            ret->gpus = node->gpus;
        }
    }
    return true;
}

static struct finding *found_pool(struct findings *findings, const struct book_node *pool,
                                  enum rule_id rule, enum category category,
                                  enum threshold_id share)
{
    const struct books *books = findings->books;
    struct finding *finding =
        finding_add(findings, rule, finding_pool(findings, pool), STR("platform"));
    finding->window_cost = pool->category[category];
    finding->month = books_month(books, pool->first, finding->window_cost);
    finding_evidence(findings, finding, category_words[category],
                     finding_gpu_hours(findings, pool->category_ns[category]), "");
    finding_evidence_at(findings, finding, "share of the pool's cost",
                        finding_percent(findings, pool->category[category], pool->booked), share);
    finding_price(findings, finding, pool);
    finding->reasons =
        STR("from the pods that held GPUs; what pods ask for beside GPUs is not looked at");
    finding->confidence = CONFIDENCE_MEDIUM;
    return finding;
}

/* Repacking frees whole nodes or nothing: as many as the GPUs that are free on average would fill.
 */
/* Pods that want more GPUs than any node has free, while free ones lie about. */
static void say_who_waits(const struct books *books, struct findings *findings,
                          struct finding *finding, const struct book_node *pool)
{
    wide_t waited = 0;
    int64_t largest = 0;
    struct str of = STR_NONE;
    for (size_t i = 0; i < books->namespaces_n; i++) {
        const struct book_namespace *each = &books->namespaces[i];
        if (each->last.cluster != pool->cluster || each->pending_gpu_ms <= 0)
            continue;
        waited += each->pending_gpu_ms;
        largest = each->pending_largest_max > largest ? each->pending_largest_max : largest;
        of = finding_text(findings, "%.*s%s%.*s", STR_ARG(of), of.n ? ", " : "",
                          STR_ARG(names_text(books->names, each->last.namespace)));
    }
    if (waited > 0)
        finding_evidence(findings, finding, "waited for meanwhile",
                         finding_text(findings, "%.*s, %lld GPUs in one pod at most (%.*s)",
                                      STR_ARG(finding_gpu_hours(findings, waited * 1000000)),
                                      (long long)largest, STR_ARG(of)),
                         "nobody");
}

/* The part of what is stranded on a node that whole nodes of the pool have: part / ns. */
static void claim_stranded(const struct books *books, struct finding *finding,
                           const struct book_node *node, time_ms first, wide_t part, wide_t ns)
{
    for (size_t c = node->cells; c < node->cells + node->cells_n; c++) {
        money_t month = books_month(books, first, books->cells[c].category[CATEGORY_STRANDED]);
        finding_claim(finding, c, (money_t)(month * part / ns));
    }
}

void rule_node_stranded(const struct books *books, struct findings *findings)
{
    for (size_t i = 0; i < books->nodes_n; i++) {
        struct book_node pool;
        if (!pool_sums(books, i, CATEGORY_STRANDED, &pool) || !books_is_now(books, pool.last))
            continue;
        wide_t ns = pool.category_ns[CATEGORY_STRANDED];
        wide_t node_ns = (wide_t)(books->window.to - pool.first) * 1000000 * pool.gpus;
        if (ns == 0 || ns < ns_at(books, THRESHOLD_NODE_STRANDED_STRANDED) || node_ns <= 0 ||
            !ratio_reached(ns, pool.gpu_ns, books_threshold(books, THRESHOLD_NODE_STRANDED_SHARE)))
            continue;
        int64_t freed = (int64_t)(ns / node_ns);
        struct finding *finding = found_pool(findings, &pool, RULE_NODE_STRANDED, CATEGORY_STRANDED,
                                             THRESHOLD_NODE_STRANDED_SHARE);
        finding->what = finding_text(
            findings, "has GPUs free beside held ones: %.*s on average, %lld whole nodes' worth",
            STR_ARG(finding_text(findings, "%.1f GPUs",
                                 (double)ns / ((double)(books->window.to - pool.first) * 1e6))),
            (long long)freed);
        finding_evidence(findings, finding, "whole nodes that they fill",
                         finding_text(findings, "%lld", (long long)freed), "1");
        say_who_waits(books, findings, finding, &pool);
        finding->action =
            STR("pack pods by MostAllocated, or repack with a descheduler; ask for GPUs "
                "in sizes that fill a node");
        finding->risk = STR("medium: pods are moved");
        finding->depends = STR("pods being movable, and the pool shrinking by whole nodes");
        finding->arithmetic =
            finding_text(findings, "%lld nodes x %.*s an hour x 730 h", (long long)freed,
                         STR_ARG(finding_money(findings, pool.price)));
        if (pool.facts.capacity == CAPACITY_RESERVED || !freed)
            continue;
        for (size_t n = 0; n < books->nodes_n; n++)
            if (book_same_pool(&books->nodes[n], &pool))
                claim_stranded(books, finding, &books->nodes[n], pool.first,
                               (wide_t)freed * node_ns, ns);
    }
}

void rule_node_starting(const struct books *books, struct findings *findings)
{
    for (size_t i = 0; i < books->nodes_n; i++) {
        struct book_node pool;
        if (!pool_sums(books, i, CATEGORY_STARTING, &pool))
            continue;
        money_t part = pool.category[CATEGORY_STARTING];
        if (part == 0 || !ratio_reached(part, pool.booked,
                                        books_threshold(books, THRESHOLD_NODE_STARTING_SHARE)))
            continue;
        struct finding *finding = found_pool(findings, &pool, RULE_NODE_STARTING, CATEGORY_STARTING,
                                             THRESHOLD_NODE_STARTING_SHARE);
        finding->what = STR("pays for nodes from their creation to their first pod");
        finding->action = STR("smaller or preloaded images, drivers in the node image, faster "
                              "device plugins");
        finding->risk = STR("low");
        finding->depends = STR("how much faster nodes can start: not claimed");
    }
}
