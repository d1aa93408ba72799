// clang-format off
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
// clang-format on
#include <stdlib.h>

#include "cmd/options.h"
#include "fleet/config.h"

/* Parse a command line of words; the options are the caller's to release. */
#define PARSE(options, err, ...)                                                                   \
    options_parse((int)(sizeof((char *[]){__VA_ARGS__}) / sizeof(char *)),                         \
                  (char *[]){__VA_ARGS__}, options, err)

static int forget_environment(void **state)
{
    (void)state;
    unsetenv("GPUTALLY_DB");
    unsetenv("GPUTALLY_FILTER");
    unsetenv("GPUTALLY_STRICT");
    return 0;
}

static void options_and_command_come_in_any_order(void **state)
{
    (void)state;
    struct options options;
    assert_int_equal(PARSE(&options, NULL, "gputally", "--db", "a.db", "report", "-b", "team,node",
                           "--filter=team=x", "-f", "node!=y", "--strict"),
                     ERR_OK);
    assert_string_equal(options.command->name, "report");
    assert_string_equal(options_text(&options, OPTION_DB), "a.db");
    assert_string_equal(options_text(&options, OPTION_BY), "team,node");
    assert_int_equal(options.values[OPTION_FILTER].n, 2);
    assert_string_equal(options.values[OPTION_FILTER].items[0], "team=x");
    assert_string_equal(options.values[OPTION_FILTER].items[1], "node!=y");
    assert_true(options_switch(&options, OPTION_STRICT));
    assert_false(options_switch(&options, OPTION_QUIET));
    options_release(&options);
}

static void the_last_of_a_single_option_wins(void **state)
{
    (void)state;
    struct options options;
    assert_int_equal(PARSE(&options, NULL, "gputally", "report", "--db", "a", "--db", "b"), ERR_OK);
    assert_string_equal(options_text(&options, OPTION_DB), "b");
    assert_int_equal(options.values[OPTION_DB].n, 1);
    options_release(&options);
}

static void the_environment_fills_what_the_command_line_leaves(void **state)
{
    (void)state;
    struct options options;
    setenv("GPUTALLY_DB", "env.db", 1);
    setenv("GPUTALLY_FILTER", "team=a\nnode=b c\n\n", 1);
    setenv("GPUTALLY_STRICT", "yes", 1);
    assert_int_equal(PARSE(&options, NULL, "gputally", "report"), ERR_OK);
    assert_string_equal(options_text(&options, OPTION_DB), "env.db");
    assert_int_equal(options.values[OPTION_FILTER].n, 2);
    assert_string_equal(options.values[OPTION_FILTER].items[1], "node=b c");
    assert_true(options_switch(&options, OPTION_STRICT));
    options_release(&options);

    setenv("GPUTALLY_STRICT", "0", 1);
    assert_int_equal(
        PARSE(&options, NULL, "gputally", "report", "--db", "line.db", "--filter", "team=z"),
        ERR_OK);
    assert_string_equal(options_text(&options, OPTION_DB), "line.db");
    assert_int_equal(options.values[OPTION_FILTER].n, 1);
    assert_false(options_switch(&options, OPTION_STRICT));
    options_release(&options);
}

static void the_configuration_fills_what_both_leave(void **state)
{
    (void)state;
    struct options options;
    struct config *config = config_new();
    assert_int_equal(config_read_text(config, "c.yaml",
                                      STR("options:\n  db: file.db\n  by: node\n  strict: true\n"
                                          "  filter: [team=a, team=b]\n"),
                                      NULL),
                     ERR_OK);
    assert_int_equal(PARSE(&options, NULL, "gputally", "report", "--by", "team"), ERR_OK);
    assert_int_equal(options_add_config(&options, config, NULL), ERR_OK);
    assert_string_equal(options_text(&options, OPTION_DB), "file.db");
    assert_string_equal(options_text(&options, OPTION_BY), "team");
    assert_true(options_switch(&options, OPTION_STRICT));
    assert_int_equal(options.values[OPTION_FILTER].n, 2);
    assert_string_equal(options.values[OPTION_FILTER].items[1], "team=b");
    options_release(&options);
    config_free(config);
}

static void an_option_of_another_command_is_skipped_in_the_configuration(void **state)
{
    (void)state;
    struct options options;
    struct config *config = config_new();
    assert_int_equal(
        config_read_text(config, "c.yaml", STR("options:\n  gpus: 8\n  limit: 3\n"), NULL), ERR_OK);
    assert_int_equal(PARSE(&options, NULL, "gputally", "collect", "--db", "x"), ERR_OK);
    assert_int_equal(options_add_config(&options, config, NULL), ERR_OK);
    assert_null(options_text(&options, OPTION_LIMIT));
    options_release(&options);
    config_free(config);
}

static void refusals_say_where_a_value_came_from(void **state)
{
    (void)state;
    struct options options;
    struct error err = {0};
    struct config *config = config_new();
    long long limit = 7;
    assert_int_equal(config_read_text(config, "c.yaml", STR("options:\n  limit: many\n"), NULL),
                     ERR_OK);
    assert_int_equal(PARSE(&options, NULL, "gputally", "report", "--db", "x"), ERR_OK);
    assert_int_equal(options_add_config(&options, config, NULL), ERR_OK);
    assert_int_equal(options_number(&options, OPTION_LIMIT, 1, &limit, &err), ERR_USAGE);
    assert_string_equal(err.text,
                        "c.yaml:2:3 (for --limit): 'many' is not a whole number from 1 on");
    assert_int_equal(limit, 7);
    options_release(&options);
    config_free(config);
}

static void expect_duration(char *text, long long expected)
{
    struct options options;
    long long ms = -1;
    assert_int_equal(PARSE(&options, NULL, "gputally", "report", "--db", "x", "--step", text),
                     ERR_OK);
    enum err code = options_duration(&options, OPTION_STEP, &ms, NULL);
    assert_int_equal(code, expected < 0 ? ERR_USAGE : ERR_OK);
    assert_int_equal(ms, expected);
    options_release(&options);
}

static void durations_have_units_or_are_seconds(void **state)
{
    (void)state;
    expect_duration("30s", 30000);
    expect_duration("30", 30000);
    expect_duration("1500ms", 1500);
    expect_duration("5m", 300000);
    expect_duration("2h", 7200000);
    expect_duration("0s", -1);
    expect_duration("-3s", -1);
    expect_duration("3 s", -1);
    expect_duration("s", -1);
    expect_duration("9999999999999d", -1);
}

static void a_plugin_of_kubectl_calls_itself_so(void **state)
{
    (void)state;
    struct options options;
    assert_int_equal(PARSE(&options, NULL, "/usr/local/bin/kubectl-gputally", "version"), ERR_OK);
    assert_string_equal(options.program, "kubectl gputally");
    options_release(&options);
}

static void no_two_options_share_a_name_or_a_letter(void **state)
{
    (void)state;
    for (int i = 0; i < OPTION_COUNT; i++)
        for (int k = 0; k < i; k++) {
            assert_string_not_equal(option_defs[i].name, option_defs[k].name);
            assert_true(!option_defs[i].letter || option_defs[i].letter != option_defs[k].letter);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(options_and_command_come_in_any_order, forget_environment),
        cmocka_unit_test_setup(the_last_of_a_single_option_wins, forget_environment),
        cmocka_unit_test_setup(the_environment_fills_what_the_command_line_leaves,
                               forget_environment),
        cmocka_unit_test_setup(the_configuration_fills_what_both_leave, forget_environment),
        cmocka_unit_test_setup(an_option_of_another_command_is_skipped_in_the_configuration,
                               forget_environment),
        cmocka_unit_test_setup(refusals_say_where_a_value_came_from, forget_environment),
        cmocka_unit_test_setup(durations_have_units_or_are_seconds, forget_environment),
        cmocka_unit_test_setup(a_plugin_of_kubectl_calls_itself_so, forget_environment),
        cmocka_unit_test(no_two_options_share_a_name_or_a_letter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
