/* The embedded catalogue: GPU models, MIG profiles, and instance types with their prices, as data/
 * has them. Built on first use in a few ms; immutable and shared by all threads from then on. What
 * it returns lives for ever. Money in nano-USD an hour. */
#ifndef GPUTALLY_FLEET_CATALOGUE_H
#define GPUTALLY_FLEET_CATALOGUE_H

#include "util/money.h"
#include "util/str.h"

struct gpu_model {
    struct str name;   /* the catalogue's: "A100-SXM4-80GB" */
    struct str nvml;   /* as NVML prints it (the first of its names): "NVIDIA A100-SXM4-80GB" */
    struct str vendor; /* "NVIDIA", "AMD" */
    int64_t memory_bytes;
    int32_t power_limit_mw; /* 0 unknown */
    int32_t idle_mw;        /* 0 unknown */
    int mig_slices;         /* compute slices under MIG: 7, 4 on A30; 0: no MIG */
    struct str mig_table;   /* which MIG profiles it has */
    bool time_slicing;      /* can pods take turns on it? */
    struct str no_slicing;  /* why not */
    struct str sharing_source;
    int bandwidth_gbs;   /* of its memory, GB/s; 0 unknown */
    int sms;             /* streaming multiprocessors, or compute units of AMD's; 0 unknown */
    int32_t gflops;      /* fp16 or bf16, dense, tensor cores; 0 unknown */
    bool bf16;           /* false also where it is not known */
    struct str specs;    /* where the last three are from */
    bool low_confidence; /* its figures are recalled, not read from a data sheet */
};
/* The model that an exporter, a node label or a price list means by text: exact name, the same
 * words in another spelling (case, dashes, "NVIDIA-A100-SXM4-80GB-MIG-1g.10gb"), an alias, or the
 * longest name that text begins with. NULL: unknown. O(models), ~1 us. */
const struct gpu_model *catalogue_gpu(struct str text);
const struct gpu_model *catalogue_gpus(size_t *ret_n); /* all of them */
/* Compute slices of a model under MIG: 7 where the model is unknown. */
int catalogue_mig_slices(struct str model);

struct mig_profile {
    struct str table, name; /* name: "1g.10gb", "1g.10gb+me" */
    struct str resource;    /* "nvidia.com/mig-1g.10gb" */
    int slices;             /* compute slices: 1..7 */
    int memory_slices;      /* of 8 (4 on A30) */
    int64_t memory_bytes;
    int max_instances;     /* of one GPU */
    struct str placements; /* "{0,2,4}:2": starts and size in memory slices */
};
/* The profiles of a model in order of size. */
const struct mig_profile *catalogue_mig_profiles(const struct gpu_model *model, size_t *ret_n);
/* By name: as it stands, or as the device plugin spells it (1g.10gb.me); NULL unknown. */
const struct mig_profile *catalogue_mig_profile(const struct gpu_model *model, struct str name);

struct instance_type {
    struct str cloud, region, name; /* region "*": any */
    const struct gpu_model *gpu;    /* NULL: general purpose */
    int gpus;                       /* devices that the machine shows; 0: general purpose */
    int fraction_ppm; /* of a GPU that such a device is: 1000000, less for vGPU slices */
    int64_t vcpus_milli, memory_milli_gib;
    money_t on_demand, spot; /* -1 unknown */
    struct str date;         /* when the price was so: "2026-07-20", "2026" */
    const char *source;      /* "catalogue 2026-07-20 (derived)" */
    bool derived;            /* derived from other prices, not read from a list */
};
const struct instance_type *catalogue_instance(struct str cloud, struct str region,
                                               struct str name);
/* The same type in whatever region: for its size, not for its price. cloud may be empty. */
const struct instance_type *catalogue_instance_size(struct str cloud, struct str name);

/* Median on-demand price of one such GPU in the cloud, or over all clouds where the cloud has none
 * or is not known (cloud empty). False: no list price is known. *ret_source says which. */
bool catalogue_gpu_price(struct str cloud, const struct gpu_model *model, money_t *ret,
                         const char **ret_source);
/* Price of a vCPU and a GiB of the cloud's general-purpose machines (least squares over their
 * on-demand prices in the region, else in the cloud). False: none are known. */
bool catalogue_cpu_price(struct str cloud, struct str region, money_t *ret_vcpu, money_t *ret_gib);
/* All machines with GPUs, and all general-purpose ones, by (name, cloud, region). */
const struct instance_type *catalogue_gpu_types(size_t *ret_n);
const struct instance_type *catalogue_general_types(size_t *ret_n);
struct str catalogue_date(void); /* the newest date in it; NUL-terminated */

#endif
