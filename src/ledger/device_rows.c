/* From strips to rows: the rows of a device with one stamp are one sample (semantics, section 4:
 * shared devices are exported once per pod, HA pairs twice).
 *
 * The common device has strips that follow one another in time, one a holder: their columns are
 * laid end to end. Where strips overlap, rows of one stamp are joined: a signal comes from the rows
 * that name no pod if one has it, else the largest; the holders are the union. */
#include <stdlib.h>

#include "fleet/resources.h"
#include "ledger/device.h"
#include "util/error.h"

/* A strip with what its labels mean. */
struct meaning {
    struct strip *strip;
    struct holder_labels holder;
    const struct named_set *set; /* of the strip alone */
    name_t node, instance, profile;
    int64_t index;
};

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

/* The node that samples name: label node; else the host where that is a known node; else the node
 * of the exporter's pod or address. (semantics, section 3) */
static name_t node_of(const struct facts *facts, const struct strip *strip,
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
                          .holder = facts_holder_labels(facts, strip),
                          .instance = strip->label[GPU_LABEL_GPU_INSTANCE],
                          .profile = strip->label[GPU_LABEL_PROFILE]};
    out.node = node_of(facts, strip, &out.holder);
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

static bool same_set(const struct named_set *a, const struct named_set *b)
{
    return a->n == b->n && memcmp(a->at, b->at, a->n * sizeof *a->at) == 0;
}

/* ------------------------------------------------------------------ joining rows */

struct row_ref {
    uint32_t meaning;
    size_t row;
};

/* Holders of the rows of one stamp, each with the number of replicas that the exporter tells apart
 * (label vgpu), else 1. */
static const struct named_set *joined_set(struct device *device, const struct facts *facts,
                                          const struct meaning *meanings,
                                          const struct row_ref *refs, size_t n,
                                          const struct named_set *last)
{
    struct named few[64];
    name_t vgpus[64];
    size_t names_n = 0, pairs_n = 0;
    uint32_t owner[64];
    for (size_t i = 0; i < n && names_n < 64 && pairs_n < 64; i++) {
        const struct meaning *meaning = &meanings[refs[i].meaning];
        if (meaning->holder.pod == NAME_NONE)
            continue;
        struct named one = meaning->set->at[0];
        size_t at = 0;
        while (at < names_n && (few[at].namespace != one.namespace || few[at].pod != one.pod ||
                                few[at].container != one.container))
            at++;
        if (at == names_n) {
            few[names_n++] = one;
            few[at].replicas = 0;
        }
        name_t vgpu = meaning->strip->label[GPU_LABEL_VGPU];
        bool known = vgpu == NAME_NONE;
        for (size_t k = 0; !known && k < pairs_n; k++)
            known = owner[k] == at && vgpus[k] == vgpu;
        if (!known) {
            owner[pairs_n] = (uint32_t)at;
            vgpus[pairs_n++] = vgpu;
            few[at].replicas++;
        }
    }
    if (!names_n)
        return NULL;
    for (size_t i = 0; i < names_n; i++)
        if (!few[i].replicas)
            few[i].replicas = 1;
    for (size_t i = 1; i < names_n; i++) /* byte order of the texts */
        for (size_t k = i; k > 0; k--) {
            const name_t a[] = {few[k - 1].namespace, few[k - 1].pod, few[k - 1].container};
            const name_t b[] = {few[k].namespace, few[k].pod, few[k].container};
            int order = 0;
            for (int j = 0; j < 3 && !order; j++)
                order = str_cmp(names_text(facts->names, a[j]), names_text(facts->names, b[j]));
            if (order <= 0)
                break;
            struct named swap = few[k];
            few[k] = few[k - 1];
            few[k - 1] = swap;
        }
    struct named_set set = {few, names_n};
    if (last && same_set(last, &set))
        return last;
    struct named_set *kept = arena_alloc(&device->arena, sizeof *kept);
    kept->n = names_n;
    kept->at = arena_alloc(&device->arena, names_n * sizeof *kept->at);
    memcpy(kept->at, few, names_n * sizeof *kept->at);
    return kept;
}

static void join_values(struct timeline *line, size_t at, const struct meaning *meanings,
                        const struct row_ref *refs, size_t n)
{
    for (int s = 0; s < SIGNAL_COUNT; s++) {
        if (!line->column[s])
            continue;
        int64_t plain = SIGNAL_ABSENT, named = SIGNAL_ABSENT;
        for (size_t i = 0; i < n; i++) {
            const struct strip *strip = meanings[refs[i].meaning].strip;
            int64_t v = strip->column[s] ? strip->column[s][refs[i].row] : SIGNAL_ABSENT;
            if (v == SIGNAL_ABSENT)
                continue;
            int64_t *into = meanings[refs[i].meaning].holder.pod == NAME_NONE ? &plain : &named;
            *into = v > *into ? v : *into; /* absent is the smallest */
        }
        line->column[s][at] = plain != SIGNAL_ABSENT ? plain : named;
    }
}

/* ------------------------------------------------------------------ strips end to end */

/* Strips that are merged, each with the row that is next. */
struct merge {
    struct device *device;
    const struct facts *facts;
    struct timeline *line;
    const struct meaning *meanings;
    const uint32_t *which;
    size_t *next;
    size_t n;
    struct row_ref *refs; /* rows of the stamp in hand */
    const struct named_set *last;
};

/* The earliest stamp that is next, the stamps' strips in refs, and the stamp that follows it in
 * some other strip (TIME_MAX: none). Returns how many strips have the earliest. */
static size_t earliest(const struct merge *merge, time_ms *ret_following)
{
    time_ms first = TIME_MAX, following = TIME_MAX;
    size_t found = 0;
    for (size_t i = 0; i < merge->n; i++) {
        const struct strip *strip = merge->meanings[merge->which[i]].strip;
        if (merge->next[i] == strip->n)
            continue;
        time_ms t = strip->t[merge->next[i]];
        if (t < first) {
            following = first;
            first = t;
            found = 0;
        } else if (t > first) {
            following = t < following ? t : following;
            continue;
        }
        merge->refs[found++] = (struct row_ref){(uint32_t)i, merge->next[i]};
    }
    *ret_following = following;
    return found;
}

/* Rows [first, end) of one strip, as they lie. */
static void lay_rows(struct merge *merge, size_t strip_index, size_t end)
{
    struct timeline *line = merge->line;
    const struct meaning *meaning = &merge->meanings[merge->which[strip_index]];
    const struct strip *strip = meaning->strip;
    size_t first = merge->next[strip_index], rows = end - first;
    memcpy(line->t + line->n, strip->t + first, rows * sizeof *line->t);
    for (int s = 0; s < SIGNAL_COUNT; s++) {
        if (line->column[s] && strip->column[s])
            memcpy(line->column[s] + line->n, strip->column[s] + first, rows * sizeof(int64_t));
        else if (line->column[s])
            for (size_t row = 0; row < rows; row++)
                line->column[s][line->n + row] = SIGNAL_ABSENT;
    }
    timeline_name(line, line->n, meaning->set);
    line->n += rows;
    merge->next[strip_index] = end;
}

/* The rows of one stamp, of several strips. */
static void join_rows(struct merge *merge, size_t found)
{
    struct timeline *line = merge->line;
    line->t[line->n] =
        merge->meanings[merge->which[merge->refs[0].meaning]].strip->t[merge->refs[0].row];
    for (size_t i = 0; i < found; i++) {
        merge->next[merge->refs[i].meaning]++;
        merge->refs[i].meaning = merge->which[merge->refs[i].meaning];
    }
    join_values(line, line->n, merge->meanings, merge->refs, found);
    const struct named_set *set =
        joined_set(merge->device, merge->facts, merge->meanings, merge->refs, found, merge->last);
    timeline_name(line, line->n++, set);
    merge->last = set ? set : merge->last;
}

static size_t row_at(const struct strip *strip, size_t from, time_ms t)
{
    size_t high = strip->n;
    while (from < high) {
        size_t mid = (from + high) / 2;
        if (strip->t[mid] < t)
            from = mid + 1;
        else
            high = mid;
    }
    return from;
}

static void merge_strips(struct merge *merge)
{
    struct timeline *line = merge->line;
    size_t total = 0;
    for (size_t i = 0; i < merge->n; i++)
        total += merge->meanings[merge->which[i]].strip->n;
    line->room = total + 1;
    line->t = mem_alloc(line->room * sizeof *line->t);
    for (size_t i = 0; i < merge->n; i++)
        for (int s = 0; s < SIGNAL_COUNT; s++)
            if (merge->meanings[merge->which[i]].strip->column[s] && !line->column[s])
                line->column[s] = mem_alloc(line->room * sizeof(int64_t));
    merge->next = mem_zalloc(merge->n, sizeof *merge->next);
    merge->refs = mem_alloc(merge->n * sizeof *merge->refs);
    time_ms following;
    for (size_t found; (found = earliest(merge, &following)) > 0;) {
        if (found > 1) {
            join_rows(merge, found);
            continue;
        }
        size_t i = merge->refs[0].meaning;
        lay_rows(merge, i,
                 row_at(merge->meanings[merge->which[i]].strip, merge->next[i], following));
    }
    free(merge->next);
    free(merge->refs);
}

static void make_line(struct device *device, const struct facts *facts, struct timeline *line,
                      const struct meaning *meanings, const uint32_t *which, size_t n)
{
    if (n == 1) { /* take the arrays */
        struct strip *strip = meanings[which[0]].strip;
        line->t = strip->t;
        line->n = strip->n;
        line->room = strip->room;
        memcpy(line->column, strip->column, sizeof line->column);
        memset(strip->column, 0, sizeof strip->column);
        strip->t = NULL;
        timeline_name(line, 0, meanings[which[0]].set);
        return;
    }
    struct merge merge = {.device = device,
                          .facts = facts,
                          .line = line,
                          .meanings = meanings,
                          .which = which,
                          .n = n};
    merge_strips(&merge);
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

/* ------------------------------------------------------------------ places and layouts by stamp */

static void add_layout(struct device *device, time_ms since, const struct layout_part *parts,
                       size_t n)
{
    if (device->layouts_n) {
        const struct layout *last = &device->layouts[device->layouts_n - 1];
        bool same = last->n == n;
        for (size_t i = 0; same && i < n; i++)
            same = last->parts[i].id == parts[i].id && last->parts[i].profile == parts[i].profile;
        if (same)
            return;
    } else {
        since = TIME_MIN;
    }
    struct layout layout = {since, arena_alloc(&device->arena, n * sizeof *parts), n};
    if (n)
        memcpy(layout.parts, parts, n * sizeof *parts);
    mem_push(device->layouts, device->layouts_n, device->layouts_room, layout);
}

#define INSTANCES_MAX 16 /* of one device at one stamp; NVIDIA allows 7 */

/* A strip's stamps, which are needed after its columns were taken. */
struct stamps {
    time_ms *t;
    size_t n;
};

static struct stamps *copy_stamps(const struct device *device)
{
    struct stamps *out = mem_alloc((device->strips_n + 1) * sizeof *out);
    for (size_t i = 0; i < device->strips_n; i++) {
        out[i].n = device->strips[i]->n;
        out[i].t = mem_alloc((out[i].n + 1) * sizeof(time_ms));
        memcpy(out[i].t, device->strips[i]->t, out[i].n * sizeof(time_ms));
    }
    return out;
}

/* Walk the strips of all stamps together: where the device is and how it is split, at each stamp at
 * which it said anything. sample_of: index of the sample at own row, SIZE_MAX where it said
 * nothing. */
static void walk_stamps(struct device *device, const struct facts *facts,
                        const struct meaning *meanings, const struct stamps *stamps,
                        const size_t *sample_of)
{
    size_t n = device->strips_n;
    size_t *next = mem_zalloc(n, sizeof *next);
    for (size_t row = 0; row < device->own.n; row++) {
        time_ms stamp = device->own.t[row];
        const struct meaning *place = NULL;
        struct layout_part parts[INSTANCES_MAX];
        size_t parts_n = 0;
        for (size_t i = 0; i < n; i++) {
            if (next[i] >= stamps[i].n || stamps[i].t[next[i]] != stamp)
                continue;
            next[i]++;
            place = &meanings[i];
            size_t k = 0;
            while (k < parts_n && parts[k].id != meanings[i].instance)
                k++;
            if (meanings[i].instance == NAME_NONE || k == INSTANCES_MAX)
                continue;
            parts[k].id = meanings[i].instance;
            parts[k].profile = meanings[i].profile;
            parts_n += k == parts_n;
        }
        if (!place || sample_of[row] == SIZE_MAX)
            continue;
        for (size_t i = 1; i < parts_n; i++)
            for (size_t k = i;
                 k > 0 && instance_order(names_text(facts->names, parts[k].id),
                                         names_text(facts->names, parts[k - 1].id)) < 0;
                 k--) {
                struct layout_part swap = parts[k];
                parts[k] = parts[k - 1];
                parts[k - 1] = swap;
            }
        for (size_t i = 0; i < parts_n; i++)
            for (size_t k = 0; k < device->instances_n; k++)
                if (device->instances[k].id == parts[i].id)
                    parts[i].instance = (uint32_t)k;
        add_layout(device, device_sample_start(device, facts->settings, sample_of[row]), parts,
                   parts_n);
        name_t model = place->strip->label[GPU_LABEL_MODEL];
        struct place fresh = {sample_of[row], place->node, place->index, model};
        struct place *last = device->places_n ? &device->places[device->places_n - 1] : NULL;
        if (!last || last->node != fresh.node || last->index != fresh.index ||
            last->model != fresh.model)
            mem_push(device->places, device->places_n, device->places_room, fresh);
    }
    free(next);
}

int64_t instance_order(struct str a, struct str b)
{
    return a.n != b.n ? (int64_t)a.n - (int64_t)b.n : str_cmp(a, b);
}

/* ------------------------------------------------------------------ all of it */

static struct timeline *line_of(struct device *device, name_t instance)
{
    for (size_t i = 0; i < device->instances_n; i++)
        if (device->instances[i].id == instance)
            return &device->instances[i].line;
    struct instance fresh = {.id = instance};
    mem_push(device->instances, device->instances_n, device->instances_room, fresh);
    return &device->instances[device->instances_n - 1].line;
}

static void make_lines(struct device *device, const struct facts *facts,
                       const struct meaning *meanings)
{
    uint32_t *which = mem_alloc((device->strips_n + 1) * sizeof *which);
    for (size_t i = 0; i < device->strips_n; i++)
        if (meanings[i].instance != NAME_NONE)
            line_of(device, meanings[i].instance);
    for (size_t k = 0; k <= device->instances_n; k++) {
        name_t instance = k ? device->instances[k - 1].id : NAME_NONE;
        struct timeline *line = k ? &device->instances[k - 1].line : &device->own;
        size_t n = 0;
        for (size_t i = 0; i < device->strips_n; i++)
            if (meanings[i].instance == instance)
                which[n++] = (uint32_t)i;
        if (n)
            make_line(device, facts, line, meanings, which, n);
    }
    free(which);
}

/* Percent or ratio, now that all values of the exporter are known. (inputs, section 1) */
static void settle_unit(struct device *device, struct strip *strip, bool percent)
{
    for (size_t i = 0; strip->scaled && i < strip->n; i++) {
        int64_t *v = &strip->column[SIGNAL_UTIL][i];
        *v = *v == SIGNAL_ABSENT ? *v : *v * 100;
    }
    device->guessed |= strip->scaled;
    for (int s = 0; s < SIGNAL_COUNT; s++) {
        if (!(strip->ratio_metric & 1u << s) || !strip->column[s])
            continue;
        for (size_t i = 0; i < strip->n; i++) {
            int64_t v = strip->column[s][i];
            if (v == SIGNAL_ABSENT)
                continue;
            if (percent)
                strip->column[s][i] = (v + 50) / 100;
            else if (v > 1000000000)
                strip->column[s][i] = SIGNAL_ABSENT;
        }
        device->guessed |= percent;
    }
}

void device_make_rows(struct device *device, const struct facts *facts)
{
    struct meaning *meanings = mem_alloc((device->strips_n + 1) * sizeof *meanings);
    for (size_t i = 0; i < device->strips_n; i++) {
        struct strip *strip = device->strips[i];
        settle_unit(device, strip, strip->percent);
        device->rejected += strip->rejected;
        meanings[i] = meaning_of(device, facts, strip);
    }
    bool still = device->instances_n == 0; /* one place all the time, never split */
    for (size_t i = 0; i < device->strips_n; i++)
        still =
            still && meanings[i].instance == NAME_NONE && meanings[i].node == meanings[0].node &&
            meanings[i].index == meanings[0].index &&
            meanings[i].strip->label[GPU_LABEL_MODEL] == meanings[0].strip->label[GPU_LABEL_MODEL];
    struct stamps *stamps = still ? NULL : copy_stamps(device);
    make_lines(device, facts, meanings);
    if (device->instances_n)
        widen_own(device);
    device_clean(device, facts);
    size_t *sample_of = still ? NULL : mem_alloc((device->own.n + 1) * sizeof *sample_of);
    device_find_samples(device, facts, sample_of);
    if (still && device->samples_n) {
        add_layout(device, TIME_MIN, NULL, 0);
        struct place only = {0, meanings[0].node, meanings[0].index,
                             meanings[0].strip->label[GPU_LABEL_MODEL]};
        mem_push(device->places, device->places_n, device->places_room, only);
    } else if (!still) {
        walk_stamps(device, facts, meanings, stamps, sample_of);
    }
    free(sample_of);
    for (size_t i = 0; stamps && i < device->strips_n; i++)
        free(stamps[i].t);
    free(stamps);
    for (size_t i = 0; i < device->strips_n; i++) /* their rows are the device's now */
        strip_clear(device->strips[i]);
    free(meanings);
}
