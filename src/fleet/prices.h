/* The price book: what a node costs an hour (semantics, section 6). Built once from the embedded
 * catalogue, --prices files and the configuration; immutable afterwards, shared by all threads. */
#ifndef GPUTALLY_FLEET_PRICES_H
#define GPUTALLY_FLEET_PRICES_H

#include "fleet/flags.h"
#include "fleet/settings.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/money.h"
#include "util/str.h"

enum capacity_type {
    CAPACITY_ON_DEMAND,
    CAPACITY_SPOT,
    CAPACITY_RESERVED,
    CAPACITY_UNKNOWN, /* priced as on-demand */
};
#define CAPACITY_TYPE_COUNT 4
extern const char *const capacity_type_words[CAPACITY_TYPE_COUNT];

/* What is known of a node whose price is asked. Texts are empty where not known. labels: the node's,
 * named as Kubernetes or as kube-state-metrics spells them (compared with every byte that is not
 * alphanumeric read as '_'). */
struct price_query {
    struct str cluster, node, cloud, region, instance_type;
    enum capacity_type capacity;
    struct str gpu_model; /* the first by name of the models present */
    const struct label *labels;
    size_t labels_n;
    time_ms at; /* prices may have a validity */
};

#define PRICE_PART_DEN_MAX 1000000

struct price {
    bool known;        /* false: unpriced (flags has it) */
    bool per_gpu;      /* the amount is for one GPU, to be multiplied by the node's */
    int64_t num;       /* nano-units an hour = num / den, exact; 0 <= num / den <= 1e15 */
    int64_t den;       /* 1..PRICE_PART_DEN_MAX; over 1 only for residual prices */
    int gpus;          /* GPUs of the instance type by the catalogue or price file; 0 unknown */
    uint32_t flags;    /* FLAG_* of what was fallen back to */
    const char *source; /* "prices.csv:12", "catalogue 2026-07-20 (derived)", "config.yaml:4:3" */
    /* When this answer begins and ends to hold: a change of price inside a life is a cut. */
    time_ms from, to;
};

struct prices;
void prices_find(const struct prices *prices, const struct price_query *query, struct price *ret);

#endif
