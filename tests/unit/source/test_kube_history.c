/* The history of a Kubernetes API: what a slice is told of lives, states and gaps. Times and what
 * follows from them are worked out by hand from docs/semantics.md, sections 5 and 6. */
#include "../../lib/unit.h"

#include "fleet/facts.h"
#include "source/kube_history.h"

#define T0 INT64_C(1790000000000)
#define MIN_MS INT64_C(60000)
#define AT(minutes) (T0 + (minutes)*MIN_MS)
#define CLUSTER ((struct str){"east", 4})

static void add(struct kube_history *history, struct kube_record record)
{
    struct strbuf bytes = {0};
    struct error err;
    kube_record_write(&bytes, &record);
    assert_int_equal(kube_history_add(history, strbuf_str(&bytes), NULL, &err), ERR_OK);
    strbuf_release(&bytes);
}

static void tell(struct kube_history *history, enum kube_act act, enum kube_kind kind, time_ms t)
{
    add(history, kube_record_of(act, kind, t, CLUSTER));
}

static struct kube_pod pod_of(const char *name, const char *uid)
{
    return (struct kube_pod){
        .namespace = STR("ns"),
        .name = str_of(name),
        .uid = str_of(uid),
        .node = STR("n1"),
        .phase = STR("Running"),
        .owner_kind = STR_NONE,
        .owner_name = STR_NONE,
        .owner_api = STR_NONE,
        .owner_uid = STR_NONE,
        .priority_class = STR_NONE,
        .created = AT(-60),
        .scheduled = TIME_MIN,
        .started = TIME_MIN,
        .finished = TIME_MIN,
        .deletion = TIME_MIN,
        .deletion_grace_s = -1,
    };
}

static void tell_pod(struct kube_history *history, enum kube_act act, time_ms t,
                     const struct kube_pod *pod)
{
    struct strbuf object = {0};
    struct kube_record record = kube_record_of(act, KUBE_KIND_POD, t, CLUSTER);
    kube_record_pod(&object, pod);
    record.object = strbuf_str(&object);
    add(history, record);
    strbuf_release(&object);
}

static void tell_node(struct kube_history *history, enum kube_act act, time_ms t, bool cordoned,
                      int64_t allocatable)
{
    struct kube_quantity capacity = {STR("nvidia.com/gpu"), 8000};
    struct kube_quantity left = {STR("nvidia.com/gpu"), allocatable * 1000};
    struct kube_node node = {
        .name = STR("n1"),
        .uid = STR("u1"),
        .provider_id = STR("aws:///a/i-1"),
        .internal_ip = STR("10.0.0.1"),
        .created = AT(-600),
        .unschedulable = cordoned,
        .capacity = &capacity,
        .allocatable = &left,
        .capacity_n = 1,
        .allocatable_n = 1,
    };
    struct strbuf object = {0};
    struct kube_record record = kube_record_of(act, KUBE_KIND_NODE, t, CLUSTER);
    kube_record_node(&object, &node);
    record.object = strbuf_str(&object);
    add(history, record);
    strbuf_release(&object);
}

/* A list of one node and these pods. */
static void tell_lists(struct kube_history *history, time_ms t, const struct kube_pod *pods,
                       size_t n)
{
    tell(history, KUBE_ACT_LIST, KUBE_KIND_NODE, t);
    tell_node(history, KUBE_ACT_OBJECT, t, false, 8);
    tell(history, KUBE_ACT_LISTED, KUBE_KIND_NODE, t);
    tell(history, KUBE_ACT_LIST, KUBE_KIND_POD, t);
    for (size_t i = 0; i < n; i++)
        tell_pod(history, KUBE_ACT_OBJECT, t, &pods[i]);
    tell(history, KUBE_ACT_LISTED, KUBE_KIND_POD, t);
}

static void seen(struct kube_history *history, time_ms t)
{
    tell(history, KUBE_ACT_SEEN, KUBE_KIND_NODE, t);
    tell(history, KUBE_ACT_SEEN, KUBE_KIND_POD, t);
}

static void count_controller(void *context, const struct kube_controller *c)
{
    int *found = context;
    if (str_eq(c->namespace, STR("ns")) && str_eq(c->api, STR("ray.io/v1")) &&
        str_eq(c->kind, STR("RayCluster")) && str_eq(c->name, STR("r")) &&
        str_eq(c->uid, STR("ru")))
        ++*found;
    else
        *found = 100;
}

/* What a service that was killed had not asked yet. */
static void the_controllers_that_pods_name_are_known_after_the_pods(void **state)
{
    struct kube_history *history = kube_history_new();
    struct kube_pod pods[] = {pod_of("a", "ua"), pod_of("bare", "ub")};
    int found = 0;
    (void)state;
    pods[0].owner_api = STR("ray.io/v1");
    pods[0].owner_kind = STR("RayCluster");
    pods[0].owner_name = STR("r");
    pods[0].owner_uid = STR("ru");
    tell_lists(history, AT(0), pods, 2);
    tell_pod(history, KUBE_ACT_DELETED, AT(1), &pods[0]);
    kube_history_controllers(history, CLUSTER, count_controller, &found);
    assert_int_equal(found, 1);
    kube_history_controllers(history, STR("west"), count_controller, &found);
    assert_int_equal(found, 1);
    kube_history_free(history);
}

struct slice {
    struct settings settings;
    struct names *names;
    struct intake *intake;
    struct facts *facts;
};

static struct slice deliver(struct kube_history *history, time_ms from, time_ms to)
{
    struct slice slice = {.names = names_new()};
    struct span hours = {from, to};
    settings_defaults(&slice.settings);
    /* the intake keeps a pointer to the settings: they live as long as the test's copy */
    static struct settings settings;
    settings = slice.settings;
    slice.intake = intake_new(&settings, slice.names);
    kube_history_deliver(history, hours, slice.intake);
    slice.facts = facts_new(slice.intake, hours);
    return slice;
}

static void end(struct slice *slice)
{
    facts_free(slice->facts);
    intake_free(slice->intake);
    names_free(slice->names);
}

static const struct pod *find_pod(const struct slice *slice, const char *uid)
{
    for (size_t i = 0; i < slice->facts->pods_n; i++)
        if (str_eq(names_text(slice->names, slice->facts->pods[i].uid), str_of(uid)))
            return &slice->facts->pods[i];
    return NULL;
}

static void a_pod_that_a_watch_saw_go_ends_at_that_moment(void **state)
{
    (void)state;
    struct kube_history *history = kube_history_new();
    struct kube_pod pod = pod_of("a", "a1");
    pod.scheduled = AT(-30);
    tell_lists(history, AT(0), &pod, 1);
    tell_pod(history, KUBE_ACT_DELETED, AT(17), &pod);
    seen(history, AT(60));
    struct slice slice = deliver(history, AT(0), AT(60));
    assert_int_equal(find_pod(&slice, "a1")->since, AT(-30));
    assert_int_equal(find_pod(&slice, "a1")->until, AT(17));
    end(&slice);
    kube_history_free(history);
}

/* Evicted pods stay listed for days: the deletion that comes at last is not when they ended. */
static void a_pod_that_was_over_at_first_sight_holds_nothing_when_it_is_deleted(void **state)
{
    (void)state;
    for (int lists = 1; lists <= 2; lists++) {
        struct kube_history *history = kube_history_new();
        struct kube_pod pod = pod_of("a", "a1");
        pod.scheduled = AT(-300);
        pod.phase = STR("Failed");
        for (int i = 0; i < lists; i++)
            tell_lists(history, AT(i), &pod, 1);
        pod.deletion = AT(50);
        tell_pod(history, KUBE_ACT_DELETED, AT(50), &pod);
        seen(history, AT(60));
        struct slice slice = deliver(history, AT(0), AT(60));
        assert_int_equal(find_pod(&slice, "a1")->counted.n, 0);
        end(&slice);
        kube_history_free(history);
    }
}

/* A lost node's pod: it ran until it was given up. */
static void a_pod_that_was_deleted_at_first_sight_ended_then(void **state)
{
    (void)state;
    struct kube_history *history = kube_history_new();
    struct kube_pod pod = pod_of("a", "a1");
    pod.scheduled = AT(-300);
    pod.phase = STR("Failed");
    pod.deletion = AT(-10);
    tell_lists(history, AT(0), &pod, 1);
    tell_pod(history, KUBE_ACT_DELETED, AT(50), &pod);
    struct slice slice = deliver(history, AT(-60), AT(60));
    assert_int_equal(find_pod(&slice, "a1")->until, AT(-10));
    end(&slice);
    kube_history_free(history);
}

static void a_pod_that_went_while_nobody_looked_ends_at_the_list_that_lacks_it(void **state)
{
    (void)state;
    struct kube_history *history = kube_history_new();
    struct kube_pod pods[] = {pod_of("a", "a1"), pod_of("b", "b1")};
    pods[0].scheduled = pods[1].scheduled = AT(-30);
    tell_lists(history, AT(0), pods, 2);
    seen(history, AT(10));
    tell_lists(history, AT(40), pods, 1);
    struct slice slice = deliver(history, AT(0), AT(60));
    assert_int_equal(find_pod(&slice, "a1")->until, TIME_MAX);
    assert_int_equal(find_pod(&slice, "b1")->until, AT(40));
    end(&slice);
    kube_history_free(history);
}

static void an_unknown_start_is_the_last_observation_that_lacks_the_pod(void **state)
{
    (void)state;
    struct kube_history *history = kube_history_new();
    struct kube_pod pods[] = {pod_of("a", "a1"), pod_of("b", "b1"), pod_of("c", "c1")};
    tell_lists(history, AT(0), pods, 1);
    seen(history, AT(10));
    tell_lists(history, AT(40), pods, 2);                 /* b: between 10 and 40 */
    tell_pod(history, KUBE_ACT_OBJECT, AT(50), &pods[2]); /* c: at 50 */
    struct slice slice = deliver(history, AT(0), AT(60));
    assert_int_equal(find_pod(&slice, "a1")->since, TIME_MIN);
    assert_int_equal(find_pod(&slice, "b1")->since, AT(10));
    assert_int_equal(find_pod(&slice, "c1")->since, AT(50));
    end(&slice);
    kube_history_free(history);
}

static void a_name_with_another_uid_is_another_pod(void **state)
{
    (void)state;
    struct kube_history *history = kube_history_new();
    struct kube_pod first = pod_of("a", "a1"), second = pod_of("a", "a2");
    first.scheduled = AT(-30);
    second.scheduled = AT(35);
    tell_lists(history, AT(0), &first, 1);
    seen(history, AT(10));
    tell_lists(history, AT(40), &second, 1);
    struct slice slice = deliver(history, AT(0), AT(60));
    assert_int_equal(slice.facts->pods_n, 2);
    assert_int_equal(find_pod(&slice, "a1")->until, AT(40));
    assert_int_equal(find_pod(&slice, "a2")->since, AT(35));
    assert_int_equal(find_pod(&slice, "a2")->until, TIME_MAX);
    end(&slice);
    kube_history_free(history);
}

static void a_recorded_end_goes_before_what_was_seen_and_is_not_forgotten(void **state)
{
    (void)state;
    struct kube_history *history = kube_history_new();
    struct kube_pod pod = pod_of("a", "a1");
    pod.scheduled = AT(-30);
    tell_lists(history, AT(0), &pod, 1);
    pod.phase = STR("Succeeded");
    pod.finished = AT(20);
    tell_pod(history, KUBE_ACT_OBJECT, AT(21), &pod);
    pod.finished = TIME_MIN; /* its statuses are gone */
    tell_pod(history, KUBE_ACT_DELETED, AT(50), &pod);
    struct slice slice = deliver(history, AT(0), AT(60));
    assert_int_equal(find_pod(&slice, "a1")->until, AT(20));
    end(&slice);
    kube_history_free(history);
}

static void a_pod_that_was_seen_to_finish_without_a_time_ends_then(void **state)
{
    (void)state;
    struct kube_history *history = kube_history_new();
    struct kube_pod pod = pod_of("a", "a1");
    pod.scheduled = AT(-30);
    tell_lists(history, AT(0), &pod, 1);
    pod.phase = STR("Failed");
    tell_pod(history, KUBE_ACT_OBJECT, AT(21), &pod);
    struct slice slice = deliver(history, AT(0), AT(60));
    assert_int_equal(find_pod(&slice, "a1")->until, AT(21));
    assert_false(find_pod(&slice, "a1")->object_finished);
    end(&slice);
    kube_history_free(history);
}

static void states_of_a_node_hold_while_they_were_seen(void **state)
{
    (void)state;
    struct kube_history *history = kube_history_new();
    tell_lists(history, AT(0), NULL, 0);
    tell_node(history, KUBE_ACT_OBJECT, AT(10), true, 8);
    tell_node(history, KUBE_ACT_OBJECT, AT(25), false, 7);
    tell_node(history, KUBE_ACT_OBJECT, AT(40), false, 8);
    seen(history, AT(50));
    struct slice slice = deliver(history, AT(0), AT(60));
    const struct node *node = &slice.facts->nodes[0];
    assert_int_equal(node->lives_n, 1);
    assert_int_equal(node->lives[0].up, AT(-600));
    assert_int_equal(node->lives[0].down, AT(50) + slice.settings.node_break_ms);
    assert_int_equal(node->cordoned.n, 1);
    assert_int_equal(node->cordoned.at[0].from, AT(10));
    assert_int_equal(node->cordoned.at[0].to, AT(25));
    assert_int_equal(node->shortages_n, 1);
    assert_int_equal(node->shortages[0].span.from, AT(25));
    assert_int_equal(node->shortages[0].span.to, AT(40));
    assert_int_equal(node->shortages[0].missing, 1);
    end(&slice);
    kube_history_free(history);
}

/* The list after a silence says how it was in it: also for an hour that ended in the silence. */
static void a_state_that_a_later_list_tells_reaches_back_into_the_hour(void **state)
{
    (void)state;
    struct kube_history *history = kube_history_new();
    tell_lists(history, AT(0), NULL, 0);
    seen(history, AT(50));
    tell(history, KUBE_ACT_LIST, KUBE_KIND_NODE, AT(70));
    tell_node(history, KUBE_ACT_OBJECT, AT(70), true, 8);
    tell(history, KUBE_ACT_LISTED, KUBE_KIND_NODE, AT(70));
    seen(history, AT(75));
    tell_node(history, KUBE_ACT_OBJECT, AT(80), false, 8);
    seen(history, AT(120));
    struct slice slice = deliver(history, AT(0), AT(60));
    const struct node *node = &slice.facts->nodes[0];
    assert_int_equal(node->lives_n, 1);
    assert_true(node->lives[0].down >= AT(60));
    assert_int_equal(node->cordoned.n, 1);
    assert_int_equal(node->cordoned.at[0].from, AT(50));
    assert_true(node->cordoned.at[0].to >= AT(60));
    end(&slice);
    kube_history_free(history);
}

static void a_node_lives_to_its_last_observation(void **state)
{
    (void)state;
    struct kube_history *history = kube_history_new();
    tell_lists(history, AT(0), NULL, 0);
    seen(history, AT(30));
    tell(history, KUBE_ACT_LIST, KUBE_KIND_NODE, AT(45));
    tell(history, KUBE_ACT_LISTED, KUBE_KIND_NODE, AT(45));
    struct slice slice = deliver(history, AT(0), AT(60));
    assert_int_equal(slice.facts->nodes[0].lives[0].down, AT(30));
    end(&slice);
    kube_history_free(history);
}

/* A gap of at most 6 h is covered by the observation after it; after a longer one a step is. */
static void time_that_nobody_watched_is_not_known(void **state)
{
    (void)state;
    struct kube_history *history = kube_history_new();
    tell_lists(history, AT(0), NULL, 0);
    seen(history, AT(10));
    tell_lists(history, AT(60), NULL, 0);
    seen(history, AT(70));
    tell_lists(history, AT(70 + 7 * 60), NULL, 0);
    struct slice slice = deliver(history, AT(0), AT(600));
    const struct spans *known = &slice.facts->nodes[0].watch->known;
    assert_int_equal(known->n, 2);
    assert_int_equal(known->at[0].from, AT(0) - slice.settings.step_ms);
    assert_int_equal(known->at[0].to, AT(70) + 1);
    assert_int_equal(known->at[1].from, AT(70 + 7 * 60) - slice.settings.step_ms);
    end(&slice);
    kube_history_free(history);
}

struct kept_records {
    struct strbuf records[64];
    size_t n;
};

static enum err keep_record(void *context, time_ms t, struct str record, struct error *err)
{
    struct kept_records *kept = context;
    (void)t, (void)err;
    assert_true(kept->n < sizeof kept->records / sizeof *kept->records);
    strbuf_add(&kept->records[kept->n++], record);
    return ERR_OK;
}

static void a_snapshot_carries_starts_states_and_those_who_are_gone(void **state)
{
    (void)state;
    struct kube_history *history = kube_history_new(), *copy = kube_history_new();
    struct kube_pod pods[] = {pod_of("a", "a1"), pod_of("b", "b1"), pod_of("a", "a2")};
    pods[0].scheduled = AT(-30);
    tell_lists(history, AT(0), pods, 1);
    seen(history, AT(10));
    tell_lists(history, AT(40), pods, 2);
    tell_pod(history, KUBE_ACT_DELETED, AT(45), &pods[0]);
    tell_pod(history, KUBE_ACT_OBJECT, AT(46), &pods[2]);
    tell_node(history, KUBE_ACT_OBJECT, AT(47), true, 8);
    tell_node(history, KUBE_ACT_OBJECT, AT(48), false, 8);
    seen(history, AT(60));
    struct kube_history *both[] = {history, copy};
    struct kept_records kept = {0};
    assert_int_equal(kube_history_snapshot(history, keep_record, &kept, NULL), ERR_OK);
    for (size_t i = 0; i < kept.n; i++) {
        for (size_t k = 0; k < 2; k++)
            assert_int_equal(kube_history_add(both[k], strbuf_str(&kept.records[i]), NULL, NULL),
                             ERR_OK);
        strbuf_release(&kept.records[i]);
    }
    for (size_t i = 0; i < 2; i++) {
        struct slice slice = deliver(both[i], AT(0), AT(60));
        assert_int_equal(slice.facts->pods_n, 3);
        assert_int_equal(find_pod(&slice, "a1")->since, AT(-30));
        assert_int_equal(find_pod(&slice, "a1")->until, AT(45));
        assert_int_equal(find_pod(&slice, "b1")->since, AT(10));
        assert_int_equal(find_pod(&slice, "a2")->since, AT(46));
        assert_int_equal(find_pod(&slice, "a2")->until, TIME_MAX);
        assert_int_equal(slice.facts->nodes[0].cordoned.n, 1);
        assert_int_equal(slice.facts->nodes[0].cordoned.at[0].from, AT(47));
        assert_int_equal(slice.facts->nodes[0].cordoned.at[0].to, AT(48));
        end(&slice);
    }
    kube_history_free(history);
    kube_history_free(copy);
}

/* After a kill the new file's snapshot alone has what the last file lacks. */
static void a_snapshot_after_a_loss_tells_what_was_lost(void **state)
{
    (void)state;
    struct kube_history *live = kube_history_new(), *replayed = kube_history_new();
    struct kube_pod pods[] = {pod_of("a", "a1"), pod_of("b", "b1")};
    pods[0].scheduled = pods[1].scheduled = AT(-30);
    tell_lists(live, AT(0), pods, 2);
    tell_lists(replayed, AT(0), pods, 2); /* killed here */
    pods[0].phase = STR("Failed");
    tell_lists(live, AT(10), pods, 1);
    struct kept_records kept = {0};
    assert_int_equal(kube_history_snapshot(live, keep_record, &kept, NULL), ERR_OK);
    for (size_t i = 0; i < kept.n; i++) {
        assert_int_equal(kube_history_add(replayed, strbuf_str(&kept.records[i]), NULL, NULL),
                         ERR_OK);
        strbuf_release(&kept.records[i]);
    }
    tell_lists(replayed, AT(40), pods, 1);
    struct slice slice = deliver(replayed, AT(0), AT(60));
    assert_int_equal(find_pod(&slice, "a1")->until, AT(10));
    assert_int_equal(find_pod(&slice, "b1")->until, AT(10));
    end(&slice);
    kube_history_free(live);
    kube_history_free(replayed);
}

static void what_is_past_is_forgotten_and_the_rest_found(void **state)
{
    (void)state;
    struct kube_history *history = kube_history_new();
    struct kube_pod pods[] = {pod_of("a", "a1"), pod_of("a", "a2"), pod_of("b", "b1")};
    tell_lists(history, AT(0), &pods[0], 1);
    tell_pod(history, KUBE_ACT_OBJECT, AT(1), &pods[2]);
    tell_pod(history, KUBE_ACT_DELETED, AT(5), &pods[0]);
    tell_pod(history, KUBE_ACT_OBJECT, AT(6), &pods[1]);
    kube_history_forget(history, AT(5));
    assert_int_equal(kube_history_size(history).pods, 2);
    assert_int_equal(kube_history_size(history).objects, 3); /* and the node */
    tell_pod(history, KUBE_ACT_DELETED, AT(9), &pods[1]);
    tell_pod(history, KUBE_ACT_DELETED, AT(9), &pods[2]);
    assert_int_equal(kube_history_size(history).pods, 0);
    kube_history_free(history);
}

/* A deployment above a pod is asked for once and never told to be gone. */
static void a_controller_goes_when_nobody_names_it(void **state)
{
    (void)state;
    struct kube_history *history = kube_history_new();
    struct kube_pod pod = pod_of("a", "a1");
    struct kube_owner owner = {STR("ns"), STR("RayCluster"), STR("r"), STR_NONE,
                               STR_NONE,  STR("r1"),         STR_NONE, STR_NONE};
    struct strbuf object = {0};
    pod.owner_kind = STR("RayCluster");
    pod.owner_name = STR("r");
    tell_lists(history, AT(0), &pod, 1);
    struct kube_record record = kube_record_of(KUBE_ACT_OBJECT, KUBE_KIND_OWNER, AT(1), CLUSTER);
    kube_record_owner(&object, &owner);
    record.object = strbuf_str(&object);
    add(history, record);
    kube_history_forget(history, AT(10));
    assert_true(kube_history_has_owner(history, CLUSTER, owner.namespace, owner.kind, owner.name,
                                       owner.uid));
    tell_pod(history, KUBE_ACT_DELETED, AT(20), &pod);
    kube_history_forget(history, AT(19));
    assert_int_equal(kube_history_size(history).objects, 3);
    kube_history_forget(history, AT(20));
    assert_int_equal(kube_history_size(history).objects, 1);
    assert_false(kube_history_has_owner(history, CLUSTER, owner.namespace, owner.kind, owner.name,
                                        owner.uid));
    strbuf_release(&object);
    kube_history_free(history);
}

static void a_list_that_is_given_up_ends_nobody(void **state)
{
    (void)state;
    struct kube_history *history = kube_history_new();
    struct kube_pod pods[] = {pod_of("a", "a1"), pod_of("b", "b1")};
    tell_lists(history, AT(0), pods, 2);
    tell(history, KUBE_ACT_LIST, KUBE_KIND_POD, AT(10));
    tell_pod(history, KUBE_ACT_OBJECT, AT(10), &pods[0]);
    assert_true(kube_history_listing(history));
    tell(history, KUBE_ACT_SEEN, KUBE_KIND_POD, AT(10));
    assert_false(kube_history_listing(history));
    assert_int_equal(kube_history_size(history).pods, 2);
    kube_history_free(history);
}

/* A claim is given to one pod after another: each has the device that it had in its time. */
static void a_pod_has_the_device_that_its_claim_had_in_its_time(void **state)
{
    (void)state;
    struct kube_history *history = kube_history_new();
    struct kube_device devices[] = {
        {STR("gpu-0"), STR("GPU-x"), STR_NONE, STR_NONE, STR_NONE, STR("gpu")},
        {STR("gpu-1"), STR("GPU-y"), STR_NONE, STR_NONE, STR_NONE, STR("gpu")}};
    struct kube_slice devices_of_node = {
        STR("s"), STR("gpu.nvidia.com"), STR("n1"), STR("n1"), 1, devices, 2};
    struct strbuf object = {0};
    tell_lists(history, AT(0), NULL, 0);
    struct kube_record record = kube_record_of(KUBE_ACT_OBJECT, KUBE_KIND_SLICE, AT(0), CLUSTER);
    kube_record_slice(&object, &devices_of_node);
    record.object = strbuf_str(&object);
    add(history, record);
    struct str name = STR("shared");
    struct kube_pod pods[] = {pod_of("a", "a1"), pod_of("b", "b1")};
    for (size_t i = 0; i < 2; i++) {
        struct kube_allocation allocation = {STR("r"), STR("gpu.nvidia.com"), STR("n1"),
                                             devices[i].name};
        struct kube_claim claim = {STR("ns"), name, STR("c1"), &allocation, NULL, 1, 0};
        time_ms t = AT(1 + 20 * (time_ms)i);
        strbuf_clear(&object);
        kube_record_claim(&object, &claim);
        record = kube_record_of(KUBE_ACT_OBJECT, KUBE_KIND_CLAIM, t, CLUSTER);
        record.object = strbuf_str(&object);
        add(history, record);
        pods[i].claims = &name;
        pods[i].claims_n = 1;
        pods[i].scheduled = t;
        tell_pod(history, KUBE_ACT_OBJECT, t, &pods[i]);
        if (i == 0)
            tell_pod(history, KUBE_ACT_DELETED, AT(15), &pods[0]);
    }
    struct slice slice = deliver(history, AT(0), AT(60));
    for (size_t i = 0; i < 2; i++) {
        const struct pod *pod = find_pod(&slice, i ? "b1" : "a1");
        assert_int_equal(pod->devices_n, 1);
        assert_string_equal(names_text(slice.names, pod->devices[0]).p, i ? "GPU-y" : "GPU-x");
    }
    end(&slice);
    strbuf_release(&object);
    kube_history_free(history);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_controllers_that_pods_name_are_known_after_the_pods),
        cmocka_unit_test(a_pod_that_a_watch_saw_go_ends_at_that_moment),
        cmocka_unit_test(a_pod_that_was_over_at_first_sight_holds_nothing_when_it_is_deleted),
        cmocka_unit_test(a_pod_that_was_deleted_at_first_sight_ended_then),
        cmocka_unit_test(a_pod_that_went_while_nobody_looked_ends_at_the_list_that_lacks_it),
        cmocka_unit_test(an_unknown_start_is_the_last_observation_that_lacks_the_pod),
        cmocka_unit_test(a_name_with_another_uid_is_another_pod),
        cmocka_unit_test(a_recorded_end_goes_before_what_was_seen_and_is_not_forgotten),
        cmocka_unit_test(a_pod_that_was_seen_to_finish_without_a_time_ends_then),
        cmocka_unit_test(states_of_a_node_hold_while_they_were_seen),
        cmocka_unit_test(a_state_that_a_later_list_tells_reaches_back_into_the_hour),
        cmocka_unit_test(a_node_lives_to_its_last_observation),
        cmocka_unit_test(time_that_nobody_watched_is_not_known),
        cmocka_unit_test(a_snapshot_carries_starts_states_and_those_who_are_gone),
        cmocka_unit_test(a_snapshot_after_a_loss_tells_what_was_lost),
        cmocka_unit_test(what_is_past_is_forgotten_and_the_rest_found),
        cmocka_unit_test(a_controller_goes_when_nobody_names_it),
        cmocka_unit_test(a_list_that_is_given_up_ends_nobody),
        cmocka_unit_test(a_pod_has_the_device_that_its_claim_had_in_its_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
