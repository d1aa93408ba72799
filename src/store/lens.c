#include "store/lens.h"

#include <stdlib.h>

#include "store/internal.h"

void store_set_lens(struct store *store, struct store_lens *lens)
{
    invariant(store->mode == STORE_READ && store->reading_depth == 0);
    store->lens = lens;
}

void store_lens_release(struct store_lens *lens)
{
    free(lens->seen);
    lens->seen = NULL;
    lens->seen_n = lens->seen_mask = 0;
}

static bool is_in(const name_t *names, size_t n, name_t name)
{
    for (size_t i = 0; i < n; i++)
        if (names[i] == name)
            return true;
    return false;
}

bool lens_passes(const struct store_lens *lens, const struct row_key *key,
                 const struct row_facts *facts)
{
    if (!lens)
        return true;
    return key->pod != NAME_NONE && (is_in(lens->teams, lens->teams_n, facts->owner) ||
                                     is_in(lens->namespaces, lens->namespaces_n, key->namespace));
}

bool lens_passes_namespace(const struct store_lens *lens, name_t namespace)
{
    return !lens || is_in(lens->namespaces, lens->namespaces_n, namespace);
}

static uint64_t workload_hash(name_t cluster, name_t namespace, name_t workload)
{
    uint64_t hash = ((uint64_t)cluster << 32 | namespace) * UINT64_C(0x9e3779b97f4a7c15);
    hash = (hash ^ hash >> 29 ^ workload) * UINT64_C(0xbf58476d1ce4e5b9);
    hash ^= hash >> 32;
    return hash ? hash : 1;
}

static size_t slot_of(const struct store_lens *lens, uint64_t hash)
{
    size_t at = hash & lens->seen_mask;
    while (lens->seen[at] && lens->seen[at] != hash)
        at = (at + 1) & lens->seen_mask;
    return at;
}

static void grow(struct store_lens *lens)
{
    struct store_lens old = *lens;
    lens->seen_mask = old.seen_mask ? old.seen_mask * 2 + 1 : 255;
    lens->seen = mem_zalloc(lens->seen_mask + 1, sizeof *lens->seen);
    for (size_t i = 0; old.seen && i <= old.seen_mask; i++)
        if (old.seen[i])
            lens->seen[slot_of(lens, old.seen[i])] = old.seen[i];
    free(old.seen);
}

void lens_saw(struct store_lens *lens, const struct row_key *key, const struct row_facts *facts)
{
    if (lens->seen_n * 2 >= lens->seen_mask)
        grow(lens);
    uint64_t hash = workload_hash(key->cluster, key->namespace, facts->workload);
    size_t at = slot_of(lens, hash);
    lens->seen_n += !lens->seen[at];
    lens->seen[at] = hash;
}

bool lens_passes_workload(const struct store_lens *lens, const struct workload_hour *hour)
{
    if (lens_passes_namespace(lens, hour->namespace))
        return true;
    uint64_t hash = workload_hash(hour->cluster, hour->namespace, hour->workload);
    return lens->seen && lens->seen[slot_of(lens, hash)];
}

void lens_cut(struct store_lens *lens, struct row_batch *batch)
{
    size_t n = 0, hours_n = 0;
    for (size_t i = 0; i < batch->rows_n; i++) {
        const struct row *row = &batch->rows[i];
        if (!lens_passes(lens, &row->key, &row->facts))
            continue;
        lens_saw(lens, &row->key, &row->facts);
        batch->rows[n++] = *row;
    }
    batch->rows_n = n;
    for (size_t i = 0, row = 0; i < batch->node_hours_n; i++) {
        struct node_hour hour = batch->node_hours[i];
        while (row < n && batch->rows[row].key.hour < hour.hour)
            row++;
        if (row == n || batch->rows[row].key.hour != hour.hour)
            continue;
        hour.booked = 0; /* what others had of it could be told from that */
        batch->node_hours[hours_n++] = hour;
    }
    batch->node_hours_n = hours_n;
}

void lens_cut_day(struct store_lens *lens, int64_t day, struct day_series *series, size_t *n,
                  struct node_hour *hours, size_t *hours_n)
{
    size_t series_n = *n, all_n = *hours_n;
    uint32_t seen = 0;
    *n = *hours_n = 0;
    for (size_t s = 0; s < series_n; s++) {
        if (!lens_passes(lens, &series[s].key, &series[s].facts))
            continue;
        lens_saw(lens, &series[s].key, &series[s].facts);
        seen |= series[s].hours;
        series[(*n)++] = series[s];
    }
    for (size_t i = 0; i < all_n; i++) {
        if (!(seen >> (hours[i].hour - day * DAY_MS) / HOUR_MS & 1))
            continue;
        hours[i].booked = 0; /* what others had of it could be told from that */
        hours[(*hours_n)++] = hours[i];
    }
}

static void part_through(void *context, const struct scan_part *part)
{
    const struct lens_looking *looking = context;
    if (lens_passes(looking->lens, part->key, part->facts))
        looking->scan->part(looking->scan->context, part);
}

static void no_node(void *context, const struct scan_node *node)
{
    (void)context, (void)node;
}

static void no_note(void *context, const struct note *note)
{
    (void)context, (void)note;
}

static bool wants_through(void *context, name_t cluster, name_t node)
{
    const struct lens_looking *looking = context;
    return looking->scan->wants_node(looking->scan->context, cluster, node);
}

void lens_scan(const struct store_lens *lens, const struct scan *scan, struct lens_looking *looking,
               struct scan *through)
{
    *looking = (struct lens_looking){scan, lens};
    *through = *scan;
    through->context = looking;
    through->part = part_through;
    through->node = no_node;
    through->note = no_note;
    through->wants_node = scan->wants_node ? wants_through : NULL;
    through->wants_series = NULL;
}
