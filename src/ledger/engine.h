/* The ledger engine: from what sources delivered for a slice of time to balanced rows.
 *
 *     intake_new -> intake_restore(carry of the slice before) -> source fetches -> engine_book
 *                -> rows by node (emit), carry for the next slice -> intake_free
 *
 * A slice is any whole hours. Cutting a window into slices changes no row: what a slice must know
 * of the time before it comes in the carry (the last samples of each series, which are fed again in
 * front), and a slice reads a little to both sides (engine_reach). Nodes are independent of each
 * other and are booked on all threads; the rows are the same whatever their number. */
#ifndef GPUTALLY_LEDGER_ENGINE_H
#define GPUTALLY_LEDGER_ENGINE_H

#include "fleet/intake.h"
#include "fleet/settings.h"
#include "ledger/row.h"

struct engine_options {
    const struct settings *settings;
    const struct prices *prices;
    const struct owners *owners;
    int threads;              /* 0: as many as cores */
    const volatile int *stop; /* becomes non-zero (atomically): ERR_STOPPED; NULL: never */
};

/* Rows of one node (all its hours of the slice), and at the end one batch with the slice's notes.
 * Called from worker threads, never two at once; the batch is the engine's and is gone after. */
typedef void (*engine_emit_fn)(void *context, const struct row_batch *batch);

/* What to read for the hours: gpu samples and kube records to both sides of it. */
void engine_reach(const struct settings *settings, struct span hours, struct span *ret_kube,
                  struct span *ret_gpu);

/* carry: as engine_book gave it, or empty; checked and kept until engine_book. A carry of another
 * version is ERR_PARSE, and nothing is restored. */
enum err intake_restore(struct intake *intake, struct str carry, struct error *err);

/* Book the hours. A node in the newest observation is up until hours.to, at most node_break beyond
 * that observation. The strips of the intake are used up. ret_carry (may be NULL) gets what the
 * slice that begins at hours.to needs. ERR_STOPPED: what was emitted is not all; so is ERR_IO,
 * where packed rows cannot be read back. */
enum err engine_book(struct intake *intake, struct span hours, const struct engine_options *options,
                     engine_emit_fn emit, void *context, struct strbuf *ret_carry,
                     struct error *err);

/* For progress and benchmarks. */
struct engine_stats {
    uint64_t series, samples, devices, rows;
    size_t peak_bytes; /* held for samples */
};
void intake_stats(const struct intake *intake, struct engine_stats *ret);

#endif
