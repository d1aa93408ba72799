/* What a page holds: the cube, the picture of the fleet, and the file that has them inside. */
#include "fixture.h"

#include <jansson.h>

#include "report/cube_json.h"
#include "report/fleet_json.h"
#include "report/html.h"
#include "report/page.h"
#include "store/store.h"

static json_t *parsed(const char *text)
{
    json_error_t error;
    json_t *value = json_loads(text, 0, &error);
    if (!value)
        fail_msg("no JSON: %s in %s", error.text, text);
    return value;
}

static const char *text_at(json_t *value, const char *field)
{
    return json_string_value(json_object_get(value, field));
}

/* ---- the cube ---- */

static void a_cube_names_its_fields_once_and_leaves_out_what_no_row_has(void **state)
{
    (void)state;
    struct result *result = result_start(KEY_TEAM);
    struct held held = {
        .hours = 2, .observed = 2, .u = 50, .used = dollars(4), .slack = dollars(4)};
    result_group(result, "a\"</b>", held_figures(held));
    result_group(result, "-", unheld_figures(1, dollars(3), 0));
    struct strbuf out = {0};
    cube_json(result, 0, &out);
    json_t *cube = parsed(out.text), *rows = json_object_get(cube, "rows");
    json_t *figures = json_object_get(cube, "figures");
    assert_int_equal(json_array_size(rows), 2);
    size_t cost = 99, idle = 99;
    for (size_t i = 0; i < json_array_size(figures); i++) {
        const char *name = json_string_value(json_array_get(figures, i));
        if (strcmp(name, "cost") == 0)
            cost = i;
        if (strcmp(name, "node_idle_empty") == 0)
            idle = i;
        assert_string_not_equal(name, "unhealthy");
        assert_string_not_equal(name, "node_idle"); /* the sum of what is there */
    }
    json_t *first = json_array_get(rows, 0), *second = json_array_get(rows, 1);
    assert_int_equal(json_array_size(first), 1 + json_array_size(figures));
    assert_string_equal(json_string_value(json_array_get(first, 0)), "a\"</b>");
    assert_true(json_is_null(json_array_get(second, 0))); /* nobody held it */
    assert_float_equal(json_number_value(json_array_get(first, 1 + cost)), 8, 0);
    assert_float_equal(json_number_value(json_array_get(second, 1 + idle)), 3, 0);
    json_decref(cube);
    strbuf_clear(&out);
    cube_json(result, 1, &out);
    cube = parsed(out.text);
    assert_int_equal(json_array_size(json_object_get(cube, "rows")), 1);
    assert_int_equal(json_integer_value(json_object_get(cube, "rows_total")), 2);
    json_decref(cube);
    strbuf_release(&out);
    result_end(result);
}

/* ---- the picture ---- */

struct fleet {
    struct names *names;
    struct store *store;
    struct row_batch batch;
};

static void fleet_start(struct fleet *fleet)
{
    struct error err = {0};
    fleet->names = names_new();
    fleet->batch = (struct row_batch){.names = fleet->names, .hours = {FROM_MS, FROM_MS + DAY_MS}};
    if (store_open(":memory:", STORE_WRITE, fleet->names, &fleet->store, &err) != ERR_OK)
        fail_msg("%s", err.text);
}

static void fleet_end(struct fleet *fleet)
{
    store_close(fleet->store);
    row_batch_release(&fleet->batch);
    names_free(fleet->names);
}

/* A whole GPU for an hour at 4: `category` took `part` of it, the rest was used. */
static struct row *add(struct fleet *fleet, int hour, const char *node, const char *device,
                       const char *pod, enum category category, int64_t part)
{
    struct row row = {.key = {.hour = FROM_MS + hour * HOUR_MS}, .share_den = 1};
    row.key.node = names_put(fleet->names, str_of(node));
    row.key.device = names_put(fleet->names, str_of(device));
    row.facts.model = names_put(fleet->names, STR("A100"));
    row.cost = dollars(4);
    row.category[category] += dollars(part);
    row.category[CATEGORY_USED] += dollars(4 - part);
    row.gpu_num = row.gpu_observed_num = row.observed_ms = HOUR_MS;
    if (pod) {
        row.key.namespace = names_put(fleet->names, STR("ml"));
        row.key.pod = names_put(fleet->names, str_of(pod));
        row.facts.workload = names_put(fleet->names, STR("Job/train"));
        row.facts.owner = names_put(fleet->names, STR("search"));
        row.gpu_held_num = row.held_ms = HOUR_MS;
    }
    mem_push(fleet->batch.rows, fleet->batch.rows_n, fleet->batch.rows_room, row);
    return &fleet->batch.rows[fleet->batch.rows_n - 1];
}

static json_t *picture_by(struct fleet *fleet, const struct query *query,
                          enum fleet_json_detail detail)
{
    struct error err = {0};
    struct strbuf out = {0};
    if (store_begin(fleet->store, &err) != ERR_OK ||
        store_append(fleet->store, &fleet->batch, &err) != ERR_OK ||
        store_commit(fleet->store, &(struct store_progress){.source = STR("s")}, &err) != ERR_OK ||
        fleet_json(fleet->store, query, detail, &out, &err) != ERR_OK)
        fail_msg("%s", err.text);
    json_t *value = parsed(out.text);
    strbuf_release(&out);
    return value;
}

static json_t *picture_of(struct fleet *fleet, struct span window, enum fleet_json_detail detail)
{
    struct query query = {.window = window};
    return picture_by(fleet, &query, detail);
}

static json_t *gpu_of(json_t *picture, size_t node, size_t gpu)
{
    json_t *nodes = json_object_get(picture, "nodes");
    return json_array_get(json_object_get(json_array_get(nodes, node), "gpus"), gpu);
}

/* g0: an hour with 3 of 4 held idle, one used, one missing; g1 free. Use of 50 % is 17.5 of 35
 * steps, which rounds to 18: "i". */
static void an_hour_has_the_letter_of_most_of_its_money(void **state)
{
    (void)state;
    struct fleet fleet = {0};
    fleet_start(&fleet);
    add(&fleet, 0, "n1", "g0", "p", CATEGORY_HELD_IDLE, 3);
    add(&fleet, 0, "n1", "g1", NULL, CATEGORY_STRANDED, 4);
    add(&fleet, 0, "n2", "g2", NULL, CATEGORY_EMPTY, 4);
    struct row *half = add(&fleet, 1, "n1", "g0", "p", CATEGORY_SLACK, 1);
    half->u = half->gpu_u_num = HOUR_MS * (NANO / 2);
    add(&fleet, 1, "n1", "g1", NULL, CATEGORY_UNHEALTHY, 4);
    json_t *picture =
        picture_of(&fleet, (struct span){FROM_MS, FROM_MS + 3 * HOUR_MS}, FLEET_JSON_FULL);
    assert_int_equal(json_array_size(json_object_get(picture, "hours")), 3);
    assert_int_equal(json_array_size(json_object_get(picture, "nodes")), 2);
    assert_string_equal(text_at(gpu_of(picture, 0, 0), "hours"), "IU.");
    assert_string_equal(text_at(gpu_of(picture, 0, 0), "use"), "0i-");
    assert_string_equal(text_at(gpu_of(picture, 0, 1), "hours"), "TH.");
    assert_string_equal(text_at(gpu_of(picture, 1, 0), "hours"), "E..");
    assert_string_equal(text_at(gpu_of(picture, 0, 0), "price_hour"), "4.000000000");
    json_t *runs = json_object_get(gpu_of(picture, 0, 0), "runs");
    assert_int_equal(json_array_size(runs), 3); /* one holder, two hours that follow */
    assert_int_equal(json_integer_value(json_array_get(runs, 1)), 2);
    json_t *holder = json_array_get(json_object_get(picture, "holders"), 0);
    assert_string_equal(text_at(holder, "workload"), "Job/train");
    assert_int_equal(json_array_size(json_object_get(gpu_of(picture, 0, 1), "runs")), 0);
    json_decref(picture);
    fleet_end(&fleet);
}

/* More nodes than one thread reads at a time, booked in any order, are in the order of their names;
 * holders are numbered as they come in it. Node 7k is held by "b", the others by "a". */
static void many_nodes_come_in_the_order_of_their_names(void **state)
{
    enum { NODES = 100 };
    (void)state;
    struct fleet fleet = {0};
    fleet_start(&fleet);
    for (int hour = 0; hour < 2; hour++)
        for (int i = 0; i < NODES; i++) {
            char node[16], device[16];
            int n = i * 37 % NODES;
            snprintf(node, sizeof node, "n%02d", n);
            snprintf(device, sizeof device, "g%02d", n);
            struct row *row = add(&fleet, hour, node, device, "p", CATEGORY_HELD_IDLE, n % 5);
            row->facts.workload = names_put(fleet.names, n % 7 ? STR("Job/a") : STR("Job/b"));
        }
    json_t *picture =
        picture_of(&fleet, (struct span){FROM_MS, FROM_MS + 2 * HOUR_MS}, FLEET_JSON_FULL);
    json_t *nodes = json_object_get(picture, "nodes"),
           *holders = json_object_get(picture, "holders");
    assert_int_equal(json_array_size(nodes), NODES);
    assert_int_equal(json_array_size(holders), 2);
    assert_string_equal(text_at(json_array_get(holders, 0), "workload"), "Job/b"); /* n00's */
    for (int n = 0; n < NODES; n++) {
        char node[16];
        snprintf(node, sizeof node, "n%02d", n);
        json_t *gpu = gpu_of(picture, (size_t)n, 0), *runs = json_object_get(gpu, "runs");
        assert_string_equal(text_at(json_array_get(nodes, (size_t)n), "node"), node);
        /* 3 and 4 of 4 dollars are more than what is left to "used" */
        assert_string_equal(text_at(gpu, "hours"), n % 5 >= 3 ? "II" : "UU");
        assert_int_equal(json_array_size(runs), 3);
        assert_int_equal(json_integer_value(json_array_get(runs, 1)), 2);
        assert_int_equal(json_integer_value(json_array_get(runs, 2)), n % 7 ? 1 : 0);
    }
    json_decref(picture);
    fleet_end(&fleet);
}

/* Without a price there is no money to go by: time decides, and what nobody held is "E". */
static void an_hour_without_a_price_goes_by_time(void **state)
{
    (void)state;
    struct fleet fleet = {0};
    fleet_start(&fleet);
    for (int hour = 0; hour < 3; hour++) {
        struct row *row = add(&fleet, hour, "n1", "g0", hour < 2 ? "p" : NULL, CATEGORY_USED, 0);
        row->cost = row->category[CATEGORY_USED] = 0;
        if (hour == 0)
            row->gpu_state_num[STATE_IDLE] = row->state_ms[STATE_IDLE] = HOUR_MS;
        else
            row->u = row->gpu_u_num = HOUR_MS * (NANO / 10 * 9);
    }
    json_t *picture =
        picture_of(&fleet, (struct span){FROM_MS, FROM_MS + 3 * HOUR_MS}, FLEET_JSON_BRIEF);
    assert_string_equal(text_at(gpu_of(picture, 0, 0), "hours"), "IUE");
    assert_true(json_is_null(json_object_get(gpu_of(picture, 0, 0), "price_hour")));
    assert_null(json_object_get(gpu_of(picture, 0, 0), "runs"));
    json_decref(picture);
    fleet_end(&fleet);
}

/* Two halves of a GPU at 40 and 20 % of SM activity: 30 %, of which 35 steps are 10.5, so 11: "b".
 * Who does not export tensor activity has no such line. */
static void activity_is_weighed_by_share_and_absent_where_nobody_exports_it(void **state)
{
    (void)state;
    struct fleet fleet = {0};
    fleet_start(&fleet);
    for (int half = 0; half < 2; half++) {
        struct row *row = add(&fleet, 1, "n1", "g0", half ? "q" : "p", CATEGORY_SLACK, 4);
        row->cost = row->category[CATEGORY_SLACK] = dollars(2);
        row->share_den = 2;
        row->measure[MEASURE_SM] = HOUR_MS * (NANO / 10) * (half ? 2 : 4);
        row->measure_seen_ms[MEASURE_SM] = HOUR_MS;
    }
    json_t *picture =
        picture_of(&fleet, (struct span){FROM_MS, FROM_MS + 3 * HOUR_MS}, FLEET_JSON_FULL);
    assert_string_equal(text_at(gpu_of(picture, 0, 0), "sm"), "-b-");
    assert_null(json_object_get(gpu_of(picture, 0, 0), "tensor"));
    json_decref(picture);
    fleet_end(&fleet);
}

/* Rows that do not pass are not there, and a GPU without a row that does has no strip. */
static void filters_leave_only_rows_that_pass(void **state)
{
    (void)state;
    struct fleet fleet = {0};
    struct error err = {0};
    struct query query = {.window = {FROM_MS, FROM_MS + 2 * HOUR_MS}};
    fleet_start(&fleet);
    add(&fleet, 0, "n1", "g0", "p", CATEGORY_HELD_IDLE, 3);
    add(&fleet, 0, "n1", "g1", NULL, CATEGORY_STRANDED, 4);
    add(&fleet, 1, "n1", "g0", NULL, CATEGORY_STRANDED, 4);
    assert_int_equal(query_parse_filter(STR("workload=Job/*"), &query, &err), ERR_OK);
    json_t *picture = picture_by(&fleet, &query, FLEET_JSON_FULL);
    assert_int_equal(json_array_size(json_object_get(picture, "nodes")), 1);
    assert_string_equal(text_at(gpu_of(picture, 0, 0), "hours"), "I.");
    assert_null(gpu_of(picture, 0, 1));
    json_decref(picture);
    fleet_end(&fleet);
}

static void a_category_passes_rows_that_have_money_of_it(void **state)
{
    (void)state;
    struct fleet fleet = {0};
    struct error err = {0};
    struct query query = {.window = {FROM_MS, FROM_MS + 2 * HOUR_MS}};
    fleet_start(&fleet);
    add(&fleet, 0, "n1", "g0", "p", CATEGORY_HELD_IDLE, 1);
    add(&fleet, 1, "n1", "g0", NULL, CATEGORY_STRANDED, 4);
    assert_int_equal(query_parse_filter(STR("category=node_idle"), &query, &err), ERR_OK);
    json_t *picture = picture_by(&fleet, &query, FLEET_JSON_FULL);
    assert_string_equal(text_at(gpu_of(picture, 0, 0), "hours"), ".T");
    json_decref(picture);
    fleet_end(&fleet);
}

static void an_empty_window_is_an_empty_picture(void **state)
{
    (void)state;
    struct fleet fleet = {0};
    fleet_start(&fleet);
    json_t *picture = picture_of(&fleet, (struct span){FROM_MS, FROM_MS}, FLEET_JSON_FULL);
    assert_int_equal(json_array_size(json_object_get(picture, "nodes")), 0);
    json_decref(picture);
    fleet_end(&fleet);
}

/* ---- the file ---- */

static void check_data(const char *name, const char *element)
{
    struct page_file file;
    struct strbuf out = {0};
    struct error err = {0};
    struct html_block block = {"x", STR("{\"a\": \"</script><!--<script>\"}")};
    enum err code = html_page(str_of(name), &block, 1, &out, &err);
    if (!page_file(str_of(name), &file)) { /* a build without the page */
        assert_int_equal(code, ERR_NOT_FOUND);
        return;
    }
    assert_int_equal(code, ERR_OK);
    const char *data = strstr(out.text, element);
    assert_non_null(data);
    data = strchr(data, '>') + 1;
    const char *end = strchr(data, '<'); /* the first sign of markup is the element's own end */
    assert_memory_equal(end, "</script>", 9);
    char *json = str_dup((struct str){data, (size_t)(end - data)});
    json_t *value = parsed(json);
    assert_string_equal(text_at(json_object_get(value, "x"), "a"), "</script><!--<script>");
    json_decref(value);
    free(json);
    strbuf_release(&out);
}

static void nothing_in_the_data_can_end_its_element(void **state)
{
    (void)state;
    check_data("report.html", "id=\"gputally-data\">");
    check_data("index.html", "id=\"gputally-first\">");
}

static void a_file_of_the_page_unpacks_to_what_it_says(void **state)
{
    (void)state;
    static const char *const names[] = {"index.html", "others.js", "plot.js", "report.html"};
    struct page_file file;
    struct error err = {0};
    assert_false(page_file(STR("../etc/passwd"), &file));
    if (!page_file(STR("index.html"), &file))
        return; /* a build without the page */
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct strbuf out = {0};
        assert_true(page_file(str_of(names[i]), &file));
        assert_int_equal(page_unpack(str_of(names[i]), &out, &err), ERR_OK);
        assert_int_equal(out.n, file.plain_n);
        assert_int_equal(file.script_hash != NULL, i == 0); /* it has its script inside */
        assert_int_equal(file.style_hash != NULL, i == 0);
        strbuf_release(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cube_names_its_fields_once_and_leaves_out_what_no_row_has),
        cmocka_unit_test(an_hour_has_the_letter_of_most_of_its_money),
        cmocka_unit_test(many_nodes_come_in_the_order_of_their_names),
        cmocka_unit_test(an_hour_without_a_price_goes_by_time),
        cmocka_unit_test(activity_is_weighed_by_share_and_absent_where_nobody_exports_it),
        cmocka_unit_test(filters_leave_only_rows_that_pass),
        cmocka_unit_test(a_category_passes_rows_that_have_money_of_it),
        cmocka_unit_test(an_empty_window_is_an_empty_picture),
        cmocka_unit_test(nothing_in_the_data_can_end_its_element),
        cmocka_unit_test(a_file_of_the_page_unpacks_to_what_it_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
