/* The balance alone, with tallies made by hand: also with denominators that no common one fits,
 * which no fleet of today brings. (semantics, section 7: Balance) */
#include <string.h>

#include "../../lib/unit.h"
#include "ledger/balance.h"
#include "util/error.h"

#define HOUR_UNITS (HOUR_MS * INT64_C(1000000000))

static void add_units(struct tally *tally, int64_t price, int64_t den, struct frac share,
                      enum category category, int64_t units)
{
    tally_money(tally, price, den, share)->units[category] += units;
}

static money_t closed(struct tally *tallies, size_t n, const struct node_cost *costs,
                      size_t costs_n)
{
    struct tally *list[64];
    for (size_t i = 0; i < n; i++)
        list[i] = &tallies[i];
    money_t total = balance_hour(list, n, costs, costs_n), sum = 0;
    for (size_t i = 0; i < n; i++) {
        money_t parts = 0;
        for (int c = 0; c < CATEGORY_COUNT; c++) {
            assert_true(tallies[i].row.category[c] >= 0);
            parts += tallies[i].row.category[c];
        }
        assert_int_equal(parts, tallies[i].row.cost);
        sum += parts;
    }
    assert_int_equal(sum, total);
    return total;
}

static void release(struct tally *tallies, size_t n)
{
    for (size_t i = 0; i < n; i++)
        tally_release(&tallies[i]);
}

static void three_thirds_of_ten_nano_are_four_three_and_three(void **state)
{
    (void)state;
    struct tally tallies[3] = {0};
    for (int i = 0; i < 3; i++)
        add_units(&tallies[i], 10, 1, (struct frac){1, 3}, CATEGORY_EMPTY, HOUR_UNITS);
    struct node_cost cost = {10, 1, HOUR_MS};
    assert_int_equal(closed(tallies, 3, &cost, 1), 10);
    assert_int_equal(tallies[0].row.cost, 4);
    assert_int_equal(tallies[1].row.cost, 3);
    assert_int_equal(tallies[2].row.cost, 3);
    release(tallies, 3);
}

static void categories_of_a_row_share_its_cost_and_used_goes_first_on_ties(void **state)
{
    (void)state;
    struct tally tally = {0};
    add_units(&tally, 3, 1, FRAC_ONE, CATEGORY_USED, HOUR_UNITS / 2);
    add_units(&tally, 3, 1, FRAC_ONE, CATEGORY_SLACK, HOUR_UNITS / 2); /* 1.5 and 1.5 */
    struct node_cost cost = {3, 1, HOUR_MS};
    assert_int_equal(closed(&tally, 1, &cost, 1), 3);
    assert_int_equal(tally.row.category[CATEGORY_USED], 2);
    assert_int_equal(tally.row.category[CATEGORY_SLACK], 1);
    release(&tally, 1);
}

static void a_node_hour_is_rounded_once_half_up(void **state)
{
    (void)state;
    struct tally tally = {0};
    add_units(&tally, 1, 1, FRAC_ONE, CATEGORY_EMPTY, HOUR_UNITS / 2);
    struct node_cost cost = {1, 1, HOUR_MS / 2}; /* half a nano */
    assert_int_equal(closed(&tally, 1, &cost, 1), 1);
    release(&tally, 1);
}

static void a_price_that_changes_in_the_hour_counts_for_its_own_time(void **state)
{
    (void)state;
    struct tally tally = {0};
    add_units(&tally, 3600000000, 1, FRAC_ONE, CATEGORY_USED, HOUR_UNITS / 4);
    add_units(&tally, 7200000001, 2, FRAC_ONE, CATEGORY_USED, 3 * HOUR_UNITS / 4);
    struct node_cost costs[] = {{3600000000, 1, HOUR_MS / 4}, {7200000001, 2, 3 * HOUR_MS / 4}};
    /* 900,000,000 + 2,700,000,000.375 */
    assert_int_equal(closed(&tally, 1, costs, 2), 3600000000);
    release(&tally, 1);
}

static void an_unpriced_hour_balances_at_nothing(void **state)
{
    (void)state;
    struct tally tallies[2] = {0};
    for (int i = 0; i < 2; i++)
        add_units(&tallies[i], 0, 1, (struct frac){1, 2}, CATEGORY_USED, HOUR_UNITS);
    struct node_cost cost = {0, 1, HOUR_MS};
    assert_int_equal(closed(tallies, 2, &cost, 1), 0);
    release(tallies, 2);
}

/* Primes as denominators: their product is beyond any integer. */
static void denominators_that_no_common_one_fits_still_balance(void **state)
{
    (void)state;
    static const int64_t primes[] = {9973, 9967, 9949, 9941, 9931, 9929, 9923, 9907, 9901, 9887};
    struct tally tallies[20] = {0};
    const int64_t price = 98765432101;
    for (int i = 0; i < 10; i++) {
        struct frac part = {1, primes[i] * 10}, rest = {primes[i] - 1, primes[i] * 10};
        add_units(&tallies[2 * i], price, 1, part, CATEGORY_USED, HOUR_UNITS / 3);
        add_units(&tallies[2 * i], price, 1, part, CATEGORY_SLACK, HOUR_UNITS - HOUR_UNITS / 3);
        add_units(&tallies[2 * i + 1], price, 1, rest, CATEGORY_STRANDED, HOUR_UNITS);
    }
    struct node_cost cost = {price, 1, HOUR_MS};
    money_t total = closed(tallies, 20, &cost, 1);
    assert_in_range(total, price - 10000, price); /* within 1e-3 of a cent */
    for (int i = 0; i < 10; i++) {
        int64_t ideal = price / (primes[i] * 10);
        assert_in_range(tallies[2 * i].row.cost, ideal - 1000, ideal + 1000);
    }
    release(tallies, 20);
}

static void the_dearest_node_does_not_overflow(void **state)
{
    (void)state;
    struct tally tallies[2] = {0};
    for (int i = 0; i < 2; i++)
        add_units(&tallies[i], INT64_MAX, 1, (struct frac){1, 2}, CATEGORY_USED, HOUR_UNITS);
    struct node_cost cost = {INT64_MAX, 1, HOUR_MS};
    assert_true(closed(tallies, 2, &cost, 1) > INT64_MAX / 2);
    release(tallies, 2);
}

/* Random shares of random prices: every part within one nano of its ideal. */
static void random_hours_balance_and_each_row_is_within_one_of_its_ideal(void **state)
{
    (void)state;
    struct random random = random_new();
    for (int round = 0; round < 500; round++) {
        struct tally tallies[24] = {0};
        int64_t gpus = random_below(&random, 8) + 1, price = random_below(&random, 100000000000);
        int64_t ms = random_below(&random, HOUR_MS) + 1;
        size_t n = 0;
        for (int64_t g = 0; g < gpus; g++) {
            int64_t parts = random_below(&random, 3) + 1;
            for (int64_t k = 0; k < parts; k++) {
                int64_t units = random_below(&random, ms * INT64_C(1000000000));
                struct frac share = frac_of(1, parts * gpus);
                add_units(&tallies[n], price, 1, share, CATEGORY_USED, units);
                add_units(&tallies[n], price, 1, share, CATEGORY_SLACK,
                          ms * INT64_C(1000000000) - units);
                n++;
            }
        }
        struct node_cost cost = {price, 1, ms};
        wide_t whole = (wide_t)price * ms;
        assert_int_equal(closed(tallies, n, &cost, 1), money_round(whole, HOUR_MS));
        for (size_t i = 0; i < n; i++) {
            struct frac share = tallies[i].money[0].share;
            int64_t ideal = (int64_t)(whole * share.num / ((wide_t)share.den * HOUR_MS));
            assert_in_range(tallies[i].row.cost, ideal, ideal + 1);
        }
        release(tallies, n);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(three_thirds_of_ten_nano_are_four_three_and_three),
        cmocka_unit_test(categories_of_a_row_share_its_cost_and_used_goes_first_on_ties),
        cmocka_unit_test(a_node_hour_is_rounded_once_half_up),
        cmocka_unit_test(a_price_that_changes_in_the_hour_counts_for_its_own_time),
        cmocka_unit_test(an_unpriced_hour_balances_at_nothing),
        cmocka_unit_test(denominators_that_no_common_one_fits_still_balance),
        cmocka_unit_test(the_dearest_node_does_not_overflow),
        cmocka_unit_test(random_hours_balance_and_each_row_is_within_one_of_its_ideal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
