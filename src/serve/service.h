/* The service: collects, keeps the ledger, and answers over HTTP, until it is told to end.
 *
 *     SIGHUP           reads the configuration, secrets and certificates again: all of it or, where
 *                      anything is wrong, nothing (the log and /readyz say what and where)
 *     SIGTERM, SIGINT  end: requests and rounds in hand stop, within SERVICE_STOP_MS; a second one
 *                      ends at once. Nothing that was committed depends on a clean end.
 *
 * What is wrong with the database or a source does not end it: /readyz, /metrics and the log say
 * so, the rest goes on, and it is tried again. It does not start where the configuration is wrong,
 * where the address is taken, or where listening there would let everybody in.
 *
 * One service a process: it takes over signals. */
#ifndef GPUTALLY_SERVE_SERVICE_H
#define GPUTALLY_SERVE_SERVICE_H

#include "serve/serve_config.h"

#define SERVICE_STOP_MS 5000

/* What is read at the start and by each SIGHUP. */
struct service_setup {
    struct config *config; /* finished; its settings hold */
    struct serve_config serve;
    const char *tz, *title; /* NULL: UTC, none */
    void *loaded;           /* the loader's */
};
struct service_options {
    /* Reads everything anew. An error leaves nothing to unload. */
    enum err (*load)(void *context, struct service_setup *ret, struct error *err);
    void (*unload)(struct service_setup *setup);
    void *context;
    /* Called once when it answers: the URL to look at. May be NULL. */
    void (*ready)(void *context, const char *url);
};

/* Would it start? Everything but the address and the database is tried: access, rules, sources with
 * their secret files. */
enum err service_check(const struct service_setup *setup, struct error *err);

/* Returns when it was told to end (ERR_OK) or could not start. */
enum err service_run(const struct service_options *options, struct error *err);

#endif
