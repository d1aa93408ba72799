/* A reader for label matchers as PromQL spells them. Escapes that no selector of a label value
 * needs
 * (\u, \x, octal) are refused rather than misread. */
#include "source/selector.h"

struct cursor {
    const char *p, *end;
};

static void skip_blanks(struct cursor *at)
{
    while (at->p < at->end && strchr(" \t\r\n", *at->p))
        at->p++;
}

static bool name_char(char c, bool first)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == ':' ||
           (!first && c >= '0' && c <= '9');
}

static bool read_name(struct cursor *at, struct str *ret)
{
    skip_blanks(at);
    const char *from = at->p;
    while (at->p < at->end && name_char(*at->p, at->p == from))
        at->p++;
    *ret = (struct str){from, (size_t)(at->p - from)};
    return ret->n > 0;
}

static bool read_operator(struct cursor *at, enum remote_read_match *ret)
{
    static const struct {
        const char *text;
        enum remote_read_match match;
    } operators[] = {{"=~", REMOTE_READ_RE},
                     {"!~", REMOTE_READ_NRE},
                     {"!=", REMOTE_READ_NEQ},
                     {"=", REMOTE_READ_EQ}};
    skip_blanks(at);
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++) {
        size_t n = strlen(operators[i].text);
        if ((size_t)(at->end - at->p) >= n && memcmp(at->p, operators[i].text, n) == 0) {
            at->p += n;
            *ret = operators[i].match;
            return true;
        }
    }
    return false;
}

static bool unescape(char c, char *ret)
{
    const char *from = "\\\"'ntr", *to = "\\\"'\n\t\r", *found = c ? strchr(from, c) : NULL;
    if (found)
        *ret = to[found - from];
    return found != NULL;
}

static bool read_string(struct cursor *at, struct arena *arena, struct str *ret)
{
    skip_blanks(at);
    if (at->p == at->end || !strchr("\"'`", *at->p))
        return false;
    char quote = *at->p++;
    char *text = arena_alloc(arena, (size_t)(at->end - at->p) + 1);
    size_t n = 0;
    for (; at->p < at->end && *at->p != quote; at->p++) {
        char c = *at->p;
        if (c == '\\' && quote != '`' && (++at->p == at->end || !unescape(*at->p, &c)))
            return false;
        text[n++] = c;
    }
    if (at->p == at->end)
        return false;
    at->p++;
    *ret = (struct str){text, n};
    return true;
}

bool selector_add(struct selector *selector, enum remote_read_match match, struct str name,
                  struct str value)
{
    if (selector->n == SELECTOR_MATCHERS_MAX)
        return false;
    selector->items[selector->n++] =
        (struct remote_read_matcher){.match = match, .name = name, .value = value};
    return true;
}

enum err selector_parse(struct str text, struct arena *arena, struct selector *selector,
                        struct error *err)
{
    struct cursor at = {text.p, text.p + text.n};
    skip_blanks(&at);
    while (at.p < at.end) {
        struct str name, value = STR_NONE;
        enum remote_read_match match = REMOTE_READ_EQ;
        if (!read_name(&at, &name) || !read_operator(&at, &match) ||
            !read_string(&at, arena, &value))
            return error_set(err, ERR_USAGE,
                             "'%.*s' is no selector at character %zu: write it as "
                             "name=\"value\",name=~\"regex\"",
                             STR_ARG(text), (size_t)(at.p - text.p) + 1);
        if (!selector_add(selector, match, name, value))
            return error_set(err, ERR_USAGE, "a selector has more than %d matchers",
                             SELECTOR_MATCHERS_MAX);
        skip_blanks(&at);
        if (at.p < at.end && *at.p != ',')
            return error_set(err, ERR_USAGE, "'%.*s' is no selector: a comma is missing",
                             STR_ARG(text));
        at.p += at.p < at.end;
        skip_blanks(&at);
    }
    return ERR_OK;
}
