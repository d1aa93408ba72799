/* Reading for reports: sums of rows, from whatever is the least work.
 *
 * A scan hands over parts: sums of rows that agree in what was asked for. Whole UTC days come from
 * the day's roll-up where its fields are enough, hours and days that the window cuts from sums of
 * hours where the day has them; else blocks are opened, and their series summed up. */
#ifndef GPUTALLY_STORE_SCAN_H
#define GPUTALLY_STORE_SCAN_H

#include "store/figures.h"
#include "store/store.h"

/* Which fields of key and facts tell parts apart; others may be NAME_NONE or anything. Two bits:
 * what is asked for together is asked for by both. */
enum scan_detail {
    /* cluster, namespace; model, owner, instance_type, pool, region, cloud, capacity, type;
     * workload: only its kind ("Job"); hour: somewhere in the right UTC day; pod: NAME_NONE or not
     */
    SCAN_TEAMS = 0,
    SCAN_HOURS = 1,  /* the same, and the hour */
    SCAN_SERIES = 2, /* all fields but the hour, which is somewhere in the right UTC day */
    SCAN_ROWS = 3,   /* each row is a part */
};
/* Pods, their uids and workloads are texts of their days; interning them is half of the work. Of
 * those that are not asked for there is some name, or NAME_NONE where there is none. */
enum scan_texts {
    SCAN_TEXTS_ALL,
    SCAN_TEXTS_PODS,      /* pods and workloads */
    SCAN_TEXTS_WORKLOADS, /* workloads */
    SCAN_TEXTS_KINDS,     /* of workloads their kind */
};

struct scan_part {
    const struct row_key *key;
    const struct row_facts *facts;
    const struct figures *figures;
};

/* Hours of a node in one day, alike in what is known of the node. */
struct scan_node {
    struct row_key key;     /* cluster, node */
    struct row_facts facts; /* instance_type, pool, region, cloud, capacity */
    uint64_t hours;
    money_t booked;
    const name_t *devices; /* that have rows in that day on that node */
    size_t devices_n;
};

struct scan {
    struct span hours;
    enum scan_detail detail;
    enum scan_texts texts; /* SCAN_TEAMS and SCAN_HOURS have only kinds */
    void *context;
    void (*part)(void *context, const struct scan_part *part);
    void (*node)(void *context, const struct scan_node *node);
    void (*note)(void *context, const struct note *note);
    /* May be NULL: all. False: nothing of this node is wanted (its scan_node may come). */
    bool (*wants_node)(void *context, name_t cluster, name_t node);
    /* May be NULL: all. False: of rows of this key (but for its hour) and these facts the cost is
     * enough. */
    bool (*wants_series)(void *context, const struct row_key *key, const struct row_facts *facts);
};
/* *ret_recorded: first and past-last hour of the window that the store has; empty: none. One state
 * of the database is seen throughout. */
enum err store_scan(struct store *store, const struct scan *scan, struct span *ret_recorded,
                    struct error *err);

#endif
