/* Facts: the parts that are neither nodes nor pods: observations, relabelling, owners. */
#include "fleet/facts.h"

#include <stdlib.h>

#include "util/error.h"

/* ------------------------------------------------------------------ observations */

static size_t first_at_or_after(const time_ms *stamps, size_t n, time_ms t)
{
    size_t low = 0, high = n;
    while (low < high) {
        size_t mid = (low + high) / 2;
        if (stamps[mid] < t)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

time_ms watch_start(const struct watch *watch, const struct settings *settings, time_ms t)
{
    size_t i = first_at_or_after(watch->stamps, watch->n, t);
    if (i > 0 && t - watch->stamps[i - 1] <= settings->node_break_ms)
        return watch->stamps[i - 1];
    return t - settings->step_ms;
}

struct watch *facts_watch(struct facts *facts, name_t cluster)
{
    bool fresh;
    uint32_t at = idmap_add(&facts->watch_of, IDKEY(cluster), (uint32_t)facts->watches_n, &fresh);
    if (!fresh)
        return facts->watches[at];
    struct watch *watch = mem_zalloc(1, sizeof *watch);
    watch->cluster = cluster;
    mem_push(facts->watches, facts->watches_n, facts->watches_room, watch);
    return watch;
}

static int by_time(const void *a, const void *b)
{
    time_ms x = *(const time_ms *)a, y = *(const time_ms *)b;
    return (x > y) - (x < y);
}

static void sort_unique(time_ms *t, size_t *n)
{
    if (*n)
        qsort(t, *n, sizeof *t, by_time);
    size_t kept = 0;
    for (size_t i = 0; i < *n; i++)
        if (kept == 0 || t[i] != t[kept - 1])
            t[kept++] = t[i];
    *n = kept;
}

/* Stamps of a cluster: all runs of all its info series, each distinct run once, since thousands of
 * series have the same. */
static void read_watches(struct facts *facts, struct intake *intake)
{
    struct idmap seen = {0};
    for (size_t i = 0; i < intake->records_n; i++) {
        const struct record *record = intake->records[i];
        if (record->metric != RECORD_POD_INFO && record->metric != RECORD_NODE_INFO)
            continue;
        struct watch *watch = facts_watch(facts, facts_label(facts, record, "cluster"));
        for (size_t k = 0; k < record->n; k++) {
            const struct run *run = &record->runs[k];
            bool fresh;
            idmap_add(&seen,
                      IDKEY(watch->cluster ^ (uint32_t)(run->t0 >> 32) << 20, (uint32_t)run->t0,
                            (uint32_t)run->dt, run->n),
                      0, &fresh);
            if (!fresh)
                continue;
            mem_reserve(watch->stamps, watch->n, watch->room, run->n);
            for (uint32_t j = 0; j < run->n; j++)
                watch->stamps[watch->n++] = run->t0 + run->dt * (time_ms)j;
        }
    }
    idmap_release(&seen);
    for (size_t i = 0; i < facts->watches_n; i++) {
        struct watch *watch = facts->watches[i];
        if (!watch->n)
            continue;
        for (size_t k = 0; k < intake->carried_stamps_n; k++)
            mem_push(watch->stamps, watch->n, watch->room, intake->carried_stamps[k]);
        sort_unique(watch->stamps, &watch->n);
        for (size_t k = 0; k < watch->n; k++) {
            time_ms t = watch->stamps[k];
            spans_push(&watch->known, watch_start(watch, facts->settings, t), t);
        }
        spans_normalise(&watch->known);
    }
}

/* ------------------------------------------------------------------ relabelling */

name_t facts_label(const struct facts *facts, const struct record *record, const char *name)
{
    char exported[64];
    name_t id, found = NAME_NONE;
    int n = snprintf(exported, sizeof exported, "exported_%s", name);
    invariant(n > 0 && (size_t)n < sizeof exported);
    if (names_find(facts->names, str_of(exported), &id))
        found = record_label(record, id);
    if (found != NAME_NONE)
        return found;
    if (!names_find(facts->names, str_of(name), &id))
        return NAME_NONE;
    bool target_label = strcmp(name, "pod") == 0 || strcmp(name, "namespace") == 0 ||
                        strcmp(name, "container") == 0;
    if (target_label) {
        name_t cluster_id = NAME_NONE, job_id = NAME_NONE;
        name_t cluster = names_find(facts->names, STR("cluster"), &cluster_id)
                             ? record_label(record, cluster_id)
                             : NAME_NONE;
        name_t job = names_find(facts->names, STR("job"), &job_id) ? record_label(record, job_id)
                                                                   : NAME_NONE;
        if (idmap_get(&facts->renamed_jobs, IDKEY(cluster, job)) != IDMAP_NONE)
            return NAME_NONE;
    }
    return record_label(record, id);
}

/* A job that renames pod labels; the intake remembers it for the carry. */
static void add_renamed(struct facts *facts, struct intake *intake, name_t cluster, name_t job)
{
    bool fresh;
    idmap_add(&facts->renamed_jobs, IDKEY(cluster, job), 1, &fresh);
    struct pair pair = {cluster, job};
    if (fresh)
        mem_push(intake->renamed_jobs, intake->renamed_jobs_n, intake->renamed_jobs_room, pair);
}

/* Jobs that have exported_pod anywhere, and the targets' own pods as `up` carries them. */
void facts_relabel(struct facts *facts, struct intake *intake)
{
    name_t cluster = names_put(facts->names, STR("cluster"));
    name_t job = names_put(facts->names, STR("job"));
    name_t instance = names_put(facts->names, STR("instance"));
    name_t pod = names_put(facts->names, STR("pod"));
    name_t exported = names_put(facts->names, STR("exported_pod"));
    for (size_t i = 0; i < intake->renamed_jobs_n; i++)
        idmap_set(&facts->renamed_jobs,
                  IDKEY(intake->renamed_jobs[i].name, intake->renamed_jobs[i].value), 1);
    for (size_t i = 0; i < intake->strips_n; i++) {
        const struct strip *strip = intake->strips[i];
        if (strip->label[GPU_LABEL_EXPORTED_POD] != NAME_NONE)
            add_renamed(facts, intake, strip->label[GPU_LABEL_CLUSTER],
                        strip->label[GPU_LABEL_JOB]);
    }
    for (size_t i = 0; i < intake->meters_n; i++) {
        struct record target = {.labels = intake->meters[i]->labels,
                                .labels_n = intake->meters[i]->labels_n};
        if (record_label(&target, exported) != NAME_NONE)
            add_renamed(facts, intake, record_label(&target, cluster), record_label(&target, job));
    }
    for (size_t i = 0; i < intake->records_n; i++) {
        const struct record *record = intake->records[i];
        name_t of_cluster = record_label(record, cluster), of_job = record_label(record, job);
        if (record_label(record, exported) != NAME_NONE)
            add_renamed(facts, intake, of_cluster, of_job);
        if (record->metric == RECORD_UP && record_label(record, pod) != NAME_NONE)
            idmap_set(&facts->own_targets,
                      IDKEY(of_cluster, of_job, record_label(record, instance),
                            record_label(record, pod)),
                      1);
    }
}

struct holder_labels facts_holder_labels(const struct facts *facts, const struct strip *strip)
{
    const name_t *label = strip->label;
    struct holder_labels out = {label[GPU_LABEL_NAMESPACE], label[GPU_LABEL_POD],
                                label[GPU_LABEL_CONTAINER], NAME_NONE};
    bool own = idmap_get(&facts->renamed_jobs,
                         IDKEY(label[GPU_LABEL_CLUSTER], label[GPU_LABEL_JOB])) != IDMAP_NONE;
    own = own ||
          (out.pod != NAME_NONE &&
           idmap_get(&facts->own_targets, IDKEY(label[GPU_LABEL_CLUSTER], label[GPU_LABEL_JOB],
                                                label[GPU_LABEL_INSTANCE], out.pod)) != IDMAP_NONE);
    struct str container = names_text(facts->names, out.container);
    for (size_t i = 0; !own && i < facts->settings->exporter_containers_n; i++)
        own = str_eq(container, facts->settings->exporter_containers[i]);
    if (own)
        out = (struct holder_labels){.exporter_pod = out.pod};
    if (label[GPU_LABEL_EXPORTED_POD] != NAME_NONE)
        out.pod = label[GPU_LABEL_EXPORTED_POD];
    if (label[GPU_LABEL_EXPORTED_NAMESPACE] != NAME_NONE)
        out.namespace = label[GPU_LABEL_EXPORTED_NAMESPACE];
    if (label[GPU_LABEL_EXPORTED_CONTAINER] != NAME_NONE)
        out.container = label[GPU_LABEL_EXPORTED_CONTAINER];
    return out;
}

/* ------------------------------------------------------------------ owners */

struct label *facts_labels(struct facts *facts, const struct pair *pairs, size_t n, struct str head,
                           size_t *ret_n)
{
    struct label *labels = arena_alloc(&facts->arena, n * sizeof *labels);
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        struct str name = names_text(facts->names, pairs[i].name);
        if (!str_starts(name, head))
            continue;
        labels[kept++] = (struct label){{name.p + head.n, name.n - head.n},
                                        names_text(facts->names, pairs[i].value)};
    }
    *ret_n = kept;
    return labels;
}

static void set_owner(struct facts *facts, struct idkey key, name_t kind, name_t name)
{
    struct str text = names_text(facts->names, kind);
    if (text.n == 0 || str_eq(text, STR("<none>")))
        return;
    struct pair owner = {kind, name};
    idmap_set(&facts->owner_of, key, (uint32_t)facts->owners_n);
    mem_push(facts->owners, facts->owners_n, facts->owners_room, owner);
}

static void read_owners(struct facts *facts, struct intake *intake)
{
    name_t replica_set = names_put(facts->names, STR("ReplicaSet"));
    name_t job = names_put(facts->names, STR("Job"));
    for (size_t i = 0; i < intake->records_n; i++) {
        const struct record *record = intake->records[i];
        bool is_job = record->metric == RECORD_JOB_OWNER;
        if (!is_job && record->metric != RECORD_REPLICASET_OWNER)
            continue;
        struct idkey key =
            IDKEY(facts_label(facts, record, "cluster"), facts_label(facts, record, "namespace"),
                  is_job ? job : replica_set,
                  facts_label(facts, record, is_job ? "job_name" : "replicaset"));
        set_owner(facts, key, facts_label(facts, record, "owner_kind"),
                  facts_label(facts, record, "owner_name"));
    }
    for (size_t i = 0; i < intake->owners_n; i++) {
        const struct object_owner *owner = &intake->owners[i];
        set_owner(facts, IDKEY(owner->cluster, owner->namespace, owner->kind, owner->name),
                  owner->owner_kind, owner->owner_name);
    }
}

#define OWNERS_DEEP 16 /* controllers above each other; a loop ends here */

name_t facts_workload(struct facts *facts, uint32_t pod_index, name_t pod_name)
{
    struct strbuf text = {0};
    const struct pod *pod = pod_index == POD_NONE ? NULL : &facts->pods[pod_index];
    struct str kind = pod ? names_text(facts->names, pod->owner_kind) : STR_NONE;
    if (kind.n == 0 || str_eq(kind, STR("<none>"))) {
        strbuf_addf(&text, "Pod/%s", names_text(facts->names, pod_name).p);
    } else {
        struct pair top = {pod->owner_kind, pod->owner_name};
        for (int i = 0; i < OWNERS_DEEP; i++) {
            uint32_t above = idmap_get(&facts->owner_of,
                                       IDKEY(pod->cluster, pod->namespace, top.name, top.value));
            if (above == IDMAP_NONE)
                break;
            top = facts->owners[above];
        }
        strbuf_addf(&text, "%s/%s", names_text(facts->names, top.name).p,
                    names_text(facts->names, top.value).p);
    }
    name_t name = names_put(facts->names, strbuf_str(&text));
    strbuf_release(&text);
    return name;
}

static void read_namespaces(struct facts *facts, struct intake *intake)
{
    for (size_t i = 0; i < intake->records_n; i++) {
        const struct record *record = intake->records[i];
        if (record->metric != RECORD_NAMESPACE_LABELS)
            continue;
        struct namespace_facts kept = {0};
        kept.labels =
            facts_labels(facts, record->labels, record->labels_n, STR("label_"), &kept.labels_n);
        idmap_set(
            &facts->namespace_by_name,
            IDKEY(facts_label(facts, record, "cluster"), facts_label(facts, record, "namespace")),
            (uint32_t)facts->namespaces_n);
        mem_push(facts->namespaces, facts->namespaces_n, facts->namespaces_room, kept);
    }
    for (size_t i = 0; i < intake->namespaces_n; i++) {
        const struct object_namespace *object = &intake->namespaces[i];
        struct namespace_facts kept = {0};
        kept.labels =
            facts_labels(facts, object->labels, object->labels_n, STR_NONE, &kept.labels_n);
        kept.annotations = facts_labels(facts, object->annotations, object->annotations_n, STR_NONE,
                                        &kept.annotations_n);
        idmap_set(&facts->namespace_by_name, IDKEY(object->cluster, object->name),
                  (uint32_t)facts->namespaces_n);
        mem_push(facts->namespaces, facts->namespaces_n, facts->namespaces_room, kept);
    }
}

void facts_owner_query(const struct facts *facts, uint32_t pod_index, name_t cluster,
                       name_t namespace, name_t workload, struct owner_query *ret)
{
    *ret = (struct owner_query){.cluster = names_text(facts->names, cluster),
                                .namespace = names_text(facts->names, namespace),
                                .workload = names_text(facts->names, workload)};
    if (pod_index != POD_NONE) {
        const struct pod *pod = &facts->pods[pod_index];
        ret->labels = pod->labels;
        ret->labels_n = pod->labels_n;
        ret->annotations = pod->annotations;
        ret->annotations_n = pod->annotations_n;
    }
    uint32_t at = idmap_get(&facts->namespace_by_name, IDKEY(cluster, namespace));
    if (at != IDMAP_NONE) {
        ret->namespace_labels = facts->namespaces[at].labels;
        ret->namespace_labels_n = facts->namespaces[at].labels_n;
    }
}

/* ------------------------------------------------------------------ life */

struct facts *facts_new(struct intake *intake, struct span hours)
{
    struct facts *facts = mem_zalloc(1, sizeof *facts);
    facts->settings = intake->settings;
    facts->hours = hours;
    facts->names = intake->names;
    for (size_t i = 0; i < intake->records_n; i++)
        record_settle(intake->records[i]);
    size_t kept = 0; /* series that were named and never got a sample say nothing */
    for (size_t i = 0; i < intake->records_n; i++)
        if (intake->records[i]->n)
            intake->records[kept++] = intake->records[i];
    intake->records_n = kept;
    facts_relabel(facts, intake);
    read_watches(facts, intake);
    facts_read_nodes(facts, intake, hours);
    facts_read_pods(facts, intake);
    read_owners(facts, intake);
    read_namespaces(facts, intake);
    facts_read_quotas(facts, intake);
    return facts;
}

void facts_free(struct facts *facts)
{
    if (!facts)
        return;
    for (size_t i = 0; i < facts->nodes_n; i++) {
        struct node *node = &facts->nodes[i];
        for (size_t k = 0; k < node->lives_n; k++)
            free(node->lives[k].mounts);
        free(node->lives);
        spans_release(&node->cordoned);
        spans_release(&node->tainted);
        free(node->shortages);
        free(node->capacity);
        free(node->pods);
    }
    for (size_t i = 0; i < facts->pods_n; i++) {
        struct pod *pod = &facts->pods[i];
        spans_release(&pod->not_holding);
        spans_release(&pod->counted);
        spans_release(&pod->pending);
        free(pod->host);
        free(pod->requests);
        free(pod->initial);
        free(pod->sidecars);
    }
    for (size_t i = 0; i < facts->by_name_n; i++)
        free(facts->by_name[i].pods);
    for (size_t i = 0; i < facts->watches_n; i++) {
        free(facts->watches[i]->stamps);
        spans_release(&facts->watches[i]->known);
        spans_release(&facts->watches[i]->requests_known);
        spans_release(&facts->watches[i]->taints_known);
        spans_release(&facts->watches[i]->priorities_known);
        spans_release(&facts->watches[i]->quotas_known);
        free(facts->watches[i]);
    }
    free(facts->nodes);
    free(facts->pods);
    free(facts->by_name);
    free(facts->watches);
    free(facts->owners);
    free(facts->quotas);
    free(facts->namespaces);
    struct idmap *maps[] = {
        &facts->node_by_name, &facts->pod_by_key,       &facts->pods_named,
        &facts->pod_node,     &facts->address,          &facts->owner_of,
        &facts->watch_of,     &facts->renamed_jobs,     &facts->recorded_cluster,
        &facts->own_targets,  &facts->namespace_by_name};
    for (size_t i = 0; i < sizeof maps / sizeof *maps; i++)
        idmap_release(maps[i]);
    arena_release(&facts->arena);
    free(facts);
}
