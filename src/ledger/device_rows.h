/* The parts of building a device's rows, for device_rows.c only: what strips mean, joining strips
 * to one line (device_join.c), where the device is and how it is split (device_places.c). */
#ifndef GPUTALLY_LEDGER_DEVICE_ROWS_H
#define GPUTALLY_LEDGER_DEVICE_ROWS_H

#include "ledger/device.h"

#define INSTANCES_MAX 16      /* of one device at one stamp; NVIDIA allows 7 */
#define INSTANCES_EVER_MAX 64 /* ids that a device has in a slice; NVIDIA reuses 0 to 14 */

/* A strip with what its labels mean. */
struct meaning {
    struct strip *strip;
    struct holder_labels holder;
    const struct named_set *set; /* of the strip alone */
    name_t node, instance, profile;
    int64_t index;
};

/* The node that samples name: label node; else the host where that is a known node; else the node
 * of the exporter's pod or address; NAME_NONE: none. holder: as facts_holder_labels gives it.
 * (semantics, section 3) */
name_t strip_node(const struct facts *facts, const struct strip *strip,
                  const struct holder_labels *holder);

/* Make one line of n strips (by index into meanings), taking the arrays of a single one. */
void join_strips(struct device *device, const struct facts *facts, struct timeline *line,
                 const struct meaning *meanings, const uint32_t *which, size_t n);

/* Strips' stamps, which are needed after their columns were taken; strips_n of them. */
struct stamps {
    time_ms *t;
    size_t n;
};
struct stamps *stamps_copy(const struct device *device);
void stamps_free(struct stamps *stamps, size_t n);

/* Places and layouts at each stamp at which the device said anything. sample_of: index of the
 * sample at own row, SIZE_MAX where it said nothing. */
void places_find(struct device *device, const struct facts *facts, const struct meaning *meanings,
                 const struct stamps *stamps, const size_t *sample_of);
/* The same of a device that is never split and never moves. */
void places_stand_still(struct device *device, const struct meaning *meaning);

#endif
