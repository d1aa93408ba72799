/* Sums of a series' rows, column by column: what figures_add_row() does row by row, without rows.
 */
#include "store/block.h"

#define NS_PER_MS 1000000

void block_rows_of(const struct block *block, size_t s, uint32_t hours, size_t *ret_from,
                   size_t *ret_to)
{
    size_t from = block->starts[s], to = block->starts[s + 1];
    while (from < to && !(hours >> block->hours[from] & 1))
        from++;
    while (to > from && !(hours >> block->hours[to - 1] & 1))
        to--;
    *ret_from = from;
    *ret_to = to;
}

struct range {
    const struct block *block;
    size_t from, to;
    bool whole; /* share_den is 1 in all rows */
};

static int64_t sum(const struct range *range, enum row_column column)
{
    const int64_t *values = range->block->columns[column];
    uint64_t total = 0;
    for (size_t i = range->from; i < range->to; i++)
        total += (uint64_t)values[i];
    return (int64_t)total;
}

static wide_t wide_sum(const struct range *range, enum row_column column)
{
    const int64_t *values = range->block->columns[column];
    wide_t total = 0;
    for (size_t i = range->from; i < range->to; i++)
        wide_add(&total, values[i]);
    return total;
}

static wide_t sum_ns(const struct range *range, enum row_column column)
{
    if (range->whole)
        return wide_sum(range, column) * NS_PER_MS;
    const int64_t *values = range->block->columns[column];
    const int64_t *dens = range->block->columns[COLUMN_SHARE_DEN];
    wide_t total = 0;
    for (size_t i = range->from; i < range->to; i++)
        total += weighted_ns(values[i], (uint32_t)dens[i]);
    return total;
}

static void sum_flags(const struct range *range, struct figures *ret)
{
    const struct block *block = range->block;
    for (size_t i = range->from; i < range->to; i++)
        for (uint32_t rest = (uint32_t)block->columns[COLUMN_FLAGS][i]; rest; rest &= rest - 1) {
            int flag = __builtin_ctz(rest);
            if (flag >= FLAG_COUNT)
                break;
            wide_add(&ret->flag_gpu_ns[flag],
                     weighted_ns(block->columns[COLUMN_GPU][i],
                                 (uint32_t)block->columns[COLUMN_SHARE_DEN][i]));
            sum_add(&ret->flag_cost[flag], block->columns[COLUMN_COST][i]);
        }
}

static void sum_held(const struct range *range, wide_t observed_ns, struct figures *ret)
{
    sum_add(&ret->cost_held, sum(range, COLUMN_COST));
    wide_add(&ret->gpu_held_ns, sum_ns(range, COLUMN_GPU_HELD));
    wide_add(&ret->gpu_observed_held_ns, observed_ns);
    wide_add(&ret->u_seen_held_ns, observed_ns);
    wide_add(&ret->gpu_state_held_ns[STATE_IDLE], sum_ns(range, COLUMN_GPU_IDLE));
    wide_add(&ret->gpu_state_held_ns[STATE_LOW], sum_ns(range, COLUMN_GPU_LOW));
    wide_add(&ret->gpu_state_held_ns[STATE_BUSY], sum_ns(range, COLUMN_GPU_BUSY));
    wide_add(&ret->gpu_u_held, sum_ns(range, COLUMN_GPU_U));
}

void block_sum(const struct block *block, size_t series, size_t from, size_t to,
               struct figures *ret)
{
    struct range range = {block, from, to, true};
    for (size_t i = from; i < to; i++)
        range.whole &= block->columns[COLUMN_SHARE_DEN][i] <= 1;
    wide_t observed_ns = sum_ns(&range, COLUMN_GPU_OBSERVED);
    ret->rows += to - from;
    sum_add(&ret->cost, sum(&range, COLUMN_COST));
    for (int c = 0; c < CATEGORY_COUNT; c++)
        sum_add(&ret->category[c], sum(&range, (enum row_column)(COLUMN_USED + c)));
    wide_add(&ret->gpu_ns, sum_ns(&range, COLUMN_GPU));
    wide_add(&ret->gpu_observed_ns, observed_ns);
    wide_add(&ret->energy_mj, wide_sum(&range, COLUMN_ENERGY));
    wide_add(&ret->mem_seen_ms, wide_sum(&range, COLUMN_MEM_SEEN));
    for (size_t i = from; i < to; i++) {
        wide_add(&ret->mem_byte_ms, (uint64_t)block->columns[COLUMN_MEM_BYTE_MS][i]);
        if (block->columns[COLUMN_MEM_MAX][i] > ret->mem_max_bytes)
            ret->mem_max_bytes = block->columns[COLUMN_MEM_MAX][i];
    }
    sum_add(&ret->work[WORK_GENERATION_TOKENS], sum(&range, COLUMN_GENERATION_TOKENS));
    sum_add(&ret->work[WORK_PROMPT_TOKENS], sum(&range, COLUMN_PROMPT_TOKENS));
    sum_add(&ret->work[WORK_REQUESTS], sum(&range, COLUMN_REQUESTS));
    if (series_is_held(&block->series[series]))
        sum_held(&range, observed_ns, ret);
    sum_flags(&range, ret);
}
