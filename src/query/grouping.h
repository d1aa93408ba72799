/* Private to query/query.c: sums of rows added up by the atoms of some keys.
 *
 * Several groupings of one scan share keys and filters. Owned by one thread. */
#ifndef GPUTALLY_QUERY_GROUPING_H
#define GPUTALLY_QUERY_GROUPING_H

#include "query/keys.h"

struct grouping {
    struct keys *keys;
    struct filters *filters;
    struct result *result;           /* its query has the keys; groups come into it */
    bool splits;                     /* a key or filter divides rows by category */
    atom_t (*atoms)[QUERY_KEYS_MAX]; /* [group] */
    size_t groups_room;
    uint32_t *table; /* group + 1; 0: free */
    size_t table_mask;
};
/* A part that passed the filters of rows. */
void grouping_add(struct grouping *grouping, const struct facets *facets,
                  const struct figures *figures);
/* Texts of the groups' keys, and the total. Once, after the last part. */
void grouping_finish(struct grouping *grouping);
void grouping_release(struct grouping *grouping); /* not the result */

#endif
