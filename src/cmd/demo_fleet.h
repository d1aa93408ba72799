/* A small fleet that never was: what `gputally demo` reports on.
 *
 * The fleet is a pure function of its options: which machines there are, which pods hold which GPUs
 * from when to when, and what every GPU does at any instant. The same options give the same fleet
 * on every machine. It tells the stories that real fleets tell: serving that sleeps at night, long
 * training, jobs that starve for data, a notebook that holds a GPU and does nothing, a GPU that
 * nobody can use, an empty machine, a process outside Kubernetes, an exporter that falls silent, a
 * spot machine that comes and goes, pods without an owner, a machine without a price.
 *
 * Times are ms, as in util/clock.h. Everything belongs to the fleet, lives in its arena and is
 * read-only once made: any thread may read it. */
#ifndef GPUTALLY_CMD_DEMO_FLEET_H
#define GPUTALLY_CMD_DEMO_FLEET_H

#include "util/clock.h"
#include "util/memory.h"

#define DEMO_GPUS_MAX 16384
#define DEMO_DAYS_MAX 366

struct demo_options {
    int gpus;           /* rounded up to whole machines: the smallest has 4 */
    struct span window; /* whole hours */
    time_ms step_ms;    /* between two scrapes */
    uint64_t seed;
};

/* What a pod does with its GPUs. */
enum demo_activity {
    DEMO_TRAIN,    /* steady, with a pause for a checkpoint now and then */
    DEMO_STARVED,  /* a kernel always runs, and most of the chip waits for data */
    DEMO_SERVE,    /* follows the day and the week */
    DEMO_NOTEBOOK, /* a burst when it was opened, nothing since */
};
struct demo_work {
    enum demo_activity activity;
    double level;        /* of SM activity, 0..1; when busiest, for DEMO_SERVE */
    double memory;       /* part of the GPU's memory that it takes */
    double tokens_per_s; /* generated at full activity; 0: exports no counters */
};

struct demo_machine {
    const char *instance_type, *region, *zone; /* region "": no cloud knows it */
    const char *model;                         /* as the exporter prints it */
    int gpus, memory_mib;
    double idle_w, limit_w;
};

struct demo_owner {
    const char *kind, *name;
};
struct demo_pod {
    const char *namespace, *name, *uid, *container;
    const char *app, *team;      /* labels; NULL: not labelled */
    struct demo_owner owners[2]; /* its controller first, then that one's */
    int owners_n;
    const struct demo_node *node;
    const char *resource; /* as kube-state-metrics spells it */
    int count;
    struct span held;      /* from admission to the last container's end */
    time_ms created, gone; /* as an object of the API; gone TIME_MAX: it is still there */
    bool completed;        /* it finished; not: it was deleted */
    struct demo_work work;
    uint64_t salt;
};

/* Who used a slot from when to when. */
struct demo_span {
    struct span time;
    const struct demo_pod *pod; /* NULL: a process that Kubernetes does not know */
    const struct demo_work *work;
};
/* What can be held: a whole GPU or a MIG instance of it. */
struct demo_slot {
    const struct demo_device *device;
    const char *profile; /* NULL: the whole GPU */
    int instance_id;     /* GPU instance id */
    int memory_mib;
    double share; /* of the GPU's power */
    uint64_t salt;
    struct demo_span *spans; /* in order of time, not overlapping */
    size_t spans_n, spans_room;
};
/* Mean power of a device from t on, and its energy counter at t. */
struct demo_energy {
    time_ms t;
    double watts;
    double millijoules;
};
struct demo_device {
    const struct demo_node *node;
    int index;
    const char *uuid;
    struct demo_slot *slots;
    size_t slots_n;
    struct demo_energy *energy; /* in order of time; the first before everything */
    size_t energy_n;
};
struct demo_node {
    const char *name, *address, *uid, *pool;
    int story; /* which machine of the story it is */
    const struct demo_machine *machine;
    bool spot;
    time_ms created;
    struct span up;     /* while the machine is there */
    struct span silent; /* while its exporter is not; empty: never */
    time_ms offset_ms;  /* of its scrapes inside the step */
    struct demo_device *devices;
    size_t devices_n;
    struct demo_slot **slots; /* of all devices, in order of index */
    size_t slots_n;
    int instances; /* how many of the slots are MIG instances */
};

struct demo_fleet {
    struct demo_options options;
    struct arena arena;
    struct demo_node *nodes;
    size_t nodes_n;
    struct demo_pod **pods; /* in order of creation of the plan */
    size_t pods_n, pods_room;
    double *day;     /* how busy serving is, by hour from window.from on, 0..1 */
    double *day_sum; /* hours of that up to here; day_n + 1 of them */
    size_t day_n;
};

/* options as documented above; aborts on nonsense, which the command line keeps out. */
struct demo_fleet *demo_fleet_new(const struct demo_options *options);
void demo_fleet_free(struct demo_fleet *fleet); /* NULL is fine */

/* What a scrape of a slot at t says. Ratios in 1e-6. span: the one of the slot that has t, NULL:
 * nobody uses it. */
struct demo_reading {
    int32_t util_percent; /* GPU_UTIL */
    int32_t engine, sm, tensor, dram;
    int32_t memory_mib; /* used */
};
void demo_slot_read(const struct demo_fleet *fleet, const struct demo_slot *slot,
                    const struct demo_span *span, time_ms t, struct demo_reading *ret);

/* Lay the device's energy table (part of demo_fleet_new). */
void demo_device_charge(struct demo_fleet *fleet, struct demo_device *device);

/* Power in mW and the energy counter in mJ at t; *cursor (begin with 0) makes ascending t cheap. */
void demo_device_read(const struct demo_fleet *fleet, const struct demo_device *device, time_ms t,
                      size_t *cursor, int64_t *ret_milliwatts, int64_t *ret_millijoules);

/* Tokens that a pod had generated by t. */
int64_t demo_pod_tokens(const struct demo_fleet *fleet, const struct demo_pod *pod, time_ms t);

/* A number of 64 bits that looks random, of three. */
uint64_t demo_hash(uint64_t a, uint64_t b, uint64_t c);

#endif
