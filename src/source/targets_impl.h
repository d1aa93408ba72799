/* What the files of targets share: targets.c (jobs, the list), targets_file.c (files of targets).
 */
#ifndef GPUTALLY_SOURCE_TARGETS_IMPL_H
#define GPUTALLY_SOURCE_TARGETS_IMPL_H

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "source/targets.h"

#define SCRAPE_INTERVAL_MIN_MS ((time_ms)1000)
#define ADDRESS_MAX ((size_t)512)

/* What one provider or file says. */
struct found {
    struct arena arena;
    struct target_found *targets;
    size_t n, room;
};
void found_add(struct found *found, struct str address, const struct label *labels, size_t n);
void target_found_release(struct found *found);

/* A file of targets, as it was when it was read last. */
struct listed_file {
    char *path;
    struct timespec changed;
    uint64_t size, inode;
    int missed; /* looks in a row at which it was not there */
    char *bad;  /* why it is not read; NULL: it is */
    struct found found;
};
/* `files:` entry of a job: a path or a pattern. */
struct pattern {
    char *path;
    struct listed_file *files;
    size_t n, room;
};
/* Look at the files again; true where any says something else than before. Adds to files,
 * bad_files and bad of the stats. */
bool pattern_look(struct pattern *pattern, struct targets_stats *stats);
void pattern_each(const struct pattern *pattern,
                  void (*each)(void *context, const struct found *found), void *context);
void pattern_release(struct pattern *pattern);

/* host:port or host, without scheme, path, user and blanks. */
bool address_is_good(struct str address);
bool scheme_is_good(struct str scheme);

struct provider {
    char *name;
    struct found found;
};
struct job {
    struct target_job public;
    char *scheme, *path;
    struct found fixed;
    struct pattern *patterns;
    size_t patterns_n, patterns_room;
    struct provider *providers;
    size_t providers_n, providers_room;
};
struct targets {
    atomic_int refs;      /* the owner's, and one for each list */
    pthread_mutex_t lock; /* everything */
    struct job *jobs;
    size_t jobs_n;
    const struct target_list *list; /* of `changed` */
    bool changed;
    time_ms refreshed; /* monotonic; 0: never */
    struct targets_stats stats;
};

#endif
