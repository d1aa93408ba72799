/* The journal as a source: a survey from what the segments say they hold, a fetch by journal_read.
 *
 * Records come over the wide range. Where no node was ever recorded it is samples that tell that
 * one was up, and the first fetch takes them over the wide range too; later ones follow a fetch
 * that has seen what was before. What lies after the hours is taken as far as it is there. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "source/journal_impl.h"

#define REPORT_EVERY_MS 100

struct journal_source {
    struct source source;
    struct journal *journal;
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

/* A fetch in hand. */
struct delivering {
    struct intake *intake;
    struct progress *progress;
    time_ms reported;
    uint64_t series, samples;
};

static uint32_t on_series(void *context, const struct label *labels, size_t n)
{
    struct delivering *to = context;
    series_id id = intake_series(to->intake, labels, n);
    to->series += id != SERIES_UNWANTED;
    return id == SERIES_UNWANTED ? JOURNAL_SKIP : id;
}

static void on_samples(void *context, uint32_t number, const time_ms *t, const double *v, size_t n)
{
    struct delivering *to = context;
    intake_append(to->intake, number, t, v, n);
    to->samples += n;
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

static enum err source_fetch(struct source *base, const struct fetch *fetch, struct intake *intake,
                             struct progress *progress, struct error *err)
{
    struct journal_source *source = (struct journal_source *)base;
    struct delivering to = {.intake = intake, .progress = progress};
    struct segment_holds holds = journal_holds(source->journal);
    bool early = !source->fetched && holds.kube.from > holds.kube.to;
    struct journal_read read = {
        .kube = fetch->kube,
        .gpu = {early ? fetch->kube.from : fetch->gpu.from, fetch->kube.to},
        .sink = {&to, on_series, on_samples},
        .stop = progress ? progress->stop : NULL,
    };
    struct journal_read_stats stats;
    enum err e = journal_read(source->journal, &read, &stats, err);
    if (e != ERR_OK)
        return e;
    source->fetched = true;
    note_missing(source, fetch, &stats, intake);
    return ERR_OK;
}

static void free_source(struct source *base)
{
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
    return &source->source;
}
