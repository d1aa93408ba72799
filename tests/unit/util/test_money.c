#include "../../lib/unit.h"
#include "util/error.h"
#include "util/money.h"

static money_t parsed(const char *text)
{
    money_t amount = -1;
    assert_true(money_parse(str_of(text), &amount));
    return amount;
}

static void decimal_text_becomes_nano_units(void **state)
{
    (void)state;
    assert_int_equal(parsed("98.32"), 98320000000);
    assert_int_equal(parsed("0"), 0);
    assert_int_equal(parsed(".5"), 500000000);
    assert_int_equal(parsed("3."), 3000000000);
    assert_int_equal(parsed("007"), 7000000000);
    assert_int_equal(parsed("0.000000001"), 1);
    assert_int_equal(parsed("1000000000"), MONEY_MAX);
}

static void the_tenth_place_rounds_half_away_from_zero(void **state)
{
    (void)state;
    assert_int_equal(parsed("0.0000000004"), 0);
    assert_int_equal(parsed("0.0000000005"), 1);
    assert_int_equal(parsed("0.00000000049999999999"), 0);
    assert_int_equal(parsed("0.9999999995"), 1000000000);
}

static void what_is_no_price_is_refused_and_the_output_left_alone(void **state)
{
    (void)state;
    static const char *const bad[] = {"",
                                      ".",
                                      "-1",
                                      "+1",
                                      "1,5",
                                      "4e1",
                                      "1.2.3",
                                      " 1",
                                      "1 ",
                                      "$1",
                                      "nan",
                                      "1000000000.000000001",
                                      "99999999999999999999999999999999999999999999999999"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        money_t amount = 77;
        assert_false(money_parse(str_of(bad[i]), &amount));
        assert_int_equal(amount, 77);
    }
}

static void amounts_are_written_with_nine_places(void **state)
{
    (void)state;
    char buf[MONEY_TEXT_MAX];
    assert_string_equal(money_format(0, buf), "0.000000000");
    assert_string_equal(money_format(16128000000000, buf), "16128.000000000");
    assert_string_equal(money_format(-1, buf), "-0.000000001");
    assert_string_equal(money_format(INT64_MIN, buf), "-9223372036.854775808");
}

static void text_of_an_amount_parses_back_to_it(void **state)
{
    (void)state;
    struct random random = random_new();
    for (int i = 0; i < 10000; i++) {
        char buf[MONEY_TEXT_MAX];
        money_t amount = random_below(&random, INT64_C(1) << random_below(&random, 59));
        assert_int_equal(parsed(money_format(amount, buf)), amount);
    }
}

static void halves_round_upwards(void **state)
{
    (void)state;
    assert_int_equal(money_round(5, 10), 1);
    assert_int_equal(money_round(4, 10), 0);
    assert_int_equal(money_round(15, 10), 2);
    assert_int_equal(money_round(1, 3), 0);
    assert_int_equal(money_round(0, 7), 0);
    assert_int_equal(money_round((wide_t)1 << 100, (wide_t)1 << 90), 1024);
}

static void the_largest_remainder_gets_the_rest_and_the_first_on_ties(void **state)
{
    (void)state;
    money_t out[3];
    money_apportion(10, (wide_t[]){10, 10, 10}, 3, 3, out); /* 3 1/3 each */
    assert_int_equal(out[0], 4);
    assert_int_equal(out[1], 3);
    assert_int_equal(out[2], 3);
    money_apportion(2, (wide_t[]){2, 7, 11}, 10, 3, out); /* 0.2, 0.7, 1.1 */
    assert_int_equal(out[0], 0);
    assert_int_equal(out[1], 1);
    assert_int_equal(out[2], 1);
    money_apportion(0, (wide_t[]){0, 0, 0}, 1, 3, out);
    assert_int_equal(out[0] + out[1] + out[2], 0);
    money_apportion(0, NULL, 1, 0, NULL);
}

/* The sum is the total, and each part lies within one of its ideal: floor or floor + 1, and no part
 * that was rounded up has a smaller remainder than one that was not. */
static void parts_add_up_and_lie_within_one_of_their_ideal(void **state)
{
    (void)state;
    struct random random = random_new();
    for (int round = 0; round < 3000; round++) {
        size_t n = (size_t)random_below(&random, 80) + 1;
        wide_t num[80], den = random_below(&random, 1000000) + 1, sum = 0;
        money_t out[80], got = 0;
        for (size_t i = 0; i < n; i++) {
            num[i] = random_below(&random, 4) ? random_below(&random, INT64_C(1) << 50) : 0;
            sum += num[i];
        }
        money_t total = money_round(sum, den);
        money_apportion(total, num, den, n, out);
        wide_t least_up = den, most_down = 0;
        for (size_t i = 0; i < n; i++) {
            wide_t up = out[i] - num[i] / den, rest = num[i] % den;
            got += out[i];
            assert_true(up == 0 || up == 1);
            if (up && rest < least_up)
                least_up = rest;
            if (!up && rest > most_down)
                most_down = rest;
        }
        assert_int_equal(got, total);
        assert_true(least_up >= most_down);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decimal_text_becomes_nano_units),
        cmocka_unit_test(the_tenth_place_rounds_half_away_from_zero),
        cmocka_unit_test(what_is_no_price_is_refused_and_the_output_left_alone),
        cmocka_unit_test(amounts_are_written_with_nine_places),
        cmocka_unit_test(text_of_an_amount_parses_back_to_it),
        cmocka_unit_test(halves_round_upwards),
        cmocka_unit_test(the_largest_remainder_gets_the_rest_and_the_first_on_ties),
        cmocka_unit_test(parts_add_up_and_lie_within_one_of_their_ideal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
