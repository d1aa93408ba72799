/* Records back to views. Each array is counted before it is filled, so that it is as long as it
 * must be, and a record of any bytes costs no more memory than a few times its length. */
#include "wire/kube_record_impl.h"

/* A message that is read: how often each field comes is counted first, so that arrays are as long
 * as they must be. */
struct message {
    struct str bytes;
    struct arena *arena;
    uint32_t *items; /* of the whole object, against the cap */
    bool broken, full;
};

/* Room for all items of a repeated field; NULL where there are none or too many. */
static void *room_for(struct message *m, uint32_t number, size_t size)
{
    struct protobuf_reader reader = protobuf_reader(m->bytes);
    struct protobuf_field field;
    size_t n = 0;
    while (protobuf_next(&reader, &field))
        n += field.number == number && field.type == PROTOBUF_BYTES;
    m->broken |= reader.broken != NULL;
    m->full |= n > KUBE_RECORD_ITEMS_MAX - *m->items;
    if (m->broken || m->full || n == 0)
        return NULL;
    *m->items += (uint32_t)n;
    return arena_zalloc(m->arena, n * size);
}

/* Texts of fields 1 to n; others stay as they are. */
static void read_texts(struct message *m, struct str *const *texts, uint32_t n)
{
    struct protobuf_reader reader = protobuf_reader(m->bytes);
    struct protobuf_field field;
    for (uint32_t i = 0; i < n; i++)
        *texts[i] = STR_NONE;
    while (protobuf_next(&reader, &field))
        if (field.number >= 1 && field.number <= n && field.type == PROTOBUF_BYTES)
            *texts[field.number - 1] = field.bytes;
    m->broken |= reader.broken != NULL;
}

static struct message inner(const struct message *m, struct str bytes)
{
    return (struct message){bytes, m->arena, m->items, false, false};
}

static void outer(struct message *m, const struct message *in)
{
    m->broken |= in->broken;
    m->full |= in->full;
}

static struct label read_label(struct message *m, struct str bytes)
{
    struct label label;
    struct message in = inner(m, bytes);
    read_texts(&in, (struct str *const[]){&label.name, &label.value}, 2);
    outer(m, &in);
    return label;
}

static size_t read_labels(struct message *m, uint32_t number, const struct label **ret)
{
    struct label *labels = room_for(m, number, sizeof *labels);
    struct protobuf_reader reader = protobuf_reader(m->bytes);
    struct protobuf_field field;
    size_t n = 0;
    while (labels && protobuf_next(&reader, &field))
        if (field.number == number && field.type == PROTOBUF_BYTES)
            labels[n++] = read_label(m, field.bytes);
    *ret = labels;
    return n;
}

static struct kube_quantity read_quantity(struct message *m, struct str bytes)
{
    struct protobuf_reader reader = protobuf_reader(bytes);
    struct protobuf_field field;
    struct kube_quantity q = {.resource = STR_NONE};
    while (protobuf_next(&reader, &field)) {
        if (field.number == 1 && field.type == PROTOBUF_BYTES)
            q.resource = field.bytes;
        if (field.number == 2 && field.type == PROTOBUF_VARINT)
            q.milli = (int64_t)field.value;
    }
    m->broken |= reader.broken != NULL || q.milli < 0;
    return q;
}

static size_t read_quantities(struct message *m, uint32_t number, const struct kube_quantity **ret)
{
    struct kube_quantity *quantities = room_for(m, number, sizeof *quantities);
    struct protobuf_reader reader = protobuf_reader(m->bytes);
    struct protobuf_field field;
    size_t n = 0;
    while (quantities && protobuf_next(&reader, &field))
        if (field.number == number && field.type == PROTOBUF_BYTES)
            quantities[n++] = read_quantity(m, field.bytes);
    *ret = quantities;
    return n;
}

static int64_t read_number(struct message *m, uint32_t number, int64_t otherwise)
{
    struct protobuf_reader reader = protobuf_reader(m->bytes);
    struct protobuf_field field;
    int64_t value = otherwise;
    while (protobuf_next(&reader, &field))
        if (field.number == number && field.type == PROTOBUF_VARINT)
            value = (int64_t)field.value;
    m->broken |= reader.broken != NULL;
    return value;
}

static time_ms read_time(struct message *m, uint32_t number)
{
    time_ms t = read_number(m, number, TIME_MIN);
    m->broken |= t != TIME_MIN && !time_is_sane(t);
    return t;
}

static void read_taints(struct message *m, struct kube_node *node)
{
    struct kube_taint *taints = room_for(m, 8, sizeof *taints);
    struct protobuf_reader reader = protobuf_reader(m->bytes);
    struct protobuf_field field;
    while (taints && protobuf_next(&reader, &field))
        if (field.number == 8 && field.type == PROTOBUF_BYTES) {
            struct kube_taint *t = &taints[node->taints_n++];
            struct message in = inner(m, field.bytes);
            read_texts(&in, (struct str *const[]){&t->key, &t->value, &t->effect}, 3);
            outer(m, &in);
        }
    node->taints = taints;
}

static bool read_node(struct message *m, const struct kube_sink *sink)
{
    struct kube_node node = {0};
    read_texts(
        m, (struct str *const[]){&node.name, &node.uid, &node.provider_id, &node.internal_ip}, 4);
    node.created = read_time(m, 5);
    node.unschedulable = read_number(m, 6, 0) != 0;
    node.labels_n = read_labels(m, 7, &node.labels);
    read_taints(m, &node);
    node.capacity_n = read_quantities(m, 9, &node.capacity);
    node.allocatable_n = read_quantities(m, 10, &node.allocatable);
    node.annotations_n = read_labels(m, 11, &node.annotations);
    bool good = node.name.n && !m->broken && !m->full;
    if (good && sink->node)
        sink->node(sink->context, &node);
    return good;
}

static void read_containers(struct message *m, struct kube_pod *pod)
{
    struct kube_container *containers = room_for(m, 19, sizeof *containers);
    struct protobuf_reader reader = protobuf_reader(m->bytes);
    struct protobuf_field field;
    while (containers && protobuf_next(&reader, &field))
        if (field.number == 19 && field.type == PROTOBUF_BYTES) {
            struct kube_container *c = &containers[pod->containers_n++];
            struct message in = inner(m, field.bytes);
            read_texts(&in, (struct str *const[]){&c->name}, 1);
            c->init = read_number(&in, 2, 0) != 0;
            c->sidecar = read_number(&in, 3, 0) != 0;
            c->requests_n = read_quantities(&in, 4, &c->requests);
            c->cpu_limit_milli = read_number(&in, 5, 0);
            outer(m, &in);
        }
    pod->containers = containers;
}

static void read_claim_names(struct message *m, struct kube_pod *pod)
{
    struct str *claims = room_for(m, 20, sizeof *claims);
    struct protobuf_reader reader = protobuf_reader(m->bytes);
    struct protobuf_field field;
    while (claims && protobuf_next(&reader, &field))
        if (field.number == 20 && field.type == PROTOBUF_BYTES)
            claims[pod->claims_n++] = field.bytes;
    pod->claims = claims;
}

static bool read_pod(struct message *m, const struct kube_sink *sink)
{
    struct kube_pod pod = {.ip = STR_NONE};
    read_texts(m,
               (struct str *const[]){&pod.namespace, &pod.name, &pod.uid, &pod.node, &pod.phase,
                                     &pod.owner_kind, &pod.owner_name, &pod.owner_api,
                                     &pod.owner_uid, &pod.priority_class},
               10);
    pod.created = read_time(m, 11);
    pod.scheduled = read_time(m, 12);
    pod.started = read_time(m, 13);
    pod.finished = read_time(m, 14);
    pod.deletion = read_time(m, 15);
    pod.deletion_grace_s = read_number(m, 16, 0) - 1;
    pod.labels_n = read_labels(m, 17, &pod.labels);
    pod.annotations_n = read_labels(m, 18, &pod.annotations);
    read_containers(m, &pod);
    read_claim_names(m, &pod);
    bool good = pod.name.n && !m->broken && !m->full;
    if (good && sink->pod)
        sink->pod(sink->context, &pod);
    return good;
}

static bool read_namespace(struct message *m, const struct kube_sink *sink)
{
    struct kube_namespace ns = {0};
    read_texts(m, (struct str *const[]){&ns.name}, 1);
    ns.labels_n = read_labels(m, 2, &ns.labels);
    ns.annotations_n = read_labels(m, 3, &ns.annotations);
    bool good = ns.name.n && !m->broken && !m->full;
    if (good && sink->namespace)
        sink->namespace(sink->context, &ns);
    return good;
}

static bool read_owner(struct message *m, const struct kube_sink *sink)
{
    struct kube_owner o = {0};
    read_texts(m,
               (struct str *const[]){&o.namespace, &o.kind, &o.name, &o.uid, &o.owner_kind,
                                     &o.owner_name, &o.owner_api, &o.owner_uid},
               8);
    bool good = o.name.n && o.kind.n && !m->broken;
    if (good && sink->owner)
        sink->owner(sink->context, &o);
    return good;
}

static bool read_claim(struct message *m, const struct kube_sink *sink)
{
    struct kube_claim claim = {0};
    read_texts(m, (struct str *const[]){&claim.namespace, &claim.name, &claim.uid}, 3);
    struct kube_allocation *allocations = room_for(m, 4, sizeof *allocations);
    struct kube_consumer *consumers = room_for(m, 5, sizeof *consumers);
    struct protobuf_reader reader = protobuf_reader(m->bytes);
    struct protobuf_field field;
    while (protobuf_next(&reader, &field)) {
        struct message in = inner(m, field.bytes);
        if (field.type != PROTOBUF_BYTES)
            continue;
        if (field.number == 4 && allocations) {
            struct kube_allocation *a = &allocations[claim.allocations_n++];
            read_texts(&in, (struct str *const[]){&a->request, &a->driver, &a->pool, &a->device},
                       4);
        } else if (field.number == 5 && consumers) {
            struct kube_consumer *c = &consumers[claim.consumers_n++];
            read_texts(&in, (struct str *const[]){&c->name, &c->uid}, 2);
        }
        outer(m, &in);
    }
    claim.allocations = allocations;
    claim.consumers = consumers;
    bool good = claim.name.n && !m->broken && !m->full;
    if (good && sink->claim)
        sink->claim(sink->context, &claim);
    return good;
}

static bool read_slice(struct message *m, const struct kube_sink *sink)
{
    struct kube_slice slice = {0};
    read_texts(m, (struct str *const[]){&slice.name, &slice.driver, &slice.pool, &slice.node}, 4);
    slice.generation = read_number(m, 5, 0);
    struct kube_device *devices = room_for(m, 6, sizeof *devices);
    struct protobuf_reader reader = protobuf_reader(m->bytes);
    struct protobuf_field field;
    while (devices && protobuf_next(&reader, &field))
        if (field.number == 6 && field.type == PROTOBUF_BYTES) {
            struct kube_device *d = &devices[slice.devices_n++];
            struct message in = inner(m, field.bytes);
            read_texts(&in,
                       (struct str *const[]){&d->name, &d->uuid, &d->parent_uuid, &d->profile,
                                             &d->product, &d->type},
                       6);
            outer(m, &in);
        }
    slice.devices = devices;
    bool good = slice.name.n && !m->broken && !m->full;
    if (good && sink->slice)
        sink->slice(sink->context, &slice);
    return good;
}

static bool read_quota(struct message *m, const struct kube_sink *sink)
{
    struct kube_quota quota = {0};
    read_texts(m, (struct str *const[]){&quota.namespace, &quota.name}, 2);
    quota.hard_n = read_quantities(m, 3, &quota.hard);
    quota.used_n = read_quantities(m, 4, &quota.used);
    bool good = quota.name.n && !m->broken && !m->full;
    if (good && sink->quota)
        sink->quota(sink->context, &quota);
    return good;
}

static bool read_priority(struct message *m, const struct kube_sink *sink)
{
    struct kube_priority p = {0};
    read_texts(m, (struct str *const[]){&p.name, &p.preemption}, 2);
    p.value = read_number(m, 3, 0);
    p.global_default = read_number(m, 4, 0) != 0;
    bool good = p.name.n && !m->broken;
    if (good && sink->priority)
        sink->priority(sink->context, &p);
    return good;
}

enum err kube_record_object(enum kube_kind kind, struct str object, struct arena *arena,
                            const struct kube_sink *sink, struct error *err)
{
    static bool (*const readers[KUBE_KIND_COUNT])(struct message *, const struct kube_sink *) = {
        [KUBE_KIND_NODE] = read_node,           [KUBE_KIND_POD] = read_pod,
        [KUBE_KIND_NAMESPACE] = read_namespace, [KUBE_KIND_REPLICASET] = read_owner,
        [KUBE_KIND_JOB] = read_owner,           [KUBE_KIND_CLAIM] = read_claim,
        [KUBE_KIND_SLICE] = read_slice,         [KUBE_KIND_QUOTA] = read_quota,
        [KUBE_KIND_PRIORITY] = read_priority,   [KUBE_KIND_OWNER] = read_owner,
    };
    uint32_t items = 0;
    struct message m = {object, arena, &items, false, false};
    invariant(kind < KUBE_KIND_COUNT);
    if (readers[kind](&m, sink))
        return ERR_OK;
    return m.full ? error_set(err, ERR_LIMIT, "an object has more than %u parts",
                              KUBE_RECORD_ITEMS_MAX)
                  : error_set(err, ERR_PARSE, "a record's object is none");
}

static bool time_or_none(time_ms t)
{
    return t == TIME_MIN || time_is_sane(t);
}

enum err kube_record_read(struct str bytes, struct kube_record *ret, struct error *err)
{
    struct protobuf_reader reader = protobuf_reader(bytes);
    struct protobuf_field field;
    struct kube_record record = {.cluster = STR_NONE, .object = STR_NONE};
    uint64_t numbers[R_LAST + 1] = {0};
    for (int i = R_T; i <= R_LAST; i++)
        numbers[i] = i == R_SNAPSHOT ? 0 : (uint64_t)TIME_MIN;
    if (bytes.n > KUBE_RECORD_MAX)
        return error_set(err, ERR_LIMIT, "a record is longer than %zu MiB", KUBE_RECORD_MAX >> 20);
    while (protobuf_next(&reader, &field)) {
        if (field.type == PROTOBUF_VARINT && field.number <= R_LAST)
            numbers[field.number] = field.value;
        else if (field.type == PROTOBUF_BYTES && field.number == R_CLUSTER)
            record.cluster = field.bytes;
        else if (field.type == PROTOBUF_BYTES && field.number == R_OBJECT)
            record.object = field.bytes;
    }
    if (numbers[R_VERSION] > KUBE_RECORD_VERSION)
        return error_set(err, ERR_UNSUPPORTED, "a record is of a newer version (%llu)",
                         (unsigned long long)numbers[R_VERSION]);
    record.t = (time_ms)numbers[R_T];
    record.first = (time_ms)numbers[R_FIRST];
    record.lacked = (time_ms)numbers[R_LACKED];
    record.since = (time_ms)numbers[R_SINCE];
    record.last = (time_ms)numbers[R_LAST];
    record.snapshot = numbers[R_SNAPSHOT] != 0;
    uint64_t act = numbers[R_ACT], kind = numbers[R_KIND];
    bool times = time_is_sane(record.t) && time_or_none(record.first) &&
                 time_or_none(record.lacked) && time_or_none(record.since) &&
                 time_or_none(record.last);
    bool objects = act == KUBE_ACT_OBJECT || act == KUBE_ACT_DELETED;
    if (reader.broken || numbers[R_VERSION] == 0 || act < KUBE_ACT_LIST || act > KUBE_ACT_SEEN ||
        kind >= KUBE_KIND_COUNT || !times || objects != (record.object.n > 0))
        return error_set(err, ERR_PARSE, "is no record of a Kubernetes API: %s",
                         reader.broken ? reader.broken : "fields are missing or mean nothing");
    record.act = (enum kube_act)act;
    record.kind = (enum kube_kind)kind;
    *ret = record;
    return ERR_OK;
}
