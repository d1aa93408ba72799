#include "fixture.h"

#include <jansson.h>

#include "fleet/intake.h"
#include "report/figure.h"
#include "report/statement.h"
#include "report/text.h"

static char *rendered(const struct report *report, enum report_format format)
{
    struct strbuf out = {0};
    report_render(report, format, &out);
    return out.text;
}

static void expect_part(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("missing: %s\nin:\n%s", part, text);
}

static void expect_no_part(const char *text, const char *part)
{
    if (strstr(text, part))
        fail_msg("unexpected: %s\nin:\n%s", part, text);
}

/* Worked by hand: search paid 980 for 49 useful GPU-hours = $20.00; unowned 200 for 0.2 = $1,000;
 * all of it 2,000: used 492 = 24.6 %, slack 290 = 14.5 %, held idle 398 = 19.9 %, unobserved 1 %;
 * utilisation (49 + 0.2) / 118 = 41.69 %; effective price 1180 / 49.2 = 23.98. */
static void the_table_says_where_each_dollar_went(void **state)
{
    (void)state;
    struct result *result = small_result();
    struct report report = report_of(result);
    char *text = rendered(&report, REPORT_TABLE);
    assert_string_equal(
        text,
        "prod · 2026-11-23 00:00Z to 2026-11-30 00:00Z · 8 GPUs on 2 nodes · 98.3 % observed\n"
        "unobserved: $20 (1 %) is covered by no telemetry; 2.0 GPU-hours were held and not "
        "observed\n"
        "\n"
        "TEAM      GPU-H    COST  USED  SLACK  HELD IDLE  UNOBSERVED  UTIL  $/USEFUL GPU-H\n"
        "search    100.0  $1,000  49 %   29 %       20 %         2 %  50 %          $20.00\n"
        "unowned    20.0    $200   1 %    0 %       99 %         0 %   1 %       $1,000.00\n"
        "platform   80.0    $800  node idle: empty $600 · stranded $200\n"
        "TOTAL     200.0  $2,000  25 %   15 %       20 %         1 %  42 %          $23.98\n"
        "balanced: every one of 40 node-hours is booked once ($2,000.00 of $2,000.00)\n");
    free(text);
    result_end(result);
}

static void columns_line_up_whatever_the_names(void **state)
{
    (void)state;
    struct result *result = result_start(KEY_TEAM);
    struct held held = {.hours = 1, .observed = 1, .u = 50, .used = dollars(5)};
    result_group(result, "東京", held_figures(held));
    result_group(result, "a\x1b[31m", held_figures(held));
    result_group(result, "b", held_figures(held));
    struct report report = report_of(result);
    char *text = rendered(&report, REPORT_TABLE);
    expect_part(text, "\n東京         1.0");
    expect_part(text, "\na\\x1b[31m    1.0");
    expect_part(text, "\nb            1.0");
    expect_no_part(text, "\x1b");
    free(text);
    result_end(result);
}

static void names_are_cut_only_where_the_terminal_has_no_room(void **state)
{
    (void)state;
    const char *name = "a-team-with-a-name-that-is-longer-than-most-names-are";
    struct result *result = result_start(KEY_TEAM);
    result_group(result, name, held_figures((struct held){.hours = 1, .used = dollars(5)}));
    struct report report = report_of(result);
    char *text = rendered(&report, REPORT_TABLE);
    expect_part(text, name);
    free(text);
    report.columns = 200;
    text = rendered(&report, REPORT_TABLE);
    expect_part(text, name);
    free(text);
    report.columns = 80;
    text = rendered(&report, REPORT_TABLE);
    expect_no_part(text, name);
    expect_part(text, "…");
    free(text);
    result_end(result);
}

/* 80 columns: headings on two lines come first, and then there is room for the whole name. */
static void headings_are_stacked_before_names_are_cut(void **state)
{
    (void)state;
    const char *name = "a-team-with-a-name";
    struct result *result = result_start(KEY_TEAM);
    result_group(result, name, held_figures((struct held){.hours = 1, .used = dollars(5)}));
    struct report report = report_of(result);
    report.columns = 80;
    char *text = rendered(&report, REPORT_TABLE);
    expect_part(text, name);
    expect_part(text, " HELD                    $/USEFUL\n");
    expect_part(text, " IDLE  UNOBSERVED  UTIL     GPU-H\n");
    free(text);
    result_end(result);
}

/* Six keys of 12 columns leave no room for nine figures in 100: what goes is said. */
static void columns_that_have_no_room_are_named(void **state)
{
    (void)state;
    struct result *result = result_start(KEY_TEAM);
    struct group *group = result_group(result, "a-team-with-a-name",
                                       held_figures((struct held){.hours = 1, .used = dollars(5)}));
    for (size_t i = 1; i < 4; i++) {
        result->query.keys[i] = KEY_WORKLOAD;
        group->keys[i] = STR("PyTorchJob/pretrain-70b-of-the-autumn");
    }
    result->query.keys_n = 4;
    struct report report = report_of(result);
    report.columns = 100;
    char *text = rendered(&report, REPORT_TABLE);
    expect_no_part(text, "UNOBSERVED");
    expect_part(text, "\nno room for: unobserved");
    expect_part(text, "(--output wide has all)\n");
    for (const char *line = strstr(text, "\n\n"); line && *line; line = strchr(line, '\n')) {
        line++;
        assert_true(text_width((struct str){line, strcspn(line, "\n")}) <= 100);
    }
    free(text);
    result_end(result);
}

static void flags_run_over_the_edge_rather_than_being_cut(void **state)
{
    (void)state;
    struct result *result = small_result();
    result->groups[0].figures.flag_gpu_ns[FLAG_INDEX_BY_COUNT] = HOUR_NS;
    result->groups[0].figures.flag_gpu_ns[FLAG_INDEX_UP_SAMPLES] = HOUR_NS;
    struct report report = report_of(result);
    report.columns = 80;
    char *text = rendered(&report, REPORT_WIDE);
    expect_part(text, "  by-count up-samples\n");
    free(text);
    result_end(result);
}

static void colour_only_where_asked(void **state)
{
    (void)state;
    struct result *result = small_result();
    struct report report = report_of(result);
    report.colour = true;
    char *text = rendered(&report, REPORT_TABLE);
    expect_part(text, "\x1b[1mTOTAL");
    free(text);
    result_end(result);
}

static void what_is_absent_is_a_dash_not_zero(void **state)
{
    (void)state;
    struct result *result = result_start(KEY_TEAM);
    result_group(result, "dark", held_figures((struct held){.hours = 2, .unobserved = dollars(9)}));
    struct report report = report_of(result);
    char *text = rendered(&report, REPORT_TABLE);
    expect_part(text,
                "dark     2.0  $9.00   0 %    0 %        0 %       100 %     –               –\n");
    expect_part(text, "0 % observed");
    free(text);
    result_end(result);
}

static void limit_sums_up_what_it_leaves_out(void **state)
{
    (void)state;
    struct result *result = result_start(KEY_TEAM);
    for (int i = 0; i < 5; i++) {
        char name[2] = {(char)('a' + i), 0};
        result_group(result, name, held_figures((struct held){.hours = 10, .used = dollars(100)}));
    }
    result_group(result, "-", unheld_figures(1, dollars(7), 0));
    struct report report = report_of(result);
    report.limit = 2;
    char *text = rendered(&report, REPORT_TABLE);
    expect_part(text, "\nb          10.0  $100.00");
    expect_part(text, "\n3 more     30.0  $300.00");
    expect_part(text, "\nplatform    1.0    $7.00  node idle: empty $7.00\n");
    expect_part(text, "\nTOTAL      51.0  $507.00");
    expect_no_part(text, "\nc ");
    free(text);
    result_end(result);
}

static void a_team_called_platform_is_not_the_row_of_nobody(void **state)
{
    (void)state;
    struct result *result = small_result();
    result_group(result, "platform", held_figures((struct held){.hours = 1, .used = dollars(1)}));
    struct report report = report_of(result);
    char *text = rendered(&report, REPORT_TABLE);
    expect_part(text, "\n(not held)   80.0    $800  node idle:");
    free(text);
    result_end(result);
}

static void by_node_shows_node_idle_as_a_column(void **state)
{
    (void)state;
    struct result *result = result_start(KEY_NODE);
    struct figures node =
        held_figures((struct held){.hours = 4, .observed = 4, .u = 100, .used = dollars(30)});
    struct figures idle = unheld_figures(4, 0, dollars(10));
    figures_add(&node, &idle);
    result_group(result, "gpu-1", node);
    struct report report = report_of(result);
    char *text = rendered(&report, REPORT_TABLE);
    expect_part(text, "NODE   GPU-H    COST  USED  SLACK  HELD IDLE  NODE IDLE  UNOBSERVED");
    expect_part(text, "gpu-1    8.0  $40.00  75 %    0 %        0 %       25 %         0 %");
    free(text);
    result_end(result);
}

static void wide_has_every_category_in_money(void **state)
{
    (void)state;
    struct result *result = small_result();
    struct report report = report_of(result);
    char *text = rendered(&report, REPORT_WIDE);
    for (int i = 0; i < FIGURE_COUNT; i++)
        if (figure_defs[i].unit == UNIT_MONEY && figure_defs[i].heading[0] != '/')
            expect_part(text, figure_defs[i].heading);
    expect_part(text, "\n–         80.0");
    expect_part(text, "$600");
    free(text);
    result_end(result);
}

static void a_balance_that_is_off_says_so(void **state)
{
    (void)state;
    struct result *result = small_result();
    result->price += 1;
    struct report report = report_of(result);
    char *text = rendered(&report, REPORT_TABLE);
    expect_part(text, "NOT BALANCED, which is a bug of gputally: please report it. Booked "
                      "($2,000.000000000 of $2,000.000000001)");
    expect_no_part(text, "\nbalanced");
    free(text);
    result_end(result);
}

static void what_is_missing_is_said_first(void **state)
{
    (void)state;
    struct result *result = small_result();
    result->total.flag_gpu_ns[FLAG_INDEX_UNPRICED] = 168 * HOUR_NS;
    result->total.flag_gpu_ns[FLAG_INDEX_BY_COUNT] = 5 * HOUR_NS;
    result->total.flag_cost[FLAG_INDEX_BY_COUNT] = dollars(100);
    result_note(result, NOTE_REJECTED, "a.om", "samples without a time stamp", 1000);
    result_note(result, NOTE_REJECTED, "b.om", "samples without a time stamp", 1200);
    result_note(result, NOTE_REJECTED, "c.om", "bad lines: 7 no value", 1);
    result_note(result, NOTE_PARTIAL, "http://p:9090", "the server cut its answer", 1);
    result->recorded.from += 24 * HOUR_MS;
    struct report report = report_of(result);
    char *text = rendered(&report, REPORT_TABLE);
    static const char *const order[] = {
        "observed\nnot all recorded: the ledger has only 2026-11-24 00:00Z to 2026-11-30 00:00Z: "
        "144 of the window's 168 hours\n",
        "\npartial: the server cut its answer (http://p:9090)\n",
        "\nunpriced: 168.0 GPU-hours have no known price and stand here as 0; give one with "
        "--prices FILE\n",
        "\nrejected: 2,200 samples without a time stamp (b.om, a.om); bad lines: 7 no value "
        "(c.om)\n",
        "\nby count: $100 (5 %) is laid on GPUs by count",
        "\nunobserved: $20 (1 %)",
        "\n\nTEAM",
    };
    const char *at = text;
    for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
        const char *found = strstr(at, order[i]);
        if (!found)
            fail_msg("missing or out of order: %s\nin:\n%s", order[i], text);
        at = found;
    }
    assert_true(report_incomplete(&report));
    free(text);
    result_end(result);
}

static void what_lacks_a_price_is_named(void **state)
{
    (void)state;
    struct result *result = small_result(), *types = result_start(KEY_INSTANCE_TYPE);
    result->total.flag_gpu_ns[FLAG_INDEX_UNPRICED] = 7 * HOUR_NS;
    struct figures lacking = {.gpu_ns = HOUR_NS, .rows = 1};
    result_group(types, "priced.8x", lacking);
    lacking.flag_gpu_ns[FLAG_INDEX_UNPRICED] = HOUR_NS;
    result_group(types, "odd.8x", lacking);
    result_group(types, "-", lacking)->keys[1] = STR("A30");
    struct report report = report_of(result);
    report.unpriced = types;
    char *text = rendered(&report, REPORT_TABLE);
    expect_part(text,
                "\nunpriced: 7.0 GPU-hours have no known price and stand here as 0 (instance type "
                "odd.8x; A30 on nodes of no known type); give one with --prices FILE\n");
    free(text);
    result_end(types);
    result_end(result);
}

static void a_clean_report_is_not_incomplete(void **state)
{
    (void)state;
    struct result *result = small_result();
    struct report report = report_of(result);
    assert_false(report_incomplete(&report)); /* unobserved and unowned are cautions */
    result->recorded.to -= HOUR_MS;
    assert_true(report_incomplete(&report));
    result_end(result);
}

static void unowned_is_said_from_the_overview(void **state)
{
    (void)state;
    struct result *result = small_result(), *overview = result_start(KEY_CLUSTER);
    overview->query.keys[1] = KEY_TEAM;
    overview->query.keys_n = 2;
    result_group(overview, "eu-1", result->groups[1].figures)->keys[1] = STR("unowned");
    struct report report = report_of(result);
    report.overview = overview;
    char *text = rendered(&report, REPORT_TABLE);
    expect_part(text, "eu-1 · 2026");
    expect_part(text,
                "\nunowned: $200 (10 %), 20.0 GPU-hours, of pods that no owner rule matches\n");
    free(text);
    result_end(overview);
    result_end(result);
}

/* ---- machine formats ---- */

static const char *text_at(json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    assert_non_null(text);
    return text;
}

static void json_keeps_every_digit_and_null_for_absent(void **state)
{
    (void)state;
    struct result *result = small_result();
    result->groups[0].figures.category[CATEGORY_USED] += 1;
    result->groups[0].figures.cost += 1;
    struct report report = report_of(result);
    char *text = rendered(&report, REPORT_JSON);
    json_error_t error;
    json_t *root = json_loads(text, 0, &error);
    if (!root)
        fail_msg("line %d: %s", error.line, error.text);
    assert_string_equal(text_at(root, "schema"), "gputally.report/1");
    assert_string_equal(text_at(root, "currency"), "USD");
    assert_string_equal(text_at(json_object_get(root, "window"), "from"), "2026-11-23T00:00:00Z");
    json_t *rows = json_object_get(root, "rows"), *search = json_array_get(rows, 0);
    assert_int_equal(json_array_size(rows), 3);
    assert_string_equal(text_at(search, "team"), "search");
    assert_string_equal(text_at(search, "used"), "490.000000001");
    assert_string_equal(text_at(search, "effective_price"), "20.000000000");
    assert_true(json_real_value(json_object_get(search, "utilisation")) == 0.5);
    assert_int_equal(json_integer_value(json_object_get(search, "gpu_hours")), 100);
    json_t *nobody = json_array_get(rows, 2);
    assert_true(json_is_null(json_object_get(nobody, "team")));
    assert_true(json_is_null(json_object_get(nobody, "utilisation")));
    assert_true(json_is_null(json_object_get(nobody, "effective_price")));
    assert_string_equal(text_at(nobody, "node_idle"), "800.000000000");
    assert_string_equal(text_at(nobody, "node_idle_stranded"), "200.000000000");
    json_t *balance = json_object_get(root, "balance");
    assert_string_equal(text_at(balance, "price"), "2000.000000000");
    assert_string_equal(text_at(balance, "booked"), "2000.000000000");
    for (int i = 0; i < FIGURE_COUNT; i++) {
        assert_non_null(json_object_get(search, figure_defs[i].name));
        assert_non_null(json_object_get(json_object_get(root, "totals"), figure_defs[i].name));
    }
    json_decref(root);
    free(text);
    result_end(result);
}

static void json_notes_carry_numbers(void **state)
{
    (void)state;
    struct result *result = small_result();
    result_note(result, NOTE_REJECTED, "DCGM_FI_DEV_GPU_UTIL", "blank value", 1200);
    struct report report = report_of(result);
    char *text = rendered(&report, REPORT_JSON);
    json_t *root = json_loads(text, 0, NULL), *notes = json_object_get(root, "notes");
    json_t *rejected = json_array_get(notes, 0), *unobserved = json_array_get(notes, 1);
    assert_string_equal(text_at(rejected, "code"), "rejected");
    assert_string_equal(text_at(rejected, "subject"), "DCGM_FI_DEV_GPU_UTIL");
    assert_int_equal(json_integer_value(json_object_get(rejected, "count")), 1200);
    assert_string_equal(text_at(unobserved, "code"), "unobserved");
    assert_string_equal(text_at(unobserved, "cost"), "20.000000000");
    assert_int_equal(json_integer_value(json_object_get(unobserved, "gpu_hours")), 2);
    json_decref(root);
    free(text);
    result_end(result);
}

static void csv_has_one_line_a_row_and_a_field_a_figure(void **state)
{
    (void)state;
    struct result *result = result_start(KEY_INSTANCE_TYPE);
    result_group(result, "=cmd()", held_figures((struct held){.hours = 1, .used = dollars(3)}));
    struct report report = report_of(result);
    char *text = rendered(&report, REPORT_CSV);
    expect_part(text, "window_from,window_to,currency,instance_type,gpu_hours,held_gpu_hours,");
    expect_part(text, "\n2026-11-23T00:00:00Z,2026-11-30T00:00:00Z,USD,'=cmd(),1,1,0,0,");
    expect_part(text, ",3.000000000,3.000000000,0.000000000,");
    size_t fields[2] = {1, 1}, line = 0;
    for (const char *p = text; *p; p++) {
        fields[line] += *p == ',';
        line += *p == '\n' && line == 0;
    }
    assert_int_equal(fields[0], 3 + 1 + FIGURE_COUNT + 1);
    assert_int_equal(fields[0], fields[1]);
    free(text);
    result_end(result);
}

static void markdown_shows_names_literally(void **state)
{
    (void)state;
    struct result *result = result_start(KEY_TEAM);
    result_group(result, "a|b<script>*",
                 held_figures((struct held){.hours = 1, .used = dollars(3)}));
    struct report report = report_of(result);
    char *text = rendered(&report, REPORT_MARKDOWN);
    expect_part(text, "\n| a\\|b&lt;script>\\* | 1.0 | $3.00 |");
    expect_part(text, "\n| :-- | --: |");
    expect_part(text, "\n| **TOTAL** | **1.0** | **$3.00** |");
    free(text);
    result_end(result);
}

static void every_figure_can_be_sorted_by(void **state)
{
    (void)state;
    struct result *result = small_result();
    for (int i = 0; i < FIGURE_COUNT; i++)
        assert_int_equal(result_sort(result, str_of(figure_defs[i].name), NULL), ERR_OK);
    result_end(result);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_table_says_where_each_dollar_went),
        cmocka_unit_test(columns_line_up_whatever_the_names),
        cmocka_unit_test(names_are_cut_only_where_the_terminal_has_no_room),
        cmocka_unit_test(headings_are_stacked_before_names_are_cut),
        cmocka_unit_test(columns_that_have_no_room_are_named),
        cmocka_unit_test(flags_run_over_the_edge_rather_than_being_cut),
        cmocka_unit_test(colour_only_where_asked),
        cmocka_unit_test(what_is_absent_is_a_dash_not_zero),
        cmocka_unit_test(limit_sums_up_what_it_leaves_out),
        cmocka_unit_test(a_team_called_platform_is_not_the_row_of_nobody),
        cmocka_unit_test(by_node_shows_node_idle_as_a_column),
        cmocka_unit_test(wide_has_every_category_in_money),
        cmocka_unit_test(a_balance_that_is_off_says_so),
        cmocka_unit_test(what_is_missing_is_said_first),
        cmocka_unit_test(what_lacks_a_price_is_named),
        cmocka_unit_test(a_clean_report_is_not_incomplete),
        cmocka_unit_test(unowned_is_said_from_the_overview),
        cmocka_unit_test(json_keeps_every_digit_and_null_for_absent),
        cmocka_unit_test(json_notes_carry_numbers),
        cmocka_unit_test(csv_has_one_line_a_row_and_a_field_a_figure),
        cmocka_unit_test(markdown_shows_names_literally),
        cmocka_unit_test(every_figure_can_be_sorted_by),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
