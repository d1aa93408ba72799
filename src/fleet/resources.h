/* Kubernetes resources that count GPUs, as kube-state-metrics spells them (nvidia_com_gpu,
 * nvidia_com_mig_1g_10gb): which they are, and which slots they count. (semantics, section 5) */
#ifndef GPUTALLY_FLEET_RESOURCES_H
#define GPUTALLY_FLEET_RESOURCES_H

#include "util/frac.h"
#include "util/str.h"

/* GPUs that a node has or a container requests; more is garbage. */
#define RESOURCE_COUNT_MAX 1000000

/* Does it count GPUs, replicas or MIG instances? */
bool resource_is_gpu(struct str resource);
/* The fraction of each GPU that a request names: percent of the cores (HAMi's gpucores),
 * thousandths (…gpu_milli). False where the resource is none of these or the value is out of range.
 */
bool resource_fraction(struct str resource, double value, struct frac *ret);
/* The profile of a MIG resource ("1g_10gb"), STR_NONE for others. */
struct str resource_mig_profile(struct str resource);
/* Is `profile` ("1g.10gb", "1g.10gb+me") the one of that spelling ("1g_10gb")? */
bool mig_profile_is(struct str profile, struct str spelled);
/* As kube-state-metrics spells a resource or label: bytes that are not alphanumeric become '_'. */
struct str resource_spell(struct arena *arena, struct str resource);

/* Compute slices of a MIG profile: 2g.10gb -> 2, 1c.3g.20gb -> 1; 1 where it cannot be read. */
int mig_compute_slices(struct str profile);
/* Compute slices of a GPU model: 4 on A30, else 7. */
int mig_model_slices(struct str model);

#endif
