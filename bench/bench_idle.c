/* The idle scan from SQLite: 10,000 GPUs on nodes of eight, 30 days of hours, one thread. A third
 * of the nodes stand idle to the end, so that the stretches since are long; the others work each
 * hour.
 *
 *     bench_idle [GPUS [DAYS]] */
#include "insight/idle.h"
#include "measure.h"

#define H0 (INT64_C(1795996800000)) /* 2026-11-30T00:00Z */
#define GPUS_A_NODE 8
#define PATH "/tmp/bench_idle.db"

struct job {
    struct store *store;
    struct span window;
    size_t idle;
};

static void must(enum err code, const struct error *err)
{
    if (code == ERR_OK)
        return;
    fprintf(stderr, "%s\n", err->text);
    exit(1);
}

static void run(void *context)
{
    struct job *job = context;
    struct error err;
    struct view *view;
    struct view_options options = {.window = job->window, .days = 7};
    const struct idle_settings settings = {.days = 7, .floor_samples = 100, .power_auto = true};
    must(view_read(job->store, &options, &view, &err), &err);
    struct idle_scan *scan = idle_scan_new(view, &settings, 300000);
    job->idle = 0;
    for (size_t i = 0; i < scan->devices_n; i++)
        job->idle += scan->devices[i].verdict == VERDICT_IDLE;
    idle_scan_free(scan);
    view_free(view);
}

static void fill_hour(struct device_hour *hour, bool idle, unsigned *seed)
{
    hour->up_ms = hour->covered_ms = hour->observed_ms = HOUR_MS;
    hour->util_seen_ms = hour->mem_seen_ms = hour->power_seen_ms = HOUR_MS;
    hour->power_limit_mw = 700000;
    hour->held_ms = idle ? 0 : HOUR_MS;
    int64_t noise = rand_r(seed) % 100000;
    hour->util = idle ? 0 : HOUR_MS * (900 * NANO / 1000) + noise * 1000000;
    hour->mem = HOUR_MS * (NANO / (idle ? 100 : 2));
    hour->power_mw_ms = HOUR_MS * (idle ? 70000 : 600000) + noise * 1000;
    hour->power_max_mw = idle ? 71000 : 650000;
    hour->worked_until = idle ? TIME_MIN : hour->hour + HOUR_MS;
    hour->idle_from = idle ? hour->hour : TIME_MIN;
    hour->idle_after_ms = idle ? HOUR_MS : 0;
    hour->floor_samples = idle ? 120 : 0;
    hour->floor_mw = hour->floor_samples * (70000 + noise / 100);
}

static void add_node_day(struct row_batch *batch, int number, int day, unsigned *seed)
{
    char text[64];
    snprintf(text, sizeof text, "gpu-node-%05d", number);
    name_t node = names_put(batch->names, str_of(text));
    name_t model = names_put(batch->names, STR("NVIDIA H100 80GB HBM3"));
    for (int h = 0; h < 24; h++) {
        struct node_hour cost = {.hour = H0 + day * DAY_MS + h * HOUR_MS,
                                 .node = node,
                                 .price = 98320000000,
                                 .booked = 98320000000,
                                 .up_ms = HOUR_MS,
                                 .gpus = GPUS_A_NODE};
        mem_push(batch->node_hours, batch->node_hours_n, batch->node_hours_room, cost);
        for (int gpu = 0; gpu < GPUS_A_NODE; gpu++) {
            snprintf(text, sizeof text, "GPU-%08d-%04d-4000-8000-0123456789ab", number, gpu);
            struct device_hour hour = {.hour = cost.hour,
                                       .node = node,
                                       .device = names_put(batch->names, str_of(text)),
                                       .model = model};
            fill_hour(&hour, number % 3 == 0, seed);
            mem_push(batch->device_hours, batch->device_hours_n, batch->device_hours_room, hour);
        }
    }
}

int main(int argc, char **argv)
{
    int gpus = argc > 1 ? atoi(argv[1]) : 10000, days = argc > 2 ? atoi(argv[2]) : 30;
    unsigned seed = 1;
    struct error err;
    struct row_batch batch = {.names = names_new()};
    struct job job = {.window = {H0, H0 + days * DAY_MS}};
    unlink(PATH);
    must(store_open(PATH, STORE_WRITE, batch.names, &job.store, &err), &err);
    for (int day = 0; day < days; day++) {
        row_batch_clear(&batch);
        batch.hours = (struct span){H0 + day * DAY_MS, H0 + (day + 1) * DAY_MS};
        for (int node = 0; node < gpus / GPUS_A_NODE; node++)
            add_node_day(&batch, node, day, &seed);
        must(store_begin(job.store, &err), &err);
        must(store_append(job.store, &batch, &err), &err);
        must(store_commit(job.store, NULL, &err), &err);
    }
    store_close(job.store);
    struct names *names = names_new();
    must(store_open(PATH, STORE_READ, names, &job.store, &err), &err);
    char name[64];
    snprintf(name, sizeof name, "idle scan, %d GPUs, %d days", gpus, days);
    measure(name, "GPU-hour", (double)gpus * days * 24, run, &job);
    fprintf(stderr, "%zu GPUs idle\n", job.idle);
    store_close(job.store);
    names_free(names);
    names_free(batch.names);
    row_batch_release(&batch);
    unlink(PATH);
    unlink(PATH "-wal");
    unlink(PATH "-shm");
    return 0;
}
