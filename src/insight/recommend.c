/* Joining: a saving is claimed on cells, and a cell can be saved once. Claims are served in the
 * order of the rule table; what is left for a later one is what the cell costs less what is claimed
 * already. The total is then what would really be saved if everything were done. */
#include "insight/recommend.h"

#include <stdlib.h>

static int by_rule(const void *a, const void *b)
{
    const struct finding *left = a, *right = b;
    if (left->rule != right->rule)
        return left->rule < right->rule ? -1 : 1;
    return str_cmp(left->subject, right->subject);
}

static int by_saving(const void *a, const void *b)
{
    const struct finding *left = a, *right = b;
    if ((left->exempt.n > 0) != (right->exempt.n > 0))
        return left->exempt.n ? 1 : -1;
    if (left->saving != right->saving)
        return left->saving > right->saving ? -1 : 1;
    if (left->month != right->month)
        return left->month > right->month ? -1 : 1;
    return by_rule(a, b);
}

struct join {
    money_t *left;  /* [cell]: of its cost a month, what nobody claims yet */
    size_t *keeper; /* [cell]: the first finding that claimed it, + 1 */
};

/* What a finding keeps of its claims, and what it loses to reserved nodes and to earlier findings.
 */
static void serve(struct findings *findings, size_t index, struct join *join)
{
    const struct books *books = findings->books;
    struct finding *finding = &findings->items[index];
    money_t lost = 0, reserved = 0;
    size_t to = 0;
    finding->saving = 0;
    for (size_t k = 0; k < finding->claims_n && !finding->exempt.n; k++) {
        const struct claim *claim = &finding->claims[k];
        size_t cell = claim->cell;
        const struct book_node *node = &books->nodes[books->cells[cell].node_index];
        if (node->facts.capacity == CAPACITY_RESERVED) {
            reserved += claim->month;
            continue;
        }
        money_t kept = claim->month < join->left[cell] ? claim->month : join->left[cell];
        finding->saving += kept;
        join->left[cell] -= kept;
        join->left[cell] -= claim->kept < join->left[cell] ? claim->kept : join->left[cell];
        lost += claim->month - kept;
        if (kept < claim->month && join->keeper[cell])
            to = join->keeper[cell];
        if (!join->keeper[cell])
            join->keeper[cell] = index + 1;
    }
    if (reserved > 0)
        finding->joined = finding_text(
            findings,
            "%.*s a month of it is on reserved nodes, which are paid for anyway: it frees "
            "GPUs for others, and saves nothing",
            STR_ARG(finding_money(findings, reserved)));
    else if (lost > 0 && to)
        finding->joined = finding_text(
            findings, "%.*s a month of it is counted in %.*s, on the same GPUs",
            STR_ARG(finding_money(findings, lost)), STR_ARG(findings->items[to - 1].id));
}

static void join_claims(struct findings *findings)
{
    const struct books *books = findings->books;
    struct join join = {mem_zalloc(books->cells_n, sizeof *join.left),
                        mem_zalloc(books->cells_n, sizeof *join.keeper)};
    for (size_t c = 0; c < books->cells_n; c++)
        join.left[c] = books_month(books, books->cells[c].first, books->cells[c].cost);
    for (size_t i = 0; i < findings->n; i++)
        serve(findings, i, &join);
    free(join.left);
    free(join.keeper);
}

struct findings *recommend(const struct books *books, const char *currency)
{
    return recommend_except(books, currency, NULL);
}

struct findings *recommend_except(const struct books *books, const char *currency,
                                  struct exemptions *exemptions)
{
    struct findings *findings = mem_zalloc(1, sizeof *findings);
    findings->books = books;
    findings->currency = currency;
    for (int r = 0; r < RULE_COUNT; r++)
        if (!books->thresholds.off[r])
            rules[r].find(books, findings);
    if (findings->n)
        qsort(findings->items, findings->n, sizeof *findings->items, by_rule);
    if (exemptions)
        exemptions_apply(exemptions, findings);
    findings->exemptions = exemptions;
    join_claims(findings);
    if (findings->n)
        qsort(findings->items, findings->n, sizeof *findings->items, by_saving);
    return findings;
}

void findings_free(struct findings *findings)
{
    if (!findings)
        return;
    for (size_t i = 0; i < findings->n; i++)
        free(findings->items[i].claims);
    free(findings->items);
    free(findings->refusals);
    arena_release(&findings->arena);
    free(findings);
}

money_t findings_saving(const struct findings *findings)
{
    money_t sum = 0;
    for (size_t i = 0; i < findings->n; i++)
        sum += findings->items[i].saving;
    return sum;
}

/* Is the text the subject's name, or the end of it after a slash? */
static bool names_subject(struct str subject, struct str text)
{
    if (str_eq(subject, text))
        return true;
    if (text.n >= subject.n)
        return false;
    struct str tail = {subject.p + subject.n - text.n, text.n};
    char before = subject.p[subject.n - text.n - 1];
    return str_eq(tail, text) && (before == '/' || before == ' ');
}

const struct finding *findings_next(const struct findings *findings, struct str text, size_t *at)
{
    while (*at < findings->n) {
        const struct finding *finding = &findings->items[(*at)++];
        if (str_eq(finding->id, text) || names_subject(finding->subject, text))
            return finding;
    }
    return NULL;
}
