/* Frames: what a segment file consists of. Inside of the journal. Bytes in, values out, no I/O;
 * what is read may be damaged in any way, and is checked before it is believed.
 *
 *     file header, 48 bytes, twice     magic, number, salt, created, CRC
 *     frame*                           header of 56 bytes, payload (zstd, or plain)
 *     INDEX frame, trailer             once the segment is sealed
 *
 * A frame's header has a CRC of its own and the segment's salt, a random number: after damage the
 * next frame is found by its magic, CRC and salt, and no text that a stranger puts into a label can
 * pass for one. docs/internals/journal.md has the bytes. Any thread. */
#ifndef GPUTALLY_SOURCE_JOURNAL_FRAME_H
#define GPUTALLY_SOURCE_JOURNAL_FRAME_H

#include "util/clock.h"
#include "util/str.h"

#define FRAME_HEADER_BYTES ((size_t)56)
#define FRAME_PAYLOAD_MAX ((size_t)64 << 20) /* packed or not */
#define FRAME_SERIES_MAX (INT64_C(1) << 24)  /* numbers that definitions may have */
#define SEGMENT_HEADER_BYTES ((size_t)96)    /* two copies of 48 */
#define SEGMENT_TRAILER_BYTES ((size_t)32)

#define FRAME_MAGIC_FIRST 0x46 /* the first byte of a frame */

enum frame_kind { FRAME_DEFINITIONS = 1, FRAME_SAMPLES = 2, FRAME_INDEX = 3 };

struct frame {
    enum frame_kind kind;
    bool kube;            /* samples of records (kube_…), else of the rest */
    bool plain;           /* samples in columns; else the payload is packed by zstd */
    uint32_t packed, raw; /* bytes of the payload */
    uint32_t count;       /* samples, series, or entries */
    uint64_t sequence;    /* of frames in the segment, from 0 */
    int64_t first, last;  /* stamps of samples; series numbers of definitions */
    uint32_t payload_crc;
};

struct segment_head {
    uint64_t number, salt;
    time_ms created;
};

/* Appends both copies. */
void segment_head_put(const struct segment_head *head, struct strbuf *ret);
/* From either copy; false where both are damaged. */
bool segment_head_read(struct str bytes, struct segment_head *ret);

/* The trailer says where the INDEX frame stands; it is the last thing in a sealed file. */
void segment_trailer_put(uint64_t index_at, uint64_t salt, struct strbuf *ret);
bool segment_trailer_read(struct str bytes, uint64_t salt, uint64_t *ret_index_at);

/* Write FRAME_HEADER_BYTES at p. */
void frame_put(const struct frame *frame, uint64_t salt, char *p);
/* False: these are no header of this segment. */
bool frame_read(const char *p, uint64_t salt, struct frame *ret);
/* Note down the CRC of the payload, before frame_put. */
void frame_seal(struct frame *frame, struct str payload);
bool frame_payload_is_sound(const struct frame *frame, struct str payload);

/* Unpack a payload into buf, replacing what it had; ret is a view of that, or the payload itself
 * where it is plain. False: it is damaged. */
bool frame_unpack(const struct frame *frame, struct str payload, struct strbuf *buf,
                  struct str *ret);
/* Pack and append to ret; returns the packed bytes. One thread owns a packer. */
struct frame_packer;
struct frame_packer *frame_packer_new(void);
void frame_packer_free(struct frame_packer *packer); /* NULL is fine */
size_t frame_pack(struct frame_packer *packer, struct str raw, struct strbuf *ret);

/* Columns of samples; owned by who made them. Zero-initialise. */
struct frame_samples {
    uint32_t *number; /* of the series */
    time_ms *t;
    double *v;
    size_t n, room;
};
void frame_samples_reserve(struct frame_samples *samples, size_t more);
void frame_samples_release(struct frame_samples *samples);
/* Payload of a plain frame, appended. */
void frame_samples_put(const struct frame_samples *samples, struct strbuf *ret);
/* Appends to `samples`; false, and nothing appended, where the unpacked bytes are not the frame's
 * `count` samples, at least one. Plain or as earlier versions packed
 * them. */
bool frame_samples_read(const struct frame *frame, struct str raw, struct frame_samples *samples);

/* Would frame_samples_read() read this plain payload? Gives the smallest and the largest number of
 * its samples. Costs a tenth of reading it. */
bool frame_samples_check(const struct frame *frame, struct str raw, uint32_t *ret_low,
                         uint32_t *ret_high);
/* What a plain payload that was checked holds: its values, and beside them whose they are, as
 * stretches of series that follow each other at one stamp. In a live batch there are as many
 * stretches as targets. */
void frame_values_read(struct str raw, uint32_t count, double *ret);
struct frame_stretch {
    uint32_t series; /* the first: its number / 2 */
    uint32_t n, at;  /* samples, and the first one's place in the frame */
    time_ms t;
};
struct frame_stretches {
    struct frame_run {
        const char *p, *end;
        uint64_t value, step; /* of the last sample that was taken; to the next one */
        size_t left;
    } numbers, stamps;
    uint32_t at, count;
};
struct frame_stretches frame_stretches(struct str raw, uint32_t count);
bool frame_stretch_next(struct frame_stretches *stretches, struct frame_stretch *ret);

/* A definition, appended to the raw payload. */
void frame_definition_put(const struct label *labels, size_t n, struct strbuf *ret);
/* The next one at *p: labels are views; false at the end (p == end) and where it is damaged. */
bool frame_definition_read(const char **p, const char *end, struct label *labels, size_t max,
                           size_t *ret_n);

/* Where a frame stands, in memory and in the INDEX. */
struct frame_entry {
    uint64_t at;
    struct frame frame;
};
void frame_entry_put(const struct frame_entry *entry, struct strbuf *ret);
/* False where raw is not whole entries, in order, inside of `size` bytes. ret_entries is the
 * caller's to free. */
bool frame_entries_read(struct str raw, uint64_t size, struct frame_entry **ret_entries,
                        size_t *ret_n);

#endif
