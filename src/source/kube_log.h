/* What was seen of a Kubernetes API, on disk: a watch has no history, so this is it.
 *
 * A folder of files that are appended to, never changed. Each begins with a snapshot of all that
 * was known (but for the first), so that it can be read without those before it, and those can go
 * once their hours are booked. A new one begins every KUBE_LOG_FILE_MS. A file is a line that says
 * what it is, then blocks:
 *
 *     magic, bytes unpacked, bytes packed, CRC-32C of the packed (4 bytes each, little endian),
 * zstd unpacked: (length, 4 bytes; record of wire/kube_record.h) again and again
 *
 * A torn tail is cut when the log is opened; a damaged block ends its file, and the next file's
 * snapshot says what holds from there on. A thread of its own writes and syncs records about
 * KUBE_LOG_SYNC_MS after they came: what a crash takes of them the next list tells again, but for
 * the exact moment.
 *
 * Where the disk refuses (full, read-only), records wait in memory, up to KUBE_LOG_WAITING_MAX; if
 * they get more, they are dropped and a new file begins as soon as that is possible. Thread-safe.
 */
#ifndef GPUTALLY_SOURCE_KUBE_LOG_H
#define GPUTALLY_SOURCE_KUBE_LOG_H

#include "source/kube_history.h"

#define KUBE_LOG_FILE_MS HOUR_MS
#define KUBE_LOG_SYNC_MS ((time_ms)2 * 1000)
#define KUBE_LOG_BLOCK_BYTES ((size_t)1 << 20)
#define KUBE_LOG_BLOCK_MAX ((uint32_t)64 << 20) /* bytes of a block that is believed */
#define KUBE_LOG_WAITING_MAX ((size_t)32 << 20)

struct kube_log;
/* Makes the folder (0700) where it is not there, takes its lock (ERR_LOCKED), and feeds what it
 * holds to the history, which must outlive the log. Damage is no error: see the stats. ERR_IO. */
enum err kube_log_open(const char *folder, struct kube_history *history, struct kube_log **ret,
                       struct error *err);
void kube_log_close(struct kube_log *log); /* writes what waits; NULL is fine */

/* Keep a record that the history has. Does not wait for the disk. ERR_IO: the last write failed; it
 * waits all the same. */
enum err kube_log_append(struct kube_log *log, time_ms t, struct str record, struct error *err);
/* What was appended before is on disk when it returns. */
enum err kube_log_sync(struct kube_log *log, struct error *err);
/* No hour before t will be booked again: files that are needed for those only go. */
void kube_log_release(struct kube_log *log, time_ms t);

struct kube_log_stats {
    uint64_t files, bytes;       /* on disk */
    uint64_t records, failures;  /* appended; writes that failed */
    uint64_t damaged, cut_bytes; /* files that ended early when they were read; torn tails */
    uint64_t dropped;            /* records that no disk took */
    char why[256];               /* of the last failure; empty: the last write was good */
};
void kube_log_stats(struct kube_log *log, struct kube_log_stats *ret);

#endif
