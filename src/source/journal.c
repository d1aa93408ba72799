/* The folder: its lock, its segments, which of them is written, and what has to go.
 *
 * A new process begins a new segment. So nothing has to be read back into memory but the indexes,
 * and a file is never appended to by two processes' ideas of it. */
#include "source/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "source/journal_impl.h"
#include "util/hash.h"

#define TEND_MS 5000 /* between looks at the caps while it is appended to */

static time_ms system_now(void *context)
{
    (void)context;
    return clock_now();
}

static enum err open_folder(struct journal *journal, struct error *err)
{
    if (mkdir(journal->folder, 0700) < 0 && errno != EEXIST)
        return error_set(err, ERR_IO, "making the journal's folder %s: %s", journal->folder,
                         strerror(errno));
    journal->folder_fd = open(journal->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (journal->folder_fd < 0)
        return error_set(err, ERR_IO, "opening the journal's folder %s: %s", journal->folder,
                         strerror(errno));
    journal->lock_fd = openat(journal->folder_fd, "lock", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (journal->lock_fd < 0)
        return error_set(err, ERR_IO, "opening %s/lock: %s", journal->folder, strerror(errno));
    if (flock(journal->lock_fd, LOCK_EX | LOCK_NB) < 0)
        return error_set(err, ERR_LOCKED,
                         "the journal %s is in use by another process: end it, or give this one a "
                         "folder of its own",
                         journal->folder);
    return ERR_OK;
}

static void journal_free(struct journal *journal)
{
    for (size_t i = 0; i < journal->segments_n; i++)
        segment_drop(journal->segments[i]);
    if (journal->lock_fd >= 0)
        close(journal->lock_fd);
    if (journal->folder_fd >= 0)
        close(journal->folder_fd);
    pthread_mutex_destroy(&journal->lock);
    free(journal->segments);
    free(journal->folder);
    free(journal->name);
    free(journal);
}

enum err journal_open(const struct journal_options *options, struct journal **ret,
                      struct error *err)
{
    struct journal *journal = mem_zalloc(1, sizeof *journal);
    journal->folder = str_dup(str_of(options->folder));
    journal->name = str_dup(str_of(options->name ? options->name : ""));
    journal->folder_fd = journal->lock_fd = -1;
    journal->segment_bytes =
        options->segment_bytes ? options->segment_bytes : JOURNAL_SEGMENT_BYTES;
    journal->cap_bytes = options->cap_bytes ? options->cap_bytes : JOURNAL_CAP_BYTES;
    journal->segment_ms = options->segment_ms ? options->segment_ms : JOURNAL_SEGMENT_MS;
    journal->company_ms = options->company_ms ? options->company_ms : JOURNAL_COMPANY_MS;
    journal->cap_age_ms = options->cap_age_ms ? options->cap_age_ms : JOURNAL_CAP_AGE_MS;
    journal->live = options->live;
    journal->lost = options->lost;
    journal->context = options->context;
    journal->io = options->io ? options->io : &journal_io_system;
    journal->now = options->now ? options->now : system_now;
    journal->stats.lost = SPAN_NOTHING;
    pthread_mutex_init(&journal->lock, NULL);
    enum err e = ERR_OK;
    if (getrandom(journal->secret, sizeof journal->secret, 0) != (ssize_t)sizeof journal->secret)
        e = error_set(err, ERR_IO, "no random numbers: %s", strerror(errno));
    if (e == ERR_OK)
        e = open_folder(journal, err);
    if (e == ERR_OK)
        e = journal_recover(journal, err);
    if (e != ERR_OK) {
        journal_free(journal);
        return e;
    }
    *ret = journal;
    return ERR_OK;
}

struct journal_key journal_key(const struct journal *journal, struct str bytes)
{
    return (struct journal_key){hash_bytes(bytes, journal->secret), bytes.n};
}

const unsigned char *journal_secret(const struct journal *journal)
{
    return journal->secret;
}

/* ---- segments */

size_t journal_snapshot(struct journal *journal, struct segment ***ret)
{
    pthread_mutex_lock(&journal->lock);
    size_t n = journal->segments_n;
    struct segment **segments = mem_zalloc(n ? n : 1, sizeof(struct segment *));
    for (size_t i = 0; i < n; i++) {
        segments[i] = journal->segments[i];
        segment_keep(segments[i]);
    }
    pthread_mutex_unlock(&journal->lock);
    *ret = segments;
    return n;
}

/* Journal's lock held. */
static struct segment *new_segment(struct journal *journal)
{
    struct segment_head head = {.number = journal->next_number++,
                                .created = journal->now(journal->context)};
    struct journal_key salt = journal_key(journal, (struct str){(const char *)&head, sizeof head});
    head.salt = salt.low;
    struct segment *segment = segment_new(journal, &head);
    series_table_init(&segment->table);
    mem_push(journal->segments, journal->segments_n, journal->segments_room, segment);
    return segment;
}

/* Journal's lock held. */
static bool is_full(struct segment *segment)
{
    struct journal *journal = segment->journal;
    pthread_mutex_lock(&segment->file);
    bool full = segment->failed || segment->written >= journal->segment_bytes ||
                segment->entries_n >= SEGMENT_FRAMES_MAX ||
                journal->now(journal->context) - segment->head.created >= journal->segment_ms;
    pthread_mutex_unlock(&segment->file);
    pthread_mutex_lock(&segment->names);
    full |= segment->table.n >= JOURNAL_SERIES_MAX;
    pthread_mutex_unlock(&segment->names);
    return full;
}

/* Journal's lock held: take a segment out of the list. */
static void unlist(struct journal *journal, struct segment *segment)
{
    for (size_t i = 0; i < journal->segments_n; i++)
        if (journal->segments[i] == segment) {
            memmove(&journal->segments[i], &journal->segments[i + 1],
                    (journal->segments_n - i - 1) * sizeof *journal->segments);
            journal->segments_n--;
            return;
        }
}

static void seal(struct segment *segment, struct frame_packer *packer)
{
    struct journal *journal = segment->journal;
    struct frame_packer *own = packer ? NULL : frame_packer_new();
    bool holds = segment_seal(segment, packer ? packer : own);
    frame_packer_free(own);
    if (holds)
        return;
    pthread_mutex_lock(&journal->lock);
    unlist(journal, segment);
    pthread_mutex_unlock(&journal->lock);
    segment_drop(segment);
}

/* Journal's lock held: no batch begins in the current segment any more. Returns it where it is to
 * be sealed by the caller, without the lock. */
static struct segment *retire(struct journal *journal)
{
    struct segment *segment = journal->current;
    journal->current = NULL;
    if (!segment)
        return NULL;
    segment->retired = true;
    return segment->pins == 0 ? segment : NULL;
}

struct segment *journal_pin(struct journal *journal)
{
    struct segment *old = NULL;
    pthread_mutex_lock(&journal->lock);
    if (journal->current && is_full(journal->current))
        old = retire(journal);
    if (!journal->current)
        journal->current = new_segment(journal);
    struct segment *segment = journal->current;
    segment->pins++;
    segment_keep(segment);
    pthread_mutex_unlock(&journal->lock);
    if (old)
        seal(old, NULL);
    return segment;
}

void journal_unpin(struct segment *segment, struct frame_packer *packer)
{
    struct journal *journal = segment->journal;
    pthread_mutex_lock(&journal->lock);
    bool last = --segment->pins == 0 && segment->retired;
    pthread_mutex_unlock(&journal->lock);
    if (last)
        seal(segment, packer);
    segment_drop(segment);
}

void journal_wrote(struct journal *journal, uint64_t bytes)
{
    pthread_mutex_lock(&journal->lock);
    journal->stats.bytes_written += bytes;
    pthread_mutex_unlock(&journal->lock);
}

/* ---- what has to go */

static time_ms last_of(const struct segment_holds *holds)
{
    return holds->gpu.to > holds->kube.to ? holds->gpu.to : holds->kube.to;
}

static time_ms first_of(const struct segment_holds *holds)
{
    return holds->gpu.from < holds->kube.from ? holds->gpu.from : holds->kube.from;
}

static struct segment_holds holds_of(struct segment *segment, uint64_t *ret_bytes, bool *ret_sealed)
{
    pthread_mutex_lock(&segment->file);
    struct segment_holds holds = segment->holds;
    *ret_bytes = segment->written;
    *ret_sealed = segment->sealed;
    pthread_mutex_unlock(&segment->file);
    return holds;
}

/* Remove the file of a segment that is not in the list any more. */
static void remove_file(struct segment *segment)
{
    struct journal *journal = segment->journal;
    journal->io->unlink(journal->io->context, journal->folder_fd, segment->name);
    segment_drop(segment);
}

void journal_release(struct journal *journal, time_ms before)
{
    struct segment *gone = NULL;
    do {
        gone = NULL;
        pthread_mutex_lock(&journal->lock);
        for (size_t i = 0; i < journal->segments_n && !gone; i++) {
            uint64_t bytes;
            bool sealed;
            struct segment_holds holds = holds_of(journal->segments[i], &bytes, &sealed);
            if (sealed && last_of(&holds) < before)
                gone = journal->segments[i];
        }
        if (gone)
            unlist(journal, gone);
        pthread_mutex_unlock(&journal->lock);
        if (gone)
            remove_file(gone);
    } while (gone);
}

/* Journal's lock held: the oldest segment where a cap is passed, out of the list. */
static struct segment *over_a_cap(struct journal *journal, struct journal_loss *ret)
{
    uint64_t sum = 0, bytes;
    bool sealed;
    for (size_t i = 0; i < journal->segments_n; i++) {
        holds_of(journal->segments[i], &bytes, &sealed);
        sum += bytes;
    }
    if (journal->segments_n == 0)
        return NULL;
    struct segment *oldest = journal->segments[0];
    struct segment_holds holds = holds_of(oldest, &bytes, &sealed);
    bool aged = last_of(&holds) < journal->now(journal->context) - journal->cap_age_ms;
    if (!sealed || !(aged || sum > journal->cap_bytes))
        return NULL;
    unlist(journal, oldest);
    *ret = (struct journal_loss){.times = {first_of(&holds), last_of(&holds)},
                                 .segments = 1,
                                 .samples = holds.samples,
                                 .bytes = bytes,
                                 .why = aged ? "older than the journal's age cap"
                                             : "the journal is at its size cap"};
    struct journal_stats *stats = &journal->stats;
    stats->lost_segments++;
    stats->lost_samples += holds.samples;
    stats->lost.from = ret->times.from < stats->lost.from ? ret->times.from : stats->lost.from;
    stats->lost.to = ret->times.to > stats->lost.to ? ret->times.to : stats->lost.to;
    return oldest;
}

static void hold_caps(struct journal *journal)
{
    for (;;) {
        struct journal_loss loss;
        pthread_mutex_lock(&journal->lock);
        struct segment *gone = over_a_cap(journal, &loss);
        pthread_mutex_unlock(&journal->lock);
        if (!gone)
            return;
        remove_file(gone);
        if (journal->lost)
            journal->lost(journal->context, &loss);
    }
}

void journal_tend(struct journal *journal)
{
    struct segment *old = NULL;
    pthread_mutex_lock(&journal->lock);
    if (journal->current && is_full(journal->current))
        old = retire(journal);
    pthread_mutex_unlock(&journal->lock);
    if (old)
        seal(old, NULL);
    hold_caps(journal);
}

void journal_tend_now_and_then(struct journal *journal)
{
    time_ms now = clock_monotonic();
    pthread_mutex_lock(&journal->lock);
    bool due = now - journal->tended >= TEND_MS;
    if (due)
        journal->tended = now;
    pthread_mutex_unlock(&journal->lock);
    if (due)
        journal_tend(journal);
}

enum err journal_sync(struct journal *journal, struct error *err)
{
    struct segment **segments;
    size_t n = journal_snapshot(journal, &segments);
    enum err e = ERR_OK;
    for (size_t i = 0; i < n; i++) {
        pthread_mutex_lock(&segments[i]->file);
        uint64_t upto = segments[i]->sealed ? 0 : segments[i]->written;
        pthread_mutex_unlock(&segments[i]->file);
        if (e == ERR_OK && upto)
            e = segment_sync(segments[i], upto, err);
        segment_drop(segments[i]);
    }
    free(segments);
    pthread_mutex_lock(&journal->lock);
    if (e == ERR_OK)
        journal->stats.synced_at = journal->now(journal->context);
    pthread_mutex_unlock(&journal->lock);
    return e;
}

void journal_close(struct journal *journal)
{
    if (!journal)
        return;
    pthread_mutex_lock(&journal->lock);
    bool busy = journal->current && journal->current->pins;
    struct segment *old = retire(journal);
    pthread_mutex_unlock(&journal->lock);
    invariant(!busy);
    if (old)
        seal(old, NULL);
    journal_free(journal);
}

void journal_stats(struct journal *journal, struct journal_stats *ret)
{
    pthread_mutex_lock(&journal->lock);
    struct journal_stats stats = journal->stats;
    stats.times = SPAN_NOTHING;
    stats.segments = journal->segments_n;
    for (size_t i = 0; i < journal->segments_n; i++) {
        struct segment *segment = journal->segments[i];
        uint64_t bytes;
        bool sealed;
        struct segment_holds holds = holds_of(segment, &bytes, &sealed);
        stats.bytes += bytes;
        stats.times.from =
            first_of(&holds) < stats.times.from ? first_of(&holds) : stats.times.from;
        stats.times.to = last_of(&holds) > stats.times.to ? last_of(&holds) : stats.times.to;
        if (sealed)
            continue;
        pthread_mutex_lock(&segment->file);
        stats.unsynced_bytes += segment->written - segment->synced;
        pthread_mutex_unlock(&segment->file);
        pthread_mutex_lock(&segment->names);
        stats.series += segment->series;
        pthread_mutex_unlock(&segment->names);
    }
    pthread_mutex_unlock(&journal->lock);
    *ret = stats;
}
