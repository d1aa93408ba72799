/* Catch up from the watermark: the one mechanism for a first report, a later run, and a service.
 *
 * collect_run reads [watermark or from, to) from the sources in slices of whole hours, books each
 * by the ledger engine, and commits rows, watermark and carry in one transaction a slice. A run that
 * is killed at any moment loses at most the slice in hand and is taken up by the next one. Running
 * again over booked time reads nothing and changes nothing, unless `rebook` says so. Slices are as
 * long as the budget of memory allows, from what the survey says of samples an hour. */
#ifndef GPUTALLY_COLLECT_COLLECT_H
#define GPUTALLY_COLLECT_COLLECT_H

#include "ledger/engine.h"
#include "source/source.h"
#include "store/store.h"

struct collect_options {
    struct source **sources; /* all feed one ledger */
    size_t sources_n;
    struct store *store;
    struct names *names;
    struct engine_options engine;
    struct span window;      /* whole hours */
    bool rebook;             /* book hours before the watermark again */
    time_ms slice_ms;        /* 0: chosen by the survey; tests set it */
    size_t budget_bytes;     /* of samples held at once; 0: 64 MiB */
    struct progress progress;
};
struct collect_report {
    uint64_t series, samples, bytes, rows;
    struct span booked; /* what this run booked; empty: nothing was to do */
    bool partial;       /* some NOTE_PARTIAL */
};
enum err collect_run(const struct collect_options *options, struct collect_report *ret,
                     struct error *err);

#endif
