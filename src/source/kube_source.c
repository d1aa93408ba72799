#include "source/kube_source.h"

#include <stdlib.h>
#include <time.h>

#define LOOK_MS 50

struct kube_source {
    struct source source;
    struct kube_access *access;
    struct kube_history *history;
    struct kube_log *log;
    struct kube_watch *watch;
    void *context;
    void (*note)(void *context, struct str text);
    void (*found)(void *context, const struct kube_target *targets, size_t n);
};

static enum err keep(void *context, time_ms t, struct str record, struct error *err)
{
    struct kube_source *s = context;
    return s->log ? kube_log_append(s->log, t, record, err) : ERR_OK;
}

static void tell_note(void *context, struct str text)
{
    struct kube_source *s = context;
    if (s->note)
        s->note(s->context, text);
}

static void tell_targets(void *context, const struct kube_target *targets, size_t n)
{
    struct kube_source *s = context;
    if (s->found)
        s->found(s->context, targets, n);
}

/* Before the first lists are there, hours would be booked without anybody in them. */
static enum err survey(struct source *source, struct span window, struct span *ret_extent,
                       double *ret_samples_an_hour, struct progress *progress, struct error *err)
{
    struct kube_source *s = (struct kube_source *)source;
    struct span known;
    time_ms until = clock_monotonic() + KUBE_SOURCE_WAIT_MS;
    while (!kube_history_extent(s->history, &known) && clock_monotonic() < until) {
        struct timespec pause = {0, LOOK_MS * 1000000};
        if (progress && progress_stopped(progress->stop))
            return error_set(err, ERR_STOPPED, "stopped while waiting for the Kubernetes API");
        nanosleep(&pause, NULL);
    }
    *ret_extent = window;
    if (kube_history_extent(s->history, &known) && known.from > window.from)
        ret_extent->from = known.from < window.to ? known.from : window.to;
    *ret_samples_an_hour = 0;
    return ERR_OK;
}

/* What the books lack because of how the API answers. */
static void note_missing(struct kube_source *s, struct intake *intake)
{
    static const enum kube_kind needed[] = {KUBE_KIND_NODE, KUBE_KIND_POD};
    static const struct str names[] = {{"nodes", 5}, {"pods", 4}};
    struct kube_watch_status status;
    kube_watch_status(s->watch, &status);
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++) {
        const struct kube_resource_status *r = &status.resources[needed[i]];
        struct strbuf text = {0};
        if (r->seen != TIME_MIN)
            continue;
        strbuf_addf(&text, "%.*s could not be listed yet%s%.200s", STR_ARG(names[i]),
                    r->text[0] ? ": " : "", r->text);
        intake_note(intake, NOTE_PARTIAL, str_of(s->source.id), 1, strbuf_str(&text));
        strbuf_release(&text);
    }
}

static enum err fetch(struct source *source, const struct fetch *what, struct intake *intake,
                      struct progress *progress, struct error *err)
{
    struct kube_source *s = (struct kube_source *)source;
    (void)progress, (void)err;
    kube_history_deliver(s->history, what->hours, intake);
    note_missing(s, intake);
    return ERR_OK;
}

static void free_source(struct source *source)
{
    struct kube_source *s = (struct kube_source *)source;
    kube_watch_stop(s->watch);
    kube_log_close(s->log);
    kube_history_free(s->history);
    kube_access_free(s->access);
    free(s->source.id);
    free(s);
}

enum err kube_source_new(const struct kube_source_options *options, struct source **ret,
                         struct error *err)
{
    static const struct source_ops ops = {
        .kind = "kubernetes", .survey = survey, .fetch = fetch, .free = free_source};
    struct kube_source *s = mem_zalloc(1, sizeof *s);
    s->source.ops = &ops;
    s->context = options->context;
    s->note = options->note;
    s->found = options->found;
    s->history = kube_history_new();
    enum err e = kube_access_new(&options->login, &s->access, err);
    if (e == ERR_OK && options->folder)
        e = kube_log_open(options->folder, s->history, &s->log, err);
    if (e == ERR_OK) {
        struct strbuf id = {0};
        struct kube_watch_sink sink = {
            .context = s, .record = keep, .note = tell_note, .targets = tell_targets};
        struct kube_watch_options watch = options->watch;
        watch.cluster = options->cluster;
        watch.access = s->access;
        watch.history = s->history;
        watch.sink = &sink;
        watch.targets = options->targets;
        watch.targets_n = options->targets_n;
        strbuf_addf(&id, "kubernetes:%s", kube_access_url(s->access));
        s->source.id = id.text;
        e = kube_watch_start(&watch, &s->watch, err);
    }
    if (e != ERR_OK) {
        free_source(&s->source);
        return e;
    }
    *ret = &s->source;
    return ERR_OK;
}

struct kube_watch *kube_source_watch(struct source *source)
{
    return ((struct kube_source *)source)->watch;
}

void kube_source_placed(struct source *source, struct str cluster,
                        void (*each)(void *context, const struct kube_placed *placed),
                        void *context)
{
    kube_history_placed(((struct kube_source *)source)->history, cluster, each, context);
}

const char *kube_source_warning(const struct source *source)
{
    return kube_access_warning(((const struct kube_source *)source)->access);
}

void kube_source_release(struct source *source, time_ms t)
{
    struct kube_source *s = (struct kube_source *)source;
    kube_history_forget(s->history, t - KUBE_HISTORY_REACH_MS);
    if (s->log)
        kube_log_release(s->log, t);
}
