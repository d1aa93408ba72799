#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "util/suggest.h"

static const char *const words[] = {"namespace", "node", "team", "model", "capacity-type", "type"};
#define N (sizeof words / sizeof *words)

static const char *near(const char *word)
{
    const char *found = suggest(str_of(word), words, N);
    return found ? found : "(none)";
}

static void a_mistyped_word_finds_its_neighbour(void **state)
{
    (void)state;
    assert_string_equal(near("namespaec"), "namespace"); /* one swap */
    assert_string_equal(near("tema"), "team");
    assert_string_equal(near("modle"), "model");
    assert_string_equal(near("capacity_typ"), "capacity-type");
    assert_string_equal(near("NODE"), "node");
    assert_string_equal(near("nodes"), "node");
    assert_string_equal(near("name"), "namespace"); /* a beginning */
}

static void a_word_that_is_far_from_all_finds_none(void **state)
{
    (void)state;
    assert_string_equal(near("price"), "(none)");
    assert_string_equal(near(""), "(none)");
    assert_string_equal(near("x"), "(none)");
    char longer[200];
    memset(longer, 'n', sizeof longer - 1);
    longer[sizeof longer - 1] = 0;
    assert_string_equal(near(longer), "(none)");
    assert_null(suggest(STR("team"), NULL, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_mistyped_word_finds_its_neighbour),
        cmocka_unit_test(a_word_that_is_far_from_all_finds_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
