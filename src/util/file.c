#include "util/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

static enum err write_new(const char *path, struct str text, struct error *err)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    bool good = fd >= 0;
    while (good && text.n) {
        ssize_t n = write(fd, text.p, text.n);
        good = n > 0 || (n < 0 && errno == EINTR);
        text.p += n > 0 ? n : 0;
        text.n -= n > 0 ? (size_t)n : 0;
    }
    good = good && fsync(fd) == 0;
    int why = errno;
    if (fd >= 0 && close(fd) != 0 && good)
        good = false, why = errno;
    return good ? ERR_OK : error_set(err, ERR_IO, "%s: %s", path, strerror(why));
}

enum err file_replace(const char *path, struct str text, struct error *err)
{
    struct strbuf fresh = {0};
    strbuf_addf(&fresh, "%s.new", path);
    enum err code = write_new(fresh.text, text, err);
    if (!code && rename(fresh.text, path) != 0)
        code = error_set(err, ERR_IO, "%s: %s", path, strerror(errno));
    strbuf_release(&fresh);
    return code;
}
