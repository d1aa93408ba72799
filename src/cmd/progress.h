/* What a person sees on standard error while a run goes on: one line that is rewritten where that
 * is a terminal, plain lines now and then with -v, nothing otherwise. One thread. */
#ifndef GPUTALLY_CMD_PROGRESS_H
#define GPUTALLY_CMD_PROGRESS_H

#include "source/source.h"

struct meter {
    bool terminal, verbose, quiet;
    bool shown; /* a line stands on the terminal */
    time_ms began, last;
};

/* Catch SIGINT and SIGTERM: the first asks to stop, a second one ends the program at once. */
void signals_catch(void);
/* The signal that came, 0: none. */
int signals_caught(void);

void meter_start(struct meter *meter, bool quiet, bool verbose);
/* The progress that a run is given. */
struct progress meter_progress(struct meter *meter);
/* Take the line away. */
void meter_clear(struct meter *meter);
/* A line of its own: with -v only. */
void meter_say(struct meter *meter, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* "12 s left", "3 min left", "2 h left". */
void text_duration(struct strbuf *out, double seconds);
/* "1.2 M", "96 MB" of a count. */
void text_scaled(struct strbuf *out, double count, const char *unit);

#endif
