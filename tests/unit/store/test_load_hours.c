/* Hours of hosts, workloads and namespaces against a plain list: what was put in comes back,
 * exactly and by the hour, whatever was appended again, cleared, rolled back or read after a
 * reopening. */
#include <sqlite3.h>

#include "../../lib/ledger_file.h"
#include "store/load_pack.h"

#define H0 (INT64_C(1795996800000)) /* 2026-11-30T00:00Z */

struct lists {
    struct names *names;
    struct machine_hour *machines;
    struct workload_hour *workloads;
    struct namespace_hour *spaces;
    size_t machines_n, machines_room, workloads_n, workloads_room, spaces_n, spaces_room;
    time_ms last; /* of the call that is being taken */
};

static void release(struct lists *lists)
{
    free(lists->machines);
    free(lists->workloads);
    free(lists->spaces);
}

static bool take_machines(void *context, const struct machine_hour *hours, size_t n)
{
    struct lists *lists = context;
    for (size_t i = 0; i < n; i++) {
        assert_true(i == 0 || hours[i].hour >= hours[i - 1].hour);
        mem_push(lists->machines, lists->machines_n, lists->machines_room, hours[i]);
    }
    return true;
}

static bool take_workloads(void *context, const struct workload_hour *hours, size_t n)
{
    struct lists *lists = context;
    for (size_t i = 0; i < n; i++) {
        assert_true(i == 0 || hours[i].hour >= hours[i - 1].hour);
        mem_push(lists->workloads, lists->workloads_n, lists->workloads_room, hours[i]);
    }
    return true;
}

static bool take_spaces(void *context, const struct namespace_hour *hours, size_t n)
{
    struct lists *lists = context;
    for (size_t i = 0; i < n; i++) {
        assert_true(i == 0 || hours[i].hour >= hours[i - 1].hour);
        mem_push(lists->spaces, lists->spaces_n, lists->spaces_room, hours[i]);
    }
    return true;
}

static enum err read_all(struct store *store, struct span span, struct lists *ret)
{
    enum err code = store_read_machine_hours(store, span, take_machines, ret, &failure);
    if (!code)
        code = store_read_workload_hours(store, span, take_workloads, ret, &failure);
    if (!code)
        code = store_read_namespace_hours(store, span, take_spaces, ret, &failure);
    return code;
}

/* ------------------------------------------------------------------ comparing */

#define NUMBERS 18

/* A row as numbers, without the padding that a struct has. */
struct flat {
    int64_t at[NUMBERS];
};

static int by_numbers(const void *a, const void *b)
{
    const struct flat *x = a, *y = b;
    for (int i = 0; i < NUMBERS; i++)
        if (x->at[i] != y->at[i])
            return x->at[i] < y->at[i] ? -1 : 1;
    return 0;
}

static void assert_same_rows(struct flat *left, size_t left_n, struct flat *right, size_t right_n)
{
    assert_int_equal(left_n, right_n);
    qsort(left, left_n, sizeof *left, by_numbers);
    qsort(right, right_n, sizeof *right, by_numbers);
    for (size_t i = 0; i < left_n; i++)
        for (int k = 0; k < NUMBERS; k++)
            assert_int_equal(left[i].at[k], right[i].at[k]);
    free(left);
    free(right);
}

static struct flat *flat_machines(const struct lists *lists)
{
    struct flat *all = mem_zalloc(lists->machines_n + 1, sizeof *all);
    for (size_t i = 0; i < lists->machines_n; i++) {
        const struct machine_hour *h = &lists->machines[i];
        all[i] = (struct flat){{h->hour, h->cluster, h->node, h->cpu, h->cpu_seen_ms, h->cpu_max,
                                h->cpus, h->net_bytes, h->net_seen_ms, h->requested_mcpu,
                                h->requested_memory_bytes, h->cpu_pods, h->daemon_pods,
                                h->cpu_workloads, h->gpu_taint}};
    }
    return all;
}

static struct flat *flat_workloads(const struct lists *lists)
{
    struct flat *all = mem_zalloc(lists->workloads_n + 1, sizeof *all);
    for (size_t i = 0; i < lists->workloads_n; i++) {
        const struct workload_hour *h = &lists->workloads[i];
        all[i] = (struct flat){{h->hour, h->namespace, h->workload, h->cpu_mcpu_ms, h->cpu_seen_ms,
                                h->cpu_max_mcpu, h->cpu_limit_mcpu, h->serving_seen_ms,
                                h->running_ms, h->running_max, h->waiting_ms, h->waiting_max, h->kv,
                                h->kv_seen_ms, h->kv_max, h->requests, h->tokens, h->user}};
    }
    return all;
}

static struct flat *flat_spaces(const struct lists *lists)
{
    struct flat *all = mem_zalloc(lists->spaces_n + 1, sizeof *all);
    for (size_t i = 0; i < lists->spaces_n; i++) {
        const struct namespace_hour *h = &lists->spaces[i];
        all[i] = (struct flat){{h->hour, h->cluster, h->namespace, h->quotas_known, h->gpu_quota,
                                h->priorities_known, h->gpu_pods, h->gpu_pods_without_priority,
                                h->pending_pods, h->pending_gpus, h->pending_largest,
                                h->pending_gpu_ms}};
    }
    return all;
}

static void assert_same(const struct lists *left, const struct lists *right)
{
    assert_same_rows(flat_machines(left), left->machines_n, flat_machines(right),
                     right->machines_n);
    assert_same_rows(flat_workloads(left), left->workloads_n, flat_workloads(right),
                     right->workloads_n);
    assert_same_rows(flat_spaces(left), left->spaces_n, flat_spaces(right), right->spaces_n);
}

/* ------------------------------------------------------------------ making */

static name_t name_of(struct names *names, const char *what, int64_t number)
{
    char text[40];
    snprintf(text, sizeof text, "%s-%lld", what, (long long)number);
    return names_put(names, str_of(text));
}

/* -1, or anything that the field may have. */
static int64_t maybe(struct random *random, int64_t below)
{
    return random_below(random, 3) ? random_below(random, below) : -1;
}

static struct machine_hour random_machine(struct random *random, struct names *names, time_ms hour,
                                          int node)
{
    struct machine_hour ret;
    memset(&ret, 0, sizeof ret);
    ret.hour = hour;
    ret.node = name_of(names, "node", node);
    ret.cpu = random_below(random, INT64_C(3600000000000000));
    ret.cpu_seen_ms = random_below(random, 13) * 300000;
    ret.cpu_max = maybe(random, 1000000001);
    ret.cpus = maybe(random, 256);
    ret.net_bytes = random_below(random, INT64_C(1) << 50);
    ret.net_seen_ms = random_below(random, 13) * 300000;
    ret.requested_mcpu = maybe(random, 256000);
    ret.requested_memory_bytes = maybe(random, INT64_C(1) << 42);
    ret.cpu_pods = (int32_t)maybe(random, 100);
    ret.daemon_pods = (int32_t)maybe(random, 20);
    ret.cpu_workloads =
        random_below(random, 2) ? name_of(names, "ns/Deployment/a", node) : NAME_NONE;
    ret.gpu_taint = (enum machine_taint)random_below(random, 3);
    return ret;
}

static struct workload_hour random_workload(struct random *random, struct names *names,
                                            time_ms hour, int number)
{
    struct workload_hour ret;
    memset(&ret, 0, sizeof ret);
    ret.hour = hour;
    ret.namespace = name_of(names, "ns", number % 3);
    ret.workload = name_of(names, "Deployment/w", number);
    ret.cpu_mcpu_ms = random_below(random, INT64_C(1) << 45);
    ret.cpu_seen_ms = random_below(random, HOUR_MS);
    ret.cpu_max_mcpu = maybe(random, 64000);
    ret.cpu_limit_mcpu = maybe(random, 64000);
    ret.serving_seen_ms = random_below(random, HOUR_MS);
    ret.running_ms = random_below(random, INT64_C(1) << 40);
    ret.running_max = maybe(random, 1000);
    ret.waiting_ms = random_below(random, INT64_C(1) << 40);
    ret.waiting_max = maybe(random, 1000);
    ret.kv = random_below(random, INT64_C(3600000000000000));
    ret.kv_seen_ms = random_below(random, HOUR_MS);
    ret.kv_max = maybe(random, 1000000001);
    ret.requests = maybe(random, 1000000);
    ret.tokens = maybe(random, INT64_C(1) << 40);
    ret.user = random_below(random, 3) ? NAME_NONE : name_of(names, "user", number % 5);
    return ret;
}

static struct namespace_hour random_space(struct random *random, struct names *names, time_ms hour,
                                          int number)
{
    struct namespace_hour ret;
    memset(&ret, 0, sizeof ret);
    ret.hour = hour;
    ret.namespace = name_of(names, "ns", number);
    ret.quotas_known = random_below(random, 2);
    ret.gpu_quota = maybe(random, 100);
    ret.priorities_known = random_below(random, 2);
    ret.gpu_pods = (int32_t)random_below(random, 100);
    ret.gpu_pods_without_priority = (int32_t)random_below(random, 100);
    ret.pending_pods = (int32_t)random_below(random, 10);
    ret.pending_gpus = random_below(random, 80);
    ret.pending_largest = random_below(random, 8);
    ret.pending_gpu_ms = random_below(random, 80 * HOUR_MS);
    return ret;
}

#define FORGET(list, condition)                                                                    \
    do {                                                                                           \
        size_t kept = 0;                                                                           \
        for (size_t i = 0; i < list##_n; i++)                                                      \
            if ((list)[i].hour < hours.from || (list)[i].hour >= hours.to || !(condition))         \
                (list)[kept++] = (list)[i];                                                        \
        list##_n = kept;                                                                           \
    } while (0)

static void forget_all(struct lists *model, struct span hours)
{
    FORGET(model->machines, true);
    FORGET(model->workloads, true);
    FORGET(model->spaces, true);
}

/* A node's batch replaces its hours; a batch of workloads or namespaces replaces the cluster's. */
static void append(struct store *store, struct lists *model, struct span hours, int node,
                   struct random *random)
{
    struct names *names = model->names;
    struct row_batch batch = {.names = names, .hours = hours};
    name_t name = name_of(names, "node", node);
    FORGET(model->machines, model->machines[i].node == name);
    for (time_ms hour = hours.from; hour < hours.to; hour += HOUR_MS) {
        struct node_hour cost = {.hour = hour, .node = name, .price = NANO, .up_ms = HOUR_MS};
        mem_push(batch.node_hours, batch.node_hours_n, batch.node_hours_room, cost);
        struct machine_hour machine = random_machine(random, names, hour, node);
        if (random_below(random, 4) == 0)
            continue;
        mem_push(batch.machine_hours, batch.machine_hours_n, batch.machine_hours_room, machine);
        mem_push(model->machines, model->machines_n, model->machines_room, machine);
    }
    must(store_append(store, &batch, &failure));
    row_batch_clear(&batch);
    for (time_ms hour = hours.from; hour < hours.to; hour += HOUR_MS)
        for (int i = 0; i < 4; i++) {
            struct workload_hour load = random_workload(random, names, hour, i);
            struct namespace_hour space = random_space(random, names, hour, i);
            mem_push(batch.workload_hours, batch.workload_hours_n, batch.workload_hours_room, load);
            mem_push(batch.namespace_hours, batch.namespace_hours_n, batch.namespace_hours_room,
                     space);
        }
    FORGET(model->workloads, true);
    FORGET(model->spaces, true);
    for (size_t i = 0; i < batch.workload_hours_n; i++) {
        mem_push(model->workloads, model->workloads_n, model->workloads_room,
                 batch.workload_hours[i]);
        mem_push(model->spaces, model->spaces_n, model->spaces_room, batch.namespace_hours[i]);
    }
    must(store_append(store, &batch, &failure));
    row_batch_release(&batch);
}

static struct span some_hours(struct random *random)
{
    time_ms from = H0 + random_below(random, 72) * HOUR_MS;
    return (struct span){from, from + (1 + random_below(random, 30)) * HOUR_MS};
}

static struct store *open_at(const char *where, struct names *names)
{
    struct store *store;
    must(store_open(where, STORE_WRITE, names, &store, &failure));
    return store;
}

static void what_was_put_comes_back(void **state)
{
    (void)state;
    struct random random = random_new();
    struct lists model = {.names = names_new()};
    struct store *store = open_at(path, model.names);
    for (int round = 0; round < 40; round++) {
        must(store_begin(store, &failure));
        if (random_below(&random, 5) == 0) { /* what is rolled back was never there */
            struct lists lost = {.names = model.names};
            append(store, &lost, some_hours(&random), 0, &random);
            store_rollback(store);
            release(&lost);
            must(store_begin(store, &failure));
        }
        if (random_below(&random, 4) == 0) {
            struct span hours = some_hours(&random);
            must(store_clear_hours(store, hours, &failure));
            forget_all(&model, hours);
        }
        append(store, &model, some_hours(&random), (int)random_below(&random, 3), &random);
        must(store_commit(store, NULL, &failure));
        if (random_below(&random, 10) == 0) {
            store_close(store);
            store = open_at(path, model.names);
        }
        struct lists found = {.names = model.names};
        must(read_all(store, (struct span){TIME_MIN, TIME_MAX}, &found));
        assert_same(&found, &model);
        release(&found);
    }
    must(store_verify(store, NULL, &failure));
    struct span part = some_hours(&random);
    struct lists found = {.names = model.names};
    must(read_all(store, part, &found));
    forget_all(&model, (struct span){TIME_MIN, part.from});
    forget_all(&model, (struct span){part.to, TIME_MAX});
    assert_same(&found, &model);
    release(&found);
    release(&model);
    store_close(store);
    names_free(model.names);
}

static void retention_drops_what_is_old(void **state)
{
    (void)state;
    struct random random = random_new();
    struct lists model = {.names = names_new()};
    struct store *store = open_at(":memory:", model.names);
    must(store_begin(store, &failure));
    append(store, &model, (struct span){H0, H0 + 60 * HOUR_MS}, 1, &random);
    must(store_commit(store, NULL, &failure));
    must(store_retain(store, H0 + 30 * HOUR_MS + 1, &failure));
    forget_all(&model, (struct span){TIME_MIN, H0 + 30 * HOUR_MS});
    struct lists found = {.names = model.names};
    must(read_all(store, (struct span){TIME_MIN, TIME_MAX}, &found));
    assert_true(found.machines_n > 0 && found.workloads_n == 30 * 4);
    assert_same(&found, &model);
    release(&found);
    release(&model);
    store_close(store);
    names_free(model.names);
}

/* Each byte changed in turn: an error or other hours, never a crash; verify finds what cannot be
 * read. */
static void damaged_bytes_are_refused_or_read(void **state)
{
    (void)state;
    struct random random = random_new();
    struct lists model = {.names = names_new()};
    struct store *store = open_at(path, model.names);
    must(store_begin(store, &failure));
    append(store, &model, (struct span){H0, H0 + 5 * HOUR_MS}, 1, &random);
    must(store_commit(store, NULL, &failure));
    store_close(store);
    sqlite3 *db;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    size_t refused = 0;
    for (int at = 1; at < 120; at++) {
        char sql[300];
        snprintf(sql, sizeof sql,
                 "UPDATE load_hours SET data = CAST(substr(data, 1, %d) || x'%02x' || "
                 "substr(data, %d) AS BLOB) WHERE kind = %d",
                 at, (unsigned)random_below(&random, 256), at + 2, (int)random_below(&random, 3));
        assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
        must(store_open(path, STORE_READ, model.names, &store, &failure));
        struct lists found = {.names = model.names};
        bool unread = read_all(store, (struct span){TIME_MIN, TIME_MAX}, &found) != ERR_OK;
        assert_int_equal(store_verify(store, NULL, &failure) != ERR_OK, unread);
        assert_int_equal(store_verify(store, NULL, NULL) != ERR_OK, unread); /* nobody asks why */
        refused += unread;
        release(&found);
        store_close(store);
    }
    assert_true(refused > 0);
    sqlite3_close(db);
    release(&model);
    names_free(model.names);
}

/* Days that were packed before workloads had users, as format 1, read as having none. */
static void a_day_of_the_first_format_has_no_users(void **state)
{
    (void)state;
    struct names *names = names_new();
    struct store *store;
    struct random random = {77};
    must(store_open(":memory:", STORE_WRITE, names, &store, &failure));
    must(store_begin(store, &failure));
    uint32_t place;
    must(places_put(store, (struct place){NAME_NONE, NAME_NONE}, &place, &failure));
    struct load_layout first = load_layouts[LOAD_KIND_WORKLOAD];
    first.fields_n = first.fields_1_n;
    struct load_rows rows = {.layout = &first};
    struct load_rows again = {.layout = &load_layouts[LOAD_KIND_WORKLOAD]};
    for (int i = 0; i < 48; i++) {
        struct workload_hour hour = random_workload(&random, names, H0 + i % 24 * HOUR_MS, i / 24);
        hour.user = NAME_NONE;
        load_rows_add(&rows, &hour);
    }
    struct strbuf packed = {0};
    must(load_pack(store, &rows, H0 / DAY_MS, &packed, &failure));
    assert_int_equal(packed.text[0], 2);
    packed.text[0] = 1;
    must(load_unpack(store, LOAD_KIND_WORKLOAD, H0 / DAY_MS, place, strbuf_str(&packed), &again,
                     &failure));
    struct lists left = {.workloads = (struct workload_hour *)(void *)rows.at, .workloads_n = 48};
    struct lists right = {.workloads = (struct workload_hour *)(void *)again.at,
                          .workloads_n = again.n};
    assert_same(&left, &right);
    strbuf_release(&packed);
    free(rows.at);
    free(again.at);
    store_rollback(store);
    store_close(store);
    names_free(names);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define test(name) cmocka_unit_test_setup(name, empty_folder)
        test(what_was_put_comes_back),
        test(retention_drops_what_is_old),
        test(damaged_bytes_are_refused_or_read),
        test(a_day_of_the_first_format_has_no_users),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
