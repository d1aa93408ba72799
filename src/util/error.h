/* Errors that can be printed, and the line between our bugs and the world's.
 *
 * A function that can fail returns `enum err`, ERR_OK where it did not, and takes as its last
 * parameter a `struct error *` that it fills with one printable sentence (no newline). Callers add
 * context in front with error_prefix(). Outputs are untouched on failure. `err` may be NULL.
 *
 * invariant() guards what only a bug of ours can break and stays on in release builds; input,
 * network and disk never reach it. */
#ifndef GPUTALLY_UTIL_ERROR_H
#define GPUTALLY_UTIL_ERROR_H

#include <stdio.h>

enum err {
    ERR_OK = 0,
    ERR_IO,          /* a file or a pipe */
    ERR_PARSE,       /* bytes that are not what they should be */
    ERR_LIMIT,       /* a cap of ours was reached */
    ERR_NETWORK,     /* no connection, a cut answer, a time-out */
    ERR_AUTH,        /* refused login */
    ERR_PROTOCOL,    /* an answer that is no answer to what was asked */
    ERR_UNSUPPORTED, /* the peer cannot do this (try the next way) */
    ERR_CONFIG,      /* a configuration, price or owner file */
    ERR_USAGE,       /* the command line */
    ERR_STORE,       /* the database */
    ERR_LOCKED,      /* another writer has the database */
    ERR_NOT_FOUND,
    ERR_STOPPED, /* a signal asked to stop */
};

#define ERROR_TEXT_MAX 1024

struct error {
    enum err code;
    char text[ERROR_TEXT_MAX];
};

/* Set code and text; returns code, so that `return error_set(err, …)` reads well. */
enum err error_set(struct error *err, enum err code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Put context in front of the text that is there: "FORMAT: OLD TEXT". Returns the code. */
enum err error_prefix(struct error *err, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

_Noreturn void invariant_failed(const char *what, const char *file, int line);
#define invariant(x) ((x) ? (void)0 : invariant_failed(#x, __FILE__, __LINE__))

#endif
