/* Deadlines of connections. libmicrohttpd ends connections on which nothing moves; one that sends
 * a byte now and then would stay for ever. So each connection has a time by which it must have sent
 * its request, or taken its answer, and a thread shuts down those that have not. */
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>

#include "serve/http_impl.h"

#define LOOK_EVERY_MS 250

void links_connection(void *context, struct MHD_Connection *connection, void **slot,
                      enum MHD_ConnectionNotificationCode what)
{
    struct http_server *server = context;
    if (what == MHD_CONNECTION_NOTIFY_STARTED) {
        const union MHD_ConnectionInfo *info =
            MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
        struct link *link = mem_zalloc(1, sizeof *link);
        link->server = server;
        link->fd = info ? info->connect_fd : -1;
        link->deadline_ms = http_now_us() / 1000 + server->limits.head_ms;
        pthread_mutex_lock(&server->links_lock);
        link->next = server->links.next;
        link->previous = &server->links;
        link->next->previous = link;
        server->links.next = link;
        pthread_mutex_unlock(&server->links_lock);
        atomic_fetch_add(&server->connections, 1);
        *slot = link;
        return;
    }
    struct link *link = *slot;
    if (!link)
        return;
    pthread_mutex_lock(&server->links_lock);
    link->next->previous = link->previous;
    link->previous->next = link->next;
    pthread_mutex_unlock(&server->links_lock);
    atomic_fetch_sub(&server->connections, 1);
    free(link);
    *slot = NULL;
}

void link_expect(struct http_server *server, struct MHD_Connection *connection, int64_t ms)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    struct link *link = info ? info->socket_context : NULL;
    if (!link)
        return;
    pthread_mutex_lock(&server->links_lock);
    link->deadline_ms = ms < 0 ? INT64_MAX : http_now_us() / 1000 + ms;
    link->asked = true;
    pthread_mutex_unlock(&server->links_lock);
}

bool links_are_new(struct http_server *server)
{
    bool new = false;
    pthread_mutex_lock(&server->links_lock);
    for (struct link *link = server->links.next; link != &server->links; link = link->next)
        new |= !link->asked;
    pthread_mutex_unlock(&server->links_lock);
    return new;
}

static void *reap(void *context)
{
    struct http_server *server = context;
    pthread_mutex_lock(&server->links_lock);
    while (server->reaping) {
        int64_t now_ms = http_now_us() / 1000;
        for (struct link *link = server->links.next; link != &server->links; link = link->next)
            if (link->deadline_ms < now_ms) {
                shutdown(link->fd, SHUT_RDWR); /* the loop sees it and closes */
                link->deadline_ms = INT64_MAX;
            }
        now_ms += LOOK_EVERY_MS;
        struct timespec until = {.tv_sec = now_ms / 1000, .tv_nsec = now_ms % 1000 * 1000000};
        pthread_cond_timedwait(&server->links_stop, &server->links_lock, &until);
    }
    pthread_mutex_unlock(&server->links_lock);
    return NULL;
}

void links_start(struct http_server *server)
{
    server->reaping = true;
    if (pthread_create(&server->reaper, NULL, reap, server) != 0)
        server->reaping = false;
}

void links_stop(struct http_server *server)
{
    pthread_mutex_lock(&server->links_lock);
    bool was = server->reaping;
    server->reaping = false;
    pthread_cond_broadcast(&server->links_stop);
    pthread_mutex_unlock(&server->links_lock);
    if (was)
        pthread_join(server->reaper, NULL);
}
