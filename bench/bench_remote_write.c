/* Live ingest by remote write: an hour of a fleet as senders send it live, one sample a series and
 * request, to rows of the ledger on disk (bench/ingest.h). Without the network.
 *
 *     bench_remote_write [GPUS [PART]]      13 labels a series, 2,000 series a request; PART:
 *                                           decoded, kept, booked, whole, alone (all of them)
 *
 * As Prometheus does, SENDERS send at once, so that one fsync covers several requests; `alone` is
 * one sender, whose every request is synced for itself. CPU time is that of all threads. */
#include <pthread.h>

#include "ingest.h"
#include "source/push.h"
#include "wire/protobuf.h"
#include "wire/remote_write.h"
#include "wire/snappy_block.h"

#define BODY_SERIES 2000
#define SENDERS 8

struct bench {
    struct ingest ingest;
    struct strbuf *bodies;
    size_t n;
    struct push *push;
};

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
    put_label(&series, "__name__", ingest_metrics[metric]);
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
    struct ingest *ingest = &bench->ingest;
    struct strbuf message = {0};
    size_t in_body = 0, room = 0, series = ingest->gpus * INGEST_METRICS;
    for (size_t step = 0; step < INGEST_STEPS; step++)
        for (size_t i = 0; i < series; i++) {
            size_t metric = i % INGEST_METRICS;
            put_series(&message, i / INGEST_METRICS, metric,
                       ingest->hour.from + (time_ms)(step + 1) * INGEST_STEP_MS,
                       ingest_value(ingest, metric, step));
            if (++in_body < BODY_SERIES && i + 1 < series)
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
        if (remote_write_read_on_trust(&request, strbuf_str(&bench->bodies[i]), PUSH_DECODED_MAX,
                                       NULL) != ERR_OK)
            abort();
    remote_write_release(&request);
}

/* Of each step's requests the same ones each time, so that a series' samples come in order. */
struct sender {
    struct bench *bench;
    size_t first, every;
    pthread_t thread;
};

static void *send_some(void *context)
{
    const struct sender *sender = context;
    const struct bench *bench = sender->bench;
    size_t a_step = bench->n / INGEST_STEPS;
    for (size_t i = 0; i < bench->n; i++) {
        struct push_request request = {.body = strbuf_str(&bench->bodies[i])};
        struct push_answer answer;
        if (i % a_step % sender->every != sender->first)
            continue;
        push_write(bench->push, &request, &answer);
        if (answer.status != 204)
            abort();
    }
    return NULL;
}

static void push_all(struct bench *bench, size_t senders_n)
{
    struct push_route route = {.tenant = STR_NONE, .journal = bench->ingest.journal};
    struct push_options options = {
        .routes = &route, .routes_n = 1, .now = ingest_now, .context = &bench->ingest};
    struct sender senders[SENDERS];
    bench->push = push_new(&options);
    for (size_t i = 0; i < senders_n; i++) {
        senders[i] = (struct sender){.bench = bench, .first = i, .every = senders_n};
        if (pthread_create(&senders[i].thread, NULL, send_some, &senders[i]) != 0)
            abort();
    }
    for (size_t i = 0; i < senders_n; i++)
        pthread_join(senders[i].thread, NULL);
    push_free(bench->push);
}

static void keep(void *context)
{
    struct bench *bench = context;
    ingest_open(&bench->ingest, true);
    push_all(bench, SENDERS);
    ingest_close(&bench->ingest);
}

static void keep_alone(void *context)
{
    struct bench *bench = context;
    ingest_open(&bench->ingest, true);
    push_all(bench, 1);
    ingest_close(&bench->ingest);
}

static void keep_and_book(void *context)
{
    struct bench *bench = context;
    ingest_open(&bench->ingest, true);
    push_all(bench, SENDERS);
    ingest_book(&bench->ingest);
    ingest_close(&bench->ingest);
}

int main(int argc, char **argv)
{
    struct bench bench = {0};
    const char *part = argc > 2 ? argv[2] : "decoded kept booked whole alone";
    ingest_begin(&bench.ingest, argc > 1 ? strtoull(argv[1], NULL, 10) : 1000);
    make_bodies(&bench);
    double n = (double)(bench.ingest.gpus * INGEST_METRICS * INGEST_STEPS);
    if (strstr(part, "decoded"))
        measure("remote write decoded", "sample", n, decode_all, &bench);
    if (strstr(part, "kept"))
        measure("remote write kept", "sample", n, keep, &bench);
    else if (strstr(part, "booked"))
        keep(&bench);
    if (strstr(part, "booked"))
        measure("an hour of it booked", "sample", n, ingest_book_alone, &bench.ingest);
    if (strstr(part, "whole"))
        measure("remote write kept and booked", "sample", n, keep_and_book, &bench);
    if (strstr(part, "alone"))
        measure("remote write kept, one sender", "sample", n, keep_alone, &bench);
    fprintf(stderr, "%.2f bytes a sample in the journal, %llu samples to %llu rows\n",
            bench.ingest.journal_bytes, (unsigned long long)bench.ingest.samples,
            (unsigned long long)bench.ingest.rows);
    for (size_t i = 0; i < bench.n; i++)
        strbuf_release(&bench.bodies[i]);
    free(bench.bodies);
    ingest_end(&bench.ingest);
    return 0;
}
