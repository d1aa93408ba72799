/* Ratios of figures, and the order of groups. */
#include <math.h>
#include <stdlib.h>

#include "query/query.h"
#include "util/suggest.h"

#define NS_AN_HOUR 3.6e12

static double ratio(wide_t num, wide_t den)
{
    return den ? (double)num / (double)den : NAN;
}

double figures_utilisation(const struct figures *f)
{
    return ratio(f->gpu_u_held, f->u_seen_held_ns * NANO);
}

double figures_effective_price(const struct figures *f)
{
    wide_t held = (wide_t)f->category[CATEGORY_USED] + f->category[CATEGORY_SLACK] +
                  f->category[CATEGORY_HELD_IDLE];
    double useful_hours = (double)f->gpu_u_held / (double)NANO / NS_AN_HOUR;
    return useful_hours > 0 ? (double)held / (double)NANO / useful_hours : NAN;
}

double figures_coverage(const struct figures *f)
{
    return ratio(f->gpu_observed_held_ns, f->gpu_held_ns);
}

double figures_efficiency(const struct figures *f)
{
    return ratio(f->category[CATEGORY_USED], f->cost_held);
}

money_t figures_node_idle(const struct figures *f)
{
    money_t sum = 0;
    for (int i = CATEGORY_NODE_IDLE_FIRST; i <= CATEGORY_NODE_IDLE_LAST; i++)
        sum_add(&sum, f->category[i]);
    return sum;
}

/* X("word", double of `f`): what groups can be sorted by, largest first */
#define SORT_TABLE(X)                                                                              \
    X("cost", (double)f->cost)                                                                     \
    X("used", (double)f->category[CATEGORY_USED])                                                  \
    X("slack", (double)f->category[CATEGORY_SLACK])                                                \
    X("held_idle", (double)f->category[CATEGORY_HELD_IDLE])                                        \
    X("node_idle", (double)figures_node_idle(f))                                                   \
    X("node_idle_empty", (double)f->category[CATEGORY_EMPTY])                                      \
    X("node_idle_stranded", (double)f->category[CATEGORY_STRANDED])                                \
    X("node_idle_unpartitioned", (double)f->category[CATEGORY_UNPARTITIONED])                      \
    X("node_idle_cordoned", (double)f->category[CATEGORY_CORDONED])                                \
    X("node_idle_starting", (double)f->category[CATEGORY_STARTING])                                \
    X("unhealthy", (double)f->category[CATEGORY_UNHEALTHY])                                        \
    X("unobserved", (double)f->category[CATEGORY_UNOBSERVED])                                      \
    X("unattributed", (double)f->category[CATEGORY_UNATTRIBUTED])                                  \
    X("gpu_hours", (double)f->gpu_ns)                                                              \
    X("held_gpu_hours", (double)f->gpu_held_ns)                                                    \
    X("observed_gpu_hours", (double)f->gpu_observed_ns)                                            \
    X("held_observed_gpu_hours", (double)f->gpu_observed_held_ns)                                  \
    X("idle_gpu_hours", (double)f->gpu_state_held_ns[STATE_IDLE])                                  \
    X("low_gpu_hours", (double)f->gpu_state_held_ns[STATE_LOW])                                    \
    X("busy_gpu_hours", (double)f->gpu_state_held_ns[STATE_BUSY])                                  \
    X("under_30_gpu_hours",                                                                        \
      (double)(f->gpu_state_held_ns[STATE_IDLE] + f->gpu_state_held_ns[STATE_LOW]))                \
    X("useful_gpu_hours", (double)f->gpu_u_held)                                                   \
    X("utilisation", figures_utilisation(f))                                                       \
    X("effective_price", figures_effective_price(f))                                               \
    X("coverage", figures_coverage(f))                                                             \
    X("efficiency", figures_efficiency(f))                                                         \
    X("energy_kwh", (double)f->energy_mj)                                                          \
    X("memory_avg_bytes", ratio(f->mem_byte_ms, f->mem_seen_ms))                                   \
    X("memory_max_bytes", (double)f->mem_max_bytes)                                                \
    X("generation_tokens", (double)f->work[WORK_GENERATION_TOKENS])                                \
    X("prompt_tokens", (double)f->work[WORK_PROMPT_TOKENS])                                        \
    X("requests", (double)f->work[WORK_REQUESTS])                                                  \
    X("rows", (double)f->rows)

static const char *const sort_words[] = {
#define X(word, value) word,
    SORT_TABLE(X)
#undef X
        "name"};
#define SORT_WORDS (sizeof sort_words / sizeof *sort_words)
#define SORT_BY_NAME (SORT_WORDS - 1)

static double sort_value(size_t by, const struct figures *f)
{
    size_t line = 0;
#define X(word, value)                                                                             \
    if (by == line++)                                                                              \
        return value;
    SORT_TABLE(X)
#undef X
    return 0;
}

/* What a group is sorted by, told once. */
struct rank {
    double value;
    const struct group *group;
};

static int compare(const void *a, const void *b, void *keys_n)
{
    const struct rank *left = a, *right = b;
    double l = left->value, r = right->value;
    if (isnan(l) != isnan(r))
        return isnan(l) ? 1 : -1;
    if (l != r && !isnan(l))
        return l > r ? -1 : 1;
    for (size_t i = 0; i < *(const size_t *)keys_n; i++) {
        int by_text = str_cmp(left->group->keys[i], right->group->keys[i]);
        if (by_text)
            return by_text;
    }
    return 0;
}

/* Groups into their order, where they are: they are large, and may be many. */
static void permute(struct group *groups, struct rank *ranks, size_t n)
{
    for (size_t g = 0; g < n; g++) {
        const struct group held = groups[g];
        for (size_t at = g, from; ranks[at].group; at = from) {
            from = (size_t)(ranks[at].group - groups);
            ranks[at].group = NULL;
            groups[at] = from == g ? held : groups[from];
        }
    }
}

static void sort(struct result *result, size_t by)
{
    size_t n = result->groups_n;
    struct rank *ranks = mem_alloc(n * sizeof *ranks);
    for (size_t g = 0; g < n; g++)
        ranks[g] = (struct rank){sort_value(by, &result->groups[g].figures), &result->groups[g]};
    qsort_r(ranks, n, sizeof *ranks, compare, &result->query.keys_n);
    permute(result->groups, ranks, n);
    free(ranks);
}

enum err result_sort(struct result *result, struct str by, struct error *err)
{
    size_t word = 0;
    while (by.n && word < SORT_WORDS && !str_eq(by, str_of(sort_words[word])))
        word++;
    if (word == SORT_WORDS) {
        struct strbuf all = {0};
        for (size_t i = 0; i < SORT_WORDS; i++)
            strbuf_addf(&all, "%s%s", i ? ", " : "", sort_words[i]);
        const char *near = suggest(by, sort_words, SORT_WORDS);
        enum err code = error_set(
            err, ERR_USAGE, "\"%.*s\" is no figure to sort by%s%s%s: there are %s", STR_ARG(by),
            near ? " (did you mean " : "", near ? near : "", near ? "?)" : "", all.text);
        strbuf_release(&all);
        return code;
    }
    if (result->groups_n)
        sort(result, word);
    return ERR_OK;
}

void result_free(struct result *result)
{
    if (!result)
        return;
    arena_release(&result->arena);
    free(result->groups);
    free(result->notes);
    free(result);
}
