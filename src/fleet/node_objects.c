/* Nodes from objects: of a list, which stands for the whole window, and of a watch, which says when
 * each state was seen (semantics, section 6). Records of kube-state-metrics, where there are any,
 * say when a node was there; its objects then only tell its labels and capacity. */
#include "fleet/node_lives.h"
#include "fleet/resources.h"

/* A record at t covers the time back to the observation before it (watch_start, for a watch). */
static time_ms reach_back(const struct settings *settings, time_ms before, time_ms t)
{
    bool near = before != TIME_MIN && t - before <= settings->node_break_ms;
    return near ? before : t - settings->step_ms;
}

/* The times that watches observed: a gap of at most node_break is known by what came after it. */
void facts_read_observed(struct facts *facts, struct intake *intake)
{
    for (size_t i = 0; i < intake->observed_n; i++) {
        const struct object_observed *now = &intake->observed[i];
        const struct object_observed *old = i > 0 ? now - 1 : NULL;
        time_ms before = old && old->cluster == now->cluster ? old->span.to : TIME_MIN;
        struct watch *watch = facts_watch(facts, now->cluster);
        spans_push(&watch->known, reach_back(facts->settings, before, now->span.from),
                   now->span.to);
    }
    for (size_t i = 0; i < facts->watches_n; i++)
        spans_normalise(&facts->watches[i]->known);
}

static name_t instance_type_of(const struct object_node *object, struct names *names)
{
    static const char *const labels[] = {"node.kubernetes.io/instance-type",
                                         "beta.kubernetes.io/instance-type"};
    for (size_t k = 0; k < sizeof labels / sizeof *labels; k++)
        for (uint32_t i = 0; i < object->labels_n; i++)
            if (str_eq(names_text(names, object->labels[i].name), str_of(labels[k])))
                return object->labels[i].value;
    return NAME_NONE;
}

/* One state of a node that a watch saw. */
static void read_state(struct facts *facts, struct node *node, const struct object_node *object)
{
    const struct observed *seen = &object->observed;
    struct who who = {object->created, object->provider_id, instance_type_of(object, facts->names)};
    struct span span = {reach_back(facts->settings, seen->lacked, seen->first), seen->last};
    struct life *life = node_see(node, who, span.from, seen->first, seen->last);
    if (seen->gone == TIME_MAX) /* it is still there */
        life->down = seen->last + facts->settings->node_break_ms;
    if (object->unschedulable)
        spans_push(&node->cordoned, span.from, span.to);
    spans_normalise(&node->cordoned);
    if (object->tainted)
        spans_push(&node->tainted, span.from, span.to);
    spans_normalise(&node->tainted);
    for (uint32_t i = 0; i < object->capacity_n; i++) {
        int64_t missing = object->capacity[i] - object->allocatable[i];
        if (object->allocatable[i] >= 0 && missing > 0 && span.from < span.to)
            node_add_shortage(node, span, missing, object->capacity_names[i].name);
    }
    life->labels = facts_labels(facts, object->labels, object->labels_n, STR_NONE, &life->labels_n);
    life->attributes = node_attributes_read(life->labels, life->labels_n);
}

/* A node of a list. */
static void read_listed(struct facts *facts, struct node *node, const struct object_node *object,
                        struct span hours)
{
    struct life life = {.up = object->created,
                        .down = TIME_MAX,
                        .first = TIME_MIN,
                        .last = TIME_MAX,
                        .created = object->created,
                        .provider_id = object->provider_id};
    mem_push(node->lives, node->lives_n, node->lives_room, life);
    if (object->unschedulable)
        spans_push(&node->cordoned, TIME_MIN, TIME_MAX);
    if (object->tainted)
        spans_push(&node->tainted, TIME_MIN, TIME_MAX);
    spans_normalise(&node->tainted);
    struct watch *watch = facts_watch(facts, object->cluster);
    spans_push(&watch->known, TIME_MIN, TIME_MAX);
    spans_normalise(&watch->known);
    for (uint32_t i = 0; i < object->capacity_n; i++) {
        int64_t missing = object->capacity[i] - object->allocatable[i];
        if (object->allocatable[i] >= 0 && missing > 0)
            node_add_shortage(node, hours, missing, object->capacity_names[i].name);
    }
}

void facts_read_node_object(struct facts *facts, const struct object_node *object,
                            struct span hours)
{
    struct node *node = facts_node(facts, object->cluster, object->name);
    bool first = !node->recorded;
    if (object->internal_ip != NAME_NONE)
        idmap_set(&facts->address, IDKEY(object->cluster, object->internal_ip), object->name);
    for (uint32_t i = 0; i < object->capacity_n; i++)
        if (node_capacity_of(node, object->capacity_names[i].name))
            node_add_capacity(node, object->capacity_names[i].name, object->capacity[i]);
    if (first) {
        node->recorded = true;
        node->watched = object->watched;
        node->watch = facts_watch(facts, object->cluster);
        facts_watch(facts, object->cluster)->objects = true;
        idmap_set(&facts->recorded_cluster, IDKEY(object->cluster), 1);
    }
    if (node->watched && object->watched)
        read_state(facts, node, object);
    else if (first)
        read_listed(facts, node, object, hours);
    struct life *life = &node->lives[node->lives_n - 1];
    if (!life->labels_n) {
        life->labels =
            facts_labels(facts, object->labels, object->labels_n, STR_NONE, &life->labels_n);
        life->attributes = node_attributes_read(life->labels, life->labels_n);
    }
    if (!life->cloud.n)
        life->cloud = cloud_of_provider(names_text(facts->names, object->provider_id));
}
