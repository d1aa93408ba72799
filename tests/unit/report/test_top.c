/* The view of `gputally top`: what an answer of the service looks like on a screen. */
#include "../../lib/unit.h"

#include <string.h>

#include "report/text.h"
#include "report/top.h"

#define NOW INT64_C(1796083200000) /* 2026-12-01T00:00Z */

static const char answer[] =
    "[{\"cluster\": null, \"node\": \"b\", \"device\": \"GPU-3\", \"model\": \"H100\", \"holder\": "
    "{\"namespace\": \"svc\", \"pod\": \"p\", \"workload\": \"Deployment/tagger\", \"team\": "
    "\"search\"}, \"util\": 0.9, \"sm\": 0.25, \"memory_used\": 42949672960, \"memory_total\": "
    "85899345920, \"power_w\": 301.4, \"price_hour\": \"4.000000000\", \"idle_since\": null, "
    "\"at\": \"2026-12-01T00:00:00Z\"},"
    "{\"cluster\": null, \"node\": \"a\", \"device\": \"GPU-2\", \"model\": \"H100\", \"holder\": "
    "{\"namespace\": \"nb\", \"pod\": \"p\", \"workload\": \"StatefulSet/ada\", \"team\": "
    "\"vision\"}, \"util\": 0, \"sm\": 0, \"memory_used\": 0, \"memory_total\": 85899345920, "
    "\"power_w\": 70, \"price_hour\": \"6.000000000\", \"idle_since\": \"2026-11-30T21:50:00Z\", "
    "\"at\": \"2026-12-01T00:00:00Z\"},"
    "{\"cluster\": null, \"node\": \"a\", \"device\": \"GPU-1\", \"model\": \"H100\", \"holder\": "
    "null, \"util\": null, \"sm\": null, \"memory_used\": null, \"memory_total\": null, "
    "\"power_w\": null, \"price_hour\": null, \"idle_since\": null, \"at\": null}]";

static struct top_list list;

static const char *render(struct top_view view)
{
    static struct strbuf out;
    struct error err = {0};
    view.now = NOW;
    view.title = "http://x";
    view.currency = "USD";
    strbuf_clear(&out);
    if (top_read(str_of(answer), &list, &err))
        fail_msg("%s", err.text);
    top_render(&list, &view, &out);
    return out.text;
}

/* The line that has a text; "" where none does. */
static struct str line_with(const char *screen, const char *text)
{
    const char *at = strstr(screen, text);
    if (!at)
        return STR("");
    const char *begin = at, *end = strchr(at, '\n');
    while (begin > screen && begin[-1] != '\n')
        begin--;
    return (struct str){begin, (size_t)(end - begin)};
}

static bool has(struct str line, const char *text)
{
    return memmem(line.p, line.n, text, strlen(text)) != NULL;
}

static void a_row_has_what_there_is_to_know(void **state)
{
    (void)state;
    struct str line = line_with(render((struct top_view){.sort = TOP_SORT_NODE}), "tagger");
    assert_true(has(line, "svc/Deployment/tagger"));
    assert_true(has(line, "search"));
    assert_true(has(line, "██ ")); /* a quarter of eight cells: SM activity goes before GPU_UTIL */
    assert_true(has(line, "25 %"));
    assert_true(has(line, "90 %")); /* GPU_UTIL beside it */
    assert_true(has(line, "40/80"));
    assert_true(has(line, " 301 "));
    assert_true(has(line, "$4.00"));
}

static void eighty_columns_have_what_matters(void **state)
{
    (void)state;
    struct str line = line_with(
        render((struct top_view){.sort = TOP_SORT_NODE, .lines = 24, .columns = 80}), "tagger");
    assert_true(has(line, "search") && has(line, "25 %") && has(line, "40/80") &&
                has(line, "$4.00"));
    assert_false(has(line, "90 %"));
    assert_true(text_width(line) <= 80);
}

static void what_is_not_known_is_a_dash(void **state)
{
    (void)state;
    struct str line = line_with(render((struct top_view){.sort = TOP_SORT_NODE}), "free  ");
    assert_false(has(line, "0 %"));
    assert_false(has(line, "$"));
}

static void the_longest_idle_comes_first_with_its_time(void **state)
{
    (void)state;
    const char *screen = render((struct top_view){.sort = TOP_SORT_IDLE});
    assert_true(strstr(screen, "ada") < strstr(screen, "tagger"));
    assert_true(has(line_with(screen, "ada"), "2 h 10"));
}

static void the_dearest_come_first_by_cost(void **state)
{
    (void)state;
    const char *screen = render((struct top_view){.sort = TOP_SORT_COST});
    assert_true(strstr(screen, "ada") < strstr(screen, "tagger"));
}

static void gpus_are_numbered_on_their_node(void **state)
{
    (void)state;
    render((struct top_view){.sort = TOP_SORT_NODE});
    assert_int_equal(list.gpus[0].index, 0);
    assert_int_equal(list.gpus[1].index, 1);
    assert_int_equal(list.gpus[2].index, 0);
}

static void a_filter_is_a_part_of_a_name(void **state)
{
    (void)state;
    const char *screen = render((struct top_view){.filter = STR("visi")});
    assert_non_null(strstr(screen, "ada"));
    assert_null(strstr(screen, "tagger"));
    assert_non_null(strstr(render((struct top_view){.filter = STR("none")}), "no GPU matches"));
}

static void a_filter_by_team_has_that_team_alone(void **state)
{
    (void)state;
    const char *screen = render((struct top_view){.filter = STR("team=vision")});
    assert_non_null(strstr(screen, "ada"));
    assert_null(strstr(screen, "tagger"));
    assert_non_null(
        strstr(render((struct top_view){.filter = STR("team=visi")}), "no GPU matches"));
    screen = render((struct top_view){.filter = STR("team=free")});
    assert_null(strstr(screen, "ada"));
    assert_null(strstr(screen, "no GPU matches"));
}

/* NOW is midnight. */
static void it_says_how_old_the_figures_are(void **state)
{
    struct error err = {0};
    struct strbuf out = {0};
    struct top_view view = {.now = NOW, .title = "http://x", .currency = "USD"};
    (void)state;
    assert_int_equal(
        top_read(STR("[{\"node\": \"a\", \"device\": \"1\", \"util\": 0.5, \"basis\": \"sample\", "
                     "\"at\": \"2026-11-30T23:59:48Z\"},"
                     "{\"node\": \"b\", \"device\": \"2\", \"util\": 0.5, \"basis\": \"sample\", "
                     "\"at\": \"2026-11-30T23:13:00Z\"},"
                     "{\"node\": \"c\", \"device\": \"3\", \"util\": 0.5, \"basis\": \"hour\", "
                     "\"at\": \"2026-11-30T22:00:00Z\"}]"),
                 &list, &err),
        ERR_OK);
    top_render(&list, &view, &out);
    assert_true(has(line_with(out.text, "3 GPUs on 3 nodes"), " · 12 s old"));
    assert_true(has(line_with(out.text, "3 GPUs"), "1 of the hour up to 2 h 00 ago"));
    assert_true(has(line_with(strstr(out.text, "\na ") + 1, "a "), "50 %"));
    assert_true(has(line_with(out.text, "47 min"), "(47 min)")); /* silent: not its use */
    assert_false(has(line_with(out.text, "47 min"), "50 %"));
    strbuf_release(&out);
}

static void teams_are_added_up(void **state)
{
    (void)state;
    const char *screen = render((struct top_view){.teams = true});
    struct str vision = line_with(screen, "vision");
    assert_true(has(vision, "$6.00  "));
    assert_true(has(line_with(screen, "search"), "$4.00"));
}

static void a_screen_has_no_more_lines_and_columns_than_the_terminal(void **state)
{
    (void)state;
    for (size_t columns = 40; columns <= 120; columns += 8) {
        const char *screen = render((struct top_view){.lines = 6, .columns = columns});
        size_t lines = 0;
        for (const char *at = screen; *at; lines++) {
            const char *end = strchr(at, '\n');
            struct str line = {at, (size_t)(end - at)};
            if (columns >= 72 && text_width(line) > columns)
                fail_msg("%zu columns: %.*s", columns, STR_ARG(line));
            at = end + 1;
        }
        if (columns >= 72)
            assert_in_range(lines, 1, 6);
    }
}

static void an_answer_that_is_no_list_is_refused(void **state)
{
    static const char *const cases[] = {"", "{}", "[1", "null", "{\"error\": 1}"};
    struct top_list none = {0};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct error err = {0};
        assert_int_equal(top_read(str_of(cases[i]), &none, &err), ERR_PARSE);
    }
    struct error err = {0};
    assert_int_equal(top_read(STR("[{}, 1, [], {\"util\": \"x\", \"at\": 5}]"), &none, &err),
                     ERR_OK);
    assert_int_equal(none.n, 4);
    top_list_release(&none);
}

static int done(void **state)
{
    (void)state;
    top_list_release(&list);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_row_has_what_there_is_to_know),
        cmocka_unit_test(eighty_columns_have_what_matters),
        cmocka_unit_test(what_is_not_known_is_a_dash),
        cmocka_unit_test(the_longest_idle_comes_first_with_its_time),
        cmocka_unit_test(the_dearest_come_first_by_cost),
        cmocka_unit_test(gpus_are_numbered_on_their_node),
        cmocka_unit_test(a_filter_is_a_part_of_a_name),
        cmocka_unit_test(a_filter_by_team_has_that_team_alone),
        cmocka_unit_test(it_says_how_old_the_figures_are),
        cmocka_unit_test(teams_are_added_up),
        cmocka_unit_test(a_screen_has_no_more_lines_and_columns_than_the_terminal),
        cmocka_unit_test(an_answer_that_is_no_list_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, done);
}
