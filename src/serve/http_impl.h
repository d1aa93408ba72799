/* Private to serve/http*.c and serve/tls.c: the server, an exchange (a request and its answer), and
 * who of the threads may touch what.
 *
 *     event loop: reads the head -> exchange_begin -> body -> dispatch ─┬─ at once: handler
 *                                                                       └─ suspend, queue
 *     worker:     handler -> resume
 *     event loop: exchange_respond -> sends -> exchange_end
 *
 * An exchange has one thread at a time: the loop's until it is queued, then a worker's until it is
 * resumed. What several threads touch (queue, counts, connections, streams) says so. */
#ifndef GPUTALLY_SERVE_HTTP_IMPL_H
#define GPUTALLY_SERVE_HTTP_IMPL_H

#include <gnutls/abstract.h>
#include <gnutls/gnutls.h>
#include <microhttpd.h>
#include <pthread.h>
#include <stdatomic.h>

#include "serve/http.h"
#include "serve/tls.h"

#define HTTP_PEER_MAX 64
#define HTTP_NUL '\x01' /* stands for a NUL in what was decoded */

enum exchange_state {
    EXCHANGE_HEAD, /* the head is there, the body may come */
    EXCHANGE_WORK, /* a worker's, or waits for one; suspended */
    EXCHANGE_DONE, /* the answer is there */
};

struct exchange {
    struct http_server *server;
    struct MHD_Connection *connection;
    struct http_request request;
    const struct http_route *route;
    struct arena arena;
    struct auth *auth; /* held: access points into it */
    struct access access;
    struct strbuf body;
    uint64_t body_declared;  /* Content-Length; counted in the server's total */
    uint64_t body_swallowed; /* of a body that is too large */
    struct http_answer answer;
    enum exchange_state state;
    bool begun, head_only, too_large, answered;
    int64_t began_us;
    int status;
    uint64_t bytes;
    const char *refused;
    char peer[HTTP_PEER_MAX];
    struct str method;
    struct exchange *next; /* in the queue */
};

/* Sockets and until when each must have done what it is at. Any thread, under links_lock. */
struct link {
    struct http_server *server;
    int fd;
    int64_t deadline_ms; /* monotonic; INT64_MAX: none */
    bool asked;          /* a request has come */
    struct link *previous, *next;
};

struct worker {
    struct http_server *server;
    pthread_t thread;
    void *own;
    bool busy; /* under queue_lock */
};

struct http_server {
    struct http_options options;
    struct http_limits limits;
    char **hosts; /* with the listen address among them */
    size_t hosts_n;
    struct http_route *routes;
    size_t routes_n, routes_room;
    struct MHD_Daemon *daemon;
    int listen_fd, port; /* listen_fd: -1 once it is the daemon's */
    int socket;          /* the same, for a server beside */
    struct tls *tls;

    pthread_mutex_t auth_lock;
    struct auth *auth;

    pthread_mutex_t queue_lock;
    pthread_cond_t queue_some, queue_idle;
    struct exchange *queue_first, *queue_last;
    int64_t queued, working;
    struct worker *workers;
    size_t workers_n;
    bool stopping; /* under queue_lock */

    pthread_mutex_t links_lock;
    pthread_cond_t links_stop;
    struct link links; /* head of a ring */
    pthread_t reaper;
    bool reaping; /* under links_lock */

    pthread_mutex_t streams_lock;
    pthread_cond_t streams_gone;
    struct http_stream *streams;
    atomic_llong streams_n;

    atomic_llong connections, body_bytes, exchanges;
};

int64_t http_now_us(void); /* monotonic */

/* http_listen.c: the socket, and under which names the server may be asked. */
enum err http_listen(struct http_server *server, const struct http_server *beside,
                     struct error *err);
bool http_host_is_ours(const struct http_server *server, struct str host);
bool http_listen_is_loopback(const char *listen);

/* http_exchange.c: what libmicrohttpd calls. */
enum MHD_Result exchange_step(void *server, struct MHD_Connection *connection, const char *url,
                              const char *method, const char *version, const char *upload,
                              size_t *upload_n, void **exchange);
void exchange_end(void *server, struct MHD_Connection *connection, void **exchange,
                  enum MHD_RequestTerminationCode why);

/* http_pool.c: workers. */
void pool_start(struct http_server *server);
/* False: the queue is full. The exchange's connection must be suspended before. */
bool pool_push(struct http_server *server, struct exchange *exchange);
/* Waits until deadline_ms for the work to end, then interrupts it, and joins the workers. */
void pool_stop(struct http_server *server, int64_t deadline_ms);

/* http_deadlines.c */
void links_connection(void *server, struct MHD_Connection *connection, void **link,
                      enum MHD_ConnectionNotificationCode what);
void link_expect(struct http_server *server, struct MHD_Connection *connection, int64_t ms);
bool links_are_new(struct http_server *server); /* a connection has not asked anything yet */
void links_start(struct http_server *server);
void links_stop(struct http_server *server);

/* http_respond.c: queue the exchange's answer. */
enum MHD_Result exchange_respond(struct exchange *exchange);

/* http_stream.c */
struct MHD_Response *stream_response(struct exchange *exchange, bool gzip);
void streams_abort(struct http_server *server, int64_t deadline_ms);

/* http_gzip.c */
bool gzip_unpack(struct str packed, size_t plain_n, struct strbuf *ret);
/* Does an Accept-Encoding take gzip? */
bool gzip_is_accepted(struct str accept);

#endif
