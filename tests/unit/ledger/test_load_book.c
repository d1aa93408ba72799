/* Hours of hosts, worked out by hand. */
#include "load_fixture.h"

/* ------------------------------------------------------------------ hosts */

/* Two processors: 20 % busy in the first five minutes, 50 % in the second, then idle. */
static void feed_cpu(struct fleet *f, const char *target)
{
    for (int cpu = 0; cpu < 2; cpu++) {
        double idle = 1000, wait = 3, user = 500;
        for (int minute = 0; minute <= 60; minute += 5) {
            char labels[200];
            double busy = minute == 5 ? 60 : minute == 10 ? 150 : 0;
            user += minute ? busy : 0;
            wait += minute ? 10 : 0;
            idle += minute ? 290 - busy : 0;
            snprintf(labels, sizeof labels, "%s,cpu=%d,mode=idle", target, cpu);
            count(f, "node_cpu_seconds_total", labels, minute, idle);
            snprintf(labels, sizeof labels, "%s,cpu=%d,mode=iowait", target, cpu);
            count(f, "node_cpu_seconds_total", labels, minute, wait);
            snprintf(labels, sizeof labels, "%s,cpu=%d,mode=user", target, cpu);
            count(f, "node_cpu_seconds_total", labels, minute, user);
        }
    }
}

static void assert_cpu(const struct machine_hour *hour)
{
    assert_int_equal(hour->cpu_seen_ms, HOUR_MS);
    assert_int_equal(hour->cpu, (ONE / 5 + HALF) * SLOT);
    assert_int_equal(hour->cpu_max, HALF);
    assert_int_equal(hour->cpus, 2);
}

static void processors_are_busy_by_means_of_five_minutes_and_wait_is_idle(void **state)
{
    (void)state;
    struct fleet f;
    fleet_open(&f, GPU_PRICE);
    feed_gpu(&f, 60);
    feed_cpu(&f, NODE);
    fleet_book(&f, 0, 1);
    assert_cpu(machine(&f, 0));
    fleet_close(&f);
}

static void a_second_exporter_of_a_node_counts_nothing_twice(void **state)
{
    (void)state;
    struct fleet f;
    fleet_open(&f, GPU_PRICE);
    feed_gpu(&f, 60);
    feed_cpu(&f, NODE);
    feed_cpu(&f, "instance=10.0.0.1:9100,job=other,prometheus_replica=b");
    fleet_book(&f, 0, 1);
    assert_cpu(machine(&f, 0));
    fleet_close(&f);
}

/* One exporter until minute 30, the other from there on: the hour is whole. */
static void exporters_that_follow_each_other_make_one_hour(void **state)
{
    (void)state;
    struct fleet f;
    fleet_open(&f, GPU_PRICE);
    feed_gpu(&f, 60);
    for (int minute = 0; minute <= 60; minute += 5) {
        const char *target = minute <= 30 ? "job=a,cpu=0,mode=" : "job=b,cpu=0,mode=";
        for (int again = 0; again <= (minute == 30); again++) {
            char labels[100];
            target = again ? "job=b,cpu=0,mode=" : target;
            snprintf(labels, sizeof labels, "node=n1,%sidle", target);
            count(&f, "node_cpu_seconds_total", labels, minute, 210.0 / 5 * minute);
            snprintf(labels, sizeof labels, "node=n1,%suser", target);
            count(&f, "node_cpu_seconds_total", labels, minute, 90.0 / 5 * minute);
        }
    }
    fleet_book(&f, 0, 1);
    assert_int_equal(machine(&f, 0)->cpu_seen_ms, HOUR_MS);
    assert_int_equal(machine(&f, 0)->cpu, 3 * ONE / 10 * HOUR_MS);
    assert_int_equal(machine(&f, 0)->cpus, 1);
    fleet_close(&f);
}

/* The sample at which counters go back says nothing; those around it do. */
static void a_reboot_costs_the_increase_across_it(void **state)
{
    (void)state;
    struct fleet f;
    fleet_open(&f, GPU_PRICE);
    feed_gpu(&f, 60);
    static const double idle[] = {100, 250, 10, 235}, user[] = {100, 250, 5, 80};
    for (int i = 0; i < 4; i++) {
        count(&f, "node_cpu_seconds_total", NODE ",cpu=0,mode=idle", 5 * i, idle[i]);
        count(&f, "node_cpu_seconds_total", NODE ",cpu=0,mode=user", 5 * i, user[i]);
    }
    fleet_book(&f, 0, 1);
    /* 150 of 300 s, nothing, 225 of 300 s idle */
    assert_int_equal(machine(&f, 0)->cpu_seen_ms, 2 * SLOT);
    assert_int_equal(machine(&f, 0)->cpu, (HALF + HALF / 2) * SLOT);
    fleet_close(&f);
}

/* A mode that is not exported at first has no increase at its first sample. */
static void a_mode_that_appears_later_adds_from_its_second_sample_on(void **state)
{
    (void)state;
    struct fleet f;
    fleet_open(&f, GPU_PRICE);
    feed_gpu(&f, 60);
    for (int minute = 0; minute <= 15; minute += 5)
        count(&f, "node_cpu_seconds_total", NODE ",cpu=0,mode=idle", minute, 60.0 * minute);
    count(&f, "node_cpu_seconds_total", NODE ",cpu=0,mode=user", 10, 9000);
    count(&f, "node_cpu_seconds_total", NODE ",cpu=0,mode=user", 15, 9300);
    fleet_book(&f, 0, 1);
    assert_int_equal(machine(&f, 0)->cpu_seen_ms, 3 * SLOT);
    assert_int_equal(machine(&f, 0)->cpu, HALF * SLOT); /* 0, 0, 300 of 600 */
    fleet_close(&f);
}

static void only_physical_interfaces_count_and_resets_begin_at_0(void **state)
{
    (void)state;
    struct fleet f;
    fleet_open(&f, GPU_PRICE);
    feed_gpu(&f, 60);
    static const char *const devices[] = {"lo", "veth12", "cali9", "docker0", "cni0", "br-1"};
    for (size_t i = 0; i < sizeof devices / sizeof *devices; i++) {
        char labels[100];
        snprintf(labels, sizeof labels, NODE ",device=%s", devices[i]);
        count(&f, "node_network_receive_bytes_total", labels, 0, 0);
        count(&f, "node_network_receive_bytes_total", labels, 5, 1e9);
    }
    count(&f, "node_network_receive_bytes_total", NODE ",device=eth0", 0, 1000);
    count(&f, "node_network_receive_bytes_total", NODE ",device=eth0", 5, 4000);
    count(&f, "node_network_receive_bytes_total", NODE ",device=eth0", 10, 700);
    count(&f, "node_network_transmit_bytes_total", NODE ",device=ens5", 5, 1);
    count(&f, "node_network_transmit_bytes_total", NODE ",device=ens5", 15, 21);
    fleet_book(&f, 0, 1);
    assert_int_equal(machine(&f, 0)->net_bytes, 3000 + 700 + 20);
    assert_int_equal(machine(&f, 0)->net_seen_ms, 3 * SLOT);
    assert_int_equal(machine(&f, 0)->cpu_seen_ms, 0);
    assert_int_equal(machine(&f, 0)->cpu_max, -1);
    assert_int_equal(machine(&f, 0)->cpus, -1);
    fleet_close(&f);
}

static void a_host_is_known_by_address_or_by_the_pod_that_is_scraped(void **state)
{
    (void)state;
    static const char *const targets[] = {
        "instance=10.0.0.1:9100,job=x", "nodename=n1", "instance=n1",
        "instance=10.9.9.9:9100,namespace=mon,pod=exporter-1", "node=n1,instance=10.9.9.9:9100"};
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
        struct fleet f;
        fleet_open(&f, GPU_PRICE);
        feed_gpu(&f, 60);
        fleet_record(&f, "kube_pod_info", "namespace=mon,pod=exporter-1,uid=e,node=n1", 0, 60, 1);
        feed_cpu(&f, targets[i]);
        feed_cpu(&f, "instance=10.0.0.2:9100,job=x"); /* another machine */
        fleet_book(&f, 0, 1);
        assert_cpu(machine(&f, 0));
        fleet_close(&f);
    }
}

/* An increase reaches over the edge of a slice, and belongs to where it ends. */
static void slices_change_no_hour_of_a_host(void **state)
{
    (void)state;
    for (int sliced = 0; sliced < 2; sliced++) {
        struct fleet f;
        fleet_open(&f, GPU_PRICE);
        for (int part = 0; part <= sliced; part++) {
            if (part == 0)
                feed_gpu(&f, 120); /* the second slice finds it in the carry and again */
            if (part == 1) {
                struct strbuf kept = f.carry;
                f.carry = (struct strbuf){0};
                assert_int_equal(intake_restore(f.intake, strbuf_str(&kept), NULL), ERR_OK);
                strbuf_release(&kept);
                feed_gpu(&f, 120);
            }
            bool early = !sliced || part == 0, late = !sliced || part == 1;
            for (int minute = 0; minute <= 120; minute += 5) {
                if ((minute <= 30 && early) || (minute >= 95 && late)) {
                    count(&f, "node_cpu_seconds_total", NODE ",cpu=0,mode=idle", minute,
                          45.0 * minute);
                    count(&f, "node_cpu_seconds_total", NODE ",cpu=0,mode=user", minute,
                          15.0 * minute);
                }
            }
            fleet_book(&f, sliced ? part : 0, sliced ? part + 1 : 2);
        }
        assert_int_equal(machine(&f, 0)->cpu_seen_ms, 6 * SLOT);
        assert_int_equal(machine(&f, 0)->cpu, ONE / 4 * 6 * SLOT);
        assert_int_equal(machine(&f, 1)->cpu_seen_ms, 6 * SLOT); /* from (90, 95] on */
        assert_int_equal(machine(&f, 1)->cpu, ONE / 4 * 6 * SLOT);
        fleet_close(&f);
    }
}

/* Sums that a server made: a processor that is added makes a jump, which is left out. */
static void a_sum_says_nothing_where_its_processors_change(void **state)
{
    (void)state;
    struct fleet f;
    fleet_open(&f, GPU_PRICE);
    feed_gpu(&f, 60);
    static const double idle[] = {1000, 1150, 9000, 9300}, busy[] = {1000, 1150, 9000, 9300};
    static const double cpus[] = {1, 1, 2, 2};
    for (int i = 0; i < 4; i++) {
        count(&f, LOAD_SUM_CPU, NODE ",mode=idle", 5 * i, idle[i]);
        count(&f, LOAD_SUM_CPU, NODE ",mode=busy", 5 * i, busy[i]);
        count(&f, LOAD_SUM_CPUS, NODE, 5 * i, cpus[i]);
    }
    fleet_book(&f, 0, 1);
    assert_int_equal(machine(&f, 0)->cpu_seen_ms, 2 * SLOT);
    assert_int_equal(machine(&f, 0)->cpu, HALF * 2 * SLOT);
    assert_int_equal(machine(&f, 0)->cpus, 2);
    fleet_close(&f);
}

/* ------------------------------------------------------------------ pods on the node */

static void pods_request_the_most_at_a_time_and_daemons_stand_apart(void **state)
{
    (void)state;
    struct fleet f;
    fleet_open(&f, GPU_PRICE);
    feed_gpu(&f, 120);
    /* 2 CPU and 1000 bytes in minutes 0..30, 3 CPU and 500 bytes from 20 on: at most 5 and 1500 */
    fleet_record(&f, "kube_pod_info", "namespace=web,pod=a,uid=a,node=n1", 0, 30, 1);
    fleet_record(&f, "kube_pod_owner",
                 "namespace=web,pod=a,uid=a,owner_kind=ReplicaSet,owner_name=a-1", 0, 30, 1);
    fleet_record(&f, "kube_replicaset_owner",
                 "namespace=web,replicaset=a-1,owner_kind=Deployment,owner_name=a", 0, 30, 1);
    fleet_record(&f, "kube_pod_info", "namespace=web,pod=b,uid=b,node=n1", 20, 120, 1);
    const char *const requests = "kube_pod_container_resource_requests";
    fleet_record(&f, requests, "namespace=web,pod=a,uid=a,container=x,resource=cpu", 0, 30, 1.5);
    fleet_record(&f, requests, "namespace=web,pod=a,uid=a,container=y,resource=cpu", 0, 30, 0.5);
    fleet_record(&f, requests, "namespace=web,pod=a,uid=a,container=x,resource=memory", 0, 30,
                 1000);
    fleet_record(&f, requests, "namespace=web,pod=b,uid=b,container=x,resource=cpu", 20, 120, 3);
    fleet_record(&f, requests, "namespace=web,pod=b,uid=b,container=x,resource=memory", 20, 120,
                 500);
    fleet_record(&f, "kube_pod_info", "namespace=sys,pod=d,uid=d,node=n1", 0, 120, 1);
    fleet_record(&f, "kube_pod_owner",
                 "namespace=sys,pod=d,uid=d,owner_kind=DaemonSet,owner_name=d", 0, 120, 1);
    fleet_record(&f, "kube_pod_info", "namespace=web,pod=elsewhere,uid=z,node=n2", 0, 120, 1);
    fleet_book(&f, 0, 2);
    assert_int_equal(machine(&f, 0)->requested_mcpu, 5000);
    assert_int_equal(machine(&f, 0)->requested_memory_bytes, 1500);
    assert_int_equal(machine(&f, 0)->cpu_pods, 2);
    assert_int_equal(machine(&f, 0)->daemon_pods, 1);
    assert_string_equal(fleet_text(&f, machine(&f, 0)->cpu_workloads),
                        "web/Deployment/a, web/Pod/b");
    assert_int_equal(machine(&f, 1)->requested_mcpu, 3000);
    assert_int_equal(machine(&f, 1)->cpu_pods, 1);
    assert_string_equal(fleet_text(&f, machine(&f, 1)->cpu_workloads), "web/Pod/b");
    fleet_close(&f);
}

static void taints_of_conditions_keep_nobody_away(void **state)
{
    (void)state;
    static const struct {
        const char *labels;
        enum machine_taint expected;
    } cases[] = {
        {"node=n1,key=nvidia.com/gpu,value=present,effect=NoSchedule", MACHINE_TAINT_PRESENT},
        {"node=n1,key=gpu,effect=NoExecute", MACHINE_TAINT_PRESENT},
        {"node=n1,key=nvidia.com/gpu,effect=PreferNoSchedule", MACHINE_TAINT_NONE},
        {"node=n1,key=node.kubernetes.io/unschedulable,effect=NoSchedule", MACHINE_TAINT_NONE},
        {"node=other,key=nvidia.com/gpu,effect=NoSchedule", MACHINE_TAINT_NONE},
        {NULL, MACHINE_TAINT_UNKNOWN},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct fleet f;
        fleet_open(&f, GPU_PRICE);
        feed_gpu(&f, 60);
        if (cases[i].labels)
            fleet_record(&f, "kube_node_spec_taint", cases[i].labels, 0, 60, 1);
        fleet_book(&f, 0, 1);
        assert_int_equal(machine(&f, 0)->gpu_taint, cases[i].expected);
        fleet_close(&f);
    }
}

/* ------------------------------------------------------------------ order */

struct sample {
    int series;
    time_ms at;
    double v;
};

static void feed_samples(struct fleet *f, const struct sample *samples, size_t n)
{
    static const char *const labels[] = {NODE ",cpu=0,mode=idle", NODE ",cpu=0,mode=user",
                                         NODE ",cpu=1,mode=idle", NODE ",cpu=1,mode=user"};
    for (size_t i = 0; i < n; i++)
        fleet_sample(f, "node_cpu_seconds_total", labels[samples[i].series], samples[i].at,
                     samples[i].v);
}

static struct machine_hour hour_of(const struct sample *samples, size_t n, bool in_order)
{
    struct fleet f;
    fleet_open(&f, GPU_PRICE);
    feed_gpu(&f, 60);
    if (in_order)
        intake_in_order(f.intake, (struct span){T0, T0 + HOUR_MS});
    feed_samples(&f, samples, n);
    intake_in_any_order(f.intake);
    fleet_book(&f, 0, 1);
    struct machine_hour hour = *machine(&f, 0);
    fleet_close(&f);
    return hour;
}

/* Counters that reset at random: in order they are added up as they come, shuffled and repeated
 * they are kept and sorted, and the hour is the same. */
static void order_and_repetition_change_nothing(void **state)
{
    (void)state;
    struct random random = random_new();
    for (int round = 0; round < 20; round++) {
        struct sample samples[4 * 80];
        size_t n = 0;
        for (int series = 0; series < 4; series++) {
            double v = 0;
            time_ms at = -20 * MINUTE_MS;
            for (int i = 0; i < 70; i++) {
                at += 1000 + random_below(&random, 120) * 1000;
                v = random_below(&random, 30) ? v + (double)random_below(&random, 50)
                                              : (double)random_below(&random, 5);
                samples[n++] = (struct sample){series, at, v};
            }
        }
        struct machine_hour ordered = hour_of(samples, n, true);
        for (int i = 0; i < 20; i++)
            samples[n++] = samples[random_below(&random, 280)];
        for (size_t i = n - 1; i > 0; i--) {
            size_t k = (size_t)random_below(&random, (int64_t)i + 1);
            struct sample swap = samples[i];
            samples[i] = samples[k];
            samples[k] = swap;
        }
        struct machine_hour shuffled = hour_of(samples, n, false);
        assert_int_equal(ordered.cpu, shuffled.cpu);
        assert_int_equal(ordered.cpu_seen_ms, shuffled.cpu_seen_ms);
        assert_int_equal(ordered.cpu_max, shuffled.cpu_max);
        assert_int_equal(ordered.cpus, shuffled.cpus);
        assert_true(ordered.cpu_seen_ms > 0);
    }
}

static void what_is_not_exported_makes_no_hours(void **state)
{
    (void)state;
    struct fleet f;
    fleet_open(&f, GPU_PRICE);
    fleet_gpu(&f, "UUID=GPU-a,gpu=0,Hostname=n1,namespace=ns,pod=p,container=c", 0, 60, 50, 0.5);
    fleet_book(&f, 0, 1);
    assert_int_equal(f.machines_n, 0);
    assert_int_equal(f.workloads_n, 0);
    fleet_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(processors_are_busy_by_means_of_five_minutes_and_wait_is_idle),
        cmocka_unit_test(a_second_exporter_of_a_node_counts_nothing_twice),
        cmocka_unit_test(exporters_that_follow_each_other_make_one_hour),
        cmocka_unit_test(a_reboot_costs_the_increase_across_it),
        cmocka_unit_test(a_mode_that_appears_later_adds_from_its_second_sample_on),
        cmocka_unit_test(only_physical_interfaces_count_and_resets_begin_at_0),
        cmocka_unit_test(a_host_is_known_by_address_or_by_the_pod_that_is_scraped),
        cmocka_unit_test(slices_change_no_hour_of_a_host),
        cmocka_unit_test(a_sum_says_nothing_where_its_processors_change),
        cmocka_unit_test(pods_request_the_most_at_a_time_and_daemons_stand_apart),
        cmocka_unit_test(taints_of_conditions_keep_nobody_away),
        cmocka_unit_test(order_and_repetition_change_nothing),
        cmocka_unit_test(what_is_not_exported_makes_no_hours),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
