/* Inside of the price book, for prices.c (rules and lookup),
 * prices_offers.c (what else could be rented), prices_csv.c (price files) and
 * prices_opencost.c (OpenCost's files). Nobody else includes it. */
#ifndef GPUTALLY_FLEET_PRICES_BOOK_H
#define GPUTALLY_FLEET_PRICES_BOOK_H

#include "fleet/prices.h"
#include "util/csv.h"

#define SIZE_PLACES 6 /* vCPUs and GiB are kept in millionths */
#define GPUS_UNKNOWN (-1)

/* A row about an instance type. cloud, region empty: any. */
struct price_row {
    struct str cloud, region, instance_type;
    struct str gpu_model; /* empty: not said */
    enum capacity_type capacity;
    bool any_capacity; /* OpenCost's: the price is for whatever the node is */
    money_t price;
    int gpus;                      /* or GPUS_UNKNOWN */
    int64_t vcpus_ppm, memory_ppm; /* -1 unknown */
    money_t vcpu, gib;             /* -1 unknown */
    struct span valid;
    const char *source;
    int file, line; /* the file read last goes first; inside a file, the first line */
};

/* A row of OpenCost's schema that names a node, or a label of nodes whose GPUs have a price. */
enum asset_field { ASSET_NAME, ASSET_PROVIDER_ID, ASSET_LABEL };
struct price_asset {
    bool gpu;
    enum asset_field field;
    struct str label, id, region; /* region empty: any */
    money_t price;
    const char *source;
    int file;
};

struct prices {
    struct arena arena;
    struct price_rule *rules; /* in the order of being added */
    size_t rules_n, rules_room;
    struct price_row *rows; /* once ready: by (instance type, file last first, line) */
    size_t rows_n, rows_room;
    struct price_asset *assets;
    size_t assets_n, assets_room;
    struct price_problem *problems;
    size_t problems_n, problems_room;
    struct price_policy policy;
    int files;
    bool priced, ready;
    uint64_t digest;
};

/* While a file is read. */
struct price_reader {
    struct prices *prices;
    struct csv csv;
    const char *name;
    int file;
    size_t told, untold; /* problems of this file that were told, and that were one too many */
};

void prices_problem(struct price_reader *reader, bool row_lost, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
const char *prices_source(struct price_reader *reader); /* "prices.csv:12" */
struct str csv_trimmed(struct str field);

/* Does the header have OpenCost's columns, and the rows below it. */
bool prices_is_opencost(const struct csv *header);
enum err prices_read_opencost(struct price_reader *reader, struct error *err);

/* The amount less the first discount that is about the node; ret->discount says where it stands. */
money_t price_discounted(const struct prices *prices, const struct price_query *query,
                         money_t amount, struct price *ret);
/* The catalogue is in USD, and nothing here converts. */
bool prices_has_catalogue(const struct prices *prices);

struct str price_label(const struct label *labels, size_t n, struct str name);

#endif
