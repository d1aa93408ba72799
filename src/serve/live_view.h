/* GPUs now, as the API shows them, from the latest values of what is scraped and pushed. */
#ifndef GPUTALLY_SERVE_LIVE_VIEW_H
#define GPUTALLY_SERVE_LIVE_VIEW_H

#include "serve/api.h"
#include "source/live.h"

/* Teams and workloads are left open: they follow from Kubernetes records, which the ledger has, and
 * a guess would show GPUs to teams whose they are not. Any thread. */
void live_view(struct live *live, gpu_now_fn each, void *to);

#endif
