#include "serve/notify.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

bool notify_send(const char *state)
{
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t n = path ? strlen(path) : 0;
    if (n < 2 || n >= sizeof address.sun_path || (*path != '/' && *path != '@'))
        return false;
    memcpy(address.sun_path, path, n);
    if (*path == '@') /* of the abstract name space: without a file, and without a NUL at the end */
        address.sun_path[0] = 0;
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return false;
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n + (*path == '/'));
    ssize_t sent = sendto(fd, state, strlen(state), MSG_NOSIGNAL | MSG_DONTWAIT,
                          (const struct sockaddr *)&address, size);
    close(fd);
    return sent == (ssize_t)strlen(state);
}

void notify_reloading(void)
{
    struct timespec now;
    char state[96];
    clock_gettime(CLOCK_MONOTONIC, &now);
    snprintf(state, sizeof state, "RELOADING=1\nMONOTONIC_USEC=%lld",
             (long long)now.tv_sec * 1000000 + now.tv_nsec / 1000);
    notify_send(state);
}

time_ms notify_watchdog_ms(void)
{
    const char *usec = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");
    long long us, of;
    if (!usec || !str_to_i64(str_of(usec), &us) || us <= 0)
        return 0;
    if (pid && (!str_to_i64(str_of(pid), &of) || of != getpid()))
        return 0;
    return us / 1000 > 0 ? us / 1000 : 1;
}
