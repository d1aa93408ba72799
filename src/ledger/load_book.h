/* The load book: hours of hosts, workloads and namespaces from meters and facts (row.h: struct
 * machine_hour, workload_hour, namespace_hour), and the work of the ledger's rows.
 *
 * Meters are looked up by what they measure: a node, or a pod. Of several that measure the same
 * (two exporters of a node, two targets that scrape one server, two spellings) the first in order
 * of spelling and label texts that has anything of five minutes is taken for them. Everything is a
 * function of samples around the hour, so that slices, order and threads change nothing.
 *
 * Built by one thread, then read by all; load_book_holders under the engine's lock. */
#ifndef GPUTALLY_LEDGER_LOAD_BOOK_H
#define GPUTALLY_LEDGER_LOAD_BOOK_H

#include "fleet/facts.h"
#include "ledger/row.h"

struct meter_list {
    struct idkey key; /* cluster, namespace, pod, load; cluster, node, load */
    bool of_node;
    const struct meter **at; /* in order of preference */
    size_t n, room;
};

struct load_book {
    struct facts *facts;
    struct span hours;
    struct idmap of_node, of_pod; /* {cluster, node, load}, {cluster, namespace, pod, load} */
    struct meter_list *lists;
    size_t lists_n, lists_room;
    struct idmap pods_of_node; /* cluster, node -> index of on_node */
    struct pod_list *on_node;
    size_t on_node_n, on_node_room;
    /* who held GPUs when, from the rows */
    struct idmap held; /* hour, cluster, namespace, pod -> index of holders */
    struct load_holder {
        time_ms hour;
        name_t cluster, namespace, pod, workload;
        enum workload_type type;
    } * holders;
    size_t holders_n, holders_room;
};

/* Settles the intake's loads. Facts and intake must outlive the book. */
void load_book_init(struct load_book *book, struct facts *facts, struct intake *intake,
                    struct span hours);
void load_book_release(struct load_book *book);

/* Increase of a pod's counter in an hour; -1: nothing counts it. */
int64_t load_book_count(const struct load_book *book, time_ms hour, name_t cluster,
                        name_t namespace, name_t pod, enum load load);

/* Add the machine-hours of a node whose node_hours are in the batch. Thread-safe over nodes. */
void load_book_machine(const struct load_book *book, const struct node *node,
                       struct row_batch *batch);
/* Remember who holds GPUs by the batch's rows. */
void load_book_holders(struct load_book *book, const struct row_batch *batch);
/* Add what the holders' workloads did, and what is known of namespaces, in order. */
void load_book_workloads(struct load_book *book, struct row_batch *batch);
void load_book_namespaces(const struct load_book *book, struct row_batch *batch);

/* ------------------------------------------------------------------ among ledger/load_*.c */

#define LOAD_SLOTS_AN_HOUR (HOUR_MS / LOAD_SLOT_MS)

const struct meter_list *load_list_of_node(const struct load_book *book, name_t cluster,
                                           name_t node, enum load load);
const struct meter_list *load_list_of_pod(const struct load_book *book, name_t cluster,
                                          name_t namespace, name_t pod, enum load load);
/* Of the slot, from the first meter that has it; NULL: none (or no list). */
const struct load_bin *load_list_bin(const struct meter_list *list, int64_t slot);

/* Levels that go up and down: the most of each at a time, and its integral, by the hour. */
#define SWEEP_LEVELS 4
struct sweep {
    struct sweep_event {
        time_ms t;
        int64_t delta[SWEEP_LEVELS];
    } * events;
    size_t n, room;
};
/* The levels rise by delta in [from, to) and fall again. */
void sweep_add(struct sweep *sweep, struct span span, const int64_t delta[SWEEP_LEVELS]);
typedef void (*sweep_fn)(void *context, time_ms hour, const int64_t most[SWEEP_LEVELS],
                         const wide_t level_ms[SWEEP_LEVELS]);
/* A call for each hour of `hours`, in order. */
void sweep_hours(struct sweep *sweep, struct span hours, sweep_fn each, void *context);
void sweep_release(struct sweep *sweep);

#endif
