/* What each GPU did in each hour, beside the rows: the idle scan's figures (ledger/row.h: struct
 * device_hour). */
#ifndef GPUTALLY_LEDGER_DEVICE_HOURS_H
#define GPUTALLY_LEDGER_DEVICE_HOURS_H

#include "ledger/holders.h"
#include "ledger/row.h"

/* Add the hours of a mounted device inside [low, high), which lies in a life of its node. held:
 * when somebody held it or a part of it, normal. */
void device_hours_add(struct row_batch *batch, const struct facts *facts, const struct node *node,
                      const struct mount *mount, struct span span, const struct spans *held);

#endif
