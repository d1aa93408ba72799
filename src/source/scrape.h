/* The scraper: reads the exporters of struct targets on a schedule, into a journal.
 *
 * Two threads of its own. "scrape" has all connections (curl multi) and decodes; "scrape-write"
 * packs batches into the journal and syncs them at least every SCRAPE_SYNC_MS, so that a slow disk
 * makes no late scrapes. Where the disk does not keep up, batches are dropped, counted.
 *
 * Each target has its place in the interval, by a hash: the same after a restart, and spread
 * evenly. A scrape that is still running when the next is due is waited for, and the due one is
 * skipped, counted. Samples without a stamp get the time at which the scrape was begun; stamps of
 * the text's own are kept. As in Prometheus, `up` is 1 or 0 for each scrape; a series that was in
 * the scrape before and is not in this one gets a stale marker, and all do where a scrape failed or
 * a target is gone; a body that breaks off, is too long or has a bad status is a failed scrape, of
 * which nothing is kept. Broken lines are skipped and counted: one bad line costs no others.
 *
 * Connections are kept alive as far as the limit of file descriptors lets them.
 *
 * Series are known by where they stand in the target's last text (wire/promtext.h), so that a
 * scrape that looks like the last costs a compare and a number a line. */
#ifndef GPUTALLY_SOURCE_SCRAPE_H
#define GPUTALLY_SOURCE_SCRAPE_H

#include "source/journal.h"
#include "source/targets.h"

#define SCRAPE_AT_ONCE 64 /* transfers in hand */
#define SCRAPE_SYNC_MS ((time_ms)15000)

struct scrape_options {
    struct targets *targets;    /* outlives the scraper */
    struct journal *journal;    /* outlives it too */
    const struct label *labels; /* added to all series that have no such label: cluster */
    size_t labels_n;
    int at_once;     /* 0: SCRAPE_AT_ONCE */
    time_ms sync_ms; /* 0: SCRAPE_SYNC_MS; at most 30 s */
    /* For tests in fleet time: what stamps say, and how many times faster than ours it runs
     * (intervals are shortened by it). NULL: clock_now. */
    time_ms (*now)(void *context);
    double speed; /* 0: 1 */
    void *context;
};

struct scraper;
/* Starts the threads. ERR_IO: no threads or no libcurl. */
enum err scraper_start(const struct scrape_options *options, struct scraper **ret,
                       struct error *err);
/* Scrapes in hand are given up, what was read is committed and synced; within 5 s on a disk that
 * answers. NULL is fine. */
void scraper_stop(struct scraper *scraper);

struct scrape_state {
    char *job, *instance, *url;
    bool up;
    time_ms last_try, last_ok;                               /* 0: never */
    uint32_t duration_ms, samples, series, bytes, bad_lines; /* of the last scrape */
    uint64_t failures;                                       /* in a row */
    char *error;                                             /* of the last scrape; "" */
};
struct scrape_stats {
    uint64_t targets, up, scrapes, failures,
        skipped; /* skipped: the one before was still running */
    uint64_t samples, ignored, bytes, bad_lines, dropped_samples;
    time_ms oldest_ok; /* of the targets that are up once: how long the worst is silent; 0: none */
    uint64_t memory_bytes; /* about, of targets' layouts */
};
void scraper_stats(struct scraper *scraper, struct scrape_stats *ret);
/* The state of each target, by job and instance, in one allocation: free() it. */
struct scrape_state *scraper_states(struct scraper *scraper, size_t *ret_n);

#endif
