/* Targets of teams: what they have been asked to reach (`targets:` of the configuration), and who
 * has not been asked. They save nothing by themselves; they say whose figure is to be looked at.
 * Where nobody has a target nothing is said. */
#include "insight/finding.h"

#include <stdlib.h>

struct team {
    name_t name;
    struct book_cell sum; /* cost, used, times and useful time of its workloads */
    time_ms first;
    size_t workloads;
};

/* Teams with what they hold, in the order in which they come. */
struct teams {
    struct team *items;
    size_t n, room;
    money_t held; /* money of all */
};

static struct team *team_of(struct teams *teams, name_t name)
{
    for (size_t i = 0; i < teams->n; i++)
        if (teams->items[i].name == name)
            return &teams->items[i];
    mem_push(teams->items, teams->n, teams->room, ((struct team){.name = name, .first = TIME_MAX}));
    return &teams->items[teams->n - 1];
}

static void read_teams(const struct books *books, struct teams *ret)
{
    for (size_t i = 0; i < books->workloads_n; i++) {
        const struct book_workload *of = &books->workloads[i];
        struct team *team = team_of(ret, of->owner);
        team->workloads++;
        team->first = of->sum.first < team->first ? of->sum.first : team->first;
        team->sum.cost += of->sum.cost;
        team->sum.category[CATEGORY_SLACK] += of->sum.category[CATEGORY_SLACK];
        team->sum.category[CATEGORY_HELD_IDLE] += of->sum.category[CATEGORY_HELD_IDLE];
        team->sum.held_ns += of->sum.held_ns;
        team->sum.observed_ns += of->sum.observed_ns;
        team->sum.u_ns += of->sum.u_ns;
        ret->held += of->sum.cost;
    }
}

static struct finding *found(const struct books *books, struct findings *findings,
                             enum rule_id rule, const struct team *team, struct str owner)
{
    struct finding *finding = finding_add(
        findings, rule,
        finding_text(findings, "team %.*s", STR_ARG(names_text(books->names, team->name))), owner);
    finding->depends = STR("nothing: it saves nothing by itself");
    finding->risk = STR("none");
    return finding;
}

static struct str ratio_text(struct findings *findings, int64_t ratio)
{
    return finding_percent(findings, ratio, NANO);
}

static bool is_below(const struct books *books, const struct team *team, int64_t target)
{
    const struct book_cell *sum = &team->sum;
    return sum->held_ns >= (wide_t)books_threshold(books, THRESHOLD_BELOW_TARGET_HELD) * 1000000 &&
           ratio_reached(sum->observed_ns, sum->held_ns,
                         books_threshold(books, THRESHOLD_BELOW_TARGET_OBSERVED)) &&
           !ratio_reached(sum->u_ns, sum->observed_ns, target);
}

void rule_below_target(const struct books *books, struct findings *findings)
{
    struct teams teams = {0};
    read_teams(books, &teams);
    for (size_t i = 0; i < teams.n; i++) {
        const struct team *team = &teams.items[i];
        struct str name = names_text(books->names, team->name);
        int64_t target;
        if (!thresholds_target(&books->thresholds, name, &target) || !is_below(books, team, target))
            continue;
        struct finding *finding = found(books, findings, RULE_BELOW_TARGET, team, name);
        struct str use = finding_percent(findings, team->sum.u_ns, team->sum.observed_ns);
        finding->window_cost =
            team->sum.category[CATEGORY_SLACK] + team->sum.category[CATEGORY_HELD_IDLE];
        finding->month = books_month(books, team->first, finding->window_cost);
        finding->what = finding_text(findings, "uses %.*s of what it holds, and was asked for %.*s",
                                     STR_ARG(use), STR_ARG(ratio_text(findings, target)));
        finding_evidence(findings, finding, "utilisation", use, ratio_text(findings, target).p);
        finding_coverage(findings, finding, &team->sum, THRESHOLD_BELOW_TARGET_OBSERVED);
        finding->arithmetic = STR("its slack and held idle; no saving is claimed");
        finding->action = STR("take its findings in this list from the top: they say where");
    }
    free(teams.items);
}

void rule_no_target(const struct books *books, struct findings *findings)
{
    struct teams teams = {0};
    if (!books->thresholds.targets_n)
        return;
    read_teams(books, &teams);
    for (size_t i = 0; i < teams.n; i++) {
        const struct team *team = &teams.items[i];
        int64_t target;
        if (thresholds_target(&books->thresholds, names_text(books->names, team->name), &target) ||
            !ratio_reached(team->sum.cost, teams.held,
                           books_threshold(books, THRESHOLD_NO_TARGET_SHARE)))
            continue;
        struct finding *finding = found(books, findings, RULE_NO_TARGET, team, STR("finance"));
        finding->window_cost = team->sum.cost;
        finding->month = books_month(books, team->first, finding->window_cost);
        finding->what = finding_text(findings, "has no target: %zu workload%s", team->workloads,
                                     team->workloads == 1 ? "" : "s");
        finding_evidence_at(findings, finding, "share of the held money",
                            finding_percent(findings, team->sum.cost, teams.held),
                            THRESHOLD_NO_TARGET_SHARE);
        finding->reasons = STR("no line of targets: matches it");
        finding->arithmetic = STR("no saving is claimed");
        finding->action = STR("agree on a utilisation with it, and write it into targets: "
                              "(docs/configuration.md)");
    }
    free(teams.items);
}
