/* Packing blocks: the writing half of block.c. */
#include <stdlib.h>

#include "store/block_format.h"

struct packer {
    struct store *store;
    const struct row_batch *batch;
    struct block *block;
    uint32_t *series_of; /* [row of the batch] */
    uint32_t *row_of;    /* [row of the block]: row of the batch */
    struct strings strings;
};

static uint64_t hash_of(const struct row *row)
{
    uint64_t hash = 0, word;
    const char *parts[] = {(const char *)&row->key.cluster, (const char *)&row->facts};
    size_t bytes[] = {sizeof row->key - offsetof(struct row_key, cluster), sizeof row->facts};
    for (int p = 0; p < 2; p++)
        for (size_t i = 0; i < bytes[p]; i += 4) {
            uint32_t half;
            memcpy(&half, parts[p] + i, sizeof half);
            word = half;
            hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
            hash ^= hash >> 32;
        }
    return hash;
}

static bool same_series(const struct series *series, const struct row *row)
{
    return memcmp(&series->key.cluster, &row->key.cluster,
                  sizeof row->key - offsetof(struct row_key, cluster)) == 0 &&
           memcmp(&series->facts, &row->facts, sizeof row->facts) == 0;
}

static unsigned hour_of(const struct row *row, int64_t day)
{
    time_ms at = row->key.hour - day * DAY_MS;
    invariant(at >= 0 && at < DAY_MS && at % HOUR_MS == 0);
    return (unsigned)(at / HOUR_MS);
}

/* How the row's weighted times compare with its wall times; 1 where that is not a whole number. */
static uint32_t share_of(const struct row *row)
{
    int64_t wall = row->held_ms > 0 ? row->held_ms : row->observed_ms;
    if (wall <= 0 || row->gpu_num <= 0 || row->gpu_num % wall)
        return 1;
    int64_t share = row->gpu_num / wall;
    return share <= SHARE_DEN_MAX ? (uint32_t)share : 1;
}

/* Rows with the same key and facts are a series. A row that is there twice begins another one. */
static void find_series(struct packer *packer)
{
    struct block *block = packer->block;
    size_t n = packer->batch->rows_n, mask = 15;
    while (mask < 2 * n)
        mask = mask * 2 + 1;
    uint32_t *table = mem_zalloc(mask + 1, sizeof *table);
    block->series_n = 0;
    for (size_t i = 0; i < n; i++) {
        const struct row *row = &packer->batch->rows[i];
        uint32_t bit = 1u << hour_of(row, block->day);
        size_t at = hash_of(row) & mask;
        while (table[at] && (!same_series(&block->series[table[at] - 1], row) ||
                             block->series[table[at] - 1].hours & bit))
            at = (at + 1) & mask;
        if (!table[at]) {
            struct series *series = &block->series[block->series_n++];
            *series = (struct series){.key = row->key, .facts = row->facts, .share = share_of(row)};
            series->key.hour = 0;
            table[at] = (uint32_t)block->series_n;
        }
        block->series[table[at] - 1].hours |= bit;
        packer->series_of[i] = table[at] - 1;
    }
    free(table);
}

struct by_key {
    struct series series;
    uint32_t was;
};

static int by_key(const void *a, const void *b, void *names)
{
    const struct by_key *left = a, *right = b;
    int order = row_key_cmp(names, &left->series.key, &right->series.key);
    return order ? order : (left->was > right->was) - (left->was < right->was);
}

static void sort_series(struct packer *packer)
{
    struct block *block = packer->block;
    size_t n = block->series_n;
    struct by_key *order = mem_alloc(n * sizeof *order);
    uint32_t *rank = mem_alloc(n * sizeof *rank);
    for (size_t s = 0; s < n; s++)
        order[s] = (struct by_key){block->series[s], (uint32_t)s};
    if (n)
        qsort_r(order, n, sizeof *order, by_key, packer->store->names);
    size_t at = 0;
    for (size_t s = 0; s < n; s++) {
        block->series[s] = order[s].series;
        rank[order[s].was] = (uint32_t)s;
        block->starts[s] = (uint32_t)at;
        at += (size_t)__builtin_popcount(order[s].series.hours);
    }
    block->starts[n] = (uint32_t)at;
    uint32_t *next = mem_alloc((n + 1) * sizeof *next);
    memcpy(next, block->starts, (n + 1) * sizeof *next);
    for (size_t i = 0; i < packer->batch->rows_n; i++) {
        uint32_t row = next[rank[packer->series_of[i]]]++;
        packer->row_of[row] = (uint32_t)i;
        block->hours[row] = (uint8_t)hour_of(&packer->batch->rows[i], block->day);
    }
    free(order);
    free(rank);
    free(next);
}

static void fill_columns(struct packer *packer)
{
    struct block *block = packer->block;
    for (size_t i = 0; i < block->rows_n; i++) {
        const struct row *row = &packer->batch->rows[packer->row_of[i]];
#define X(name, field) block->columns[COLUMN_##name][i] = (int64_t)row->field;
        HOT_COLUMN_TABLE(X)
        COLD_COLUMN_TABLE(X)
#undef X
    }
}

static enum err name_id(struct packer *packer, name_t name, int64_t *ret, struct error *err)
{
    uint32_t id;
    enum err code = dictionary_put(packer->store, name, &id, err);
    *ret = code ? 0 : id;
    return code;
}

static int64_t string_index(struct packer *packer, name_t name)
{
    return name == NAME_NONE
               ? 0
               : (int64_t)strings_add(&packer->strings, names_text(packer->store->names, name));
}

static enum err series_names(struct packer *packer, int64_t *values, size_t n, struct error *err)
{
    enum err code = ERR_OK;
    for (size_t s = 0; s < n && !code; s++) {
        const struct series *series = &packer->block->series[s];
        const struct row_key *key = &series->key;
        const struct row_facts *facts = &series->facts;
        const name_t ids[] = {key->device,   key->instance, key->namespace,       key->container,
                              facts->model,  facts->owner,  facts->instance_type, facts->pool,
                              facts->region, facts->cloud};
        _Static_assert(SERIES_CLOUD == sizeof ids / sizeof *ids - 1, "ids come first");
        for (size_t c = 0; c < sizeof ids / sizeof *ids && !code; c++)
            code = name_id(packer, ids[c], &values[c * n + s], err);
    }
    return code;
}

static enum err put_series(struct packer *packer, struct strbuf *out, struct error *err)
{
    size_t n = packer->block->series_n;
    int64_t *values = mem_alloc((SERIES_COLUMNS * n + 1) * sizeof *values);
    enum err code = series_names(packer, values, n, err);
    for (size_t s = 0; s < n && !code; s++) {
        const struct series *series = &packer->block->series[s];
        int64_t workload = string_index(packer, series->facts.workload);
        int64_t pod = string_index(packer, series->key.pod);
        int64_t uid = string_index(packer, series->key.pod_uid);
        int first = __builtin_ctz(series->hours), count = __builtin_popcount(series->hours);
        values[SERIES_CAPACITY * n + s] = (int64_t)series->facts.capacity;
        values[SERIES_TYPE * n + s] = (int64_t)series->facts.type;
        values[SERIES_WORKLOAD * n + s] = workload;
        values[SERIES_POD * n + s] = pod - workload;
        values[SERIES_UID * n + s] = uid - pod;
        values[SERIES_FIRST_HOUR * n + s] = first;
        values[SERIES_HOUR_COUNT * n + s] = count;
        values[SERIES_HOLES * n + s] = (((1u << count) - 1) << first) ^ series->hours;
        values[SERIES_SHARE * n + s] = series->share;
    }
    struct group_writer group = {0};
    for (size_t c = 0; c < SERIES_COLUMNS && !code; c++)
        group_put(&group, values + c * n, n, (struct runs){NULL, 0});
    if (!code)
        strings_pack(&packer->strings, out);
    group_end(&group, out);
    free(values);
    return code;
}

static enum err put_node_hours(struct packer *packer, struct strbuf *out, struct error *err)
{
    const struct block *block = packer->block;
    int64_t values[NODE_HOUR_COLUMNS][24] = {0};
    enum err code = ERR_OK;
    size_t n = block->node_hours_n;
    for (size_t i = 0; i < n && !code; i++) {
        const struct node_hour *hour = &block->node_hours[i];
        const struct {
            enum node_hour_column column;
            name_t name;
        } ids[] = {{NODE_HOUR_INSTANCE_TYPE, hour->instance_type},
                   {NODE_HOUR_POOL, hour->pool},
                   {NODE_HOUR_REGION, hour->region},
                   {NODE_HOUR_CLOUD, hour->cloud},
                   {NODE_HOUR_SOURCE, hour->price_source}};
        for (size_t c = 0; c < sizeof ids / sizeof *ids && !code; c++)
            code = name_id(packer, ids[c].name, &values[ids[c].column][i], err);
        values[NODE_HOUR_HOUR][i] = (hour->hour - block->day * DAY_MS) / HOUR_MS;
        values[NODE_HOUR_CAPACITY][i] = (int64_t)hour->capacity;
        values[NODE_HOUR_PRICE][i] = hour->price;
        values[NODE_HOUR_UP][i] = hour->up_ms;
        values[NODE_HOUR_BOOKED][i] =
            (int64_t)((uint64_t)hour->booked - (uint64_t)node_hour_booked(hour));
        values[NODE_HOUR_GPUS][i] = hour->gpus;
        values[NODE_HOUR_FLAGS][i] = hour->flags;
    }
    struct group_writer group = {0};
    for (int c = 0; c < NODE_HOUR_COLUMNS; c++)
        group_put(&group, values[c], n, (struct runs){NULL, 0});
    group_end(&group, out);
    return code;
}

static void take_off(int64_t *values, const int64_t *from, const int64_t *less, size_t n)
{
    for (size_t i = 0; i < n; i++)
        values[i] = (int64_t)((uint64_t)from[i] - (uint64_t)less[i]);
}

static int64_t largest_but_used(const struct block *block, size_t i, int64_t guess)
{
    int64_t best = guess;
    for (int c = CATEGORY_USED + 1; c < CATEGORY_COUNT; c++)
        if (block->columns[COLUMN_USED + c][i] > block->columns[COLUMN_USED + best][i])
            best = c;
    return best;
}

static void put_categories(struct block *block, struct group_writer *group)
{
    size_t n = block->rows_n;
    int64_t *dominant = block->scratch, *guess = dominant + n, *rest = guess + n, *out = rest + n;
    struct runs runs = block_runs(block);
    block_predict_dominant(block, guess);
    for (size_t i = 0; i < n; i++)
        dominant[i] = largest_but_used(block, i, guess[i]);
    take_off(out, dominant, guess, n);
    group_put(group, out, n, runs);
    memcpy(rest, block->columns[COLUMN_COST], n * sizeof *rest);
    for (int c = 0; c < CATEGORY_COUNT; c++) {
        enum row_column column = (enum row_column)(COLUMN_USED + c);
        const int64_t *values = block->columns[column];
        take_off(rest, rest, values, n);
        if (!block_predict(block, column, guess))
            memset(guess, 0, n * sizeof *guess);
        take_off(out, values, guess, n);
        for (size_t i = 0; i < n; i++)
            if (dominant[i] == c)
                out[i] = 0; /* its part of the rest is found again, see below */
        group_put(group, out, n, runs);
    }
    group_put(group, rest, n, runs);
}

static void put_column(struct block *block, struct group_writer *group, enum row_column column)
{
    const int64_t *values = block->columns[column];
    int64_t *less = block->scratch, *out = less + block->rows_n;
    if (block_predict(block, column, less)) {
        take_off(out, values, less, block->rows_n);
        values = out;
    }
    group_put(group, values, block->rows_n, block_runs(block));
}

static void put_histogram(struct packer *packer, struct group_writer *group,
                          enum row_column integral, size_t at)
{
    struct block *block = packer->block;
    size_t n = block->rows_n, others = 0;
    int64_t *first = block->scratch, *count = first + n, *rest = count + n, *bin = rest + n;
    block_predict_bin(block, integral, bin);
    int64_t *bins = mem_alloc((n * HISTOGRAM_BINS + 1) * sizeof *bins);
    for (size_t i = 0; i < n; i++) {
        const struct row *row = &packer->batch->rows[packer->row_of[i]];
        const int64_t *histogram = (const int64_t *)((const char *)row + at);
        int low = 0, high = HISTOGRAM_BINS;
        while (low < HISTOGRAM_BINS && histogram[low] == 0)
            low++;
        while (high > low && histogram[high - 1] == 0)
            high--;
        uint64_t left = (uint64_t)row->gpu_observed_num;
        for (int k = low + 1; k < high; k++) {
            bins[others++] = histogram[k];
            left -= (uint64_t)histogram[k];
        }
        first[i] = high > low ? bin[i] - low : 0;
        count[i] = high - low;
        rest[i] = high > low ? (int64_t)((uint64_t)histogram[low] - left) : 0;
    }
    group_put(group, first, n, block_runs(block));
    group_put(group, count, n, block_runs(block));
    group_put(group, rest, n, block_runs(block));
    group_put(group, bins, others, (struct runs){NULL, 0});
    free(bins);
}

static void put_columns(struct packer *packer, struct strbuf *out)
{
    struct block *block = packer->block;
    struct group_writer hot = {0}, cold = {0};
    block_predict_begin(block);
    for (enum row_column c = 0; c < HOT_COLUMNS; c++) {
        if (c == COLUMN_USED) {
            put_categories(block, &hot);
            c = COLUMN_UNATTRIBUTED;
            continue;
        }
        put_column(block, &hot, c);
    }
    group_end(&hot, out);
    for (enum row_column c = HOT_COLUMNS; c < ROW_COLUMNS; c++)
        put_column(block, &cold, c);
    put_histogram(packer, &cold, COLUMN_U, offsetof(struct row, hist_u_num));
    put_histogram(packer, &cold, COLUMN_E, offsetof(struct row, hist_e_num));
    group_end(&cold, out);
}

enum err block_pack(struct store *store, const struct row_batch *batch, struct strbuf *ret,
                    struct error *err)
{
    struct block *block = store->packing;
    size_t n = batch->rows_n;
    invariant(n <= BLOCK_ROWS_MAX && batch->node_hours_n <= 24);
    struct packer packer = {.store = store,
                            .batch = batch,
                            .block = block,
                            .series_of = mem_alloc((n + 1) * sizeof(uint32_t)),
                            .row_of = mem_alloc((n + 1) * sizeof(uint32_t))};
    block_reserve(block, n, n);
    block->rows_n = n;
    block->node_hours_n = batch->node_hours_n;
    if (batch->node_hours_n)
        memcpy(block->node_hours, batch->node_hours,
               batch->node_hours_n * sizeof *batch->node_hours);
    block->day = day_of(n ? batch->rows[0].key.hour : batch->node_hours[0].hour);
    find_series(&packer);
    sort_series(&packer);
    fill_columns(&packer);
    strbuf_clear(ret);
    strbuf_addc(ret, BLOCK_FORMAT);
    strbuf_add(ret, (struct str){"\0\0\0", BLOCK_CHECK_BYTES}); /* until the rest is there */
    varint_put(ret, block->series_n);
    varint_put(ret, n);
    varint_put(ret, batch->node_hours_n);
    enum err code = put_series(&packer, ret, err);
    if (!code)
        code = put_node_hours(&packer, ret, err);
    if (!code)
        put_columns(&packer, ret);
    size_t head = 1 + BLOCK_CHECK_BYTES;
    block_check((struct str){ret->text + head, ret->n - head}, ret->text + 1);
    free(packer.series_of);
    free(packer.row_of);
    free(packer.strings.texts);
    return code;
}
