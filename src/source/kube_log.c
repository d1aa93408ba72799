/* The log of what was seen of a Kubernetes API. See kube_log.h for the format.
 *
 * A new file is written under another name until its snapshot is on disk, then renamed: a file of
 * the right name always begins with everything.
 *
 *     followers ── append ──> waiting ── writer: takes it all, writes and syncs ──> the newest file
 *
 * `lock` is held for as long as memory takes; `disk`, taken first, while files are written, so that
 * whoever has something to keep never waits for a disk. */
#include "source/kube_log.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "util/clock.h"
#include "wire/crc32c.h"

#define TITLE "gputally kube 1\n"
#define MAGIC 0x474c424bu /* "KBLG" */
#define HEAD_BYTES 16
#define LEVEL 3
#define FILES_MAX 100000
#define LOOK_MS ((time_ms)1000)

struct log_file {
    time_ms start;
    uint64_t bytes;
};

struct kube_log {
    struct kube_history *history;
    char *folder;
    int lock_fd;

    pthread_mutex_t disk; /* of what follows: whoever writes */
    int fd;               /* of the newest file; -1: a new one has to begin */
    struct strbuf packed;

    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t wake;  /* for the writer */
    pthread_t writer;
    bool has_writer, stopping;
    bool due;               /* the writer need not wait for its time */
    bool anew;              /* records were dropped: the newest file ends */
    struct log_file *files; /* in order of time */
    size_t files_n, files_room;
    struct waiting {
        struct strbuf records; /* that are not written yet */
        uint64_t n;
    } waiting;
    time_ms synced; /* monotonic */
    struct kube_log_stats stats;
};

static void put_u32(char *to, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        to[i] = (char)(value >> (8 * i));
}

static uint32_t get_u32(const char *from)
{
    uint32_t value = 0;
    for (int i = 0; i < 4; i++)
        value |= (uint32_t)(unsigned char)from[i] << (8 * i);
    return value;
}

static void path_of(const struct kube_log *log, time_ms start, const char *end, struct strbuf *ret)
{
    strbuf_clear(ret);
    strbuf_addf(ret, "%s/kube-%015lld.%s", log->folder, (long long)start, end);
}

/* With the lock held, where others may look. */
static enum err failed(struct kube_log *log, const char *what, struct error *err)
{
    log->stats.failures++;
    snprintf(log->stats.why, sizeof log->stats.why, "%s %.100s: %s", what, log->folder,
             strerror(errno));
    return error_set(err, ERR_IO, "%s", log->stats.why);
}

/* ------------------------------------------------------------------ reading */

static void read_records(struct kube_log *log, struct str raw)
{
    while (raw.n >= 4) {
        uint32_t n = get_u32(raw.p);
        if (n > raw.n - 4)
            return;
        kube_history_add(log->history, (struct str){raw.p + 4, n}, NULL, NULL);
        raw = (struct str){raw.p + 4 + n, raw.n - 4 - n};
    }
}

/* The next block to `raw`. False: there is none that is whole. */
static bool read_block(FILE *file, struct strbuf *packed, struct strbuf *raw)
{
    char head[HEAD_BYTES];
    if (fread(head, 1, sizeof head, file) != sizeof head || get_u32(head) != MAGIC)
        return false;
    uint32_t raw_n = get_u32(head + 4), packed_n = get_u32(head + 8);
    if (raw_n > KUBE_LOG_BLOCK_MAX || packed_n > KUBE_LOG_BLOCK_MAX)
        return false;
    strbuf_clear(packed);
    mem_reserve(packed->text, packed->n, packed->room, packed_n + 1);
    if (fread(packed->text, 1, packed_n, file) != packed_n ||
        crc32c(0, (struct str){packed->text, packed_n}) != get_u32(head + 12))
        return false;
    strbuf_clear(raw);
    mem_reserve(raw->text, raw->n, raw->room, raw_n + 1);
    raw->n = ZSTD_decompress(raw->text, raw_n, packed->text, packed_n);
    return raw->n == raw_n;
}

/* Feeds a file to the history. */
static void read_file(struct kube_log *log, struct log_file *at, bool newest)
{
    struct strbuf path = {0}, packed = {0}, raw = {0};
    char title[sizeof TITLE - 1];
    path_of(log, at->start, "log", &path);
    FILE *file = fopen(path.text, "r+e");
    long whole = 0;
    if (file && fread(title, 1, sizeof title, file) == sizeof title &&
        memcmp(title, TITLE, sizeof title) == 0) {
        whole = ftell(file);
        while (read_block(file, &packed, &raw)) {
            whole = ftell(file);
            read_records(log, strbuf_str(&raw));
        }
    }
    if (file && (uint64_t)whole < at->bytes) {
        log->stats.damaged++;
        log->stats.cut_bytes += newest ? at->bytes - (uint64_t)whole : 0;
        if (newest && ftruncate(fileno(file), whole) == 0)
            at->bytes = (uint64_t)whole;
    }
    if (file)
        fclose(file);
    strbuf_release(&path);
    strbuf_release(&packed);
    strbuf_release(&raw);
}

static int by_start(const void *a, const void *b)
{
    const struct log_file *x = a, *y = b;
    return (x->start > y->start) - (x->start < y->start);
}

static enum err find_files(struct kube_log *log, struct error *err)
{
    DIR *folder = opendir(log->folder);
    if (!folder)
        return failed(log, "cannot read", err);
    struct dirent *entry;
    while ((entry = readdir(folder)) && log->files_n < FILES_MAX) {
        struct str name = str_of(entry->d_name);
        long long start;
        struct stat info;
        if (!str_starts(name, STR("kube-")) || name.n < 10)
            continue;
        if (str_eq((struct str){name.p + name.n - 4, 4}, STR(".new")))
            unlinkat(dirfd(folder), entry->d_name, 0); /* its snapshot was not complete */
        struct str number = {name.p + 5, name.n - 9};
        if (!str_eq((struct str){name.p + name.n - 4, 4}, STR(".log")) ||
            !str_to_i64(number, &start) || fstatat(dirfd(folder), entry->d_name, &info, 0) != 0)
            continue;
        struct log_file file = {start, (uint64_t)info.st_size};
        mem_push(log->files, log->files_n, log->files_room, file);
    }
    closedir(folder);
    if (log->files_n)
        qsort(log->files, log->files_n, sizeof *log->files, by_start);
    return ERR_OK;
}

/* ------------------------------------------------------------------ writing */

static bool write_all(int fd, const char *p, size_t n)
{
    while (n > 0) {
        ssize_t written = write(fd, p, n);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return false;
        p += written;
        n -= (size_t)written;
    }
    return true;
}

/* A block of records to a file; *bytes grows by what it took. */
static bool write_block(struct kube_log *log, int fd, struct str raw, uint64_t *bytes)
{
    size_t room = ZSTD_compressBound(raw.n) + HEAD_BYTES;
    strbuf_clear(&log->packed);
    mem_reserve(log->packed.text, log->packed.n, log->packed.room, room + 1);
    size_t n = ZSTD_compress(log->packed.text + HEAD_BYTES, room - HEAD_BYTES, raw.p, raw.n, LEVEL);
    invariant(!ZSTD_isError(n));
    put_u32(log->packed.text, MAGIC);
    put_u32(log->packed.text + 4, (uint32_t)raw.n);
    put_u32(log->packed.text + 8, (uint32_t)n);
    put_u32(log->packed.text + 12, crc32c(0, (struct str){log->packed.text + HEAD_BYTES, n}));
    if (!write_all(fd, log->packed.text, n + HEAD_BYTES))
        return false;
    *bytes += n + HEAD_BYTES;
    return true;
}

static void add_record(struct strbuf *to, struct str record)
{
    char head[4];
    put_u32(head, (uint32_t)record.n);
    strbuf_add(to, (struct str){head, sizeof head});
    strbuf_add(to, record);
}

struct new_file {
    struct kube_log *log;
    int fd;
    struct strbuf raw;
    uint64_t bytes;
};

static enum err add_to_new(void *context, time_ms t, struct str record, struct error *err)
{
    struct new_file *to = context;
    (void)t, (void)err;
    add_record(&to->raw, record);
    if (to->raw.n < KUBE_LOG_BLOCK_BYTES)
        return ERR_OK;
    bool good = write_block(to->log, to->fd, strbuf_str(&to->raw), &to->bytes);
    strbuf_clear(&to->raw);
    return good ? ERR_OK : ERR_IO;
}

static bool sync_folder(const struct kube_log *log)
{
    int fd = open(log->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool good = fd >= 0 && fsync(fd) == 0;
    if (fd >= 0)
        close(fd);
    return good;
}

static struct waiting take_waiting(struct kube_log *log)
{
    struct waiting taken = log->waiting;
    log->waiting = (struct waiting){.n = 0};
    return taken;
}

/* In front of what came meanwhile. */
static void put_back(struct kube_log *log, struct waiting *taken)
{
    strbuf_add(&taken->records, strbuf_str(&log->waiting.records));
    taken->n += log->waiting.n;
    strbuf_release(&log->waiting.records);
    log->waiting = *taken;
    *taken = (struct waiting){.n = 0};
}

/* A file that begins with all that is known; what waits is in that and need not be written. The
 * lock is released while the disk is waited for. */
static enum err begin_file(struct kube_log *log, struct error *err)
{
    struct strbuf path = {0}, name = {0};
    time_ms start = clock_now();
    if (log->files_n && start <= log->files[log->files_n - 1].start)
        start = log->files[log->files_n - 1].start + 1;
    path_of(log, start, "new", &path);
    path_of(log, start, "log", &name);
    struct new_file to = {.log = log, .bytes = sizeof TITLE - 1};
    to.fd = open(path.text, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_APPEND, 0600);
    bool good = to.fd >= 0 && write_all(to.fd, TITLE, sizeof TITLE - 1) &&
                kube_history_snapshot(log->history, add_to_new, &to, NULL) == ERR_OK;
    struct waiting taken = take_waiting(log);
    pthread_mutex_unlock(&log->lock);
    if (good && to.raw.n)
        good = write_block(log, to.fd, strbuf_str(&to.raw), &to.bytes);
    good = good && fdatasync(to.fd) == 0 && rename(path.text, name.text) == 0 && sync_folder(log);
    int why = errno;
    if (!good && to.fd >= 0) {
        close(to.fd);
        unlink(path.text);
    }
    pthread_mutex_lock(&log->lock);
    errno = why;
    enum err e = good ? ERR_OK : failed(log, "cannot begin a file in", err);
    if (good) {
        struct log_file file = {start, to.bytes};
        mem_push(log->files, log->files_n, log->files_room, file);
        if (log->fd >= 0)
            close(log->fd);
        log->fd = to.fd;
    } else {
        put_back(log, &taken);
    }
    strbuf_release(&taken.records);
    strbuf_release(&to.raw);
    strbuf_release(&path);
    strbuf_release(&name);
    return e;
}

/* What waits, to the newest file; the lock is released meanwhile. After a failed write the file may
 * have a torn block: a new one begins. */
static enum err write_waiting(struct kube_log *log, struct error *err)
{
    uint64_t bytes = 0;
    enum err e = ERR_OK;
    struct waiting taken = take_waiting(log);
    pthread_mutex_unlock(&log->lock);
    bool good =
        write_block(log, log->fd, strbuf_str(&taken.records), &bytes) && fdatasync(log->fd) == 0;
    int why = errno;
    pthread_mutex_lock(&log->lock);
    log->files[log->files_n - 1].bytes += bytes;
    if (!good) {
        errno = why;
        e = failed(log, "cannot write to", err);
        close(log->fd);
        log->fd = -1;
        put_back(log, &taken);
    }
    strbuf_release(&taken.records);
    return e;
}

/* What waits, to the disk. */
static enum err flush(struct kube_log *log, struct error *err)
{
    enum err e = ERR_OK;
    pthread_mutex_lock(&log->disk);
    pthread_mutex_lock(&log->lock);
    log->synced = clock_monotonic();
    log->due = false;
    if (log->anew && log->fd >= 0) {
        close(log->fd);
        log->fd = -1;
    }
    log->anew = false;
    time_ms age = log->files_n ? clock_now() - log->files[log->files_n - 1].start : 0;
    bool listing = kube_history_listing(log->history); /* a snapshot would lack what is read */
    bool any = log->waiting.n > 0, begins = log->fd < 0 || age >= KUBE_LOG_FILE_MS;
    if (any && begins && !listing)
        e = begin_file(log, err);
    else if (any && log->fd >= 0)
        e = write_waiting(log, err);
    if (any && e == ERR_OK && log->fd >= 0)
        log->stats.why[0] = '\0';
    pthread_mutex_unlock(&log->lock);
    pthread_mutex_unlock(&log->disk);
    return e;
}

static void wait_a_moment(struct kube_log *log)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += LOOK_MS / 1000;
    pthread_cond_timedwait(&log->wake, &log->lock, &until);
}

static void *write_on(void *context)
{
    struct kube_log *log = context;
    pthread_mutex_lock(&log->lock);
    while (!log->stopping) {
        if (!log->due)
            wait_a_moment(log);
        bool late = log->waiting.n && clock_monotonic() - log->synced >= KUBE_LOG_SYNC_MS;
        if (log->stopping || !(log->due || late))
            continue;
        pthread_mutex_unlock(&log->lock);
        flush(log, NULL);
        pthread_mutex_lock(&log->lock);
    }
    pthread_mutex_unlock(&log->lock);
    return NULL;
}

enum err kube_log_append(struct kube_log *log, time_ms t, struct str record, struct error *err)
{
    enum err e = ERR_OK;
    (void)t;
    pthread_mutex_lock(&log->lock);
    struct waiting *waiting = &log->waiting;
    if (waiting->records.n + record.n > KUBE_LOG_WAITING_MAX) { /* the next snapshot has them */
        log->stats.dropped += waiting->n;
        strbuf_release(&waiting->records);
        waiting->n = 0;
        log->anew = true;
    }
    add_record(&waiting->records, record);
    waiting->n++;
    log->stats.records++;
    bool failing = log->stats.why[0];
    bool full = waiting->records.n >= KUBE_LOG_BLOCK_BYTES && !failing;
    if ((full || clock_monotonic() - log->synced >= KUBE_LOG_SYNC_MS) && !log->due) {
        log->due = true;
        pthread_cond_signal(&log->wake);
    }
    if (failing)
        e = error_set(err, ERR_IO, "%s", log->stats.why);
    pthread_mutex_unlock(&log->lock);
    return e;
}

enum err kube_log_sync(struct kube_log *log, struct error *err)
{
    return flush(log, err);
}

/* ------------------------------------------------------------------ life */

static enum err take_lock(struct kube_log *log, struct error *err)
{
    struct strbuf path = {0};
    enum err e = ERR_OK;
    strbuf_addf(&path, "%s/lock", log->folder);
    log->lock_fd = open(path.text, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (log->lock_fd < 0)
        e = failed(log, "cannot write to", err);
    else if (flock(log->lock_fd, LOCK_EX | LOCK_NB) != 0)
        e = error_set(err, ERR_LOCKED, "another process uses %s", log->folder);
    strbuf_release(&path);
    return e;
}

enum err kube_log_open(const char *folder, struct kube_history *history, struct kube_log **ret,
                       struct error *err)
{
    struct kube_log *log = mem_zalloc(1, sizeof *log);
    enum err e = ERR_OK;
    pthread_condattr_t monotonic;
    pthread_mutex_init(&log->disk, NULL);
    pthread_mutex_init(&log->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&log->wake, &monotonic);
    pthread_condattr_destroy(&monotonic);
    log->history = history;
    log->folder = str_dup(str_of(folder));
    log->fd = log->lock_fd = -1;
    log->synced = clock_monotonic();
    if (mkdir(folder, 0700) != 0 && errno != EEXIST)
        e = failed(log, "cannot make the folder", err);
    if (e == ERR_OK)
        e = take_lock(log, err);
    if (e == ERR_OK)
        e = find_files(log, err);
    for (size_t i = 0; e == ERR_OK && i < log->files_n; i++)
        read_file(log, &log->files[i], i + 1 == log->files_n);
    if (e == ERR_OK) {
        log->has_writer = pthread_create(&log->writer, NULL, write_on, log) == 0;
        if (!log->has_writer)
            e = error_set(err, ERR_LIMIT, "cannot start a thread that writes to %s", folder);
    }
    if (e == ERR_OK)
        *ret = log;
    else
        kube_log_close(log);
    return e;
}

void kube_log_close(struct kube_log *log)
{
    if (!log)
        return;
    if (log->has_writer) {
        pthread_mutex_lock(&log->lock);
        log->stopping = true;
        pthread_cond_signal(&log->wake);
        pthread_mutex_unlock(&log->lock);
        pthread_join(log->writer, NULL);
    }
    kube_log_sync(log, NULL);
    if (log->fd >= 0)
        close(log->fd);
    if (log->lock_fd >= 0)
        close(log->lock_fd);
    free(log->folder);
    free(log->files);
    strbuf_release(&log->waiting.records);
    strbuf_release(&log->packed);
    pthread_cond_destroy(&log->wake);
    pthread_mutex_destroy(&log->lock);
    pthread_mutex_destroy(&log->disk);
    free(log);
}

void kube_log_release(struct kube_log *log, time_ms t)
{
    struct strbuf path = {0};
    size_t past = 0;
    pthread_mutex_lock(&log->lock);
    while (past + 1 < log->files_n && log->files[past + 1].start <= t) {
        path_of(log, log->files[past].start, "log", &path);
        if (unlink(path.text) != 0 && errno != ENOENT)
            break;
        past++;
    }
    log->files_n -= past;
    if (past > 0)
        memmove(log->files, log->files + past, log->files_n * sizeof *log->files);
    pthread_mutex_unlock(&log->lock);
    strbuf_release(&path);
}

void kube_log_stats(struct kube_log *log, struct kube_log_stats *ret)
{
    pthread_mutex_lock(&log->lock);
    *ret = log->stats;
    ret->files = log->files_n;
    for (size_t i = 0; i < log->files_n; i++)
        ret->bytes += log->files[i].bytes;
    pthread_mutex_unlock(&log->lock);
}
