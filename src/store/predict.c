/* What a row's fields probably are, from the fields before them: a whole GPU that is held and seen
 * for the hour has the same number in eight of them, its money is its part of the node's, and what
 * is used of that follows from u. Wrong guesses cost bits, not exactness: packing and unpacking
 * guess by the same integers (no floating point: a file may move to another machine). Arithmetic
 * wraps. */
#include "store/block.h"

#define RATE_BITS 24

static const int64_t idle_below = INT64_C(100000000); /* 1e-9; the defaults of the semantics */
static const int64_t busy_from = INT64_C(300000000);

static int64_t times(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a * (uint64_t)b);
}

static int64_t minus(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a - (uint64_t)b);
}

void block_predict_begin(struct block *block)
{
    memset(block->rate, 0, sizeof block->rate);
    for (size_t i = 0; i < block->node_hours_n; i++) {
        const struct node_hour *hour = &block->node_hours[i];
        int64_t at = (hour->hour - block->day * DAY_MS) / HOUR_MS;
        if (hour->gpus <= 0 || hour->up_ms <= 0 || hour->booked <= 0 || at < 0 || at >= 24)
            continue;
        wide_t rate = ((wide_t)hour->booked << RATE_BITS) / ((wide_t)hour->gpus * hour->up_ms);
        block->rate[at] = rate > INT64_MAX ? 0 : (uint64_t)rate;
    }
}

/* weighted / share, the wall time */
static int64_t wall(int64_t weighted, uint32_t share)
{
    return share > 1 ? weighted / share : weighted;
}

static int64_t cost_of(uint64_t rate, int64_t gpu_num, int64_t den)
{
    uint64_t product = rate * (uint64_t)gpu_num;
    if (den > 1)
        product /= (uint64_t)den;
    return (int64_t)((product + (1u << (RATE_BITS - 1))) >> RATE_BITS);
}

static int64_t used_of(int64_t cost, int64_t u, int64_t wall_ms)
{
    if (wall_ms <= 0 || cost <= 0 || u <= 0 || u > times(wall_ms, NANO) || wall_ms > DAY_MS)
        return 0;
    uint64_t den = (uint64_t)wall_ms * NANO;
    return (int64_t)(((unsigned __int128)(uint64_t)cost * (uint64_t)u + den / 2) / den);
}

void block_predict_dominant(const struct block *block, int64_t *ret)
{
    const int64_t *observed = block->columns[COLUMN_OBSERVED];
    const int64_t *idle = block->columns[COLUMN_IDLE];
    for (size_t s = 0; s < block->series_n; s++) {
        bool held = series_is_held(&block->series[s]);
        for (uint32_t i = block->starts[s]; i < block->starts[s + 1]; i++)
            ret[i] = !held                                   ? CATEGORY_EMPTY
                     : observed[i] == 0                      ? CATEGORY_UNOBSERVED
                     : idle[i] > minus(observed[i], idle[i]) ? CATEGORY_HELD_IDLE
                                                             : CATEGORY_SLACK;
    }
}

/* Columns that are another one times the series' share. */
static enum row_column weighted_of(enum row_column column)
{
    switch (column) {
    case COLUMN_GPU_HELD:
        return COLUMN_HELD;
    case COLUMN_GPU_OBSERVED:
        return COLUMN_OBSERVED;
    case COLUMN_GPU_IDLE:
        return COLUMN_IDLE;
    case COLUMN_GPU_LOW:
        return COLUMN_LOW;
    case COLUMN_GPU_BUSY:
        return COLUMN_BUSY;
    case COLUMN_GPU_U:
        return COLUMN_U;
    default:
        return ROW_COLUMNS;
    }
}

/* Columns that are another one. */
static enum row_column same_as(enum row_column column)
{
    switch (column) {
    case COLUMN_MEM_SEEN:
    case COLUMN_SM_SEEN:
        return COLUMN_OBSERVED;
    case COLUMN_TENSOR_SEEN:
    case COLUMN_DRAM_SEEN:
        return COLUMN_SM_SEEN;
    default:
        return ROW_COLUMNS;
    }
}

/* Each of these guesses one column for the rows of a series, [from, to). */
struct rows {
    int64_t *const *c;
    const struct series *series;
    uint32_t from, to;
};

static void guess_wall(const struct rows *rows, int64_t *ret)
{
    const int64_t *gpu = rows->c[COLUMN_GPU];
    for (uint32_t i = rows->from; i < rows->to; i++)
        ret[i] = wall(gpu[i], rows->series->share);
}

static void guess_states(const struct rows *rows, enum row_column column, int64_t *ret)
{
    const int64_t *u = rows->c[COLUMN_U], *observed = rows->c[COLUMN_OBSERVED];
    const int64_t *idle = rows->c[COLUMN_IDLE], *low = rows->c[COLUMN_LOW];
    for (uint32_t i = rows->from; i < rows->to; i++)
        if (column == COLUMN_IDLE)
            ret[i] = u[i] < times(observed[i], idle_below) ? observed[i] : 0;
        else if (column == COLUMN_LOW)
            ret[i] = u[i] < times(observed[i], busy_from) ? minus(observed[i], idle[i]) : 0;
        else
            ret[i] = minus(minus(observed[i], idle[i]), low[i]);
}

static void guess_cost(const struct block *block, const struct rows *rows, int64_t *ret)
{
    const int64_t *gpu = rows->c[COLUMN_GPU], *den = rows->c[COLUMN_SHARE_DEN];
    for (uint32_t i = rows->from; i < rows->to; i++)
        ret[i] = cost_of(block->rate[block->hours[i]], gpu[i], den[i]);
}

static void guess_used(const struct rows *rows, int64_t *ret)
{
    const int64_t *gpu = rows->c[COLUMN_GPU], *u = rows->c[COLUMN_U], *cost = rows->c[COLUMN_COST];
    bool held = series_is_held(rows->series);
    for (uint32_t i = rows->from; i < rows->to; i++)
        ret[i] = held ? used_of(cost[i], u[i], wall(gpu[i], rows->series->share)) : 0;
}

static void guess_product(const struct rows *rows, enum row_column a, enum row_column b,
                          int64_t *ret)
{
    for (uint32_t i = rows->from; i < rows->to; i++)
        ret[i] = times(rows->c[a][i], rows->c[b][i]);
}

static void guess_weighted(const struct rows *rows, enum row_column of, int64_t *ret)
{
    if (rows->series->share == 1)
        memcpy(ret + rows->from, rows->c[of] + rows->from, (rows->to - rows->from) * sizeof *ret);
    else
        for (uint32_t i = rows->from; i < rows->to; i++)
            ret[i] = times(rows->c[of][i], rows->series->share);
}

static void guess_sm(const struct rows *rows, int64_t *ret)
{
    for (uint32_t i = rows->from; i < rows->to; i++)
        ret[i] = rows->c[COLUMN_SM_SEEN][i] ? rows->c[COLUMN_U][i] : 0;
}

static void guess(const struct block *block, enum row_column column, const struct rows *rows,
                  int64_t *ret)
{
    switch (column) {
    case COLUMN_HELD:
        if (series_is_held(rows->series))
            guess_wall(rows, ret);
        else
            memset(ret + rows->from, 0, (rows->to - rows->from) * sizeof *ret);
        break;
    case COLUMN_OBSERVED:
        guess_wall(rows, ret);
        break;
    case COLUMN_IDLE:
    case COLUMN_LOW:
    case COLUMN_BUSY:
        guess_states(rows, column, ret);
        break;
    case COLUMN_COST:
        guess_cost(block, rows, ret);
        break;
    case COLUMN_USED:
        guess_used(rows, ret);
        break;
    case COLUMN_MEM_BYTE_MS:
        guess_product(rows, COLUMN_MEM_MAX, COLUMN_MEM_SEEN, ret);
        break;
    case COLUMN_SM:
        guess_sm(rows, ret);
        break;
    default:
        guess_weighted(rows, weighted_of(column), ret);
    }
}

bool block_predict(const struct block *block, enum row_column column, int64_t *ret)
{
    if (same_as(column) != ROW_COLUMNS) {
        memcpy(ret, block->columns[same_as(column)], block->rows_n * sizeof *ret);
        return true;
    }
    switch (column) {
    case COLUMN_HELD:
    case COLUMN_OBSERVED:
    case COLUMN_IDLE:
    case COLUMN_LOW:
    case COLUMN_BUSY:
    case COLUMN_COST:
    case COLUMN_USED:
    case COLUMN_MEM_BYTE_MS:
    case COLUMN_SM:
        break;
    default:
        if (weighted_of(column) == ROW_COLUMNS)
            return false;
    }
    for (size_t s = 0; s < block->series_n; s++) {
        struct rows rows = {block->columns, &block->series[s], block->starts[s],
                            block->starts[s + 1]};
        guess(block, column, &rows, ret);
    }
    return true;
}

void block_predict_bin(const struct block *block, enum row_column integral, int64_t *ret)
{
    const int64_t *sum = block->columns[integral], *seen = block->columns[COLUMN_OBSERVED];
    for (size_t i = 0; i < block->rows_n; i++) {
        bool fine = seen[i] > 0 && seen[i] <= DAY_MS && sum[i] > 0;
        int64_t bin = fine ? times(sum[i] / seen[i], HISTOGRAM_BINS) / NANO : 0;
        ret[i] = bin < 0 ? 0 : bin >= HISTOGRAM_BINS ? HISTOGRAM_BINS - 1 : bin;
    }
}
