/* What the filters of a report let through, for what is worked out from the whole ledger (findings,
 * the idle scan): rules must read everything, since a node's other GPUs and a GPU's other holders
 * decide what is said of one of them; what comes out is then narrowed to what rows of the filters
 * are about. */
#ifndef GPUTALLY_INSIGHT_NARROW_H
#define GPUTALLY_INSIGHT_NARROW_H

#include "insight/finding.h"
#include "query/query.h"

struct narrow;

/* The window and filters of the query; its keys are not read. Two queries; one thread. */
enum err narrow_read(struct store *store, const struct query *query, struct narrow **ret,
                     struct error *err);
void narrow_free(struct narrow *narrow); /* NULL is fine */

/* Has the GPU a row that passes? narrow NULL: yes. O(log of GPUs and holders). */
bool narrow_has_gpu(const struct narrow *narrow, struct str cluster, struct str node,
                    struct str gpu);

/* Leaves findings that save money on rows that pass, or, where they save none, whose subject has
 * such rows; likewise refusals. Each keeps the money of its whole subject. narrow NULL: all stay.
 */
void narrow_findings(const struct narrow *narrow, struct findings *findings);

#endif
