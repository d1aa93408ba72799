/* Samples that come late open closed hours again; a store that is lent is held for booking only. */
#include "fixture.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(late_samples_open_closed_hours_again),
        TEST(reopening_takes_effect_with_the_first_slice),
        TEST(the_mark_moves_with_what_is_booked),
        TEST(a_stopped_reopening_is_gone_on_with),
        TEST(a_lent_store_is_held_for_booking_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
