/* Records as runs of equal values at equal distances. */
#include "../../lib/unit.h"
#include "fleet/intake_data.h"

struct sample {
    time_ms t;
    double v;
};

static void add_many(struct record *record, const struct sample *samples, size_t n)
{
    for (size_t i = 0; i < n; i++)
        record_add(record, samples[i].t, samples[i].v);
    record_settle(record);
}
#define ADD(record, ...)                                                                           \
    add_many(record, (const struct sample[]){__VA_ARGS__},                                         \
             sizeof((const struct sample[]){__VA_ARGS__}) / sizeof(struct sample))

static void a_day_of_the_same_is_one_run(void **state)
{
    (void)state;
    struct record record = {0};
    for (int i = 0; i < 2880; i++)
        record_add(&record, i * 30000, 1);
    assert_int_equal(record.n, 1);
    assert_int_equal(record.runs[0].n, 2880);
    assert_int_equal(record_first(&record), 0);
    assert_int_equal(record_last(&record), 2879 * 30000);
    assert_true(record_value(&record) == 1);
    free(record.runs);
}

static void another_value_or_distance_begins_a_run(void **state)
{
    (void)state;
    struct record record = {0};
    ADD(&record, {0, 1}, {30, 1}, {60, 0}, {90, 0}, {150, 0}, {210, 0});
    assert_int_equal(record.n, 3);
    assert_int_equal(record.runs[0].n, 2);
    assert_int_equal(record.runs[1].n, 2);
    assert_int_equal(record.runs[1].t0, 60);
    assert_int_equal(record.runs[2].t0, 150);
    assert_int_equal(record.runs[2].dt, 60);
    free(record.runs);
}

static void a_sample_that_comes_twice_counts_once(void **state)
{
    (void)state;
    struct record record = {0};
    ADD(&record, {0, 1}, {30, 1}, {30, 1}, {60, 1});
    assert_int_equal(record.n, 1);
    assert_int_equal(record.runs[0].n, 3);
    free(record.runs);
}

static void samples_that_reach_back_are_put_in_order(void **state)
{
    (void)state;
    struct record record = {0};
    ADD(&record, {60, 1}, {90, 1}, {0, 1}, {30, 1}, {60, 2}, {120, 1});
    assert_int_equal(record.n, 1);
    assert_int_equal(record.runs[0].t0, 0);
    assert_int_equal(record.runs[0].n, 5);
    assert_false(record.unsorted);
    free(record.runs);
}

static void a_label_that_is_not_there_is_none(void **state)
{
    (void)state;
    struct pair labels[] = {{5, 6}, {7, 8}};
    struct record record = {.labels = labels, .labels_n = 2};
    assert_int_equal(record_label(&record, 7), 8);
    assert_int_equal(record_label(&record, 6), NAME_NONE);
}

static int by_stamp(const void *a, const void *b)
{
    const struct sample *x = a, *y = b;
    return (x->t > y->t) - (x->t < y->t);
}

/* Shuffled or not, the runs give back the samples. */
static void runs_give_back_the_samples_in_order(void **state)
{
    (void)state;
    struct random random = random_new();
    for (int round = 0; round < 300; round++) {
        struct sample samples[100];
        size_t n = 0;
        for (int i = 0; i < 100; i++)
            if (random_below(&random, 3))
                samples[n++] = (struct sample){i * 10 + (random_below(&random, 9) == 0),
                                               (double)random_below(&random, 2)};
        struct record record = {0};
        if (round % 2)
            for (size_t i = n; i > 1; i--) {
                size_t k = (size_t)random_below(&random, (int64_t)i);
                struct sample swap = samples[i - 1];
                samples[i - 1] = samples[k];
                samples[k] = swap;
            }
        add_many(&record, samples, n);
        qsort(samples, n, sizeof *samples, by_stamp);
        size_t at = 0;
        for (size_t i = 0; i < record.n; i++)
            for (uint32_t k = 0; k < record.runs[i].n; k++, at++) {
                assert_true(at < n);
                assert_int_equal(record.runs[i].t0 + record.runs[i].dt * (time_ms)k, samples[at].t);
                assert_true(record.runs[i].v == samples[at].v);
            }
        assert_int_equal(at, n);
        free(record.runs);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_day_of_the_same_is_one_run),
        cmocka_unit_test(another_value_or_distance_begins_a_run),
        cmocka_unit_test(a_sample_that_comes_twice_counts_once),
        cmocka_unit_test(samples_that_reach_back_are_put_in_order),
        cmocka_unit_test(a_label_that_is_not_there_is_none),
        cmocka_unit_test(runs_give_back_the_samples_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
