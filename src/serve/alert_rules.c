#include "serve/alert_rules.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "report/text.h"

#define OBSERVED (NANO / 10 * 9)

static struct str text_of(struct alert_list *list, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static struct str text_of(struct alert_list *list, const char *format, ...)
{
    struct strbuf raw = {0}, clean = {0};
    va_list args;
    va_start(args, format);
    strbuf_addv(&raw, format, args);
    va_end(args);
    text_clean(&clean, strbuf_str(&raw)); /* names of strangers are in it */
    struct str kept = str_keep(&list->arena, strbuf_str(&clean));
    strbuf_release(&raw);
    strbuf_release(&clean);
    return kept;
}

static struct str money_of(struct alert_list *list, money_t amount, const char *currency)
{
    struct strbuf text = {0};
    text_money(&text, amount, text_money_places(amount), currency);
    struct str kept = str_keep(&list->arena, strbuf_str(&text));
    strbuf_release(&text);
    return kept;
}

static struct alert *add(struct alert_list *list, struct alert alert)
{
    mem_push(list->items, list->n, list->room, alert);
    return &list->items[list->n - 1];
}

void alerts_of_findings(const struct alert_config *config, const struct findings *findings,
                        struct alert_list *list)
{
    for (size_t i = 0; config->finding_month >= 0 && i < findings->n; i++) {
        const struct finding *finding = &findings->items[i];
        if (finding->exempt.n || finding->saving < config->finding_month || finding->saving <= 0)
            continue;
        struct str money = money_of(list, finding->saving, findings->currency);
        add(list,
            (struct alert){.kind = ALERT_FINDING,
                           .key = text_of(list, "finding:%.*s", STR_ARG(finding->id)),
                           .owner = text_of(list, "%.*s", STR_ARG(finding->owner)),
                           .title = text_of(list, "%.*s a month: %s, %.*s", STR_ARG(money),
                                            rules[finding->rule].title, STR_ARG(finding->subject)),
                           .text = text_of(list, "It %.*s. To do: %.*s. gputally explain %.*s",
                                           STR_ARG(finding->what), STR_ARG(finding->action),
                                           STR_ARG(finding->id)),
                           .month = finding->saving,
                           .since = finding->since});
    }
}

/* ---- idle GPUs ---- */

struct idling {
    size_t gpus, of;
    time_ms since; /* of the one that works last */
    money_t cost;  /* since then, at its pace */
};

static bool is_idle(const struct books *books, const struct book_cell *cell, int64_t idle_ms,
                    time_ms *ret_since)
{
    *ret_since = cell->worked_until > cell->first ? cell->worked_until : cell->first;
    time_ms span = cell->last - *ret_since;
    return books->window.to - *ret_since >= idle_ms && span > 0 &&
           ratio_reached(cell->idle_observed_ms, span, OBSERVED);
}

static struct idling idling_of(const struct books *books, const struct book_workload *of,
                               int64_t idle_ms)
{
    struct idling ret = {.since = TIME_MAX};
    for (size_t c = 0; c < of->cells_n; c++) {
        const struct book_cell *cell = &books->cells[of->cells[c]];
        time_ms since;
        if (!books_is_now(books, cell->last))
            continue;
        ret.of++;
        if (!is_idle(books, cell, idle_ms, &since))
            continue;
        ret.gpus++;
        ret.since = since < ret.since ? since : ret.since;
        time_ms life = cell->last - cell->first;
        if (life > 0)
            ret.cost += (money_t)((wide_t)cell->cost * (cell->last - since) / life);
    }
    return ret;
}

void alerts_of_idle(const struct alert_config *config, const struct books *books,
                    const char *currency, struct alert_list *list)
{
    const struct names *names = books->names;
    for (size_t i = 0; config->idle_ms > 0 && i < books->workloads_n; i++) {
        const struct book_workload *of = &books->workloads[i];
        struct idling idling = idling_of(books, of, config->idle_ms);
        if (!idling.gpus)
            continue;
        struct str cluster = names_text(names, of->cluster);
        struct str subject = text_of(
            list, "%.*s%s%.*s/%.*s", STR_ARG(cluster), cluster.n ? "/" : "",
            STR_ARG(names_text(names, of->namespace)), STR_ARG(names_text(names, of->workload)));
        long long hours = (long long)((books->window.to - idling.since) / HOUR_MS);
        struct str money = money_of(list, idling.cost, currency);
        add(list,
            (struct alert){
                .kind = ALERT_IDLE,
                .key = text_of(list, "idle:%.*s", STR_ARG(subject)),
                .owner = text_of(list, "%.*s", STR_ARG(names_text(names, of->owner))),
                .title = text_of(list, "%zu of %zu GPUs of %.*s idle for %lld h", idling.gpus,
                                 idling.of, STR_ARG(subject), hours),
                .text = text_of(list,
                                "They cost %.*s since they last worked. gputally "
                                "explain %.*s",
                                STR_ARG(money), STR_ARG(subject)),
                .month = money_round((wide_t)idling.cost * MONTH_HOURS, hours > 0 ? hours : 1),
                .since = idling.since});
    }
}

/* ---- books that lag ---- */

void alerts_of_lag(const struct alert_config *config, const struct service_stats *stats,
                   time_ms now, struct alert_list *list)
{
    for (size_t i = 0; config->lag_ms > 0 && i < stats->sources_n; i++) {
        const struct source_stat *source = &stats->sources[i];
        if (source->watermark == TIME_MIN || now - source->watermark < config->lag_ms)
            continue;
        long long hours = (long long)((now - source->watermark) / HOUR_MS);
        add(list,
            (struct alert){
                .kind = ALERT_LAG,
                .key = text_of(list, "lag:%s:%s", source->cluster, source->name),
                .owner = STR("platform"),
                .title = text_of(list, "%s is booked up to %lld h ago", source->name, hours),
                .text = text_of(list,
                                "%s. /readyz and the log say why; what it has in the "
                                "meantime is caught up when it answers",
                                source->up ? "It answers, and is behind" : "It does not answer"),
                .since = source->watermark,
                .critical = !source->up});
    }
}

/* ---- budgets ---- */

void alerts_of_budget(const struct alert_budget *budget, const struct budget_state *state,
                      const char *currency, struct alert_list *list)
{
    time_ms left = state->days.to > state->now ? state->days.to - state->now : 0;
    money_t more =
        state->pace_ms > 0 ? money_round((wide_t)state->pace * left, (wide_t)state->pace_ms) : 0;
    money_t end = state->spent + more;
    bool passed = state->spent >= budget->month;
    bool warned = ratio_reached(state->spent, budget->month, budget->warn);
    if (!passed && !warned && end <= budget->month)
        return;
    const char *what = passed ? "passed" : end > budget->month ? "to-be-passed" : "warned";
    struct str spent = money_of(list, state->spent, currency),
               month = money_of(list, budget->month, currency),
               expected = money_of(list, end, currency);
    struct str team = budget->filter;
    bool of_team = str_starts(team, STR("team="));
    struct str owner = of_team ? (struct str){team.p + 5, team.n - 5} : STR("finance");
    add(list,
        (struct alert){
            .kind = ALERT_BUDGET,
            .key = text_of(list, "budget:%.*s:%s:%s", STR_ARG(budget->name), state->month, what),
            .owner = text_of(list, "%.*s", STR_ARG(owner)),
            .title = passed ? text_of(list, "budget %.*s is passed: %.*s of %.*s",
                                      STR_ARG(budget->name), STR_ARG(spent), STR_ARG(month))
                     : end > budget->month
                         ? text_of(list, "budget %.*s will be passed: %.*s expected of %.*s",
                                   STR_ARG(budget->name), STR_ARG(expected), STR_ARG(month))
                         : text_of(list, "budget %.*s: %.*s of %.*s are spent",
                                   STR_ARG(budget->name), STR_ARG(spent), STR_ARG(month)),
            .text = text_of(list,
                            "In %s %.*s are spent; at the pace of the last days %.*s at its "
                            "end",
                            state->month, STR_ARG(spent), STR_ARG(expected)),
            .month = end,
            .since = state->days.from,
            .critical = passed});
}

static int dearest_first(const void *a, const void *b)
{
    const struct alert *left = a, *right = b;
    if (left->critical != right->critical)
        return left->critical ? -1 : 1;
    if (left->month != right->month)
        return left->month > right->month ? -1 : 1;
    return str_cmp(left->key, right->key);
}

void alerts_cap(struct alert_list *list)
{
    if (list->n)
        qsort(list->items, list->n, sizeof *list->items, dearest_first);
    if (list->n > ALERTS_MAX)
        list->n = ALERTS_MAX;
}
