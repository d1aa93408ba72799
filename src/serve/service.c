/* The main thread: starts the parts in the order in which they need each other, waits for signals,
 * tells systemd that it lives, and ends the parts in reverse order. */
#include "serve/service.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "insight/threshold.h"
#include "serve/alerter.h"
#include "serve/api.h"
#include "serve/collector.h"
#include "serve/notify.h"
#include "serve/writer.h"

#define HTTP_GRACE_MS 1000
#define TICK_MS 1000
#define LOOK_MS 2000 /* whoever looks first waits so long for the newest samples */

struct service {
    const struct service_options *options;
    struct service_setup setup;
    struct log log;
    struct writer *writer;
    struct live *live;
    struct api *api;
    struct http_server *server;
    pthread_rwlock_t lock; /* of what follows: callbacks read it */
    struct collector *collector;
    struct alerter *alerter; /* NULL: no alerts are configured */
    uint64_t reloads, failed_reloads;
    bool told_changed;               /* main's: what the API knows of the settings */
    char reload_why[ERROR_TEXT_MAX]; /* of the last reload; "" it went well */
};

/* ---- what the API asks ---- */

static size_t checks(void *context, struct health_check *ret, size_t room)
{
    struct service *service = context;
    struct writer_state writer;
    size_t n = 0;
    writer_state(service->writer, &writer);
    if (n < room) {
        struct health_check *check = &ret[n++];
        *check = (struct health_check){.name = "writing", .ok = writer.code == ERR_OK};
        snprintf(check->why, sizeof check->why, "%s", writer.why);
    }
    pthread_rwlock_rdlock(&service->lock);
    if (n < room && *service->reload_why) {
        struct health_check *check = &ret[n++];
        *check = (struct health_check){.name = "configuration"};
        snprintf(check->why, sizeof check->why, "the last reload was refused: %.200s",
                 service->reload_why);
    }
    if (service->collector)
        n += collector_checks(service->collector, ret + n, room - n);
    pthread_rwlock_unlock(&service->lock);
    return n;
}

static int64_t file_bytes(const char *path, const char *end)
{
    struct strbuf whole = {0};
    struct stat stat_of;
    strbuf_addf(&whole, "%s%s", path, end);
    int64_t bytes = stat(whole.text, &stat_of) == 0 ? stat_of.st_size : 0;
    strbuf_release(&whole);
    return bytes;
}

static void add_figure(struct service_stats *ret, const char *name, const char *help, double value)
{
    if (ret->figures_n < SERVICE_FIGURES_MAX)
        ret->figures[ret->figures_n++] =
            (struct service_figure){.name = name, .help = help, .value = value};
}

static int by_name(const void *a, const void *b)
{
    const struct service_figure *left = a, *right = b;
    int order = strcmp(left->name, right->name);
    return order ? order : strcmp(left->label_value, right->label_value);
}

/* Alike names stand together. */
static void stats(void *context, struct service_stats *ret)
{
    struct service *service = context;
    struct writer_state writer;
    writer_state(service->writer, &writer);
    pthread_rwlock_rdlock(&service->lock);
    const char *db = service->setup.serve.db;
    int64_t bytes = file_bytes(db, "") + file_bytes(db, "-wal");
    if (service->collector)
        collector_stats(service->collector, ret);
    if (service->alerter)
        alerter_stats(service->alerter, ret);
    uint64_t reloads = service->reloads, failed = service->failed_reloads;
    bool refused = *service->reload_why;
    pthread_rwlock_unlock(&service->lock);
    add_figure(ret, "gputally_store_bytes", "Size of the database on disk, its log included.",
               (double)bytes);
    add_figure(ret, "gputally_store_writable", "1 where the last write of the database went well.",
               writer.code == ERR_OK);
    add_figure(ret, "gputally_store_turns_total", "How often the database was taken to write.",
               (double)writer.turns);
    add_figure(ret, "gputally_config_reloads_total",
               "Reloads of the configuration that took effect.", (double)reloads);
    add_figure(ret, "gputally_config_reload_failures_total", "Reloads that were refused.",
               (double)failed);
    add_figure(ret, "gputally_config_last_reload_successful", "0 where the last one was refused.",
               !refused);
    if (ret->figures_n)
        qsort(ret->figures, ret->figures_n, sizeof *ret->figures, by_name);
}

/* Somebody looks at the GPUs now. */
static void look(void *context)
{
    struct service *service = context;
    pthread_rwlock_rdlock(&service->lock);
    if (service->collector)
        collector_look(service->collector, LOOK_MS);
    pthread_rwlock_unlock(&service->lock);
}

/* POST /api/v1/write: remote write. */
static void receive(void *context, const struct http_request *request, struct http_answer *answer)
{
    struct service *service = context;
    struct push_request push = {.tenant = request->access->identity,
                                .content_encoding = http_header(request, "Content-Encoding"),
                                .content_type = http_header(request, "Content-Type"),
                                .version =
                                    http_header(request, "X-Prometheus-Remote-Write-Version"),
                                .body = request->body};
    struct push_answer got = {
        .status = 503, .retry_after_s = 5, .text = "reading its configuration"};
    pthread_rwlock_rdlock(&service->lock);
    if (service->collector)
        collector_write(service->collector, push.tenant, &push, &got);
    pthread_rwlock_unlock(&service->lock);
    answer->status = got.status;
    answer->content_type = "text/plain; charset=utf-8";
    strbuf_add(&answer->body, str_of(got.text));
    if (got.retry_after_s) {
        char seconds[16];
        snprintf(seconds, sizeof seconds, "%d", got.retry_after_s);
        http_answer_header(answer, "Retry-After", str_keep(request->arena, str_of(seconds)));
    }
}

static void on_request(void *context, const struct http_event *event)
{
    struct service *service = context;
    if (event->refused)
        log_line(&service->log, LOG_WARN, "refused", log_text("peer", event->peer),
                 log_text("method", event->method), log_text("path", event->path),
                 log_number("status", event->status), log_text("why", str_of(event->refused)));
    else
        log_line(&service->log, LOG_DEBUG, "request", log_text("peer", event->peer),
                 log_text("identity", event->identity), log_text("method", event->method),
                 log_text("path", event->path), log_number("status", event->status),
                 log_number("us", event->duration_us), log_number("bytes", (int64_t)event->bytes));
}

static void committed(void *context)
{
    struct service *service = context;
    api_touch(service->api);
}

/* ---- starting ---- */

static struct api_settings api_settings_of(const struct service_setup *setup,
                                           struct collector *collector)
{
    return (struct api_settings){
        .config = setup->config,
        .title = setup->title,
        .tz = setup->tz,
        .currency = setup->config->currency.p,
        .has_sources = setup->serve.sources_n > 0,
        .settings_changed = collector && collector_settings_changed(collector),
        .metric_teams = setup->serve.metric_teams,
    };
}

static enum err make_auth(const struct service_setup *setup, struct auth **ret, struct error *err)
{
    struct config_node section = setup->config->sections[CONFIG_ACCESS_SECTION];
    struct auth *auth = auth_new();
    enum err code = config_kind(section) == CONFIG_NOTHING ? ERR_OK : auth_read(auth, section, err);
    if (!code)
        code =
            auth_check_listen(auth, setup->serve.listen, setup->serve.tls_client_ca != NULL, err);
    if (code)
        auth_free(auth);
    else
        *ret = auth;
    return code;
}

static enum err make_collector(struct service *service, const struct service_setup *setup,
                               struct collector **ret, struct error *err)
{
    struct collector_options options = {.writer = service->writer,
                                        .config = setup->config,
                                        .serve = &setup->serve,
                                        .log = &service->log,
                                        .live = service->live,
                                        .committed = committed,
                                        .context = service};
    return collector_new(&options, ret, err);
}

/* An older database is brought to this version before anybody reads it; what is wrong with it is
 * said at once, and does not end the service. */
static void try_database(struct service *service)
{
    const struct collect_lender *lender = writer_lender(service->writer);
    struct names *names = names_new();
    struct store *store;
    struct error err = {0};
    if (lender->take(lender->context, names, &store, &err) == ERR_OK)
        lender->give(lender->context, store);
    else
        log_line(&service->log, LOG_ERROR, "cannot write the database",
                 log_text("error", str_of(err.text)));
    names_free(names);
}

static enum err make_server(struct service *service, struct error *err)
{
    const struct serve_config *serve = &service->setup.serve;
    struct api_options api = {.db = serve->db,
                              .settings = api_settings_of(&service->setup, NULL),
                              .context = service,
                              .live = service->live,
                              .look = look,
                              .checks = checks,
                              .stats = stats};
    struct http_route write_route = {.pattern = "/api/v1/write",
                                     .methods = HTTP_BIT(HTTP_POST),
                                     .scope = SCOPE_WRITE,
                                     .body_max = PUSH_BODY_MAX,
                                     .handle = receive,
                                     .unseen = true,
                                     .context = service};
    struct http_options http = {.listen = serve->listen,
                                .hosts = serve->hosts,
                                .hosts_n = serve->hosts_n,
                                .limits = &serve->limits,
                                .tls_cert = serve->tls_cert,
                                .tls_key = serve->tls_key,
                                .tls_client_ca = serve->tls_client_ca,
                                .on_request = on_request,
                                .context = service};
    enum err code = make_auth(&service->setup, &http.auth, err);
    if (!code)
        code = api_new(&api, true, &service->api, err);
    if (code) {
        auth_free(http.auth);
        return code;
    }
    api_prepare(service->api, &http);
    code = http_server_new(&http, &service->server, err);
    if (code) {
        auth_free(http.auth);
        return code;
    }
    api_routes(service->api, service->server);
    assets_routes(service->server);
    http_route_add(service->server, &write_route);
    return http_server_start(service->server, err);
}

static void set_log(struct service *service)
{
    service->log.fd = STDERR_FILENO;
    __atomic_store_n(&service->log.level, service->setup.serve.log_level, __ATOMIC_RELAXED);
    __atomic_store_n(&service->log.format, service->setup.serve.log_format, __ATOMIC_RELAXED);
}

/* "0.0.0.0" and "[::]" are no addresses to go to. */
static void url_of(const struct service *service, struct strbuf *ret)
{
    const struct serve_config *serve = &service->setup.serve;
    const char *colon = strrchr(serve->listen, ':');
    struct str host = {serve->listen, colon ? (size_t)(colon - serve->listen) : 0};
    bool any = host.n == 0 || str_eq(host, STR("0.0.0.0")) || str_eq(host, STR("[::]"));
    strbuf_addf(ret, "%s://%.*s:%d/", serve->tls_cert ? "https" : "http",
                STR_ARG(any ? STR("127.0.0.1") : host), http_server_port(service->server));
}

static enum err start(struct service *service, struct error *err)
{
    struct collector *collector = NULL;
    struct thresholds thresholds;
    service->writer = writer_new(service->setup.serve.db);
    service->live = live_new();
    live_configure(service->live, &service->setup.config->settings);
    struct auth *auth = NULL;
    enum err code = thresholds_read(service->setup.config, &thresholds, err);
    if (!code)
        code = make_auth(&service->setup, &auth, err); /* before the database is touched */
    auth_free(auth);
    if (!code)
        code = make_collector(service, &service->setup, &collector, err);
    service->collector = collector;
    if (!code) {
        try_database(service);
        code = make_server(service, err);
    }
    return code ? code : collector_start(collector, err);
}

/* Alerts are no reason not to serve: where there is no thread for them, that is said. */
static void start_alerter(struct service *service)
{
    struct alerter_options options = {.config = service->setup.config,
                                      .alerts = &service->setup.serve.alerts,
                                      .db = service->setup.serve.db,
                                      .tz = service->setup.tz,
                                      .currency = service->setup.config->currency.p,
                                      .log = &service->log,
                                      .stats = stats,
                                      .context = service};
    struct alerter *alerter = NULL;
    struct error err = {0};
    if (!options.alerts->on)
        return;
    if (alerter_start(&options, &alerter, &err))
        log_line(&service->log, LOG_ERROR, "no alerts", log_text("error", str_of(err.text)));
    pthread_rwlock_wrlock(&service->lock);
    service->alerter = alerter;
    pthread_rwlock_unlock(&service->lock);
}

/* Not under the lock: the alerter asks for figures, which take it. */
static void stop_alerter(struct service *service)
{
    pthread_rwlock_wrlock(&service->lock);
    struct alerter *alerter = service->alerter;
    service->alerter = NULL;
    pthread_rwlock_unlock(&service->lock);
    alerter_stop(alerter);
}

static void say_ready(struct service *service)
{
    struct strbuf url = {0};
    url_of(service, &url);
    log_line(&service->log, LOG_INFO, "ready", log_text("url", strbuf_str(&url)),
             log_text("db", str_of(service->setup.serve.db)),
             log_number("sources", (int64_t)service->setup.serve.sources_n));
    if (service->options->ready)
        service->options->ready(service->options->context, url.text);
    strbuf_release(&url);
    notify_send("READY=1");
}

static void stop(struct service *service)
{
    stop_alerter(service);
    pthread_rwlock_wrlock(&service->lock);
    struct collector *collector = service->collector;
    service->collector = NULL;
    pthread_rwlock_unlock(&service->lock);
    collector_stop(collector);
    http_server_stop(service->server, HTTP_GRACE_MS);
    api_free(service->api);
    writer_free(service->writer);
    live_free(service->live);
    service->options->unload(&service->setup);
    pthread_rwlock_destroy(&service->lock);
}

/* ---- reloading ---- */

/* What is bound at the start. */
static void say_what_waits(struct service *service, const struct serve_config *next)
{
    const struct serve_config *now = &service->setup.serve;
    const struct {
        const char *name, *was, *is;
    } fixed[] = {{"db", now->db, next->db},
                 {"listen", now->listen, next->listen},
                 {"tls.cert", now->tls_cert, next->tls_cert},
                 {"tls.key", now->tls_key, next->tls_key},
                 {"tls.client_ca", now->tls_client_ca, next->tls_client_ca}};
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++) {
        const char *was = fixed[i].was ? fixed[i].was : "", *is = fixed[i].is ? fixed[i].is : "";
        if (strcmp(was, is) != 0)
            log_line(&service->log, LOG_WARN, "takes effect at the next start",
                     log_text("setting", str_of(fixed[i].name)), log_text("now", str_of(was)),
                     log_text("then", str_of(is)));
    }
}

/* Everything that may fail, before anything changes. */
static enum err ready_next(struct service *service, struct service_setup *next,
                           struct collector **ret_collector, struct auth **ret_auth,
                           struct error *err)
{
    struct thresholds thresholds;
    enum err code = thresholds_read(next->config, &thresholds, err);
    if (!code)
        code = make_auth(next, ret_auth, err);
    if (code)
        return code;
    code = make_collector(service, next, ret_collector, err);
    if (!code && service->setup.serve.tls_cert)
        code = http_server_reload_tls(service->server, err);
    if (code) {
        collector_stop(*ret_collector);
        auth_free(*ret_auth);
    }
    return code;
}

static void switch_to(struct service *service, struct service_setup *next,
                      struct collector *collector, struct auth *auth)
{
    struct error err = {0};
    stop_alerter(service);
    pthread_rwlock_wrlock(&service->lock);
    struct collector *last = service->collector;
    service->collector = NULL;
    pthread_rwlock_unlock(&service->lock);
    collector_stop(last);
    struct api_settings settings = api_settings_of(next, collector);
    api_configure(service->api, &settings);
    service->told_changed = settings.settings_changed;
    http_server_set_auth(service->server, auth);
    pthread_rwlock_wrlock(&service->lock);
    struct service_setup old = service->setup;
    service->setup = *next;
    live_configure(service->live, &next->config->settings);
    collector_start(collector, &err);
    service->collector = collector;
    pthread_rwlock_unlock(&service->lock);
    set_log(service);
    start_alerter(service);
    service->options->unload(&old);
}

/* The database stays the one that was opened, and the journal beside it. */
static void keep_places(const struct service *service, struct serve_config *next)
{
    const struct serve_config *now = &service->setup.serve;
    if (strcmp(next->db, now->db) == 0)
        return;
    next->journal = str_keep(&next->arena, str_of(now->journal)).p;
    next->db = str_keep(&next->arena, str_of(now->db)).p;
}

static void reload(struct service *service)
{
    struct service_setup next = {0};
    struct serve_config wanted = {0};
    struct collector *collector = NULL;
    struct auth *auth = NULL;
    struct error err = {0};
    notify_reloading();
    enum err code = service->options->load(service->options->context, &next, &err);
    if (!code) {
        code = serve_config_finish(&next.serve, &err);
        if (!code) {
            wanted = next.serve;
            keep_places(service, &next.serve);
            code = ready_next(service, &next, &collector, &auth, &err);
        }
        if (code)
            service->options->unload(&next);
    }
    if (!code) {
        say_what_waits(service, &wanted);
        switch_to(service, &next, collector, auth);
    }
    pthread_rwlock_wrlock(&service->lock);
    service->reloads += !code;
    service->failed_reloads += code != ERR_OK;
    snprintf(service->reload_why, sizeof service->reload_why, "%s", code ? err.text : "");
    pthread_rwlock_unlock(&service->lock);
    if (code)
        log_line(&service->log, LOG_ERROR, "the configuration is wrong: the last one stays",
                 log_text("error", str_of(err.text)));
    else
        log_say(&service->log, LOG_INFO, "the configuration was read again");
    notify_send("READY=1");
}

/* ---- signals ---- */

static const int signals_taken[] = {SIGHUP, SIGTERM, SIGINT};

static void take_signals(sigset_t *ret)
{
    sigemptyset(ret);
    for (size_t i = 0; i < sizeof signals_taken / sizeof *signals_taken; i++)
        sigaddset(ret, signals_taken[i]);
    pthread_sigmask(SIG_BLOCK, ret, NULL); /* threads that are started later inherit it */
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* a limit of file size is an error of write(2), as a full disk is */
}

static void end_now(int number)
{
    static const char text[] = "gputally: did not end in time: ends now (nothing is lost)\n";
    (void)number;
    if (write(STDERR_FILENO, text, sizeof text - 1) < 0)
        _exit(0);
    _exit(0);
}

/* From now on a second signal ends the process as if nobody had taken it, and so does time. */
static void leave_signals(const sigset_t *set)
{
    signal(SIGTERM, SIG_DFL);
    signal(SIGINT, SIG_DFL);
    signal(SIGHUP, SIG_IGN);
    signal(SIGALRM, end_now);
    alarm(SERVICE_STOP_MS / 1000);
    pthread_sigmask(SIG_UNBLOCK, set, NULL);
}

/* Only a round shows that hours were booked with other settings. */
static void tell_settings(struct service *service)
{
    bool changed = collector_settings_changed(service->collector);
    if (changed == service->told_changed)
        return;
    struct api_settings settings = api_settings_of(&service->setup, service->collector);
    api_configure(service->api, &settings);
    service->told_changed = changed;
}

static void wait_for_end(struct service *service, const sigset_t *set)
{
    time_ms watchdog = notify_watchdog_ms() / 2;
    time_ms tick = watchdog && watchdog < TICK_MS ? watchdog : TICK_MS, told = 0;
    struct timespec timeout = {.tv_sec = tick / 1000, .tv_nsec = tick % 1000 * 1000000};
    for (;;) {
        int got = sigtimedwait(set, NULL, &timeout);
        if (got == SIGHUP)
            reload(service);
        else if (got > 0)
            break;
        tell_settings(service);
        if (watchdog && clock_monotonic() - told >= watchdog / 2) {
            notify_send("WATCHDOG=1");
            told = clock_monotonic();
        }
    }
    notify_send("STOPPING=1");
    log_say(&service->log, LOG_INFO, "ending");
    leave_signals(set);
}

enum err service_check(const struct service_setup *setup, struct error *err)
{
    struct service service = {.setup = *setup};
    struct thresholds thresholds;
    struct collector *collector = NULL;
    struct auth *auth = NULL;
    enum err code = thresholds_read(setup->config, &thresholds, err);
    if (!code)
        code = make_auth(setup, &auth, err);
    if (!code)
        code = make_collector(&service, setup, &collector, err);
    collector_stop(collector);
    auth_free(auth);
    return code;
}

enum err service_run(const struct service_options *options, struct error *err)
{
    struct service service = {.options = options};
    sigset_t set;
    enum err code = options->load(options->context, &service.setup, err);
    if (code)
        return code;
    code = serve_config_finish(&service.setup.serve, err);
    if (code) {
        options->unload(&service.setup);
        return code;
    }
    pthread_rwlock_init(&service.lock, NULL);
    set_log(&service);
    take_signals(&set);
    code = start(&service, err);
    if (!code) {
        start_alerter(&service);
        say_ready(&service);
        wait_for_end(&service, &set);
    }
    stop(&service);
    alarm(0);
    return code;
}
