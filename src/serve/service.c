/* The main thread: starts the parts in the order in which they need each other, waits for signals,
 * tells systemd that it lives, and ends the parts in reverse order. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "insight/threshold.h"
#include "serve/notify.h"
#include "serve/serve_check.h"
#include "serve/service_impl.h"
#include "serve/tls.h"

#define TICK_MS 1000

/* ---- starting and ending ---- */

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

/* What can be wrong with the configuration, before the database is touched. */
static enum err start(struct service *service, struct error *err)
{
    struct collector *collector = NULL;
    struct thresholds thresholds;
    struct auth *auth = NULL;
    service->writer = writer_new(service->setup.serve.db);
    service->live = live_new();
    enum err code = thresholds_read(service->setup.config, &thresholds, err);
    if (!code)
        code = service_make_auth(&service->setup, &auth, err);
    if (!code)
        code = service_make_collector(service, &service->setup, &collector, err);
    service->collector = collector;
    if (!code) {
        try_database(service);
        code = service_make_api(service, err);
    }
    if (!code)
        code = service_make_server(service, &service->setup, &auth, NULL, &service->server, err);
    auth_free(auth);
    return code ? code : collector_start(collector, err);
}

static void say_ready(struct service *service)
{
    struct strbuf url = {0};
    service_url(service, &url);
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
    service_stop_alerter(service);
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
    struct api_settings settings = service_api_settings(&service->setup, service->collector);
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
            service_reload(service);
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
    struct tls *tls = NULL;
    enum err code = thresholds_read(setup->config, &thresholds, err);
    if (!code)
        code = service_make_auth(setup, &auth, err);
    if (!code)
        code = serve_check_files(setup->config, err);
    if (!code && setup->serve.tls_cert) {
        struct error why = {0};
        if (tls_new(setup->serve.tls_cert, setup->serve.tls_key, setup->serve.tls_client_ca, &tls,
                    &why))
            code = config_error(setup->serve.tls_at, err, "%s", why.text);
    }
    if (!code)
        code = alert_check(&setup->serve.alerts, err);
    if (!code)
        code = service_make_collector(&service, setup, &collector, err);
    tls_free(tls);
    collector_stop(collector);
    auth_free(auth);
    return code;
}

enum err service_run(const struct service_options *options, struct error *err)
{
    struct service service = {.options = options, .log.fd = STDERR_FILENO};
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
    service_set_log(&service);
    take_signals(&set);
    code = start(&service, err);
    if (!code) {
        api_ahead_start(service.api);
        service_start_alerter(&service);
        say_ready(&service);
        wait_for_end(&service, &set);
    }
    stop(&service);
    alarm(0);
    return code;
}
