#include "cmd/progress.h"

#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "report/text.h"

#define PLAIN_EVERY_MS 5000 /* between two lines where they are not rewritten */

static volatile sig_atomic_t caught;
static volatile int stop;

static void on_signal(int signal_number)
{
    if (stop) { /* asked twice: do not wait */
        signal(signal_number, SIG_DFL);
        raise(signal_number);
    }
    caught = signal_number;
    __atomic_store_n(&stop, 1, __ATOMIC_RELAXED); /* other threads look at it */
}

void signals_catch(void)
{
    struct sigaction action = {.sa_handler = on_signal};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    signal(SIGPIPE, SIG_IGN);
}

int signals_caught(void)
{
    return caught;
}

void text_scaled(struct strbuf *out, double count, const char *unit)
{
    static const char *const scales[] = {"", "k", "M", "G", "T"};
    int scale = 0;
    while (count >= 999.5 && scale < 4) {
        count /= 1000;
        scale++;
    }
    strbuf_addf(out, "%.*f %s%s", scale && count < 99.95 ? 1 : 0, count, scales[scale], unit);
    if (out->n && out->text[out->n - 1] == ' ')
        out->text[--out->n] = 0;
}

void text_duration(struct strbuf *out, double seconds)
{
    if (seconds < 90)
        strbuf_addf(out, "%.0f s", seconds);
    else if (seconds < 90 * 60)
        strbuf_addf(out, "%.0f min", seconds / 60);
    else
        strbuf_addf(out, "%.1f h", seconds / 3600);
}

static void describe(const struct meter *meter, const struct progress *progress, struct strbuf *out)
{
    text_clean(out, str_of(progress->what ? progress->what : "working"));
    if (progress->series) {
        strbuf_add(out, STR(" · "));
        text_scaled(out, (double)progress->series, "");
        strbuf_add(out, STR(" series"));
    }
    if (progress->samples) {
        strbuf_add(out, STR(" · "));
        text_scaled(out, (double)progress->samples, "");
        strbuf_add(out, STR(" samples"));
    }
    if (progress->bytes) {
        strbuf_add(out, STR(" · "));
        text_scaled(out, (double)progress->bytes, "B");
    }
    if (isfinite(progress->done) && progress->done > 0 && progress->done <= 1) {
        double elapsed = (double)(clock_monotonic() - meter->began) / 1000;
        strbuf_addf(out, " · %.0f %% · ", progress->done * 100);
        text_duration(out, elapsed * (1 - progress->done) / progress->done);
        strbuf_add(out, STR(" left"));
    }
}

static size_t stderr_columns(void)
{
    struct winsize size;
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col < 20)
        return 80;
    return size.ws_col;
}

static void on_progress(void *context, const struct progress *progress)
{
    struct meter *meter = context;
    time_ms now = clock_monotonic();
    if (meter->quiet || (!meter->terminal && !meter->verbose))
        return;
    if (!meter->terminal && now - meter->last < PLAIN_EVERY_MS)
        return;
    meter->last = now;
    struct strbuf line = {0};
    describe(meter, progress, &line);
    if (meter->terminal) {
        struct strbuf cut = {0};
        text_shorten(&cut, strbuf_str(&line), stderr_columns() - 1);
        fprintf(stderr, "\r\x1b[K%.*s", STR_ARG(strbuf_str(&cut)));
        fflush(stderr);
        meter->shown = true;
        strbuf_release(&cut);
    } else
        fprintf(stderr, "gputally: %.*s\n", STR_ARG(strbuf_str(&line)));
    strbuf_release(&line);
}

void meter_start(struct meter *meter, bool quiet, bool verbose)
{
    *meter = (struct meter){.terminal = isatty(STDERR_FILENO),
                            .verbose = verbose,
                            .quiet = quiet,
                            .began = clock_monotonic(),
                            .last = clock_monotonic()};
}

struct progress meter_progress(struct meter *meter)
{
    return (struct progress){.report = on_progress, .context = meter, .done = NAN, .stop = &stop};
}

void meter_clear(struct meter *meter)
{
    if (meter->shown)
        fputs("\r\x1b[K", stderr);
    meter->shown = false;
}

void meter_say(struct meter *meter, const char *format, ...)
{
    if (meter->quiet || !meter->verbose)
        return;
    meter_clear(meter);
    va_list args;
    va_start(args, format);
    fputs("gputally: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
}
