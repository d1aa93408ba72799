/* Heads, checksums, definitions, the index. zstd packs what is text, at its fastest level; samples
 * are small as they are (journal_columns.c). */
#include "source/journal_frame.h"

#include <stdlib.h>
#include <zstd.h>

#include "util/error.h"
#include "wire/crc32c.h"
#include "wire/protobuf.h"

#define FRAME_MAGIC 0x314d5246u                    /* "FRM1" */
#define SEGMENT_MAGIC UINT64_C(0x314c4e524a595447) /* "GTYJRNL1" */
#define TRAILER_MAGIC UINT64_C(0x31444e454a595447) /* "GTYJEND1" */
#define HEAD_COPY_BYTES (SEGMENT_HEADER_BYTES / 2)
#define ENTRY_BYTES ((size_t)64)
#define LEVEL 1

static void put32(char *p, uint32_t v)
{
    for (int i = 0; i < 4; i++)
        p[i] = (char)(v >> (8 * i));
}

static void put64(char *p, uint64_t v)
{
    for (int i = 0; i < 8; i++)
        p[i] = (char)(v >> (8 * i));
}

static uint32_t get32(const char *p)
{
    uint32_t v = 0;
    for (int i = 4; i-- > 0;)
        v = v << 8 | (uint8_t)p[i];
    return v;
}

static uint64_t get64(const char *p)
{
    uint64_t v = 0;
    for (int i = 8; i-- > 0;)
        v = v << 8 | (uint8_t)p[i];
    return v;
}

void segment_head_put(const struct segment_head *head, struct strbuf *ret)
{
    char copy[HEAD_COPY_BYTES] = {0};
    put64(copy, SEGMENT_MAGIC);
    put64(copy + 8, head->number);
    put64(copy + 16, head->salt);
    put64(copy + 24, (uint64_t)head->created);
    put32(copy + 44, crc32c(0, (struct str){copy, 44}));
    for (int i = 0; i < 2; i++)
        strbuf_add(ret, (struct str){copy, sizeof copy});
}

bool segment_head_read(struct str bytes, struct segment_head *ret)
{
    for (size_t at = 0; at + HEAD_COPY_BYTES <= bytes.n && at < SEGMENT_HEADER_BYTES;
         at += HEAD_COPY_BYTES) {
        const char *p = bytes.p + at;
        if (get64(p) != SEGMENT_MAGIC || get32(p + 44) != crc32c(0, (struct str){p, 44}))
            continue;
        *ret = (struct segment_head){get64(p + 8), get64(p + 16), (time_ms)get64(p + 24)};
        return true;
    }
    return false;
}

void segment_trailer_put(uint64_t index_at, uint64_t salt, struct strbuf *ret)
{
    char p[SEGMENT_TRAILER_BYTES] = {0};
    put64(p, TRAILER_MAGIC);
    put64(p + 8, index_at);
    put64(p + 16, salt);
    put32(p + 28, crc32c(0, (struct str){p, 28}));
    strbuf_add(ret, (struct str){p, sizeof p});
}

bool segment_trailer_read(struct str bytes, uint64_t salt, uint64_t *ret_index_at)
{
    const char *p = bytes.p;
    if (bytes.n != SEGMENT_TRAILER_BYTES || get64(p) != TRAILER_MAGIC || get64(p + 16) != salt ||
        get32(p + 28) != crc32c(0, (struct str){p, 28}))
        return false;
    *ret_index_at = get64(p + 8);
    return true;
}

void frame_put(const struct frame *frame, uint64_t salt, char *p)
{
    put32(p, FRAME_MAGIC);
    p[4] = (char)frame->kind;
    p[5] = (char)frame->kube;
    p[6] = (char)frame->plain;
    p[7] = 0;
    put32(p + 8, frame->packed);
    put32(p + 12, frame->raw);
    put32(p + 16, frame->count);
    put32(p + 20, frame->payload_crc);
    put64(p + 24, frame->sequence);
    put64(p + 32, (uint64_t)frame->first);
    put64(p + 40, (uint64_t)frame->last);
    put32(p + 48, (uint32_t)(salt ^ salt >> 32));
    put32(p + 52, crc32c(0, (struct str){p, 52}));
}

bool frame_read(const char *p, uint64_t salt, struct frame *ret)
{
    if (get32(p) != FRAME_MAGIC || get32(p + 52) != crc32c(0, (struct str){p, 52}))
        return false;
    if (get32(p + 48) != (uint32_t)(salt ^ salt >> 32))
        return false;
    struct frame frame = {.kind = (enum frame_kind)(uint8_t)p[4],
                          .kube = p[5] == 1,
                          .plain = p[6] == 1,
                          .packed = get32(p + 8),
                          .raw = get32(p + 12),
                          .count = get32(p + 16),
                          .payload_crc = get32(p + 20),
                          .sequence = get64(p + 24),
                          .first = (int64_t)get64(p + 32),
                          .last = (int64_t)get64(p + 40)};
    if (frame.kind < FRAME_DEFINITIONS || frame.kind > FRAME_INDEX ||
        frame.packed > FRAME_PAYLOAD_MAX || frame.raw > FRAME_PAYLOAD_MAX || (uint8_t)p[6] > 1)
        return false;
    if (frame.kind == FRAME_DEFINITIONS &&
        (frame.first < 0 || frame.last < frame.first || frame.last >= FRAME_SERIES_MAX))
        return false;
    *ret = frame;
    return true;
}

void frame_seal(struct frame *frame, struct str payload)
{
    frame->payload_crc = crc32c(0, payload);
}

bool frame_payload_is_sound(const struct frame *frame, struct str payload)
{
    return payload.n == frame->packed && crc32c(0, payload) == frame->payload_crc;
}

struct frame_packer {
    ZSTD_CCtx *context;
};

struct frame_packer *frame_packer_new(void)
{
    struct frame_packer *packer = mem_alloc(sizeof *packer);
    packer->context = ZSTD_createCCtx();
    invariant(packer->context);
    return packer;
}

void frame_packer_free(struct frame_packer *packer)
{
    if (!packer)
        return;
    ZSTD_freeCCtx(packer->context);
    free(packer);
}

size_t frame_pack(struct frame_packer *packer, struct str raw, struct strbuf *ret)
{
    size_t room = ZSTD_compressBound(raw.n);
    mem_reserve(ret->text, ret->n, ret->room, room + 1);
    size_t n = ZSTD_compressCCtx(packer->context, ret->text + ret->n, room, raw.p, raw.n, LEVEL);
    invariant(!ZSTD_isError(n));
    ret->n += n;
    ret->text[ret->n] = 0;
    return n;
}

bool frame_unpack(const struct frame *frame, struct str payload, struct strbuf *buf,
                  struct str *ret)
{
    *ret = payload;
    if (frame->plain)
        return payload.n == frame->raw;
    strbuf_clear(buf);
    if (frame->raw > FRAME_PAYLOAD_MAX)
        return false;
    mem_reserve(buf->text, buf->n, buf->room, (size_t)frame->raw + 1);
    size_t n = ZSTD_decompress(buf->text, frame->raw, payload.p, payload.n);
    buf->n = ZSTD_isError(n) ? 0 : n;
    buf->text[buf->n] = 0;
    *ret = strbuf_str(buf);
    return !ZSTD_isError(n) && n == frame->raw;
}

/* A varint that is mostly one byte. */
static inline bool get_varint(const char **p, const char *end, uint64_t *ret)
{
    if (*p < end && (uint8_t) * *p < 128) {
        *ret = (uint8_t) * (*p)++;
        return true;
    }
    return protobuf_varint(p, end, ret);
}

static char *put_text(char *p, struct str text)
{
    p = protobuf_varint_at(p, text.n);
    memcpy(p, text.p, text.n);
    return p + text.n;
}

void frame_definition_put(const struct label *labels, size_t n, struct strbuf *ret)
{
    size_t room = PROTOBUF_VARINT_MAX * (1 + 2 * n) + 1;
    for (size_t i = 0; i < n; i++)
        room += labels[i].name.n + labels[i].value.n;
    mem_reserve(ret->text, ret->n, ret->room, room);
    char *p = protobuf_varint_at(ret->text + ret->n, n);
    for (size_t i = 0; i < n; i++)
        p = put_text(put_text(p, labels[i].name), labels[i].value);
    ret->n = (size_t)(p - ret->text);
    ret->text[ret->n] = 0;
}

static bool read_text(const char **p, const char *end, struct str *ret)
{
    uint64_t n;
    if (!get_varint(p, end, &n) || n > (uint64_t)(end - *p))
        return false;
    *ret = (struct str){*p, (size_t)n};
    *p += n;
    return true;
}

bool frame_definition_read(const char **p, const char *end, struct label *labels, size_t max,
                           size_t *ret_n)
{
    uint64_t n;
    if (*p == end || !get_varint(p, end, &n) || n > max)
        return false;
    for (uint64_t i = 0; i < n; i++)
        if (!read_text(p, end, &labels[i].name) || !read_text(p, end, &labels[i].value))
            return false;
    *ret_n = (size_t)n;
    return true;
}

void frame_entry_put(const struct frame_entry *entry, struct strbuf *ret)
{
    char p[ENTRY_BYTES];
    put64(p, entry->at);
    frame_put(&entry->frame, 0, p + 8);
    strbuf_add(ret, (struct str){p, sizeof p});
}

bool frame_entries_read(struct str raw, uint64_t size, struct frame_entry **ret_entries,
                        size_t *ret_n)
{
    if (raw.n % ENTRY_BYTES != 0)
        return false;
    size_t n = raw.n / ENTRY_BYTES;
    struct frame_entry *entries = mem_zalloc(n ? n : 1, sizeof *entries);
    uint64_t at = SEGMENT_HEADER_BYTES;
    for (size_t i = 0; i < n; i++) {
        const char *p = raw.p + i * ENTRY_BYTES;
        entries[i].at = get64(p);
        if (!frame_read(p + 8, 0, &entries[i].frame) || entries[i].at < at ||
            entries[i].at > size ||
            size - entries[i].at < FRAME_HEADER_BYTES + entries[i].frame.packed) {
            free(entries);
            return false;
        }
        at = entries[i].at + FRAME_HEADER_BYTES + entries[i].frame.packed;
    }
    *ret_entries = entries;
    *ret_n = n;
    return true;
}
