/* What feeds a book: the sources of one cluster, and what they need beside them: the journal for
 * what has no history elsewhere, the scraper, the receiver of remote write, the Kubernetes watch.
 *
 *     feed_new (checks everything) -> feed_open (on the book's thread, again until it goes well)
 *                                  -> sources for collect_run -> feed_booked -> feed_free
 *
 *     prometheus ───────────────────────────────┐ (its newest samples: live, while somebody looks)
 *     scraper ── journal ── journal source ─────┼── sources of the book
 *     push ─────────┘  └── live                 │
 *     kubernetes watch ── its folder ───────────┘
 *            └── exporter pods ── targets of the scraper
 *
 * One thread but for feed_write, feed_look, feed_checks and feed_stats, which any may call between
 * feed_new and feed_free. */
#ifndef GPUTALLY_SERVE_FEED_H
#define GPUTALLY_SERVE_FEED_H

#include "serve/api.h"
#include "serve/live_claims.h"
#include "serve/log.h"
#include "serve/serve_config.h"
#include "source/live.h"
#include "source/push.h"

#define FEED_LATE_MS (6 * HOUR_MS)

struct feed_options {
    const struct serve_config *serve; /* these live as long as the feed */
    const char *book;                 /* whose entries of serve->sources */
    const struct settings *settings;
    struct live *live;
    struct log *log;
};

struct feed;
/* Reads secret files and checks targets and logins; nothing is asked or opened yet. */
enum err feed_new(const struct feed_options *options, struct feed **ret, struct error *err);
void feed_free(struct feed *feed); /* ends what it runs; NULL is fine */

/* Opens the journal and starts what runs by itself; may be called again after an error. */
enum err feed_open(struct feed *feed, struct error *err);
struct source **feed_sources(struct feed *feed, size_t *ret_n); /* the book's thread */
const char *feed_name(const struct feed *feed); /* what it reads first: URL, file, kind */
const char *feed_kind(const struct feed *feed); /* a word of source_kind_words */
/* Somebody looks at the latest values: servers are asked for them too. Waits for a first answer, at
 * most wait_ms. */
void feed_look(struct feed *feed, time_ms wait_ms);
/* Which pods claims of Kubernetes have put on GPUs now: adds them. Any thread. */
void feed_placed(struct feed *feed, struct live_claims *ret);
/* Where the journal stands, and the oldest sample that came after a mark (source/journal.h);
 * nothing and TIME_MAX where all sources have a history. */
void feed_mark(struct feed *feed, struct strbuf *ret);
time_ms feed_oldest_since(struct feed *feed, struct str mark);
/* The book is closed up to there: let go of what nobody will ask for again. Hours of the last
 * FEED_LATE_MS before it can be booked again. */
void feed_booked(struct feed *feed, time_ms watermark);

/* Does it receive remote write for this tenant ("" the default)? */
bool feed_receives(const struct feed *feed, struct str tenant);
void feed_write(struct feed *feed, const struct push_request *request, struct push_answer *ret);

/* More than "the last round failed": the journal's disk, targets that do not answer, the watch. */
size_t feed_checks(struct feed *feed, struct health_check *ret, size_t room);
void feed_stats(struct feed *feed, const char *cluster, struct service_stats *ret);

#endif
