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
#include "store/row_columns.h"

#define BLOCK_ROWS_MAX (1u << 20) /* rows of a node and day; more is a damaged block */
#define BLOCK_STRINGS_MAX (1u << 22)

struct ZSTD_DCtx_s;

struct series {
    struct row_key key; /* hour 0 */
    struct row_facts facts;
    uint32_t hours; /* bit h: a row of hour h of the day; as many rows as bits */
    uint32_t share; /* parts of share_den that most rows have: weighted = wall time x share */
    uint32_t pod;   /* of block.strings, from 1; 0: unheld */
};

/* strings.c: a list of texts, packed; in the order of adding, each once; indexes from 1. */
struct strings {
    struct str *texts;
    size_t n, room;
};

/* A block laid open. All memory is the block's, and is used again by the next block. */
struct block {
    int64_t day;
    name_t cluster, node;
    struct series *series;
    uint32_t *starts;              /* [series_n + 1]: first row */
    uint8_t *hours;                /* [row]: hour of the day */
    int64_t *columns[ROW_COLUMNS]; /* [row] */
    uint64_t zero;                 /* bit c: column c is known to be all 0 */
    struct node_hour node_hours[24];
    size_t series_n, rows_n, node_hours_n;
    /* room and scratch */
    size_t series_room, rows_room;
    int64_t *scratch; /* 4 x rows_room */
    int64_t *bins;    /* of a histogram */
    size_t bins_room;
    uint64_t rate[24]; /* predict.c: money x 2^24 for a ms of a GPU, by hour */
    struct arena texts;
    struct strings strings; /* in `texts` */
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
    BLOCK_NAMES_PODS,      /* all but uids, which are some name */
    BLOCK_NAMES_WORKLOADS, /* pods and uids are some name */
    BLOCK_NAMES_KINDS,     /* likewise, and workloads only their kind (Job) */
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
/* The cold columns, and what u was (NULL: nobody asks). Valid until the next call. */
enum err block_columns(struct store *store, struct block *block, struct row_histogram *ret_u,
                       struct error *err);
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

/* strings.c */
uint32_t strings_add(struct strings *strings, struct str text);
void strings_pack(const struct strings *strings, struct strbuf *out);
/* In place of what `ret` holds. Texts lie in `arena`. *zstd is made on first use, and used again.
 */
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
