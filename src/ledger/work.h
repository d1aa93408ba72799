/* Work counters (tokens, requests): an increase belongs to the hour of the later stamp and to the
 * pod's first row of that hour (semantics, section 8). */
#ifndef GPUTALLY_LEDGER_WORK_H
#define GPUTALLY_LEDGER_WORK_H

#include "ledger/load_book.h"

struct work_book {
    struct idmap by_pod; /* hour, cluster, namespace, pod -> index of entries */
    struct work_entry {
        int64_t done[WORK_COUNT];
        bool placed;
    } * entries;
    size_t n, room;
};
void work_gather(struct work_book *book, const struct load_book *loads);
/* Give a node's rows (in order; nodes in order of cluster and name) what is theirs. */
void work_place(struct work_book *book, struct row_batch *batch);
/* Increases of hours that no row took, by counter. */
void work_unplaced(const struct work_book *book, int64_t ret[WORK_COUNT]);
void work_release(struct work_book *book);

#endif
