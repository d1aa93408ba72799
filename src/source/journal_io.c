#include "source/journal_io.h"

#include <fcntl.h>
#include <unistd.h>

static int system_create(void *context, int folder, const char *name)
{
    (void)context;
    return openat(folder, name, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
}

static ssize_t system_write(void *context, int fd, const void *bytes, size_t n, off_t at)
{
    (void)context;
    return pwrite(fd, bytes, n, at);
}

/* fsync: of a folder it is the only call that says it all, and of a file that only grew it costs
 * what fdatasync does. */
static int system_sync(void *context, int fd)
{
    (void)context;
    return fsync(fd);
}

static int system_truncate(void *context, int fd, off_t size)
{
    (void)context;
    return ftruncate(fd, size);
}

static int system_unlink(void *context, int folder, const char *name)
{
    (void)context;
    return unlinkat(folder, name, 0);
}

const struct journal_io journal_io_system = {.create = system_create,
                                             .write = system_write,
                                             .sync = system_sync,
                                             .truncate = system_truncate,
                                             .unlink = system_unlink};
