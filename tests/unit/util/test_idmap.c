#include "../../lib/unit.h"
#include "util/idmap.h"

static void an_empty_map_has_nothing(void **state)
{
    (void)state;
    struct idmap map = {0};
    assert_int_equal(idmap_get(&map, IDKEY(1, 2, 3, 4)), IDMAP_NONE);
    idmap_release(&map);
    idmap_release(&map);
}

static void adding_keeps_the_first_value_and_setting_replaces_it(void **state)
{
    (void)state;
    struct idmap map = {0};
    bool fresh;
    assert_int_equal(idmap_add(&map, IDKEY(1), 7, &fresh), 7);
    assert_true(fresh);
    assert_int_equal(idmap_add(&map, IDKEY(1), 8, &fresh), 7);
    assert_false(fresh);
    idmap_set(&map, IDKEY(1), 9);
    assert_int_equal(idmap_get(&map, IDKEY(1)), 9);
    assert_int_equal(map.count, 1);
    idmap_release(&map);
}

static void every_part_of_a_key_counts(void **state)
{
    (void)state;
    struct idmap map = {0};
    idmap_set(&map, IDKEY(1, 2, 3, 4), 1);
    idmap_set(&map, IDKEY(4, 3, 2, 1), 2);
    assert_int_equal(idmap_get(&map, IDKEY(1, 2, 3, 4)), 1);
    assert_int_equal(idmap_get(&map, IDKEY(4, 3, 2, 1)), 2);
    assert_int_equal(idmap_get(&map, IDKEY(1, 2, 3, 5)), IDMAP_NONE);
    assert_int_equal(idmap_get(&map, IDKEY(1, 2, 0, 4)), IDMAP_NONE);
    assert_int_equal(idmap_get(&map, IDKEY(0, 2, 3, 4)), IDMAP_NONE);
    idmap_release(&map);
}

static void a_hundred_thousand_keys_are_found_again(void **state)
{
    (void)state;
    struct idmap map = {0};
    for (uint32_t i = 0; i < 100000; i++)
        idmap_set(&map, IDKEY(i % 317, i / 317, i % 3), i);
    assert_int_equal(map.count, 100000);
    for (uint32_t i = 0; i < 100000; i++)
        assert_int_equal(idmap_get(&map, IDKEY(i % 317, i / 317, i % 3)), i);
    idmap_release(&map);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_map_has_nothing),
        cmocka_unit_test(adding_keeps_the_first_value_and_setting_replaces_it),
        cmocka_unit_test(every_part_of_a_key_counts),
        cmocka_unit_test(a_hundred_thousand_keys_are_found_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
