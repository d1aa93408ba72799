/* Which frames came after a booking: a mark is a segment's number and salt, and how many frames of
 * it could be read then.
 *
 * It is the mark, kept with what was booked, that knows of late samples, not the memory of a
 * process: what was acknowledged just before the process died is behind the last mark, as it is for
 * the next process. A mark may be too early by a few frames, which are then looked at twice; never
 * too late. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "source/journal_impl.h"

struct mark {
    uint64_t number, salt, frames; /* salt 0: no segment yet */
};

static uint64_t next_number(struct journal *journal)
{
    pthread_mutex_lock(&journal->lock);
    uint64_t number = journal->next_number;
    pthread_mutex_unlock(&journal->lock);
    return number;
}

/* How many frames of it may be read by now; false: it is sealed, and all may. */
static bool is_growing(struct segment *segment, uint64_t *ret_frames)
{
    pthread_mutex_lock(&segment->file);
    bool growing = !segment->sealed;
    size_t n = segment->entries_n;
    for (; n > 0; n--) {
        const struct frame_entry *entry = &segment->entries[n - 1];
        if (entry->at + FRAME_HEADER_BYTES + entry->frame.packed <= segment->synced)
            break;
    }
    pthread_mutex_unlock(&segment->file);
    *ret_frames = n;
    return growing;
}

void journal_mark(struct journal *journal, struct strbuf *ret)
{
    struct mark mark = {.number = next_number(journal)}; /* before the look at the segments */
    struct segment **segments;
    size_t n = journal_snapshot(journal, &segments);
    bool found = false;
    for (size_t i = 0; i < n; i++) {
        uint64_t frames;
        if (!found && is_growing(segments[i], &frames)) {
            mark = (struct mark){segments[i]->head.number, segments[i]->head.salt, frames};
            found = true;
        }
        segment_drop(segments[i]);
    }
    free(segments);
    strbuf_addf(ret, "%" PRIx64 ":%" PRIx64 ":%" PRIx64, mark.number, mark.salt, mark.frames);
}

static bool mark_read(struct str text, struct mark *ret)
{
    uint64_t *parts[] = {&ret->number, &ret->salt, &ret->frames};
    size_t part = 0, digits = 0;
    *ret = (struct mark){0};
    for (size_t i = 0; i < text.n; i++) {
        char c = text.p[i];
        bool is_digit = c >= '0' && c <= '9', is_letter = c >= 'a' && c <= 'f';
        if (c == ':' && digits && part < 2) {
            part++;
            digits = 0;
        } else if ((is_digit || is_letter) && digits++ < 16) {
            *parts[part] = *parts[part] << 4 | (uint64_t)(is_digit ? c - '0' : c - 'a' + 10);
        } else {
            return false;
        }
    }
    return part == 2 && digits;
}

static time_ms oldest_held(struct segment *segment)
{
    pthread_mutex_lock(&segment->file);
    struct segment_holds holds = segment->holds;
    pthread_mutex_unlock(&segment->file);
    return holds.gpu.from < holds.kube.from ? holds.gpu.from : holds.kube.from;
}

/* Of the frames from `frames` on. */
static time_ms oldest_from(struct segment *segment, uint64_t frames)
{
    struct frame_entry *entries = NULL;
    size_t n = 0;
    time_ms oldest = TIME_MAX;
    int fd = openat(segment->journal->folder_fd, segment->name, O_RDONLY | O_CLOEXEC);
    if (fd < 0) /* dropped meanwhile, or nothing is in it yet */
        return oldest;
    if (!segment_entries(segment, fd, &entries, &n))
        oldest = oldest_held(segment);
    else
        for (size_t i = 0; i < n; i++) {
            const struct frame *frame = &entries[i].frame;
            if (frame->kind == FRAME_SAMPLES && frame->sequence >= frames && frame->first < oldest)
                oldest = frame->first;
        }
    free(entries);
    close(fd);
    return oldest;
}

/* Can the mark be one of this journal? Numbers begin again where a folder was emptied. */
static bool is_ours(struct mark mark, uint64_t next, struct segment *const *segments, size_t n)
{
    if (mark.salt == 0)
        return mark.number <= next;
    for (size_t i = 0; i < n; i++)
        if (segments[i]->head.number == mark.number)
            return segments[i]->head.salt == mark.salt;
    return mark.number < next;
}

time_ms journal_oldest_since(struct journal *journal, struct str text)
{
    struct mark mark;
    struct segment **segments;
    size_t n = journal_snapshot(journal, &segments);
    bool known = mark_read(text, &mark) && is_ours(mark, next_number(journal), segments, n);
    time_ms oldest = TIME_MAX;
    for (size_t i = 0; i < n; i++) {
        uint64_t number = segments[i]->head.number;
        if (!known || number >= mark.number) {
            bool same = known && mark.salt && number == mark.number;
            time_ms own = oldest_from(segments[i], same ? mark.frames : 0);
            oldest = own < oldest ? own : oldest;
        }
        segment_drop(segments[i]);
    }
    free(segments);
    return oldest;
}
