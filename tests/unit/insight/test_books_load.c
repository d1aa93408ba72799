/* Books of hosts, workloads and namespaces: sums and maxima over the hours of a window, and -1 or
 * "not known" where nobody said anything. */
#include "../../lib/unit.h"
#include "insight/books.h"

#define H0 (INT64_C(1795996800000)) /* 2026-11-30T00:00Z */

struct fixture {
    struct names *names;
    struct store *store;
    struct row_batch batch;
    struct books *books;
};

static name_t put(struct fixture *f, const char *text)
{
    return names_put(f->names, str_of(text));
}

/* A GPU of n1 that ns/Deployment/llm holds for two hours, and of n2 that nobody holds. */
static void begin(struct fixture *f)
{
    *f = (struct fixture){.names = names_new()};
    assert_int_equal(store_open(":memory:", STORE_WRITE, f->names, &f->store, NULL), ERR_OK);
    assert_int_equal(store_begin(f->store, NULL), ERR_OK);
    f->batch = (struct row_batch){.names = f->names, .hours = {H0, H0 + 2 * HOUR_MS}};
    for (int node = 1; node <= 2; node++)
        for (int h = 0; h < 2; h++) {
            struct row row = {.key = {.hour = H0 + h * HOUR_MS,
                                      .node = put(f, node == 1 ? "n1" : "n2"),
                                      .device = put(f, node == 1 ? "GPU-1" : "GPU-2")},
                              .share_den = 1,
                              .gpu_num = HOUR_MS};
            struct node_hour cost = {
                .hour = row.key.hour, .node = row.key.node, .up_ms = HOUR_MS, .gpus = 1};
            if (node == 1) {
                row.key.namespace = put(f, "ns");
                row.key.pod = put(f, "llm-0");
                row.facts.workload = put(f, "Deployment/llm");
            }
            mem_push(f->batch.rows, f->batch.rows_n, f->batch.rows_room, row);
            mem_push(f->batch.node_hours, f->batch.node_hours_n, f->batch.node_hours_room, cost);
        }
}

static void read_books(struct fixture *f)
{
    struct error err = {0};
    assert_int_equal(store_append(f->store, &f->batch, &err), ERR_OK);
    assert_int_equal(store_commit(f->store, NULL, &err), ERR_OK);
    assert_int_equal(books_read(f->store, f->batch.hours, NULL, &f->books, &err), ERR_OK);
}

static void end(struct fixture *f)
{
    books_free(f->books);
    store_close(f->store);
    row_batch_release(&f->batch);
    names_free(f->names);
}

static const struct book_host *host_of(struct fixture *f, const char *node)
{
    for (size_t i = 0; i < f->books->nodes_n; i++)
        if (f->books->nodes[i].node == put(f, node))
            return &f->books->nodes[i].host;
    fail_msg("no node %s", node);
    return NULL;
}

static void hosts_add_up_and_the_last_word_on_pods_counts(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f);
    struct machine_hour first = {.hour = H0,
                                 .node = put(&f, "n1"),
                                 .cpu = 100,
                                 .cpu_seen_ms = 1000,
                                 .cpu_max = 700,
                                 .cpus = 8,
                                 .net_bytes = 5,
                                 .net_seen_ms = 10,
                                 .requested_mcpu = 4000,
                                 .requested_memory_bytes = 77,
                                 .cpu_pods = 3,
                                 .daemon_pods = 2,
                                 .cpu_workloads = put(&f, "web/Deployment/a"),
                                 .gpu_taint = MACHINE_TAINT_PRESENT};
    struct machine_hour second = {.hour = H0 + HOUR_MS,
                                  .node = put(&f, "n1"),
                                  .cpu = 50,
                                  .cpu_seen_ms = 500,
                                  .cpu_max = 300,
                                  .cpus = -1,
                                  .net_bytes = 6,
                                  .net_seen_ms = 10,
                                  .requested_mcpu = -1,
                                  .requested_memory_bytes = -1,
                                  .cpu_pods = 1,
                                  .daemon_pods = 2,
                                  .cpu_workloads = put(&f, "web/Deployment/b")};
    mem_push(f.batch.machine_hours, f.batch.machine_hours_n, f.batch.machine_hours_room, first);
    mem_push(f.batch.machine_hours, f.batch.machine_hours_n, f.batch.machine_hours_room, second);
    read_books(&f);
    const struct book_host *host = host_of(&f, "n1");
    assert_int_equal(host->cpu, 150);
    assert_int_equal(host->cpu_seen_ms, 1500);
    assert_int_equal(host->cpu_max, 700);
    assert_int_equal(host->cpus, 8);
    assert_int_equal(host->net_bytes, 11);
    assert_int_equal(host->requested_mcpu, 4000);
    assert_int_equal(host->requested_memory_bytes, 77);
    assert_int_equal(host->cpu_pods, 1);
    assert_int_equal(host->daemon_pods, 2);
    assert_string_equal(names_text(f.names, host->cpu_workloads).p, "web/Deployment/b");
    assert_int_equal(host->gpu_taint, MACHINE_TAINT_PRESENT); /* the last that is known */
    const struct book_host *silent = host_of(&f, "n2");
    assert_int_equal(silent->cpu_seen_ms, 0);
    assert_int_equal(silent->cpu_max, -1);
    assert_int_equal(silent->cpus, -1);
    assert_int_equal(silent->requested_mcpu, -1);
    assert_int_equal(silent->cpu_pods, -1);
    assert_int_equal(silent->gpu_taint, MACHINE_TAINT_UNKNOWN);
    end(&f);
}

static struct workload_hour quiet(struct fixture *f, time_ms hour)
{
    return (struct workload_hour){.hour = hour,
                                  .namespace = put(f, "ns"),
                                  .workload = put(f, "Deployment/llm"),
                                  .cpu_max_mcpu = -1,
                                  .cpu_limit_mcpu = -1,
                                  .running_max = -1,
                                  .waiting_max = -1,
                                  .kv_max = -1,
                                  .requests = -1,
                                  .tokens = -1};
}

static void workloads_serve_until_the_last_hour_with_a_request(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f);
    struct workload_hour first = quiet(&f, H0), second = quiet(&f, H0 + HOUR_MS);
    first.serving_seen_ms = second.serving_seen_ms = HOUR_MS;
    first.running_ms = 7;
    first.running_max = 2;
    first.requests = 5;
    first.kv = 9;
    first.kv_seen_ms = HOUR_MS;
    first.kv_max = 4;
    second.running_max = 0;
    second.requests = 0;
    second.cpu_limit_mcpu = 250;
    first.user = names_put(f.names, STR("alice"));
    second.user = names_put(f.names, STR("bob"));
    mem_push(f.batch.workload_hours, f.batch.workload_hours_n, f.batch.workload_hours_room, first);
    mem_push(f.batch.workload_hours, f.batch.workload_hours_n, f.batch.workload_hours_room, second);
    read_books(&f);
    assert_int_equal(f.books->workloads_n, 1);
    const struct book_load *load = &f.books->workloads[0].load;
    assert_int_equal(load->serving_seen_ms, 2 * HOUR_MS);
    assert_int_equal(load->running_ms, 7);
    assert_int_equal(load->running_max, 2);
    assert_int_equal(load->waiting_max, -1);
    assert_int_equal(load->kv_max, 4);
    assert_int_equal(load->kv_seen_ms, HOUR_MS);
    assert_int_equal(load->requests, 5);
    assert_int_equal(load->tokens, -1);
    assert_int_equal(load->cpu_limit_mcpu, 250);
    assert_string_equal(names_text(f.names, load->user).p, "bob"); /* who it is now */
    assert_int_equal(load->cpu_max_mcpu, -1);
    assert_int_equal(load->served_until, H0 + HOUR_MS);
    end(&f);
}

static void a_workload_of_which_nothing_is_said_never_served(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f);
    read_books(&f);
    assert_int_equal(f.books->workloads_n, 1);
    assert_int_equal(f.books->workloads[0].load.serving_seen_ms, 0);
    assert_int_equal(f.books->workloads[0].load.requests, -1);
    assert_true(f.books->workloads[0].load.served_until == TIME_MIN);
    assert_int_equal(f.books->namespaces_n, 0);
    end(&f);
}

static void namespaces_keep_their_last_hour_and_the_most_that_waited(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f);
    struct namespace_hour first = {.hour = H0,
                                   .namespace = put(&f, "ns"),
                                   .gpu_quota = 8,
                                   .pending_pods = 3,
                                   .pending_largest = 4,
                                   .pending_gpu_ms = 1000};
    struct namespace_hour second = {.hour = H0 + HOUR_MS,
                                    .namespace = put(&f, "ns"),
                                    .quotas_known = true,
                                    .gpu_quota = 6,
                                    .pending_pods = 1,
                                    .pending_largest = 2,
                                    .pending_gpu_ms = 500};
    mem_push(f.batch.namespace_hours, f.batch.namespace_hours_n, f.batch.namespace_hours_room,
             first);
    mem_push(f.batch.namespace_hours, f.batch.namespace_hours_n, f.batch.namespace_hours_room,
             second);
    read_books(&f);
    assert_int_equal(f.books->namespaces_n, 1);
    const struct book_namespace *of = &f.books->namespaces[0];
    assert_true(of->last.quotas_known);
    assert_int_equal(of->last.gpu_quota, 6);
    assert_int_equal(of->pending_pods_max, 3);
    assert_int_equal(of->pending_largest_max, 4);
    assert_int_equal(of->pending_gpu_ms, 1500);
    end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hosts_add_up_and_the_last_word_on_pods_counts),
        cmocka_unit_test(workloads_serve_until_the_last_hour_with_a_request),
        cmocka_unit_test(a_workload_of_which_nothing_is_said_never_served),
        cmocka_unit_test(namespaces_keep_their_last_hour_and_the_most_that_waited),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
