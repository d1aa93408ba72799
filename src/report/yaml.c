#include "report/yaml.h"

#include "report/text.h"

#define COMMENT_COLUMNS 96

static bool is_plain_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Words that some reader takes for a truth value or nothing. */
static bool is_reserved(struct str text)
{
    static const char *const words[] = {"true", "false", "yes", "no", "on",
                                        "off",  "null",  "y",   "n"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (str_eq_nocase(text, str_of(words[i])))
            return true;
    return false;
}

/* Begins with a letter, so that it is no number and no date, and has nothing that means anything.
 */
static bool is_plain(struct str text)
{
    if (!text.n || !is_plain_letter(text.p[0]) || is_reserved(text))
        return false;
    for (size_t i = 0; i < text.n; i++) {
        char c = text.p[i];
        if (!is_plain_letter(c) && !(c >= '0' && c <= '9') && !strchr("-._/", c))
            return false;
    }
    return true;
}

/* Printable to YAML, and no line end of its: tab and what stands from space on, but for DEL, the
 * C1 controls with NEL, LS, PS, surrogates and the byte order mark. */
static bool is_printable(uint32_t c)
{
    return c >= 0x20 && !(c >= 0x7f && c <= 0xa0) && c != 0x2028 && c != 0x2029 && c != 0xfeff &&
           !(c >= 0xd800 && c <= 0xdfff) && c != 0xfffe && c != 0xffff && c <= 0x10ffff;
}

void yaml_scalar(struct strbuf *out, struct str text)
{
    if (is_plain(text)) {
        strbuf_add(out, text);
        return;
    }
    strbuf_addc(out, '"');
    for (size_t i = 0; i < text.n;) {
        uint32_t c;
        size_t n = text_code_point(text.p + i, text.n - i, &c);
        if (n == 0)
            strbuf_add(out, STR("\\uFFFD"));
        else if (c == '"' || c == '\\')
            strbuf_addf(out, "\\%c", (char)c);
        else if (is_printable(c))
            strbuf_add(out, (struct str){text.p + i, n});
        else if (c <= 0xffff)
            strbuf_addf(out, "\\u%04X", (unsigned)c);
        else
            strbuf_addf(out, "\\U%08X", (unsigned)c);
        i += n ? n : 1;
    }
    strbuf_addc(out, '"');
}

void yaml_pair(struct strbuf *out, size_t indent, const char *key, struct str value)
{
    strbuf_addf(out, "%*s%s: ", (int)indent, "", key);
    yaml_scalar(out, value);
    strbuf_addc(out, '\n');
}

size_t yaml_open(struct strbuf *out, const char *path)
{
    size_t indent = 0;
    while (*path) {
        size_t n = strcspn(path, ".");
        strbuf_addf(out, "%*s%.*s:\n", (int)indent, "", (int)n, path);
        path += n + (path[n] == '.');
        indent += 2;
    }
    return indent;
}

void yaml_path(struct strbuf *out, const char *path, const char *value)
{
    yaml_open(out, path);
    out->n--; /* the value stands in the last key's line */
    strbuf_addf(out, " %s\n", value);
}

static void begin_comment(struct strbuf *out, size_t indent)
{
    strbuf_addf(out, "#%*s", (int)indent + 1, "");
}

void yaml_comment(struct strbuf *out, size_t indent, struct str text)
{
    size_t column = 0;
    bool kept = indent > 0 || str_starts(text, STR(" ")); /* a line that is one command */
    begin_comment(out, indent);
    for (size_t i = 0; i < text.n;) {
        uint32_t c;
        size_t n = text_code_point(text.p + i, text.n - i, &c);
        size_t word = 0;
        while (c == ' ' && i + 1 + word < text.n && text.p[i + 1 + word] != ' ')
            word++;
        if (n && (c == '\n' || (c == ' ' && !kept && column + word > COMMENT_COLUMNS))) {
            strbuf_addc(out, '\n');
            begin_comment(out, indent);
            column = 0;
            kept = indent > 0 || (c == '\n' && i + 1 < text.n && text.p[i + 1] == ' ');
        } else {
            strbuf_add(out, n && is_printable(c) ? (struct str){text.p + i, n} : STR("?"));
            column++;
        }
        i += n ? n : 1;
    }
    strbuf_addc(out, '\n');
}
