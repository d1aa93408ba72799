/* Kubernetes objects as JSON: what `kubectl get … -A -o json` prints or the API answers, as plain
 * views. Lists (kind List, PodList, …), single objects and several documents one after another, of
 * any length: items are cut out of the stream (wire/json_items.h) and parsed one by one.
 *
 * Broken input never stops the reading: an item that is no JSON, lacks its name or is cut off is
 * counted and named by its place, the rest stays. Items of kinds that nobody here knows are counted
 * only, but for their controller, if they have one.
 *
 * Views live during the callback. Absent texts are STR_NONE, absent times TIME_MIN. One thread. */
#ifndef GPUTALLY_WIRE_KUBE_OBJECTS_H
#define GPUTALLY_WIRE_KUBE_OBJECTS_H

#include "util/clock.h"
#include "util/error.h"
#include "util/str.h"

/* An amount of a resource ("2", "100m", "16Gi") in thousandths, rounded up as Kubernetes does. */
struct kube_quantity {
    struct str resource; /* nvidia.com/gpu, memory, … */
    int64_t milli;
};

/* A quantity's text -> thousandths: digits with a fraction, then n u m "" k M G T P E, Ki … Ei or a
 * decimal exponent. False on anything else, negative ones, and above 9.2e18 thousandths. */
bool kube_quantity_parse(struct str text, int64_t *ret_milli);

struct kube_taint {
    struct str key, value, effect;
};

struct kube_node {
    struct str name, uid, provider_id, internal_ip;
    time_ms created;
    bool unschedulable;
    const struct label *labels, *annotations;
    const struct kube_taint *taints;
    const struct kube_quantity *capacity, *allocatable;
    size_t labels_n, annotations_n, taints_n, capacity_n, allocatable_n;
};

struct kube_container {
    struct str name;
    bool init, sidecar;                   /* sidecar: an init container with restartPolicy Always */
    const struct kube_quantity *requests; /* limits where no request stands */
    size_t requests_n;
    int64_t cpu_limit_milli; /* 0: none */
};

struct kube_port {
    struct str name;
    uint16_t number;
};

struct kube_pod {
    struct str namespace, name, uid, node, phase;
    struct str owner_kind, owner_name; /* the controller */
    struct str owner_api, owner_uid;   /* its apiVersion ("batch/v1") */
    struct str priority_class, ip;
    time_ms created;
    time_ms scheduled; /* condition PodScheduled became True */
    time_ms started;   /* status.startTime: the kubelet took it */
    /* Its last container's finishedAt, where it is finished: phase Succeeded or Failed, or all
     * containers ended and nothing starts them again. Without any finishedAt (evicted): since when
     * it is not ready for that reason. */
    time_ms finished;
    time_ms deletion;         /* metadata.deletionTimestamp: the end of its grace period */
    int64_t deletion_grace_s; /* -1: absent */
    const struct label *labels, *annotations;
    const struct kube_container *containers; /* init containers first, in their order */
    const struct str *claims;                /* names of its ResourceClaims, in its namespace */
    const struct kube_port *ports;           /* of its containers */
    size_t labels_n, annotations_n, containers_n, claims_n, ports_n;
};

/* Any other object with a controller; namespace is empty for cluster-wide kinds. */
struct kube_owner {
    struct str namespace, kind, name, owner_kind, owner_name;
    struct str uid, owner_api, owner_uid;
};

struct kube_namespace {
    struct str name;
    const struct label *labels, *annotations;
    size_t labels_n, annotations_n;
};

/* A device of dynamic resource allocation (v1, v1beta1: `basic`). */
struct kube_device {
    struct str name, uuid, parent_uuid, profile, product, type;
};
struct kube_slice {
    struct str name, driver, pool, node;
    int64_t generation; /* of the pool: lower ones are outdated */
    const struct kube_device *devices;
    size_t devices_n;
};

struct kube_allocation {
    struct str request, driver, pool, device; /* admin access takes nothing and is left out */
};
struct kube_consumer {
    struct str name, uid; /* a pod */
};
struct kube_claim {
    struct str namespace, name, uid;
    const struct kube_allocation *allocations;
    const struct kube_consumer *consumers; /* status.reservedFor */
    size_t allocations_n, consumers_n;
};

struct kube_quota {
    struct str namespace, name;
    const struct kube_quantity *hard, *used; /* "requests.nvidia.com/gpu", "pods", … */
    size_t hard_n, used_n;
};

struct kube_priority {
    struct str name, preemption; /* PreemptLowerPriority, Never */
    int64_t value;
    bool global_default;
};

/* What could not be read, wholly or in part. */
struct kube_fault {
    struct str text; /* "item 17 (Pod serving/a): startTime is no time" */
    bool lost;       /* the item is lost; false: only a field of it */
};

/* Callbacks that are NULL are not called (their objects count all the same). */
struct kube_sink {
    void *context;
    void (*node)(void *context, const struct kube_node *node);
    void (*pod)(void *context, const struct kube_pod *pod);
    void (*owner)(void *context, const struct kube_owner *owner);
    void (*namespace)(void *context, const struct kube_namespace *ns);
    void (*slice)(void *context, const struct kube_slice *slice);
    void (*claim)(void *context, const struct kube_claim *claim);
    void (*fault)(void *context, const struct kube_fault *fault);
    void (*quota)(void *context, const struct kube_quota *quota);
    void (*priority)(void *context, const struct kube_priority *priority);
    /* A list has ended, with its version; more: the token that asks for the next piece, empty where
     * this was the last. Where it is NULL, a list that goes on is told as a fault. */
    void (*list)(void *context, struct str version, struct str more);
};

struct kube_counts {
    uint64_t documents, lists, items; /* items: whole ones, of any kind */
    uint64_t nodes, pods, owners, namespaces, slices, claims, quotas, priorities, others;
    uint64_t lost;   /* items that were not readable */
    uint64_t faults; /* fields that were not readable, in items that are kept */
};

struct kube_reader;
struct kube_reader *kube_reader_new(const struct kube_sink *sink);
/* All items are of this kind (not copied), whatever they say of themselves: metadata alone comes as
 * PartialObjectMetadata. Controllers are then told too where they have none above them. */
void kube_reader_kind(struct kube_reader *reader, struct str kind);
/* Bytes in pieces of any size; callbacks come as items are complete. */
void kube_reader_feed(struct kube_reader *reader, const char *p, size_t n);
/* The end of the bytes. ERR_PARSE where there was nothing that Kubernetes could have said (empty,
 * YAML, HTML): the text says what to try. Lost items are no error: see the counts. */
enum err kube_reader_end(struct kube_reader *reader, struct kube_counts *ret, struct error *err);
void kube_reader_free(struct kube_reader *reader); /* NULL is fine */

#endif
