/* The part of the books that is not of ledger rows: hosts, what workloads did beside their GPUs,
 * namespaces. */
#ifndef GPUTALLY_INSIGHT_BOOKS_LOAD_H
#define GPUTALLY_INSIGHT_BOOKS_LOAD_H

#include "insight/books.h"
#include "util/idmap.h"

/* Fill the hosts of the nodes and the loads of the workloads that the rows told of, and add the
 * namespaces. workloads: their indexes by cluster, namespace and name. O(hours) */
enum err books_read_loads(struct books *books, const struct idmap *workloads, struct store *store,
                          struct span window, struct error *err);

#endif
