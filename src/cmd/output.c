#include "cmd/output.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define HELP_COLUMNS 80

/* SIGPIPE is ignored while we run, since a server that hangs up must not kill us; a reader of our
 * output that hangs up ends us as it ends every filter. */
static enum err write_failed(struct error *err)
{
    if (errno == EPIPE) {
        signal(SIGPIPE, SIG_DFL);
        raise(SIGPIPE);
    }
    return error_set(err, ERR_IO, "writing to standard output: %s", strerror(errno));
}

enum err output_write(struct str text, struct error *err)
{
    if (text.n && fwrite(text.p, 1, text.n, stdout) != text.n)
        return write_failed(err);
    return ERR_OK;
}

enum err output_finish(struct error *err)
{
    if (fflush(stdout) != 0)
        return write_failed(err);
    return ERR_OK;
}

bool output_is_terminal(void)
{
    return isatty(STDOUT_FILENO);
}

size_t output_columns(void)
{
    struct winsize size;
    if (!output_is_terminal() || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0)
        return 0;
    return size.ws_col;
}

bool output_colour(void)
{
    const char *no = getenv("NO_COLOR"), *term = getenv("TERM");
    return output_is_terminal() && !(no && *no) && !(term && strcmp(term, "dumb") == 0);
}

void output_wrapped(struct strbuf *out, const char *text, size_t indent)
{
    size_t at = 0;
    while (*text) {
        if (*text == '\n') {
            strbuf_add(out, str_of(text[1] == '\n' ? "\n\n" : "\n"));
            text += text[1] == '\n' ? 2 : 1;
            at = 0;
            continue;
        }
        size_t n = strcspn(text, " \n");
        if (at && at + 1 + n > HELP_COLUMNS) {
            strbuf_addc(out, '\n');
            at = 0;
        }
        if (at == 0) {
            for (size_t i = 0; i < indent; i++)
                strbuf_addc(out, ' ');
            at = indent;
        } else {
            strbuf_addc(out, ' ');
            at++;
        }
        strbuf_add(out, (struct str){text, n});
        at += n;
        text += n;
        while (*text == ' ')
            text++;
    }
    strbuf_addc(out, '\n');
}
