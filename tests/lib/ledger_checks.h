/* What holds of every batch that the engine emits, whatever it was fed: the books balance, times
 * lie inside their hour, rows are in order. For unit tests and fuzz targets; a breach aborts. */
#ifndef GPUTALLY_TESTS_LEDGER_CHECKS_H
#define GPUTALLY_TESTS_LEDGER_CHECKS_H

#include "ledger/row.h"
#include "util/error.h"

static inline void check_row(const struct row *row)
{
    money_t sum = 0;
    for (int c = 0; c < CATEGORY_COUNT; c++) {
        invariant(row->category[c] >= 0);
        sum = money_add(sum, row->category[c]);
    }
    invariant(sum == row->cost);
    bool held = row->key.pod != NAME_NONE;
    invariant(held == (row->facts.workload != NAME_NONE));
    invariant(held == (row->facts.type != WORKLOAD_NONE));
    invariant(row->held_ms >= 0 && row->held_ms <= HOUR_MS && (held || row->held_ms == 0));
    invariant(row->observed_ms >= 0 && row->observed_ms <= HOUR_MS);
    int64_t states = 0, bins = 0;
    for (int k = 0; k < STATE_COUNT; k++)
        states += row->state_ms[k];
    invariant(states == row->observed_ms);
    invariant(row->u >= 0 && row->u <= row->observed_ms * 1000000000);
    invariant(row->e >= 0 && row->e <= row->observed_ms * 1000000000);
    invariant(row->share_den >= 1 && row->share_den <= SHARE_DEN_MAX);
    invariant(row->gpu_num >= 0 && row->gpu_held_num <= row->gpu_num + SHARE_DEN_MAX);
    for (int k = 0; k < HISTOGRAM_BINS; k++) {
        invariant(row->hist_u_num[k] >= 0 && row->hist_e_num[k] >= 0);
        bins += row->hist_u_num[k];
    }
    int64_t off = bins - row->gpu_observed_num; /* each bin is rounded for itself */
    invariant(off >= -SHARE_DEN_MAX && off <= SHARE_DEN_MAX);
    for (int m = 0; m < MEASURE_COUNT; m++)
        invariant(row->measure_seen_ms[m] >= 0 && row->measure_seen_ms[m] <= HOUR_MS &&
                  row->measure[m] >= 0 && row->measure[m] <= row->measure_seen_ms[m] * 1000000000);
    invariant(row->mem_seen_ms >= 0 && row->mem_seen_ms <= HOUR_MS);
    invariant(row->mem_max_bytes >= 0 && row->mem_total_bytes >= 0 && row->energy_mj >= 0);
    for (int w = 0; w < WORK_COUNT; w++)
        invariant(row->work[w] >= 0);
}

/* A node's batch: one node hour for each hour of rows, and the same money on both sides. */
static inline void check_batch(const struct row_batch *batch)
{
    size_t at = 0;
    for (size_t i = 0; i < batch->rows_n; i++) {
        const struct row *row = &batch->rows[i];
        check_row(row);
        invariant(row->key.hour >= batch->hours.from && row->key.hour < batch->hours.to &&
                  row->key.hour == hour_floor(row->key.hour));
        invariant(i == 0 || row_key_cmp(batch->names, &row[-1].key, &row->key) < 0);
    }
    for (size_t h = 0; h < batch->node_hours_n; h++) {
        const struct node_hour *hour = &batch->node_hours[h];
        money_t sum = 0;
        invariant(at < batch->rows_n && batch->rows[at].key.hour == hour->hour);
        for (; at < batch->rows_n && batch->rows[at].key.hour == hour->hour; at++) {
            invariant(batch->rows[at].key.node == hour->node &&
                      batch->rows[at].key.cluster == hour->cluster);
            sum = money_add(sum, batch->rows[at].cost);
        }
        invariant(sum == hour->booked);
        invariant(hour->up_ms > 0 && hour->up_ms <= HOUR_MS && hour->gpus > 0);
    }
    invariant(at == batch->rows_n);
}

#endif
