/* The service's log: a line an event on standard error, as logfmt or JSON, for people and machines.
 *
 *     ts=2026-11-30T14:02:07.120Z level=warn msg="source does not answer" cluster=prod wait_s=8
 *
 * A line is written with one write(2), so that lines of several threads do not mix. Texts are
 * escaped and cut at LOG_TEXT_MAX bytes: what comes from the world cannot forge a line. Secrets do
 * not reach a log: sources name themselves without them (source/source.h). Any thread. */
#ifndef GPUTALLY_SERVE_LOG_H
#define GPUTALLY_SERVE_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "util/error.h"
#include "util/str.h"

#define LOG_TEXT_MAX 1024

/* X(ID, "word"): in order of weight */
#define LOG_LEVEL_TABLE(X)                                                                         \
    X(ERROR, "error")                                                                              \
    X(WARN, "warn")                                                                                \
    X(INFO, "info")                                                                                \
    X(DEBUG, "debug")
enum log_level {
#define X(id, word) LOG_##id,
    LOG_LEVEL_TABLE(X)
#undef X
        LOG_LEVELS
};
enum log_format { LOG_LOGFMT, LOG_JSON };

struct log {
    int fd; /* stays while there are threads that log */
    /* These change at any time, atomically: other threads log meanwhile. */
    enum log_format format;
    enum log_level level; /* lines that weigh less are left out */
};
/* False: no such word. */
bool log_level_of(struct str word, enum log_level *ret);
bool log_format_of(struct str word, enum log_format *ret);

struct log_field {
    const char *key;
    enum { LOG_FIELD_TEXT, LOG_FIELD_NUMBER } kind;
    struct str text;
    int64_t number;
};
static inline struct log_field log_text(const char *key, struct str text)
{
    return (struct log_field){key, LOG_FIELD_TEXT, text, 0};
}
static inline struct log_field log_number(const char *key, int64_t number)
{
    return (struct log_field){key, LOG_FIELD_NUMBER, STR_NONE, number};
}

/* What could not be written is lost: a log must not stop the service. */
void log_fields(struct log *log, enum log_level level, const char *message,
                const struct log_field *fields, size_t n);
/* log_line(log, LOG_INFO, "booked", log_text("cluster", name), log_number("rows", n)) */
#define log_line(log, level, message, ...)                                                         \
    log_fields(log, level, message, (const struct log_field[]){__VA_ARGS__},                       \
               sizeof((const struct log_field[]){__VA_ARGS__}) / sizeof(struct log_field))
void log_say(struct log *log, enum log_level level, const char *message); /* without fields */

#endif
