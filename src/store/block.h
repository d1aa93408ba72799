/* A node's UTC day, packed: its rows as series and columns, and its node-hours.
 *
 * Rows of one holder on one slot with the same facts are a *series*: written once, with a bit for
 * each hour that it has a row in. Rows lie series by series, hours ascending; each field is a
 * column (column.h) of what differs from a prediction that the columns before it allow. The columns
 * come in two halves: reports read the first and never unpack the second.
 *
 *   format, counts | series | node-hours | hot columns | cold columns
 *
 * Names that come again day after day (nodes, devices, teams, …) are ids of the dictionary; pods,
 * their uids and workloads come and go with their days, and stand in the block itself. */
#ifndef GPUTALLY_STORE_BLOCK_H
#define GPUTALLY_STORE_BLOCK_H

#include "store/column.h"
#include "store/figures.h"
#include "store/internal.h"

#define BLOCK_ROWS_MAX (1u << 20) /* rows of a node and day; more is a damaged block */
#define BLOCK_STRINGS_MAX (1u << 22)

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

struct series {
    struct row_key key; /* hour 0 */
    struct row_facts facts;
    uint32_t hours; /* bit h: a row of hour h of the day; as many rows as bits */
    uint32_t share; /* parts of share_den that most rows have: weighted = wall time x share */
};

/* A block laid open. All memory is the block's, and is used again by the next block. */
struct block {
    int64_t day;
    name_t cluster, node;
    struct series *series;
    uint32_t *starts;              /* [series_n + 1]: first row */
    uint8_t *hours;                /* [row]: hour of the day */
    int64_t *columns[ROW_COLUMNS]; /* [row] */
    struct node_hour node_hours[24];
    size_t series_n, rows_n, node_hours_n;
    /* room and scratch */
    size_t series_room, rows_room;
    int64_t *scratch;  /* 4 x rows_room */
    uint64_t rate[24]; /* predict.c: money x 2^24 for a ms of a GPU, by hour */
    struct arena texts;
    struct ZSTD_DCtx_s *zstd;
    struct strbuf bytes; /* of the packed block, with slack */
    struct str cold;     /* not yet unpacked */
};
void block_release(struct block *block);
void block_reserve(struct block *block, size_t series_n, size_t rows_n);
static inline struct runs block_runs(const struct block *block)
{
    return (struct runs){block->starts, block->series_n};
}
static inline bool series_is_held(const struct series *series)
{
    return series->key.pod != NAME_NONE;
}

/* What of the names that stand in the block is wanted in memory. */
enum block_names {
    BLOCK_NAMES_ALL,
    BLOCK_NAMES_PODS,  /* all but uids, which are some name */
    BLOCK_NAMES_KINDS, /* pods and uids are some name, workloads only their kind (Job) */
};

/* Pack rows and node-hours (of one node and day, in the order of row_batch) into `ret`, which is
 * cleared before. New names are put into the dictionary. */
enum err block_pack(struct store *store, const struct row_batch *batch, struct strbuf *ret,
                    struct error *err);
/* Lay open series, node-hours and hot columns. Bytes are not trusted: ERR_STORE. */
enum err block_open(struct store *store, struct block *block, int64_t day, name_t cluster,
                    name_t node, struct str packed, enum block_names names, struct error *err);
/* Node-hours only. COLUMN_PADDING bytes behind `packed` must be readable. */
enum err block_open_node_hours(struct store *store, struct block *block, int64_t day,
                               name_t cluster, name_t node, struct str packed, struct error *err);
/* The rest, and all rows (with an hour bit in `hours`) and node-hours appended to the batch, in its
 * order. */
enum err block_rows(struct store *store, struct block *block, uint32_t hours,
                    struct row_batch *batch, struct error *err);
/* The rows of a series that lie in `hours` (bits without holes): [from, to). */
void block_rows_of(const struct block *block, size_t series, uint32_t hours, size_t *ret_from,
                   size_t *ret_to);
/* Add up rows [from, to) of a series; figures need not be zero. */
void block_sum(const struct block *block, size_t series, size_t from, size_t to,
               struct figures *sum);

/* verify.c: the rows of each hour of an open block against the node-hour of it. */
enum err block_check_balance(struct store *store, const struct block *block, struct error *err);

/* strings.c: a list of texts, packed; in the order of adding, each once; indexes from 1. */
struct strings {
    struct str *texts;
    size_t n, room;
};
uint32_t strings_add(struct strings *strings, struct str text);
void strings_pack(const struct strings *strings, struct strbuf *out);
/* Texts lie in `arena`. *zstd is made on first use, and used again. */
struct ZSTD_DCtx_s;
bool strings_unpack(struct str *in, struct arena *arena, struct ZSTD_DCtx_s **zstd,
                    struct strings *ret);
bool strings_skip(struct str *in, struct arena *arena, struct ZSTD_DCtx_s **zstd);
void strings_release_zstd(struct ZSTD_DCtx_s *zstd); /* NULL is fine */

/* predict.c: what a column probably is, from those before it; false: nothing (0). */
bool block_predict(const struct block *block, enum row_column column, int64_t *ret);
void block_predict_begin(struct block *block); /* before the first column; needs node_hours */
/* Which category (not used) is the rest of a row's cost, when nothing better is known. */
void block_predict_dominant(const struct block *block, int64_t *ret);
/* The histogram's bin that the mean lies in. */
void block_predict_bin(const struct block *block, enum row_column integral, int64_t *ret);

#endif
