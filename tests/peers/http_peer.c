/* A server over a database, for tests/peers/test_http.py: what it is told is on its command line,
 * what came of each request on standard output, a line each.
 *
 *     http_peer DB LISTEN [CONFIG [CERT KEY [CLIENT_CA]]]
 *
 * SIGHUP: reads the certificates again. SIGTERM: stops within two seconds. Paths of its own:
 * POST /echo (4096 bytes of body), POST /swallow (1 MiB), /slow?ms=N, /stream?bytes=N. Its clock
 * begins at NOW, half an hour after the last one of its ledger. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "serve/api.h"
#include "util/clock.h"

#define NOW INT64_C(1795998600000) /* 2026-11-30T00:30:00Z */

static void on_request(void *context, const struct http_event *event)
{
    (void)context;
    flockfile(stdout);
    printf("%.*s %.*s %d %llu route=%s identity=%.*s refused=%s\n", STR_ARG(event->method),
           STR_ARG(event->path), event->status, (unsigned long long)event->bytes,
           event->route ? event->route : "-", STR_ARG(event->identity),
           event->refused ? event->refused : "-");
    fflush(stdout);
    funlockfile(stdout);
}

static void echo(void *context, const struct http_request *request, struct http_answer *answer)
{
    (void)context;
    answer->content_type = "application/octet-stream";
    strbuf_add(&answer->body, request->body);
}

static void slow(void *context, const struct http_request *request, struct http_answer *answer)
{
    (void)context;
    long long ms = 0;
    str_to_i64(http_parameter(request, "ms"), &ms);
    usleep((unsigned)ms * 1000);
    strbuf_add(&answer->body, STR("{}\n"));
}

static void write_stream(void *context, struct http_stream *to)
{
    char bytes[65536];
    long long left = *(long long *)context;
    memset(bytes, 'x', sizeof bytes);
    while (left > 0) {
        size_t n = left < (long long)sizeof bytes ? (size_t)left : sizeof bytes;
        if (!http_stream_write(to, (struct str){bytes, n}))
            return;
        left -= (long long)n;
    }
}

static void stream(void *context, const struct http_request *request, struct http_answer *answer)
{
    (void)context;
    long long *bytes = mem_zalloc(1, sizeof *bytes);
    str_to_i64(http_parameter(request, "bytes"), bytes);
    answer->content_type = "text/plain";
    answer->stream = write_stream;
    answer->stream_free = free;
    answer->stream_context = bytes;
}

static void add_routes(struct http_server *server)
{
    static const struct http_route routes[] = {
        {.pattern = "/echo",
         .methods = HTTP_BIT(HTTP_POST),
         .scope = SCOPE_WRITE,
         .body_max = 4096,
         .unseen = true,
         .handle = echo},
        {.pattern = "/swallow",
         .methods = HTTP_BIT(HTTP_POST),
         .scope = SCOPE_WRITE,
         .body_max = 1 << 20,
         .unseen = true,
         .handle = echo},
        {.pattern = "/slow", .methods = HTTP_BIT(HTTP_GET), .unseen = true, .handle = slow},
        {.pattern = "/stream", .methods = HTTP_BIT(HTTP_GET), .unseen = true, .handle = stream},
    };
    for (size_t i = 0; i < sizeof routes / sizeof *routes; i++)
        http_route_add(server, &routes[i]);
}

static int complain(const struct error *err)
{
    fprintf(stderr, "http_peer: %s\n", err->text);
    return 1;
}

static void wait_for_the_end(struct http_server *server, const sigset_t *signals)
{
    for (;;) {
        int which = 0;
        struct error err = {0};
        if (sigwait(signals, &which) != 0 || which != SIGHUP)
            return;
        enum err code = http_server_reload_tls(server, &err);
        printf("reload: %s\n", code == ERR_OK ? "done" : err.text);
        fflush(stdout);
    }
}

int main(int argc, char **argv)
{
    struct error err = {0};
    struct http_server *server = NULL;
    struct api *api = NULL;
    struct config *config = config_new();
    struct auth *auth = auth_new();
    struct http_limits limits;
    sigset_t signals;
    if (argc < 3)
        return 2;
    clock_pretend(NOW, 1);
    signal(SIGPIPE, SIG_IGN);
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    http_limits_defaults(&limits);
    limits.head_ms = 2000;
    limits.body_ms = 2000;
    limits.idle_ms = 3000;
    limits.stall_ms = 2000;
    limits.streams = 2;
    limits.queue = 16;
    limits.connections_per_address = 100;
    enum err code = ERR_OK;
    if (argc > 3 && argv[3][0])
        code = config_read(config, argv[3], &err);
    if (code == ERR_OK)
        code = config_finish(config, &err);
    if (code == ERR_OK)
        code = auth_read(auth, config->sections[CONFIG_ACCESS_SECTION], &err);
    struct api_options options = {.db = argv[1],
                                  .settings = {.config = config, .currency = config->currency.p}};
    if (code == ERR_OK)
        code = api_new(&options, true, &api, &err);
    static const char *const hosts[] = {"gputally.test"};
    struct http_options http = {.listen = argv[2],
                                .hosts = hosts,
                                .hosts_n = 1,
                                .limits = &limits,
                                .workers = 4,
                                .auth = auth,
                                .tls_cert = argc > 5 ? argv[4] : NULL,
                                .tls_key = argc > 5 ? argv[5] : NULL,
                                .tls_client_ca = argc > 6 ? argv[6] : NULL,
                                .on_request = on_request};
    if (code == ERR_OK) {
        api_prepare(api, &http);
        code = http_server_new(&http, &server, &err);
    }
    if (code == ERR_OK) {
        api_routes(api, server);
        assets_routes(api, server);
        add_routes(server);
        api_count_routes(api, server);
        code = http_server_start(server, &err);
    }
    if (code != ERR_OK) {
        http_server_stop(server, 0);
        return complain(&err);
    }
    api_ahead_start(api);
    printf("port %d\n", http_server_port(server));
    fflush(stdout);
    wait_for_the_end(server, &signals);
    http_server_stop(server, 2000);
    api_free(api);
    config_free(config);
    puts("stopped");
    return 0;
}
