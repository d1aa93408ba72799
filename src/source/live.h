/* What the GPUs say now: the latest value of each signal by device, for /gpus, top and alerts.
 *
 * A journal feeds it (journal_options.live) with what is pushed and scraped; a service may feed it
 * from other sources too. A device is a UUID and GPU instance in a cluster, or node and index where
 * there is no UUID. Its holder is what the newest sample's labels say (exported_pod before pod;
 * a bare pod is nobody's where Prometheus has renamed labels of that job, or the container is an
 * exporter's); the ledger knows better from the Kubernetes records, but later.
 *
 * Values are those of signal_clean(): SIGNAL_ABSENT where there is none. A stale marker makes a
 * signal absent. Samples older than the one that is there are ignored, so that late data and
 * replays change nothing.
 *
 * Bounded: LIVE_DEVICES_MAX devices; what was silent for LIVE_SILENT_MS is forgotten. Any thread
 * may call anything; a snapshot is immutable and shared by all who ask within max_age_ms. */
#ifndef GPUTALLY_SOURCE_LIVE_H
#define GPUTALLY_SOURCE_LIVE_H

#include "fleet/settings.h"
#include "fleet/signals.h"
#include "util/clock.h"
#include "util/str.h"

#define LIVE_DEVICES_MAX (1u << 18)
#define LIVE_HOLDERS_MAX (1u << 20)
#define LIVE_SILENT_MS (2 * HOUR_MS)
#define LIVE_FRESH_MS ((time_ms)1000) /* of a snapshot, for those who need not have the last */

struct live;
struct live *live_new(void);
void live_free(struct live *live); /* NULL is fine; snapshots live on */
/* What counts as idle, and which containers are exporters; without it the defaults. */
void live_configure(struct live *live, const struct settings *settings);

/* A series of a device: what samples are told with. Never an index of yours: opaque. */
typedef uint64_t live_ref;
#define LIVE_NONE UINT64_MAX /* no GPU signal, or no room */
live_ref live_series(struct live *live, const struct label *labels, size_t n);
/* n samples, one lock. refs that are LIVE_NONE are skipped. */
void live_samples(struct live *live, const live_ref *ref, const time_ms *t, const double *v,
                  size_t n);

struct live_gpu {
    const char *cluster, *node, *uuid, *instance, *index, *model, *profile; /* "" not known */
    const char *namespace, *pod, *container;
    time_ms at;                  /* of the newest sample */
    time_ms first, worked;       /* activity: first sample, last one that was not idle; TIME_MIN */
    int64_t value[SIGNAL_COUNT]; /* unit of fleet/signals.h; SIGNAL_ABSENT */
    time_ms value_at[SIGNAL_COUNT];
};
struct live_snapshot {
    const struct live_gpu *gpus; /* by cluster, node, index, uuid, instance */
    size_t n;
    time_ms newest; /* of all; TIME_MIN: none */
};
/* The state of at most max_age_ms ago (LIVE_FRESH_MS does for a page; 0: of now). O(devices) where
 * it is made anew. */
const struct live_snapshot *live_snapshot(struct live *live, time_ms max_age_ms);
void live_snapshot_release(const struct live_snapshot *snapshot); /* NULL is fine */

#endif
