/* Hours as the ledger has them, for whoever looks at more than sums (insight/). */
#ifndef GPUTALLY_QUERY_HOURS_H
#define GPUTALLY_QUERY_HOURS_H

#include "store/store.h"

/* The store's readers under the name that insight/ may use; see store/store.h. O(hours). */
enum err query_device_hours(struct store *store, struct span span, enum device_hour_fields fields,
                            store_device_hours_fn each, void *context, struct error *err);
enum err query_node_hours(struct store *store, struct span span, store_node_hours_fn each,
                          void *context, struct error *err);
enum err query_rows(struct store *store, struct span span, store_row_fn each, void *context,
                    struct error *err);

enum err query_nodes(struct store *store, struct span span, const struct store_node_reader *reader,
                     struct error *err);

enum err query_machine_hours(struct store *store, struct span span, store_machine_hours_fn each,
                             void *context, struct error *err);
enum err query_workload_hours(struct store *store, struct span span, store_workload_hours_fn each,
                              void *context, struct error *err);
enum err query_namespace_hours(struct store *store, struct span span, store_namespace_hours_fn each,
                               void *context, struct error *err);

/* The last n complete days of the zone before `until`, oldest first, into ret[n]. A day has the
 * hours that begin in it. */
enum err query_complete_days(time_ms until, const char *tz, int n, struct span *ret,
                             struct error *err);

#endif
