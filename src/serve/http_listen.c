/* The listening socket, and the names that requests may ask for the server by.
 *
 * A page of another site can make a browser ask a name of its own that it lets point to a loopback
 * address (DNS rebinding). The browser then says that name in Host: it is refused. Addresses as
 * numbers cannot be rebound and are fine. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "serve/http_impl.h"

#define BACKLOG 256

/* "127.0.0.1:9300", "[::1]:9300", "localhost:9300", ":9300" -> host and port. */
static bool split(const char *listen, char *host, size_t room, const char **ret_port)
{
    const char *colon = strrchr(listen, ':');
    if (!colon || !colon[1])
        return false;
    const char *from = listen, *to = colon;
    if (*from == '[') {
        if (to == from || to[-1] != ']')
            return false;
        from++, to--;
    }
    size_t n = (size_t)(to - from);
    if (n >= room)
        return false;
    memcpy(host, from, n);
    host[n] = 0;
    *ret_port = colon + 1;
    return true;
}

bool http_listen_is_address(const char *listen)
{
    char host[256];
    const char *port;
    long long number;
    return split(listen, host, sizeof host, &port) && str_to_i64(str_of(port), &number) &&
           number >= 0 && number <= UINT16_MAX;
}

bool http_listen_is_loopback(const char *listen)
{
    char host[256];
    const char *port;
    struct in_addr v4;
    struct in6_addr v6;
    if (!split(listen, host, sizeof host, &port))
        return false;
    if (inet_pton(AF_INET, host, &v4) == 1)
        return ntohl(v4.s_addr) >> 24 == 127;
    if (inet_pton(AF_INET6, host, &v6) == 1)
        return IN6_IS_ADDR_LOOPBACK(&v6);
    return strcmp(host, "localhost") == 0;
}

static void add_host(struct http_server *server, const char *host)
{
    server->hosts = mem_realloc(server->hosts, server->hosts_n + 1, sizeof *server->hosts);
    server->hosts[server->hosts_n++] = str_dup(str_of(host));
}

static int open_socket(const struct addrinfo *at)
{
    int on = 1, off = 0;
    int fd = socket(at->ai_family, at->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, at->ai_protocol);
    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (at->ai_family == AF_INET6) /* ":9300" is for both families */
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    if (bind(fd, at->ai_addr, at->ai_addrlen) == 0 && listen(fd, BACKLOG) == 0)
        return fd;
    int why = errno;
    close(fd);
    errno = why;
    return -1;
}

static int port_of(int fd)
{
    struct sockaddr_storage at;
    socklen_t n = sizeof at;
    if (getsockname(fd, (struct sockaddr *)&at, &n) != 0)
        return 0;
    if (at.ss_family == AF_INET6)
        return ntohs(((struct sockaddr_in6 *)&at)->sin6_port);
    return ntohs(((struct sockaddr_in *)&at)->sin_port);
}

/* The first address that can be had; -1 and errno. */
static int open_first(const struct addrinfo *found, bool any)
{
    int fd = -1;
    errno = EADDRNOTAVAIL;
    for (int pass = 0; pass < 2 && fd < 0; pass++)
        for (const struct addrinfo *at = found; at && fd < 0; at = at->ai_next) {
            /* of all addresses, the one of both families first */
            if ((pass == 0) == (any && at->ai_family != AF_INET6))
                continue;
            fd = open_socket(at);
        }
    return fd;
}

static enum err open_listener(struct http_server *server, const char *host, const char *port,
                              struct error *err)
{
    const char *where = server->options.listen;
    struct addrinfo wanted = {.ai_family = AF_UNSPEC,
                              .ai_socktype = SOCK_STREAM,
                              .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
    struct addrinfo *found = NULL;
    int rc = getaddrinfo(*host ? host : NULL, port, &wanted, &found);
    if (rc != 0)
        return error_set(err, ERR_NETWORK, "listen address '%s': %s", where, gai_strerror(rc));
    server->listen_fd = open_first(found, !*host);
    int why = errno;
    freeaddrinfo(found);
    return server->listen_fd < 0
               ? error_set(err, ERR_NETWORK, "listening on %s: %s", where, strerror(why))
               : ERR_OK;
}

enum err http_listen(struct http_server *server, const struct http_server *beside,
                     struct error *err)
{
    char host[256];
    const char *port, *where = server->options.listen;
    if (!split(where, host, sizeof host, &port))
        return error_set(err, ERR_USAGE,
                         "listen address '%s': write ADDRESS:PORT, such as 127.0.0.1:9300", where);
    if (!beside) {
        enum err code = open_listener(server, host, port, err);
        if (code)
            return code;
    } else {
        server->listen_fd = fcntl(beside->socket, F_DUPFD_CLOEXEC, 0);
        if (server->listen_fd < 0)
            return error_set(err, ERR_LIMIT, "listening on %s: %s", where, strerror(errno));
    }
    server->socket = server->listen_fd;
    server->port = port_of(server->listen_fd);
    add_host(server, "localhost");
    if (*host)
        add_host(server, host);
    for (size_t i = 0; i < server->options.hosts_n; i++)
        add_host(server, server->options.hosts[i]);
    return ERR_OK;
}

/* A name of a pattern such as "*.example.com", or "*". */
static bool name_fits(const char *pattern, struct str name)
{
    struct str end = str_of(pattern);
    if (end.n == 0 || end.p[0] != '*')
        return str_eq_nocase(end, name);
    end.p++, end.n--;
    return name.n >= end.n && str_eq_nocase(end, (struct str){name.p + name.n - end.n, end.n});
}

bool http_host_is_ours(const struct http_server *server, struct str host)
{
    char name[256];
    struct in6_addr v6;
    struct in_addr v4;
    bool bracket = host.n && host.p[0] == '[';
    const char *end = bracket ? memchr(host.p, ']', host.n) : memchr(host.p, ':', host.n);
    if (bracket && !end)
        return false;
    struct str bare = {host.p + bracket, end ? (size_t)(end - host.p) - bracket : host.n};
    if (bare.n == 0 || bare.n >= sizeof name)
        return false;
    memcpy(name, bare.p, bare.n);
    name[bare.n] = 0;
    if (bracket ? inet_pton(AF_INET6, name, &v6) == 1 : inet_pton(AF_INET, name, &v4) == 1)
        return true;
    if (bare.n > 1 && bare.p[bare.n - 1] == '.') /* a name with its root */
        bare.n--;
    for (size_t i = 0; i < server->hosts_n; i++)
        if (name_fits(server->hosts[i], bare))
            return true;
    return false;
}
