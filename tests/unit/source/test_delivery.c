/* What reaches the intake of decoded samples and chunks, and who was heard of when. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../../lib/recording_intake.h"
#include "source/delivery.h"

static struct tally tally;
static struct delivery *delivery;

static int set_up(void **state)
{
    (void)state;
    recorder_clear();
    recorder_want("m", "", METRIC_GROUP_GPU);
    tally = (struct tally){0};
    delivery = delivery_new(RECORDER, &tally);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    delivery_free(delivery);
    recorder_clear();
    return 0;
}

static bool name(const char *metric, const char *instance)
{
    struct label labels[2] = {{STR("__name__"), str_of(metric)},
                              {STR("instance"), str_of(instance)}};
    return delivery_series(delivery, labels, 2);
}

/* Equal values at equal distances: after the second sample every bit is 0. */
static struct str chunk(time_ms first, int count, time_ms step, char *out)
{
    size_t n = 0;
    out[n++] = (char)(count >> 8);
    out[n++] = (char)count;
    for (uint64_t v = (uint64_t)first << 1;; v >>= 7) {
        out[n++] = (char)((v & 127) | (v > 127 ? 128 : 0));
        if (v <= 127)
            break;
    }
    memcpy(out + n, "\x40\x24\0\0\0\0\0\0", 8); /* 10.0 */
    n += 8;
    for (uint64_t v = (uint64_t)step;; v >>= 7) {
        out[n++] = (char)((v & 127) | (v > 127 ? 128 : 0));
        if (v <= 127)
            break;
    }
    memset(out + n, 0, (size_t)count / 4 + 1);
    return (struct str){out, n + (size_t)count / 4 + 1};
}

static void series_that_nobody_wants_are_not_decoded(void **state)
{
    (void)state;
    assert_false(name("other", "a"));
    assert_true(name("m", "a"));
    assert_int_equal(tally.series, 1);
}

static void chunks_of_a_series_are_handed_on_together(void **state)
{
    (void)state;
    char bytes[200];
    assert_true(name("m", "a"));
    for (int i = 0; i < 10; i++)
        assert_int_equal(delivery_chunk(delivery, chunk(1000 + i * 120 * 30, 120, 30, bytes), NULL),
                         ERR_OK);
    delivery_flush(delivery);
    recorder_settle();
    assert_int_equal(recorder.calls, 1);
    assert_int_equal(recorder.series[0]->n, 1200);
    assert_int_equal(recorder.series[0]->samples[1199].t, 1000 + 1199 * 30);
    assert_true(recorder.series[0]->samples[700].v == 10.0);
    assert_int_equal(delivery_count(delivery), 1200);
}

static void samples_outside_of_the_range_are_cut(void **state)
{
    (void)state;
    char bytes[200];
    delivery_range(delivery, 1030, 1090);
    assert_true(name("m", "a"));
    assert_int_equal(delivery_chunk(delivery, chunk(1000, 120, 30, bytes), NULL), ERR_OK);
    delivery_flush(delivery);
    recorder_settle();
    assert_int_equal(recorder.series[0]->n, 3);
    assert_int_equal(recorder.series[0]->samples[0].t, 1030);
    assert_int_equal(recorder.series[0]->samples[2].t, 1090);
}

static void chunks_that_overlap_come_in_calls_of_their_own(void **state)
{
    (void)state;
    char bytes[200];
    assert_true(name("m", "a"));
    assert_int_equal(delivery_chunk(delivery, chunk(1000, 100, 30, bytes), NULL), ERR_OK);
    assert_int_equal(delivery_chunk(delivery, chunk(2500, 100, 30, bytes), NULL), ERR_OK);
    delivery_flush(delivery);
    recorder_settle();
    assert_int_equal(recorder.broken_promises, 0);
    assert_int_equal(recorder.calls, 2);
    assert_int_equal(recorder.series[0]->n, 150);
}

static void a_broken_chunk_gives_what_stands_before_the_break(void **state)
{
    (void)state;
    char bytes[200];
    assert_true(name("m", "a"));
    struct str cut = chunk(1000, 120, 30, bytes);
    cut.n -= 20;
    assert_int_equal(delivery_chunk(delivery, cut, NULL), ERR_PARSE);
    delivery_flush(delivery);
    recorder_settle();
    assert_true(recorder.series[0]->n >= 2 && recorder.series[0]->n < 120);
}

static void long_series_are_handed_on_in_parts(void **state)
{
    (void)state;
    enum { MANY = 200000 };
    time_ms *t = mem_alloc(MANY * sizeof *t);
    double *v = mem_alloc(MANY * sizeof *v);
    for (int i = 0; i < MANY; i++) {
        t[i] = i;
        v[i] = i;
    }
    assert_true(name("m", "a"));
    delivery_samples(delivery, t, v, MANY);
    delivery_flush(delivery);
    recorder_settle();
    assert_int_equal(recorder.series[0]->n, MANY);
    assert_true(recorder.calls < 100);
    assert_int_equal(recorder.broken_promises, 0);
    free(t);
    free(v);
}

static const struct span hours = {1000, 2000};

static void hear(struct seen *seen, const char *instance, time_ms first, time_ms last)
{
    time_ms t[2] = {first, last};
    double v[2] = {1, 1};
    delivery_watch(delivery, &seen, 1);
    assert_true(name("m", instance));
    delivery_samples(delivery, t, v, 2);
    delivery_flush(delivery);
}

static void whoever_was_not_heard_after_the_hours_is_silent_after(void **state)
{
    (void)state;
    struct seen *seen = seen_new(STR("instance"));
    struct strbuf regex = {0};
    hear(seen, "10.0.0.1:80", 900, 2100);
    hear(seen, "b", 900, 2000);
    hear(seen, "c|d", 900, 1500);
    struct silence silence = seen_silent(seen, hours, 0);
    assert_int_equal(silence.after, 2);
    assert_int_equal(silence.before, 0); /* nobody was known before */
    seen_silent_after_regex(seen, hours, 0, &regex);
    assert_string_equal(regex.text, "b|c\\|d");
    strbuf_release(&regex);
    seen_free(seen);
}

static void whoever_is_known_and_starts_late_was_silent_before(void **state)
{
    (void)state;
    struct seen *seen = seen_new(STR("instance"));
    hear(seen, "a", 100, 200);
    hear(seen, "b", 100, 200);
    seen_begin(seen);
    hear(seen, "a", 900, 2100);
    hear(seen, "b", 1200, 2100);
    hear(seen, "new", 1200, 2100);
    struct silence silence = seen_silent(seen, hours, 0);
    assert_int_equal(silence.before, 1);
    assert_int_equal(silence.after, 0);
    seen_free(seen);
}

static void whoever_is_not_heard_at_all_counts_until_gone_for_good(void **state)
{
    (void)state;
    struct seen *seen = seen_new(STR("instance"));
    hear(seen, "a", 100, 200);
    seen_begin(seen);
    assert_int_equal(seen_silent(seen, hours, 150).before, 1);
    assert_int_equal(seen_silent(seen, hours, 150).after, 1);
    assert_int_equal(seen_silent(seen, hours, 201).before, 0);
    assert_int_equal(seen_silent(seen, hours, 201).after, 0);
    seen_free(seen);
}

static void thousands_are_told_apart(void **state)
{
    (void)state;
    struct seen *seen = seen_new(STR("instance"));
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < 5000; i++) {
            char text[16];
            snprintf(text, sizeof text, "i%d", i);
            struct label label = {STR("instance"), str_of(text)};
            assert_int_equal(seen_place(seen, &label, 1), i);
        }
    seen_free(seen);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)
int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(series_that_nobody_wants_are_not_decoded),
        TEST(chunks_of_a_series_are_handed_on_together),
        TEST(samples_outside_of_the_range_are_cut),
        TEST(chunks_that_overlap_come_in_calls_of_their_own),
        TEST(a_broken_chunk_gives_what_stands_before_the_break),
        TEST(long_series_are_handed_on_in_parts),
        TEST(whoever_was_not_heard_after_the_hours_is_silent_after),
        TEST(whoever_is_known_and_starts_late_was_silent_before),
        TEST(whoever_is_not_heard_at_all_counts_until_gone_for_good),
        TEST(thousands_are_told_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
