/* Workers and their queue. */
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "serve/http_impl.h"

#define WORKERS_LEAST 4
#define WORKERS_MOST 256

static void *work(void *context)
{
    struct worker *worker = context;
    struct http_server *server = worker->server;
    if (server->options.worker_new)
        worker->own = server->options.worker_new(server->options.context);
    pthread_mutex_lock(&server->queue_lock);
    for (;;) {
        while (!server->queue_first && !server->stopping)
            pthread_cond_wait(&server->queue_some, &server->queue_lock);
        struct exchange *exchange = server->queue_first;
        if (!exchange)
            break; /* stopping, and nothing is left */
        server->queue_first = exchange->next;
        if (!server->queue_first)
            server->queue_last = NULL;
        server->queued--;
        server->working++;
        worker->busy = true;
        pthread_mutex_unlock(&server->queue_lock);

        exchange->request.worker = worker->own;
        exchange->route->handle(exchange->route->context, &exchange->request, &exchange->answer);
        exchange->state = EXCHANGE_DONE;
        MHD_resume_connection(exchange->connection);

        pthread_mutex_lock(&server->queue_lock);
        worker->busy = false;
        server->working--;
        if (server->working == 0 && !server->queue_first)
            pthread_cond_broadcast(&server->queue_idle);
    }
    pthread_mutex_unlock(&server->queue_lock);
    if (server->options.worker_free)
        server->options.worker_free(worker->own);
    return NULL;
}

void pool_start(struct http_server *server)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    long n = server->options.workers > 0 ? server->options.workers : cores;
    if (server->options.workers <= 0 && n < WORKERS_LEAST)
        n = WORKERS_LEAST;
    n = n > WORKERS_MOST ? WORKERS_MOST : n;
    server->workers = mem_zalloc((size_t)n, sizeof *server->workers);
    for (long i = 0; i < n; i++) {
        struct worker *worker = &server->workers[i];
        worker->server = server;
        if (pthread_create(&worker->thread, NULL, work, worker) != 0)
            break;
        server->workers_n++;
    }
    invariant(server->workers_n > 0);
}

bool pool_push(struct http_server *server, struct exchange *exchange)
{
    exchange->next = NULL;
    pthread_mutex_lock(&server->queue_lock);
    bool room = !server->stopping && server->queued < server->limits.queue;
    if (room) {
        if (server->queue_last)
            server->queue_last->next = exchange;
        else
            server->queue_first = exchange;
        server->queue_last = exchange;
        server->queued++;
        pthread_cond_signal(&server->queue_some);
    }
    pthread_mutex_unlock(&server->queue_lock);
    return room;
}

static void interrupt_work(struct http_server *server)
{
    if (!server->options.worker_interrupt)
        return;
    for (size_t i = 0; i < server->workers_n; i++)
        if (server->workers[i].busy)
            server->options.worker_interrupt(server->workers[i].own);
}

/* What is queued when the time is over is answered by nobody: its connection is cut. */
static void drop_queue(struct http_server *server)
{
    for (struct exchange *e = server->queue_first, *next; e; e = next) {
        next = e->next;
        http_answer_error(&e->answer, 503, "stopping", "the server is being stopped", NULL);
        e->state = EXCHANGE_DONE;
        MHD_resume_connection(e->connection);
        server->queued--;
    }
    server->queue_first = server->queue_last = NULL;
}

void pool_stop(struct http_server *server, int64_t deadline_ms)
{
    struct timespec until = {.tv_sec = deadline_ms / 1000, .tv_nsec = deadline_ms % 1000 * 1000000};
    pthread_mutex_lock(&server->queue_lock);
    server->stopping = true;
    pthread_cond_broadcast(&server->queue_some);
    while (server->working || server->queue_first)
        if (pthread_cond_timedwait(&server->queue_idle, &server->queue_lock, &until) != 0)
            break;
    drop_queue(server);
    interrupt_work(server);
    pthread_mutex_unlock(&server->queue_lock);
    for (size_t i = 0; i < server->workers_n; i++)
        pthread_join(server->workers[i].thread, NULL);
    free(server->workers);
    server->workers = NULL;
    server->workers_n = 0;
}
