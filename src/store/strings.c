/* Texts of a block: names of pods, their uids, workloads. A uid is 16 bytes; another text names the
 * one before it that it goes on from (a pod from its workload: Job/train-7f -> train-7f-0), how
 * far, and the rest. Then zstd, where it finds anything. */
#include <stdlib.h>
#include <zstd.h>

#include "store/block.h"

#define UUID_TEXT 36
#define UUID_BYTES 16
#define LOOK_BACK 24 /* texts that are tried as a beginning */
#define TEXT_MAX ((size_t)1 << 26)
#define ZSTD_LEVEL 3
#define ZSTD_FROM 64 /* bytes; less does not come out smaller */

enum tag { TAG_UUID, TAG_TEXT, TAG_GOES_ON }; /* TAG_GOES_ON + 2 x back + from_slash */

uint32_t strings_add(struct strings *strings, struct str text)
{
    for (size_t i = strings->n; i-- > 0;)
        if (str_eq(strings->texts[i], text))
            return (uint32_t)i + 1;
    mem_push(strings->texts, strings->n, strings->room, text);
    return (uint32_t)strings->n;
}

static int hex_value(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool is_dash(int i)
{
    return i == 8 || i == 13 || i == 18 || i == 23;
}

static bool uuid_bytes(struct str text, uint8_t *ret)
{
    if (text.n != UUID_TEXT)
        return false;
    for (int i = 0, n = 0; i < UUID_TEXT; i++) {
        if (is_dash(i)) {
            if (text.p[i] != '-')
                return false;
            continue;
        }
        int digit = hex_value(text.p[i]);
        if (digit < 0)
            return false;
        ret[n / 2] = (uint8_t)(n % 2 ? ret[n / 2] | digit : digit << 4);
        n++;
    }
    return true;
}

static void uuid_text(const uint8_t *bytes, char *ret)
{
    for (int i = 0, n = 0; i < UUID_TEXT; i++) {
        if (is_dash(i)) {
            ret[i] = '-';
            continue;
        }
        ret[i] = "0123456789abcdef"[n % 2 ? bytes[n / 2] & 15 : bytes[n / 2] >> 4];
        n++;
    }
}

static struct str after_slash(struct str text)
{
    const char *slash = text.n ? memchr(text.p, '/', text.n) : NULL;
    if (slash)
        text = (struct str){slash + 1, text.n - (size_t)(slash + 1 - text.p)};
    return text;
}

static size_t common(struct str a, struct str b)
{
    size_t n = a.n < b.n ? a.n : b.n, i = 0;
    while (i < n && a.p[i] == b.p[i])
        i++;
    return i;
}

struct beginning {
    size_t back, length;
    bool from_slash;
};

static struct beginning beginning_of(const struct strings *strings, size_t at)
{
    struct beginning best = {0};
    for (size_t back = 1; back <= at && back <= LOOK_BACK; back++)
        for (int from_slash = 0; from_slash < 2; from_slash++) {
            struct str before = strings->texts[at - back];
            size_t length = common(strings->texts[at], from_slash ? after_slash(before) : before);
            if (length > best.length + 1)
                best = (struct beginning){back, length, from_slash};
        }
    return best;
}

void strings_pack(const struct strings *strings, struct strbuf *out)
{
    struct strbuf texts = {0}, uuids = {0};
    for (size_t i = 0; i < strings->n; i++) {
        struct str text = strings->texts[i];
        uint8_t bytes[UUID_BYTES];
        if (uuid_bytes(text, bytes)) {
            varint_put(&texts, TAG_UUID);
            strbuf_add(&uuids, (struct str){(const char *)bytes, UUID_BYTES});
            continue;
        }
        struct beginning head = beginning_of(strings, i);
        varint_put(&texts, head.length ? TAG_GOES_ON + 2 * (head.back - 1) + head.from_slash
                                       : (size_t)TAG_TEXT);
        if (head.length)
            varint_put(&texts, head.length);
        varint_put(&texts, text.n - head.length);
        strbuf_add(&texts, (struct str){text.p + head.length, text.n - head.length});
    }
    size_t room = ZSTD_compressBound(texts.n), n = texts.n;
    char *packed = mem_alloc(room);
    if (texts.n >= ZSTD_FROM)
        n = ZSTD_compress(packed, room, texts.text, texts.n, ZSTD_LEVEL);
    bool smaller = texts.n >= ZSTD_FROM && !ZSTD_isError(n) && n < texts.n;
    varint_put(out, strings->n);
    varint_put(out, texts.n << 1 | smaller);
    if (smaller) {
        varint_put(out, n);
        strbuf_add(out, (struct str){packed, n});
    } else {
        strbuf_add(out, strbuf_str(&texts));
    }
    strbuf_add(out, strbuf_str(&uuids));
    free(packed);
    strbuf_release(&texts);
    strbuf_release(&uuids);
}

static bool take(struct str *in, size_t n, struct str *ret)
{
    if (in->n < n)
        return false;
    *ret = (struct str){in->p, n};
    in->p += n;
    in->n -= n;
    return true;
}

static bool text_stream(struct str *in, struct arena *arena, struct ZSTD_DCtx_s **zstd,
                        struct str *ret)
{
    uint64_t head, packed_n;
    if (!varint_get(in, &head) || head >> 1 > TEXT_MAX)
        return false;
    if (!(head & 1))
        return take(in, (size_t)(head >> 1), ret);
    struct str packed;
    if (!varint_get(in, &packed_n) || !take(in, (size_t)packed_n, &packed))
        return false;
    if (!*zstd)
        *zstd = ZSTD_createDCtx();
    *ret = (struct str){arena_alloc(arena, (size_t)(head >> 1)), (size_t)(head >> 1)};
    return *zstd &&
           ZSTD_decompressDCtx(*zstd, (char *)ret->p, ret->n, packed.p, packed.n) == ret->n;
}

void strings_release_zstd(struct ZSTD_DCtx_s *zstd)
{
    ZSTD_freeDCtx(zstd);
}

static bool next_text(struct str *texts, struct str *uuids, struct arena *arena,
                      struct strings *ret)
{
    uint64_t tag, head_n = 0, rest_n;
    struct str rest, head = STR_NONE;
    if (!varint_get(texts, &tag))
        return false;
    if (tag == TAG_UUID) {
        if (!take(uuids, UUID_BYTES, &rest))
            return false;
        char *text = arena_alloc(arena, UUID_TEXT);
        uuid_text((const uint8_t *)rest.p, text);
        mem_push(ret->texts, ret->n, ret->room, ((struct str){text, UUID_TEXT}));
        return true;
    }
    if (tag >= TAG_GOES_ON) {
        uint64_t back = (tag - TAG_GOES_ON) / 2 + 1;
        if (back > ret->n || !varint_get(texts, &head_n))
            return false;
        head = ret->texts[ret->n - back];
        if ((tag - TAG_GOES_ON) % 2)
            head = after_slash(head);
    }
    if (head_n > head.n || !varint_get(texts, &rest_n) || !take(texts, (size_t)rest_n, &rest))
        return false;
    char *text = arena_alloc(arena, (size_t)head_n + rest.n);
    if (head_n)
        memcpy(text, head.p, (size_t)head_n);
    if (rest.n)
        memcpy(text + head_n, rest.p, rest.n);
    mem_push(ret->texts, ret->n, ret->room, ((struct str){text, (size_t)head_n + rest.n}));
    return true;
}

bool strings_unpack(struct str *in, struct arena *arena, struct ZSTD_DCtx_s **zstd,
                    struct strings *ret)
{
    uint64_t n;
    struct str texts;
    ret->n = 0;
    if (!varint_get(in, &n) || n > BLOCK_STRINGS_MAX || !text_stream(in, arena, zstd, &texts))
        return false;
    for (uint64_t i = 0; i < n; i++)
        if (!next_text(&texts, in, arena, ret))
            return false;
    return true;
}

/* How long the uids are together, the tags say. */
bool strings_skip(struct str *in, struct arena *arena, struct ZSTD_DCtx_s **zstd)
{
    uint64_t n, tag, number;
    struct str texts, rest;
    size_t uuids = 0;
    if (!varint_get(in, &n) || n > BLOCK_STRINGS_MAX || !text_stream(in, arena, zstd, &texts))
        return false;
    for (uint64_t i = 0; i < n; i++) {
        if (!varint_get(&texts, &tag))
            return false;
        uuids += tag == TAG_UUID;
        if (tag == TAG_UUID)
            continue;
        if (tag >= TAG_GOES_ON && !varint_get(&texts, &number))
            return false;
        if (!varint_get(&texts, &number) || !take(&texts, (size_t)number, &rest))
            return false;
    }
    return take(in, uuids * UUID_BYTES, &rest);
}
