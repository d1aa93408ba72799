#include "source/live_labels.h"

#include "fleet/labels.h"

/* GPU-x::3 is a replica of GPU-x, and nvidia_gpu_exporter leaves "GPU-" out. */
static struct str uuid_of(struct str uuid, enum exporter_family exporter, struct strbuf *room)
{
    const char *replica = memmem(uuid.p, uuid.n, "::", 2);
    if (replica)
        uuid.n = (size_t)(replica - uuid.p);
    if (!uuid.n || exporter != EXPORTER_NVIDIA_GPU || str_starts(uuid, STR("GPU-")))
        return uuid;
    strbuf_addf(room, "GPU-%.*s", STR_ARG(uuid));
    return strbuf_str(room);
}

static void read_identity(const struct str value[GPU_LABEL_COUNT], struct str id[LIVE_ID_COUNT])
{
    id[LIVE_ID_CLUSTER] = value[GPU_LABEL_CLUSTER];
    id[LIVE_ID_NODE] = value[GPU_LABEL_NODE];
    if (id[LIVE_ID_NODE].n == 0)
        id[LIVE_ID_NODE] = value[GPU_LABEL_HOSTNAME];
    if (id[LIVE_ID_NODE].n == 0)
        id[LIVE_ID_NODE] = value[GPU_LABEL_INSTANCE];
    id[LIVE_ID_INSTANCE] = value[GPU_LABEL_GPU_INSTANCE];
    id[LIVE_ID_INDEX] = value[GPU_LABEL_INDEX];
    id[LIVE_ID_MODEL] = value[GPU_LABEL_MODEL];
    id[LIVE_ID_PROFILE] = value[GPU_LABEL_PROFILE];
}

/* Exporters' pods stand under `pod` where the workload's stands under `exported_pod`. */
static void read_holding(const struct str value[GPU_LABEL_COUNT], struct live_labels *ret)
{
    ret->renamed = value[GPU_LABEL_EXPORTED_POD].n > 0;
    ret->bare = !ret->renamed && value[GPU_LABEL_POD].n > 0;
    ret->held[LIVE_HELD_POD] = value[ret->renamed ? GPU_LABEL_EXPORTED_POD : GPU_LABEL_POD];
    ret->held[LIVE_HELD_NAMESPACE] =
        value[ret->renamed ? GPU_LABEL_EXPORTED_NAMESPACE : GPU_LABEL_NAMESPACE];
    ret->held[LIVE_HELD_CONTAINER] =
        value[ret->renamed ? GPU_LABEL_EXPORTED_CONTAINER : GPU_LABEL_CONTAINER];
}

void live_labels_read(const struct label *labels, size_t n, enum exporter_family exporter,
                      struct strbuf *room, struct live_labels *ret)
{
    struct str value[GPU_LABEL_COUNT];
    gpu_labels_find(labels, n, value);
    *ret = (struct live_labels){.job = value[GPU_LABEL_JOB]};
    read_identity(value, ret->id);
    ret->id[LIVE_ID_UUID] = uuid_of(value[GPU_LABEL_UUID], exporter, room);
    read_holding(value, ret);
}
