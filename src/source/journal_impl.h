/* What the files of the journal share. Seen by src/source/journal*.c only.
 *
 *     journal.c          the folder: open, close, which segment is written, caps
 *     journal_batch.c    from samples to frames; commits
 *     journal_series.c   which series a segment knows
 *     journal_segment.c  a file: append, sync together, seal
 *     journal_recover.c  a file that was found: its index, torn tails, damage
 *     journal_read.c     what lies in a range of time
 *     journal_source.c   the journal as a source
 *     journal_mark.c     what came since
 *     journal_frame.c    bytes; journal_io.c  calls to the disk
 *
 * Locks, in this order: segment->naming, journal->lock, segment->file, segment->names. None is held
 * over an fsync but for the folder's, when a file is made. */
#ifndef GPUTALLY_SOURCE_JOURNAL_IMPL_H
#define GPUTALLY_SOURCE_JOURNAL_IMPL_H

#include <pthread.h>
#include <stdatomic.h>

#include "source/journal.h"
#include "source/journal_frame.h"
#include "source/journal_io.h"
#include "util/hash.h"

#define SEGMENT_FRAMES_MAX ((size_t)1 << 18) /* then a new segment begins */
#define SEGMENT_NAME_BYTES 32
#define SERIES_KUBE 1u /* bit of a series' number; the rest counts from 0 in the segment */

/* Which series a segment knows, by key. Owner's lock. */
struct series_table {
    struct series_entry *entries; /* in order of coming */
    uint32_t n, room;
    uint32_t *slots; /* place + 1 by hash; three quarters full at most */
    uint32_t mask;
};
#define SERIES_FIRST UINT32_MAX
void series_table_init(struct series_table *table);
void series_table_release(struct series_table *table);
/* before: where the series that was asked for before this one stands, for who asks for the same
 * ones in the same order again; SERIES_FIRST: none was. */
struct journal_series series_table_get(struct series_table *table, struct journal_key key,
                                       uint32_t *before);
void series_table_put(struct series_table *table, struct journal_key key,
                      struct journal_series series);

/* What lies in a segment; spans are first and last stamp, from > to: none. */
struct segment_holds {
    struct span gpu, kube;
    uint64_t samples;
};
#define SPAN_NOTHING ((struct span){TIME_MAX, TIME_MIN})

struct segment {
    struct journal *journal;
    atomic_int refs; /* the journal's list, readers, batches */
    int pins;        /* batches that were begun in it; journal->lock */
    bool retired;    /* no batch begins in it any more; journal->lock */
    char name[SEGMENT_NAME_BYTES];
    struct segment_head head;

    pthread_mutex_t file;               /* what follows, up to names */
    pthread_cond_t synced_more, joined; /* joined: nobody is announced any more */
    int fd;                             /* -1: not made yet, or sealed */
    bool sealed, failed;                /* failed: nothing may be appended any more */
    bool syncing;                       /* a thread is in fsync */
    uint64_t written, synced;           /* bytes; written: all of them whole frames */
    struct frame_entry *entries;        /* NULL: they are in the file's INDEX */
    size_t entries_n, entries_room;
    struct segment_holds holds;
    uint64_t damage_told; /* damaged frames of it that are in the stats */

    pthread_mutex_t naming; /* of those who name many series at once: journal_naming_begin */
    pthread_mutex_t names;  /* what follows */
    struct series_table table;
    uint32_t series;       /* named so far */
    struct strbuf pending; /* definitions that are in no frame yet … */
    uint32_t pending_n;    /* … the last so many of `series` */
};

struct journal {
    char *folder, *name;
    int folder_fd, lock_fd;
    uint64_t segment_bytes, cap_bytes;
    time_ms segment_ms, cap_age_ms, company_ms;
    struct live *live;
    void (*lost)(void *context, const struct journal_loss *loss);
    void *context;
    const struct journal_io *io;
    time_ms (*now)(void *context);
    unsigned char secret[HASH_SECRET_BYTES]; /* of keys */

    atomic_int announced; /* commits: journal_announce */

    pthread_mutex_t lock;      /* what follows */
    struct segment **segments; /* by number; the last may be the current one */
    size_t segments_n, segments_room;
    struct segment *current; /* NULL: the next batch makes one */
    uint64_t next_number;
    struct journal_stats stats;
    time_ms tended; /* monotonic; 0: never */
};

struct journal_batch {
    struct journal *journal;
    struct segment *segment; /* NULL: not begun */
    bool announced;
    struct frame_samples gpu, kube;
    live_ref *live; /* beside gpu */
    size_t live_room;
    struct frame_packer *packer;
    struct strbuf raw, packed, definitions;
};

/* ---- journal_segment.c */

struct segment *segment_new(struct journal *journal, const struct segment_head *head);
void segment_keep(struct segment *segment);
void segment_drop(struct segment *segment); /* one reference less */
/* Frames that a batch packed, one after the other, each with room for its header in front. */
struct segment_frames {
    char *bytes;
    size_t bytes_n;
    struct frame frame[2];
    size_t n;
};
/* Append, the pending definitions first. *ret_upto: what has to be synced for it. */
enum err segment_append(struct journal_batch *batch, struct segment_frames *frames,
                        uint64_t *ret_upto, struct error *err);
/* An announced commit has appended, or will not: who waits for it need not. */
void segment_join(struct segment *segment);
/* Everything up to `upto` is on disk, or an error. Threads that come together share an fsync. */
enum err segment_sync(struct segment *segment, uint64_t upto, struct error *err);
/* Nobody appends any more: sync, write the index, close. False: it held nothing and is gone. */
bool segment_seal(struct segment *segment, struct frame_packer *packer);
void segment_holds_add(struct segment_holds *holds, const struct frame *frame);

/* ---- journal_recover.c */

/* Read what is in the folder into journal->segments. */
enum err journal_recover(struct journal *journal, struct error *err);

/* Every frame of a file, looked at. entries are the caller's to free. */
struct segment_scan {
    struct frame_entry *entries;
    size_t n;
    uint64_t end;                           /* of the last sound frame */
    uint64_t damaged_frames, damaged_bytes; /* places between sound frames */
};
void segment_scan(struct segment *segment, int fd, uint64_t size, struct segment_scan *ret);

/* ---- journal_read.c */

/* Entries of the frames that may be read now; the caller frees. False: its index is damaged. */
bool segment_entries(struct segment *segment, int fd, struct frame_entry **ret, size_t *ret_n);
/* Read n bytes at `at`, replacing what buf had. */
bool read_bytes(int fd, uint64_t at, size_t n, struct strbuf *buf);

/* ---- journal.c */

/* References to all segments, by number; the caller drops each and frees the array. */
size_t journal_snapshot(struct journal *journal, struct segment ***ret);
struct segment *journal_pin(struct journal *journal);
void journal_unpin(struct segment *segment, struct frame_packer *packer);
void journal_wrote(struct journal *journal, uint64_t bytes);
/* journal_tend, where it was not done for a while. */
void journal_tend_now_and_then(struct journal *journal);

#endif
