/* The picture of the fleet: GPUs by node as rows, hours as columns (docs/api.md, /api/v1/fleet).
 *
 * {"schema": "gputally.fleet/1", "hours": [RFC 3339 …], "nodes": [{cluster, node, instance_type,
 * pool, "gpus": [{device, model, price_hour, hours, use}]}]}, in order of cluster, node, device.
 * `hours` has a letter for each hour: the category that took most of its money (of its time where
 * no price is known; there E is all that nobody held):
 *
 *     U used  S slack  I held idle  E empty  T stranded  P unpartitioned  C cordoned  B starting
 *     H unhealthy  N unobserved  A unattributed  . no row
 *
 * `use` has a base-36 digit, 0..z for 0..35/35 of use; - not known. A GPU of a week is 336 bytes,
 * so that 10,000 of them stay under 4 MB. FLEET_JSON_FULL adds what a reader without a server to
 * ask wants: `memory` and `power` (digits, of memory_total bytes and of power_top W), `sm` and
 * `tensor` (their activity; not there where no hour has any), and who held the GPU: "runs": [first
 * hour, hours, index into "holders", …] of the one that held most of an hour. */
#ifndef GPUTALLY_REPORT_FLEET_JSON_H
#define GPUTALLY_REPORT_FLEET_JSON_H

#include "query/query.h"

enum fleet_json_detail { FLEET_JSON_BRIEF, FLEET_JSON_FULL };

/* Rows of the query's window that its filters let through; keys are not read. A category lets a row
 * through that has money of it. One pass, on all cores; memory: 2 bytes a GPU and hour (full: up to
 * 6).
 */
enum err fleet_json(struct store *store, const struct query *query, enum fleet_json_detail detail,
                    struct strbuf *out, struct error *err);

#endif
