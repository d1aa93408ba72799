#include "source/live_labels.h"

#include "fleet/labels.h"

#define SPELLINGS_MAX 6
static const char *const spellings[GPU_LABEL_COUNT][SPELLINGS_MAX] = {
#define X(name, ...) [GPU_LABEL_##name] = {__VA_ARGS__},
    GPU_LABEL_TABLE(X)
#undef X
};

static struct str first_of(const struct label *labels, size_t n, enum gpu_label role)
{
    for (size_t i = 0; i < SPELLINGS_MAX && spellings[role][i]; i++) {
        struct str value = labels_get(labels, n, str_of(spellings[role][i]));
        if (value.n)
            return value;
    }
    return STR_NONE;
}

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

static void read_identity(const struct label *labels, size_t n, struct str id[LIVE_ID_COUNT])
{
    id[LIVE_ID_CLUSTER] = first_of(labels, n, GPU_LABEL_CLUSTER);
    id[LIVE_ID_NODE] = first_of(labels, n, GPU_LABEL_NODE);
    if (id[LIVE_ID_NODE].n == 0)
        id[LIVE_ID_NODE] = first_of(labels, n, GPU_LABEL_HOSTNAME);
    if (id[LIVE_ID_NODE].n == 0)
        id[LIVE_ID_NODE] = first_of(labels, n, GPU_LABEL_INSTANCE);
    id[LIVE_ID_INSTANCE] = first_of(labels, n, GPU_LABEL_GPU_INSTANCE);
    id[LIVE_ID_INDEX] = first_of(labels, n, GPU_LABEL_INDEX);
    id[LIVE_ID_MODEL] = first_of(labels, n, GPU_LABEL_MODEL);
    id[LIVE_ID_PROFILE] = first_of(labels, n, GPU_LABEL_PROFILE);
}

/* Exporters' pods stand under `pod` where the workload's stands under `exported_pod`. */
static void read_holding(const struct label *labels, size_t n, struct live_labels *ret)
{
    ret->held[LIVE_HELD_POD] = first_of(labels, n, GPU_LABEL_EXPORTED_POD);
    if (ret->held[LIVE_HELD_POD].n) {
        ret->held[LIVE_HELD_NAMESPACE] = first_of(labels, n, GPU_LABEL_EXPORTED_NAMESPACE);
        ret->held[LIVE_HELD_CONTAINER] = first_of(labels, n, GPU_LABEL_EXPORTED_CONTAINER);
        ret->renamed = true;
        return;
    }
    ret->held[LIVE_HELD_POD] = first_of(labels, n, GPU_LABEL_POD);
    ret->held[LIVE_HELD_NAMESPACE] = first_of(labels, n, GPU_LABEL_NAMESPACE);
    ret->held[LIVE_HELD_CONTAINER] = first_of(labels, n, GPU_LABEL_CONTAINER);
    ret->bare = ret->held[LIVE_HELD_POD].n > 0;
}

void live_labels_read(const struct label *labels, size_t n, enum exporter_family exporter,
                      struct strbuf *room, struct live_labels *ret)
{
    *ret = (struct live_labels){.job = first_of(labels, n, GPU_LABEL_JOB)};
    read_identity(labels, n, ret->id);
    ret->id[LIVE_ID_UUID] = uuid_of(first_of(labels, n, GPU_LABEL_UUID), exporter, room);
    read_holding(labels, n, ret);
}
