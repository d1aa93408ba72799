#include "../../lib/unit.h"
#include "util/frac.h"

static void assert_frac(struct frac got, int64_t num, int64_t den)
{
    assert_int_equal(got.num, num);
    assert_int_equal(got.den, den);
}

static void fractions_are_in_lowest_terms(void **state)
{
    (void)state;
    assert_frac(frac_of(6, 8), 3, 4);
    assert_frac(frac_of(0, 8), 0, 1);
    assert_frac(frac_of(-6, 8), -3, 4);
    assert_frac(frac_of((__int128)1 << 100, (__int128)1 << 101), 1, 2);
}

static void sums_and_products_are_exact(void **state)
{
    (void)state;
    assert_frac(frac_add((struct frac){1, 3}, (struct frac){1, 6}), 1, 2);
    assert_frac(frac_sub(FRAC_ONE, (struct frac){2, 7}), 5, 7);
    assert_frac(frac_mul((struct frac){2, 7}, (struct frac){7, 8}), 1, 4);
    assert_frac(frac_div((struct frac){1, 2}, (struct frac){8, 1}), 1, 16);
    assert_frac(frac_min((struct frac){1, 3}, (struct frac){333, 1000}), 333, 1000);
    assert_true(frac_cmp((struct frac){1, 3}, (struct frac){2, 6}) == 0);
    assert_true(frac_cmp(FRAC_ZERO, (struct frac){1, INT64_MAX / 4}) < 0);
}

static void seven_slices_of_seven_are_the_whole_device(void **state)
{
    (void)state;
    struct frac sum = FRAC_ZERO;
    for (int i = 0; i < 7; i++)
        sum = frac_add(sum, (struct frac){1, 7});
    assert_frac(sum, 1, 1);
}

static void what_would_not_fit_is_rounded_to_coarse_parts(void **state)
{
    (void)state;
    struct frac third = frac_of(INT64_MAX, (__int128)INT64_MAX * 3 + 1);
    assert_int_equal(third.den, FRAC_COARSE);
    assert_int_equal(third.num, 333333333);
}

static void the_greatest_divisor_is_one_of_magnitudes(void **state)
{
    (void)state;
    assert_int_equal(gcd_of(12, 18), 6);
    assert_int_equal(gcd_of(0, 5), 5);
    assert_int_equal(gcd_of(5, 0), 5);
    assert_int_equal(gcd_of(-4, 6), 2);
}

/* Parts of a whole in any order add up to it again. */
static void random_shares_and_what_is_left_are_one(void **state)
{
    (void)state;
    struct random random = random_new();
    for (int round = 0; round < 2000; round++) {
        struct frac taken = FRAC_ZERO, sum = FRAC_ZERO, parts[12];
        int n = 0;
        while (n < 12) {
            int64_t den = random_below(&random, 40) + 1;
            struct frac part = {1, den};
            if (frac_cmp(frac_add(taken, part), FRAC_ONE) > 0)
                break;
            taken = frac_add(taken, part);
            parts[n++] = part;
        }
        sum = frac_sub(FRAC_ONE, taken);
        while (n > 0)
            sum = frac_add(sum, parts[--n]);
        assert_frac(sum, 1, 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fractions_are_in_lowest_terms),
        cmocka_unit_test(sums_and_products_are_exact),
        cmocka_unit_test(seven_slices_of_seven_are_the_whole_device),
        cmocka_unit_test(what_would_not_fit_is_rounded_to_coarse_parts),
        cmocka_unit_test(the_greatest_divisor_is_one_of_magnitudes),
        cmocka_unit_test(random_shares_and_what_is_left_are_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
