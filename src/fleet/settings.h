/* What can be set about the figures, with the defaults of the semantics page. Read-only once the
 * configuration is read; shared by all threads. */
#ifndef GPUTALLY_FLEET_SETTINGS_H
#define GPUTALLY_FLEET_SETTINGS_H

#include "util/clock.h"
#include "util/money.h"

enum share_policy { SHARE_POLICY_REPLICAS, SHARE_POLICY_EVEN };
enum node_split { NODE_SPLIT_WHOLE, NODE_SPLIT_RESIDUAL };
#define SETTINGS_LIST_MAX 16

struct settings {
    time_ms step_ms;         /* what a sample without a close predecessor covers: 30 s */
    time_ms gap_ms;          /* up to here a sample reaches back: 300 s */
    int64_t idle_below;      /* 1e-9; max(e, u) below: idle */
    int64_t busy_from;       /* 1e-9; u from here: busy */
    time_ms node_break_ms;   /* reach of a Kubernetes record: 6 h */
    time_ms starting_max_ms; /* 15 min */
    time_ms frozen_ms;       /* energy that stands still for so long is an old text: 300 s */
    enum share_policy share_policy;
    enum node_split node_split;
    int lost_xids[SETTINGS_LIST_MAX]; /* XIDs that mark a GPU as lost: 79 */
    size_t lost_xids_n;
    struct str exporter_containers[SETTINGS_LIST_MAX]; /* pods of these are exporters */
    size_t exporter_containers_n;
};
void settings_defaults(struct settings *ret);

#endif
