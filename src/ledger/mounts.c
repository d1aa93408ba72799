/* Where devices are (semantics, section 3): each device's samples name a node; between samples it
 * fills that node's life, unless it was elsewhere before or after, or another UUID has its index
 * there. And where labels show pods. */
#include <stdlib.h>

#include "ledger/holders.h"

/* ------------------------------------------------------------------ nodes that no record names */

struct stamp {
    time_ms t, start;
};
struct stamp_list {
    struct stamp *at;
    size_t n, room;
};

static int by_stamp(const void *a, const void *b)
{
    const struct stamp *x = a, *y = b;
    if (x->t != y->t)
        return x->t < y->t ? -1 : 1;
    return (x->start > y->start) - (x->start < y->start);
}

static void give_life(struct facts *facts, struct node *node, struct stamp_list *stamps)
{
    qsort(stamps->at, stamps->n, sizeof *stamps->at, by_stamp);
    time_ms *t = mem_alloc(stamps->n * sizeof *t), *start = mem_alloc(stamps->n * sizeof *start);
    size_t n = 0;
    for (size_t i = 0; i < stamps->n; i++)
        if (n == 0 || stamps->at[i].t != t[n - 1]) { /* the earliest start of a stamp */
            t[n] = stamps->at[i].t;
            start[n++] = stamps->at[i].start;
        }
    facts_life_from_samples(facts, node, t, start, n);
    free(t);
    free(start);
}

static size_t place_end(const struct device *device, size_t place)
{
    return place + 1 < device->places_n ? device->places[place + 1].first : device->samples_n;
}

/* Are the stamps of this place the first ones of the list? */
static bool same_stamps(const struct stamp_list *list, const struct device *device, size_t place)
{
    size_t first = device->places[place].first, n = place_end(device, place) - first;
    if (n > list->n || first != 0)
        return false;
    for (size_t i = 0; i < n; i++)
        if (list->at[i].t != device->sample_t[i])
            return false;
    return true;
}

static void find_lives(struct facts *facts, const struct devices *devices)
{
    struct stamp_list *lists = mem_zalloc(facts->nodes_n + 1, sizeof *lists);
    for (size_t i = 0; i < devices->n; i++) {
        const struct device *device = devices->at[i];
        for (size_t p = 0; p < device->places_n; p++) {
            struct node *node = facts_find_node(facts, device->cluster, device->places[p].node);
            if (node->recorded || !node->in_hand)
                continue;
            struct stamp_list *list = &lists[node - facts->nodes];
            if (same_stamps(list, device, p))
                continue; /* the GPUs of a node come in one scrape */
            for (size_t s = device->places[p].first; s < place_end(device, p); s++) {
                struct stamp stamp = {device->sample_t[s],
                                      device_sample_start(device, facts->settings, s)};
                mem_push(list->at, list->n, list->room, stamp);
            }
        }
    }
    for (size_t i = 0; i < facts->nodes_n; i++) {
        if (lists[i].n)
            give_life(facts, &facts->nodes[i], &lists[i]);
        free(lists[i].at);
    }
    free(lists);
}

/* ------------------------------------------------------------------ stays and mounts */

struct stay {
    struct node *node;
    struct life *life; /* NULL: of a node that is not in hand */
    int64_t index;
    time_ms first, last;
};
struct stay_list {
    struct stay *at;
    size_t n, room;
};

/* The life that a sample at t belongs to: the last that began before it, else the first. */
static size_t life_of(const struct node *node, time_ms t)
{
    size_t low = 0, high = node->lives_n; /* lives are in order of up */
    while (low < high) {
        size_t mid = (low + high) / 2;
        if (node->lives[mid].up < t)
            low = mid + 1;
        else
            high = mid;
    }
    return low ? low - 1 : 0;
}

static void find_stays(struct facts *facts, const struct device *device, struct stay_list *stays)
{
    for (size_t p = 0; p < device->places_n; p++) {
        const struct place *place = &device->places[p];
        struct node *node = facts_find_node(facts, device->cluster, place->node);
        if (!node->in_hand && !node->recorded) { /* it lived where its samples are */
            struct stay elsewhere = {.node = node};
            mem_push(stays->at, stays->n, stays->room, elsewhere);
            continue;
        }
        if (!node->lives_n)
            continue;
        for (size_t s = place->first; s < place_end(device, p); s++) {
            struct life *life = &node->lives[life_of(node, device->sample_t[s])];
            struct stay *last = stays->n ? &stays->at[stays->n - 1] : NULL;
            if (last && last->life == life) {
                last->last = device->sample_t[s];
            } else {
                struct stay stay = {node, life, place->index,
                                    device_sample_start(device, facts->settings, s),
                                    device->sample_t[s]};
                mem_push(stays->at, stays->n, stays->room, stay);
            }
            if (node->lives_n == 1) { /* one life: the rest of the place is the same stay */
                stays->at[stays->n - 1].last = device->sample_t[place_end(device, p) - 1];
                break;
            }
        }
    }
}

static void mount_device(struct facts *facts, struct device *device)
{
    struct stay_list stays = {0};
    find_stays(facts, device, &stays);
    for (size_t i = 0; i < stays.n; i++) {
        const struct stay *stay = &stays.at[i];
        bool same_before = i == 0 || stays.at[i - 1].node == stay->node;
        bool same_after = i + 1 == stays.n || stays.at[i + 1].node == stay->node;
        struct life *life = stay->life;
        if (!stay->node->in_hand)
            continue;
        struct mount mount = {.device = device,
                              .index = stay->index,
                              .since = same_before ? life->up : stay->first,
                              .until = same_after ? life->down : stay->last,
                              .first = stay->first,
                              .last = stay->last};
        life->mounts = mem_realloc(life->mounts, life->mounts_n + 1, sizeof mount);
        life->mounts[life->mounts_n++] = mount;
    }
    free(stays.at);
}

static int by_index_and_first(const void *a, const void *b)
{
    const struct mount *x = a, *y = b;
    if (x->index != y->index)
        return x->index < y->index ? -1 : 1;
    return (x->first > y->first) - (x->first < y->first);
}

static int by_index_and_uuid(const void *a, const void *b, void *names)
{
    const struct mount *x = a, *y = b;
    if (x->index != y->index)
        return x->index < y->index ? -1 : 1;
    return str_cmp(names_text(names, x->device->uuid), names_text(names, y->device->uuid));
}

static void settle_mounts(struct facts *facts, struct life *life)
{
    if (!life->mounts_n)
        return;
    qsort(life->mounts, life->mounts_n, sizeof *life->mounts, by_index_and_first);
    for (size_t i = 1; i < life->mounts_n; i++) {
        struct mount *left = &life->mounts[i - 1], *right = &life->mounts[i];
        if (left->index != right->index || left->last > right->first)
            continue;
        left->until = left->last < left->until ? left->last : left->until;
        right->since = right->first > right->since ? right->first : right->since;
    }
    qsort_r(life->mounts, life->mounts_n, sizeof *life->mounts, by_index_and_uuid, facts->names);
}

/* ------------------------------------------------------------------ sightings */

static struct seen_place *place_of(struct seen_list *list, const struct device *device,
                                   const struct timeline *line, name_t instance, name_t container)
{
    for (size_t i = list->n; i-- > 0 && list->at[i].line == line;) /* a line is seen at once */
        if (list->at[i].container == container)
            return &list->at[i];
    struct seen_place fresh = {
        .device = device, .line = line, .instance = instance, .container = container};
    mem_push(list->at, list->n, list->room, fresh);
    return &list->at[list->n - 1];
}

static void see_line(struct sightings *sightings, const struct device *device,
                     const struct timeline *line, name_t instance)
{
    for (size_t r = 0; r < line->labels_n; r++)
        for (size_t k = 0; k < line->labels[r].set->n; k++) {
            const struct named *named = &line->labels[r].set->at[k];
            struct idkey key = IDKEY(device->cluster, named->namespace, named->pod);
            bool fresh;
            uint32_t at = idmap_add(&sightings->by_pod, key, (uint32_t)sightings->n, &fresh);
            struct seen_list none = {0};
            if (fresh)
                mem_push(sightings->lists, sightings->n, sightings->room, none);
            struct seen_place *place =
                place_of(&sightings->lists[at], device, line, instance, named->container);
            mem_push(place->runs, place->runs_n, place->runs_room, (uint32_t)r);
        }
}

void holders_prepare(struct facts *facts, struct devices *devices, struct sightings *sightings)
{
    find_lives(facts, devices);
    for (size_t i = 0; i < devices->n; i++)
        mount_device(facts, devices->at[i]);
    for (size_t i = 0; i < facts->nodes_n; i++)
        for (size_t k = 0; facts->nodes[i].in_hand && k < facts->nodes[i].lives_n; k++)
            settle_mounts(facts, &facts->nodes[i].lives[k]);
    for (size_t i = 0; i < devices->n; i++) {
        const struct device *device = devices->at[i];
        see_line(sightings, device, &device->own, NAME_NONE);
        for (size_t k = 0; k < device->instances_n; k++)
            see_line(sightings, device, &device->instances[k].line, device->instances[k].id);
    }
}

void sightings_release(struct sightings *sightings)
{
    for (size_t i = 0; i < sightings->n; i++) {
        for (size_t k = 0; k < sightings->lists[i].n; k++)
            free(sightings->lists[i].at[k].runs);
        free(sightings->lists[i].at);
    }
    free(sightings->lists);
    idmap_release(&sightings->by_pod);
    *sightings = (struct sightings){0};
}
