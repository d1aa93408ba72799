/* Adding up columns. A series is a GPU's day under one holder, some 24 rows: nothing of a row but
 * its columns is looked at, and of these not the ones that are 0 all day. */
#include "insight/books_gather.h"

#define NS_PER_MS 1000000

static const int64_t *column(const struct day_series *series, enum row_column c)
{
    return series->columns[c] + series->from;
}

static bool is_zero(const struct day_series *series, enum row_column c)
{
    return series->zero >> c & 1;
}

static int64_t sum_of(const struct day_series *series, enum row_column c)
{
    uint64_t sum = 0;
    if (is_zero(series, c))
        return 0;
    const int64_t *values = column(series, c);
    for (size_t i = 0; i < series->n; i++)
        sum += (uint64_t)values[i];
    return (int64_t)sum;
}

static wide_t wide_sum_of(const struct day_series *series, enum row_column c)
{
    wide_t sum = 0;
    if (is_zero(series, c))
        return 0;
    const int64_t *values = column(series, c);
    for (size_t i = 0; i < series->n; i++)
        sum += values[i];
    return sum;
}

static int64_t most_of(const struct day_series *series, enum row_column c)
{
    int64_t most = 0;
    const int64_t *values = column(series, c);
    for (size_t i = 0; i < series->n; i++)
        most = values[i] > most ? values[i] : most;
    return most;
}

/* Is each row of a whole GPU? */
static bool is_whole(const struct day_series *series)
{
    const int64_t *dens = column(series, COLUMN_SHARE_DEN);
    bool whole = true;
    for (size_t i = 0; i < series->n; i++)
        whole &= dens[i] <= 1;
    return whole;
}

static wide_t ns_of(int64_t num, int64_t den)
{
    return den <= 1 ? (wide_t)num * NS_PER_MS : (wide_t)num * NS_PER_MS / den;
}

/* Rounded row by row. */
static wide_t ns_sum_of(const struct day_series *series, bool whole, enum row_column c)
{
    if (whole)
        return wide_sum_of(series, c) * NS_PER_MS;
    const int64_t *values = column(series, c), *dens = column(series, COLUMN_SHARE_DEN);
    wide_t sum = 0;
    for (size_t i = 0; i < series->n; i++)
        sum += ns_of(values[i], dens[i]);
    return sum;
}

static wide_t u_ns_of(const struct day_series *series)
{
    const int64_t *values = column(series, COLUMN_GPU_U), *dens = column(series, COLUMN_SHARE_DEN);
    wide_t sum = 0;
    for (size_t i = 0; i < series->n; i++)
        sum += dens[i] <= 1 ? values[i] / 1000 : ns_of(values[i], dens[i]) / NANO;
    return sum;
}

static void add_histogram(const struct day_series *series, int64_t ns[HISTOGRAM_BINS])
{
    const struct row_histogram *u = &series->u;
    const int64_t *dens = column(series, COLUMN_SHARE_DEN);
    for (size_t k = 0; k < series->n; k++) {
        size_t i = series->from + k;
        int64_t *bin = ns + u->first[i];
        if (!u->count[i])
            continue;
        *bin += (int64_t)ns_of(u->least[i], dens[k]);
        for (int64_t b = 1; b < u->count[i]; b++)
            bin[b] += (int64_t)ns_of(u->bins[u->at[i] + b - 1], dens[k]);
    }
}

static void add_use(struct book_sum *sum, const struct day_series *series, bool whole)
{
    for (int s = 0; s < STATE_COUNT; s++)
        sum->state_ns[s] += ns_sum_of(series, whole, (enum row_column)(COLUMN_GPU_IDLE + s));
    sum->u_ns += u_ns_of(series);
    sum->u += wide_sum_of(series, COLUMN_U);
    sum->held_ms += sum_of(series, COLUMN_HELD);
    add_histogram(series, sum->hist_u_ns);
    const int64_t *byte_ms = column(series, COLUMN_MEM_BYTE_MS);
    for (size_t i = 0; i < series->n; i++)
        sum->mem_byte_ms += (uint64_t)byte_ms[i];
    sum->mem_seen_ms += sum_of(series, COLUMN_MEM_SEEN);
    int64_t mem_max = most_of(series, COLUMN_MEM_MAX), total = most_of(series, COLUMN_MEM_TOTAL);
    sum->mem_max_bytes = mem_max > sum->mem_max_bytes ? mem_max : sum->mem_max_bytes;
    sum->mem_total_bytes = total > sum->mem_total_bytes ? total : sum->mem_total_bytes;
    for (int w = 0; w < WORK_COUNT; w++)
        sum->work[w] += sum_of(series, (enum row_column)(COLUMN_GENERATION_TOKENS + w));
    for (int m = 0; m < MEASURE_COUNT; m++) {
        sum->measure[m] += wide_sum_of(series, (enum row_column)(COLUMN_SM + m));
        sum->measure_seen_ms[m] += sum_of(series, (enum row_column)(COLUMN_SM_SEEN + m));
    }
    sum->energy_mj += wide_sum_of(series, COLUMN_ENERGY);
}

_Static_assert(COLUMN_GPU_BUSY - COLUMN_GPU_IDLE == STATE_BUSY - STATE_IDLE &&
                   COLUMN_REQUESTS - COLUMN_GENERATION_TOKENS == WORK_COUNT - 1 &&
                   COLUMN_DRAM - COLUMN_SM == MEASURE_COUNT - 1 &&
                   COLUMN_DRAM_SEEN - COLUMN_SM_SEEN == MEASURE_COUNT - 1,
               "columns lie in the order of what they are of");

/* The categories that have money in some row of a series, and the first one. */
struct categories {
    enum category items[CATEGORY_COUNT];
    int n;
};

static struct categories categories_of(const struct day_series *series)
{
    struct categories of = {.items = {CATEGORY_USED}, .n = 1};
    for (int c = CATEGORY_USED + 1; c < CATEGORY_COUNT; c++)
        if (!is_zero(series, (enum row_column)(COLUMN_USED + c)))
            of.items[of.n++] = (enum category)c;
    return of;
}

/* The category that most of a row's money is of; of several the first. */
static enum category main_category(const struct day_series *series, const struct categories *some,
                                   size_t i)
{
    enum category main = CATEGORY_USED;
    int64_t most = column(series, COLUMN_USED)[i];
    for (int k = 1; k < some->n; k++) {
        int64_t money = column(series, (enum row_column)(COLUMN_USED + some->items[k]))[i];
        if (money > most) {
            most = money;
            main = some->items[k];
        }
    }
    return main;
}

/* Time without telemetry may have been anything; the end of the last interval is too short. */
static bool is_taken(const struct day_series *series, size_t i)
{
    return series->key.pod != NAME_NONE || column(series, COLUMN_UNATTRIBUTED)[i] ||
           column(series, COLUMN_STRANDED)[i] ||
           20 * (wide_t)column(series, COLUMN_UNOBSERVED)[i] > column(series, COLUMN_COST)[i];
}

static void add_to_node(struct book_node *node, const struct day_series *series)
{
    const int64_t *gpu = column(series, COLUMN_GPU), *dens = column(series, COLUMN_SHARE_DEN);
    const struct categories some = categories_of(series);
    time_ms midnight = series->key.hour - __builtin_ctz(series->hours) * HOUR_MS;
    uint32_t rest = series->hours;
    for (size_t i = 0; i < series->n; i++, rest &= rest - 1) {
        wide_t ns = ns_of(gpu[i], dens[i]);
        node->category_ns[main_category(series, &some, i)] += ns;
        node->gpu_ns += ns;
        time_ms end = midnight + (__builtin_ctz(rest) + 1) * HOUR_MS;
        if (end > node->taken_until && is_taken(series, i))
            node->taken_until = end;
    }
}

void book_add_series(struct book_cell *cell, struct book_node *node, struct book_sum *sum,
                     const struct day_series *series)
{
    bool whole = is_whole(series);
    const int64_t *flags = column(series, COLUMN_FLAGS);
    cell->cost += sum_of(series, COLUMN_COST);
    for (int c = 0; c < CATEGORY_COUNT; c++) {
        money_t money = sum_of(series, (enum row_column)(COLUMN_USED + c));
        cell->category[c] += money;
        node->category[c] += money;
    }
    cell->gpu_ns += ns_sum_of(series, whole, COLUMN_GPU);
    cell->held_ns += ns_sum_of(series, whole, COLUMN_GPU_HELD);
    cell->observed_ns += ns_sum_of(series, whole, COLUMN_GPU_OBSERVED);
    cell->e += wide_sum_of(series, COLUMN_E);
    cell->observed_ms += sum_of(series, COLUMN_OBSERVED);
    for (size_t i = 0; i < series->n; i++)
        cell->flags |= (uint32_t)flags[i];
    cell->shared |= !whole;
    add_to_node(node, series);
    if (sum)
        add_use(sum, series, whole);
}

/* Does the chip do nothing by SM activity, or where that is not exported, by power? */
static bool does_nothing(const struct books *books, const struct book_cell *cell,
                         const struct day_series *series, size_t i, bool *ret_by_power)
{
    int64_t sm_seen = column(series, COLUMN_SM_SEEN)[i];
    int64_t observed_ms = column(series, COLUMN_OBSERVED)[i];
    int64_t energy_mj = column(series, COLUMN_ENERGY)[i];
    *ret_by_power = sm_seen == 0;
    if (sm_seen)
        return ratio_reached(sm_seen, observed_ms,
                             books_threshold(books, THRESHOLD_BUSY_USELESS_OBSERVED)) &&
               !(column(series, COLUMN_FLAGS)[i] & FLAG_STUCK_COUNTER) &&
               column(series, COLUMN_SM)[i] <
                   (wide_t)books_threshold(books, THRESHOLD_BUSY_USELESS_ACTIVITY) * sm_seen;
    return cell->floor_mw > 0 && cell->instance == NAME_NONE &&
           column(series, COLUMN_SHARE_DEN)[i] <= 1 && energy_mj > 0 &&
           (wide_t)energy_mj * 1000 <= (wide_t)cell->floor_mw * observed_ms;
}

static void add_useless(const struct books *books, struct book_cell *cell,
                        const struct day_series *series, size_t i, time_ms hour)
{
    int64_t observed_ms = column(series, COLUMN_OBSERVED)[i], e = column(series, COLUMN_E)[i];
    bool by_power = false;
    bool useless =
        observed_ms > 0 &&
        ratio_reached(observed_ms, column(series, COLUMN_HELD)[i],
                      books_threshold(books, THRESHOLD_BUSY_USELESS_OBSERVED)) &&
        e >= (wide_t)books_threshold(books, THRESHOLD_BUSY_USELESS_KERNEL) * observed_ms &&
        does_nothing(books, cell, series, i, &by_power);
    if (!useless || cell->useless_since == TIME_MAX) {
        cell->useless_since = useless ? hour : TIME_MAX;
        cell->useless_cost = 0;
        cell->useless_sm = cell->useless_e = cell->useless_mj = 0;
        cell->useless_ms = 0;
        cell->useless_by_power = false;
    }
    if (!useless)
        return;
    cell->useless_by_power |= by_power;
    cell->useless_cost += column(series, COLUMN_COST)[i];
    cell->useless_sm += column(series, COLUMN_SM)[i];
    cell->useless_e += e;
    cell->useless_mj += column(series, COLUMN_ENERGY)[i];
    cell->useless_ms += observed_ms;
}

void book_add_hour(const struct books *books, struct book_cell *cell,
                   const struct day_series *series, size_t i, time_ms hour)
{
    int64_t observed_ms = column(series, COLUMN_OBSERVED)[i];
    cell->facts = series->facts;
    cell->container = series->key.container;
    cell->last = hour + HOUR_MS;
    /* A kernel now and then is work too: what it is for is not known here. */
    wide_t hundredth = (wide_t)observed_ms * (NANO / 100);
    bool kernels = observed_ms > 0 && (column(series, COLUMN_U)[i] >= hundredth ||
                                       column(series, COLUMN_E)[i] >= hundredth);
    if (kernels || column(series, COLUMN_LOW)[i] + column(series, COLUMN_BUSY)[i] > 0) {
        cell->worked_until = cell->last;
        cell->idle_observed_ms = 0;
    } else {
        cell->idle_observed_ms += observed_ms;
    }
    add_useless(books, cell, series, i, hour);
}

void book_sum_join(struct book_sum *sum, const struct book_sum *more)
{
    for (int s = 0; s < STATE_COUNT; s++)
        sum->state_ns[s] += more->state_ns[s];
    for (int b = 0; b < HISTOGRAM_BINS; b++)
        sum->hist_u_ns[b] += more->hist_u_ns[b];
    sum->u_ns += more->u_ns;
    sum->u += more->u;
    sum->held_ms += more->held_ms;
    sum->mem_byte_ms += more->mem_byte_ms;
    sum->mem_seen_ms += more->mem_seen_ms;
    if (more->mem_max_bytes > sum->mem_max_bytes)
        sum->mem_max_bytes = more->mem_max_bytes;
    if (more->mem_total_bytes > sum->mem_total_bytes)
        sum->mem_total_bytes = more->mem_total_bytes;
    for (int w = 0; w < WORK_COUNT; w++)
        sum->work[w] += more->work[w];
    for (int m = 0; m < MEASURE_COUNT; m++) {
        sum->measure[m] += more->measure[m];
        sum->measure_seen_ms[m] += more->measure_seen_ms[m];
    }
    sum->energy_mj += more->energy_mj;
    if (sum->last == 0 || more->first < sum->first)
        sum->first = more->first;
    if (more->last >= sum->last) {
        sum->last = more->last;
        sum->facts = more->facts;
        sum->container = more->container;
    }
    sum->cost += more->cost;
    for (int c = 0; c < CATEGORY_COUNT; c++)
        sum->category[c] += more->category[c];
    sum->gpu_ns += more->gpu_ns;
    sum->held_ns += more->held_ns;
    sum->observed_ns += more->observed_ns;
    sum->e += more->e;
    sum->observed_ms += more->observed_ms;
    sum->flags |= more->flags;
    sum->shared |= more->shared;
    if (more->worked_until > sum->worked_until)
        sum->worked_until = more->worked_until;
}

void book_sum_add_cell(struct book_sum *sum, const struct book_cell *cell)
{
    if (sum->last == 0 || cell->first < sum->first)
        sum->first = cell->first;
    if (cell->last >= sum->last) {
        sum->last = cell->last;
        sum->facts = cell->facts;
        sum->container = cell->container;
    }
    sum->cost += cell->cost;
    for (int c = 0; c < CATEGORY_COUNT; c++)
        sum->category[c] += cell->category[c];
    sum->gpu_ns += cell->gpu_ns;
    sum->held_ns += cell->held_ns;
    sum->observed_ns += cell->observed_ns;
    sum->e += cell->e;
    sum->observed_ms += cell->observed_ms;
    sum->flags |= cell->flags;
    sum->shared |= cell->shared || cell->instance != NAME_NONE;
    if (cell->worked_until > sum->worked_until)
        sum->worked_until = cell->worked_until;
}
