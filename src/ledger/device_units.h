/* Units that a metric's name does not tell: judged by exporter and collector over all that a slice
 * has, since one idle GPU shows nothing. (inputs.md, section 1) */
#ifndef GPUTALLY_LEDGER_DEVICE_UNITS_H
#define GPUTALLY_LEDGER_DEVICE_UNITS_H

#include "ledger/device.h"

/* Mark the strips (settled) whose *_RATIO is percent and whose GPU_UTIL is a ratio. One thread. */
void units_judge(struct intake *intake);
/* Bring the strip's values to the unit that its metrics promise. The device's thread. */
void units_settle(struct device *device, struct strip *strip);

#endif
