/* A request on its way: libmicrohttpd calls exchange_step once with the head, then with each piece
 * of the body, then with nothing more, and again when a worker is done.
 *
 * What can be refused by the head alone is refused before a body is taken: 100 Continue is not sent
 * then. Such an answer closes the connection where a body would follow; all others are given on a
 * later call, which keeps it open. */
#include <arpa/inet.h>
#include <stdlib.h>

#include "serve/http_impl.h"

/* ---- what handlers ask ---- */

struct str http_header(const struct http_request *request, const char *name)
{
    const char *value = MHD_lookup_connection_value((struct MHD_Connection *)request->connection,
                                                    MHD_HEADER_KIND, name);
    return value ? str_of(value) : STR_NONE;
}

static const struct http_pair *find(const struct http_request *request, const char *name)
{
    for (size_t i = 0; i < request->query_n; i++)
        if (str_eq(request->query[i].name, str_of(name)))
            return &request->query[i];
    return NULL;
}

struct str http_parameter(const struct http_request *request, const char *name)
{
    const struct http_pair *pair = find(request, name);
    return pair ? pair->value : STR_NONE;
}

bool http_has_parameter(const struct http_request *request, const char *name)
{
    return find(request, name) != NULL;
}

/* ---- reading the head ---- */

struct query_reading {
    struct exchange *exchange;
    struct http_pair *pairs;
    size_t n;
    bool bad;
};

static enum MHD_Result take_pair(void *context, enum MHD_ValueKind kind, const char *name,
                                 size_t name_n, const char *value, size_t value_n)
{
    struct query_reading *reading = context;
    (void)kind;
    if (reading->n == HTTP_QUERY_MAX || memchr(name, HTTP_NUL, name_n) ||
        (value && memchr(value, HTTP_NUL, value_n))) {
        reading->bad = true;
        return MHD_NO;
    }
    struct arena *arena = &reading->exchange->arena;
    reading->pairs[reading->n++] =
        (struct http_pair){str_keep(arena, (struct str){name, name_n}),
                           value ? str_keep(arena, (struct str){value, value_n}) : STR_NONE};
    return MHD_YES;
}

static bool read_query(struct exchange *exchange)
{
    struct query_reading reading = {.exchange = exchange};
    reading.pairs = arena_alloc(&exchange->arena, HTTP_QUERY_MAX * sizeof *reading.pairs);
    MHD_get_connection_values_n(exchange->connection, MHD_GET_ARGUMENT_KIND, take_pair, &reading);
    exchange->request.query = reading.pairs;
    exchange->request.query_n = reading.n;
    return !reading.bad;
}

static void read_peer(struct exchange *exchange)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(exchange->connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    const struct sockaddr *at = info ? info->client_addr : NULL;
    if (at && at->sa_family == AF_INET) {
        inet_ntop(AF_INET, &((const struct sockaddr_in *)at)->sin_addr, exchange->peer,
                  sizeof exchange->peer);
    } else if (at && at->sa_family == AF_INET6) {
        const struct in6_addr *v6 = &((const struct sockaddr_in6 *)at)->sin6_addr;
        if (IN6_IS_ADDR_V4MAPPED(v6)) /* a socket for both families shows IPv4 so */
            inet_ntop(AF_INET, &v6->s6_addr[12], exchange->peer, sizeof exchange->peer);
        else
            inet_ntop(AF_INET6, v6, exchange->peer, sizeof exchange->peer);
    }
    exchange->request.peer = str_of(exchange->peer);
}

static struct exchange *exchange_new(struct http_server *server, struct MHD_Connection *connection,
                                     const char *url, const char *method)
{
    struct exchange *exchange = mem_zalloc(1, sizeof *exchange);
    exchange->server = server;
    exchange->connection = connection;
    exchange->began_us = http_now_us();
    exchange->method = str_keep(&exchange->arena, str_of(method));
    exchange->request.path = str_keep(&exchange->arena, str_of(url));
    exchange->request.arena = &exchange->arena;
    exchange->request.access = &exchange->access;
    exchange->request.connection = connection;
    exchange->request.server = exchange->server;
    read_peer(exchange);
    atomic_fetch_add(&server->exchanges, 1);
    pthread_mutex_lock(&server->auth_lock);
    exchange->auth = auth_hold(server->auth);
    pthread_mutex_unlock(&server->auth_lock);
    return exchange;
}

/* ---- deciding ---- */

static void refuse(struct exchange *exchange, int status, const char *code, const char *message,
                   const char *hint)
{
    http_answer_error(&exchange->answer, status, code, message, hint);
    exchange->state = EXCHANGE_DONE;
}

static bool route_fits(const struct http_route *route, struct str path, struct str *ret_rest)
{
    struct str pattern = str_of(route->pattern);
    if (pattern.p[pattern.n - 1] != '*')
        return str_eq(pattern, path);
    pattern.n--;
    *ret_rest = (struct str){path.p + pattern.n, path.n - pattern.n};
    return str_starts(path, pattern);
}

static struct str allow_of(struct exchange *exchange, unsigned methods)
{
    struct strbuf text = {0};
    if (methods & HTTP_BIT(HTTP_GET))
        strbuf_add(&text, STR("GET, HEAD, "));
    if (methods & HTTP_BIT(HTTP_POST))
        strbuf_add(&text, STR("POST, "));
    strbuf_add(&text, STR("OPTIONS"));
    struct str kept = str_keep(&exchange->arena, strbuf_str(&text));
    strbuf_release(&text);
    return kept;
}

/* The route of path and method; several may share a pattern. */
static bool find_route(struct exchange *exchange)
{
    const struct http_server *server = exchange->server;
    struct http_request *request = &exchange->request;
    unsigned wanted = 0, methods = 0;
    if (str_eq(exchange->method, STR("GET")) || str_eq(exchange->method, STR("HEAD")))
        wanted = HTTP_BIT(request->method = HTTP_GET);
    else if (str_eq(exchange->method, STR("POST")))
        wanted = HTTP_BIT(request->method = HTTP_POST);
    exchange->head_only = str_eq(exchange->method, STR("HEAD"));
    for (size_t i = 0; i < server->routes_n; i++) {
        const struct http_route *route = &server->routes[i];
        struct str rest = STR_NONE;
        if (!route_fits(route, request->path, &rest))
            continue;
        methods |= route->methods;
        if (route->methods & wanted) {
            exchange->route = route;
            request->rest = rest;
            return true;
        }
    }
    if (str_eq(exchange->method, STR("OPTIONS")) && (methods || str_eq(request->path, STR("*")))) {
        exchange->answer.status = 204;
        http_answer_header(&exchange->answer, "Allow", allow_of(exchange, methods));
        exchange->state = EXCHANGE_DONE;
    } else if (methods) {
        refuse(exchange, 405, "method_not_allowed", "this path does not take this method", NULL);
        http_answer_header(&exchange->answer, "Allow", allow_of(exchange, methods));
    } else {
        refuse(exchange, 404, "not_found", "there is nothing at this path",
               "/api/v1/openapi.json lists what there is");
    }
    return false;
}

struct finding_header {
    const char *name, *value;
    size_t n;
};

static enum MHD_Result find_header(void *context, enum MHD_ValueKind kind, const char *name,
                                   const char *value)
{
    struct finding_header *finding = context;
    (void)kind;
    if (strcasecmp(name, finding->name) == 0) {
        finding->n++;
        finding->value = value;
    }
    return MHD_YES;
}

static size_t count_header(struct MHD_Connection *connection, const char *name, const char **ret)
{
    struct finding_header finding = {.name = name};
    MHD_get_connection_values(connection, MHD_HEADER_KIND, find_header, &finding);
    *ret = finding.value;
    return finding.n;
}

/* Several are told as HTTP joins them: who reads only one may read another one than the proxy. */
static struct str header_of(const void *connection, const char *name)
{
    const char *value = NULL;
    size_t n = count_header((struct MHD_Connection *)connection, name, &value);
    return n > 1 ? STR(", ") : value ? str_of(value) : STR_NONE;
}

/* What decides who asks whom, and where a request ends, is said once: another program on the way
 * may have read the other one. */
static bool is_said_once(struct exchange *exchange)
{
    static const char *const names[] = {"Host", "Authorization", "Content-Length",
                                        "Transfer-Encoding"};
    const char *value, *length = NULL;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        size_t n = count_header(exchange->connection, names[i], &value);
        bool both = i == 3 && n && length;
        length = i == 2 ? value : length;
        if (n < 2 && !both)
            continue;
        exchange->refused = "a header that may stand only once stands twice";
        refuse(exchange, 400, "bad_request",
               both ? "Content-Length and Transfer-Encoding exclude each other"
                    : "a header that may stand only once stands twice",
               NULL);
        return false;
    }
    return true;
}

static bool may(struct exchange *exchange)
{
    struct http_server *server = exchange->server;
    const char *why = NULL;
    struct auth_proof proof = {.authorization = http_header(&exchange->request, "Authorization"),
                               .peer = exchange->request.peer,
                               .header = header_of,
                               .connection = exchange->connection};
    const char *certificate_why = NULL;
    if (server->tls && tls_client_ca_pem(server->tls)) {
        const union MHD_ConnectionInfo *info =
            MHD_get_connection_info(exchange->connection, MHD_CONNECTION_INFO_GNUTLS_SESSION);
        if (info)
            tls_client(server->tls, info->tls_session, &exchange->arena, &proof.certificate_cn,
                       &certificate_why);
    }
    auth_decide(exchange->auth, &proof, &exchange->access, &why);
    enum scope scope = exchange->route->scope;
    if (scope == SCOPE_NONE || (exchange->access.scopes & SCOPE_BIT(scope)))
        return true;
    if (exchange->access.scopes == 0) {
        exchange->refused = why ? why : "no token";
        if (certificate_why && !proof.authorization.n)
            exchange->refused = certificate_why;
        refuse(exchange, 401, "unauthorized", "access needs a token that is known here",
               "send Authorization: Bearer TOKEN");
        http_answer_header(&exchange->answer, "WWW-Authenticate", STR("Bearer realm=\"gputally\""));
        return false;
    }
    exchange->refused = "the scope is missing";
    struct strbuf text = {0};
    strbuf_addf(&text, "this needs the scope %s", scope_words[scope]);
    refuse(exchange, 403, "forbidden", text.text, "use a token that has it");
    strbuf_release(&text);
    return false;
}

static bool host_is_fine(struct exchange *exchange)
{
    struct str host = http_header(&exchange->request, "Host");
    if (!host.n || http_host_is_ours(exchange->server, host))
        return true;
    exchange->refused = "Host names another server";
    refuse(exchange, 421, "unknown_host", "this server is not known by the name in Host",
           "name it in the configuration, under serve: hosts:");
    return false;
}

/* How much body is announced: fits the route, and the server. */
static bool body_fits(struct exchange *exchange)
{
    struct http_server *server = exchange->server;
    if (exchange->request.method != HTTP_POST)
        return true;
    struct str length = http_header(&exchange->request, "Content-Length");
    long long declared = (long long)exchange->route->body_max; /* chunked: may be that much */
    if (length.n && (!str_to_i64(length, &declared) || declared < 0)) {
        refuse(exchange, 400, "bad_request", "Content-Length is no number", NULL);
        return false;
    }
    if ((unsigned long long)declared > exchange->route->body_max) {
        refuse(exchange, 413, "too_large", "the body is larger than this path takes", NULL);
        return false;
    }
    if (atomic_fetch_add(&server->body_bytes, declared) + declared >
        server->limits.body_bytes_total) {
        atomic_fetch_sub(&server->body_bytes, declared);
        refuse(exchange, 503, "busy", "too many bodies are being read", "try again in a moment");
        http_answer_header(&exchange->answer, "Retry-After", STR("5"));
        return false;
    }
    exchange->body_declared = (uint64_t)declared;
    return true;
}

/* ---- stepping ---- */

static enum MHD_Result dispatch(struct exchange *exchange)
{
    struct http_server *server = exchange->server;
    exchange->request.body = strbuf_str(&exchange->body);
    if (exchange->too_large) {
        refuse(exchange, 413, "too_large", "the body is larger than this path takes", NULL);
        return exchange_respond(exchange);
    }
    link_expect(server, exchange->connection, -1);
    if (exchange->route->where == HTTP_AT_ONCE) {
        exchange->route->handle(exchange->route->context, &exchange->request, &exchange->answer);
        exchange->state = EXCHANGE_DONE;
        return exchange_respond(exchange);
    }
    exchange->state = EXCHANGE_WORK;
    MHD_suspend_connection(exchange->connection);
    if (!pool_push(server, exchange)) {
        refuse(exchange, 503, "busy", "too many requests are waiting", "try again in a moment");
        http_answer_header(&exchange->answer, "Retry-After", STR("1"));
        MHD_resume_connection(exchange->connection);
    }
    return MHD_YES;
}

static enum MHD_Result take_body(struct exchange *exchange, const char *upload, size_t *upload_n)
{
    size_t room = exchange->route ? exchange->route->body_max : 0;
    struct str piece = {upload, *upload_n};
    *upload_n = 0;
    if (exchange->state == EXCHANGE_DONE || exchange->too_large ||
        exchange->body.n + piece.n > room) {
        exchange->too_large = exchange->state != EXCHANGE_DONE;
        strbuf_release(&exchange->body);
        exchange->body_swallowed += piece.n;
        /* An honest client reads the answer when it has sent what it had. */
        return exchange->body_swallowed > room + (1 << 20) ? MHD_NO : MHD_YES;
    }
    strbuf_add(&exchange->body, piece);
    return MHD_YES;
}

static bool announces_body(const struct exchange *exchange)
{
    struct str length = http_header(&exchange->request, "Content-Length");
    return (length.n && !str_eq(length, STR("0"))) ||
           http_header(&exchange->request, "Transfer-Encoding").n;
}

/* The head alone. Refusals are answered now where a body would follow, else on the next call. */
static enum MHD_Result begin(struct exchange *exchange)
{
    if (!read_query(exchange))
        refuse(exchange, 400, "bad_request", "too many parameters, or one with a NUL byte", NULL);
    else if (is_said_once(exchange) && host_is_fine(exchange) && find_route(exchange) &&
             may(exchange) && body_fits(exchange))
        link_expect(exchange->server, exchange->connection, exchange->server->limits.body_ms);
    if (exchange->state == EXCHANGE_DONE && announces_body(exchange))
        return exchange_respond(exchange);
    return MHD_YES;
}

enum MHD_Result exchange_step(void *context, struct MHD_Connection *connection, const char *url,
                              const char *method, const char *version, const char *upload,
                              size_t *upload_n, void **slot)
{
    (void)version;
    struct exchange *exchange = *slot;
    if (!exchange) {
        *slot = exchange = exchange_new(context, connection, url, method);
        return begin(exchange);
    }
    if (exchange->answered)
        return MHD_YES;
    if (*upload_n)
        return take_body(exchange, upload, upload_n);
    if (exchange->state == EXCHANGE_DONE)
        return exchange_respond(exchange);
    if (exchange->state == EXCHANGE_WORK)
        return MHD_YES;
    return dispatch(exchange);
}

static void release_answer(struct http_answer *answer)
{
    strbuf_release(&answer->body);
    if (answer->fixed_free)
        answer->fixed_free(answer->fixed_context);
    if (answer->stream_free)
        answer->stream_free(answer->stream_context);
    answer->fixed_free = NULL;
    answer->stream_free = NULL;
}

void exchange_end(void *context, struct MHD_Connection *connection, void **slot,
                  enum MHD_RequestTerminationCode why)
{
    struct http_server *server = context;
    struct exchange *exchange = *slot;
    if (!exchange)
        return;
    if (why == MHD_REQUEST_TERMINATED_COMPLETED_OK)
        link_expect(server, connection, server->limits.idle_ms + server->limits.head_ms);
    if (server->options.on_request) {
        struct http_event event = {
            .method = exchange->method,
            .path = exchange->request.path,
            .peer = exchange->request.peer,
            .identity = exchange->access.identity,
            .route = exchange->route ? exchange->route->pattern : NULL,
            .status = exchange->answered ? exchange->status : 0,
            .duration_us = http_now_us() - exchange->began_us,
            .bytes = exchange->bytes,
            .refused = exchange->refused,
        };
        server->options.on_request(server->options.context, &event);
    }
    atomic_fetch_sub(&server->body_bytes, (long long)exchange->body_declared);
    release_answer(&exchange->answer);
    strbuf_release(&exchange->body);
    arena_release(&exchange->arena);
    auth_free(exchange->auth);
    free(exchange);
    atomic_fetch_sub(&server->exchanges, 1);
    *slot = NULL;
}
