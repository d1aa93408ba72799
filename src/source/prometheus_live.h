/* The newest samples of a Prometheus-compatible server, for the live view, asked for while somebody
 * looks: one range selector over the GPU metrics that the view shows, in an instant query, so that
 * samples come with their own stamps. Its length follows the server's scrapes.
 *
 * A thread asks; it is started by the first prometheus_live_want and rests PROMETHEUS_LIVE_MS
 * between questions. Nobody looks, nothing is asked. Any thread may call want. */
#ifndef GPUTALLY_SOURCE_PROMETHEUS_LIVE_H
#define GPUTALLY_SOURCE_PROMETHEUS_LIVE_H

#include "source/live.h"
#include "source/prometheus.h"

#define PROMETHEUS_LIVE_MS ((time_ms)15 * 1000)       /* at most so often */
#define PROMETHEUS_LIVE_SPAN_MS ((time_ms)300 * 1000) /* the longest selector, and the first */

struct prometheus_live;
/* cluster: the label of series that have none; "" none. live outlives it. Errors as those of
 * prometheus_source_new. */
enum err prometheus_live_new(const struct prometheus_options *options, const char *cluster,
                             struct live *live, struct prometheus_live **ret, struct error *err);
void prometheus_live_free(struct prometheus_live *live); /* ends a question; NULL is fine */

/* Somebody looks. Where the first answer is not there yet, waits for it, up to wait_ms after the
 * first look: a server that hangs holds up nobody after that. */
void prometheus_live_want(struct prometheus_live *live, time_ms wait_ms);

#endif
