/* Another configuration, while it runs: everything that can fail is done first, beside what runs;
 * then the parts are swapped. What failed leaves everything as it was.
 *
 * What a server was started with (address, names, TLS files, limits) it cannot change: another one
 * is started beside it, on the same socket where the address stays, and the last one then ends its
 * requests. So no connection is refused in between. Where only the certificates' bytes or nothing
 * of that changed, the server stays, and connections with it. */
#include "insight/threshold.h"
#include "serve/notify.h"
#include "serve/service_impl.h"

/* What a reload makes before anything changes. */
struct next {
    struct service_setup setup;
    struct collector *collector;
    struct auth *auth;
    struct http_server *server; /* NULL: the last one stays */
};

static bool same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

static bool same_server(const struct serve_config *a, const struct serve_config *b)
{
    bool same = same_text(a->listen, b->listen) && same_text(a->tls_cert, b->tls_cert) &&
                same_text(a->tls_key, b->tls_key) &&
                same_text(a->tls_client_ca, b->tls_client_ca) && a->hosts_n == b->hosts_n &&
                memcmp(&a->limits, &b->limits, sizeof a->limits) == 0;
    for (size_t i = 0; i < a->hosts_n && same; i++)
        same = same_text(a->hosts[i], b->hosts[i]);
    return same;
}

/* The files that are open, and that what was acknowledged lies in. */
static enum err check_places(const struct serve_config *now, const struct serve_config *next,
                             struct error *err)
{
    const struct {
        const char *key, *was, *is;
    } places[] = {{"db", now->db, next->db}, {"journal", now->journal, next->journal}};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        if (!same_text(places[i].was, places[i].is))
            return error_set(err, ERR_CONFIG,
                             "serve.%s changes with a restart only: it is %s, and would be %s. "
                             "Nothing of the new configuration was taken: restart, or put it back",
                             places[i].key, places[i].was, places[i].is);
    return ERR_OK;
}

/* Certificates last: after them nothing fails. */
static enum err make_server(struct service *service, struct next *next, struct error *err)
{
    const struct serve_config *now = &service->setup.serve, *then = &next->setup.serve;
    if (same_server(now, then))
        return http_server_reload_tls(service->server, err);
    const struct http_server *beside =
        same_text(now->listen, then->listen) ? service->server : NULL;
    return service_make_server(service, &next->setup, &next->auth, beside, &next->server, err);
}

static enum err make_parts(struct service *service, struct next *next, struct error *err)
{
    struct thresholds thresholds;
    enum err code = serve_config_finish(&next->setup.serve, err);
    if (!code)
        code = check_places(&service->setup.serve, &next->setup.serve, err);
    if (!code)
        code = thresholds_read(next->setup.config, &thresholds, err);
    if (!code)
        code = service_make_auth(&next->setup, &next->auth, err);
    if (!code)
        code = service_make_collector(service, &next->setup, &next->collector, err);
    if (!code)
        code = make_server(service, next, err);
    if (code) {
        collector_stop(next->collector);
        auth_free(next->auth);
        service->options->unload(&next->setup);
    }
    return code;
}

static void swap_collector(struct service *service, struct next *next)
{
    struct error err = {0};
    pthread_rwlock_wrlock(&service->lock);
    struct collector *last = service->collector;
    service->collector = NULL;
    pthread_rwlock_unlock(&service->lock);
    collector_stop(last); /* the journals are the next one's then */
    struct api_settings settings = service_api_settings(&next->setup, next->collector);
    api_configure(service->api, &settings);
    service->told_changed = settings.settings_changed;
    pthread_rwlock_wrlock(&service->lock);
    service->setup = next->setup;
    service->collector = next->collector;
    enum err code = collector_start(next->collector, &err);
    pthread_rwlock_unlock(&service->lock);
    service_set_log(service);
    if (code)
        log_line(&service->log, LOG_ERROR, "not all clusters are collected",
                 log_text("error", str_of(err.text)));
}

static void say_where(struct service *service)
{
    struct strbuf url = {0};
    service_url(service, &url);
    log_line(&service->log, LOG_INFO, "listening anew", log_text("url", strbuf_str(&url)));
    strbuf_release(&url);
}

static void switch_to(struct service *service, struct next *next)
{
    service_stop_alerter(service);
    struct service_setup old = service->setup;
    swap_collector(service, next);
    struct http_server *last = service->server;
    if (next->server) {
        service->server = next->server;
        say_where(service);
        http_server_stop(last, HTTP_GRACE_MS);
    } else {
        http_server_set_auth(service->server, next->auth);
    }
    service_start_alerter(service);
    service->options->unload(&old);
}

void service_reload(struct service *service)
{
    struct next next = {0};
    struct error err = {0};
    notify_reloading();
    enum err code = service->options->load(service->options->context, &next.setup, &err);
    if (!code)
        code = make_parts(service, &next, &err);
    if (!code)
        switch_to(service, &next);
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
