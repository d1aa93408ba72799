/* The change that each rule's finding asks for. Kinds of workloads stand in a table: where a kind
 * says how many pods it has or whether it runs, and where its pods' spec is. */
#include <stdlib.h>

#include "report/patch.h"
#include "report/yaml.h"

#define K8S_NAME_MAX 253

static const struct workload_kind {
    const char *kind, *api;
    const char *stop, *stop_value; /* the field that stops it */
    const char *pods;              /* the spec of its pods; NULL: not known, or not to be changed */
    const char *note;
} workload_kinds[] = {
    {"Deployment", "apps/v1", "spec.replicas", "0", "spec.template.spec",
     "an autoscaler leaves it at zero until somebody sets replicas again"},
    {"StatefulSet", "apps/v1", "spec.replicas", "0", "spec.template.spec",
     "its volumes stay, and are paid for"},
    {"ReplicaSet", "apps/v1", "spec.replicas", "0", "spec.template.spec", NULL},
    {"Rollout", "argoproj.io/v1alpha1", "spec.replicas", "0", "spec.template.spec", NULL},
    {"LeaderWorkerSet", "leaderworkerset.x-k8s.io/v1", "spec.replicas", "0", NULL, NULL},
    {"CronJob", "batch/v1", "spec.suspend", "true", "spec.jobTemplate.spec.template.spec",
     "jobs that it has started run on"},
    {"Job", "batch/v1", "spec.suspend", "true", NULL,
     "its pods begin anew when it is resumed, from their last checkpoint if they have one"},
    {"JobSet", "jobset.x-k8s.io/v1alpha2", "spec.suspend", "true", NULL, NULL},
    {"RayCluster", "ray.io/v1", "spec.suspend", "true", NULL, NULL},
    {"RayJob", "ray.io/v1", "spec.suspend", "true", NULL, NULL},
    {"TrainJob", "trainer.kubeflow.org/v1alpha1", "spec.suspend", "true", NULL, NULL},
    {"PyTorchJob", "kubeflow.org/v1", "spec.runPolicy.suspend", "true", NULL, NULL},
    {"TFJob", "kubeflow.org/v1", "spec.runPolicy.suspend", "true", NULL, NULL},
    {"XGBoostJob", "kubeflow.org/v1", "spec.runPolicy.suspend", "true", NULL, NULL},
    {"MPIJob", "kubeflow.org/v2beta1", "spec.runPolicy.suspend", "true", NULL, NULL},
    {"Workflow", "argoproj.io/v1alpha1", "spec.suspend", "true", NULL, NULL},
    {"InferenceService", "serving.kserve.io/v1beta1", "spec.predictor.minReplicas", "0", NULL,
     "the next request starts it again"},
    {"Notebook", "kubeflow.org/v1", "metadata.annotations.kubeflow-resource-stopped", NULL,
     "spec.template.spec", "its volume stays; its owner starts it again"},
};

static const struct workload_kind *find_kind(struct str kind)
{
    for (size_t i = 0; i < sizeof workload_kinds / sizeof *workload_kinds; i++)
        if (str_eq(kind, str_of(workload_kinds[i].kind)))
            return &workload_kinds[i];
    return NULL;
}

/* ---- places ---- */

/* Is the text CLUSTER/A/B, without what is empty? Names may have slashes of their own, so that the
 * parts cannot be cut out of it. */
static bool is_joined(struct str text, struct str cluster, struct str a, struct str b)
{
    struct strbuf whole = {0};
    strbuf_addf(&whole, "%.*s%s%.*s%s%.*s", STR_ARG(cluster), cluster.n ? "/" : "", STR_ARG(a),
                a.n && b.n ? "/" : "", STR_ARG(b));
    bool same = str_eq(strbuf_str(&whole), text);
    strbuf_release(&whole);
    return same;
}

static void find_workload(const struct books *books, struct str text, struct patch_place *ret)
{
    for (size_t i = 0; i < books->workloads_n && !ret->workload; i++) {
        const struct book_workload *of = &books->workloads[i];
        struct str cluster = names_text(books->names, of->cluster);
        struct str namespace = names_text(books->names, of->namespace);
        struct str name = names_text(books->names, of->workload);
        const char *slash = name.n ? memchr(name.p, '/', name.n) : NULL;
        if (!slash || !is_joined(text, cluster, namespace, name))
            continue;
        size_t kind = (size_t)(slash - name.p);
        ret->workload = of;
        ret->cluster = cluster;
        ret->namespace = namespace;
        ret->object = (struct str){name.p, kind};
        ret->name = (struct str){slash + 1, name.n - kind - 1};
    }
}

static void find_namespace(const struct books *books, struct str text, struct patch_place *ret)
{
    for (size_t i = 0; i < books->workloads_n + books->namespaces_n && !ret->name.n; i++) {
        bool held = i < books->workloads_n;
        const struct namespace_hour *hour =
            held ? NULL : &books->namespaces[i - books->workloads_n].last;
        name_t cluster = held ? books->workloads[i].cluster : hour->cluster;
        name_t namespace = held ? books->workloads[i].namespace : hour->namespace;
        struct str texts[] = {names_text(books->names, cluster),
                              names_text(books->names, namespace)};
        if (is_joined(text, texts[0], texts[1], STR_NONE)) {
            ret->cluster = texts[0];
            ret->name = texts[1];
        }
    }
}

/* A node, or the first node of a pool. */
static void find_node(const struct books *books, struct str text, bool pool,
                      struct patch_place *ret)
{
    for (size_t i = 0; i < books->nodes_n && !ret->node; i++) {
        const struct book_node *node = &books->nodes[i];
        struct str cluster = names_text(books->names, node->cluster);
        struct str name = names_text(books->names, node->node);
        struct str first = pool ? names_text(books->names, node->facts.pool) : name;
        struct str second = pool ? names_text(books->names, node->facts.instance_type) : STR_NONE;
        if (!is_joined(text, cluster, first, second))
            continue;
        ret->node = node;
        ret->cluster = cluster;
        ret->name = name;
    }
}

struct patch_place patch_place_of(const struct findings *findings, const struct finding *finding)
{
    const struct books *books = findings->books;
    struct str subject = finding->subject;
    const char *space = subject.n ? memchr(subject.p, ' ', subject.n) : NULL;
    size_t n = space ? (size_t)(space - subject.p) : 0;
    struct patch_place place = {.kind = {subject.p, n}};
    struct str rest = {subject.p + n + (space != NULL), subject.n - n - (space != NULL)};
    place.cluster = place.namespace = place.object = place.name = STR_NONE;
    if (str_eq(place.kind, STR("workload")))
        find_workload(books, rest, &place);
    else if (str_eq(place.kind, STR("namespace")))
        find_namespace(books, rest, &place);
    else if (str_eq(place.kind, STR("node")) || str_eq(place.kind, STR("pool")))
        find_node(books, rest, str_eq(place.kind, STR("pool")), &place);
    return place;
}

/* A name as Kubernetes takes it (RFC 1123 subdomain). */
static bool is_k8s_name(struct str text)
{
    if (!text.n || text.n > K8S_NAME_MAX)
        return false;
    for (size_t i = 0; i < text.n; i++) {
        char c = text.p[i];
        bool inner = (c == '-' || c == '.') && i > 0 && i + 1 < text.n;
        if (!(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9') && !inner)
            return false;
    }
    return true;
}

/* ---- documents ---- */

static void say(struct patch_file *file, const char *text)
{
    yaml_comment(&file->text, 0, str_of(text));
}

static void say_command(struct patch_file *file, const char *before, struct str name,
                        const char *after)
{
    struct strbuf text = {0};
    strbuf_addf(&text, "%s%.*s%s", before, STR_ARG(name), after);
    yaml_comment(&file->text, 2, strbuf_str(&text));
    strbuf_release(&text);
}

static void begin(struct patch_file *file, const char *api, const char *kind, struct str namespace,
                  struct str name)
{
    struct strbuf *out = &file->text;
    yaml_pair(out, 0, "apiVersion", str_of(api));
    yaml_pair(out, 0, "kind", str_of(kind));
    strbuf_add(out, STR("metadata:\n"));
    yaml_pair(out, 2, "name", name);
    if (namespace.n)
        yaml_pair(out, 2, "namespace", namespace);
    file->documents++;
}

/* May a document be written for the workload? If not, why is said. */
static const struct workload_kind *kind_of(const struct patch_place *place, struct patch_file *file)
{
    const struct workload_kind *kind = find_kind(place->object);
    if (!is_k8s_name(place->name) || !is_k8s_name(place->namespace))
        say(file, "no document: its name is not one that Kubernetes could have");
    else if (str_eq(place->object, STR("Pod")))
        say(file, "no document: a pod without a controller cannot be scaled or changed. WARNING: "
                  "what it has in memory is lost when it is deleted:");
    else if (!kind)
        say(file, "no document: how this kind of object is stopped or changed is not known here");
    if (str_eq(place->object, STR("Pod")) && is_k8s_name(place->name) &&
        is_k8s_name(place->namespace)) {
        struct strbuf text = {0};
        strbuf_addf(&text, "kubectl delete pod -n %.*s %.*s", STR_ARG(place->namespace),
                    STR_ARG(place->name));
        yaml_comment(&file->text, 2, strbuf_str(&text));
        strbuf_release(&text);
    }
    return is_k8s_name(place->name) && is_k8s_name(place->namespace) ? kind : NULL;
}

static void add_stop(const struct findings *findings, const struct patch_place *place,
                     struct patch_file *file)
{
    const struct workload_kind *kind = kind_of(place, file);
    char time[TIME_TEXT_MAX];
    if (!kind)
        return;
    say(file,
        "WARNING: this ends its pods; what they have in memory is lost. Ask its owner first.");
    if (kind->note)
        say(file, kind->note);
    begin(file, kind->api, kind->kind, place->namespace, place->name);
    if (kind->stop_value) {
        yaml_path(&file->text, kind->stop, kind->stop_value);
        return;
    }
    /* Kubeflow's notebooks are stopped by an annotation with the time */
    strbuf_add(&file->text, STR("  annotations:\n"));
    yaml_pair(&file->text, 4, "kubeflow-resource-stopped",
              str_of(time_format(findings->books->window.to, time)));
}

/* GPUs as MIG instances: a request of none takes the place of the one that is there. */
static void add_mig(const struct findings *findings, const struct finding *finding,
                    const struct patch_place *place, struct patch_file *file)
{
    const struct workload_kind *kind = kind_of(place, file);
    struct str container = place->workload
                               ? names_text(findings->books->names, place->workload->sum.container)
                               : STR_NONE;
    if (!kind)
        return;
    if (!kind->pods || !finding->target.n || !is_k8s_name(container)) {
        say(file, "no document: where the container asks for its GPU is not known here; ask for "
                  "the MIG resource above in place of nvidia.com/gpu");
        return;
    }
    say(file, "WARNING: its pods are started anew, and wait until nodes offer this MIG profile "
              "(partition GPUs first: nvidia.com/mig.config on the node, with the GPU operator).");
    begin(file, kind->api, kind->kind, place->namespace, place->name);
    size_t indent = yaml_open(&file->text, kind->pods);
    struct strbuf *out = &file->text;
    strbuf_addf(out, "%*scontainers:\n%*s- name: ", (int)indent, "", (int)indent, "");
    yaml_scalar(out, container);
    strbuf_addf(out, "\n%*sresources:\n", (int)indent + 2, "");
    for (int part = 0; part < 2; part++) {
        strbuf_addf(out, "%*s%s:\n", (int)indent + 4, "", part ? "requests" : "limits");
        strbuf_addf(out, "%*snvidia.com/gpu: \"0\"\n%*s", (int)indent + 6, "", (int)indent + 6, "");
        yaml_scalar(out, finding->target);
        strbuf_add(out, STR(": \"1\"\n"));
    }
}

/* Another machine: by its instance type, which every cloud's nodes have as a label. */
static void add_node_selector(const struct finding *finding, const struct patch_place *place,
                              struct patch_file *file)
{
    const struct workload_kind *kind = kind_of(place, file);
    if (!kind)
        return;
    if (!kind->pods || !finding->target.n) {
        say(file, "no document: where its pods say which machines they want is not known here");
        return;
    }
    say(file,
        "WARNING: its pods are started anew, and wait until a pool has machines of this type.");
    begin(file, kind->api, kind->kind, place->namespace, place->name);
    size_t indent = yaml_open(&file->text, kind->pods);
    strbuf_addf(&file->text, "%*snodeSelector:\n", (int)indent, "");
    yaml_pair(&file->text, indent + 2, "node.kubernetes.io/instance-type", finding->target);
}

static void add_culling(const struct findings *findings, const struct finding *finding,
                        const struct patch_place *place, struct patch_file *file)
{
    say(file, "culling, for JupyterHub (values of its Helm chart):\n"
              "  cull:\n"
              "    enabled: true\n"
              "    timeout: 3600\n"
              "    every: 300\n"
              "for Kubeflow (environment of the notebook controller):\n"
              "  ENABLE_CULLING=true CULL_IDLE_TIME=60 IDLENESS_CHECK_PERIOD=5");
    if (finding->remedy == REMEDY_STOP)
        add_stop(findings, place, file);
}

void patch_time_slicing(struct patch_file *file)
{
    if (file->shares_gpus)
        return;
    file->shares_gpus = true;
    strbuf_add(&file->text, STR("---\n"));
    say(file,
        "pods that share a GPU by turns: time-slicing of the device plugin, four to a GPU. It "
        "does nothing until the GPU operator is told of it:\n"
        "  kubectl patch clusterpolicies.nvidia.com/cluster-policy --type merge -p "
        "'{\"spec\":{\"devicePlugin\":{\"config\":{\"name\":\"gputally-time-slicing\"}}}}'\n"
        "and a node has the label nvidia.com/device-plugin.config=shared");
    say(file, "WARNING: pods that share a GPU so are not kept apart, in memory or in failure, and "
              "nothing says which of them used it.");
    begin(file, "v1", "ConfigMap", STR("gpu-operator"), STR("gputally-time-slicing"));
    strbuf_add(&file->text, STR("data:\n"
                                "  shared: |\n"
                                "    version: v1\n"
                                "    sharing:\n"
                                "      timeSlicing:\n"
                                "        resources:\n"
                                "        - name: nvidia.com/gpu\n"
                                "          replicas: 4\n"));
}

/* ---- nodes ---- */

static void add_pool_size(const struct findings *findings, const struct patch_place *place,
                          struct patch_file *file)
{
    if (!place->node)
        return;
    struct str pool = names_text(findings->books->names, place->node->facts.pool);
    struct str cloud = names_text(findings->books->names, place->node->facts.cloud);
    if (!is_k8s_name(pool))
        return;
    if (str_eq(cloud, STR("aws")))
        say_command(file, "eksctl scale nodegroup --cluster CLUSTER --name ", pool,
                    " --nodes-min 0");
    else if (str_eq(cloud, STR("gcp")))
        say_command(file, "gcloud container node-pools update ", pool,
                    " --cluster CLUSTER --enable-autoscaling --min-nodes 0 --max-nodes N");
    else if (str_eq(cloud, STR("azure")))
        say_command(file, "az aks nodepool update --name ", pool,
                    " --cluster-name CLUSTER --resource-group GROUP --update-cluster-autoscaler "
                    "--min-count 0 --max-count N");
    else
        say_command(file, "lower the least size of pool ", pool, " in your autoscaler");
}

static void add_drain(const struct findings *findings, const struct patch_place *place,
                      struct patch_file *file)
{
    if (!is_k8s_name(place->name)) {
        say(file, "no commands: its name is not one that Kubernetes could have");
        return;
    }
    say(file, "WARNING: draining moves what still runs there, and what is in emptyDir volumes is "
              "lost. By hand:");
    say_command(file, "kubectl cordon ", place->name, "");
    say_command(file, "kubectl drain ", place->name, " --ignore-daemonsets --delete-emptydir-data");
    add_pool_size(findings, place, file);
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
    if (!is_shell_safe(finding->command) || (node && !is_k8s_name(place->name))) {
        say(file, "no command: a name in it is not one that Kubernetes could have");
        return;
    }
    say(file, "by hand:");
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
    if (!is_k8s_name(place->name)) {
        say(file, "no document: its name is not one that Kubernetes could have");
        return;
    }
    say(file, "what it holds now and a quarter more; pods that run stay, new ones beyond it are "
              "refused");
    begin(file, "v1", "ResourceQuota", place->name, STR("gpus"));
    strbuf_addf(&file->text, "spec:\n  hard:\n    requests.nvidia.com/gpu: \"%lld\"\n",
                (long long)(held + (held + 3) / 4));
}

static void add_priority(struct patch_file *file)
{
    if (!file->has_priorities) {
        say(file, "a class for what may wait: pods take it by priorityClassName; it displaces "
                  "nobody");
        begin(file, "scheduling.k8s.io/v1", "PriorityClass", STR_NONE, STR("gpu-batch"));
        strbuf_add(&file->text, STR("value: -100\n"
                                    "globalDefault: false\n"
                                    "preemptionPolicy: Never\n"
                                    "description: notebooks and batch jobs that may wait for a "
                                    "GPU\n"));
        file->has_priorities = true;
    } else {
        say(file, "the class gpu-batch above is for its batch jobs and notebooks too");
    }
}

void patch_change(const struct findings *findings, const struct finding *finding,
                  const struct patch_place *place, struct patch_file *file)
{
    switch (finding->rule) {
    case RULE_IDLE_NOTEBOOK:
        add_culling(findings, finding, place, file);
        return;
    case RULE_NODE_EMPTY:
        add_drain(findings, place, file);
        return;
    case RULE_NO_QUOTA:
        add_quota(findings, place, file);
        return;
    case RULE_NO_PRIORITY:
        add_priority(file);
        return;
    default:
        break;
    }
    switch (finding->remedy) {
    case REMEDY_STOP:
        add_stop(findings, place, file);
        return;
    case REMEDY_MIG:
        add_mig(findings, finding, place, file);
        return;
    case REMEDY_INSTANCE_TYPE:
        add_node_selector(finding, place, file);
        return;
    case REMEDY_WORDS:
        add_command(finding, place, file);
        return;
    }
}
