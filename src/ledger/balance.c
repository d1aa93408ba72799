/* All ideals of a node and hour are brought to one denominator, D x 1e9 x 3.6e6 (shares and prices,
 * ratio, ms an hour), and so compare exactly as 128-bit integers. D is the least common multiple of
 * the shares' and prices' denominators: 8 GPUs, 7 slices, 4 replicas make 56. Where a world's
 * numbers would not fit (a thousand odd denominators on one node), the finest D that fits is taken,
 * and the node's cost is then what the rows add up to: it still balances, to within 1e-6 of a cent.
 */
#include "ledger/balance.h"

#include <stdlib.h>

#include "util/error.h"

#define UNITS ((wide_t)1000000000 * HOUR_MS) /* of a whole hour in a category */

static int64_t lcm_of(int64_t a, int64_t b)
{
    wide_t lcm = (wide_t)a / gcd_of(a, b) * b;
    return lcm > INT64_MAX ? INT64_MAX : (int64_t)lcm;
}

/* The denominator for all, and whether it is exact. */
static int64_t common_denominator(struct tally **tallies, size_t n, const struct node_cost *costs,
                                  size_t costs_n, bool *ret_exact)
{
    int64_t den = 1, price = 1;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < tallies[i]->money_n; k++) {
            const struct money_part *part = &tallies[i]->money[k];
            wide_t both = (wide_t)part->share.den * part->price_den;
            den = both > INT64_MAX ? INT64_MAX : lcm_of(den, (int64_t)both);
            if (part->price_num > price)
                price = part->price_num;
        }
    for (size_t i = 0; i < costs_n; i++)
        den = lcm_of(den, costs[i].price_den);
    /* price x units x D, over a few prices an hour, stays below 2^125 */
    wide_t room = ((wide_t)1 << 125) / ((wide_t)price * UNITS);
    *ret_exact = den <= room;
    return *ret_exact ? den : (int64_t)(room > 0 ? room : 1);
}

/* The exact cost of a tally, by category, over den x UNITS. */
static void ideals(const struct tally *tally, int64_t den, wide_t ret[CATEGORY_COUNT])
{
    for (int c = 0; c < CATEGORY_COUNT; c++)
        ret[c] = 0;
    for (size_t k = 0; k < tally->money_n; k++) {
        const struct money_part *part = &tally->money[k];
        wide_t both = (wide_t)part->share.den * part->price_den;
        wide_t weight = (wide_t)den * part->share.num / both;
        for (int c = 0; c < CATEGORY_COUNT; c++)
            ret[c] += (wide_t)part->price_num * part->units[c] * weight;
    }
}

money_t balance_hour(struct tally **tallies, size_t n, const struct node_cost *costs,
                     size_t costs_n)
{
    bool exact;
    int64_t den = common_denominator(tallies, n, costs, costs_n, &exact);
    wide_t whole = (wide_t)den * UNITS, sum = 0, node = 0;
    wide_t *ideal = mem_alloc((n + 1) * sizeof *ideal);
    money_t *cost = mem_alloc((n + 1) * sizeof *cost);
    wide_t part[CATEGORY_COUNT];
    for (size_t i = 0; i < n; i++) {
        ideals(tallies[i], den, part);
        ideal[i] = 0;
        for (int c = 0; c < CATEGORY_COUNT; c++)
            ideal[i] += part[c];
        sum += ideal[i];
    }
    for (size_t i = 0; i < costs_n; i++)
        node += (wide_t)costs[i].price_num * costs[i].ms * 1000000000 *
                (exact ? den / costs[i].price_den : 0);
    invariant(!exact || sum == node);
    money_t total = money_round(sum, whole);
    money_apportion(total, ideal, whole, n, cost);
    for (size_t i = 0; i < n; i++) {
        ideals(tallies[i], den, part);
        tallies[i]->row.cost = cost[i];
        money_apportion(cost[i], part, whole, CATEGORY_COUNT, tallies[i]->row.category);
    }
    free(ideal);
    free(cost);
    return total;
}
