/* A laboratory for journals: a folder of its own, samples that are written down when they are
 * acknowledged, and a reader that says which of them are there. Include it in one file of a
 * program.
 */
#ifndef GPUTALLY_TESTS_JOURNAL_LAB_H
#define GPUTALLY_TESTS_JOURNAL_LAB_H

#include "unit.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "source/journal.h"
#include "source/journal_io.h"

#define LAB_SERIES 64
#define LAB_T0 INT64_C(1790000000000)
#define LAB_AGE_MS (36525 * DAY_MS) /* age cap unless a test is about it: T0 is long ago */

/* Value of the sample of a series at a time: tells samples apart that are mixed up. */
static inline double lab_value(unsigned series, time_ms t)
{
    return (double)series * 1000000 + (double)((t - LAB_T0) / 1000 % 1000000);
}

struct lab {
    char folder[64];
};

static inline void lab_remove(const char *folder)
{
    DIR *dir = opendir(folder);
    for (struct dirent *entry; dir && (entry = readdir(dir));)
        unlinkat(dirfd(dir), entry->d_name, 0);
    if (dir)
        closedir(dir);
    rmdir(folder);
}

static inline void lab_begin(struct lab *lab)
{
    const char *base = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp"; /* many fsyncs */
    snprintf(lab->folder, sizeof lab->folder, "%s/journalXXXXXX", base);
    assert_non_null(mkdtemp(lab->folder));
}

static inline void lab_end(struct lab *lab)
{
    lab_remove(lab->folder);
}

static inline struct journal *lab_open(const struct lab *lab, struct journal_options options)
{
    struct journal *journal;
    struct error err = {0};
    options.folder = lab->folder;
    if (!options.cap_age_ms)
        options.cap_age_ms = LAB_AGE_MS;
    if (journal_open(&options, &journal, &err) != ERR_OK)
        fail_msg("%s", err.text);
    return journal;
}

/* Series i: a signal of GPUs, or a record where `kube`. */
static inline struct journal_series lab_series(struct journal_batch *batch, unsigned i, bool kube)
{
    char number[16];
    struct journal_series series;
    const char *why = "";
    snprintf(number, sizeof number, "%u", i);
    struct label labels[] = {
        {STR("UUID"), str_of(number)},
        {STR("__name__"), kube ? STR("kube_node_info") : STR("DCGM_FI_DEV_GPU_UTIL")},
        {STR("node"), STR("gpu-1")}};
    struct journal_key key = {i + 1, kube};
    journal_find(batch, &key, 1, &series);
    if (series.number == JOURNAL_UNKNOWN && !journal_define(batch, key, labels, 3, &series, &why))
        fail_msg("%s", why);
    return series;
}

/* One sample of each of n series from `from` on at t, committed. */
static inline enum err lab_put(struct journal_batch *batch, unsigned from, unsigned n, time_ms t,
                               bool sync)
{
    journal_begin(batch);
    for (unsigned i = from; i < from + n; i++) {
        double v = lab_value(i, t);
        journal_add(batch, lab_series(batch, i, false), &t, &v, 1);
    }
    return journal_commit(batch, sync, NULL);
}

/* What is read back. */
struct lab_seen {
    struct {
        unsigned series;
        time_ms t;
    } * samples;
    size_t n, room;
    size_t wrong; /* samples whose value is not theirs */
    struct journal_read_stats stats;
};

static uint32_t lab_on_series(void *context, const struct label *labels, size_t n)
{
    (void)context;
    assert_int_equal(labels_get(labels, n, STR("node")).n, 5);
    return (uint32_t)strtoul(labels_get(labels, n, STR("UUID")).p, NULL, 10);
}

static void lab_on_samples(void *context, uint32_t number, const time_ms *t, const double *v,
                           size_t n)
{
    struct lab_seen *seen = context;
    for (size_t i = 0; i < n; i++) {
        assert_true(i == 0 || t[i] > t[i - 1]);
        mem_reserve(seen->samples, seen->n, seen->room, 1);
        seen->samples[seen->n].series = number;
        seen->samples[seen->n++].t = t[i];
        seen->wrong += v[i] != lab_value(number, t[i]); /* looked at by lab_read */
    }
}

static inline struct lab_seen lab_read(struct journal *journal, time_ms from, time_ms to)
{
    struct lab_seen seen = {0};
    struct journal_read read = {
        .kube = {from, to}, .gpu = {from, to}, .sink = {&seen, lab_on_series, lab_on_samples}};
    assert_int_equal(journal_read(journal, &read, &seen.stats, NULL), ERR_OK);
    assert_int_equal(seen.wrong, 0);
    return seen;
}

static inline bool lab_has(const struct lab_seen *seen, unsigned series, time_ms t)
{
    for (size_t i = 0; i < seen->n; i++)
        if (seen->samples[i].series == series && seen->samples[i].t == t)
            return true;
    return false;
}

/* The only segment's path. */
static inline void lab_segment(const struct lab *lab, char path[200])
{
    DIR *dir = opendir(lab->folder);
    path[0] = 0;
    for (struct dirent *entry; (entry = readdir(dir));)
        if (strstr(entry->d_name, ".journal"))
            snprintf(path, 200, "%s/%.60s", lab->folder, entry->d_name);
    closedir(dir);
    assert_true(path[0]);
}

static inline char *lab_file(const char *path, size_t *ret_n)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    fseek(file, 0, SEEK_END);
    *ret_n = (size_t)ftell(file);
    rewind(file);
    char *bytes = malloc(*ret_n + 1);
    assert_int_equal(fread(bytes, 1, *ret_n, file), *ret_n);
    fclose(file);
    return bytes;
}

static inline void lab_write(const char *path, const char *bytes, size_t n)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, n, file), n);
    fclose(file);
}

#endif
