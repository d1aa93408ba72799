#include "util/error.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum err error_set(struct error *err, enum err code, const char *format, ...)
{
    if (err) {
        va_list args;
        va_start(args, format);
        vsnprintf(err->text, sizeof err->text, format, args);
        va_end(args);
        err->code = code;
    }
    return code;
}

enum err error_prefix(struct error *err, const char *format, ...)
{
    if (!err)
        return ERR_OK;
    char old[ERROR_TEXT_MAX];
    memcpy(old, err->text, sizeof old);
    va_list args;
    va_start(args, format);
    int n = vsnprintf(err->text, sizeof err->text, format, args);
    va_end(args);
    if (n >= 0 && (size_t)n < sizeof err->text)
        snprintf(err->text + n, sizeof err->text - (size_t)n, ": %.*s",
                 (int)(sizeof err->text - (size_t)n), old);
    return err->code;
}

void invariant_failed(const char *what, const char *file, int line)
{
    fprintf(stderr, "gputally: bug: %s does not hold (%s:%d)\n", what, file, line);
    abort();
}
