/* The run of collecting: what is read and booked, in which pieces. */
#include "fixture.h"

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
        TEST(any_cut_gives_the_same_hours),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
