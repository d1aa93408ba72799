/* Dynamic resource allocation: which GPUs a pod's claims were given, and which GPUs a node has.
 *
 *     ResourceSlice   (driver, pool, device) -> UUID, card, node
 *     ResourceClaim   (namespace, name) -> devices; the pods that it is reserved for
 *
 * Objects come in any order; questions are asked once all have come. One thread. */
#ifndef GPUTALLY_SOURCE_KUBE_CLAIMS_H
#define GPUTALLY_SOURCE_KUBE_CLAIMS_H

#include "util/memory.h"
#include "util/names.h"
#include "wire/kube_objects.h"

struct kube_claims;
/* Texts and what is handed out live in texts and arena, which must outlive it. */
struct kube_claims *kube_claims_new(struct names *texts, struct arena *arena);
void kube_claims_free(struct kube_claims *claims); /* NULL is fine */

/* Of a pool's slices the highest generation counts. Of a claim that comes twice the later
 * allocation, and all its pods. */
void kube_claims_add_slice(struct kube_claims *claims, const struct kube_slice *slice);
void kube_claims_add_claim(struct kube_claims *claims, const struct kube_claim *claim);
size_t kube_claims_size(const struct kube_claims *claims); /* devices, claims and uses */

/* The devices of a pod: of the claims that it names itself (named[n]; how a finished pod's are
 * known) and of those that are reserved for it, each once, in the spelling of fleet/objects.h. Adds
 * to *unknown the allocated devices that no slice tells of. */
const struct str *kube_claims_devices(struct kube_claims *claims, const struct kube_pod *pod,
                                      const struct str *named, size_t n, size_t *ret_n,
                                      int64_t *unknown);

/* GPUs of a node by its slices: how many cards would count as the resource (nvidia.com/gpu,
 * amd.com/gpu), were it in the node's capacity. */
int64_t kube_claims_cards(struct kube_claims *claims, struct str node, struct str resource);

#endif
