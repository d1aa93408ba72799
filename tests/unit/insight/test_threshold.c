#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "insight/threshold.h"

static struct error error;

/* What a configuration makes of the thresholds. */
static struct thresholds thresholds_of(const char *text)
{
    struct thresholds ret = {0};
    struct config *config = config_new();
    if (config_read_text(config, "c.yaml", str_of(text), &error) ||
        thresholds_read(config, &ret, &error))
        fail_msg("%s", error.text);
    config_free(config);
    return ret;
}

static const char *refused(const char *text)
{
    struct thresholds ret;
    struct config *config = config_new();
    if (config_read_text(config, "c.yaml", str_of(text), &error) == ERR_OK &&
        thresholds_read(config, &ret, &error) == ERR_OK)
        fail_msg("taken: %s", text);
    config_free(config);
    return error.text;
}

static const char *shown(enum threshold_id id, int64_t value)
{
    static char text[64];
    struct strbuf buf = {0};
    threshold_text(id, value, &buf);
    snprintf(text, sizeof text, "%.*s", STR_ARG(strbuf_str(&buf)));
    strbuf_release(&buf);
    return text;
}

static void what_is_configured_replaces_the_default(void **state)
{
    (void)state;
    struct thresholds read = thresholds_of("rules:\n"
                                           "  idle-workload: {held: 48h, idle: 80%, stop: 5d}\n"
                                           "  low-use: {held: 12, target: 0.5}\n");
    assert_int_equal(read.values[THRESHOLD_IDLE_WORKLOAD_HELD], 48 * HOUR_MS);
    assert_int_equal(read.values[THRESHOLD_IDLE_WORKLOAD_IDLE], 800000000);
    assert_int_equal(read.values[THRESHOLD_IDLE_WORKLOAD_STOP], 120 * HOUR_MS);
    assert_int_equal(read.values[THRESHOLD_LOW_USE_HELD], 12 * HOUR_MS);
    assert_int_equal(read.values[THRESHOLD_LOW_USE_TARGET], 500000000);
    /* untouched */
    assert_int_equal(read.values[THRESHOLD_IDLE_WORKLOAD_OBSERVED], 900000000);
    assert_int_equal(read.values[THRESHOLD_IDLE_NOTEBOOK_HELD], 24 * HOUR_MS);
}

static void a_rule_can_be_turned_off(void **state)
{
    (void)state;
    struct thresholds read =
        thresholds_of("{rules: {node-empty: off, low-use: {off: true}, unowned: {off: false}, "
                      "mig-fit: on}}");
    for (int r = 0; r < RULE_COUNT; r++)
        assert_int_equal(read.off[r], r == RULE_NODE_EMPTY || r == RULE_LOW_USE);
}

static void a_mistake_has_its_place_and_what_was_meant(void **state)
{
    (void)state;
    assert_string_equal(refused("rules:\n  idle-worklaod: {held: 48h}\n"),
                        "c.yaml:2:3: unknown key 'idle-worklaod': did you mean 'idle-workload'?");
    assert_string_equal(refused("rules:\n  idle-workload:\n    heldd: 48h\n"),
                        "c.yaml:3:5: unknown key 'heldd': did you mean 'held'?");
    assert_string_equal(refused("rules: {node-empty: {zzzzzzzzz: 1}}"),
                        "c.yaml:1:22: unknown key 'zzzzzzzzz': known here are off, empty");
    assert_string_equal(refused("rules: {idle-workload: {held: two days}}"),
                        "c.yaml:1:31: 'two days' does not fit idle-workload.held: write GPU-hours "
                        "such as 24h or 24");
    assert_string_equal(refused("rules: {idle-workload: {idle: 120%}}"),
                        "c.yaml:1:31: '120%' does not fit idle-workload.idle: write a ratio such "
                        "as 90% or 0.9");
    assert_string_equal(refused("rules: {idle-workload: {stop: 3}}"),
                        "c.yaml:1:31: '3' does not fit idle-workload.stop: write a duration such "
                        "as 30s, 6h or 3d");
    assert_string_equal(refused("rules: {idle-workload: {off: maybe}}"),
                        "c.yaml:1:30: true or false is needed here");
    assert_string_equal(refused("rules: [a]"),
                        "c.yaml:1:8: rules is a mapping, such as {idle-workload: {held: 48h}}");
    assert_string_equal(refused("rules: {idle-workload: 48h}"),
                        "c.yaml:1:24: a rule is off, or a mapping such as {held: 48h}");
}

static void values_are_shown_with_their_unit(void **state)
{
    (void)state;
    assert_string_equal(shown(THRESHOLD_IDLE_WORKLOAD_HELD, 24 * HOUR_MS), "24 GPU-hours");
    assert_string_equal(shown(THRESHOLD_NODE_UNHEALTHY_LOST, HOUR_MS), "1 GPU-hour");
    assert_string_equal(shown(THRESHOLD_IDLE_WORKLOAD_IDLE, 900000000), "90 %");
    assert_string_equal(shown(THRESHOLD_IDLE_WORKLOAD_IDLE, 125000000), "12.5 %");
    assert_string_equal(shown(THRESHOLD_IDLE_WORKLOAD_STOP, 3 * DAY_MS), "3 days");
    assert_string_equal(shown(THRESHOLD_IDLE_WORKLOAD_STOP, DAY_MS), "24 h");
    assert_string_equal(shown(THRESHOLD_IDLE_WORKLOAD_STOP, 61 * HOUR_MS), "61 h");
    assert_string_equal(shown(THRESHOLD_IDLE_WORKLOAD_STOP, 90000), "1.5 min");
}

/* A sentence with a gap that no threshold fills aborts; one that leaves a threshold out hides it.
 */
static void every_rules_sentence_names_all_of_its_thresholds(void **state)
{
    (void)state;
    struct thresholds defaults;
    thresholds_defaults(&defaults);
    for (int r = 0; r < RULE_COUNT; r++) {
        struct strbuf text = {0};
        rule_text((enum rule_id)r, &defaults, &text);
        assert_true(text.n > 0);
        assert_null(memchr(text.text, '{', text.n));
        strbuf_release(&text);
    }
    for (size_t i = 0; i < THRESHOLD_COUNT_OF; i++) {
        char gap[64];
        const struct threshold_def *def = &threshold_defs[i];
        snprintf(gap, sizeof gap, "{%s}", def->name);
        if (!strstr(rules[def->rule].thresholds, gap))
            fail_msg("%s: %s is not in its sentence", rules[def->rule].name, gap);
        for (size_t k = 0; k < i; k++)
            if (threshold_defs[k].rule == def->rule && !strcmp(threshold_defs[k].name, def->name))
                fail_msg("%s.%s stands twice", rules[def->rule].name, def->name);
    }
}

static void a_value_is_written_as_the_configuration_takes_it(void **state)
{
    (void)state;
    struct strbuf text = {0};
    for (size_t i = 0; i < THRESHOLD_COUNT_OF; i++) {
        strbuf_clear(&text);
        strbuf_addf(&text, "rules: {%s: {%s: ", rules[threshold_defs[i].rule].name,
                    threshold_defs[i].name);
        threshold_value_text((enum threshold_id)i, threshold_defs[i].standard, &text);
        strbuf_add(&text, STR("}}"));
        struct thresholds read = thresholds_of(text.text);
        assert_int_equal(read.values[i], threshold_defs[i].standard);
    }
    strbuf_release(&text);
}

/* A row "| `held` | 24h | held for this long or more |" in the rule's part, for each. */
static void docs_configuration_has_every_threshold(void **state)
{
    (void)state;
    struct strbuf page = {0}, row = {0};
    char block[4096];
    FILE *file = fopen(TEST_DATA "/../docs/configuration.md", "r");
    assert_non_null(file);
    for (size_t n; (n = fread(block, 1, sizeof block, file)) > 0;)
        strbuf_add(&page, (struct str){block, n});
    fclose(file);
    for (size_t i = 0; i < THRESHOLD_COUNT_OF; i++) {
        const struct threshold_def *def = &threshold_defs[i];
        strbuf_clear(&row);
        strbuf_addf(&row, "| `%s` | `%s` | ", rules[def->rule].name, def->name);
        threshold_value_text((enum threshold_id)i, def->standard, &row);
        strbuf_addf(&row, " | %s |\n", def->meaning);
        if (!strstr(page.text, row.text))
            fail_msg("docs/configuration.md lacks\n%s", row.text);
    }
    strbuf_release(&page);
    strbuf_release(&row);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_configured_replaces_the_default),
        cmocka_unit_test(a_rule_can_be_turned_off),
        cmocka_unit_test(a_mistake_has_its_place_and_what_was_meant),
        cmocka_unit_test(values_are_shown_with_their_unit),
        cmocka_unit_test(every_rules_sentence_names_all_of_its_thresholds),
        cmocka_unit_test(a_value_is_written_as_the_configuration_takes_it),
        cmocka_unit_test(docs_configuration_has_every_threshold),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
