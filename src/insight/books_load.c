#include "insight/books_load.h"

struct reading {
    struct books *books;
    const struct idmap *workloads;
    struct idmap nodes, namespaces;
};

static int64_t most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Both -1 where nothing counts. */
static void add_count(int64_t *sum, int64_t more)
{
    if (more >= 0 && __builtin_add_overflow(most(*sum, 0), more, sum))
        *sum = INT64_MAX;
}

static bool take_machines(void *context, const struct machine_hour *hours, size_t n)
{
    struct reading *reading = context;
    for (size_t i = 0; i < n; i++) {
        const struct machine_hour *hour = &hours[i];
        uint32_t at = idmap_get(&reading->nodes, IDKEY(hour->cluster, hour->node));
        if (at == IDMAP_NONE)
            continue;
        struct book_host *host = &reading->books->nodes[at].host;
        host->cpu += hour->cpu;
        host->cpu_seen_ms += hour->cpu_seen_ms;
        host->cpu_max = most(host->cpu_max, hour->cpu_max);
        host->cpus = most(host->cpus, hour->cpus);
        host->net_bytes += hour->net_bytes;
        host->net_seen_ms += hour->net_seen_ms;
        host->requested_mcpu = most(host->requested_mcpu, hour->requested_mcpu);
        host->requested_memory_bytes =
            most(host->requested_memory_bytes, hour->requested_memory_bytes);
        if (hour->cpu_pods >= 0) {
            host->cpu_pods = hour->cpu_pods;
            host->daemon_pods = hour->daemon_pods;
            host->cpu_workloads = hour->cpu_workloads;
        }
        if (hour->gpu_taint != MACHINE_TAINT_UNKNOWN)
            host->gpu_taint = hour->gpu_taint;
    }
    return true;
}

static bool take_workloads(void *context, const struct workload_hour *hours, size_t n)
{
    struct reading *reading = context;
    for (size_t i = 0; i < n; i++) {
        const struct workload_hour *hour = &hours[i];
        uint32_t at =
            idmap_get(reading->workloads, IDKEY(hour->cluster, hour->namespace, hour->workload));
        if (at == IDMAP_NONE)
            continue;
        struct book_load *load = &reading->books->workloads[at].load;
        if (hour->user != NAME_NONE && hour->hour + HOUR_MS > load->user_until) {
            load->user = hour->user;
            load->user_until = hour->hour + HOUR_MS;
        }
        load->cpu_mcpu_ms += hour->cpu_mcpu_ms;
        load->cpu_seen_ms += hour->cpu_seen_ms;
        load->cpu_max_mcpu = most(load->cpu_max_mcpu, hour->cpu_max_mcpu);
        load->cpu_limit_mcpu = most(load->cpu_limit_mcpu, hour->cpu_limit_mcpu);
        load->serving_seen_ms += hour->serving_seen_ms;
        load->running_ms += hour->running_ms;
        load->waiting_ms += hour->waiting_ms;
        load->running_max = most(load->running_max, hour->running_max);
        load->waiting_max = most(load->waiting_max, hour->waiting_max);
        load->kv += hour->kv;
        load->kv_seen_ms += hour->kv_seen_ms;
        load->kv_max = most(load->kv_max, hour->kv_max);
        add_count(&load->requests, hour->requests);
        add_count(&load->tokens, hour->tokens);
        if (hour->running_ms > 0 || hour->waiting_ms > 0 || hour->requests > 0 || hour->tokens > 0)
            load->served_until = most(load->served_until, hour->hour + HOUR_MS);
    }
    return true;
}

static bool take_namespaces(void *context, const struct namespace_hour *hours, size_t n)
{
    struct reading *reading = context;
    struct books *books = reading->books;
    for (size_t i = 0; i < n; i++) {
        const struct namespace_hour *hour = &hours[i];
        bool fresh;
        uint32_t at = idmap_add(&reading->namespaces, IDKEY(hour->cluster, hour->namespace),
                                (uint32_t)books->namespaces_n, &fresh);
        struct book_namespace none = {.last = *hour};
        if (fresh)
            mem_push(books->namespaces, books->namespaces_n, books->namespaces_room, none);
        struct book_namespace *of = &books->namespaces[at];
        if (hour->hour >= of->last.hour)
            of->last = *hour;
        if (hour->pending_pods > of->pending_pods_max)
            of->pending_pods_max = hour->pending_pods;
        of->pending_largest_max = most(of->pending_largest_max, hour->pending_largest);
        of->pending_gpu_ms += hour->pending_gpu_ms;
    }
    return true;
}

/* Nothing is known before the hours are read. */
static void index_rows(struct reading *reading)
{
    struct books *books = reading->books;
    for (size_t i = 0; i < books->nodes_n; i++) {
        books->nodes[i].host = (struct book_host){.cpu_max = -1,
                                                  .cpus = -1,
                                                  .requested_mcpu = -1,
                                                  .requested_memory_bytes = -1,
                                                  .cpu_pods = -1,
                                                  .daemon_pods = -1};
        idmap_set(&reading->nodes, IDKEY(books->nodes[i].cluster, books->nodes[i].node),
                  (uint32_t)i);
    }
    for (size_t i = 0; i < books->workloads_n; i++) {
        struct book_workload *of = &books->workloads[i];
        of->load = (struct book_load){.cpu_max_mcpu = -1,
                                      .cpu_limit_mcpu = -1,
                                      .running_max = -1,
                                      .waiting_max = -1,
                                      .kv_max = -1,
                                      .requests = -1,
                                      .tokens = -1,
                                      .served_until = TIME_MIN};
    }
}

enum err books_read_loads(struct books *books, const struct idmap *workloads, struct store *store,
                          struct span window, struct error *err)
{
    struct reading reading = {.books = books, .workloads = workloads};
    index_rows(&reading);
    enum err code = query_machine_hours(store, window, take_machines, &reading, err);
    if (!code)
        code = query_workload_hours(store, window, take_workloads, &reading, err);
    if (!code)
        code = query_namespace_hours(store, window, take_namespaces, &reading, err);
    idmap_release(&reading.nodes);
    idmap_release(&reading.namespaces);
    return code;
}
