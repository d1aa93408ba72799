/* What benchmarks read, made from a fixed seed: a fleet's exporter lines as dcgm-exporter prints
 * them. Values are synthetic: noise on power and activity. */
#ifndef GPUTALLY_BENCH_DATA_H
#define GPUTALLY_BENCH_DATA_H

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "util/str.h"

static inline uint64_t bench_next(uint64_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return *seed;
}

static inline double bench_unit(uint64_t *seed)
{
    return (double)(bench_next(seed) >> 11) / 9007199254740992.0;
}

/* Roughly normal, mean 0, deviation 1. */
static inline double bench_noise(uint64_t *seed)
{
    double sum = 0;
    for (int i = 0; i < 12; i++)
        sum += bench_unit(seed);
    return sum - 6;
}

/* The families that dcgm-exporter exposes by default and that carry most of the bytes. */
struct bench_family {
    const char *name, *help, *type;
    int decimals;
};
static const struct bench_family bench_families[] = {
    {"DCGM_FI_DEV_GPU_UTIL", "GPU utilization (in %).", "gauge", 0},
    {"DCGM_FI_DEV_MEM_COPY_UTIL", "Memory utilization (in %).", "gauge", 0},
    {"DCGM_FI_DEV_FB_USED", "Framebuffer memory used (in MiB).", "gauge", 0},
    {"DCGM_FI_DEV_FB_FREE", "Framebuffer memory free (in MiB).", "gauge", 0},
    {"DCGM_FI_DEV_POWER_USAGE", "Power draw (in W).", "gauge", 3},
    {"DCGM_FI_DEV_GPU_TEMP", "GPU temperature (in C).", "gauge", 0},
    {"DCGM_FI_DEV_XID_ERRORS", "Value of the last XID error encountered.", "gauge", 0},
    {"DCGM_FI_PROF_GR_ENGINE_ACTIVE", "Ratio of time the graphics engine is active.", "gauge", 6},
    {"DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "Ratio of cycles the tensor (HMMA) pipe is active.",
     "gauge", 6},
    {"DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "Total energy consumption since boot (in mJ).",
     "counter", 0},
};
#define BENCH_FAMILIES (sizeof bench_families / sizeof *bench_families)
#define BENCH_NODE_GPUS 8

static inline double bench_value(size_t family, uint64_t *seed)
{
    double busy = bench_unit(seed);
    switch (family) {
    case 0:
    case 1:
        return floor(busy * 101);
    case 2:
    case 3:
        return floor(busy * 81000);
    case 4:
        return 70 + 600 * busy + 5 * bench_noise(seed);
    case 5:
        return floor(30 + 50 * busy);
    case 6:
        return 0;
    case 9:
        return floor(busy * 1e12);
    }
    return busy;
}

static inline void bench_head(struct strbuf *text, size_t family, size_t gpu)
{
    size_t node = gpu / BENCH_NODE_GPUS, i = gpu % BENCH_NODE_GPUS, job = gpu / 16;
    uint64_t id = (gpu + 1) * UINT64_C(0x9e3779b97f4a7c15);
    strbuf_addf(text,
                "%s{gpu=\"%zu\",UUID=\"GPU-%08x-%04x-%04x-%04x-%012llx\","
                "pci_bus_id=\"00000000:%02X:00.0\",device=\"nvidia%zu\","
                "modelName=\"NVIDIA H100 80GB HBM3\",Hostname=\"gpu-h100-n%04zu.example.internal\","
                "DCGM_FI_DRIVER_VERSION=\"535.129.03\",container=\"main\",namespace=\"team-%zu\","
                "pod=\"train-%zu-worker-%zu\"}",
                bench_families[family].name, i, (unsigned)(id >> 32), (unsigned)(id >> 16 & 0xffff),
                (unsigned)(id & 0xffff), (unsigned)(id >> 48),
                (unsigned long long)(id >> 8 & UINT64_C(0xffffffffffff)), (unsigned)(0x18 + 17 * i),
                i, node, job % 20, job, gpu % 16);
}

static inline void bench_type(struct strbuf *text, size_t family)
{
    const struct bench_family *f = &bench_families[family];
    strbuf_addf(text, "# HELP %s %s\n# TYPE %s %s\n", f->name, f->help, f->name, f->type);
}

/* One scrape of every node's exporter. */
static inline void bench_scrape(struct strbuf *text, size_t gpus, uint64_t *seed)
{
    for (size_t node = 0; node * BENCH_NODE_GPUS < gpus; node++)
        for (size_t f = 0; f < BENCH_FAMILIES; f++) {
            bench_type(text, f);
            for (size_t i = 0; i < BENCH_NODE_GPUS; i++) {
                bench_head(text, f, node * BENCH_NODE_GPUS + i);
                strbuf_addf(text, " %.*f\n", bench_families[f].decimals, bench_value(f, seed));
            }
        }
}

/* An OpenMetrics file: each series' samples together, `steps` of them. */
static inline void bench_openmetrics(struct strbuf *text, size_t gpus, size_t steps, uint64_t *seed)
{
    for (size_t f = 0; f < BENCH_FAMILIES; f++) {
        bench_type(text, f);
        for (size_t gpu = 0; gpu < gpus; gpu++)
            for (size_t step = 0; step < steps; step++) {
                bench_head(text, f, gpu);
                strbuf_addf(text, " %.*f %lld\n", bench_families[f].decimals, bench_value(f, seed),
                            1780272000LL + 30 * (long long)step);
            }
    }
    strbuf_addf(text, "# EOF\n");
}

#endif
