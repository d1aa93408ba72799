/* The report query: window, keys and filters in, grouped figures out (semantics, section 9). */
#ifndef GPUTALLY_QUERY_QUERY_H
#define GPUTALLY_QUERY_QUERY_H

#include "ledger/row.h"
#include "store/figures.h"
#include "store/store.h"

/* X(NAME, "word"): what a report can group by and filter on (product: report --by) */
#define KEY_TABLE(X)                                                                               \
    X(CLUSTER, "cluster")                                                                          \
    X(NODE, "node")                                                                                \
    X(POOL, "pool")                                                                                \
    X(INSTANCE_TYPE, "instance-type")                                                              \
    X(REGION, "region")                                                                            \
    X(CLOUD, "cloud")                                                                              \
    X(CAPACITY_TYPE, "capacity-type")                                                              \
    X(MODEL, "model")                                                                              \
    X(GPU, "gpu")                                                                                  \
    X(INSTANCE, "instance")                                                                        \
    X(NAMESPACE, "namespace")                                                                      \
    X(TEAM, "team")                                                                                \
    X(WORKLOAD, "workload")                                                                        \
    X(KIND, "kind")                                                                                \
    X(TYPE, "type")                                                                                \
    X(POD, "pod")                                                                                  \
    X(CONTAINER, "container")                                                                      \
    X(CATEGORY, "category")                                                                        \
    X(CAUSE, "cause")                                                                              \
    X(DAY, "day")                                                                                  \
    X(HOUR, "hour")
enum key {
#define X(name, word) KEY_##name,
    KEY_TABLE(X)
#undef X
        KEY_COUNT
};
extern const char *const key_words[KEY_COUNT];
#define QUERY_KEYS_MAX 6
#define QUERY_FILTERS_MAX 16

/* key=value or key!=value; the value is a glob, "-" is none. Several on one key: any of those that
 * are asked for, and none of those that are excluded. */
struct query_filter {
    enum key key;
    bool negate;
    struct str value;
};

/* A condition on rows, in a list that is a tree in preorder: the key's text fits the filter's glob
 * (or, negated, does not), or all or any of the conditions inside of it hold. */
enum query_test { QUERY_FITS, QUERY_ALL, QUERY_ANY };
struct query_condition {
    enum query_test test;
    struct query_filter filter; /* of QUERY_FITS; not category or cause */
    size_t inside;              /* of the others: so many that follow, those inside of these too */
};

/* The keys category and cause divide rows by their money: as soon as one of them is a key or a
 * filter, figures have cost and category and nothing else (hours, energy and rows are 0). A row's
 * hours cannot be told apart by its money, least of all where it is unpriced. category is one of
 * the words used, slack, held_idle, node_idle, …; cause is the cause of node_idle, or "-". */
struct query {
    struct span window; /* whole hours */
    enum key keys[QUERY_KEYS_MAX];
    size_t keys_n; /* 0: one group, the total */
    struct query_filter filters[QUERY_FILTERS_MAX];
    size_t filters_n;
    /* Beside the filters; owned by the caller. It leaves the nodes' side of the balance alone. */
    const struct query_condition *where;
    size_t where_n; /* 0: none */
    const char *tz; /* IANA zone of KEY_DAY; NULL: UTC */
};

/* NAN where there is nothing to divide by. */
double figures_utilisation(const struct figures *f);     /* 0..1 */
double figures_effective_price(const struct figures *f); /* currency per useful GPU-hour */
double figures_coverage(const struct figures *f);        /* observed / held, 0..1 */
double figures_efficiency(const struct figures *f);      /* used / cost of held rows, 0..1 */
money_t figures_node_idle(const struct figures *f);

struct group {
    struct str keys[QUERY_KEYS_MAX]; /* "-" where the row has none; live as long as the result */
    struct figures figures;
};

struct result {
    struct arena arena;
    struct query query;
    struct group *groups; /* no order is promised before result_sort() */
    size_t groups_n;
    struct figures total;
    /* of the window and the filters that concern nodes: */
    uint64_t node_hours, gpus, nodes; /* distinct GPUs and nodes seen */
    money_t price;                    /* what the nodes cost: the balance's other side */
    money_t booked;       /* what all rows of the window add up to, before filters on holders */
    struct span recorded; /* hours of the window that the store has */
    struct note *notes;   /* of the window, added up */
    size_t notes_n;
    struct names *names;
};

enum err query_run(struct store *store, const struct query *query, struct result **ret,
                   struct error *err);
/* Several queries that differ in their keys only (the same window, filters and zone): those whose
 * keys ask for sums as fine as each other's, or for less than an earlier one that reads rows, share
 * a scan, which is nearly all that a query costs.
 * ret: a result for each; untouched on failure. */
#define QUERY_RUN_MAX 4
enum err query_run_beside(struct store *store, const struct query *queries, size_t n,
                          struct result **ret, struct error *err);
void result_free(struct result *result);

/* "team,model" or "namespace"; "" is an error. Unknown words: the nearest known one is named. */
enum err query_parse_keys(struct str text, struct query *query, struct error *err);
enum err query_parse_filter(struct str text, struct query *query, struct error *err);

/* Sort groups: by cost, descending, unless `by` names a figure ("held_idle", "gpu_hours", …) or
 * "name"; ties by keys. */
enum err result_sort(struct result *result, struct str by, struct error *err);

#endif
