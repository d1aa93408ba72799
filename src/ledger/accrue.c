/* The innermost loop: pieces of a timeline into sums. Everything is integer and linear in ms, so a
 * stretch may be cut anywhere without a change; only energy is rounded, once a row and interval. */
#include "ledger/accrue.h"

#include <stdlib.h>

#include "util/error.h"

#define RATIO_ONE INT64_C(1000000000)

static inline int64_t value_at(const int64_t *column, size_t i)
{
    return column ? column[i] : SIGNAL_ABSENT;
}

static inline int bin_of(int64_t ratio)
{
    int64_t bin = ratio * HISTOGRAM_BINS / RATIO_ONE;
    return (int)(bin < HISTOGRAM_BINS ? bin : HISTOGRAM_BINS - 1);
}

static inline void add_measure(struct sums *sums, enum measure measure, const int64_t *column,
                               size_t i, int64_t ms)
{
    int64_t v = value_at(column, i);
    if (v == SIGNAL_ABSENT)
        return;
    sums->measure[measure] += ms * v;
    sums->measure_seen_ms[measure] += ms;
}

void accrue(const struct timeline *line, const struct settings *settings, struct span span,
            struct sums *ret)
{
    *ret = (struct sums){0};
    const int64_t *util = line->piece[SIGNAL_UTIL], *gr = line->piece[SIGNAL_GR];
    const int64_t *sm = line->piece[SIGNAL_SM];
    for (size_t i = timeline_piece_after(line, span.from);
         i < line->pieces_n && line->from[i] < span.to; i++) {
        time_ms from = line->from[i] > span.from ? line->from[i] : span.from;
        time_ms to = line->to[i] < span.to ? line->to[i] : span.to;
        int64_t ms = to - from;
        int64_t v_util = value_at(util, i), v_gr = value_at(gr, i), v_sm = value_at(sm, i);
        int64_t u = v_sm != SIGNAL_ABSENT ? v_sm : v_gr != SIGNAL_ABSENT ? v_gr : v_util;
        if (u != SIGNAL_ABSENT) {
            int64_t e = v_util != SIGNAL_ABSENT ? v_util : v_gr != SIGNAL_ABSENT ? v_gr : v_sm;
            enum state state = (e > u ? e : u) < settings->idle_below ? STATE_IDLE
                               : u < settings->busy_from              ? STATE_LOW
                                                                      : STATE_BUSY;
            ret->observed_ms += ms;
            ret->state_ms[state] += ms;
            ret->u += ms * u;
            ret->e += ms * e;
            *(state == STATE_IDLE ? &ret->idle_rest : &ret->rest) += ms * (RATIO_ONE - u);
            ret->hist_u[bin_of(u)] += ms;
            ret->hist_e[bin_of(e)] += ms;
            if (v_sm == SIGNAL_ABSENT)
                ret->flags |= v_gr != SIGNAL_ABSENT ? FLAG_U_ENGINE : FLAG_U_UTIL;
            if (v_util == SIGNAL_ABSENT)
                ret->flags |= v_gr != SIGNAL_ABSENT ? FLAG_E_ENGINE : FLAG_E_SM;
            if (line->flags && line->flags[i] & PIECE_STEP)
                ret->flags |= FLAG_STEP;
            if (line->flags && line->flags[i] & PIECE_STUCK)
                ret->flags |= FLAG_STUCK_COUNTER;
        }
        add_measure(ret, MEASURE_SM, sm, i, ms);
        add_measure(ret, MEASURE_TENSOR, line->piece[SIGNAL_TENSOR], i, ms);
        add_measure(ret, MEASURE_DRAM, line->piece[SIGNAL_DRAM], i, ms);
        int64_t used = value_at(line->piece[SIGNAL_MEM_USED], i);
        if (used != SIGNAL_ABSENT) {
            ret->mem_byte_ms += (uint64_t)ms * (uint64_t)used;
            ret->mem_seen_ms += ms;
            ret->mem_max_bytes = used > ret->mem_max_bytes ? used : ret->mem_max_bytes;
        }
        int64_t total = timeline_memory_total(line, i);
        ret->mem_total_bytes = total > ret->mem_total_bytes ? total : ret->mem_total_bytes;
    }
}

/* Did anybody hold the slot in some part of the span? */
static bool was_held(const struct spans *held, struct span span)
{
    size_t i = spans_after(held, span.from);
    return i < held->n && held->at[i].from < span.to;
}

int64_t accrue_unattributed(const struct timeline *line, const struct settings *settings,
                            struct span span, const struct spans *held)
{
    int64_t total = 0;
    for (size_t i = timeline_piece_after(line, span.from);
         i < line->pieces_n && line->from[i] < span.to; i++) {
        int64_t util = value_at(line->piece[SIGNAL_UTIL], i);
        int64_t gr = value_at(line->piece[SIGNAL_GR], i);
        int64_t sm = value_at(line->piece[SIGNAL_SM], i);
        int64_t e = util != SIGNAL_ABSENT ? util : gr != SIGNAL_ABSENT ? gr : sm;
        if (e == SIGNAL_ABSENT || e < settings->idle_below)
            continue;
        struct span sample =
            line->e_span ? line->e_span[i] : (struct span){line->from[i], line->to[i]};
        if (was_held(held, sample))
            continue;
        time_ms from = line->from[i] > span.from ? line->from[i] : span.from;
        time_ms to = line->to[i] < span.to ? line->to[i] : span.to;
        total += to - from;
    }
    return total;
}

/* ------------------------------------------------------------------ tallies */

struct money_part *tally_money(struct tally *tally, int64_t price_num, int64_t price_den,
                               struct frac share)
{
    for (size_t i = 0; i < tally->money_n; i++) {
        struct money_part *part = &tally->money[i];
        if (part->price_num == price_num && part->price_den == price_den &&
            part->share.num == share.num && part->share.den == share.den)
            return part;
    }
    struct money_part fresh = {.price_num = price_num, .price_den = price_den, .share = share};
    mem_push(tally->money, tally->money_n, tally->money_room, fresh);
    return &tally->money[tally->money_n - 1];
}

struct share_part *tally_share(struct tally *tally, struct frac share)
{
    for (size_t i = 0; i < tally->shares_n; i++)
        if (tally->shares[i].share.num == share.num && tally->shares[i].share.den == share.den)
            return &tally->shares[i];
    struct share_part fresh = {.share = share};
    mem_push(tally->shares, tally->shares_n, tally->shares_room, fresh);
    return &tally->shares[tally->shares_n - 1];
}

void tally_observe(struct tally *tally, struct share_part *share, const struct sums *sums)
{
    struct row *row = &tally->row;
    row->flags |= sums->flags;
    row->observed_ms += sums->observed_ms;
    row->u += sums->u;
    row->e += sums->e;
    share->observed_ms += sums->observed_ms;
    share->u += sums->u;
    for (int k = 0; k < STATE_COUNT; k++) {
        row->state_ms[k] += sums->state_ms[k];
        share->state_ms[k] += sums->state_ms[k];
    }
    for (int k = 0; k < HISTOGRAM_BINS; k++) {
        share->hist_u[k] += sums->hist_u[k];
        share->hist_e[k] += sums->hist_e[k];
    }
    for (int k = 0; k < MEASURE_COUNT; k++) {
        row->measure[k] += sums->measure[k];
        row->measure_seen_ms[k] += sums->measure_seen_ms[k];
    }
    row->mem_byte_ms += sums->mem_byte_ms;
    row->mem_seen_ms += sums->mem_seen_ms;
    if (sums->mem_max_bytes > row->mem_max_bytes)
        row->mem_max_bytes = sums->mem_max_bytes;
    if (sums->mem_total_bytes > row->mem_total_bytes)
        row->mem_total_bytes = sums->mem_total_bytes;
}

/* ------------------------------------------------------------------ energy */

#define ROW_ENERGY_MAX INT64_C(1000000000000000) /* mJ an hour; a counter that jumps ends here */

static void add_energy(struct tally *tally, int64_t mj)
{
    int64_t room = ROW_ENERGY_MAX - tally->row.energy_mj;
    tally->row.energy_mj += mj < room ? mj : room;
}

static void close_energy(struct tally *tally, size_t at)
{
    struct open_energy *open = &tally->open[at];
    wide_t num, den;
    if (open->grown_mj >= 0) {
        num = (wide_t)open->grown_mj * open->weight.num;
        den = (wide_t)(open->end - open->start) * open->weight.den;
    } else { /* nW x ms is 1e-9 mJ */
        num = (wide_t)open->power_nw * open->weight.num;
        den = (wide_t)RATIO_ONE * open->weight.den;
    }
    add_energy(tally, money_round(num, den));
    tally->open[at] = tally->open[--tally->open_n];
}

static struct open_energy *open_energy(struct tally *tally, const struct energy *energy,
                                       time_ms from)
{
    for (size_t i = 0; i < tally->open_n;) {
        struct open_energy *open = &tally->open[i];
        if (open->start == energy->start && open->end == energy->end &&
            open->grown_mj == energy->grown_mj && open->power_nw == energy->power_nw)
            return open;
        if (open->end <= from)
            close_energy(tally, i);
        else
            i++;
    }
    if (tally->open_n ==
        OPEN_ENERGY_MAX) /* more at once than signals can make: never in practice */
        close_energy(tally, 0);
    tally->open[tally->open_n] = (struct open_energy){energy->start, energy->end, energy->grown_mj,
                                                      energy->power_nw, FRAC_ZERO};
    return &tally->open[tally->open_n++];
}

/* Where the counter tells it all, each interval between two own stamps is one of its. Says whether
 * there was any. */
static bool counter_energy(struct tally *tally, const struct device *device, struct span span,
                           struct frac share)
{
    const time_ms *t = device->own.t;
    size_t low = device->counter_from + 1, high = device->counter_to;
    while (low < high) {
        size_t mid = (low + high) / 2;
        if (t[mid] <= span.from)
            low = mid + 1;
        else
            high = mid;
    }
    bool any = false;
    for (size_t i = low; i < device->counter_to && t[i - 1] < span.to; i++) {
        any = true;
        int64_t grown = (device->counter[i] - device->counter[i - 1] + 500) / 1000;
        if (share.num == share.den && t[i - 1] >= span.from && t[i] <= span.to) {
            add_energy(tally, grown);
            continue;
        }
        time_ms from = t[i - 1] > span.from ? t[i - 1] : span.from;
        time_ms to = t[i] < span.to ? t[i] : span.to;
        struct energy energy = {from, to, t[i - 1], t[i], grown, 0};
        struct open_energy *open = open_energy(tally, &energy, from);
        open->weight = frac_add(open->weight, frac_mul((struct frac){to - from, 1}, share));
    }
    return any;
}

void tally_energy(struct tally *tally, const struct device *device, struct span span,
                  struct frac share, bool instance)
{
    if (device->counter && counter_energy(tally, device, span, share) && instance)
        tally->row.flags |= FLAG_POWER_SHARE;
    size_t low = 0, high = device->energy_n;
    while (low < high) {
        size_t mid = (low + high) / 2;
        if (device->energy[mid].to <= span.from)
            low = mid + 1;
        else
            high = mid;
    }
    for (; low < device->energy_n && device->energy[low].from < span.to; low++) {
        const struct energy *energy = &device->energy[low];
        time_ms from = energy->from > span.from ? energy->from : span.from;
        time_ms to = energy->to < span.to ? energy->to : span.to;
        if (energy->grown_mj < 0)
            tally->row.flags |= FLAG_ENERGY_POWER;
        if (instance)
            tally->row.flags |= FLAG_POWER_SHARE;
        if (share.num == share.den && from == energy->start && to == energy->end) {
            add_energy(tally, energy->grown_mj >= 0
                                  ? energy->grown_mj
                                  : money_round((wide_t)energy->power_nw * (to - from), RATIO_ONE));
            continue;
        }
        struct open_energy *open = open_energy(tally, energy, from);
        open->weight = frac_add(open->weight, frac_mul((struct frac){to - from, 1}, share));
    }
}

/* ------------------------------------------------------------------ finishing */

static int64_t weigh(int64_t sum, const struct frac share, int64_t den)
{
    if (share.num == share.den)
        return sum * den;
    wide_t num = (wide_t)sum * share.num * den;
    return (int64_t)(num % share.den ? money_round(num, share.den) : num / share.den);
}

void tally_finish(struct tally *tally)
{
    while (tally->open_n)
        close_energy(tally, 0);
    int64_t den = 1;
    for (size_t i = 0; i < tally->shares_n && den < SHARE_DEN_MAX; i++) {
        int64_t more = tally->shares[i].share.den;
        wide_t lcm = (wide_t)(den / gcd_of(den, more)) * more;
        den = lcm < SHARE_DEN_MAX ? (int64_t)lcm : SHARE_DEN_MAX; /* finer ones are rounded */
    }
    struct row *row = &tally->row;
    row->share_den = (uint32_t)den;
    for (size_t i = 0; i < tally->shares_n; i++) {
        const struct share_part *part = &tally->shares[i];
        row->gpu_num += weigh(part->gpu_ms, part->share, den);
        row->gpu_held_num += weigh(part->held_ms, part->share, den);
        row->gpu_observed_num += weigh(part->observed_ms, part->share, den);
        row->gpu_u_num += weigh(part->u, part->share, den);
        for (int k = 0; k < STATE_COUNT; k++)
            row->gpu_state_num[k] += weigh(part->state_ms[k], part->share, den);
        for (int k = 0; k < HISTOGRAM_BINS; k++) {
            row->hist_u_num[k] += weigh(part->hist_u[k], part->share, den);
            row->hist_e_num[k] += weigh(part->hist_e[k], part->share, den);
        }
    }
}

void tally_release(struct tally *tally)
{
    free(tally->money);
    free(tally->shares);
    *tally = (struct tally){0};
}
