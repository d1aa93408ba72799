/* What the rules of `recommend` read: the ledger of a window, added up by GPU and holder.
 *
 * A cell is a GPU (or a MIG instance of it) under one holder, or under nobody: the smallest thing
 * that a saving can be claimed on, so that no dollar is claimed twice. Sums are of the window;
 * weighted times are ns of a GPU. Built once, then read-only. One thread. */
#ifndef GPUTALLY_INSIGHT_BOOKS_H
#define GPUTALLY_INSIGHT_BOOKS_H

#include "insight/threshold.h"
#include "query/hours.h"
#include "util/names.h"

#define MONTH_HOURS 730

struct book_cell {
    name_t cluster, node, device, instance, namespace; /* namespace NAME_NONE: unheld */
    name_t container;                                  /* the last row's */
    struct row_facts facts;                            /* the last row's */
    time_ms first, last; /* begin of the first, end of the last hour */
    money_t cost, category[CATEGORY_COUNT];
    wide_t gpu_ns, held_ns, observed_ns;
    wide_t e;            /* integral, ms x 1e-9 */
    int64_t observed_ms; /* wall */
    int64_t floor_mw;    /* near what the model draws when it does nothing; 0 not known */
    uint32_t flags;
    bool shared; /* some row is of a part of the GPU */
    /* up to when it was low or busy, or a kernel ran 1 % of an hour (to the hour); observed since
     */
    time_ms worked_until;
    int64_t idle_observed_ms;
    /* the last run of hours in which a kernel always ran and the chip did nothing */
    time_ms useless_since; /* TIME_MAX: none now */
    money_t useless_cost;
    wide_t useless_sm, useless_e; /* integrals over useless_ms */
    wide_t useless_mj;            /* energy */
    int64_t useless_ms;
    bool useless_by_power;       /* without SM activity: told by power alone */
    size_t workload, node_index; /* of books; workload SIZE_MAX: unheld */
};

/* What the cells of a workload add up to; what only one of a workload is asked for, cells have not.
 */
struct book_sum {
    name_t container;       /* the last row's */
    struct row_facts facts; /* likewise */
    time_ms first, last;
    money_t cost, category[CATEGORY_COUNT];
    wide_t gpu_ns, held_ns, observed_ns, state_ns[STATE_COUNT];
    wide_t u_ns;                  /* useful time, ns */
    wide_t u, e;                  /* integrals, ms x 1e-9 */
    int64_t observed_ms, held_ms; /* wall */
    int64_t hist_u_ns[HISTOGRAM_BINS];
    int64_t mem_max_bytes, mem_total_bytes, mem_seen_ms;
    wide_t mem_byte_ms;
    int64_t work[WORK_COUNT];
    wide_t measure[MEASURE_COUNT]; /* ms x 1e-9, over measure_seen_ms */
    int64_t measure_seen_ms[MEASURE_COUNT];
    wide_t energy_mj;
    uint32_t flags;
    bool shared; /* some cell is, or is of a MIG instance */
    time_ms worked_until;
};

/* What the pods of a workload did beside their GPUs, over the window; as struct workload_hour. */
struct book_load {
    name_t user;        /* of interactive work: the person of the last hour that names one */
    time_ms user_until; /* end of that hour */
    int64_t cpu_seen_ms, cpu_max_mcpu, cpu_limit_mcpu; /* max, limit -1: not known */
    wide_t cpu_mcpu_ms;
    int64_t serving_seen_ms; /* 0: no serving metric */
    wide_t running_ms, waiting_ms;
    int64_t running_max, waiting_max; /* -1: not exported */
    wide_t kv;
    int64_t kv_seen_ms, kv_max;
    int64_t requests, tokens; /* -1: no such counter */
    time_ms
        served_until; /* end of the last hour with a request in work, queued or done; TIME_MIN */
};

struct book_workload {
    struct book_load load;
    name_t cluster, namespace, workload, owner, model;
    enum workload_type type;
    size_t *cells; /* part of books.of_workloads */
    size_t cells_n;
    struct book_sum sum;
    int gpus_a_pod; /* the most GPUs (or instances) that one of its pods held in an hour */
};

/* What the host of a node did over the window; as struct machine_hour. */
struct book_host {
    wide_t cpu; /* ms x 1e-9 */
    int64_t cpu_seen_ms, cpu_max, cpus;
    wide_t net_bytes;
    int64_t net_seen_ms;
    int64_t requested_mcpu, requested_memory_bytes; /* most at a time; -1 */
    int32_t cpu_pods, daemon_pods;                  /* of the last hour that knows them; -1 */
    name_t cpu_workloads;
    enum machine_taint gpu_taint; /* the last that is known */
};

/* What Kubernetes says of a namespace's GPUs; the last hour of the window that has it, and sums. */
struct book_namespace {
    struct namespace_hour last;
    int32_t pending_pods_max;
    int64_t pending_largest_max;
    wide_t pending_gpu_ms;
};

struct book_node {
    struct book_host host;
    name_t cluster, node;
    struct row_facts facts;
    money_t booked, price; /* price an hour: the last */
    int32_t gpus;
    time_ms first, last;
    uint32_t flags;
    name_t price_source;
    money_t category[CATEGORY_COUNT];
    wide_t category_ns[CATEGORY_COUNT]; /* GPU time of rows whose money is mostly of it */
    time_ms taken_until;                /* after this hour nobody held anything; TIME_MIN */
    wide_t gpu_ns;
    size_t pool;           /* index of the first node of its cluster, pool and instance type */
    size_t cells, cells_n; /* the first one, and how many stand together */
};

struct books {
    struct names *names;
    struct span window; /* the recorded part of what was asked for */
    struct thresholds thresholds;
    const struct prices *prices; /* what could be rented instead; borrowed, set by whoever has
                                    them; NULL: the catalogue alone */
    struct book_cell *cells;
    size_t cells_n, cells_room;
    size_t *of_workloads; /* cells, workload by workload */
    struct book_workload *workloads;
    size_t workloads_n, workloads_room;
    struct book_node *nodes;
    size_t nodes_n, nodes_room;
    struct book_namespace *namespaces;
    size_t namespaces_n, namespaces_room;
    struct note *wishes; /* NOTE_EXEMPT, of any time of the window (insight/exempt.h) */
    size_t wishes_n, wishes_room;
};

/* thresholds NULL: the defaults. */
enum err books_read(struct store *store, struct span window, const struct thresholds *thresholds,
                    struct books **ret, struct error *err);
static inline int64_t books_threshold(const struct books *books, enum threshold_id id)
{
    return books->thresholds.values[id];
}
/* Was it held for as many GPU-hours as the one threshold says, and as much of that observed as the
 * other? */
static inline bool book_is_judged(const struct books *books, const struct book_sum *sum,
                                  enum threshold_id held, enum threshold_id observed)
{
    return sum->held_ns >= (wide_t)books_threshold(books, held) * 1000000 &&
           ratio_reached(sum->observed_ns, sum->held_ns, books_threshold(books, observed));
}
void books_free(struct books *books); /* NULL is fine */

/* Money of the window as money a month: x 730 h / the hours from `first` to the window's end. */
money_t books_month(const struct books *books, time_ms first, money_t window_money);
/* Is it still there: in the last two hours of the window? */
bool books_is_now(const struct books *books, time_ms last);

#endif
