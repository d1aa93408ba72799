/* Kubernetes objects as facts: what a list (kubectl get -o json) or a watch says, handed to an
 * intake. Texts need to live only during the call. A list stands for the whole window: its nodes
 * are up and its pods run throughout, but for what their own times say. What a watch saw says when
 * (struct observed). Times are TIME_MIN where not known. cluster may be empty. Thread-safe (a
 * lock).
 */
#ifndef GPUTALLY_FLEET_OBJECTS_H
#define GPUTALLY_FLEET_OBJECTS_H

#include "fleet/intake.h"

struct resource_count {
    struct str resource; /* as Kubernetes spells it: nvidia.com/gpu, nvidia.com/mig-1g.10gb */
    int64_t count;
};

/* Between which observations something was seen as it is said here. A node that changed comes once
 * for each of its states, in order of time; a pod comes once. */
struct observed {
    time_ms lacked;      /* last observation before it that lacks the object; TIME_MIN: not known */
    time_ms first, last; /* observations of it */
    time_ms gone;        /* first observation after it that lacks the object; TIME_MAX: none yet */
};
/* The times that were observed, of a cluster: instants are spans of 1 ms. Called once a cluster and
 * slice, before or after its objects; spans in order of time. */
void intake_observed(struct intake *intake, struct str cluster, const struct span *spans, size_t n);

struct node_object {
    struct str cluster, name, provider_id, internal_ip;
    time_ms created;
    bool unschedulable;
    bool ignored;      /* it has the annotation gputally.io/ignore, … */
    struct str ignore; /* … which says this */
    bool tainted;      /* taint_keeps_away says so of one of its taints */
    const struct label *labels;
    const struct resource_count *capacity, *allocatable;
    size_t labels_n, capacity_n, allocatable_n;
    const struct observed *observed; /* NULL: of a list */
};
void intake_node(struct intake *intake, const struct node_object *node);
/* Does a taint keep pods away that do not ask for GPUs? Those of conditions, cordons and leaving,
 * which come and go by themselves, do not count. */
bool taint_keeps_away(struct str key, struct str effect);

struct container_object {
    struct str name;
    bool init, sidecar; /* sidecar: an init container with restartPolicy Always */
    const struct resource_count *requests; /* limits count where no request stands */
    size_t requests_n;
    int64_t mcpu, memory_bytes; /* what it asks of the host: 1/1000 CPU and bytes; 0: nothing */
    int64_t limit_mcpu;         /* what it may take at the most; 0: no limit */
};
struct pod_object {
    struct str cluster, namespace, name, uid, node;
    struct str owner_kind, owner_name; /* the controller; empty: none */
    struct str phase, priority_class;
    time_ms created, scheduled, started, finished, deleted;
    const struct label *labels, *annotations;
    const struct container_object *containers; /* init containers first, in their order */
    /* DRA: UUIDs of the GPUs that its claims were given ("UUID/instance", or of a MIG device of
     * which only a ResourceSlice is known "UUID/profile/MIG-UUID"); exact as a label */
    const struct str *devices;
    size_t labels_n, annotations_n, containers_n, devices_n;
    const struct observed *observed; /* NULL: of a list */
};
void intake_pod(struct intake *intake, const struct pod_object *pod);

/* Any object that has a controller: Job -> JobSet, RayCluster -> RayJob, ReplicaSet -> Deployment.
 */
void intake_owner(struct intake *intake, struct str cluster, struct str namespace, struct str kind,
                  struct str name, struct str owner_kind, struct str owner_name);

void intake_namespace(struct intake *intake, struct str cluster, struct str name,
                      const struct label *labels, size_t labels_n, const struct label *annotations,
                      size_t annotations_n);

/* How much of a resource ("requests.nvidia.com/gpu", "pods") a namespace may use. */
void intake_quota(struct intake *intake, struct str cluster, struct str namespace,
                  struct str resource, int64_t count);
#endif
