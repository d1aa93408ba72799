/* A lens: what a handle sees of a ledger with two teams on one node, and nobody. */
#include "store/lens.h"

#include <string.h>
#include <unistd.h>

#include "../../lib/unit.h"
#include "store/hour_sums.h"

#define H0 INT64_C(1795996800000) /* 2026-11-30T00:00Z */

struct lab {
    struct names *names;
    struct store *store;
    char path[TEMPORARY_MAX];
    size_t rows, node_hours, others, machines, workloads, namespaces, devices, notes, nodes;
    size_t devices_seen; /* with what they did */
    money_t cost, booked;
    name_t mine;
    bool by_hour; /* the day has sums of its hours */
};

static name_t put(struct lab *lab, const char *text)
{
    return names_put(lab->names, str_of(text));
}

static struct row row_of(struct lab *lab, int hour, const char *team, const char *space,
                         const char *device)
{
    struct row row = {.share_den = 1, .cost = NANO, .gpu_num = HOUR_MS};
    row.key = (struct row_key){
        .hour = H0 + hour * HOUR_MS, .node = put(lab, "n"), .device = put(lab, device)};
    row.category[CATEGORY_EMPTY] = NANO;
    if (!team)
        return row;
    row.key.namespace = put(lab, space);
    row.key.pod = put(lab, "p");
    row.facts.owner = put(lab, team);
    row.facts.workload = put(lab, "Job/j");
    row.held_ms = row.gpu_held_num = HOUR_MS;
    row.category[CATEGORY_EMPTY] = 0;
    row.category[CATEGORY_USED] = NANO;
    return row;
}

static void fill(struct lab *lab)
{
    struct row_batch batch = {.names = lab->names, .hours = {H0, H0 + 24 * HOUR_MS}};
    for (int h = 0; h < 24; h++) {
        struct row rows[] = {row_of(lab, h, "red", "rs", "GPU-0"),
                             row_of(lab, h, "blue", "bs", "GPU-1"),
                             row_of(lab, h, NULL, NULL, "GPU-2")};
        for (size_t i = h < 12 ? 0 : 1; i < 3; i++) { /* red is there for half of the day */
            mem_push(batch.rows, batch.rows_n, batch.rows_room, rows[i]);
            if (h == 3 && i == 1) /* blue shares its GPU for an hour */
                mem_push(batch.rows, batch.rows_n, batch.rows_room,
                         row_of(lab, h, "green", "gs", "GPU-1"));
        }
        struct node_hour hour = {.hour = H0 + h * HOUR_MS,
                                 .node = put(lab, "n"),
                                 .price = 3 * NANO,
                                 .booked = (h < 12 ? 3 : 2) * NANO + (h == 3) * NANO,
                                 .up_ms = HOUR_MS,
                                 .gpus = 3};
        mem_push(batch.node_hours, batch.node_hours_n, batch.node_hours_room, hour);
        struct device_hour device = {.hour = hour.hour,
                                     .node = hour.node,
                                     .device = put(lab, "GPU-1"),
                                     .up_ms = HOUR_MS,
                                     .covered_ms = HOUR_MS,
                                     .worked_until = TIME_MIN,
                                     .idle_from = TIME_MIN};
        mem_push(batch.device_hours, batch.device_hours_n, batch.device_hours_room, device);
        struct machine_hour machine = {.hour = hour.hour, .node = hour.node, .cpu_pods = 1};
        mem_push(batch.machine_hours, batch.machine_hours_n, batch.machine_hours_room, machine);
        const char *spaces[] = {"bs", "rs"};
        for (int i = 0; i < 2; i++) {
            struct workload_hour workload = {
                .hour = hour.hour, .namespace = put(lab, spaces[i]), .workload = put(lab, "Job/j")};
            mem_push(batch.workload_hours, batch.workload_hours_n, batch.workload_hours_room,
                     workload);
            struct namespace_hour space = {.hour = hour.hour, .namespace = workload.namespace};
            mem_push(batch.namespace_hours, batch.namespace_hours_n, batch.namespace_hours_room,
                     space);
        }
    }
    struct note note = {
        .kind = 1, .subject = put(lab, "blue-secret"), .count = 1, .from = H0, .to = H0 + HOUR_MS};
    mem_push(batch.notes, batch.notes_n, batch.notes_room, note);
    struct store *store;
    must(store_open(lab->path, STORE_WRITE, lab->names, &store, &failure));
    store->rows_a_sum = lab->by_hour;
    must(store_begin(store, &failure));
    must(store_append(store, &batch, &failure));
    must(store_commit(store, NULL, &failure));
    store_close(store);
    row_batch_release(&batch);
}

static int open_lab_of(void **state, bool by_hour)
{
    struct lab *lab = mem_zalloc(1, sizeof *lab);
    lab->by_hour = by_hour;
    lab->names = names_new();
    temporary(lab->path, "gputally-lens");
    close(mkstemp(lab->path));
    fill(lab);
    must(store_open(lab->path, STORE_READ, lab->names, &lab->store, &failure));
    *state = lab;
    return 0;
}

static int open_lab(void **state)
{
    return open_lab_of(state, false);
}

static int open_lab_by_hour(void **state)
{
    return open_lab_of(state, true);
}

static int close_lab(void **state)
{
    struct lab *lab = *state;
    char beside[TEMPORARY_MAX + 16];
    store_close(lab->store);
    names_free(lab->names);
    const char *ends[] = {"", "-wal", "-shm", ".lock", "-lock"};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        snprintf(beside, sizeof beside, "%s%s", lab->path, ends[i]);
        unlink(beside);
    }
    free(lab);
    return 0;
}

static bool on_rows(void *context, const struct row_batch *batch)
{
    struct lab *lab = context;
    for (size_t i = 0; i < batch->rows_n; i++)
        lab->others += batch->rows[i].facts.owner != lab->mine;
    lab->rows += batch->rows_n;
    lab->node_hours += batch->node_hours_n;
    for (size_t i = 0; i < batch->node_hours_n; i++)
        lab->booked += batch->node_hours[i].booked;
    lab->notes += batch->notes_n;
    return true;
}
static bool on_devices(void *context, const struct device_hour *hours, size_t n)
{
    struct lab *lab = context;
    lab->devices += n;
    for (size_t i = 0; i < n; i++)
        lab->devices_seen += hours[i].covered_ms > 0;
    return true;
}
static bool on_nodes(void *context, const struct node_hour *hours, size_t n)
{
    (void)hours;
    ((struct lab *)context)->nodes += n;
    return true;
}
static bool on_machines(void *context, const struct machine_hour *hours, size_t n)
{
    (void)hours;
    ((struct lab *)context)->machines += n;
    return true;
}
static bool on_workloads(void *context, const struct workload_hour *hours, size_t n)
{
    (void)hours;
    ((struct lab *)context)->workloads += n;
    return true;
}
static bool on_namespaces(void *context, const struct namespace_hour *hours, size_t n)
{
    (void)hours;
    ((struct lab *)context)->namespaces += n;
    return true;
}

static void read_all(struct lab *lab)
{
    struct span day = {H0, H0 + 24 * HOUR_MS};
    must(store_read_rows(lab->store, day, on_rows, lab, &failure));
    must(store_read_device_hours(lab->store, day, DEVICE_HOURS_ALL, on_devices, lab, &failure));
    must(store_read_node_hours(lab->store, day, on_nodes, lab, &failure));
    must(store_read_machine_hours(lab->store, day, on_machines, lab, &failure));
    must(store_read_workload_hours(lab->store, day, on_workloads, lab, &failure));
    must(store_read_namespace_hours(lab->store, day, on_namespaces, lab, &failure));
}

static void on_begin(void *context, size_t chunks)
{
    (void)context, (void)chunks;
}
static bool on_node_rows(void *context, size_t chunk, const struct node_day *day)
{
    struct lab *lab = context;
    (void)chunk;
    for (size_t i = 0; i < day->series_n; i++) {
        lab->others += day->series[i].facts.owner != lab->mine;
        lab->rows += day->series[i].n;
    }
    lab->node_hours += day->node_hours_n;
    for (size_t i = 0; i < day->node_hours_n; i++)
        lab->booked += day->node_hours[i].booked;
    lab->notes += day->notes_n;
    return true;
}

static void rows_node_by_node_are_cut_as_well(void **state)
{
    struct lab *lab = *state;
    lab->mine = put(lab, "red");
    struct store_lens lens = {.teams = &lab->mine, .teams_n = 1};
    struct store_node_reader reader = {.context = lab, .begin = on_begin, .day = on_node_rows};
    store_set_lens(lab->store, &lens);
    must(store_read_nodes(lab->store, (struct span){H0, H0 + 24 * HOUR_MS}, &reader, &failure));
    assert_int_equal(lab->rows, 12);
    assert_int_equal(lab->node_hours, 12);
    assert_int_equal(lab->others, 0);
    assert_int_equal(lab->booked, 0);
    assert_int_equal(lab->notes, 0);
    store_set_lens(lab->store, NULL);
    store_lens_release(&lens);
}

static bool wants_the_node(void *context, name_t cluster, name_t node)
{
    return cluster == NAME_NONE && node == put(context, "n");
}
static bool wants_none(void *context, name_t cluster, name_t node)
{
    (void)context, (void)cluster, (void)node;
    return false;
}

static void rows_of_some_nodes_are_cut_as_well(void **state)
{
    struct lab *lab = *state;
    lab->mine = put(lab, "red");
    struct store_lens lens = {.teams = &lab->mine, .teams_n = 1};
    struct span part = {H0 + 2 * HOUR_MS, H0 + 24 * HOUR_MS};
    struct store_node_reader reader = {
        .context = lab, .wants = wants_none, .begin = on_begin, .day = on_node_rows};
    must(store_read_nodes(lab->store, part, &reader, &failure));
    assert_int_equal(lab->rows + lab->node_hours, 0);
    reader.wants = wants_the_node;
    must(store_read_nodes(lab->store, part, &reader, &failure));
    assert_int_equal(lab->rows, 10 * 3 + 12 * 2 + 1);
    assert_int_equal(lab->node_hours, 22);
    lab->rows = lab->others = lab->node_hours = 0;
    lab->booked = 0;
    store_set_lens(lab->store, &lens);
    must(store_read_nodes(lab->store, part, &reader, &failure));
    assert_int_equal(lab->rows, 10);
    assert_int_equal(lab->others, 0);
    assert_int_equal(lab->node_hours, 10);
    assert_int_equal(lab->booked, 0);
    store_set_lens(lab->store, NULL);
    store_lens_release(&lens);
}

static void without_a_lens_everything_is_seen(void **state)
{
    struct lab *lab = *state;
    read_all(lab);
    assert_int_equal(lab->rows, 12 * 3 + 12 * 2 + 1);
    assert_int_equal(lab->devices_seen, 24);
    assert_int_equal(lab->node_hours, 24);
    assert_int_equal(lab->notes, 1);
    assert_int_equal(lab->devices, 24);
    assert_int_equal(lab->nodes, 24);
    assert_int_equal(lab->machines, 24);
    assert_int_equal(lab->workloads, 48);
    assert_int_equal(lab->namespaces, 48);
}

static void a_team_sees_its_rows_and_what_belongs_to_them(void **state)
{
    struct lab *lab = *state;
    lab->mine = put(lab, "red");
    struct store_lens lens = {.teams = &lab->mine, .teams_n = 1};
    store_set_lens(lab->store, &lens);
    read_all(lab);
    assert_int_equal(lab->rows, 12);
    assert_int_equal(lab->others, 0);
    assert_int_equal(lab->node_hours, 12); /* of the hours that it was there */
    assert_int_equal(lab->booked, 0);
    assert_int_equal(lab->notes, 0);
    assert_int_equal(lab->devices, 0);
    assert_int_equal(lab->nodes, 0);
    assert_int_equal(lab->machines, 0);
    assert_int_equal(lab->workloads, 24); /* of the workload whose rows it has seen */
    assert_int_equal(lab->namespaces, 0);
    store_set_lens(lab->store, NULL);
    store_lens_release(&lens);
}

static void a_namespace_sees_what_is_in_it(void **state)
{
    struct lab *lab = *state;
    name_t space = put(lab, "bs");
    lab->mine = put(lab, "blue");
    struct store_lens lens = {.namespaces = &space, .namespaces_n = 1};
    store_set_lens(lab->store, &lens);
    read_all(lab);
    assert_int_equal(lab->rows, 24);
    assert_int_equal(lab->others, 0);
    assert_int_equal(lab->workloads, 24);
    assert_int_equal(lab->namespaces, 24);
    assert_int_equal(lab->devices, 24);      /* its GPU was up all day … */
    assert_int_equal(lab->devices_seen, 23); /* … and for an hour others were on it, too */
    assert_int_equal(lab->machines, 0);
    store_set_lens(lab->store, NULL);
    store_lens_release(&lens);
}

static void on_part(void *context, const struct scan_part *part)
{
    struct lab *lab = context;
    lab->others += part->facts->owner != lab->mine;
    lab->cost += part->figures->cost;
}
static void on_node(void *context, const struct scan_node *node)
{
    (void)node;
    ((struct lab *)context)->nodes++;
}
static void on_note(void *context, const struct note *note)
{
    (void)note;
    ((struct lab *)context)->notes++;
}

static void sums_are_cut_as_rows_are(void **state)
{
    struct lab *lab = *state;
    lab->mine = put(lab, "red");
    struct store_lens lens = {.teams = &lab->mine, .teams_n = 1};
    struct span recorded;
    bool by_hour;
    must(hour_sums_are_there(lab->store, H0 / DAY_MS, &by_hour, &failure));
    assert_int_equal(by_hour, lab->by_hour);
    store_set_lens(lab->store, &lens);
    for (int detail = SCAN_TEAMS; detail <= SCAN_ROWS; detail++)
        for (int cut = 0; cut < 2; cut++) { /* a whole day comes from its roll-up */
            struct scan scan = {.hours = {H0 + cut * HOUR_MS, H0 + 24 * HOUR_MS},
                                .detail = (enum scan_detail)detail,
                                .texts = SCAN_TEXTS_ALL,
                                .context = lab,
                                .part = on_part,
                                .node = on_node,
                                .note = on_note};
            lab->cost = 0;
            must(store_scan(lab->store, &scan, &recorded, &failure));
            assert_int_equal(lab->cost, (12 - cut) * NANO);
        }
    assert_int_equal(lab->others, 0);
    assert_int_equal(lab->nodes, 0);
    assert_int_equal(lab->notes, 0);
    store_set_lens(lab->store, NULL);
    store_lens_release(&lens);
}

static void a_lens_of_nobody_sees_nothing(void **state)
{
    struct lab *lab = *state;
    struct store_lens lens = {0};
    store_set_lens(lab->store, &lens);
    read_all(lab);
    assert_int_equal(lab->rows + lab->node_hours + lab->notes + lab->devices + lab->nodes +
                         lab->machines + lab->workloads + lab->namespaces,
                     0);
    store_set_lens(lab->store, NULL);
    store_lens_release(&lens);
}

static void another_handles_commit_is_noticed_once(void **state)
{
    struct lab *lab = *state;
    struct store *writer;
    assert_true(store_has_changed(lab->store)); /* the first time */
    assert_false(store_has_changed(lab->store));
    must(store_open(lab->path, STORE_WRITE, lab->names, &writer, &failure));
    must(store_retain(writer, H0 + HOUR_MS, &failure));
    assert_true(store_has_changed(lab->store));
    assert_false(store_has_changed(lab->store));
    store_close(writer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define test(name) cmocka_unit_test_setup_teardown(name, open_lab, close_lab)
        test(without_a_lens_everything_is_seen),
        test(a_team_sees_its_rows_and_what_belongs_to_them),
        test(rows_node_by_node_are_cut_as_well),
        test(rows_of_some_nodes_are_cut_as_well),
        test(a_namespace_sees_what_is_in_it),
        test(sums_are_cut_as_rows_are),
        cmocka_unit_test_setup_teardown(sums_are_cut_as_rows_are, open_lab_by_hour, close_lab),
        test(a_lens_of_nobody_sees_nothing),
        test(another_handles_commit_is_noticed_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
