/* Who holds what: shares of a slot, and the order of trust of labels, kept devices and counts.
 * (semantics, sections 5 and 6) */
#include "fleet_fixture.h"
#include "ledger/holders.h"

#define NODE "node=n1"
#define GPU(i) "UUID=GPU-" #i ",gpu=" #i ",Hostname=n1"

static void assert_share(const struct part *part, int64_t num, int64_t den)
{
    assert_int_equal(part->share.num, num);
    assert_int_equal(part->share.den, den);
}

static struct holder holder(name_t pod, int64_t times)
{
    return (struct holder){.namespace = 1, .pod = pod, .uid = pod, .container = 1, .times = times};
}

/* ------------------------------------------------------------------ shares of a slot */

static void a_holder_of_k_of_r_replicas_takes_k_of_r(void **state)
{
    (void)state;
    struct holder holders[] = {holder(1, 3), holder(2, 1)};
    struct slot slot = {.replicas = 10, .holders = holders, .holders_n = 2};
    struct part parts[2];
    struct frac left;
    assert_int_equal(slot_parts(&slot, SHARE_POLICY_REPLICAS, parts, &left), 2);
    assert_share(&parts[0], 3, 10);
    assert_share(&parts[1], 1, 10);
    assert_int_equal(left.num, 3);
    assert_int_equal(left.den, 5);
    assert_int_equal(parts[0].flags, 0);
}

static void more_holders_than_replicas_share_evenly(void **state)
{
    (void)state;
    struct holder holders[] = {holder(1, 1), holder(2, 1), holder(3, 1)};
    struct slot slot = {.replicas = 2, .holders = holders, .holders_n = 3};
    struct part parts[3];
    struct frac left;
    assert_int_equal(slot_parts(&slot, SHARE_POLICY_REPLICAS, parts, &left), 3);
    for (int i = 0; i < 3; i++) {
        assert_share(&parts[i], 1, 3);
        assert_int_equal(parts[i].flags, FLAG_SHARED_ESTIMATE);
    }
    assert_int_equal(left.num, 0);
}

static void policy_even_always_divides_by_holders(void **state)
{
    (void)state;
    struct holder holders[] = {holder(1, 3), holder(2, 1)};
    struct slot slot = {.replicas = 10, .holders = holders, .holders_n = 2};
    struct part parts[2];
    struct frac left;
    slot_parts(&slot, SHARE_POLICY_EVEN, parts, &left);
    assert_share(&parts[0], 1, 2);
    assert_share(&parts[1], 1, 2);
    assert_int_equal(left.num, 0);
}

static void one_holder_that_stands_twice_is_one_part(void **state)
{
    (void)state;
    struct holder holders[] = {holder(1, 1), holder(2, 1), holder(1, 2)};
    holders[2].flag = FLAG_BY_COUNT;
    struct slot slot = {.replicas = 4, .holders = holders, .holders_n = 3};
    struct part parts[3];
    struct frac left;
    assert_int_equal(slot_parts(&slot, SHARE_POLICY_REPLICAS, parts, &left), 2);
    assert_share(&parts[0], 3, 4);
    assert_int_equal(parts[0].flags, FLAG_BY_COUNT);
    assert_int_equal(left.num, 0);
}

static void fractions_beyond_the_device_are_scaled_down(void **state)
{
    (void)state;
    struct holder holders[] = {holder(1, 1), holder(2, 1)};
    holders[0].fraction = (struct frac){3, 4};
    holders[1].fraction = (struct frac){1, 2};
    struct slot slot = {.holders = holders, .holders_n = 2};
    struct part parts[2];
    struct frac left;
    slot_parts(&slot, SHARE_POLICY_REPLICAS, parts, &left);
    assert_share(&parts[0], 3, 5);
    assert_share(&parts[1], 2, 5);
    assert_int_equal(left.num, 0);
}

/* Whatever holds a slot: the parts and what is left are one, and none is negative. */
static void random_parts_and_the_rest_are_the_slot(void **state)
{
    (void)state;
    struct random random = random_new();
    for (int round = 0; round < 2000; round++) {
        struct holder holders[12];
        size_t n = (size_t)random_below(&random, 13);
        for (size_t i = 0; i < n; i++) {
            holders[i] = holder((name_t)random_below(&random, 8) + 1, random_below(&random, 3) + 1);
            if (random_below(&random, 4) == 0)
                holders[i].fraction = frac_of(random_below(&random, 1000) + 1, 1000);
        }
        struct slot slot = {
            .replicas = random_below(&random, 9), .holders = holders, .holders_n = n};
        enum share_policy policy =
            random_below(&random, 2) ? SHARE_POLICY_EVEN : SHARE_POLICY_REPLICAS;
        struct part parts[12];
        struct frac sum;
        size_t got = slot_parts(&slot, policy, parts, &sum);
        assert_true(sum.num >= 0);
        for (size_t i = 0; i < got; i++) {
            assert_true(parts[i].share.num > 0);
            sum = frac_add(sum, parts[i].share);
        }
        assert_true(sum.num == 1 && sum.den == 1);
    }
}

/* ------------------------------------------------------------------ on a node */

static void add_pod(struct fleet *f, const char *name, int from, int to, const char *resource,
                    int count)
{
    char labels[200];
    snprintf(labels, sizeof labels, "node=n1,namespace=ns,pod=%s,uid=u-%s", name, name);
    fleet_record(f, "kube_pod_info", labels, from, to, 1);
    snprintf(labels, sizeof labels, "namespace=ns,pod=%s,uid=u-%s", name, name);
    fleet_record(f, "kube_pod_status_scheduled_time", labels, from, to,
                 (double)(T0 / 1000 + from * 60));
    fleet_record(f, "kube_pod_completion_time", labels, to, to, (double)(T0 / 1000 + to * 60));
    snprintf(labels, sizeof labels, "namespace=ns,pod=%s,uid=u-%s,container=c,resource=%s", name,
             name, resource);
    if (count)
        fleet_record(f, "kube_pod_container_resource_requests", labels, from, to, count);
}

static void open_node(struct fleet *f, int gpus)
{
    fleet_open(f, GPU_PRICE);
    fleet_record(f, "kube_node_info", NODE, 0, 60, 1);
    for (int i = 0; i < gpus; i++) {
        char labels[60];
        snprintf(labels, sizeof labels, "UUID=GPU-%d,gpu=%d,Hostname=n1", i, i);
        fleet_gpu(f, labels, 0, 60, 100, 1);
    }
}

static void counts_are_laid_on_the_lowest_index_in_order_of_start(void **state)
{
    (void)state;
    struct fleet f;
    open_node(&f, 4);
    add_pod(&f, "late", 20, 60, "nvidia_com_gpu", 1);
    add_pod(&f, "early", 10, 60, "nvidia_com_gpu", 2);
    fleet_book(&f, 0, 1);
    assert_int_equal(fleet_row(&f, 0, "GPU-0", "early")->held_ms, 50 * MINUTE_MS);
    assert_int_equal(fleet_row(&f, 0, "GPU-1", "early")->held_ms, 50 * MINUTE_MS);
    const struct row *late = fleet_row(&f, 0, "GPU-2", "late");
    assert_int_equal(late->held_ms, 40 * MINUTE_MS);
    assert_true(late->flags & FLAG_BY_COUNT);
    assert_null(fleet_find(&f, 0, "GPU-3", "late"));
    fleet_close(&f);
}

static void labels_go_before_counts(void **state)
{
    (void)state;
    struct fleet f;
    fleet_open(&f, GPU_PRICE);
    fleet_record(&f, "kube_node_info", NODE, 0, 60, 1);
    fleet_gpu(&f, GPU(0), 0, 60, 100, 1);
    fleet_gpu(&f, GPU(1) ",namespace=ns,pod=shown,container=c", 0, 60, 100, 1);
    fleet_gpu(&f, GPU(2), 0, 60, 100, 1);
    add_pod(&f, "shown", 0, 60, "nvidia_com_gpu", 1);
    add_pod(&f, "unshown", 0, 60, "nvidia_com_gpu", 2);
    fleet_book(&f, 0, 1);
    assert_int_equal(fleet_row(&f, 0, "GPU-1", "shown")->held_ms, HOUR_MS);
    assert_false(fleet_row(&f, 0, "GPU-1", "shown")->flags & FLAG_BY_COUNT);
    fleet_row(&f, 0, "GPU-0", "unshown");
    fleet_row(&f, 0, "GPU-2", "unshown");
    fleet_close(&f);
}

static void a_living_pod_keeps_the_gpu_on_which_labels_showed_it(void **state)
{
    (void)state;
    struct fleet f;
    fleet_open(&f, GPU_PRICE);
    fleet_record(&f, "kube_node_info", NODE, 0, 60, 1);
    fleet_gpu(&f, GPU(0), 0, 60, 100, 1);
    fleet_gpu(&f, GPU(1), 0, 20, 100, 1);
    fleet_gpu(&f, GPU(1) ",namespace=ns,pod=p,container=c", 20, 30, 100, 1);
    fleet_gpu(&f, GPU(1), 30, 60, 100, 1); /* labels are lost */
    add_pod(&f, "p", 10, 60, "nvidia_com_gpu", 1);
    fleet_book(&f, 0, 1);
    const struct row *row = fleet_row(&f, 0, "GPU-1", "p");
    assert_int_equal(row->held_ms, 50 * MINUTE_MS); /* before its first sample, too */
    assert_true(row->flags & FLAG_KEPT_DEVICE);
    assert_null(fleet_find(&f, 0, "GPU-0", "p"));
    fleet_close(&f);
}

static void labels_of_a_finished_pod_are_late(void **state)
{
    (void)state;
    struct fleet f;
    fleet_open(&f, GPU_PRICE);
    fleet_record(&f, "kube_node_info", NODE, 0, 60, 1);
    fleet_gpu(&f, GPU(0) ",namespace=ns,pod=p,container=c", 0, 60, 0, 0);
    add_pod(&f, "p", 0, 30, "nvidia_com_gpu", 1);
    fleet_book(&f, 0, 1);
    assert_int_equal(fleet_row(&f, 0, "GPU-0", "p")->held_ms, 30 * MINUTE_MS);
    assert_money(fleet_row(&f, 0, "GPU-0", ""), EMPTY, 30 * MINUTE_MS * NANO_PER_MS);
    bool told = false;
    for (size_t i = 0; i < f.notes_n; i++)
        told = told || (f.notes[i].kind == NOTE_LATE_LABELS && f.notes[i].count == 30 * 60);
    assert_true(told);
    fleet_close(&f);
}

static void mig_resources_go_to_instances_of_their_profile(void **state)
{
    (void)state;
    struct fleet f;
    fleet_open(&f, GPU_PRICE);
    fleet_record(&f, "kube_node_info", NODE, 0, 60, 1);
    const char *gr = "DCGM_FI_PROF_GR_ENGINE_ACTIVE";
    fleet_samples(&f, gr, GPU(0) ",GPU_I_ID=1,GPU_I_PROFILE=3g.40gb", 0, 60, 0.5);
    fleet_samples(&f, gr, GPU(0) ",GPU_I_ID=7,GPU_I_PROFILE=1g.10gb", 0, 60, 0.5);
    fleet_samples(&f, gr, GPU(0) ",GPU_I_ID=8,GPU_I_PROFILE=1g.10gb", 0, 60, 0.5);
    add_pod(&f, "p", 0, 60, "nvidia_com_mig_1g_10gb", 2);
    fleet_book(&f, 0, 1);
    assert_null(fleet_find(&f, 0, "GPU-0/1", "p"));
    assert_int_equal(fleet_row(&f, 0, "GPU-0/7", "p")->held_ms, HOUR_MS);
    assert_int_equal(fleet_row(&f, 0, "GPU-0/8", "p")->held_ms, HOUR_MS);
    fleet_close(&f);
}

static void whole_gpus_are_not_laid_on_instances_where_there_are_devices(void **state)
{
    (void)state;
    struct fleet f;
    fleet_open(&f, GPU_PRICE);
    fleet_record(&f, "kube_node_info", NODE, 0, 60, 1);
    fleet_samples(&f, "DCGM_FI_PROF_GR_ENGINE_ACTIVE", GPU(0) ",GPU_I_ID=1,GPU_I_PROFILE=7g.80gb",
                  0, 60, 0.5);
    fleet_gpu(&f, GPU(1), 0, 60, 100, 1);
    add_pod(&f, "p", 0, 60, "nvidia_com_gpu", 2);
    fleet_book(&f, 0, 1);
    fleet_row(&f, 0, "GPU-1", "p");
    assert_null(fleet_find(&f, 0, "GPU-0/1", "p"));
    fleet_close(&f);
}

static void gpus_that_send_nothing_are_laid_on_last(void **state)
{
    (void)state;
    struct fleet f;
    open_node(&f, 1);
    struct resource_count gpus = {STR("nvidia.com/gpu"), 3};
    struct node_object node = {
        .name = STR("n2"), .created = T0 - DAY_MS, .capacity = &gpus, .capacity_n = 1};
    intake_node(f.intake, &node);
    struct container_object container = {.name = STR("c"), .requests = &gpus, .requests_n = 1};
    gpus.count = 2;
    struct pod_object pod = {.namespace = STR("ns"),
                             .name = STR("blind"),
                             .uid = STR("u"),
                             .node = STR("n2"),
                             .scheduled = T0,
                             .started = TIME_MIN,
                             .finished = TIME_MIN,
                             .deleted = TIME_MIN,
                             .containers = &container,
                             .containers_n = 1};
    intake_pod(f.intake, &pod);
    fleet_book(&f, 0, 1);
    const struct row *row = fleet_row(&f, 0, "unseen-0@n2", "blind");
    assert_money(row, UNOBSERVED, GPU_PRICE);
    assert_int_equal(row->flags & (FLAG_UNSEEN | FLAG_BY_COUNT), FLAG_UNSEEN | FLAG_BY_COUNT);
    fleet_row(&f, 0, "unseen-1@n2", "blind");
    assert_money(fleet_row(&f, 0, "unseen-2@n2", ""), STRANDED, GPU_PRICE);
    fleet_close(&f);
}

/* Hundreds of pods by count on hundreds of replicas: tens of ms; the bound is for slow machines. */
static void eight_hundred_pods_on_eight_hundred_replicas_are_booked_at_once(void **state)
{
    (void)state;
    struct fleet f;
    open_node(&f, 8);
    fleet_record(&f, "kube_node_labels", "node=n1,label_nvidia_com_gpu_replicas=100", 0, 60, 1);
    for (int i = 0; i < 800; i++) {
        char name[20];
        snprintf(name, sizeof name, "p%03d", i);
        add_pod(&f, name, i % 60, 60, "nvidia_com_gpu", 1);
    }
    time_ms begin = clock_monotonic();
    fleet_book(&f, 0, 1);
    assert_true(clock_monotonic() - begin < 60000);
    int64_t held = 0;
    for (size_t i = 0; i < f.rows_n; i++)
        held += f.rows[i].held_ms;
    int64_t expected = 0;
    for (int i = 0; i < 800; i++)
        expected += (60 - i % 60) * MINUTE_MS;
    assert_int_equal(held, expected);
    fleet_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_holder_of_k_of_r_replicas_takes_k_of_r),
        cmocka_unit_test(more_holders_than_replicas_share_evenly),
        cmocka_unit_test(policy_even_always_divides_by_holders),
        cmocka_unit_test(one_holder_that_stands_twice_is_one_part),
        cmocka_unit_test(fractions_beyond_the_device_are_scaled_down),
        cmocka_unit_test(random_parts_and_the_rest_are_the_slot),
        cmocka_unit_test(counts_are_laid_on_the_lowest_index_in_order_of_start),
        cmocka_unit_test(labels_go_before_counts),
        cmocka_unit_test(a_living_pod_keeps_the_gpu_on_which_labels_showed_it),
        cmocka_unit_test(labels_of_a_finished_pod_are_late),
        cmocka_unit_test(mig_resources_go_to_instances_of_their_profile),
        cmocka_unit_test(whole_gpus_are_not_laid_on_instances_where_there_are_devices),
        cmocka_unit_test(gpus_that_send_nothing_are_laid_on_last),
        cmocka_unit_test(eight_hundred_pods_on_eight_hundred_replicas_are_booked_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
