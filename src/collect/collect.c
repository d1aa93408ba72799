/* The run: survey, cut the hours into slices, and for each read, book, commit (collect.h).
 *
 * Slices are read and booked one after the other: booking uses all cores, and reading keeps the
 * server's and ours busy, so that overlapping the two gains little and costs a second slice's
 * memory. */
#include "collect/collect.h"

#include <math.h>
#include <stdlib.h>

#include "collect/position.h"

/* A run over the hours of a window. */
struct collect {
    const struct collect_options *options;
    struct collect_report *report;
    struct store *store; /* while the run has it */
    struct strbuf id;    /* of the sources */
    struct strbuf place; /* where the store keeps the position */
    struct position position;
    time_ms closed;     /* hours that end up to here are closed */
    time_ms asked_from; /* the books are complete from here on once the run is through */
    struct span hours;  /* what is booked */
    time_ms slice_ms;
    bool resumes;        /* from the watermark, with its carry */
    bool at_once;        /* sources that are best read once: one slice, open hours and all */
    struct strbuf carry; /* the engine's, for the next slice; empty: look back instead */
    struct span slice;   /* the one in hand */
    size_t source;       /* that is being read */
    uint64_t series, samples, bytes; /* of slices and sources before */
    uint64_t source_bytes;           /* of the source in hand, as it told last */
    uint64_t carried;                /* samples that the carry brought into the slice's intake */
    struct error missing;            /* a survey found no metrics, where books exist already */
};

static bool stopped(const struct collect *run)
{
    return progress_stopped(run->options->progress.stop);
}

/* The store, for as long as the run needs it. */
static enum err take_store(struct collect *run, struct error *err)
{
    const struct collect_options *options = run->options;
    run->store = options->store;
    enum err e = ERR_OK;
    if (!run->store)
        e = options->lender->take(options->lender->context, options->names, &run->store, err);
    if (e == ERR_OK)
        store_use_book(run->store, options->book);
    return e;
}

static void give_store(struct collect *run)
{
    if (!run->options->store)
        run->options->lender->give(run->options->lender->context, run->store);
    run->store = NULL;
}

/* Progress */

static void told(void *context, const struct progress *of_source)
{
    struct collect *run = context;
    const struct progress *outer = &run->options->progress;
    run->source_bytes = of_source->bytes;
    if (!outer->report)
        return;
    struct progress now = *of_source;
    double sources = (double)run->options->sources_n;
    double whole = (double)(run->hours.to - run->hours.from);
    double before = (double)(run->slice.from - run->hours.from);
    double part = ((double)run->source + (isnan(of_source->done) ? 0 : of_source->done)) / sources;
    now.context = outer->context;
    now.report = outer->report;
    now.series = run->series + of_source->series;
    now.samples = run->samples + of_source->samples;
    now.bytes = run->bytes + of_source->bytes;
    now.done = whole > 0 && !isnan(of_source->done)
                   ? (before + part * (double)(run->slice.to - run->slice.from)) / whole
                   : (double)NAN;
    outer->report(outer->context, &now);
}

static struct progress progress_of(struct collect *run)
{
    return (struct progress){.report = told,
                             .context = run,
                             .what = "",
                             .done = (double)NAN,
                             .stop = run->options->progress.stop};
}

/* What to book */

/* Ask all sources; the hours before any has data are left out. *ret_rate: samples an hour. */
static enum err survey(struct collect *run, double *ret_rate, struct error *err)
{
    time_ms from = run->hours.to;
    *ret_rate = 0;
    for (size_t i = 0; i < run->options->sources_n; i++) {
        struct source *source = run->options->sources[i];
        struct progress progress = progress_of(run);
        struct span extent = run->hours;
        double rate = 0;
        run->source = i;
        enum err e = source->ops->survey(source, run->hours, &extent, &rate, &progress, err);
        if (e == ERR_NOT_FOUND && run->position.known) {
            /* A cluster may have no GPUs for a while: its books go on. */
            run->missing = (struct error){.code = e};
            error_set(&run->missing, e, "%s", err ? err->text : "");
            e = ERR_OK;
        }
        if (e != ERR_OK)
            return e;
        from = extent.from < from ? extent.from : from;
        *ret_rate += rate;
    }
    /* An hour of which the sources have only the end is booked where it never was, but does not
     * replace one that was booked whole. */
    bool booked = run->position.known && from >= run->position.begun;
    from = booked ? hour_ceil(from) : hour_floor(from);
    if (from > run->hours.from && from <= run->hours.to && !run->resumes)
        run->hours.from = from;
    return ERR_OK;
}

static time_ms slice_length(const struct collect *run, double rate)
{
    const struct collect_options *options = run->options;
    time_ms whole = run->hours.to - run->hours.from;
    if (options->slice_ms > 0)
        return hour_ceil(options->slice_ms);
    size_t budget = options->budget_bytes ? options->budget_bytes : COLLECT_BUDGET_BYTES;
    double hours = rate > 0 ? (double)budget / COLLECT_SAMPLE_BYTES / rate : INFINITY;
    struct span kube, gpu, none = {0, 0}; /* what is read to both sides counts too */
    engine_reach(options->engine.settings, none, &kube, &gpu);
    hours -= (double)(gpu.to - gpu.from) / (double)HOUR_MS;
    if (hours * (double)HOUR_MS >= (double)whole)
        return whole;
    return hours < 1 ? HOUR_MS : hour_floor((time_ms)(hours * (double)HOUR_MS));
}

static void resume(struct collect *run)
{
    run->resumes = true;
    run->hours.from = run->position.watermark;
    strbuf_add(&run->carry, strbuf_str(&run->position.carry));
}

/* Late samples: closed hours are open again. What the carry knew of the time before is looked back
 * for instead. */
static void reopen(struct collect *run)
{
    const struct collect_options *options = run->options;
    struct position *position = &run->position;
    if (!options->late || !position->known)
        return;
    time_ms from =
        options->late(options->late_context, strbuf_str(&position->mark), position->watermark);
    if (from >= position->watermark)
        return;
    from = hour_floor(from) > position->begun ? hour_floor(from) : position->begun;
    position->watermark = from;
    strbuf_clear(&position->carry);
}

/* From what hour on is there anything to do? False: nothing. */
static bool choose_hours(struct collect *run)
{
    const struct collect_options *options = run->options;
    const struct position *position = &run->position;
    reopen(run);
    run->hours = options->window;
    run->asked_from = options->window.from;
    if (options->rebook || !position->known)
        return run->hours.from < run->hours.to;
    if (options->window.from >= position->begun) {
        run->asked_from = position->begun;
        resume(run);
    } else if (run->hours.to < position->watermark) {
        run->hours.to = position->watermark; /* without a hole before the books */
    }
    return run->hours.from < run->hours.to;
}

/* The window begins before the books, but the sources' data does not. */
static void no_older_data(struct collect *run)
{
    if (run->options->rebook || !run->position.known || run->resumes ||
        run->hours.from < run->position.begun)
        return;
    resume(run);
}

/* A slice */

struct emitting {
    struct collect *run;
    enum err code;
    struct error err;
    uint64_t rows;
    bool partial;
};

static void emit(void *context, const struct row_batch *batch)
{
    struct emitting *emitting = context;
    emitting->rows += batch->rows_n;
    for (size_t i = 0; i < batch->notes_n; i++)
        emitting->partial |= batch->notes[i].kind == NOTE_PARTIAL;
    if (emitting->code == ERR_OK)
        emitting->code = store_append(emitting->run->store, batch, &emitting->err);
}

/* The carry of the slice before, if it is one that this engine can read. */
static bool restore(struct collect *run, struct intake *intake)
{
    return run->carry.n && intake_restore(intake, strbuf_str(&run->carry), NULL) == ERR_OK;
}

static enum err fetch_all(struct collect *run, struct intake *intake, bool restored,
                          struct error *err)
{
    const struct settings *settings = run->options->engine.settings;
    struct fetch fetch = {.hours = run->slice};
    engine_reach(settings, run->slice, &fetch.kube, &fetch.gpu);
    fetch.whole = run->at_once;
    if (!restored) {
        time_ms gpu = run->slice.from - COLLECT_LOOK_BACK_MS;
        time_ms kube = run->slice.from - settings->node_break_ms;
        fetch.gpu.from = gpu < fetch.gpu.from ? gpu : fetch.gpu.from;
        fetch.kube.from = kube < fetch.kube.from ? kube : fetch.kube.from;
    }
    for (run->source = 0; run->source < run->options->sources_n; run->source++) {
        struct source *source = run->options->sources[run->source];
        struct progress progress = progress_of(run);
        run->source_bytes = 0;
        enum err e = source->ops->fetch(source, &fetch, intake, &progress, err);
        run->bytes += run->source_bytes;
        if (e != ERR_OK)
            return e;
    }
    if (run->missing.code != ERR_OK)
        intake_note(intake, NOTE_PARTIAL, str_of(run->id.text), 1, str_of(run->missing.text));
    return stopped(run) ? error_set(err, ERR_STOPPED, "stopped") : ERR_OK;
}

/* The store's progress after a slice: it moves on with closed hours only, and not back. */
static void move_position(struct collect *run, struct str carry)
{
    struct position *position = &run->position;
    time_ms to = run->slice.to;
    if (!position->known) {
        position->known = true;
        position->begun = run->asked_from;
        position->watermark = run->slice.from;
    }
    if (to >= position->watermark && run->asked_from < position->begun)
        position->begun = run->asked_from;
    if (to <= run->closed && to > position->watermark) {
        position->watermark = to;
        strbuf_clear(&position->carry);
        strbuf_add(&position->carry, carry);
    }
    if (run->options->late) {
        strbuf_clear(&position->mark);
        strbuf_add(&position->mark, run->options->mark);
    }
    if (run->options->settings.n) {
        strbuf_clear(&position->settings);
        strbuf_add(&position->settings, run->options->settings);
    }
}

/* Would booking replace rows by nothing? */
static enum err is_loss(struct collect *run, const struct engine_stats *stats, bool *ret,
                        struct error *err)
{
    *ret = false;
    if (stats->samples > run->carried)
        return ERR_OK;
    return store_has_rows(run->store, run->slice, ret, err);
}

static enum err book(struct collect *run, struct intake *intake, struct strbuf *carry,
                     struct error *err)
{
    struct store *store = run->store;
    struct emitting emitting = {.run = run};
    struct engine_stats stats = {0};
    bool loss;
    intake_stats(intake, &stats);
    enum err e = is_loss(run, &stats, &loss, err);
    if (e == ERR_OK)
        e = store_begin(store, err);
    if (e != ERR_OK)
        return e;
    if (!loss)
        e = store_clear_hours(store, run->slice, err);
    struct engine_options options = run->options->engine;
    options.stop = run->options->progress.stop;
    if (e == ERR_OK && !loss)
        e = engine_book(intake, run->slice, &options, emit, &emitting, carry, err);
    if (e == ERR_OK && emitting.code != ERR_OK) {
        e = emitting.code;
        if (err)
            *err = emitting.err;
    }
    if (e == ERR_OK) {
        move_position(run, strbuf_str(carry));
        e = position_commit(store, strbuf_str(&run->place), &run->position, err);
    }
    if (e != ERR_OK) {
        store_rollback(store);
        return e;
    }
    run->series = stats.series > run->series ? stats.series : run->series;
    run->samples += stats.samples - run->carried;
    run->report->rows += emitting.rows;
    run->report->partial |= emitting.partial;
    return ERR_OK;
}

static enum err run_slice(struct collect *run, struct error *err)
{
    struct intake *intake = intake_new(run->options->engine.settings, run->options->names);
    intake_default_cluster(intake, run->options->cluster);
    struct strbuf carry = {0};
    struct engine_stats before = {0};
    bool restored = restore(run, intake);
    intake_stats(intake, &before);
    run->carried = before.samples;
    enum err e = fetch_all(run, intake, restored, err);
    if (e == ERR_OK)
        e = take_store(run, err);
    if (e == ERR_OK) {
        e = book(run, intake, &carry, err);
        give_store(run);
    }
    intake_free(intake);
    if (e != ERR_OK) {
        strbuf_release(&carry);
        return e;
    }
    strbuf_release(&run->carry);
    run->carry = carry;
    run->report->booked.from = run->hours.from;
    run->report->booked.to = run->slice.to;
    return ERR_OK;
}

/* Some hours are booked, and then a source failed: say so in the books, over what is missing. */
static void note_failure(struct collect *run, const struct error *err)
{
    struct note note = {.kind = NOTE_PARTIAL,
                        .subject = names_put(run->options->names, strbuf_str(&run->id)),
                        .text = names_put(run->options->names, str_of(err->text)),
                        .count = 1,
                        .from = run->slice.from,
                        .to = run->hours.to};
    struct row_batch batch = {.names = run->options->names,
                              .hours = {run->slice.from, run->hours.to},
                              .notes = &note,
                              .notes_n = 1};
    if (run->report->booked.from >= run->report->booked.to || take_store(run, NULL) != ERR_OK)
        return;
    if (store_begin(run->store, NULL) == ERR_OK) {
        if (store_append(run->store, &batch, NULL) != ERR_OK ||
            position_commit(run->store, strbuf_str(&run->place), &run->position, NULL) != ERR_OK)
            store_rollback(run->store);
        run->report->partial = true;
    }
    give_store(run);
}

static bool of_a_source(enum err code)
{
    return code != ERR_STOPPED && code != ERR_STORE && code != ERR_LOCKED;
}

static enum err run_slices(struct collect *run, struct error *err)
{
    for (time_ms from = run->hours.from; from < run->hours.to; from = run->slice.to) {
        time_ms to = run->hours.to - from > run->slice_ms ? from + run->slice_ms : run->hours.to;
        if (from < run->closed && to > run->closed && !run->at_once)
            to = run->closed;
        run->slice = (struct span){from, to};
        if (stopped(run))
            return error_set(err, ERR_STOPPED, "stopped");
        struct error own = {0};
        enum err e = run_slice(run, &own);
        if (e != ERR_OK) {
            if (of_a_source(e))
                note_failure(run, &own);
            if (err)
                *err = own;
            return e;
        }
    }
    return ERR_OK;
}

static enum err run_hours(struct collect *run, struct error *err)
{
    double rate = 0;
    struct error own = {0};
    run->slice = (struct span){run->hours.from, run->hours.from};
    enum err e = survey(run, &rate, &own);
    if (e != ERR_OK) {
        if (err)
            *err = own;
        return e;
    }
    no_older_data(run);
    if (run->hours.from >= run->hours.to)
        return ERR_OK;
    run->at_once = rate <= 0 && run->options->slice_ms <= 0;
    run->slice_ms = slice_length(run, rate);
    return run_slices(run, err);
}

/* The same sources in two books would be counted twice. */
static enum err refuse_second_book(const struct collect *run, struct error *err)
{
    struct position unnamed = {0};
    enum err e = position_read(run->store, strbuf_str(&run->id), &unnamed, err);
    if (e == ERR_OK && unnamed.known)
        e = error_set(err, ERR_CONFIG,
                      "%.*s is booked in this database already, in the book without a name: say "
                      "book: '' to go on with that one, or take another database",
                      STR_ARG(run->options->book));
    position_release(&unnamed);
    return e;
}

static enum err read_position(struct collect *run, struct error *err)
{
    const struct collect_options *options = run->options;
    position_source_id(options->sources, options->sources_n, &run->id);
    if (options->book.n)
        position_book_id(options->book, &run->place);
    else
        strbuf_add(&run->place, strbuf_str(&run->id));
    enum err e = take_store(run, err);
    if (e != ERR_OK)
        return e;
    e = position_read(run->store, strbuf_str(&run->place), &run->position, err);
    if (e == ERR_OK && options->book.n && !run->position.known)
        e = refuse_second_book(run, err);
    give_store(run);
    return e;
}

enum err collect_run(const struct collect_options *options, struct collect_report *ret,
                     struct error *err)
{
    struct collect run = {.options = options, .report = ret};
    time_ms now = options->now ? options->now : clock_now();
    time_ms settle = options->settle_ms ? options->settle_ms : COLLECT_SETTLE_MS;
    run.closed = settle < 0 ? TIME_MAX : hour_floor(now - settle);
    *ret = (struct collect_report){.booked = {options->window.from, options->window.from}};
    enum err e = read_position(&run, err);
    ret->settings_changed = e == ERR_OK && run.position.known && options->settings.n &&
                            !str_eq(strbuf_str(&run.position.settings), options->settings);
    if (e == ERR_OK && choose_hours(&run))
        e = run_hours(&run, err);
    ret->series = run.series;
    ret->samples = run.samples;
    ret->bytes = run.bytes;
    ret->watermark = run.position.known ? run.position.watermark : TIME_MIN;
    position_release(&run.position);
    strbuf_release(&run.carry);
    strbuf_release(&run.id);
    strbuf_release(&run.place);
    return e;
}
