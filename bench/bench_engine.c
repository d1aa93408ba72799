/* The ledger engine on decoded samples: what intake and booking cost, without a source.
 *
 *     bench_engine [GPUS] [DAYS] [THREADS]
 *
 * 8 GPUs a node, 10 metrics at 30 s, a new pod on each GPU every 4 hours or so, nodes recorded by
 * kube-state-metrics each 30 s, a price for every node. Prints the median of the rounds: samples a
 * second of intake (columns in), of booking (columns to balanced rows), and of both; bytes held a
 * sample; rows. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "fleet/config.h"
#include "ledger/engine.h"

#define STEP_MS 30000
#define METRICS 10
#define POD_STEPS 480 /* 4 h */
#define ROUNDS 3

static const char *const metrics[METRICS] = {
    "DCGM_FI_DEV_GPU_UTIL",          "DCGM_FI_PROF_SM_ACTIVE",
    "DCGM_FI_PROF_GR_ENGINE_ACTIVE", "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE",
    "DCGM_FI_PROF_DRAM_ACTIVE",      "DCGM_FI_DEV_FB_USED",
    "DCGM_FI_DEV_FB_FREE",           "DCGM_FI_DEV_POWER_USAGE",
    "DCGM_FI_DEV_XID_ERRORS",        "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION",
};

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now); /* of all threads */
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static uint64_t state = 42;

static uint32_t next_random(void)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33);
}

/* Values of one metric over n steps: a GPU that works, with noise. */
static void make_values(int metric, double *v, size_t n, double *energy)
{
    for (size_t i = 0; i < n; i++) {
        double noise = (double)(next_random() % 1000) / 1000;
        switch (metric) {
        case 0:
            v[i] = (double)(60 + next_random() % 40);
            break;
        case 5:
            v[i] = 40000 + (double)(next_random() % 1000);
            break;
        case 6:
            v[i] = 41000;
            break;
        case 7:
            v[i] = 300 + 100 * noise;
            break;
        case 8:
            v[i] = 0;
            break;
        case 9:
            *energy += 300000 * 30;
            v[i] = *energy;
            break;
        default:
            v[i] = 0.3 + 0.5 * noise;
        }
    }
}

struct fleet {
    int gpus;
    size_t steps;
    time_ms from;
    time_ms *t;
    double *values; /* [METRICS][steps]: the same for each GPU, so that making them costs nothing */
};

static void feed_nodes(struct intake *intake, const struct fleet *fleet, double *scratch)
{
    for (int node = 0; node * 8 < fleet->gpus; node++) {
        char name[32], provider[48];
        snprintf(name, sizeof name, "gpu-%d", node);
        snprintf(provider, sizeof provider, "aws:///us-east-1a/i-%d", node);
        struct label info[] = {{STR("__name__"), STR("kube_node_info")},
                               {STR("node"), str_of(name)},
                               {STR("provider_id"), str_of(provider)}};
        struct label labels[] = {
            {STR("__name__"), STR("kube_node_labels")},
            {STR("node"), str_of(name)},
            {STR("label_node_kubernetes_io_instance_type"), STR("p5.48xlarge")},
            {STR("label_topology_kubernetes_io_region"), STR("us-east-1")}};
        for (size_t i = 0; i < fleet->steps; i++)
            scratch[i] = 1;
        intake_append(intake, intake_series(intake, info, 3), fleet->t, scratch, fleet->steps);
        intake_append(intake, intake_series(intake, labels, 4), fleet->t, scratch, fleet->steps);
    }
}

static void feed_gpu(struct intake *intake, const struct fleet *fleet, int gpu)
{
    char uuid[48], host[32], index[8], pod[48];
    snprintf(uuid, sizeof uuid, "GPU-%08d-0000-4000-8000-000000000000", gpu);
    snprintf(host, sizeof host, "gpu-%d", gpu / 8);
    snprintf(index, sizeof index, "%d", gpu % 8);
    for (size_t at = 0; at < fleet->steps; at += POD_STEPS) {
        size_t n = fleet->steps - at < POD_STEPS ? fleet->steps - at : POD_STEPS;
        snprintf(pod, sizeof pod, "train-%d-%zu", gpu / 8, at / POD_STEPS);
        for (int m = 0; m < METRICS; m++) {
            struct label labels[] = {{STR("__name__"), str_of(metrics[m])},
                                     {STR("UUID"), str_of(uuid)},
                                     {STR("Hostname"), str_of(host)},
                                     {STR("gpu"), str_of(index)},
                                     {STR("modelName"), STR("NVIDIA H100 80GB HBM3")},
                                     {STR("namespace"), STR("research")},
                                     {STR("pod"), str_of(pod)},
                                     {STR("container"), STR("main")}};
            series_id id = intake_series(intake, labels, sizeof labels / sizeof *labels);
            for (size_t i = 0; i < n; i += 120) { /* as chunks come */
                size_t part = n - i < 120 ? n - i : 120;
                intake_append(intake, id, fleet->t + at + i,
                              fleet->values + (size_t)m * fleet->steps + at + i, part);
            }
        }
    }
}

struct count {
    uint64_t rows;
    money_t cost;
};

static void count_rows(void *context, const struct row_batch *batch)
{
    struct count *count = context;
    count->rows += batch->rows_n;
    for (size_t i = 0; i < batch->rows_n; i++)
        count->cost += batch->rows[i].cost;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    struct fleet fleet = {.gpus = argc > 1 ? atoi(argv[1]) : 256, .from = 1764547200000};
    int days = argc > 2 ? atoi(argv[2]) : 1, threads = argc > 3 ? atoi(argv[3]) : 1;
    fleet.steps = (size_t)days * (size_t)(DAY_MS / STEP_MS);
    fleet.t = malloc(fleet.steps * sizeof *fleet.t);
    fleet.values = malloc(METRICS * fleet.steps * sizeof *fleet.values);
    double *scratch = malloc(fleet.steps * sizeof *scratch), energy = 1e9;
    for (size_t i = 0; i < fleet.steps; i++)
        fleet.t[i] = fleet.from + (time_ms)(i + 1) * STEP_MS;
    for (int m = 0; m < METRICS; m++)
        make_values(m, fleet.values + (size_t)m * fleet.steps, fleet.steps, &energy);

    struct error err;
    struct config *config = config_new();
    if (config_finish(config, &err) != ERR_OK) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    double in[ROUNDS], out[ROUNDS];
    uint64_t samples = (uint64_t)fleet.gpus * METRICS * fleet.steps;
    struct engine_stats stats = {0};
    struct count count = {0};
    for (int round = 0; round < ROUNDS; round++) {
        struct names *names = names_new();
        struct intake *intake = intake_new(&config->settings, names);
        double start = seconds();
        feed_nodes(intake, &fleet, scratch);
        for (int gpu = 0; gpu < fleet.gpus; gpu++)
            feed_gpu(intake, &fleet, gpu);
        in[round] = seconds() - start;
        intake_stats(intake, &stats);
        struct engine_options options = {.settings = &config->settings,
                                         .prices = config->prices,
                                         .owners = config->owners,
                                         .threads = threads};
        struct span hours = {fleet.from, fleet.from + days * DAY_MS};
        struct strbuf carry = {0};
        count = (struct count){0};
        start = seconds();
        engine_book(intake, hours, &options, count_rows, &count, &carry, &err);
        out[round] = seconds() - start;
        strbuf_release(&carry);
        intake_free(intake);
        names_free(names);
    }
    qsort(in, ROUNDS, sizeof *in, by_value);
    qsort(out, ROUNDS, sizeof *out, by_value);
    double a = in[ROUNDS / 2], b = out[ROUNDS / 2], m = (double)samples / 1e6;
    printf("engine: %d GPUs x %d metrics x %d d at 30 s, %.1f M samples, %d thread%s\n", fleet.gpus,
           METRICS, days, m, threads, threads == 1 ? "" : "s");
    printf("  intake   %8.3f s  %7.1f M samples/s\n", a, m / a);
    printf("  booking  %8.3f s  %7.1f M samples/s   (join with placement and price)\n", b, m / b);
    printf("  both     %8.3f s  %7.1f M samples/s\n", a + b, m / (a + b));
    printf("  held     %8.2f bytes a sample, %llu rows, %.2f in all\n",
           (double)stats.peak_bytes / (double)samples, (unsigned long long)count.rows,
           (double)count.cost / 1e9);
    return 0;
}
