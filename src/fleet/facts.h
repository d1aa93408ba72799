/* The facts of a slice: which nodes lived when, which pods held what, who owns them. Built once
 * from an intake's records and objects, then read by all threads.
 *
 * facts_new builds what Kubernetes says; devices (ledger/device.h) are built beside, and then tell
 * facts_nodes_from_samples about nodes that no record names. */
#ifndef GPUTALLY_FLEET_FACTS_H
#define GPUTALLY_FLEET_FACTS_H

#include "fleet/intake_data.h"
#include "fleet/owners.h"
#include "util/idmap.h"
#include "util/spans.h"

/* The observations of a cluster: the scrapes of its nodes and pods. */
struct watch {
    name_t cluster;
    time_ms *stamps;
    size_t n, room;
    struct spans known; /* time that some record covers */
    /* stamps ([t - 1, t) each) at which the cluster's records say such things at all */
    struct spans requests_known, taints_known, priorities_known, quotas_known;
    bool objects, quota_objects; /* objects say such things whenever the cluster is observed */
};
/* Does the cluster say anything of the kind in an hour (stamps: one of the above)? */
bool watch_says(const struct watch *watch, const struct spans *stamps, time_ms hour);
/* A record at t covers the time back to the observation before it where that is at most node_break
 * away, else one step. (semantics, section 6) */
time_ms watch_start(const struct watch *watch, const struct settings *settings, time_ms t);

/* One life of a node: [up, down). */
struct life {
    time_ms up, down, first, last;
    time_ms created;                   /* as Kubernetes recorded it; TIME_MIN: not known */
    name_t provider_id, instance_type; /* of the first record that says so */
    uint32_t flags;                    /* FLAG_UP_SAMPLES */
    struct label *labels;              /* of the node in this life (last known); views of names */
    size_t labels_n;
    struct node_attributes attributes;
    struct str cloud;
    struct mount *mounts; /* made by the ledger */
    size_t mounts_n;
};

struct resource_max {
    name_t resource;
    int64_t count;
};
/* As many slots of a resource as node capacity exceeds allocatable, over a range. */
struct shortage {
    struct span span;
    int64_t missing;
    name_t resource;
};
struct node {
    name_t cluster, name;
    bool recorded; /* Kubernetes knows it */
    bool watched;  /* … by a watch: its lives come from objects */
    struct life *lives;
    size_t lives_n, lives_room;
    struct spans cordoned;
    struct spans tainted;       /* stamps at which something keeps pods away, conditions apart */
    struct shortage *shortages; /* in order of time, then resource */
    size_t shortages_n, shortages_room;
    struct resource_max *capacity; /* most seen, by resource */
    size_t capacity_n, capacity_room;
    const struct watch *watch;
    bool in_hand;   /* of the nodes that are being booked (ledger/plan.h) */
    uint32_t *pods; /* that hold GPUs here by request or by label, in order of (since, namespace,
                       name, uid); made by facts_pods_on_nodes */
    size_t pods_n, pods_room;
};

struct pod_request {
    name_t container, resource;
    int64_t count;
};
/* What a container asks of the host; -1: nothing. */
struct pod_host_request {
    name_t container;
    int64_t mcpu, memory_bytes, limit_mcpu;
};
struct pod {
    name_t cluster, namespace, name, uid, node;
    name_t owner_kind, owner_name;
    name_t priority;      /* its priority class */
    time_ms since, until; /* outside of which it is known not to hold anything */
    struct spans not_holding, counted;
    struct pod_request *requests; /* in order of (container, resource), settled */
    size_t requests_n, requests_room;
    int64_t requested;    /* sum of the counts */
    struct frac fraction; /* num 0: whole GPUs */
    struct label *labels, *annotations;
    size_t labels_n, annotations_n;
    const name_t *devices; /* DRA */
    size_t devices_n;
    struct spans pending; /* it had no node */
    struct pod_host_request *host;
    size_t host_n, host_room;
    bool named; /* labels of samples name it */
    /* while building */
    time_ms first, last, scheduled, start, end;
    bool from_object, object_finished;
    struct pod_request *initial;
    size_t initial_n, initial_room;
    name_t *sidecars;
    size_t sidecars_n, sidecars_room;
};
#define POD_NONE UINT32_MAX

/* A quota on a resource that counts GPUs. */
struct quota {
    name_t cluster, namespace, resource; /* resource without "requests." or "limits." */
    const struct record *record;         /* NULL: as an object says, at any time … */
    int64_t count;                       /* … so many */
};

struct facts {
    const struct settings *settings;
    struct span hours; /* that are booked */
    struct names *names;
    struct arena arena;
    struct node *nodes; /* in order of (cluster, name) once facts_sort_nodes was called */
    size_t nodes_n, nodes_room;
    struct idmap node_by_name; /* cluster, name */
    struct pod *pods;
    size_t pods_n, pods_room;
    struct idmap pod_by_key; /* cluster, namespace, name, uid */
    struct idmap pods_named; /* cluster, namespace, name -> index of by_name */
    struct pod_list {
        uint32_t *pods; /* in order of (since, uid) */
        size_t n, room;
    } * by_name;
    size_t by_name_n, by_name_room;
    struct idmap pod_node; /* cluster, pod name -> node name */
    struct idmap address;  /* cluster, internal ip -> node name */
    struct idmap owner_of; /* cluster, namespace, kind, name -> index of owners */
    struct pair *owners;   /* {kind, name} */
    size_t owners_n, owners_room;
    struct idmap namespace_by_name; /* cluster, name -> index of intake's namespaces */
    struct quota *quotas;           /* of GPUs */
    size_t quotas_n, quotas_room;
    struct namespace_facts {
        struct label *labels, *annotations;
        size_t labels_n, annotations_n;
    } * namespaces;
    size_t namespaces_n, namespaces_room;
    struct watch **watches;
    size_t watches_n, watches_room;
    struct idmap watch_of;         /* cluster -> index of watches */
    struct idmap recorded_cluster; /* clusters in which Kubernetes records nodes */
    struct idmap renamed_jobs;     /* cluster, job */
    struct idmap own_targets;      /* cluster, job, instance, pod */
};

/* hours: what will be booked; objects of lists stand for all of it. */
struct facts *facts_new(struct intake *intake, struct span hours);
void facts_free(struct facts *facts);

struct watch *facts_watch(struct facts *facts, name_t cluster); /* made where it is not there */
struct node *facts_node(struct facts *facts, name_t cluster, name_t name); /* likewise */
struct node *facts_find_node(struct facts *facts, name_t cluster, name_t name);

/* The pod of this name that holds something at t: false where none does. *ret is POD_NONE where
 * Kubernetes never mentioned the name: labels are then taken at their word. */
bool facts_incarnation(const struct facts *facts, name_t cluster, name_t namespace, name_t pod,
                       time_ms t, uint32_t *ret);

/* Did a pod of this name begin at or before t? (Where none holds anything at t, it has ended.) */
bool facts_began(const struct facts *facts, name_t cluster, name_t namespace, name_t pod,
                 time_ms t);

/* Kind and name of the topmost controller of a pod (POD_NONE: Pod/NAME). */
name_t facts_workload(struct facts *facts, uint32_t pod, name_t pod_name);
void facts_owner_query(const struct facts *facts, uint32_t pod, name_t cluster, name_t namespace,
                       name_t workload, struct owner_query *ret);

/* The lives of a node without records: from the stamps of its devices' samples (sorted) and the
 * start of what each covers. */
void facts_life_from_samples(struct facts *facts, struct node *node, const time_ms *t,
                             const time_ms *start, size_t n);
/* GPUs that quotas allow a namespace by the last observation in (hours.from, hours.to]; of several
 * quotas on a resource the least, resources added up; -1: none. */
int64_t facts_gpu_quota(const struct facts *facts, name_t cluster, name_t namespace,
                        struct span hours);
/* Does it ask for, or was it given, anything that counts GPUs? */
static inline bool pod_wants_gpus(const struct pod *pod)
{
    return pod->requests_n || pod->named || pod->devices_n;
}
/* Fill node->pods, once pods are marked as named. */
void facts_pods_on_nodes(struct facts *facts);

/* Section 5, rule 1: is a bare pod label the exporter's own? For strips: what its labels mean. */
struct holder_labels facts_holder_labels(const struct facts *facts, const struct strip *strip);

/* parts of facts_new, a file each */
void facts_relabel(struct facts *facts, struct intake *intake);
void facts_read_nodes(struct facts *facts, struct intake *intake, struct span hours);
void facts_read_observed(struct facts *facts, struct intake *intake);
void facts_read_node_object(struct facts *facts, const struct object_node *object,
                            struct span hours);
void facts_read_pods(struct facts *facts, struct intake *intake);
void facts_read_quotas(struct facts *facts, struct intake *intake);
/* Add the stamps of a record, [t - 1, t) each; of a run all that lies between. */
void facts_stamps(const struct facts *facts, const struct record *record, struct spans *out);
struct label *facts_labels(struct facts *facts, const struct pair *pairs, size_t n, struct str head,
                           size_t *ret_n);
/* A label of a record with exported_ undone. */
name_t facts_label(const struct facts *facts, const struct record *record, const char *name);

#endif
