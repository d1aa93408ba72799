/* Which pod a claim of dynamic resource allocation has put on a GPU, now: what the live view asks
 * where an exporter's labels name no pod. Made for one look. One thread. */
#ifndef GPUTALLY_SERVE_LIVE_CLAIMS_H
#define GPUTALLY_SERVE_LIVE_CLAIMS_H

#include "util/idmap.h"
#include "util/names.h"
#include "util/str.h"

struct live_claims {
    struct names *names; /* NULL: nothing was added */
    struct live_claim {
        name_t namespace, pod;
    } * items;
    size_t n, room;
    struct idmap by_slot; /* (cluster, UUID, instance) -> item */
    struct idmap by_card; /* (cluster, UUID, NAMESPACE/POD) */
};
void live_claims_release(struct live_claims *claims);

/* device: as fleet/objects.h spells it: "UUID", "UUID/instance", or of a MIG device
 * "UUID/PROFILE/MIG-UUID", of which nothing says the instance. */
void live_claims_add(struct live_claims *claims, struct str cluster, struct str device,
                     struct str namespace, struct str pod);
/* The pod that has this GPU or instance. False: no claim says so. */
bool live_claims_pod(const struct live_claims *claims, struct str cluster, struct str uuid,
                     struct str instance, struct str *ret_namespace, struct str *ret_pod);
/* Has a claim put the pod somewhere on this card? */
bool live_claims_has(const struct live_claims *claims, struct str cluster, struct str uuid,
                     struct str namespace, struct str pod);

#endif
