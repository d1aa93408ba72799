/* The run of collecting, over a real store, with an engine and a source of the test's own: the
 * engine books a row an hour that says how many samples fell into it and which carry it began with,
 * so that the store shows what was read and booked, and in which pieces. */
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

static struct row row_of(const struct intake *intake, time_ms hour, time_ms first)
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

static enum err fake_survey(struct source *source, struct span window, struct span *ret_extent,
                            double *ret_rate, struct progress *progress, struct error *err)
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

static enum err fake_fetch(struct source *source, const struct fetch *fetch, struct intake *intake,
                           struct progress *progress, struct error *err)
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

static void fake_free(struct source *source)
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

static int set_up(void **state)
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

static int tear_down(void **state)
{
    (void)state;
    store_close(bench.store);
    names_free(bench.names);
    return 0;
}

static enum err run(time_ms from, time_ms to)
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

static bool see(void *context, const struct row_batch *batch)
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

static void look(void)
{
    rows_n = notes_n = 0;
    struct span all = {H(0), H(3000)};
    assert_int_equal(store_read_rows(bench.store, all, see, NULL, NULL), ERR_OK);
}

static time_ms watermark(void)
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

static void a_first_run_books_closed_and_open_hours(void **state)
{
    (void)state;
    bench.options.now = H(1500) + 1;
    assert_int_equal(run(H(1490), H(1501)), ERR_OK);
    look();
    assert_int_equal(rows_n, 11);
    assert_int_equal(rows[0].hour, H(1490));
    for (size_t i = 0; i < rows_n; i++)
        assert_int_equal(rows[i].samples, 6);
    /* slices of 4 h, cut at the last closed hour: 1490, 1494, 1498; 1499 is open, so is 1500 */
    assert_int_equal(bench.fake.fetches, 4);
    assert_int_equal(rows[9].slice, 1499);
    assert_int_equal(watermark(), H(1499));
    assert_int_equal(bench.report.booked.from, H(1490));
    assert_int_equal(bench.report.booked.to, H(1501));
    assert_int_equal(bench.report.rows, 11);
}

static void a_later_run_books_open_hours_again_with_the_carry(void **state)
{
    (void)state;
    bench.fake.data.to = H(1500) - 1800000; /* the last half hour is late */
    assert_int_equal(run(H(1490), H(1500)), ERR_OK);
    look();
    assert_int_equal(rows[9].samples, 3);
    assert_int_equal(watermark(), H(1499));
    bench.fake.data.to = H(2000);
    bench.options.now = H(1502);
    assert_int_equal(run(H(1490), H(1502)), ERR_OK);
    look();
    assert_int_equal(rows_n, 12);
    assert_int_equal(rows[9].samples, 6);
    assert_int_equal(rows[9].carry, 1499);
    assert_int_equal(bench.report.booked.from, H(1499));
    assert_int_equal(watermark(), H(1501));
}

static void booked_time_is_not_read_again(void **state)
{
    (void)state;
    assert_int_equal(run(H(1480), H(1490)), ERR_OK);
    assert_int_equal(run(H(1480), H(1490)), ERR_OK);
    assert_int_equal(bench.fake.surveys, 0);
    assert_int_equal(bench.fake.fetches, 0);
    assert_true(bench.report.booked.from >= bench.report.booked.to);
    assert_int_equal(run(H(1482), H(1488)), ERR_OK);
    assert_int_equal(bench.fake.fetches, 0);
}

static void a_window_after_the_watermark_leaves_no_hole(void **state)
{
    (void)state;
    assert_int_equal(run(H(1400), H(1410)), ERR_OK);
    assert_int_equal(run(H(1420), H(1424)), ERR_OK);
    look();
    assert_int_equal(rows_n, 24);
    assert_int_equal(bench.report.booked.from, H(1410));
    assert_int_equal(rows[10].carry, 1410);
}

static void every_slice_begins_with_the_carry_of_the_one_before(void **state)
{
    (void)state;
    assert_int_equal(run(H(1400), H(1412)), ERR_OK);
    look();
    for (size_t i = 0; i < rows_n; i++) {
        assert_int_equal(rows[i].slice, 1400 + i / 4 * 4);
        assert_int_equal(rows[i].carry, i < 4 ? 0 : rows[i].slice);
    }
}

static void without_a_carry_it_looks_back(void **state)
{
    (void)state;
    assert_int_equal(run(H(1400), H(1408)), ERR_OK);
    assert_true(bench.fake.first.gpu.from <= H(1400) - COLLECT_LOOK_BACK_MS);
    assert_true(bench.fake.first.kube.from <= H(1400) - bench.settings.node_break_ms);
    assert_int_equal(bench.fake.last.gpu.from, H(1404) - bench.settings.gap_ms);
}

static void a_stopped_run_is_taken_up(void **state)
{
    (void)state;
    bench.fake.stop_after = 2; /* while the second slice is read */
    assert_int_equal(run(H(1400), H(1412)), ERR_STOPPED);
    assert_int_equal(bench.report.booked.to, H(1404));
    assert_int_equal(watermark(), H(1404));
    look();
    assert_int_equal(rows_n, 4);
    assert_int_equal(notes_n, 0);
    bench.fake.stop = 0;
    bench.fake.stop_after = 0;
    assert_int_equal(run(H(1400), H(1412)), ERR_OK);
    look();
    assert_int_equal(rows_n, 12);
    assert_int_equal(rows[4].carry, 1404);
}

static void a_failing_source_keeps_what_was_booked_and_says_what_is_missing(void **state)
{
    (void)state;
    bench.fake.fail_from = H(1409);
    bench.fake.fail_with = ERR_NETWORK;
    assert_int_equal(run(H(1400), H(1412)), ERR_NETWORK);
    assert_string_equal(bench.err.text, "the server is gone");
    assert_int_equal(bench.report.booked.from, H(1400));
    assert_int_equal(bench.report.booked.to, H(1408));
    assert_true(bench.report.partial);
    look();
    assert_int_equal(rows_n, 8);
    assert_int_equal(notes_n, 1);
    assert_string_equal(note_text, "0 the server is gone");
    bench.fake.fail_with = ERR_OK;
    assert_int_equal(run(H(1400), H(1412)), ERR_OK);
    assert_false(bench.report.partial);
    look();
    assert_int_equal(rows_n, 12);
    assert_int_equal(notes_n, 0);
}

static void a_source_that_fails_at_once_books_nothing(void **state)
{
    (void)state;
    bench.fake.fail_with = ERR_AUTH;
    assert_int_equal(run(H(1400), H(1412)), ERR_AUTH);
    look();
    assert_int_equal(rows_n, 0);
    assert_int_equal(notes_n, 0);
    assert_int_equal(watermark(), 0);
}

static void rebooking_takes_in_late_data_and_leaves_the_watermark(void **state)
{
    (void)state;
    bench.fake.data.to = H(1403);
    assert_int_equal(run(H(1400), H(1412)), ERR_OK);
    bench.fake.data.to = H(2000);
    bench.options.rebook = true;
    assert_int_equal(run(H(1402), H(1406)), ERR_OK);
    look();
    assert_int_equal(rows_n, 12);
    for (int i = 0; i < 12; i++)
        assert_int_equal(rows[i].samples, i < 6 ? 6 : 0);
    assert_int_equal(watermark(), H(1412));
    assert_true(bench.fake.first.gpu.from <= H(1402) - COLLECT_LOOK_BACK_MS);
    bench.options.rebook = false;
    assert_int_equal(run(H(1400), H(1416)), ERR_OK);
    assert_int_equal(bench.report.booked.from, H(1412));
    look();
    assert_int_equal(rows[12].carry, 1412);
}

static void an_older_window_is_booked_on_to_the_books(void **state)
{
    (void)state;
    assert_int_equal(run(H(1410), H(1420)), ERR_OK);
    assert_int_equal(run(H(1400), H(1405)), ERR_OK);
    look();
    assert_int_equal(rows_n, 20);
    assert_int_equal(rows[0].hour, H(1400));
    assert_int_equal(watermark(), H(1420));
    assert_int_equal(run(H(1400), H(1420)), ERR_OK);
    assert_int_equal(bench.fake.fetches, 0);
    assert_int_equal(run(H(1400), H(1422)), ERR_OK);
    look();
    assert_int_equal(rows[20].carry, 1420);
}

static void an_older_window_without_older_data_books_nothing_again(void **state)
{
    (void)state;
    bench.fake.data.from = H(1410);
    assert_int_equal(run(H(1410), H(1420)), ERR_OK);
    assert_int_equal(run(H(1400), H(1421)), ERR_OK);
    assert_int_equal(bench.report.booked.from, H(1420));
    look();
    assert_int_equal(rows_n, 11);
    assert_int_equal(rows[0].hour, H(1410));
    assert_int_equal(run(H(1400), H(1421)), ERR_OK);
    assert_int_equal(bench.fake.surveys, 0);
}

static void hours_before_any_data_are_left_out_of_a_first_run(void **state)
{
    (void)state;
    bench.fake.data.from = H(1410) + 1800000;
    assert_int_equal(run(H(1400), H(1414)), ERR_OK);
    look();
    assert_int_equal(rows_n, 4);
    assert_int_equal(rows[0].hour, H(1410));
    assert_int_equal(rows[0].samples, 3);
}

static void rows_are_never_replaced_by_nothing(void **state)
{
    (void)state;
    assert_int_equal(run(H(1400), H(1408)), ERR_OK);
    bench.fake.data = (struct span){H(1404) - 600000, H(2000)}; /* retention took the older data */
    bench.options.rebook = true;
    bench.fake.rate = 6;
    assert_int_equal(run(H(1396), H(1408)), ERR_OK);
    look();
    assert_int_equal(rows_n, 8);
    for (size_t i = 0; i < rows_n; i++)
        assert_int_equal(rows[i].samples, 6);
    assert_int_equal(bench.report.booked.from, H(1404));
    bench.fake.data = (struct span){H(1990), H(2000)};
    assert_int_equal(run(H(1400), H(1408)), ERR_OK);
    look();
    assert_int_equal(rows_n, 8);
    assert_int_equal(rows[7].samples, 6);
}

static void slices_fit_into_the_budget(void **state)
{
    (void)state;
    bench.options.slice_ms = 0;
    bench.fake.rate = 1000;
    /* three hours, and what is read to both sides of them */
    bench.options.budget_bytes =
        1000 * COLLECT_SAMPLE_BYTES * (size_t)(3 * HOUR_MS + 2 * bench.settings.gap_ms) / HOUR_MS +
        10;
    assert_int_equal(run(H(1400), H(1412)), ERR_OK);
    assert_int_equal(bench.fake.fetches, 4);
    look();
    assert_int_equal(rows[3].slice, 1403);
    bench.options.budget_bytes = 10; /* not even one: an hour it is */
    assert_int_equal(run(H(1400), H(1414)), ERR_OK);
    assert_int_equal(bench.fake.fetches, 2);
}

static void sources_without_a_rate_are_read_once(void **state)
{
    (void)state;
    bench.options.slice_ms = 0;
    bench.fake.rate = 0;
    bench.options.now = H(1404) + 1;
    assert_int_equal(run(H(1400), H(1412)), ERR_OK);
    assert_int_equal(bench.fake.fetches, 1);
    look();
    assert_int_equal(rows_n, 12);
}

static void a_cluster_without_gpus_for_a_while_keeps_its_books(void **state)
{
    (void)state;
    bench.fake.survey_with = ERR_NOT_FOUND;
    assert_int_equal(run(H(1400), H(1408)), ERR_NOT_FOUND);
    bench.fake.survey_with = ERR_OK;
    assert_int_equal(run(H(1400), H(1408)), ERR_OK);
    bench.fake.survey_with = ERR_NOT_FOUND;
    assert_int_equal(run(H(1400), H(1412)), ERR_OK);
    assert_true(bench.report.partial);
    assert_int_equal(watermark(), H(1412));
    look();
    assert_int_equal(notes_n, 1);
    assert_string_equal(note_text, "0 no metrics of GPUs");
}

static void other_settings_are_noticed(void **state)
{
    (void)state;
    bench.options.settings = STR("prices A");
    assert_int_equal(run(H(1400), H(1404)), ERR_OK);
    assert_false(bench.report.settings_changed);
    assert_int_equal(run(H(1400), H(1408)), ERR_OK);
    assert_false(bench.report.settings_changed);
    bench.options.settings = STR("prices B");
    assert_int_equal(run(H(1400), H(1412)), ERR_OK);
    assert_true(bench.report.settings_changed);
}

static void the_order_of_sources_does_not_matter(void **state)
{
    (void)state;
    struct fake other = bench.fake;
    other.source.id = (char *)(uintptr_t) "another";
    bench.sources[1] = &other.source;
    bench.options.sources_n = 2;
    assert_int_equal(run(H(1400), H(1404)), ERR_OK);
    bench.sources[0] = &other.source;
    bench.sources[1] = &bench.fake.source;
    assert_int_equal(run(H(1400), H(1404)), ERR_OK);
    assert_int_equal(bench.fake.fetches, 0);
    bench.options.sources_n = 1; /* another set: other books */
    assert_int_equal(watermark(), 0);
}

/* Two clusters in one database, in turns, one of them always stopped in the middle; both have a
 * node of the same name. */
static void books_with_names_are_caught_up_apart(void **state)
{
    (void)state;
    static const struct str books[] = {{"east", 4}, {"west", 4}};
    for (time_ms to = 1402; to <= 1412; to += 2) {
        for (int b = 0; b < 2; b++) {
            bench.options.book = bench.options.cluster = books[b];
            bench.fake.source.id = (char *)(uintptr_t)(to > 1406 ? "moved" : "fake");
            bench.options.slice_ms = H(1);
            bench.fake.stop_after = 2 * b;
            assert_int_equal(run(H(1400), H(to)), b ? ERR_STOPPED : ERR_OK);
            bench.fake.stop = 0;
            bench.fake.stop_after = 0;
            if (b)
                assert_int_equal(run(H(1400), H(to)), ERR_OK);
            assert_int_equal(bench.report.watermark, H(to));
            assert_int_equal(bench.report.booked.from, H(b ? to - 1 : to - 2));
        }
    }
    look();
    assert_int_equal(rows_n, 24);
    for (size_t i = 0; i < rows_n; i++) {
        assert_int_equal(rows[i].hour, H(1400 + (time_ms)i / 2));
        assert_int_equal(rows[i].samples, 6);
        assert_int_equal(rows[i].carry, i < 2 ? 0 : 1400 + (int64_t)i / 2);
    }
}

/* Samples came late from this time on; the mark that they came after. */
static time_ms late_from;
static char marked[32];
static time_ms late(void *context, struct str mark, time_ms at)
{
    (void)context, (void)at;
    snprintf(marked, sizeof marked, "%.*s", STR_ARG(mark));
    return late_from;
}

static void came_late(const char *mark, time_ms from)
{
    bench.options.late = late;
    bench.options.mark = str_of(mark);
    late_from = from;
}

static void late_samples_open_closed_hours_again(void **state)
{
    (void)state;
    bench.fake.data.to = H(1406); /* the rest is late */
    assert_int_equal(run(H(1400), H(1412)), ERR_OK);
    assert_int_equal(watermark(), H(1412));
    bench.fake.data.to = H(2000);
    came_late("a", H(1406) + STEP_MS);
    assert_int_equal(run(H(1400), H(1412)), ERR_OK);
    assert_int_equal(bench.report.booked.from, H(1406));
    assert_int_equal(bench.fake.first.gpu.from, H(1405)); /* looks back instead of a carry */
    assert_int_equal(watermark(), H(1412));
    look();
    assert_int_equal(rows_n, 12);
    for (size_t i = 0; i < rows_n; i++)
        assert_int_equal(rows[i].samples, 6);
    /* not before the books, and nothing after the watermark */
    came_late("b", H(1300));
    assert_int_equal(run(H(1400), H(1412)), ERR_OK);
    assert_int_equal(bench.report.booked.from, H(1400));
    came_late("c", H(1412));
    assert_int_equal(run(H(1400), H(1412)), ERR_OK);
    assert_int_equal(bench.fake.fetches, 0);
}

/* A run that reopens and fails leaves the books as they were. */
static void reopening_takes_effect_with_the_first_slice(void **state)
{
    (void)state;
    assert_int_equal(run(H(1400), H(1412)), ERR_OK);
    came_late("a", H(1404));
    bench.fake.fail_with = ERR_NETWORK;
    bench.fake.fail_from = H(1400);
    assert_int_equal(run(H(1400), H(1412)), ERR_NETWORK);
    assert_int_equal(watermark(), H(1412));
    look();
    assert_int_equal(rows_n, 12);
}

/* What is kept with the books is where the sources stood as the last run that booked began. */
static void the_mark_moves_with_what_is_booked(void **state)
{
    (void)state;
    came_late("1", TIME_MAX);
    assert_int_equal(run(H(1400), H(1404)), ERR_OK); /* the first one asks for none */
    came_late("2", TIME_MAX);
    assert_int_equal(run(H(1400), H(1404)), ERR_OK); /* nothing is booked: nothing is kept */
    assert_string_equal(marked, "1");
    came_late("3", TIME_MAX);
    bench.fake.fail_with = ERR_NETWORK;
    assert_int_equal(run(H(1400), H(1406)), ERR_NETWORK);
    assert_string_equal(marked, "1");
    bench.fake.fail_with = ERR_OK;
    came_late("4", H(1402));
    assert_int_equal(run(H(1400), H(1406)), ERR_OK);
    assert_string_equal(marked, "1");
    came_late("5", TIME_MAX);
    assert_int_equal(run(H(1400), H(1408)), ERR_OK);
    assert_string_equal(marked, "4");
    bench.options.late = NULL; /* sources with a history leave it */
    assert_int_equal(run(H(1400), H(1410)), ERR_OK);
    came_late("6", TIME_MAX);
    assert_int_equal(run(H(1400), H(1412)), ERR_OK);
    assert_string_equal(marked, "5");
}

/* A run that reopens and is stopped in the middle is gone on with: the mark has moved, and so the
 * watermark may not. */
static void a_stopped_reopening_is_gone_on_with(void **state)
{
    (void)state;
    bench.fake.data.to = H(1404);
    assert_int_equal(run(H(1400), H(1412)), ERR_OK);
    bench.fake.data.to = H(2000);
    bench.options.slice_ms = H(1);
    bench.fake.stop_after = 2;
    came_late("a", H(1404));
    assert_int_equal(run(H(1400), H(1412)), ERR_STOPPED);
    bench.fake.stop = 0;
    bench.fake.stop_after = 0;
    came_late("b", TIME_MAX);
    assert_int_equal(run(H(1400), H(1412)), ERR_OK);
    assert_string_equal(marked, "a");
    assert_int_equal(watermark(), H(1412));
    look();
    assert_int_equal(rows_n, 12);
    for (size_t i = 0; i < rows_n; i++)
        assert_int_equal(rows[i].samples, 6);
}

static struct store *lent;
static int turns;
static enum err take(void *context, struct names *names, struct store **ret, struct error *err)
{
    turns++;
    *ret = context;
    assert_null(lent);
    lent = context;
    return store_use_names(context, names, err);
}
static void give(void *context, struct store *store)
{
    assert_ptr_equal(context, store);
    lent = NULL;
}

static enum err fetch_without_store(struct source *source, const struct fetch *fetch,
                                    struct intake *intake, struct progress *progress,
                                    struct error *err)
{
    assert_null(lent); /* others may write while a source is waited for */
    return fake_fetch(source, fetch, intake, progress, err);
}

static void a_lent_store_is_held_for_booking_only(void **state)
{
    (void)state;
    struct source_ops ops = fake_ops;
    struct collect_lender lender = {bench.store, take, give};
    ops.fetch = fetch_without_store;
    bench.fake.source.ops = &ops;
    bench.options.lender = &lender;
    bench.options.window = (struct span){H(1400), H(1408)};
    turns = 0;
    assert_int_equal(collect_run(&bench.options, &bench.report, &bench.err), ERR_OK);
    assert_null(lent);
    assert_int_equal(turns, 3); /* the position, two slices */
    look();
    assert_int_equal(rows_n, 8);
}

static void any_cut_gives_the_same_hours(void **state)
{
    for (time_ms slice = 1; slice <= 13; slice += 3) {
        bench.options.slice_ms = H(slice);
        assert_int_equal(run(H(1400), H(1413)), ERR_OK);
        look();
        assert_int_equal(rows_n, 13);
        for (size_t i = 0; i < rows_n; i++) {
            assert_int_equal(rows[i].hour, H(1400 + (time_ms)i));
            assert_int_equal(rows[i].samples, 6);
        }
        tear_down(state);
        assert_int_equal(set_up(state), 0);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_first_run_books_closed_and_open_hours),
        TEST(a_later_run_books_open_hours_again_with_the_carry),
        TEST(booked_time_is_not_read_again),
        TEST(a_window_after_the_watermark_leaves_no_hole),
        TEST(every_slice_begins_with_the_carry_of_the_one_before),
        TEST(without_a_carry_it_looks_back),
        TEST(a_stopped_run_is_taken_up),
        TEST(a_failing_source_keeps_what_was_booked_and_says_what_is_missing),
        TEST(a_source_that_fails_at_once_books_nothing),
        TEST(rebooking_takes_in_late_data_and_leaves_the_watermark),
        TEST(an_older_window_is_booked_on_to_the_books),
        TEST(an_older_window_without_older_data_books_nothing_again),
        TEST(hours_before_any_data_are_left_out_of_a_first_run),
        TEST(rows_are_never_replaced_by_nothing),
        TEST(slices_fit_into_the_budget),
        TEST(sources_without_a_rate_are_read_once),
        TEST(a_cluster_without_gpus_for_a_while_keeps_its_books),
        TEST(other_settings_are_noticed),
        TEST(the_order_of_sources_does_not_matter),
        TEST(books_with_names_are_caught_up_apart),
        TEST(a_lent_store_is_held_for_booking_only),
        TEST(late_samples_open_closed_hours_again),
        TEST(reopening_takes_effect_with_the_first_slice),
        TEST(the_mark_moves_with_what_is_booked),
        TEST(a_stopped_reopening_is_gone_on_with),
        TEST(any_cut_gives_the_same_hours),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
