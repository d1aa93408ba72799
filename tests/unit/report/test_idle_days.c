/* The idle scan as a picture: a letter for every day, and the means that it follows from. A scan of
 * one node with one GPU over five days is written down as it is meant. */
#include "fixture.h"

#include <jansson.h>

#include "report/idle.h"

#define DAYS 5
#define PERCENT (NANO / 100)

struct scan {
    struct names *names;
    struct view view;
    struct view_device view_device;
    struct view_node view_node;
    struct idle_scan scan;
    struct idle_device device;
    struct idle_node node;
    struct span spans[DAYS];
    struct idle_day days[DAYS];
    struct idle_host_day hosts[DAYS];
};

static struct idle_day day(bool sufficient, enum idle_check util, enum idle_check power)
{
    return (struct idle_day){.mean = {166666667, 5 * PERCENT, -1},
                             .check = {util, util, power},
                             .up_ms = DAY_MS,
                             .observed_ms = sufficient ? DAY_MS : 0,
                             .held_ms = DAY_MS / 4,
                             .sufficient = sufficient,
                             .failed = util == IDLE_FAILED || power == IDLE_FAILED};
}

static void scan_start(struct scan *s)
{
    *s = (struct scan){.names = names_new()};
    for (int d = 0; d < DAYS; d++)
        s->spans[d] = (struct span){FROM_MS + d * DAY_MS, FROM_MS + (d + 1) * DAY_MS};
    s->days[0] = day(true, IDLE_MET, IDLE_MET);
    s->days[1] = day(true, IDLE_MET, IDLE_UNCHECKED);
    s->days[2] = day(true, IDLE_FAILED, IDLE_UNCHECKED);
    s->days[3] = day(false, IDLE_FAILED, IDLE_MET); /* a failure on half a day decides nothing */
    s->days[4] = (struct idle_day){.mean = {-1, -1, -1}};
    s->hosts[0] = (struct idle_host_day){.check = {IDLE_MET, IDLE_MET}, .sufficient = true};
    s->hosts[1] = (struct idle_host_day){.check = {IDLE_MET, IDLE_UNCHECKED}, .sufficient = true};
    s->hosts[2] = (struct idle_host_day){
        .check = {IDLE_FAILED, IDLE_MET}, .sufficient = true, .failed = true};
    s->hosts[3] = (struct idle_host_day){.check = {IDLE_FAILED, IDLE_MET}, .failed = true};
    for (int d = 0; d < DAYS; d++)
        s->hosts[d].host = (struct view_host){d == 4 ? -1 : 4 * PERCENT, d == 4 ? -1 : 1000};
    s->view_device = (struct view_device){.device = names_put(s->names, STR("GPU-\"a\"")),
                                          .node = names_put(s->names, STR("n1"))};
    s->view_node = (struct view_node){.node = s->view_device.node, .n = 1};
    s->view = (struct view){.names = s->names,
                            .window = {FROM_MS, FROM_MS + DAYS * DAY_MS},
                            .days = s->spans,
                            .days_n = DAYS,
                            .devices = &s->view_device,
                            .devices_n = 1,
                            .nodes = &s->view_node,
                            .nodes_n = 1};
    s->device = (struct idle_device){.device = &s->view_device,
                                     .verdict = VERDICT_NOT,
                                     .unchecked = {[VIEW_POWER] = true},
                                     .power_below = 188 * NANO / 1000,
                                     .days = s->days,
                                     .sufficient_days = 3};
    s->node = (struct idle_node){.node = &s->view_node,
                                 .verdict = VERDICT_NOT,
                                 .devices = &s->device,
                                 .devices_n = 1,
                                 .days = s->hosts};
    s->scan = (struct idle_scan){
        .view = &s->view, .devices = &s->device, .devices_n = 1, .nodes = &s->node, .nodes_n = 1};
}

static json_t *printed(struct scan *s)
{
    struct strbuf out = {0};
    json_error_t error;
    struct idle_report report = {.scan = &s->scan, .currency = "USD", .power_auto = true};
    idle_days_json(&report, &out);
    json_t *root = json_loads(out.text, 0, &error);
    if (!root)
        fail_msg("no JSON: %s in %s", error.text, out.text);
    strbuf_release(&out);
    return root;
}

static const char *text_at(const json_t *object, const char *field)
{
    return json_string_value(json_object_get(object, field));
}

static json_t *node_of(const json_t *root)
{
    return json_array_get(json_object_get(root, "nodes"), 0);
}

static json_t *gpu_of(const json_t *root)
{
    return json_array_get(json_object_get(node_of(root), "devices"), 0);
}

static double number_in(const json_t *object, const char *field, size_t at)
{
    return json_number_value(json_array_get(json_object_get(object, field), at));
}

static void a_day_has_a_letter_and_its_means(void **state)
{
    (void)state;
    struct scan s;
    scan_start(&s);
    json_t *root = printed(&s), *gpu = gpu_of(root);
    assert_string_equal(text_at(root, "schema"), "gputally.idle-days/1");
    assert_int_equal(json_array_size(json_object_get(root, "days")), DAYS);
    assert_string_equal(json_string_value(json_array_get(json_object_get(root, "days"), 4)),
                        "2026-11-27");
    assert_string_equal(text_at(gpu, "gpu"), "GPU-\"a\"");
    assert_string_equal(text_at(gpu, "days"), "IPUN.");
    assert_float_equal(number_in(gpu, "util", 0), 16.7, 1e-9); /* 16.6666667 % to a tenth */
    assert_float_equal(number_in(gpu, "memory", 1), 5, 1e-9);
    assert_true(json_is_null(json_array_get(json_object_get(gpu, "power"), 1)));
    assert_float_equal(json_number_value(json_object_get(gpu, "power_below")), 18.8, 1e-9);
    /* a quarter of each of the four days that it was there */
    assert_float_equal(json_number_value(json_object_get(gpu, "held")), 25, 1e-9);
    assert_true(json_is_null(json_object_get(gpu, "idle_since")));
    assert_true(json_is_null(json_object_get(gpu, "model")));
    json_decref(root);
    names_free(s.names);
}

static void a_host_without_signals_is_not_known(void **state)
{
    (void)state;
    struct scan s;
    scan_start(&s);
    json_t *root = printed(&s), *node = node_of(root);
    assert_string_equal(text_at(node, "days"), "IPUN-");
    assert_float_equal(number_in(node, "cpu_peak", 0), 4, 1e-9);
    assert_int_equal(json_integer_value(json_array_get(json_object_get(node, "network_bytes"), 0)),
                     1000);
    assert_true(json_is_null(json_array_get(json_object_get(node, "network_bytes"), 4)));
    json_decref(root);
    names_free(s.names);
}

static void since_when_has_hours_and_money_where_it_is_priced(void **state)
{
    (void)state;
    struct scan s;
    scan_start(&s);
    s.device.since = (struct idle_since){.any = true,
                                         .span = {FROM_MS, FROM_MS + 4 * DAY_MS},
                                         .observed_ms = 4 * DAY_MS,
                                         .priced = true,
                                         .cost = dollars(96)};
    json_t *root = printed(&s), *since = json_object_get(gpu_of(root), "idle_since");
    assert_string_equal(text_at(since, "from"), "2026-11-23T00:00:00Z");
    assert_float_equal(json_number_value(json_object_get(since, "hours")), 96, 0);
    assert_string_equal(text_at(since, "cost"), "96.000000000");
    assert_true(json_is_true(json_object_get(since, "finding"))); /* 4 days, all observed */
    json_decref(root);
    s.device.since.priced = false;
    root = printed(&s);
    assert_true(json_is_null(json_object_get(json_object_get(gpu_of(root), "idle_since"), "cost")));
    json_decref(root);
    names_free(s.names);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_day_has_a_letter_and_its_means),
        cmocka_unit_test(a_host_without_signals_is_not_known),
        cmocka_unit_test(since_when_has_hours_and_money_where_it_is_priced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
