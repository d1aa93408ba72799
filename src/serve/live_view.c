#include "serve/live_view.h"

struct viewing {
    const struct gpu_book *book;
    int64_t idle_below;
    const struct live_claims *claims;
    gpu_now_fn each;
    void *to;
};

/* ---- from samples ---- */

static int64_t known(const struct live_gpu *gpu, enum signal signal)
{
    bool gone =
        gpu->value[signal] == SIGNAL_ABSENT || gpu->at - gpu->value_at[signal] > LIVE_VIEW_OLD_MS;
    return gone ? -1 : gpu->value[signal];
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

/* Since it last worked; where it did not while it was watched, since when the ledger says. */
static time_ms idle_since(const struct live_gpu *gpu, const struct gpu_known *slot,
                          int64_t idle_below)
{
    static const enum signal activity[] = {SIGNAL_UTIL, SIGNAL_GR, SIGNAL_SM};
    int64_t most = -1;
    for (size_t i = 0; i < sizeof activity / sizeof *activity; i++)
        if (known(gpu, activity[i]) > most)
            most = known(gpu, activity[i]);
    if (most < 0 || most >= idle_below)
        return TIME_MIN;
    if (gpu->worked != TIME_MIN)
        return gpu->worked;
    return slot && slot->idle_since != TIME_MIN ? slot->idle_since : gpu->first;
}

/* Is whom the ledger has there still there, though no label says so? Whom it laid there by
 * Kubernetes' count, and the pod of a claim for a part of the card, of which the ledger alone knows
 * which part. */
static bool still_holds(const struct viewing *viewing, const struct live_gpu *gpu,
                        const struct gpu_known *slot)
{
    const struct names *names = viewing->book->names;
    return slot &&
           (slot->unlabelled ||
            live_claims_has(viewing->claims, str_of(gpu->cluster), str_of(gpu->uuid),
                            names_text(names, slot->namespace), names_text(names, slot->pod)));
}

/* Who holds it, in the ledger's words where it knows the pod. */
static void fill_holder(const struct viewing *viewing, const struct live_gpu *gpu,
                        const struct gpu_known *slot, struct gpu_now *now)
{
    const struct gpu_book *book = viewing->book;
    const struct gpu_known *pod = NULL;
    if (*gpu->pod || live_claims_pod(viewing->claims, now->cluster, str_of(gpu->uuid),
                                     now->instance, &now->namespace, &now->pod))
        pod = gpu_book_pod(book, now->cluster, now->namespace, now->pod);
    else if (still_holds(viewing, gpu, slot))
        pod = slot;
    if (!pod)
        return;
    now->namespace = names_text(book->names, pod->namespace);
    now->pod = names_text(book->names, pod->pod);
    now->workload = names_text(book->names, pod->workload);
    now->team = names_text(book->names, pod->team);
}

static bool show_live(const struct viewing *viewing, const struct live_gpu *gpu)
{
    const struct gpu_book *book = viewing->book;
    struct str cluster = str_of(gpu->cluster), instance = str_of(gpu->instance);
    const struct gpu_known *slot = gpu_book_slot(book, cluster, str_of(gpu->uuid), instance);
    int64_t power = known(gpu, SIGNAL_POWER);
    struct gpu_now now = {
        .cluster = cluster,
        .node = str_of(gpu->node),
        .device = str_of(*gpu->uuid ? gpu->uuid : gpu->index),
        .instance = instance,
        .model = str_of(gpu->model),
        .namespace = str_of(gpu->namespace),
        .pod = str_of(gpu->pod),
        .util = known(gpu, SIGNAL_UTIL),
        .sm = known(gpu, SIGNAL_SM),
        .memory_used = known(gpu, SIGNAL_MEM_USED),
        .memory_total = memory_total(gpu),
        .power_mw = power < 0 ? -1 : power / 1000000,
        .price_hour = slot ? slot->price_hour : -1,
        .idle_since = idle_since(gpu, slot, viewing->idle_below),
        .at = gpu->at,
    };
    fill_holder(viewing, gpu, slot, &now);
    return viewing->each(viewing->to, &now);
}

/* The board of a device that is split: its instances, which follow it, are the slots. */
static bool is_board(const struct live_snapshot *snapshot, size_t i)
{
    const struct live_gpu *gpu = &snapshot->gpus[i];
    return *gpu->uuid && !*gpu->instance && i + 1 < snapshot->n && *gpu[1].instance &&
           strcmp(gpu[1].uuid, gpu->uuid) == 0 && strcmp(gpu[1].cluster, gpu->cluster) == 0;
}

/* ---- from the ledger ---- */

static bool show_hour(const struct viewing *viewing, const struct gpu_known *gpu)
{
    const struct names *names = viewing->book->names;
    struct gpu_now now = {
        .cluster = names_text(names, gpu->cluster),
        .node = names_text(names, gpu->node),
        .device = names_text(names, gpu->device),
        .instance = names_text(names, gpu->instance),
        .model = names_text(names, gpu->model),
        .namespace = names_text(names, gpu->namespace),
        .pod = names_text(names, gpu->pod),
        .workload = names_text(names, gpu->workload),
        .team = names_text(names, gpu->team),
        .util = gpu->util,
        .sm = gpu->sm,
        .memory_used = gpu->memory_used,
        .memory_total = gpu->memory_total,
        .power_mw = gpu->power_mw,
        .price_hour = gpu->price_hour,
        .idle_since = gpu->idle_since,
        .of_hour = true,
        .at = gpu->at,
    };
    return viewing->each(viewing->to, &now);
}

/* ---- both, cluster by cluster ---- */

/* Slots of the ledger up to a cluster that has samples are shown; its own are passed over. */
static bool show_hours_before(const struct viewing *viewing, size_t *at, const char *cluster)
{
    const struct gpu_book *book = viewing->book;
    for (; *at < book->n; (*at)++) {
        struct str of = names_text(book->names, book->gpus[*at].cluster);
        int order = cluster ? str_cmp(of, str_of(cluster)) : -1;
        if (order > 0)
            break;
        if (order < 0 && !show_hour(viewing, &book->gpus[*at]))
            return false;
    }
    return true;
}

void live_view(struct live *live, const struct live_view_of *of, gpu_now_fn each, void *to)
{
    struct viewing viewing = {of->book, of->idle_below, of->claims, each, to};
    const struct live_snapshot *snapshot = live ? live_snapshot(live, LIVE_FRESH_MS) : NULL;
    const char *cluster = NULL;
    size_t at = 0;
    bool more = true;
    for (size_t i = 0; snapshot && i < snapshot->n && more; i++) {
        const struct live_gpu *gpu = &snapshot->gpus[i];
        if (!cluster || strcmp(cluster, gpu->cluster) != 0)
            more = show_hours_before(&viewing, &at, gpu->cluster);
        cluster = gpu->cluster;
        if (more && !is_board(snapshot, i))
            more = show_live(&viewing, gpu);
    }
    if (more)
        show_hours_before(&viewing, &at, NULL);
    live_snapshot_release(snapshot);
}
