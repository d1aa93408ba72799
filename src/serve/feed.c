#include "serve/feed_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "collect/collect.h"
#include "source/kube_file.h"
#include "source/prometheus_live.h"

#define JOB "gpu" /* of scrapes, unless the entry names one */

/* ---- what runs by itself ---- */

static void on_lost(void *context, const struct journal_loss *loss)
{
    struct feed *feed = context;
    char from[TIME_TEXT_MAX], to[TIME_TEXT_MAX];
    log_line(feed->options.log, LOG_ERROR, "samples were dropped before they were booked",
             log_text("cluster", str_of(feed->cluster)), log_text("why", str_of(loss->why)),
             log_text("from", str_of(time_format(loss->times.from, from))),
             log_text("to", str_of(time_format(loss->times.to, to))),
             log_number("samples", (int64_t)loss->samples));
}

static void on_note(void *context, struct str text)
{
    struct feed *feed = context;
    log_line(feed->options.log, LOG_WARN, "kubernetes", log_text("cluster", str_of(feed->cluster)),
             log_text("note", text));
}

static void on_found(void *context, const struct kube_target *pods, size_t n)
{
    struct feed *feed = context;
    struct error err = {0};
    struct target_found *found = mem_zalloc(n + 1, sizeof *found);
    struct label *labels = mem_zalloc(n * 3 + 1, sizeof *labels);
    for (size_t i = 0; i < n; i++) {
        struct label *own = &labels[i * 3];
        own[0] = (struct label){STR("node"), pods[i].node};
        own[1] = (struct label){STR("namespace"), pods[i].namespace};
        own[2] = (struct label){STR("pod"), pods[i].pod};
        found[i] = (struct target_found){.address = pods[i].address, .labels = own, .labels_n = 3};
    }
    if (targets_set(feed->targets, JOB, "kubernetes", found, n, &err))
        log_line(feed->options.log, LOG_WARN, "targets", log_text("error", str_of(err.text)));
    free(found);
    free(labels);
}

/* ---- making it ---- */

static struct http_site_options site_of(const struct prometheus_options *login)
{
    return (struct http_site_options){
        .bearer_token_file = login->bearer_token_file,
        .user = login->user,
        .password_file = login->password_file,
        .client_cert = login->client_cert,
        .client_key = login->client_key,
        .ca_file = login->ca_file,
        .insecure = login->insecure,
        .headers = login->headers,
        .headers_n = login->headers_n,
        .proxy = login->proxy,
        .connect_timeout_ms = login->connect_timeout_ms,
        .idle_timeout_ms = login->idle_timeout_ms,
    };
}

static struct scrape_job job_of(const struct source_config *config)
{
    return (struct scrape_job){.name = config->job ? config->job : JOB,
                               .scheme = config->scheme,
                               .path = config->path,
                               .interval_ms = config->interval_ms,
                               .timeout_ms = config->timeout_ms,
                               .site = site_of(&config->prometheus),
                               .static_targets = config->targets,
                               .static_targets_n = config->targets_n,
                               .static_labels = config->labels,
                               .static_labels_n = config->labels_n,
                               .files = config->files,
                               .files_n = config->files_n};
}

static enum err check_login(const struct source_config *config, struct error *err)
{
    struct kube_access *access;
    enum err code = kube_access_new(&config->login, &access, err);
    if (!code)
        kube_access_free(access);
    return code;
}

/* A job by itself, so that what is wrong with it has its place. Files are looked at later. */
static enum err check_job(const struct source_config *config, const struct scrape_job *job,
                          struct error *err)
{
    struct scrape_job bare = *job;
    struct targets *targets;
    struct error why = {0};
    bare.files_n = 0;
    if (targets_new(&bare, 1, &targets, &why))
        return config_error(config->at, err, "%s", why.text);
    targets_free(targets);
    return ERR_OK;
}

static enum err add_prometheus(struct feed *feed, const struct source_config *config,
                               struct source **ret, struct error *err)
{
    struct prometheus_live *live = NULL;
    enum err code = prometheus_source_new(&config->prometheus, ret, err);
    if (!code)
        code = prometheus_live_new(&config->prometheus, config->cluster, feed->options.live, &live,
                                   err);
    if (live)
        mem_push(feed->lives, feed->lives_n, feed->lives_room, live);
    return code;
}

static enum err add(struct feed *feed, const struct source_config *config, struct scrape_job *jobs,
                    size_t *jobs_n, struct error *err)
{
    struct source *source = NULL;
    enum err code = ERR_OK;
    switch (config->kind) {
    case SOURCE_KIND_PROMETHEUS:
        code = add_prometheus(feed, config, &source, err);
        break;
    case SOURCE_KIND_KUBE_JSON:
        code = kube_file_source_new(config->files, config->files_n,
                                    *config->cluster ? config->cluster : NULL, &source, err);
        break;
    case SOURCE_KIND_SCRAPE:
        jobs[*jobs_n] = job_of(config);
        code = check_job(config, &jobs[(*jobs_n)++], err);
        feed->from_kube |= config->from_kube;
        feed->journaled = true;
        break;
    case SOURCE_KIND_REMOTE_WRITE:
        feed->receiver = config;
        feed->journaled = true;
        break;
    case SOURCE_KIND_KUBERNETES:
        feed->kube = config;
        code = check_login(config, err);
        break;
    case SOURCE_KINDS:
        break;
    }
    if (source)
        mem_push(feed->sources, feed->sources_n, feed->sources_room, source);
    if (code && config->at.file && (!err || code != ERR_CONFIG)) {
        struct error inner = err ? *err : (struct error){0};
        config_error(config->at, err, "%s", inner.text);
    }
    return code;
}

static enum err add_all(struct feed *feed, struct error *err)
{
    const struct serve_config *serve = feed->options.serve;
    struct scrape_job *jobs = mem_zalloc(serve->sources_n + 1, sizeof *jobs);
    size_t jobs_n = 0;
    enum err code = ERR_OK;
    for (size_t i = 0; i < serve->sources_n && !code; i++) {
        const struct source_config *config = &serve->sources[i];
        if (strcmp(config->book, feed->options.book) != 0)
            continue;
        if (*config->cluster)
            feed->cluster = config->cluster;
        if (!feed->first)
            feed->first = config;
        code = add(feed, config, jobs, &jobs_n, err);
    }
    if (!code && jobs_n)
        code = targets_new(jobs, jobs_n, &feed->targets, err);
    if (!code && feed->from_kube && !feed->kube)
        code = error_set(err, ERR_CONFIG,
                         "cluster %s: exporters: kubernetes needs a source of kind kubernetes too",
                         feed->options.book);
    free(jobs);
    return code;
}

enum err feed_new(const struct feed_options *options, struct feed **ret, struct error *err)
{
    struct feed *feed = mem_zalloc(1, sizeof *feed);
    feed->options = *options;
    feed->cluster = "";
    pthread_rwlock_init(&feed->lock, NULL);
    enum err code = add_all(feed, err);
    feed->label = (struct label){STR("cluster"), str_of(feed->cluster)};
    feed->name = str_dup(str_of(feed->sources_n ? feed->sources[0]->id : feed_kind(feed)));
    if (code) {
        feed_free(feed);
        return code;
    }
    *ret = feed;
    return ERR_OK;
}

/* ---- opening ---- */

static time_ms fleet_now(void *context)
{
    (void)context;
    return clock_now();
}

/* FOLDER/BOOK/what; books have names that are no file names. */
static void folder_of(const struct feed *feed, const char *what, struct strbuf *ret)
{
    strbuf_addf(ret, "%s", feed->options.serve->journal);
    mkdir(ret->text, 0700);
    strbuf_addc(ret, '/');
    for (const char *p = *feed->options.book ? feed->options.book : "default"; *p; p++) {
        bool plain = (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') ||
                     (*p >= '0' && *p <= '9') || *p == '-' || *p == '_';
        if (plain)
            strbuf_addc(ret, *p);
        else
            strbuf_addf(ret, "%%%02x", (unsigned char)*p);
    }
    mkdir(ret->text, 0700);
    strbuf_addf(ret, "/%s", what);
}

static enum err open_journal(struct feed *feed, struct error *err)
{
    struct strbuf folder = {0};
    folder_of(feed, "samples", &folder);
    struct journal_options options = {.folder = folder.text,
                                      .name = feed->cluster,
                                      .cap_bytes = feed->options.serve->journal_cap_bytes,
                                      .live = feed->options.live,
                                      .lost = on_lost,
                                      .context = feed,
                                      .now = fleet_now};
    enum err code = journal_open(&options, &feed->journal, err);
    strbuf_release(&folder);
    return code;
}

static enum err open_scraper(struct feed *feed, struct error *err)
{
    struct scrape_options options = {.targets = feed->targets,
                                     .journal = feed->journal,
                                     .labels = &feed->label,
                                     .labels_n = *feed->cluster ? 1 : 0,
                                     .now = fleet_now,
                                     .speed = clock_speed()};
    return scraper_start(&options, &feed->scraper, err);
}

static void open_push(struct feed *feed)
{
    struct push_route route = {.tenant = str_of(feed->receiver->tenant),
                               .journal = feed->journal,
                               .labels = &feed->label,
                               .labels_n = *feed->cluster ? 1 : 0,
                               .drop = feed->receiver->drop,
                               .drop_n = feed->receiver->drop_n};
    struct push_options options = {.routes = &route, .routes_n = 1, .now = fleet_now};
    feed->push = push_new(&options);
}

static enum err open_watch(struct feed *feed, struct error *err)
{
    struct strbuf folder = {0};
    size_t selectors_n = 0;
    const struct kube_target_selector *selectors = kube_target_defaults(&selectors_n);
    folder_of(feed, "kubernetes", &folder);
    struct kube_source_options options = {.login = feed->kube->login,
                                          .cluster = feed->cluster,
                                          .folder = folder.text,
                                          .targets = selectors,
                                          .targets_n = feed->from_kube ? selectors_n : 0,
                                          .context = feed,
                                          .note = on_note,
                                          .found = feed->from_kube ? on_found : NULL};
    enum err code = kube_source_new(&options, &feed->watch, err);
    strbuf_release(&folder);
    const char *warning = code ? NULL : kube_source_warning(feed->watch);
    if (warning)
        on_note(feed, str_of(warning));
    return code;
}

static enum err open_parts(struct feed *feed, struct error *err)
{
    enum err code = ERR_OK;
    if (feed->journaled && !feed->journal) {
        code = open_journal(feed, err);
        if (!code)
            mem_push(feed->sources, feed->sources_n, feed->sources_room,
                     journal_source_new(feed->journal));
    }
    if (!code && feed->receiver && !feed->push)
        open_push(feed);
    if (!code && feed->targets && !feed->scraper)
        code = open_scraper(feed, err);
    if (!code && feed->kube && !feed->watch) {
        code = open_watch(feed, err);
        if (!code)
            mem_push(feed->sources, feed->sources_n, feed->sources_room, feed->watch);
    }
    return code;
}

enum err feed_open(struct feed *feed, struct error *err)
{
    if (feed->open)
        return ERR_OK;
    pthread_rwlock_wrlock(&feed->lock);
    enum err code = open_parts(feed, err);
    feed->open = !code;
    pthread_rwlock_unlock(&feed->lock);
    return code;
}

void feed_free(struct feed *feed)
{
    if (!feed)
        return;
    if (feed->push)
        push_stop(feed->push);
    pthread_rwlock_wrlock(&feed->lock); /* writes in hand have ended */
    scraper_stop(feed->scraper);
    push_free(feed->push);
    feed->push = NULL;
    pthread_rwlock_unlock(&feed->lock);
    for (size_t i = 0; i < feed->sources_n; i++)
        source_free(feed->sources[i]);
    free(feed->sources);
    for (size_t i = 0; i < feed->lives_n; i++)
        prometheus_live_free(feed->lives[i]);
    free(feed->lives);
    journal_close(feed->journal);
    targets_free(feed->targets);
    free(feed->name);
    pthread_rwlock_destroy(&feed->lock);
    free(feed);
}

struct source **feed_sources(struct feed *feed, size_t *ret_n)
{
    *ret_n = feed->sources_n;
    return feed->sources;
}

const char *feed_name(const struct feed *feed)
{
    return feed->name;
}

const char *feed_kind(const struct feed *feed)
{
    return source_kind_words[feed->first ? feed->first->kind : SOURCE_KIND_PROMETHEUS];
}

void feed_look(struct feed *feed, time_ms wait_ms)
{
    for (size_t i = 0; i < feed->lives_n; i++)
        prometheus_live_want(feed->lives[i], wait_ms);
}

struct placing {
    struct live_claims *to;
    struct str cluster;
};

static void place(void *context, const struct kube_placed *placed)
{
    struct placing *placing = context;
    live_claims_add(placing->to, placing->cluster, placed->device, placed->namespace, placed->pod);
}

void feed_placed(struct feed *feed, struct live_claims *ret)
{
    struct placing placing = {ret, str_of(feed->cluster)};
    pthread_rwlock_rdlock(&feed->lock);
    if (feed->watch)
        kube_source_placed(feed->watch, placing.cluster, place, &placing);
    pthread_rwlock_unlock(&feed->lock);
}

void feed_mark(struct feed *feed, struct strbuf *ret)
{
    if (feed->journal)
        journal_mark(feed->journal, ret);
}

time_ms feed_oldest_since(struct feed *feed, struct str mark)
{
    return feed->journal ? journal_oldest_since(feed->journal, mark) : TIME_MAX;
}

void feed_booked(struct feed *feed, time_ms watermark)
{
    if (watermark == TIME_MIN)
        return;
    time_ms asked = watermark - FEED_LATE_MS - COLLECT_LOOK_BACK_MS - HOUR_MS;
    if (feed->journal) {
        journal_release(feed->journal, asked - feed->options.settings->node_break_ms);
        journal_tend(feed->journal);
    }
    if (feed->watch)
        kube_source_release(feed->watch, asked);
}

/* ---- remote write ---- */

bool feed_receives(const struct feed *feed, struct str tenant)
{
    return feed->receiver && str_eq(tenant, str_of(feed->receiver->tenant));
}

void feed_write(struct feed *feed, const struct push_request *request, struct push_answer *ret)
{
    *ret = (struct push_answer){.status = 503, .retry_after_s = 5};
    snprintf(ret->text, sizeof ret->text, "starting or ending: send it again");
    pthread_rwlock_rdlock(&feed->lock);
    if (feed->push)
        push_write(feed->push, request, ret);
    pthread_rwlock_unlock(&feed->lock);
}
