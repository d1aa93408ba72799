/* Kubernetes views (wire/kube_objects.h) as the objects that an intake takes (fleet/objects.h): the
 * one place that says which field is which. Texts stay views of what was read, arrays are made in
 * the arena. */
#ifndef GPUTALLY_SOURCE_KUBE_VIEWS_H
#define GPUTALLY_SOURCE_KUBE_VIEWS_H

#include "fleet/objects.h"
#include "wire/kube_objects.h"

#define KUBE_ANNOTATION_MAX 256 /* bytes of a value; longer ones are left out */

void kube_view_node(struct arena *arena, const struct kube_node *node, struct str cluster,
                    struct node_object *ret);
/* devices are the names of the pod's claims, to be replaced by what they were given. */
void kube_view_pod(struct arena *arena, const struct kube_pod *pod, struct str cluster,
                   struct pod_object *ret);
/* Those of at most KUBE_ANNOTATION_MAX bytes. */
const struct label *kube_view_annotations(struct arena *arena, const struct label *annotations,
                                          size_t n, size_t *ret_n);

/* What a quota sets at most, resource by resource. */
void kube_view_quota(struct intake *intake, struct str cluster, const struct kube_quota *quota);

/* GPUs that only ResourceSlices publish become the node's capacity, where it names none. */
struct kube_claims;
void kube_view_published(struct arena *arena, struct kube_claims *claims, struct node_object *node);

#endif
