#include "util/str.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

int str_cmp(struct str a, struct str b)
{
    size_t n = a.n < b.n ? a.n : b.n;
    int order = n ? memcmp(a.p, b.p, n) : 0;
    return order ? order : (a.n > b.n) - (a.n < b.n);
}

bool str_eq_nocase(struct str a, struct str b)
{
    return a.n == b.n && (a.n == 0 || strncasecmp(a.p, b.p, a.n) == 0);
}

bool str_glob(struct str pattern, struct str s)
{
    char *p = str_dup(pattern), *t = str_dup(s);
    bool fits = fnmatch(p, t, FNM_NOESCAPE) == 0;
    free(p);
    free(t);
    return fits;
}

char *str_dup(struct str s)
{
    char *copy = mem_alloc(s.n + 1);
    if (s.n)
        memcpy(copy, s.p, s.n);
    copy[s.n] = 0;
    return copy;
}

struct str str_keep(struct arena *arena, struct str s)
{
    char *copy = arena_alloc(arena, s.n + 1);
    if (s.n)
        memcpy(copy, s.p, s.n);
    copy[s.n] = 0;
    return (struct str){copy, s.n};
}

bool str_to_i64(struct str s, long long *ret)
{
    char text[24];
    if (s.n == 0 || s.n >= sizeof text)
        return false;
    memcpy(text, s.p, s.n);
    text[s.n] = 0;
    if (text[0] != '-' && (text[0] < '0' || text[0] > '9'))
        return false;
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (end != text + s.n || errno)
        return false;
    *ret = value;
    return true;
}

void strbuf_add(struct strbuf *buf, struct str s)
{
    mem_reserve(buf->text, buf->n, buf->room, s.n + 1);
    if (s.n)
        memcpy(buf->text + buf->n, s.p, s.n);
    buf->n += s.n;
    buf->text[buf->n] = 0;
}

void strbuf_addc(struct strbuf *buf, char c)
{
    strbuf_add(buf, (struct str){&c, 1});
}

void strbuf_addf(struct strbuf *buf, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    strbuf_addv(buf, format, args);
    va_end(args);
}

void strbuf_addv(struct strbuf *buf, const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, format, args);
    if (n > 0) {
        mem_reserve(buf->text, buf->n, buf->room, (size_t)n + 1);
        vsnprintf(buf->text + buf->n, (size_t)n + 1, format, again);
        buf->n += (size_t)n;
    }
    va_end(again);
}

void strbuf_clear(struct strbuf *buf)
{
    buf->n = 0;
    if (buf->text)
        buf->text[0] = 0;
}

void strbuf_release(struct strbuf *buf)
{
    free(buf->text);
    *buf = (struct strbuf){0};
}

struct str labels_get(const struct label *labels, size_t n, struct str name)
{
    for (size_t i = 0; i < n; i++)
        if (str_eq(labels[i].name, name))
            return labels[i].value;
    return STR_NONE;
}
