/* The ledger database at the size of a large fleet: ingest, bytes a row, and reports.
 *
 *     bench_store [--gpus 10000] [--days 90] [--db FILE] [--full] [--hourly] [--keep] [--naive]
 *                 [--hours] [--only TEXT]
 *
 * Rows are deterministic. The mix of jobs, models and teams is the one that the peers' figures of
 * docs/internals/store.md were measured with (13 columns: hour, cluster, node, device, model,
 * namespace, pod, team, GPU_UTIL, SM activity, maximum memory, power, cost); what else a ledger row
 * has follows from those. --full gives every measured field noise of its own, as 30 s samples
 * have it: integrals that share no step, histograms, states. --hourly commits hour by hour, as a
 * running collector does. --hours adds what GPUs and hosts did, as a collector does, for the idle
 * scan. --naive also loads the same rows into a plain SQLite table. */
#include <math.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <sqlite3.h>

#include "query/query.h"
#include "store/store.h"

#define END (INT64_C(1795996800000)) /* 2026-11-30T00:00Z */
#define GPUS_A_NODE 8
#define ROUNDS 7

struct options {
    int gpus, days;
    const char *db;
    bool full, hourly, keep, naive, hours;
};

static const char *only = ""; /* reports whose title has this text */

static uint64_t next(uint64_t *s)
{
    uint64_t x = *s;
    x ^= x << 13, x ^= x >> 7, x ^= x << 17;
    *s = x;
    return x * UINT64_C(2685821657736338717);
}
static double uniform(uint64_t *s)
{
    return (double)(next(s) >> 11) * 0x1p-53;
}
static double gauss(uint64_t *s)
{
    return (uniform(s) + uniform(s) + uniform(s) + uniform(s) - 2) * 1.7320508;
}

enum job_kind { JOB_NONE, JOB_TRAIN, JOB_SERVE, JOB_NOTEBOOK };
static const char *const spaces[] = {"llm-pretrain", "vision",   "speech",      "recsys",
                                     "search-rank",  "research", "genai-infer", "platform"};
static const char *const teams[] = {"team-pretrain", "team-vision",  "team-speech",
                                    "team-recsys",   "team-search",  "team-research",
                                    "team-genai",    "team-platform"};
static const char *const models[] = {"NVIDIA H100 80GB HBM3", "NVIDIA A100-SXM4-80GB",
                                     "NVIDIA L40S"};
static const char *const types[] = {"p5.48xlarge", "p4d.24xlarge", "g6e.48xlarge"};
static const double prices[] = {3.93, 1.85, 0.99};

/* A job holds one GPU, or all of a node's. */
struct job {
    uint64_t dice;
    enum job_kind kind;
    int left_minutes;
    int space;
    name_t pod, uid, workload, container;
};
struct gpu {
    uint64_t dice;
    name_t device;
    int job;
    bool dead;
};
struct fleet {
    struct options options;
    struct names *names;
    struct gpu *gpus;
    struct job *jobs;
    int jobs_n;
    name_t space_names[8], team_names[8], model_names[3], type_names[3], *nodes, clusters[4];
    name_t region, cloud, source;
};

static name_t name(struct fleet *fleet, const char *text)
{
    return names_put(fleet->names, str_of(text));
}

static void new_job(struct fleet *fleet, struct job *job, bool whole)
{
    char text[96];
    double x = uniform(&job->dice), length = exp(gauss(&job->dice) * 0.8);
    if (x < 0.25) {
        job->kind = JOB_NONE;
        job->left_minutes = (int)(60 * length) + 2;
        return;
    }
    job->space = (int)(next(&job->dice) % 8);
    uint32_t h = (uint32_t)next(&job->dice);
    const char *space = spaces[job->space];
    if (x < (whole ? 0.90 : 0.50)) {
        job->kind = JOB_TRAIN;
        job->left_minutes = (int)(300 * length) + 2;
        snprintf(text, sizeof text, "Job/train-%s-%06x", space, h & 0xffffff);
        job->workload = name(fleet, text);
        snprintf(text, sizeof text, "train-%s-%06x-worker-%u", space, h & 0xffffff, h >> 28);
        job->container = name(fleet, "pytorch");
    } else if (x < 0.85) {
        job->kind = JOB_SERVE;
        job->left_minutes = (int)(600 * length) + 2;
        snprintf(text, sizeof text, "Deployment/infer-%s", space);
        job->workload = name(fleet, text);
        snprintf(text, sizeof text, "infer-%s-%08x-%05x", space, h, (h * 2654435761u) >> 12);
        job->container = name(fleet, "vllm");
    } else {
        job->kind = JOB_NOTEBOOK;
        job->left_minutes = (int)(360 * length) + 2;
        snprintf(text, sizeof text, "StatefulSet/jupyter-%s-%06x", space, h & 0xffffff);
        job->workload = name(fleet, text);
        snprintf(text, sizeof text, "jupyter-%s-%06x-0", space, h & 0xffffff);
        job->container = name(fleet, "notebook");
    }
    job->pod = name(fleet, text);
    uint64_t a = next(&job->dice), b = next(&job->dice);
    snprintf(text, sizeof text, "%08x-%04x-4%03x-a%03x-%012llx", (unsigned)(a >> 32),
             (unsigned)(a >> 16) & 0xffff, (unsigned)a & 0xfff, (unsigned)(b >> 52),
             (unsigned long long)(b & 0xffffffffffff));
    job->uid = name(fleet, text);
}

static bool whole_node(int node)
{
    return node % 5 < 3;
}

static void fleet_init(struct fleet *fleet)
{
    int gpus = fleet->options.gpus, nodes = (gpus + GPUS_A_NODE - 1) / GPUS_A_NODE;
    uint64_t seed = UINT64_C(7) * UINT64_C(0x9E3779B97F4A7C15) + 1;
    char text[96];
    fleet->gpus = mem_zalloc((size_t)gpus, sizeof *fleet->gpus);
    fleet->jobs = mem_zalloc((size_t)gpus, sizeof *fleet->jobs);
    fleet->nodes = mem_zalloc((size_t)nodes, sizeof *fleet->nodes);
    for (int i = 0; i < 8; i++) {
        fleet->space_names[i] = name(fleet, spaces[i]);
        fleet->team_names[i] = name(fleet, teams[i]);
    }
    for (int i = 0; i < 3; i++) {
        fleet->model_names[i] = name(fleet, models[i]);
        fleet->type_names[i] = name(fleet, types[i]);
    }
    for (int i = 0; i < 4; i++) {
        snprintf(text, sizeof text, "cluster-%d", i);
        fleet->clusters[i] = name(fleet, text);
    }
    fleet->region = name(fleet, "us-east-1");
    fleet->cloud = name(fleet, "aws");
    fleet->source = name(fleet, "catalogue 2026-07-20");
    for (int i = 0; i < gpus; i++) {
        struct gpu *gpu = &fleet->gpus[i];
        int node = i / GPUS_A_NODE;
        gpu->dice = next(&seed) | 1;
        uint64_t a = next(&seed), b = next(&seed);
        snprintf(text, sizeof text, "GPU-%08x-%04x-%04x-%04x-%012llx", (unsigned)(a >> 32),
                 (unsigned)(a >> 16) & 0xffff, (unsigned)a & 0xffff, (unsigned)(b >> 48),
                 (unsigned long long)(b & 0xffffffffffff));
        gpu->device = name(fleet, text);
        if (i % GPUS_A_NODE == 0) {
            snprintf(text, sizeof text, "gpu-node-%04d", node);
            fleet->nodes[node] = name(fleet, text);
        }
        if (i % GPUS_A_NODE == 0 || !whole_node(node)) {
            struct job *job = &fleet->jobs[fleet->jobs_n++];
            job->dice = next(&seed) | 1;
            new_job(fleet, job, whole_node(node));
            job->left_minutes = 1 + (int)(job->left_minutes * uniform(&job->dice));
        }
        gpu->job = fleet->jobs_n - 1;
        gpu->dead = !whole_node(node) && next(&seed) % 100 < 6;
    }
}

static void jobs_go_on(struct fleet *fleet)
{
    for (int k = 0; k < fleet->jobs_n; k++) {
        struct job *job = &fleet->jobs[k];
        job->left_minutes -= 60;
        if (job->left_minutes <= 0)
            new_job(fleet, job, false);
    }
}

/* 120 samples of 30 s, of which the hour's ends are cut: histogram, states and integral. */
static void sampled(uint64_t *dice, int64_t offset, double mean, double noise, int64_t unit,
                    int64_t *bins, int64_t *states, int64_t *ret)
{
    *ret = 0;
    for (int i = 0; i <= 120; i++) {
        double v = mean <= 0 ? 0 : mean + noise * gauss(dice);
        v = v < 0 ? 0 : v > 1 ? 1 : v;
        int64_t ratio = (int64_t)(v * (double)(NANO / unit)) * unit;
        int64_t ms = i == 0 ? offset : i == 120 ? 30000 - offset : 30000;
        *ret += ratio * ms;
        int bin = (int)(ratio * HISTOGRAM_BINS / NANO);
        if (bins)
            bins[bin == HISTOGRAM_BINS ? bin - 1 : bin] += ms;
        if (states)
            states[ratio < 100000000   ? STATE_IDLE
                   : ratio < 300000000 ? STATE_LOW
                                       : STATE_BUSY] += ms;
    }
}

static void measured(const struct fleet *fleet, struct gpu *gpu, enum job_kind kind,
                     struct row *row)
{
    uint64_t *dice = &gpu->dice;
    double util = kind == JOB_TRAIN      ? 85 + 15 * uniform(dice)
                  : kind == JOB_SERVE    ? 20 + 50 * uniform(dice)
                  : kind == JOB_NOTEBOOK ? 6 * uniform(dice)
                                         : 0;
    int64_t mem_mib = kind == JOB_TRAIN      ? 71000 + (int64_t)(next(dice) % 4000)
                      : kind == JOB_SERVE    ? 62000 + (int64_t)(next(dice) % 3000)
                      : kind == JOB_NOTEBOOK ? 9000 + (int64_t)(next(dice) % 2000)
                                             : 4;
    double power = kind == JOB_NONE ? 68 + uniform(dice) : 110 + 5.2 * util + 5 * uniform(dice);
    row->observed_ms = row->gpu_observed_num = HOUR_MS;
    row->mem_max_bytes = mem_mib << 20;
    row->mem_total_bytes = INT64_C(81559) << 20;
    row->mem_seen_ms = HOUR_MS;
    row->mem_byte_ms = (uint64_t)row->mem_max_bytes * HOUR_MS;
    for (int i = 0; i < MEASURE_COUNT; i++)
        row->measure_seen_ms[i] = HOUR_MS;
    if (fleet->options.full) {
        int64_t offset = 1 + (gpu - fleet->gpus) / GPUS_A_NODE * 7919 % 29998; /* of the target */
        sampled(dice, offset, util / 143, 0.05, 1000, row->hist_u_num, row->state_ms, &row->u);
        sampled(dice, offset, util / 100, 0.06, 10000000, row->hist_e_num, NULL, &row->e);
        sampled(dice, offset, util / 230, 0.03, 1000, NULL, NULL, &row->measure[MEASURE_TENSOR]);
        sampled(dice, offset, util / 250, 0.03, 1000, NULL, NULL, &row->measure[MEASURE_DRAM]);
        row->energy_mj = (int64_t)(power * 3.6e6 + 20000 * gauss(dice));
    } else {
        row->u = (int64_t)(util * 0.7 * 100) * 100000 * HOUR_MS; /* 4 decimals */
        row->e = (int64_t)(util * 100) * 100000 * HOUR_MS;       /* percent with 2 */
        row->energy_mj = (int64_t)(power * 10) * 360000;         /* 0.1 W */
        row->state_ms[row->u < HOUR_MS * 100000000   ? STATE_IDLE
                      : row->u < HOUR_MS * 300000000 ? STATE_LOW
                                                     : STATE_BUSY] = HOUR_MS;
        row->hist_u_num[row->u / HOUR_MS * HISTOGRAM_BINS / (NANO + 1)] = HOUR_MS;
        row->hist_e_num[row->e / HOUR_MS * HISTOGRAM_BINS / (NANO + 1)] = HOUR_MS;
    }
    row->measure[MEASURE_SM] = row->gpu_u_num = row->u;
    for (int i = 0; i < STATE_COUNT; i++)
        row->gpu_state_num[i] = row->state_ms[i];
}

static void priced(struct row *row, money_t cost, bool held, int model)
{
    row->cost = cost;
    if (!held) {
        row->category[model == 2 ? CATEGORY_EMPTY : CATEGORY_STRANDED] = cost;
        return;
    }
    money_t used =
        (money_t)(((wide_t)cost * row->u + HOUR_MS * (wide_t)NANO / 2) / (HOUR_MS * (wide_t)NANO));
    money_t idle = (money_t)((wide_t)(cost - used) * row->state_ms[STATE_IDLE] / HOUR_MS);
    row->category[CATEGORY_USED] = used;
    row->category[CATEGORY_HELD_IDLE] = idle;
    row->category[CATEGORY_SLACK] = cost - used - idle;
}

/* What the row's GPU did, whoever held it. */
static void add_device_hour(struct row_batch *batch, const struct row *row)
{
    bool works = row->state_ms[STATE_IDLE] < HOUR_MS;
    struct device_hour hour = {
        .hour = row->key.hour,
        .cluster = row->key.cluster,
        .node = row->key.node,
        .device = row->key.device,
        .model = row->facts.model,
        .up_ms = HOUR_MS,
        .covered_ms = HOUR_MS,
        .observed_ms = HOUR_MS,
        .held_ms = row->held_ms,
        .util = row->e,
        .util_seen_ms = HOUR_MS,
        .mem = (int64_t)((wide_t)row->mem_max_bytes * NANO / row->mem_total_bytes * HOUR_MS),
        .mem_seen_ms = HOUR_MS,
        .power_mw_ms = row->energy_mj * 1000,
        .power_seen_ms = HOUR_MS,
        .power_max_mw = row->energy_mj / 3600,
        .power_limit_mw = 700000,
        .worked_until = works ? row->key.hour + HOUR_MS : TIME_MIN,
        .idle_from = works ? TIME_MIN : row->key.hour,
        .idle_after_ms = works ? 0 : HOUR_MS,
        .floor_samples = row->held_ms ? 0 : 120,
        .floor_mw = row->held_ms ? 0 : 120 * 68500};
    mem_push(batch->device_hours, batch->device_hours_n, batch->device_hours_room, hour);
}

static void add_machine_hour(struct fleet *fleet, int node, const struct node_hour *of_node,
                             struct row_batch *batch)
{
    int64_t noise = (int64_t)(uniform(&fleet->gpus[node * GPUS_A_NODE].dice) * (double)NANO);
    struct machine_hour hour = {.hour = of_node->hour,
                                .cluster = of_node->cluster,
                                .node = of_node->node,
                                .cpu = HOUR_MS * (noise / 2),
                                .cpu_seen_ms = HOUR_MS,
                                .cpu_max = noise,
                                .cpus = 192,
                                .net_bytes = noise * 100,
                                .net_seen_ms = HOUR_MS,
                                .requested_mcpu = 64000,
                                .requested_memory_bytes = INT64_C(512) << 30,
                                .cpu_pods = 0,
                                .daemon_pods = 6};
    mem_push(batch->machine_hours, batch->machine_hours_n, batch->machine_hours_room, hour);
}

static void fill_node(struct fleet *fleet, int node, time_ms hour, struct row_batch *batch)
{
    int model = node % 10 < 5 ? 0 : node % 10 < 8 ? 1 : 2;
    money_t cost = (money_t)(prices[model] * 1e9 + 0.5);
    name_t cluster = fleet->clusters[node * GPUS_A_NODE * 4 / fleet->options.gpus];
    int from = node * GPUS_A_NODE, to = from + GPUS_A_NODE;
    to = to > fleet->options.gpus ? fleet->options.gpus : to;
    for (int i = from; i < to; i++) {
        struct gpu *gpu = &fleet->gpus[i];
        struct job *job = &fleet->jobs[gpu->job];
        enum job_kind kind = gpu->dead ? JOB_NONE : job->kind;
        struct row row;
        memset(&row, 0, sizeof row);
        row.key = (struct row_key){
            .hour = hour, .cluster = cluster, .node = fleet->nodes[node], .device = gpu->device};
        row.facts = (struct row_facts){.model = fleet->model_names[model],
                                       .instance_type = fleet->type_names[model],
                                       .region = fleet->region,
                                       .cloud = fleet->cloud};
        row.share_den = 1;
        row.gpu_num = HOUR_MS;
        if (kind != JOB_NONE) {
            row.key.namespace = fleet->space_names[job->space];
            row.key.pod = job->pod;
            row.key.pod_uid = job->uid;
            row.key.container = job->container;
            row.facts.owner = fleet->team_names[job->space];
            row.facts.workload = job->workload;
            row.facts.type = kind == JOB_TRAIN   ? WORKLOAD_TRAINING
                             : kind == JOB_SERVE ? WORKLOAD_INFERENCE
                                                 : WORKLOAD_INTERACTIVE;
            row.held_ms = row.gpu_held_num = HOUR_MS;
        }
        measured(fleet, gpu, kind, &row);
        priced(&row, cost, kind != JOB_NONE, model);
        mem_push(batch->rows, batch->rows_n, batch->rows_room, row);
        if (fleet->options.hours)
            add_device_hour(batch, &row);
    }
    struct node_hour of_node = {.hour = hour,
                                .cluster = cluster,
                                .node = fleet->nodes[node],
                                .instance_type = fleet->type_names[model],
                                .region = fleet->region,
                                .cloud = fleet->cloud,
                                .price = cost * (to - from),
                                .booked = cost * (to - from),
                                .up_ms = HOUR_MS,
                                .gpus = to - from,
                                .price_source = fleet->source};
    mem_push(batch->node_hours, batch->node_hours_n, batch->node_hours_room, of_node);
    if (fleet->options.hours)
        add_machine_hour(fleet, node, &of_node, batch);
}

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* CPU seconds: the figure that other work on the machine does not move. */
static double cpu(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void die(const struct error *err)
{
    fprintf(stderr, "bench_store: %s\n", err->text);
    exit(1);
}
#define must(call)                                                                                 \
    do {                                                                                           \
        struct error failure = {0};                                                                \
        struct error *err = &failure;                                                              \
        if ((call) != ERR_OK)                                                                      \
            die(err);                                                                              \
    } while (0)

/* The same 13 columns that the peers had, in a table as one would write it first. */
static const char naive_path[] = "/tmp/bench_store_naive.db";

static sqlite3_stmt *naive_begin(sqlite3 **ret)
{
    unlink(naive_path);
    sqlite3_open(naive_path, ret);
    sqlite3_exec(
        *ret,
        "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; CREATE TABLE rows(hour, cluster, "
        "node, uuid, model, namespace, pod, team, util, sm, memmax, power, cost); BEGIN",
        NULL, NULL, NULL);
    sqlite3_stmt *put;
    sqlite3_prepare_v2(*ret, "INSERT INTO rows VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?)", -1, &put, NULL);
    return put;
}

static void naive_put(sqlite3_stmt *put, const struct names *names, const struct row *row)
{
    const name_t texts[] = {row->key.cluster,   row->key.node, row->key.device, row->facts.model,
                            row->key.namespace, row->key.pod,  row->facts.owner};
    sqlite3_bind_int64(put, 1, row->key.hour / 1000);
    for (int i = 0; i < 7; i++) {
        struct str text = names_text(names, texts[i]);
        sqlite3_bind_text(put, 2 + i, text.p, (int)text.n, SQLITE_STATIC);
    }
    sqlite3_bind_double(put, 9, (double)row->e / 3.6e13);
    sqlite3_bind_double(put, 10, (double)row->u / 3.6e15);
    sqlite3_bind_int64(put, 11, row->mem_max_bytes >> 20);
    sqlite3_bind_double(put, 12, (double)row->energy_mj / 3.6e6);
    sqlite3_bind_double(put, 13, (double)row->cost / 1e9);
    sqlite3_step(put);
    sqlite3_reset(put);
}

static void ingest(struct fleet *fleet, struct store *store)
{
    const struct options *options = &fleet->options;
    int nodes = (options->gpus + GPUS_A_NODE - 1) / GPUS_A_NODE;
    time_ms start = END - options->days * DAY_MS;
    int slice = options->hourly ? 1 : 24;
    struct row_batch *batches = mem_zalloc((size_t)nodes, sizeof *batches);
    double spent = 0, spent_cpu = 0, naive_spent = 0;
    uint64_t rows = 0;
    sqlite3 *naive = NULL;
    sqlite3_stmt *put = options->naive ? naive_begin(&naive) : NULL;
    for (int h = 0; h < options->days * 24; h += slice) {
        struct span hours = {start + h * HOUR_MS, start + (h + slice) * HOUR_MS};
        for (int n = 0; n < nodes; n++)
            row_batch_clear(&batches[n]);
        for (int k = 0; k < slice; k++) {
            jobs_go_on(fleet);
            for (int n = 0; n < nodes; n++)
                fill_node(fleet, n, hours.from + k * HOUR_MS, &batches[n]);
        }
        double began = seconds(), began_cpu = cpu();
        must(store_begin(store, err));
        must(store_clear_hours(store, hours, err));
        for (int n = 0; n < nodes; n++) {
            struct row_batch *batch = &batches[(n * 7919) % nodes]; /* nodes come in any order */
            batch->names = fleet->names;
            batch->hours = hours;
            rows += batch->rows_n;
            must(store_append(store, batch, err));
        }
        must(store_commit(store, NULL, err));
        spent += seconds() - began;
        spent_cpu += cpu() - began_cpu;
        began = seconds();
        for (int n = 0; n < nodes && put; n++)
            for (size_t i = 0; i < batches[n].rows_n; i++)
                naive_put(put, fleet->names, &batches[n].rows[i]);
        naive_spent += seconds() - began;
    }
    printf("ingest: %llu rows, %.2f s of CPU, %.2f s: %.2f M rows/s of CPU\n",
           (unsigned long long)rows, spent_cpu, spent, (double)rows / spent_cpu / 1e6);
    if (put) {
        sqlite3_finalize(put);
        sqlite3_exec(naive, "COMMIT", NULL, NULL, NULL);
        sqlite3_close(naive);
        printf("naive SQLite table: %.2f s: %.2f M rows/s\n", naive_spent,
               (double)rows / naive_spent / 1e6);
    }
    for (int n = 0; n < nodes; n++)
        row_batch_release(&batches[n]);
    free(batches);
}

static int by_value(const void *a, const void *b)
{
    double l = *(const double *)a, r = *(const double *)b;
    return (l > r) - (l < r);
}

static const char *zone; /* of days */

static void report(struct store *store, const char *what, const char *keys, const char *filter,
                   struct span window)
{
    if (!strstr(what, only))
        return;
    double took[ROUNDS], took_cpu[ROUNDS];
    size_t groups = 0;
    char cost[MONEY_TEXT_MAX];
    uint64_t gpus = 0;
    for (int i = 0; i < ROUNDS; i++) {
        struct query query = {.window = window, .tz = zone};
        struct result *result;
        if (*keys)
            must(query_parse_keys(str_of(keys), &query, err));
        if (filter)
            must(query_parse_filter(str_of(filter), &query, err));
        double began = seconds(), began_cpu = cpu();
        must(query_run(store, &query, &result, err));
        took_cpu[i] = cpu() - began_cpu;
        took[i] = seconds() - began;
        groups = result->groups_n;
        gpus = result->gpus;
        money_format(result->total.cost, cost);
        result_free(result);
    }
    qsort(took, ROUNDS, sizeof *took, by_value);
    qsort(took_cpu, ROUNDS, sizeof *took_cpu, by_value);
    printf("%-40s %8.2f ms, CPU %8.2f ms  %zu groups, %llu GPUs, %s\n", what,
           took[ROUNDS / 2] * 1e3, took_cpu[ROUNDS / 2] * 1e3, groups, (unsigned long long)gpus,
           cost);
}

static bool count_rows(void *context, const struct row_batch *batch)
{
    *(uint64_t *)context += batch->rows_n;
    return true;
}

static void reports(struct store *store, int days)
{
    struct span all = {END - days * DAY_MS, END}, month = {END - 30 * DAY_MS, END};
    struct span week = {END - 7 * DAY_MS, END},
                cut = {END - 7 * DAY_MS - 13 * HOUR_MS, END - 13 * HOUR_MS},
                month_cut = {month.from + 11 * HOUR_MS, month.to - 11 * HOUR_MS};
    report(store, "30 d by team", "team", NULL, month);
    report(store, "all days by team", "team", NULL, all);
    report(store, "all days by team, model, namespace", "team,model,namespace", NULL, all);
    report(store, "all days by team and day", "team,day", NULL, all);
    report(store, "all days by category", "category", NULL, all);
    report(store, "7 d by team, days cut at 11:00", "team", NULL, cut);
    report(store, "30 d by team, first and last day cut", "team", NULL, month_cut);
    report(store, "30 d by hour", "hour", NULL, month);
    zone = "Europe/Berlin";
    report(store, "30 d by day of Berlin", "day", NULL, month);
    zone = NULL;
    report(store, "7 d by node", "node", NULL, week);
    report(store, "7 d by pod", "pod", NULL, week);
    report(store, "7 d by GPU", "gpu", NULL, week);
    report(store, "7 d by hour", "hour", NULL, week);
    report(store, "30 d by workload", "workload", NULL, month);
    report(store, "all days of one node by pod", "pod", "node=gpu-node-0007", all);
    if (!strstr("7 d of rows, in order", only))
        return;
    double began = seconds(), began_cpu = cpu();
    uint64_t rows = 0;
    must(store_read_rows(store, week, count_rows, &rows, err));
    double spent = seconds() - began, spent_cpu = cpu() - began_cpu;
    printf("%-40s %8.2f ms, CPU %8.2f ms  %llu rows, %.2f M rows/s of CPU\n",
           "7 d of rows, in order", spent * 1e3, spent_cpu * 1e3, (unsigned long long)rows,
           (double)rows / spent_cpu / 1e6);
}

static void naive_reports(int days)
{
    sqlite3 *db;
    sqlite3_open(naive_path, &db);
    const char *const columns[] = {"team", "team, model, namespace"};
    const int windows[] = {30, days};
    for (int q = 0; q < 2; q++) {
        char sql[256];
        snprintf(sql, sizeof sql, "SELECT %s, sum(cost) FROM rows WHERE hour >= %lld GROUP BY %s",
                 columns[q], (long long)(END - windows[q] * DAY_MS) / 1000, columns[q]);
        double began = seconds();
        sqlite3_exec(db, sql, NULL, NULL, NULL);
        printf("naive SQLite: %d d by %-24s %9.2f ms\n", windows[q], columns[q],
               (seconds() - began) * 1e3);
    }
    sqlite3_close(db);
    struct stat info;
    stat(naive_path, &info);
    printf("naive SQLite: %.1f MB\n", (double)info.st_size / 1e6);
    unlink(naive_path);
}

static struct options options_of(int argc, char **argv)
{
    struct options options = {.gpus = 10000, .days = 90, .db = "/tmp/bench_store.db"};
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        if (strcmp(argv[i], "--gpus") == 0)
            options.gpus = atoi(value), i++;
        else if (strcmp(argv[i], "--days") == 0)
            options.days = atoi(value), i++;
        else if (strcmp(argv[i], "--db") == 0)
            options.db = value, i++;
        else if (strcmp(argv[i], "--only") == 0)
            only = value, i++;
        else if (strcmp(argv[i], "--full") == 0)
            options.full = true;
        else if (strcmp(argv[i], "--hourly") == 0)
            options.hourly = true;
        else if (strcmp(argv[i], "--hours") == 0)
            options.hours = true;
        else if (strcmp(argv[i], "--keep") == 0)
            options.keep = true;
        else if (strcmp(argv[i], "--naive") == 0)
            options.naive = true;
        else {
            fprintf(stderr, "bench_store: no option %s\n", argv[i]);
            exit(2);
        }
    }
    if (options.gpus < 4 || options.days < 1)
        exit(2);
    return options;
}

static void disk(const struct options *options)
{
    struct stat info;
    if (strcmp(options->db, ":memory:") == 0 || stat(options->db, &info) != 0)
        return;
    double rows = (double)options->gpus * options->days * 24;
    printf("disk: %.1f MB, %.2f bytes a row\n", (double)info.st_size / 1e6,
           (double)info.st_size / rows);
    sqlite3 *db;
    sqlite3_stmt *get;
    sqlite3_open(options->db, &db);
    sqlite3_prepare_v2(db,
                       "SELECT 'blocks', sum(length(data)) FROM block UNION ALL "
                       "SELECT 'of days in progress', sum(length(data)) FROM segment UNION ALL "
                       "SELECT 'roll-up sums', sum(length(sums)) FROM day UNION ALL "
                       "SELECT 'roll-up nodes', sum(length(nodes)) FROM day UNION ALL "
                       "SELECT 'sums of hours', sum(length(data)) FROM hour_sums UNION ALL "
                       "SELECT 'names', sum(length(text)) FROM name",
                       -1, &get, NULL);
    while (sqlite3_step(get) == SQLITE_ROW)
        printf("  %-20s %6.2f bytes a row\n", (const char *)sqlite3_column_text(get, 0),
               sqlite3_column_double(get, 1) / rows);
    sqlite3_finalize(get);
    sqlite3_close(db);
}

static void forget(const char *db)
{
    const char *const ends[] = {"", "-wal", "-shm"};
    for (int i = 0; i < 3; i++) {
        struct strbuf path = {0};
        strbuf_addf(&path, "%s%s", db, ends[i]);
        unlink(path.text);
        strbuf_release(&path);
    }
}

int main(int argc, char **argv)
{
    struct fleet fleet = {.options = options_of(argc, argv)};
    const struct options *options = &fleet.options;
    bool memory = strcmp(options->db, ":memory:") == 0;
    struct store *store;
    printf("%d GPUs x %d d, %s rows, committed by the %s\n", options->gpus, options->days,
           options->full ? "full" : "13-column", options->hourly ? "hour" : "day");
    fleet.names = names_new();
    fleet_init(&fleet);
    if (!options->keep || access(options->db, F_OK) != 0) {
        forget(options->db);
        must(store_open(options->db, STORE_WRITE, fleet.names, &store, err));
        ingest(&fleet, store);
        if (!memory)
            store_close(store);
        disk(options);
    }
    struct names *names = memory ? fleet.names : names_new();
    if (!memory)
        must(store_open(options->db, STORE_READ, names, &store, err));
    reports(store, options->days);
    store_close(store);
    if (options->naive)
        naive_reports(options->days);
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    printf("peak memory %.0f MB\n", (double)usage.ru_maxrss / 1024);
    if (!options->keep && !memory)
        forget(options->db);
    return 0;
}
