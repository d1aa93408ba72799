/* The demo's GPUs as dcgm-exporter prints them: a series a GPU or MIG instance and pod, and one
 * without a pod for the time in between. A split GPU gives power, energy, XID and memory itself. */
#include "cmd/demo_writer.h"

#define DCGM_LABELS "DCGM_FI_DRIVER_VERSION=\"550.127.08\",job=\"dcgm-exporter\""

enum gpu_value { UTIL, MEM_USED, MEM_FREE, POWER, ENERGY, XID, ENGINE, SM, TENSOR, DRAM };
static const struct gpu_family {
    const char *name, *type, *help;
    enum gpu_value value;
    int places;       /* decimals of its numbers */
    bool of_board;    /* a split GPU exports it itself */
    bool of_instance; /* its instances do */
} gpu_families[] = {
    {"DCGM_FI_DEV_GPU_UTIL", "gauge", "GPU utilization (in %).", UTIL, 0, false, false},
    {"DCGM_FI_DEV_FB_USED", "gauge", "Framebuffer memory used (in MiB).", MEM_USED, 0, true, true},
    {"DCGM_FI_DEV_FB_FREE", "gauge", "Framebuffer memory free (in MiB).", MEM_FREE, 0, true, true},
    {"DCGM_FI_DEV_POWER_USAGE", "gauge", "Power draw (in W).", POWER, 3, true, false},
    {"DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "unknown",
     "Total energy consumption since boot (in mJ).", ENERGY, 0, true, false},
    {"DCGM_FI_DEV_XID_ERRORS", "gauge", "Value of the last XID error encountered.", XID, 0, true,
     false},
    {"DCGM_FI_PROF_GR_ENGINE_ACTIVE", "gauge", "Ratio of time the graphics engine is active.",
     ENGINE, 6, false, true},
    {"DCGM_FI_PROF_SM_ACTIVE", "gauge", "The ratio of cycles an SM has at least 1 warp assigned.",
     SM, 6, false, true},
    {"DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "gauge",
     "Ratio of cycles the tensor (HMMA) pipe is active.", TENSOR, 6, false, true},
    {"DCGM_FI_PROF_DRAM_ACTIVE", "gauge", "Ratio of cycles the device memory interface is active.",
     DRAM, 6, false, true},
};
#define GPU_FAMILIES (sizeof gpu_families / sizeof *gpu_families)

struct gpu_series {
    const struct demo_fleet *fleet;
    const struct gpu_family *family;
    const struct demo_device *device;
    const struct demo_slot *slot; /* NULL: of the board of a split GPU */
    const struct demo_span *span; /* NULL: nobody uses it */
    size_t cursor;
};

/* Memory used on a split GPU: of all its instances. */
static int32_t board_memory(const struct gpu_series *series, time_ms t)
{
    int32_t sum = 0;
    for (size_t i = 0; i < series->device->slots_n; i++) {
        const struct demo_slot *slot = &series->device->slots[i];
        const struct demo_span *now = NULL;
        for (size_t k = 0; k < slot->spans_n; k++) {
            if (t >= slot->spans[k].time.from && t < slot->spans[k].time.to)
                now = &slot->spans[k];
        }
        struct demo_reading reading;
        demo_slot_read(series->fleet, slot, now, t, &reading);
        sum += reading.memory_mib;
    }
    return sum;
}

static int64_t gpu_value(void *context, time_ms t)
{
    struct gpu_series *series = context;
    int64_t milliwatts, millijoules;
    struct demo_reading reading;
    enum gpu_value value = series->family->value;
    if (value == XID)
        return 0;
    if (value == POWER || value == ENERGY) {
        demo_device_read(series->fleet, series->device, t, &series->cursor, &milliwatts,
                         &millijoules);
        return value == POWER ? milliwatts : millijoules;
    }
    if (!series->slot) {
        int32_t used = board_memory(series, t);
        return value == MEM_USED ? used : series->device->node->machine->memory_mib - used;
    }
    demo_slot_read(series->fleet, series->slot, series->span, t, &reading);
    switch (value) {
    case UTIL:
        return reading.util_percent;
    case MEM_USED:
        return reading.memory_mib;
    case MEM_FREE:
        return series->slot->memory_mib - reading.memory_mib;
    case ENGINE:
        return reading.engine;
    case SM:
        return reading.sm;
    case TENSOR:
        return reading.tensor;
    default:
        return reading.dram;
    }
}

/* The head of a series of it, with the labels of a pod or none. */
static void head_of(struct demo_writer *w, const struct gpu_series *series,
                    const struct demo_pod *pod)
{
    const struct demo_device *device = series->device;
    const struct demo_slot *slot = series->slot;
    const struct demo_node *node = device->node;
    strbuf_clear(&w->head);
    strbuf_addf(&w->head,
                "%s{gpu=\"%d\",UUID=\"%s\",pci_bus_id=\"00000000:%02X:00.0\",device=\"nvidia%d\","
                "modelName=\"%s\",",
                series->family->name, device->index, device->uuid, 0x18 + 9 * device->index,
                device->index, node->machine->model);
    if (slot && slot->profile)
        strbuf_addf(&w->head, "GPU_I_PROFILE=\"%s\",GPU_I_ID=\"%d\",", slot->profile,
                    slot->instance_id);
    strbuf_addf(&w->head, "Hostname=\"%s\"," DCGM_LABELS ",instance=\"%s:9400\"", node->name,
                node->address);
    if (pod)
        strbuf_addf(&w->head, ",container=\"%s\",namespace=\"%s\",pod=\"%s\"", pod->container,
                    pod->namespace, pod->name);
    strbuf_add(&w->head, STR("} "));
}

/* What of `time` the node's exporter saw. */
static void put_seen(struct demo_writer *w, struct gpu_series *series, struct span time)
{
    const struct demo_node *node = series->device->node;
    const struct demo_grid *grid = &w->grids[node - w->fleet->nodes];
    struct span there = demo_overlap(demo_overlap(time, node->up), w->gpu);
    struct demo_values values = {gpu_value, series, series->family->places};
    series->cursor = 0;
    demo_put_series(w, grid, demo_overlap(there, (struct span){TIME_MIN, node->silent.from}),
                    values);
    demo_put_series(w, grid, demo_overlap(there, (struct span){node->silent.to, TIME_MAX}), values);
}

/* The series without pod labels: between the pods, and under processes that Kubernetes does not
 * know. */
static void put_nobody(struct demo_writer *w, struct gpu_series *series)
{
    const struct demo_slot *slot = series->slot;
    time_ms free_from = TIME_MIN;
    head_of(w, series, NULL);
    for (size_t i = 0; i < slot->spans_n; i++) {
        const struct demo_span *span = &slot->spans[i];
        series->span = NULL;
        put_seen(w, series, (struct span){free_from, span->time.from});
        if (!span->pod) {
            series->span = span;
            put_seen(w, series, span->time);
        }
        free_from = span->time.to;
    }
    series->span = NULL;
    put_seen(w, series, (struct span){free_from, TIME_MAX});
}

static void put_slot(struct demo_writer *w, const struct gpu_family *family,
                     const struct demo_slot *slot)
{
    struct gpu_series series = {
        .fleet = w->fleet, .family = family, .device = slot->device, .slot = slot};
    put_nobody(w, &series);
    for (size_t i = 0; i < slot->spans_n; i++) {
        series.span = &slot->spans[i];
        if (!series.span->pod)
            continue;
        head_of(w, &series, series.span->pod);
        put_seen(w, &series, series.span->time);
    }
}

static void put_device(struct demo_writer *w, const struct gpu_family *family,
                       const struct demo_device *device)
{
    bool split = device->slots[0].profile != NULL;
    if (split && family->of_board) {
        struct gpu_series series = {.fleet = w->fleet, .family = family, .device = device};
        head_of(w, &series, NULL);
        put_seen(w, &series, (struct span){TIME_MIN, TIME_MAX});
    }
    for (size_t i = 0; i < device->slots_n && (!split || family->of_instance); i++)
        put_slot(w, family, &device->slots[i]);
}

void demo_write_gpus(struct demo_writer *w)
{
    for (size_t f = 0; f < GPU_FAMILIES; f++) {
        const struct gpu_family *family = &gpu_families[f];
        if (!demo_put_family(w, family->name, family->type, family->help))
            continue;
        for (size_t i = 0; i < w->fleet->nodes_n; i++) {
            const struct demo_node *node = &w->fleet->nodes[i];
            for (size_t k = 0; k < node->devices_n; k++)
                put_device(w, family, &node->devices[k]);
        }
    }
}
