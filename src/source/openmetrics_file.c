/* Files of telemetry: unpack (pump, a thread ahead), decode (wire/promtext or wire/query_json), cut
 * to the time that was asked for, hand on.
 *
 * The decoder gives samples in runs of one series, by numbers that it got from us: a number is a
 * place in `heads`, where the intake's id stands and which of the two ranges is the series'.
 *
 * A survey that is asked "since when?" (a window without bounds) reads everything once, since
 * nothing else tells; standard input is then kept in an unlinked temporary file. */
#include "source/openmetrics_file.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "source/delivery.h"
#include "source/pump.h"
#include "wire/promtext.h"
#include "wire/query_json.h"

#define BAD_LINES_NAMED 5
#define SNIFF_BYTES ((size_t)512)
#define REPORT_EVERY_MS 100
#define UNBOUNDED_MS                                                                               \
    ((time_ms)1 << 50) /* a window of 35,000 years: tell the times that there are */

struct file {
    char *path;
    FILE *spool;   /* standard input, kept; NULL: not (yet) */
    bool consumed; /* standard input was read and not kept */
    bool noted;    /* its notes were given: a file may be read for several slices */
};

struct openmetrics {
    struct source source;
    struct file *files;
    size_t n;
    time_ms default_stamp; /* 0: none */
    bool surveyed;         /* extent and samples are known */
    struct span extent;    /* first and last stamp */
    uint64_t samples;
};

struct head {
    series_id id;
    bool kube;
};

/* One pass over the files: a fetch (intake) or a survey (no intake). */
struct pass {
    struct openmetrics *source;
    struct file *file;
    struct intake *intake;
    struct fetch fetch;
    struct progress *progress;
    time_ms reported;
    struct tally tally;
    struct delivery *delivery; /* for JSON */
    struct head *heads;
    size_t heads_n, heads_room;
    struct strbuf bad; /* of the file: "17 no value, 18 …" */
    uint64_t bad_named;
    time_ms first, last;              /* of all wanted samples, cut or not */
    uint64_t found, unstamped, lines; /* wanted samples; of them without a stamp; lines read */
};

static bool is_kube(struct str name)
{
    return str_starts(name, STR("kube_"));
}

static void pass_stamp(struct pass *pass, time_ms t)
{
    if (t < pass->first)
        pass->first = t;
    if (t > pass->last)
        pass->last = t;
}

/* Text */

static uint32_t text_series(void *context, const struct label *labels, size_t n)
{
    struct pass *pass = context;
    struct str name = labels_get(labels, n, STR("__name__"));
    struct head head = {.kube = is_kube(name)};
    if (pass->intake) {
        head.id = intake_series(pass->intake, labels, n);
        if (head.id == SERIES_UNWANTED)
            return PROMTEXT_SKIP;
        pass->tally.series++;
    } else if (!intake_wants_metric(name)) {
        return PROMTEXT_SKIP;
    }
    mem_push(pass->heads, pass->heads_n, pass->heads_room, head);
    return (uint32_t)(pass->heads_n - 1);
}

/* Samples [from, to) are of one series. */
static void text_run(struct pass *pass, struct head head, const time_ms *t, const double *v,
                     size_t n)
{
    const struct span *span = head.kube ? &pass->fetch.kube : &pass->fetch.gpu;
    time_ms kept_t[PROMTEXT_BATCH];
    double kept_v[PROMTEXT_BATCH];
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        if (t[i] == PROMTEXT_NO_TIME) {
            pass->unstamped++;
            continue;
        }
        pass_stamp(pass, t[i]);
        kept_t[kept] = t[i];
        kept_v[kept] = v[i];
        kept += t[i] >= span->from && t[i] <= span->to;
    }
    pass->found += n;
    if (kept && pass->intake)
        intake_append(pass->intake, head.id, kept_t, kept_v, kept);
    pass->tally.samples += kept;
}

static void text_samples(void *context, const uint32_t *id, const time_ms *t, const double *v,
                         size_t n)
{
    struct pass *pass = context;
    for (size_t from = 0, to; from < n; from = to) {
        for (to = from + 1; to < n && id[to] == id[from];)
            to++;
        text_run(pass, pass->heads[id[from]], t + from, v + from, to - from);
    }
}

static void text_bad_line(void *context, uint64_t line, struct str begins, const char *reason)
{
    struct pass *pass = context;
    (void)begins;
    if (pass->bad_named++ < BAD_LINES_NAMED)
        strbuf_addf(&pass->bad, "%s line %" PRIu64 " (%s)", pass->bad.n ? "," : ":", line, reason);
}

static void text_notes(struct pass *pass, const struct promtext_stats *stats)
{
    struct str subject = str_of(pass->file->path);
    if (!pass->intake || pass->file->noted)
        return;
    if (stats->bad_lines) {
        if (stats->bad_lines > BAD_LINES_NAMED)
            strbuf_addf(&pass->bad, ", …");
        struct strbuf text = {0};
        strbuf_addf(&text, "bad lines%.*s", STR_ARG(strbuf_str(&pass->bad)));
        intake_note(pass->intake, NOTE_REJECTED, subject, (int64_t)stats->bad_lines,
                    strbuf_str(&text));
        strbuf_release(&text);
    }
    if (pass->unstamped)
        intake_note(pass->intake, NOTE_REJECTED, subject, (int64_t)pass->unstamped,
                    STR("samples without a time stamp"));
    if (stats->duplicates)
        intake_note(pass->intake, NOTE_INFO, subject, (int64_t)stats->duplicates,
                    STR("samples that stood there twice"));
}

static enum err pass_report(struct pass *pass, double done, struct error *err)
{
    struct progress *progress = pass->progress;
    if (!progress)
        return ERR_OK;
    if (progress_stopped(progress->stop))
        return error_set(err, ERR_STOPPED, "stopped while reading %s", pass->file->path);
    time_ms now = clock_monotonic();
    if (!progress->report || now - pass->reported < REPORT_EVERY_MS)
        return ERR_OK;
    pass->reported = now;
    struct progress told = *progress;
    char what[300];
    snprintf(what, sizeof what, "reading %s", pass->file->path);
    told.what = what;
    told.series = pass->tally.series;
    told.samples = pass->tally.samples;
    told.bytes = pass->tally.bytes;
    told.done = done;
    progress->report(progress->context, &told);
    return ERR_OK;
}

/* How much of all files is read, where that can be known. */
static double pass_done(const struct pass *pass, const struct pump *pump)
{
    uint64_t size = pump_total_bytes(pump);
    if (size == 0)
        return (double)NAN;
    double part = (double)pump_read_bytes(pump) / (double)size;
    return ((double)(pass->file - pass->source->files) + part) / (double)pass->source->n;
}

/* The bytes of one file, block after block, to `feed`; the first was read already. */
typedef enum err (*feed_fn)(struct pass *pass, void *decoder, struct str bytes, struct error *err);

static enum err feed_all(struct pass *pass, struct pump *pump, struct str block, feed_fn feed,
                         void *decoder, struct error *err)
{
    enum err e = ERR_OK;
    while (e == ERR_OK && block.n) {
        pass->tally.bytes += block.n;
        e = feed(pass, decoder, block, err);
        if (e == ERR_OK)
            e = pass_report(pass, pass_done(pass, pump), err);
        if (e == ERR_OK)
            e = pump_next(pump, &block, err);
    }
    return e;
}

static enum err feed_text(struct pass *pass, void *decoder, struct str bytes, struct error *err)
{
    (void)pass, (void)err;
    promtext_feed(decoder, bytes);
    return ERR_OK;
}

static enum err read_text(struct pass *pass, struct pump *pump, struct str block, struct error *err)
{
    struct promtext_sink sink = {
        .context = pass, .series = text_series, .samples = text_samples, .bad_line = text_bad_line};
    time_ms stamp = pass->source->default_stamp;
    struct promtext *text = promtext_new(PROMTEXT_AUTO, &sink);
    pass->heads_n = 0;
    promtext_begin(text, stamp ? stamp : PROMTEXT_NO_TIME);
    enum err e = feed_all(pass, pump, block, feed_text, text, err);
    promtext_finish(text);
    const struct promtext_stats *stats = promtext_stats(text);
    pass->lines += stats->lines;
    text_notes(pass, stats);
    promtext_free(text);
    return e;
}

/* JSON */

static bool json_series(void *context, const struct label *labels, size_t n)
{
    struct pass *pass = context;
    struct str name = labels_get(labels, n, STR("__name__"));
    if (!pass->intake)
        return intake_wants_metric(name);
    const struct span *span = is_kube(name) ? &pass->fetch.kube : &pass->fetch.gpu;
    delivery_range(pass->delivery, span->from, span->to);
    return delivery_series(pass->delivery, labels, n);
}

static void json_samples(void *context, const time_ms *t, const double *v, size_t n)
{
    struct pass *pass = context;
    for (size_t i = 0; i < n; i++)
        pass_stamp(pass, t[i]);
    pass->found += n;
    if (pass->intake)
        delivery_samples(pass->delivery, t, v, n);
}

static enum err feed_json(struct pass *pass, void *decoder, struct str bytes, struct error *err)
{
    (void)pass;
    return query_json_feed(decoder, bytes, err);
}

static enum err read_json(struct pass *pass, struct pump *pump, struct str block, struct error *err)
{
    struct query_json_sink sink = {.context = pass, .series = json_series, .samples = json_samples};
    struct query_json *json = query_json_new(&sink);
    enum err e = feed_all(pass, pump, block, feed_json, json, err);
    if (e == ERR_OK)
        e = query_json_finish(json, err);
    if (pass->delivery)
        delivery_flush(pass->delivery);
    const struct query_json_answer *answer = query_json_answer(json);
    if (e == ERR_OK && answer->error.n)
        e = error_set(err, ERR_PROTOCOL, "it is an answer that says: %.*s", STR_ARG(answer->error));
    for (size_t i = 0; e == ERR_OK && pass->intake && i < answer->warnings_n; i++)
        intake_note(pass->intake, NOTE_PARTIAL, str_of(pass->file->path), 1, answer->warnings[i]);
    query_json_free(json);
    if (e != ERR_OK)
        error_prefix(err, "%s", pass->file->path);
    return e;
}

/* JSON, and not a line with a quoted name ({"a metric",label="x"} 1)? After the first string of an
 * object comes a colon. */
static bool is_json(struct str block)
{
    size_t end = block.n < SNIFF_BYTES ? block.n : SNIFF_BYTES, i = 0;
    while (i < end && strchr(" \t\r\n", block.p[i]))
        i++;
    if (i == end || block.p[i] != '{')
        return false;
    for (i++; i < end && strchr(" \t\r\n", block.p[i]);)
        i++;
    if (i == end || block.p[i] != '"')
        return i < end && block.p[i] == '}';
    for (i++; i < end && block.p[i] != '"'; i++)
        i += block.p[i] == '\\';
    for (i++; i < end && strchr(" \t\r\n", block.p[i]);)
        i++;
    return i < end && block.p[i] == ':';
}

/* Files */

/* Copy standard input into a file without a name. */
static enum err spool_input(struct file *file, struct error *err)
{
    struct input *input = NULL;
    char *block = mem_alloc(PUMP_BLOCK_BYTES);
    size_t n = 0;
    enum err e = input_open(file->path, &input, err);
    FILE *spool = tmpfile();
    if (e == ERR_OK && !spool)
        e = error_set(err, ERR_IO, "no temporary file for standard input: %s", strerror(errno));
    do {
        if (e == ERR_OK)
            e = input_read(input, block, PUMP_BLOCK_BYTES, &n, err);
        if (e == ERR_OK && fwrite(block, 1, n, spool) != n)
            e = error_set(err, ERR_IO, "keeping standard input in a temporary file: %s",
                          strerror(errno));
    } while (e == ERR_OK && n);
    if (e == ERR_OK && fflush(spool) != 0)
        e = error_set(err, ERR_IO, "keeping standard input in a temporary file: %s",
                      strerror(errno));
    input_close(input);
    free(block);
    if (e == ERR_OK)
        file->spool = spool;
    else if (spool)
        fclose(spool);
    return e;
}

static enum err open_file(struct file *file, bool keep, struct input **ret, struct error *err)
{
    bool standard = strcmp(file->path, "-") == 0;
    enum err e = ERR_OK;
    if (standard && !file->spool && file->consumed)
        return error_set(err, ERR_USAGE,
                         "standard input can be read only once: write it to a file first");
    if (standard && !file->spool && keep)
        e = spool_input(file, err);
    if (e != ERR_OK)
        return e;
    if (!file->spool) {
        file->consumed = standard;
        return input_open(file->path, ret, err);
    }
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fileno(file->spool));
    return input_open(path, ret, err);
}

static enum err read_file(struct pass *pass, struct error *err)
{
    struct input *input = NULL;
    struct pump *pump = NULL;
    struct str block;
    strbuf_clear(&pass->bad);
    pass->bad_named = 0;
    uint64_t unstamped = pass->unstamped;
    pass->unstamped = 0;
    enum err e = open_file(pass->file, !pass->intake, &input, err);
    if (e == ERR_OK)
        e = pump_new(input, &pump, err);
    if (e == ERR_OK)
        e = pump_next(pump, &block, err);
    if (e == ERR_OK)
        e = is_json(block) ? read_json(pass, pump, block, err) : read_text(pass, pump, block, err);
    pump_free(pump);
    pass->file->noted |= pass->intake != NULL;
    pass->unstamped += unstamped;
    return e;
}

/* Nothing that can be used in any file: say why. */
static enum err found_nothing(const struct pass *pass, struct error *err)
{
    const char *path = pass->source->files[0].path,
               *more = pass->source->n > 1 ? " (and more)" : "";
    if (pass->found && pass->found == pass->unstamped)
        return error_set(err, ERR_NOT_FOUND,
                         "%s%s: none of its %" PRIu64 " samples has a time stamp: a page of an "
                         "exporter says what is now, a history needs stamps",
                         path, more, pass->found);
    return error_set(err, ERR_NOT_FOUND,
                     "%s%s has no metrics of GPUs (DCGM_FI_DEV_GPU_UTIL and the like) in its "
                     "%" PRIu64 " lines",
                     path, more, pass->lines);
}

static enum err pass_files(struct pass *pass, struct error *err)
{
    struct openmetrics *source = pass->source;
    enum err e = ERR_OK;
    pass->first = TIME_MAX;
    pass->last = TIME_MIN;
    if (pass->intake)
        pass->delivery = delivery_new(pass->intake, &pass->tally);
    for (size_t i = 0; e == ERR_OK && i < source->n; i++) {
        pass->file = &source->files[i];
        e = read_file(pass, err);
    }
    if (e == ERR_OK && pass->found == pass->unstamped)
        e = found_nothing(pass, err);
    if (e == ERR_OK) {
        source->surveyed = true;
        source->extent = (struct span){pass->first, pass->last};
        source->samples = pass->found;
    }
    delivery_free(pass->delivery);
    strbuf_release(&pass->bad);
    free(pass->heads);
    return e;
}

static enum err openmetrics_survey(struct source *base, struct span window, struct span *ret_extent,
                                   double *ret_samples_an_hour, struct progress *progress,
                                   struct error *err)
{
    struct openmetrics *source = (struct openmetrics *)base;
    if (!source->surveyed && window.to - window.from >= UNBOUNDED_MS) {
        struct pass pass = {.source = source,
                            .fetch = {.kube = {TIME_MIN, TIME_MAX}, .gpu = {TIME_MIN, TIME_MAX}},
                            .progress = progress};
        enum err e = pass_files(&pass, err);
        if (e != ERR_OK)
            return e;
    }
    /* What a sample describes ended at its stamp. */
    *ret_extent =
        source->surveyed ? (struct span){source->extent.from - 1, source->extent.to} : window;
    *ret_samples_an_hour = 0;
    return ERR_OK;
}

static enum err openmetrics_fetch(struct source *base, const struct fetch *fetch,
                                  struct intake *intake, struct progress *progress,
                                  struct error *err)
{
    /* Where there are no records it is samples that tell that a node was up: they come as widely.
     * In a run of one slice all of the file comes: it costs nothing, and tells what was before. */
    struct span all = {TIME_MIN, TIME_MAX}, wide = fetch->whole ? all : fetch->kube;
    struct pass pass = {.source = (struct openmetrics *)base,
                        .intake = intake,
                        .fetch = {.kube = wide, .gpu = wide},
                        .progress = progress};
    return pass_files(&pass, err);
}

static void openmetrics_free(struct source *base)
{
    struct openmetrics *source = (struct openmetrics *)base;
    for (size_t i = 0; i < source->n; i++) {
        free(source->files[i].path);
        if (source->files[i].spool)
            fclose(source->files[i].spool);
    }
    free(source->files);
    free(source->source.id);
    free(source);
}

static const struct source_ops openmetrics_ops = {.kind = "openmetrics",
                                                  .survey = openmetrics_survey,
                                                  .fetch = openmetrics_fetch,
                                                  .free = openmetrics_free};

enum err openmetrics_source_new(const char *const *paths, size_t n, time_ms default_stamp,
                                struct source **ret, struct error *err)
{
    struct strbuf id = {0};
    size_t standard = 0;
    for (size_t i = 0; i < n; i++)
        standard += strcmp(paths[i], "-") == 0;
    if (n == 0 || standard > 1)
        return error_set(err, ERR_USAGE,
                         n ? "standard input is given %zu times" : "no file is given (%zu)",
                         standard);
    struct openmetrics *source = mem_zalloc(1, sizeof *source);
    source->source.ops = &openmetrics_ops;
    source->files = mem_zalloc(n, sizeof *source->files);
    source->n = n;
    source->default_stamp = default_stamp;
    for (size_t i = 0; i < n; i++) {
        source->files[i].path = str_dup(str_of(paths[i]));
        strbuf_addf(&id, "%s%s", i ? " " : "", paths[i]);
    }
    source->source.id = id.text;
    *ret = &source->source;
    return ERR_OK;
}
