/* Who holds what on a node at a moment (semantics, section 5): the slots of the node, each with its
 * holders, by labels, then by the device that a pod keeps, then by count. */
#ifndef GPUTALLY_LEDGER_HOLDERS_H
#define GPUTALLY_LEDGER_HOLDERS_H

#include "ledger/device.h"

/* A device in a life of a node: it is there during [since, until). */
struct mount {
    struct device *device;
    int64_t index;
    time_ms since, until;
    time_ms first, last; /* start of the first sample's cover, last stamp */
};

/* Where labels showed a pod: the label runs of one device or instance that name one container of
 * it, in order of time. */
struct seen_place {
    const struct device *device;
    const struct timeline *line;
    name_t instance, container;
    uint32_t *runs; /* into line->labels */
    size_t runs_n, runs_room;
};
struct seen_list {
    struct seen_place *at;
    size_t n, room;
};
struct sightings {
    struct idmap by_pod; /* cluster, namespace, pod -> index of lists */
    struct seen_list *lists;
    size_t n, room;
};

/* Lay devices into the lives of the nodes that are in hand (and give those without records lives
 * from samples); find where labels show pods. The devices are all that these nodes need
 * (ledger/plan.h), in their order; each node is in hand once. One thread. */
void holders_prepare(struct facts *facts, struct devices *devices, struct sightings *sightings);
void sightings_release(struct sightings *sightings);

struct holder {
    name_t namespace, pod, uid, container;
    uint32_t pod_index;   /* POD_NONE: only labels know it */
    uint32_t flag;        /* FLAG_BY_COUNT, FLAG_KEPT_DEVICE or 0 */
    struct frac fraction; /* num 0: a replica, or all of it */
    int64_t times;        /* replicas */
};

struct slot {
    struct device *device; /* NULL: a GPU that sends nothing */
    name_t name;           /* UUID, or unseen-N */
    int64_t index;
    name_t instance, profile;    /* NAME_NONE: the whole device */
    struct frac share;           /* of the device */
    const struct timeline *line; /* NULL: no samples at all */
    bool sampled;                /* some sample covers the moment */
    int64_t replicas;            /* 0: not known to be shared */
    struct holder *holders;
    size_t holders_n, holders_room;
    struct frac taken; /* sum of what the holders need */
    name_t claim;      /* of dynamic resource allocation that took it; NAME_NONE: none */
};

/* What a life of a node needs to have its slots built. */
struct slot_context {
    struct facts *facts;
    const struct sightings *sightings;
    const struct node *node;
    const struct life *life;
    int64_t least_gpus; /* GPUs that the node has at least */
    int64_t replicas;   /* of each shared device; 0: not known */
};
#define MAPPED_BUCKETS 128
/* A finished pod that labels still name at the moment. */
struct late_label {
    name_t namespace, pod;
};
struct slots {
    struct slot *at;
    size_t n, room;
    struct late_label *late;
    size_t late_n, late_room;
    bool whole;        /* some slot is no instance */
    size_t first_free; /* slots before it are taken */
    /* scratch: what is mapped to which pod, in buckets by pod */
    struct mapped *mapped;
    size_t mapped_n, mapped_room;
    uint32_t mapped_first[MAPPED_BUCKETS]; /* index + 1 */
    uint32_t *living; /* pods that hold something on the node, in their order */
    size_t living_n, living_room;
};
void slots_build(struct slots *slots, const struct slot_context *context, time_ms moment);
void slots_release(struct slots *slots);

/* Does the resource count this slot, given whether the node has whole devices? */
bool slot_fits(const struct slots *slots, const struct slot *slot, const struct names *names,
               struct str resource);

/* A holder's part of the slot. */
struct part {
    const struct holder *holder;
    struct frac share; /* of the slot */
    uint32_t flags;
};
/* Parts by holder (parts: room for slot->holders_n), returns how many; *ret_free is what is left.
 * (semantics, section 6: shares inside a device) */
size_t slot_parts(const struct slot *slot, enum share_policy policy, struct part *parts,
                  struct frac *ret_free);

#endif
