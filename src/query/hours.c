#include "query/hours.h"

#include "query/window.h"
#include "query/zone.h"

enum err query_device_hours(struct store *store, struct span span, enum device_hour_fields fields,
                            store_device_hours_fn each, void *context, struct error *err)
{
    return store_read_device_hours(store, span, fields, each, context, err);
}

enum err query_node_hours(struct store *store, struct span span, store_node_hours_fn each,
                          void *context, struct error *err)
{
    return store_read_node_hours(store, span, each, context, err);
}

enum err query_rows(struct store *store, struct span span, store_row_fn each, void *context,
                    struct error *err)
{
    return store_read_rows(store, span, each, context, err);
}

enum err query_nodes(struct store *store, struct span span, const struct store_node_reader *reader,
                     struct error *err)
{
    return store_read_nodes(store, span, reader, err);
}

enum err query_machine_hours(struct store *store, struct span span, store_machine_hours_fn each,
                             void *context, struct error *err)
{
    return store_read_machine_hours(store, span, each, context, err);
}

enum err query_workload_hours(struct store *store, struct span span, store_workload_hours_fn each,
                              void *context, struct error *err)
{
    return store_read_workload_hours(store, span, each, context, err);
}

enum err query_namespace_hours(struct store *store, struct span span, store_namespace_hours_fn each,
                               void *context, struct error *err)
{
    return store_read_namespace_hours(store, span, each, context, err);
}

enum err query_complete_days(time_ms until, const char *tz, int n, struct span *ret,
                             struct error *err)
{
    const struct zone *zone;
    enum err code = zone_load(tz, &zone, err);
    if (code)
        return code;
    time_ms to = day_start(until, tz);
    for (int i = n; i-- > 0;) {
        time_ms from = day_start(to - 1, tz);
        ret[i] = (struct span){from, to};
        to = from;
    }
    return ERR_OK;
}
