/* The figures of a report, and their values out of a query's sums.
 *
 * What semantics section 9 derives is derived in query/ and only scaled here; money and hours are
 * integers throughout, so that a report is the same on every machine. */
#include "report/figure.h"

#include <math.h>

#include "report/text.h"

const char *const figure_unit_words[] = {"money", "GPU-hours", "ratio", "kWh", "bytes", "count"};

const struct figure figure_defs[FIGURE_COUNT] = {
#define X(id, name, unit, heading, shown, meaning) {name, unit, heading, shown, meaning},
    FIGURE_TABLE(X)
#undef X
};

#define NS_PER_NANO_HOUR 3600 /* an hour is 3.6e12 ns */
#define MJ_PER_5_NANO_KWH 18  /* a kWh is 3.6e9 mJ, so that 18 mJ are 5 nano-kWh */

static wide_t divided(wide_t num, wide_t den)
{
    return (num + den / 2) / den;
}

static bool hours(wide_t ns, wide_t *ret)
{
    *ret = divided(ns, NS_PER_NANO_HOUR);
    return true;
}

static bool scaled(double ratio, wide_t *ret)
{
    if (!isfinite(ratio) || fabs(ratio) > 1e18)
        return false;
    *ret = (wide_t)llround(ratio * 1e9);
    return true;
}

static bool money(money_t amount, wide_t *ret)
{
    *ret = amount;
    return true;
}

/* Counts and energy of which nothing was seen are not known to be 0. */
static bool seen(wide_t count, wide_t *ret)
{
    *ret = count;
    return count != 0;
}

static bool get_hours(const struct figures *f, enum figure_id id, wide_t *ret)
{
    switch (id) {
    case FIGURE_GPU_HOURS:
        return hours(f->gpu_ns, ret);
    case FIGURE_HELD_GPU_HOURS:
        return hours(f->gpu_held_ns, ret);
    case FIGURE_OBSERVED_GPU_HOURS:
        return hours(f->gpu_observed_ns, ret);
    case FIGURE_HELD_OBSERVED_GPU_HOURS:
        return hours(f->gpu_observed_held_ns, ret);
    case FIGURE_IDLE_GPU_HOURS:
        return hours(f->gpu_state_held_ns[STATE_IDLE], ret);
    case FIGURE_LOW_GPU_HOURS:
        return hours(f->gpu_state_held_ns[STATE_LOW], ret);
    case FIGURE_BUSY_GPU_HOURS:
        return hours(f->gpu_state_held_ns[STATE_BUSY], ret);
    case FIGURE_UNDER_30_GPU_HOURS:
        return hours(f->gpu_state_held_ns[STATE_IDLE] + f->gpu_state_held_ns[STATE_LOW], ret);
    default:
        return hours(divided(f->gpu_u_held, NANO), ret);
    }
}

static bool get_money(const struct figures *f, enum figure_id id, wide_t *ret)
{
    static const struct {
        enum figure_id id;
        enum category category;
    } categories[] = {
        {FIGURE_USED, CATEGORY_USED},
        {FIGURE_SLACK, CATEGORY_SLACK},
        {FIGURE_HELD_IDLE, CATEGORY_HELD_IDLE},
        {FIGURE_NODE_IDLE_EMPTY, CATEGORY_EMPTY},
        {FIGURE_NODE_IDLE_STRANDED, CATEGORY_STRANDED},
        {FIGURE_NODE_IDLE_UNPARTITIONED, CATEGORY_UNPARTITIONED},
        {FIGURE_NODE_IDLE_CORDONED, CATEGORY_CORDONED},
        {FIGURE_NODE_IDLE_STARTING, CATEGORY_STARTING},
        {FIGURE_UNHEALTHY, CATEGORY_UNHEALTHY},
        {FIGURE_UNOBSERVED, CATEGORY_UNOBSERVED},
        {FIGURE_UNATTRIBUTED, CATEGORY_UNATTRIBUTED},
    };
    if (id == FIGURE_COST)
        return money(f->cost, ret);
    if (id == FIGURE_NODE_IDLE)
        return money(figures_node_idle(f), ret);
    if (id == FIGURE_EFFECTIVE_PRICE)
        return scaled(figures_effective_price(f), ret);
    for (size_t i = 0; i < sizeof categories / sizeof *categories; i++)
        if (categories[i].id == id)
            return money(f->category[categories[i].category], ret);
    return false;
}

bool figure_get(const struct figures *f, enum figure_id id, wide_t *ret)
{
    switch (figure_defs[id].unit) {
    case UNIT_GPU_HOURS:
        return get_hours(f, id, ret);
    case UNIT_MONEY:
        return get_money(f, id, ret);
    case UNIT_RATIO:
        return scaled(id == FIGURE_UTILISATION ? figures_utilisation(f)
                      : id == FIGURE_COVERAGE  ? figures_coverage(f)
                                               : figures_efficiency(f),
                      ret);
    case UNIT_KWH:
        return seen(divided(f->energy_mj * 5, MJ_PER_5_NANO_KWH), ret);
    case UNIT_BYTES:
        if (id == FIGURE_MEMORY_MAX_BYTES)
            return seen(f->mem_max_bytes, ret);
        *ret = f->mem_seen_ms ? divided(f->mem_byte_ms, f->mem_seen_ms) : 0;
        return f->mem_seen_ms != 0;
    case UNIT_COUNT:
        return seen(f->work[id == FIGURE_GENERATION_TOKENS ? WORK_GENERATION_TOKENS
                            : id == FIGURE_PROMPT_TOKENS   ? WORK_PROMPT_TOKENS
                                                           : WORK_REQUESTS],
                    ret);
    }
    return false;
}

void figure_machine(struct strbuf *out, enum figure_unit unit, wide_t value)
{
    char text[MONEY_TEXT_MAX];
    if (unit == UNIT_MONEY)
        strbuf_add(out, str_of(money_format((money_t)value, text)));
    else if (unit == UNIT_BYTES || unit == UNIT_COUNT)
        strbuf_addf(out, "%lld", (long long)value);
    else
        text_nano_plain(out, value);
}

void key_machine(struct strbuf *out, enum key key)
{
    for (const char *p = key_words[key]; *p; p++)
        strbuf_addc(out, *p == '-' ? '_' : *p);
}
