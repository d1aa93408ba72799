#include "fleet/settings.h"

void settings_defaults(struct settings *ret)
{
    *ret = (struct settings){
        .step_ms = 30000,
        .gap_ms = 300000,
        .idle_below = 100000000,
        .busy_from = 300000000,
        .node_break_ms = 6 * HOUR_MS,
        .starting_max_ms = 15 * 60000,
        .frozen_ms = 300000,
        .share_policy = SHARE_POLICY_REPLICAS,
        .node_split = NODE_SPLIT_WHOLE,
        .lost_xids = {79},
        .lost_xids_n = 1,
        .exporter_containers = {STR("exporter"), STR("dcgm-exporter"), STR("nvidia-dcgm-exporter")},
        .exporter_containers_n = 3,
    };
}
