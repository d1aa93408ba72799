/* The thresholds of the rules, in one table: name in the configuration (`rules: RULE: NAME:
 * VALUE`), default, unit and meaning. Findings print those that they used. Read-only once read. */
#ifndef GPUTALLY_INSIGHT_THRESHOLD_H
#define GPUTALLY_INSIGHT_THRESHOLD_H

#include "insight/rule.h"
#include "util/clock.h"
#include "util/money.h"

enum threshold_unit {
    THRESHOLD_DURATION, /* ms; "24h" */
    THRESHOLD_RATIO,    /* 1e-9; "90%" or 0.9 */
    THRESHOLD_HOURS,    /* GPU-hours, in ms of a GPU; a number */
    THRESHOLD_COUNT,
};

/* X(ID, RULE, "name", unit, default, "what it is") */
#define THRESHOLD_TABLE(X)                                                                         \
    X(IDLE_WORKLOAD_HELD, IDLE_WORKLOAD, "held", THRESHOLD_DURATION, 24 * HOUR_MS,                 \
      "held for this long or more")

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

struct thresholds {
    int64_t values[THRESHOLD_COUNT_OF];
};
void thresholds_defaults(struct thresholds *ret);
#endif
