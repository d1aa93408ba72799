/* Loads: what is measured beside GPUs, of hosts, containers and inference servers. One table of
 * spellings says which metric is which load, in which unit.
 *
 * A host alone has hundreds of such series (processors x modes), so that samples are not kept: a
 * counter's increases are added up in five minutes on the clock, over all series of a target, as
 * they come; gauges are added up by stamp. What adds up is a *meter*: one metric of one target. An
 * increase belongs to the five minutes that its later stamp ends or lies in: (low, high].
 *
 * Two targets that scrape the same thing have a meter each, and so have two spellings of one load:
 * readers take, of five minutes, the first meter in order that has anything of them
 * (ledger/load_book), so that nothing counts twice. */
#ifndef GPUTALLY_FLEET_LOADS_H
#define GPUTALLY_FLEET_LOADS_H

#include <pthread.h>

#include "fleet/intake.h"
#include "util/idmap.h"

#define LOAD_SLOT_MS ((time_ms)300000)

enum load {
    LOAD_CPU,           /* of a host: us in all modes, and of that idle */
    LOAD_CPUS,          /* processors, where a server counts them */
    LOAD_NET_IN,        /* bytes of physical interfaces */
    LOAD_NET_OUT,       /* likewise */
    LOAD_CONTAINER_CPU, /* us of a pod's containers */
    LOAD_RUNNING,       /* requests in work */
    LOAD_WAITING,       /* requests in the queue */
    LOAD_KV,            /* 1e-9 of the KV cache; of several engines the mean */
    LOAD_GENERATION_TOKENS,
    LOAD_PROMPT_TOKENS,
    LOAD_REQUESTS, /* done */
    LOAD_COUNT
};

enum load_group {
    LOAD_GROUP_HOST,      /* thousands of series: servers are asked for sums (prometheus_loads.c) */
    LOAD_GROUP_CONTAINER, /* likewise */
    LOAD_GROUP_SERVING,
    LOAD_GROUP_SUM, /* names of our own for such sums */
};

/* A spelling. Of servers' names with a colon the one with '_' instead is meant too. */
struct load_name {
    const char *metric;
    enum load load;
    double scale;    /* to the kept unit */
    const char *own; /* "cpu mode": labels that are not the target's; NULL: all but known ones are
                      */
    const char *label, *value; /* only series with this label; NULL: any */
    enum load_group group;
};
extern const struct load_name load_names[];
extern const size_t load_names_n;

/* The first spelling of a metric's name, NULL: no load. O(spellings) on a prefix that fits. */
const struct load_name *load_of_metric(struct str metric);
/* The spelling of a series; NULL where it is none or one that would count something twice (a
 * network bridge, a container's parent, a second rank of the same engine). */
const struct load_name *load_of_series(const struct label *labels, size_t n);

bool load_is_gauge(enum load load);

/* Where sums that a server has made of many series are put (prometheus_loads.c). */
#define LOAD_SUM_CPU "gputally:node_cpu_seconds" /* mode="idle" or mode="busy" */
#define LOAD_SUM_CPUS "gputally:node_cpus"       /* how many processors */
#define LOAD_SUM_CONTAINER_CPU "gputally:container_cpu_seconds"

struct load_bin {
    int64_t slot; /* of (slot, slot + 1] x LOAD_SLOT_MS */
    int64_t sum;  /* of increases */
    int64_t idle; /* of LOAD_CPU: what of that was idle */
    int64_t cpus;
};
struct load_reading {
    time_ms t;
    int64_t sum;
    int64_t series;
};

struct pair;
struct meter {
    pthread_mutex_t lock; /* while sources deliver */
    const struct load_name *name;
    uint64_t hash;       /* of labels */
    struct pair *labels; /* of the target */
    uint32_t labels_n;
    struct load_bin *bins; /* of counters, in order of slot */
    size_t bins_n, bins_room;
    struct load_reading *readings; /* of gauges, in order of time */
    size_t readings_n, readings_room;
};

/* A series of a meter. */
struct load_series {
    struct meter *meter;
    name_t metric;
    struct pair *labels; /* all, for the carry */
    uint32_t labels_n;
    uint64_t taken; /* samples */
    bool idle, any;
    bool counts_cpu;     /* one such series a processor */
    time_ms first, last; /* stamps of what is added up */
    int64_t first_value, last_value;
    int64_t counted, first_counted; /* slots in which its processor is counted */
    struct load_sample {
        time_ms t;
        int64_t v;
    } * samples; /* that are not added up yet, where the order of arrival is not known */
    size_t n, room;
};

/* Samples of a series; in_order: its samples come in order of time, and repeat at most what was
 * there. Counters' samples after `until` are then left out: what follows the last one before it
 * belongs to others. One thread at a time a series. */
void load_append(struct load_series *series, bool in_order, time_ms until, const time_ms *t,
                 const double *v, size_t n);
/* Add up what is still kept as samples. */
void load_settle(struct load_series *series);
/* The last sample at or before `at`; false: none. Settled. */
bool load_last(const struct load_series *series, time_ms at, time_ms *ret_t, double *ret_v);
void load_series_release(struct load_series *series);
void meter_release(struct meter *meter);

/* The key of a meter in its intake, by spelling and hash of the target's labels. */
static inline struct idkey meter_key(const struct load_name *name, uint64_t hash)
{
    return IDKEY((uint32_t)(name - load_names), (uint32_t)hash, (uint32_t)(hash >> 32));
}
/* NULL: nothing of it. O(log n) */
const struct load_bin *meter_bin(const struct meter *meter, int64_t slot);
static inline int64_t load_slot(time_ms t)
{
    time_ms before = t - 1, rest = before % LOAD_SLOT_MS;
    return (before - (rest < 0 ? rest + LOAD_SLOT_MS : rest)) / LOAD_SLOT_MS;
}

#endif
