/* One line of offsets, whatever lies where: first what is in the file and what was kept in memory
 * instead, in buffers, then the buffer that is being filled. */
#include "fleet/spill.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "util/error.h"

#define BUFFER_BYTES ((size_t)256 << 10)

struct kept {
    uint64_t at;
    struct strbuf bytes;
};

struct spill {
    pthread_mutex_t lock;
    char *folder; /* NULL: no file, or no more */
    int fd;       /* -1: none */
    uint64_t end; /* offset of the buffer */
    struct strbuf buffer;
    struct kept *kept; /* in order of offset */
    size_t kept_n, kept_room;
};

struct spill *spill_new(const char *folder)
{
    struct spill *spill = mem_zalloc(1, sizeof *spill);
    pthread_mutex_init(&spill->lock, NULL);
    spill->folder = folder ? str_dup(str_of(folder)) : NULL;
    spill->fd = -1;
    return spill;
}

void spill_free(struct spill *spill)
{
    if (!spill)
        return;
    if (spill->fd >= 0)
        close(spill->fd);
    for (size_t i = 0; i < spill->kept_n; i++)
        strbuf_release(&spill->kept[i].bytes);
    free(spill->kept);
    strbuf_release(&spill->buffer);
    free(spill->folder);
    pthread_mutex_destroy(&spill->lock);
    free(spill);
}

/* A file that no name leads to; -1: none. */
static int open_nameless(const char *folder)
{
    int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0)
        return fd;
    struct strbuf path = {0}; /* not every file system has such files */
    strbuf_addf(&path, "%s/gputally-XXXXXX", folder);
    fd = mkostemp(path.text, O_CLOEXEC);
    if (fd >= 0)
        unlink(path.text);
    strbuf_release(&path);
    return fd;
}

static bool has_room(int fd, size_t bytes)
{
    struct statvfs disk;
    return fstatvfs(fd, &disk) == 0 &&
           (uint64_t)disk.f_bavail * disk.f_frsize >= SPILL_LEAVE_BYTES + bytes;
}

static bool write_all(int fd, struct str bytes, uint64_t at)
{
    for (size_t done = 0; done < bytes.n;) {
        ssize_t n = pwrite(fd, bytes.p + done, bytes.n - done, (off_t)(at + done));
        if (n <= 0 && !(n < 0 && errno == EINTR))
            return false;
        done += n > 0 ? (size_t)n : 0;
    }
    return true;
}

/* The buffer to the file, or out of the way. Lock held. */
static void flush(struct spill *spill)
{
    struct str bytes = strbuf_str(&spill->buffer);
    if (spill->folder && spill->fd < 0)
        spill->fd = open_nameless(spill->folder);
    bool written = spill->folder && spill->fd >= 0 && has_room(spill->fd, bytes.n) &&
                   write_all(spill->fd, bytes, spill->end);
    if (written) {
        strbuf_clear(&spill->buffer);
    } else {
        free(spill->folder); /* not tried again */
        spill->folder = NULL;
        struct kept kept = {spill->end, spill->buffer};
        mem_push(spill->kept, spill->kept_n, spill->kept_room, kept);
        spill->buffer = (struct strbuf){0};
    }
    spill->end += bytes.n;
}

struct spill_ref spill_put(struct spill *spill, struct str bytes)
{
    pthread_mutex_lock(&spill->lock);
    if (spill->buffer.n && spill->buffer.n + bytes.n > BUFFER_BYTES)
        flush(spill);
    if (!spill->buffer.room) { /* as much as it gets, once */
        spill->buffer.room = BUFFER_BYTES + 1;
        spill->buffer.text = mem_alloc(spill->buffer.room);
    }
    struct spill_ref ref = {spill->end + spill->buffer.n, bytes.n};
    strbuf_add(&spill->buffer, bytes);
    pthread_mutex_unlock(&spill->lock);
    return ref;
}

/* What of the reference lies in memory; p NULL: nothing. Lock held. */
static struct str in_memory(const struct spill *spill, struct spill_ref ref)
{
    if (ref.at >= spill->end)
        return (struct str){spill->buffer.text + (ref.at - spill->end), ref.bytes};
    size_t low = 0, high = spill->kept_n; /* the last that begins at or before it */
    while (low < high) {
        size_t mid = (low + high) / 2;
        if (spill->kept[mid].at <= ref.at)
            low = mid + 1;
        else
            high = mid;
    }
    if (!low)
        return (struct str){NULL, 0};
    const struct kept *kept = &spill->kept[low - 1];
    return (struct str){kept->bytes.text + (ref.at - kept->at), ref.bytes};
}

bool spill_get(struct spill *spill, struct spill_ref ref, struct strbuf *ret)
{
    strbuf_clear(ret);
    pthread_mutex_lock(&spill->lock);
    struct str bytes = in_memory(spill, ref);
    if (bytes.p)
        strbuf_add(ret, bytes);
    int fd = spill->fd;
    pthread_mutex_unlock(&spill->lock);
    if (bytes.p)
        return true;
    if (ret->room < ref.bytes + 1) {
        ret->room = ref.bytes + 1;
        ret->text = mem_realloc(ret->text, ret->room, 1);
    }
    while (ret->n < ref.bytes) {
        ssize_t n = pread(fd, ret->text + ret->n, ref.bytes - ret->n, (off_t)(ref.at + ret->n));
        if (n <= 0 && !(n < 0 && errno == EINTR))
            return false;
        ret->n += n > 0 ? (size_t)n : 0;
    }
    ret->text[ret->n] = 0;
    return true;
}
