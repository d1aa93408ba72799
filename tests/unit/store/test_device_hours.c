/* What GPUs did by the hour, against a plain list: what was put in comes back, exactly, whatever
 * was appended again, cleared or kept from before a reopening. */
#include <sqlite3.h>

#include "../../lib/ledger_file.h"
#include "store/store.h"

#define H0 (INT64_C(1795996800000)) /* 2026-11-30T00:00Z */

struct list {
    struct device_hour *items;
    size_t n, room;
    struct names *names;
};

static bool gather(void *context, const struct device_hour *hours, size_t n)
{
    struct list *list = context;
    for (size_t i = 0; i < n; i++)
        mem_push(list->items, list->n, list->room, hours[i]);
    return true;
}

static int compare(const void *a, const void *b, void *names)
{
    const struct device_hour *left = a, *right = b;
    int order = str_cmp(names_text(names, left->node), names_text(names, right->node));
    if (!order)
        order = str_cmp(names_text(names, left->device), names_text(names, right->device));
    return order ? order : (left->hour > right->hour) - (left->hour < right->hour);
}

static void assert_same(struct list *left, struct list *right)
{
    assert_int_equal(left->n, right->n);
    if (left->n == 0)
        return; /* nothing was put at random: there is nothing to sort */
    qsort_r(left->items, left->n, sizeof *left->items, compare, left->names);
    qsort_r(right->items, right->n, sizeof *right->items, compare, right->names);
    for (size_t i = 0; i < left->n; i++)
        assert_memory_equal(&left->items[i], &right->items[i], sizeof *left->items);
}

static name_t name_of(struct names *names, const char *what, int number)
{
    char text[32];
    snprintf(text, sizeof text, "%s-%d", what, number);
    return names_put(names, str_of(text));
}

static struct device_hour random_hour(struct names *names, time_ms hour, int node, int device)
{
    struct device_hour ret;
    memset(&ret, 0, sizeof ret);
    ret.hour = hour;
    ret.node = name_of(names, "node", node);
    ret.device = name_of(names, "GPU", node * 10 + device);
    ret.model = names_put(names, STR("H100"));
    ret.up_ms = HOUR_MS;
    ret.covered_ms = rand() % 3 ? HOUR_MS : rand() % HOUR_MS;
    ret.observed_ms = ret.covered_ms / 2;
    ret.held_ms = rand() % HOUR_MS;
    ret.util = (int64_t)rand() * 100000;
    ret.util_seen_ms = ret.covered_ms;
    ret.mem = (int64_t)rand() * 1000;
    ret.mem_seen_ms = ret.covered_ms;
    ret.power_mw_ms = (int64_t)rand() * 500;
    ret.power_seen_ms = ret.covered_ms;
    ret.power_max_mw = rand() % 700000;
    ret.power_limit_mw = rand() % 2 ? 700000 : 0;
    ret.worked_until = rand() % 2 ? TIME_MIN : hour + rand() % (HOUR_MS + 1);
    ret.idle_from = rand() % 2 ? TIME_MIN : hour + rand() % HOUR_MS;
    ret.idle_after_ms = rand() % HOUR_MS;
    ret.floor_samples = rand() % 200;
    ret.floor_mw = ret.floor_samples * 70000;
    return ret;
}

static void forget(struct list *list, struct span hours, name_t node)
{
    size_t n = 0;
    for (size_t i = 0; i < list->n; i++)
        if (list->items[i].hour < hours.from || list->items[i].hour >= hours.to ||
            (node != NAME_NONE && list->items[i].node != node))
            list->items[n++] = list->items[i];
    list->n = n;
}

static void append(struct store *store, struct list *model, struct span hours, int node)
{
    struct row_batch batch = {.names = model->names, .hours = hours};
    forget(model, hours, name_of(model->names, "node", node));
    for (time_ms hour = hours.from; hour < hours.to; hour += HOUR_MS) {
        struct node_hour cost = {.hour = hour,
                                 .node = name_of(model->names, "node", node),
                                 .price = NANO,
                                 .booked = 0,
                                 .up_ms = HOUR_MS};
        mem_push(batch.node_hours, batch.node_hours_n, batch.node_hours_room, cost);
        for (int device = 0; device < 3; device++) {
            struct device_hour one = random_hour(model->names, hour, node, device);
            if (rand() % 5 == 0)
                continue;
            mem_push(batch.device_hours, batch.device_hours_n, batch.device_hours_room, one);
            mem_push(model->items, model->n, model->room, one);
        }
    }
    must(store_append(store, &batch, &failure));
    row_batch_release(&batch);
}

static struct span some_hours(void)
{
    time_ms from = H0 + rand() % 72 * HOUR_MS;
    return (struct span){from, from + (1 + rand() % 30) * HOUR_MS};
}

static void what_was_put_comes_back(void **state)
{
    (void)state;
    unsigned seed = (unsigned)time(NULL);
    print_message("seed %u\n", seed);
    srand(seed);
    struct names *names = names_new();
    struct list model = {.names = names};
    struct store *store;
    must(store_open(path, STORE_WRITE, names, &store, &failure));
    for (int round = 0; round < 60; round++) {
        must(store_begin(store, &failure));
        size_t before = model.n;
        struct device_hour *saved = mem_alloc((before + 1) * sizeof *saved);
        if (before)
            memcpy(saved, model.items, before * sizeof *saved);
        if (rand() % 4 == 0) {
            struct span hours = some_hours();
            must(store_clear_hours(store, hours, &failure));
            forget(&model, hours, NAME_NONE);
        }
        append(store, &model, some_hours(), rand() % 3);
        if (rand() % 5 == 0) {
            store_rollback(store);
            mem_reserve(model.items, (size_t)0, model.room, before);
            memcpy(model.items, saved, before * sizeof *saved);
            model.n = before;
        } else {
            must(store_commit(store, NULL, &failure));
        }
        free(saved);
        if (rand() % 10 == 0) {
            store_close(store);
            must(store_open(path, STORE_WRITE, names, &store, &failure));
        }
        struct list found = {.names = names};
        must(store_read_device_hours(store, (struct span){TIME_MIN, TIME_MAX}, DEVICE_HOURS_ALL,
                                     gather, &found, &failure));
        assert_same(&found, &model);
        free(found.items);
    }
    struct span part = some_hours();
    struct list found = {.names = names};
    must(store_read_device_hours(store, part, DEVICE_HOURS_ALL, gather, &found, &failure));
    forget(&model, (struct span){TIME_MIN, part.from}, NAME_NONE);
    forget(&model, (struct span){part.to, TIME_MAX}, NAME_NONE);
    assert_same(&found, &model);
    found.n = 0;
    must(store_read_device_hours(store, part, DEVICE_HOURS_STREAK, gather, &found, &failure));
    for (size_t i = 0; i < model.n; i++) {
        struct device_hour *hour = &model.items[i];
        hour->covered_ms = hour->held_ms = hour->util = hour->util_seen_ms = hour->mem = 0;
        hour->mem_seen_ms = hour->power_mw_ms = hour->power_seen_ms = hour->power_max_mw = 0;
    }
    assert_same(&found, &model);
    store_close(store);
    free(found.items);
    free(model.items);
    names_free(names);
}

#define MANY_NODES 40
#define MANY_DAYS 9

/* Calls that came, each of a node's day; `until`: how many are wanted. */
struct calls {
    int64_t days[MANY_NODES * MANY_DAYS];
    size_t n, until;
};

static bool count_calls(void *context, const struct device_hour *hours, size_t n)
{
    struct calls *calls = context;
    assert_in_range(n, 1, 3 * 24);
    for (size_t i = 1; i < n; i++) {
        assert_int_equal(hours[i].node, hours[0].node);
        assert_int_equal(hours[i].hour / DAY_MS, hours[0].hour / DAY_MS);
    }
    assert_true(calls->n < calls->until);
    calls->days[calls->n++] = hours[0].hour / DAY_MS;
    return calls->n < calls->until;
}

/* 360 values are unpacked by several threads: each is handed over once, in order of day, up to the
 * one that is damaged or the one at which the reader has seen enough. */
static void many_days_come_in_order(void **state)
{
    (void)state;
    struct names *names = names_new();
    struct list model = {.names = names};
    struct store *store;
    struct span all = {TIME_MIN, TIME_MAX};
    must(store_open(path, STORE_WRITE, names, &store, &failure));
    must(store_begin(store, &failure));
    for (int node = 0; node < MANY_NODES; node++)
        append(store, &model, (struct span){H0, H0 + MANY_DAYS * DAY_MS}, node);
    must(store_commit(store, NULL, &failure));
    struct calls whole = {.until = SIZE_MAX}, some = {.until = 77}, sound = {.until = SIZE_MAX};
    must(store_read_device_hours(store, all, DEVICE_HOURS_ALL, count_calls, &whole, &failure));
    assert_int_equal(whole.n, MANY_NODES * MANY_DAYS);
    for (size_t i = 0; i < whole.n; i++)
        assert_int_equal(whole.days[i], H0 / DAY_MS + (int64_t)(i / MANY_NODES));
    must(store_read_device_hours(store, all, DEVICE_HOURS_ALL, count_calls, &some, &failure));
    assert_int_equal(some.n, 77);
    store_close(store);
    sqlite3 *db;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db,
                                  "UPDATE gpu_hours SET data = x'00' WHERE key = "
                                  "(SELECT key FROM gpu_hours ORDER BY key LIMIT 1 OFFSET 200)",
                                  NULL, NULL, NULL),
                     SQLITE_OK);
    sqlite3_close(db);
    must(store_open(path, STORE_READ, names, &store, &failure));
    assert_int_equal(
        store_read_device_hours(store, all, DEVICE_HOURS_ALL, count_calls, &sound, &failure),
        ERR_STORE);
    assert_int_equal(sound.n, 200);
    store_close(store);
    free(model.items);
    names_free(names);
}

static bool count_prices(void *context, const struct node_hour *hours, size_t n)
{
    int64_t *sum = context;
    for (size_t i = 0; i < n; i++)
        *sum += hours[i].price;
    return true;
}

static void node_hours_of_a_span_are_read(void **state)
{
    (void)state;
    struct names *names = names_new();
    struct list model = {.names = names};
    struct store *store;
    must(store_open(":memory:", STORE_WRITE, names, &store, &failure));
    must(store_begin(store, &failure));
    append(store, &model, (struct span){H0, H0 + 30 * HOUR_MS}, 1);
    append(store, &model, (struct span){H0, H0 + 30 * HOUR_MS}, 2);
    must(store_commit(store, NULL, &failure));
    int64_t sum = 0;
    must(store_read_node_hours(store, (struct span){H0 + 23 * HOUR_MS, H0 + 26 * HOUR_MS},
                               count_prices, &sum, &failure));
    assert_int_equal(sum, 2 * 3 * NANO);
    store_close(store);
    free(model.items);
    names_free(names);
}

/* Each byte of a block changed in turn: an error or other hours, never a crash. */
static void damaged_blocks_are_refused_or_read(void **state)
{
    (void)state;
    struct names *names = names_new();
    struct list model = {.names = names};
    struct store *store;
    must(store_open(path, STORE_WRITE, names, &store, &failure));
    must(store_begin(store, &failure));
    append(store, &model, (struct span){H0, H0 + 5 * HOUR_MS}, 1);
    must(store_commit(store, NULL, &failure));
    store_close(store);
    sqlite3 *db;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    size_t refused = 0;
    for (int at = 1; at < 400; at++) {
        char sql[256];
        snprintf(sql, sizeof sql,
                 "UPDATE gpu_hours SET data = CAST(substr(data, 1, %d) || x'%02x' || "
                 "substr(data, %d) AS BLOB)",
                 at, rand() % 256, at + 2);
        assert_int_equal(sqlite3_exec(db, "SAVEPOINT s", NULL, NULL, NULL), SQLITE_OK);
        assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
        assert_int_equal(sqlite3_exec(db, "RELEASE s", NULL, NULL, NULL), SQLITE_OK);
        must(store_open(path, STORE_READ, names, &store, &failure));
        struct list found = {.names = names};
        bool unread = store_read_device_hours(store, (struct span){TIME_MIN, TIME_MAX},
                                              DEVICE_HOURS_ALL, gather, &found, &failure) != ERR_OK;
        assert_int_equal(store_verify(store, NULL, &failure) != ERR_OK, unread);
        assert_int_equal(store_verify(store, NULL, NULL) != ERR_OK, unread); /* nobody asks why */
        refused += unread;
        free(found.items);
        store_close(store);
    }
    assert_true(refused > 0);
    sqlite3_close(db);
    free(model.items);
    names_free(names);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define test(name) cmocka_unit_test_setup(name, empty_folder)
        test(what_was_put_comes_back),
        test(many_days_come_in_order),
        test(node_hours_of_a_span_are_read),
        test(damaged_blocks_are_refused_or_read),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
