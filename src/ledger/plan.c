#include "ledger/plan.h"

#include <stdlib.h>

#include "ledger/device_rows.h"
#include "ledger/row.h"

/* ------------------------------------------------------------------ devices */

/* Identity: the UUID; where an exporter has none, node and PCI address, else node and index. */
static name_t identity_of(struct names *names, const struct strip *strip)
{
    struct str uuid = names_text(names, strip->label[GPU_LABEL_UUID]);
    struct strbuf text = {0};
    const char *replica = memmem(uuid.p, uuid.n, "::", 2); /* GPU-x::3 is a replica of GPU-x */
    if (replica)
        uuid.n = (size_t)(replica - uuid.p);
    if (uuid.n && strip->family == EXPORTER_NVIDIA_GPU && !str_starts(uuid, STR("GPU-"))) {
        strbuf_addf(&text, "GPU-%.*s", STR_ARG(uuid));
    } else if (replica) {
        strbuf_add(&text, uuid);
    } else if (uuid.n) {
        return strip->label[GPU_LABEL_UUID];
    } else {
        name_t host = strip->label[GPU_LABEL_NODE] != NAME_NONE ? strip->label[GPU_LABEL_NODE]
                                                                : strip->label[GPU_LABEL_HOSTNAME];
        name_t slot = strip->label[GPU_LABEL_PCI] != NAME_NONE ? strip->label[GPU_LABEL_PCI]
                                                               : strip->label[GPU_LABEL_INDEX];
        strbuf_addf(&text, "%s/%s", names_text(names, host).p, names_text(names, slot).p);
    }
    name_t id = names_put(names, strbuf_str(&text));
    strbuf_release(&text);
    return id;
}

/* Which device each strip is of; devices in order of their first one with rows. */
static uint32_t *number_devices(struct plan *plan, struct names *names, const struct intake *intake)
{
    struct idmap numbers = {0};
    size_t room = 0;
    uint32_t *of = mem_alloc((intake->strips_n + 1) * sizeof *of);
    for (size_t i = 0; i < intake->strips_n; i++) {
        const struct strip *strip = intake->strips[i];
        if (!strip_rows(strip))
            continue;
        struct plan_device device = {.cluster = strip->label[GPU_LABEL_CLUSTER],
                                     .uuid = identity_of(names, strip)};
        bool fresh;
        of[i] = idmap_add(&numbers, IDKEY(device.cluster, device.uuid), (uint32_t)plan->devices_n,
                          &fresh);
        if (fresh)
            mem_push(plan->devices, plan->devices_n, room, device);
    }
    idmap_release(&numbers);
    return of;
}

/* The strips of each device, side by side. */
static void sort_strips(struct plan *plan, struct names *names, const struct intake *intake)
{
    uint32_t *of = number_devices(plan, names, intake);
    plan->first = mem_zalloc(plan->devices_n + 2, sizeof *plan->first);
    plan->strips = mem_alloc((intake->strips_n + 1) * sizeof *plan->strips);
    size_t *next = plan->first + 1; /* becomes the ends, which are the firsts of those after */
    for (size_t i = 0; i < intake->strips_n; i++)
        if (strip_rows(intake->strips[i]))
            next[of[i] + 1]++;
    for (size_t d = 0; d < plan->devices_n; d++)
        next[d + 1] += next[d];
    for (size_t i = 0; i < intake->strips_n; i++)
        if (strip_rows(intake->strips[i]))
            plan->strips[next[of[i]]++] = intake->strips[i];
    free(of);
}

/* ------------------------------------------------------------------ pods that labels name */

/* The strips of a device that become rows: those of instances over the limit are left out
 * (device_rows.c). *ret_says: do they say anything? Devices that do not are none. */
static size_t kept_strips(const struct plan *plan, size_t device, struct strip **ret,
                          bool *ret_says)
{
    name_t seen[INSTANCES_EVER_MAX];
    size_t seen_n = 0, n = 0;
    *ret_says = false;
    for (size_t i = plan->first[device]; i < plan->first[device + 1]; i++) {
        name_t instance = plan->strips[i]->label[GPU_LABEL_GPU_INSTANCE];
        size_t k = 0;
        while (instance != NAME_NONE && k < seen_n && seen[k] != instance)
            k++;
        if (instance != NAME_NONE && k == seen_n) {
            if (seen_n == INSTANCES_EVER_MAX)
                continue;
            seen[seen_n++] = instance;
        }
        ret[n++] = plan->strips[i];
        *ret_says |= plan->strips[i]->says;
    }
    return n;
}

static const struct pod_list *pods_named_by(const struct facts *facts, const struct strip *strip)
{
    const struct holder_labels *holder = &strip->holder;
    uint32_t at = holder->pod == NAME_NONE
                      ? IDMAP_NONE
                      : idmap_get(&facts->pods_named, IDKEY(strip->label[GPU_LABEL_CLUSTER],
                                                            holder->namespace, holder->pod));
    return at == IDMAP_NONE ? NULL : &facts->by_name[at];
}

static void mark_named(const struct plan *plan, struct facts *facts)
{
    size_t most = 0;
    for (size_t d = 0; d < plan->devices_n; d++)
        if (plan->first[d + 1] - plan->first[d] > most)
            most = plan->first[d + 1] - plan->first[d];
    struct strip **kept = mem_alloc((most + 1) * sizeof *kept);
    for (size_t d = 0; d < plan->devices_n; d++) {
        bool says;
        size_t n = kept_strips(plan, d, kept, &says);
        for (size_t i = 0; says && i < n; i++) {
            const struct pod_list *pods = pods_named_by(facts, kept[i]);
            for (size_t k = 0; pods && k < pods->n; k++)
                facts->pods[pods->pods[k]].named = true;
        }
    }
    free(kept);
}

/* ------------------------------------------------------------------ nodes */

static int by_cluster_and_name(const void *a, const void *b, void *names)
{
    const struct node *x = *(const struct node *const *)a, *y = *(const struct node *const *)b;
    struct row_key left = {.cluster = x->cluster, .node = x->name};
    struct row_key right = {.cluster = y->cluster, .node = y->name};
    return row_key_cmp(names, &left, &right);
}

/* All that anything names, in order; from here on there are no others. */
static void sort_nodes(struct plan *plan, struct facts *facts)
{
    for (size_t i = 0; i < plan->first[plan->devices_n]; i++)
        facts_node(facts, plan->strips[i]->label[GPU_LABEL_CLUSTER], plan->strips[i]->node);
    plan->nodes_n = facts->nodes_n;
    plan->nodes = mem_alloc((plan->nodes_n + 1) * sizeof(struct node *));
    for (size_t i = 0; i < plan->nodes_n; i++) {
        plan->nodes[i] = &facts->nodes[i];
        plan->nodes[i]->watch = facts_watch(facts, plan->nodes[i]->cluster);
    }
    qsort_r(plan->nodes, plan->nodes_n, sizeof(struct node *), by_cluster_and_name, facts->names);
}

/* ------------------------------------------------------------------ who needs whom */

static int by_node_and_device(const void *a, const void *b)
{
    const struct plan_need *x = a, *y = b;
    if (x->node != y->node)
        return x->node < y->node ? -1 : 1;
    return (x->device > y->device) - (x->device < y->device);
}

struct needing {
    struct plan *plan;
    struct facts *facts;
    uint32_t *place; /* in the plan's nodes, by place in facts->nodes */
};

static void need(struct needing *needing, name_t cluster, name_t name, size_t device)
{
    struct plan *plan = needing->plan;
    const struct node *node = facts_find_node(needing->facts, cluster, name);
    if (!node)
        return;
    struct plan_need fresh = {needing->place[node - needing->facts->nodes], (uint32_t)device};
    const struct plan_need *last = plan->needs_n ? &plan->needs[plan->needs_n - 1] : NULL;
    if (!last || by_node_and_device(last, &fresh) != 0)
        mem_push(plan->needs, plan->needs_n, plan->needs_room, fresh);
}

static void find_needs(struct plan *plan, struct facts *facts)
{
    struct needing needing = {plan, facts, mem_alloc((plan->nodes_n + 1) * sizeof(uint32_t))};
    for (size_t i = 0; i < plan->nodes_n; i++)
        needing.place[plan->nodes[i] - facts->nodes] = (uint32_t)i;
    for (size_t d = 0; d < plan->devices_n; d++)
        for (size_t i = plan->first[d]; i < plan->first[d + 1]; i++) {
            const struct strip *strip = plan->strips[i];
            name_t cluster = strip->label[GPU_LABEL_CLUSTER];
            need(&needing, cluster, strip->node, d);
            const struct pod_list *pods = pods_named_by(facts, strip);
            for (size_t k = 0; pods && k < pods->n; k++)
                need(&needing, cluster, facts->pods[pods->pods[k]].node, d);
        }
    free(needing.place);
    if (plan->needs_n)
        qsort(plan->needs, plan->needs_n, sizeof *plan->needs, by_node_and_device);
    size_t kept = 0;
    for (size_t i = 0; i < plan->needs_n; i++)
        if (kept == 0 || by_node_and_device(&plan->needs[i], &plan->needs[kept - 1]) != 0)
            plan->needs[kept++] = plan->needs[i];
    plan->needs_n = kept;
}

/* Of its plain rows. */
static size_t device_bytes(const struct plan *plan, size_t device)
{
    size_t bytes = 0;
    for (size_t i = plan->first[device]; i < plan->first[device + 1]; i++) {
        const struct strip *strip = plan->strips[i];
        bytes +=
            strip_rows(strip) * sizeof(int64_t) * (1 + (size_t)__builtin_popcount(strip->signals));
    }
    return bytes;
}

/* Neighbours whose devices have up to so many bytes, at least one node each. */
static void cut_groups(struct plan *plan, size_t budget_bytes)
{
    struct plan_group group = {0};
    size_t bytes = 0;
    for (size_t node = 0, at = 0; node < plan->nodes_n; node++) {
        size_t own = 0, first = at;
        for (; at < plan->needs_n && plan->needs[at].node == node; at++)
            own += device_bytes(plan, plan->needs[at].device);
        if (group.to > group.from && bytes + own > budget_bytes) {
            mem_push(plan->groups, plan->groups_n, plan->groups_room, group);
            group = (struct plan_group){.from = node, .needs_from = first};
            bytes = 0;
        }
        bytes += own;
        group.to = node + 1;
        group.needs_to = at;
    }
    mem_push(plan->groups, plan->groups_n, plan->groups_room, group);
}

/* ------------------------------------------------------------------ all of it */

void plan_make(struct plan *plan, struct facts *facts, struct intake *intake)
{
    *plan = (struct plan){0};
    sort_strips(plan, facts->names, intake);
    mark_named(plan, facts);
    sort_nodes(plan, facts);
    facts_pods_on_nodes(facts);
    if (intake->packing.used) {
        find_needs(plan, facts);
        cut_groups(plan, intake->packing.budget_bytes / 2);
        return;
    }
    struct plan_group all = {.to = plan->nodes_n};
    mem_push(plan->groups, plan->groups_n, plan->groups_room, all);
}

static void add_device(const struct plan *plan, size_t number, struct devices *devices)
{
    size_t first = plan->first[number], n = plan->first[number + 1] - first;
    struct device *device = mem_zalloc(1, sizeof *device);
    device->cluster = plan->devices[number].cluster;
    device->uuid = plan->devices[number].uuid;
    device->number = (uint32_t)number;
    device->strips = mem_alloc((n + 1) * sizeof(struct strip *));
    memcpy(device->strips, plan->strips + first, n * sizeof(struct strip *));
    device->strips_n = n;
    mem_push(devices->at, devices->n, devices->room, device);
}

static int by_number(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

void plan_devices(const struct plan *plan, const struct plan_group *group, struct devices *ret)
{
    *ret = (struct devices){0};
    if (!plan->needs_n) {
        for (size_t d = 0; d < plan->devices_n; d++)
            add_device(plan, d, ret);
        return;
    }
    size_t n = group->needs_to - group->needs_from;
    uint32_t *numbers = mem_alloc((n + 1) * sizeof *numbers);
    for (size_t i = 0; i < n; i++)
        numbers[i] = plan->needs[group->needs_from + i].device;
    qsort(numbers, n, sizeof *numbers, by_number);
    for (size_t i = 0; i < n; i++)
        if (i == 0 || numbers[i] != numbers[i - 1])
            add_device(plan, numbers[i], ret);
    free(numbers);
}

void plan_release(struct plan *plan)
{
    free(plan->strips);
    free(plan->first);
    free(plan->devices);
    free(plan->nodes);
    free(plan->needs);
    free(plan->groups);
    *plan = (struct plan){0};
}
