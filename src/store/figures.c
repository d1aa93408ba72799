#include "store/figures.h"

void figures_add_row(struct figures *sum, const struct row *row)
{
    uint32_t den = row->share_den;
    wide_t gpu_ns = weighted_ns(row->gpu_num, den);
    wide_t observed_ns = weighted_ns(row->gpu_observed_num, den);
    sum->rows++;
    sum_add(&sum->cost, row->cost);
    for (int i = 0; i < CATEGORY_COUNT; i++)
        sum_add(&sum->category[i], row->category[i]);
    wide_add(&sum->gpu_ns, gpu_ns);
    wide_add(&sum->gpu_observed_ns, observed_ns);
    wide_add(&sum->energy_mj, row->energy_mj);
    wide_add(&sum->mem_byte_ms, row->mem_byte_ms);
    wide_add(&sum->mem_seen_ms, row->mem_seen_ms);
    if (row->mem_max_bytes > sum->mem_max_bytes)
        sum->mem_max_bytes = row->mem_max_bytes;
    for (int i = 0; i < WORK_COUNT; i++)
        sum_add(&sum->work[i], row->work[i]);
    if (row_is_held(row)) {
        sum_add(&sum->cost_held, row->cost);
        wide_add(&sum->gpu_held_ns, weighted_ns(row->gpu_held_num, den));
        wide_add(&sum->gpu_observed_held_ns, observed_ns);
        wide_add(&sum->u_seen_held_ns, observed_ns);
        for (int i = 0; i < STATE_COUNT; i++)
            wide_add(&sum->gpu_state_held_ns[i], weighted_ns(row->gpu_state_num[i], den));
        wide_add(&sum->gpu_u_held, weighted_ns(row->gpu_u_num, den));
    }
    for (uint32_t rest = row->flags; rest; rest &= rest - 1) {
        int flag = __builtin_ctz(rest);
        if (flag >= FLAG_COUNT)
            break;
        wide_add(&sum->flag_gpu_ns[flag], gpu_ns);
        sum_add(&sum->flag_cost[flag], row->cost);
    }
}

void figures_add(struct figures *sum, const struct figures *more)
{
    sum_add(&sum->cost, more->cost);
    sum_add(&sum->cost_held, more->cost_held);
    for (int i = 0; i < CATEGORY_COUNT; i++)
        sum_add(&sum->category[i], more->category[i]);
    wide_add(&sum->gpu_ns, more->gpu_ns);
    wide_add(&sum->gpu_held_ns, more->gpu_held_ns);
    wide_add(&sum->gpu_observed_held_ns, more->gpu_observed_held_ns);
    wide_add(&sum->gpu_observed_ns, more->gpu_observed_ns);
    for (int i = 0; i < STATE_COUNT; i++)
        wide_add(&sum->gpu_state_held_ns[i], more->gpu_state_held_ns[i]);
    wide_add(&sum->gpu_u_held, more->gpu_u_held);
    wide_add(&sum->u_seen_held_ns, more->u_seen_held_ns);
    wide_add(&sum->energy_mj, more->energy_mj);
    wide_add(&sum->mem_byte_ms, more->mem_byte_ms);
    wide_add(&sum->mem_seen_ms, more->mem_seen_ms);
    if (more->mem_max_bytes > sum->mem_max_bytes)
        sum->mem_max_bytes = more->mem_max_bytes;
    for (int i = 0; i < WORK_COUNT; i++)
        sum_add(&sum->work[i], more->work[i]);
    for (int i = 0; i < FLAG_COUNT; i++) {
        wide_add(&sum->flag_gpu_ns[i], more->flag_gpu_ns[i]);
        sum_add(&sum->flag_cost[i], more->flag_cost[i]);
    }
    sum->rows += more->rows;
}
