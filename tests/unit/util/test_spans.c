#include "../../lib/unit.h"
#include "util/spans.h"

static void assert_spans(const struct spans *spans, const struct span *expected, size_t n)
{
    assert_int_equal(spans->n, n);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(spans->at[i].from, expected[i].from);
        assert_int_equal(spans->at[i].to, expected[i].to);
    }
}
#define SPANS(...)                                                                                 \
    (struct span[]){__VA_ARGS__}, sizeof((struct span[]){__VA_ARGS__}) / sizeof(struct span)

static void empty_ranges_are_dropped_and_touching_ones_joined(void **state)
{
    (void)state;
    struct spans spans = {0};
    spans_push(&spans, 5, 5);
    spans_push(&spans, 6, 5);
    assert_int_equal(spans.n, 0);
    spans_push(&spans, 0, 10);
    spans_push(&spans, 10, 20);
    spans_push(&spans, 21, 30);
    assert_spans(&spans, SPANS({0, 20}, {21, 30}));
    spans_release(&spans);
}

static void normal_ranges_are_sorted_and_disjoint(void **state)
{
    (void)state;
    struct spans spans = {0};
    spans_push(&spans, 50, 60);
    spans_push(&spans, 0, 10);
    spans_push(&spans, 5, 7);
    spans_push(&spans, 60, 61);
    spans_push(&spans, 9, 12);
    spans_normalise(&spans);
    assert_spans(&spans, SPANS({0, 12}, {50, 61}));
    spans_release(&spans);
}

static void ends_are_outside(void **state)
{
    (void)state;
    struct spans spans = {0};
    spans_push(&spans, 10, 20);
    spans_push(&spans, 30, 40);
    assert_false(spans_hold(&spans, 9));
    assert_true(spans_hold(&spans, 10));
    assert_true(spans_hold(&spans, 19));
    assert_false(spans_hold(&spans, 20));
    assert_false(spans_hold(&spans, 40));
    assert_int_equal(spans_after(&spans, 0), 0);
    assert_int_equal(spans_after(&spans, 19), 0);
    assert_int_equal(spans_after(&spans, 20), 1);
    assert_int_equal(spans_after(&spans, 40), 2);
    spans_release(&spans);
    assert_false(spans_hold(&spans, 0));
}

static void what_is_taken_away_leaves_the_rest(void **state)
{
    (void)state;
    struct spans less = {0}, out = {0};
    spans_push(&less, 10, 20);
    spans_push(&less, 30, 40);
    spans_without((struct span){0, 50}, &less, &out);
    assert_spans(&out, SPANS({0, 10}, {20, 30}, {40, 50}));
    out.n = 0;
    spans_without((struct span){12, 18}, &less, &out);
    assert_int_equal(out.n, 0);
    spans_without((struct span){15, 35}, &less, &out);
    assert_spans(&out, SPANS({20, 30}));
    out.n = 0;
    spans_without((struct span){TIME_MIN, TIME_MAX}, &less, &out);
    assert_spans(&out, SPANS({TIME_MIN, 10}, {20, 30}, {40, TIME_MAX}));
    spans_release(&less);
    spans_release(&out);
}

/* Against a plain array of instants. */
static void random_ranges_hold_the_instants_that_were_put(void **state)
{
    (void)state;
    struct random random = random_new();
    for (int round = 0; round < 500; round++) {
        bool in[100] = {false};
        struct spans spans = {0}, rest = {0};
        for (int64_t i = random_below(&random, 20); i > 0; i--) {
            int64_t from = random_below(&random, 100), to = random_below(&random, 101);
            spans_push(&spans, from, to);
            for (int64_t t = from; t < to; t++)
                in[t] = true;
        }
        spans_normalise(&spans);
        spans_without((struct span){0, 100}, &spans, &rest);
        for (int64_t t = 0; t < 100; t++) {
            assert_int_equal(spans_hold(&spans, t), in[t]);
            assert_int_equal(spans_hold(&rest, t), !in[t]);
        }
        for (size_t i = 1; i < spans.n; i++)
            assert_true(spans.at[i - 1].to < spans.at[i].from);
        spans_release(&spans);
        spans_release(&rest);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(empty_ranges_are_dropped_and_touching_ones_joined),
        cmocka_unit_test(normal_ranges_are_sorted_and_disjoint),
        cmocka_unit_test(ends_are_outside),
        cmocka_unit_test(what_is_taken_away_leaves_the_rest),
        cmocka_unit_test(random_ranges_hold_the_instants_that_were_put),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
