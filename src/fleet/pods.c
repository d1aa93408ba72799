/* Pods: their lives, requests and owners (semantics, section 5). */
#include "fleet/facts.h"

#include <stdlib.h>

#include "fleet/resources.h"

#define POD_REQUESTS_MAX 1024 /* containers x resources; looking them up is linear */

static struct pod *pod_of(struct facts *facts, struct idkey key)
{
    bool fresh;
    uint32_t at = idmap_add(&facts->pod_by_key, key, (uint32_t)facts->pods_n, &fresh);
    if (fresh) {
        struct pod pod = {.cluster = key.part[0],
                          .namespace = key.part[1],
                          .name = key.part[2],
                          .uid = key.part[3],
                          .first = TIME_MAX,
                          .last = TIME_MIN,
                          .scheduled = TIME_MIN,
                          .start = TIME_MIN,
                          .end = TIME_MIN};
        mem_push(facts->pods, facts->pods_n, facts->pods_room, pod);
    }
    return &facts->pods[at];
}

static void set_request(struct pod_request **at, size_t *n, size_t *room,
                        struct pod_request request)
{
    for (size_t i = 0; i < *n; i++)
        if ((*at)[i].container == request.container && (*at)[i].resource == request.resource) {
            (*at)[i].count = request.count;
            return;
        }
    if (*n < POD_REQUESTS_MAX)
        mem_push(*at, *n, *room, request);
}

/* What the container asks of the host, made where it is not there; NULL: too many. */
static struct pod_host_request *host_request(struct pod *pod, name_t container)
{
    for (size_t i = 0; i < pod->host_n; i++)
        if (pod->host[i].container == container)
            return &pod->host[i];
    if (pod->host_n == POD_REQUESTS_MAX)
        return NULL;
    struct pod_host_request fresh = {container, -1, -1, -1};
    mem_push(pod->host, pod->host_n, pod->host_room, fresh);
    return &pod->host[pod->host_n - 1];
}

#define HOST_VALUE_MAX 1e13 /* bytes or 1/1000 CPU; more is garbage */

static int64_t sane_amount(int64_t amount)
{
    return amount > 0 && amount <= (int64_t)HOST_VALUE_MAX ? amount : -1;
}

/* CPU and memory; false: the record is of another resource. */
static bool read_host_request(struct facts *facts, struct pod *pod, const struct record *record,
                              name_t container, struct str resource)
{
    bool cpu = str_eq(resource, STR("cpu")), memory = str_eq(resource, STR("memory"));
    double value = record_value(record) * (cpu ? 1000 : 1);
    if (!cpu && !memory)
        return false;
    if (record->metric == RECORD_POD_REQUESTS)
        facts_stamps(facts, record, &facts_watch(facts, pod->cluster)->requests_known);
    struct pod_host_request *host = host_request(pod, container);
    if (!host || !(value >= 0 && value <= HOST_VALUE_MAX))
        return true;
    int64_t amount = (int64_t)(value + 0.5);
    if (record->metric == RECORD_POD_LIMITS)
        host->limit_mcpu = amount;
    else if (cpu)
        host->mcpu = amount;
    else
        host->memory_bytes = amount;
    return true;
}

static void read_request(struct facts *facts, struct pod *pod, const struct record *record)
{
    double value = record_value(record);
    struct pod_request request = {facts_label(facts, record, "container"),
                                  facts_label(facts, record, "resource"), 0};
    struct str resource = names_text(facts->names, request.resource);
    if (record->metric != RECORD_POD_INIT_REQUESTS &&
        read_host_request(facts, pod, record, request.container, resource))
        return;
    if (resource_fraction(resource, value, &pod->fraction))
        return;
    if (!resource_is_gpu(resource) || !(value >= 0 && value <= RESOURCE_COUNT_MAX))
        return;
    request.count = (int64_t)value;
    if (record->metric == RECORD_POD_INIT_REQUESTS)
        set_request(&pod->initial, &pod->initial_n, &pod->initial_room, request);
    else
        set_request(&pod->requests, &pod->requests_n, &pod->requests_room, request);
}

/* The time for which a record says 1. */
static void push_covered(struct facts *facts, const struct pod *pod, const struct record *record,
                         struct spans *out)
{
    const struct watch *watch = facts_watch(facts, pod->cluster);
    for (size_t k = 0; k < record->n; k++)
        for (uint32_t j = 0; record->runs[k].v == 1 && j < record->runs[k].n; j++) {
            time_ms t = record->runs[k].t0 + record->runs[k].dt * (time_ms)j;
            spans_push(out, watch_start(watch, facts->settings, t), t);
        }
}

static void read_priority(struct facts *facts, struct pod *pod, const struct record *record)
{
    name_t priority = facts_label(facts, record, "priority_class");
    if (priority == NAME_NONE)
        return;
    pod->priority = priority;
    facts_stamps(facts, record, &facts_watch(facts, pod->cluster)->priorities_known);
}

/* kube_pod_info says who made a pod: in large clusters no other record of it may be read. */
static void read_creator(struct facts *facts, struct pod *pod, const struct record *record)
{
    name_t kind = facts_label(facts, record, "created_by_kind");
    if (kind == NAME_NONE || pod->owner_kind != NAME_NONE)
        return;
    pod->owner_kind = kind;
    pod->owner_name = facts_label(facts, record, "created_by_name");
}

static void read_record(struct facts *facts, const struct record *record)
{
    name_t name = facts_label(facts, record, "pod");
    if (name == NAME_NONE)
        return;
    struct pod *pod = pod_of(facts, IDKEY(facts_label(facts, record, "cluster"),
                                          facts_label(facts, record, "namespace"), name,
                                          facts_label(facts, record, "uid")));
    if (record_first(record) < pod->first)
        pod->first = record_first(record);
    if (record_last(record) > pod->last)
        pod->last = record_last(record);
    name_t node;
    switch (record->metric) {
    case RECORD_POD_INFO:
        node = facts_label(facts, record, "node");
        pod->node = node != NAME_NONE ? node : pod->node;
        if (node == NAME_NONE)
            push_covered(facts, pod, record, &pod->pending);
        read_priority(facts, pod, record);
        read_creator(facts, pod, record);
        break;
    case RECORD_POD_OWNER:
        pod->owner_kind = facts_label(facts, record, "owner_kind");
        pod->owner_name = facts_label(facts, record, "owner_name");
        break;
    case RECORD_POD_LABELS:
        pod->labels =
            facts_labels(facts, record->labels, record->labels_n, STR("label_"), &pod->labels_n);
        break;
    case RECORD_POD_ANNOTATIONS:
        pod->annotations = facts_labels(facts, record->labels, record->labels_n, STR("annotation_"),
                                        &pod->annotations_n);
        break;
    case RECORD_POD_SCHEDULED:
        pod->scheduled = time_of_seconds(record_value(record));
        break;
    case RECORD_POD_START:
        pod->start = time_of_seconds(record_value(record));
        break;
    case RECORD_POD_COMPLETION:
        pod->end = time_of_seconds(record_value(record));
        break;
    case RECORD_POD_PHASE:
        push_covered(facts, pod, record, &pod->not_holding);
        break;
    case RECORD_POD_INIT_INFO:
        mem_push(pod->sidecars, pod->sidecars_n, pod->sidecars_room,
                 facts_label(facts, record, "container"));
        break;
    default:
        read_request(facts, pod, record);
    }
}

static bool is_pod_metric(enum record_metric metric)
{
    return metric >= RECORD_POD_INFO && metric <= RECORD_POD_INIT_INFO;
}

/* ------------------------------------------------------------------ requests as Kubernetes counts
 */

static int by_name_text(const struct names *names, name_t a, name_t b)
{
    return a == b ? 0 : str_cmp(names_text(names, a), names_text(names, b));
}

static int by_container(const void *a, const void *b, void *names)
{
    const struct pod_request *x = a, *y = b;
    int order = by_name_text(names, x->container, y->container);
    return order ? order : by_name_text(names, x->resource, y->resource);
}

static bool is_sidecar(const struct pod *pod, name_t container)
{
    for (size_t i = 0; i < pod->sidecars_n; i++)
        if (pod->sidecars[i] == container)
            return true;
    return false;
}

/* max(largest init container with the sidecars before it, sum of containers and sidecars), for one
 * resource. What init containers need above the sum stands under the name of the largest. */
static void settle_resource(struct pod *pod, name_t resource)
{
    int64_t running = 0, most = 0, sum = 0;
    name_t who = NAME_NONE;
    for (size_t i = 0; i < pod->initial_n; i++) {
        const struct pod_request *init = &pod->initial[i];
        if (init->resource != resource)
            continue;
        int64_t need = running + init->count;
        if (is_sidecar(pod, init->container)) {
            running = need;
            set_request(&pod->requests, &pod->requests_n, &pod->requests_room, *init);
        }
        if (need > most) {
            most = need;
            who = init->container;
        }
    }
    for (size_t i = 0; i < pod->requests_n; i++)
        if (pod->requests[i].resource == resource)
            sum += pod->requests[i].count;
    if (most <= sum)
        return;
    for (size_t i = 0; i < pod->requests_n; i++)
        if (pod->requests[i].resource == resource && pod->requests[i].container == who) {
            pod->requests[i].count += most - sum;
            return;
        }
    struct pod_request above = {who, resource, most - sum};
    mem_push(pod->requests, pod->requests_n, pod->requests_room, above);
}

static void settle_requests(struct facts *facts, struct pod *pod)
{
    /* Of metrics, init containers come in order of name: none tells theirs. */
    if (pod->initial_n && !pod->from_object)
        qsort_r(pod->initial, pod->initial_n, sizeof *pod->initial, by_container, facts->names);
    for (size_t i = 0; i < pod->initial_n; i++) {
        bool before = false;
        for (size_t k = 0; k < i; k++)
            before |= pod->initial[k].resource == pod->initial[i].resource;
        if (!before)
            settle_resource(pod, pod->initial[i].resource);
    }
    if (pod->fraction.num && !pod->requests_n) {
        struct pod_request one = {NAME_NONE, names_put(facts->names, STR("nvidia_com_gpu")), 1};
        mem_push(pod->requests, pod->requests_n, pod->requests_room, one);
    }
    if (pod->requests_n)
        qsort_r(pod->requests, pod->requests_n, sizeof *pod->requests, by_container, facts->names);
    for (size_t i = 0; i < pod->requests_n; i++)
        pod->requested += pod->requests[i].count;
}

/* ------------------------------------------------------------------ lives */

/* Outside of [since, until) the pod is known not to hold anything: its start and end; where one is
 * not known, the last observation before it and the first after it that lack it. */
static void settle_life(struct facts *facts, struct pod *pod)
{
    const struct watch *watch = facts_watch(facts, pod->cluster);
    pod->since = pod->scheduled != TIME_MIN ? pod->scheduled : pod->start;
    if (pod->since == TIME_MIN && pod->first != TIME_MAX) {
        size_t i = 0;
        for (size_t low = 0, high = watch->n; low < high;) {
            size_t mid = (low + high) / 2;
            if (watch->stamps[mid] < pod->first)
                i = low = mid + 1;
            else
                high = mid;
        }
        pod->since = i > 0 ? watch->stamps[i - 1] : TIME_MIN;
    }
    pod->until = pod->end != TIME_MIN ? pod->end : TIME_MAX;
    if (pod->end == TIME_MIN && pod->last != TIME_MIN && !pod->from_object) {
        size_t low = 0, high = watch->n;
        while (low < high) {
            size_t mid = (low + high) / 2;
            if (watch->stamps[mid] <= pod->last)
                low = mid + 1;
            else
                high = mid;
        }
        pod->until = low < watch->n ? watch->stamps[low] : TIME_MAX;
    }
    if (pod->end != TIME_MIN)
        pod->not_holding.n = 0;
    if (pod->object_finished)
        spans_push(&pod->not_holding, TIME_MIN, TIME_MAX);
    spans_normalise(&pod->not_holding);
    spans_normalise(&pod->pending);
    spans_without((struct span){pod->since, pod->until}, &pod->not_holding, &pod->counted);
}

static void read_object(struct facts *facts, const struct object_pod *object)
{
    struct pod *pod =
        pod_of(facts, IDKEY(object->cluster, object->namespace, object->name, object->uid));
    pod->from_object = true;
    if (object->node != NAME_NONE)
        pod->node = object->node;
    if (object->owner_kind != NAME_NONE) {
        pod->owner_kind = object->owner_kind;
        pod->owner_name = object->owner_name;
    }
    if (object->since != TIME_MIN)
        pod->scheduled = object->since;
    if (object->until != TIME_MAX)
        pod->end = object->until;
    if (object->pending)
        spans_push(&pod->pending, object->created, object->until);
    else if (object->created != TIME_MIN && object->since != TIME_MIN)
        spans_push(&pod->pending, object->created, object->since);
    if (object->priority != NAME_NONE)
        pod->priority = object->priority;
    pod->host_n = 0;
    for (uint32_t i = 0; i < object->host_n; i++) {
        struct pod_host_request *host = host_request(pod, object->host[i].container);
        if (host) {
            host->mcpu = sane_amount(object->host[i].mcpu);
            host->memory_bytes = sane_amount(object->host[i].memory_bytes);
            host->limit_mcpu = sane_amount(object->host[i].limit_mcpu);
        }
    }
    pod->object_finished = object->finished;
    pod->labels = facts_labels(facts, object->labels, object->labels_n, STR_NONE, &pod->labels_n);
    pod->annotations = facts_labels(facts, object->annotations, object->annotations_n, STR_NONE,
                                    &pod->annotations_n);
    pod->devices = object->devices;
    pod->devices_n = object->devices_n;
    if (object->fraction.num)
        pod->fraction = object->fraction;
    pod->requests_n = pod->initial_n = 0;
    for (uint32_t i = 0; i < object->requests_n; i++) {
        const struct object_request *said = &object->requests[i];
        struct pod_request request = {said->container, said->resource, said->count};
        if (said->sidecar)
            mem_push(pod->sidecars, pod->sidecars_n, pod->sidecars_room, said->container);
        if (said->init)
            mem_push(pod->initial, pod->initial_n, pod->initial_room, request);
        else
            set_request(&pod->requests, &pod->requests_n, &pod->requests_room, request);
    }
}

/* ------------------------------------------------------------------ all pods */

static int by_since_and_uid(const void *a, const void *b, void *context)
{
    const struct facts *facts = context;
    const struct pod *x = &facts->pods[*(const uint32_t *)a];
    const struct pod *y = &facts->pods[*(const uint32_t *)b];
    if (x->since != y->since)
        return x->since < y->since ? -1 : 1;
    return by_name_text(facts->names, x->uid, y->uid);
}

static void index_names(struct facts *facts)
{
    for (size_t i = 0; i < facts->pods_n; i++) {
        const struct pod *pod = &facts->pods[i];
        bool fresh;
        uint32_t at = idmap_add(&facts->pods_named, IDKEY(pod->cluster, pod->namespace, pod->name),
                                (uint32_t)facts->by_name_n, &fresh);
        if (fresh) {
            struct pod_list list = {0};
            mem_push(facts->by_name, facts->by_name_n, facts->by_name_room, list);
        }
        struct pod_list *list = &facts->by_name[at];
        mem_push(list->pods, list->n, list->room, (uint32_t)i);
    }
    for (size_t i = 0; i < facts->by_name_n; i++)
        qsort_r(facts->by_name[i].pods, facts->by_name[i].n, sizeof(uint32_t), by_since_and_uid,
                facts);
}

void facts_read_pods(struct facts *facts, struct intake *intake)
{
    for (size_t i = 0; i < intake->records_n; i++)
        if (is_pod_metric(intake->records[i]->metric))
            read_record(facts, intake->records[i]);
    for (size_t i = 0; i < intake->pods_n; i++)
        read_object(facts, &intake->pods[i]);
    for (size_t i = 0; i < facts->pods_n; i++) {
        struct pod *pod = &facts->pods[i];
        settle_requests(facts, pod);
        settle_life(facts, pod);
        if (pod->node != NAME_NONE)
            idmap_set(&facts->pod_node, IDKEY(pod->cluster, pod->name), pod->node);
    }
    for (size_t i = 0; i < facts->watches_n; i++) {
        spans_normalise(&facts->watches[i]->requests_known);
        spans_normalise(&facts->watches[i]->priorities_known);
    }
    index_names(facts);
}

bool facts_began(const struct facts *facts, name_t cluster, name_t namespace, name_t name,
                 time_ms t)
{
    uint32_t at = idmap_get(&facts->pods_named, IDKEY(cluster, namespace, name));
    /* in order of their start */
    return at != IDMAP_NONE && facts->pods[facts->by_name[at].pods[0]].since <= t;
}

bool facts_incarnation(const struct facts *facts, name_t cluster, name_t namespace, name_t name,
                       time_ms t, uint32_t *ret)
{
    *ret = POD_NONE;
    uint32_t at = idmap_get(&facts->pods_named, IDKEY(cluster, namespace, name));
    if (at == IDMAP_NONE)
        return true;
    const struct pod_list *list = &facts->by_name[at];
    for (size_t i = list->n; i-- > 0;) {
        const struct pod *pod = &facts->pods[list->pods[i]];
        if (pod->since <= t && t < pod->until) {
            *ret = list->pods[i];
            return !spans_hold(&pod->not_holding, t);
        }
    }
    return false;
}

static int by_start_of_pod(const void *a, const void *b, void *context)
{
    const struct facts *facts = context;
    const struct pod *x = &facts->pods[*(const uint32_t *)a];
    const struct pod *y = &facts->pods[*(const uint32_t *)b];
    if (x->since != y->since)
        return x->since < y->since ? -1 : 1;
    int order = by_name_text(facts->names, x->namespace, y->namespace);
    order = order ? order : by_name_text(facts->names, x->name, y->name);
    return order ? order : by_name_text(facts->names, x->uid, y->uid);
}

void facts_pods_on_nodes(struct facts *facts)
{
    for (size_t i = 0; i < facts->pods_n; i++) {
        const struct pod *pod = &facts->pods[i];
        if (pod->node == NAME_NONE || !pod_wants_gpus(pod))
            continue;
        struct node *node = facts_find_node(facts, pod->cluster, pod->node);
        if (node)
            mem_push(node->pods, node->pods_n, node->pods_room, (uint32_t)i);
    }
    for (size_t i = 0; i < facts->nodes_n; i++)
        if (facts->nodes[i].pods_n)
            qsort_r(facts->nodes[i].pods, facts->nodes[i].pods_n, sizeof(uint32_t), by_start_of_pod,
                    facts);
}
