/* Rows as columns: how a node's day lies in its block, and how it is handed to whoever adds up over
 * time and needs no rows for that. */
#ifndef GPUTALLY_STORE_ROW_COLUMNS_H
#define GPUTALLY_STORE_ROW_COLUMNS_H

#include "ledger/row.h"

/* X(NAME, field of struct row): in the order in which they are packed, see predict.c */
#define HOT_COLUMN_TABLE(X)                                                                        \
    X(SHARE_DEN, share_den)                                                                        \
    X(GPU, gpu_num)                                                                                \
    X(HELD, held_ms)                                                                               \
    X(OBSERVED, observed_ms)                                                                       \
    X(U, u)                                                                                        \
    X(IDLE, state_ms[STATE_IDLE])                                                                  \
    X(LOW, state_ms[STATE_LOW])                                                                    \
    X(BUSY, state_ms[STATE_BUSY])                                                                  \
    X(GPU_HELD, gpu_held_num)                                                                      \
    X(GPU_OBSERVED, gpu_observed_num)                                                              \
    X(GPU_IDLE, gpu_state_num[STATE_IDLE])                                                         \
    X(GPU_LOW, gpu_state_num[STATE_LOW])                                                           \
    X(GPU_BUSY, gpu_state_num[STATE_BUSY])                                                         \
    X(GPU_U, gpu_u_num)                                                                            \
    X(FLAGS, flags)                                                                                \
    X(COST, cost)                                                                                  \
    X(USED, category[CATEGORY_USED])                                                               \
    X(SLACK, category[CATEGORY_SLACK])                                                             \
    X(HELD_IDLE, category[CATEGORY_HELD_IDLE])                                                     \
    X(EMPTY, category[CATEGORY_EMPTY])                                                             \
    X(STRANDED, category[CATEGORY_STRANDED])                                                       \
    X(UNPARTITIONED, category[CATEGORY_UNPARTITIONED])                                             \
    X(CORDONED, category[CATEGORY_CORDONED])                                                       \
    X(STARTING, category[CATEGORY_STARTING])                                                       \
    X(UNHEALTHY, category[CATEGORY_UNHEALTHY])                                                     \
    X(UNOBSERVED, category[CATEGORY_UNOBSERVED])                                                   \
    X(UNATTRIBUTED, category[CATEGORY_UNATTRIBUTED])                                               \
    X(MEM_MAX, mem_max_bytes)                                                                      \
    X(MEM_SEEN, mem_seen_ms)                                                                       \
    X(MEM_BYTE_MS, mem_byte_ms)                                                                    \
    X(ENERGY, energy_mj)                                                                           \
    X(GENERATION_TOKENS, work[WORK_GENERATION_TOKENS])                                             \
    X(PROMPT_TOKENS, work[WORK_PROMPT_TOKENS])                                                     \
    X(REQUESTS, work[WORK_REQUESTS])
#define COLD_COLUMN_TABLE(X)                                                                       \
    X(E, e)                                                                                        \
    X(SM_SEEN, measure_seen_ms[MEASURE_SM])                                                        \
    X(TENSOR_SEEN, measure_seen_ms[MEASURE_TENSOR])                                                \
    X(DRAM_SEEN, measure_seen_ms[MEASURE_DRAM])                                                    \
    X(SM, measure[MEASURE_SM])                                                                     \
    X(TENSOR, measure[MEASURE_TENSOR])                                                             \
    X(DRAM, measure[MEASURE_DRAM])                                                                 \
    X(MEM_TOTAL, mem_total_bytes)
enum row_column {
#define X(name, field) COLUMN_##name,
    HOT_COLUMN_TABLE(X)
#undef X
        HOT_COLUMNS,
    COLD_COLUMNS_BEFORE = HOT_COLUMNS - 1, /* so that the next one follows */
#define X(name, field) COLUMN_##name,
    COLD_COLUMN_TABLE(X)
#undef X
        ROW_COLUMNS
};
_Static_assert((int)COLUMN_UNATTRIBUTED - (int)COLUMN_USED == CATEGORY_COUNT - 1,
               "a column for each category, in their order");

/* A histogram of each row, without the bins that are 0: `count` bins from `first` on, of which the
 * first holds `least`, and the others stand in `bins` from `at` on. */
struct row_histogram {
    const int64_t *first, *count, *least, *at; /* [row] */
    const int64_t *bins;
};

/* The rows of one holder on one slot with the same facts, or of nobody: rows [from, from + n) of
 * the columns, hours ascending. */
struct day_series {
    struct row_key key; /* hour: of the first row. Where it is held, pod and uid are some name … */
    struct str pod;     /* … and this is the pod's */
    struct row_facts facts;
    uint32_t hours; /* n bits: of the day, that have a row */
    size_t from, n;
    int64_t *const *columns; /* [enum row_column][row] */
    uint64_t zero;           /* bit c: column c is known to be all 0 */
    struct row_histogram u;  /* the histogram of u; that of e is not read */
};

/* What the ledger has of a node's UTC day. */
struct node_day {
    int64_t day;                     /* since 1970 */
    const struct day_series *series; /* in order of key, then of hour */
    size_t series_n;
    const struct node_hour *node_hours; /* in order of hour */
    size_t node_hours_n;
    const struct note *notes; /* of the whole window: in a day of their own, without a node */
    size_t notes_n;
};

#endif
