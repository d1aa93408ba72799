/* A source: a place that telemetry comes from. It does I/O, decodes by wire/, and delivers to an
 * intake. A source is used by one thread at a time; it may use threads of its own inside a call. */
#ifndef GPUTALLY_SOURCE_SOURCE_H
#define GPUTALLY_SOURCE_SOURCE_H

#include "fleet/intake.h"
#include "util/clock.h"
#include "util/error.h"

/* Progress for people; called from the source's own thread, not more than ten times a second. */
struct progress {
    void (*report)(void *context, const struct progress *progress);
    void *context;
    const char *what; /* "reading prometheus.example: GPU metrics" */
    uint64_t series, samples, bytes;
    double done; /* 0..1 of the whole run, NAN unknown */
    const volatile int
        *stop; /* becomes non-zero (atomically) when a signal asks to stop: ERR_STOPPED */
};

/* Which part of what the source has. Kubernetes records are read over a wider range than samples.
 */
struct fetch {
    struct span kube;  /* [from, to] of kube-state-metrics series */
    struct span gpu;   /* [from, to] of everything else */
    bool whole;        /* the run is this one slice: files deliver all that they have */
    struct span hours; /* that are booked: what lies after them and after gpu.to is needed only
                          where something fell silent */
};

/* Does a signal ask to stop? Any thread. */
static inline bool progress_stopped(const volatile int *stop)
{
    return stop && __atomic_load_n(stop, __ATOMIC_RELAXED) != 0;
}

struct source;
struct exam;
struct source_ops {
    const char *kind; /* "prometheus", "openmetrics", "kube-json" */
    /* Look before the run: does it answer, is it what it says, does it have GPU metrics, since when
     * (ret_extent: no data is outside of it; at most it is the window), how many samples an hour of
     * them (0 unknown: read the window at once). Of a window of 2^50 ms and more files tell the
     * times that they have: hour_floor and hour_ceil of ret_extent are the hours to book. Errors
     * say what to try. */
    enum err (*survey)(struct source *source, struct span window, struct span *ret_extent,
                       double *ret_samples_an_hour, struct progress *progress, struct error *err);
    enum err (*fetch)(struct source *source, const struct fetch *fetch, struct intake *intake,
                      struct progress *progress, struct error *err);
    /* What it says of how it measures, around `at` (source/examine.h); NULL: it says nothing.
     * Questions that fail are not errors. */
    enum err (*examine)(struct source *source, time_ms at, struct exam *exam,
                        struct progress *progress, struct error *err);
    void (*free)(struct source *source);
};
struct source {
    const struct source_ops *ops;
    char *id; /* stable name of what it reads: URL without credentials, file paths */
};

static inline void source_free(struct source *source)
{
    if (source)
        source->ops->free(source);
}

#endif
