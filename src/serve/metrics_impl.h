/* Private to serve/metrics*.c and serve/api.c. */
#ifndef GPUTALLY_SERVE_METRICS_IMPL_H
#define GPUTALLY_SERVE_METRICS_IMPL_H

#include "serve/api_impl.h"
#include "serve/metrics_text.h"

/* Counters of the ledger, with what they have shown before. Any thread. */
struct metrics_ledger;
struct metrics_ledger *metrics_ledger_new(void);
void metrics_ledger_free(struct metrics_ledger *ledger); /* NULL is fine */
enum err metrics_write_ledger(struct metrics_ledger *ledger, struct api_call *call,
                              struct metrics_text *text, struct error *err);

#endif
