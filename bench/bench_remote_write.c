/* Live ingest: an hour of a fleet as remote write sends it, one sample a series and request, to
 * balanced rows. What a sample costs on one core:
 *
 *     decoded    body to columns
 *     kept       that, series known by their label bytes, into the journal (without the fsync,
 * which is the disk's), and the latest values booked     journal to strips to rows of the hour all
 * kept and booked
 *
 *     bench_remote_write [GPUS]      10 metrics at 30 s, 13 labels, 2,000 series a request */
#include <dirent.h>
#include <fcntl.h>

#include "fleet/config.h"
#include "ledger/engine.h"
#include "measure.h"
#include "source/journal_io.h"
#include "source/push.h"
#include "wire/protobuf.h"
#include "wire/remote_write.h"
#include "wire/snappy_block.h"

#define STEPS 120
#define STEP_MS 30000
#define BODY_SERIES 2000
#define HOUR_AT INT64_C(1790000000000)

static const char *const metrics[] = {
    "DCGM_FI_DEV_GPU_UTIL",          "DCGM_FI_PROF_SM_ACTIVE",
    "DCGM_FI_PROF_GR_ENGINE_ACTIVE", "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE",
    "DCGM_FI_PROF_DRAM_ACTIVE",      "DCGM_FI_DEV_FB_USED",
    "DCGM_FI_DEV_FB_FREE",           "DCGM_FI_DEV_POWER_USAGE",
    "DCGM_FI_DEV_XID_ERRORS",        "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION",
};
#define METRICS (sizeof metrics / sizeof *metrics)

struct bench {
    size_t gpus;
    struct strbuf *bodies;
    size_t n;
    time_ms from;
    char folder[64];
    struct config *config;
    struct names *names;
    uint64_t rows;
    bool keep, book;
};

static uint64_t random_state = 42;

static double noise(void)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (double)(random_state >> 40) / (double)(1 << 24);
}

static double value_of(size_t metric, size_t step)
{
    switch (metric) {
    case 0:
        return (double)(int)(60 + 40 * noise());
    case 5:
    case 6:
        return (double)(int)(40000 + 100 * noise());
    case 7:
        return 300 + 100 * noise();
    case 8:
        return 0;
    case 9:
        return 1e9 + (double)step * 9e6;
    default:
        return (double)(int)(1e6 * (0.3 + 0.5 * noise())) / 1e6;
    }
}

static void put_label(struct strbuf *series, const char *name, const char *value)
{
    struct strbuf label = {0};
    protobuf_put_bytes(&label, 1, str_of(name));
    protobuf_put_bytes(&label, 2, str_of(value));
    protobuf_put_bytes(series, 1, strbuf_str(&label));
    strbuf_release(&label);
}

/* In order of name, as Prometheus sends them. */
static void put_series(struct strbuf *message, size_t gpu, size_t metric, time_ms t, double v)
{
    char uuid[64], host[32], index[16], device[24], instance[48], pod[48], pci[32];
    struct strbuf series = {0}, sample = {0};
    snprintf(uuid, sizeof uuid, "GPU-%08zx-5b1f-4d0e-9a77-3c1e5f0a%04zx", gpu * 2654435761u, gpu);
    snprintf(host, sizeof host, "gpu-node-%04zu", gpu / 8);
    snprintf(index, sizeof index, "%zu", gpu % 8);
    snprintf(device, sizeof device, "nvidia%zu", gpu % 8);
    snprintf(instance, sizeof instance, "10.0.%zu.%zu:9400", gpu / 8 / 256, gpu / 8 % 256);
    snprintf(pod, sizeof pod, "train-resnet-%zu-worker-0", gpu / 8);
    snprintf(pci, sizeof pci, "00000000:%02zX:00.0", gpu % 8 + 16);
    put_label(&series, "DCGM_FI_DRIVER_VERSION", "535.129.03");
    put_label(&series, "Hostname", host);
    put_label(&series, "UUID", uuid);
    put_label(&series, "__name__", metrics[metric]);
    put_label(&series, "container", "pytorch");
    put_label(&series, "device", device);
    put_label(&series, "gpu", index);
    put_label(&series, "instance", instance);
    put_label(&series, "job", "dcgm-exporter");
    put_label(&series, "modelName", "NVIDIA H100 80GB HBM3");
    put_label(&series, "namespace", "research");
    put_label(&series, "pci_bus_id", pci);
    put_label(&series, "pod", pod);
    protobuf_put_double(&sample, 1, v);
    protobuf_put_uint64(&sample, 2, (uint64_t)t);
    protobuf_put_bytes(&series, 2, strbuf_str(&sample));
    protobuf_put_bytes(message, 1, strbuf_str(&series));
    strbuf_release(&series);
    strbuf_release(&sample);
}

static void make_bodies(struct bench *bench)
{
    struct strbuf message = {0};
    size_t in_body = 0, room = 0;
    for (size_t step = 0; step < STEPS; step++)
        for (size_t i = 0; i < bench->gpus * METRICS; i++) {
            put_series(&message, i / METRICS, i % METRICS,
                       bench->from + (time_ms)(step + 1) * STEP_MS, value_of(i % METRICS, step));
            if (++in_body < BODY_SERIES && i + 1 < bench->gpus * METRICS)
                continue;
            struct strbuf body = {0};
            snappy_block_encode(strbuf_str(&message), &body);
            mem_push(bench->bodies, bench->n, room, body);
            strbuf_clear(&message);
            in_body = 0;
        }
    strbuf_release(&message);
}

static void decode_all(void *context)
{
    struct bench *bench = context;
    struct remote_write request = {0};
    for (size_t i = 0; i < bench->n; i++)
        if (remote_write_read(&request, strbuf_str(&bench->bodies[i]), PUSH_DECODED_MAX, NULL) !=
            ERR_OK)
            abort();
    remote_write_release(&request);
}

/* ---- kept, booked */

static int no_sync(void *context, int fd)
{
    (void)context;
    (void)fd;
    return 0;
}

static time_ms bench_now(void *context)
{
    return ((const struct bench *)context)->from + HOUR_MS;
}

static void empty_folder(const char *folder)
{
    DIR *dir = opendir(folder);
    for (struct dirent *entry; dir && (entry = readdir(dir));)
        unlinkat(dirfd(dir), entry->d_name, 0);
    if (dir)
        closedir(dir);
}

static void push_all(struct bench *bench, struct journal *journal)
{
    struct push_route route = {.tenant = STR_NONE, .journal = journal};
    struct push_options options = {
        .routes = &route, .routes_n = 1, .now = bench_now, .context = bench};
    struct push *push = push_new(&options);
    for (size_t i = 0; i < bench->n; i++) {
        struct push_request request = {.body = strbuf_str(&bench->bodies[i])};
        struct push_answer answer;
        push_write(push, &request, &answer);
        if (answer.status != 204)
            abort();
    }
    push_free(push);
}

static void count_rows(void *context, const struct row_batch *batch)
{
    *(uint64_t *)context += batch->rows_n;
}

static void book_all(struct bench *bench, struct journal *journal)
{
    struct intake *intake = intake_new(&bench->config->settings, bench->names);
    struct engine_options engine = {.settings = &bench->config->settings,
                                    .prices = bench->config->prices,
                                    .owners = bench->config->owners,
                                    .threads = 1};
    struct span hour = {bench->from, bench->from + HOUR_MS};
    struct fetch fetch = {.hours = hour};
    struct strbuf carry = {0};
    struct source *source = journal_source_new(journal);
    engine_reach(engine.settings, hour, &fetch.kube, &fetch.gpu);
    bench->rows = 0;
    if (source->ops->fetch(source, &fetch, intake, NULL, NULL) != ERR_OK ||
        engine_book(intake, hour, &engine, count_rows, &bench->rows, &carry, NULL) != ERR_OK)
        abort();
    source_free(source);
    strbuf_release(&carry);
    intake_free(intake);
}

static void run(void *context)
{
    struct bench *bench = context;
    struct journal_io io = journal_io_system;
    struct journal *journal;
    struct live *live = live_new();
    io.sync = no_sync;
    struct journal_options options = {.folder = bench->folder, .live = live, .io = &io};
    if (bench->keep)
        empty_folder(bench->folder);
    if (journal_open(&options, &journal, NULL) != ERR_OK)
        abort();
    if (bench->keep)
        push_all(bench, journal);
    if (bench->book)
        book_all(bench, journal);
    struct journal_stats stats;
    journal_stats(journal, &stats);
    journal_close(journal);
    live_free(live);
    if (bench->keep && bench->book)
        fprintf(stderr, "%.2f bytes a sample in the journal, %llu rows\n",
                (double)stats.bytes / (double)stats.samples, (unsigned long long)bench->rows);
}

int main(int argc, char **argv)
{
    struct bench bench = {.gpus = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000};
    bench.from = hour_floor(HOUR_AT);
    bench.config = config_new();
    bench.names = names_new();
    snprintf(bench.folder, sizeof bench.folder, "/tmp/bench-journal-XXXXXX");
    if (config_finish(bench.config, NULL) != ERR_OK || !mkdtemp(bench.folder))
        return 1;
    make_bodies(&bench);
    double n = (double)(bench.gpus * METRICS * STEPS);
    measure("remote write decoded", "sample", n, decode_all, &bench);
    bench.keep = true;
    measure("remote write kept in the journal", "sample", n, run, &bench);
    bench.keep = false;
    bench.book = true;
    measure("an hour of the journal booked", "sample", n, run, &bench);
    bench.keep = true;
    measure("remote write kept and booked", "sample", n, run, &bench);
    empty_folder(bench.folder);
    rmdir(bench.folder);
    for (size_t i = 0; i < bench.n; i++)
        strbuf_release(&bench.bodies[i]);
    free(bench.bodies);
    names_free(bench.names);
    config_free(bench.config);
    return 0;
}
