/* The one who writes to the database while the service runs: a store that the collecting threads
 * take in turns (collect/collect.h, struct collect_lender).
 *
 * It is opened when it is first needed and stays open, so that no other process writes in between.
 * What it could not do (locked, damaged, no room, read-only) is kept to be shown, and tried again
 * by the next who takes it: a database that is mended comes back without a restart. Any thread. */
#ifndef GPUTALLY_SERVE_WRITER_H
#define GPUTALLY_SERVE_WRITER_H

#include "collect/collect.h"

struct writer;
struct writer *writer_new(const char *db);
void writer_free(struct writer *writer); /* nobody has the store; NULL is fine */

const struct collect_lender *writer_lender(struct writer *writer);
/* A run of one who had the store failed or went well: what is shown until the next. */
void writer_told(struct writer *writer, enum err code, const struct error *err);
/* Drop hours that are older than the newest by more than `keep`. */
enum err writer_retain(struct writer *writer, time_ms keep, struct error *err);

struct writer_state {
    bool open;      /* the database is held */
    enum err code;  /* of the last try; ERR_OK */
    char why[256];  /* where not */
    uint64_t turns; /* how often it was taken */
};
void writer_state(struct writer *writer, struct writer_state *ret);

#endif
