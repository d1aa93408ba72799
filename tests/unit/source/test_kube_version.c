/* Which of two resourceVersions is the older one. */
#include "../../lib/unit.h"

#include "source/kube_watch_impl.h"

static void numbers_are_compared_as_numbers(void **state)
{
    (void)state;
    assert_true(kube_version_is_before("9", "10"));
    assert_false(kube_version_is_before("10", "9"));
    assert_false(kube_version_is_before("10", "10"));
    assert_true(kube_version_is_before("0", "1"));
    assert_true(kube_version_is_before("007", "10"));
    assert_false(kube_version_is_before("00010", "9"));
    /* more than any integer of the machine holds */
    assert_true(kube_version_is_before("99999999999999999999999", "100000000000000000000000"));
    assert_true(kube_version_is_before("123456789012345678901234", "123456789012345678901235"));
}

static void what_is_no_number_is_before_nothing(void **state)
{
    static const char *const others[] = {"", "x", "-1", "1.5", "1 ", "0x10", "1e3"};
    (void)state;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        assert_false(kube_version_is_before(others[i], "100"));
        assert_false(kube_version_is_before("0", others[i]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_compared_as_numbers),
        cmocka_unit_test(what_is_no_number_is_before_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
