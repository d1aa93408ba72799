/* From decoders to the intake: gathers the samples of one series into long runs and cuts them to
 * the time that was asked for. One thread owns a delivery. */
#ifndef GPUTALLY_SOURCE_DELIVERY_H
#define GPUTALLY_SOURCE_DELIVERY_H

#include <stdatomic.h>

#include "fleet/intake.h"
#include "source/seen.h"
#include "wire/xor_chunk.h"

/* What all threads of a run have delivered so far, for progress. */
struct tally {
    _Atomic uint64_t series, samples, bytes;
};

struct delivery;
struct delivery *delivery_new(struct intake *intake, struct tally *tally);
void delivery_free(struct delivery *delivery); /* NULL is fine; drops what is not flushed */

/* Samples with stamps in [first, last] (ms, both inclusive) are kept from now on. */
void delivery_range(struct delivery *delivery, time_ms first, time_ms last);
/* The next samples are of this series. False: nobody wants it, they need not be decoded. */
bool delivery_series(struct delivery *delivery, const struct label *labels, size_t n);
/* Samples in order of time; may reach back over those before. */
void delivery_samples(struct delivery *delivery, const time_ms *t, const double *v, size_t n);
/* A chunk of the series; ERR_PARSE where it is broken, what stood before the break is kept. */
enum err delivery_chunk(struct delivery *delivery, struct str data, struct error *err);
/* Hand on what is still held: at the end of each answer. */
void delivery_flush(struct delivery *delivery);
uint64_t delivery_count(const struct delivery *delivery);        /* samples delivered in all */
uint64_t delivery_series_count(const struct delivery *delivery); /* and series named */
/* Tell these (n <= DELIVERY_WATCHERS_MAX) of the series and stamps that are delivered from now on.
 */
#define DELIVERY_WATCHERS_MAX 4
void delivery_watch(struct delivery *delivery, struct seen *const *seen, size_t n);

#endif
