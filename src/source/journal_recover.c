/* Segment files that were found when the journal is opened.
 *
 * A sealed one has its index at its end, and is believed by that: its frames are checked when they
 * are read. One without a sound index was being written when the process ended (or its end is
 * damaged): every frame is looked at, whatever follows the last sound one is a torn tail and is
 * cut, and what is no frame between sound ones is counted. Then it is sealed. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "source/journal_impl.h"

#define SEARCH_BYTES ((size_t)1 << 20)

bool read_bytes(int fd, uint64_t at, size_t n, struct strbuf *buf)
{
    strbuf_clear(buf);
    mem_reserve(buf->text, buf->n, buf->room, n + 1);
    while (buf->n < n) {
        ssize_t got = pread(fd, buf->text + buf->n, n - buf->n, (off_t)(at + buf->n));
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        buf->n += (size_t)got;
    }
    buf->text[buf->n] = 0;
    return buf->n == n;
}

/* A file in hand. */
struct found {
    struct segment *segment; /* of whose salt its frames are */
    int fd;
    uint64_t size;
    struct strbuf bytes;
};

/* Is there a sound frame at `at`? */
static bool frame_at(struct found *found, uint64_t at, struct frame *ret)
{
    if (at > found->size || found->size - at < FRAME_HEADER_BYTES ||
        !read_bytes(found->fd, at, FRAME_HEADER_BYTES, &found->bytes) ||
        !frame_read(found->bytes.text, found->segment->head.salt, ret) ||
        found->size - at - FRAME_HEADER_BYTES < ret->packed ||
        !read_bytes(found->fd, at + FRAME_HEADER_BYTES, ret->packed, &found->bytes))
        return false;
    return frame_payload_is_sound(ret, strbuf_str(&found->bytes));
}

/* Where the next sound frame from `at` on stands. */
static bool next_frame(struct found *found, uint64_t at, uint64_t *ret_at)
{
    struct strbuf window = {0};
    bool is_found = false;
    while (!is_found && at < found->size && found->size - at >= FRAME_HEADER_BYTES) {
        uint64_t left = found->size - at;
        size_t n = left < SEARCH_BYTES ? (size_t)left : SEARCH_BYTES;
        if (!read_bytes(found->fd, at, n, &window))
            break;
        struct frame frame;
        for (size_t i = 0; !is_found && i + FRAME_HEADER_BYTES <= n; i++) {
            const char *magic = memchr(window.text + i, FRAME_MAGIC_FIRST, n - i);
            if (!magic)
                break;
            i = (size_t)(magic - window.text);
            is_found = i + FRAME_HEADER_BYTES <= n &&
                       frame_read(magic, found->segment->head.salt, &frame) &&
                       frame_at(found, at + i, &frame);
            *ret_at = at + i;
        }
        at += n - FRAME_HEADER_BYTES + 1;
    }
    strbuf_release(&window);
    return is_found;
}

void segment_scan(struct segment *segment, int fd, uint64_t size, struct segment_scan *ret)
{
    struct found found = {.segment = segment, .fd = fd, .size = size};
    size_t room = 0;
    uint64_t next;
    *ret = (struct segment_scan){.end = SEGMENT_HEADER_BYTES};
    for (;;) {
        struct frame frame;
        if (!frame_at(&found, ret->end, &frame)) {
            if (!next_frame(&found, ret->end, &next))
                break;
            ret->damaged_frames++;
            ret->damaged_bytes += next - ret->end;
            ret->end = next;
            continue;
        }
        if (frame.kind != FRAME_INDEX) {
            struct frame_entry entry = {ret->end, frame};
            mem_push(ret->entries, ret->n, room, entry);
        }
        ret->end += FRAME_HEADER_BYTES + frame.packed;
    }
    strbuf_release(&found.bytes);
}

static void hold_all(struct segment *segment, const struct frame_entry *entries, size_t n)
{
    for (size_t i = 0; i < n; i++)
        segment_holds_add(&segment->holds, &entries[i].frame);
}

/* A file without a sound index: make it one. False: it holds nothing and is gone. */
static bool mend(struct segment *segment, int fd, uint64_t size)
{
    struct journal *journal = segment->journal;
    struct journal_stats *stats = &journal->stats;
    struct frame_packer *packer = frame_packer_new();
    struct segment_scan scan;
    segment_scan(segment, fd, size, &scan);
    if (scan.end < size && journal->io->truncate(journal->io->context, fd, (off_t)scan.end) == 0)
        stats->cut_bytes += size - scan.end;
    stats->damaged_frames += scan.damaged_frames;
    stats->damaged_bytes += scan.damaged_bytes;
    segment->damage_told = scan.damaged_frames;
    segment->entries = scan.entries;
    segment->entries_n = segment->entries_room = scan.n;
    segment->written = segment->synced = scan.end;
    segment->fd = fd;
    hold_all(segment, scan.entries, scan.n);
    bool holds = segment_seal(segment, packer);
    frame_packer_free(packer);
    return holds;
}

/* Takes the descriptor. False: it holds nothing and is gone. */
static bool take_file(struct segment *segment, int fd, uint64_t size)
{
    struct frame_entry *entries;
    size_t n;
    segment->written = segment->synced = size;
    segment->sealed = segment->retired = true;
    if (!segment_entries(segment, fd, &entries, &n))
        return mend(segment, fd, size);
    hold_all(segment, entries, n);
    free(entries);
    close(fd);
    return true;
}

static enum err find_file(struct journal *journal, const char *name, uint64_t number,
                          struct error *err)
{
    struct found found = {.fd = openat(journal->folder_fd, name, O_RDWR | O_CLOEXEC)};
    struct segment_head head = {.number = number};
    struct stat status;
    enum err e = ERR_OK;
    if (found.fd < 0 || fstat(found.fd, &status) < 0) {
        e = error_set(err, ERR_IO, "opening %s/%s: %s", journal->folder, name, strerror(errno));
        goto out;
    }
    found.size = (uint64_t)status.st_size;
    size_t n = found.size < SEGMENT_HEADER_BYTES ? (size_t)found.size : SEGMENT_HEADER_BYTES;
    bool sound = read_bytes(found.fd, 0, n, &found.bytes) &&
                 segment_head_read(strbuf_str(&found.bytes), &head) && head.number == number;
    if (!sound && found.size <= SEGMENT_HEADER_BYTES) {
        /* Power went before its first frame: nothing of it was acknowledged. */
        journal->io->unlink(journal->io->context, journal->folder_fd, name);
        journal->stats.cut_bytes += found.size;
        goto out;
    }
    if (!sound) {
        journal->stats.damaged_frames++;
        journal->stats.damaged_bytes += found.size;
        goto out;
    }
    struct segment *segment = segment_new(journal, &head);
    bool holds = take_file(segment, found.fd, found.size);
    found.fd = -1;
    if (holds)
        mem_push(journal->segments, journal->segments_n, journal->segments_room, segment);
    else
        segment_drop(segment);
out:
    if (found.fd >= 0)
        close(found.fd);
    strbuf_release(&found.bytes);
    return e;
}

static int by_number(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static bool number_of(const char *name, uint64_t *ret)
{
    char expected[SEGMENT_NAME_BYTES];
    char *end;
    uint64_t number = strtoull(name, &end, 16);
    snprintf(expected, sizeof expected, "%016" PRIx64 ".journal", number);
    *ret = number;
    return strcmp(name, expected) == 0;
}

enum err journal_recover(struct journal *journal, struct error *err)
{
    uint64_t *numbers = NULL, number;
    size_t n = 0, room = 0;
    enum err e = ERR_OK;
    int fd = openat(journal->folder_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *folder = fd < 0 ? NULL : fdopendir(fd);
    if (!folder)
        return error_set(err, ERR_IO, "reading %s: %s", journal->folder, strerror(errno));
    for (struct dirent *entry; (entry = readdir(folder));)
        if (number_of(entry->d_name, &number))
            mem_push(numbers, n, room, number);
    closedir(folder);
    if (n)
        qsort(numbers, n, sizeof *numbers, by_number);
    for (size_t i = 0; i < n && e == ERR_OK; i++) {
        char name[SEGMENT_NAME_BYTES];
        snprintf(name, sizeof name, "%016" PRIx64 ".journal", numbers[i]);
        e = find_file(journal, name, numbers[i], err);
    }
    journal->next_number = n ? numbers[n - 1] + 1 : 1;
    free(numbers);
    return e;
}
