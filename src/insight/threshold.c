#include "insight/threshold.h"

const struct threshold_def threshold_defs[THRESHOLD_COUNT_OF] = {
#define X(id, rule, name, unit, standard, meaning) {RULE_##rule, name, unit, standard, meaning},
    THRESHOLD_TABLE(X)
#undef X
};

void thresholds_defaults(struct thresholds *ret)
{
    for (size_t i = 0; i < THRESHOLD_COUNT_OF; i++)
        ret->values[i] = threshold_defs[i].standard;
}
