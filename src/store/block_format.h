/* What block.c, block_series.c and block_pack.c must agree on: the columns of series and
 * node-hours, in the order in which they are packed. Private to these three. */
#ifndef GPUTALLY_STORE_BLOCK_FORMAT_H
#define GPUTALLY_STORE_BLOCK_FORMAT_H

#include "store/block.h"
#include "store/group.h"

#define BLOCK_FORMAT                                                                               \
    2 /* the byte, BLOCK_CHECK_BYTES of what follows, and that; format 1: unchecked */
#define BLOCK_CHECK_BYTES 4
#define HOT_GROUP_COLUMNS (HOT_COLUMNS + 2)                    /* dominant, unbalanced */
#define COLD_GROUP_COLUMNS (ROW_COLUMNS - HOT_COLUMNS + 2 * 4) /* two histograms */

/* Of the bytes after it: SQLite keeps no checksums, and a byte that changes how a row's cost is
 * split still adds up. */
void block_check(struct str bytes, char ret[BLOCK_CHECK_BYTES]);

/* block_series.c. Each takes its part off the front of `in`; false where it is damaged. */
bool block_read_series(struct store *store, struct block *block, enum block_names names,
                       struct str *in); /* block->strings are there */
bool block_skip_series(struct block *block, struct str *in);
bool block_read_node_hours(const struct store *store, struct block *block, struct str *in);

enum series_column {
    SERIES_DEVICE,
    SERIES_INSTANCE,
    SERIES_NAMESPACE,
    SERIES_CONTAINER,
    SERIES_MODEL,
    SERIES_OWNER,
    SERIES_INSTANCE_TYPE,
    SERIES_POOL,
    SERIES_REGION,
    SERIES_CLOUD,
    SERIES_CAPACITY,
    SERIES_TYPE,
    SERIES_WORKLOAD, /* index of its text in the block */
    SERIES_POD,      /* less the workload's */
    SERIES_UID,      /* less the pod's */
    SERIES_FIRST_HOUR,
    SERIES_HOUR_COUNT,
    SERIES_HOLES,
    SERIES_SHARE,
    SERIES_COLUMNS,
};

enum node_hour_column {
    NODE_HOUR_HOUR,
    NODE_HOUR_INSTANCE_TYPE,
    NODE_HOUR_POOL,
    NODE_HOUR_REGION,
    NODE_HOUR_CLOUD,
    NODE_HOUR_CAPACITY,
    NODE_HOUR_PRICE,
    NODE_HOUR_UP,
    NODE_HOUR_BOOKED, /* less price x up time */
    NODE_HOUR_GPUS,
    NODE_HOUR_FLAGS,
    NODE_HOUR_SOURCE,
    NODE_HOUR_COLUMNS,
};

static inline int64_t node_hour_booked(const struct node_hour *hour)
{
    if (hour->price < 0 || hour->up_ms < 0 || hour->up_ms > HOUR_MS)
        return 0;
    wide_t product = (wide_t)hour->price * hour->up_ms;
    return (int64_t)((product + HOUR_MS / 2) / HOUR_MS);
}

#endif
