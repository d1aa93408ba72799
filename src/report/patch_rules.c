/* The change that each rule's finding asks for in a workload. Kinds of workloads stand in a table:
 * where a kind says how many pods it has or whether it runs, and where its pods' spec is. What the
 * platform changes is in patch_platform.c. */
#include <stdlib.h>

#include "report/patch_impl.h"

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

struct patch_place patch_place_workload(const struct books *books, const struct book_workload *of)
{
    struct str name = names_text(books->names, of->workload);
    const char *slash = name.n ? memchr(name.p, '/', name.n) : NULL;
    size_t kind = slash ? (size_t)(slash - name.p) : 0;
    return (struct patch_place){
        .kind = STR("workload"),
        .workload = of,
        .cluster = names_text(books->names, of->cluster),
        .namespace = names_text(books->names, of->namespace),
        .object = {name.p, kind},
        .name = slash ? (struct str){slash + 1, name.n - kind - 1} : name,
    };
}

static void find_workload(const struct books *books, struct str text, struct patch_place *ret)
{
    for (size_t i = 0; i < books->workloads_n && !ret->workload; i++) {
        const struct book_workload *of = &books->workloads[i];
        if (is_joined(text, names_text(books->names, of->cluster),
                      names_text(books->names, of->namespace),
                      names_text(books->names, of->workload)))
            *ret = patch_place_workload(books, of);
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

bool patch_is_name(struct str text)
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

void patch_say(struct patch_file *file, const char *text)
{
    yaml_comment(&file->text, 0, str_of(text));
}

void patch_say_command(struct patch_file *file, const char *before, struct str name,
                       const char *after)
{
    struct strbuf text = {0};
    strbuf_addf(&text, "%s%.*s%s", before, STR_ARG(name), after);
    yaml_comment(&file->text, 2, strbuf_str(&text));
    strbuf_release(&text);
}

void patch_begin(struct patch_file *file, const char *api, const char *kind, struct str namespace,
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

static bool is_changed(const struct patch_file *file, const struct book_workload *of)
{
    for (size_t i = 0; i < file->set->changed_n; i++)
        if (file->set->changed[i] == of)
            return true;
    return false;
}

/* The head of the workload's only document. */
static void begin_workload(const struct workload_kind *kind, const struct patch_place *place,
                           struct patch_file *file)
{
    struct patch_set *set = file->set;
    mem_push(set->changed, set->changed_n, set->changed_room, place->workload);
    patch_begin(file, kind->api, kind->kind, place->namespace, place->name);
}

/* May a document be written for the workload? If not, why is said. */
static const struct workload_kind *kind_of(const struct patch_place *place, struct patch_file *file)
{
    const struct workload_kind *kind = find_kind(place->object);
    if (!patch_is_name(place->name) || !patch_is_name(place->namespace))
        patch_say(file, "no document: its name is not one that Kubernetes could have");
    else if (str_eq(place->object, STR("Pod")))
        patch_say(file,
                  "no document: a pod without a controller cannot be scaled or changed. WARNING: "
                  "what it has in memory is lost when it is deleted:");
    else if (!kind)
        patch_say(file,
                  "no document: how this kind of object is stopped or changed is not known here");
    if (str_eq(place->object, STR("Pod")) && patch_is_name(place->name) &&
        patch_is_name(place->namespace)) {
        struct strbuf text = {0};
        strbuf_addf(&text, "kubectl delete pod -n %.*s %.*s", STR_ARG(place->namespace),
                    STR_ARG(place->name));
        yaml_comment(&file->text, 2, strbuf_str(&text));
        strbuf_release(&text);
    }
    if (kind && place->workload && is_changed(file, place->workload)) {
        patch_say(file, "no document: another change of the same object, which saves more, is "
                        "written already; look at this one when that is done");
        return NULL;
    }
    return patch_is_name(place->name) && patch_is_name(place->namespace) ? kind : NULL;
}

static void add_stop(const struct findings *findings, const struct patch_place *place,
                     struct patch_file *file)
{
    const struct workload_kind *kind = kind_of(place, file);
    char time[TIME_TEXT_MAX];
    if (!kind)
        return;
    patch_say(
        file,
        "WARNING: this ends its pods; what they have in memory is lost. Ask its owner first.");
    if (kind->note)
        patch_say(file, kind->note);
    begin_workload(kind, place, file);
    if (kind->stop_value) {
        yaml_path(&file->text, kind->stop, kind->stop_value);
        return;
    }
    /* Kubeflow's notebooks are stopped by an annotation with the time */
    strbuf_add(&file->text, STR("  annotations:\n"));
    yaml_pair(&file->text, 4, "kubeflow-resource-stopped",
              str_of(time_format(findings->books->window.to, time)));
}

/* What changes in the pods of a workload. */
struct pod_change {
    struct str container, resource; /* asks for one of it in place of GPUs; empty: for nothing */
    bool no_gpu;                    /* the container does not ask for GPUs any more */
    const char *label;              /* of the nodes that they run on; NULL: any */
    struct str value;
};

static void add_resources(const struct pod_change *change, size_t indent, struct strbuf *out)
{
    strbuf_addf(out, "%*scontainers:\n%*s- name: ", (int)indent, "", (int)indent, "");
    yaml_scalar(out, change->container);
    strbuf_addf(out, "\n%*sresources:\n", (int)indent + 2, "");
    for (int part = 0; part < 2; part++) {
        strbuf_addf(out, "%*s%s:\n", (int)indent + 4, "", part ? "requests" : "limits");
        strbuf_addf(out, "%*snvidia.com/gpu: \"0\"\n", (int)indent + 6, "");
        if (!change->resource.n)
            continue;
        strbuf_addf(out, "%*s", (int)indent + 6, "");
        yaml_scalar(out, change->resource);
        strbuf_add(out, STR(": \"1\"\n"));
    }
}

/* A request of none takes the place of the one that is there. */
static void add_pods(const struct workload_kind *kind, const struct patch_place *place,
                     const struct pod_change *change, struct patch_file *file)
{
    begin_workload(kind, place, file);
    size_t indent = yaml_open(&file->text, kind->pods);
    if (change->no_gpu)
        add_resources(change, indent, &file->text);
    if (!change->label)
        return;
    strbuf_addf(&file->text, "%*snodeSelector:\n", (int)indent, "");
    yaml_pair(&file->text, indent + 2, change->label, change->value);
}

static struct str container_of(const struct books *books, const struct patch_place *place)
{
    return place->workload ? names_text(books->names, place->workload->sum.container) : STR_NONE;
}

/* "nvidia.com/mig-1g.10gb" -> "1g.10gb" */
static struct str profile_of(struct str resource)
{
    struct str head = STR("nvidia.com/mig-");
    return str_starts(resource, head) ? (struct str){resource.p + head.n, resource.n - head.n}
                                      : STR_NONE;
}

/* GPUs as MIG instances. */
static void add_mig(const struct findings *findings, const struct finding *finding,
                    const struct patch_place *place, struct patch_file *file)
{
    const struct workload_kind *kind = kind_of(place, file);
    struct pod_change change = {.container = container_of(findings->books, place),
                                .resource = finding->target,
                                .no_gpu = true};
    struct str profile = profile_of(finding->target);
    if (!kind)
        return;
    if (!kind->pods || !finding->target.n || !patch_is_name(change.container)) {
        patch_say(file, "no document: where the container asks for its GPU is not known here; ask "
                        "for the MIG resource above in place of nvidia.com/gpu");
        return;
    }
    patch_say(file, "WARNING: its pods are started anew, and wait until nodes offer this MIG "
                    "profile. Partition GPUs first: the GPU operator's MIG manager does it, on a "
                    "node that nobody uses, for a label:");
    if (patch_is_name(profile))
        patch_say_command(file, "kubectl label nodes NODE --overwrite nvidia.com/mig.config=all-",
                          profile, "");
    add_pods(kind, place, &change, file);
}

/* Another machine: by its instance type, which every cloud's nodes have as a label. */
#define INSTANCE_TYPE_LABEL "node.kubernetes.io/instance-type"
#define MACHINE_WARNING                                                                            \
    "WARNING: its pods are started anew, and wait until a pool has machines of this type."

static void add_node_selector(const struct finding *finding, const struct patch_place *place,
                              struct patch_file *file)
{
    const struct workload_kind *kind = kind_of(place, file);
    struct pod_change change = {.label = INSTANCE_TYPE_LABEL, .value = finding->target};
    if (!kind)
        return;
    if (!kind->pods || !finding->target.n) {
        patch_say(file,
                  "no document: where its pods say which machines they want is not known here");
        return;
    }
    patch_say(file, MACHINE_WARNING);
    add_pods(kind, place, &change, file);
}

void patch_without_gpu(const struct books *books, const struct patch_place *place, struct str type,
                       struct patch_file *file)
{
    const struct workload_kind *kind = kind_of(place, file);
    struct pod_change change = {.container = container_of(books, place),
                                .no_gpu = true,
                                .label = INSTANCE_TYPE_LABEL,
                                .value = type};
    if (!kind)
        return;
    if (!kind->pods || !patch_is_name(change.container)) {
        patch_say(file, "no document: where the container asks for its GPU is not known here; "
                        "take the request of nvidia.com/gpu away");
        return;
    }
    patch_say(file, MACHINE_WARNING " It must run without a GPU.");
    add_pods(kind, place, &change, file);
}

/* Fewer pods. */
static void add_replicas(const struct finding *finding, const struct patch_place *place,
                         struct patch_file *file)
{
    const struct workload_kind *kind = kind_of(place, file);
    if (!kind)
        return;
    if (!kind->pods || !finding->target.n || strcmp(kind->stop, "spec.replicas") != 0) {
        patch_say(file, "no document: how many pods this kind of object has is not said in one "
                        "place that is known here");
        return;
    }
    patch_say(file, "WARNING: it ends the others. Go down in steps, and look at the latency. Where "
                    "an autoscaler sets the replicas, its largest number is to be changed.");
    begin_workload(kind, place, file);
    struct strbuf number = {0};
    strbuf_addf(&number, "%.*s", STR_ARG(finding->target));
    yaml_path(&file->text, kind->stop, strbuf_str(&number).p);
    strbuf_release(&number);
}

/* On nodes whose device plugin has so many replicas: patch_time_slicing() has its configuration. */
static void add_shared(const struct finding *finding, const struct patch_place *place,
                       struct patch_file *file)
{
    const struct workload_kind *kind = kind_of(place, file);
    struct strbuf config = {0};
    if (!kind)
        return;
    if (!kind->pods || !finding->target.n) {
        patch_say(file,
                  "no document: where its pods say which machines they want is not known here");
        return;
    }
    strbuf_addf(&config, PATCH_SHARED "%.*s", STR_ARG(finding->target));
    struct pod_change change = {.label = PATCH_SHARED_LABEL, .value = strbuf_str(&config)};
    patch_say(file, "WARNING: its pods are started anew, and wait until nodes share their GPUs so "
                    "(the platform's file has the device plugin's configuration). They go on "
                    "asking for one nvidia.com/gpu, which is a turn of one then.");
    add_pods(kind, place, &change, file);
    strbuf_release(&config);
}

static void add_culling(const struct findings *findings, const struct finding *finding,
                        const struct patch_place *place, struct patch_file *file)
{
    patch_say(file, "culling, for JupyterHub (values of its Helm chart):\n"
                    "  cull:\n"
                    "    enabled: true\n"
                    "    timeout: 3600\n"
                    "    every: 300\n"
                    "for Kubeflow (environment of the notebook controller):\n"
                    "  ENABLE_CULLING=true CULL_IDLE_TIME=60 IDLENESS_CHECK_PERIOD=5");
    if (finding->remedy == REMEDY_STOP)
        add_stop(findings, place, file);
}

void patch_change(const struct findings *findings, const struct finding *finding,
                  const struct patch_place *place, struct patch_file *file)
{
    if (finding->rule == RULE_IDLE_NOTEBOOK) {
        add_culling(findings, finding, place, file);
        return;
    }
    if (patch_platform(findings, finding, place, file))
        return;
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
    case REMEDY_REPLICAS:
        add_replicas(finding, place, file);
        return;
    case REMEDY_SHARE:
        add_shared(finding, place, file);
        return;
    case REMEDY_WORDS:
        return;
    }
}
