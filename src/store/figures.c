#include "store/figures.h"

#include "util/error.h"

void figures_add_row(struct figures *sum, const struct row *row)
{
    uint32_t den = row->share_den;
    wide_t gpu_ns = weighted_ns(row->gpu_num, den);
    wide_t observed_ns = weighted_ns(row->gpu_observed_num, den);
    sum->rows++;
    sum->cost += row->cost;
    for (int i = 0; i < CATEGORY_COUNT; i++)
        sum->category[i] += row->category[i];
    sum->gpu_ns += gpu_ns;
    sum->gpu_observed_ns += observed_ns;
    sum->energy_mj += row->energy_mj;
    sum->mem_byte_ms += row->mem_byte_ms;
    sum->mem_seen_ms += row->mem_seen_ms;
    if (row->mem_max_bytes > sum->mem_max_bytes)
        sum->mem_max_bytes = row->mem_max_bytes;
    for (int i = 0; i < WORK_COUNT; i++)
        sum->work[i] += row->work[i];
    if (row_is_held(row)) {
        sum->cost_held += row->cost;
        sum->gpu_held_ns += weighted_ns(row->gpu_held_num, den);
        sum->gpu_observed_held_ns += observed_ns;
        sum->u_seen_held_ns += observed_ns;
        for (int i = 0; i < STATE_COUNT; i++)
            sum->gpu_state_held_ns[i] += weighted_ns(row->gpu_state_num[i], den);
        sum->gpu_u_held += weighted_ns(row->gpu_u_num, den);
    }
    for (uint32_t rest = row->flags; rest; rest &= rest - 1) {
        int flag = __builtin_ctz(rest);
        if (flag >= FLAG_COUNT)
            break;
        sum->flag_gpu_ns[flag] += gpu_ns;
        sum->flag_cost[flag] += row->cost;
    }
}

void figures_add(struct figures *sum, const struct figures *more)
{
    sum->cost = money_add(sum->cost, more->cost);
    sum->cost_held += more->cost_held;
    for (int i = 0; i < CATEGORY_COUNT; i++)
        sum->category[i] += more->category[i];
    sum->gpu_ns += more->gpu_ns;
    sum->gpu_held_ns += more->gpu_held_ns;
    sum->gpu_observed_held_ns += more->gpu_observed_held_ns;
    sum->gpu_observed_ns += more->gpu_observed_ns;
    for (int i = 0; i < STATE_COUNT; i++)
        sum->gpu_state_held_ns[i] += more->gpu_state_held_ns[i];
    sum->gpu_u_held += more->gpu_u_held;
    sum->u_seen_held_ns += more->u_seen_held_ns;
    sum->energy_mj += more->energy_mj;
    sum->mem_byte_ms += more->mem_byte_ms;
    sum->mem_seen_ms += more->mem_seen_ms;
    if (more->mem_max_bytes > sum->mem_max_bytes)
        sum->mem_max_bytes = more->mem_max_bytes;
    for (int i = 0; i < WORK_COUNT; i++)
        sum->work[i] += more->work[i];
    for (int i = 0; i < FLAG_COUNT; i++) {
        sum->flag_gpu_ns[i] += more->flag_gpu_ns[i];
        sum->flag_cost[i] += more->flag_cost[i];
    }
    sum->rows += more->rows;
}
