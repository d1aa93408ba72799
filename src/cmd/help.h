/* Help, man page and completions come from the same tables. All append to a buffer. */
#ifndef GPUTALLY_CMD_HELP_H
#define GPUTALLY_CMD_HELP_H

#include "cmd/options.h"
#include "util/str.h"

void help_program(struct strbuf *out, const char *program);
void help_command(struct strbuf *out, const char *program, const struct command_def *command);
void help_usage(struct strbuf *out, const char *program, const struct command_def *command);
void help_option_spelling(struct strbuf *out, const struct option_def *def); /* "-o, --output X" */
bool help_option_shown(const struct command_def *command, int option);

/* Print on standard output and release; the exit status. */
int print_text(struct strbuf *text);

#endif
