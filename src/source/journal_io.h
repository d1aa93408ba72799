/* The calls by which the journal changes the disk, in a table: tests put one in that fails at a
 * chosen call, with a short write, ENOSPC, EROFS or EIO. They behave as the system calls do, with
 * errno; the system's are used unless options say otherwise. */
#ifndef GPUTALLY_SOURCE_JOURNAL_IO_H
#define GPUTALLY_SOURCE_JOURNAL_IO_H

#include <sys/types.h>

struct journal_io {
    void *context;
    int (*create)(void *context, int folder, const char *name); /* O_CREAT|O_EXCL|O_RDWR, 0600 */
    ssize_t (*write)(void *context, int fd, const void *bytes, size_t n, off_t at);
    int (*sync)(void *context, int fd); /* a file or a folder */
    int (*truncate)(void *context, int fd, off_t size);
    int (*unlink)(void *context, int folder, const char *name);
};
extern const struct journal_io journal_io_system;

#endif
