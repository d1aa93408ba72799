/* A file of the user's is worth more than a run of ours: all names are looked at before the first
 * file is written, through one descriptor of the folder, and links are not followed. */
#include "cmd/patch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "report/text.h"

static enum err io_error(struct error *err, const char *what, const char *folder, const char *name)
{
    return error_set(err, ERR_IO, "cannot %s %s%s%s: %s", what, folder, name ? "/" : "",
                     name ? name : "", strerror(errno));
}

/* May it be written: is it not there, or ours? */
static enum err check_file(int dir, const char *folder, const char *name, struct error *err)
{
    char head[sizeof PATCH_MARK - 1];
    struct stat info;
    int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 && errno == ENOENT)
        return ERR_OK;
    bool ours = fd >= 0 && fstat(fd, &info) == 0 && S_ISREG(info.st_mode) &&
                read(fd, head, sizeof head) == (ssize_t)sizeof head &&
                memcmp(head, PATCH_MARK, sizeof head) == 0;
    if (fd >= 0)
        close(fd);
    if (ours)
        return ERR_OK;
    return error_set(err, ERR_IO,
                     "%s/%s is there and was not written by gputally (it does not begin with "
                     "'%s'): move it away, or give another folder",
                     folder, name, PATCH_MARK);
}

static bool write_all(int fd, struct str text)
{
    while (text.n) {
        ssize_t n = write(fd, text.p, text.n);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        text = (struct str){text.p + n, text.n - (size_t)n};
    }
    return true;
}

static enum err write_file(int dir, const char *folder, const struct patch_file *file,
                           struct error *err)
{
    char draft[64];
    snprintf(draft, sizeof draft, ".gputally-patch-%ld", (long)getpid());
    unlinkat(dir, draft, 0);
    int fd = openat(dir, draft, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (fd < 0)
        return io_error(err, "write", folder, file->name.p);
    enum err code = ERR_OK;
    if (!write_all(fd, strbuf_str(&file->text)) || fsync(fd) != 0)
        code = io_error(err, "write", folder, file->name.p);
    if (close(fd) != 0 && code == ERR_OK)
        code = io_error(err, "write", folder, file->name.p);
    if (code == ERR_OK && renameat(dir, draft, dir, file->name.p) != 0)
        code = io_error(err, "write", folder, file->name.p);
    if (code != ERR_OK)
        unlinkat(dir, draft, 0);
    return code;
}

static void tell(const struct patch_file *file, const char *folder)
{
    struct strbuf text = {0};
    strbuf_addf(&text, "gputally: wrote %s/%.*s: ", folder, STR_ARG(file->name));
    text_plural(&text, (wide_t)file->findings, "finding", "findings");
    strbuf_add(&text, STR(", "));
    text_plural(&text, (wide_t)file->documents, "change", "changes");
    fprintf(stderr, "%.*s\n", STR_ARG(strbuf_str(&text)));
    strbuf_release(&text);
}

enum err patch_write(const struct patch_set *set, const char *folder, bool quiet, struct error *err)
{
    enum err code = ERR_OK;
    if (mkdir(folder, 0755) != 0 && errno != EEXIST)
        return io_error(err, "make", folder, NULL);
    int dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return io_error(err, "open the folder", folder, NULL);
    for (size_t i = 0; i < set->n && code == ERR_OK; i++)
        code = check_file(dir, folder, set->files[i].name.p, err);
    for (size_t i = 0; i < set->n && code == ERR_OK; i++) {
        code = write_file(dir, folder, &set->files[i], err);
        if (code == ERR_OK && !quiet)
            tell(&set->files[i], folder);
    }
    if (code == ERR_OK && !quiet && !set->n)
        fprintf(stderr, "gputally: nothing to write to %s: there is no finding\n", folder);
    close(dir);
    return code;
}
