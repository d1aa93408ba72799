/* The thread that looks at the ledger every few minutes and tells who is to be told.
 *
 * It reads with a handle of its own, and nothing waits for it. In a round whose figures cannot be
 * read Alertmanager is told again of what it knows, for up to ALERT_BLIND_MS since figures could be
 * read, since it would take silence for the end; nobody is told anything else. A receiver that does
 * not answer is tried again in the next round, with what is then to be told. Configuration is that
 * of alerter_new; a reload makes a new alerter. */
#ifndef GPUTALLY_SERVE_ALERTER_H
#define GPUTALLY_SERVE_ALERTER_H

#include "serve/alert.h"
#include "serve/api.h"
#include "serve/log.h"

struct alerter_options {
    const struct config *config; /* these live as long as the alerter */
    const struct alert_config *alerts;
    const char *db, *tz, *currency; /* tz NULL: UTC */
    struct log *log;
    void (*stats)(void *context, struct service_stats *ret); /* NULL: books that lag do not ring */
    void *context;
};

struct alerter;
enum err alerter_start(const struct alerter_options *options, struct alerter **ret,
                       struct error *err);
void alerter_stop(struct alerter *alerter); /* ends a message in hand; NULL is fine */

/* What would fire now: one look, without telling anybody. list is to be released. */
enum err alerter_look(const struct alerter_options *options, time_ms now, struct alert_list *list,
                      struct error *err);
/* Can it read the ledger? The answer is ret->ok. Any thread. */
bool alerter_check(struct alerter *alerter, struct health_check *ret);
/* Figures for /metrics: appends. */
void alerter_stats(struct alerter *alerter, struct service_stats *ret);

#endif
