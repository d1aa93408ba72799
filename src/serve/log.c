/* Lines are put together first and written at once. logfmt quotes what needs it as JSON does, so
 * that one escape serves both. */
#include "serve/log.h"

#include <errno.h>
#include <inttypes.h>
#include <unistd.h>

#include "util/clock.h"

static const char *const level_words[LOG_LEVELS] = {
#define X(id, word) word,
    LOG_LEVEL_TABLE(X)
#undef X
};

bool log_level_of(struct str word, enum log_level *ret)
{
    for (int i = 0; i < LOG_LEVELS; i++)
        if (str_eq(word, str_of(level_words[i]))) {
            *ret = (enum log_level)i;
            return true;
        }
    return false;
}

bool log_format_of(struct str word, enum log_format *ret)
{
    bool json = str_eq(word, STR("json"));
    if (!json && !str_eq(word, STR("logfmt")))
        return false;
    *ret = json ? LOG_JSON : LOG_LOGFMT;
    return true;
}

static void add_quoted(struct strbuf *out, struct str text)
{
    strbuf_addc(out, '"');
    size_t n = text.n < LOG_TEXT_MAX ? text.n : LOG_TEXT_MAX;
    while (n < text.n && n && ((unsigned char)text.p[n] & 0xc0) == 0x80)
        n--; /* not inside of a character */
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)text.p[i];
        if (c == '"' || c == '\\')
            strbuf_addf(out, "\\%c", c);
        else if (c == '\n')
            strbuf_add(out, STR("\\n"));
        else if (c < 0x20 || c == 0x7f)
            strbuf_addf(out, "\\u%04x", c);
        else
            strbuf_addc(out, (char)c);
    }
    if (n < text.n)
        strbuf_add(out, STR("…"));
    strbuf_addc(out, '"');
}

static bool is_plain(struct str text)
{
    for (size_t i = 0; i < text.n; i++) {
        unsigned char c = (unsigned char)text.p[i];
        if (c <= ' ' || c == '"' || c == '=' || c == '\\' || c >= 0x7f)
            return false;
    }
    return text.n > 0 && text.n <= LOG_TEXT_MAX;
}

static void add_key(struct strbuf *out, enum log_format format, const char *key)
{
    bool first = out->n == 0;
    if (format == LOG_JSON)
        strbuf_addf(out, "%s\"%s\":", first ? "{" : ",", key);
    else
        strbuf_addf(out, "%s%s=", first ? "" : " ", key);
}

static void add_text(struct strbuf *out, enum log_format format, const char *key, struct str text)
{
    add_key(out, format, key);
    if (format == LOG_LOGFMT && is_plain(text))
        strbuf_add(out, text);
    else
        add_quoted(out, text);
}

static void write_line(int fd, struct str line)
{
    while (line.n) {
        ssize_t n = write(fd, line.p, line.n);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return;
        line.p += n;
        line.n -= (size_t)n;
    }
}

void log_fields(struct log *log, enum log_level level, const char *message,
                const struct log_field *fields, size_t n)
{
    if (level > __atomic_load_n(&log->level, __ATOMIC_RELAXED))
        return;
    enum log_format format = __atomic_load_n(&log->format, __ATOMIC_RELAXED);
    struct strbuf line = {0};
    char now[TIME_TEXT_MAX];
    add_text(&line, format, "ts", str_of(time_format(clock_now(), now)));
    add_text(&line, format, "level", str_of(level_words[level]));
    add_text(&line, format, "msg", str_of(message));
    for (size_t i = 0; i < n; i++) {
        if (fields[i].kind == LOG_FIELD_TEXT) {
            add_text(&line, format, fields[i].key, fields[i].text);
            continue;
        }
        add_key(&line, format, fields[i].key);
        strbuf_addf(&line, "%" PRId64, fields[i].number);
    }
    strbuf_add(&line, format == LOG_JSON ? STR("}\n") : STR("\n"));
    write_line(log->fd, strbuf_str(&line));
    strbuf_release(&line);
}

void log_say(struct log *log, enum log_level level, const char *message)
{
    log_fields(log, level, message, NULL, 0);
}
