/* Units that a metric's name does not tell: judged by exporter and collector over all that a slice
 * has, since one idle GPU shows nothing. (inputs.md, section 1) */
#ifndef GPUTALLY_LEDGER_DEVICE_UNITS_H
#define GPUTALLY_LEDGER_DEVICE_UNITS_H

#include "ledger/device.h"

/* What the strips that were weighed show. Zero-initialise. One thread. */
struct units {
    struct idmap percent;    /* exporters whose *_RATIO is percent */
    struct idmap collectors; /* -> evidence */
    struct unit_evidence *evidence;
    size_t n, room;
};
/* A strip with its rows, settled; all of them in their order. */
void units_weigh(struct units *units, struct strip *strip);
/* Then mark those whose *_RATIO is percent, whose GPU_UTIL is a ratio, and that say anything. */
void units_judge(const struct units *units, struct intake *intake);
void units_release(struct units *units);

/* Bring the strip's values to the unit that its metrics promise. The device's thread. */
void units_settle(struct device *device, struct strip *strip);

#endif
