/* The parts of the service, made from a configuration. */
#include "serve/service_impl.h"

struct api_settings service_api_settings(const struct service_setup *setup,
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

/* A source whose samples nobody may send would stay empty without a word. */
static enum err check_tenants(const struct service_setup *setup, const struct auth *auth,
                              struct error *err)
{
    for (size_t i = 0; i < setup->serve.sources_n; i++) {
        const struct source_config *source = &setup->serve.sources[i];
        const char *tenant = source->tenant ? source->tenant : "";
        if (source->kind == SOURCE_KIND_REMOTE_WRITE && *tenant &&
            !auth_may_write(auth, str_of(tenant)))
            return config_error(source->at, err,
                                "nobody may send samples as '%.60s': access: has no token of this "
                                "name with the scope write (gputally config token makes one)",
                                tenant);
    }
    return ERR_OK;
}

enum err service_make_auth(const struct service_setup *setup, struct auth **ret, struct error *err)
{
    struct config_node section = setup->config->sections[CONFIG_ACCESS_SECTION];
    struct auth *auth = auth_new();
    enum err code = config_kind(section) == CONFIG_NOTHING ? ERR_OK : auth_read(auth, section, err);
    if (!code)
        code =
            auth_check_listen(auth, setup->serve.listen, setup->serve.tls_client_ca != NULL, err);
    if (!code)
        code = check_tenants(setup, auth, err);
    if (code)
        auth_free(auth);
    else
        *ret = auth;
    return code;
}

enum err service_make_collector(struct service *service, const struct service_setup *setup,
                                struct collector **ret, struct error *err)
{
    struct collector_options options = {.writer = service->writer,
                                        .config = setup->config,
                                        .serve = &setup->serve,
                                        .log = &service->log,
                                        .live = service->live,
                                        .committed = service_committed,
                                        .context = service};
    return collector_new(&options, ret, err);
}

enum err service_make_api(struct service *service, struct error *err)
{
    struct api_options api = {.db = service->setup.serve.db,
                              .settings = service_api_settings(&service->setup, NULL),
                              .context = service,
                              .live = service->live,
                              .look = service_look,
                              .placed = service_placed,
                              .checks = service_checks,
                              .stats = service_stats_now};
    return api_new(&api, true, &service->api, err);
}

static void add_routes(struct service *service, struct http_server *server)
{
    struct http_route write_route = {.pattern = "/api/v1/write",
                                     .methods = HTTP_BIT(HTTP_POST),
                                     .scope = SCOPE_WRITE,
                                     .body_max = PUSH_BODY_MAX,
                                     .handle = service_receive,
                                     .unseen = true,
                                     .context = service};
    api_routes(service->api, server);
    assets_routes(service->api, server);
    http_route_add(server, &write_route);
    api_count_routes(service->api, server);
}

enum err service_make_server(struct service *service, const struct service_setup *setup,
                             struct auth **auth, const struct http_server *beside,
                             struct http_server **ret, struct error *err)
{
    const struct serve_config *serve = &setup->serve;
    struct http_options http = {.listen = serve->listen,
                                .hosts = serve->hosts,
                                .hosts_n = serve->hosts_n,
                                .beside = beside,
                                .limits = &serve->limits,
                                .auth = *auth,
                                .tls_cert = serve->tls_cert,
                                .tls_key = serve->tls_key,
                                .tls_client_ca = serve->tls_client_ca,
                                .on_request = service_on_request,
                                .context = service};
    struct http_server *server;
    api_prepare(service->api, &http);
    enum err code = http_server_new(&http, &server, err);
    if (code)
        auth_free(*auth);
    *auth = NULL;
    if (code)
        return code;
    add_routes(service, server);
    code = http_server_start(server, err);
    if (code) {
        http_server_stop(server, 0);
        return code;
    }
    *ret = server;
    return ERR_OK;
}

void service_set_log(struct service *service)
{
    __atomic_store_n(&service->log.level, service->setup.serve.log_level, __ATOMIC_RELAXED);
    __atomic_store_n(&service->log.format, service->setup.serve.log_format, __ATOMIC_RELAXED);
}

/* "0.0.0.0" and "[::]" are no addresses to go to. */
void service_url(const struct service *service, struct strbuf *ret)
{
    const struct serve_config *serve = &service->setup.serve;
    const char *colon = strrchr(serve->listen, ':');
    struct str host = {serve->listen, colon ? (size_t)(colon - serve->listen) : 0};
    bool any = host.n == 0 || str_eq(host, STR("0.0.0.0")) || str_eq(host, STR("[::]"));
    strbuf_addf(ret, "%s://%.*s:%d/", serve->tls_cert ? "https" : "http",
                STR_ARG(any ? STR("127.0.0.1") : host), http_server_port(service->server));
}

/* Alerts are no reason not to serve: where there is no thread for them, that is said. */
void service_start_alerter(struct service *service)
{
    struct alerter_options options = {.config = service->setup.config,
                                      .alerts = &service->setup.serve.alerts,
                                      .db = service->setup.serve.db,
                                      .tz = service->setup.tz,
                                      .currency = service->setup.config->currency.p,
                                      .log = &service->log,
                                      .stats = service_stats_now,
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
void service_stop_alerter(struct service *service)
{
    pthread_rwlock_wrlock(&service->lock);
    struct alerter *alerter = service->alerter;
    service->alerter = NULL;
    pthread_rwlock_unlock(&service->lock);
    alerter_stop(alerter);
}
