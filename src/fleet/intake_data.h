/* What an intake holds, for the rooms that build facts from it (fleet/records, ledger/). Sources
 * see fleet/intake.h and fleet/objects.h only.
 *
 * Samples of GPU signals lie in *strips*: a strip is one set of labels but for the metric's name,
 * with a column of stamps and a column of values for each signal. All signals of a device come in
 * one scrape and so share their stamps: a sample costs 8 bytes and a stamp is kept once. What does
 * not fit that picture (stamps of their own, out of order) goes to the strip's list of odd samples
 * and is merged when the strip is read (strip_settle). Of a large fleet the older rows are packed
 * while nobody looks at them (strip_pack.c).
 *
 * Series of records (kube-state-metrics, up) say the same for days: they are kept as runs of equal
 * values at equal distances. Loads are added up (fleet/loads.h). */
#ifndef GPUTALLY_FLEET_INTAKE_DATA_H
#define GPUTALLY_FLEET_INTAKE_DATA_H

#include <pthread.h>

#include "fleet/intake.h"
#include "fleet/labels.h"
#include "fleet/loads.h"
#include "fleet/objects.h"
#include "fleet/settings.h"
#include "fleet/signals.h"
#include "fleet/spill.h"
#include "util/frac.h"
#include "util/idmap.h"

/* X(NAME, "metric", "selector", group) */
#define RECORD_TABLE(X)                                                                            \
    X(NODE_INFO, "kube_node_info", "", METRIC_GROUP_KUBE)                                          \
    X(NODE_CREATED, "kube_node_created", "", METRIC_GROUP_KUBE)                                    \
    X(NODE_LABELS, "kube_node_labels", "", METRIC_GROUP_KUBE)                                      \
    X(NODE_UNSCHEDULABLE, "kube_node_spec_unschedulable", "", METRIC_GROUP_KUBE)                   \
    X(NODE_CAPACITY, "kube_node_status_capacity", "resource=~\"nvidia_com_.*|amd_com_gpu\"",       \
      METRIC_GROUP_KUBE)                                                                           \
    X(NODE_ALLOCATABLE, "kube_node_status_allocatable", "resource=~\"nvidia_com_.*|amd_com_gpu\"", \
      METRIC_GROUP_KUBE)                                                                           \
    X(NODE_TAINT, "kube_node_spec_taint", "", METRIC_GROUP_KUBE)                                   \
    X(POD_INFO, "kube_pod_info", "", METRIC_GROUP_KUBE)                                            \
    X(POD_OWNER, "kube_pod_owner", "", METRIC_GROUP_KUBE)                                          \
    X(POD_LABELS, "kube_pod_labels", "", METRIC_GROUP_KUBE)                                        \
    X(POD_ANNOTATIONS, "kube_pod_annotations", "", METRIC_GROUP_KUBE)                              \
    X(POD_SCHEDULED, "kube_pod_status_scheduled_time", "", METRIC_GROUP_KUBE)                      \
    X(POD_START, "kube_pod_start_time", "", METRIC_GROUP_KUBE)                                     \
    X(POD_COMPLETION, "kube_pod_completion_time", "", METRIC_GROUP_KUBE)                           \
    X(POD_PHASE, "kube_pod_status_phase", "phase=~\"Succeeded|Failed\"", METRIC_GROUP_KUBE)        \
    X(POD_REQUESTS, "kube_pod_container_resource_requests",                                        \
      "resource=~\"nvidia_com_.*|amd_com_gpu|.*gpu_milli\"", METRIC_GROUP_KUBE)                    \
    X(POD_INIT_REQUESTS, "kube_pod_init_container_resource_requests",                              \
      "resource=~\"nvidia_com_.*|amd_com_gpu|.*gpu_milli\"", METRIC_GROUP_KUBE)                    \
    X(POD_LIMITS, "kube_pod_container_resource_limits", "resource=\"cpu\"", METRIC_GROUP_HOSTS)    \
    X(POD_INIT_INFO, "kube_pod_init_container_info", "restart_policy=\"Always\"",                  \
      METRIC_GROUP_KUBE)                                                                           \
    X(REPLICASET_OWNER, "kube_replicaset_owner", "", METRIC_GROUP_KUBE)                            \
    X(JOB_OWNER, "kube_job_owner", "", METRIC_GROUP_KUBE)                                          \
    X(NAMESPACE_LABELS, "kube_namespace_labels", "", METRIC_GROUP_KUBE)                            \
    X(NAMESPACE_ANNOTATIONS, "kube_namespace_annotations", "", METRIC_GROUP_KUBE)                  \
    X(NODE_ANNOTATIONS, "kube_node_annotations", "", METRIC_GROUP_KUBE)                            \
    X(QUOTA, "kube_resourcequota",                                                                 \
      "type=\"hard\",resource=~\".*nvidia.*|.*amd.com.*|pods|cpu|requests.cpu\"",                  \
      METRIC_GROUP_KUBE)                                                                           \
    X(UP, "up", "pod!=\"\"", METRIC_GROUP_TARGETS)                                                 \
    X(GPU_INFO, "nvidia_smi_gpu_info", "", METRIC_GROUP_GPU)                                       \
    /* the same metric as POD_REQUESTS, and kept as such: of nodes with GPUs only */               \
    X(HOST_REQUESTS, "kube_pod_container_resource_requests", "resource=~\"cpu|memory\"",           \
      METRIC_GROUP_HOSTS)

enum record_metric {
#define X(name, metric, match, group) RECORD_##name,
    RECORD_TABLE(X)
#undef X
        RECORD_COUNT
};

struct pair {
    name_t name, value;
};

/* n samples of value v at t0, t0 + dt, … */
struct run {
    time_ms t0, dt;
    double v;
    uint32_t n;
};
static inline time_ms run_last(const struct run *run)
{
    return run->t0 + run->dt * (time_ms)(run->n - 1);
}

struct record {
    enum record_metric metric;
    struct pair *labels; /* without __name__ */
    uint32_t labels_n;
    bool unsorted; /* a sample reached back: record_settle() puts them in order */
    struct run *runs;
    size_t n, room;
};
name_t record_label(const struct record *record, name_t name); /* NAME_NONE: not there */
void record_settle(struct record *record);
void record_add(struct record *record, time_ms t, double v);
/* first, last stamp and last value of a settled record that has samples */
static inline time_ms record_first(const struct record *record)
{
    return record->runs[0].t0;
}
static inline time_ms record_last(const struct record *record)
{
    return run_last(&record->runs[record->n - 1]);
}
static inline double record_value(const struct record *record)
{
    return record->runs[record->n - 1].v;
}

struct odd_sample {
    time_ms t;
    int64_t v;
    enum signal signal;
    uint32_t order; /* of coming */
};

/* What the strips of an intake share, where they may be packed. */
struct packing {
    struct spill *spill;
    size_t
        budget_bytes;  /* of plain rows; beyond it they are packed. Half of it is booked at once */
    size_t held_bytes; /* atomic */
    bool used;         /* atomic: some rows were */
};

/* Who the labels of a strip name (facts_holder_labels). NAME_NONE pod: nobody. */
struct holder_labels {
    name_t namespace, pod, container;
    name_t exporter_pod;
};

struct strip {
    pthread_mutex_t lock; /* while sources deliver */
    struct pair *labels;  /* as they came, without __name__: for the carry */
    uint32_t labels_n;
    name_t label[GPU_LABEL_COUNT];
    enum exporter_family family;
    uint32_t ratio_metric; /* bit of a signal: its metric is a UNIT_PERCENT_OR_RATIO one */
    uint32_t rejected;
    /* what a review found (ledger/review.h) */
    uint32_t signals;  /* bit of a signal: it has a column */
    bool percent;      /* the exporter fills the ratio_metric ones with percent */
    bool scaled;       /* its collector fills GPU_UTIL with a ratio */
    bool says;         /* some value of it is one of its device … */
    bool says_percent; /* … or would be if it were percent */
    time_ms last;      /* stamp up to the end of the hours; TIME_MIN: none … */
    struct strip_end {
        time_ms since, t; /* TIME_MIN: no value */
        int64_t v;
    } * ends; /* … and the last value of each column up to there, and since when it stands */
    name_t node;
    struct holder_labels holder;
    /* rows */
    time_ms *t;
    size_t n, room;
    int64_t *column[SIGNAL_COUNT]; /* NULL: no such signal; values as signal_clean gives them */
    size_t filled[SIGNAL_COUNT];   /* rows up to which the column is written */
    name_t metric[SIGNAL_COUNT];   /* the name that the signal came under */
    struct odd_sample *odd;
    size_t odd_n, odd_room;
    /* rows before t[0], which is there as long as sources deliver; none: packed.bytes 0 */
    struct packing *packing; /* NULL: rows are never packed */
    struct spill_ref packed; /* the last chunk, which says where the one before it is */
    size_t packed_rows, packed_samples;
    size_t held_bytes;
    bool loaded; /* the packed rows are among the plain ones … */
    bool same;   /* … and are all of them, as they are */
};
/* n samples of one signal, no stale markers among them; takes the strip's lock as held. */
void strip_append(struct strip *strip, enum signal signal, enum signal_unit unit, const time_ms *t,
                  const double *v, size_t n);
/* One sample as signal_clean gives it (a carry's); one that it cannot give is dropped. */
void strip_put(struct strip *strip, enum signal signal, enum signal_unit unit, time_ms t,
               int64_t v);
void strip_clear(struct strip *strip); /* frees its plain rows */
/* Merge the odd samples in, and fill every column up to n with SIGNAL_ABSENT. Owner thread, as of
 * what follows. */
void strip_settle(struct strip *strip);

/* All rows as plain ones, settled; false: the disk does not give back what was packed. */
bool strip_load(struct strip *strip);
/* Of a strip that was loaded: drop the plain rows, which must be as strip_load left them. What is
 * not packed yet is packed; where nothing of the intake is, nothing is done. */
void strip_unload(struct strip *strip);
/* Plain rows up to t. O(log n). */
size_t strip_rows_until(const struct strip *strip, time_ms t);
/* How many rows a settled strip has, loaded or not. */
static inline size_t strip_rows(const struct strip *strip)
{
    return strip->loaded || !strip->packed.bytes ? strip->n : strip->packed_rows;
}

/* ---- among strip*.c */
#define STRIP_PACK_ROWS 32                             /* that are packed together, at least */
#define STRIP_LAG_ROWS 96                              /* that a signal may be behind the others */
void strip_set_room(struct strip *strip, size_t room); /* for so many rows */
void strip_fill_absent(struct strip *strip, enum signal signal, size_t upto);
void strip_pack_rows(struct strip *strip);
/* Pack what is complete, where there is too much in memory and enough to pack. A signal goes on
 * where the others are, which is the time to look. */
static inline void strip_pack_old(struct strip *strip, enum signal signal)
{
    if (strip->packing && strip->n > STRIP_PACK_ROWS &&
        (strip->filled[signal] == strip->n || strip->n >= STRIP_LAG_ROWS) &&
        __atomic_load_n(&strip->packing->held_bytes, __ATOMIC_RELAXED) >
            strip->packing->budget_bytes)
        strip_pack_rows(strip);
}

struct series {
    uint64_t hash;
    struct strip *strip;      /* a GPU signal's … */
    struct record *record;    /* … or a record's … */
    struct load_series *load; /* … or a load's */
    enum signal signal;
    enum signal_unit unit;
};

/* Objects of lists and watches, kept as facts. Texts are interned. */
struct object_request {
    name_t container, resource; /* as kube-state-metrics spells resources */
    int64_t count;
    bool init, sidecar;
    uint32_t order; /* place among the pod's containers */
};
struct object_pod {
    name_t cluster, namespace, name, uid, node, owner_kind, owner_name;
    time_ms since, until; /* TIME_MIN / TIME_MAX where not known */
    bool finished, pending;
    time_ms created;
    name_t priority;
    struct pair *labels, *annotations;
    uint32_t labels_n, annotations_n;
    struct object_host_request {
        name_t container;
        int64_t mcpu, memory_bytes, limit_mcpu;
    } * host;
    uint32_t host_n;
    struct object_request *requests;
    uint32_t requests_n;
    struct frac fraction; /* num 0: none */
    name_t *devices;      /* UUID or UUID/instance */
    uint32_t devices_n;
};
struct object_node {
    name_t cluster, name, provider_id, internal_ip;
    time_ms created;
    bool unschedulable;
    bool ignored; /* it has the annotation gputally.io/ignore, which says … */
    name_t ignore;
    bool tainted;
    struct pair *labels;
    struct pair *capacity_names;     /* {resource, -} with counts beside */
    int64_t *capacity, *allocatable; /* -1: not given */
    uint32_t labels_n, capacity_n;
    bool watched; /* observed says when; else it is of a list */
    struct observed observed;
};
struct object_owner {
    name_t cluster, namespace, kind, name, owner_kind, owner_name;
};
struct object_quota {
    name_t cluster, namespace, resource; /* as Kubernetes spells it */
    int64_t count;
};
struct object_namespace {
    name_t cluster, name;
    struct pair *labels, *annotations;
    uint32_t labels_n, annotations_n;
};

/* A time at which a cluster was observed (intake_observed). */
struct object_observed {
    name_t cluster;
    struct span span;
};

struct intake_note_entry {
    enum note_kind kind;
    name_t subject, text;
    int64_t count;
};

/* Are there names for this many labels more? What comes beyond is refused and counted. */
bool intake_has_room(const struct intake *intake, size_t labels_n);

struct intake {
    const struct settings *settings;
    struct names *names;
    pthread_mutex_t lock;
    struct arena arena;
    struct series *series;
    size_t series_n, series_room;
    uint32_t *table; /* series + 1 by hash */
    uint32_t table_mask;
    uint64_t seed;
    struct strip **strips;
    size_t strips_n, strips_room;
    uint32_t *strip_table;
    uint32_t strip_mask;
    uint64_t *strip_hash;
    size_t strip_hash_room;
    struct record **records;
    size_t records_n, records_room;
    struct meter **meters;
    size_t meters_n, meters_room;
    struct idmap meter_of; /* hash of spelling and the target's labels -> index of meters */
    struct load_series **loads;
    size_t loads_n, loads_room;
    bool in_order;
    time_ms until; /* where in_order: the end of the hours */
    struct object_pod *pods;
    size_t pods_n, pods_room;
    struct object_node *nodes;
    size_t nodes_n, nodes_room;
    struct object_owner *owners;
    size_t owners_n, owners_room;
    struct object_namespace *namespaces;
    size_t namespaces_n, namespaces_room;
    struct object_quota *quotas;
    size_t quotas_n, quotas_room;
    struct object_observed *observed;
    size_t observed_n, observed_room;
    struct intake_note_entry *notes;
    size_t notes_n, notes_room;
    /* from the carry: jobs (cluster, job) that were seen to rename pod labels */
    struct pair *renamed_jobs;
    size_t renamed_jobs_n, renamed_jobs_room;
    time_ms *carried_stamps; /* observations before the slice */
    size_t carried_stamps_n, carried_stamps_room;
    struct str carry;   /* of the slice before; read once the sources have delivered */
    struct str cluster; /* of series without the label; empty: none */
    uint64_t refused;   /* series over the caps */
    bool by_time;       /* strips that are made now may be packed */
    bool always_by_time;
    struct packing packing;
};

#endif
