/* Laying blocks open: the reading half, but for what rows are of (block_series.c). Packing is in
 * block_pack.c, and must match step by step. */
#include "store/block.h"

#include <stdlib.h>
#include <xxhash.h>

#include "store/block_format.h"

void block_reserve(struct block *block, size_t series_n, size_t rows_n)
{
    if (series_n > block->series_room || !block->series) {
        size_t room = series_n > 64 ? series_n : 64;
        block->series = mem_realloc(block->series, room, sizeof *block->series);
        block->starts = mem_realloc(block->starts, room + 1, sizeof *block->starts);
        block->series_room = room;
    }
    if (rows_n > block->rows_room || !block->scratch) {
        size_t room = rows_n > 256 ? rows_n : 256;
        for (int c = 0; c < ROW_COLUMNS; c++)
            block->columns[c] = mem_realloc(block->columns[c], room, sizeof(int64_t));
        block->hours = mem_realloc(block->hours, room, 1);
        block->scratch = mem_realloc(block->scratch, 4 * room, sizeof(int64_t));
        block->rows_room = room;
    }
}

void block_release(struct block *block)
{
    for (int c = 0; c < ROW_COLUMNS; c++)
        free(block->columns[c]);
    free(block->series);
    free(block->starts);
    free(block->hours);
    free(block->scratch);
    arena_release(&block->texts);
    strings_release_zstd(block->zstd);
    free(block->strings.texts);
    free(block->bins);
    strbuf_release(&block->bytes);
    *block = (struct block){0};
}

/* Rows follow from the series' hours; their number must be the one that was said. */
static bool place_rows(struct block *block)
{
    size_t at = 0;
    for (size_t s = 0; s < block->series_n; s++) {
        block->starts[s] = (uint32_t)at;
        for (uint32_t rest = block->series[s].hours; rest; rest &= rest - 1) {
            if (at == block->rows_n)
                return false;
            block->hours[at++] = (uint8_t)__builtin_ctz(rest);
        }
    }
    block->starts[block->series_n] = (uint32_t)at;
    return at == block->rows_n;
}

static void add_up(int64_t *values, const int64_t *more, size_t n)
{
    for (size_t i = 0; i < n; i++)
        values[i] = (int64_t)((uint64_t)values[i] + (uint64_t)more[i]);
}

/* Guesses that were right all day are not corrected. */
static bool read_column(struct block *block, struct group_reader *group, enum row_column column,
                        int64_t *scratch)
{
    int64_t *values = block->columns[column];
    if (group_skip_zero(group)) {
        if (block_predict(block, column, values))
            return true;
        memset(values, 0, block->rows_n * sizeof *values);
        block->zero |= UINT64_C(1) << column;
        return true;
    }
    if (!group_get(group, values, block->rows_n, block_runs(block)))
        return false;
    if (block_predict(block, column, scratch))
        add_up(values, scratch, block->rows_n);
    return true;
}

/* The categories: `used` from u, one that takes the rest of the cost, and the others as they are.
 */
static bool read_categories(struct block *block, struct group_reader *group)
{
    size_t n = block->rows_n;
    int64_t *dominant = block->scratch, *guess = block->scratch + n, *rest = guess + n;
    struct runs runs = block_runs(block);
    block_predict_dominant(block, guess);
    if (!group_get(group, dominant, n, runs))
        return false;
    add_up(dominant, guess, n);
    for (size_t i = 0; i < n; i++)
        if (dominant[i] <= CATEGORY_USED || dominant[i] >= CATEGORY_COUNT)
            return false;
    memcpy(rest, block->columns[COLUMN_COST], n * sizeof *rest);
    for (int c = 0; c < CATEGORY_COUNT; c++) {
        int64_t *values = block->columns[COLUMN_USED + c];
        if (c != CATEGORY_USED && group_skip_zero(group)) {
            memset(values, 0, n * sizeof *values);
            block->zero |= UINT64_C(1) << (COLUMN_USED + c);
            continue;
        }
        if (!read_column(block, group, (enum row_column)(COLUMN_USED + c), guess))
            return false;
        for (size_t i = 0; i < n; i++)
            rest[i] = (int64_t)((uint64_t)rest[i] - (uint64_t)values[i]);
    }
    if (!group_get(group, guess, n, runs))
        return false;
    for (size_t i = 0; i < n; i++) {
        block->columns[COLUMN_USED + dominant[i]][i] =
            (int64_t)((uint64_t)rest[i] - (uint64_t)guess[i]);
        block->zero &= ~(UINT64_C(1) << (COLUMN_USED + dominant[i]));
    }
    return true;
}

static bool read_hot(struct block *block, struct str *in)
{
    struct group_reader group;
    if (!group_begin(&group, in, HOT_GROUP_COLUMNS))
        return false;
    block_predict_begin(block);
    block->zero = 0;
    for (enum row_column c = 0; c < HOT_COLUMNS; c++) {
        if (c == COLUMN_USED) {
            if (!read_categories(block, &group))
                return false;
            c = COLUMN_UNATTRIBUTED;
            continue;
        }
        if (!read_column(block, &group, c, block->scratch))
            return false;
        if (c == COLUMN_SHARE_DEN)
            for (size_t i = 0; i < block->rows_n; i++)
                if (block->columns[c][i] < 0 || block->columns[c][i] > UINT32_MAX)
                    return false;
    }
    return true;
}

void block_check(struct str bytes, char ret[BLOCK_CHECK_BYTES])
{
    uint64_t hash = XXH3_64bits(bytes.p, bytes.n);
    for (int i = 0; i < BLOCK_CHECK_BYTES; i++)
        ret[i] = (char)(hash >> 8 * i);
}

/* The format and, from the second one on, whether the rest is as it was packed. */
static bool open_format(struct str *in)
{
    int format = in->n ? *in->p : 0;
    if (format < 1 || format > BLOCK_FORMAT)
        return false;
    in->p++, in->n--;
    if (format == 1)
        return true;
    if (in->n < BLOCK_CHECK_BYTES)
        return false;
    const char *kept = in->p;
    char check[BLOCK_CHECK_BYTES];
    in->p += BLOCK_CHECK_BYTES, in->n -= BLOCK_CHECK_BYTES;
    block_check(*in, check);
    return memcmp(kept, check, sizeof check) == 0;
}

static bool open_head(struct block *block, struct str *in)
{
    uint64_t series_n, rows_n, hours_n;
    block->series_n = block->rows_n = block->node_hours_n = 0;
    if (!open_format(in))
        return false;
    if (!varint_get(in, &series_n) || !varint_get(in, &rows_n) || !varint_get(in, &hours_n) ||
        rows_n > BLOCK_ROWS_MAX || series_n > rows_n || hours_n > 24)
        return false;
    arena_clear(&block->texts);
    block->series_n = series_n;
    block->rows_n = rows_n;
    block->node_hours_n = hours_n;
    return true;
}

static bool open_block(struct store *store, struct block *block, struct str in,
                       enum block_names names)
{
    if (!open_head(block, &in))
        return false;
    block_reserve(block, block->series_n, block->rows_n);
    bool fine = strings_unpack(&in, &block->texts, &block->zstd, &block->strings) &&
                block_read_series(store, block, names, &in) && place_rows(block) &&
                block_read_node_hours(store, block, &in) && read_hot(block, &in);
    block->cold = in;
    return fine;
}

enum err block_open(struct store *store, struct block *block, int64_t day, name_t cluster,
                    name_t node, struct str packed, enum block_names names, struct error *err)
{
    static const char slack[COLUMN_PADDING];
    block->day = day;
    block->cluster = cluster;
    block->node = node;
    strbuf_clear(&block->bytes);
    strbuf_add(&block->bytes, packed);
    strbuf_add(&block->bytes, (struct str){slack, sizeof slack});
    if (!open_block(store, block, (struct str){block->bytes.text, packed.n}, names))
        return db_corrupt(store, "a day's block cannot be read", err);
    return ERR_OK;
}

enum err block_open_node_hours(struct store *store, struct block *block, int64_t day,
                               name_t cluster, name_t node, struct str packed, struct error *err)
{
    struct str in = packed;
    block->day = day;
    block->cluster = cluster;
    block->node = node;
    if (!open_head(block, &in) || !strings_skip(&in, &block->texts, &block->zstd) ||
        !block_skip_series(block, &in) || !block_read_node_hours(store, block, &in))
        return db_corrupt(store, "a day's block cannot be read", err);
    return ERR_OK;
}

/* Histograms: first bin, number of bins, the first bin as what is left of the observed time, and
 * the other bins of all rows in one column. */
static bool read_histogram(struct block *block, struct group_reader *group,
                           enum row_column integral, struct row_histogram *ret)
{
    size_t n = block->rows_n, others = 0;
    int64_t *first = block->scratch, *count = first + n, *least = count + n, *at = least + n;
    struct runs runs = block_runs(block);
    block_predict_bin(block, integral, at);
    if (!group_get(group, first, n, runs) || !group_get(group, count, n, runs) ||
        !group_get(group, least, n, runs))
        return false;
    for (size_t i = 0; i < n; i++) {
        first[i] = at[i] - first[i];
        if (first[i] < 0 || count[i] < 0 || first[i] > HISTOGRAM_BINS ||
            count[i] > HISTOGRAM_BINS - first[i])
            return false;
        at[i] = (int64_t)others;
        others += count[i] ? (size_t)count[i] - 1 : 0;
    }
    mem_reserve(block->bins, (size_t)0, block->bins_room, others + 1);
    if (!group_get(group, block->bins, others, (struct runs){NULL, 0}))
        return false;
    for (size_t i = 0; i < n; i++) {
        uint64_t left = (uint64_t)block->columns[COLUMN_GPU_OBSERVED][i] + (uint64_t)least[i];
        for (int64_t k = 1; k < count[i]; k++)
            left -= (uint64_t)block->bins[at[i] + k - 1];
        least[i] = (int64_t)left;
    }
    *ret = (struct row_histogram){first, count, least, at, block->bins};
    return true;
}

static void fill_histogram(const struct row_histogram *histogram, size_t i, int64_t *bins)
{
    if (histogram->count[i])
        bins[histogram->first[i]] = histogram->least[i];
    for (int64_t k = 1; k < histogram->count[i]; k++)
        bins[histogram->first[i] + k] = histogram->bins[histogram->at[i] + k - 1];
}

static void fill_row(const struct block *block, size_t i, struct row *row)
{
#define X(name, field) row->field = (__typeof__(row->field))block->columns[COLUMN_##name][i];
    HOT_COLUMN_TABLE(X)
    COLD_COLUMN_TABLE(X)
#undef X
}

static bool read_cold(struct block *block, struct group_reader *group, struct str *in)
{
    *in = block->cold;
    bool fine = group_begin(group, in, COLD_GROUP_COLUMNS);
    for (enum row_column c = HOT_COLUMNS; c < ROW_COLUMNS && fine; c++)
        fine = read_column(block, group, c, block->scratch);
    return fine;
}

static bool read_rows(struct block *block, struct row *rows, const uint32_t *place)
{
    struct group_reader group;
    struct str in;
    struct row_histogram histogram;
    if (!read_cold(block, &group, &in))
        return false;
    for (size_t s = 0; s < block->series_n; s++)
        for (uint32_t i = block->starts[s]; i < block->starts[s + 1]; i++) {
            if (place[i] == UINT32_MAX)
                continue;
            struct row *row = &rows[place[i]];
            memset(row, 0, sizeof *row);
            row->key = block->series[s].key;
            row->key.hour = block->day * DAY_MS + block->hours[i] * HOUR_MS;
            row->facts = block->series[s].facts;
            fill_row(block, i, row);
        }
    if (!read_histogram(block, &group, COLUMN_U, &histogram))
        return false;
    for (size_t i = 0; i < block->rows_n; i++)
        if (place[i] != UINT32_MAX)
            fill_histogram(&histogram, i, rows[place[i]].hist_u_num);
    if (!read_histogram(block, &group, COLUMN_E, &histogram))
        return false;
    for (size_t i = 0; i < block->rows_n; i++)
        if (place[i] != UINT32_MAX)
            fill_histogram(&histogram, i, rows[place[i]].hist_e_num);
    return true;
}

enum err block_columns(struct store *store, struct block *block, struct row_histogram *ret_u,
                       struct error *err)
{
    struct group_reader group;
    struct str in;
    if (!read_cold(block, &group, &in) ||
        (ret_u && !read_histogram(block, &group, COLUMN_U, ret_u)))
        return db_corrupt(store, "a day's block cannot be read", err);
    return ERR_OK;
}

enum err block_rows(struct store *store, struct block *block, uint32_t hours,
                    struct row_batch *batch, struct error *err)
{
    /* Series stand in the order of keys, so that sorting by hour, stable, is the order of rows. */
    size_t of_hour[25] = {0}, n;
    for (size_t i = 0; i < block->rows_n; i++)
        if (hours >> block->hours[i] & 1)
            of_hour[block->hours[i] + 1]++;
    for (int h = 0; h < 24; h++)
        of_hour[h + 1] += of_hour[h];
    n = of_hour[24];
    uint32_t *place = mem_alloc((block->rows_n + 1) * sizeof *place);
    for (size_t i = 0; i < block->rows_n; i++)
        place[i] = hours >> block->hours[i] & 1 ? (uint32_t)of_hour[block->hours[i]]++ : UINT32_MAX;
    mem_reserve(batch->rows, batch->rows_n, batch->rows_room, n + 1); /* never NULL */
    bool fine = read_rows(block, batch->rows + batch->rows_n, place);
    free(place);
    if (!fine)
        return db_corrupt(store, "a day's block cannot be read", err);
    batch->rows_n += n;
    for (size_t i = 0; i < block->node_hours_n; i++) {
        const struct node_hour *hour = &block->node_hours[i];
        if (hours >> ((hour->hour - block->day * DAY_MS) / HOUR_MS) & 1)
            mem_push(batch->node_hours, batch->node_hours_n, batch->node_hours_room, *hour);
    }
    return ERR_OK;
}
