/* A lens: what of the ledger a reader of a handle sees. It sits below every reader, so that no
 * query, rule or export can see past it.
 *
 * Through a lens there are the rows of certain teams and namespaces, and what belongs to these
 * alone:
 *  - rows, and sums of rows: of one of the teams, or in one of the namespaces; rows that nobody
 *    holds belong to nobody;
 *  - hours of nodes: of nodes that such a row of the hour is on, with their price, but without what
 *    was booked; none where hours of nodes are read by themselves, and none in sums;
 *  - hours of workloads: in one of the namespaces, or of a workload whose rows were read before
 *    through the same lens; hours of namespaces: in one of the namespaces;
 *  - hours of GPUs: of those that such rows are on, in hours in which all rows of the GPU are such;
 *    of their other hours only that they were up (store/lens_hours.h);
 *  - no hours of hosts, and no notes: they speak of everybody.
 *
 * One thread, that of the handle. */
#ifndef GPUTALLY_STORE_LENS_H
#define GPUTALLY_STORE_LENS_H

#include "store/scan.h"

struct store_lens {
    const name_t *teams, *namespaces; /* ids of the store's names */
    size_t teams_n, namespaces_n;
    /* workloads whose rows were seen: a set of hashes */
    uint64_t *seen;
    size_t seen_n, seen_mask;
};
void store_lens_release(struct store_lens *lens); /* what it has seen; the rest is the owner's */

/* From here on, outside of reads; NULL: everything is seen. Not for handles that write. */
void store_set_lens(struct store *store, struct store_lens *lens);

/* For the store's readers. lens NULL: true. */
bool lens_passes(const struct store_lens *lens, const struct row_key *key,
                 const struct row_facts *facts);
bool lens_passes_namespace(const struct store_lens *lens, name_t namespace);
void lens_saw(struct store_lens *lens, const struct row_key *key, const struct row_facts *facts);
/* A scan as it is through a lens: `through` gets the callbacks; it and `looking` live as long. */
struct lens_looking {
    const struct scan *scan;
    const struct store_lens *lens;
};
void lens_scan(const struct store_lens *lens, const struct scan *scan, struct lens_looking *looking,
               struct scan *through);
/* Take out of a batch, or of a node's day, what does not pass. */
void lens_cut(struct store_lens *lens, struct row_batch *batch);
void lens_cut_day(struct store_lens *lens, int64_t day, struct day_series *series, size_t *n,
                  struct node_hour *hours, size_t *hours_n);
bool lens_passes_workload(const struct store_lens *lens, const struct workload_hour *hour);

#endif
