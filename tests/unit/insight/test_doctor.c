/* The checks of doctor on facts made by hand: each fires, does not fire, and where what it reads is
 * missing says so or does without. 100 GPU-hours at $2.00 unless a test says otherwise. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

#include "fleet/intake.h"
#include "insight/doctor.h"

#define HOUR_NS ((wide_t)3600 * NANO)
#define DOLLAR ((money_t)NANO)
#define FROM INT64_C(1795392000000) /* 2026-11-23T00:00Z */

struct bed {
    struct names *names;
    struct result total, nodes, teams, types;
    struct group node, team, type;
    struct doctor_node states[2];
    struct note notes[3];
    struct doctor_facts facts;
    struct doctor *doctor;
};

static void result_of(struct result *result, struct names *names, enum key first, enum key second,
                      struct group *group, const char *one, const char *two)
{
    *result = (struct result){
        .names = names,
        .groups = group,
        .groups_n = group ? 1 : 0,
        .query = {.window = {FROM, FROM + 7 * DAY_MS}, .keys = {first, second}, .keys_n = 2},
        .recorded = {FROM, FROM + 7 * DAY_MS}};
    result->total = (struct figures){.gpu_ns = 100 * HOUR_NS,
                                     .gpu_observed_ns = 100 * HOUR_NS,
                                     .cost = 200 * DOLLAR,
                                     .rows = 100};
    if (group)
        *group = (struct group){.keys = {str_of(one), str_of(two)}, .figures = result->total};
}

static int set_up(void **state)
{
    struct bed *bed = mem_zalloc(1, sizeof *bed);
    bed->names = names_new();
    result_of(&bed->total, bed->names, KEY_CLUSTER, KEY_TEAM, NULL, "", "");
    result_of(&bed->nodes, bed->names, KEY_CLUSTER, KEY_NODE, &bed->node, "-", "gpu-7");
    result_of(&bed->teams, bed->names, KEY_TEAM, KEY_NAMESPACE, &bed->team, "search", "web");
    result_of(&bed->types, bed->names, KEY_INSTANCE_TYPE, KEY_MODEL, &bed->type, "p5", "H100");
    int64_t ms = 50 * HOUR_MS;
    for (int i = 0; i < 2; i++)
        bed->states[i] =
            (struct doctor_node){.node = names_put(bed->names, str_of(i ? "gpu-8" : "gpu-7")),
                                 .up_ms = ms,
                                 .covered_ms = ms,
                                 .observed_ms = ms,
                                 .util_seen_ms = ms,
                                 .mem_seen_ms = ms,
                                 .power_seen_ms = ms,
                                 .limit_ms = ms};
    bed->facts = (struct doctor_facts){.total = &bed->total,
                                       .nodes = &bed->nodes,
                                       .teams = &bed->teams,
                                       .types = &bed->types,
                                       .states = bed->states,
                                       .states_n = 2,
                                       .extent = {FROM, FROM + 7 * DAY_MS}};
    *state = bed;
    return 0;
}

static int tear_down(void **state)
{
    struct bed *bed = *state;
    doctor_free(bed->doctor);
    names_free(bed->names);
    free(bed);
    return 0;
}

static const struct doctor_finding *find(struct bed *bed, const char *id)
{
    doctor_free(bed->doctor);
    bed->doctor = doctor_new(&bed->facts);
    for (size_t i = 0; i < doctor_checks_n; i++)
        if (strcmp(bed->doctor->findings[i].check->id, id) == 0)
            return &bed->doctor->findings[i];
    fail_msg("no check %s", id);
    return NULL;
}

static void assert_example(const struct doctor_finding *finding, size_t i, const char *name)
{
    assert_true(i < finding->examples_n);
    if (!str_eq(finding->examples[i].name, str_of(name)))
        fail_msg("example %zu is %.*s, not %s", i, STR_ARG(finding->examples[i].name), name);
}

static void note(struct bed *bed, enum note_kind kind, const char *subject, const char *text,
                 int64_t count)
{
    bed->notes[bed->total.notes_n++] =
        (struct note){.kind = (int)kind,
                      .subject = names_put(bed->names, str_of(subject)),
                      .text = names_put(bed->names, str_of(text)),
                      .count = count};
    bed->total.notes = bed->notes;
}

static const char *const said_ids[] = {"clock", "down", "hidden-labels", "oversampled", "series"};

static void a_sound_ledger_has_no_finding(void **state)
{
    struct bed *bed = *state;
    bed->facts.asked = said_ids;
    bed->facts.asked_n = 5;
    find(bed, "unseen");
    assert_int_equal(bed->doctor->found, 0);
    assert_int_equal(bed->doctor->unchecked, 0);
}

static void what_is_not_there_is_unchecked_and_never_fine(void **state)
{
    static const char *const ids[] = {"gpu-util",    "no-type", "history", "no-activity",
                                      "memory",      "power",   "unowned", "power-limit",
                                      "node-lives",  "clock",   "down",    "hidden-labels",
                                      "oversampled", "series"};
    struct bed *bed = *state;
    bed->facts = (struct doctor_facts){.total = &bed->total};
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        const struct doctor_finding *finding = find(bed, ids[i]);
        if (finding->status != DOCTOR_UNCHECKED || !finding->reason)
            fail_msg("%s is not unchecked", ids[i]);
    }
    assert_int_equal(bed->doctor->unchecked, sizeof ids / sizeof *ids);
    assert_int_equal(bed->doctor->found, 0);
}

static void what_a_server_says_is_named_by_check_the_largest_first(void **state)
{
    const struct doctor_said said[] = {{"clock", STR("gpu-7 is 12 s behind"), 12},
                                       {"clock", STR("gpu-8 is 40 s ahead"), 40},
                                       {"down", STR("gpu-9 of job dcgm"), 1}};
    struct bed *bed = *state;
    bed->facts.asked = said_ids;
    bed->facts.asked_n = 5;
    bed->facts.said = said;
    bed->facts.said_n = 3;
    const struct doctor_finding *finding = find(bed, "clock");
    assert_int_equal(finding->status, DOCTOR_FOUND);
    assert_int_equal(finding->count, 2);
    assert_true(str_eq(finding->examples[0].name, STR("gpu-8 is 40 s ahead")));
    assert_int_equal(find(bed, "down")->status, DOCTOR_FOUND);
    assert_int_equal(find(bed, "series")->status, DOCTOR_FINE);
}

/* Of 100 GPU-hours 50 carry the flag, which cost $80; gpu-7 has 40 of them. */
static void a_flag_is_found_with_its_hours_dollars_and_nodes(void **state)
{
    static const struct {
        const char *id;
        enum flag_index flag;
        enum doctor_severity severity;
    } cases[] = {
        {"unseen", FLAG_INDEX_UNSEEN, DOCTOR_ERROR},
        {"sm-active", FLAG_INDEX_U_UTIL, DOCTOR_WARNING},
        {"sm-active", FLAG_INDEX_U_ENGINE, DOCTOR_WARNING},
        {"stuck-counter", FLAG_INDEX_STUCK_COUNTER, DOCTOR_WARNING},
        {"unit-guess", FLAG_INDEX_UNIT_GUESS, DOCTOR_WARNING},
        {"step", FLAG_INDEX_STEP, DOCTOR_INFO},
        {"by-count", FLAG_INDEX_BY_COUNT, DOCTOR_WARNING},
        {"kept-device", FLAG_INDEX_KEPT_DEVICE, DOCTOR_INFO},
        {"shared", FLAG_INDEX_SHARED_ESTIMATE, DOCTOR_WARNING},
        {"no-kube", FLAG_INDEX_UP_SAMPLES, DOCTOR_WARNING},
        {"default-price", FLAG_INDEX_DEFAULT_PRICE, DOCTOR_WARNING},
        {"spot-as-on-demand", FLAG_INDEX_SPOT_AS_ON_DEMAND, DOCTOR_WARNING},
        {"reserved-as-on-demand", FLAG_INDEX_RESERVED_AS_ON_DEMAND, DOCTOR_WARNING},
        {"catalogue-derived", FLAG_INDEX_CATALOGUE_DERIVED, DOCTOR_INFO},
        {"owner-default", FLAG_INDEX_OWNER_DEFAULT, DOCTOR_INFO},
        {"energy-power", FLAG_INDEX_ENERGY_POWER, DOCTOR_INFO},
    };
    struct bed *bed = *state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        enum flag_index flag = cases[i].flag;
        bed->total.total.flag_gpu_ns[flag] = 50 * HOUR_NS;
        bed->total.total.flag_cost[flag] = 80 * DOLLAR;
        bed->node.figures.flag_gpu_ns[flag] = 40 * HOUR_NS;
        const struct doctor_finding *finding = find(bed, cases[i].id);
        if (finding->status != DOCTOR_FOUND)
            fail_msg("%s is not found", cases[i].id);
        assert_int_equal(finding->check->severity, cases[i].severity);
        assert_true(finding->gpu_ns == 50 * HOUR_NS);
        assert_int_equal(finding->money, 80 * DOLLAR);
        assert_int_equal(finding->examples_n, 1);
        assert_example(finding, 0, "gpu-7");
        assert_true(finding->examples[0].gpu_ns == 40 * HOUR_NS);
        assert_int_equal(bed->doctor->found, 1);
        bed->facts.nodes = NULL; /* found all the same, without names */
        finding = find(bed, cases[i].id);
        assert_int_equal(finding->status, DOCTOR_FOUND);
        assert_int_equal(finding->examples_n, 0);
        bed->facts.nodes = &bed->nodes;
        bed->total.total.flag_gpu_ns[flag] = bed->node.figures.flag_gpu_ns[flag] = 0;
        bed->total.total.flag_cost[flag] = 0;
    }
}

static void what_happens_a_little_everywhere_is_found_from_a_hundredth_or_a_gpu_day_on(void **state)
{
    struct bed *bed = *state;
    wide_t *flag = &bed->total.total.flag_gpu_ns[FLAG_INDEX_BY_COUNT];
    *flag = HOUR_NS - 1; /* of 100 hours */
    assert_int_equal(find(bed, "by-count")->status, DOCTOR_FINE);
    *flag = HOUR_NS;
    assert_int_equal(find(bed, "by-count")->status, DOCTOR_FOUND);
    bed->total.total.gpu_ns = 10000 * HOUR_NS;
    *flag = 24 * HOUR_NS - 1;
    assert_int_equal(find(bed, "by-count")->status, DOCTOR_FINE);
    *flag = 24 * HOUR_NS;
    assert_int_equal(find(bed, "by-count")->status, DOCTOR_FOUND);
}

static void rows_with_two_flags_of_a_check_are_not_counted_twice(void **state)
{
    struct bed *bed = *state;
    bed->total.total.flag_gpu_ns[FLAG_INDEX_U_UTIL] = 30 * HOUR_NS;
    bed->total.total.flag_gpu_ns[FLAG_INDEX_U_ENGINE] = 20 * HOUR_NS;
    assert_true(find(bed, "sm-active")->gpu_ns == 30 * HOUR_NS);
}

static void unpriced_types_are_named_and_models_where_there_is_no_type(void **state)
{
    struct bed *bed = *state;
    bed->total.total.flag_gpu_ns[FLAG_INDEX_UNPRICED] = 10 * HOUR_NS;
    bed->type.figures.flag_gpu_ns[FLAG_INDEX_UNPRICED] = 10 * HOUR_NS;
    const struct doctor_finding *finding = find(bed, "unpriced");
    assert_int_equal(finding->status, DOCTOR_FOUND);
    assert_int_equal(finding->check->severity, DOCTOR_ERROR);
    assert_true(finding->gpu_ns == 10 * HOUR_NS);
    assert_int_equal(finding->money, -1);
    assert_example(finding, 0, "p5");
    bed->type.keys[0] = STR("-");
    assert_example(find(bed, "unpriced"), 0, "H100 on nodes of no known type");
    assert_int_equal(find(bed, "no-type")->status, DOCTOR_FOUND);
}

static void silence_is_told_apart_from_metrics_without_activity(void **state)
{
    struct bed *bed = *state;
    bed->states[0].covered_ms -= 5 * HOUR_MS;
    bed->states[0].observed_ms -= 5 * HOUR_MS;
    bed->states[0].util_seen_ms -= 5 * HOUR_MS;
    bed->states[1].observed_ms -= 3 * HOUR_MS;
    bed->states[1].util_seen_ms -= 3 * HOUR_MS;
    const struct doctor_finding *finding = find(bed, "silent");
    assert_int_equal(finding->status, DOCTOR_FOUND);
    assert_true(finding->gpu_ns == 5 * HOUR_NS);
    assert_example(finding, 0, "gpu-7");
    finding = find(bed, "no-activity");
    assert_int_equal(finding->status, DOCTOR_FOUND);
    assert_true(finding->gpu_ns == 3 * HOUR_NS);
    assert_example(finding, 0, "gpu-8");
    assert_int_equal(find(bed, "gpu-util")->status, DOCTOR_FINE);
}

/* Without hours of GPUs: 100 GPU-hours, of which 60 are observed and 30 of GPUs never heard of. */
static void without_hours_of_gpus_silence_is_what_is_neither_observed_nor_unseen(void **state)
{
    struct bed *bed = *state;
    bed->facts.states = NULL;
    bed->facts.states_n = 0;
    bed->total.total.gpu_observed_ns = 60 * HOUR_NS;
    bed->total.total.flag_gpu_ns[FLAG_INDEX_UNSEEN] = 30 * HOUR_NS;
    const struct doctor_finding *finding = find(bed, "silent");
    assert_int_equal(finding->status, DOCTOR_FOUND);
    assert_true(finding->gpu_ns == 10 * HOUR_NS);
    bed->total.total.gpu_ns = 0;
    assert_int_equal(find(bed, "silent")->status, DOCTOR_UNCHECKED);
}

static void signals_are_missing_where_less_than_half_of_the_time_has_them(void **state)
{
    static const struct {
        const char *id;
        size_t offset;
    } cases[] = {{"gpu-util", offsetof(struct doctor_node, util_seen_ms)},
                 {"memory", offsetof(struct doctor_node, mem_seen_ms)},
                 {"power", offsetof(struct doctor_node, power_seen_ms)},
                 {"power-limit", offsetof(struct doctor_node, limit_ms)}};
    struct bed *bed = *state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t *seen = (int64_t *)(void *)((char *)&bed->states[1] + cases[i].offset);
        *seen = 25 * HOUR_MS;
        assert_int_equal(find(bed, cases[i].id)->status, DOCTOR_FINE);
        *seen = 10 * HOUR_MS;
        const struct doctor_finding *finding = find(bed, cases[i].id);
        assert_int_equal(finding->status, DOCTOR_FOUND);
        assert_true(finding->gpu_ns == 40 * HOUR_NS);
        assert_example(finding, 0, "gpu-8");
        *seen = 50 * HOUR_MS;
    }
}

static void a_node_that_changed_its_type_is_named(void **state)
{
    struct bed *bed = *state;
    bed->states[0].lives = 1;
    const struct doctor_finding *finding = find(bed, "node-lives");
    assert_int_equal(finding->status, DOCTOR_FOUND);
    assert_int_equal(finding->count, 1);
    assert_example(finding, 0, "gpu-7");
}

static void unattributed_money_is_found_with_its_nodes(void **state)
{
    struct bed *bed = *state;
    bed->total.total.category[CATEGORY_UNATTRIBUTED] = 7 * DOLLAR;
    bed->node.figures.category[CATEGORY_UNATTRIBUTED] = 7 * DOLLAR;
    const struct doctor_finding *finding = find(bed, "unattributed");
    assert_int_equal(finding->status, DOCTOR_FOUND);
    assert_int_equal(finding->money, 7 * DOLLAR);
    assert_example(finding, 0, "gpu-7");
}

static void unowned_money_is_found_with_its_namespaces(void **state)
{
    struct bed *bed = *state;
    bed->team.keys[0] = STR("unowned");
    const struct doctor_finding *finding = find(bed, "unowned");
    assert_int_equal(finding->status, DOCTOR_FOUND);
    assert_int_equal(finding->money, 200 * DOLLAR);
    assert_true(finding->gpu_ns == 100 * HOUR_NS);
    assert_example(finding, 0, "web");
}

static void notes_of_the_sources_are_added_up_the_largest_first(void **state)
{
    static const struct {
        const char *id;
        enum note_kind kind;
    } cases[] = {{"partial", NOTE_PARTIAL},
                 {"rejected", NOTE_REJECTED},
                 {"guessed", NOTE_GUESS},
                 {"unplaced", NOTE_UNPLACED}};
    struct bed *bed = *state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bed->total.notes_n = 0;
        note(bed, cases[i].kind, "", "small", 2);
        note(bed, cases[i].kind, "a.om", "large", 9);
        note(bed, NOTE_INFO, "", "something else", 100);
        const struct doctor_finding *finding = find(bed, cases[i].id);
        assert_int_equal(finding->status, DOCTOR_FOUND);
        assert_int_equal(finding->count, 11);
        assert_int_equal(finding->examples_n, 2);
        assert_example(finding, 0, "large (a.om)");
        assert_example(finding, 1, "small");
        assert_int_equal(bed->doctor->found, 1);
    }
}

static void annotations_that_cannot_be_read_are_told(void **state)
{
    struct bed *bed = *state;
    note(bed, NOTE_EXEMPT, "namespace lab", "until=2027-01-31, reason=a class", 1);
    assert_int_equal(find(bed, "ignore")->status, DOCTOR_FINE);
    note(bed, NOTE_EXEMPT, "node gpu-1", "until=soon", 1);
    const struct doctor_finding *finding = find(bed, "ignore");
    assert_int_equal(finding->status, DOCTOR_FOUND);
    assert_int_equal(finding->count, 1);
    assert_example(finding, 0, "node gpu-1: 'soon' is no date such as 2026-12-31");
}

static void late_labels_name_the_pods(void **state)
{
    struct bed *bed = *state;
    note(bed, NOTE_LATE_LABELS, "web/chat-0", "seconds for which telemetry …", 400);
    const struct doctor_finding *finding = find(bed, "late-labels");
    assert_int_equal(finding->count, 400);
    assert_example(finding, 0, "web/chat-0");
}

static void three_examples_are_kept_and_the_others_counted(void **state)
{
    struct bed *bed = *state;
    static const char *const names[] = {"c", "a", "d", "b", "e"};
    static const int hours[] = {3, 5, 2, 4, 1};
    struct group groups[5];
    for (int i = 0; i < 5; i++) {
        groups[i] = (struct group){.keys = {STR("-"), str_of(names[i])}};
        groups[i].figures.flag_gpu_ns[FLAG_INDEX_UNSEEN] = hours[i] * HOUR_NS;
    }
    bed->nodes.groups = groups;
    bed->nodes.groups_n = 5;
    bed->total.total.flag_gpu_ns[FLAG_INDEX_UNSEEN] = 15 * HOUR_NS;
    const struct doctor_finding *finding = find(bed, "unseen");
    assert_int_equal(finding->examples_n, 3);
    assert_int_equal(finding->more, 2);
    assert_example(finding, 0, "a");
    assert_example(finding, 1, "b");
    assert_example(finding, 2, "c");
}

static void hours_that_the_ledger_lacks_are_an_error(void **state)
{
    struct bed *bed = *state;
    bed->total.recorded.from += 5 * HOUR_MS;
    assert_int_equal(find(bed, "not-recorded")->count, 5);
    assert_int_equal(find(bed, "not-recorded")->status, DOCTOR_FOUND);
    bed->total.recorded = (struct span){0};
    assert_int_equal(find(bed, "not-recorded")->count, 168);
}

static void history_of_less_than_seven_days_is_said(void **state)
{
    struct bed *bed = *state;
    bed->facts.extent.to -= HOUR_MS;
    assert_int_equal(find(bed, "history")->status, DOCTOR_FOUND);
    assert_int_equal(find(bed, "history")->count, 167);
}

static void what_the_run_itself_knows_is_found(void **state)
{
    static const char *const lines[] = {"prices.csv:12: no number"};
    struct bed *bed = *state;
    bed->facts.list_prices = bed->facts.settings_changed = true;
    bed->facts.price_problems = lines;
    bed->facts.price_problems_n = 1;
    assert_int_equal(find(bed, "list-prices")->status, DOCTOR_FOUND);
    assert_int_equal(find(bed, "list-prices")->money, 200 * DOLLAR);
    assert_int_equal(find(bed, "settings")->status, DOCTOR_FOUND);
    assert_example(find(bed, "price-files"), 0, lines[0]);
}

static void the_worst_comes_first_then_the_dearest(void **state)
{
    struct bed *bed = *state;
    struct figures *total = &bed->total.total;
    total->flag_gpu_ns[FLAG_INDEX_OWNER_DEFAULT] = 100 * HOUR_NS;
    total->flag_cost[FLAG_INDEX_OWNER_DEFAULT] = 200 * DOLLAR;
    total->flag_gpu_ns[FLAG_INDEX_UNSEEN] = HOUR_NS;
    total->flag_cost[FLAG_INDEX_UNSEEN] = 2 * DOLLAR;
    total->flag_gpu_ns[FLAG_INDEX_DEFAULT_PRICE] = total->flag_gpu_ns[FLAG_INDEX_BY_COUNT] =
        10 * HOUR_NS;
    total->flag_cost[FLAG_INDEX_DEFAULT_PRICE] = 10 * DOLLAR;
    total->flag_cost[FLAG_INDEX_BY_COUNT] = 20 * DOLLAR;
    find(bed, "unseen");
    static const char *const order[] = {"unseen", "by-count", "default-price", "owner-default"};
    for (size_t i = 0; i < 4; i++)
        assert_string_equal(bed->doctor->findings[i].check->id, order[i]);
    assert_int_equal(bed->doctor->counts[DOCTOR_ERROR], 1);
    assert_int_equal(bed->doctor->counts[DOCTOR_WARNING], 2);
    assert_int_equal(bed->doctor->counts[DOCTOR_INFO], 1);
}

static void every_check_is_explained_once_in_the_documents(void **state)
{
    (void)state;
    char text[65536], heading[128];
    FILE *file = fopen(TEST_DATA "/../docs/doctor.md", "r");
    assert_non_null(file);
    size_t n = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[n] = 0;
    for (size_t i = 0; i < doctor_checks_n; i++) {
        const struct doctor_check *check = &doctor_checks[i];
        assert_true(check->title && check->effect && check->mend && check->test);
        snprintf(heading, sizeof heading, "\n## %s\n", check->id);
        const char *at = strstr(text, heading);
        if (!at || strstr(at + 1, heading))
            fail_msg("docs/doctor.md has not one section %s", check->id);
    }
}

#define test(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        test(a_sound_ledger_has_no_finding),
        test(what_is_not_there_is_unchecked_and_never_fine),
        test(what_a_server_says_is_named_by_check_the_largest_first),
        test(a_flag_is_found_with_its_hours_dollars_and_nodes),
        test(what_happens_a_little_everywhere_is_found_from_a_hundredth_or_a_gpu_day_on),
        test(rows_with_two_flags_of_a_check_are_not_counted_twice),
        test(unpriced_types_are_named_and_models_where_there_is_no_type),
        test(silence_is_told_apart_from_metrics_without_activity),
        test(without_hours_of_gpus_silence_is_what_is_neither_observed_nor_unseen),
        test(signals_are_missing_where_less_than_half_of_the_time_has_them),
        test(a_node_that_changed_its_type_is_named),
        test(unattributed_money_is_found_with_its_nodes),
        test(unowned_money_is_found_with_its_namespaces),
        test(notes_of_the_sources_are_added_up_the_largest_first),
        test(annotations_that_cannot_be_read_are_told),
        test(late_labels_name_the_pods),
        test(three_examples_are_kept_and_the_others_counted),
        test(hours_that_the_ledger_lacks_are_an_error),
        test(history_of_less_than_seven_days_is_said),
        test(what_the_run_itself_knows_is_found),
        test(the_worst_comes_first_then_the_dearest),
        test(every_check_is_explained_once_in_the_documents),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
