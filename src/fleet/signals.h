/* The one table of signals: which metric names mean what, in which unit, within which range.
 *
 * A signal is something measured on a GPU. Exporters spell it in many ways and units; here every
 * spelling stands once, and a value is brought to one integer unit when it is read:
 *
 *     util, memcopy, gr, sm, tensor, dram   1e-9 of 1, so 0..1,000,000,000
 *     mem_used, mem_free, mem_reserved,     bytes
 *     mem_total
 *     power, power_limit                    nW (1e-9 W)
 *     energy                                uJ (1e-6 J) of a counter
 *     xid                                   the number
 *
 * Units are looked up by the whole name, never by a suffix: DCGM_FI_DEV_FB_USED_PERCENT is 0..1.
 * Everything here is immutable and may be used by any thread. (semantics, sections 2 and 4) */
#ifndef GPUTALLY_FLEET_SIGNALS_H
#define GPUTALLY_FLEET_SIGNALS_H

#include <stddef.h>
#include <stdint.h>

#include "util/str.h"

/* X(NAME, "word"); word is for people and for machine formats */
#define SIGNAL_TABLE(X)                                                                            \
    X(UTIL, "util")                                                                                \
    X(MEMCOPY, "memcopy")                                                                          \
    X(GR, "gr")                                                                                    \
    X(SM, "sm")                                                                                    \
    X(TENSOR, "tensor")                                                                            \
    X(DRAM, "dram")                                                                                \
    X(MEM_USED, "mem_used")                                                                        \
    X(MEM_FREE, "mem_free")                                                                        \
    X(MEM_RESERVED, "mem_reserved")                                                                \
    X(MEM_TOTAL, "mem_total")                                                                      \
    X(POWER, "power")                                                                              \
    X(POWER_LIMIT, "power_limit")                                                                  \
    X(ENERGY, "energy")                                                                            \
    X(XID, "xid")

enum signal {
#define X(name, word) SIGNAL_##name,
    SIGNAL_TABLE(X)
#undef X
        SIGNAL_COUNT
};
extern const char *const signal_words[SIGNAL_COUNT];

/* What a value on the wire counts in. */
enum signal_unit {
    UNIT_PERCENT, /* 0..100 */
    UNIT_RATIO,   /* 0..1 */
    /* A *_RATIO name that some exporters fill with percent. Whoever reads must look at all values
     * of that exporter in the window (any above 1.5 means percent) and then clean with
     * UNIT_PERCENT or UNIT_RATIO; cleaned as it is, it counts as a ratio. */
    UNIT_PERCENT_OR_RATIO,
    UNIT_MIB, /* 2^20 bytes */
    UNIT_BYTES,
    UNIT_WATT,
    UNIT_MICROJOULE,
    UNIT_MILLIJOULE,
    UNIT_JOULE,
    UNIT_NUMBER,
};

/* Who exports the name: families differ in labels and identity, not only in names. */
enum exporter_family {
    EXPORTER_DCGM,       /* dcgm-exporter 1.x to 4.9, also as GKE and AKS run it */
    EXPORTER_NVIDIA_GPU, /* nvidia_gpu_exporter: label uuid has no "GPU-" in front, no pods */
    EXPORTER_NVIDIA_SMI, /* Telegraf and CloudWatch agent: same prefix, other units */
    EXPORTER_AMD,        /* AMD device-metrics-exporter */
    EXPORTER_GKE,        /* GKE's system metrics: label accelerator_id, no UUID */
};

struct signal_name {
    const char *metric;
    enum signal signal;
    enum signal_unit unit;
    enum exporter_family exporter;
};

/* The table, for those who ask a server for metrics and for documents. */
extern const struct signal_name signal_names[];
extern const size_t signal_names_n;

/* The entry of a metric's name, NULL where it is no signal. Names that begin with DCGM_ (any case)
 * compare without case, others exactly. O(length); builds its index on the first call. */
const struct signal_name *signal_of_metric(struct str metric);

#define SIGNAL_ABSENT INT64_MIN

/* A value as it is kept, or SIGNAL_ABSENT where it is not a number, a DCGM blank, or out of its
 * physical range. Profiling ratios (gr, sm, tensor, dram) in (1, 1.5] are clamped to 1; util is
 * never clamped. Ratios, memory and power round half up. The int32 blanks (2147483632..2147483635)
 * are no blanks on energy, whose counter passes them. A unit that does not fit the signal is a bug
 * of ours. (inputs, section 3; fleetsim records.py clean()) */
int64_t signal_clean(enum signal signal, enum signal_unit unit, double value);

/* The largest value that signal_clean gives; the smallest is 0. */
int64_t signal_most(enum signal signal, enum signal_unit unit);

/* The same over n values; v and out must not overlap. Returns how many are absent. */
size_t signal_clean_many(enum signal signal, enum signal_unit unit, const double *v, size_t n,
                         int64_t *out);

#endif
