/* What a slot did during a stretch of time, added up exactly; and the tallies of rows that such
 * sums go into (semantics, sections 4, 7 and 8). */
#ifndef GPUTALLY_LEDGER_ACCRUE_H
#define GPUTALLY_LEDGER_ACCRUE_H

#include "ledger/device.h"
#include "ledger/row.h"

/* Sums over the pieces of a slot inside [from, to), which lies within one hour. Integrals are ms x
 * 1e-9, so at most 3.6e15 an hour. */
struct sums {
    int64_t observed_ms, state_ms[STATE_COUNT];
    int64_t u, e;
    int64_t idle_rest, rest; /* ms x (1 - u), in state idle and in the others */
    int64_t measure[MEASURE_COUNT], measure_seen_ms[MEASURE_COUNT];
    uint64_t mem_byte_ms;
    int64_t mem_seen_ms, mem_max_bytes, mem_total_bytes;
    int64_t hist_u[HISTOGRAM_BINS], hist_e[HISTOGRAM_BINS];
    uint32_t flags;
};
void accrue(const struct timeline *line, const struct settings *settings, struct span span,
            struct sums *ret);

/* Working time (e at or above idle_below) of an unheld slot inside the span, in samples' intervals
 * in no part of which anybody held it. held: normal ranges. */
int64_t accrue_unattributed(const struct timeline *line, const struct settings *settings,
                            struct span span, const struct spans *held);

/* Money of a tally at one price and share of the node: 1e-9 x ms of each category. */
struct money_part {
    int64_t price_num, price_den;
    struct frac share;
    int64_t units[CATEGORY_COUNT];
};
/* Times at one share of the device. */
struct share_part {
    struct frac share;
    int64_t gpu_ms, held_ms, observed_ms, state_ms[STATE_COUNT];
    int64_t u;
    int64_t hist_u[HISTOGRAM_BINS], hist_e[HISTOGRAM_BINS];
};
/* Energy of an interval that is not over: weight is ms x share. */
struct open_energy {
    time_ms start, end;
    int64_t grown_mj, power_nw;
    struct frac weight;
};
#define OPEN_ENERGY_MAX 8

/* A row while its hour is booked. */
struct tally {
    struct row row; /* key, facts, flags, wall times, integrals: as they will be */
    struct money_part *money;
    size_t money_n, money_room;
    struct share_part *shares;
    size_t shares_n, shares_room;
    struct open_energy open[OPEN_ENERGY_MAX];
    size_t open_n;
};
struct money_part *tally_money(struct tally *tally, int64_t price_num, int64_t price_den,
                               struct frac share);
struct share_part *tally_share(struct tally *tally, struct frac share);
void tally_observe(struct tally *tally, struct share_part *share, const struct sums *sums);
/* Energy of the device inside the span, by share. */
void tally_energy(struct tally *tally, const struct device *device, struct span span,
                  struct frac share, bool instance);
/* Close what is open and fill the weighted times of the row; money is balanced elsewhere. */
void tally_finish(struct tally *tally);
void tally_release(struct tally *tally);

#endif
