/* A watch as a whole: its threads, what they share, and what it says of itself.
 *
 * A thread a resource, each with a connection of its own: nine requests that last for minutes, and
 * code that reads from top to bottom. (One thread over curl's multi handle would save a few hundred
 * kB and turn list, page, watch and pause into a state machine.) What they learn passes one lock,
 * so that history and journal see the same order. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <xxhash.h>

#include "source/kube_watch_impl.h"

const char *const kube_watch_state_names[] = {"listing", "watching", "waiting", "refused",
                                              "absent"};

const struct kube_resource kube_resources[] = {
    {KUBE_KIND_NODE, "/api/v1/nodes", NULL, "nodes", false},
    {KUBE_KIND_POD, "/api/v1/pods", NULL, "pods", false},
    {KUBE_KIND_NAMESPACE, "/api/v1/namespaces", NULL, "namespaces", false},
    {KUBE_KIND_REPLICASET, "/apis/apps/v1/replicasets", NULL, "replicasets.apps", true},
    {KUBE_KIND_JOB, "/apis/batch/v1/jobs", NULL, "jobs.batch", true},
    {KUBE_KIND_CLAIM, "resourceclaims", "resource.k8s.io", "resourceclaims.resource.k8s.io", false},
    {KUBE_KIND_SLICE, "resourceslices", "resource.k8s.io", "resourceslices.resource.k8s.io", false},
    {KUBE_KIND_QUOTA, "/api/v1/resourcequotas", NULL, "resourcequotas", false},
    {KUBE_KIND_PRIORITY, "/apis/scheduling.k8s.io/v1/priorityclasses", NULL,
     "priorityclasses.scheduling.k8s.io", false},
};
const size_t kube_resources_n = sizeof kube_resources / sizeof *kube_resources;

bool kube_stopped(const struct kube_watch *watch)
{
    return __atomic_load_n(&watch->stop, __ATOMIC_RELAXED) != 0;
}

bool kube_pause(struct kube_watch *watch, time_ms ms)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    time_ms t = (time_ms)until.tv_sec * 1000 + until.tv_nsec / 1000000 + ms;
    until = (struct timespec){t / 1000, t % 1000 * 1000000};
    pthread_mutex_lock(&watch->lock);
    while (!kube_stopped(watch) &&
           pthread_cond_timedwait(&watch->wake, &watch->lock, &until) != ETIMEDOUT)
        ;
    pthread_mutex_unlock(&watch->lock);
    return !kube_stopped(watch);
}

time_ms kube_backoff(time_ms first, int failures, uint64_t *random)
{
    time_ms pause = first;
    for (int i = 1; i < failures && pause < KUBE_BACKOFF_MAX_MS; i++)
        pause *= 2;
    if (pause > KUBE_BACKOFF_MAX_MS)
        pause = KUBE_BACKOFF_MAX_MS;
    *random = *random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return pause / 2 + (time_ms)((*random >> 33) % (uint64_t)(pause / 2 + 1));
}

void kube_note(struct kube_watch *watch, const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    struct str note = {text, n < 0 ? 0 : (size_t)n < sizeof text ? (size_t)n : sizeof text - 1};
    uint64_t hash = XXH3_64bits(note.p, note.n);
    bool told = !watch->sink.note;
    pthread_mutex_lock(&watch->lock);
    for (size_t i = 0; i < watch->notes_n && !told; i++)
        told = watch->notes[i] == hash;
    if (!told && watch->notes_n < KUBE_NOTES_MAX) {
        watch->notes[watch->notes_n++] = hash;
        watch->sink.note(watch->sink.context, note);
    }
    pthread_mutex_unlock(&watch->lock);
}

/* A record to the sink; called with the lock held. */
static enum err keep_record(void *context, time_ms t, struct str record, struct error *err)
{
    struct kube_watch *watch = context;
    enum err e =
        watch->sink.record ? watch->sink.record(watch->sink.context, t, record, err) : ERR_OK;
    if (e == ERR_OK)
        watch->records++;
    else
        watch->record_failures++;
    return e;
}

void kube_tell(struct kube_watch *watch, const struct kube_record *record)
{
    struct strbuf bytes = {0};
    struct error err;
    bool news = false;
    kube_record_write(&bytes, record);
    pthread_mutex_lock(&watch->lock);
    enum err e = kube_history_add(watch->options.history, strbuf_str(&bytes), &news, &err);
    if (e == ERR_OK && news)
        keep_record(watch, record->t, strbuf_str(&bytes), NULL);
    pthread_mutex_unlock(&watch->lock);
    if (e != ERR_OK)
        kube_note(watch, "an object of the Kubernetes API is left out: %s", err.text);
    strbuf_release(&bytes);
}

void kube_set_state(struct kube_follower *follower, enum kube_watch_state state, const char *text)
{
    pthread_mutex_lock(&follower->watch->lock);
    follower->status.state = state;
    if (text)
        snprintf(follower->status.text, sizeof follower->status.text, "%s", text);
    pthread_mutex_unlock(&follower->watch->lock);
}

/* ------------------------------------------------------------------ life */

static void set_default(time_ms *value, time_ms otherwise)
{
    if (*value <= 0)
        *value = otherwise;
}

static struct kube_watch *new_watch(const struct kube_watch_options *options)
{
    struct kube_watch *watch = mem_zalloc(1, sizeof *watch);
    pthread_condattr_t attributes;
    watch->options = *options;
    watch->sink = *options->sink;
    watch->access = (struct kube_access *)(uintptr_t)options->access;
    watch->cluster = str_dup(str_of(options->cluster ? options->cluster : ""));
    watch->synced = TIME_MIN;
    watch->seed = (uint64_t)clock_now() ^ (uint64_t)(uintptr_t)watch;
    set_default(&watch->options.watch_ms, 5 * 60 * 1000);
    set_default(&watch->options.connect_ms, 10 * 1000);
    set_default(&watch->options.idle_ms, 30 * 1000);
    set_default(&watch->options.backoff_ms, 500);
    set_default(&watch->options.seen_ms, 30 * 1000);
    set_default(&watch->options.relist_ms, 24 * 3600 * 1000);
    watch->options.page = options->page ? options->page : 500;
    pthread_mutex_init(&watch->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&watch->wake, &attributes);
    pthread_condattr_destroy(&attributes);
    kube_targets_copy(watch, options->targets, options->targets_n);
    watch->followers = mem_zalloc(kube_resources_n, sizeof *watch->followers);
    for (size_t i = 0; i < kube_resources_n; i++) {
        struct kube_follower *follower = &watch->followers[i];
        follower->watch = watch;
        follower->resource = &kube_resources[i];
        follower->random = watch->seed + i;
        follower->status.kind = kube_resources[i].kind;
        follower->status.seen = TIME_MIN;
        follower->t = follower->seen_told =
            kube_history_seen(options->history, kube_resources[i].kind, str_of(watch->cluster));
    }
    return watch;
}

enum err kube_watch_start(const struct kube_watch_options *options, struct kube_watch **ret,
                          struct error *err)
{
    struct kube_watch *watch = new_watch(options);
    enum err e = ERR_OK;
    kube_owners_resume(watch);
    for (size_t i = 0; e == ERR_OK && i < kube_resources_n; i++) {
        struct kube_follower *follower = &watch->followers[i];
        follower->started = pthread_create(&follower->thread, NULL, kube_follow, follower) == 0;
        if (!follower->started)
            e = error_set(err, ERR_LIMIT, "cannot start a thread for the Kubernetes API");
    }
    if (e == ERR_OK) {
        watch->keeper_started = pthread_create(&watch->keeper, NULL, kube_keep, watch) == 0;
        if (!watch->keeper_started)
            e = error_set(err, ERR_LIMIT, "cannot start a thread for the Kubernetes API");
    }
    if (e != ERR_OK) {
        kube_watch_stop(watch);
        return e;
    }
    *ret = watch;
    return ERR_OK;
}

void kube_watch_stop(struct kube_watch *watch)
{
    if (!watch)
        return;
    pthread_mutex_lock(&watch->lock);
    __atomic_store_n(&watch->stop, 1, __ATOMIC_RELAXED);
    pthread_cond_broadcast(&watch->wake);
    pthread_mutex_unlock(&watch->lock);
    for (size_t i = 0; i < kube_resources_n; i++)
        if (watch->followers[i].started)
            pthread_join(watch->followers[i].thread, NULL);
    if (watch->keeper_started)
        pthread_join(watch->keeper, NULL);
    kube_owners_release(watch);
    kube_targets_release(watch);
    free(watch->followers);
    free(watch->cluster);
    pthread_cond_destroy(&watch->wake);
    pthread_mutex_destroy(&watch->lock);
    free(watch);
}

void kube_watch_status(struct kube_watch *watch, struct kube_watch_status *ret)
{
    *ret = (struct kube_watch_status){.seen = TIME_MAX};
    pthread_mutex_lock(&watch->lock);
    for (size_t i = 0; i < kube_resources_n; i++) {
        enum kube_kind kind = kube_resources[i].kind;
        const struct kube_resource_status *status = &watch->followers[i].status;
        ret->resources[kind] = *status;
        if ((kind == KUBE_KIND_NODE || kind == KUBE_KIND_POD) && status->seen < ret->seen)
            ret->seen = status->seen;
    }
    ret->records = watch->records;
    ret->record_failures = watch->record_failures;
    ret->owners_asked = watch->owners_asked;
    ret->owners_known = watch->owners_known;
    ret->synced = watch->synced;
    pthread_mutex_unlock(&watch->lock);
    snprintf(ret->url, sizeof ret->url, "%s", kube_access_url(watch->access));
}
