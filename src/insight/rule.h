/* The rules of `recommend`, in one table. Their order decides who keeps a dollar that two of them
 * could save: idle before size before sharing before rate. Each is a pure function from the books
 * to findings, a file of its own (rule_*.c) and a page of docs/rules/. */
#ifndef GPUTALLY_INSIGHT_RULE_H
#define GPUTALLY_INSIGHT_RULE_H

#include "fleet/settings.h"

/* X(ID, "id and page of docs/rules", "title", "who can act", "when, with {NAME} for a threshold of
 * the rule (insight/threshold.h)") */
#define RULE_TABLE(X)                                                                              \
    X(CPU_NODE, "cpu-on-gpu-node", "CPU work on a GPU machine", "the holder's team",               \
      "for {for} or more GPU_UTIL of the node below {util}, {observed} observed, while its CPUs "  \
      "peak above {cpu} for 5 min")                                                                \
    X(IDLE_SERVER, "idle-server", "server without requests", "the holder's team",                  \
      "held for {held} or more, its counters {observed} of that, no request for {quiet} up to "    \
      "now")                                                                                       \
    X(IDLE_WORKLOAD, "idle-workload", "allocated but idle", "the holder's team",                   \
      "held for {held} or more, {observed} of it observed, idle in {idle} of that (by SM "         \
      "activity "                                                                                  \
      "alone: below {activity}) or for the last {stop}")                                           \
    X(IDLE_NOTEBOOK, "idle-notebook", "idle notebook or interactive session", "the holder's team", \
      "interactive, held for {held} or more, {observed} observed, idle in {idle}; to be stopped "  \
      "after {stop} without work")                                                                 \
    X(BUSY_USELESS, "busy-useless", "busy-looking but useless", "the holder's team",               \
      "for the last {for} a kernel ran {kernel} of the time and SM activity was below {activity} " \
      "(without it: power within {power} of the limit of the idle power), {observed} observed")    \
    X(NODE_EMPTY, "node-empty", "empty nodes", "the platform",                                     \
      "nobody held anything for {empty} or more, up to now")                                       \
    X(NODE_CORDONED, "node-cordoned", "cordoned nodes", "the platform",                            \
      "cordoned for {cordoned} or more, and still there")                                          \
    X(NODE_UNHEALTHY, "node-unhealthy", "lost GPUs", "the platform",                               \
      "lost for {lost} or more, and still there")                                                  \
    X(NODE_STRANDED, "node-stranded", "stranded GPUs", "the platform",                             \
      "free beside held ones for {stranded} or more, {share} or more of the pool's")               \
    X(NODE_UNPARTITIONED, "node-unpartitioned", "GPU slices in no MIG instance", "the platform",   \
      "{free} or more, {share} or more of the node's cost")                                        \
    X(NODE_STARTING, "node-starting", "slow starts", "the platform",                               \
      "{share} or more of the pool's cost goes to nodes before their first pod")                   \
    X(SMALLER_GPU, "smaller-gpu", "a GPU larger than the work", "the holder's team",               \
      "one GPU a pod, not training, held for {held} or more, {observed} observed; its memory at "  \
      "most {memory} used, or taken in advance; peak memory and {headroom} fit a smaller model "   \
      "and use at {percentile} of the time stays below {load} of it; saves {saving} or more; "     \
      "of inference servers with {preallocated} of the memory taken, {cache} of it is thought to " \
      "be KV cache")                                                                               \
    X(MIG_FIT, "mig-fit", "a whole GPU for a fractional need", "the holder's team",                \
      "one GPU a pod, not training, held for {held} or more, {observed} observed, used under "     \
      "{use}; "                                                                                    \
      "peak memory and {headroom} fit a MIG profile, and so does use at {percentile} of the "      \
      "time; of inference servers with {preallocated} of the memory taken, {cache} of it is "      \
      "thought to be KV cache")                                                                    \
    X(TIME_SLICING, "time-slicing", "GPUs without MIG that could be shared", "the holder's team",  \
      "one GPU without MIG a pod, not training, held for {held} or more, {observed} observed, "    \
      "used under {use}; up to {pods} pods whose peak memory and {headroom} fit a GPU and whose "  \
      "use at {percentile} of the time adds up to {load} or less; of inference servers with "      \
      "{preallocated} of the memory taken, {cache} of it is thought to be KV cache")               \
    X(TRAINING_USE, "training-use", "training that uses little", "the holder's team",              \
      "training, held for {held} or more, {observed} observed, idle or low in {low} of it; the "   \
      "GPUs that stay are thought to reach {target}")                                              \
    X(LOW_USE, "low-use", "under 30 % used", "the holder's team",                                  \
      "held for {held} or more, {observed} observed, idle or low in {low} of it, not idle in "     \
      "{idle}; the GPUs that stay are thought to reach {target}")                                  \
    X(SCORECARD, "scorecard", "money that nobody answers for", "finance",                          \
      "two or more of: {share} or more of the held money without an owner, without a unit "        \
      "metric (inference), without a target where others have one")                                \
    X(UNOWNED, "unowned", "dollars without a team", "finance", "any")                              \
    X(UNPRICED, "unpriced", "nodes without a price", "finance", "any")                             \
    X(NO_UNIT, "no-unit", "inference that nobody counts", "the holder's team",                     \
      "inference, held for {held} or more, no counter of requests or tokens")                      \
    X(BELOW_TARGET, "below-target", "below the target", "the holder's team",                       \
      "a team, namespace or workload with a target, held for {held} or more, {observed} "          \
      "observed, used less")                                                                       \
    X(NO_TARGET, "no-target", "teams without a target", "finance",                                 \
      "{share} or more of the held money in workloads without a target, where others have one")    \
    X(MISSING_TAINT, "missing-taint", "pods without GPUs on GPU nodes", "the platform",            \
      "nodes without a taint, and pods without GPUs on them")                                      \
    X(NO_QUOTA, "no-quota", "namespaces without a GPU quota", "the platform",                      \
      "has pods with GPUs and no quota, where others have one")                                    \
    X(NO_PRIORITY, "no-priority", "pods without a priority class", "the platform",                 \
      "has pods with GPUs and no class, while pods wait for GPUs")                                 \
    X(MIXED_POOL, "mixed-pool", "unlike work in one pool", "the platform",                         \
      "two types of work with {share} of the held time each, and stranded GPUs that fill nodes, "  \
      "or "                                                                                        \
      "pods that wait")

enum rule_id {
#define X(id, name, title, actor, thresholds) RULE_##id,
    RULE_TABLE(X)
#undef X
        RULE_COUNT
};

struct books;
struct findings;
struct rule {
    const char *name, *title, *actor;
    const char *thresholds; /* with gaps: rule_text() of threshold.h fills them */
    void (*find)(const struct books *books, struct findings *findings);
};
extern const struct rule rules[RULE_COUNT];

/* rule_cpu.c, rule_idle.c, rule_useless.c, rule_node.c, rule_memory.c, rule_mig.c, rule_share.c,
 * rule_low.c, rule_books.c, rule_serving.c, rule_training.c, rule_policy.c, rule_scorecard.c,
 * rule_target.c */
void rule_cpu_node(const struct books *books, struct findings *findings);
void rule_idle_server(const struct books *books, struct findings *findings);
void rule_idle_workload(const struct books *books, struct findings *findings);
void rule_idle_notebook(const struct books *books, struct findings *findings);
void rule_busy_useless(const struct books *books, struct findings *findings);
void rule_node_empty(const struct books *books, struct findings *findings);
void rule_node_cordoned(const struct books *books, struct findings *findings);
void rule_node_unhealthy(const struct books *books, struct findings *findings);
void rule_node_stranded(const struct books *books, struct findings *findings);
void rule_node_unpartitioned(const struct books *books, struct findings *findings);
void rule_node_starting(const struct books *books, struct findings *findings);
void rule_smaller_gpu(const struct books *books, struct findings *findings);
void rule_mig_fit(const struct books *books, struct findings *findings);
void rule_time_slicing(const struct books *books, struct findings *findings);
void rule_training_use(const struct books *books, struct findings *findings);
void rule_low_use(const struct books *books, struct findings *findings);
void rule_scorecard(const struct books *books, struct findings *findings);
void rule_unowned(const struct books *books, struct findings *findings);
void rule_unpriced(const struct books *books, struct findings *findings);
void rule_no_unit(const struct books *books, struct findings *findings);
void rule_below_target(const struct books *books, struct findings *findings);
void rule_no_target(const struct books *books, struct findings *findings);
void rule_missing_taint(const struct books *books, struct findings *findings);
void rule_no_quota(const struct books *books, struct findings *findings);
void rule_no_priority(const struct books *books, struct findings *findings);
void rule_mixed_pool(const struct books *books, struct findings *findings);

#endif
