/* The rules of `recommend`, in one table. Their order decides who keeps a dollar that two of them
 * could save: idle before size before sharing before rate. Each is a pure function from the books
 * to findings, a file of its own (rule_*.c) and a page of docs/rules/. */
#ifndef GPUTALLY_INSIGHT_RULE_H
#define GPUTALLY_INSIGHT_RULE_H

#include "fleet/settings.h"

/* X(ID, "id and page of docs/rules", "title", "who can act", "default thresholds") */
#define RULE_TABLE(X)                                                                              \
    X(IDLE_WORKLOAD, "idle-workload", "allocated but idle", "the holder's team",                   \
      "held for 24 h or more, 90 % of it observed, idle in 90 % of that or for the last 3 days")   \
    X(IDLE_NOTEBOOK, "idle-notebook", "idle notebook or interactive session", "the holder's team", \
      "interactive, held for 24 h or more, 90 % observed, idle in 60 %")                           \
    X(BUSY_USELESS, "busy-useless", "busy-looking but useless", "the holder's team",               \
      "for the last 6 h a kernel ran 90 % of the time and SM activity was below 5 %")              \
    X(NODE_EMPTY, "node-empty", "empty nodes", "the platform",                                     \
      "nobody held anything for 24 h or more, up to now")                                          \
    X(NODE_CORDONED, "node-cordoned", "cordoned nodes", "the platform",                            \
      "cordoned for 24 GPU-hours or more, and still there")                                        \
    X(NODE_UNHEALTHY, "node-unhealthy", "lost GPUs", "the platform",                               \
      "lost for 1 GPU-hour or more, and still there")                                              \
    X(NODE_STRANDED, "node-stranded", "stranded GPUs", "the platform",                             \
      "free beside held ones for 24 GPU-hours or more, 5 % or more of the pool's")                 \
    X(NODE_UNPARTITIONED, "node-unpartitioned", "GPU slices in no MIG instance", "the platform",   \
      "24 GPU-hours or more, 5 % or more of the node's cost")                                      \
    X(NODE_STARTING, "node-starting", "slow starts", "the platform",                               \
      "5 % or more of the pool's cost goes to nodes before their first pod")                       \
    X(MIG_FIT, "mig-fit", "a whole GPU for a fractional need", "the holder's team",                \
      "one GPU a pod, not training, peak memory and 10 % fit a MIG profile, and so does peak use") \
    X(LOW_USE, "low-use", "under 30 % used", "the holder's team",                                  \
      "held for 24 h or more, 90 % observed, idle or low in 80 % of it, not idle in 90 %")         \
    X(UNOWNED, "unowned", "dollars without a team", "finance", "any")                              \
    X(UNPRICED, "unpriced", "nodes without a price", "finance", "any")

enum rule_id {
#define X(id, name, title, actor, thresholds) RULE_##id,
    RULE_TABLE(X)
#undef X
        RULE_COUNT
};

struct books;
struct findings;
struct rule {
    const char *name, *title, *actor, *thresholds;
    void (*find)(const struct books *books, struct findings *findings);
};
extern const struct rule rules[RULE_COUNT];

/* rule_idle.c, rule_useless.c, rule_node.c, rule_mig.c, rule_low.c, rule_books.c */
void rule_idle_workload(const struct books *books, struct findings *findings);
void rule_idle_notebook(const struct books *books, struct findings *findings);
void rule_busy_useless(const struct books *books, struct findings *findings);
void rule_node_empty(const struct books *books, struct findings *findings);
void rule_node_cordoned(const struct books *books, struct findings *findings);
void rule_node_unhealthy(const struct books *books, struct findings *findings);
void rule_node_stranded(const struct books *books, struct findings *findings);
void rule_node_unpartitioned(const struct books *books, struct findings *findings);
void rule_node_starting(const struct books *books, struct findings *findings);
void rule_mig_fit(const struct books *books, struct findings *findings);
void rule_low_use(const struct books *books, struct findings *findings);
void rule_unowned(const struct books *books, struct findings *findings);
void rule_unpriced(const struct books *books, struct findings *findings);

#endif
