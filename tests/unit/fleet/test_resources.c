#include <math.h>

#include "../../lib/unit.h"
#include "fleet/resources.h"

static void gpus_replicas_and_instances_count(void **state)
{
    (void)state;
    assert_true(resource_is_gpu(STR("nvidia_com_gpu")));
    assert_true(resource_is_gpu(STR("nvidia_com_gpu_shared")));
    assert_true(resource_is_gpu(STR("nvidia_com_mig_1g_10gb")));
    assert_true(resource_is_gpu(STR("amd_com_gpu")));
    assert_false(resource_is_gpu(STR("nvidia_com_gpucores")));
    assert_false(resource_is_gpu(STR("nvidia_com_gpumem")));
    assert_false(resource_is_gpu(STR("nvidia_com_gpumem_percentage")));
    assert_false(resource_is_gpu(STR("cpu")));
}

static void assert_fraction(const char *resource, double value, int64_t num, int64_t den)
{
    struct frac fraction = FRAC_ZERO;
    assert_true(resource_fraction(str_of(resource), value, &fraction));
    assert_int_equal(fraction.num, num);
    assert_int_equal(fraction.den, den);
}

static void cores_are_percent_and_milli_thousandths(void **state)
{
    (void)state;
    assert_fraction("nvidia_com_gpucores", 30, 3, 10);
    assert_fraction("nvidia_com_gpucores", 100, 1, 1);
    assert_fraction("alibabacloud_com_gpu_milli", 125, 1, 8);
    assert_fraction("gpu_milli", 1, 1, 1000);
}

static void fractions_of_nothing_or_of_more_than_a_gpu_are_none(void **state)
{
    (void)state;
    static const double bad[] = {0, -1, 0.5, 101, 1e300, (double)NAN, (double)INFINITY};
    struct frac fraction = {7, 9};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(resource_fraction(STR("nvidia_com_gpucores"), bad[i], &fraction));
    assert_false(resource_fraction(STR("gpu_milli"), 1001, &fraction));
    assert_false(resource_fraction(STR("nvidia_com_gpu"), 1, &fraction));
    assert_int_equal(fraction.num, 7);
}

static void a_profile_is_the_same_in_both_spellings(void **state)
{
    (void)state;
    assert_true(str_eq(resource_mig_profile(STR("nvidia_com_mig_1g_10gb")), STR("1g_10gb")));
    assert_int_equal(resource_mig_profile(STR("nvidia_com_gpu")).n, 0);
    assert_true(mig_profile_is(STR("1g.10gb"), STR("1g_10gb")));
    assert_true(mig_profile_is(STR("1g.10gb+me"), STR("1g_10gb_me")));
    assert_false(mig_profile_is(STR("1g.10gb"), STR("1g_12gb")));
    assert_false(mig_profile_is(STR_NONE, STR_NONE));
    struct arena arena = {0};
    assert_true(str_eq(resource_spell(&arena, STR("nvidia.com/mig-1g.10gb")),
                       STR("nvidia_com_mig_1g_10gb")));
    arena_release(&arena);
}

static void slices_are_read_from_the_profile(void **state)
{
    (void)state;
    assert_int_equal(mig_compute_slices(STR("1g.10gb")), 1);
    assert_int_equal(mig_compute_slices(STR("3g.40gb")), 3);
    assert_int_equal(mig_compute_slices(STR("1c.3g.20gb")), 1);
    assert_int_equal(mig_compute_slices(STR("7g.80gb+me")), 7);
    static const char *const odd[] = {"", "g.10gb", "0g.10gb", "3", "3g", "c.3g", "xg.1gb"};
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++)
        assert_int_equal(mig_compute_slices(str_of(odd[i])), 1);
    assert_true(mig_compute_slices(STR("99999999999999999999g.1gb")) >= 1);
}

static void an_a30_has_four_slices_and_others_seven(void **state)
{
    (void)state;
    assert_int_equal(mig_model_slices(STR("NVIDIA A30")), 4);
    assert_int_equal(mig_model_slices(STR("NVIDIA A100-SXM4-80GB")), 7);
    assert_int_equal(mig_model_slices(STR("NVIDIA H100 80GB HBM3")), 7);
    assert_int_equal(mig_model_slices(STR_NONE), 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gpus_replicas_and_instances_count),
        cmocka_unit_test(cores_are_percent_and_milli_thousandths),
        cmocka_unit_test(fractions_of_nothing_or_of_more_than_a_gpu_are_none),
        cmocka_unit_test(a_profile_is_the_same_in_both_spellings),
        cmocka_unit_test(slices_are_read_from_the_profile),
        cmocka_unit_test(an_a30_has_four_slices_and_others_seven),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
