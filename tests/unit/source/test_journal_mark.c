/* What came after a booking: marks of the journal, over syncs, segments, restarts and crashes. */
#include "../../lib/journal_lab.h"

#define MINUTE ((time_ms)60000)

static char *mark_of(struct journal *journal)
{
    static struct strbuf text;
    strbuf_clear(&text);
    journal_mark(journal, &text);
    return str_dup(strbuf_str(&text));
}

static time_ms since(struct journal *journal, const char *mark)
{
    return journal_oldest_since(journal, str_of(mark));
}

static time_ms now;
static time_ms at_now(void *context)
{
    (void)context;
    return now;
}

static struct journal *open_at(const struct lab *lab, time_ms t)
{
    now = t;
    return lab_open(lab, (struct journal_options){.now = at_now, .segment_ms = HOUR_MS});
}

static void put(struct journal *journal, time_ms t, bool sync)
{
    struct journal_batch *batch = journal_batch_new(journal);
    assert_int_equal(lab_put(batch, 0, 2, t, sync), ERR_OK);
    journal_batch_free(batch);
}

static void what_came_after_a_mark_is_told_by_its_oldest_stamp(void **state)
{
    (void)state;
    struct lab lab;
    lab_begin(&lab);
    struct journal *journal = open_at(&lab, LAB_T0);
    char *empty = mark_of(journal);
    assert_int_equal(since(journal, empty), TIME_MAX);
    put(journal, LAB_T0, true);
    put(journal, LAB_T0 + MINUTE, true);
    assert_int_equal(since(journal, empty), LAB_T0);
    assert_int_equal(since(journal, ""), LAB_T0);
    char *mark = mark_of(journal);
    assert_int_equal(since(journal, mark), TIME_MAX);
    put(journal, LAB_T0 + 2 * MINUTE, true);
    assert_int_equal(since(journal, mark), LAB_T0 + 2 * MINUTE);
    put(journal, LAB_T0 - HOUR_MS, true); /* late */
    assert_int_equal(since(journal, mark), LAB_T0 - HOUR_MS);
    char *later = mark_of(journal);
    assert_int_equal(since(journal, later), TIME_MAX);
    free(empty);
    free(mark);
    free(later);
    journal_close(journal);
    lab_end(&lab);
}

/* What no reader sees yet is not behind anybody. */
static void what_is_not_synced_comes_after_the_mark(void **state)
{
    (void)state;
    struct lab lab;
    lab_begin(&lab);
    struct journal *journal = open_at(&lab, LAB_T0);
    put(journal, LAB_T0, true);
    put(journal, LAB_T0 - HOUR_MS, false);
    char *mark = mark_of(journal);
    assert_int_equal(since(journal, mark), TIME_MAX);
    assert_int_equal(journal_sync(journal, NULL), ERR_OK);
    assert_int_equal(since(journal, mark), LAB_T0 - HOUR_MS);
    free(mark);
    journal_close(journal);
    lab_end(&lab);
}

/* A segment that is still being written when the next has begun keeps the mark before both. */
static void a_batch_that_takes_long_comes_after_the_mark(void **state)
{
    (void)state;
    struct lab lab;
    lab_begin(&lab);
    struct journal *journal = open_at(&lab, LAB_T0);
    put(journal, LAB_T0, true);
    struct journal_batch *slow = journal_batch_new(journal);
    time_ms t = LAB_T0 - HOUR_MS;
    double v = lab_value(1, t);
    journal_begin(slow);
    journal_add(slow, lab_series(slow, 1, false), &t, &v, 1);
    now += 2 * HOUR_MS; /* the next batch begins a segment */
    put(journal, LAB_T0 + 2 * HOUR_MS, true);
    char *mark = mark_of(journal);
    assert_int_equal(journal_commit(slow, true, NULL), ERR_OK);
    assert_int_equal(since(journal, mark), LAB_T0 - HOUR_MS);
    journal_batch_free(slow);
    char *after = mark_of(journal);
    assert_int_equal(since(journal, after), TIME_MAX);
    free(mark);
    free(after);
    journal_close(journal);
    lab_end(&lab);
}

static void a_mark_holds_over_segments_and_restarts(void **state)
{
    (void)state;
    struct lab lab;
    lab_begin(&lab);
    struct journal *journal = open_at(&lab, LAB_T0);
    put(journal, LAB_T0, true);
    char *mark = mark_of(journal);
    put(journal, LAB_T0 + MINUTE, true);
    journal_close(journal);
    journal = open_at(&lab, LAB_T0 + HOUR_MS);
    assert_int_equal(since(journal, mark), LAB_T0 + MINUTE); /* from the index of a sealed file */
    put(journal, LAB_T0 - MINUTE, true);
    assert_int_equal(since(journal, mark), LAB_T0 - MINUTE);
    free(mark);
    mark = mark_of(journal);
    journal_close(journal);
    journal = open_at(&lab, LAB_T0 + 2 * HOUR_MS);
    assert_int_equal(since(journal, mark), TIME_MAX);
    put(journal, LAB_T0 + HOUR_MS, true);
    journal_release(journal, LAB_T0 + HOUR_MS); /* the marked one goes */
    assert_int_equal(since(journal, mark), LAB_T0 + HOUR_MS);
    free(mark);
    journal_close(journal);
    lab_end(&lab);
}

static void a_mark_of_another_folder_covers_nothing(void **state)
{
    (void)state;
    static const char *const no_marks[] = {"",
                                           "1",
                                           "1:",
                                           "1:2",
                                           "1:2:",
                                           "::",
                                           "x:2:3",
                                           "1:2:3:4",
                                           " 1:2:3",
                                           "1:2:3 ",
                                           "-1:2",
                                           "1:2:-3",
                                           "11111111111111111:2:3"};
    struct lab lab, other;
    lab_begin(&lab);
    lab_begin(&other);
    struct journal *journal = open_at(&lab, LAB_T0);
    put(journal, LAB_T0, true);
    for (size_t i = 0; i < sizeof no_marks / sizeof *no_marks; i++)
        assert_int_equal(since(journal, no_marks[i]), LAB_T0);
    struct journal *before = open_at(&other, LAB_T0);
    for (int i = 0; i < 3; i++) {
        put(before, LAB_T0, true);
        char *mark = mark_of(before); /* 1, 2, 3 */
        assert_int_equal(since(journal, mark), LAB_T0);
        free(mark);
        now += HOUR_MS;
    }
    journal_close(before);
    journal_close(journal);
    lab_end(&lab);
    lab_end(&other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_came_after_a_mark_is_told_by_its_oldest_stamp),
        cmocka_unit_test(what_is_not_synced_comes_after_the_mark),
        cmocka_unit_test(a_batch_that_takes_long_comes_after_the_mark),
        cmocka_unit_test(a_mark_holds_over_segments_and_restarts),
        cmocka_unit_test(a_mark_of_another_folder_covers_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
