/* Hours of workloads and namespaces, worked out by hand. */
#include "load_fixture.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(limits_of_an_object_count_as_well),
        cmocka_unit_test(interactive_work_has_a_user_where_labels_say_so),
        cmocka_unit_test(containers_use_processors_and_have_limits),
        cmocka_unit_test(every_server_says_the_same_under_its_own_names),
        cmocka_unit_test(two_targets_that_scrape_one_pod_count_once),
        cmocka_unit_test(engines_of_one_server_add_up_and_ranks_do_not),
        cmocka_unit_test(pods_that_wait_for_gpus_are_counted_with_what_they_want),
        cmocka_unit_test(of_quotas_on_a_resource_the_least_counts_and_resources_add_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
