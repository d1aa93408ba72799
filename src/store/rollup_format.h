/* What rollup_pack.c and rollup_nodes.c share. Private to these two. */
#ifndef GPUTALLY_STORE_ROLLUP_FORMAT_H
#define GPUTALLY_STORE_ROLLUP_FORMAT_H

#include "store/group.h"
#include "store/internal.h"

static const struct runs no_runs = {NULL, 0};

/* The next column as names: those of items `item_size` bytes apart, `at` bytes into each; values:
 * room for n. False where it is none, or names what is not known. */
bool rollup_get_names(const struct store *store, struct group_reader *group, void *items, size_t n,
                      size_t item_size, size_t at, int64_t *values);
/* A copy of a packed value with the slack that columns want; the caller frees. */
char *rollup_with_slack(struct str packed);

#endif
