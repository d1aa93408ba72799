/* The journal as a source: a survey from what the segments say they hold, a fetch by journal_read.
 *
 * Records come over the wide range. Where no node was ever recorded it is samples that tell that
 * one was up, and the first fetch takes them over the wide range too; later ones follow a fetch
 * that has seen what was before. Samples of GPUs after the hours are many, and matter only where
 * somebody fell silent: they are read in a second pass, of the exporters that did, or of all where
 * the observer of Kubernetes did (as from a server, prometheus_fetch.c). */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "fleet/signals.h"
#include "source/journal_impl.h"
#include "source/seen.h"

#define REPORT_EVERY_MS 100

struct journal_source {
    struct source source;
    struct journal *journal;
    struct seen *observers, *exporters;
    bool fetched;
};

/* What all segments hold. */
static struct segment_holds journal_holds(struct journal *journal)
{
    struct segment_holds sum = {SPAN_NOTHING, SPAN_NOTHING, 0};
    struct segment **segments;
    size_t n = journal_snapshot(journal, &segments);
    for (size_t i = 0; i < n; i++) {
        pthread_mutex_lock(&segments[i]->file);
        struct segment_holds holds = segments[i]->holds;
        pthread_mutex_unlock(&segments[i]->file);
        sum.gpu.from = holds.gpu.from < sum.gpu.from ? holds.gpu.from : sum.gpu.from;
        sum.gpu.to = holds.gpu.to > sum.gpu.to ? holds.gpu.to : sum.gpu.to;
        sum.kube.from = holds.kube.from < sum.kube.from ? holds.kube.from : sum.kube.from;
        sum.kube.to = holds.kube.to > sum.kube.to ? holds.kube.to : sum.kube.to;
        sum.samples += holds.samples;
        segment_drop(segments[i]);
    }
    free(segments);
    return sum;
}

static enum err source_survey(struct source *base, struct span window, struct span *ret_extent,
                              double *ret_samples_an_hour, struct progress *progress,
                              struct error *err)
{
    struct journal_source *source = (struct journal_source *)base;
    struct segment_holds holds = journal_holds(source->journal);
    (void)window;
    (void)progress;
    if (holds.samples == 0)
        return error_set(err, ERR_NOT_FOUND,
                         "the journal %s holds no samples yet: is anything pushed or scraped?",
                         source->journal->folder);
    struct span all = {holds.gpu.from < holds.kube.from ? holds.gpu.from : holds.kube.from,
                       holds.gpu.to > holds.kube.to ? holds.gpu.to : holds.kube.to};
    double hours = (double)(all.to - all.from) / (double)HOUR_MS;
    /* What a sample describes ended at its stamp. */
    *ret_extent = (struct span){all.from - 1, all.to};
    *ret_samples_an_hour = (double)holds.samples / (hours < 1 ? 1 : hours);
    return ERR_OK;
}

#define NOBODY SIZE_MAX

/* A series' own, by the number that the intake gave it. */
struct teller {
    struct seen *seen; /* NULL: nobody is interested */
    size_t place;
};

/* A fetch in hand. */
struct delivering {
    struct journal_source *source;
    const struct fetch *fetch;
    struct intake *intake;
    struct progress *progress;
    time_ms reported;
    uint64_t series, samples;
    struct teller *tellers;
    size_t tellers_n, tellers_room;
    struct teller last; /* whose stamps are gathered … */
    struct span heard;  /* … here */
    bool far, all;      /* the second pass; of everybody */
};

static void tell_heard(struct delivering *to)
{
    if (to->last.seen && to->heard.from <= to->heard.to)
        seen_stamps(to->last.seen, to->last.place, to->heard.from, to->heard.to);
    to->last = (struct teller){NULL, NOBODY};
    to->heard = SPAN_NOTHING;
}

/* Series of a target come one after the other. Of records, which come from far too, only what is
 * near says whether somebody was silent. */
static void hear(struct delivering *to, struct teller teller, const time_ms *t, size_t n)
{
    while (n && t[n - 1] > to->fetch->gpu.to)
        n--;
    if (n == 0)
        return;
    if (teller.seen != to->last.seen || teller.place != to->last.place)
        tell_heard(to);
    to->last = teller;
    to->heard.from = t[0] < to->heard.from ? t[0] : to->heard.from;
    to->heard.to = t[n - 1] > to->heard.to ? t[n - 1] : to->heard.to;
}

static struct teller teller_of(struct delivering *to, const struct label *labels, size_t n)
{
    struct str name = labels_get(labels, n, STR("__name__"));
    bool observes = str_eq(name, STR("kube_node_info")) || str_eq(name, STR("kube_pod_info"));
    struct seen *seen = observes                 ? to->source->observers
                        : signal_of_metric(name) ? to->source->exporters
                                                 : NULL;
    return (struct teller){seen, seen ? seen_place(seen, labels, n) : NOBODY};
}

static uint32_t on_series(void *context, const struct label *labels, size_t n)
{
    struct delivering *to = context;
    struct teller teller = teller_of(to, labels, n);
    if (to->far && !to->all &&
        (!teller.seen ||
         !seen_is_silent_after(teller.seen, teller.place, to->fetch->hours, to->fetch->kube.from)))
        return JOURNAL_SKIP;
    series_id id = intake_series(to->intake, labels, n);
    to->series += id != SERIES_UNWANTED;
    if (id == SERIES_UNWANTED)
        return JOURNAL_SKIP;
    while (to->tellers_n <= id)
        mem_push(to->tellers, to->tellers_n, to->tellers_room, ((struct teller){NULL, NOBODY}));
    to->tellers[id] = teller;
    return id;
}

static void report(struct delivering *to, size_t n)
{
    struct progress *progress = to->progress;
    if (!progress || !progress->report || to->samples % 4096 >= n)
        return;
    time_ms now = clock_monotonic();
    if (now - to->reported < REPORT_EVERY_MS)
        return;
    to->reported = now;
    struct progress told = *progress;
    told.what = "reading the journal";
    told.series = to->series;
    told.samples = to->samples;
    told.done = (double)NAN;
    progress->report(progress->context, &told);
}

static void on_samples(void *context, uint32_t number, const time_ms *t, const double *v, size_t n)
{
    struct delivering *to = context;
    intake_append(to->intake, number, t, v, n);
    to->samples += n;
    if (!to->far)
        hear(to, to->tellers[number], t, n);
    report(to, n);
}

/* What of the asked time is missing, in the report's words. */
static void note_missing(const struct journal_source *source, const struct fetch *fetch,
                         const struct journal_read_stats *stats, struct intake *intake)
{
    struct str subject = str_of(source->source.id);
    struct journal_stats own;
    if (stats->damaged_frames)
        intake_note(intake, NOTE_PARTIAL, subject, (int64_t)stats->damaged_frames,
                    STR("parts of the journal are damaged and were skipped"));
    if (stats->nameless_samples)
        intake_note(intake, NOTE_PARTIAL, subject, (int64_t)stats->nameless_samples,
                    STR("samples whose series stood in a damaged part of the journal"));
    journal_stats(source->journal, &own);
    if (own.lost_segments && own.lost.from < fetch->hours.to && own.lost.to >= fetch->hours.from)
        intake_note(intake, NOTE_PARTIAL, subject, (int64_t)own.lost_samples,
                    STR("samples were dropped since the journal was at its cap"));
}

/* GPUs' samples after the near range, where somebody fell silent. */
static enum err read_far(struct delivering *to, const struct journal_read *near, struct error *err)
{
    const struct fetch *fetch = to->fetch;
    time_ms since = fetch->kube.from;
    tell_heard(to);
    to->far = true;
    to->all = seen_silent(to->source->observers, fetch->hours, since).after > 0;
    if (!to->all && seen_silent(to->source->exporters, fetch->hours, since).after == 0)
        return ERR_OK;
    struct journal_read far = *near;
    far.kube = SPAN_NOTHING;
    far.gpu = (struct span){fetch->gpu.to + 1, fetch->kube.to};
    return journal_read(to->source->journal, &far, NULL, err);
}

static enum err source_fetch(struct source *base, const struct fetch *fetch, struct intake *intake,
                             struct progress *progress, struct error *err)
{
    struct journal_source *source = (struct journal_source *)base;
    struct delivering to = {.source = source,
                            .fetch = fetch,
                            .intake = intake,
                            .progress = progress,
                            .last = {NULL, NOBODY},
                            .heard = SPAN_NOTHING};
    struct segment_holds holds = journal_holds(source->journal);
    bool early = !source->fetched && holds.kube.from > holds.kube.to;
    struct journal_read read = {
        .kube = fetch->kube,
        .gpu = {early ? fetch->kube.from : fetch->gpu.from, fetch->gpu.to},
        .sink = {&to, on_series, on_samples},
        .stop = progress ? progress->stop : NULL,
    };
    struct journal_read_stats stats;
    seen_begin(source->observers);
    seen_begin(source->exporters);
    intake_by_time(intake, source->journal->folder);
    enum err e = journal_read(source->journal, &read, &stats, err);
    if (e == ERR_OK)
        e = read_far(&to, &read, err);
    intake_by_series(intake);
    free(to.tellers);
    if (e != ERR_OK)
        return e;
    source->fetched = true;
    note_missing(source, fetch, &stats, intake);
    return ERR_OK;
}

static void free_source(struct source *base)
{
    struct journal_source *source = (struct journal_source *)base;
    seen_free(source->observers);
    seen_free(source->exporters);
    free(base->id);
    free(base);
}

static const struct source_ops journal_ops = {
    .kind = "journal", .survey = source_survey, .fetch = source_fetch, .free = free_source};

struct source *journal_source_new(struct journal *journal)
{
    struct journal_source *source = mem_zalloc(1, sizeof *source);
    struct strbuf id = {0};
    strbuf_addf(&id, "journal:%s", journal->name);
    source->source.ops = &journal_ops;
    source->source.id = id.text;
    source->journal = journal;
    source->observers = seen_new(STR("instance"));
    source->exporters = seen_new(STR("instance"));
    return &source->source;
}
