/* Who asks to be left alone, as kube-state-metrics and as lists say it; times are minutes after T0.
 */
#include "../../lib/unit.h"
#include "fleet/exempt.h"
#include "fleet/objects.h"

#define T0 INT64_C(1767225600000)
#define MINUTE_MS INT64_C(60000)
#define AT(minute) (T0 + (minute)*MINUTE_MS)
#define LABELS_MAX 16
#define IGNORE "annotation_gputally_io_ignore"

struct world {
    struct settings settings;
    struct names *names;
    struct intake *intake;
    struct facts *facts;
    struct exempt_wish *wishes;
    size_t n, left;
};

static void world_open(struct world *world)
{
    *world = (struct world){.names = names_new()};
    settings_defaults(&world->settings);
    world->intake = intake_new(&world->settings, world->names);
}

static void world_close(struct world *world)
{
    free(world->wishes);
    facts_free(world->facts);
    intake_free(world->intake);
    names_free(world->names);
}

/* "k=v;k=v", a sample of 1 each minute in [from, to]. */
static void record(struct world *world, const char *metric, const char *pairs, int from, int to)
{
    struct label labels[LABELS_MAX] = {{STR("__name__"), str_of(metric)}};
    size_t n = 1;
    char *text = str_dup(str_of(pairs)), *rest = text, *pair;
    while ((pair = strsep(&rest, ";"))) {
        char *value = strchr(pair, '=');
        if (!value)
            continue;
        *value++ = 0;
        labels[n++] = (struct label){str_of(pair), str_of(value)};
    }
    series_id id = intake_series(world->intake, labels, n);
    const double one = 1;
    for (int minute = from; minute <= to; minute++) {
        time_ms t = AT(minute);
        intake_append(world->intake, id, &t, &one, 1);
    }
    free(text);
}

/* Hours 0 to 4. */
static void gather(struct world *world)
{
    struct span hours = {T0, AT(240)};
    world->facts = facts_new(world->intake, hours);
    world->n = exempt_gather(world->facts, world->intake, hours, &world->wishes, &world->left);
}

static void assert_wish(const struct world *world, const char *subject, const char *text)
{
    for (size_t i = 0; i < world->n; i++)
        if (str_eq(names_text(world->names, world->wishes[i].subject), str_of(subject))) {
            if (!str_eq(names_text(world->names, world->wishes[i].text), str_of(text)))
                fail_msg("%s: '%.*s'", subject,
                         STR_ARG(names_text(world->names, world->wishes[i].text)));
            return;
        }
    fail_msg("no wish of %s", subject);
}

static void namespaces_and_nodes_say_it(void **state)
{
    struct world world;
    (void)state;
    world_open(&world);
    record(&world, "kube_namespace_annotations", "namespace=lab;" IGNORE "=until=2027-01-31", 0,
           239);
    record(&world, "kube_namespace_annotations", "namespace=prod", 0, 239);
    record(&world, "kube_node_annotations", "cluster=c;node=gpu-1;" IGNORE "=reason=a, b", 0, 239);
    gather(&world);
    assert_int_equal(world.n, 2);
    assert_wish(&world, "namespace lab", "until=2027-01-31");
    assert_wish(&world, "node c/gpu-1", "reason=a, b");
    world_close(&world);
}

/* The series with the label ends, one without it begins. */
static void what_was_taken_away_is_not_wished_any_more(void **state)
{
    struct world world;
    (void)state;
    world_open(&world);
    record(&world, "kube_namespace_annotations", "namespace=lab;" IGNORE "=reason=old", 0, 100);
    record(&world, "kube_namespace_annotations", "namespace=lab", 101, 239);
    record(&world, "kube_node_annotations", "node=gpu-1;" IGNORE "=reason=new", 101, 239);
    record(&world, "kube_node_annotations", "node=gpu-1;" IGNORE "=reason=old", 0, 100);
    gather(&world);
    assert_int_equal(world.n, 1);
    assert_wish(&world, "node gpu-1", "reason=new");
    world_close(&world);
}

static void add_pod(struct world *world, const char *name, int from, int to, const char *ignore)
{
    struct strbuf text = {0};
    strbuf_addf(&text, "namespace=ml;pod=%s;uid=u-%s", name, name);
    struct strbuf more = {0};
    strbuf_addf(&more, "%s;node=gpu-1", text.text);
    record(world, "kube_pod_info", more.text, from, to);
    strbuf_clear(&more);
    strbuf_addf(&more, "%s;owner_kind=StatefulSet;owner_name=train;owner_is_controller=true",
                text.text);
    record(world, "kube_pod_owner", more.text, from, to);
    strbuf_clear(&more);
    strbuf_addf(&more, "%s;container=main;resource=nvidia_com_gpu;unit=integer;node=gpu-1",
                text.text);
    record(world, "kube_pod_container_resource_requests", more.text, from, to);
    strbuf_clear(&more);
    strbuf_addf(&more, "%s;" IGNORE "=%s", text.text, ignore);
    if (ignore)
        record(world, "kube_pod_annotations", more.text, from, to);
    strbuf_release(&text);
    strbuf_release(&more);
}

static void pods_say_it_for_their_workload(void **state)
{
    struct world world;
    (void)state;
    world_open(&world);
    record(&world, "kube_node_info", "node=gpu-1", 0, 239);
    add_pod(&world, "train-0", 0, 239, "reason=kept");
    gather(&world);
    assert_int_equal(world.n, 1);
    assert_wish(&world, "workload ml/StatefulSet/train", "reason=kept");
    world_close(&world);
}

static void a_pod_that_is_gone_says_nothing(void **state)
{
    struct world world;
    (void)state;
    world_open(&world);
    record(&world, "kube_node_info", "node=gpu-1", 0, 239);
    add_pod(&world, "train-0", 0, 60, "reason=kept");
    add_pod(&world, "train-1", 70, 239, NULL);
    gather(&world);
    assert_int_equal(world.n, 0);
    world_close(&world);
}

static void objects_say_it_too(void **state)
{
    struct world world;
    struct label ignore = {STR("gputally.io/ignore"), STR("reason=mine")};
    (void)state;
    world_open(&world);
    struct node_object node = {
        .name = STR("gpu-1"), .created = T0, .ignored = true, .ignore = STR("reason=a loan")};
    intake_node(world.intake, &node);
    node.name = STR("gpu-2");
    node.ignored = false;
    intake_node(world.intake, &node);
    intake_namespace(world.intake, STR_NONE, STR("lab"), NULL, 0, &ignore, 1);
    gather(&world);
    assert_int_equal(world.n, 2);
    assert_wish(&world, "node gpu-1", "reason=a loan");
    assert_wish(&world, "namespace lab", "reason=mine");
    world_close(&world);
}

static void what_is_too_long_or_too_much_has_a_cap(void **state)
{
    struct world world;
    struct strbuf text = {0};
    (void)state;
    world_open(&world);
    for (int i = 0; i < 2 * EXEMPT_TEXT_MAX; i++)
        strbuf_addc(&text, 'x');
    struct label ignore = {STR("gputally.io/ignore"), strbuf_str(&text)};
    for (int i = 0; i < EXEMPT_MAX + 3; i++) {
        char name[32];
        snprintf(name, sizeof name, "ns-%d", i);
        intake_namespace(world.intake, STR_NONE, str_of(name), NULL, 0, &ignore, 1);
    }
    gather(&world);
    assert_int_equal(world.n, EXEMPT_MAX);
    assert_int_equal(world.left, 3);
    assert_int_equal(names_text(world.names, world.wishes[0].text).n, EXEMPT_TEXT_MAX);
    strbuf_release(&text);
    world_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(namespaces_and_nodes_say_it),
        cmocka_unit_test(what_was_taken_away_is_not_wished_any_more),
        cmocka_unit_test(pods_say_it_for_their_workload),
        cmocka_unit_test(a_pod_that_is_gone_says_nothing),
        cmocka_unit_test(objects_say_it_too),
        cmocka_unit_test(what_is_too_long_or_too_much_has_a_cap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
