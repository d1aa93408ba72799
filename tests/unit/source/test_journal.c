/* The journal: what is acknowledged is there, whatever happens to the file and the process. */
#include "../../lib/journal_lab.h"

static time_ms lab_clock = LAB_T0;
static time_ms lab_now(void *context)
{
    (void)context;
    return lab_clock;
}

static void what_is_committed_is_there_after_opening_again(void **state)
{
    (void)state;
    struct lab lab;
    lab_begin(&lab);
    struct journal *journal = lab_open(&lab, (struct journal_options){0});
    struct journal_batch *batch = journal_batch_new(journal);
    for (int i = 0; i < 10; i++)
        assert_int_equal(lab_put(batch, 0, LAB_SERIES, LAB_T0 + i * 15000, true), ERR_OK);
    journal_batch_free(batch);
    for (int round = 0; round < 2; round++) {
        struct lab_seen seen = lab_read(journal, TIME_MIN, TIME_MAX);
        assert_int_equal(seen.n, 10 * LAB_SERIES);
        assert_int_equal(seen.stats.samples, 10 * LAB_SERIES);
        for (unsigned s = 0; s < LAB_SERIES; s++)
            for (int i = 0; i < 10; i++)
                assert_true(lab_has(&seen, s, LAB_T0 + i * 15000));
        free(seen.samples);
        journal_close(journal);
        journal = lab_open(&lab, (struct journal_options){0});
    }
    struct journal_stats stats;
    journal_stats(journal, &stats);
    assert_int_equal(stats.segments, 1);
    assert_int_equal(stats.times.from, LAB_T0);
    assert_int_equal(stats.times.to, LAB_T0 + 9 * 15000);
    assert_int_equal(stats.cut_bytes + stats.damaged_frames, 0);
    journal_close(journal);
    lab_end(&lab);
}

static void a_range_gives_what_is_in_it_and_both_ends(void **state)
{
    (void)state;
    struct lab lab;
    lab_begin(&lab);
    struct journal *journal = lab_open(&lab, (struct journal_options){0});
    struct journal_batch *batch = journal_batch_new(journal);
    for (int i = 0; i < 10; i++)
        lab_put(batch, (unsigned)i % 3, 1, LAB_T0 + i * 1000, true);
    journal_batch_free(batch);
    struct lab_seen seen = lab_read(journal, LAB_T0 + 2000, LAB_T0 + 5000);
    assert_int_equal(seen.n, 4);
    assert_true(lab_has(&seen, 2, LAB_T0 + 2000) && lab_has(&seen, 2, LAB_T0 + 5000));
    free(seen.samples);
    journal_close(journal);
    lab_end(&lab);
}

static void records_are_read_over_their_own_range(void **state)
{
    (void)state;
    struct lab lab;
    lab_begin(&lab);
    struct journal *journal = lab_open(&lab, (struct journal_options){0});
    struct journal_batch *batch = journal_batch_new(journal);
    for (int i = 0; i < 10; i++) {
        time_ms t = LAB_T0 + i * 1000;
        double gpu = lab_value(1, t), kube = lab_value(2, t);
        journal_begin(batch);
        journal_add(batch, lab_series(batch, 1, false), &t, &gpu, 1);
        journal_add(batch, lab_series(batch, 2, true), &t, &kube, 1);
        assert_int_equal(journal_commit(batch, true, NULL), ERR_OK);
    }
    journal_batch_free(batch);
    struct lab_seen seen = {0};
    struct journal_read read = {.kube = {LAB_T0, LAB_T0 + 9000},
                                .gpu = {LAB_T0 + 8000, LAB_T0 + 9000},
                                .sink = {&seen, lab_on_series, lab_on_samples}};
    assert_int_equal(journal_read(journal, &read, NULL, NULL), ERR_OK);
    assert_int_equal(seen.n, 12);
    assert_false(lab_has(&seen, 1, LAB_T0 + 7000));
    assert_true(lab_has(&seen, 2, LAB_T0));
    free(seen.samples);
    journal_close(journal);
    lab_end(&lab);
}

static void what_is_not_synced_is_not_read_yet(void **state)
{
    (void)state;
    struct lab lab;
    lab_begin(&lab);
    struct journal *journal = lab_open(&lab, (struct journal_options){0});
    struct journal_batch *batch = journal_batch_new(journal);
    assert_int_equal(lab_put(batch, 0, 3, LAB_T0, false), ERR_OK);
    struct lab_seen seen = lab_read(journal, TIME_MIN, TIME_MAX);
    assert_int_equal(seen.n, 0);
    assert_int_equal(journal_sync(journal, NULL), ERR_OK);
    seen = lab_read(journal, TIME_MIN, TIME_MAX);
    assert_int_equal(seen.n, 3);
    free(seen.samples);
    journal_batch_free(batch);
    journal_close(journal);
    lab_end(&lab);
}

/* Batches that are begun in a segment end in it; a new one knows no series of the old. */
static void a_new_segment_names_its_series_anew(void **state)
{
    (void)state;
    struct lab lab;
    lab_begin(&lab);
    lab_clock = LAB_T0;
    struct journal *journal = lab_open(&lab, (struct journal_options){.now = lab_now});
    struct journal_batch *a = journal_batch_new(journal), *b = journal_batch_new(journal);
    struct journal_key key = {1, 0};
    struct journal_series series;
    uint64_t first = journal_begin(a);
    lab_series(a, 0, false);
    lab_clock += JOURNAL_SEGMENT_MS;
    uint64_t second = journal_begin(b);
    assert_true(second > first);
    journal_find(b, &key, 1, &series);
    assert_int_equal(series.number, JOURNAL_UNKNOWN);
    journal_find(a, &key, 1, &series);
    assert_int_not_equal(series.number, JOURNAL_UNKNOWN);
    time_ms t = LAB_T0;
    double v = lab_value(0, t);
    journal_add(a, series, &t, &v, 1);
    t += 1000, v = lab_value(0, t);
    journal_add(b, lab_series(b, 0, false), &t, &v, 1);
    assert_int_equal(journal_commit(a, true, NULL), ERR_OK);
    assert_int_equal(journal_commit(b, true, NULL), ERR_OK);
    struct lab_seen seen = lab_read(journal, TIME_MIN, TIME_MAX);
    assert_int_equal(seen.n, 2);
    free(seen.samples);
    struct journal_stats stats;
    journal_stats(journal, &stats);
    assert_int_equal(stats.segments, 2);
    journal_batch_free(a);
    journal_batch_free(b);
    journal_close(journal);
    lab_end(&lab);
}

/* A receiver finds a series that another one has named but not committed yet. */
static void a_series_is_defined_by_whoever_commits_first(void **state)
{
    (void)state;
    struct lab lab;
    lab_begin(&lab);
    struct journal *journal = lab_open(&lab, (struct journal_options){0});
    struct journal_batch *a = journal_batch_new(journal), *b = journal_batch_new(journal);
    time_ms t = LAB_T0;
    double v = lab_value(5, t);
    journal_begin(a);
    journal_begin(b);
    lab_series(a, 5, false);
    struct journal_key key = {6, 0};
    struct journal_series series;
    journal_find(b, &key, 1, &series);
    assert_int_not_equal(series.number, JOURNAL_UNKNOWN);
    journal_add(b, series, &t, &v, 1);
    assert_int_equal(journal_commit(b, true, NULL), ERR_OK);
    journal_abandon(a);
    struct lab_seen seen = lab_read(journal, TIME_MIN, TIME_MAX);
    assert_int_equal(seen.n, 1);
    assert_true(lab_has(&seen, 5, LAB_T0));
    free(seen.samples);
    journal_batch_free(a);
    journal_batch_free(b);
    journal_close(journal);
    lab_end(&lab);
}

/* 1,200 of 60 kB in one commit: 72 MB, where a frame has 64 MiB at most. */
static void more_definitions_than_a_frame_holds_are_read(void **state)
{
    (void)state;
    enum { SERIES = 1200, BYTES = 60000 };
    struct lab lab;
    lab_begin(&lab);
    char *text = malloc(BYTES);
    memset(text, 'x', BYTES);
    struct journal *journal = lab_open(&lab, (struct journal_options){0});
    struct journal_batch *batch = journal_batch_new(journal);
    journal_begin(batch);
    for (unsigned i = 0; i < SERIES; i++) {
        char number[16];
        struct journal_series series;
        const char *why;
        time_ms t = LAB_T0;
        double v = lab_value(i, t);
        snprintf(number, sizeof number, "%u", i);
        struct label labels[] = {{STR("UUID"), str_of(number)},
                                 {STR("__name__"), STR("DCGM_FI_DEV_GPU_UTIL")},
                                 {STR("long"), {text, BYTES}},
                                 {STR("node"), STR("gpu-1")}};
        assert_true(
            journal_define(batch, (struct journal_key){i + 1, false}, labels, 4, &series, &why));
        journal_add(batch, series, &t, &v, 1);
    }
    assert_int_equal(journal_commit(batch, true, NULL), ERR_OK);
    for (int again = 0; again < 2; again++) { /* as it is, and opened again */
        struct lab_seen seen = lab_read(journal, LAB_T0, LAB_T0);
        assert_int_equal(seen.n, SERIES);
        assert_int_equal(seen.stats.damaged_frames, 0);
        assert_true(seen.stats.frames > 72000000 / (5 << 20));
        free(seen.samples);
        if (again)
            continue;
        journal_batch_free(batch);
        journal_close(journal);
        journal = lab_open(&lab, (struct journal_options){0});
    }
    journal_close(journal);
    free(text);
    lab_end(&lab);
}

static void labels_that_no_series_can_have_are_refused(void **state)
{
    (void)state;
    struct lab lab;
    lab_begin(&lab);
    struct journal *journal = lab_open(&lab, (struct journal_options){0});
    struct journal_batch *batch = journal_batch_new(journal);
    const struct label twice[] = {
        {STR("__name__"), STR("up")}, {STR("a"), STR("1")}, {STR("a"), STR("2")}};
    const struct label nameless[] = {{STR("a"), STR("1")}};
    const struct label not_utf8[] = {{STR("__name__"), STR("up")}, {STR("a"), STR("\xff")}};
    const struct label unwanted[] = {{STR("__name__"), STR("go_goroutines")}};
    const struct label empty[] = {{STR("__name__"), STR("up")}, {STR("a"), STR_NONE}};
    const struct label bare[] = {{STR("__name__"), STR("up")}};
    struct journal_key key = {7, 7};
    struct journal_series series, same;
    const char *why;
    journal_begin(batch);
    assert_false(journal_define(batch, key, twice, 3, &series, &why));
    assert_false(journal_define(batch, key, nameless, 1, &series, &why));
    assert_false(journal_define(batch, key, not_utf8, 2, &series, &why));
    journal_find(batch, &key, 1, &series);
    assert_int_equal(series.number, JOURNAL_UNKNOWN);
    assert_true(journal_define(batch, key, unwanted, 1, &series, &why));
    assert_int_equal(series.number, JOURNAL_UNWANTED);
    journal_find(batch, &key, 1, &series);
    assert_int_equal(series.number, JOURNAL_UNWANTED);
    /* An empty label is none: these are one series. */
    assert_true(journal_define(batch, (struct journal_key){8, 8}, empty, 2, &series, &why));
    assert_true(journal_define(batch, (struct journal_key){9, 9}, bare, 1, &same, &why));
    assert_int_equal(series.number, same.number);
    journal_batch_free(batch);
    journal_close(journal);
    lab_end(&lab);
}

static void two_processes_do_not_share_a_folder(void **state)
{
    (void)state;
    struct lab lab;
    struct error err;
    struct journal *other;
    lab_begin(&lab);
    struct journal *journal = lab_open(&lab, (struct journal_options){0});
    struct journal_options options = {.folder = lab.folder};
    assert_int_equal(journal_open(&options, &other, &err), ERR_LOCKED);
    assert_non_null(strstr(err.text, lab.folder));
    journal_close(journal);
    lab_end(&lab);
}

/* ---- what goes */

static struct journal_loss lost;
static void on_lost(void *context, const struct journal_loss *loss)
{
    (void)context;
    lost.segments += loss->segments;
    lost.samples += loss->samples;
    lost.times = loss->times;
}

/* A segment an hour, of 4 samples each. */
static void put_hours(struct journal *journal, int from, int to)
{
    struct journal_batch *batch = journal_batch_new(journal);
    for (int hour = from; hour < to; hour++) {
        lab_clock = LAB_T0 + hour * HOUR_MS;
        for (int i = 0; i < 4; i++)
            assert_int_equal(lab_put(batch, 0, 1, lab_clock + i * 1000, true), ERR_OK);
    }
    journal_batch_free(batch);
}

static void booked_time_goes_by_whole_segments(void **state)
{
    (void)state;
    struct lab lab;
    lab_begin(&lab);
    struct journal *journal = lab_open(&lab, (struct journal_options){.now = lab_now});
    put_hours(journal, 0, 5);
    journal_release(journal, LAB_T0 + 2 * HOUR_MS + 2000);
    struct lab_seen seen = lab_read(journal, TIME_MIN, TIME_MAX);
    assert_int_equal(seen.n, 3 * 4); /* hours 2, 3, 4: hour 2 has later samples */
    free(seen.samples);
    struct journal_stats stats;
    journal_stats(journal, &stats);
    assert_int_equal(stats.lost_segments, 0);
    assert_int_equal(stats.times.from, LAB_T0 + 2 * HOUR_MS);
    journal_close(journal);
    lab_end(&lab);
}

static void at_the_age_cap_the_oldest_time_is_lost_loudly(void **state)
{
    (void)state;
    struct lab lab;
    lab_begin(&lab);
    lost = (struct journal_loss){0};
    struct journal *journal = lab_open(
        &lab, (struct journal_options){.now = lab_now, .cap_age_ms = 3 * HOUR_MS, .lost = on_lost});
    put_hours(journal, 0, 6);
    journal_tend(journal);
    /* It is hour 5: what ended before hour 2 is too old. */
    assert_int_equal(lost.segments, 2);
    assert_int_equal(lost.samples, 8);
    assert_int_equal(lost.times.from, LAB_T0 + HOUR_MS);
    assert_int_equal(lost.times.to, LAB_T0 + HOUR_MS + 3000);
    struct journal_stats stats;
    journal_stats(journal, &stats);
    assert_int_equal(stats.lost_samples, 8);
    assert_int_equal(stats.lost.from, LAB_T0);
    assert_int_equal(stats.lost.to, LAB_T0 + HOUR_MS + 3000);
    journal_close(journal);
    lab_end(&lab);
}

static void at_the_size_cap_new_samples_still_come_in(void **state)
{
    (void)state;
    struct lab lab;
    lab_begin(&lab);
    lost = (struct journal_loss){0};
    struct journal *journal = lab_open(
        &lab, (struct journal_options){.now = lab_now, .cap_bytes = 6000, .lost = on_lost});
    put_hours(journal, 0, 40);
    journal_tend(journal);
    struct journal_stats stats;
    journal_stats(journal, &stats);
    assert_true(stats.bytes <= 6000 && stats.bytes > 2000);
    assert_true(lost.segments >= 30);
    assert_int_equal(stats.lost_segments, lost.segments);
    struct lab_seen seen = lab_read(journal, TIME_MIN, TIME_MAX);
    assert_int_equal(seen.n + lost.samples, 40 * 4);
    assert_true(lab_has(&seen, 0, LAB_T0 + 39 * HOUR_MS + 3000));
    free(seen.samples);
    journal_close(journal);
    lab_end(&lab);
}

/* ---- torn and damaged files */

struct written {
    char *bytes;
    size_t n;
    size_t end[64]; /* of the file, after each commit */
    unsigned commits;
};

/* A segment as it is when the process dies: not sealed. Commit i has series 0 to i % 4 at T0 + i s.
 */
static struct written write_unsealed(struct lab *lab, unsigned commits)
{
    struct written written = {.commits = commits};
    char path[200];
    struct journal *journal = lab_open(lab, (struct journal_options){0});
    struct journal_batch *batch = journal_batch_new(journal);
    for (unsigned i = 0; i < commits; i++) {
        assert_int_equal(lab_put(batch, 0, i % 4 + 1, LAB_T0 + i * 1000, true), ERR_OK);
        struct journal_stats stats;
        journal_stats(journal, &stats);
        written.end[i] = stats.bytes;
    }
    lab_segment(lab, path);
    written.bytes = lab_file(path, &written.n);
    assert_int_equal(written.n, written.end[commits - 1]);
    journal_batch_free(batch);
    journal_close(journal);
    return written;
}

/* The samples of commit i are all there? */
static unsigned seen_of(const struct lab_seen *seen, unsigned i)
{
    unsigned n = 0;
    for (unsigned s = 0; s < i % 4 + 1; s++)
        n += lab_has(seen, s, LAB_T0 + i * 1000);
    return n;
}

static void a_file_that_is_cut_anywhere_keeps_what_was_whole(void **state)
{
    (void)state;
    struct lab lab;
    lab_begin(&lab);
    struct written written = write_unsealed(&lab, 12);
    char path[200];
    lab_segment(&lab, path);
    for (size_t cut = 0; cut <= written.n; cut++) {
        lab_write(path, written.bytes, cut);
        struct journal *journal = lab_open(&lab, (struct journal_options){0});
        struct lab_seen seen = lab_read(journal, TIME_MIN, TIME_MAX);
        struct journal_stats stats;
        journal_stats(journal, &stats);
        size_t expected = 0, whole = 0;
        for (unsigned i = 0; i < written.commits && written.end[i] <= cut; i++) {
            assert_int_equal(seen_of(&seen, i), i % 4 + 1);
            expected += i % 4 + 1;
            whole = written.end[i];
        }
        assert_int_equal(seen.n, expected);
        assert_int_equal(stats.damaged_frames, 0);
        /* A definition that was whole stays, so that not all behind the last commit is cut. */
        assert_true(stats.cut_bytes <= cut - whole);
        /* And it goes on. */
        struct journal_batch *batch = journal_batch_new(journal);
        assert_int_equal(lab_put(batch, 0, 1, LAB_T0 + 100000, true), ERR_OK);
        journal_batch_free(batch);
        free(seen.samples);
        journal_close(journal);
        lab_remove(lab.folder);
        assert_int_equal(mkdir(lab.folder, 0700), 0);
    }
    free(written.bytes);
    lab_end(&lab);
}

/* One byte of an unsealed or a sealed file is wrong: at most the commit that it stands in is lost,
 * and those whose series it named; it is counted, and what is read is never wrong. */
static void damage_costs_what_it_hits(void **state)
{
    (void)state;
    struct random random = random_new();
    struct lab lab;
    lab_begin(&lab);
    struct written written = write_unsealed(&lab, 40);
    char path[200];
    size_t sealed_n;
    lab_segment(&lab, path);
    char *sealed = lab_file(path, &sealed_n);
    for (int round = 0; round < 1500; round++) {
        bool whole = round % 2;
        size_t n = whole ? sealed_n : written.n;
        size_t at = (size_t)random_below(&random, (int64_t)n);
        char *copy = memcpy(malloc(n), whole ? sealed : written.bytes, n);
        copy[at] = (char)(copy[at] ^ (1 << random_below(&random, 8)));
        lab_write(path, copy, n);
        free(copy);
        struct journal *journal = lab_open(&lab, (struct journal_options){0});
        struct lab_seen seen = lab_read(journal, TIME_MIN, TIME_MAX);
        struct journal_stats stats;
        journal_stats(journal, &stats);
        unsigned lost_commits = 0, hit = 0;
        while (hit < written.commits && written.end[hit] <= at)
            hit++;
        for (unsigned i = 0; i < written.commits; i++)
            lost_commits += seen_of(&seen, i) < i % 4 + 1;
        if (lost_commits > 1) /* the frame that named series 0, 1, 2 or 3 */
            assert_true(hit < 4);
        if (lost_commits == 1 && hit < written.commits)
            assert_true(hit < 4 || seen_of(&seen, hit) < hit % 4 + 1);
        bool told = stats.damaged_frames || stats.cut_bytes || seen.stats.damaged_frames ||
                    seen.stats.nameless_samples;
        assert_true(lost_commits == 0 || told);
        free(seen.samples);
        journal_close(journal);
        lab_remove(lab.folder);
        assert_int_equal(mkdir(lab.folder, 0700), 0);
    }
    free(sealed);
    free(written.bytes);
    lab_end(&lab);
}

static void noise_is_no_segment(void **state)
{
    (void)state;
    struct random random = random_new();
    struct lab lab;
    char path[200], noise[5000];
    for (int round = 0; round < 50; round++) {
        lab_begin(&lab);
        for (size_t i = 0; i < sizeof noise; i++)
            noise[i] = (char)random_next(&random);
        snprintf(path, sizeof path, "%s/%016x.journal", lab.folder, round + 1);
        lab_write(path, noise, (size_t)random_below(&random, sizeof noise));
        struct journal *journal = lab_open(&lab, (struct journal_options){0});
        struct lab_seen seen = lab_read(journal, TIME_MIN, TIME_MAX);
        assert_int_equal(seen.n, 0);
        struct journal_batch *batch = journal_batch_new(journal);
        assert_int_equal(lab_put(batch, 0, 1, LAB_T0, true), ERR_OK);
        journal_batch_free(batch);
        journal_close(journal);
        lab_end(&lab);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_committed_is_there_after_opening_again),
        cmocka_unit_test(a_range_gives_what_is_in_it_and_both_ends),
        cmocka_unit_test(records_are_read_over_their_own_range),
        cmocka_unit_test(what_is_not_synced_is_not_read_yet),
        cmocka_unit_test(a_new_segment_names_its_series_anew),
        cmocka_unit_test(a_series_is_defined_by_whoever_commits_first),
        cmocka_unit_test(more_definitions_than_a_frame_holds_are_read),
        cmocka_unit_test(labels_that_no_series_can_have_are_refused),
        cmocka_unit_test(two_processes_do_not_share_a_folder),
        cmocka_unit_test(booked_time_goes_by_whole_segments),
        cmocka_unit_test(at_the_age_cap_the_oldest_time_is_lost_loudly),
        cmocka_unit_test(at_the_size_cap_new_samples_still_come_in),
        cmocka_unit_test(a_file_that_is_cut_anywhere_keeps_what_was_whole),
        cmocka_unit_test(damage_costs_what_it_hits),
        cmocka_unit_test(noise_is_no_segment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
