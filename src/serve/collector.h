/* The collecting loop: a thread for each book, which catches up from the book's watermark for ever.
 *
 *     every `every`: look at the clock -> collect_run up to the last whole hour -> rest
 *
 * A book is what one cluster's sources fill; books wait for their own sources only, and take turns
 * at the store (writer.h), slice by slice. A round rests COLLECTOR_REST times as long as it took,
 * unless an hour has ended that is not booked yet: open hours are read again and again until they
 * are closed, and a large fleet's server is not to be kept busy by it. After a failure the pause
 * doubles, with jitter, up to COLLECTOR_BACKOFF_MAX_MS.
 *
 * Clocks. Pauses are counted by the monotonic clock. Only whole hours that have ended are booked.
 * Where the wall clock jumps forward by more than COLLECTOR_STEP_MS, nothing is booked until it has
 * stood there for that long: a clock that is set wrong for a moment must not close hours that have
 * not come yet. Jumping back books nothing twice: the watermark stays.
 *
 * collector_new and collector_stop are for one thread; the others, for any. */
#ifndef GPUTALLY_SERVE_COLLECTOR_H
#define GPUTALLY_SERVE_COLLECTOR_H

#include "serve/api.h"
#include "serve/log.h"
#include "serve/serve_config.h"
#include "serve/writer.h"
#include "source/live.h"
#include "source/push.h"

#define COLLECTOR_REST 20
#define COLLECTOR_BACKOFF_MAX_MS ((time_ms)5 * 60 * 1000)
#define COLLECTOR_STEP_MS ((time_ms)10 * 60 * 1000)
#define COLLECTOR_BUDGET_BYTES ((size_t)64 << 20) /* of samples, of all books together */

struct collector_options {
    struct writer *writer; /* these live as long as the collector */
    struct config *config;
    const struct serve_config *serve; /* but for the struct itself, which is copied */
    struct log *log;
    struct live *live;                /* gets the latest values */
    void (*committed)(void *context); /* the ledger may have changed; any thread; may be NULL */
    void *context;
};

struct collector;
/* Makes the sources, which reads their secret files (ERR_CONFIG, ERR_IO, ERR_USAGE say where);
 * nothing is asked of anybody yet. */
enum err collector_new(const struct collector_options *options, struct collector **ret,
                       struct error *err);
enum err collector_start(struct collector *collector, struct error *err); /* ERR_LIMIT */
/* Ends the rounds in hand (what was committed stays), and frees. NULL is fine. */
void collector_stop(struct collector *collector);

size_t collector_checks(struct collector *collector, struct health_check *ret, size_t room);
/* Appends sources and figures. */
void collector_stats(struct collector *collector, struct service_stats *ret);
/* What a sender of remote write gets; tenant: the name of its token, "" without one. */
void collector_write(struct collector *collector, struct str tenant,
                     const struct push_request *request, struct push_answer *ret);
/* Somebody looks at the latest values (feed_look): waits at most wait_ms for first answers. */
void collector_look(struct collector *collector, time_ms wait_ms);
/* Which pods claims of Kubernetes have put on GPUs now (feed_placed): adds them. */
void collector_placed(struct collector *collector, struct live_claims *ret);
/* Were hours booked with other settings than the configuration's? */
bool collector_settings_changed(struct collector *collector);

#endif
