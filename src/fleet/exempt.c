/* An annotation that was taken away must stop to count. Kubernetes says so by a series that ends
 * while one without the label begins: of each object, the newest record is asked, with or without
 * the annotation; and pods only that are there at the end. */
#include "fleet/exempt.h"

#include <stdlib.h>

enum bearer_kind { BEARER_WORKLOAD, BEARER_NAMESPACE, BEARER_NODE };
static const char *const bearer_words[] = {"workload", "namespace", "node"};

struct bearer {
    enum bearer_kind kind;
    name_t cluster, name, workload; /* name: of the namespace or node */
    time_ms seen;                   /* when what is kept was said */
    bool wished;
    struct str text;
};

struct gathering {
    struct facts *facts;
    struct bearer *bearers;
    size_t n, room;
    struct idmap at; /* kind, cluster, name, workload -> index */
};

static bool find_wish(const struct label *labels, size_t n, struct str *ret)
{
    for (size_t i = 0; i < n; i++)
        if (label_name_same(labels[i].name, STR(EXEMPT_ANNOTATION))) {
            *ret = labels[i].value;
            return true;
        }
    return false;
}

/* What the annotations of a bearer said at `said.seen`; the newest word stays. */
static void take(struct gathering *gathering, struct bearer said, const struct label *labels,
                 size_t n)
{
    bool fresh;
    said.wished = find_wish(labels, n, &said.text);
    uint32_t at = idmap_add(&gathering->at,
                            IDKEY((uint32_t)said.kind, said.cluster, said.name, said.workload),
                            (uint32_t)gathering->n, &fresh);
    if (fresh)
        mem_push(gathering->bearers, gathering->n, gathering->room, said);
    else if (said.seen >= gathering->bearers[at].seen)
        gathering->bearers[at] = said;
}

/* Pods that hold GPUs and are there in the last hour. */
static void take_pods(struct gathering *gathering, struct span hours)
{
    struct facts *facts = gathering->facts;
    for (uint32_t i = 0; i < facts->pods_n; i++) {
        const struct pod *pod = &facts->pods[i];
        bool holds = pod->requested || pod->fraction.num || pod->devices_n || pod->named;
        if (!holds || pod->since >= hours.to || pod->until <= hours.to - HOUR_MS)
            continue;
        take(gathering,
             (struct bearer){.kind = BEARER_WORKLOAD,
                             .cluster = pod->cluster,
                             .name = pod->namespace,
                             .workload = facts_workload(facts, i, pod->name),
                             .seen = pod->since},
             pod->annotations, pod->annotations_n);
    }
}

static void take_records(struct gathering *gathering, const struct intake *intake,
                         enum record_metric metric, enum bearer_kind kind, const char *label)
{
    struct facts *facts = gathering->facts;
    for (size_t i = 0; i < intake->records_n; i++) {
        const struct record *record = intake->records[i];
        size_t n;
        if (record->metric != metric || !record->n)
            continue;
        struct label *labels =
            facts_labels(facts, record->labels, record->labels_n, STR("annotation_"), &n);
        take(gathering,
             (struct bearer){.kind = kind,
                             .cluster = facts_label(facts, record, "cluster"),
                             .name = facts_label(facts, record, label),
                             .seen = record_last(record)},
             labels, n);
    }
}

/* Lists and watches say how it is now. */
static void take_objects(struct gathering *gathering, const struct intake *intake)
{
    struct facts *facts = gathering->facts;
    for (size_t i = 0; i < intake->namespaces_n; i++) {
        const struct object_namespace *object = &intake->namespaces[i];
        size_t n;
        struct label *labels =
            facts_labels(facts, object->annotations, object->annotations_n, STR_NONE, &n);
        take(gathering,
             (struct bearer){.kind = BEARER_NAMESPACE,
                             .cluster = object->cluster,
                             .name = object->name,
                             .seen = TIME_MAX},
             labels, n);
    }
    for (size_t i = 0; i < intake->nodes_n; i++) {
        const struct object_node *object = &intake->nodes[i];
        struct label label = {STR(EXEMPT_ANNOTATION), names_text(facts->names, object->ignore)};
        take(gathering,
             (struct bearer){.kind = BEARER_NODE,
                             .cluster = object->cluster,
                             .name = object->name,
                             .seen = TIME_MAX},
             &label, object->ignored);
    }
}

static name_t subject_of(const struct facts *facts, const struct bearer *bearer)
{
    struct names *names = facts->names;
    struct strbuf text = {0};
    struct str cluster = names_text(names, bearer->cluster);
    struct str workload = names_text(names, bearer->workload);
    strbuf_addf(&text, "%s %.*s%s%.*s%s%.*s", bearer_words[bearer->kind], STR_ARG(cluster),
                cluster.n ? "/" : "", STR_ARG(names_text(names, bearer->name)),
                workload.n ? "/" : "", STR_ARG(workload));
    name_t name = names_put(names, strbuf_str(&text));
    strbuf_release(&text);
    return name;
}

size_t exempt_gather(struct facts *facts, const struct intake *intake, struct span hours,
                     struct exempt_wish **ret, size_t *ret_left)
{
    struct gathering gathering = {.facts = facts};
    size_t n = 0, room = 0;
    *ret = NULL;
    *ret_left = 0;
    take_pods(&gathering, hours);
    take_records(&gathering, intake, RECORD_NAMESPACE_ANNOTATIONS, BEARER_NAMESPACE, "namespace");
    take_records(&gathering, intake, RECORD_NODE_ANNOTATIONS, BEARER_NODE, "node");
    take_objects(&gathering, intake);
    for (size_t i = 0; i < gathering.n; i++) {
        const struct bearer *bearer = &gathering.bearers[i];
        if (!bearer->wished)
            continue;
        if (n >= EXEMPT_MAX) {
            ++*ret_left;
            continue;
        }
        struct str text = bearer->text;
        if (text.n > EXEMPT_TEXT_MAX)
            text.n = EXEMPT_TEXT_MAX;
        struct exempt_wish wish = {subject_of(facts, bearer), names_put(facts->names, text)};
        mem_push(*ret, n, room, wish);
    }
    free(gathering.bearers);
    idmap_release(&gathering.at);
    return n;
}
