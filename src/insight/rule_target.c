/* Targets of teams, namespaces and workloads: what they have been asked to reach (`targets:` of the
 * configuration), and which teams have not been asked. They save nothing by themselves; they say
 * whose figure is to be looked at. Where nobody has a target nothing is said. */
#include "insight/finding.h"

#include <stdlib.h>

/* A team, a namespace of a cluster, or a workload. */
struct group {
    name_t cluster, name; /* a team is one over all clusters; a workload has no name here */
    const struct book_workload *largest; /* by money; a workload itself */
    struct book_sum sum;                 /* cost, used, times and useful time of its workloads */
    time_ms first;
    size_t workloads;
};

struct groups {
    struct group *items; /* in the order in which they come */
    size_t n, room;
};

static const char *const kind_words[] = {
#define X(id, key, word) word,
    TARGET_TABLE(X)
#undef X
};

static bool is_target(const struct books *books, const struct book_workload *of,
                      enum target_kind kind, int64_t *ret)
{
    struct str namespace = names_text(books->names, of->namespace);
    if (kind == TARGET_TEAM)
        return thresholds_target(&books->thresholds, kind, names_text(books->names, of->owner),
                                 ret);
    if (kind == TARGET_NAMESPACE)
        return thresholds_target(&books->thresholds, kind, namespace, ret);
    struct strbuf text = {0};
    strbuf_addf(&text, "%.*s/%.*s", STR_ARG(namespace),
                STR_ARG(names_text(books->names, of->workload)));
    bool found = thresholds_target(&books->thresholds, kind, strbuf_str(&text), ret);
    strbuf_release(&text);
    return found;
}

bool rule_target_of(const struct books *books, const struct book_workload *of, int64_t *ret)
{
    return is_target(books, of, TARGET_WORKLOAD, ret) ||
           is_target(books, of, TARGET_NAMESPACE, ret) || is_target(books, of, TARGET_TEAM, ret);
}

static struct group *group_of(struct groups *groups, enum target_kind kind,
                              const struct book_workload *of)
{
    struct group new = {.largest = of, .first = TIME_MAX};
    if (kind == TARGET_TEAM)
        new.name = of->owner;
    else if (kind == TARGET_NAMESPACE)
        new.cluster = of->cluster, new.name = of->namespace;
    for (size_t i = 0; i < groups->n && kind != TARGET_WORKLOAD; i++)
        if (groups->items[i].name == new.name && groups->items[i].cluster == new.cluster)
            return &groups->items[i];
    mem_push(groups->items, groups->n, groups->room, new);
    return &groups->items[groups->n - 1];
}

static void group_add(struct group *group, const struct book_workload *of)
{
    group->workloads++;
    group->first = of->sum.first < group->first ? of->sum.first : group->first;
    group->largest = of->sum.cost > group->largest->sum.cost ? of : group->largest;
    group->sum.cost += of->sum.cost;
    group->sum.category[CATEGORY_SLACK] += of->sum.category[CATEGORY_SLACK];
    group->sum.category[CATEGORY_HELD_IDLE] += of->sum.category[CATEGORY_HELD_IDLE];
    group->sum.held_ns += of->sum.held_ns;
    group->sum.observed_ns += of->sum.observed_ns;
    group->sum.u_ns += of->sum.u_ns;
}

static struct str subject_of(struct findings *findings, enum target_kind kind,
                             const struct group *group)
{
    const struct names *names = findings->books->names;
    struct str cluster = names_text(names, group->cluster);
    if (kind == TARGET_WORKLOAD)
        return finding_workload(findings, group->largest);
    return finding_text(findings, "%s %.*s%s%.*s", kind_words[kind], STR_ARG(cluster),
                        cluster.n ? "/" : "", STR_ARG(names_text(names, group->name)));
}

static struct finding *found(struct findings *findings, enum rule_id rule, enum target_kind kind,
                             const struct group *group, struct str owner)
{
    struct finding *finding = finding_add(findings, rule, subject_of(findings, kind, group), owner);
    finding->depends = STR("nothing: it saves nothing by itself");
    finding->risk = STR("none");
    return finding;
}

static bool is_below(const struct books *books, const struct group *group, int64_t target)
{
    const struct book_sum *sum = &group->sum;
    return book_is_judged(books, sum, THRESHOLD_BELOW_TARGET_HELD,
                          THRESHOLD_BELOW_TARGET_OBSERVED) &&
           !ratio_reached(sum->u_ns, sum->observed_ns, target);
}

static void judge(const struct books *books, struct findings *findings, enum target_kind kind,
                  const struct group *group)
{
    int64_t target;
    if (!is_target(books, group->largest, kind, &target) || !is_below(books, group, target))
        return;
    struct finding *finding = found(findings, RULE_BELOW_TARGET, kind, group,
                                    names_text(books->names, group->largest->owner));
    struct str use = finding_percent(findings, group->sum.u_ns, group->sum.observed_ns);
    struct str wanted = finding_percent(findings, target, NANO);
    finding->window_cost =
        group->sum.category[CATEGORY_SLACK] + group->sum.category[CATEGORY_HELD_IDLE];
    finding->month = books_month(books, group->first, finding->window_cost);
    finding->what = finding_text(findings, "uses %.*s of what it holds, and was asked for %.*s",
                                 STR_ARG(use), STR_ARG(wanted));
    finding_evidence(findings, finding, "utilisation", use, wanted.p);
    finding_coverage(findings, finding, &group->sum, THRESHOLD_BELOW_TARGET_OBSERVED);
    finding->arithmetic = STR("its slack and held idle; no saving is claimed");
    finding->action = STR("take its findings in this list from the top: they say where");
}

void rule_below_target(const struct books *books, struct findings *findings)
{
    for (int k = 0; k < TARGET_KINDS && books->thresholds.targets_n; k++) {
        struct groups groups = {0};
        for (size_t i = 0; i < books->workloads_n; i++)
            group_add(group_of(&groups, (enum target_kind)k, &books->workloads[i]),
                      &books->workloads[i]);
        for (size_t i = 0; i < groups.n; i++)
            judge(books, findings, (enum target_kind)k, &groups.items[i]);
        free(groups.items);
    }
}

void rule_no_target(const struct books *books, struct findings *findings)
{
    struct groups groups = {0};
    money_t held = 0;
    int64_t target;
    if (!books->thresholds.targets_n)
        return;
    for (size_t i = 0; i < books->workloads_n; i++) {
        const struct book_workload *of = &books->workloads[i];
        held += of->sum.cost;
        if (!rule_target_of(books, of, &target))
            group_add(group_of(&groups, TARGET_TEAM, of), of);
    }
    for (size_t i = 0; i < groups.n; i++) {
        const struct group *team = &groups.items[i];
        if (!ratio_reached(team->sum.cost, held, books_threshold(books, THRESHOLD_NO_TARGET_SHARE)))
            continue;
        struct finding *finding =
            found(findings, RULE_NO_TARGET, TARGET_TEAM, team, STR("finance"));
        finding->window_cost = team->sum.cost;
        finding->month = books_month(books, team->first, finding->window_cost);
        finding->what = finding_text(findings, "has %zu workload%s without a target",
                                     team->workloads, team->workloads == 1 ? "" : "s");
        finding_evidence_at(findings, finding, "share of the held money",
                            finding_percent(findings, team->sum.cost, held),
                            THRESHOLD_NO_TARGET_SHARE);
        finding->reasons = STR("no line of targets: matches them, their namespaces or the team");
        finding->arithmetic = STR("no saving is claimed");
        finding->action = STR("agree on a utilisation with it, and write it into targets: "
                              "(docs/configuration.md)");
    }
    free(groups.items);
}
