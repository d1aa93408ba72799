/* gzip (RFC 1952) of answers. */
#include <zlib.h>

#include "serve/http_impl.h"

#define WORTH_BYTES 1024
#define LEVEL 4 /* JSON of figures: nine tenths of level 9's gain in a third of its time */
#define GZIP_WINDOW (15 + 16)

bool http_is_worth_packing(const char *content_type, size_t n)
{
    return n >= WORTH_BYTES && (strncmp(content_type, "text/", 5) == 0 ||
                                strncmp(content_type, "application/json", 16) == 0 ||
                                strncmp(content_type, "application/openmetrics", 23) == 0 ||
                                strncmp(content_type, "application/x-ndjson", 20) == 0);
}

void http_pack(struct str plain, struct strbuf *ret)
{
    z_stream stream = {0};
    if (plain.n > UINT32_MAX / 2 ||
        deflateInit2(&stream, LEVEL, Z_DEFLATED, GZIP_WINDOW, 8, Z_DEFAULT_STRATEGY) != Z_OK)
        return;
    size_t room = deflateBound(&stream, plain.n);
    strbuf_release(ret);
    ret->text = mem_alloc(room + 1);
    ret->room = room + 1;
    stream.next_in = (unsigned char *)plain.p;
    stream.avail_in = (unsigned)plain.n;
    stream.next_out = (unsigned char *)ret->text;
    stream.avail_out = (unsigned)room;
    if (deflate(&stream, Z_FINISH) == Z_STREAM_END)
        ret->n = room - stream.avail_out;
    deflateEnd(&stream);
}

bool gzip_unpack(struct str packed, size_t plain_n, struct strbuf *ret)
{
    z_stream stream = {0};
    if (inflateInit2(&stream, GZIP_WINDOW) != Z_OK)
        return false;
    strbuf_release(ret);
    ret->text = mem_alloc(plain_n + 1);
    ret->room = plain_n + 1;
    stream.next_in = (unsigned char *)packed.p;
    stream.avail_in = (unsigned)packed.n;
    stream.next_out = (unsigned char *)ret->text;
    stream.avail_out = (unsigned)plain_n;
    bool whole = inflate(&stream, Z_FINISH) == Z_STREAM_END && stream.avail_out == 0;
    ret->n = plain_n - stream.avail_out;
    inflateEnd(&stream);
    return whole;
}

/* Items are "gzip", "gzip;q=0.5", "*": with q=0 they are refused (RFC 9110, 12.5.3). */
bool gzip_is_accepted(struct str accept)
{
    bool star = false;
    while (accept.n) {
        const char *comma = memchr(accept.p, ',', accept.n);
        struct str item = {accept.p, comma ? (size_t)(comma - accept.p) : accept.n};
        accept = comma ? (struct str){comma + 1, accept.n - item.n - 1} : STR_NONE;
        const char *semicolon = item.n ? memchr(item.p, ';', item.n) : NULL;
        struct str coding = {item.p, semicolon ? (size_t)(semicolon - item.p) : item.n};
        while (coding.n && coding.p[0] == ' ')
            coding.p++, coding.n--;
        while (coding.n && coding.p[coding.n - 1] == ' ')
            coding.n--;
        bool refused = false;
        if (semicolon) {
            struct str rest = {semicolon, item.n - (size_t)(semicolon - item.p)};
            const char *q = memchr(rest.p, '=', rest.n);
            refused = q != NULL;
            for (const char *p = q ? q + 1 : NULL; p && p < rest.p + rest.n; p++)
                refused &= *p == '0' || *p == '.' || *p == ' ';
        }
        if (str_eq_nocase(coding, STR("gzip")) || str_eq_nocase(coding, STR("x-gzip")))
            return !refused;
        star |= str_eq(coding, STR("*")) && !refused;
    }
    return star;
}
