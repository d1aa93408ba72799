/* Standard output and standard error: the only place that writes to them. */
#ifndef GPUTALLY_CMD_OUTPUT_H
#define GPUTALLY_CMD_OUTPUT_H

#include "util/error.h"
#include "util/str.h"

/* Write a text to standard output. A reader that has gone away ends the program as SIGPIPE would;
 * anything else is ERR_IO. */
enum err output_write(struct str text, struct error *err);
/* What a full disk would otherwise say too late. */
enum err output_finish(struct error *err);

bool output_is_terminal(void);
size_t output_columns(void); /* of the terminal; 0 where it is none */
bool output_colour(void);    /* a terminal, and NO_COLOR is not set */

/* A paragraph wrapped at 80 columns, each line after `indent` blanks; "\n\n" parts paragraphs. */
void output_wrapped(struct strbuf *out, const char *text, size_t indent);

#endif
