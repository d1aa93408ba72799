/* A node's UTC day, packed: its rows and node-hours as columns. */
#ifndef GPUTALLY_STORE_BLOCK_H
#define GPUTALLY_STORE_BLOCK_H

#include "store/internal.h"

#define BLOCK_ROWS_MAX (1u << 24) /* rows of a node and day; more is a damaged block */

/* Pack rows and node-hours (of one node and day, in the order of row_batch) into `ret`, which is
 * cleared before. New names are put into the dictionary. */
enum err block_pack(struct store *store, const struct row_batch *batch, struct strbuf *ret,
                    struct error *err);
/* Append what was packed to the batch's rows and node-hours. Bytes are not trusted: ERR_STORE. */
enum err block_unpack(struct store *store, struct str packed, struct row_batch *batch,
                      struct error *err);

#endif
