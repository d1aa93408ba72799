/* Jobs keep what each provider said last; the list is made anew from all of it where anything
 * changed, and given out counted, so that the scraper never waits for a file. */
#include "source/targets.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <xxhash.h>

#include "source/targets_impl.h"

struct list {
    struct target_list public;
    atomic_int refs;
    struct targets *targets; /* one reference: jobs live there */
    struct arena arena;
};

/* ---- found targets */

void found_add(struct found *found, struct str address, const struct label *labels, size_t n)
{
    struct target_found *kept;
    mem_reserve(found->targets, found->n, found->room, 1);
    kept = &found->targets[found->n++];
    struct label *copies = arena_alloc(&found->arena, (n + 1) * sizeof *copies);
    for (size_t i = 0; i < n; i++)
        copies[i] = (struct label){str_keep(&found->arena, labels[i].name),
                                   str_keep(&found->arena, labels[i].value)};
    *kept = (struct target_found){str_keep(&found->arena, address), copies, n};
}

void target_found_release(struct found *found)
{
    arena_release(&found->arena);
    free(found->targets);
    *found = (struct found){0};
}

/* ---- life */

static void job_release(struct job *job)
{
    free(job->public.name);
    http_site_free(job->public.site);
    free(job->scheme);
    free(job->path);
    target_found_release(&job->fixed);
    for (size_t i = 0; i < job->patterns_n; i++)
        pattern_release(&job->patterns[i]);
    free(job->patterns);
    for (size_t i = 0; i < job->providers_n; i++) {
        free(job->providers[i].name);
        target_found_release(&job->providers[i].found);
    }
    free(job->providers);
}

static void targets_drop(struct targets *targets)
{
    if (atomic_fetch_sub(&targets->refs, 1) != 1)
        return;
    for (size_t i = 0; i < targets->jobs_n; i++)
        job_release(&targets->jobs[i]);
    free(targets->jobs);
    pthread_mutex_destroy(&targets->lock);
    free(targets);
}

void target_list_release(const struct target_list *public)
{
    struct list *list = (struct list *)(uintptr_t) public;
    if (!list || atomic_fetch_sub(&list->refs, 1) != 1)
        return;
    arena_release(&list->arena);
    targets_drop(list->targets);
    free(list);
}

/* The addresses of a job that stand in the configuration. */
static enum err fixed_targets(struct job *job, const struct scrape_job *from, struct error *err)
{
    for (size_t i = 0; i < from->static_targets_n; i++) {
        struct str address = str_of(from->static_targets[i]);
        if (!address_is_good(address))
            return error_set(err, ERR_CONFIG, "scrape job %s: '%.*s' is no target: give HOST:PORT",
                             from->name, STR_ARG(address));
        found_add(&job->fixed, address, from->static_labels, from->static_labels_n);
    }
    return ERR_OK;
}

static enum err make_job(struct job *job, const struct scrape_job *from, struct error *err)
{
    struct http_site_options site = from->site;
    struct target_job *public = &job->public;
    if (!from->name || !*from->name)
        return error_set(err, ERR_CONFIG, "a scrape job has no name");
    public->name = str_dup(str_of(from->name));
    public->interval_ms = from->interval_ms ? from->interval_ms : SCRAPE_INTERVAL_MS;
    public->timeout_ms = from->timeout_ms ? from->timeout_ms : SCRAPE_TIMEOUT_MS;
    public->body_max = from->body_max ? from->body_max : SCRAPE_BODY_MAX;
    if (public->interval_ms < SCRAPE_INTERVAL_MIN_MS || public->interval_ms > HOUR_MS)
        return error_set(err, ERR_CONFIG, "scrape job %s: an interval is between 1 s and 1 h",
                         from->name);
    if (public->timeout_ms > public->interval_ms)
    public->timeout_ms = public->interval_ms;
    job->scheme = str_dup(str_of(from->scheme ? from->scheme : "http"));
    job->path = str_dup(str_of(from->path ? from->path : "/metrics"));
    if (!scheme_is_good(str_of(job->scheme)) || job->path[0] != '/')
        return error_set(err, ERR_CONFIG,
                         "scrape job %s: the scheme is http or https, the path begins with /",
                         from->name);
    site.url = "http://target";
    if (site.connect_timeout_ms <= 0 || site.connect_timeout_ms > public->timeout_ms)
        site.connect_timeout_ms = public->timeout_ms;
    enum err e = http_site_new(&site, &public->site, err);
    if (e != ERR_OK) {
        error_prefix(err, "scrape job %s", from->name);
        return e;
    }
    for (size_t i = 0; i < from->files_n; i++) {
        struct pattern pattern = {.path = str_dup(str_of(from->files[i]))};
        mem_push(job->patterns, job->patterns_n, job->patterns_room, pattern);
    }
    return fixed_targets(job, from, err);
}

enum err targets_new(const struct scrape_job *jobs, size_t n, struct targets **ret,
                     struct error *err)
{
    struct targets *targets = mem_zalloc(1, sizeof *targets);
    enum err e = ERR_OK;
    atomic_init(&targets->refs, 1);
    pthread_mutex_init(&targets->lock, NULL);
    targets->jobs = mem_zalloc(n + 1, sizeof *targets->jobs);
    targets->changed = true;
    for (size_t i = 0; i < n && e == ERR_OK; i++) {
        targets->jobs_n++;
        e = make_job(&targets->jobs[i], &jobs[i], err);
        for (size_t other = 0; other < i && e == ERR_OK; other++)
            if (strcmp(jobs[i].name, jobs[other].name) == 0)
                e = error_set(err, ERR_CONFIG, "there are two scrape jobs of the name %s",
                              jobs[i].name);
    }
    if (e != ERR_OK) {
        targets_drop(targets);
        return e;
    }
    targets_refresh(targets);
    *ret = targets;
    return ERR_OK;
}

void targets_free(struct targets *targets)
{
    if (!targets)
        return;
    target_list_release(targets->list);
    targets->list = NULL;
    targets_drop(targets);
}

/* ---- changes */

static struct job *job_named(struct targets *targets, const char *name)
{
    for (size_t i = 0; i < targets->jobs_n; i++)
        if (strcmp(targets->jobs[i].public.name, name) == 0)
            return &targets->jobs[i];
    return NULL;
}

static struct provider *provider_named(struct job *job, const char *name)
{
    for (size_t i = 0; i < job->providers_n; i++)
        if (strcmp(job->providers[i].name, name) == 0)
            return &job->providers[i];
    struct provider provider = {.name = str_dup(str_of(name))};
    mem_push(job->providers, job->providers_n, job->providers_room, provider);
    return &job->providers[job->providers_n - 1];
}

enum err targets_set(struct targets *targets, const char *name, const char *provider_name,
                     const struct target_found *found, size_t n, struct error *err)
{
    enum err e = ERR_OK;
    size_t bad = 0;
    pthread_mutex_lock(&targets->lock);
    struct job *job = job_named(targets, name);
    if (!job) {
        pthread_mutex_unlock(&targets->lock);
        return error_set(err, ERR_NOT_FOUND, "no scrape job has the name %s", name);
    }
    struct provider *provider = provider_named(job, provider_name);
    target_found_release(&provider->found);
    for (size_t i = 0; i < n && provider->found.n < TARGETS_MAX; i++) {
        if (address_is_good(found[i].address))
            found_add(&provider->found, found[i].address, found[i].labels, found[i].labels_n);
        else
            bad++;
    }
    if (provider->found.n + bad < n)
        e = error_set(err, ERR_LIMIT, "%s found %zu targets for job %s, the limit is %u",
                      provider_name, n, name, TARGETS_MAX);
    targets->changed = true;
    pthread_mutex_unlock(&targets->lock);
    return e;
}

void targets_refresh(struct targets *targets)
{
    time_ms now = clock_monotonic();
    pthread_mutex_lock(&targets->lock);
    if (targets->refreshed && now - targets->refreshed < TARGETS_REFRESH_MS) {
        pthread_mutex_unlock(&targets->lock);
        return;
    }
    targets->refreshed = now;
    targets->stats.files = targets->stats.bad_files = 0;
    targets->stats.bad[0] = 0;
    for (size_t i = 0; i < targets->jobs_n; i++)
        for (size_t k = 0; k < targets->jobs[i].patterns_n; k++)
            targets->changed |= pattern_look(&targets->jobs[i].patterns[k], &targets->stats);
    pthread_mutex_unlock(&targets->lock);
}

/* ---- the list */

struct making {
    struct list *list;
    const struct job *job;
    struct target *targets;
    size_t n, room;
};

static bool is_own(struct str name)
{
    return str_eq(name, STR("pod")) || str_eq(name, STR("namespace")) ||
           str_eq(name, STR("container"));
}

static int label_order(const void *a, const void *b)
{
    return str_cmp(((const struct label *)a)->name, ((const struct label *)b)->name);
}

static uint64_t id_of(const struct target *target)
{
    uint64_t id = XXH3_64bits(target->url, strlen(target->url));
    const struct label *const lists[] = {target->labels, target->own};
    const size_t n[] = {target->labels_n, target->own_n};
    for (int list = 0; list < 2; list++)
        for (size_t i = 0; i < n[list]; i++) {
            id = XXH3_64bits_withSeed(lists[list][i].name.p, lists[list][i].name.n, id);
            id = XXH3_64bits_withSeed(lists[list][i].value.p, lists[list][i].value.n, id);
        }
    return id;
}

/* Labels as they are given to series: job, instance and those of the target that are not empty. */
static void target_labels(struct making *making, const struct target_found *found,
                          struct target *target)
{
    struct arena *arena = &making->list->arena;
    struct str instance = labels_get(found->labels, found->labels_n, STR("instance"));
    target->labels = arena_alloc(arena, (found->labels_n + 2) * sizeof *target->labels);
    target->own = arena_alloc(arena, (found->labels_n + 1) * sizeof *target->own);
    target->instance = (char *)(uintptr_t)str_keep(arena, instance.n ? instance : found->address).p;
    target->labels[target->labels_n++] =
        (struct label){STR("job"), str_of(making->job->public.name)};
    target->labels[target->labels_n++] = (struct label){STR("instance"), str_of(target->instance)};
    for (size_t i = 0; i < found->labels_n && i < TARGETS_LABELS_MAX; i++) {
        struct str name = found->labels[i].name, value = found->labels[i].value;
        if (value.n == 0 || str_starts(name, STR("__")) || str_eq(name, STR("job")) ||
            str_eq(name, STR("instance")))
            continue;
        struct label kept = {str_keep(arena, name), str_keep(arena, value)};
        if (is_own(name))
            target->own[target->own_n++] = kept;
        else
            target->labels[target->labels_n++] = kept;
    }
    qsort(target->labels, target->labels_n, sizeof *target->labels, label_order);
    qsort(target->own, target->own_n, sizeof *target->own, label_order);
}

static void add_targets(void *context, const struct found *found)
{
    struct making *making = context;
    for (size_t i = 0; i < found->n && making->n < TARGETS_MAX; i++) {
        const struct target_found *from = &found->targets[i];
        struct str scheme = labels_get(from->labels, from->labels_n, STR("__scheme__"));
        struct str path = labels_get(from->labels, from->labels_n, STR("__metrics_path__"));
        struct target target = {.job = &making->job->public};
        struct strbuf url = {0};
        if (!scheme_is_good(scheme))
            scheme = str_of(making->job->scheme);
        if (path.n == 0 || path.p[0] != '/')
            path = str_of(making->job->path);
        strbuf_addf(&url, "%.*s://%.*s%.*s", STR_ARG(scheme), STR_ARG(from->address),
                    STR_ARG(path));
        target.url = (char *)(uintptr_t)str_keep(&making->list->arena, strbuf_str(&url)).p;
        strbuf_release(&url);
        target_labels(making, from, &target);
        target.id = id_of(&target);
        mem_push(making->targets, making->n, making->room, target);
    }
}

static int url_order(const void *a, const void *b)
{
    const struct target *const *x = a, *const *y = b;
    int order = strcmp((*x)->url, (*y)->url);
    if (order == 0)
        order = strcmp((*x)->job->name, (*y)->job->name);
    return order ? order : (*x > *y) - (*x < *y); /* who said it first */
}

static int id_order(const void *a, const void *b)
{
    const struct target *x = a, *y = b;
    return (x->id > y->id) - (x->id < y->id);
}

/* One target for each job and URL. */
static void drop_copies(struct making *making, struct list *list)
{
    const struct target **sorted = mem_zalloc(making->n + 1, sizeof *sorted);
    struct target *kept = arena_alloc(&list->arena, (making->n + 1) * sizeof *kept);
    size_t n = 0;
    for (size_t i = 0; i < making->n; i++)
        sorted[i] = &making->targets[i];
    qsort(sorted, making->n, sizeof *sorted, url_order);
    for (size_t i = 0; i < making->n; i++)
        if (i == 0 || sorted[i]->job != sorted[i - 1]->job ||
            strcmp(sorted[i]->url, sorted[i - 1]->url) != 0)
            kept[n++] = *sorted[i];
    qsort(kept, n, sizeof *kept, id_order);
    list->public.targets = kept;
    list->public.n = n;
    free(sorted);
}

/* Lock held. */
static struct list *make_list(struct targets *targets)
{
    struct list *list = mem_zalloc(1, sizeof *list);
    struct making making = {.list = list};
    atomic_init(&list->refs, 1);
    list->targets = targets;
    atomic_fetch_add(&targets->refs, 1);
    for (size_t i = 0; i < targets->jobs_n; i++) {
        const struct job *job = making.job = &targets->jobs[i];
        add_targets(&making, &job->fixed);
        for (size_t k = 0; k < job->patterns_n; k++)
            pattern_each(&job->patterns[k], add_targets, &making);
        for (size_t k = 0; k < job->providers_n; k++)
            add_targets(&making, &job->providers[k].found);
    }
    drop_copies(&making, list);
    free(making.targets);
    list->public.version = 1;
    for (size_t i = 0; i < list->public.n; i++)
        list->public.version = XXH3_64bits_withSeed(&list->public.targets[i].id, sizeof(uint64_t),
                                                    list->public.version);
    return list;
}

const struct target_list *targets_list(struct targets *targets)
{
    pthread_mutex_lock(&targets->lock);
    if (targets->changed) {
        target_list_release(targets->list);
        targets->list = &make_list(targets)->public;
        targets->changed = false;
        targets->stats.targets = targets->list->n;
    }
    struct list *list = (struct list *)(uintptr_t)targets->list;
    atomic_fetch_add(&list->refs, 1);
    pthread_mutex_unlock(&targets->lock);
    return &list->public;
}

void targets_stats(struct targets *targets, struct targets_stats *ret)
{
    pthread_mutex_lock(&targets->lock);
    *ret = targets->stats;
    pthread_mutex_unlock(&targets->lock);
}
