/* Nodes and their lives (semantics, sections 3 and 6).
 *
 * A life is one machine under a name: it ends where creation time, provider id or instance type
 * differ from the record before. Records say the same for days, so stamps are not walked one by
 * one: a stretch in which no record of the node changes is one step. */
#include "fleet/node_lives.h"

#include <stdlib.h>

#include "fleet/resources.h"

struct node *facts_find_node(struct facts *facts, name_t cluster, name_t name)
{
    uint32_t at = idmap_get(&facts->node_by_name, IDKEY(cluster, name));
    return at == IDMAP_NONE ? NULL : &facts->nodes[at];
}

struct node *facts_node(struct facts *facts, name_t cluster, name_t name)
{
    bool fresh;
    uint32_t at =
        idmap_add(&facts->node_by_name, IDKEY(cluster, name), (uint32_t)facts->nodes_n, &fresh);
    if (fresh) {
        struct node node = {.cluster = cluster, .name = name};
        mem_push(facts->nodes, facts->nodes_n, facts->nodes_room, node);
    }
    return &facts->nodes[at];
}

/* ------------------------------------------------------------------ records of one node */

struct record_list {
    const struct record **at;
    size_t n, room;
};
enum node_record {
    INFO,
    CREATED,
    LABELS,
    UNSCHEDULABLE,
    CAPACITY,
    ALLOCATABLE,
    TAINT,
    NODE_RECORDS
};
static const enum record_metric metric_of[NODE_RECORDS] = {
    RECORD_NODE_INFO,     RECORD_NODE_CREATED,     RECORD_NODE_LABELS, RECORD_NODE_UNSCHEDULABLE,
    RECORD_NODE_CAPACITY, RECORD_NODE_ALLOCATABLE, RECORD_NODE_TAINT};

struct node_records {
    struct record_list of[NODE_RECORDS];
};

/* What the records of a list say at t: the record and run that have a sample there, NULL if none;
 * *ret_until is the last stamp, of those at distance dt from t, for which the answer is the same.
 */
static const struct run *said_at(const struct record_list *list, time_ms t, time_ms dt,
                                 const struct record **ret_record, time_ms *ret_until)
{
    time_ms until = TIME_MAX;
    for (size_t i = list->n; i-- > 0;) { /* the last that says it decides */
        const struct record *record = list->at[i];
        size_t low = 0, high = record->n;
        while (low < high) {
            size_t mid = (low + high) / 2;
            if (record->runs[mid].t0 <= t)
                low = mid + 1;
            else
                high = mid;
        }
        if (low < record->n && record->runs[low].t0 - 1 < until)
            until = record->runs[low].t0 - 1;
        if (low == 0)
            continue;
        const struct run *run = &record->runs[low - 1];
        time_ms last = run_last(run);
        if (t > last)
            continue;
        bool there = run->n == 1 ? t == run->t0 : (t - run->t0) % run->dt == 0;
        if (there) {
            time_ms same = run->n == 1 || run->dt != dt ? t : last;
            *ret_until = same < until ? same : until;
            *ret_record = record;
            return run;
        }
        if (run->n == 1 || run->dt != dt)
            until = t; /* stamps between its own: no two alike are promised */
        else if (last < until)
            until = last;
    }
    *ret_record = NULL;
    *ret_until = until;
    return NULL;
}

static name_t label_of(const struct facts *facts, const struct record *record,
                       const char *const *names)
{
    for (; *names; names++) {
        name_t value = facts_label(facts, record, *names);
        if (value != NAME_NONE)
            return value;
    }
    return NAME_NONE;
}

static const char *const instance_type_names[] = {"label_node_kubernetes_io_instance_type",
                                                  "label_beta_kubernetes_io_instance_type", NULL};

static struct who who_at(const struct facts *facts, const struct node_records *records, time_ms t,
                         time_ms dt, time_ms *ret_until)
{
    struct who who = {TIME_MIN, NAME_NONE, NAME_NONE};
    const struct record *record;
    const struct run *run = said_at(&records->of[CREATED], t, dt, &record, ret_until);
    if (run)
        who.created = time_of_seconds(run->v);
    time_ms until;
    if (said_at(&records->of[INFO], t, dt, &record, &until))
        who.provider_id = facts_label(facts, record, "provider_id");
    *ret_until = until < *ret_until ? until : *ret_until;
    if (said_at(&records->of[LABELS], t, dt, &record, &until))
        who.instance_type = label_of(facts, record, instance_type_names);
    *ret_until = until < *ret_until ? until : *ret_until;
    return who;
}

static bool same_machine(const struct life *life, struct who who)
{
    bool created =
        life->created == TIME_MIN || who.created == TIME_MIN || life->created == who.created;
    bool provider = life->provider_id == NAME_NONE || who.provider_id == NAME_NONE ||
                    life->provider_id == who.provider_id;
    bool type = life->instance_type == NAME_NONE || who.instance_type == NAME_NONE ||
                life->instance_type == who.instance_type;
    return created && provider && type;
}

struct life *node_see(struct node *node, struct who who, time_ms start, time_ms first, time_ms last)
{
    struct life *life = node->lives_n ? &node->lives[node->lives_n - 1] : NULL;
    if (!life || !same_machine(life, who)) {
        time_ms began = who.created != TIME_MIN ? who.created : start;
        struct life fresh = {.up = life && life->down > began ? life->down : began,
                             .first = first,
                             .created = who.created,
                             .provider_id = who.provider_id,
                             .instance_type = who.instance_type};
        mem_push(node->lives, node->lives_n, node->lives_room, fresh);
        life = &node->lives[node->lives_n - 1];
    }
    life->down = life->last = last;
    return life;
}

/* A record of the node while its stamps are walked. */
struct walker {
    const struct record *record;
    size_t run;
    uint32_t at; /* sample of the run */
};

static time_ms walker_stamp(const struct walker *walker)
{
    const struct run *run = &walker->record->runs[walker->run];
    return run->t0 + run->dt * (time_ms)walker->at;
}

/* The last stamp of the run in hand that is at or before `until`; the one in hand at least. */
static time_ms walker_until(const struct walker *walker, time_ms until)
{
    const struct run *run = &walker->record->runs[walker->run];
    time_ms t = walker_stamp(walker), left = (time_ms)(run->n - 1 - walker->at), steps = 0;
    if (until > t && run->dt > 0)
        steps = (until - t) / run->dt < left ? (until - t) / run->dt : left;
    return t + run->dt * steps;
}

/* Beyond `until`, which is in the run in hand; false: no stamp is left. */
static bool walker_pass(struct walker *walker, time_ms until)
{
    const struct run *run = &walker->record->runs[walker->run];
    time_ms steps = run->dt > 0 ? (until - walker_stamp(walker)) / run->dt + 1 : 1;
    if (steps < (time_ms)(run->n - walker->at)) {
        walker->at += (uint32_t)steps;
        return true;
    }
    walker->at = 0;
    return ++walker->run < walker->record->n;
}

struct walk {
    struct facts *facts;
    const struct node_records *records;
    struct walker *open; /* records that have begun and have stamps left */
    size_t open_n, begun;
};

/* Who the machine is at the walker's stamp, and the last stamp of it that says the same. */
static time_ms who_of(const struct walk *walk, const struct walker *walker, struct who *ret)
{
    const struct run *run = &walker->record->runs[walker->run];
    time_ms until;
    *ret = who_at(walk->facts, walk->records, walker_stamp(walker), run->dt, &until);
    return walker_until(walker, until);
}

/* Open what begins at or before t. */
static void open_until(struct walk *walk, time_ms t)
{
    const struct record_list *info = &walk->records->of[INFO]; /* in order of first stamp */
    while (walk->begun < info->n && record_first(info->at[walk->begun]) <= t)
        walk->open[walk->open_n++] = (struct walker){info->at[walk->begun++], 0, 0};
}

static const struct walker *earliest(const struct walk *walk)
{
    const struct walker *first = &walk->open[0];
    for (size_t i = 1; i < walk->open_n; i++)
        if (walker_stamp(&walk->open[i]) < walker_stamp(first))
            first = &walk->open[i];
    return first;
}

/* One stretch in which all records say the same: from the earliest stamp to where one of them says
 * something else. Copies of a record (two kube-state-metrics) are walked together. */
static void walk_stretch(struct walk *walk, struct node *node)
{
    const struct walker *first = earliest(walk);
    time_ms from = walker_stamp(first), last = from;
    struct who who, other;
    time_ms end = who_of(walk, first, &who);
    open_until(walk, end);
    for (size_t i = 0; i < walk->open_n; i++) {
        time_ms t = walker_stamp(&walk->open[i]);
        if (t > end)
            continue;
        time_ms same = who_of(walk, &walk->open[i], &other);
        bool differs = other.created != who.created || other.provider_id != who.provider_id ||
                       other.instance_type != who.instance_type;
        same = differs ? t - 1 : same;
        end = same < end ? same : end;
    }
    size_t kept = 0;
    for (size_t i = 0; i < walk->open_n; i++) {
        struct walker walker = walk->open[i];
        if (walker_stamp(&walker) <= end) {
            time_ms upto = walker_until(&walker, end);
            last = upto > last ? upto : last;
            if (!walker_pass(&walker, upto))
                continue;
        }
        walk->open[kept++] = walker;
    }
    walk->open_n = kept;
    node_see(node, who, watch_start(node->watch, walk->facts->settings, from), from, last);
}

static void walk_lives(struct facts *facts, struct node *node, const struct node_records *records)
{
    const struct record_list *info = &records->of[INFO];
    struct walk walk = {.facts = facts, .records = records};
    walk.open = mem_alloc((info->n + 1) * sizeof *walk.open);
    while (walk.open_n || walk.begun < info->n) {
        if (!walk.open_n)
            open_until(&walk, record_first(info->at[walk.begun]));
        open_until(&walk, walker_stamp(earliest(&walk)));
        walk_stretch(&walk, node);
    }
    free(walk.open);
    struct life *newest = node->lives_n ? &node->lives[node->lives_n - 1] : NULL;
    if (newest && node->watch->n && newest->last == node->watch->stamps[node->watch->n - 1])
        newest->down += facts->settings->node_break_ms; /* it is still there */
}

/* ------------------------------------------------------------------ cordons and shortages */

static void read_cordons(struct facts *facts, struct node *node, const struct record_list *list)
{
    for (size_t i = 0; i < list->n; i++)
        for (size_t k = 0; k < list->at[i]->n; k++) {
            const struct run *run = &list->at[i]->runs[k];
            for (uint32_t j = 0; run->v == 1 && j < run->n; j++) {
                time_ms t = run->t0 + run->dt * (time_ms)j;
                spans_push(&node->cordoned, watch_start(node->watch, facts->settings, t), t);
            }
        }
    spans_normalise(&node->cordoned);
}

static void read_taints(struct facts *facts, struct node *node, const struct record_list *list)
{
    for (size_t i = 0; i < list->n; i++) {
        const struct record *record = list->at[i];
        facts_stamps(facts, record, &facts_watch(facts, node->cluster)->taints_known);
        if (taint_keeps_away(names_text(facts->names, facts_label(facts, record, "key")),
                             names_text(facts->names, facts_label(facts, record, "effect"))))
            facts_stamps(facts, record, &node->tainted);
    }
    spans_normalise(&node->tainted);
}

static bool is_count(double v)
{
    return v >= 0 && v <= RESOURCE_COUNT_MAX;
}

#define NODE_RESOURCES_MAX 64 /* that count GPUs of a node: a dozen MIG profiles and a few more */

/* The resource's place in the node's capacity, made where it is not there; NULL: too many. */
struct resource_max *node_capacity_of(struct node *node, name_t resource)
{
    for (size_t i = 0; i < node->capacity_n; i++)
        if (node->capacity[i].resource == resource)
            return &node->capacity[i];
    if (node->capacity_n == NODE_RESOURCES_MAX)
        return NULL;
    struct resource_max fresh = {resource, 0};
    mem_push(node->capacity, node->capacity_n, node->capacity_room, fresh);
    return &node->capacity[node->capacity_n - 1];
}

void node_add_capacity(struct node *node, name_t resource, int64_t count)
{
    struct resource_max *max = node_capacity_of(node, resource);
    if (max && max->count < count)
        max->count = count;
}

void node_add_shortage(struct node *node, struct span span, int64_t missing, name_t resource)
{
    for (size_t i = node->shortages_n; i-- > 0;) {
        struct shortage *old = &node->shortages[i];
        if (old->resource == resource) {
            if (old->span.to == span.from && old->missing == missing) {
                old->span.to = span.to;
                return;
            }
            break;
        }
    }
    struct shortage fresh = {span, missing, resource};
    mem_push(node->shortages, node->shortages_n, node->shortages_room, fresh);
}

/* Times of a run of capacity at which allocatable says less. */
static void find_shortages(struct facts *facts, struct node *node, const struct run *run,
                           const struct record_list *allocatable, name_t resource)
{
    for (uint32_t j = 0; j < run->n;) {
        time_ms t = run->t0 + run->dt * (time_ms)j, until;
        const struct record *record;
        const struct run *said = said_at(allocatable, t, run->dt, &record, &until);
        int64_t missing = said && is_count(said->v) ? (int64_t)(run->v - said->v) : 0;
        if (missing > 0) {
            struct span span = {watch_start(node->watch, facts->settings, t), t};
            node_add_shortage(node, span, missing, resource);
            j++;
            continue;
        }
        time_ms steps = run->dt > 0 && until > t ? (until - t) / run->dt : 0;
        j += (uint32_t)(steps < run->n ? steps : run->n) + 1;
    }
}

static void read_capacity(struct facts *facts, struct node *node,
                          const struct node_records *records)
{
    const struct record_list *capacity = &records->of[CAPACITY];
    struct record_list allocatable = {0};
    for (size_t i = 0; i < capacity->n; i++) {
        name_t resource = facts_label(facts, capacity->at[i], "resource");
        if (!node_capacity_of(node, resource))
            continue;
        allocatable.n = 0;
        for (size_t k = 0; k < records->of[ALLOCATABLE].n; k++)
            if (facts_label(facts, records->of[ALLOCATABLE].at[k], "resource") == resource)
                mem_push(allocatable.at, allocatable.n, allocatable.room,
                         records->of[ALLOCATABLE].at[k]);
        for (size_t k = 0; k < capacity->at[i]->n; k++) {
            const struct run *run = &capacity->at[i]->runs[k];
            if (!is_count(run->v))
                continue;
            node_add_capacity(node, resource, (int64_t)run->v);
            find_shortages(facts, node, run, &allocatable, resource);
        }
    }
    free(allocatable.at);
}

static int by_time_and_resource(const void *a, const void *b, void *names)
{
    const struct shortage *x = a, *y = b;
    if (x->span.from != y->span.from)
        return x->span.from < y->span.from ? -1 : 1;
    if (x->span.to != y->span.to)
        return x->span.to < y->span.to ? -1 : 1;
    if (x->missing != y->missing)
        return x->missing < y->missing ? -1 : 1;
    return str_cmp(names_text(names, x->resource), names_text(names, y->resource));
}

/* ------------------------------------------------------------------ what a life says of itself */

/* The record of the list that is there in the life, the one with the latest last stamp. */
static const struct record *record_of_life(const struct record_list *list, const struct life *life)
{
    const struct record *best = NULL;
    for (size_t i = 0; i < list->n; i++) {
        const struct record *record = list->at[i];
        if (record_last(record) >= life->first && record_first(record) <= life->last &&
            (!best || record_last(record) >= record_last(best)))
            best = record;
    }
    return best;
}

static void describe_life(struct facts *facts, struct life *life,
                          const struct node_records *records)
{
    const struct record *labels = record_of_life(&records->of[LABELS], life);
    if (labels)
        life->labels =
            facts_labels(facts, labels->labels, labels->labels_n, STR("label_"), &life->labels_n);
    life->attributes = node_attributes_read(life->labels, life->labels_n);
    const struct record *info = record_of_life(&records->of[INFO], life);
    if (info)
        life->cloud =
            cloud_of_provider(names_text(facts->names, facts_label(facts, info, "provider_id")));
}

/* ------------------------------------------------------------------ all nodes */

static int by_first(const void *a, const void *b)
{
    const struct record *x = *(const struct record *const *)a;
    const struct record *y = *(const struct record *const *)b;
    if (record_first(x) != record_first(y))
        return record_first(x) < record_first(y) ? -1 : 1;
    return (record_last(x) > record_last(y)) - (record_last(x) < record_last(y));
}

static void build_node(struct facts *facts, struct node *node, struct node_records *records)
{
    for (int m = 0; m < NODE_RECORDS; m++)
        if (records->of[m].n)
            qsort(records->of[m].at, records->of[m].n, sizeof *records->of[m].at, by_first);
    node->recorded = records->of[INFO].n > 0;
    node->watch = facts_watch(facts, node->cluster);
    walk_lives(facts, node, records);
    read_cordons(facts, node, &records->of[UNSCHEDULABLE]);
    read_capacity(facts, node, records);
    read_taints(facts, node, &records->of[TAINT]);
    for (size_t i = 0; i < node->lives_n; i++)
        describe_life(facts, &node->lives[i], records);
    for (size_t i = 0; i < records->of[INFO].n; i++) {
        name_t ip = facts_label(facts, records->of[INFO].at[i], "internal_ip");
        if (ip != NAME_NONE)
            idmap_set(&facts->address, IDKEY(node->cluster, ip), node->name);
    }
    if (node->recorded)
        idmap_set(&facts->recorded_cluster, IDKEY(node->cluster), 1);
}

void facts_read_nodes(struct facts *facts, struct intake *intake, struct span hours)
{
    struct node_records *records = NULL;
    size_t n = 0, room = 0;
    for (size_t i = 0; i < intake->records_n; i++) {
        const struct record *record = intake->records[i];
        int m = 0;
        while (m < NODE_RECORDS && metric_of[m] != record->metric)
            m++;
        name_t name = m < NODE_RECORDS ? facts_label(facts, record, "node") : NAME_NONE;
        if (name == NAME_NONE)
            continue;
        struct node *node = facts_node(facts, facts_label(facts, record, "cluster"), name);
        size_t at = (size_t)(node - facts->nodes);
        for (; n <= at; n++) {
            mem_reserve(records, n, room, 1);
            records[n] = (struct node_records){0};
        }
        struct record_list *list = &records[at].of[m];
        mem_push(list->at, list->n, list->room, record);
    }
    for (size_t i = 0; i < n; i++) {
        build_node(facts, &facts->nodes[i], &records[i]);
        for (int m = 0; m < NODE_RECORDS; m++)
            free(records[i].of[m].at);
    }
    free(records);
    facts_read_observed(facts, intake);
    for (size_t i = 0; i < facts->watches_n; i++)
        spans_normalise(&facts->watches[i]->taints_known);
    for (size_t i = 0; i < intake->nodes_n; i++)
        facts_read_node_object(facts, &intake->nodes[i], hours);
    for (size_t i = 0; i < facts->nodes_n; i++)
        if (facts->nodes[i].shortages_n)
            qsort_r(facts->nodes[i].shortages, facts->nodes[i].shortages_n,
                    sizeof *facts->nodes[i].shortages, by_time_and_resource, facts->names);
}

void facts_life_from_samples(struct facts *facts, struct node *node, const time_ms *t,
                             const time_ms *start, size_t n)
{
    node->watch = facts_watch(facts, node->cluster);
    for (size_t i = 0; i < n; i++) {
        struct life *life = node->lives_n ? &node->lives[node->lives_n - 1] : NULL;
        if (!life || t[i] - life->last > facts->settings->node_break_ms) {
            struct life fresh = {.up = life && life->down > start[i] ? life->down : start[i],
                                 .first = t[i],
                                 .created = TIME_MIN,
                                 .attributes = {.capacity = CAPACITY_UNKNOWN},
                                 .flags = FLAG_UP_SAMPLES};
            mem_push(node->lives, node->lives_n, node->lives_room, fresh);
            life = &node->lives[node->lives_n - 1];
        }
        life->down = life->last = t[i];
    }
}
