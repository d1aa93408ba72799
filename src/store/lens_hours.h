/* Which hours of which GPUs are a lens's own: private to store/.
 *
 * What a GPU did in an hour is told of the whole GPU, whoever held it. Through a lens it is seen
 * where every row of that GPU and hour passes: then nobody else is in it. In other hours of a GPU
 * that has one such hour only that it was up is seen, and nothing of what it did, so that a scan
 * takes them for not observed. Other GPUs are not there. */
#ifndef GPUTALLY_STORE_LENS_HOURS_H
#define GPUTALLY_STORE_LENS_HOURS_H

#include "store/store.h"
#include "util/idmap.h"

struct lens_hours {
    struct span span; /* whole hours */
    struct idmap by_gpu;
    struct lens_gpu {
        uint64_t *own, *others; /* bit h: some row of hour h of the span passes; does not */
        bool any;
    } * gpus;
    size_t n, room;
};
/* One pass over the rows of the span, past the store's lens. Released also after an error. */
enum err lens_hours_read(struct store *store, struct span span, struct lens_hours *ret,
                         struct error *err);
void lens_hours_release(struct lens_hours *hours);

/* The hour as it is seen; false: it is not. */
bool lens_hours_cut(const struct lens_hours *hours, struct device_hour *hour);

#endif
