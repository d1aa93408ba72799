/* flock and not fcntl: fcntl's locks vanish when any descriptor of the file is closed, and do not
 * keep out a second handle of the same process. The file is removed at the end while the lock is
 * held; a waiting opener may then hold the lock of a removed file, so after locking, the path must
 * still lead to what was locked. */
#include "store/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/str.h"

#define TRIES 16

static enum err held_by_another(int fd, const char *database, struct error *err)
{
    char text[24] = "";
    ssize_t n = pread(fd, text, sizeof text - 1, 0);
    text[n > 0 ? n : 0] = 0;
    text[strcspn(text, "\n")] = 0;
    long long pid;
    if (str_to_i64(str_of(text), &pid))
        return error_set(err, ERR_LOCKED,
                         "%s is being written by process %lld: wait for it or stop it (reading "
                         "with report and export works meanwhile)",
                         database, pid);
    return error_set(err, ERR_LOCKED, "%s is being written by another process (%s.lock is held)",
                     database, database);
}

static bool still_there(int fd, const char *path)
{
    struct stat held, named;
    return fstat(fd, &held) == 0 && stat(path, &named) == 0 && held.st_ino == named.st_ino &&
           held.st_dev == named.st_dev;
}

static enum err try_lock(int fd, const char *path, const char *database, bool *ret_again,
                         struct error *err)
{
    *ret_again = false;
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        if (errno == EWOULDBLOCK)
            return held_by_another(fd, database, err);
        return error_set(err, ERR_IO, "cannot lock %s: %s", path, strerror(errno));
    }
    *ret_again = !still_there(fd, path);
    return ERR_OK;
}

enum err lock_take(struct lock *lock, const char *database, struct error *err)
{
    struct strbuf path = {0};
    strbuf_addf(&path, "%s.lock", database);
    enum err code = ERR_OK;
    int fd = -1;
    bool again = true;
    for (int i = 0; i < TRIES && again && !code; i++) {
        if (fd >= 0)
            close(fd);
        fd = open(path.text, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
        if (fd < 0) {
            code = error_set(err, ERR_IO, "cannot make %s: %s (the folder must be writable)",
                             path.text, strerror(errno));
            break;
        }
        code = try_lock(fd, path.text, database, &again, err);
    }
    if (!code && again)
        code = error_set(err, ERR_LOCKED, "%s: others keep taking and leaving the lock", path.text);
    if (code) {
        if (fd >= 0)
            close(fd);
        strbuf_release(&path);
        return code;
    }
    char pid[24];
    int n = snprintf(pid, sizeof pid, "%ld\n", (long)getpid());
    /* The pid is for people; a full disk must not keep anybody from opening. */
    if (ftruncate(fd, 0) != 0 || pwrite(fd, pid, (size_t)n, 0) != n)
        (void)0;
    *lock = (struct lock){fd, path.text};
    return ERR_OK;
}

void lock_release(struct lock *lock)
{
    if (!lock->path)
        return;
    unlink(lock->path);
    close(lock->fd);
    free(lock->path);
    *lock = (struct lock){0};
}
