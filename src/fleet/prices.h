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

struct gpu_model;
enum capacity_type {
    CAPACITY_ON_DEMAND,
    CAPACITY_SPOT,
    CAPACITY_RESERVED,
    CAPACITY_UNKNOWN, /* priced as on-demand */
};
#define CAPACITY_TYPE_COUNT 4
extern const char *const capacity_type_words[CAPACITY_TYPE_COUNT];

/* What is known of a node whose price is asked. Texts are empty where not known. labels: the
 * node's, named as Kubernetes or as kube-state-metrics spells them (compared with every byte that
 * is not alphanumeric read as '_'). */
struct price_query {
    struct str cluster, node, cloud, region, instance_type;
    enum capacity_type capacity;
    struct str gpu_model; /* the first by name of the models present */
    const struct label *labels;
    size_t labels_n;
    time_ms at;             /* prices may have a validity */
    struct str provider_id; /* as the node's spec has it; empty where not known */
    int gpus;               /* GPUs that the node is known to have; 0 unknown */
    bool whole;             /* the whole node's price whatever node_split says */
};

#define PRICE_PART_DEN_MAX 1000000

struct price {
    bool known;         /* false: unpriced (flags has it) */
    bool per_gpu;       /* the amount is for one GPU, to be multiplied by the node's */
    int64_t num;        /* nano-units an hour = num / den, exact; 0 <= num / den <= 1e15 */
    int64_t den;        /* 1..PRICE_PART_DEN_MAX; over 1 only for residual prices */
    int gpus;           /* GPUs of the instance type by the catalogue or price file; 0 unknown */
    uint32_t flags;     /* FLAG_* of what was fallen back to */
    const char *source; /* "prices.csv:12", "catalogue 2026-07-20 (derived)", "config.yaml:4:3" */
    /* When this answer begins and ends to hold: a change of price inside a life is a cut. */
    time_ms from, to;
    const char *discount; /* where the discount stands that was taken off; NULL: none was */
};

/* Building: one thread, before anybody looks anything up.
 *
 *     prices_new -> prices_add_csv, prices_add_rule -> prices_ready -> prices_find (any thread)
 *
 * Where several say something, in this order: overrides (the first that matches, a node's own name
 * before the rest), price files (the file added last first, inside a file the first row), the
 * catalogue's exact instance types, defaults of the GPU model. */
struct prices;
struct prices *prices_new(void);
void prices_free(struct prices *prices); /* NULL is fine */

#define PRICE_MAX                                                                                  \
    INT64_C(1000000000000000)             /* 1e15 nano-units (a million) an hour: more is refused */
#define PRICE_FILE_MAX ((size_t)64 << 20) /* bytes of a price file */
#define PRICE_ROWS_MAX 1000000            /* rows and rules of a book */

/* Read a price file: which of the schemas of docs/prices.md it has is seen from its header. A row
 * that is broken is left out and told (prices_problems); a file without the columns that it takes
 * is ERR_CONFIG. */
enum err prices_add_csv(struct prices *prices, const char *path, struct error *err);
enum err prices_add_csv_text(struct prices *prices, const char *name, struct str text,
                             struct error *err);

/* What a rule is about. Texts are globs; empty: any. */
struct price_selector {
    struct str cluster, node, cloud, region, instance_type, gpu_model;
    bool any_capacity;
    enum capacity_type capacity; /* unless any_capacity */
    const struct label *labels;  /* all of them; values are globs */
    size_t labels_n;
    struct span valid; /* {TIME_MIN, TIME_MAX}: always */
};
enum price_rule_kind {
    PRICE_RULE_NODE,  /* amount: nano-units an hour of the node; an override */
    PRICE_RULE_GPU,   /* amount: nano-units an hour of each GPU of the node; an override */
    PRICE_RULE_MODEL, /* amount: nano-units an hour of a GPU; the default of selector.gpu_model */
    PRICE_RULE_DISCOUNT, /* amount: 1e-4 percent off list prices, 0..1000000 */
};
struct price_rule {
    enum price_rule_kind kind;
    struct price_selector selector;
    int64_t amount;
    struct str source; /* where it stands: "config.yaml:4:3" */
};
void prices_add_rule(struct prices *prices, const struct price_rule *rule); /* copies */

struct price_policy {
    enum node_split node_split;
    money_t vcpu, gib; /* prices of a vCPU and GiB an hour where the row has none; -1 not set */
    bool no_catalogue; /* look nothing up in the catalogue */
    bool not_in_usd;   /* the ledger is in another currency: sizes of the catalogue, no prices */
};
void prices_set_policy(struct prices *prices, const struct price_policy *policy);
void prices_ready(struct prices *prices); /* last: sorts */
/* Has the user said any price? If not, reports call the figures an estimate. */
bool prices_configured(const struct prices *prices);

/* Changes with every file and rule that was added, in their order. */
uint64_t prices_digest(const struct prices *prices);

/* What was wrong in price files, a sentence each with its place and what to do. Live as the book.
 */
struct price_problem {
    const char *text; /* "prices.csv:12: usd_per_hour is '1,20': write 1.20; the row is left out" */
    bool row_lost;    /* a row was left out; else a column was ignored */
};
#define PRICE_PROBLEMS_MAX 20 /* a file; the rest is counted in one more line */
const struct price_problem *prices_problems(const struct prices *prices, size_t *ret_n);

/* A machine that could be rented on demand instead. Texts live as long as the book. */
struct price_offer {
    struct str instance_type;
    const struct gpu_model *gpu;           /* NULL: general purpose */
    int gpus;                              /* 0: general purpose */
    int64_t vcpus_milli, memory_milli_gib; /* -1 unknown */
    money_t price;                         /* of the machine an hour, discounts taken off */
    bool derived;                          /* the catalogue derived it from other prices */
    struct str date;                       /* of the catalogue's price; empty: of a price file */
    const char *source;                    /* "prices.csv:12"; NULL: the catalogue */
};
typedef void (*price_offer_fn)(void *context, const struct price_offer *offer);
/* Every machine of where->cloud and where->region (both known) that has an on-demand price at
 * where->at: price files in front of the catalogue, type by type; but where a price file lists
 * general-purpose machines of that place, they are all that is offered of these (one lists what one
 * can buy). Shares of GPUs (vGPU) are left out. prices NULL: the catalogue alone. O(book). */
void prices_offers(const struct prices *prices, const struct price_query *where,
                   price_offer_fn each, void *context);
/* The cheapest general-purpose machine that is large enough, the first by name of equals. False:
 * none is known. (semantics, section 10) */
bool prices_cheapest_general(const struct prices *prices, const struct price_query *where,
                             int64_t vcpus_milli, int64_t memory_milli_gib,
                             struct price_offer *ret);

/* The price of a node at an instant. O(log rows + rules). Any thread. (semantics, section 6) */
void prices_find(const struct prices *prices, const struct price_query *query, struct price *ret);

#endif
