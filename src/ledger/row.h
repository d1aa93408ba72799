/* The ledger row (semantics, section 8): what everything after the ledger reads.
 *
 * Invariants: the categories add up to cost; the rows of a node and hour add up to its node_hour's
 * booked; held rows have a namespace and pod, unheld rows have neither, and type WORKLOAD_NONE.
 * Weighted times are exact rationals: numerator here, denominator share_den (1 for whole GPUs). */
#ifndef GPUTALLY_LEDGER_ROW_H
#define GPUTALLY_LEDGER_ROW_H

#include "fleet/flags.h"
#include "fleet/owners.h"
#include "fleet/prices.h"
#include "util/clock.h"
#include "util/money.h"
#include "util/names.h"

/* X(NAME, "column name in machine formats", "words for people"); the order breaks ties in money */
#define CATEGORY_TABLE(X)                                                                          \
    X(USED, "used", "used")                                                                        \
    X(SLACK, "slack", "slack")                                                                     \
    X(HELD_IDLE, "held_idle", "held idle")                                                         \
    X(EMPTY, "node_idle_empty", "empty")                                                           \
    X(STRANDED, "node_idle_stranded", "stranded")                                                  \
    X(UNPARTITIONED, "node_idle_unpartitioned", "unpartitioned")                                   \
    X(CORDONED, "node_idle_cordoned", "cordoned")                                                  \
    X(STARTING, "node_idle_starting", "starting")                                                  \
    X(UNHEALTHY, "unhealthy", "unhealthy")                                                         \
    X(UNOBSERVED, "unobserved", "unobserved")                                                      \
    X(UNATTRIBUTED, "unattributed", "unattributed")

enum category {
#define X(name, column, words) CATEGORY_##name,
    CATEGORY_TABLE(X)
#undef X
        CATEGORY_COUNT
};
#define CATEGORY_NODE_IDLE_FIRST CATEGORY_EMPTY
#define CATEGORY_NODE_IDLE_LAST CATEGORY_STARTING
extern const char *const category_columns[CATEGORY_COUNT];
extern const char *const category_words[CATEGORY_COUNT];

enum state { STATE_IDLE, STATE_LOW, STATE_BUSY, STATE_COUNT };

/* X(NAME, "column"): increases of work counters, whole numbers */
#define WORK_TABLE(X)                                                                              \
    X(GENERATION_TOKENS, "generation_tokens")                                                      \
    X(PROMPT_TOKENS, "prompt_tokens")                                                              \
    X(REQUESTS, "requests")
enum work {
#define X(name, column) WORK_##name,
    WORK_TABLE(X)
#undef X
        WORK_COUNT
};
extern const char *const work_columns[WORK_COUNT];

/* Signals whose integral is kept, each with its own seen time. Ratios in ms x 1e-9. */
enum measure { MEASURE_SM, MEASURE_TENSOR, MEASURE_DRAM, MEASURE_COUNT };

#define HISTOGRAM_BINS 20
#define SHARE_DEN_MAX 2048 /* finer shares are rounded to this for the weighted times only */

struct row_key {
    time_ms hour;
    name_t cluster, node, device;              /* device: UUID, or unseen-N@NODE */
    name_t instance;                           /* GPU instance id, NAME_NONE for whole devices */
    name_t namespace, pod, pod_uid, container; /* NAME_NONE: unheld */
};

/* What is the same for long: interned, so that stores keep it once. */
struct row_facts {
    name_t model;    /* GPU model as the exporter prints it; NAME_NONE unknown */
    name_t workload; /* Kind/name; NAME_NONE where unheld */
    name_t owner;    /* team; "unowned"; NAME_NONE where unheld */
    name_t instance_type, pool, region, cloud;
    enum capacity_type capacity;
    enum workload_type type;
};

struct row {
    struct row_key key;
    struct row_facts facts;
    uint32_t flags; /* FLAG_* */

    money_t cost;
    money_t category[CATEGORY_COUNT]; /* adds up to cost */

    int64_t held_ms, observed_ms, state_ms[STATE_COUNT]; /* wall time, ms */
    uint32_t share_den;                                  /* 1..SHARE_DEN_MAX */
    /* times weighted by the share of the device: ms = num / share_den */
    int64_t gpu_num, gpu_held_num, gpu_observed_num, gpu_state_num[STATE_COUNT];
    int64_t hist_u_num[HISTOGRAM_BINS], hist_e_num[HISTOGRAM_BINS];
    int64_t gpu_u_num; /* ms x 1e-9 x share_den */

    int64_t u, e; /* integrals, ms x 1e-9, over observed_ms */
    int64_t measure[MEASURE_COUNT], measure_seen_ms[MEASURE_COUNT];
    uint64_t mem_byte_ms;
    int64_t mem_seen_ms;
    int64_t mem_max_bytes, mem_total_bytes; /* 0 unknown */
    int64_t energy_mj;
    int64_t work[WORK_COUNT];
};

/* The other side of the balance: what a node cost in an hour. */
struct node_hour {
    time_ms hour;
    name_t cluster, node;
    name_t instance_type, pool, region, cloud;
    enum capacity_type capacity;
    money_t price;  /* price an hour, rounded to nano for show; the last of the hour; 0 unpriced */
    money_t booked; /* price x up time, rounded once: what the rows add up to */
    int64_t up_ms;
    int32_t gpus;   /* most of the hour */
    uint32_t flags; /* FLAG_* of the price */
    name_t price_source;
};

/* What a GPU did in an hour, whoever held it: what the idle scan reads beside the rows (semantics,
 * section 10). Integrals of ratios are ms x 1e-9, each over its own seen time. */
struct device_hour {
    time_ms hour;
    name_t cluster, node, device, model;
    int64_t up_ms;              /* its node was up and the device there */
    int64_t covered_ms;         /* some sample of the device covers it */
    int64_t observed_ms;        /* some activity sample does (on MIG: of every instance) */
    int64_t held_ms;            /* somebody held it or a part of it */
    int64_t util, util_seen_ms; /* GPU_UTIL; on MIG e of the instances by their slices */
    int64_t mem, mem_seen_ms;   /* memory used / total */
    int64_t power_mw_ms, power_seen_ms, power_max_mw;
    int64_t power_limit_mw; /* the largest that was set; 0 not known */
    /* Up to when it was `low` or `busy`; TIME_MIN: not in this hour. What follows is observed idle
     * time: how much of it, and from when on. */
    time_ms worked_until, idle_from;
    int64_t idle_after_ms;
    /* samples with GPU_UTIL 0 while nobody held it: what the model draws when idle */
    int64_t floor_samples, floor_mw;
};

/* What the host of a node did in an hour: what a GPU ledger needs to tell idle machines, CPU work
 * on GPU machines and what keeps a node alive. Absent is -1 in the counts and the extremes; sums
 * have their own seen time. CPU is of all processors, over means of five minutes on the clock, of
 * which one belongs to the hour that it ends in; iowait counts as idle (semantics, section 10). */
enum machine_taint { MACHINE_TAINT_UNKNOWN, MACHINE_TAINT_NONE, MACHINE_TAINT_PRESENT };
struct machine_hour {
    time_ms hour;
    name_t cluster, node;
    int64_t cpu, cpu_seen_ms; /* ms x 1e-9 of all CPUs */
    int64_t cpu_max;          /* 1e-9: the highest mean of five minutes; -1 */
    int64_t cpus;             /* processors; -1 */
    int64_t net_bytes;        /* in + out of physical interfaces */
    int64_t net_seen_ms;
    int64_t requested_mcpu;         /* 1/1000 CPU: the most that pods requested at one time; -1 */
    int64_t requested_memory_bytes; /* likewise */
    int32_t cpu_pods;     /* the most pods without GPUs at a time, DaemonSets' not counted; -1 */
    int32_t daemon_pods;  /* the most DaemonSets' pods at a time; -1 */
    name_t cpu_workloads; /* "namespace/Kind/name, …" of the cpu_pods, at most 5; NAME_NONE */
    enum machine_taint gpu_taint; /* something (other than conditions) keeps CPU pods away */
};

/* What a workload's pods did beside their GPUs in an hour. Serving gauges are those of vLLM,
 * SGLang, TGI and Triton under one name each; integrals are value x ms over serving_seen_ms. */
struct workload_hour {
    time_ms hour;
    name_t cluster, namespace, workload; /* Kind/name of the topmost controller */
    int64_t cpu_mcpu_ms, cpu_seen_ms;    /* of containers, added up over pods: 1/1000 CPU x ms */
    int64_t cpu_max_mcpu;                /* highest mean of five minutes of one pod; -1 */
    int64_t cpu_limit_mcpu;              /* of one pod: its CPU limit, else request; -1 */
    int64_t serving_seen_ms;             /* pods x ms in which some serving metric is there */
    int64_t running_ms, running_max;     /* requests in work x ms; most; max -1 not exported */
    int64_t waiting_ms, waiting_max;     /* requests in the queue x ms; most; -1 */
    int64_t kv, kv_seen_ms, kv_max;      /* 1e-9 x ms of the KV cache in use; max -1 */
    int64_t requests;                    /* increase of requests done; -1: no such counter */
    int64_t tokens;                      /* increase of prompt + generated tokens; -1 */
    name_t user; /* of interactive work: the person that its pods' labels name; NAME_NONE */
};

/* What Kubernetes says of a namespace's GPUs in an hour; the last observation of the hour. */
struct namespace_hour {
    time_ms hour;
    name_t cluster, namespace;
    bool quotas_known; /* the cluster exports resource quotas at all */
    int64_t gpu_quota; /* GPUs, of requests.nvidia.com/gpu and the like added up; -1: no quota */
    bool priorities_known;
    int32_t gpu_pods, gpu_pods_without_priority; /* the most at a time */
    int32_t pending_pods;    /* that want GPUs and have no node: the most at a time */
    int64_t pending_gpus;    /* they want, added up */
    int64_t pending_largest; /* of one of them */
    int64_t pending_gpu_ms;  /* GPUs x ms */
};

struct note {
    int kind; /* enum note_kind of fleet/intake.h */
    name_t subject, text;
    int64_t count;
    time_ms from, to; /* the hours that it is about */
};

/* Rows of whole hours [hours.from, hours.to) of a node (or of several): what the ledger hands to
 * the store, and the store gives back. Rows are in order of (hour, then the bytes of cluster, node,
 * device, instance, namespace, pod, uid, container). Owner frees the arrays. */
struct row_batch {
    struct names *names; /* not owned: what the ids mean */
    struct span hours;
    struct row *rows;
    size_t rows_n, rows_room;
    struct node_hour *node_hours;
    size_t node_hours_n, node_hours_room;
    struct device_hour *device_hours; /* in order of (hour, device) */
    size_t device_hours_n, device_hours_room;
    struct machine_hour *machine_hours; /* in order of (hour, cluster, node) */
    size_t machine_hours_n, machine_hours_room;
    struct workload_hour *workload_hours; /* likewise; in the batch at the end */
    size_t workload_hours_n, workload_hours_room;
    struct namespace_hour *namespace_hours; /* likewise; in the batch at the end */
    size_t namespace_hours_n, namespace_hours_room;
    struct note *notes;
    size_t notes_n, notes_room;
};
void row_batch_clear(struct row_batch *batch); /* keeps the room */
void row_batch_release(struct row_batch *batch);
int row_key_cmp(const struct names *names, const struct row_key *a, const struct row_key *b);

#endif
