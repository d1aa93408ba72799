/* Rows on their way into books: the books of a chunk of nodes, which are put behind each other when
 * all are read. A part belongs to the thread that reads its nodes. */
#ifndef GPUTALLY_INSIGHT_BOOKS_GATHER_H
#define GPUTALLY_INSIGHT_BOOKS_GATHER_H

#include "insight/books.h"
#include "util/idmap.h"

/* How many GPUs a pod has in each hour of the day that is being read; a pod is on one node. */
struct pod_day {
    name_t namespace;
    struct str pod;
    uint16_t gpus[24];
};

struct book_part {
    struct books books;
    struct idmap nodes, workloads, cells;
    name_t floor_model; /* of which the floor is remembered */
    bool floor_known;
    int64_t floor_mw;
    /* of the day that is being read, by series */
    size_t *cell; /* [series] */
    uint32_t *order;
    bool *done;
    size_t room;
    struct pod_day *pods;
    size_t pods_n, pods_room;
    uint32_t *pod_slots; /* pod + 1; 0 free */
    size_t pod_mask;
};
/* New, or emptied of another chunk's nodes: the room stays. */
void book_part_begin(struct book_part *part, const struct books *whole);
void book_part_release(struct book_part *part);

/* A node's day; days of a node come one after the other, in their order. O(rows) */
void book_part_add(struct book_part *part, const struct node_day *day);
/* When all days are added: what the cells of each workload add up to. O(cells) */
void book_part_add_up(struct book_part *part);

/* A workload of the books by name, put there where it is new: its index. */
size_t book_workload_index(struct books *books, struct idmap *map, name_t cluster, name_t namespace,
                           name_t workload);

/* books_add.c: the rows of a series, added to its cell and node, and where it is held, to the sum
 * of its workload; all that does not depend on their order. */
void book_add_series(struct book_cell *cell, struct book_node *node, struct book_sum *sum,
                     const struct day_series *series);
/* What hours one after the other tell of a cell: row i of the series; rows come in order. */
void book_add_hour(const struct books *books, struct book_cell *cell,
                   const struct day_series *series, size_t i, time_ms hour);
/* The rest of a workload's sum, from a cell of it; cells come in their order. */
void book_sum_add_cell(struct book_sum *sum, const struct book_cell *cell);
/* The whole sum of a workload in a later part. */
void book_sum_join(struct book_sum *sum, const struct book_sum *more);

#endif
