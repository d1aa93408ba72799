/* Joining: a saving is claimed on cells, and a cell can be saved once, and so can a GPU. Claims are
 * served in the order of the rule table; what is left for a later one is what the cell and its GPU
 * cost less what is claimed already. The total is then what would really be saved if everything
 * were done. */
#include "insight/recommend.h"

#include <stdlib.h>

#include "util/idmap.h"

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

/* What nobody claims yet, of the cost a month: of each cell, and of each GPU. A GPU's cells can be
 * one after the other, each at its own pace: together they cannot save more than the GPU costs. */
#define NOT_ASKED INT64_MIN
struct join {
    money_t *left;      /* [cell], or NOT_ASKED */
    size_t *keeper;     /* [cell]: the first finding that claimed it, + 1 */
    uint32_t *gpu;      /* [cell]: which GPU */
    money_t *gpu_left;  /* [gpu] */
    size_t *gpu_keeper; /* [gpu] */
};

static void join_begin(const struct books *books, struct join *join)
{
    size_t n = books->cells_n, gpus = 0;
    struct idmap map = {0};
    time_ms *first = mem_zalloc(n, sizeof *first);
    *join = (struct join){.left = mem_zalloc(n, sizeof *join->left),
                          .keeper = mem_zalloc(n, sizeof *join->keeper),
                          .gpu = mem_zalloc(n, sizeof *join->gpu),
                          .gpu_left = mem_zalloc(n, sizeof *join->gpu_left),
                          .gpu_keeper = mem_zalloc(n, sizeof *join->gpu_keeper)};
    for (size_t c = 0; c < n; c++) {
        const struct book_cell *cell = &books->cells[c];
        bool fresh;
        uint32_t gpu =
            idmap_add(&map, IDKEY(cell->cluster, cell->node, cell->device), (uint32_t)gpus, &fresh);
        gpus += fresh;
        join->gpu[c] = gpu;
        first[gpu] = fresh || cell->first < first[gpu] ? cell->first : first[gpu];
        join->gpu_left[gpu] += cell->cost;
        join->left[c] = NOT_ASKED;
    }
    for (size_t g = 0; g < gpus; g++)
        join->gpu_left[g] = books_month(books, first[g], join->gpu_left[g]);
    free(first);
    idmap_release(&map);
}

static void join_end(struct join *join)
{
    free(join->left);
    free(join->keeper);
    free(join->gpu);
    free(join->gpu_left);
    free(join->gpu_keeper);
}

static money_t least(money_t a, money_t b)
{
    return a < b ? a : b;
}

/* Take what is there of an amount. */
static money_t take(struct join *join, const struct books *books, size_t cell, money_t amount)
{
    const struct book_cell *of = &books->cells[cell];
    if (join->left[cell] == NOT_ASKED)
        join->left[cell] = books_month(books, of->first, of->cost);
    money_t *gpu_left = &join->gpu_left[join->gpu[cell]];
    money_t taken = least(amount, least(join->left[cell], *gpu_left));
    join->left[cell] -= taken;
    *gpu_left -= taken;
    return taken;
}

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
        struct claim *claim = &finding->claims[k];
        size_t cell = claim->cell;
        size_t *keeper = &join->keeper[cell], *gpu_keeper = &join->gpu_keeper[join->gpu[cell]];
        const struct book_node *node = &books->nodes[books->cells[cell].node_index];
        if (node->facts.capacity == CAPACITY_RESERVED) {
            reserved += claim->month;
            continue;
        }
        claim->saved = take(join, books, cell, claim->month);
        take(join, books, cell, claim->kept);
        finding->saving += claim->saved;
        lost += claim->month - claim->saved;
        if (claim->saved < claim->month && (*keeper || *gpu_keeper))
            to = *keeper ? *keeper : *gpu_keeper;
        *keeper = *keeper ? *keeper : index + 1;
        *gpu_keeper = *gpu_keeper ? *gpu_keeper : index + 1;
    }
    if (to == index + 1)
        to = 0; /* its own cells of the GPU */
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
    struct join join;
    join_begin(findings->books, &join);
    for (size_t i = 0; i < findings->n; i++)
        serve(findings, i, &join);
    join_end(&join);
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
