/* What hosts, workloads and namespaces did, by UTC day: packed columns beside the ledger's blocks.
 */
#include "store/internal.h"

enum err store_read_machine_hours(struct store *store, struct span hours,
                                  store_machine_hours_fn each, void *context, struct error *err)
{
    (void)store, (void)hours, (void)each, (void)context, (void)err;
    return ERR_OK;
}

enum err store_read_workload_hours(struct store *store, struct span hours,
                                   store_workload_hours_fn each, void *context, struct error *err)
{
    (void)store, (void)hours, (void)each, (void)context, (void)err;
    return ERR_OK;
}

enum err store_read_namespace_hours(struct store *store, struct span hours,
                                    store_namespace_hours_fn each, void *context, struct error *err)
{
    (void)store, (void)hours, (void)each, (void)context, (void)err;
    return ERR_OK;
}
