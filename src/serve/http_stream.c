/* Answers that are written as they are sent. A writer on a thread of its own fills a buffer of
 * STREAM_BUFFER bytes; the event loop empties it. Each waits for the other: the writer on a
 * condition, the loop by suspending the connection. A client that takes nothing for stall_ms has
 * lost the stream, so that nobody can hold a reader's view of the database open. */
#include <stdlib.h>
#include <time.h>
#include <zlib.h>

#include "serve/http_impl.h"

#define STREAM_BUFFER (256 * 1024)
#define STREAM_BLOCK (32 * 1024)
#define STREAM_LEVEL 1
#define GZIP_WINDOW (15 + 16)

struct http_stream {
    struct http_server *server;
    struct MHD_Connection *connection;
    struct exchange *exchange; /* the loop's only */
    void (*write)(void *context, struct http_stream *to);
    void (*free)(void *context);
    void *context;
    bool gzip; /* the writer's only, so is deflate */
    z_stream deflate;

    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t taken;
    char *buffer;
    size_t from, n;
    bool waiting;                        /* the loop has suspended the connection */
    bool finished;                       /* the writer has */
    bool gone;                           /* the client has, or must */
    int owners;                          /* the response, the writer */
    struct http_stream *previous, *next; /* under the server's streams_lock */
};

static void let_go(struct http_stream *stream)
{
    pthread_mutex_lock(&stream->lock);
    bool last = --stream->owners == 0;
    pthread_mutex_unlock(&stream->lock);
    if (!last)
        return;
    if (stream->free)
        stream->free(stream->context);
    if (stream->gzip)
        deflateEnd(&stream->deflate);
    pthread_cond_destroy(&stream->taken);
    pthread_mutex_destroy(&stream->lock);
    free(stream->buffer);
    free(stream);
}

/* ---- the loop's end ---- */

static ssize_t take(void *context, uint64_t at, char *to, size_t room)
{
    struct http_stream *stream = context;
    (void)at;
    pthread_mutex_lock(&stream->lock);
    ssize_t n = 0;
    if (stream->gone) {
        n = MHD_CONTENT_READER_END_WITH_ERROR;
    } else if (stream->n) {
        n = (ssize_t)(stream->n < room ? stream->n : room);
        memcpy(to, stream->buffer + stream->from, (size_t)n);
        stream->from += (size_t)n;
        stream->n -= (size_t)n;
        stream->from = stream->n ? stream->from : 0;
        stream->exchange->bytes += (uint64_t)n;
        pthread_cond_signal(&stream->taken);
    } else if (stream->finished) {
        n = MHD_CONTENT_READER_END_OF_STREAM;
    } else {
        stream->waiting = true;
        MHD_suspend_connection(stream->connection);
    }
    pthread_mutex_unlock(&stream->lock);
    return n;
}

static void response_gone(void *context)
{
    struct http_stream *stream = context;
    pthread_mutex_lock(&stream->lock);
    stream->gone = true;
    stream->waiting = false;
    pthread_cond_signal(&stream->taken);
    pthread_mutex_unlock(&stream->lock);
    let_go(stream);
}

static void wake(struct http_stream *stream) /* locked */
{
    if (!stream->waiting)
        return;
    stream->waiting = false;
    MHD_resume_connection(stream->connection);
}

/* ---- the writer's end ---- */

static bool wait_for_room(struct http_stream *stream) /* locked */
{
    int64_t until_ms = http_now_us() / 1000 + stream->server->limits.stall_ms;
    struct timespec until = {.tv_sec = until_ms / 1000, .tv_nsec = until_ms % 1000 * 1000000};
    while (stream->from + stream->n == STREAM_BUFFER && !stream->gone) {
        if (stream->from) {
            memmove(stream->buffer, stream->buffer + stream->from, stream->n);
            stream->from = 0;
        } else if (pthread_cond_timedwait(&stream->taken, &stream->lock, &until) != 0) {
            stream->gone = true;
            wake(stream);
        }
    }
    return !stream->gone;
}

static bool put(struct http_stream *stream, struct str bytes)
{
    pthread_mutex_lock(&stream->lock);
    while (bytes.n && wait_for_room(stream)) {
        size_t at = stream->from + stream->n;
        size_t n = STREAM_BUFFER - at < bytes.n ? STREAM_BUFFER - at : bytes.n;
        memcpy(stream->buffer + at, bytes.p, n);
        stream->n += n;
        bytes = (struct str){bytes.p + n, bytes.n - n};
        wake(stream);
    }
    bool fine = !stream->gone;
    pthread_mutex_unlock(&stream->lock);
    return fine;
}

static bool put_packed(struct http_stream *stream, struct str bytes, int flush)
{
    unsigned char out[16384];
    z_stream *z = &stream->deflate;
    z->next_in = (unsigned char *)bytes.p;
    z->avail_in = (unsigned)bytes.n;
    do {
        z->next_out = out;
        z->avail_out = sizeof out;
        deflate(z, flush);
        if (!put(stream, (struct str){(char *)out, sizeof out - z->avail_out}))
            return false;
    } while (z->avail_out == 0);
    return true;
}

bool http_stream_write(struct http_stream *stream, struct str bytes)
{
    invariant(bytes.n < UINT32_MAX);
    return stream->gzip ? put_packed(stream, bytes, Z_NO_FLUSH) : put(stream, bytes);
}

void http_stream_fail(struct http_stream *stream)
{
    pthread_mutex_lock(&stream->lock);
    stream->gone = true;
    wake(stream);
    pthread_mutex_unlock(&stream->lock);
}

static void *run(void *context)
{
    struct http_stream *stream = context;
    struct http_server *server = stream->server;
    stream->write(stream->context, stream);
    if (stream->gzip)
        put_packed(stream, STR_NONE, Z_FINISH);
    pthread_mutex_lock(&stream->lock);
    stream->finished = true;
    wake(stream);
    pthread_mutex_unlock(&stream->lock);
    pthread_mutex_lock(&server->streams_lock);
    if (stream->next)
        stream->next->previous = stream->previous;
    if (stream->previous)
        stream->previous->next = stream->next;
    else
        server->streams = stream->next;
    /* From here on nobody finds it: the last owner frees it. The server waits for all of these. */
    let_go(stream);
    atomic_fetch_sub(&server->streams_n, 1);
    pthread_cond_broadcast(&server->streams_gone);
    pthread_mutex_unlock(&server->streams_lock);
    return NULL;
}

static bool start(struct http_stream *stream)
{
    struct http_server *server = stream->server;
    pthread_t thread;
    pthread_attr_t detached;
    pthread_attr_init(&detached);
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    pthread_mutex_lock(&server->streams_lock);
    stream->next = server->streams;
    if (stream->next)
        stream->next->previous = stream;
    server->streams = stream;
    bool fine = pthread_create(&thread, &detached, run, stream) == 0;
    if (!fine) {
        server->streams = stream->next;
        if (stream->next)
            stream->next->previous = NULL;
    }
    pthread_mutex_unlock(&server->streams_lock);
    pthread_attr_destroy(&detached);
    return fine;
}

/* NULL: too many streams. Takes the answer's stream over otherwise. */
struct MHD_Response *stream_response(struct exchange *exchange, bool gzip)
{
    struct http_server *server = exchange->server;
    struct http_answer *answer = &exchange->answer;
    if (atomic_fetch_add(&server->streams_n, 1) >= server->limits.streams) {
        atomic_fetch_sub(&server->streams_n, 1);
        return NULL;
    }
    struct http_stream *stream = mem_zalloc(1, sizeof *stream);
    *stream = (struct http_stream){.server = server,
                                   .connection = exchange->connection,
                                   .exchange = exchange,
                                   .write = answer->stream,
                                   .free = answer->stream_free,
                                   .context = answer->stream_context,
                                   .gzip = gzip,
                                   .owners = 2};
    pthread_mutex_init(&stream->lock, NULL);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&stream->taken, &monotonic);
    pthread_condattr_destroy(&monotonic);
    stream->buffer = mem_alloc(STREAM_BUFFER);
    if (gzip)
        invariant(deflateInit2(&stream->deflate, STREAM_LEVEL, Z_DEFLATED, GZIP_WINDOW, 8,
                               Z_DEFAULT_STRATEGY) == Z_OK);
    answer->stream_free = NULL;
    if (exchange->head_only || !start(stream)) {
        stream->finished = exchange->head_only;
        stream->gone = !exchange->head_only;
        stream->owners = 1;
        atomic_fetch_sub(&server->streams_n, 1);
    }
    return MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, STREAM_BLOCK, take, stream,
                                             response_gone);
}

void streams_abort(struct http_server *server, int64_t deadline_ms)
{
    struct timespec until = {.tv_sec = deadline_ms / 1000, .tv_nsec = deadline_ms % 1000 * 1000000};
    pthread_mutex_lock(&server->streams_lock);
    while (server->streams)
        if (pthread_cond_timedwait(&server->streams_gone, &server->streams_lock, &until) != 0)
            break;
    for (struct http_stream *stream = server->streams; stream; stream = stream->next) {
        pthread_mutex_lock(&stream->lock);
        stream->gone = true;
        wake(stream);
        pthread_cond_signal(&stream->taken);
        pthread_mutex_unlock(&stream->lock);
    }
    while (server->streams) /* the writers see it at their next write */
        pthread_cond_wait(&server->streams_gone, &server->streams_lock);
    pthread_mutex_unlock(&server->streams_lock);
}
