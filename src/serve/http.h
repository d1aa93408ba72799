/* The HTTP server: requests in, answers out. libmicrohttpd is behind this header and nowhere else.
 *
 *     http_server_new -> http_route_add, any number of times -> http_server_start ->
 * http_server_stop
 *
 * Invariants
 *  - A route that is not in the table answers 404, a method that it has not 405, a request without
 *    the route's scope 401 or 403; the handler sees none of these.
 *  - A handler runs on a worker's thread, one request at a time a worker, and may take its time:
 *    the event loops never wait for it. Handlers of HTTP_AT_ONCE run in the event loop itself and
 *    must not block.
 *  - Every limit is a number in struct http_limits; what exceeds one is refused before it is held
 *    in memory.
 *  - Answers that the server makes itself (errors of routing, access and limits) are JSON:
 *    {"error": {"code": "not_found", "message": "…", "hint": "…"}}.
 *  - HEAD is answered wherever GET is, without a body; OPTIONS says what a path takes. ETag and
 *    If-None-Match, gzip, security headers and the check of Host are done here for all routes.
 *
 * Nothing here logs: options.on_request is told of every request that ended. */
#ifndef GPUTALLY_SERVE_HTTP_H
#define GPUTALLY_SERVE_HTTP_H

#include "serve/auth.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/memory.h"
#include "util/str.h"

/* ---- requests ---- */

enum http_method { HTTP_GET, HTTP_POST, HTTP_METHODS };
#define HTTP_BIT(method) (1u << (method))

struct http_pair {
    struct str name, value; /* decoded; never with a NUL inside; NUL-terminated */
};
#define HTTP_QUERY_MAX 64 /* parameters of a request */

struct http_server;
struct http_request {
    enum http_method method; /* HEAD is HTTP_GET to handlers */
    struct str path;         /* decoded, begins with / */
    struct str rest;         /* what the * of the route's pattern stands for */
    const struct http_pair *query;
    size_t query_n;
    struct str body;             /* POST; at most the route's body_max */
    const struct access *access; /* who asks and what of the ledger they see; never NULL */
    struct str peer;             /* address of the other end, "127.0.0.1" */
    struct arena *arena;         /* of this request; what handlers make may live here */
    void *worker;                /* what options.worker_new gave; NULL in HTTP_AT_ONCE */
    const void *connection;      /* for http_header() */
    const struct http_server *server;
};
/* A header of the request, by its name without regard to case; STR_NONE where there is none. */
struct str http_header(const struct http_request *request, const char *name);
/* The first parameter of that name; STR_NONE where there is none. */
struct str http_parameter(const struct http_request *request, const char *name);
bool http_has_parameter(const struct http_request *request, const char *name);

/* ---- answers ---- */

/* Writes what a stream sends. Returns false where the client has gone, or takes nothing for
 * stall_ms: then stop. Blocks while the client is slower than the writer. */
struct http_stream;
bool http_stream_write(struct http_stream *stream, struct str bytes);
/* The rest cannot be had: the connection is cut, so that the client sees that it is not all. */
void http_stream_fail(struct http_stream *stream);

struct http_answer {
    int status;               /* 200 unless set */
    const char *content_type; /* "application/json" unless set; static */
    struct strbuf body;       /* taken over by the server */
    /* Instead of body: bytes that somebody else keeps, plain, packed with gzip, or both. fixed_free
     * (may be NULL) is called when the last of them was sent. */
    struct str fixed, fixed_gzip;
    size_t fixed_size; /* unpacked, where there is only fixed_gzip */
    void (*fixed_free)(void *context);
    void *fixed_context;
    /* instead of body: called on a thread of its own once the head is sent; the context is freed
     * with stream_free, also where the stream never ran. */
    void (*stream)(void *context, struct http_stream *to);
    void (*stream_free)(void *context);
    void *stream_context;
    uint64_t digest[2];        /* of the body, where it is known; 0: the server hashes it */
    const char *cache_control; /* "no-cache" unless set; static */
    /* A page with a script and a style inside: their hashes, "'sha256-…'", which the policy then
     * allows beside what comes from here. NULL: none. Static. */
    const char *script_hash, *style_hash;
    struct http_header_out {
        const char *name; /* static */
        struct str value; /* in the request's arena, or static */
    } headers[8];
    size_t headers_n;
};
void http_answer_header(struct http_answer *answer, const char *name, struct str value);
/* Status and an error in JSON. code: "bad_request"; hint may be NULL. */
void http_answer_error(struct http_answer *answer, int status, const char *code,
                       const char *message, const char *hint);
/* 400, 404, 503 … as the error says. */
void http_answer_failed(struct http_answer *answer, const struct error *err);

/* gzip, for who keeps answers packed. pack: empty where it does not shrink. */
bool http_is_worth_packing(const char *content_type, size_t n);
void http_pack(struct str plain, struct strbuf *ret);

/* ---- routes ---- */

enum http_where {
    HTTP_BY_WORKER,
    HTTP_AT_ONCE, /* in the event loop: must not block */
};

typedef void (*http_handler)(void *context, const struct http_request *request,
                             struct http_answer *answer);

struct http_route {
    const char *pattern; /* "/api/v1/report", "/assets/" followed by * for any rest; static */
    unsigned methods;    /* HTTP_BIT(HTTP_GET) | … */
    enum scope scope;    /* SCOPE_NONE: everybody, also without a token */
    size_t body_max;     /* bytes of a POST's body */
    enum http_where where;
    bool unseen; /* not part of the documented API: left out of OpenAPI and of its test */
    http_handler handle;
    void *context;
};

/* ---- the server ---- */

/* Is it ADDRESS:PORT, with a port of 0 to 65535? The address is looked up where it is listened at.
 */
bool http_listen_is_address(const char *listen);

/* X(name, default, "key in the configuration", "what it is") */
#define HTTP_LIMIT_TABLE(X)                                                                        \
    X(connections, 1000, "connections", "connections at a time")                                   \
    X(connections_per_address, 200, "connections_per_address", "of them, from one address")        \
    X(header_bytes, 32768, "header_bytes", "request line and headers of a request")                \
    X(body_bytes_total, 268435456, "body_bytes_total", "bodies of all requests together")          \
    X(head_ms, 10000, "head_timeout", "to send the head of a request")                             \
    X(body_ms, 60000, "body_timeout", "to send its body")                                          \
    X(idle_ms, 75000, "idle_timeout", "of a connection without a request")                         \
    X(answer_ms, 900000, "answer_timeout", "to take an answer")                                    \
    X(stall_ms, 30000, "stall_timeout", "without a byte while an answer is sent")                  \
    X(queue, 256, "queue", "requests that wait for a worker")                                      \
    X(streams, 4, "streams", "exports at a time")

struct http_limits {
#define X(name, standard, key, meaning) int64_t name;
    HTTP_LIMIT_TABLE(X)
#undef X
};
void http_limits_defaults(struct http_limits *ret);

/* What came of a request, for logs and counters. Views are valid during the call. */
struct http_event {
    struct str method, path, peer, identity; /* identity: the token's name; empty */
    const char *route;                       /* its pattern; NULL: none */
    int status;                              /* 0: the connection ended without an answer */
    int64_t duration_us;
    uint64_t bytes;      /* of the body that was sent */
    const char *refused; /* why access was refused; NULL: it was not. For the audit log. */
};

struct http_options {
    const char *listen; /* "127.0.0.1:9475", "[::1]:9475", ":9475" (all addresses); port 0: any */
    const char *const *hosts; /* names under which the server is asked, beside its own address */
    size_t hosts_n;
    /* A running server whose socket is listened at too, instead of a new one: both take connections
     * until that one is stopped. NULL: none. */
    const struct http_server *beside;
    const struct http_limits *limits; /* copied; NULL: defaults */
    int loops;                        /* threads of the event loops; 0: 2 */
    int workers;                      /* 0: as many as cores, at least 4 */
    struct auth *auth; /* taken over where the server is made; NULL: everybody may do all */
    const char *tls_cert, *tls_key, *tls_client_ca; /* PEM files; NULL: none */
    /* Each worker's own: made on its thread before the first request, freed on its thread. */
    void *(*worker_new)(void *context);
    void (*worker_free)(void *worker);
    void (*worker_interrupt)(void *worker); /* any thread: end what it does early; may be NULL */
    void (*on_request)(void *context, const struct http_event *event); /* any thread; quick */
    void *context;
};

struct http_server;
enum err http_server_new(const struct http_options *options, struct http_server **ret,
                         struct error *err);
/* Before the start. The route is copied; patterns and contexts live as long as the server. */
void http_route_add(struct http_server *server, const struct http_route *route);
size_t http_routes(const struct http_server *server, const struct http_route **ret);
enum err http_server_start(struct http_server *server, struct error *err);
/* The port that it listens on, once it does. */
int http_server_port(const struct http_server *server);
/* Who may ask, from now on; the server takes it over and lets go of the last one when the last
 * request with it ends. */
void http_server_set_auth(struct http_server *server, struct auth *auth);
/* Read certificates and authorities again: all of them or, with an error, none. */
enum err http_server_reload_tls(struct http_server *server, struct error *err);
struct http_counts {
    int64_t connections, queued, working, streams, body_bytes;
};
void http_server_counts(const struct http_server *server, struct http_counts *ret);
/* No new connections; requests in work may end within grace_ms, then everything is cut and freed.
 * NULL is fine. */
void http_server_stop(struct http_server *server, int64_t grace_ms);

#endif
