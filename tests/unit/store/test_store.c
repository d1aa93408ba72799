/* The store against a plain model in memory: what was put in comes back, exactly, whatever the
 * order of commits, reopenings and crashes; and sums equal rows. */
#include <limits.h>
#include <pthread.h>

#include "../../lib/ledger_file.h"
#include "../../lib/random_rows.h"
#include "store/internal.h"
#include "store/scan.h"

#define H0 (INT64_C(1795996800000)) /* 2026-11-30T00:00Z */
#define NODES 4

static bool collect(void *context, const struct row_batch *batch)
{
    struct row_batch *into = context;
    for (size_t i = 0; i < batch->rows_n; i++)
        mem_push(into->rows, into->rows_n, into->rows_room, batch->rows[i]);
    for (size_t i = 0; i < batch->node_hours_n; i++)
        mem_push(into->node_hours, into->node_hours_n, into->node_hours_room, batch->node_hours[i]);
    for (size_t i = 0; i < batch->notes_n; i++)
        mem_push(into->notes, into->notes_n, into->notes_room, batch->notes[i]);
    return true;
}

/* The model: rows and node-hours of all cells, and what an append and a clear do to them. */
static void model_clear(struct row_batch *model, struct span hours, const struct row_key *place)
{
    size_t n = 0;
    for (size_t i = 0; i < model->rows_n; i++) {
        const struct row_key *key = &model->rows[i].key;
        bool goes = key->hour >= hours.from && key->hour < hours.to &&
                    (!place || (key->cluster == place->cluster && key->node == place->node));
        if (!goes)
            model->rows[n++] = model->rows[i];
    }
    model->rows_n = n;
    n = 0;
    for (size_t i = 0; i < model->node_hours_n; i++) {
        const struct node_hour *hour = &model->node_hours[i];
        bool goes = hour->hour >= hours.from && hour->hour < hours.to &&
                    (!place || (hour->cluster == place->cluster && hour->node == place->node));
        if (!goes)
            model->node_hours[n++] = *hour;
    }
    model->node_hours_n = n;
}

static void model_append(struct row_batch *model, const struct row_batch *batch)
{
    for (size_t i = 0; i < batch->rows_n; i++)
        model_clear(model, batch->hours, &batch->rows[i].key);
    for (size_t i = 0; i < batch->node_hours_n; i++) {
        struct row_key place = {.cluster = batch->node_hours[i].cluster,
                                .node = batch->node_hours[i].node};
        model_clear(model, batch->hours, &place);
    }
    collect(model, batch);
}

static void model_copy(struct row_batch *to, const struct row_batch *from)
{
    row_batch_clear(to);
    to->names = from->names;
    collect(to, from);
}

static int node_hours_by_key(const void *a, const void *b, void *names)
{
    const struct node_hour *l = a, *r = b;
    struct row_key left = {.hour = l->hour, .cluster = l->cluster, .node = l->node};
    struct row_key right = {.hour = r->hour, .cluster = r->cluster, .node = r->node};
    return row_key_cmp(names, &left, &right);
}

static void assert_same_rows(struct row_batch *got, struct row_batch *expected)
{
    random_rows_sort(expected);
    if (expected->node_hours_n)
        qsort_r(expected->node_hours, expected->node_hours_n, sizeof *expected->node_hours,
                node_hours_by_key, expected->names);
    assert_int_equal(got->rows_n, expected->rows_n);
    assert_int_equal(got->node_hours_n, expected->node_hours_n);
    for (size_t i = 0; i < got->rows_n; i++)
        if (!same_row(&got->rows[i], &expected->rows[i]))
            fail_msg("row %zu of %zu is another one", i, got->rows_n);
    for (size_t i = 0; i < got->node_hours_n; i++)
        if (!same_node_hour(&got->node_hours[i], &expected->node_hours[i]))
            fail_msg("node-hour %zu is another one", i);
}

struct sums {
    struct figures figures;
    uint64_t node_hours;
    money_t booked;
};
static void add_part(void *context, const struct scan_part *part)
{
    figures_add(&((struct sums *)context)->figures, part->figures);
}
static void add_node(void *context, const struct scan_node *node)
{
    ((struct sums *)context)->node_hours += node->hours;
    ((struct sums *)context)->booked += node->booked;
}
static void no_note(void *context, const struct note *note)
{
    (void)context, (void)note;
}

static struct sums scan_sums(struct store *store, struct span hours, enum scan_detail detail)
{
    struct sums sums = {0};
    struct span recorded;
    struct scan scan = {.hours = hours,
                        .detail = detail,
                        .context = &sums,
                        .part = add_part,
                        .node = add_node,
                        .note = no_note};
    must(store_scan(store, &scan, &recorded, &failure));
    return sums;
}

/* Rows of any window, and sums of the same three ways, equal the model's. */
static void cut(struct row_batch *model, struct span window)
{
    model_clear(model, (struct span){TIME_MIN, window.from}, NULL);
    model_clear(model, (struct span){window.to, TIME_MAX}, NULL);
}

static void assert_sums(struct store *store, const struct row_batch *expected, struct span window)
{
    struct sums want = {0};
    for (size_t i = 0; i < expected->rows_n; i++)
        figures_add_row(&want.figures, &expected->rows[i]);
    want.node_hours = expected->node_hours_n;
    for (size_t i = 0; i < expected->node_hours_n; i++)
        want.booked += expected->node_hours[i].booked;
    for (int detail = SCAN_TEAMS; detail <= SCAN_ROWS; detail++) {
        struct sums sums = scan_sums(store, window, (enum scan_detail)detail);
        if (memcmp(&sums.figures, &want.figures, sizeof want.figures) != 0)
            fail_msg("sums of detail %d differ from the rows (%llu rows, %llu expected)", detail,
                     (unsigned long long)sums.figures.rows, (unsigned long long)want.figures.rows);
        assert_int_equal(sums.node_hours, want.node_hours);
        assert_int_equal(sums.booked, want.booked);
    }
}

static void assert_equals_model(struct store *store, const struct row_batch *model,
                                struct span window)
{
    struct row_batch got = {.names = model->names}, expected = {.names = model->names};
    model_copy(&expected, model);
    cut(&expected, window);
    must(store_read_rows(store, window, collect, &got, &failure));
    assert_same_rows(&got, &expected);
    assert_sums(store, &expected, window);
    must(store_verify(store, NULL, &failure));
    row_batch_release(&got);
    row_batch_release(&expected);
}

/* Sums of hours: of no day, of each, or of those that have many rows. */
static void open_writer(struct dice *dice, const char *where, struct names *names,
                        struct store **ret)
{
    static const uint32_t rows_a_sum[] = {0, 1, 1, 2};
    must(store_open(where, STORE_WRITE, names, ret, &failure));
    (*ret)->rows_a_sum = rows_a_sum[dice_below(dice, 4)];
}

static struct span random_window(struct dice *dice)
{
    time_ms from = H0 + (time_ms)dice_below(dice, 60) * HOUR_MS;
    return (struct span){from, from + (time_ms)(1 + dice_below(dice, 60)) * HOUR_MS};
}

static void random_batch(struct dice *dice, struct row_batch *batch, struct span hours)
{
    char text[32];
    snprintf(text, sizeof text, "node-%llu", (unsigned long long)dice_below(dice, NODES));
    name_t node = names_put(batch->names, str_of(text));
    name_t cluster = dice_chance(dice, 70) ? NAME_NONE : names_put(batch->names, STR("eu"));
    row_batch_clear(batch);
    batch->hours = hours;
    for (time_ms hour = hours.from; hour < hours.to; hour += HOUR_MS)
        if (dice_chance(dice, 80))
            random_node_hour(dice, batch, hour, cluster, node);
    random_rows_sort(batch);
}

/* A transaction of clears and appends, to store and model alike. */
static void random_changes(struct dice *dice, struct store *store, struct row_batch *model)
{
    struct row_batch batch = {.names = model->names};
    for (uint64_t n = dice_below(dice, 6); n > 0; n--) {
        struct span hours = random_window(dice);
        if (dice_chance(dice, 70))
            hours.to = hours.from + (time_ms)(1 + dice_below(dice, 5)) * HOUR_MS;
        if (dice_chance(dice, 25)) {
            must(store_clear_hours(store, hours, &failure));
            model_clear(model, hours, NULL);
        }
        random_batch(dice, &batch, hours);
        must(store_append(store, &batch, &failure));
        model_append(model, &batch);
        if (dice_chance(dice, 10))
            assert_equals_model(store, model, random_window(dice));
    }
    row_batch_release(&batch);
}

static void any_order_of_commits_and_reopenings_equals_the_model(void **state)
{
    (void)state;
    struct dice dice = {dice_seed()};
    for (int run = 0; run < 12; run++) {
        struct names *names = names_new();
        struct row_batch model = {.names = names}, tried = {.names = names};
        const char *where = run % 3 ? path : ":memory:";
        struct store *store, *reader;
        open_writer(&dice, where, names, &store);
        for (int round = 0; round < 25; round++) {
            model_copy(&tried, &model);
            must(store_begin(store, &failure));
            random_changes(&dice, store, &tried);
            if (dice_chance(&dice, 20)) {
                store_rollback(store);
            } else {
                must(store_commit(store, NULL, &failure));
                model_copy(&model, &tried);
            }
            if (dice_chance(&dice, 5)) {
                time_ms before = H0 + (time_ms)dice_below(&dice, 40) * HOUR_MS;
                must(store_retain(store, before, &failure));
                model_clear(&model, (struct span){TIME_MIN, before}, NULL);
            }
            if (run % 3 && dice_chance(&dice, 20)) {
                store_close(store);
                open_writer(&dice, where, names, &store);
            }
            if (run % 3 && dice_chance(&dice, 30)) {
                must(store_open(where, STORE_READ, names, &reader, &failure));
                assert_equals_model(reader, &model, random_window(&dice));
                store_close(reader);
            }
            assert_equals_model(store, &model, random_window(&dice));
        }
        assert_equals_model(store, &model, (struct span){H0, H0 + 200 * HOUR_MS});
        store_close(store);
        unlink(path);
        row_batch_release(&model);
        row_batch_release(&tried);
        names_free(names);
    }
}

/* What is read of two books: the rows of both, in one order. */
static void assert_equals_both(struct store *store, const struct row_batch *models)
{
    struct span all = {H0, H0 + 200 * HOUR_MS};
    struct row_batch got = {.names = models->names}, both = {.names = models->names};
    model_copy(&both, &models[0]);
    collect(&both, &models[1]);
    must(store_read_rows(store, all, collect, &got, &failure));
    assert_int_equal(got.rows_n, both.rows_n);
    assert_int_equal(got.node_hours_n, both.node_hours_n);
    for (size_t i = 1; i < got.rows_n; i++)
        assert_true(row_key_cmp(got.names, &got.rows[i - 1].key, &got.rows[i].key) <= 0);
    assert_sums(store, &both, all);
    must(store_verify(store, NULL, &failure));
    row_batch_release(&got);
    row_batch_release(&both);
}

/* Both have the same nodes and hours. */
static void books_in_one_database_leave_each_other_alone(void **state)
{
    (void)state;
    struct dice dice = {dice_seed()};
    struct str titles[] = {STR_NONE, STR("prod")};
    for (int run = 0; run < 6; run++) {
        struct names *names = names_new();
        struct row_batch models[2] = {{.names = names}, {.names = names}};
        struct store *store;
        open_writer(&dice, path, names, &store);
        for (int round = 0; round < 12; round++) {
            struct row_batch tried = {.names = names};
            uint64_t book = dice_below(&dice, 2);
            model_copy(&tried, &models[book]);
            store_use_book(store, titles[book]);
            must(store_begin(store, &failure));
            struct row_batch batch = {.names = names};
            for (int n = 0; n < 4; n++) {
                struct span hours = random_window(&dice);
                if (dice_chance(&dice, 40)) {
                    must(store_clear_hours(store, hours, &failure));
                    model_clear(&tried, hours, NULL);
                }
                random_batch(&dice, &batch, hours);
                must(store_append(store, &batch, &failure));
                model_append(&tried, &batch);
            }
            row_batch_release(&batch);
            if (dice_chance(&dice, 20)) {
                store_rollback(store);
            } else {
                must(store_commit(store, NULL, &failure));
                model_copy(&models[book], &tried);
            }
            row_batch_release(&tried);
            if (dice_chance(&dice, 20)) {
                store_close(store);
                open_writer(&dice, path, names, &store);
            }
            assert_equals_both(store, models);
        }
        uint64_t goes = dice_below(&dice, 2);
        struct span all = {H0, H0 + 200 * HOUR_MS};
        bool there;
        store_use_book(store, titles[goes]);
        must(store_begin(store, &failure));
        must(store_clear_hours(store, all, &failure));
        must(store_commit(store, NULL, &failure));
        assert_equals_model(store, &models[1 - goes], all);
        must(store_has_rows(store, all, &there, &failure));
        assert_false(there);
        store_use_book(store, titles[1 - goes]);
        must(store_has_rows(store, all, &there, &failure));
        assert_int_equal(there, models[1 - goes].rows_n > 0);
        must(store_retain(store, all.to, &failure)); /* of all books */
        row_batch_clear(&models[0]);
        row_batch_clear(&models[1]);
        assert_equals_both(store, models);
        store_close(store);
        unlink(path);
        row_batch_release(&models[0]);
        row_batch_release(&models[1]);
        names_free(names);
    }
}

/* A service keeps its handle for years, and names only as long as it needs them. */
static void a_handle_can_speak_new_names(void **state)
{
    (void)state;
    struct dice dice = {dice_seed()};
    struct store *store = NULL;
    struct names *old = names_new();
    struct span hours = {H0, H0 + 10 * HOUR_MS};
    open_writer(&dice, path, old, &store);
    for (int round = 0; round < 5; round++) {
        struct names *names = names_new();
        names_put(names, STR("so that ids differ"));
        must(store_use_names(store, names, &failure));
        names_free(old);
        struct row_batch batch = {.names = names}, got = {.names = names};
        random_batch(&dice, &batch, hours);
        store_use_book(store, STR("prod"));
        must(store_begin(store, &failure));
        must(store_clear_hours(store, hours, &failure));
        must(store_append(store, &batch, &failure));
        must(store_commit(store, NULL, &failure));
        must(store_read_rows(store, hours, collect, &got, &failure));
        assert_same_rows(&got, &batch);
        must(store_verify(store, NULL, &failure));
        row_batch_release(&batch);
        row_batch_release(&got);
        old = names;
    }
    store_close(store);
    unlink(path);
    names_free(old);
}

/* Names have other ids in another process: the rows must be the same by their texts. */
static void another_process_reads_the_same_rows(void **state)
{
    (void)state;
    struct dice dice = {dice_seed()};
    struct names *names = names_new();
    struct row_batch batch = {.names = names};
    random_batch(&dice, &batch, (struct span){H0, H0 + 30 * HOUR_MS});
    struct store *store;
    must(store_open(path, STORE_WRITE, names, &store, &failure));
    must(store_begin(store, &failure));
    must(store_append(store, &batch, &failure));
    must(store_commit(store, NULL, &failure));
    store_close(store);
    struct names *others = names_new();
    names_put(others, STR("something else"));
    must(store_open(path, STORE_READ, others, &store, &failure));
    struct row_batch got = {.names = others};
    must(store_read_rows(store, batch.hours, collect, &got, &failure));
    assert_int_equal(got.rows_n, batch.rows_n);
    for (size_t i = 0; i < got.rows_n; i++) {
        const struct row_key *key = &got.rows[i].key, *wanted = &batch.rows[i].key;
        assert_true(str_eq(names_text(others, key->pod), names_text(names, wanted->pod)));
        assert_true(str_eq(names_text(others, key->pod_uid), names_text(names, wanted->pod_uid)));
        assert_true(str_eq(names_text(others, key->device), names_text(names, wanted->device)));
        assert_true(str_eq(names_text(others, got.rows[i].facts.workload),
                           names_text(names, batch.rows[i].facts.workload)));
        assert_int_equal(got.rows[i].cost, batch.rows[i].cost);
    }
    store_close(store);
    unlink(path);
    row_batch_release(&got);
    row_batch_release(&batch);
    names_free(names);
    names_free(others);
}

static void progress_and_carry_move_with_the_rows(void **state)
{
    (void)state;
    struct names *names = names_new();
    struct store *store;
    struct arena arena = {0};
    struct store_progress got;
    must(store_open(path, STORE_WRITE, names, &store, &failure));
    assert_int_equal(store_read_progress(store, STR("prom"), &arena, &got, &failure),
                     ERR_NOT_FOUND);
    must(store_begin(store, &failure));
    struct store_progress progress = {STR("prom"), H0, {"a\0b", 3}, STR("prices: x")};
    must(store_commit(store, &progress, &failure));
    must(store_begin(store, &failure));
    progress = (struct store_progress){STR("prom"), H0 + HOUR_MS, STR_NONE, STR_NONE};
    store_rollback(store);
    store_close(store);
    must(store_open(path, STORE_READ, names, &store, &failure));
    must(store_read_progress(store, STR("prom"), &arena, &got, &failure));
    assert_int_equal(got.watermark, H0);
    assert_true(str_eq(got.carry, (struct str){"a\0b", 3}));
    assert_true(str_eq(got.settings, STR("prices: x")));
    store_close(store);
    unlink(path);
    arena_release(&arena);
    names_free(names);
}

static void notes_come_back_and_go_with_their_hours(void **state)
{
    (void)state;
    struct names *names = names_new();
    struct store *store;
    struct note note = {1,
                        names_put(names, STR("DCGM_FI")),
                        names_put(names, STR("rejected")),
                        7,
                        H0,
                        H0 + 4 * HOUR_MS};
    struct row_batch batch = {
        .names = names, .hours = {H0, H0 + 4 * HOUR_MS}, .notes = &note, .notes_n = 1};
    struct row_batch got = {0};
    must(store_open(":memory:", STORE_WRITE, names, &store, &failure));
    for (int twice = 0; twice < 2; twice++) {
        must(store_begin(store, &failure));
        must(store_append(store, &batch, &failure));
        must(store_commit(store, NULL, &failure));
    }
    must(store_read_rows(store, batch.hours, collect, &got, &failure));
    assert_int_equal(got.notes_n, 1);
    assert_int_equal(got.notes[0].count, 7);
    assert_int_equal(got.notes[0].subject, note.subject);
    must(store_begin(store, &failure));
    must(store_clear_hours(store, (struct span){H0, H0 + HOUR_MS}, &failure));
    must(store_commit(store, NULL, &failure));
    row_batch_clear(&got);
    must(store_read_rows(store, batch.hours, collect, &got, &failure));
    assert_int_equal(got.notes_n, 1);
    assert_int_equal(got.notes[0].from, H0 + HOUR_MS);
    must(store_begin(store, &failure));
    must(store_clear_hours(store, batch.hours, &failure));
    must(store_commit(store, NULL, &failure));
    row_batch_clear(&got);
    must(store_read_rows(store, batch.hours, collect, &got, &failure));
    assert_int_equal(got.notes_n, 0);
    store_close(store);
    row_batch_release(&got);
    names_free(names);
}

static void an_empty_store_says_so(void **state)
{
    (void)state;
    struct names *names = names_new();
    struct store *store;
    struct span extent = {1, 2};
    must(store_open(":memory:", STORE_WRITE, names, &store, &failure));
    assert_int_equal(store_extent(store, &extent, &failure), ERR_NOT_FOUND);
    assert_int_equal(extent.from, 1);
    struct row_batch batch = {.names = names, .hours = {H0, H0 + 30 * HOUR_MS}};
    struct dice dice = {7};
    name_t node = names_put(names, STR("n"));
    random_node_hour(&dice, &batch, H0 + 5 * HOUR_MS, NAME_NONE, node);
    random_node_hour(&dice, &batch, H0 + 27 * HOUR_MS, NAME_NONE, node);
    must(store_begin(store, &failure));
    must(store_append(store, &batch, &failure));
    must(store_commit(store, NULL, &failure));
    must(store_extent(store, &extent, &failure));
    assert_int_equal(extent.from, H0 + 5 * HOUR_MS);
    assert_int_equal(extent.to, H0 + 28 * HOUR_MS);
    store_close(store);
    row_batch_release(&batch);
    names_free(names);
}

/* A reader in a thread of its own sees whole commits: what rows cost is what nodes cost, and the
 * hours that were booked are there without holes. */
struct watcher {
    struct names *names;
    int stop; /* atomic */
    int looks;
    const char *wrong;
};

static void add_costs(void *context, const struct scan_part *part)
{
    ((struct sums *)context)->figures.cost += part->figures->cost;
}

static void *watch(void *context)
{
    struct watcher *watcher = context;
    struct store *store;
    struct error err;
    uint64_t seen = 0;
    if (store_open(path, STORE_READ, watcher->names, &store, &err) != ERR_OK) {
        watcher->wrong = "the reader cannot open it";
        return NULL;
    }
    while (!__atomic_load_n(&watcher->stop, __ATOMIC_ACQUIRE) && !watcher->wrong) {
        struct sums sums = {0};
        struct span recorded;
        struct scan scan = {.hours = {H0, H0 + 100 * HOUR_MS},
                            .context = &sums,
                            .detail = watcher->looks % 2 ? SCAN_TEAMS : SCAN_SERIES,
                            .part = add_costs,
                            .node = add_node,
                            .note = no_note};
        if (store_scan(store, &scan, &recorded, &err) != ERR_OK)
            watcher->wrong = "a scan failed";
        else if (sums.figures.cost != sums.booked)
            watcher->wrong = "rows and nodes do not balance";
        else if (sums.node_hours < seen || sums.node_hours % NODES)
            watcher->wrong = "part of a commit was seen";
        seen = sums.node_hours;
        watcher->looks++;
    }
    store_close(store);
    return NULL;
}

static void readers_beside_the_writer_see_whole_commits(void **state)
{
    (void)state;
    struct dice dice = {dice_seed()};
    struct names *names = names_new();
    struct row_batch batch = {.names = names};
    struct watcher watchers[2] = {{.names = names}, {.names = names}};
    pthread_t threads[2];
    struct store *store;
    must(store_open(path, STORE_WRITE, names, &store, &failure));
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, watch, &watchers[i]), 0);
    for (int hour = 0; hour < 60; hour++) {
        must(store_begin(store, &failure));
        for (int n = 0; n < NODES; n++) {
            char text[32];
            snprintf(text, sizeof text, "node-%d", n);
            row_batch_clear(&batch);
            batch.hours = (struct span){H0 + hour * HOUR_MS, H0 + (hour + 1) * HOUR_MS};
            random_node_hour(&dice, &batch, batch.hours.from, NAME_NONE,
                             names_put(names, str_of(text)));
            random_rows_sort(&batch);
            must(store_append(store, &batch, &failure));
        }
        must(store_commit(store, NULL, &failure));
    }
    for (int i = 0; i < 2; i++) {
        __atomic_store_n(&watchers[i].stop, 1, __ATOMIC_RELEASE);
        pthread_join(threads[i], NULL);
        if (watchers[i].wrong)
            fail_msg("%s", watchers[i].wrong);
        assert_in_range(watchers[i].looks, 1, INT_MAX);
    }
    store_close(store);
    unlink(path);
    row_batch_release(&batch);
    names_free(names);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_order_of_commits_and_reopenings_equals_the_model),
        cmocka_unit_test(books_in_one_database_leave_each_other_alone),
        cmocka_unit_test(a_handle_can_speak_new_names),
        cmocka_unit_test(another_process_reads_the_same_rows),
        cmocka_unit_test(progress_and_carry_move_with_the_rows),
        cmocka_unit_test(notes_come_back_and_go_with_their_hours),
        cmocka_unit_test(an_empty_store_says_so),
        cmocka_unit_test(readers_beside_the_writer_see_whole_commits),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
