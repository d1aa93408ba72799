/* What changed between two windows: the parts, worked out by hand, and that they always add up. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

#include "insight/diff.h"

#define RANDOM_ROUNDS 2000

static struct diff_row split(struct diff_amounts a, struct diff_amounts b)
{
    struct diff_row row = {.presence = DIFF_BOTH, .a = a, .b = b};
    diff_row_split(&row, true);
    return row;
}

/* A: 50 GPU-hours at 2, half used. B: 80 at 3, a quarter used. 80 hours at 2 are 160: volume 60,
 * price
 * 80. Half of 160 is 80, half of 240 is 120: used for volume 30, for price 40, and 60 of B's used
 * are 60 less than 120. */
static void a_row_is_split_into_volume_price_and_efficiency(void **state)
{
    (void)state;
    struct diff_row row =
        split((struct diff_amounts){100, 50, 50}, (struct diff_amounts){240, 60, 80});
    assert_true(row.split && row.used_split);
    assert_int_equal(row.volume, 60);
    assert_int_equal(row.price, 80);
    assert_int_equal(row.used_volume, 30);
    assert_int_equal(row.used_price, 40);
    assert_int_equal(row.efficiency, -60);
}

/* 5 for 2 hours, 9 for 1: half of 5 is 2.5, upwards 3. */
static void halves_are_rounded_upwards_and_nothing_is_lost(void **state)
{
    (void)state;
    struct diff_row row = split((struct diff_amounts){5, 5, 2}, (struct diff_amounts){9, 9, 1});
    assert_int_equal(row.volume, -2);
    assert_int_equal(row.price, 6);
    assert_int_equal(row.efficiency, 0);
}

static void rows_of_one_side_are_all_volume(void **state)
{
    (void)state;
    struct diff_row row = {.presence = DIFF_NEW, .b = {7, 3, 2}};
    diff_row_split(&row, true);
    assert_true(row.split && row.used_split);
    assert_int_equal(row.volume, 7);
    assert_int_equal(row.used_volume, 3);
    assert_int_equal(row.price, 0);
    row = (struct diff_row){.presence = DIFF_GONE, .a = {7, 3, 2}};
    diff_row_split(&row, true);
    assert_int_equal(row.volume, -7);
    assert_int_equal(row.used_volume, -3);
    assert_int_equal(row.efficiency, 0);
}

static void what_has_no_price_in_a_is_all_price_and_has_no_efficiency(void **state)
{
    (void)state;
    struct diff_row row = split((struct diff_amounts){0, 0, 2}, (struct diff_amounts){9, 4, 4});
    assert_true(row.split);
    assert_int_equal(row.price, 9);
    assert_int_equal(row.volume, 0);
    assert_false(row.used_split);
    row = split((struct diff_amounts){0, 0, 2}, (struct diff_amounts){0, 0, 4});
    assert_true(row.split && row.used_split); /* nothing changed */
}

static void without_hours_there_are_no_parts(void **state)
{
    (void)state;
    assert_false(split((struct diff_amounts){5, 0, 0}, (struct diff_amounts){9, 0, 4}).split);
    struct diff_row row = {.presence = DIFF_BOTH, .a = {5, 0, 2}, .b = {9, 0, 4}};
    diff_row_split(&row, false);
    assert_false(row.split);
    assert_false(row.used_split);
}

/* A billionth of a GPU-hour at the most that a ledger can have, grown by 1e18: no wrapping. */
static void what_is_out_of_all_range_has_no_parts(void **state)
{
    (void)state;
    struct diff_row row = split((struct diff_amounts){MONEY_MAX, MONEY_MAX, 1},
                                (struct diff_amounts){MONEY_MAX, 0, MONEY_MAX});
    assert_false(row.split);
    row = split((struct diff_amounts){MONEY_MAX, MONEY_MAX, MONEY_MAX},
                (struct diff_amounts){MONEY_MAX, 0, MONEY_MAX});
    assert_true(row.split && row.used_split);
    assert_int_equal(row.efficiency, -MONEY_MAX);
}

static int64_t below(uint64_t *seed, int64_t n)
{
    *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (int64_t)((*seed >> 20) % (uint64_t)n);
}

static void parts_add_up_to_the_change_whatever_the_amounts(void **state)
{
    (void)state;
    uint64_t seed = 20261130;
    print_message("seed %llu\n", (unsigned long long)seed);
    for (int i = 0; i < RANDOM_ROUNDS; i++) {
        int64_t large = i % 2 ? 50 : INT64_C(1000000000000000);
        struct diff_amounts a = {below(&seed, large) + 1, 0, below(&seed, large) + 1};
        struct diff_amounts b = {below(&seed, large), 0, below(&seed, large) + 1};
        a.used = below(&seed, a.cost + 1);
        b.used = below(&seed, b.cost + 1);
        struct diff_row row = split(a, b);
        if (row.split)
            assert_int_equal(row.price + row.volume, b.cost - a.cost);
        if (row.used_split)
            assert_int_equal(row.used_price + row.used_volume + row.efficiency, b.used - a.used);
        assert_true(row.split || i % 2 == 0); /* small ones are always in range */
    }
}

static struct diff_entry entry(const char *key, money_t cost, money_t used, int hours)
{
    return (struct diff_entry){.keys = {str_of(key)}, .amounts = {cost, used, hours}};
}

static void rows_are_joined_by_key_the_largest_change_first(void **state)
{
    (void)state;
    struct diff_entry first[] = {entry("same", 10, 5, 5), entry("gone", 3, 0, 1),
                                 entry("grows", 10, 0, 1)};
    struct diff_entry second[] = {entry("new", 3, 1, 1), entry("grows", 30, 3, 3),
                                  entry("same", 10, 5, 5)};
    struct diff_side a = {.keys = {STR("team")},
                          .keys_n = 1,
                          .hours_known = true,
                          .entries = first,
                          .entries_n = 3,
                          .total = {23, 5, 7}};
    struct diff_side b = a;
    b.entries = second;
    b.total = (struct diff_amounts){43, 9, 9};
    struct diff *diff = diff_new(&a, &b);
    static const char *const order[] = {"grows", "gone", "new", "same"};
    static const enum diff_presence presence[] = {DIFF_BOTH, DIFF_GONE, DIFF_NEW, DIFF_BOTH};
    assert_int_equal(diff->rows_n, 4);
    for (size_t i = 0; i < 4; i++) {
        assert_string_equal(diff->rows[i].keys[0].p, order[i]);
        assert_int_equal(diff->rows[i].presence, presence[i]);
    }
    /* grows: 30 for 3 hours at 10: all volume, 20; gone -3; new +3. Of grows' 30 none was used at
     * A's share, 3 are: efficiency 3; new used 1 is volume. */
    assert_true(diff->total.split && diff->total.used_split);
    assert_int_equal(diff->total.volume, 20);
    assert_int_equal(diff->total.price, 0);
    assert_int_equal(diff->total.efficiency, 3);
    assert_int_equal(diff->total.used_volume, 1);
    diff_free(diff);
}

static void a_side_by_category_has_money_and_no_hours(void **state)
{
    (void)state;
    struct group group = {.keys = {STR("used")}, .figures = {.cost = 5}};
    struct result result = {.groups = &group,
                            .groups_n = 1,
                            .query = {.keys = {KEY_CATEGORY}, .keys_n = 1},
                            .total = {.cost = 5}};
    struct diff_side side;
    diff_side_of_result(&result, &side);
    assert_false(side.hours_known);
    assert_string_equal(side.keys[0].p, "category");
    assert_string_equal(side.entries[0].keys[0].p, "used");
    diff_side_release(&side);
    result.query.keys[0] = KEY_INSTANCE_TYPE;
    diff_side_of_result(&result, &side);
    assert_true(side.hours_known);
    assert_string_equal(side.keys[0].p, "instance_type"); /* as saved reports write it */
    diff_side_release(&side);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_row_is_split_into_volume_price_and_efficiency),
        cmocka_unit_test(halves_are_rounded_upwards_and_nothing_is_lost),
        cmocka_unit_test(rows_of_one_side_are_all_volume),
        cmocka_unit_test(what_has_no_price_in_a_is_all_price_and_has_no_efficiency),
        cmocka_unit_test(without_hours_there_are_no_parts),
        cmocka_unit_test(what_is_out_of_all_range_has_no_parts),
        cmocka_unit_test(parts_add_up_to_the_change_whatever_the_amounts),
        cmocka_unit_test(rows_are_joined_by_key_the_largest_change_first),
        cmocka_unit_test(a_side_by_category_has_money_and_no_hours),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
