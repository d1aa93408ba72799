/* The table of loads and what of them is read.
 *
 * Sources: node_exporter's cpu and netclass collectors; cAdvisor in the kubelet; the metrics pages
 * of vLLM (gpu_cache_usage_perc until it was renamed kv_cache_usage_perc), SGLang, TGI and Triton
 * with its TensorRT-LLM backend. TGI's histograms of tokens have their totals in _sum. Triton
 * counts requests that are in work as pending too, so that it tells of a queue only. */
#include "fleet/loads.h"

#define HOST(metric, load, scale, own)                                                             \
    {                                                                                              \
        metric, LOAD_##load, scale, own, NULL, NULL, LOAD_GROUP_HOST                               \
    }
#define SERVING(metric, load, scale)                                                               \
    {                                                                                              \
        metric, LOAD_##load, scale, NULL, NULL, NULL, LOAD_GROUP_SERVING                           \
    }
#define SERVING_OF(metric, load, scale, label, value)                                              \
    {                                                                                              \
        metric, LOAD_##load, scale, NULL, label, value, LOAD_GROUP_SERVING                         \
    }
#define CONTAINER_OWN "container image name id cpu"

const struct load_name load_names[] = {
    HOST("node_cpu_seconds_total", CPU, 1e6, "cpu mode"),
    HOST("node_cpu", CPU, 1e6, "cpu mode"),
    HOST("node_network_receive_bytes_total", NET_IN, 1, "device"),
    HOST("node_network_transmit_bytes_total", NET_OUT, 1, "device"),
    {"container_cpu_usage_seconds_total", LOAD_CONTAINER_CPU, 1e6, CONTAINER_OWN, NULL, NULL,
     LOAD_GROUP_CONTAINER},
    {LOAD_SUM_CPU, LOAD_CPU, 1e6, "mode", NULL, NULL, LOAD_GROUP_SUM},
    {LOAD_SUM_CPUS, LOAD_CPUS, 1, "", NULL, NULL, LOAD_GROUP_SUM},
    {LOAD_SUM_CONTAINER_CPU, LOAD_CONTAINER_CPU, 1e6, "", NULL, NULL, LOAD_GROUP_SUM},

    SERVING("vllm:num_requests_running", RUNNING, 1),
    SERVING("vllm:num_requests_waiting", WAITING, 1),
    SERVING("vllm:kv_cache_usage_perc", KV, 1e9),
    SERVING("vllm:gpu_cache_usage_perc", KV, 1e9),
    SERVING("vllm:generation_tokens_total", GENERATION_TOKENS, 1),
    SERVING("vllm:prompt_tokens_total", PROMPT_TOKENS, 1),
    SERVING("vllm:request_success_total", REQUESTS, 1),

    SERVING("sglang:num_running_reqs", RUNNING, 1),
    SERVING("sglang:num_queue_reqs", WAITING, 1),
    SERVING("sglang:token_usage", KV, 1e9),
    SERVING("sglang:generation_tokens_total", GENERATION_TOKENS, 1),
    SERVING("sglang:prompt_tokens_total", PROMPT_TOKENS, 1),
    SERVING("sglang:num_requests_total", REQUESTS, 1),

    SERVING("tgi_batch_current_size", RUNNING, 1),
    SERVING("tgi_queue_size", WAITING, 1),
    SERVING("tgi_request_generated_tokens_sum", GENERATION_TOKENS, 1),
    SERVING("tgi_request_input_length_sum", PROMPT_TOKENS, 1),
    SERVING("tgi_request_success", REQUESTS, 1),
    SERVING("tgi_request_count", REQUESTS, 1),

    SERVING_OF("nv_trt_llm_request_metrics", RUNNING, 1, "request_type", "active"),
    SERVING_OF("nv_trt_llm_request_metrics", WAITING, 1, "request_type", "waiting"),
    SERVING_OF("nv_trt_llm_kv_cache_block_metrics", KV, 1e9, "kv_cache_block_type", "fraction"),
    SERVING("nv_inference_pending_request_count", WAITING, 1),
    SERVING("nv_inference_request_success", REQUESTS, 1),
};
const size_t load_names_n = sizeof load_names / sizeof *load_names;

bool load_is_gauge(enum load load)
{
    return load == LOAD_CPUS || load == LOAD_RUNNING || load == LOAD_WAITING || load == LOAD_KV;
}

static bool same_metric(struct str metric, const char *known)
{
    size_t n = strlen(known);
    if (metric.n != n)
        return false;
    for (size_t i = 0; i < n; i++)
        if (metric.p[i] != known[i] && !(known[i] == ':' && metric.p[i] == '_'))
            return false;
    return true;
}

/* Do names begin like this at all? Most metrics of a file do not. */
static bool may_be_load(struct str metric)
{
    static const char *const heads[] = {"node_",  "container_", "gputally:", "vllm",
                                        "sglang", "tgi_",       "nv_"};
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++)
        if (str_starts(metric, str_of(heads[i])))
            return true;
    return false;
}

const struct load_name *load_of_metric(struct str metric)
{
    if (!may_be_load(metric))
        return NULL;
    for (size_t i = 0; i < load_names_n; i++)
        if (same_metric(metric, load_names[i].metric))
            return &load_names[i];
    return NULL;
}

/* Interfaces that carry what others carry already, or nothing that leaves the machine. */
static bool is_virtual_interface(struct str device)
{
    static const char *const heads[] = {
        "veth",   "cali",   "flannel", "cni",   "docker", "br-",  "virbr",        "tun",    "tap",
        "vxlan",  "geneve", "gre",     "dummy", "ifb",    "kube", "nodelocaldns", "cilium", "lxc",
        "podman", "ovs",    "vnet",    "bond",  "team",   "sit",  "ip6tnl",       "genev",  "azv",
        "gke",    "eni",    "cbr",     "weave", "antrea", "br0"};
    if (device.n == 0 || str_eq(device, STR("lo")))
        return true;
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++)
        if (str_starts(device, str_of(heads[i])))
            return true;
    return false;
}

static bool is_other_rank(const struct label *labels, size_t n)
{
    static const char *const ranks[] = {"tp_rank", "pp_rank"};
    for (size_t i = 0; i < sizeof ranks / sizeof *ranks; i++) {
        struct str rank = labels_get(labels, n, str_of(ranks[i]));
        if (rank.n && !str_eq(rank, STR("0")))
            return true;
    }
    return false;
}

static bool counts(const struct load_name *name, const struct label *labels, size_t n)
{
    struct str container = labels_get(labels, n, STR("container"));
    switch (name->load) {
    case LOAD_CPU:
        return labels_get(labels, n, STR("mode")).n > 0;
    case LOAD_NET_IN:
    case LOAD_NET_OUT:
        return !is_virtual_interface(labels_get(labels, n, STR("device")));
    case LOAD_CONTAINER_CPU: /* without a container: the pod's cgroup, which is the sum */
        return name->group == LOAD_GROUP_SUM || (container.n && !str_eq(container, STR("POD")));
    default:
        return !is_other_rank(labels, n);
    }
}

const struct load_name *load_of_series(const struct label *labels, size_t n)
{
    struct str metric = labels_get(labels, n, STR("__name__"));
    if (!may_be_load(metric))
        return NULL;
    for (size_t i = 0; i < load_names_n; i++) {
        const struct load_name *name = &load_names[i];
        if (same_metric(metric, name->metric) &&
            (!name->label ||
             str_eq(labels_get(labels, n, str_of(name->label)), str_of(name->value))))
            return counts(name, labels, n) ? name : NULL;
    }
    return NULL;
}
