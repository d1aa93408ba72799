/* The changes of what the platform has: nodes and their pools, namespaces, priority classes, the
 * device plugin. Nodes and pools are changed by commands: a node object is the cloud's, and what a
 * pool is made of is not known here. */
#include <stdlib.h>

#include "report/patch_impl.h"

#define NODES_SHOWN 20

/* ---- time-slicing ---- */

void patch_time_slicing(struct patch_file *file)
{
    struct strbuf *out = &file->text;
    if (!file->shares)
        return;
    strbuf_add(out, STR("---\n"));
    patch_say(
        file,
        "pods that share a GPU by turns: time-slicing of the device plugin, a key for each number "
        "of pods to a GPU whose memory lies beside each other. It does nothing until the GPU "
        "operator is told of it:\n"
        "  kubectl patch clusterpolicies.nvidia.com/cluster-policy --type merge -p "
        "'{\"spec\":{\"devicePlugin\":{\"config\":{\"name\":\"gputally-time-slicing\"}}}}'\n"
        "and a node has the label, whose value is a key:");
    for (int n = 2; n < PATCH_SHARES_MAX; n++)
        if (file->shares >> n & 1) {
            struct strbuf line = {0};
            strbuf_addf(&line, "kubectl label nodes NODE " PATCH_SHARED_LABEL "=" PATCH_SHARED "%d",
                        n);
            yaml_comment(out, 2, strbuf_str(&line));
            strbuf_release(&line);
        }
    patch_say(file, "WARNING: pods that share a GPU so are not kept apart, in memory or in "
                    "failure, and nothing says which of them used it.");
    patch_begin(file, "v1", "ConfigMap", STR("gpu-operator"), STR("gputally-time-slicing"));
    strbuf_add(out, STR("data:\n"));
    for (int n = 2; n < PATCH_SHARES_MAX; n++)
        if (file->shares >> n & 1)
            strbuf_addf(out,
                        "  " PATCH_SHARED "%d: |\n"
                        "    version: v1\n"
                        "    sharing:\n"
                        "      timeSlicing:\n"
                        "        failRequestsGreaterThanOne: true\n"
                        "        resources:\n"
                        "        - name: nvidia.com/gpu\n"
                        "          replicas: %d\n",
                        n, n);
}

/* ---- nodes ---- */

static void add_pool_size(const struct findings *findings, const struct patch_place *place,
                          struct patch_file *file)
{
    if (!place->node)
        return;
    struct str pool = names_text(findings->books->names, place->node->facts.pool);
    struct str cloud = names_text(findings->books->names, place->node->facts.cloud);
    if (!patch_is_name(pool))
        return;
    if (str_eq(cloud, STR("aws")))
        patch_say_command(file, "eksctl scale nodegroup --cluster CLUSTER --name ", pool,
                          " --nodes-min 0");
    else if (str_eq(cloud, STR("gcp")))
        patch_say_command(file, "gcloud container node-pools update ", pool,
                          " --cluster CLUSTER --enable-autoscaling --min-nodes 0 --max-nodes N");
    else if (str_eq(cloud, STR("azure")))
        patch_say_command(
            file, "az aks nodepool update --name ", pool,
            " --cluster-name CLUSTER --resource-group GROUP --update-cluster-autoscaler "
            "--min-count 0 --max-count N");
    else
        patch_say_command(file, "lower the least size of pool ", pool, " in your autoscaler");
}

/* What new nodes of the pool begin with. */
static void add_pool_taint(const struct findings *findings, const struct patch_place *place,
                           struct patch_file *file)
{
    struct str pool = names_text(findings->books->names, place->node->facts.pool);
    struct str cloud = names_text(findings->books->names, place->node->facts.cloud);
    if (!patch_is_name(pool))
        return;
    patch_say(file, "and what new nodes of the pool begin with:");
    if (str_eq(cloud, STR("aws")))
        patch_say_command(file,
                          "aws eks update-nodegroup-config --cluster-name CLUSTER "
                          "--nodegroup-name ",
                          pool,
                          " --taints "
                          "'addOrUpdateTaints=[{key=nvidia.com/gpu,value=present,effect=NO_"
                          "SCHEDULE}]'");
    else if (str_eq(cloud, STR("gcp")))
        patch_say_command(file, "gcloud container node-pools update ", pool,
                          " --cluster CLUSTER --node-taints nvidia.com/gpu=present:NoSchedule");
    else if (str_eq(cloud, STR("azure")))
        patch_say_command(file, "az aks nodepool update --name ", pool,
                          " --cluster-name CLUSTER --resource-group GROUP --node-taints "
                          "nvidia.com/gpu=present:NoSchedule");
    else
        patch_say_command(file, "write the taint nvidia.com/gpu=present:NoSchedule into pool ",
                          pool, "");
}

static void add_drain(const struct findings *findings, const struct patch_place *place,
                      struct patch_file *file)
{
    if (!patch_is_name(place->name)) {
        patch_say(file, "no commands: its name is not one that Kubernetes could have");
        return;
    }
    patch_say(file,
              "WARNING: draining moves what still runs there, and what is in emptyDir volumes is "
              "lost. By hand:");
    patch_say_command(file, "kubectl cordon ", place->name, "");
    patch_say_command(file, "kubectl drain ", place->name,
                      " --ignore-daemonsets --delete-emptydir-data");
    add_pool_size(findings, place, file);
}

/* Nodes of the pool that let pods without GPUs in, in one command. */
static void add_taint(const struct findings *findings, const struct patch_place *place,
                      struct patch_file *file)
{
    const struct books *books = findings->books;
    struct strbuf command = {0};
    size_t n = 0, left = 0;
    strbuf_add(&command, STR("kubectl taint nodes"));
    for (size_t i = 0; place->node && i < books->nodes_n; i++) {
        const struct book_node *node = &books->nodes[i];
        struct str name = names_text(books->names, node->node);
        if (!book_same_pool(node, place->node) || !patch_is_name(name) ||
            !rule_lets_cpu_pods_in(books, node))
            continue;
        if (n == NODES_SHOWN) {
            left++;
            continue;
        }
        n++;
        strbuf_addf(&command, " %.*s", STR_ARG(name));
    }
    strbuf_add(&command, STR(" nvidia.com/gpu=present:NoSchedule"));
    if (n) {
        patch_say(file, "nodes that are there; pods with GPUs need the toleration first (key "
                        "nvidia.com/gpu, operator Exists), unless the admission plugin "
                        "ExtendedResourceToleration gives it to them:");
        yaml_comment(&file->text, 2, strbuf_str(&command));
    } else {
        patch_say(file, "no command: a name in it is not one that Kubernetes could have");
    }
    strbuf_clear(&command);
    if (left) {
        strbuf_addf(&command, "and %zu more nodes of the pool", left);
        yaml_comment(&file->text, 0, strbuf_str(&command));
    }
    strbuf_release(&command);
    if (n)
        add_pool_taint(findings, place, file);
}

/* ---- CPU work on a GPU node ---- */

static bool is_on_node(const struct books *books, const struct book_workload *of,
                       const struct book_node *node)
{
    bool on = false;
    for (size_t c = 0; c < of->cells_n; c++) {
        const struct book_cell *cell = &books->cells[of->cells[c]];
        if (!books_is_now(books, cell->last))
            continue;
        if (&books->nodes[cell->node_index] != node)
            return false;
        on = true;
    }
    return on;
}

/* The workloads that are on the node and nowhere else go to the machine that is named. */
static void add_move(const struct findings *findings, const struct finding *finding,
                     const struct patch_place *place, struct patch_file *file)
{
    const struct books *books = findings->books;
    size_t n = 0;
    for (size_t i = 0; place->node && i < books->workloads_n; i++) {
        const struct book_workload *of = &books->workloads[i];
        if (!is_on_node(books, of, place->node))
            continue;
        struct patch_place there = patch_place_workload(books, of);
        if (n++)
            strbuf_add(&file->text, STR("---\n"));
        patch_without_gpu(books, &there, finding->target, file);
    }
    if (!n)
        patch_say(file, "no document: no workload holds GPUs on this node alone");
}

/* Commands have names of strangers in them: what a shell would read otherwise is not offered. */
static bool is_shell_safe(struct str text)
{
    for (size_t i = 0; i < text.n; i++) {
        char c = text.p[i];
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
              strchr(" ./:=_-", c)) ||
            !c)
            return false;
    }
    return true;
}

static void add_command(const struct finding *finding, const struct patch_place *place,
                        struct patch_file *file)
{
    if (!finding->command.n)
        return;
    bool node = str_eq(place->kind, STR("node"));
    if (!is_shell_safe(finding->command) || (node && !patch_is_name(place->name))) {
        patch_say(file, "no command: a name in it is not one that Kubernetes could have");
        return;
    }
    patch_say(file, "by hand:");
    yaml_comment(&file->text, 2, finding->command);
}

/* ---- rules of the house ---- */

static int64_t gpus_held_now(const struct findings *findings, const struct patch_place *place)
{
    const struct books *books = findings->books;
    int64_t n = 0;
    for (size_t c = 0; c < books->cells_n; c++) {
        const struct book_cell *cell = &books->cells[c];
        n += cell->workload != SIZE_MAX && books_is_now(books, cell->last) &&
             str_eq(names_text(books->names, cell->namespace), place->name) &&
             str_eq(names_text(books->names, cell->cluster), place->cluster);
    }
    return n;
}

static void add_quota(const struct findings *findings, const struct patch_place *place,
                      struct patch_file *file)
{
    int64_t held = gpus_held_now(findings, place);
    if (!patch_is_name(place->name)) {
        patch_say(file, "no document: its name is not one that Kubernetes could have");
        return;
    }
    patch_say(file,
              "what it holds now and a quarter more; pods that run stay, new ones beyond it are "
              "refused");
    patch_begin(file, "v1", "ResourceQuota", place->name, STR("gpus"));
    strbuf_addf(&file->text, "spec:\n  hard:\n    requests.nvidia.com/gpu: \"%lld\"\n",
                (long long)(held + (held + 3) / 4));
}

static void add_priority(struct patch_file *file)
{
    if (!file->has_priorities) {
        patch_say(file,
                  "a class for what may wait: pods take it by priorityClassName; it displaces "
                  "nobody");
        patch_begin(file, "scheduling.k8s.io/v1", "PriorityClass", STR_NONE, STR("gpu-batch"));
        strbuf_add(&file->text, STR("value: -100\n"
                                    "globalDefault: false\n"
                                    "preemptionPolicy: Never\n"
                                    "description: notebooks and batch jobs that may wait for a "
                                    "GPU\n"));
        file->has_priorities = true;
    } else {
        patch_say(file, "the class gpu-batch above is for its batch jobs and notebooks too");
    }
}

bool patch_platform(const struct findings *findings, const struct finding *finding,
                    const struct patch_place *place, struct patch_file *file)
{
    switch (finding->rule) {
    case RULE_NODE_EMPTY:
        add_drain(findings, place, file);
        return true;
    case RULE_CPU_NODE:
        add_move(findings, finding, place, file);
        return true;
    case RULE_MISSING_TAINT:
        add_taint(findings, place, file);
        return true;
    case RULE_NO_QUOTA:
        add_quota(findings, place, file);
        return true;
    case RULE_NO_PRIORITY:
        add_priority(file);
        return true;
    default:
        break;
    }
    if (finding->remedy != REMEDY_WORDS)
        return false;
    add_command(finding, place, file);
    return true;
}
