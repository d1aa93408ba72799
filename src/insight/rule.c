#include "insight/rule.h"

#define FIND_CPU_NODE rule_cpu_node
#define FIND_IDLE_SERVER rule_idle_server
#define FIND_IDLE_WORKLOAD rule_idle_workload
#define FIND_IDLE_NOTEBOOK rule_idle_notebook
#define FIND_BUSY_USELESS rule_busy_useless
#define FIND_NODE_EMPTY rule_node_empty
#define FIND_NODE_CORDONED rule_node_cordoned
#define FIND_NODE_UNHEALTHY rule_node_unhealthy
#define FIND_NODE_STRANDED rule_node_stranded
#define FIND_NODE_UNPARTITIONED rule_node_unpartitioned
#define FIND_NODE_STARTING rule_node_starting
#define FIND_SMALLER_GPU rule_smaller_gpu
#define FIND_MIG_FIT rule_mig_fit
#define FIND_TIME_SLICING rule_time_slicing
#define FIND_TRAINING_USE rule_training_use
#define FIND_LOW_USE rule_low_use
#define FIND_SCORECARD rule_scorecard
#define FIND_UNOWNED rule_unowned
#define FIND_UNPRICED rule_unpriced
#define FIND_NO_UNIT rule_no_unit
#define FIND_BELOW_TARGET rule_below_target
#define FIND_NO_TARGET rule_no_target
#define FIND_MISSING_TAINT rule_missing_taint
#define FIND_NO_QUOTA rule_no_quota
#define FIND_NO_PRIORITY rule_no_priority
#define FIND_MIXED_POOL rule_mixed_pool

const struct rule rules[RULE_COUNT] = {
#define X(id, name, title, actor, thresholds) {name, title, actor, thresholds, FIND_##id},
    RULE_TABLE(X)
#undef X
};
