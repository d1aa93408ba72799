/* A segment's file while it is written.
 *
 * Appending and syncing are apart: appends are short and one after the other, an fsync is long and
 * covers all that was appended before it. The first thread that needs one leads; those that come
 * meanwhile wait for it, and the next leader takes all of them along. A leader waits a moment for
 * commits that were announced, so that it takes these along too: most requests in hand are being
 * read while one is synced. So a hundred receivers cost a few fsyncs, not a hundred.
 *
 * After a failed write the file is cut back to whole frames and may be appended to again. After a
 * failed fsync it may not: the kernel may have dropped the pages and call them clean. It is cut to
 * what was synced before, which is all that was acknowledged. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "source/journal_impl.h"

/* Of a frame, unpacked: whoever reads it holds so much. A definition is at most 64 kB. */
#define DEFINITIONS_BYTES_MAX ((size_t)4 << 20)

struct segment *segment_new(struct journal *journal, const struct segment_head *head)
{
    struct segment *segment = mem_zalloc(1, sizeof *segment);
    segment->journal = journal;
    segment->head = *head;
    segment->fd = -1;
    segment->holds = (struct segment_holds){SPAN_NOTHING, SPAN_NOTHING, 0};
    snprintf(segment->name, sizeof segment->name, "%016" PRIx64 ".journal", head->number);
    atomic_init(&segment->refs, 1);
    pthread_mutex_init(&segment->file, NULL);
    pthread_mutex_init(&segment->naming, NULL);
    pthread_mutex_init(&segment->names, NULL);
    pthread_cond_init(&segment->synced_more, NULL);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&segment->joined, &monotonic);
    pthread_condattr_destroy(&monotonic);
    return segment;
}

void segment_keep(struct segment *segment)
{
    atomic_fetch_add(&segment->refs, 1);
}

void segment_drop(struct segment *segment)
{
    if (atomic_fetch_sub(&segment->refs, 1) != 1)
        return;
    if (segment->fd >= 0)
        close(segment->fd);
    series_table_release(&segment->table);
    strbuf_release(&segment->pending);
    free(segment->entries);
    pthread_mutex_destroy(&segment->file);
    pthread_mutex_destroy(&segment->naming);
    pthread_mutex_destroy(&segment->names);
    pthread_cond_destroy(&segment->synced_more);
    pthread_cond_destroy(&segment->joined);
    free(segment);
}

static void span_add(struct span *span, time_ms first, time_ms last)
{
    span->from = first < span->from ? first : span->from;
    span->to = last > span->to ? last : span->to;
}

void segment_holds_add(struct segment_holds *holds, const struct frame *frame)
{
    if (frame->kind != FRAME_SAMPLES)
        return;
    span_add(frame->kube ? &holds->kube : &holds->gpu, frame->first, frame->last);
    holds->samples += frame->count;
}

/* The words for an errno of the journal's folder, with what to do. */
static enum err disk_error(const struct segment *segment, const char *doing, int code,
                           struct error *err)
{
    const char *advice = "";
    if (code == ENOSPC || code == EDQUOT)
        advice = ": free some space there; senders keep what is not acknowledged";
    else if (code == EROFS)
        advice = ": is the file system mounted read-only?";
    return error_set(err, ERR_IO, "%s %s/%s: %s%s", doing, segment->journal->folder, segment->name,
                     strerror(code), advice);
}

/* Write all of it, at the end. The file is as it was where that fails. */
static enum err append_bytes(struct segment *segment, struct str bytes, struct error *err)
{
    const struct journal_io *io = segment->journal->io;
    size_t done = 0;
    while (done < bytes.n) {
        ssize_t n = io->write(io->context, segment->fd, bytes.p + done, bytes.n - done,
                              (off_t)(segment->written + done));
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            int code = n < 0 ? errno : ENOSPC;
            /* What is left there is no whole frame and is written over by the next try. */
            (void)!io->truncate(io->context, segment->fd, (off_t)segment->written);
            return disk_error(segment, "writing", code, err);
        }
        done += (size_t)n;
    }
    segment->written += bytes.n;
    return ERR_OK;
}

static enum err make_file(struct segment *segment, struct error *err)
{
    struct journal *journal = segment->journal;
    const struct journal_io *io = journal->io;
    struct strbuf head = {0};
    if (segment->fd < 0) {
        segment->fd = io->create(io->context, journal->folder_fd, segment->name);
        if (segment->fd < 0)
            return disk_error(segment, "making", errno, err);
        if (io->sync(io->context, journal->folder_fd) < 0) {
            enum err e = disk_error(segment, "syncing the folder of", errno, err);
            close(segment->fd);
            segment->fd = -1;
            io->unlink(io->context, journal->folder_fd, segment->name);
            return e;
        }
    }
    segment_head_put(&segment->head, &head);
    enum err e = append_bytes(segment, strbuf_str(&head), err);
    strbuf_release(&head);
    return e;
}

static void add_entry(struct segment *segment, uint64_t at, const struct frame *frame)
{
    struct frame_entry entry = {at, *frame};
    mem_push(segment->entries, segment->entries_n, segment->entries_room, entry);
    segment_holds_add(&segment->holds, frame);
}

/* Give the frames, which stand one after the other in text, their places in the file. */
static void place_frames(struct segment *segment, char *text, struct frame *frames, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        frames[i].sequence = segment->entries_n + i;
        frame_put(&frames[i], segment->head.salt, text);
        text += FRAME_HEADER_BYTES + frames[i].packed;
    }
}

/* Append frames that have their places; note them down. */
static enum err append_frames(struct segment *segment, struct str bytes, const struct frame *frames,
                              size_t n, struct error *err)
{
    uint64_t at = segment->written;
    enum err e = append_bytes(segment, bytes, err);
    for (size_t i = 0; e == ERR_OK && i < n; i++) {
        add_entry(segment, at, &frames[i]);
        at += FRAME_HEADER_BYTES + frames[i].packed;
    }
    return e;
}

/* Of the definitions that are in no frame yet those that the next one gets, at least one. Names
 * lock held. */
static struct str next_definitions(const struct segment *segment, uint32_t *ret_n)
{
    struct str all = strbuf_str(&segment->pending);
    struct label labels[JOURNAL_LABELS_MAX];
    const char *next = all.p, *end = all.p + all.n;
    size_t bytes = 0, labels_n;
    *ret_n = segment->pending_n;
    if (all.n <= DEFINITIONS_BYTES_MAX)
        return all;
    for (*ret_n = 0; frame_definition_read(&next, end, labels, JOURNAL_LABELS_MAX, &labels_n) &&
                     (*ret_n == 0 || (size_t)(next - all.p) <= DEFINITIONS_BYTES_MAX);
         ++*ret_n)
        bytes = (size_t)(next - all.p);
    return (struct str){all.p, bytes};
}

/* A frame of definitions that are in none yet; they are taken only once they are written. */
static enum err append_some_definitions(struct journal_batch *batch, size_t *ret_taken,
                                        struct error *err)
{
    struct segment *segment = batch->segment;
    struct strbuf *out = &batch->definitions;
    struct frame frame = {.kind = FRAME_DEFINITIONS};
    strbuf_clear(out);
    mem_reserve(out->text, out->n, out->room, FRAME_HEADER_BYTES);
    out->n = FRAME_HEADER_BYTES;
    pthread_mutex_lock(&segment->names);
    struct str taken = next_definitions(segment, &frame.count);
    frame.raw = (uint32_t)taken.n;
    frame.first = (int64_t)segment->series - segment->pending_n;
    frame.last = frame.first + frame.count - 1;
    frame.packed = (uint32_t)frame_pack(batch->packer, taken, out);
    pthread_mutex_unlock(&segment->names);
    struct str payload = {out->text + FRAME_HEADER_BYTES, frame.packed};
    frame_seal(&frame, payload);
    place_frames(segment, out->text, &frame, 1);
    enum err e = append_frames(segment, strbuf_str(out), &frame, 1, err);
    if (e != ERR_OK)
        return e;
    pthread_mutex_lock(&segment->names);
    segment->pending.n -= taken.n;
    memmove(segment->pending.text, segment->pending.text + taken.n, segment->pending.n);
    segment->pending_n -= frame.count;
    if (!segment->pending.n && segment->pending.room > DEFINITIONS_BYTES_MAX)
        strbuf_release(&segment->pending); /* a fleet is named once an hour */
    pthread_mutex_unlock(&segment->names);
    *ret_taken = taken.n;
    return ERR_OK;
}

/* The definitions that are in no frame yet. */
static enum err append_definitions(struct journal_batch *batch, struct error *err)
{
    struct segment *segment = batch->segment;
    pthread_mutex_lock(&segment->names);
    size_t left = segment->pending.n;
    pthread_mutex_unlock(&segment->names);
    enum err e = ERR_OK;
    for (size_t taken; e == ERR_OK && left; left -= taken < left ? taken : left)
        e = append_some_definitions(batch, &taken, err);
    return e;
}

enum err segment_append(struct journal_batch *batch, struct segment_frames *frames,
                        uint64_t *ret_upto, struct error *err)
{
    struct segment *segment = batch->segment;
    pthread_mutex_lock(&segment->file);
    uint64_t before = segment->written;
    enum err e = ERR_OK;
    if (segment->failed)
        e = error_set(err, ERR_IO, "%s/%s failed to sync and was closed: try again",
                      segment->journal->folder, segment->name);
    if (e == ERR_OK && segment->written == 0)
        e = make_file(segment, err);
    if (e == ERR_OK)
        e = append_definitions(batch, err);
    if (e == ERR_OK) {
        place_frames(segment, frames->bytes, frames->frame, frames->n);
        e = append_frames(segment, (struct str){frames->bytes, frames->bytes_n}, frames->frame,
                          frames->n, err);
    }
    *ret_upto = segment->written;
    uint64_t more = segment->written - before;
    pthread_mutex_unlock(&segment->file);
    journal_wrote(segment->journal, more);
    return e;
}

/* File lock held. */
static void fail(struct segment *segment)
{
    const struct journal_io *io = segment->journal->io;
    segment->failed = true;
    (void)!io->truncate(io->context, segment->fd, (off_t)segment->synced);
    segment->written = segment->synced;
    segment->holds = (struct segment_holds){SPAN_NOTHING, SPAN_NOTHING, 0};
    size_t kept = 0;
    for (; kept < segment->entries_n; kept++) {
        const struct frame_entry *entry = &segment->entries[kept];
        if (entry->at + FRAME_HEADER_BYTES + entry->frame.packed > segment->synced)
            break;
        segment_holds_add(&segment->holds, &entry->frame);
    }
    segment->entries_n = kept;
}

void segment_join(struct segment *segment)
{
    pthread_mutex_lock(&segment->file);
    pthread_cond_signal(&segment->joined);
    pthread_mutex_unlock(&segment->file);
}

/* File lock held, and given up meanwhile. */
static void wait_for_company(struct segment *segment)
{
    struct journal *journal = segment->journal;
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += journal->company_ms % 1000 * 1000000;
    until.tv_sec += journal->company_ms / 1000 + until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    while (atomic_load(&journal->announced) > 0 &&
           pthread_cond_timedwait(&segment->joined, &segment->file, &until) != ETIMEDOUT)
        ;
}

/* One fsync; file lock held, and given up meanwhile. */
static enum err lead(struct segment *segment, struct error *err)
{
    const struct journal_io *io = segment->journal->io;
    segment->syncing = true;
    wait_for_company(segment);
    uint64_t upto = segment->written;
    pthread_mutex_unlock(&segment->file);
    int result = io->sync(io->context, segment->fd), code = errno;
    pthread_mutex_lock(&segment->file);
    segment->syncing = false;
    if (result == 0)
        segment->synced = upto;
    else
        fail(segment);
    pthread_cond_broadcast(&segment->synced_more);
    return result == 0 ? ERR_OK : disk_error(segment, "syncing", code, err);
}

enum err segment_sync(struct segment *segment, uint64_t upto, struct error *err)
{
    enum err e = ERR_OK;
    pthread_mutex_lock(&segment->file);
    while (e == ERR_OK && segment->synced < upto) {
        if (segment->failed)
            e = error_set(err, ERR_IO, "syncing %s/%s failed for all who waited: try again",
                          segment->journal->folder, segment->name);
        else if (segment->syncing)
            pthread_cond_wait(&segment->synced_more, &segment->file);
        else
            e = lead(segment, err);
    }
    pthread_mutex_unlock(&segment->file);
    return e;
}

/* The index as a frame, and the trailer, behind what there is. */
static enum err append_index(struct segment *segment, struct frame_packer *packer)
{
    struct strbuf raw = {0}, out = {0};
    struct frame frame = {.kind = FRAME_INDEX, .count = (uint32_t)segment->entries_n};
    uint64_t at = segment->written;
    for (size_t i = 0; i < segment->entries_n; i++)
        frame_entry_put(&segment->entries[i], &raw);
    mem_reserve(out.text, out.n, out.room, FRAME_HEADER_BYTES);
    out.n = FRAME_HEADER_BYTES;
    frame.raw = (uint32_t)raw.n;
    frame.packed = (uint32_t)frame_pack(packer, strbuf_str(&raw), &out);
    frame_seal(&frame, (struct str){out.text + FRAME_HEADER_BYTES, frame.packed});
    frame.sequence = segment->entries_n;
    frame_put(&frame, segment->head.salt, out.text);
    segment_trailer_put(at, segment->head.salt, &out);
    enum err e = append_bytes(segment, strbuf_str(&out), NULL);
    strbuf_release(&raw);
    strbuf_release(&out);
    return e;
}

bool segment_seal(struct segment *segment, struct frame_packer *packer)
{
    struct journal *journal = segment->journal;
    const struct journal_io *io = journal->io;
    if (segment->entries_n && !segment->failed)
        segment_sync(segment, segment->written, NULL);
    pthread_mutex_lock(&segment->file);
    uint64_t before = segment->written;
    bool holds = segment->entries_n > 0;
    bool indexed = holds && segment->fd >= 0 && append_index(segment, packer) == ERR_OK;
    /* An index that did not get to the disk is no loss: it is made again from the frames. */
    if (indexed && io->sync(io->context, segment->fd) == 0)
        segment->synced = segment->written;
    if (!holds && segment->fd >= 0)
        io->unlink(io->context, journal->folder_fd, segment->name);
    if (segment->fd >= 0)
        close(segment->fd);
    segment->fd = -1;
    segment->sealed = true;
    if (indexed) {
        free(segment->entries);
        segment->entries = NULL;
        segment->entries_n = segment->entries_room = 0;
    }
    uint64_t more = segment->written - before;
    pthread_mutex_unlock(&segment->file);
    pthread_mutex_lock(&segment->names);
    series_table_release(&segment->table);
    strbuf_release(&segment->pending);
    pthread_mutex_unlock(&segment->names);
    journal_wrote(journal, more);
    return holds;
}
