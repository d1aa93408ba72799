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
    if (left->saving != right->saving)
        return left->saving > right->saving ? -1 : 1;
    if (left->month != right->month)
        return left->month > right->month ? -1 : 1;
    return by_rule(a, b);
}

static void join(struct findings *findings)
{
    const struct books *books = findings->books;
    money_t *left = mem_zalloc(books->cells_n, sizeof *left);
    size_t *keeper = mem_zalloc(books->cells_n, sizeof *keeper); /* finding + 1 */
    for (size_t c = 0; c < books->cells_n; c++)
        left[c] = books_month(books, books->cells[c].first, books->cells[c].cost);
    for (size_t i = 0; i < findings->n; i++) {
        struct finding *finding = &findings->items[i];
        money_t lost = 0;
        size_t to = 0;
        finding->saving = 0;
        for (size_t k = 0; k < finding->claims_n; k++) {
            const struct claim *claim = &finding->claims[k];
            money_t kept = claim->month < left[claim->cell] ? claim->month : left[claim->cell];
            finding->saving += kept;
            lost += claim->month - kept;
            left[claim->cell] -= kept;
            if (kept < claim->month && keeper[claim->cell])
                to = keeper[claim->cell];
            if (!keeper[claim->cell])
                keeper[claim->cell] = i + 1;
        }
        if (lost > 0 && to)
            finding->joined = finding_text(
                findings, "%.*s a month of it is counted in %.*s, on the same GPUs",
                STR_ARG(finding_money(findings, lost)), STR_ARG(findings->items[to - 1].id));
    }
    free(left);
    free(keeper);
}

struct findings *recommend(const struct books *books, const char *currency)
{
    struct findings *findings = mem_zalloc(1, sizeof *findings);
    findings->books = books;
    findings->currency = currency;
    for (int r = 0; r < RULE_COUNT; r++)
        rules[r].find(books, findings);
    if (findings->n)
        qsort(findings->items, findings->n, sizeof *findings->items, by_rule);
    join(findings);
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
