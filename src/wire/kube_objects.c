/* Kubernetes objects to views.
 *
 * jansson parses one item at a time; views point into its tree, and arrays of views live in an
 * arena that is cleared after each item. Every field may be missing or of another type: text_at()
 * and its like give "absent" for that, so that a strange item costs only itself.
 *
 * Lists as the API answers them name the kind once, in front (PodList), and not in each item;
 * kubectl sorts its keys and names the kind in each. Where neither is there in time, the shape
 * tells: nothing but a pod has spec.containers. */
#include "wire/kube_objects.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "wire/kube_objects_impl.h"

#define NESTED_LISTS_MAX 2 /* a List inside a List, as an item */

void kube_fault(struct kube_reader *r, bool lost, const char *format, ...)
{
    char what[200];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    strbuf_clear(&r->fault);
    if (r->counts.documents > 1)
        strbuf_addf(&r->fault, "document %llu, ", (unsigned long long)r->document);
    if (r->index)
        strbuf_addf(&r->fault, "item %llu", (unsigned long long)r->index);
    else
        strbuf_add(&r->fault, STR("the object"));
    if (r->label[0])
        strbuf_addf(&r->fault, " (%s)", r->label);
    strbuf_addf(&r->fault, ": %s", what);
    if (lost)
        r->counts.lost++;
    else
        r->counts.faults++;
    if (r->counts.lost + r->counts.faults == 1)
        strbuf_add(&r->first_fault, strbuf_str(&r->fault));
    if (r->sink.fault)
        r->sink.fault(r->sink.context, &(struct kube_fault){strbuf_str(&r->fault), lost});
}

time_ms kube_time_at(struct kube_reader *r, const json_t *object, const char *key)
{
    struct str text = text_at(object, key);
    time_ms t;
    if (text.n == 0)
        return TIME_MIN;
    if (time_parse(text, &t))
        return t;
    kube_fault(r, false, "%s is no time", key);
    return TIME_MIN;
}

static bool quantity_of(const json_t *value, int64_t *ret_milli)
{
    if (json_is_integer(value)) {
        long long n = json_integer_value(value);
        return n >= 0 && !__builtin_mul_overflow(n, 1000, ret_milli);
    }
    return json_is_string(value) && kube_quantity_parse(text_of(value), ret_milli);
}

/* Adds the quantities of an object that are not there yet. */
static size_t add_quantities(struct kube_reader *r, json_t *object, struct kube_quantity *all,
                             size_t n)
{
    size_t before = n;
    const char *key;
    json_t *value;
    json_object_foreach(object, key, value)
    {
        struct kube_quantity q = {.resource = str_of(key)};
        bool known = false;
        for (size_t i = 0; i < before && !known; i++)
            known = str_eq(all[i].resource, q.resource);
        if (known)
            continue;
        if (quantity_of(value, &q.milli))
            all[n++] = q;
        else
            kube_fault(r, false, "the quantity of %.100s is not readable", key);
    }
    return n;
}

size_t kube_quantities(struct kube_reader *r, json_t *first, json_t *second,
                       const struct kube_quantity **ret)
{
    size_t most = json_object_size(first) + json_object_size(second);
    struct kube_quantity *all = arena_alloc(&r->arena, most * sizeof *all);
    *ret = all;
    return add_quantities(r, second, all, add_quantities(r, first, all, 0));
}

size_t kube_label_list(struct kube_reader *r, json_t *object, const struct label **ret)
{
    struct label *labels = arena_alloc(&r->arena, json_object_size(object) * sizeof *labels);
    size_t n = 0;
    const char *key;
    json_t *value;
    *ret = labels;
    json_object_foreach(object, key, value)
    {
        if (json_is_string(value))
            labels[n++] = (struct label){str_of(key), text_of(value)};
    }
    return n;
}

/* The controller among the owners; NULL where there is none. */
static const json_t *controller_of(const json_t *metadata)
{
    json_t *owners;
    size_t n = array_size_at(metadata, "ownerReferences", &owners);
    for (size_t i = 0; i < n; i++) {
        const json_t *owner = json_array_get(owners, i);
        if (true_at(owner, "controller") && text_at(owner, "kind").n && text_at(owner, "name").n)
            return owner;
    }
    return NULL;
}

static void read_node(struct kube_reader *r, const json_t *object)
{
    const json_t *metadata = json_object_get(object, "metadata");
    const json_t *spec = json_object_get(object, "spec");
    const json_t *status = json_object_get(object, "status");
    json_t *list;
    struct kube_node node = {
        .name = text_at(metadata, "name"),
        .uid = text_at(metadata, "uid"),
        .provider_id = text_at(spec, "providerID"),
        .created = kube_time_at(r, metadata, "creationTimestamp"),
        .unschedulable = true_at(spec, "unschedulable"),
        .internal_ip = STR_NONE,
    };
    node.labels_n = kube_label_list(r, json_object_get(metadata, "labels"), &node.labels);
    node.annotations_n =
        kube_label_list(r, json_object_get(metadata, "annotations"), &node.annotations);
    node.capacity_n = kube_quantities(r, json_object_get(status, "capacity"), NULL, &node.capacity);
    node.allocatable_n =
        kube_quantities(r, json_object_get(status, "allocatable"), NULL, &node.allocatable);
    size_t n = array_size_at(status, "addresses", &list);
    for (size_t i = 0; i < n && node.internal_ip.n == 0; i++)
        if (str_eq(text_at(json_array_get(list, i), "type"), STR("InternalIP")))
            node.internal_ip = text_at(json_array_get(list, i), "address");
    n = array_size_at(spec, "taints", &list);
    struct kube_taint *taints = arena_alloc(&r->arena, n * sizeof *taints);
    for (size_t i = 0; i < n; i++) {
        const json_t *taint = json_array_get(list, i);
        taints[i] = (struct kube_taint){text_at(taint, "key"), text_at(taint, "value"),
                                        text_at(taint, "effect")};
    }
    node.taints = taints;
    node.taints_n = n;
    r->counts.nodes++;
    if (r->sink.node)
        r->sink.node(r->sink.context, &node);
}

static size_t add_containers(struct kube_reader *r, const json_t *list, bool init,
                             struct kube_container *all, size_t n)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *container = json_array_get(list, i);
        const json_t *resources = json_object_get(container, "resources");
        struct kube_container *c = &all[n++];
        *c = (struct kube_container){
            .name = text_at(container, "name"),
            .init = init,
            .sidecar = init && str_eq(text_at(container, "restartPolicy"), STR("Always")),
        };
        c->requests_n = kube_quantities(r, json_object_get(resources, "requests"),
                                        json_object_get(resources, "limits"), &c->requests);
        /* one that is not readable is told of among the quantities */
        if (!quantity_of(json_object_get(json_object_get(resources, "limits"), "cpu"),
                         &c->cpu_limit_milli))
            c->cpu_limit_milli = 0;
    }
    return n;
}

/* Ended containers among the statuses in a list, and the latest end. */
static size_t ended_containers(struct kube_reader *r, const json_t *list, time_ms *latest)
{
    size_t ended = 0;
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *state = json_object_get(json_array_get(list, i), "state");
        const json_t *terminated = json_object_get(state, "terminated");
        if (!json_is_object(terminated))
            continue;
        time_ms t = kube_time_at(r, terminated, "finishedAt");
        ended++;
        if (t > *latest)
            *latest = t;
    }
    return ended;
}

static const json_t *condition_of(const json_t *status, struct str type)
{
    json_t *conditions;
    size_t n = array_size_at(status, "conditions", &conditions);
    for (size_t i = 0; i < n; i++)
        if (str_eq(text_at(json_array_get(conditions, i), "type"), type))
            return json_array_get(conditions, i);
    return NULL;
}

static time_ms finished_at(struct kube_reader *r, const json_t *spec, const json_t *status,
                           const struct kube_pod *pod)
{
    bool final = str_eq(pod->phase, STR("Succeeded")) || str_eq(pod->phase, STR("Failed"));
    const json_t *statuses = json_object_get(status, "containerStatuses");
    time_ms latest = TIME_MIN;
    size_t ended = ended_containers(r, statuses, &latest);
    bool stays = pod->deletion != TIME_MIN || str_eq(text_at(spec, "restartPolicy"), STR("Never"));
    bool all = ended > 0 && ended == json_array_size(json_object_get(spec, "containers"));
    if (!final && !(all && stays))
        return TIME_MIN;
    ended_containers(r, json_object_get(status, "initContainerStatuses"), &latest);
    if (latest != TIME_MIN)
        return latest;
    const json_t *ready = condition_of(status, STR("Ready"));
    struct str reason = text_at(ready, "reason");
    if (str_eq(reason, STR("PodFailed")) || str_eq(reason, STR("PodCompleted")))
        return kube_time_at(r, ready, "lastTransitionTime");
    return TIME_MIN;
}

/* Names of the claims that a pod's own spec and status give. */
static size_t pod_claims(struct kube_reader *r, const json_t *spec, const json_t *status,
                         const struct str **ret)
{
    json_t *refs, *made;
    size_t refs_n = array_size_at(spec, "resourceClaims", &refs);
    size_t made_n = array_size_at(status, "resourceClaimStatuses", &made), n = 0;
    struct str *claims = arena_alloc(&r->arena, (refs_n + made_n + 1) * sizeof *claims);
    *ret = claims;
    for (size_t i = 0; i < refs_n + made_n + 1; i++) {
        struct str name = i < refs_n ? text_at(json_array_get(refs, i), "resourceClaimName")
                          : i < refs_n + made_n
                              ? text_at(json_array_get(made, i - refs_n), "resourceClaimName")
                              : text_at(json_object_get(status, "extendedResourceClaimStatus"),
                                        "resourceClaimName");
        if (name.n)
            claims[n++] = name;
    }
    return n;
}

static size_t pod_ports(struct kube_reader *r, const json_t *containers,
                        const struct kube_port **ret)
{
    size_t most = 0, n = 0;
    json_t *list;
    for (size_t i = 0; i < json_array_size(containers); i++)
        most += array_size_at(json_array_get(containers, i), "ports", &list);
    struct kube_port *ports = arena_alloc(&r->arena, most * sizeof *ports);
    *ret = ports;
    for (size_t i = 0; i < json_array_size(containers); i++) {
        size_t here = array_size_at(json_array_get(containers, i), "ports", &list);
        for (size_t k = 0; k < here; k++) {
            const json_t *port = json_array_get(list, k);
            json_int_t number = json_integer_value(json_object_get(port, "containerPort"));
            if (number > 0 && number <= UINT16_MAX)
                ports[n++] = (struct kube_port){text_at(port, "name"), (uint16_t)number};
        }
    }
    return n;
}

static void read_pod(struct kube_reader *r, const json_t *object)
{
    const json_t *metadata = json_object_get(object, "metadata");
    const json_t *spec = json_object_get(object, "spec");
    const json_t *status = json_object_get(object, "status");
    const json_t *grace = json_object_get(metadata, "deletionGracePeriodSeconds");
    const json_t *scheduled = condition_of(status, STR("PodScheduled"));
    const json_t *controller = controller_of(metadata);
    json_t *inits, *mains;
    struct kube_pod pod = {
        .namespace = text_at(metadata, "namespace"),
        .name = text_at(metadata, "name"),
        .uid = text_at(metadata, "uid"),
        .node = text_at(spec, "nodeName"),
        .phase = text_at(status, "phase"),
        .owner_kind = text_at(controller, "kind"),
        .owner_name = text_at(controller, "name"),
        .owner_api = text_at(controller, "apiVersion"),
        .owner_uid = text_at(controller, "uid"),
        .priority_class = text_at(spec, "priorityClassName"),
        .ip = text_at(status, "podIP"),
        .created = kube_time_at(r, metadata, "creationTimestamp"),
        .started = kube_time_at(r, status, "startTime"),
        .deletion = kube_time_at(r, metadata, "deletionTimestamp"),
        .deletion_grace_s = json_is_integer(grace) ? json_integer_value(grace) : -1,
        .scheduled = TIME_MIN,
    };
    if (str_eq(text_at(scheduled, "status"), STR("True")))
        pod.scheduled = kube_time_at(r, scheduled, "lastTransitionTime");
    pod.labels_n = kube_label_list(r, json_object_get(metadata, "labels"), &pod.labels);
    pod.annotations_n =
        kube_label_list(r, json_object_get(metadata, "annotations"), &pod.annotations);
    size_t room =
        array_size_at(spec, "initContainers", &inits) + array_size_at(spec, "containers", &mains);
    struct kube_container *containers = arena_alloc(&r->arena, room * sizeof *containers);
    pod.containers_n = add_containers(r, inits, true, containers, 0);
    pod.containers_n = add_containers(r, mains, false, containers, pod.containers_n);
    pod.containers = containers;
    pod.finished = finished_at(r, spec, status, &pod);
    pod.claims_n = pod_claims(r, spec, status, &pod.claims);
    pod.ports_n = pod_ports(r, mains, &pod.ports);
    r->counts.pods++;
    if (r->sink.pod)
        r->sink.pod(r->sink.context, &pod);
}

static void read_namespace(struct kube_reader *r, const json_t *object)
{
    const json_t *metadata = json_object_get(object, "metadata");
    struct kube_namespace ns = {.name = text_at(metadata, "name")};
    ns.labels_n = kube_label_list(r, json_object_get(metadata, "labels"), &ns.labels);
    ns.annotations_n =
        kube_label_list(r, json_object_get(metadata, "annotations"), &ns.annotations);
    r->counts.namespaces++;
    if (r->sink.namespace)
        r->sink.namespace(r->sink.context, &ns);
}

static void read_owner(struct kube_reader *r, const json_t *object, struct str kind)
{
    const json_t *metadata = json_object_get(object, "metadata");
    const json_t *controller = controller_of(metadata);
    struct kube_owner owner = {
        .namespace = text_at(metadata, "namespace"),
        .kind = kind,
        .name = text_at(metadata, "name"),
        .uid = text_at(metadata, "uid"),
        .owner_kind = text_at(controller, "kind"),
        .owner_name = text_at(controller, "name"),
        .owner_api = text_at(controller, "apiVersion"),
        .owner_uid = text_at(controller, "uid"),
    };
    if (!controller && r->kind.n == 0) {
        r->counts.others++;
        return;
    }
    r->counts.owners++;
    if (r->sink.owner)
        r->sink.owner(r->sink.context, &owner);
}

static bool ends_in_list(struct str kind)
{
    return kind.n >= 4 && memcmp(kind.p + kind.n - 4, "List", 4) == 0;
}

static struct str kind_of(const struct kube_reader *r, const json_t *object, struct str list_kind)
{
    struct str kind = text_at(object, "kind");
    if (r->kind.n && !ends_in_list(kind))
        return r->kind;
    if (kind.n)
        return kind;
    if (list_kind.n > 4 && ends_in_list(list_kind))
        return (struct str){list_kind.p, list_kind.n - 4};
    const json_t *spec = json_object_get(object, "spec");
    const json_t *status = json_object_get(object, "status");
    if (json_is_array(json_object_get(spec, "containers")))
        return STR("Pod");
    if (json_is_object(json_object_get(status, "nodeInfo")))
        return STR("Node");
    if (json_is_object(json_object_get(spec, "pool")))
        return STR("ResourceSlice");
    return STR_NONE;
}

/* A list has ended; its metadata say whether another piece follows. */
static void end_list(struct kube_reader *r, const json_t *metadata)
{
    struct str more = text_at(metadata, "continue");
    r->counts.lists++;
    if (r->sink.list)
        r->sink.list(r->sink.context, text_at(metadata, "resourceVersion"), more);
    else if (more.n)
        kube_fault(r, true, "is the last of this piece; the list goes on (metadata.continue)");
}

void kube_read_object(struct kube_reader *r, const json_t *object, struct str list_kind, int nested)
{
    static const struct {
        const char *kind;
        void (*read)(struct kube_reader *r, const json_t *object);
    } kinds[] = {
        {"Pod", read_pod},
        {"Node", read_node},
        {"Namespace", read_namespace},
        {"ResourceSlice", kube_read_slice},
        {"ResourceClaim", kube_read_claim},
        {"ResourceQuota", kube_read_quota},
        {"PriorityClass", kube_read_priority},
    };
    struct str kind = kind_of(r, object, list_kind);
    const json_t *metadata = json_object_get(object, "metadata"), *items;
    items = json_object_get(object, "items");
    if (json_is_array(items) && nested < NESTED_LISTS_MAX) {
        for (size_t i = 0; i < json_array_size(items); i++)
            kube_read_object(r, json_array_get(items, i), kind, nested + 1);
        return;
    }
    struct str name = text_at(metadata, "name"), namespace = text_at(metadata, "namespace");
    if (json_is_null(items) && name.n == 0 && ends_in_list(kind)) { /* Go's way to say none */
        end_list(r, metadata);
        return;
    }
    snprintf(r->label, sizeof r->label, "%.40s%s%.60s%s%.60s", kind.p, name.n ? " " : "",
             namespace.n ? namespace.p : "", namespace.n ? "/" : "", name.p);
    if (kind.n == 0 || name.n == 0) {
        kube_fault(r, true, "%s", kind.n ? "has no name" : "has no kind: is no Kubernetes object");
        return;
    }
    r->counts.items++;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (str_eq(kind, str_of(kinds[i].kind))) {
            kinds[i].read(r, object);
            return;
        }
    read_owner(r, object, kind);
}

static void on_item(void *context, const struct json_item *item)
{
    struct kube_reader *r = context;
    r->document = item->document;
    r->counts.documents = item->document;
    r->index = item->index;
    r->label[0] = 0;
    json_error_t error;
    json_t *object = item->text.n ? json_loadb(item->text.p, item->text.n, 0, &error) : NULL;
    if (item->broken && !object)
        kube_fault(r, true, "%s", item->broken);
    else if (!object)
        kube_fault(r, true, "is no JSON: %.120s", error.text);
    else
        kube_read_object(r, object, item->kind, 0);
    json_decref(object);
    arena_clear(&r->arena);
}

static void on_list(void *context, const struct json_list *list)
{
    struct kube_reader *r = context;
    r->document = list->document;
    r->counts.documents = list->document;
    r->index = list->items;
    r->label[0] = 0;
    json_t *rest = json_loadb(list->rest.p, list->rest.n, 0, NULL);
    end_list(r, json_object_get(rest, "metadata"));
    json_decref(rest);
}

struct kube_reader *kube_reader_new(const struct kube_sink *sink)
{
    struct kube_reader *r = mem_zalloc(1, sizeof *r);
    r->sink = *sink;
    static const struct str unwanted[] = {
        {"managedFields", 13}, {"env", 3},
        {"envFrom", 7},        {"volumes", 7},
        {"volumeMounts", 12},  {"volumeDevices", 13},
        {"args", 4},           {"command", 7},
        {"affinity", 8},       {"tolerations", 11},
        {"images", 6},         {"securityContext", 15},
        {"livenessProbe", 13}, {"readinessProbe", 14},
        {"startupProbe", 12},
    };
    r->items = json_items_new(&(struct json_items_sink){
        .context = r,
        .unwanted = unwanted,
        .unwanted_n = sizeof unwanted / sizeof *unwanted,
        .item = on_item,
        .list = on_list,
    });
    return r;
}

void kube_reader_kind(struct kube_reader *r, struct str kind)
{
    r->kind = kind;
}

void kube_reader_feed(struct kube_reader *r, const char *p, size_t n)
{
    json_items_feed(r->items, p, n);
}

enum err kube_reader_end(struct kube_reader *r, struct kube_counts *ret, struct error *err)
{
    json_items_end(r->items);
    if (r->counts.items == 0 && r->counts.lists == 0) {
        if (r->first_fault.n == 0)
            return error_set(err, ERR_PARSE,
                             "is empty; wanted the output of kubectl get … -o json");
        return error_set(err, ERR_PARSE,
                         "has no Kubernetes objects in JSON (%s); wanted the output of "
                         "kubectl get … -o json",
                         r->first_fault.text);
    }
    *ret = r->counts;
    return ERR_OK;
}

void kube_reader_free(struct kube_reader *r)
{
    if (!r)
        return;
    json_items_free(r->items);
    arena_release(&r->arena);
    strbuf_release(&r->fault);
    strbuf_release(&r->first_fault);
    free(r);
}
