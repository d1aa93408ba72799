/* The roll-up of a UTC day: sums of its rows by team and the like, and its nodes. */
#ifndef GPUTALLY_STORE_ROLLUP_H
#define GPUTALLY_STORE_ROLLUP_H

#include "store/block.h"
#include "store/scan.h"

/* Sums by what SCAN_TEAMS tells apart. */
struct rollup_sum {
    struct row_key key;
    struct row_facts facts;
    struct figures figures;
};
struct rollup_node {
    uint32_t place;
    struct row_facts facts;
    uint64_t hours;
    money_t booked;
};
struct rollup_device {
    uint32_t place;
    name_t name;
};
struct rollup {
    int64_t day;
    struct rollup_sum *sums;
    size_t sums_n, sums_room;
    struct rollup_node *nodes;
    size_t nodes_n, nodes_room;
    struct rollup_device *devices;
    size_t devices_n, devices_room;
    uint32_t *table; /* sum + 1; 0 free */
    size_t mask;
    uint32_t hours;
    uint64_t rows_n;
    bool whole; /* days.c: it equals the blocks of its day */
};
void rollup_clear(struct rollup *rollup, int64_t day);
void rollup_release(struct rollup *rollup);
/* Add the hours (bits) of a block that was opened with the names of kinds or of all. */
void rollup_add(struct rollup *rollup, struct names *names, const struct block *block,
                uint32_t place, uint32_t hours);
void rollup_add_nodes(struct rollup *rollup, const struct block *block, uint32_t place,
                      uint32_t hours);

enum err rollup_add_blocks(struct store *store, struct rollup *rollup, struct error *err);

/* Packing puts sums, nodes and devices in an order that does not depend on the order in which they
 * were added: equal roll-ups are equal bytes. */
enum err rollup_pack_sums(struct store *store, const struct rollup *rollup, struct strbuf *ret,
                          struct error *err);
enum err rollup_pack_nodes(struct store *store, const struct rollup *rollup, struct strbuf *ret,
                           struct error *err);
/* Parts and nodes of a packed day, handed to the scan. Bytes are not trusted. */
enum err rollup_scan_sums(struct store *store, int64_t day, struct str packed,
                          const struct scan *scan, struct error *err);
enum err rollup_scan_nodes(struct store *store, int64_t day, struct str packed,
                           const struct scan *scan, struct error *err);

#endif
