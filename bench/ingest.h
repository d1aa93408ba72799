/* What the benchmarks of live ingest share: a fleet that sends ten metrics of each GPU every 30 s,
 * a journal to keep them in, and a ledger to book them into.
 *
 *     decoded    bytes to values
 *     kept       that, into the journal (packed, synced) and the latest values
 *     booked     journal to balanced rows of the hour in SQLite
 *     whole      kept, then booked: from bytes received to rows on disk
 *
 * An hour is booked once, by collect_run, on one thread. */
#ifndef GPUTALLY_BENCH_INGEST_H
#define GPUTALLY_BENCH_INGEST_H

#include <dirent.h>
#include <fcntl.h>

#include "collect/collect.h"
#include "fleet/config.h"
#include "measure.h"
#include "source/journal.h"
#include "util/error.h"

#define INGEST_STEPS 120
#define INGEST_STEP_MS 30000
#define INGEST_AT INT64_C(1790000000000)
#define INGEST_NODE_GPUS 8

static const char *const ingest_metrics[] = {
    "DCGM_FI_DEV_GPU_UTIL",          "DCGM_FI_PROF_SM_ACTIVE",
    "DCGM_FI_PROF_GR_ENGINE_ACTIVE", "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE",
    "DCGM_FI_PROF_DRAM_ACTIVE",      "DCGM_FI_DEV_FB_USED",
    "DCGM_FI_DEV_FB_FREE",           "DCGM_FI_DEV_POWER_USAGE",
    "DCGM_FI_DEV_XID_ERRORS",        "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION",
};
#define INGEST_METRICS (sizeof ingest_metrics / sizeof *ingest_metrics)

struct ingest {
    size_t gpus;
    struct span hour;
    uint64_t random;
    char folder[64], db[80];
    struct config *config;
    struct journal *journal; /* while it is open */
    struct live *live;
    uint64_t rows, samples;
    double journal_bytes;
    long resident_kib; /* with journal and live open, before booking */
};

static inline double ingest_noise(struct ingest *ingest)
{
    ingest->random = ingest->random * 6364136223846793005u + 1442695040888963407u;
    return (double)(ingest->random >> 40) / (double)(1 << 24);
}

/* As exporters round: ratios to six places, watts to three, the rest whole. */
static inline double ingest_value(struct ingest *ingest, size_t metric, size_t step)
{
    switch (metric) {
    case 0:
        return (double)(int)(60 + 40 * ingest_noise(ingest));
    case 5:
    case 6:
        return (double)(int)(40000 + 100 * ingest_noise(ingest));
    case 7:
        return (double)(int)(1e3 * (300 + 100 * ingest_noise(ingest))) / 1e3;
    case 8:
        return 0;
    case 9:
        return 1e9 + (double)step * 9e6 + (double)(int)(1e6 * ingest_noise(ingest));
    default:
        return (double)(int)(1e6 * (0.3 + 0.5 * ingest_noise(ingest))) / 1e6;
    }
}

static inline void ingest_begin(struct ingest *ingest, size_t gpus)
{
    *ingest = (struct ingest){.gpus = gpus, .random = 42, .config = config_new()};
    ingest->hour = (struct span){hour_floor(INGEST_AT), hour_floor(INGEST_AT) + HOUR_MS};
    snprintf(ingest->folder, sizeof ingest->folder, "bench-journal-XXXXXX");
    if (config_finish(ingest->config, NULL) != ERR_OK || !mkdtemp(ingest->folder))
        exit(1);
    snprintf(ingest->db, sizeof ingest->db, "%s.db", ingest->folder);
}

static inline void ingest_empty(const char *folder)
{
    DIR *dir = opendir(folder);
    for (struct dirent *entry; dir && (entry = readdir(dir));)
        unlinkat(dirfd(dir), entry->d_name, 0);
    if (dir)
        closedir(dir);
}

static inline void ingest_end(struct ingest *ingest)
{
    ingest_empty(ingest->folder);
    rmdir(ingest->folder);
    unlink(ingest->db);
    config_free(ingest->config);
}

static inline time_ms ingest_now(void *context)
{
    return ((const struct ingest *)context)->hour.to;
}

static inline void ingest_open(struct ingest *ingest, bool empty)
{
    if (empty)
        ingest_empty(ingest->folder);
    ingest->live = live_new();
    struct journal_options options = {
        .folder = ingest->folder, .live = ingest->live, .now = ingest_now, .context = ingest};
    if (journal_open(&options, &ingest->journal, NULL) != ERR_OK)
        exit(1);
}

static inline long ingest_resident_kib(void)
{
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file || fscanf(file, "%*d %ld", &pages) != 1)
        pages = 0;
    if (file)
        fclose(file);
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

static inline void ingest_close(struct ingest *ingest)
{
    struct journal_stats stats;
    journal_stats(ingest->journal, &stats);
    if (stats.samples)
        ingest->journal_bytes = (double)stats.bytes / (double)stats.samples;
    journal_close(ingest->journal);
    live_free(ingest->live);
}

/* The hour from the journal into an empty ledger. */
static inline void ingest_book(struct ingest *ingest)
{
    struct names *names = names_new();
    struct store *store;
    unlink(ingest->db);
    if (store_open(ingest->db, STORE_WRITE, names, &store, NULL) != ERR_OK)
        exit(1);
    struct source *source = journal_source_new(ingest->journal);
    struct collect_options options = {.sources = &source,
                                      .sources_n = 1,
                                      .store = store,
                                      .names = names,
                                      .engine = {.settings = &ingest->config->settings,
                                                 .prices = ingest->config->prices,
                                                 .owners = ingest->config->owners,
                                                 .threads = 1},
                                      .window = ingest->hour,
                                      .now = ingest->hour.to + 2 * HOUR_MS};
    struct collect_report report;
    if (collect_run(&options, &report, NULL) != ERR_OK)
        exit(1);
    ingest->rows = report.rows;
    ingest->samples = report.samples;
    source_free(source);
    store_close(store);
    names_free(names);
}

static inline void ingest_book_alone(void *context)
{
    struct ingest *ingest = context;
    ingest_open(ingest, false);
    ingest_book(ingest);
    ingest_close(ingest);
}

#endif
