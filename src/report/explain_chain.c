/* From rows to dollars: what the filters let through, how much of it was seen, which fallbacks were
 * taken, what it is priced by, and how the cost adds up. */
#include <stdlib.h>

#include "report/explain.h"
#include "report/text.h"

#define SHOWN_MAX 8 /* prices and holders that are listed */

struct chain {
    const struct explain_request *request;
    const struct query *query;
    struct explanation *explanation;
    struct strbuf text; /* of the figure that is being written */
};

static const char *money_text(struct chain *chain, money_t amount)
{
    strbuf_clear(&chain->text);
    text_money(&chain->text, amount, 2, chain->request->currency);
    return chain->text.text;
}

/* GPU time with one decimal. */
static const char *hours_text(struct chain *chain, wide_t ns)
{
    strbuf_clear(&chain->text);
    if (ns > 0 && 20 * ns < (wide_t)HOUR_MS * 1000000)
        strbuf_add(&chain->text, STR("under 0.1"));
    else
        text_nano(&chain->text, (ns + 1800) / 3600, 1);
    return chain->text.text;
}

static const char *share_text(struct chain *chain, wide_t part, wide_t whole)
{
    strbuf_clear(&chain->text);
    if (whole > 0)
        text_percent(&chain->text, (int64_t)(part * NANO / whole), 1);
    else
        strbuf_add(&chain->text, STR("–"));
    return chain->text.text;
}

static enum err run(const struct chain *chain, const enum key *keys, size_t n, bool whole_rows,
                    struct result **ret, struct error *err)
{
    struct query query = *chain->query;
    query.window = chain->request->window;
    query.tz = chain->request->tz;
    query.keys_n = n;
    memcpy(query.keys, keys, n * sizeof *keys);
    if (whole_rows) { /* money alone can be divided: hours are those of the rows */
        size_t kept = 0;
        for (size_t i = 0; i < query.filters_n; i++)
            if (query.filters[i].key != KEY_CATEGORY && query.filters[i].key != KEY_CAUSE)
                query.filters[kept++] = query.filters[i];
        query.filters_n = kept;
    }
    return query_run(chain->request->store, &query, ret, err);
}

static bool is_part(const struct query *query)
{
    for (size_t i = 0; i < query->filters_n; i++)
        if (query->filters[i].key == KEY_CATEGORY || query->filters[i].key == KEY_CAUSE)
            return true;
    return false;
}

/* ---- rows ---- */

static void add_rows(struct chain *chain, const struct result *gpus, const struct result *hours,
                     const struct result *holders)
{
    struct explanation *explanation = chain->explanation;
    const struct figures *total = &gpus->total;
    struct str first = STR_NONE, last = STR_NONE;
    size_t nodes = 0;
    for (size_t i = 0; i < gpus->groups_n; i++) {
        bool seen = false;
        for (size_t k = 0; k < i && !seen; k++)
            seen = str_eq(gpus->groups[k].keys[0], gpus->groups[i].keys[0]) &&
                   str_eq(gpus->groups[k].keys[1], gpus->groups[i].keys[1]);
        nodes += !seen;
    }
    for (size_t i = 0; i < hours->groups_n; i++) {
        struct str hour = hours->groups[i].keys[0];
        first = !first.n || str_cmp(hour, first) < 0 ? hour : first;
        last = !last.n || str_cmp(hour, last) > 0 ? hour : last;
    }
    explain_section_add(explanation, "rows of the ledger");
    explain_line(explanation,
                 "%llu row%s, one for each hour, GPU and holder: %zu GPU%s on %zu node%s",
                 (unsigned long long)total->rows, total->rows == 1 ? "" : "s", gpus->groups_n,
                 gpus->groups_n == 1 ? "" : "s", nodes, nodes == 1 ? "" : "s");
    if (first.n)
        explain_line(explanation, "hours that begin from %.*s to %.*s, %zu of them", STR_ARG(first),
                     STR_ARG(last), hours->groups_n);
    explain_line(explanation, "%s GPU-hours", hours_text(chain, total->gpu_ns));
    explain_line(explanation, "%s of them held", hours_text(chain, total->gpu_held_ns));
    size_t shown = 0;
    for (size_t i = 0; i < holders->groups_n && shown < SHOWN_MAX; i++) {
        const struct group *group = &holders->groups[i];
        if (str_eq(group->keys[1], STR("-")))
            continue;
        explain_line(explanation, "held by %.*s/%.*s: %s", STR_ARG(group->keys[0]),
                     STR_ARG(group->keys[1]), money_text(chain, group->figures.cost));
        shown++;
    }
    if (holders->groups_n > shown && shown == SHOWN_MAX)
        explain_line(explanation, "and %zu more", holders->groups_n - shown);
}

/* ---- money ---- */

static void add_money(struct chain *chain, const struct figures *part, const struct figures *whole)
{
    struct explanation *explanation = chain->explanation;
    explain_section_add(explanation, "money by category");
    for (int c = 0; c < CATEGORY_COUNT; c++) {
        struct strbuf share = {0};
        if (!part->category[c])
            continue;
        strbuf_add(&share, str_of(share_text(chain, part->category[c], part->cost)));
        explain_line(explanation, "%-14s %14s  %s", category_words[c],
                     money_text(chain, part->category[c]), share.text);
        strbuf_release(&share);
    }
    explain_line(explanation,
                 "%-14s %14s  the sum of the lines above: exact in the ledger, rounded here",
                 "cost", money_text(chain, part->cost));
    if (part->cost != whole->cost)
        explain_line(explanation,
                     "it is a part of rows that cost %s: what follows is of the whole rows",
                     money_text(chain, whole->cost));
}

/* ---- what was seen ---- */

static void add_state(struct chain *chain, const struct figures *total, enum state state,
                      const char *what)
{
    if (total->gpu_state_held_ns[state])
        explain_line(chain->explanation, "%s GPU-hours %s",
                     hours_text(chain, total->gpu_state_held_ns[state]), what);
}

static void add_coverage(struct chain *chain, const struct figures *total)
{
    struct explanation *explanation = chain->explanation;
    const struct settings *settings = chain->request->settings;
    wide_t observed = total->gpu_observed_held_ns;
    explain_section_add(explanation, "coverage by samples");
    if (!total->gpu_held_ns)
        explain_line(explanation, "nobody holds these GPUs: who holds them is asked of Kubernetes "
                                  "and of labels, not of samples");
    else
        explain_line(explanation, "%s of the held time is observed",
                     share_text(chain, observed, total->gpu_held_ns));
    if (total->gpu_held_ns > observed)
        explain_line(explanation, "%s held GPU-hours have no telemetry: not known, never idle",
                     hours_text(chain, total->gpu_held_ns - observed));
    add_state(chain, total, STATE_IDLE, "idle");
    add_state(chain, total, STATE_LOW, "low");
    add_state(chain, total, STATE_BUSY, "busy");
    if (settings && observed)
        explain_line(explanation,
                     "idle: kernels and work both below %g %%; busy: work from %g %% on "
                     "(idle_below, busy_from)",
                     (double)settings->idle_below / 1e7, (double)settings->busy_from / 1e7);
    if (observed)
        explain_line(explanation, "mean work of the observed time: %s",
                     share_text(chain, total->gpu_u_held / NANO, observed));
}

static void add_signals(struct chain *chain, const struct figures *total)
{
    struct explanation *explanation = chain->explanation;
    wide_t observed = total->gpu_observed_held_ns;
    size_t n = 0;
    explain_section_add(explanation, "signals, and fallbacks that were taken");
    if (observed) {
        bool u_sm =
            !total->flag_gpu_ns[FLAG_INDEX_U_UTIL] && !total->flag_gpu_ns[FLAG_INDEX_U_ENGINE];
        bool e_util =
            !total->flag_gpu_ns[FLAG_INDEX_E_SM] && !total->flag_gpu_ns[FLAG_INDEX_E_ENGINE];
        explain_line(explanation, "work is SM activity%s; kernels are GPU_UTIL%s",
                     u_sm ? "" : ", but for what stands below",
                     e_util ? "" : ", but for what stands below");
    }
    for (int f = 0; f < FLAG_COUNT; f++) {
        if (!total->flag_gpu_ns[f])
            continue;
        n++;
        explain_line(explanation, "%s GPU-hours in rows with %s: %s",
                     hours_text(chain, total->flag_gpu_ns[f]), flag_words[f], flag_meanings[f]);
    }
    if (!n)
        explain_line(explanation, "no fallback was taken");
}

/* ---- price and arithmetic ---- */

static void add_price_rows(struct chain *chain, const struct result *gpus)
{
    const struct books *books = chain->request->findings->books;
    const struct names *names = books->names;
    const struct book_node *told[SHOWN_MAX];
    size_t n = 0, more = 0;
    for (size_t i = 0; i < books->nodes_n; i++) {
        const struct book_node *node = &books->nodes[i];
        bool in = false, known = false;
        for (size_t g = 0; g < gpus->groups_n && !in; g++) {
            struct str cluster = names_text(names, node->cluster);
            in = str_eq(gpus->groups[g].keys[0], cluster.n ? cluster : STR("-")) &&
                 str_eq(gpus->groups[g].keys[1], names_text(names, node->node));
        }
        for (size_t k = 0; k < n && in && !known; k++)
            known = told[k]->facts.instance_type == node->facts.instance_type &&
                    told[k]->facts.capacity == node->facts.capacity &&
                    told[k]->price == node->price && told[k]->gpus == node->gpus &&
                    told[k]->price_source == node->price_source;
        if (!in || known)
            continue;
        if (n == SHOWN_MAX) {
            more++;
            continue;
        }
        told[n++] = node;
        struct str type = names_text(names, node->facts.instance_type);
        struct str source = names_text(names, node->price_source);
        if (node->flags & FLAG_UNPRICED || node->gpus <= 0) {
            explain_line(chain->explanation, "%.*s has no price: money 0, hours count",
                         STR_ARG(type.n ? type : STR("its instance type")));
            continue;
        }
        struct strbuf one = {0};
        strbuf_add(&one, str_of(money_text(chain, money_round(node->price, node->gpus))));
        explain_line(chain->explanation, "%.*s, %s: %s an hour / %d GPU%s = %s a GPU-hour (%.*s)",
                     STR_ARG(type), capacity_type_words[node->facts.capacity],
                     money_text(chain, node->price), (int)node->gpus, node->gpus == 1 ? "" : "s",
                     one.text, STR_ARG(source.n ? source : STR("source not known")));
        strbuf_release(&one);
    }
    if (more)
        explain_line(chain->explanation, "and other prices of %zu nodes", more);
}

static void add_arithmetic(struct chain *chain, const struct result *types)
{
    struct explanation *explanation = chain->explanation;
    for (size_t i = 0; i < types->groups_n && i < SHOWN_MAX; i++) {
        const struct group *group = &types->groups[i];
        const struct figures *f = &group->figures;
        struct strbuf rate = {0}, cost = {0};
        if (f->gpu_ns <= 0)
            continue;
        money_t mean = money_round((wide_t)f->cost * (HOUR_MS * 1000000), f->gpu_ns);
        strbuf_add(&rate, str_of(money_text(chain, mean)));
        strbuf_add(&cost, str_of(money_text(chain, f->cost)));
        explain_line(explanation, "%.*s, %.*s: %s GPU-hours x %s = %s", STR_ARG(group->keys[0]),
                     STR_ARG(group->keys[1]), hours_text(chain, f->gpu_ns), rate.text, cost.text);
        strbuf_release(&rate);
        strbuf_release(&cost);
    }
    explain_line(explanation,
                 "a node-hour's price x the time that the node was up is divided over its GPUs and "
                 "their holders by time and share, and rounded once, to 0.000000001 (largest "
                 "remainder), so that the rows of a node and hour add up to it");
    if (types->total.flag_gpu_ns[FLAG_INDEX_UNPRICED])
        explain_line(explanation, "%s GPU-hours have no price and add 0",
                     hours_text(chain, types->total.flag_gpu_ns[FLAG_INDEX_UNPRICED]));
}

static void add_changes(struct chain *chain, const struct figures *total)
{
    struct explanation *explanation = chain->explanation;
    explain_section_add(explanation, "what would change it");
    if (total->category[CATEGORY_UNOBSERVED])
        explain_line(explanation,
                     "telemetry of the unobserved time: %s would become used, slack or held idle",
                     money_text(chain, total->category[CATEGORY_UNOBSERVED]));
    if (total->flag_gpu_ns[FLAG_INDEX_UNPRICED])
        explain_line(explanation, "a price (--prices) for what has none, and --rebook");
    if (total->flag_gpu_ns[FLAG_INDEX_U_UTIL])
        explain_line(explanation, "SM activity, where GPU_UTIL stands in: used can only shrink");
    explain_line(explanation, "other prices, owner rules, idle_below or busy_from, with --rebook");
}

/* The queries that a chain is made of. */
struct answers {
    struct result *part, *gpus, *hours, *holders, *types;
};

static enum err ask(const struct chain *chain, struct answers *ret, struct error *err)
{
    static const enum key gpus[] = {KEY_CLUSTER, KEY_NODE, KEY_GPU}, hours[] = {KEY_HOUR},
                          holders[] = {KEY_NAMESPACE, KEY_WORKLOAD},
                          types[] = {KEY_INSTANCE_TYPE, KEY_CAPACITY_TYPE};
    enum err code = run(chain, gpus, 0, false, &ret->part, err);
    if (code == ERR_OK)
        code = run(chain, gpus, 3, true, &ret->gpus, err);
    if (code == ERR_OK)
        code = run(chain, hours, 1, true, &ret->hours, err);
    if (code == ERR_OK)
        code = run(chain, holders, 2, true, &ret->holders, err);
    if (code == ERR_OK)
        code = result_sort(ret->holders, STR("cost"), err);
    if (code == ERR_OK)
        code = run(chain, types, 2, true, &ret->types, err);
    return code == ERR_OK ? result_sort(ret->types, STR("cost"), err) : code;
}

static void tell(struct chain *chain, const struct answers *answers)
{
    const struct figures *whole = &answers->gpus->total;
    add_rows(chain, answers->gpus, answers->hours, answers->holders);
    add_money(chain, is_part(chain->query) ? &answers->part->total : whole, whole);
    add_coverage(chain, whole);
    add_signals(chain, whole);
    explain_section_add(chain->explanation, "price, and how the cost adds up");
    add_price_rows(chain, answers->gpus);
    add_arithmetic(chain, answers->types);
    add_changes(chain, whole);
}

enum err explain_chain(const struct explain_request *request, const struct query *query,
                       struct explanation *explanation, struct error *err)
{
    struct chain chain = {.request = request, .query = query, .explanation = explanation};
    struct answers answers = {0};
    enum err code = ask(&chain, &answers, err);
    if (code == ERR_OK && !answers.gpus->total.rows)
        code = error_set(err, ERR_NOT_FOUND, "the ledger has no row of %.*s in this window",
                         STR_ARG(explanation->title));
    if (code == ERR_OK)
        tell(&chain, &answers);
    result_free(answers.part);
    result_free(answers.gpus);
    result_free(answers.hours);
    result_free(answers.holders);
    result_free(answers.types);
    strbuf_release(&chain.text);
    return code;
}
