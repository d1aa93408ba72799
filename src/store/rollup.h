/* The roll-up of a UTC day: sums of its rows by team and the like, and its nodes; where they are
 * wanted, the same sums of each of its hours (hour_sums.c). */
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
struct rollup_sums {
    struct rollup_sum *items;
    size_t n, room;
};
/* Where the hours of a day's sum are in the sums of each hour: item + 1; 0: none. */
struct rollup_hours_of {
    uint32_t at[24];
};
struct rollup_node {
    uint32_t place;
    struct row_facts facts;
    uint32_t hours; /* bit h: a node-hour of hour h */
    money_t booked[24];
};
struct rollup_device {
    uint32_t place;
    name_t name;
    uint32_t hours; /* bit h: it has rows in hour h */
};
/* More sums of hours than this are given up (30 MB): then the day has none. */
#define ROLLUP_HOUR_SUMS_MAX (1u << 15)
struct rollup {
    int64_t day;
    struct rollup_sums sums;
    uint32_t *table; /* of sums: item + 1; 0 free */
    size_t mask;
    struct rollup_sums *of_hours;     /* [24]; NULL: they are not wanted, or were given up */
    size_t hour_sums_n;               /* in all of them */
    struct rollup_hours_of *hours_of; /* [sum] */
    size_t hours_of_n, hours_of_room;
    struct rollup_node *nodes;
    size_t nodes_n, nodes_room;
    struct rollup_device *devices;
    size_t devices_n, devices_room;
    uint32_t hours;
    uint32_t unwritten; /* bits: sums of these hours may differ from those on disk */
    uint64_t rows_n;
    bool whole; /* days.c: it equals the blocks of its day */
};
/* Begin a day anew; by_hour: also sums of each hour. */
void rollup_clear(struct rollup *rollup, int64_t day, bool by_hour);
void rollup_release(struct rollup *rollup);
/* Add the hours (bits) of a block that was opened with the names of kinds or of all. */
void rollup_add(struct rollup *rollup, struct names *names, const struct block *block,
                uint32_t place, uint32_t hours);
void rollup_add_nodes(struct rollup *rollup, const struct block *block, uint32_t place,
                      uint32_t hours);

enum err rollup_add_blocks(struct store *store, struct rollup *rollup, struct error *err);

/* Packing puts sums, nodes and devices in an order that does not depend on the order in which they
 * were added: equal roll-ups are equal bytes. */
enum err rollup_pack_sums(struct store *store, const struct rollup_sums *sums, struct strbuf *ret,
                          struct error *err);
enum err rollup_pack_nodes(struct store *store, const struct rollup *rollup, struct strbuf *ret,
                           struct error *err);
/* The same nodes with what each hour had of them, and which hours have sums (bits). */
enum err rollup_pack_node_hours(struct store *store, const struct rollup *rollup,
                                struct strbuf *ret, struct error *err);
/* Parts and nodes of a packed day, handed to the scan; `hour` is what the parts' hour is said to
 * be. Bytes are not trusted. */
enum err rollup_scan_sums(struct store *store, time_ms hour, struct str packed,
                          const struct scan *scan, struct error *err);
enum err rollup_scan_nodes(struct store *store, int64_t day, struct str packed,
                           const struct scan *scan, struct error *err);
/* Of some hours (bits) of what rollup_pack_node_hours() packed. */
enum err rollup_scan_node_hours(struct store *store, int64_t day, struct str packed, uint32_t hours,
                                const struct scan *scan, uint32_t *ret_with_sums,
                                struct error *err);

#endif
