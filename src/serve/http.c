/* The server's life: options, routes, start, stop.
 *
 * Two kinds of threads. Event loops (libmicrohttpd with epoll, two of them) read requests and send
 * answers and never wait for anything else; workers run handlers, which read a database and take
 * as long as they take. A connection is suspended while a worker has its request, so that a slow
 * report costs a worker and never a loop: /healthz is answered while every worker is busy. One
 * thread more looks after deadlines. */
#include "serve/http_impl.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define LOOPS 2
#define LOOK_EVERY_US 5000
#define REQUEST_GRACE_MS 200

void http_limits_defaults(struct http_limits *ret)
{
    *ret = (struct http_limits){
#define X(name, standard, key, meaning) .name = (standard),
        HTTP_LIMIT_TABLE(X)
#undef X
    };
}

int64_t http_now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

enum err http_server_new(const struct http_options *options, struct http_server **ret,
                         struct error *err)
{
    struct http_server *server = mem_zalloc(1, sizeof *server);
    server->options = *options;
    server->listen_fd = server->socket = -1;
    if (options->limits)
        server->limits = *options->limits;
    else
        http_limits_defaults(&server->limits);
    server->options.limits = NULL;
    server->options.beside = NULL;
    server->links.next = server->links.previous = &server->links;
    pthread_mutex_init(&server->auth_lock, NULL);
    pthread_mutex_init(&server->queue_lock, NULL);
    pthread_mutex_init(&server->links_lock, NULL);
    pthread_mutex_init(&server->streams_lock, NULL);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&server->queue_some, &monotonic);
    pthread_cond_init(&server->queue_idle, &monotonic);
    pthread_cond_init(&server->links_stop, &monotonic);
    pthread_cond_init(&server->streams_gone, &monotonic);
    pthread_condattr_destroy(&monotonic);
    server->auth = options->auth ? options->auth : auth_new();
    enum err code = ERR_OK;
    if (options->tls_cert || options->tls_key || options->tls_client_ca)
        code =
            tls_new(options->tls_cert, options->tls_key, options->tls_client_ca, &server->tls, err);
    if (code == ERR_OK)
        code =
            auth_check_listen(server->auth, options->listen, options->tls_client_ca != NULL, err);
    if (code == ERR_OK)
        code = http_listen(server, options->beside, err);
    if (code != ERR_OK) {
        if (options->auth) /* the caller's still */
            server->auth = NULL;
        http_server_stop(server, 0);
        return code;
    }
    *ret = server;
    return ERR_OK;
}

void http_route_add(struct http_server *server, const struct http_route *route)
{
    invariant(!server->daemon);
    mem_push(server->routes, server->routes_n, server->routes_room, *route);
}

size_t http_routes(const struct http_server *server, const struct http_route **ret)
{
    *ret = server->routes;
    return server->routes_n;
}

int http_server_port(const struct http_server *server)
{
    return server->port;
}

void http_server_set_auth(struct http_server *server, struct auth *auth)
{
    pthread_mutex_lock(&server->auth_lock);
    struct auth *old = server->auth;
    server->auth = auth;
    pthread_mutex_unlock(&server->auth_lock);
    auth_free(old);
}

enum err http_server_reload_tls(struct http_server *server, struct error *err)
{
    return server->tls ? tls_reload(server->tls, err) : ERR_OK;
}

void http_server_counts(const struct http_server *server, struct http_counts *ret)
{
    struct http_server *shared = (struct http_server *)server;
    pthread_mutex_lock(&shared->queue_lock);
    *ret = (struct http_counts){.queued = shared->queued, .working = shared->working};
    pthread_mutex_unlock(&shared->queue_lock);
    ret->connections = atomic_load(&shared->connections);
    ret->streams = atomic_load(&shared->streams_n);
    ret->body_bytes = atomic_load(&shared->body_bytes);
}

/* %00 would end a path before its end: it becomes a byte that no path has. */
static size_t unescape(void *context, struct MHD_Connection *connection, char *text)
{
    (void)context, (void)connection;
    size_t n = MHD_http_unescape(text);
    for (size_t i = 0; i < n; i++)
        if (!text[i])
            text[i] = HTTP_NUL;
    return n;
}

static int hand_out_certificate(gnutls_session_t session, const gnutls_datum_t *authorities,
                                int authorities_n, const gnutls_pk_algorithm_t *algorithms,
                                int algorithms_n, gnutls_pcert_st **pcerts, unsigned *pcerts_n,
                                gnutls_privkey_t *key)
{
    (void)authorities, (void)authorities_n, (void)algorithms, (void)algorithms_n;
    struct MHD_Connection *connection = gnutls_session_get_ptr(session);
    const union MHD_ConnectionInfo *info =
        connection ? MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT) : NULL;
    const struct link *link = info ? info->socket_context : NULL;
    return link ? tls_certificate(link->server->tls, pcerts, pcerts_n, key) : -1;
}

enum err http_server_start(struct http_server *server, struct error *err)
{
    unsigned flags = (unsigned)MHD_USE_EPOLL_INTERNAL_THREAD | (unsigned)MHD_ALLOW_SUSPEND_RESUME;
    struct MHD_OptionItem of_tls[4];
    size_t n = 0;
    if (server->tls) {
        flags |= MHD_USE_TLS;
        of_tls[n++] = (struct MHD_OptionItem){MHD_OPTION_HTTPS_CERT_CALLBACK, 0,
                                              (void *)(uintptr_t)hand_out_certificate};
        if (tls_client_ca_pem(server->tls))
            of_tls[n++] = (struct MHD_OptionItem){MHD_OPTION_HTTPS_MEM_TRUST, 0,
                                                  (void *)tls_client_ca_pem(server->tls)};
    }
    of_tls[n] = (struct MHD_OptionItem){MHD_OPTION_END, 0, NULL};
    int loops = server->options.loops > 0 ? server->options.loops : LOOPS;
    unsigned idle_s = (unsigned)((server->limits.idle_ms + 999) / 1000);
    pool_start(server);
    links_start(server);
    server->daemon = MHD_start_daemon(
        flags, 0, NULL, NULL, exchange_step, server, MHD_OPTION_LISTEN_SOCKET, server->listen_fd,
        MHD_OPTION_THREAD_POOL_SIZE, (unsigned)loops, MHD_OPTION_CONNECTION_LIMIT,
        (unsigned)server->limits.connections, MHD_OPTION_PER_IP_CONNECTION_LIMIT,
        (unsigned)server->limits.connections_per_address, MHD_OPTION_CONNECTION_TIMEOUT, idle_s,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)server->limits.header_bytes,
        MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_UNESCAPE_CALLBACK, unescape, NULL,
        MHD_OPTION_NOTIFY_COMPLETED, exchange_end, server, MHD_OPTION_NOTIFY_CONNECTION,
        links_connection, server, MHD_OPTION_ARRAY, of_tls, MHD_OPTION_END);
    if (!server->daemon)
        return error_set(err, ERR_NETWORK, "starting the HTTP server on %s failed",
                         server->options.listen);
    server->listen_fd = -1; /* the daemon's now */
    return ERR_OK;
}

/* Connections that were taken just now: their request is on its way. */
static void wait_for_requests(struct http_server *server, int64_t deadline_ms)
{
    int64_t until_ms = http_now_us() / 1000 + REQUEST_GRACE_MS;
    until_ms = until_ms < deadline_ms ? until_ms : deadline_ms;
    while (links_are_new(server) && http_now_us() / 1000 < until_ms)
        usleep(LOOK_EVERY_US);
}

/* What is answered is still to be sent. */
static void wait_for_answers(struct http_server *server, int64_t deadline_ms)
{
    while (atomic_load(&server->exchanges) > 0 && http_now_us() / 1000 < deadline_ms)
        usleep(LOOK_EVERY_US);
}

/* Who connects from now on is refused. A listener that nobody knows takes the place of ours, which
 * the kernel then closes and forgets. MHD_quiesce_daemon is for this, but its loops and the thread
 * that calls it both take the listener out of a loop's epoll, without a lock, and who comes second
 * aborts the process. */
static void stop_listening(struct http_server *server)
{
    const union MHD_DaemonInfo *info =
        MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_LISTEN_FD);
    struct sockaddr_un nowhere = {.sun_family = AF_UNIX}; /* the kernel finds it a name */
    int silent = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (info && silent >= 0 &&
        bind(silent, (const struct sockaddr *)&nowhere, sizeof nowhere.sun_family) == 0 &&
        listen(silent, 0) == 0)
        dup3(silent, info->listen_fd, O_CLOEXEC);
    if (silent >= 0)
        close(silent);
}

/* No new connections, then the streams and the work end, and only then the daemon, which must have
 * no suspended connection left. */
void http_server_stop(struct http_server *server, int64_t grace_ms)
{
    if (!server)
        return;
    int64_t deadline_ms = http_now_us() / 1000 + grace_ms;
    if (server->daemon) {
        stop_listening(server);
        wait_for_requests(server, deadline_ms);
    }
    pool_stop(server, deadline_ms);
    streams_abort(server, deadline_ms);
    if (server->daemon) {
        wait_for_answers(server, deadline_ms);
        MHD_stop_daemon(server->daemon);
    }
    links_stop(server);
    if (server->listen_fd >= 0)
        close(server->listen_fd);
    tls_free(server->tls);
    auth_free(server->auth);
    for (size_t i = 0; i < server->hosts_n; i++)
        free(server->hosts[i]);
    free(server->hosts);
    free(server->routes);
    pthread_cond_destroy(&server->queue_some);
    pthread_cond_destroy(&server->queue_idle);
    pthread_cond_destroy(&server->links_stop);
    pthread_cond_destroy(&server->streams_gone);
    pthread_mutex_destroy(&server->auth_lock);
    pthread_mutex_destroy(&server->queue_lock);
    pthread_mutex_destroy(&server->links_lock);
    pthread_mutex_destroy(&server->streams_lock);
    free(server);
}
