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

static void predict_run(const struct block *block, enum row_column column, size_t s, int64_t *ret)
{
    const struct series *series = &block->series[s];
    int64_t *const *c = block->columns;
    bool held = series_is_held(series);
    for (uint32_t i = block->starts[s]; i < block->starts[s + 1]; i++)
        switch (column) {
        case COLUMN_HELD:
            ret[i] = held ? wall(c[COLUMN_GPU][i], series->share) : 0;
            break;
        case COLUMN_OBSERVED:
            ret[i] = wall(c[COLUMN_GPU][i], series->share);
            break;
        case COLUMN_IDLE:
            ret[i] = c[COLUMN_U][i] < times(c[COLUMN_OBSERVED][i], idle_below)
                         ? c[COLUMN_OBSERVED][i]
                         : 0;
            break;
        case COLUMN_LOW:
            ret[i] = c[COLUMN_U][i] < times(c[COLUMN_OBSERVED][i], busy_from)
                         ? minus(c[COLUMN_OBSERVED][i], c[COLUMN_IDLE][i])
                         : 0;
            break;
        case COLUMN_BUSY:
            ret[i] = minus(minus(c[COLUMN_OBSERVED][i], c[COLUMN_IDLE][i]), c[COLUMN_LOW][i]);
            break;
        case COLUMN_COST:
            ret[i] =
                cost_of(block->rate[block->hours[i]], c[COLUMN_GPU][i], c[COLUMN_SHARE_DEN][i]);
            break;
        case COLUMN_USED:
            ret[i] = held ? used_of(c[COLUMN_COST][i], c[COLUMN_U][i],
                                    wall(c[COLUMN_GPU][i], series->share))
                          : 0;
            break;
        case COLUMN_MEM_BYTE_MS:
            ret[i] = times(c[COLUMN_MEM_MAX][i], c[COLUMN_MEM_SEEN][i]);
            break;
        case COLUMN_SM:
            ret[i] = c[COLUMN_SM_SEEN][i] ? c[COLUMN_U][i] : 0;
            break;
        default:
            ret[i] = times(c[weighted_of(column)][i], series->share);
            break;
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
    for (size_t s = 0; s < block->series_n; s++)
        predict_run(block, column, s, ret);
    return true;
}
