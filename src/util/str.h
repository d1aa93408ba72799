/* Views of bytes, and a buffer that builds text. A view owns nothing and need not end in NUL. */
#ifndef GPUTALLY_UTIL_STR_H
#define GPUTALLY_UTIL_STR_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "util/memory.h"

struct str {
    const char *p;
    size_t n;
};

#define STR(literal) ((struct str){literal, sizeof(literal) - 1})
#define STR_NONE ((struct str){"", 0})
/* For printf: "%.*s", STR_ARG(s). */
#define STR_ARG(s) (int)(s).n, (s).p

static inline struct str str_of(const char *text)
{
    return (struct str){text, strlen(text)};
}

static inline bool str_eq(struct str a, struct str b)
{
    return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

static inline bool str_starts(struct str s, struct str head)
{
    return s.n >= head.n && memcmp(s.p, head.p, head.n) == 0;
}

int str_cmp(struct str a, struct str b);         /* byte order, as memcmp; shorter first on ties */
bool str_eq_nocase(struct str a, struct str b);  /* ASCII only */
bool str_glob(struct str pattern, struct str s); /* *, ? and [set], as fnmatch without specials */
char *str_dup(struct str s);                     /* NUL-terminated; the caller frees */
struct str str_keep(struct arena *arena, struct str s); /* a copy in the arena, NUL-terminated */
bool str_to_i64(struct str s, long long *ret);          /* whole decimal; false on anything else */

/* A growable text; zero-initialise, release with strbuf_release(). text is NUL-terminated once
 * anything was added (strbuf_str gives a view at any time). */
struct strbuf {
    char *text;
    size_t n, room;
};
void strbuf_add(struct strbuf *buf, struct str s);
void strbuf_addc(struct strbuf *buf, char c);
void strbuf_addf(struct strbuf *buf, const char *format, ...) __attribute__((format(printf, 2, 3)));
void strbuf_addv(struct strbuf *buf, const char *format, va_list args)
    __attribute__((format(printf, 2, 0)));
void strbuf_clear(struct strbuf *buf);
void strbuf_release(struct strbuf *buf);
static inline struct str strbuf_str(const struct strbuf *buf)
{
    return (struct str){buf->text ? buf->text : "", buf->n};
}

/* One label of a series. */
struct label {
    struct str name, value;
};
/* Value of a label, STR_NONE where it is not there (an empty label is none). */
struct str labels_get(const struct label *labels, size_t n, struct str name);

#endif
