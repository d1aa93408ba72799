/* The journal: what was pushed and scraped, on disk before a sender hears 2xx, until it is booked.
 *
 * A folder of segment files, appended to, never changed. A segment has a dictionary of its own
 * (series numbers mean something in their segment only), so that it can be read, dropped and
 * damaged without the others, and so that what is remembered of series is bounded by the series
 * that a segment's time has. docs/internals/journal.md has the format.
 *
 *     receivers ── batch ──┐                            ┌── source (collect_run)
 *     scraper ──── batch ──┴─ frames ─ segment ─ fsync ─┴── journal_read (charts)
 *                                 └─ live (latest values)
 *
 * Invariants. What a commit with `sync` acknowledged survives kill -9 and a power cut. What is on
 * disk is a prefix of what was appended: a torn tail is cut when the journal is opened, and
 * counted. A damaged frame in the middle is skipped to the next sound one, counted, and told as
 * NOTE_PARTIAL to the intake. Order and duplicates are the reader's business: the intake takes any.
 *
 * Room. At cap_bytes or cap_age_ms the oldest segment goes, booked or not: its time becomes
 * unobserved, `lost` is called and the stats say so. Segments that are booked go by
 * journal_release().
 *
 * Errors of the disk (full, read-only, EIO) fail the commits that they hit, leave what was
 * acknowledged untouched, and are tried again by the next commit. After a failed fsync nothing of
 * the segment since the last good one is trusted: it is cut there and the next commit begins a new
 * segment, since a second fsync may say that all is well when it is not.
 *
 * Any thread may call anything but where it is said; a batch has one owner. */
#ifndef GPUTALLY_SOURCE_JOURNAL_H
#define GPUTALLY_SOURCE_JOURNAL_H

#include "source/live.h"
#include "source/source.h"

#define JOURNAL_SEGMENT_BYTES ((uint64_t)64 << 20)
#define JOURNAL_SEGMENT_MS HOUR_MS
#define JOURNAL_CAP_BYTES ((uint64_t)16 << 30)
#define JOURNAL_CAP_AGE_MS (14 * DAY_MS)
#define JOURNAL_COMPANY_MS ((time_ms)2) /* that an fsync waits for commits that were announced */
#define JOURNAL_SERIES_MAX (1u << 22)   /* of a segment; then a new one begins */
#define JOURNAL_LABELS_MAX 128          /* of a series */
#define JOURNAL_LABELS_BYTES_MAX ((size_t)64 << 10)
#define JOURNAL_BATCH_MAX                                                                          \
    ((size_t)1 << 20) /* samples; a batch that is full has to be committed                         \
                       */

/* What was dropped unread, or could not be read. */
struct journal_loss {
    struct span times; /* of its samples, where known */
    uint64_t segments, samples, bytes;
    const char *why; /* "the journal reached its size cap of 16 GiB" */
};

struct journal_io; /* source/journal_io.h: the calls to the disk, for tests that break it */

struct journal_options {
    const char *folder; /* made where it is not there, 0700; one process at a time (ERR_LOCKED) */
    const char *name;   /* "" or a cluster's: the source's id is "journal:NAME" */
    uint64_t segment_bytes, cap_bytes; /* 0: as above */
    time_ms segment_ms, cap_age_ms;    /* 0: as above */
    time_ms company_ms;                /* 0: as above */
    struct live *live;                 /* may be NULL; outlives the journal */
    /* Unbooked time was lost; called without locks, on the thread that found it. May be NULL. */
    void (*lost)(void *context, const struct journal_loss *loss);
    void *context;
    const struct journal_io *io;   /* NULL: the system's */
    time_ms (*now)(void *context); /* NULL: clock_now; for segment_ms and cap_age_ms */
};

struct journal;
/* Takes the lock, reads the index of every segment, cuts torn tails. O(segments). ERR_IO,
 * ERR_LOCKED. Damaged segments are no error: see the stats. */
enum err journal_open(const struct journal_options *options, struct journal **ret,
                      struct error *err);
/* Syncs and seals. No batch may be begun, no source or reader be in use. NULL is fine. */
void journal_close(struct journal *journal);

/* ---- writing */

struct journal_key {
    uint64_t low, high; /* a keyed hash of what the sender repeats (raw label bytes, a canonical
                           label set), and its length */
};
/* A series in a batch's segment. */
struct journal_series {
    uint32_t number;
    live_ref live;
};
#define JOURNAL_UNKNOWN UINT32_MAX        /* number: the key was never seen in this segment */
#define JOURNAL_UNWANTED (UINT32_MAX - 1) /* number: known, and nobody wants its samples */

/* The key of bytes: their hash (util/hash.h) under the journal's secret, and their length. */
struct journal_key journal_key(const struct journal *journal, struct str bytes);
const unsigned char *journal_secret(const struct journal *journal);

struct journal_batch;
struct journal_batch *journal_batch_new(struct journal *journal); /* its buffers are reused */
void journal_batch_free(struct journal_batch *batch);             /* NULL is fine */

/* A commit of this batch, with sync, comes within moments, as soon as a request is read: who is
 * about to sync waits for it, company_ms at most, so that one fsync covers both. Before
 * journal_begin or after it; until the batch is committed or abandoned. */
void journal_announce(struct journal_batch *batch);
/* Begin: the batch belongs to the segment of now. Returns the segment's number: what journal_find
 * and journal_define gave under another number is void. */
uint64_t journal_begin(struct journal_batch *batch);
/* Look n keys up; number is JOURNAL_UNKNOWN where not known. One lock; a compare each where the
 * same keys were looked up in this order before. */
void journal_find(struct journal_batch *batch, const struct journal_key *keys, size_t n,
                  struct journal_series *ret);
/* Name a series, with __name__, empty values are no labels, any order. key: what finds it from now
 * on (another key may lead to the same series). Wanted are the metrics that intake_wants_metric()
 * wants, others are remembered as JOURNAL_UNWANTED. False: labels that no series can have (no or
 * two same names, over the caps, not UTF-8); *ret_reason says which, nothing is remembered. */
bool journal_define(struct journal_batch *batch, struct journal_key key, const struct label *labels,
                    size_t n, struct journal_series *ret, const char **ret_reason);
/* Between these two no other batch that does so names series of the segment: what one request names
 * gets numbers that follow each other, which packs well and is read apart from others'. Those who
 * name without do no harm but to that. */
void journal_naming_begin(struct journal_batch *batch);
void journal_naming_end(struct journal_batch *batch);
/* Samples of a series, any order; of UNWANTED ones they are ignored. */
void journal_add(struct journal_batch *batch, struct journal_series series, const time_ms *t,
                 const double *v, size_t n);
/* One sample of each of n series. */
void journal_add_each(struct journal_batch *batch, const struct journal_series *series,
                      const time_ms *t, const double *v, size_t n);
size_t journal_batch_samples(const struct journal_batch *batch);
/* Append, and sync where asked to (several at once share one fsync); then the batch is empty and
 * not begun, whatever the result. ERR_IO: nothing of it is promised; trying again later can help.
 * ERR_STOPPED: the journal is closing. */
enum err journal_commit(struct journal_batch *batch, bool sync, struct error *err);
void journal_abandon(struct journal_batch *batch);
/* All that was committed so far is on disk. */
enum err journal_sync(struct journal *journal, struct error *err);

/* ---- reading */

/* The journal as a source for collect_run: what it holds of the asked times, up to the last sync.
 * Frees with source_free(); the journal outlives it. Several sources of one journal may be used at
 * once. The survey's extent is what the journal holds; ERR_NOT_FOUND where that is nothing. */
struct source *journal_source_new(struct journal *journal);

#define JOURNAL_SKIP UINT32_MAX
struct journal_sink {
    void *context;
    /* A series (again in each segment); the texts live during the call. Returns your number for it,
     * or JOURNAL_SKIP. */
    uint32_t (*series)(void *context, const struct label *labels, size_t n);
    /* Samples of a series, in order of time as far as they were appended so. */
    void (*samples)(void *context, uint32_t number, const time_ms *t, const double *v, size_t n);
};
struct journal_read {
    struct span kube, gpu; /* both inclusive, as in struct fetch: records (kube_…), and the rest */
    struct journal_sink sink;
    const volatile int *stop; /* may be NULL */
};
struct journal_read_stats {
    uint64_t samples, bytes, frames;
    uint64_t damaged_frames, damaged_bytes, nameless_samples; /* whose definition was damaged */
};
/* ret may be NULL. ERR_STOPPED, ERR_IO. Memory: a few MiB and the segment's dictionary. */
enum err journal_read(struct journal *journal, const struct journal_read *read,
                      struct journal_read_stats *ret, struct error *err);

/* Where the journal stands: what is before a mark is on disk, and is seen by every read that begins
 * after this call. Appends a short text without blanks, to be kept with what was read. */
void journal_mark(struct journal *journal, struct strbuf *ret);
/* The oldest stamp behind a mark; TIME_MAX: nothing is. An hour before it that was booked from what
 * the mark covers has samples that it does not know of. What is no mark of this journal ("", or of
 * a folder that was there before) is in front of everything. O(segments), and one index. */
time_ms journal_oldest_since(struct journal *journal, struct str mark);

/* Everything before this time is booked, and the time for late data is over: drop the sealed
 * segments that hold nothing from there on. Callers leave what a booking without a carry looks
 * back at: watermark - late - node_break. */
void journal_release(struct journal *journal, time_ms before);
/* Hold the caps now: appending does so by itself, an idle journal ages only by this. */
void journal_tend(struct journal *journal);

struct journal_stats {
    uint64_t segments, bytes; /* on disk now */
    struct span times;        /* first and last sample held; from > to: none */
    uint64_t series;          /* named in the segment of now */
    uint64_t batches, samples, bytes_written, syncs; /* since it was opened */
    uint64_t failed_commits;
    uint64_t cut_bytes;                     /* torn tails, cut when opened */
    uint64_t damaged_frames, damaged_bytes; /* found so far, each once */
    uint64_t lost_segments, lost_samples;   /* at the caps */
    struct span lost;                       /* their times, all together; from > to: none */
    time_ms synced_at;                      /* by now(); 0: never */
    uint64_t unsynced_bytes;
    char failing[ERROR_TEXT_MAX]; /* the last commit's error; "" where it went well */
};
void journal_stats(struct journal *journal, struct journal_stats *ret);

#endif
