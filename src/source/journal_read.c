/* What lies in a range of time: frame after frame is gathered, and samples are put in order of
 * series, so that the reader gets runs (journal_gather.h).
 *
 * Series are named to the reader when they have a sample in the range, and not before: a reader
 * must not hear of a device that said nothing then. Definitions are read again for it, from the
 * frames that cover the numbers in need. */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "source/journal_gather.h"
#include "source/journal_impl.h"

#define ID_UNNAMED (UINT32_MAX - 1)  /* an id that is not known yet */
#define ID_NAMELESS (UINT32_MAX - 2) /* its definition is damaged */

/* The index of a sealed file. */
static bool read_index(const struct segment *segment, int fd, uint64_t size,
                       struct frame_entry **ret, size_t *ret_n)
{
    struct strbuf bytes = {0}, raw = {0};
    struct str entries;
    struct frame frame;
    uint64_t at = 0, salt = segment->head.salt;
    bool sound = size >= SEGMENT_HEADER_BYTES + FRAME_HEADER_BYTES + SEGMENT_TRAILER_BYTES &&
                 read_bytes(fd, size - SEGMENT_TRAILER_BYTES, SEGMENT_TRAILER_BYTES, &bytes) &&
                 segment_trailer_read(strbuf_str(&bytes), salt, &at) &&
                 at <= size - FRAME_HEADER_BYTES - SEGMENT_TRAILER_BYTES &&
                 read_bytes(fd, at, FRAME_HEADER_BYTES, &bytes) &&
                 frame_read(bytes.text, salt, &frame) && frame.kind == FRAME_INDEX &&
                 frame.packed == size - at - FRAME_HEADER_BYTES - SEGMENT_TRAILER_BYTES &&
                 read_bytes(fd, at + FRAME_HEADER_BYTES, frame.packed, &bytes) &&
                 frame_payload_is_sound(&frame, strbuf_str(&bytes)) &&
                 frame_unpack(&frame, strbuf_str(&bytes), &raw, &entries) &&
                 frame_entries_read(entries, at, ret, ret_n);
    strbuf_release(&bytes);
    strbuf_release(&raw);
    return sound;
}

bool segment_entries(struct segment *segment, int fd, struct frame_entry **ret, size_t *ret_n)
{
    pthread_mutex_lock(&segment->file);
    uint64_t size = segment->written, synced = segment->synced;
    bool indexed = segment->sealed && !segment->entries;
    size_t n = 0;
    if (!indexed) {
        *ret = mem_zalloc(segment->entries_n + 1, sizeof **ret);
        for (; n < segment->entries_n; n++) {
            const struct frame_entry *entry = &segment->entries[n];
            if (entry->at + FRAME_HEADER_BYTES + entry->frame.packed > synced)
                break;
            (*ret)[n] = *entry;
        }
        *ret_n = n;
    }
    pthread_mutex_unlock(&segment->file);
    return !indexed || read_index(segment, fd, size, ret, ret_n);
}

/* A segment in hand. */
struct reader {
    struct journal *journal;
    const struct journal_read *read;
    struct journal_read_stats stats;
    struct segment *segment;
    int fd;
    struct frame_entry *entries;
    size_t n;
    uint32_t *id; /* the caller's, by place in the segment */
    size_t series_n;
    struct gather gather;
    uint32_t low, high; /* series of the group that is given, [low, high) */
    struct strbuf payload, unpacked;
    struct str raw; /* of the frame in hand */
};

static bool stopped(const struct reader *reader)
{
    return progress_stopped(reader->read->stop);
}

/* A frame's payload, unpacked: reader->raw. */
static bool unpack(struct reader *reader, const struct frame_entry *entry)
{
    reader->stats.frames++;
    reader->stats.bytes += entry->frame.packed;
    bool sound =
        read_bytes(reader->fd, entry->at + FRAME_HEADER_BYTES, entry->frame.packed,
                   &reader->payload) &&
        frame_payload_is_sound(&entry->frame, strbuf_str(&reader->payload)) &&
        frame_unpack(&entry->frame, strbuf_str(&reader->payload), &reader->unpacked, &reader->raw);
    if (!sound) {
        reader->stats.damaged_frames++;
        reader->stats.damaged_bytes += entry->frame.packed;
    }
    return sound;
}

/* Has a series samples in the group, and no name yet? */
static bool is_needed(const struct reader *reader, int64_t series)
{
    return series >= reader->low && series < reader->high && reader->id[series] == ID_UNNAMED &&
           gather_has(&reader->gather, (uint32_t)series);
}

/* Does the frame define such a series? */
static bool names_needed(const struct reader *reader, const struct frame *frame)
{
    int64_t from = frame->first > reader->low ? frame->first : reader->low;
    for (int64_t i = from; i <= frame->last && i < reader->high; i++)
        if (is_needed(reader, i))
            return true;
    return false;
}

static void name_series(struct reader *reader, const struct frame_entry *entry)
{
    struct label labels[JOURNAL_LABELS_MAX];
    const struct journal_sink *sink = &reader->read->sink;
    if (!unpack(reader, entry)) {
        for (int64_t i = entry->frame.first; i <= entry->frame.last; i++)
            reader->id[i] = ID_NAMELESS;
        return;
    }
    const char *p = reader->raw.p, *end = p + reader->raw.n;
    size_t n;
    for (int64_t i = entry->frame.first;
         i <= entry->frame.last && frame_definition_read(&p, end, labels, JOURNAL_LABELS_MAX, &n);
         i++)
        if (is_needed(reader, i))
            reader->id[i] = sink->series(sink->context, labels, n);
}

static void on_group(void *context, const struct gather *gather, uint32_t low, uint32_t high)
{
    struct reader *reader = context;
    (void)gather;
    reader->low = low;
    reader->high = high;
    for (size_t i = 0; i < reader->n; i++) {
        const struct frame_entry *entry = &reader->entries[i];
        if (entry->frame.kind == FRAME_DEFINITIONS && names_needed(reader, &entry->frame))
            name_series(reader, entry);
    }
}

/* One series' samples: as many runs as its stamps have. */
static void on_give(void *context, uint32_t series, const time_ms *t, const double *v, size_t n)
{
    struct reader *reader = context;
    const struct journal_sink *sink = &reader->read->sink;
    uint32_t id = reader->id[series];
    if (id >= ID_NAMELESS) {
        reader->stats.nameless_samples += id == JOURNAL_SKIP ? 0 : n;
        return;
    }
    for (size_t begin = 0, end; begin < n; begin = end) {
        for (end = begin + 1; end < n && t[end] > t[end - 1];)
            end++;
        sink->samples(sink->context, id, t + begin, v + begin, end - begin);
    }
    reader->stats.samples += n;
}

static void give_all(struct reader *reader)
{
    struct gather_sink sink = {reader, on_group, on_give};
    gather_give(&reader->gather, &sink);
}

static void read_samples(struct reader *reader, const struct frame_entry *entry)
{
    const struct frame *frame = &entry->frame;
    struct span span = frame->kube ? reader->read->kube : reader->read->gpu;
    if (frame->first > span.to || frame->last < span.from)
        return;
    if (reader->gather.samples + frame->count > GATHER_SAMPLES)
        give_all(reader);
    if (unpack(reader, entry) &&
        !gather_add(&reader->gather, frame, reader->raw, span, (uint32_t)reader->series_n,
                    &reader->stats.nameless_samples))
        reader->stats.damaged_frames++;
}

/* How many series the segment has; frames that are missing in it. */
static void look_at_entries(struct reader *reader)
{
    uint64_t expected = 0;
    reader->series_n = 0;
    for (size_t i = 0; i < reader->n; i++) {
        const struct frame *frame = &reader->entries[i].frame;
        if (frame->sequence > expected)
            reader->stats.damaged_frames += frame->sequence - expected;
        expected = frame->sequence + 1;
        if (frame->kind == FRAME_DEFINITIONS && frame->last >= (int64_t)reader->series_n)
            reader->series_n = (size_t)frame->last + 1;
    }
}

static void read_entries(struct reader *reader)
{
    look_at_entries(reader);
    reader->id = mem_realloc(reader->id, reader->series_n + 1, sizeof *reader->id);
    for (size_t i = 0; i <= reader->series_n; i++)
        reader->id[i] = ID_UNNAMED;
    for (size_t i = 0; i < reader->n && !stopped(reader); i++)
        if (reader->entries[i].frame.kind == FRAME_SAMPLES)
            read_samples(reader, &reader->entries[i]);
    if (!stopped(reader))
        give_all(reader);
    gather_clear(&reader->gather);
}

static bool overlaps(struct segment *segment, const struct journal_read *read)
{
    pthread_mutex_lock(&segment->file);
    struct segment_holds holds = segment->holds;
    pthread_mutex_unlock(&segment->file);
    return (holds.gpu.from <= read->gpu.to && holds.gpu.to >= read->gpu.from) ||
           (holds.kube.from <= read->kube.to && holds.kube.to >= read->kube.from);
}

/* Damage that is found for the first time goes to the journal's figures. */
static void tell_damage(struct reader *reader, uint64_t frames, uint64_t bytes)
{
    struct journal *journal = reader->journal;
    pthread_mutex_lock(&journal->lock);
    if (frames > reader->segment->damage_told) {
        journal->stats.damaged_frames += frames - reader->segment->damage_told;
        journal->stats.damaged_bytes += bytes;
        reader->segment->damage_told = frames;
    }
    pthread_mutex_unlock(&journal->lock);
}

static void read_segment(struct reader *reader)
{
    struct segment *segment = reader->segment;
    struct journal_read_stats before = reader->stats;
    if (!overlaps(segment, reader->read))
        return;
    reader->fd = openat(reader->journal->folder_fd, segment->name, O_RDONLY | O_CLOEXEC);
    if (reader->fd < 0)
        return; /* it was dropped meanwhile, or has nothing yet */
    if (!segment_entries(segment, reader->fd, &reader->entries, &reader->n)) {
        struct segment_scan scan;
        segment_scan(segment, reader->fd, segment->written, &scan);
        reader->entries = scan.entries;
        reader->n = scan.n;
        reader->stats.damaged_frames++;
    }
    read_entries(reader);
    free(reader->entries);
    reader->entries = NULL;
    close(reader->fd);
    tell_damage(reader, reader->stats.damaged_frames - before.damaged_frames,
                reader->stats.damaged_bytes - before.damaged_bytes);
}

enum err journal_read(struct journal *journal, const struct journal_read *read,
                      struct journal_read_stats *ret, struct error *err)
{
    struct reader reader = {.journal = journal, .read = read};
    struct segment **segments;
    size_t n = journal_snapshot(journal, &segments);
    for (size_t i = 0; i < n; i++) {
        reader.segment = segments[i];
        if (!stopped(&reader))
            read_segment(&reader);
        segment_drop(segments[i]);
    }
    free(segments);
    free(reader.id);
    gather_release(&reader.gather);
    strbuf_release(&reader.payload);
    strbuf_release(&reader.unpacked);
    if (ret)
        *ret = reader.stats;
    return stopped(&reader) ? error_set(err, ERR_STOPPED, "stopped while reading the journal")
                            : ERR_OK;
}
