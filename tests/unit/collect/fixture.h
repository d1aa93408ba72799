/* For tests of the run of collecting: over a real store, with an engine and a source of the test's
 * own: the engine books a row an hour that says how many samples fell into it and which carry it
 * began with, so that the store shows what was read and booked, and in which pieces. */
#ifndef GPUTALLY_TESTS_COLLECT_FIXTURE_H
#define GPUTALLY_TESTS_COLLECT_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

#include "collect/collect.h"
#include "collect/position.h"

#define H(n) ((time_ms)(n)*HOUR_MS)
#define STEP_MS ((time_ms)600000) /* six samples an hour */

/* ---- an intake and an engine ---- */

struct intake {
    struct names *names;
    time_ms *stamps;
    size_t n, room;
    char carry[64]; /* "" none */
    char cluster[32];
    struct intake_note_entry {
        enum note_kind kind;
        char text[256];
    } notes[8];
    size_t notes_n;
};

static int bookings;

struct intake *intake_new(const struct settings *settings, struct names *names)
{
    (void)settings;
    struct intake *intake = mem_zalloc(1, sizeof *intake);
    intake->names = names;
    return intake;
}

void intake_default_cluster(struct intake *intake, struct str cluster)
{
    snprintf(intake->cluster, sizeof intake->cluster, "%.*s", STR_ARG(cluster));
}

void intake_free(struct intake *intake)
{
    if (intake)
        free(intake->stamps);
    free(intake);
}

enum err intake_restore(struct intake *intake, struct str carry, struct error *err)
{
    if (!str_starts(carry, STR("carry@")))
        return error_set(err, ERR_PARSE, "no carry");
    snprintf(intake->carry, sizeof intake->carry, "%.*s", STR_ARG(carry));
    return ERR_OK;
}

void intake_stats(const struct intake *intake, struct engine_stats *ret)
{
    *ret = (struct engine_stats){.series = 1, .samples = intake->n};
}

void intake_note(struct intake *intake, enum note_kind kind, struct str subject, int64_t count,
                 struct str text)
{
    (void)subject, (void)count;
    intake->notes[intake->notes_n].kind = kind;
    snprintf(intake->notes[intake->notes_n++].text, 256, "%.*s", STR_ARG(text));
}

void engine_reach(const struct settings *settings, struct span hours, struct span *ret_kube,
                  struct span *ret_gpu)
{
    *ret_gpu = (struct span){hours.from - settings->gap_ms, hours.to + settings->gap_ms};
    *ret_kube =
        (struct span){hours.from - settings->node_break_ms, hours.to + settings->node_break_ms};
}

static inline struct row row_of(const struct intake *intake, time_ms hour, time_ms first)
{
    struct names *names = intake->names;
    struct row row = {.key = {.hour = hour,
                              .cluster = names_put(names, str_of(intake->cluster)),
                              .node = names_put(names, STR("node")),
                              .device = names_put(names, STR("GPU-0"))},
                      .share_den = 1};
    for (size_t i = 0; i < intake->n; i++)
        row.held_ms += intake->stamps[i] > hour && intake->stamps[i] <= hour + HOUR_MS;
    /* what the slice began with: 0 nothing, else the hours of its carry */
    long long at = 0;
    if (*intake->carry)
        str_to_i64(str_of(intake->carry + 6), &at);
    row.observed_ms = at / HOUR_MS;
    row.energy_mj = first / HOUR_MS;
    return row;
}

enum err engine_book(struct intake *intake, struct span hours, const struct engine_options *options,
                     engine_emit_fn emit, void *context, struct strbuf *ret_carry,
                     struct error *err)
{
    (void)options, (void)err;
    bookings++;
    for (time_ms hour = hours.from; hour < hours.to; hour += HOUR_MS) {
        struct row row = row_of(intake, hour, hours.from);
        struct node_hour node = {.hour = hour, .cluster = row.key.cluster, .node = row.key.node};
        struct row_batch batch = {.names = intake->names,
                                  .hours = {hour, hour + HOUR_MS},
                                  .rows = &row,
                                  .rows_n = 1,
                                  .node_hours = &node,
                                  .node_hours_n = 1};
        emit(context, &batch);
    }
    struct note notes[8];
    for (size_t i = 0; i < intake->notes_n; i++)
        notes[i] = (struct note){.kind = (int)intake->notes[i].kind,
                                 .text = names_put(intake->names, str_of(intake->notes[i].text)),
                                 .count = 1,
                                 .from = hours.from,
                                 .to = hours.to};
    struct row_batch batch = {
        .names = intake->names, .hours = hours, .notes = notes, .notes_n = intake->notes_n};
    emit(context, &batch);
    strbuf_addf(ret_carry, "carry@%lld", (long long)hours.to);
    return ERR_OK;
}

/* ---- a source ---- */

struct fake {
    struct source source;
    struct span data; /* a sample each STEP_MS in (from, to] */
    double rate;
    int surveys, fetches;
    struct fetch last, first;
    time_ms fail_from; /* fetches that reach beyond fail */
    enum err fail_with;
    enum err survey_with;
    volatile int stop;
    int stop_after; /* fetches */
};

static inline enum err fake_survey(struct source *source, struct span window,
                                   struct span *ret_extent, double *ret_rate,
                                   struct progress *progress, struct error *err)
{
    struct fake *fake = (struct fake *)source;
    (void)progress;
    fake->surveys++;
    if (fake->survey_with != ERR_OK)
        return error_set(err, fake->survey_with, "no metrics of GPUs");
    *ret_extent = window;
    if (fake->data.from > window.from)
        ret_extent->from = fake->data.from;
    *ret_rate = fake->rate;
    return ERR_OK;
}

static inline enum err fake_fetch(struct source *source, const struct fetch *fetch,
                                  struct intake *intake, struct progress *progress,
                                  struct error *err)
{
    struct fake *fake = (struct fake *)source;
    (void)progress;
    if (fake->fetches++ == 0)
        fake->first = *fetch;
    fake->last = *fetch;
    if (fake->fail_with != ERR_OK && fetch->gpu.to > fake->fail_from)
        return error_set(err, fake->fail_with, "the server is gone");
    for (time_ms t = fake->data.from + STEP_MS; t <= fake->data.to; t += STEP_MS)
        if (t >= fetch->gpu.from && t <= fetch->gpu.to)
            mem_push(intake->stamps, intake->n, intake->room, t);
    if (fake->fetches == fake->stop_after)
        fake->stop = 15;
    return ERR_OK;
}

static inline void fake_free(struct source *source)
{
    (void)source;
}

static const struct source_ops fake_ops = {
    .kind = "fake", .survey = fake_survey, .fetch = fake_fetch, .free = fake_free};

/* ---- the run ---- */

static struct bench {
    struct names *names;
    struct store *store;
    struct settings settings;
    struct fake fake;
    struct source *sources[2];
    struct collect_options options;
    struct collect_report report;
    struct error err;
} bench;

static inline int set_up(void **state)
{
    (void)state;
    bench = (struct bench){.names = names_new()};
    settings_defaults(&bench.settings);
    bench.fake = (struct fake){.source = {.ops = &fake_ops, .id = (char *)(uintptr_t) "fake"},
                               .data = {H(1000), H(2000)},
                               .rate = 6};
    bench.sources[0] = &bench.fake.source;
    bench.options = (struct collect_options){.sources = bench.sources,
                                             .sources_n = 1,
                                             .names = bench.names,
                                             .engine = {.settings = &bench.settings},
                                             .now = H(1500),
                                             .slice_ms = H(4)};
    bench.options.progress.stop = &bench.fake.stop;
    bookings = 0;
    return store_open(":memory:", STORE_WRITE, bench.names, &bench.store, NULL) != ERR_OK;
}

static inline int tear_down(void **state)
{
    (void)state;
    store_close(bench.store);
    names_free(bench.names);
    return 0;
}

static inline enum err run(time_ms from, time_ms to)
{
    bench.options.store = bench.store;
    bench.options.window = (struct span){from, to};
    bench.fake.fetches = bench.fake.surveys = 0;
    return collect_run(&bench.options, &bench.report, &bench.err);
}

struct seen {
    time_ms hour;
    int64_t samples, carry, slice;
};
static struct seen rows[2000];
static size_t rows_n, notes_n;
static char note_text[300];

static inline bool see(void *context, const struct row_batch *batch)
{
    (void)context;
    for (size_t i = 0; i < batch->rows_n; i++)
        rows[rows_n++] = (struct seen){batch->rows[i].key.hour, batch->rows[i].held_ms,
                                       batch->rows[i].observed_ms, batch->rows[i].energy_mj};
    for (size_t i = 0; i < batch->notes_n; i++) {
        notes_n++;
        snprintf(note_text, sizeof note_text, "%d %.*s", batch->notes[i].kind,
                 STR_ARG(names_text(bench.names, batch->notes[i].text)));
    }
    return true;
}

static inline void look(void)
{
    rows_n = notes_n = 0;
    struct span all = {H(0), H(3000)};
    assert_int_equal(store_read_rows(bench.store, all, see, NULL, NULL), ERR_OK);
}

static inline time_ms watermark(void)
{
    struct arena arena = {0};
    struct store_progress progress;
    struct strbuf id = {0};
    time_ms at = 0;
    /* the id is the source's name and a hash of it */

    position_source_id(bench.sources, bench.options.sources_n, &id);
    if (store_read_progress(bench.store, strbuf_str(&id), &arena, &progress, NULL) == ERR_OK)
        at = progress.watermark;
    strbuf_release(&id);
    arena_release(&arena);
    return at;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

#endif
