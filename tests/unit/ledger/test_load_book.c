/* Hours of hosts, workloads and namespaces, worked out by hand. A node n1 with one GPU; five
 * minutes are 300 s of a processor. */
#include "fleet_fixture.h"

#include "fleet/loads.h"

#define HALF INT64_C(500000000)
#define ONE INT64_C(1000000000)
#define SLOT INT64_C(300000)
#define NODE "node=n1,job=node,instance=10.0.0.1:9100"
#define POD "namespace=ns,pod=p"

/* A GPU on n1 that pod ns/p holds for the first `minutes`. */
static void feed_gpu(struct fleet *f, int minutes)
{
    fleet_record(f, "kube_node_info", "node=n1,internal_ip=10.0.0.1", 0, minutes, 1);
    fleet_record(f, "kube_node_created", "node=n1", 0, minutes, (double)(T0 / 1000 - 86400));
    fleet_record(f, "kube_pod_info", POD ",uid=u,node=n1", 0, minutes, 1);
    fleet_record(f, "kube_pod_container_resource_requests",
                 POD ",uid=u,node=n1,container=c,resource=nvidia_com_gpu", 0, minutes, 1);
    fleet_gpu(f, "UUID=GPU-a,gpu=0,Hostname=n1,namespace=ns,pod=p,container=c", 0, minutes, 50,
              0.5);
}

/* A counter's value at a minute. */
static void count(struct fleet *f, const char *metric, const char *labels, int minute, double v)
{
    fleet_sample(f, metric, labels, minute * MINUTE_MS, v);
}

static const struct machine_hour *machine(const struct fleet *f, int hour)
{
    for (size_t i = 0; i < f->machines_n; i++)
        if (f->machines[i].hour == T0 + hour * HOUR_MS)
            return &f->machines[i];
    fail_msg("no machine-hour %d", hour);
    return NULL;
}

static const struct workload_hour *workload(const struct fleet *f, int hour)
{
    for (size_t i = 0; i < f->workloads_n; i++)
        if (f->workloads[i].hour == T0 + hour * HOUR_MS)
            return &f->workloads[i];
    fail_msg("no workload-hour %d", hour);
    return NULL;
}

static const struct namespace_hour *space(const struct fleet *f, int hour, const char *name)
{
    for (size_t i = 0; i < f->spaces_n; i++)
        if (f->spaces[i].hour == T0 + hour * HOUR_MS &&
            strcmp(fleet_text(f, f->spaces[i].namespace), name) == 0)
            return &f->spaces[i];
    fail_msg("no namespace-hour %d of %s", hour, name);
    return NULL;
}

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

/* ------------------------------------------------------------------ workloads */

/* As a Kubernetes list says it: 4 CPUs at the most, and 0.25 requested without a limit. */
static void limits_of_an_object_count_as_well(void **state)
{
    (void)state;
    struct fleet f;
    fleet_open(&f, GPU_PRICE);
    feed_gpu(&f, 60);
    struct container_object containers[] = {{.name = STR("c"), .mcpu = 1000, .limit_mcpu = 4000},
                                            {.name = STR("s"), .mcpu = 250}};
    struct pod_object pod = {.namespace = STR("ns"),
                             .name = STR("p"),
                             .uid = STR("u"),
                             .node = STR("n1"),
                             .phase = STR("Running"),
                             .created = T0,
                             .scheduled = T0,
                             .started = T0,
                             .finished = TIME_MIN,
                             .deleted = TIME_MIN,
                             .containers = containers,
                             .containers_n = 2};
    intake_pod(f.intake, &pod);
    fleet_book(&f, 0, 1);
    assert_int_equal(workload(&f, 0)->cpu_limit_mcpu, 4250);
    fleet_close(&f);
}

/* JupyterHub's label makes a pod interactive and names who works in it; a training pod's user is
 * not kept. */
static void interactive_work_has_a_user_where_labels_say_so(void **state)
{
    (void)state;
    struct fleet f;
    fleet_open(&f, GPU_PRICE);
    feed_gpu(&f, 60);
    fleet_record(&f, "kube_pod_labels", POD ",uid=u,label_hub_jupyter_org_username=alice", 0, 60,
                 1);
    fleet_book(&f, 0, 1);
    assert_string_equal(fleet_text(&f, workload(&f, 0)->user), "alice");
    assert_int_equal(workload(&f, 0)->cpu_limit_mcpu, -1);
    fleet_close(&f);
    fleet_open(&f, GPU_PRICE);
    feed_gpu(&f, 60);
    fleet_record(&f, "kube_pod_labels", POD ",uid=u,label_user=bob", 0, 60, 1);
    fleet_book(&f, 0, 1);
    assert_int_equal(f.workloads_n, 0);
    fleet_close(&f);
}

static void containers_use_processors_and_have_limits(void **state)
{
    (void)state;
    struct fleet f;
    fleet_open(&f, GPU_PRICE);
    feed_gpu(&f, 60);
    const char *const metric = "container_cpu_usage_seconds_total";
    const char *const c = POD ",container=c,image=i,job=kubelet,node=n1";
    const char *const sidecar = POD ",container=s,image=i,job=kubelet,node=n1";
    for (int minute = 0; minute <= 10; minute += 5) {
        count(&f, metric, c, minute,
              minute == 0   ? 7
              : minute == 5 ? 607
                            : 757);                        /* 2, then 0.5 CPU */
        count(&f, metric, sidecar, minute, minute * 60.0); /* 1 CPU */
        count(&f, metric, POD ",job=kubelet,node=n1", minute,
              minute * 999.0); /* the pod's cgroup */
        count(&f, metric, POD ",container=POD,job=kubelet,node=n1", minute, minute * 999.0);
    }
    fleet_record(&f, "kube_pod_container_resource_limits", POD ",uid=u,container=c,resource=cpu", 0,
                 60, 4);
    fleet_record(&f, "kube_pod_container_resource_requests", POD ",uid=u,container=s,resource=cpu",
                 0, 60, 0.25);
    fleet_book(&f, 0, 1);
    assert_string_equal(fleet_text(&f, workload(&f, 0)->workload), "Pod/p");
    assert_int_equal(workload(&f, 0)->cpu_seen_ms, 2 * SLOT);
    assert_int_equal(workload(&f, 0)->cpu_mcpu_ms, (3000 + 1500) * SLOT);
    assert_int_equal(workload(&f, 0)->cpu_max_mcpu, 3000);
    assert_int_equal(workload(&f, 0)->cpu_limit_mcpu, 4250);
    assert_int_equal(workload(&f, 0)->serving_seen_ms, 0);
    assert_int_equal(workload(&f, 0)->running_max, -1);
    assert_int_equal(workload(&f, 0)->requests, -1);
    assert_int_equal(workload(&f, 0)->tokens, -1);
    fleet_close(&f);
}

struct serving {
    const char *running, *waiting, *kv, *generated, *prompt, *requests;
    const char *own; /* labels */
    const char *of_running, *of_waiting, *of_kv;
};

static const struct serving servers[] = {
    {"vllm:num_requests_running", "vllm:num_requests_waiting", "vllm:kv_cache_usage_perc",
     "vllm:generation_tokens_total", "vllm:prompt_tokens_total", "vllm:request_success_total",
     "engine=0,model_name=m", "", "", ""},
    {"vllm_num_requests_running", "vllm_num_requests_waiting", "vllm_gpu_cache_usage_perc",
     "vllm_generation_tokens_total", "vllm_prompt_tokens_total", "vllm_request_success_total",
     "model_name=m", "", "", ""},
    {"sglang:num_running_reqs", "sglang:num_queue_reqs", "sglang:token_usage",
     "sglang:generation_tokens_total", "sglang:prompt_tokens_total", "sglang:num_requests_total",
     "model_name=m,tp_rank=0", "", "", ""},
    {"tgi_batch_current_size", "tgi_queue_size", NULL, "tgi_request_generated_tokens_sum",
     "tgi_request_input_length_sum", "tgi_request_success", "", "", "", ""},
    {"nv_trt_llm_request_metrics", "nv_trt_llm_request_metrics",
     "nv_trt_llm_kv_cache_block_metrics", NULL, NULL, "nv_inference_request_success",
     "model=m,version=1", ",request_type=active", ",request_type=waiting",
     ",kv_cache_block_type=fraction"},
    {NULL, "nv_inference_pending_request_count", NULL, NULL, NULL, "nv_inference_request_success",
     "model=m,version=1", "", "", ""},
};

static void gauge(struct fleet *f, const char *metric, const char *target, const char *more,
                  const char *own, double early, double late)
{
    char labels[300];
    if (!metric)
        return;
    snprintf(labels, sizeof labels, POD ",%s,%s%s", target, own, more);
    fleet_samples(f, metric, labels, 0, 30, early);
    fleet_samples(f, metric, labels, 30, 60, late);
}

static void counter(struct fleet *f, const char *metric, const char *target, const char *own,
                    double done)
{
    char labels[300];
    if (!metric)
        return;
    snprintf(labels, sizeof labels, POD ",%s,%s", target, own);
    count(f, metric, labels, 0, 70);
    count(f, metric, labels, 60, 70 + done);
}

static void feed_server(struct fleet *f, const struct serving *server, const char *target)
{
    gauge(f, server->running, target, server->of_running, server->own, 2, 4);
    gauge(f, server->waiting, target, server->of_waiting, server->own, 0, 1);
    gauge(f, server->kv, target, server->of_kv, server->own, 0.25, 0.75);
    counter(f, server->generated, target, server->own, 900);
    counter(f, server->prompt, target, server->own, 100);
    counter(f, server->requests, target, server->own, 12);
}

/* Half an hour with 2 requests in work, half with 4 and one in the queue; 1000 tokens. */
static void assert_serving(const struct fleet *f, const struct serving *server)
{
    const struct workload_hour *hour = workload(f, 0);
    assert_int_equal(hour->serving_seen_ms, HOUR_MS);
    assert_int_equal(hour->running_ms, server->running ? 3 * HOUR_MS : 0);
    assert_int_equal(hour->running_max, server->running ? 4 : -1);
    assert_int_equal(hour->waiting_ms, HOUR_MS / 2);
    assert_int_equal(hour->waiting_max, 1);
    assert_int_equal(hour->kv_seen_ms, server->kv ? HOUR_MS : 0);
    assert_int_equal(hour->kv, server->kv ? HALF * HOUR_MS : 0);
    assert_int_equal(hour->kv_max, server->kv ? 3 * ONE / 4 : -1);
    assert_int_equal(hour->requests, 12);
    assert_int_equal(hour->tokens, server->generated ? 1000 : -1);
    const struct row *row = fleet_row(f, 0, "GPU-a", "p");
    assert_int_equal(row->work[WORK_GENERATION_TOKENS], server->generated ? 900 : 0);
    assert_int_equal(row->work[WORK_PROMPT_TOKENS], server->prompt ? 100 : 0);
    assert_int_equal(row->work[WORK_REQUESTS], 12);
}

static void every_server_says_the_same_under_its_own_names(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof servers / sizeof *servers; i++) {
        struct fleet f;
        fleet_open(&f, GPU_PRICE);
        feed_gpu(&f, 60);
        feed_server(&f, &servers[i], "job=s,instance=10.1.0.1:8000");
        fleet_book(&f, 0, 1);
        assert_serving(&f, &servers[i]);
        fleet_close(&f);
    }
}

static void two_targets_that_scrape_one_pod_count_once(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof servers / sizeof *servers; i++) {
        struct fleet f;
        fleet_open(&f, GPU_PRICE);
        feed_gpu(&f, 60);
        feed_server(&f, &servers[i], "job=s,instance=10.1.0.1:8000");
        feed_server(&f, &servers[i], "job=pod-monitor,instance=10.1.0.1:8000,endpoint=http");
        fleet_book(&f, 0, 1);
        assert_serving(&f, &servers[i]);
        fleet_close(&f);
    }
}

static void engines_of_one_server_add_up_and_ranks_do_not(void **state)
{
    (void)state;
    struct fleet f;
    fleet_open(&f, GPU_PRICE);
    feed_gpu(&f, 60);
    fleet_samples(&f, "vllm:num_requests_running", POD ",job=s,engine=0", 0, 60, 2);
    fleet_samples(&f, "vllm:num_requests_running", POD ",job=s,engine=1", 0, 60, 3);
    fleet_samples(&f, "vllm:kv_cache_usage_perc", POD ",job=s,engine=0", 0, 60, 0.2);
    fleet_samples(&f, "vllm:kv_cache_usage_perc", POD ",job=s,engine=1", 0, 60, 0.6);
    fleet_samples(&f, "sglang:num_queue_reqs", POD ",job=s,tp_rank=0", 0, 60, 7);
    fleet_samples(&f, "sglang:num_queue_reqs", POD ",job=s,tp_rank=1", 0, 60, 7);
    fleet_book(&f, 0, 1);
    assert_int_equal(workload(&f, 0)->running_max, 5);
    assert_int_equal(workload(&f, 0)->kv_max, 2 * ONE / 5);
    assert_int_equal(workload(&f, 0)->waiting_max, 7);
    fleet_close(&f);
}

/* ------------------------------------------------------------------ namespaces */

static void pods_that_wait_for_gpus_are_counted_with_what_they_want(void **state)
{
    (void)state;
    struct fleet f;
    const char *const requests = "kube_pod_container_resource_requests";
    fleet_open(&f, GPU_PRICE);
    feed_gpu(&f, 120);
    /* w1 wants 4 GPUs from minute 0 to 30, w2 wants 2 from 15 to 75; w3 wants none */
    fleet_record(&f, "kube_pod_info", "namespace=ns,pod=w1,uid=1", 1, 30, 1);
    fleet_record(&f, requests, "namespace=ns,pod=w1,uid=1,container=c,resource=nvidia_com_gpu", 1,
                 30, 4);
    fleet_record(&f, "kube_pod_info", "namespace=ns,pod=w2,uid=2", 16, 75, 1);
    fleet_record(&f, requests, "namespace=ns,pod=w2,uid=2,container=c,resource=nvidia_com_gpu", 16,
                 75, 2);
    fleet_record(&f, "kube_pod_info", "namespace=ns,pod=w3,uid=3", 0, 75, 1);
    fleet_book(&f, 0, 2);
    assert_int_equal(space(&f, 0, "ns")->gpu_pods, 1);
    assert_int_equal(space(&f, 0, "ns")->pending_pods, 2);
    assert_int_equal(space(&f, 0, "ns")->pending_gpus, 6);
    assert_int_equal(space(&f, 0, "ns")->pending_largest, 4);
    /* a record reaches back to the observation before it: half a minute */
    assert_int_equal(space(&f, 0, "ns")->pending_gpu_ms,
                     4 * (30 * MINUTE_MS - MINUTE_MS / 2) + 2 * (45 * MINUTE_MS - MINUTE_MS / 2));
    assert_int_equal(space(&f, 1, "ns")->pending_pods, 1);
    assert_int_equal(space(&f, 1, "ns")->pending_largest, 2);
    assert_int_equal(space(&f, 1, "ns")->pending_gpu_ms, 2 * 15 * MINUTE_MS);
    assert_false(space(&f, 0, "ns")->quotas_known);
    assert_int_equal(space(&f, 0, "ns")->gpu_quota, -1);
    assert_false(space(&f, 0, "ns")->priorities_known);
    fleet_close(&f);
}

static void of_quotas_on_a_resource_the_least_counts_and_resources_add_up(void **state)
{
    (void)state;
    struct fleet f;
    const char *const quota = "kube_resourcequota";
    fleet_open(&f, GPU_PRICE);
    feed_gpu(&f, 120);
    fleet_record(&f, quota,
                 "namespace=ns,resourcequota=a,type=hard,resource=requests.nvidia.com/gpu", 0, 60,
                 8);
    fleet_record(&f, quota,
                 "namespace=ns,resourcequota=a,type=hard,resource=requests.nvidia.com/gpu", 61, 120,
                 5);
    fleet_record(&f, quota, "namespace=ns,resourcequota=b,type=hard,resource=limits.nvidia.com/gpu",
                 0, 120, 6);
    fleet_record(&f, quota,
                 "namespace=ns,resourcequota=b,type=hard,resource=requests.nvidia.com/mig-1g.10gb",
                 0, 120, 3);
    fleet_record(&f, quota,
                 "namespace=ns,resourcequota=b,type=used,resource=requests.nvidia.com/gpu", 0, 120,
                 1);
    fleet_record(&f, quota, "namespace=other,resourcequota=b,type=hard,resource=pods", 0, 120, 9);
    fleet_record(&f, "kube_pod_info", "namespace=ns,pod=q,uid=q,node=n1,priority_class=high", 0,
                 120, 1);
    fleet_record(&f, "kube_pod_container_resource_requests",
                 "namespace=ns,pod=q,uid=q,node=n1,container=c,resource=nvidia_com_gpu", 0, 120, 1);
    fleet_book(&f, 0, 2);
    assert_true(space(&f, 0, "ns")->quotas_known);
    assert_int_equal(space(&f, 0, "ns")->gpu_quota, 6 + 3);
    assert_int_equal(space(&f, 1, "ns")->gpu_quota, 5 + 3);
    assert_true(space(&f, 0, "ns")->priorities_known);
    assert_int_equal(space(&f, 0, "ns")->gpu_pods, 2);
    assert_int_equal(space(&f, 0, "ns")->gpu_pods_without_priority, 1);
    fleet_close(&f);
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
        cmocka_unit_test(limits_of_an_object_count_as_well),
        cmocka_unit_test(interactive_work_has_a_user_where_labels_say_so),
        cmocka_unit_test(containers_use_processors_and_have_limits),
        cmocka_unit_test(every_server_says_the_same_under_its_own_names),
        cmocka_unit_test(two_targets_that_scrape_one_pod_count_once),
        cmocka_unit_test(engines_of_one_server_add_up_and_ranks_do_not),
        cmocka_unit_test(pods_that_wait_for_gpus_are_counted_with_what_they_want),
        cmocka_unit_test(of_quotas_on_a_resource_the_least_counts_and_resources_add_up),
        cmocka_unit_test(order_and_repetition_change_nothing),
        cmocka_unit_test(what_is_not_exported_makes_no_hours),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
