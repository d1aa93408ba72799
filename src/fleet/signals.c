/* The table of signals and the cleaning of their values.
 *
 * Names come from dcgm-exporter's CSV files (legacy, canonical and 1.x spellings all occur, since
 * the exposed name is whatever the CSV line says), from the renamed defaults of 4.9 and from the
 * other exporters' sources. DCGM_FI_DEV_GPU_UTIL_RATIO is the one name whose unit cannot be known:
 * DCGM 4.6 gave that name to NVML's 0..100, dcgm-exporter 4.9 sends 0..1 under it.
 *
 * A value is cleaned by one multiplication between two bounds: every range below excludes DCGM's
 * blanks by itself, but for memory in bytes, which an int32 blank could be. Negative values, NaN
 * and infinities fail the comparison with the bounds. */
#include "fleet/signals.h"

#include <pthread.h>

#include "util/error.h"

const char *const signal_words[SIGNAL_COUNT] = {
#define X(name, word) word,
    SIGNAL_TABLE(X)
#undef X
};

#define DCGM(metric, signal, unit)                                                                 \
    {                                                                                              \
        metric, SIGNAL_##signal, UNIT_##unit, EXPORTER_DCGM                                        \
    }
#define OTHER(exporter, metric, signal, unit)                                                      \
    {                                                                                              \
        metric, SIGNAL_##signal, UNIT_##unit, EXPORTER_##exporter                                  \
    }

const struct signal_name signal_names[] = {
    DCGM("DCGM_FI_DEV_GPU_UTIL", UTIL, PERCENT),
    DCGM("dcgm_gpu_utilization", UTIL, PERCENT),
    DCGM("DCGM_FI_DEV_GPU_UTIL_RATIO", UTIL, PERCENT_OR_RATIO),
    DCGM("DCGM_FI_DEV_MEM_COPY_UTIL", MEMCOPY, PERCENT),
    DCGM("dcgm_mem_copy_utilization", MEMCOPY, PERCENT),
    DCGM("DCGM_FI_PROF_GR_ENGINE_ACTIVE", GR, RATIO),
    DCGM("DCGM_FI_PROF_GR_ENGINE_UTIL_RATIO", GR, RATIO),
    DCGM("DCGM_FI_PROF_SM_ACTIVE", SM, RATIO),
    DCGM("DCGM_FI_PROF_SM_UTIL_RATIO", SM, RATIO),
    DCGM("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", TENSOR, RATIO),
    DCGM("DCGM_FI_PROF_TENSOR_UTIL_RATIO", TENSOR, RATIO),
    DCGM("DCGM_FI_PROF_DRAM_ACTIVE", DRAM, RATIO),
    DCGM("DCGM_FI_PROF_DRAM_UTIL_RATIO", DRAM, RATIO),
    DCGM("DCGM_FI_DEV_FB_USED", MEM_USED, MIB),
    DCGM("dcgm_fb_used", MEM_USED, MIB),
    DCGM("DCGM_FI_DEV_FB_USED_BYTES", MEM_USED, BYTES),
    DCGM("DCGM_FI_DEV_FB_FREE", MEM_FREE, MIB),
    DCGM("dcgm_fb_free", MEM_FREE, MIB),
    DCGM("DCGM_FI_DEV_FB_FREE_BYTES", MEM_FREE, BYTES),
    DCGM("DCGM_FI_DEV_FB_RESERVED", MEM_RESERVED, MIB),
    DCGM("DCGM_FI_DEV_FB_RESERVED_BYTES", MEM_RESERVED, BYTES),
    DCGM("DCGM_FI_DEV_FB_TOTAL", MEM_TOTAL, MIB),
    DCGM("DCGM_FI_DEV_FB_CAPACITY_BYTES", MEM_TOTAL, BYTES),
    DCGM("DCGM_FI_DEV_POWER_USAGE", POWER, WATT),
    DCGM("dcgm_power_usage", POWER, WATT),
    DCGM("DCGM_FI_DEV_BOARD_POWER_WATTS", POWER, WATT),
    DCGM("DCGM_FI_DEV_POWER_MGMT_LIMIT", POWER_LIMIT, WATT),
    DCGM("DCGM_FI_DEV_BOARD_POWER_LIMIT_REQUESTED_WATTS", POWER_LIMIT, WATT),
    DCGM("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", ENERGY, MILLIJOULE),
    DCGM("dcgm_total_energy_consumption", ENERGY, MILLIJOULE),
    DCGM("DCGM_FI_DEV_GPU_ENERGY_JOULES_TOTAL", ENERGY, JOULE),
    DCGM("DCGM_FI_DEV_XID_ERRORS", XID, NUMBER),
    DCGM("DCGM_FI_DEV_XID_ERROR", XID, NUMBER),
    DCGM("dcgm_xid_errors", XID, NUMBER),

    OTHER(NVIDIA_GPU, "nvidia_smi_utilization_gpu_ratio", UTIL, RATIO),
    OTHER(NVIDIA_GPU, "nvidia_smi_utilization_memory_ratio", MEMCOPY, RATIO),
    OTHER(NVIDIA_GPU, "nvidia_smi_memory_used_bytes", MEM_USED, BYTES),
    OTHER(NVIDIA_GPU, "nvidia_smi_memory_free_bytes", MEM_FREE, BYTES),
    OTHER(NVIDIA_GPU, "nvidia_smi_memory_reserved_bytes", MEM_RESERVED, BYTES),
    OTHER(NVIDIA_GPU, "nvidia_smi_memory_total_bytes", MEM_TOTAL, BYTES),
    OTHER(NVIDIA_GPU, "nvidia_smi_power_draw_watts", POWER, WATT),
    OTHER(NVIDIA_GPU, "nvidia_smi_power_limit_watts", POWER_LIMIT, WATT),
    OTHER(NVIDIA_GPU, "nvidia_smi_energy_joules_total", ENERGY, JOULE),

    OTHER(NVIDIA_SMI, "nvidia_smi_utilization_gpu", UTIL, PERCENT),
    OTHER(NVIDIA_SMI, "nvidia_smi_utilization_memory", MEMCOPY, PERCENT),
    OTHER(NVIDIA_SMI, "nvidia_smi_memory_used", MEM_USED, MIB),
    OTHER(NVIDIA_SMI, "nvidia_smi_memory_free", MEM_FREE, MIB),
    OTHER(NVIDIA_SMI, "nvidia_smi_memory_reserved", MEM_RESERVED, MIB),
    OTHER(NVIDIA_SMI, "nvidia_smi_memory_total", MEM_TOTAL, MIB),
    OTHER(NVIDIA_SMI, "nvidia_smi_power_draw", POWER, WATT),
    OTHER(NVIDIA_SMI, "nvidia_smi_power_limit", POWER_LIMIT, WATT),

    /* Activity, power and energy of a partitioned GPU stand on partition 0 only, others are 0 or
     * absent; the instantaneous graphics activity is there for each, and so counts as the engine's.
     * The exporter's MB are 2^20 bytes, as AMD SMI divides. The prefix amd_ is a common setting. */
    OTHER(AMD, "gpu_gfx_activity", UTIL, PERCENT),
    OTHER(AMD, "amd_gpu_gfx_activity", UTIL, PERCENT),
    OTHER(AMD, "gpu_gfx_busy_instantaneous", GR, PERCENT),
    OTHER(AMD, "amd_gpu_gfx_busy_instantaneous", GR, PERCENT),
    OTHER(AMD, "gpu_umc_activity", MEMCOPY, PERCENT),
    OTHER(AMD, "amd_gpu_umc_activity", MEMCOPY, PERCENT),
    OTHER(AMD, "gpu_used_vram", MEM_USED, MIB),
    OTHER(AMD, "amd_gpu_used_vram", MEM_USED, MIB),
    OTHER(AMD, "gpu_free_vram", MEM_FREE, MIB),
    OTHER(AMD, "amd_gpu_free_vram", MEM_FREE, MIB),
    OTHER(AMD, "gpu_total_vram", MEM_TOTAL, MIB),
    OTHER(AMD, "amd_gpu_total_vram", MEM_TOTAL, MIB),
    OTHER(AMD, "gpu_package_power", POWER, WATT),
    OTHER(AMD, "amd_gpu_package_power", POWER, WATT),
    OTHER(AMD, "gpu_average_package_power", POWER, WATT),
    OTHER(AMD, "amd_gpu_average_package_power", POWER, WATT),
    OTHER(AMD, "gpu_power_usage", POWER, WATT),
    OTHER(AMD, "amd_gpu_power_usage", POWER, WATT),
    OTHER(AMD, "gpu_energy_consumed", ENERGY, MICROJOULE),
    OTHER(AMD, "amd_gpu_energy_consumed", ENERGY, MICROJOULE),

    OTHER(GKE, "kubernetes_io:container_accelerator_duty_cycle", UTIL, PERCENT),
    OTHER(GKE, "kubernetes_io:container_accelerator_memory_used", MEM_USED, BYTES),
    OTHER(GKE, "kubernetes_io:container_accelerator_memory_total", MEM_TOTAL, BYTES),
};
const size_t signal_names_n = sizeof signal_names / sizeof *signal_names;

/* An open-addressed index over the table, at most a third full. */
#define INDEX_SIZE 256u
#define INDEX_EMPTY 0u
_Static_assert(sizeof signal_names / sizeof *signal_names * 3 <= INDEX_SIZE, "index too full");

static uint8_t name_index[INDEX_SIZE]; /* place in signal_names + 1 */
static pthread_once_t name_index_once = PTHREAD_ONCE_INIT;

/* Of the length and the last bytes, in any case: heads are alike. */
static uint32_t hash_nocase(struct str s)
{
    uint64_t tail = 0;
    size_t n = s.n < sizeof tail ? s.n : sizeof tail;
    memcpy(&tail, s.p + s.n - n, n);
    tail = ((tail | UINT64_C(0x2020202020202020)) ^ s.n) * UINT64_C(0x9e3779b97f4a7c15);
    return (uint32_t)(tail >> 40);
}

static void index_names(void)
{
    for (size_t i = 0; i < signal_names_n; i++) {
        uint32_t at = hash_nocase(str_of(signal_names[i].metric)) % INDEX_SIZE;
        while (name_index[at] != INDEX_EMPTY)
            at = (at + 1) % INDEX_SIZE;
        name_index[at] = (uint8_t)(i + 1);
    }
}

const struct signal_name *signal_of_metric(struct str metric)
{
    pthread_once(&name_index_once, index_names);
    uint32_t at = hash_nocase(metric) % INDEX_SIZE;
    for (; name_index[at] != INDEX_EMPTY; at = (at + 1) % INDEX_SIZE) {
        const struct signal_name *name = &signal_names[name_index[at] - 1];
        struct str there = str_of(name->metric);
        if (str_eq(metric, there) ||
            (name->exporter == EXPORTER_DCGM && str_eq_nocase(metric, there)))
            return name;
    }
    return NULL;
}

#define MIB_BYTES 1048576.0
#define MEMORY_MAX_MIB 4194304.0 /* 4 TiB */
#define POWER_MAX_W 5000.0
#define XID_MAX 100000.0
#define ENERGY_MAX_UJ 9.2e18
#define PROFILING_CLAMP 1.5 /* of 1: what is read above is garbage, not noise */
#define INT32_BLANK_FIRST 2147483632.0
#define INT32_BLANK_LAST 2147483635.0

/* How a value of a (signal, unit) is brought to the kept unit: present in [0, most], cut to `cut`,
 * times scale. */
struct cleaning {
    double most, cut, scale;
    enum { ROUND_HALF_UP, TRUNCATE, ENERGY_SPLIT, BYTES } how;
};

static struct cleaning ratio_cleaning(enum signal signal, enum signal_unit unit)
{
    double one = unit == UNIT_PERCENT ? 100 : 1;
    bool profiling = signal != SIGNAL_UTIL && signal != SIGNAL_MEMCOPY;
    return (struct cleaning){
        .most = profiling ? one * PROFILING_CLAMP : one,
        .cut = one,
        .scale = unit == UNIT_PERCENT ? 1e7 : 1e9,
        .how = ROUND_HALF_UP,
    };
}

static struct cleaning energy_cleaning(enum signal_unit unit)
{
    double scale = unit == UNIT_JOULE ? 1e6 : unit == UNIT_MILLIJOULE ? 1e3 : 1;
    double most = ENERGY_MAX_UJ / scale;
    return (struct cleaning){most, most, scale, ENERGY_SPLIT};
}

static struct cleaning cleaning_of(enum signal signal, enum signal_unit unit)
{
    switch (signal) {
    case SIGNAL_UTIL:
    case SIGNAL_MEMCOPY:
    case SIGNAL_GR:
    case SIGNAL_SM:
    case SIGNAL_TENSOR:
    case SIGNAL_DRAM:
        invariant(unit == UNIT_PERCENT || unit == UNIT_RATIO || unit == UNIT_PERCENT_OR_RATIO);
        return ratio_cleaning(signal, unit);
    case SIGNAL_MEM_USED:
    case SIGNAL_MEM_FREE:
    case SIGNAL_MEM_RESERVED:
    case SIGNAL_MEM_TOTAL:
        invariant(unit == UNIT_MIB || unit == UNIT_BYTES);
        if (unit == UNIT_MIB)
            return (struct cleaning){MEMORY_MAX_MIB, MEMORY_MAX_MIB, MIB_BYTES, ROUND_HALF_UP};
        return (struct cleaning){MEMORY_MAX_MIB * MIB_BYTES, MEMORY_MAX_MIB * MIB_BYTES, 1, BYTES};
    case SIGNAL_POWER:
    case SIGNAL_POWER_LIMIT:
        invariant(unit == UNIT_WATT);
        return (struct cleaning){POWER_MAX_W, POWER_MAX_W, 1e9, ROUND_HALF_UP};
    case SIGNAL_ENERGY:
        invariant(unit == UNIT_MICROJOULE || unit == UNIT_MILLIJOULE || unit == UNIT_JOULE);
        return energy_cleaning(unit);
    case SIGNAL_XID:
        invariant(unit == UNIT_NUMBER);
        return (struct cleaning){XID_MAX, XID_MAX, 1, TRUNCATE};
    case SIGNAL_COUNT:
        break;
    }
    invariant_failed("a signal", __FILE__, __LINE__);
}

/* Whole units and the rest apart: the product of a large counter would not fit a double exactly. */
static inline int64_t split_scale(double v, double scale)
{
    int64_t whole = (int64_t)v;
    double rest = v - (double)whole;
    return whole * (int64_t)scale + (int64_t)(rest * scale + 0.5);
}

static inline int64_t clean_one(const struct cleaning *c, double v)
{
    if (!(v >= 0 && v <= c->most))
        return SIGNAL_ABSENT;
    switch (c->how) {
    case ROUND_HALF_UP:
        return (int64_t)((v > c->cut ? c->cut : v) * c->scale + 0.5);
    case ENERGY_SPLIT:
        return split_scale(v, c->scale);
    case BYTES:
        if (v >= INT32_BLANK_FIRST && v <= INT32_BLANK_LAST && v == (double)(int64_t)v)
            return SIGNAL_ABSENT;
        return (int64_t)(v + 0.5);
    case TRUNCATE:
        return (int64_t)v;
    }
    return SIGNAL_ABSENT;
}

int64_t signal_clean(enum signal signal, enum signal_unit unit, double value)
{
    struct cleaning c = cleaning_of(signal, unit);
    return clean_one(&c, value);
}

int64_t signal_most(enum signal signal, enum signal_unit unit)
{
    struct cleaning c = cleaning_of(signal, unit);
    return clean_one(&c, c.most < c.cut ? c.most : c.cut);
}

/* The hot one, apart: nearly all samples are ratios, MiB or watts. */
static size_t clean_rounding(const struct cleaning *c, const double *restrict v, size_t n,
                             int64_t *restrict out)
{
    const double most = c->most, cut = c->cut, scale = c->scale;
    size_t absent = 0;
    for (size_t i = 0; i < n; i++) {
        double x = v[i];
        bool there = x >= 0 && x <= most;
        double kept = there ? x : 0;
        kept = kept < cut ? kept : cut;
        int64_t scaled = (int64_t)(kept * scale + 0.5);
        out[i] = there ? scaled : SIGNAL_ABSENT;
        absent += !there;
    }
    return absent;
}

size_t signal_clean_many(enum signal signal, enum signal_unit unit, const double *v, size_t n,
                         int64_t *out)
{
    struct cleaning c = cleaning_of(signal, unit);
    if (c.how == ROUND_HALF_UP)
        return clean_rounding(&c, v, n, out);
    size_t absent = 0;
    for (size_t i = 0; i < n; i++) {
        out[i] = clean_one(&c, v[i]);
        absent += out[i] == SIGNAL_ABSENT;
    }
    return absent;
}
