/* Catch up from the watermark: the one mechanism for a first report, a later run, and a service.
 *
 * collect_run reads [watermark or from, to) from the sources in slices of whole hours, books each
 * by the ledger engine, and commits rows, watermark and carry in one transaction a slice. A run
 * that is killed at any moment loses at most the slice in hand and is taken up by the next one.
 * Running again over booked time reads nothing and changes nothing, unless `rebook` says so. Slices
 * are as long as the budget of memory allows, from what the survey says of samples an hour.
 *
 *     begun            watermark        closed        now       to
 *     |── books ──────────|── this run ────|── open hours ──────|
 *
 * Settling. An hour is closed when it ended `settle` (1 h) before now: what arrives until then is
 * in. The watermark never passes a closed hour. Open hours are booked too, so that a report shows
 * them, and booked again by every later run until they are closed. What arrives later still is
 * taken in by `rebook`, which books the whole window again and leaves the watermark where it is or
 * moves it on.
 *
 * Starting without a carry (the first run, `rebook`, a window that begins before `begun`): the
 * engine is fed a look-back instead, an hour of GPU samples and the reach of a Kubernetes record
 * before the first hour. What showed itself only before that (a pod that labels named hours ago, a
 * XID that was never sent again) is not known then.
 *
 * A window that begins before `begun`, where the sources still have data from before it, is booked
 * from there on again. Rows are never replaced by nothing: a slice in which the sources have no
 * sample leaves hours that were booked before as they are. */
#ifndef GPUTALLY_COLLECT_COLLECT_H
#define GPUTALLY_COLLECT_COLLECT_H

#include "ledger/engine.h"
#include "source/source.h"
#include "store/store.h"

#define COLLECT_SETTLE_MS HOUR_MS
#define COLLECT_LOOK_BACK_MS HOUR_MS
#define COLLECT_BUDGET_BYTES ((size_t)144 << 20)
#define COLLECT_SAMPLE_BYTES 12 /* that a sample takes until it is booked */

/* A store that several runs share, each on a thread of its own: a run takes it while it books, and
 * gives it back while it waits for its sources. take: blocks until it is free, and makes the store
 * speak the ids of the run's names. Whatever take fails with ends the run. */
struct collect_lender {
    void *context;
    enum err (*take)(void *context, struct names *names, struct store **ret, struct error *err);
    void (*give)(void *context, struct store *store);
};

struct collect_options {
    struct source **sources; /* all feed one ledger */
    size_t sources_n;
    struct store *store;                 /* NULL: lent by */
    const struct collect_lender *lender; /* this one */
    /* Of the store's books, the one that is written; other books stay as they are. A book with a
     * name is one set of sources, whichever these are at the time: they may move, and are taken up
     * from the book's watermark. In the book without a name each set has a watermark of its own; a
     * set that has booked there is refused elsewhere (ERR_CONFIG), where it would be counted twice.
     */
    struct str book;
    struct str cluster; /* of series that have no label `cluster`; empty: none */
    struct names *names;
    struct engine_options engine;
    struct span window; /* whole hours */
    bool rebook;        /* book hours before the watermark again */
    /* Sources that keep samples themselves (the journal) may have got some of closed hours. mark:
     * where they stand as the run begins, a text without blanks, kept with the books by every
     * commit. late: the oldest time of which they got samples since the last run's mark (empty: not
     * known); TIME_MAX none. The watermark goes back to that hour, and everything from there on is
     * booked again. NULL: all sources have a history. */
    struct str mark;
    time_ms (*late)(void *context, struct str mark, time_ms watermark);
    void *late_context;
    time_ms slice_ms;    /* 0: chosen by the survey; tests set it */
    size_t budget_bytes; /* of samples held at once; 0: 144 MiB */
    struct progress progress;
    time_ms now;         /* 0: the clock's */
    time_ms settle_ms;   /* 0: COLLECT_SETTLE_MS; negative: every hour is closed */
    struct str settings; /* what prices, owners and settings the rows are booked with, as text */
};
struct collect_report {
    uint64_t series, samples, bytes, rows;
    struct span booked;    /* what this run booked; empty: nothing was to do */
    time_ms watermark;     /* of the books after it; TIME_MIN: nothing is closed yet */
    bool partial;          /* some NOTE_PARTIAL */
    bool settings_changed; /* earlier hours were booked with other settings (a text was given) */
};
/* Errors are those of the sources, the engine and the store; ERR_STOPPED where a signal asked. ret
 * is filled also then: booked is what was committed before, and can be reported; where a source
 * failed after that, a NOTE_PARTIAL over the hours that it failed on is committed too. One thread.
 */
enum err collect_run(const struct collect_options *options, struct collect_report *ret,
                     struct error *err);

#endif
