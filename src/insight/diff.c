/* Joining the rows of two windows, and the way from one to the other.
 *
 * Why GPU-hours come before the rate: what is asked first is "do we run more?", and a team that
 * runs as much as before at a new price should show all of its change as price. Any order adds up;
 * this one gives the joint term to the price. */
#include "insight/diff.h"

#include <stdlib.h>

#include "query/keys.h"

const char *const diff_presence_words[] = {"both", "new", "gone"};

/* ---- sides ---- */

void diff_side_release(struct diff_side *side)
{
    free(side->entries);
    arena_release(&side->arena);
    *side = (struct diff_side){0};
}

/* GPU time in ns -> GPU-hours x 1e9, as the reports print it. */
static wide_t nano_hours(wide_t gpu_ns)
{
    return (gpu_ns + 1800) / 3600;
}

static struct diff_amounts amounts_of(const struct figures *figures)
{
    return (struct diff_amounts){.cost = figures->cost,
                                 .used = figures->category[CATEGORY_USED],
                                 .gpu_nano = nano_hours(figures->gpu_ns)};
}

static struct str key_word(struct arena *arena, enum key key)
{
    struct str word = str_keep(arena, str_of(key_words[key]));
    for (size_t i = 0; i < word.n; i++)
        if (word.p[i] == '-')
            ((char *)word.p)[i] = '_';
    return word;
}

void diff_side_of_result(const struct result *result, struct diff_side *ret)
{
    const struct query *query = &result->query;
    struct strbuf filters = {0};
    *ret = (struct diff_side){.window = query->window,
                              .recorded = result->recorded,
                              .keys_n = query->keys_n,
                              .hours_known = true,
                              .total = amounts_of(&result->total)};
    ret->unpriced_nano = nano_hours(result->total.flag_gpu_ns[FLAG_INDEX_UNPRICED]);
    for (size_t k = 0; k < query->keys_n; k++) {
        ret->keys[k] = key_word(&ret->arena, query->keys[k]);
        ret->hours_known &= !key_splits(query->keys[k]);
    }
    for (size_t i = 0; i < query->filters_n; i++) {
        const struct query_filter *filter = &query->filters[i];
        strbuf_addf(&filters, "%s%.*s%s%.*s", i ? ", " : "",
                    STR_ARG(key_word(&ret->arena, filter->key)), filter->negate ? "!=" : "=",
                    STR_ARG(filter->value));
        ret->hours_known &= !key_splits(filter->key);
    }
    ret->filters = str_keep(&ret->arena, strbuf_str(&filters));
    strbuf_release(&filters);
    for (size_t g = 0; g < result->groups_n; g++) {
        struct diff_entry entry = {.amounts = amounts_of(&result->groups[g].figures)};
        for (size_t k = 0; k < query->keys_n; k++)
            entry.keys[k] = str_keep(&ret->arena, result->groups[g].keys[k]);
        mem_push(ret->entries, ret->entries_n, ret->entries_room, entry);
    }
}

/* ---- a row ---- */

/* a x num / den to the nearest, halves upwards; false where that is more than any ledger has. */
static bool scaled(money_t a, wide_t num, wide_t den, money_t *ret)
{
    if (num > (wide_t)MONEY_MAX || den > (wide_t)MONEY_MAX)
        return false;
    wide_t value = ((wide_t)a * num + den / 2) / den;
    *ret = (money_t)value;
    return value <= MONEY_MAX;
}

void diff_row_split(struct diff_row *row, bool hours_known)
{
    const struct diff_amounts *a = &row->a, *b = &row->b;
    money_t middle = 0, used_middle, used_share;
    row->split = row->used_split = false;
    row->price = row->volume = row->used_price = row->used_volume = row->efficiency = 0;
    if (!hours_known)
        return;
    if (row->presence == DIFF_NEW || row->presence == DIFF_GONE) {
        row->split = row->used_split = true;
        row->volume = b->cost - a->cost;
        row->used_volume = b->used - a->used;
        return;
    }
    if (a->gpu_nano <= 0 || !scaled(a->cost, b->gpu_nano, a->gpu_nano, &middle))
        return;
    row->split = true;
    row->volume = middle - a->cost;
    row->price = b->cost - middle;
    if (a->cost <= 0 && b->cost <= 0)
        row->used_split = true; /* all is 0 */
    if (a->cost <= 0 || !scaled(a->used, middle, a->cost, &used_middle) ||
        !scaled(a->used, b->cost, a->cost, &used_share))
        return;
    row->used_split = true;
    row->used_volume = used_middle - a->used;
    row->used_price = used_share - used_middle;
    row->efficiency = b->used - used_share;
}

/* ---- all rows ---- */

static int by_keys(const struct str *x, const struct str *y)
{
    for (size_t k = 0; k < QUERY_KEYS_MAX; k++) {
        int order = str_cmp(x[k], y[k]);
        if (order)
            return order;
    }
    return 0;
}

static int entries_by_keys(const void *a, const void *b)
{
    const struct diff_entry *const *x = a, *const *y = b;
    return by_keys((*x)->keys, (*y)->keys);
}

static int rows_by_change(const void *a, const void *b)
{
    const struct diff_row *x = a, *y = b;
    money_t p = x->b.cost - x->a.cost, q = y->b.cost - y->a.cost;
    p = p < 0 ? -p : p;
    q = q < 0 ? -q : q;
    return p != q ? (p < q ? 1 : -1) : by_keys(x->keys, y->keys);
}

static const struct diff_entry **sorted(const struct diff_side *side)
{
    const struct diff_entry **order = mem_zalloc(side->entries_n + 1, sizeof *order);
    for (size_t i = 0; i < side->entries_n; i++)
        order[i] = &side->entries[i];
    qsort(order, side->entries_n, sizeof *order, entries_by_keys);
    return order;
}

static void add_row(struct diff *diff, const struct diff_entry *a, const struct diff_entry *b)
{
    struct diff_row *row = &diff->rows[diff->rows_n++];
    *row = (struct diff_row){.presence = a && b ? DIFF_BOTH : a ? DIFF_GONE : DIFF_NEW};
    memcpy(row->keys, a ? a->keys : b->keys, sizeof row->keys);
    if (a)
        row->a = a->amounts;
    if (b)
        row->b = b->amounts;
    diff_row_split(row, diff->a->hours_known && diff->b->hours_known);
}

/* Sums of a report fit; those of parts may not, in a file that somebody wrote by hand. */
static bool narrow(wide_t sum, money_t *ret)
{
    *ret = (money_t)sum;
    return sum >= -(wide_t)MONEY_MAX && sum <= (wide_t)MONEY_MAX;
}

static void sum_rows(struct diff *diff)
{
    struct diff_row *total = &diff->total;
    wide_t price = 0, volume = 0, used_price = 0, used_volume = 0, efficiency = 0;
    *total = (struct diff_row){
        .a = diff->a->total, .b = diff->b->total, .split = true, .used_split = true};
    for (size_t i = 0; i < diff->rows_n; i++) {
        const struct diff_row *row = &diff->rows[i];
        total->split &= row->split;
        total->used_split &= row->used_split;
        price += row->price;
        volume += row->volume;
        used_price += row->used_price;
        used_volume += row->used_volume;
        efficiency += row->efficiency;
    }
    total->split &= narrow(price, &total->price) && narrow(volume, &total->volume);
    total->used_split &= narrow(used_price, &total->used_price) &&
                         narrow(used_volume, &total->used_volume) &&
                         narrow(efficiency, &total->efficiency);
}

struct diff *diff_new(const struct diff_side *a, const struct diff_side *b)
{
    struct diff *diff = mem_zalloc(1, sizeof *diff);
    const struct diff_entry **x = sorted(a), **y = sorted(b);
    size_t i = 0, j = 0;
    diff->a = a;
    diff->b = b;
    diff->rows = mem_zalloc(a->entries_n + b->entries_n + 1, sizeof *diff->rows);
    while (i < a->entries_n || j < b->entries_n) {
        int order = i == a->entries_n   ? 1
                    : j == b->entries_n ? -1
                                        : by_keys(x[i]->keys, y[j]->keys);
        add_row(diff, order <= 0 ? x[i] : NULL, order >= 0 ? y[j] : NULL);
        i += order <= 0;
        j += order >= 0;
    }
    free(x);
    free(y);
    qsort(diff->rows, diff->rows_n, sizeof *diff->rows, rows_by_change);
    sum_rows(diff);
    return diff;
}

void diff_free(struct diff *diff)
{
    if (!diff)
        return;
    free(diff->rows);
    free(diff);
}
