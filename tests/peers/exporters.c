/* Many dcgm-exporters in one process: a node's page under /node/N/metrics.
 *
 *     exporters BEGIN_MS SPEED      prints its port; serves until standard input ends
 *
 * The fleet's clock shows BEGIN_MS now, and runs SPEED times as fast as ours. Each node has 8 GPUs;
 * every hour other pods hold them. One thread, keep-alive; what a page says depends on node and
 * time alone. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "util/clock.h"

#define GPUS 8
#define PAGE_MAX ((size_t)64 << 10)
#define EVENTS_MAX 64
#define HOUR_S 3600

static double begin_ms, speed;
static time_ms started;

static long long fleet_s(void)
{
    return (long long)((begin_ms + (double)(clock_monotonic() - started) * speed) / 1000);
}

/* Values change with the turn k; the last digits of shares are a tenth. */
static const struct family {
    const char *name;
    int least, range, per;
} families[] = {
    {"DCGM_FI_DEV_GPU_UTIL", 0, 100, 1},
    {"DCGM_FI_DEV_FB_USED", 1000, 7000, 1},
    {"DCGM_FI_DEV_FB_FREE", 73000, 7000, 1},
    {"DCGM_FI_DEV_POWER_USAGE", 90, 300, 1},
    {"DCGM_FI_PROF_GR_ENGINE_ACTIVE", 0, 100, 100},
    {"DCGM_FI_PROF_SM_ACTIVE", 0, 90, 100},
};

static size_t make_page(char *page, long node)
{
    long long now = fleet_s();
    size_t n = 0;
    for (size_t f = 0; f < sizeof families / sizeof *families; f++) {
        const struct family *family = &families[f];
        n += (size_t)snprintf(page + n, PAGE_MAX - n, "# TYPE %s gauge\n", family->name);
        for (int gpu = 0; gpu < GPUS; gpu++) {
            long long k = now / 15 + 31 * gpu + node;
            n +=
                (size_t)snprintf(page + n, PAGE_MAX - n,
                                 "%s{gpu=\"%d\",UUID=\"GPU-%08lx-%d\",modelName=\"NVIDIA H100 80GB "
                                 "HBM3\",Hostname=\"n%ld\",exported_namespace=\"ns%ld\","
                                 "exported_pod=\"train-%llx-%ld-%d\",exported_container=\"main\"} "
                                 "%g\n",
                                 family->name, gpu, node, gpu, node, node % 7, now / HOUR_S, node,
                                 gpu, family->least + (double)(k % family->range) / family->per);
        }
    }
    return n;
}

static void send_all(int fd, const char *bytes, size_t n)
{
    for (size_t sent = 0; sent < n;) {
        ssize_t more = send(fd, bytes + sent, n - sent, MSG_NOSIGNAL);
        struct pollfd room = {.fd = fd, .events = POLLOUT};
        if (more > 0)
            sent += (size_t)more;
        else if (more < 0 && errno == EAGAIN && poll(&room, 1, 1000) > 0)
            continue;
        else
            return; /* it has gone, and the next read says so */
    }
}

static void answer(int fd)
{
    static char page[PAGE_MAX], head[200], ask[8192];
    ssize_t got = recv(fd, ask, sizeof ask - 1, 0);
    if (got <= 0) {
        close(fd);
        return;
    }
    ask[got] = 0;
    const char *node = strstr(ask, "/node/");
    size_t n = make_page(page, node ? strtol(node + 6, NULL, 10) : 0);
    int head_n = snprintf(head, sizeof head,
                          "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\n"
                          "Content-Length: %zu\r\n\r\n",
                          n);
    send_all(fd, head, (size_t)head_n);
    send_all(fd, page, n);
}

static void take(int set, int listener)
{
    int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK), on = 1;
    struct epoll_event event = {.events = EPOLLIN, .data = {.fd = fd}};
    if (fd < 0)
        return;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    epoll_ctl(set, EPOLL_CTL_ADD, fd, &event);
}

static void serve(int listener)
{
    int set = epoll_create1(0);
    int always[] = {listener, STDIN_FILENO};
    for (int i = 0; i < 2; i++) {
        struct epoll_event event = {.events = EPOLLIN, .data = {.fd = always[i]}};
        epoll_ctl(set, EPOLL_CTL_ADD, always[i], &event);
    }
    for (;;) {
        struct epoll_event events[EVENTS_MAX];
        int n = epoll_wait(set, events, EVENTS_MAX, -1);
        for (int i = 0; i < n; i++) {
            if (events[i].data.fd == STDIN_FILENO)
                return;
            if (events[i].data.fd == listener)
                take(set, listener);
            else
                answer(events[i].data.fd);
        }
    }
}

int main(int argc, char **argv)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof address;
    struct rlimit files;
    if (argc != 3)
        return 2;
    begin_ms = strtod(argv[1], NULL);
    speed = strtod(argv[2], NULL);
    started = clock_monotonic();
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
    }
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(listener, (struct sockaddr *)&address, size) != 0 || listen(listener, 4096) != 0 ||
        getsockname(listener, (struct sockaddr *)&address, &size) != 0)
        return 1;
    printf("%d\n", ntohs(address.sin_port));
    fflush(stdout);
    serve(listener);
    return 0;
}
