/* Unpacking as a stream. The first four bytes choose: gzip 1f 8b, zstd 28 b5 2f fd, else plain. */
#include "source/input.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#define PACKED_BYTES ((size_t)256 << 10)
#define ZSTD_WINDOW_LOG_MAX 27 /* 128 MiB: what a frame may make us hold */

struct input {
    char *path;
    int fd;
    uint64_t bytes, size;
    enum { PLAIN, GZIP, ZSTD } how;
    bool at_end;   /* of the packed bytes */
    bool in_frame; /* a packed member has begun and has not ended */
    z_stream z;
    ZSTD_DStream *zstd;
    size_t at, n; /* packed bytes that wait in buf */
    unsigned char buf[PACKED_BYTES];
};

/* Reads on until the buffer holds something, or the end. */
static enum err fill(struct input *in, struct error *err)
{
    while (in->at == in->n && !in->at_end) {
        ssize_t n = read(in->fd, in->buf, sizeof in->buf);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return error_set(err, ERR_IO, "%s: %s", in->path, strerror(errno));
        in->at = 0;
        in->n = (size_t)n;
        in->bytes += (uint64_t)n;
        in->at_end = n == 0;
    }
    return ERR_OK;
}

/* The first bytes, of which a pipe may give fewer at once. */
static enum err peek(struct input *in, struct error *err)
{
    while (in->n < 4) {
        ssize_t n = read(in->fd, in->buf + in->n, sizeof in->buf - in->n);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return error_set(err, ERR_IO, "%s: %s", in->path, strerror(errno));
        if (n == 0)
            break;
        in->n += (size_t)n;
        in->bytes += (uint64_t)n;
    }
    if (in->n >= 2 && in->buf[0] == 0x1f && in->buf[1] == 0x8b)
        in->how = GZIP;
    else if (in->n >= 4 && memcmp(in->buf, "\x28\xb5\x2f\xfd", 4) == 0)
        in->how = ZSTD;
    if (in->how == GZIP && inflateInit2(&in->z, 15 + 16) != Z_OK)
        return error_set(err, ERR_IO, "%s: zlib does not start", in->path);
    if (in->how == ZSTD) {
        in->zstd = ZSTD_createDStream();
        if (!in->zstd)
            return error_set(err, ERR_IO, "%s: zstd does not start", in->path);
        ZSTD_DCtx_setParameter(in->zstd, ZSTD_d_windowLogMax, ZSTD_WINDOW_LOG_MAX);
    }
    return ERR_OK;
}

enum err input_open(const char *path, struct input **ret, struct error *err)
{
    struct input *in = mem_zalloc(1, sizeof *in);
    bool standard = strcmp(path, "-") == 0;
    in->path = str_dup(standard ? STR("standard input") : str_of(path));
    in->fd = standard ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC);
    struct stat st;
    enum err rc = ERR_OK;
    if (in->fd < 0 || fstat(in->fd, &st) != 0)
        rc = error_set(err, ERR_IO, "%s: %s", in->path, strerror(errno));
    else if (S_ISDIR(st.st_mode))
        rc = error_set(err, ERR_IO, "%s: is a folder", in->path);
    else if (S_ISREG(st.st_mode))
        in->size = (uint64_t)st.st_size;
    if (!rc)
        rc = peek(in, err);
    if (rc) {
        input_close(in);
        return rc;
    }
    *ret = in;
    return ERR_OK;
}

static enum err read_plain(struct input *in, char *buf, size_t room, size_t *ret_n,
                           struct error *err)
{
    enum err rc = fill(in, err);
    if (rc)
        return rc;
    size_t n = in->n - in->at < room ? in->n - in->at : room;
    memcpy(buf, in->buf + in->at, n);
    in->at += n;
    *ret_n = n;
    return ERR_OK;
}

/* One step of zlib: *ret_n bytes came out. */
static enum err step_gzip(struct input *in, char *buf, size_t room, size_t *ret_n,
                          struct error *err)
{
    if (!in->in_frame && in->z.total_in > 0)
        inflateReset(&in->z); /* the next member */
    in->in_frame = true;
    in->z.next_in = in->buf + in->at;
    in->z.avail_in = (uInt)(in->n - in->at);
    in->z.next_out = (unsigned char *)buf;
    in->z.avail_out = (uInt)(room > UINT32_MAX ? UINT32_MAX : room);
    uInt before = in->z.avail_out;
    int rc = inflate(&in->z, Z_NO_FLUSH);
    in->at = in->n - in->z.avail_in;
    *ret_n = before - in->z.avail_out;
    if (rc == Z_STREAM_END)
        in->in_frame = false;
    else if (rc != Z_OK && rc != Z_BUF_ERROR)
        return error_set(err, ERR_PARSE, "%s: broken gzip: %s", in->path,
                         in->z.msg ? in->z.msg : "bad data");
    return ERR_OK;
}

static enum err step_zstd(struct input *in, char *buf, size_t room, size_t *ret_n,
                          struct error *err)
{
    ZSTD_inBuffer from = {in->buf, in->n, in->at};
    ZSTD_outBuffer to = {buf, room, 0};
    size_t rc = ZSTD_decompressStream(in->zstd, &to, &from);
    in->at = from.pos;
    *ret_n = to.pos;
    if (ZSTD_isError(rc))
        return error_set(err, ERR_PARSE, "%s: broken zstd: %s", in->path, ZSTD_getErrorName(rc));
    in->in_frame = rc != 0;
    return ERR_OK;
}

enum err input_read(struct input *in, char *buf, size_t room, size_t *ret_n, struct error *err)
{
    if (in->how == PLAIN)
        return read_plain(in, buf, room, ret_n, err);
    for (;;) {
        enum err rc = fill(in, err);
        if (rc)
            return rc;
        bool ended = in->at == in->n; /* what is left is held by the unpacker */
        if (ended && !in->in_frame) {
            *ret_n = 0;
            return ERR_OK;
        }
        rc = in->how == GZIP ? step_gzip(in, buf, room, ret_n, err)
                             : step_zstd(in, buf, room, ret_n, err);
        if (rc || *ret_n)
            return rc;
        if (ended && in->in_frame)
            return error_set(err, ERR_PARSE, "%s: cut off in the middle of packed bytes", in->path);
    }
}

uint64_t input_bytes(const struct input *in)
{
    return in->bytes;
}

uint64_t input_size(const struct input *in)
{
    return in->size;
}

void input_close(struct input *in)
{
    if (!in)
        return;
    if (in->how == GZIP)
        inflateEnd(&in->z);
    ZSTD_freeDStream(in->zstd);
    if (in->fd >= 0)
        close(in->fd);
    free(in->path);
    free(in);
}
