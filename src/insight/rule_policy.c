/* Rules of the house that are missing: nothing is saved by them at once, but without them the waste
 * comes back. Each speaks only where it hurts: CPU pods that sit on GPU nodes, pods that wait for
 * GPUs while the queue has no order, a pool whose GPUs lie about because unlike work shares it.
 * What Kubernetes does not show (no quotas exported, no priority classes) proves nothing. */
#include <stdlib.h>

#include "insight/finding.h"

#define PODS_SHOWN 5

static struct finding *policy_finding(struct findings *findings, enum rule_id rule,
                                      struct str subject)
{
    struct finding *finding = finding_add(findings, rule, subject, STR("platform"));
    finding->depends = STR("nothing: it saves nothing by itself, and keeps what is saved");
    finding->arithmetic = STR("no saving is claimed");
    finding->risk = STR("low");
    return finding;
}

bool rule_lets_cpu_pods_in(const struct books *books, const struct book_node *node)
{
    return books_is_now(books, node->last) && node->host.gpu_taint == MACHINE_TAINT_NONE &&
           node->host.cpu_pods > 0;
}

void rule_missing_taint(const struct books *books, struct findings *findings)
{
    for (size_t i = 0; i < books->nodes_n; i++) {
        const struct book_node *pool = &books->nodes[i];
        size_t open = 0, pods = 0, last = i;
        struct str named = STR_NONE;
        if (pool->pool != i)
            continue;
        for (size_t k = i; k < books->nodes_n; k++) {
            const struct book_node *node = &books->nodes[k];
            if (!book_same_pool(node, pool) || !rule_lets_cpu_pods_in(books, node))
                continue;
            open++, last = k;
            pods += (size_t)node->host.cpu_pods;
            if (open <= PODS_SHOWN && node->host.cpu_workloads != NAME_NONE)
                named = finding_text(findings, "%.*s%s%.*s", STR_ARG(named), named.n ? ", " : "",
                                     STR_ARG(names_text(books->names, node->host.cpu_workloads)));
        }
        if (!open)
            continue;
        struct finding *finding =
            policy_finding(findings, RULE_MISSING_TAINT, finding_pool(findings, pool));
        finding->what =
            finding_text(findings, "lets pods without GPUs onto %zu of its GPU nodes: %zu pod%s",
                         open, pods, pods == 1 ? "" : "s");
        if (named.n)
            finding_evidence(findings, finding, "such pods", named, "none");
        finding->reasons = STR("from the nodes' taints and the pods on them");
        finding->action = STR("taint the pool's nodes, so that only pods that tolerate it (those "
                              "that ask for GPUs) are placed there");
        finding->command =
            finding_text(findings, "kubectl taint nodes %.*s nvidia.com/gpu=present:NoSchedule",
                         STR_ARG(names_text(books->names, books->nodes[last].node)));
        finding->risk = STR("low: pods that run stay; new ones need the toleration");
    }
}

static wide_t pending_in(const struct books *books, name_t cluster, name_t namespace)
{
    wide_t ms = 0;
    for (size_t i = 0; i < books->namespaces_n; i++) {
        const struct book_namespace *of = &books->namespaces[i];
        if (of->last.cluster == cluster &&
            (namespace == NAME_NONE || of->last.namespace == namespace))
            ms += of->pending_gpu_ms;
    }
    return ms;
}

/* What a namespace's workloads cost in the window, and a month. */
static void namespace_cost(const struct books *books, const struct namespace_hour *of,
                           struct finding *finding)
{
    for (size_t i = 0; i < books->workloads_n; i++) {
        const struct book_workload *workload = &books->workloads[i];
        if (workload->cluster != of->cluster || workload->namespace != of->namespace)
            continue;
        finding->window_cost += workload->sum.cost;
        finding->month += books_month(books, workload->sum.first, workload->sum.cost);
    }
}

static struct str namespace_subject(struct findings *findings, const struct namespace_hour *of)
{
    const struct names *names = findings->books->names;
    struct str cluster = names_text(names, of->cluster);
    return finding_text(findings, "namespace %.*s%s%.*s", STR_ARG(cluster), cluster.n ? "/" : "",
                        STR_ARG(names_text(names, of->namespace)));
}

static bool is_now(const struct books *books, const struct namespace_hour *of)
{
    return books_is_now(books, of->hour + HOUR_MS);
}

void rule_no_quota(const struct books *books, struct findings *findings)
{
    for (size_t i = 0; i < books->namespaces_n; i++) {
        const struct namespace_hour *of = &books->namespaces[i].last;
        if (!is_now(books, of) || !of->quotas_known || of->gpu_quota >= 0 || of->gpu_pods <= 0)
            continue;
        struct finding *finding =
            policy_finding(findings, RULE_NO_QUOTA, namespace_subject(findings, of));
        namespace_cost(books, of, finding);
        finding->what = STR("may take as many GPUs as there are: it has no quota of GPUs, while "
                            "others have");
        finding_evidence(findings, finding, "pods with GPUs",
                         finding_text(findings, "%d", (int)of->gpu_pods), "");
        finding_evidence(findings, finding, "quota of GPUs", STR("none"), "some");
        finding->reasons = STR("from the cluster's resource quotas");
        finding->action = STR("give it a quota of GPUs somewhat above what it uses");
        finding->command = finding_text(
            findings, "kubectl create quota gpus -n %.*s --hard=requests.nvidia.com/gpu=%d",
            STR_ARG(names_text(books->names, of->namespace)), (int)of->gpu_pods);
    }
}

void rule_no_priority(const struct books *books, struct findings *findings)
{
    for (size_t i = 0; i < books->namespaces_n; i++) {
        const struct namespace_hour *of = &books->namespaces[i].last;
        wide_t waiting = pending_in(books, of->cluster, NAME_NONE);
        if (!is_now(books, of) || !of->priorities_known || of->gpu_pods_without_priority <= 0 ||
            waiting <= 0)
            continue;
        struct finding *finding =
            policy_finding(findings, RULE_NO_PRIORITY, namespace_subject(findings, of));
        namespace_cost(books, of, finding);
        finding->what = finding_text(findings,
                                     "has %d pod%s with GPUs and no priority class, while pods "
                                     "of the cluster wait for GPUs",
                                     (int)of->gpu_pods_without_priority,
                                     of->gpu_pods_without_priority == 1 ? "" : "s");
        finding_evidence(findings, finding, "waited for in the cluster",
                         finding_gpu_hours(findings, waiting * 1000000), "0 GPU-hours");
        finding->reasons = STR("from the pods' priority classes and the pods that wait");
        finding->action = STR("give notebooks and batch jobs a lower class than services, so that "
                              "what earns is placed first");
        finding->risk = STR("medium: pods of a lower class can be evicted");
    }
}

struct mix {
    wide_t held_ns[WORKLOAD_TYPE_COUNT], all_ns, stranded_ns, gpu_ns;
};

/* By pool: [index of its first node]. The caller frees it. */
static struct mix *mixes_of(const struct books *books)
{
    struct mix *mixes = mem_zalloc(books->nodes_n + 1, sizeof *mixes);
    for (size_t i = 0; i < books->nodes_n; i++) {
        const struct book_node *node = &books->nodes[i];
        mixes[node->pool].stranded_ns += node->category_ns[CATEGORY_STRANDED];
        mixes[node->pool].gpu_ns += node->gpu_ns;
    }
    for (size_t c = 0; c < books->cells_n; c++) {
        const struct book_cell *cell = &books->cells[c];
        if (cell->workload == SIZE_MAX)
            continue;
        struct mix *mix = &mixes[books->nodes[cell->node_index].pool];
        mix->held_ns[cell->facts.type] += cell->held_ns;
        mix->all_ns += cell->held_ns;
    }
    return mixes;
}

/* Would repacking the pool free whole nodes? */
static bool frees_nodes(const struct findings *findings, struct str pool)
{
    for (size_t i = 0; i < findings->n; i++)
        if (findings->items[i].rule == RULE_NODE_STRANDED &&
            str_eq(findings->items[i].subject, pool))
            return findings->items[i].claims_n > 0;
    return false;
}

void rule_mixed_pool(const struct books *books, struct findings *findings)
{
    const enum workload_type types[] = {WORKLOAD_TRAINING, WORKLOAD_INFERENCE,
                                        WORKLOAD_INTERACTIVE};
    struct mix *mixes = mixes_of(books);
    for (size_t i = 0; i < books->nodes_n; i++) {
        const struct book_node *pool = &books->nodes[i];
        const struct mix mix = mixes[i];
        if (pool->pool != i)
            continue;
        struct str subject = finding_pool(findings, pool);
        bool stranded = frees_nodes(findings, subject);
        wide_t waiting = pending_in(books, pool->cluster, NAME_NONE);
        size_t n = 0;
        struct str text = STR_NONE;
        for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
            wide_t held = mix.held_ns[types[t]];
            if (held <= 0 || !ratio_reached(held, mix.all_ns,
                                            books_threshold(books, THRESHOLD_MIXED_POOL_SHARE)))
                continue;
            n++;
            text = finding_text(findings, "%.*s%s%s %.*s", STR_ARG(text), text.n ? ", " : "",
                                workload_type_words[types[t]],
                                STR_ARG(finding_percent(findings, held, mix.all_ns)));
        }
        if (n < 2 || (!stranded && waiting <= 0))
            continue;
        struct finding *finding = policy_finding(findings, RULE_MIXED_POOL, subject);
        finding->what = STR("has training, inference or interactive work side by side, and GPUs "
                            "that lie about or pods that wait");
        finding_evidence_at(findings, finding, "held by", text, THRESHOLD_MIXED_POOL_SHARE);
        finding_evidence(findings, finding, "stranded",
                         finding_percent(findings, mix.stranded_ns, mix.gpu_ns), "");
        finding_evidence(findings, finding, "waited for in the cluster",
                         finding_gpu_hours(findings, waiting * 1000000), "");
        finding->reasons = STR("from the workloads' types and the pods that wait");
        finding->confidence = CONFIDENCE_LOW;
        finding->action =
            STR("a pool each for training (whole nodes), inference and notebooks (shared or "
                "sliced GPUs), by taint, toleration and node affinity");
        finding->risk = STR("medium: small pools have less room for peaks");
    }
    free(mixes);
}
