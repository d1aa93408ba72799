/* From strips to rows: what the labels of a device's strips mean, one line of rows for the device
 * and for each of its instances (device_join.c), its places and layouts (device_places.c). */
#include <stdlib.h>

#include "fleet/resources.h"
#include "ledger/device_rows.h"
#include "ledger/device_units.h"
#include "util/error.h"

/* The host of an address ("10.0.4.17:9400" -> "10.0.4.17"); NAME_NONE where there is none. */
static name_t host_of(const struct facts *facts, name_t address)
{
    struct str text = names_text(facts->names, address);
    const char *colon = memrchr(text.p, ':', text.n);
    if (colon)
        text.n = (size_t)(colon - text.p);
    return text.n ? names_put(facts->names, text) : NAME_NONE;
}

/* The name of a node that Kubernetes knows, spelled in any case: exporters print what the host
 * calls itself. NAME_NONE: no such node. */
static name_t recorded_node(const struct facts *facts, name_t cluster, name_t host)
{
    uint32_t at = idmap_get(&facts->node_by_name, IDKEY(cluster, host));
    if (at != IDMAP_NONE && facts->nodes[at].recorded)
        return host;
    struct str text = names_text(facts->names, host);
    char lower[256];
    if (!text.n || text.n >= sizeof lower)
        return NAME_NONE;
    for (size_t i = 0; i < text.n; i++)
        lower[i] = (char)(text.p[i] >= 'A' && text.p[i] <= 'Z' ? text.p[i] | 0x20 : text.p[i]);
    name_t name;
    if (!names_find(facts->names, (struct str){lower, text.n}, &name))
        return NAME_NONE;
    at = idmap_get(&facts->node_by_name, IDKEY(cluster, name));
    return at != IDMAP_NONE && facts->nodes[at].recorded ? name : NAME_NONE;
}

name_t strip_node(const struct facts *facts, const struct strip *strip,
                  const struct holder_labels *holder)
{
    name_t cluster = strip->label[GPU_LABEL_CLUSTER], host = strip->label[GPU_LABEL_HOSTNAME];
    name_t address = host_of(facts, strip->label[GPU_LABEL_INSTANCE]);
    if (strip->label[GPU_LABEL_NODE] != NAME_NONE)
        return strip->label[GPU_LABEL_NODE];
    /* Outside of Kubernetes exporters call every host "localhost", or say nothing. */
    bool nameless = host == NAME_NONE || str_eq(names_text(facts->names, host), STR("localhost"));
    name_t other = nameless && address != NAME_NONE ? address : host;
    if (idmap_get(&facts->recorded_cluster, IDKEY(cluster)) == IDMAP_NONE)
        return other;
    name_t known = recorded_node(facts, cluster, host);
    if (known != NAME_NONE)
        return known;
    name_t pods[] = {holder->exporter_pod, host};
    for (int i = 0; i < 2; i++) {
        uint32_t node = pods[i] == NAME_NONE ? IDMAP_NONE
                                             : idmap_get(&facts->pod_node, IDKEY(cluster, pods[i]));
        if (node != IDMAP_NONE)
            return node;
    }
    uint32_t node =
        address == NAME_NONE ? IDMAP_NONE : idmap_get(&facts->address, IDKEY(cluster, address));
    if (node != IDMAP_NONE)
        return node;
    known = recorded_node(facts, cluster, address);
    return known != NAME_NONE ? known : other;
}

static struct meaning meaning_of(struct device *device, const struct facts *facts,
                                 struct strip *strip)
{
    struct meaning out = {.strip = strip,
                          .holder = strip->holder,
                          .node = strip->node,
                          .instance = strip->label[GPU_LABEL_GPU_INSTANCE],
                          .profile = strip->label[GPU_LABEL_PROFILE]};
    long long index;
    if (str_to_i64(names_text(facts->names, strip->label[GPU_LABEL_INDEX]), &index))
        out.index = index;
    if (out.holder.pod != NAME_NONE) {
        struct named_set *set = arena_alloc(&device->arena, sizeof *set);
        set->at = arena_alloc(&device->arena, sizeof *set->at);
        set->at[0] = (struct named){out.holder.namespace, out.holder.pod, out.holder.container, 1};
        set->n = 1;
        out.set = set;
    }
    return out;
}

/* ------------------------------------------------------------------ the device's own stamps */

/* Make the device's own rows the union of all stamps: board signals of instances are lifted to
 * them, and labels cover time by them. */
static void widen_own(struct device *device)
{
    size_t total = device->own.n;
    for (size_t i = 0; i < device->instances_n; i++)
        total += device->instances[i].line.n;
    struct timeline wide = {.room = total + 1};
    wide.t = mem_alloc(wide.room * sizeof *wide.t);
    size_t *next = mem_zalloc(device->instances_n + 1, sizeof *next);
    for (int s = 0; s < SIGNAL_COUNT; s++)
        if (device->own.column[s])
            wide.column[s] = mem_alloc(wide.room * sizeof(int64_t));
    size_t name = 0; /* the next of the names */
    const struct named_set *named = NULL;
    for (;;) {
        time_ms t = next[0] < device->own.n ? device->own.t[next[0]] : TIME_MAX;
        for (size_t i = 0; i < device->instances_n; i++) {
            const struct timeline *line = &device->instances[i].line;
            if (next[i + 1] < line->n && line->t[next[i + 1]] < t)
                t = line->t[next[i + 1]];
        }
        if (t == TIME_MAX)
            break;
        bool own = next[0] < device->own.n && device->own.t[next[0]] == t;
        wide.t[wide.n] = t;
        for (int s = 0; s < SIGNAL_COUNT; s++)
            if (wide.column[s])
                wide.column[s][wide.n] = own ? device->own.column[s][next[0]] : SIGNAL_ABSENT;
        for (; own && name < device->own.names_n && device->own.names[name].row <= next[0]; name++)
            named = device->own.names[name].set;
        timeline_name(&wide, wide.n, own ? named : NULL);
        wide.n++;
        next[0] += own;
        for (size_t i = 0; i < device->instances_n; i++) {
            const struct timeline *line = &device->instances[i].line;
            next[i + 1] += next[i + 1] < line->n && line->t[next[i + 1]] == t;
        }
    }
    free(next);
    timeline_drop_rows(&device->own);
    free(device->own.t);
    device->own = wide;
}

/* ------------------------------------------------------------------ all of it */

static bool knows_instance(struct device *device, name_t instance)
{
    for (size_t i = 0; i < device->instances_n; i++)
        if (device->instances[i].id == instance)
            return true;
    if (device->instances_n == INSTANCES_EVER_MAX)
        return false;
    struct instance fresh = {.id = instance};
    mem_push(device->instances, device->instances_n, device->instances_room, fresh);
    return true;
}

/* Instances in order of arrival; strips of those over the limit are left out and counted. */
static void find_instances(struct device *device)
{
    size_t kept = 0;
    for (size_t i = 0; i < device->strips_n; i++) {
        struct strip *strip = device->strips[i];
        name_t instance = strip->label[GPU_LABEL_GPU_INSTANCE];
        if (instance == NAME_NONE || knows_instance(device, instance)) {
            device->strips[kept++] = strip;
        } else {
            device->rejected += strip->n;
            strip_clear(strip);
        }
    }
    device->strips_n = kept;
}

static void make_lines(struct device *device, const struct facts *facts,
                       const struct meaning *meanings)
{
    uint32_t *which = mem_alloc((device->strips_n + 1) * sizeof *which);
    for (size_t k = 0; k <= device->instances_n; k++) {
        name_t instance = k ? device->instances[k - 1].id : NAME_NONE;
        struct timeline *line = k ? &device->instances[k - 1].line : &device->own;
        size_t n = 0;
        for (size_t i = 0; i < device->strips_n; i++)
            if (meanings[i].instance == instance)
                which[n++] = (uint32_t)i;
        if (n)
            join_strips(device, facts, line, meanings, which, n);
    }
    free(which);
}

void device_make_rows(struct device *device, const struct facts *facts)
{
    find_instances(device);
    struct meaning *meanings = mem_alloc((device->strips_n + 1) * sizeof *meanings);
    for (size_t i = 0; i < device->strips_n; i++) {
        struct strip *strip = device->strips[i];
        units_settle(device, strip);
        device->rejected += strip->rejected;
        meanings[i] = meaning_of(device, facts, strip);
    }
    bool still = device->instances_n == 0; /* one place all the time, never split */
    for (size_t i = 0; i < device->strips_n; i++)
        still =
            still && meanings[i].instance == NAME_NONE && meanings[i].node == meanings[0].node &&
            meanings[i].index == meanings[0].index &&
            meanings[i].strip->label[GPU_LABEL_MODEL] == meanings[0].strip->label[GPU_LABEL_MODEL];
    struct stamps *stamps = still ? NULL : stamps_copy(device);
    make_lines(device, facts, meanings);
    if (device->instances_n)
        widen_own(device);
    device_clean(device, facts);
    size_t *sample_of = still ? NULL : mem_alloc((device->own.n + 1) * sizeof *sample_of);
    device_find_samples(device, sample_of);
    if (still && device->samples_n) {
        places_stand_still(device, &meanings[0]);
    } else if (!still) {
        places_find(device, facts, meanings, stamps, sample_of);
    }
    free(sample_of);
    stamps_free(stamps, device->strips_n);
    for (size_t i = 0; i < device->strips_n; i++) /* their rows are the device's now */
        strip_clear(device->strips[i]);
    free(meanings);
}
