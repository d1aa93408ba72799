/* Devices: physical GPUs with their samples, MIG instances, layouts and places (semantics, sections
 * 3 to 7), built from the strips of an intake. A device is built by one thread, then read by many.
 */
#ifndef GPUTALLY_LEDGER_DEVICE_H
#define GPUTALLY_LEDGER_DEVICE_H

#include "fleet/facts.h"
#include "ledger/timeline.h"

struct instance {
    name_t id; /* GPU instance id */
    struct timeline line;
};

/* A layout: the instances that the device is split into, from `since` on. */
struct layout {
    time_ms since;
    struct layout_part {
        name_t id, profile;
        uint32_t instance; /* into device->instances */
    } * parts;
    size_t n; /* 0: not split */
};

/* Where the device is: from sample `first` of its samples on. */
struct place {
    size_t first;
    name_t node;
    int64_t index;
    name_t model;
};

/* The energy of a stretch [from, to) comes from the interval [start, end) of the counter (grown, in
 * mJ), or where that is not there from power x time. */
struct energy {
    time_ms from, to, start, end;
    int64_t grown_mj; /* -1: power */
    int64_t power_nw;
};

struct device {
    name_t cluster, uuid;
    uint32_t number;       /* of the plan (ledger/plan.h) */
    struct strip **strips; /* in order of arrival of their series */
    size_t strips_n;
    struct arena arena;
    struct timeline own; /* its t: all stamps at which it has any row */
    struct instance *instances;
    size_t instances_n, instances_room;
    time_ms *sample_t; /* stamps at which it or an instance of it said anything; own.t where it
                          always did */
    size_t samples_n;
    struct place *places;
    size_t places_n, places_room;
    struct layout *layouts;
    size_t layouts_n, layouts_room;
    struct spans lost; /* under an XID that marks it as lost */
    struct energy *energy;
    size_t energy_n, energy_room;
    /* The energy counter by own stamp, in uJ, where it is there at every stamp of
     * [counter_from, counter_to), never falls and has no gap in it; `energy` is then what is before
     * it. NULL: `energy` is all. */
    int64_t *counter;
    size_t counter_from, counter_to;
    name_t model;
    uint8_t *own_plain[4]; /* while board signals are lifted */
    bool guessed;          /* the unit of GPU_UTIL was guessed from its values */
    uint64_t rejected;
    int64_t frozen_ms; /* of the hours that are booked, in which an old text was served */
};

struct devices {
    struct device **at;
    size_t n, room;
};

/* Build one device of strips that were reviewed and have their rows: rows, clean-ups, pieces,
 * layouts, places. Takes the strips' arrays. */
void device_build(struct device *device, const struct facts *facts);
/* Start of what the i-th sample covers. */
static inline time_ms device_sample_start(const struct device *device,
                                          const struct settings *settings, size_t i)
{
    return cover_start(device->sample_t, i, settings);
}
/* The layout at t; NULL: not split. */
const struct layout *device_layout_at(const struct device *device, time_ms t);
void devices_release(struct devices *devices);

/* device_rows.c: strips to rows, calling the two that follow */
void device_make_rows(struct device *device, const struct facts *facts);
/* Clean up what is not real: GPU_UTIL of instances, repeated board signals, stuck counters, old
 * texts of frozen exporters. */
void device_clean(struct device *device, const struct facts *facts);
/* sample_t; sample_of (may be NULL): index of the sample of each own row, SIZE_MAX
 * where nothing was said. */
void device_find_samples(struct device *device, size_t *sample_of);
int64_t instance_order(struct str a, struct str b); /* shorter first, then bytes */

#endif
