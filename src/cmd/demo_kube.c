/* The demo's machines and pods as kube-state-metrics prints them, and the counters of its language
 * model servers as vLLM does. */
#include "cmd/demo_writer.h"

#define KUBE_LABELS "job=\"kube-state-metrics\",instance=\"10.0.0.5:8080\"} "
#define GIB ((uint64_t)1 << 30)

/* A value that is `on` in a span and `off` outside it. */
struct switched {
    struct span when;
    uint64_t on, off;
};

static int64_t switched_value(void *context, time_ms t)
{
    const struct switched *value = context;
    return (int64_t)(t >= value->when.from && t < value->when.to ? value->on : value->off);
}

/* The series in hand, while its object is there. */
static void put_kube(struct demo_writer *w, struct span there, struct switched value)
{
    strbuf_add(&w->head, STR(KUBE_LABELS));
    demo_put_series(w, &w->kube_grid, demo_overlap(there, w->kube),
                    (struct demo_values){switched_value, &value, 0});
}

static void put_constant(struct demo_writer *w, struct span there, uint64_t value)
{
    put_kube(w, there, (struct switched){.on = value, .off = value});
}

/* ---- machines ---- */

static void head_of_node(struct demo_writer *w, const char *family, const struct demo_node *node)
{
    strbuf_clear(&w->head);
    strbuf_addf(&w->head, "%s{node=\"%s\",", family, node->name);
}

static void put_node_info(struct demo_writer *w, const struct demo_node *node)
{
    head_of_node(w, "kube_node_info", node);
    strbuf_addf(&w->head,
                "kernel_version=\"6.1.0\",kubelet_version=\"v1.31.2\",internal_ip=\"%s\","
                "system_uuid=\"%s\",",
                node->address, node->uid);
    if (node->machine->zone[0])
        strbuf_addf(&w->head, "provider_id=\"aws:///%s/i-%.17s\",", node->machine->zone, node->uid);
    put_constant(w, node->up, 1);
}

static void put_node_created(struct demo_writer *w, const struct demo_node *node)
{
    head_of_node(w, "kube_node_created", node);
    put_constant(w, node->up, (uint64_t)(node->created / 1000));
}

static void put_node_labels(struct demo_writer *w, const struct demo_node *node)
{
    const struct demo_machine *machine = node->machine;
    head_of_node(w, "kube_node_labels", node);
    strbuf_addf(&w->head,
                "label_kubernetes_io_hostname=\"%s\",label_nvidia_com_gpu_count=\"%d\","
                "label_node_kubernetes_io_instance_type=\"%s\",",
                node->name, machine->gpus, machine->instance_type);
    if (machine->region[0])
        strbuf_addf(&w->head,
                    "label_topology_kubernetes_io_region=\"%s\","
                    "label_topology_kubernetes_io_zone=\"%s\","
                    "label_karpenter_sh_capacity_type=\"%s\",label_karpenter_sh_nodepool=\"%s\",",
                    machine->region, machine->zone, node->spot ? "spot" : "on-demand", node->pool);
    put_constant(w, node->up, 1);
}

static void put_node_unschedulable(struct demo_writer *w, const struct demo_node *node)
{
    head_of_node(w, "kube_node_spec_unschedulable", node);
    put_constant(w, node->up, 0);
}

static void put_resource(struct demo_writer *w, const struct demo_node *node, const char *family,
                         const char *resource, size_t count)
{
    head_of_node(w, family, node);
    strbuf_addf(&w->head, "resource=\"%s\",unit=\"integer\",", resource);
    put_constant(w, node->up, count);
}

static void put_resources(struct demo_writer *w, const struct demo_node *node, const char *family)
{
    size_t instances = (size_t)node->instances;
    put_resource(w, node, family, "nvidia_com_gpu", node->slots_n - instances);
    if (instances > 0)
        put_resource(w, node, family, "nvidia_com_mig_2g_20gb", instances);
}

static void put_node_capacity(struct demo_writer *w, const struct demo_node *node)
{
    put_resources(w, node, "kube_node_status_capacity");
}

static void put_node_allocatable(struct demo_writer *w, const struct demo_node *node)
{
    put_resources(w, node, "kube_node_status_allocatable");
}

/* ---- pods ---- */

static struct span life_of(const struct demo_pod *pod)
{
    return (struct span){pod->created, pod->gone};
}

static void head_of_pod(struct demo_writer *w, const char *family, const struct demo_pod *pod)
{
    strbuf_clear(&w->head);
    strbuf_addf(&w->head, "%s{namespace=\"%s\",pod=\"%s\",uid=\"%s\",", family, pod->namespace,
                pod->name, pod->uid);
}

static void put_pod_info(struct demo_writer *w, const struct demo_pod *pod)
{
    const struct demo_owner *owner = &pod->owners[0];
    head_of_pod(w, "kube_pod_info", pod);
    strbuf_addf(&w->head,
                "node=\"%s\",host_ip=\"%s\",created_by_kind=\"%s\","
                "created_by_name=\"%s\",",
                pod->node->name, pod->node->address, pod->owners_n ? owner->kind : "",
                pod->owners_n ? owner->name : "");
    put_constant(w, life_of(pod), 1);
}

static void put_pod_owner(struct demo_writer *w, const struct demo_pod *pod)
{
    if (pod->owners_n == 0)
        return;
    head_of_pod(w, "kube_pod_owner", pod);
    strbuf_addf(&w->head, "owner_kind=\"%s\",owner_name=\"%s\",owner_is_controller=\"true\",",
                pod->owners[0].kind, pod->owners[0].name);
    put_constant(w, life_of(pod), 1);
}

static void put_pod_labels(struct demo_writer *w, const struct demo_pod *pod)
{
    head_of_pod(w, "kube_pod_labels", pod);
    strbuf_addf(&w->head, "label_app=\"%s\",", pod->app);
    if (pod->team)
        strbuf_addf(&w->head, "label_team=\"%s\",", pod->team);
    if (strcmp(pod->container, "notebook") == 0) /* jupyter-alex is alex's */
        strbuf_addf(&w->head, "label_hub_jupyter_org_username=\"%s\",", strchr(pod->app, '-') + 1);
    put_constant(w, life_of(pod), 1);
}

static void put_pod_start(struct demo_writer *w, const struct demo_pod *pod)
{
    head_of_pod(w, "kube_pod_start_time", pod);
    put_constant(w, (struct span){pod->held.from, pod->gone}, (uint64_t)(pod->held.from / 1000));
}

static void put_pod_completion(struct demo_writer *w, const struct demo_pod *pod)
{
    if (!pod->completed)
        return;
    head_of_pod(w, "kube_pod_completion_time", pod);
    put_constant(w, (struct span){pod->held.to, pod->gone}, (uint64_t)(pod->held.to / 1000));
}

static void put_pod_phase(struct demo_writer *w, const struct demo_pod *pod)
{
    time_ms done = pod->completed ? pod->held.to : TIME_MAX;
    const struct {
        const char *phase;
        struct span when;
    } phases[] = {
        {"Pending", {TIME_MIN, pod->held.from}},
        {"Running", {pod->held.from, done}},
        {"Succeeded", {done, TIME_MAX}},
        {"Failed", {0, 0}},
        {"Unknown", {0, 0}},
    };
    for (size_t i = 0; i < sizeof phases / sizeof *phases; i++) {
        head_of_pod(w, "kube_pod_status_phase", pod);
        strbuf_addf(&w->head, "phase=\"%s\",", phases[i].phase);
        put_kube(w, life_of(pod), (struct switched){.when = phases[i].when, .on = 1});
    }
}

static void put_pod_requests(struct demo_writer *w, const struct demo_pod *pod)
{
    const struct {
        const char *resource, *unit;
        uint64_t amount;
    } requests[] = {
        {pod->resource, "integer", (uint64_t)pod->count},
        {"cpu", "core", 8 * (uint64_t)pod->count},
        {"memory", "byte", 64 * GIB * (uint64_t)pod->count},
    };
    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++) {
        head_of_pod(w, "kube_pod_container_resource_requests", pod);
        strbuf_addf(&w->head, "container=\"%s\",node=\"%s\",resource=\"%s\",unit=\"%s\",",
                    pod->container, pod->node->name, requests[i].resource, requests[i].unit);
        put_constant(w, life_of(pod), requests[i].amount);
    }
}

/* The owner of what owns pods, while any pod of it is there. One series, whoever of its pods lives:
 * pods of one controller follow or cover each other, so the span from the first to the last is its
 * life. */
static void put_second_owner(struct demo_writer *w, size_t first, const char *family,
                             const char *kind, const char *label)
{
    const struct demo_fleet *fleet = w->fleet;
    const struct demo_pod *pod = fleet->pods[first];
    if (pod->owners_n < 2 || strcmp(pod->owners[0].kind, kind) != 0)
        return;
    struct span life = life_of(pod);
    for (size_t i = 0; i < fleet->pods_n; i++) {
        const struct demo_pod *other = fleet->pods[i];
        if (other->owners_n < 2 || strcmp(other->namespace, pod->namespace) != 0 ||
            strcmp(other->owners[0].name, pod->owners[0].name) != 0)
            continue;
        if (i < first)
            return; /* written with that one */
        life.from = other->created < life.from ? other->created : life.from;
        life.to = other->gone > life.to ? other->gone : life.to;
    }
    strbuf_clear(&w->head);
    strbuf_addf(&w->head,
                "%s{namespace=\"%s\",%s=\"%s\",owner_kind=\"%s\",owner_name=\"%s\","
                "owner_is_controller=\"true\",",
                family, pod->namespace, label, pod->owners[0].name, pod->owners[1].kind,
                pod->owners[1].name);
    put_constant(w, life, 1);
}

static void write_owners(struct demo_writer *w, const char *family, const char *kind,
                         const char *label)
{
    bool wanted = demo_put_family(w, family, "gauge", "Information about the owner.");
    for (size_t i = 0; wanted && i < w->fleet->pods_n; i++)
        put_second_owner(w, i, family, kind, label);
}

void demo_write_kube(struct demo_writer *w)
{
    static const struct {
        const char *name;
        void (*put)(struct demo_writer *w, const struct demo_node *node);
    } node_families[] = {
        {"kube_node_created", put_node_created},
        {"kube_node_info", put_node_info},
        {"kube_node_labels", put_node_labels},
        {"kube_node_spec_unschedulable", put_node_unschedulable},
        {"kube_node_status_allocatable", put_node_allocatable},
        {"kube_node_status_capacity", put_node_capacity},
    };
    static const struct {
        const char *name;
        void (*put)(struct demo_writer *w, const struct demo_pod *pod);
    } pod_families[] = {
        {"kube_pod_completion_time", put_pod_completion},
        {"kube_pod_container_resource_requests", put_pod_requests},
        {"kube_pod_info", put_pod_info},
        {"kube_pod_labels", put_pod_labels},
        {"kube_pod_owner", put_pod_owner},
        {"kube_pod_start_time", put_pod_start},
        {"kube_pod_status_phase", put_pod_phase},
    };
    write_owners(w, "kube_job_owner", "Job", "job_name");
    write_owners(w, "kube_replicaset_owner", "ReplicaSet", "replicaset");
    for (size_t f = 0; f < sizeof node_families / sizeof *node_families; f++) {
        if (!demo_put_family(w, node_families[f].name, "gauge", "About a node."))
            continue;
        for (size_t i = 0; i < w->fleet->nodes_n; i++)
            node_families[f].put(w, &w->fleet->nodes[i]);
    }
    for (size_t f = 0; f < sizeof pod_families / sizeof *pod_families; f++) {
        if (!demo_put_family(w, pod_families[f].name, "gauge", "About a pod."))
            continue;
        for (size_t i = 0; i < w->fleet->pods_n; i++)
            pod_families[f].put(w, w->fleet->pods[i]);
    }
}

/* ---- vLLM ---- */

struct tokens {
    const struct demo_fleet *fleet;
    const struct demo_pod *pod;
    int64_t one_of; /* counts one in so many generated tokens */
    int64_t times;
};

static int64_t tokens_value(void *context, time_ms t)
{
    const struct tokens *tokens = context;
    return demo_pod_tokens(tokens->fleet, tokens->pod, t) * tokens->times / tokens->one_of;
}

void demo_write_serving(struct demo_writer *w)
{
    static const struct {
        const char *name, *help, *more;
        int64_t times, one_of;
    } families[] = {
        {"vllm:generation_tokens", "Number of generation tokens processed.", "", 1, 1},
        {"vllm:prompt_tokens", "Number of prefill tokens processed.", "", 4, 1},
        {"vllm:request_success", "Count of successfully processed requests.",
         "finished_reason=\"stop\",", 1, 220},
    };
    for (size_t f = 0; f < sizeof families / sizeof *families; f++) {
        if (!demo_put_family(w, families[f].name, "counter", families[f].help))
            continue;
        for (size_t i = 0; i < w->fleet->pods_n; i++) {
            const struct demo_pod *pod = w->fleet->pods[i];
            if (pod->work.tokens_per_s <= 0)
                continue;
            struct tokens tokens = {w->fleet, pod, families[f].one_of, families[f].times};
            strbuf_clear(&w->head);
            strbuf_addf(&w->head,
                        "%s_total{model_name=\"%s\",engine=\"0\",%sjob=\"vllm\","
                        "instance=\"10.8.%zu.%zu:8000\",namespace=\"%s\",pod=\"%s\"} ",
                        families[f].name, pod->app, families[f].more, i / 250, i % 250 + 1,
                        pod->namespace, pod->name);
            demo_put_series(w, &w->grids[pod->node - w->fleet->nodes],
                            demo_overlap(pod->held, w->gpu),
                            (struct demo_values){tokens_value, &tokens, 0});
        }
    }
}
