#include "wire/json_token.h"

#include "wire/utf8.h"

const char *json_token_string_end(const char *p, const char *end, const char **ret_resume)
{
    while (p < end) {
        const char *quote = memchr(p, '"', (size_t)(end - p));
        const char *stop = quote ? quote : end;
        const char *slash = memchr(p, '\\', (size_t)(stop - p));
        if (!slash) {
            *ret_resume = stop;
            return quote;
        }
        if (end - slash < 2) {
            *ret_resume = slash;
            return NULL;
        }
        p = slash + 2;
    }
    *ret_resume = p;
    return NULL;
}

static bool hex4(const char *p, const char *end, unsigned *ret)
{
    unsigned value = 0;
    if (end - p < 4)
        return false;
    for (int i = 0; i < 4; i++) {
        char c = p[i];
        unsigned digit;
        if (c >= '0' && c <= '9')
            digit = (unsigned)(c - '0');
        else if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f')
            digit = (unsigned)((c | 0x20) - 'a') + 10;
        else
            return false;
        value = value * 16 + digit;
    }
    *ret = value;
    return true;
}

/* \uXXXX at p (behind the u), a pair of surrogates as one; NULL where it is none. */
static const char *put_unicode(const char *p, const char *end, struct strbuf *scratch)
{
    unsigned code, low;
    if (!hex4(p, end, &code))
        return NULL;
    p += 4;
    if (code >> 10 == 0x36 && end - p >= 6 && p[0] == '\\' && p[1] == 'u' &&
        hex4(p + 2, end, &low) && low >> 10 == 0x37) {
        code = 0x10000 + ((code & 0x3ff) << 10 | (low & 0x3ff));
        p += 6;
    }
    utf8_put(scratch, code);
    return p;
}

bool json_token_string(struct str raw, struct strbuf *scratch, struct str *ret)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    if (raw.n == 0 || !memchr(raw.p, '\\', raw.n)) {
        *ret = raw;
        return true;
    }
    strbuf_clear(scratch);
    const char *p = raw.p, *end = raw.p + raw.n;
    while (p < end) {
        const char *slash = memchr(p, '\\', (size_t)(end - p));
        const char *stop = slash ? slash : end;
        strbuf_add(scratch, (struct str){p, (size_t)(stop - p)});
        p = stop;
        if (!slash)
            break;
        if (end - p < 2)
            return false;
        char kind = p[1];
        p += 2;
        const char *known = kind ? strchr(from, kind) : NULL;
        if (known)
            strbuf_addc(scratch, to[known - from]);
        else if (kind != 'u' || !(p = put_unicode(p, end, scratch)))
            return false;
    }
    *ret = strbuf_str(scratch);
    return true;
}

static bool is_word_byte(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
           c == '+' || c == '.';
}

const char *json_token_word_end(const char *p, const char *end)
{
    while (p < end && is_word_byte(*p))
        p++;
    return p;
}

static const char *digits(const char *p, const char *end)
{
    while (p < end && *p >= '0' && *p <= '9')
        p++;
    return p;
}

static bool is_number(struct str word)
{
    const char *p = word.p, *end = word.p + word.n, *from;
    p += p < end && *p == '-';
    from = p;
    p = digits(p, end);
    if (p == from || (*from == '0' && p - from > 1))
        return false;
    if (p < end && *p == '.') {
        from = ++p;
        p = digits(p, end);
        if (p == from)
            return false;
    }
    if (p < end && (*p | 0x20) == 'e') {
        p++;
        p += p < end && (*p == '-' || *p == '+');
        from = p;
        p = digits(p, end);
        if (p == from)
            return false;
    }
    return p == end;
}

bool json_token_is_word(struct str word)
{
    return is_number(word) || str_eq(word, STR("true")) || str_eq(word, STR("false")) ||
           str_eq(word, STR("null"));
}
