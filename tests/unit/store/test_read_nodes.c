/* The columns of a node's days are the rows in order of hour: of random fleets, with days in
 * several segments, windows that cut days, and more nodes than a chunk has. */
#include <pthread.h>

#include "../../lib/random_rows.h"
#include "../../lib/unit.h"
#include "store/block.h"
#include "store/store.h"

#define H0 (INT64_C(1795996800000)) /* 2026-11-30T00:00Z */
#define HOURS 60
#define NODES 75

/* What is read, added up so that the order does not matter, and what must be in order. */
struct seen {
    unsigned one_of; /* nodes, of which one is wanted; 0: all are */
    bool pods;       /* have their names */
    bool hot;        /* only these columns are there, and are added up */
    uint64_t rows, node_hours, sum;
    size_t chunks, calls;
    struct row_key last[NODES]; /* of a chunk */
    bool ordered;
    struct names *names;
    struct store *store; /* to interrupt */
    pthread_mutex_t lock;
};

static void clear_cold(struct row *row)
{
#define X(name, field) row->field = 0;
    COLD_COLUMN_TABLE(X)
#undef X
    memset(row->hist_u_num, 0, sizeof row->hist_u_num);
}

static uint64_t hash_of(const struct seen *seen, const struct row *row)
{
    struct row copy = *row;
    copy.key.pod_uid = row->key.pod_uid != NAME_NONE;   /* some name */
    memset(copy.hist_e_num, 0, sizeof copy.hist_e_num); /* not read node by node */
    if (seen->hot)
        clear_cold(&copy);
    uint64_t hash = 14695981039346656037u;
    for (size_t i = 0; i < sizeof copy; i++)
        hash = (hash ^ ((const unsigned char *)&copy)[i]) * 1099511628211u;
    return hash;
}

static bool wants(void *context, name_t cluster, name_t node)
{
    const struct seen *seen = context;
    int number = atoi(names_text(seen->names, node).p + strlen("node-"));
    return cluster == NAME_NONE && number % (int)seen->one_of == 0;
}

static bool in_hours(void *context, const struct row_batch *batch)
{
    struct seen *seen = context;
    for (size_t i = 0; i < batch->node_hours_n; i++)
        seen->node_hours += !seen->one_of || wants(seen, NAME_NONE, batch->node_hours[i].node);
    for (size_t i = 0; i < batch->rows_n; i++) {
        if (seen->one_of && !wants(seen, NAME_NONE, batch->rows[i].key.node))
            continue;
        seen->rows++;
        seen->sum += hash_of(seen, &batch->rows[i]);
    }
    return true;
}

/* Row k of a series, as a row. */
static struct row row_of(const struct seen *seen, const struct day_series *series, size_t k,
                         time_ms hour)
{
    struct row row;
    size_t i = series->from + k;
    memset(&row, 0, sizeof row);
    row.key = series->key;
    row.key.hour = hour;
    row.facts = series->facts;
    if (row.key.pod != NAME_NONE && seen->pods)
        assert_true(str_eq(names_text(seen->names, row.key.pod), series->pod));
    else if (row.key.pod != NAME_NONE)
        row.key.pod = names_put(seen->names, series->pod);
#define X(name, field)                                                                             \
    row.field = (__typeof__(row.field))series->columns[COLUMN_##name][i];                          \
    assert_true(!(series->zero >> COLUMN_##name & 1) || row.field == 0);
    HOT_COLUMN_TABLE(X)
    if (seen->hot)
        return row;
    COLD_COLUMN_TABLE(X)
#undef X
    for (int64_t b = 0; b < series->u.count[i]; b++)
        row.hist_u_num[series->u.first[i] + b] =
            b ? series->u.bins[series->u.at[i] + b - 1] : series->u.least[i];
    return row;
}

static void add_series(struct seen *seen, int64_t day, const struct day_series *series)
{
    size_t k = 0;
    assert_int_equal(series->n, __builtin_popcount(series->hours));
    assert_int_equal(series->key.hour, day * DAY_MS + __builtin_ctz(series->hours) * HOUR_MS);
    for (uint32_t rest = series->hours; rest; rest &= rest - 1) {
        struct row row = row_of(seen, series, k++, day * DAY_MS + __builtin_ctz(rest) * HOUR_MS);
        seen->sum += hash_of(seen, &row);
    }
    seen->rows += series->n;
}

static void begin(void *context, size_t chunks)
{
    ((struct seen *)context)->chunks = chunks;
}

/* In order of key, up to the pod: its uid is not told. */
static bool is_in_order(const struct names *names, const struct day_series *before,
                        const struct day_series *series)
{
    struct row_key left = before->key, right = series->key;
    int pods = str_cmp(before->pod, series->pod);
    left.hour = right.hour = 0;
    left.pod = right.pod = left.pod_uid = right.pod_uid = NAME_NONE;
    left.container = right.container = NAME_NONE;
    if (pods == 0 || left.namespace != right.namespace || left.device != right.device ||
        left.instance != right.instance)
        return row_key_cmp(names, &left, &right) <= 0;
    return pods < 0;
}

static bool in_nodes(void *context, size_t chunk, const struct node_day *day)
{
    struct seen *seen = context;
    pthread_mutex_lock(&seen->lock);
    seen->calls++;
    seen->ordered &= chunk < seen->chunks;
    seen->node_hours += day->node_hours_n;
    for (size_t i = 1; i < day->node_hours_n; i++)
        seen->ordered &= day->node_hours[i - 1].hour < day->node_hours[i].hour;
    for (size_t i = 0; i < day->series_n && chunk < NODES; i++) {
        const struct row_key *key = &day->series[i].key, *last = &seen->last[chunk];
        struct str node = names_text(seen->names, key->node);
        struct str before = names_text(seen->names, last->node);
        int order = before.n ? str_cmp(before, node) : -1;
        add_series(seen, day->day, &day->series[i]);
        seen->ordered &= order < 0 || (order == 0 && last->hour / DAY_MS <= key->hour / DAY_MS);
        seen->ordered &= key->node == day->series[0].key.node;
        seen->ordered &= i == 0 || is_in_order(seen->names, &day->series[i - 1], &day->series[i]);
        seen->last[chunk] = *key;
    }
    pthread_mutex_unlock(&seen->lock);
    return true;
}

static void fill(struct store *store, struct names *names, struct dice *dice)
{
    struct row_batch batch = {.names = names};
    for (int from = 0, to; from < HOURS; from = to) {
        to = from + 1 + (int)dice_below(dice, 20);
        to = to > HOURS ? HOURS : to;
        must(store_begin(store, &failure));
        for (int n = 0; n < NODES; n++) {
            char text[32];
            snprintf(text, sizeof text, "node-%03d", (n * 31) % NODES);
            name_t node = names_put(names, str_of(text));
            row_batch_clear(&batch);
            batch.hours = (struct span){H0 + from * HOUR_MS, H0 + to * HOUR_MS};
            for (int h = from; h < to; h++)
                if (dice_chance(dice, 80))
                    random_node_hour(dice, &batch, H0 + h * HOUR_MS, NAME_NONE, node);
            random_rows_sort(&batch);
            must(store_append(store, &batch, &failure));
        }
        must(store_commit(store, NULL, &failure));
    }
    row_batch_release(&batch);
}

/* like: one_of, pods and hot. */
static void compare(struct store *store, struct names *names, struct span window, struct seen like)
{
    struct seen hours = like, nodes = like;
    hours.names = nodes.names = names;
    nodes.ordered = true;
    const struct store_node_reader reader = {.context = &nodes,
                                             .columns =
                                                 like.hot ? NODE_COLUMNS_HOT : NODE_COLUMNS_ALL,
                                             .pods = like.pods,
                                             .wants = like.one_of ? wants : NULL,
                                             .begin = begin,
                                             .day = in_nodes};
    pthread_mutex_init(&nodes.lock, NULL);
    must(store_read_rows(store, window, in_hours, &hours, &failure));
    must(store_read_nodes(store, window, &reader, &failure));
    assert_int_equal(nodes.rows, hours.rows);
    assert_int_equal(nodes.node_hours, hours.node_hours);
    assert_true(nodes.sum == hours.sum);
    assert_true(nodes.ordered);
    pthread_mutex_destroy(&nodes.lock);
}

static void nodes_have_the_rows_that_hours_have(void **state)
{
    (void)state;
    struct dice dice = {dice_seed()};
    for (int round = 0; round < 3; round++) {
        struct names *names = names_new();
        struct store *store;
        must(store_open(":memory:", STORE_WRITE, names, &store, &failure));
        fill(store, names, &dice);
        const struct span part = {H0 + 7 * HOUR_MS, H0 + 31 * HOUR_MS}, all = {TIME_MIN, TIME_MAX};
        compare(store, names, (struct span){H0, H0 + HOURS * HOUR_MS}, (struct seen){0});
        compare(store, names, part, (struct seen){.pods = true});
        compare(store, names, all, (struct seen){.hot = true});
        compare(store, names, (struct span){H0 + 5 * HOUR_MS, H0 + 5 * HOUR_MS}, (struct seen){0});
        compare(store, names, part, (struct seen){.one_of = 2});
        compare(store, names, all, (struct seen){.one_of = 25, .hot = true}); /* they are sought */
        compare(store, names, part, (struct seen){.one_of = 75, .pods = true});
        store_close(store);
        names_free(names);
    }
}

static bool stop(void *context, size_t chunk, const struct node_day *day)
{
    struct seen *seen = context;
    (void)chunk, (void)day;
    pthread_mutex_lock(&seen->lock);
    seen->calls++;
    pthread_mutex_unlock(&seen->lock);
    return false;
}

/* Threads that run stop after their call, and no more are begun. */
static void a_reader_that_has_enough_is_not_called_for_every_node(void **state)
{
    (void)state;
    struct dice dice = {dice_seed()};
    struct names *names = names_new();
    struct store *store;
    struct seen seen = {.names = names};
    const struct store_node_reader reader = {.context = &seen, .begin = begin, .day = stop};
    pthread_mutex_init(&seen.lock, NULL);
    must(store_open(":memory:", STORE_WRITE, names, &store, &failure));
    fill(store, names, &dice);
    must(store_read_nodes(store, (struct span){TIME_MIN, TIME_MAX}, &reader, &failure));
    assert_int_equal(seen.chunks, 3); /* 75 nodes, 32 a chunk */
    assert_in_range(seen.calls, 1, 3);
    pthread_mutex_destroy(&seen.lock);
    store_close(store);
    names_free(names);
}

static bool interrupt(void *context, size_t chunk, const struct node_day *day)
{
    struct seen *seen = context;
    (void)chunk, (void)day;
    pthread_mutex_lock(&seen->lock);
    seen->calls++;
    pthread_mutex_unlock(&seen->lock);
    store_interrupt(seen->store);
    return true;
}

/* Between two statements too, where SQLite has nothing to end. */
static void who_is_interrupted_reads_no_more(void **state)
{
    (void)state;
    struct dice dice = {dice_seed()};
    struct names *names = names_new();
    struct seen seen = {.names = names};
    struct span extent;
    const struct store_node_reader reader = {.context = &seen, .begin = begin, .day = interrupt};
    pthread_mutex_init(&seen.lock, NULL);
    must(store_open(":memory:", STORE_WRITE, names, &seen.store, &failure));
    fill(seen.store, names, &dice);
    assert_int_equal(
        store_read_nodes(seen.store, (struct span){TIME_MIN, TIME_MAX}, &reader, &failure),
        ERR_STORE);
    assert_in_range(seen.calls, 1, 3); /* a chunk's thread ends the node's day that it has begun */
    assert_int_equal(
        store_read_nodes(seen.store, (struct span){TIME_MIN, TIME_MAX}, &reader, &failure),
        ERR_STORE);
    assert_in_range(seen.calls, 1, 3);
    assert_int_equal(store_extent(seen.store, &extent, &failure), ERR_STORE);
    pthread_mutex_destroy(&seen.lock);
    store_close(seen.store);
    names_free(names);
}

/* A file may claim anything: a guess wraps, and stays a bin. */
static void a_guess_of_an_absurd_mean_is_a_bin(void **state)
{
    (void)state;
    int64_t sum[] = {INT64_MAX, INT64_MAX / 8, NANO / 2, 0}, seen[] = {1, 1, 1, 1};
    int64_t bins[4];
    struct block block = {.rows_n = 4};
    block.columns[COLUMN_U] = sum;
    block.columns[COLUMN_OBSERVED] = seen;
    block_predict_bin(&block, COLUMN_U, bins);
    for (int i = 0; i < 4; i++)
        assert_true(bins[i] >= 0 && bins[i] < HISTOGRAM_BINS);
    assert_int_equal(bins[2], HISTOGRAM_BINS / 2);
    assert_int_equal(bins[3], 0);
}

static enum err open_rows(struct store *store, struct str packed, struct row_batch *ret)
{
    row_batch_clear(ret);
    ret->names = store_names(store);
    enum err code = block_open(store, store->reading, H0 / DAY_MS, NAME_NONE, NAME_NONE, packed,
                               BLOCK_NAMES_ALL, &failure);
    return code ? code : block_rows(store, store->reading, UINT32_MAX, ret, &failure);
}

/* One bit anywhere; a block as it was packed before it had a check opens as ever. */
static void a_changed_block_is_refused_and_one_of_format_1_read(void **state)
{
    (void)state;
    struct dice dice = {dice_seed()};
    struct names *names = names_new();
    struct store *store;
    must(store_open(":memory:", STORE_WRITE, names, &store, &failure));
    must(store_begin(store, &failure));
    struct row_batch batch = {.names = names, .hours = {H0, H0 + HOUR_MS}}, read = {0};
    while (!batch.rows_n)
        random_node_hour(&dice, &batch, H0, NAME_NONE, NAME_NONE);
    random_rows_sort(&batch);
    struct strbuf packed = {0};
    must(block_pack(store, &batch, &packed, &failure));
    must(open_rows(store, strbuf_str(&packed), &read));
    assert_int_equal(read.rows_n, batch.rows_n);
    for (size_t i = 1; i < packed.n; i++) {
        packed.text[i] ^= (char)(1 << dice_below(&dice, 8));
        assert_int_equal(open_rows(store, strbuf_str(&packed), &read), ERR_STORE);
        must(block_pack(store, &batch, &packed, &failure));
    }
    memmove(packed.text + 1, packed.text + 5, packed.n -= 5);
    packed.n++;
    packed.text[0] = 1;
    must(open_rows(store, strbuf_str(&packed), &read));
    assert_int_equal(read.rows_n, batch.rows_n);
    for (size_t i = 0; i < read.rows_n; i++)
        assert_true(same_row(&read.rows[i], &batch.rows[i]));
    strbuf_release(&packed);
    row_batch_release(&batch);
    row_batch_release(&read);
    store_rollback(store);
    store_close(store);
    names_free(names);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nodes_have_the_rows_that_hours_have),
        cmocka_unit_test(a_reader_that_has_enough_is_not_called_for_every_node),
        cmocka_unit_test(who_is_interrupted_reads_no_more),
        cmocka_unit_test(a_guess_of_an_absurd_mean_is_a_bin),
        cmocka_unit_test(a_changed_block_is_refused_and_one_of_format_1_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
