#include "serve/live_view.h"

static int64_t known(const struct live_gpu *gpu, enum signal signal)
{
    return gpu->value[signal] == SIGNAL_ABSENT ? -1 : gpu->value[signal];
}

/* Where the total is not exported it is what is used, free and reserved together. */
static int64_t memory_total(const struct live_gpu *gpu)
{
    int64_t total = known(gpu, SIGNAL_MEM_TOTAL);
    int64_t used = known(gpu, SIGNAL_MEM_USED), free_bytes = known(gpu, SIGNAL_MEM_FREE);
    int64_t reserved = known(gpu, SIGNAL_MEM_RESERVED);
    if (total >= 0 || used < 0 || free_bytes < 0)
        return total;
    return used + free_bytes + (reserved < 0 ? 0 : reserved);
}

void live_view(struct live *live, gpu_now_fn each, void *to)
{
    const struct live_snapshot *snapshot = live_snapshot(live, LIVE_FRESH_MS);
    for (size_t i = 0; i < snapshot->n; i++) {
        const struct live_gpu *gpu = &snapshot->gpus[i];
        int64_t power = known(gpu, SIGNAL_POWER);
        struct gpu_now now = {
            .cluster = str_of(gpu->cluster),
            .node = str_of(gpu->node),
            .device = str_of(*gpu->uuid ? gpu->uuid : gpu->index),
            .model = str_of(gpu->model),
            .namespace = str_of(gpu->namespace),
            .pod = str_of(gpu->pod),
            .util = known(gpu, SIGNAL_UTIL),
            .sm = known(gpu, SIGNAL_SM),
            .memory_used = known(gpu, SIGNAL_MEM_USED),
            .memory_total = memory_total(gpu),
            .power_mw = power < 0 ? -1 : power / 1000000,
            .idle_since = TIME_MIN,
            .at = gpu->at,
        };
        if (!each(to, &now))
            break;
    }
    live_snapshot_release(snapshot);
}
