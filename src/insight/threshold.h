/* The thresholds of the rules, in one table: name in the configuration (`rules: RULE: NAME:
 * VALUE`), default, unit and meaning. No rule has a number of its own beside them; what says the
 * thresholds to people (the text of RULE_TABLE, findings, docs/configuration.md) is composed from
 * here. Read-only once read; struct books has a copy of what holds. */
#ifndef GPUTALLY_INSIGHT_THRESHOLD_H
#define GPUTALLY_INSIGHT_THRESHOLD_H

#include "fleet/config.h"
#include "insight/rule.h"
#include "util/clock.h"
#include "util/money.h"

enum threshold_unit {
    THRESHOLD_DURATION, /* ms; "24h" */
    THRESHOLD_RATIO,    /* 1e-9; "90%" or 0.9 */
    THRESHOLD_HOURS,    /* GPU-hours, in ms of a GPU; "24h" or 24 */
    THRESHOLD_COUNT,    /* a whole number */
};

/* X(ID, RULE, "name", unit, default, "what it is"); the rows of a rule stand together. */
#define THRESHOLD_TABLE(X)                                                                         \
    X(CPU_NODE_FOR, CPU_NODE, "for", THRESHOLD_DURATION, 24 * HOUR_MS,                             \
      "the node is there for this long or more")                                                   \
    X(CPU_NODE_UTIL, CPU_NODE, "util", THRESHOLD_RATIO, NANO / 100 * 10,                           \
      "mean GPU_UTIL of the node's GPUs, below which they do nothing")                             \
    X(CPU_NODE_OBSERVED, CPU_NODE, "observed", THRESHOLD_RATIO, NANO / 100 * 90,                   \
      "of the GPUs' time that must be observed")                                                   \
    X(CPU_NODE_CPU, CPU_NODE, "cpu", THRESHOLD_RATIO, NANO / 100 * 50,                             \
      "of all CPUs for five minutes, above which they work")                                       \
    X(IDLE_SERVER_HELD, IDLE_SERVER, "held", THRESHOLD_HOURS, 24 * HOUR_MS,                        \
      "held for this long or more")                                                                \
    X(IDLE_SERVER_OBSERVED, IDLE_SERVER, "observed", THRESHOLD_RATIO, NANO / 100 * 90,             \
      "of the held time that counters, and activity, must cover")                                  \
    X(IDLE_SERVER_QUIET, IDLE_SERVER, "quiet", THRESHOLD_DURATION, 24 * HOUR_MS,                   \
      "up to now without a request")                                                               \
    X(IDLE_WORKLOAD_HELD, IDLE_WORKLOAD, "held", THRESHOLD_HOURS, 24 * HOUR_MS,                    \
      "held for this long or more")                                                                \
    X(IDLE_WORKLOAD_OBSERVED, IDLE_WORKLOAD, "observed", THRESHOLD_RATIO, NANO / 100 * 90,         \
      "of the held time that must be observed")                                                    \
    X(IDLE_WORKLOAD_IDLE, IDLE_WORKLOAD, "idle", THRESHOLD_RATIO, NANO / 100 * 90,                 \
      "of the observed time idle, with SM activity under 5 %")                                     \
    X(IDLE_WORKLOAD_STOP, IDLE_WORKLOAD, "stop", THRESHOLD_DURATION, 3 * DAY_MS,                   \
      "without work up to now, from where on it is advised to stop it")                            \
    X(IDLE_WORKLOAD_ACTIVITY, IDLE_WORKLOAD, "activity", THRESHOLD_RATIO, NANO / 100 * 1,          \
      "mean SM activity from which it works, where GPU_UTIL is not exported")                      \
    X(IDLE_NOTEBOOK_HELD, IDLE_NOTEBOOK, "held", THRESHOLD_HOURS, 24 * HOUR_MS,                    \
      "held for this long or more")                                                                \
    X(IDLE_NOTEBOOK_OBSERVED, IDLE_NOTEBOOK, "observed", THRESHOLD_RATIO, NANO / 100 * 90,         \
      "of the held time that must be observed")                                                    \
    X(IDLE_NOTEBOOK_IDLE, IDLE_NOTEBOOK, "idle", THRESHOLD_RATIO, NANO / 100 * 60,                 \
      "of the observed time idle")                                                                 \
    X(IDLE_NOTEBOOK_STOP, IDLE_NOTEBOOK, "stop", THRESHOLD_DURATION, 3 * DAY_MS,                   \
      "without work up to now, from where on it is advised to stop it")                            \
    X(BUSY_USELESS_FOR, BUSY_USELESS, "for", THRESHOLD_DURATION, 6 * HOUR_MS,                      \
      "up to now, hour after hour")                                                                \
    X(BUSY_USELESS_KERNEL, BUSY_USELESS, "kernel", THRESHOLD_RATIO, NANO / 100 * 90,               \
      "of an hour in which a kernel ran")                                                          \
    X(BUSY_USELESS_ACTIVITY, BUSY_USELESS, "activity", THRESHOLD_RATIO, NANO / 100 * 5,            \
      "mean SM activity of an hour, below which the chip does nothing")                            \
    X(BUSY_USELESS_OBSERVED, BUSY_USELESS, "observed", THRESHOLD_RATIO, NANO / 100 * 90,           \
      "of an hour that must be observed")                                                          \
    X(BUSY_USELESS_POWER, BUSY_USELESS, "power", THRESHOLD_RATIO, NANO / 100 * 5,                  \
      "of the power limit above the model's idle power, up to where the chip does nothing")        \
    X(NODE_EMPTY_EMPTY, NODE_EMPTY, "empty", THRESHOLD_DURATION, 24 * HOUR_MS,                     \
      "up to now without anybody who held anything")                                               \
    X(NODE_CORDONED_CORDONED, NODE_CORDONED, "cordoned", THRESHOLD_HOURS, 24 * HOUR_MS,            \
      "free on a cordoned node for this long or more")                                             \
    X(NODE_UNHEALTHY_LOST, NODE_UNHEALTHY, "lost", THRESHOLD_HOURS, HOUR_MS,                       \
      "lost for this long or more")                                                                \
    X(NODE_STRANDED_STRANDED, NODE_STRANDED, "stranded", THRESHOLD_HOURS, 24 * HOUR_MS,            \
      "free beside held ones for this long or more")                                               \
    X(NODE_STRANDED_SHARE, NODE_STRANDED, "share", THRESHOLD_RATIO, NANO / 100 * 5,                \
      "of the pool's GPU time that is stranded")                                                   \
    X(NODE_UNPARTITIONED_FREE, NODE_UNPARTITIONED, "free", THRESHOLD_HOURS, 24 * HOUR_MS,          \
      "in no MIG instance for this long or more")                                                  \
    X(NODE_UNPARTITIONED_SHARE, NODE_UNPARTITIONED, "share", THRESHOLD_RATIO, NANO / 100 * 5,      \
      "of the node's cost that is in no MIG instance")                                             \
    X(NODE_STARTING_SHARE, NODE_STARTING, "share", THRESHOLD_RATIO, NANO / 100 * 5,                \
      "of the pool's cost before nodes have their first pod")                                      \
    X(SMALLER_GPU_HELD, SMALLER_GPU, "held", THRESHOLD_HOURS, 24 * HOUR_MS,                        \
      "held for this long or more")                                                                \
    X(SMALLER_GPU_OBSERVED, SMALLER_GPU, "observed", THRESHOLD_RATIO, NANO / 100 * 90,             \
      "of the held time that must be observed")                                                    \
    X(SMALLER_GPU_MEMORY, SMALLER_GPU, "memory", THRESHOLD_RATIO, NANO / 100 * 60,                 \
      "of its memory at the peak, below which a GPU is too large")                                 \
    X(SMALLER_GPU_HEADROOM, SMALLER_GPU, "headroom", THRESHOLD_RATIO, NANO / 100 * 10,             \
      "of the peak memory that the smaller GPU must have beside it")                               \
    X(SMALLER_GPU_PERCENTILE, SMALLER_GPU, "percentile", THRESHOLD_RATIO, NANO / 100 * 99,         \
      "of the observed time that the smaller GPU must do for")                                     \
    X(SMALLER_GPU_LOAD, SMALLER_GPU, "load", THRESHOLD_RATIO, NANO / 100 * 90,                     \
      "of the smaller GPU that may be in use at the peak")                                         \
    X(SMALLER_GPU_SAVING, SMALLER_GPU, "saving", THRESHOLD_RATIO, NANO / 100 * 20,                 \
      "of the cost of the work that it must save at least")                                        \
    X(SMALLER_GPU_PREALLOCATED, SMALLER_GPU, "preallocated", THRESHOLD_RATIO, NANO / 100 * 85,     \
      "of the GPU's memory, from where on an inference server has taken it in advance")            \
    X(SMALLER_GPU_KV_SHARE, SMALLER_GPU, "cache", THRESHOLD_RATIO, NANO / 100 * 50,                \
      "of a preallocating server's memory that is thought to be KV cache, the rest weights")       \
    X(MIG_FIT_HELD, MIG_FIT, "held", THRESHOLD_HOURS, 20 * HOUR_MS, "held for this long or more")  \
    X(MIG_FIT_OBSERVED, MIG_FIT, "observed", THRESHOLD_RATIO, NANO / 100 * 90,                     \
      "of the held time that must be observed")                                                    \
    X(MIG_FIT_USE, MIG_FIT, "use", THRESHOLD_RATIO, NANO / 100 * 50,                               \
      "mean SM activity, below which a workload is looked at")                                     \
    X(MIG_FIT_HEADROOM, MIG_FIT, "headroom", THRESHOLD_RATIO, NANO / 100 * 10,                     \
      "of the peak memory that the profile must have beside it")                                   \
    X(MIG_FIT_PERCENTILE, MIG_FIT, "percentile", THRESHOLD_RATIO, NANO / 100 * 99,                 \
      "of the observed time that the profile's compute must do for")                               \
    X(MIG_FIT_PREALLOCATED, MIG_FIT, "preallocated", THRESHOLD_RATIO, NANO / 100 * 85,             \
      "of the GPU's memory, from where on an inference server has taken it in advance")            \
    X(MIG_FIT_KV_SHARE, MIG_FIT, "cache", THRESHOLD_RATIO, NANO / 100 * 50,                        \
      "of a preallocating server's memory that is thought to be KV cache, the rest weights")       \
    X(TIME_SLICING_HELD, TIME_SLICING, "held", THRESHOLD_HOURS, 20 * HOUR_MS,                      \
      "held for this long or more")                                                                \
    X(TIME_SLICING_OBSERVED, TIME_SLICING, "observed", THRESHOLD_RATIO, NANO / 100 * 90,           \
      "of the held time that must be observed")                                                    \
    X(TIME_SLICING_USE, TIME_SLICING, "use", THRESHOLD_RATIO, NANO / 100 * 30,                     \
      "mean SM activity, below which a workload is looked at")                                     \
    X(TIME_SLICING_HEADROOM, TIME_SLICING, "headroom", THRESHOLD_RATIO, NANO / 100 * 10,           \
      "of the peak memory that must be left beside it")                                            \
    X(TIME_SLICING_PERCENTILE, TIME_SLICING, "percentile", THRESHOLD_RATIO, NANO / 100 * 99,       \
      "of the observed time whose use is added up")                                                \
    X(TIME_SLICING_LOAD, TIME_SLICING, "load", THRESHOLD_RATIO, NANO / 100 * 90,                   \
      "of the chip that the peaks of all its pods may add up to")                                  \
    X(TIME_SLICING_PODS, TIME_SLICING, "pods", THRESHOLD_COUNT, 4,                                 \
      "the most pods that share a GPU")                                                            \
    X(TIME_SLICING_PREALLOCATED, TIME_SLICING, "preallocated", THRESHOLD_RATIO, NANO / 100 * 85,   \
      "of the GPU's memory, from where on an inference server has taken it in advance")            \
    X(TIME_SLICING_KV_SHARE, TIME_SLICING, "cache", THRESHOLD_RATIO, NANO / 100 * 50,              \
      "of a preallocating server's memory that is thought to be KV cache, the rest weights")       \
    X(TRAINING_USE_HELD, TRAINING_USE, "held", THRESHOLD_HOURS, 24 * HOUR_MS,                      \
      "held for this long or more")                                                                \
    X(TRAINING_USE_OBSERVED, TRAINING_USE, "observed", THRESHOLD_RATIO, NANO / 100 * 90,           \
      "of the held time that must be observed")                                                    \
    X(TRAINING_USE_LOW, TRAINING_USE, "low", THRESHOLD_RATIO, NANO / 100 * 80,                     \
      "of the observed time idle or low")                                                          \
    X(TRAINING_USE_TARGET, TRAINING_USE, "target", THRESHOLD_RATIO, NANO / 100 * 60,               \
      "mean SM activity that the GPUs that stay are thought to reach")                             \
    X(LOW_USE_HELD, LOW_USE, "held", THRESHOLD_HOURS, 24 * HOUR_MS, "held for this long or more")  \
    X(LOW_USE_OBSERVED, LOW_USE, "observed", THRESHOLD_RATIO, NANO / 100 * 90,                     \
      "of the held time that must be observed")                                                    \
    X(LOW_USE_LOW, LOW_USE, "low", THRESHOLD_RATIO, NANO / 100 * 80,                               \
      "of the observed time idle or low")                                                          \
    X(LOW_USE_IDLE, LOW_USE, "idle", THRESHOLD_RATIO, NANO / 100 * 90,                             \
      "of the observed time idle, from where on it is not low but idle")                           \
    X(LOW_USE_TARGET, LOW_USE, "target", THRESHOLD_RATIO, NANO / 100 * 60,                         \
      "mean SM activity that the GPUs that stay are thought to reach")                             \
    X(NO_UNIT_HELD, NO_UNIT, "held", THRESHOLD_HOURS, 24 * HOUR_MS, "held for this long or more")  \
    X(SCORECARD_SHARE, SCORECARD, "share", THRESHOLD_RATIO, NANO / 100 * 5,                        \
      "of all held money that must lack an owner, a unit or a target")                             \
    X(NO_TARGET_SHARE, NO_TARGET, "share", THRESHOLD_RATIO, NANO / 100 * 5,                        \
      "of all held money that a team must have without a target to be asked for one")              \
    X(BELOW_TARGET_HELD, BELOW_TARGET, "held", THRESHOLD_HOURS, 24 * HOUR_MS,                      \
      "held for this long or more")                                                                \
    X(BELOW_TARGET_OBSERVED, BELOW_TARGET, "observed", THRESHOLD_RATIO, NANO / 100 * 90,           \
      "of the held time that must be observed")                                                    \
    X(MIXED_POOL_SHARE, MIXED_POOL, "share", THRESHOLD_RATIO, NANO / 100 * 10,                     \
      "of the pool's held time that a type of work must have")

enum threshold_id {
#define X(id, rule, name, unit, standard, meaning) THRESHOLD_##id,
    THRESHOLD_TABLE(X)
#undef X
        THRESHOLD_COUNT_OF
};

struct threshold_def {
    enum rule_id rule;
    const char *name;
    enum threshold_unit unit;
    int64_t standard;
    const char *meaning;
};
extern const struct threshold_def threshold_defs[THRESHOLD_COUNT_OF];

/* What a team, a namespace or a workload is asked to reach: mean SM activity of the GPUs that it
 * holds. The text is the configuration's, which lives longer. */
#define TARGETS_MAX 256
/* X(ID, "key of `targets:`", "what it is called") */
#define TARGET_TABLE(X)                                                                            \
    X(TEAM, "teams", "team")                                                                       \
    X(NAMESPACE, "namespaces", "namespace")                                                        \
    X(WORKLOAD, "workloads", "workload")
enum target_kind {
#define X(id, key, word) TARGET_##id,
    TARGET_TABLE(X)
#undef X
        TARGET_KINDS
};
struct target {
    enum target_kind kind;
    struct str glob; /* of the name; of a workload: NAMESPACE/NAME or NAMESPACE/KIND/NAME */
    int64_t use;     /* 1e-9 */
};

struct thresholds {
    int64_t values[THRESHOLD_COUNT_OF];
    struct target targets[TARGETS_MAX]; /* `targets:`; the first of a kind that matches */
    size_t targets_n;
    bool off[RULE_COUNT]; /* not run at all; told in every list of findings */
};
void thresholds_defaults(struct thresholds *ret);
/* The defaults with what the configuration sets under `rules:`. ERR_CONFIG with file, line and
 * column, and the word that was probably meant; ret is untouched then. */
enum err thresholds_read(const struct config *config, struct thresholds *ret, struct error *err);

/* The target of a thing of that kind by its name (a workload's: NAMESPACE/KIND/NAME); false where
 * it has none. */
bool thresholds_target(const struct thresholds *thresholds, enum target_kind kind, struct str name,
                       int64_t *ret);

/* For people: "24 h", "3 days", "90 %", "24 GPU-hours", "5". */
void threshold_text(enum threshold_id id, int64_t value, struct strbuf *out);
/* As the configuration takes it: "24h", "3d", "90%", "5". */
void threshold_value_text(enum threshold_id id, int64_t value, struct strbuf *out);
/* The sentence of a rule ("held for 24 GPU-hours or more, …"), with what holds in its gaps. */
void rule_text(enum rule_id rule, const struct thresholds *thresholds, struct strbuf *out);

/* part / whole >= ratio, exactly; also of nothing. */
static inline bool ratio_reached(wide_t part, wide_t whole, int64_t ratio)
{
    return part * NANO >= whole * ratio;
}

#endif
