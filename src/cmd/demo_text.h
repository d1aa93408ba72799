/* The demo's fleet as OpenMetrics text, as dcgm-exporter, kube-state-metrics and vLLM spell it and
 * Prometheus stamps it: families one after the other, a series together, in order of time. */
#ifndef GPUTALLY_CMD_DEMO_TEXT_H
#define GPUTALLY_CMD_DEMO_TEXT_H

#include "cmd/demo_fleet.h"
#include "util/error.h"

/* Write the samples of [kube.from, kube.to] of kube-state-metrics and of [gpu.from, gpu.to] of the
 * rest to a file descriptor, then the end mark. Never before the window or after it. ERR_IO where
 * the descriptor takes no more, a pipe whose reader has gone included (SIGPIPE must be ignored). */
enum err demo_text_write(const struct demo_fleet *fleet, struct span kube, struct span gpu, int fd,
                         struct error *err);

/* Samples in an hour of all GPU series, for progress. */
double demo_text_samples_an_hour(const struct demo_fleet *fleet);

#endif
