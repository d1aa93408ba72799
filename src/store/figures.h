/* The sums that reports are made of: of rows, and of roll-ups of rows (semantics, section 9).
 *
 * All are whole numbers and all but mem_max_bytes (a maximum) are plain sums, so that they can be
 * added up in any order and grouping, and a roll-up equals its rows exactly. Weighted times are in
 * ns of a GPU: ms x 1e6 x num / share_den, rounded half up once a row. Ratios are derived from
 * these by the functions of query/query.h. */
#ifndef GPUTALLY_STORE_FIGURES_H
#define GPUTALLY_STORE_FIGURES_H

#include "ledger/row.h"

struct figures {
    money_t cost, category[CATEGORY_COUNT];
    money_t cost_held; /* of held rows */
    wide_t gpu_ns, gpu_held_ns, gpu_observed_held_ns, gpu_observed_ns;
    wide_t gpu_state_held_ns[STATE_COUNT]; /* held rows */
    wide_t gpu_u_held;                     /* held rows: useful time in 1e-9 ns (ns x 1e-9) */
    wide_t u_seen_held_ns;                 /* = gpu_observed_held_ns: seen time of u */
    wide_t energy_mj;
    wide_t mem_byte_ms, mem_seen_ms;
    int64_t mem_max_bytes;
    int64_t work[WORK_COUNT];
    wide_t flag_gpu_ns[FLAG_COUNT]; /* GPU time of rows that carry the flag */
    money_t flag_cost[FLAG_COUNT];
    uint64_t rows;
};

/* Sums wrap: a ledger's never come near (MONEY_MAX is a tenth of what fits), a damaged file's may,
 * and must not end the process. */
static inline void sum_add(int64_t *sum, int64_t more)
{
    *sum = (int64_t)((uint64_t)*sum + (uint64_t)more);
}
static inline void wide_add(wide_t *sum, wide_t more)
{
    *sum = (wide_t)((unsigned __int128)*sum + (unsigned __int128)more);
}

void figures_add_row(struct figures *sum, const struct row *row);
void figures_add(struct figures *sum, const struct figures *more);

/* num/den ms in ns, halves upwards. Nearly all rows are of whole GPUs (den 1). */
static inline wide_t weighted_ns(int64_t num, uint32_t den)
{
    if (den <= 1)
        return (wide_t)num * 1000000;
    return ((wide_t)num * 2000000 + den) / (2 * (wide_t)den);
}

static inline bool row_is_held(const struct row *row)
{
    return row->key.pod != NAME_NONE;
}

#endif
