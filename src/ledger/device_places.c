/* Where a device is and how it is split, by stamp (semantics, section 3): the strips that have a
 * row at a stamp say so together, the last of them where they differ. */
#include <stdlib.h>

#include "ledger/device_rows.h"

int64_t instance_order(struct str a, struct str b)
{
    return a.n != b.n ? (int64_t)a.n - (int64_t)b.n : str_cmp(a, b);
}

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

static void add_place(struct device *device, struct place place)
{
    const struct place *last = device->places_n ? &device->places[device->places_n - 1] : NULL;
    if (!last || last->node != place.node || last->index != place.index ||
        last->model != place.model)
        mem_push(device->places, device->places_n, device->places_room, place);
}

/* ------------------------------------------------------------------ stamps */

struct stamps *stamps_copy(const struct device *device)
{
    struct stamps *out = mem_alloc((device->strips_n + 1) * sizeof *out);
    for (size_t i = 0; i < device->strips_n; i++) {
        out[i].n = device->strips[i]->n;
        out[i].t = mem_alloc((out[i].n + 1) * sizeof(time_ms));
        memcpy(out[i].t, device->strips[i]->t, out[i].n * sizeof(time_ms));
    }
    return out;
}

void stamps_free(struct stamps *stamps, size_t n)
{
    for (size_t i = 0; stamps && i < n; i++)
        free(stamps[i].t);
    free(stamps);
}

/* ------------------------------------------------------------------ one stamp */

/* What the rows of a stamp say together. */
struct picture {
    const struct meaning *place; /* the last that has a row; NULL: none has */
    struct layout_part parts[INSTANCES_MAX];
    size_t parts_n;
};

static void look(struct picture *picture, const struct meaning *meaning)
{
    picture->place = meaning;
    size_t k = 0;
    while (k < picture->parts_n && picture->parts[k].id != meaning->instance)
        k++;
    if (meaning->instance == NAME_NONE || k == INSTANCES_MAX)
        return;
    picture->parts[k] = (struct layout_part){.id = meaning->instance, .profile = meaning->profile};
    picture->parts_n += k == picture->parts_n;
}

static void finish(struct picture *picture, const struct device *device, const struct names *names)
{
    struct layout_part *parts = picture->parts;
    for (size_t i = 1; i < picture->parts_n; i++)
        for (size_t k = i; k > 0 && instance_order(names_text(names, parts[k].id),
                                                   names_text(names, parts[k - 1].id)) < 0;
             k--) {
            struct layout_part swap = parts[k];
            parts[k] = parts[k - 1];
            parts[k - 1] = swap;
        }
    for (size_t i = 0; i < picture->parts_n; i++)
        for (size_t k = 0; k < device->instances_n; k++)
            if (device->instances[k].id == parts[i].id)
                parts[i].instance = (uint32_t)k;
}

/* ------------------------------------------------------------------ all stamps */

/* Strips of which stamps are left, in order of index; those that have not begun wait in order of
 * their first stamp. */
struct open_stamps {
    const struct stamps *stamps;
    struct open_list {
        uint32_t strip;
        size_t next;
    } * open;
    size_t open_n;
    uint32_t *waiting;
    size_t begun, n;
};

static int by_first_stamp(const void *a, const void *b, void *context)
{
    const struct stamps *stamps = context;
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (stamps[x].t[0] > stamps[y].t[0]) - (stamps[x].t[0] < stamps[y].t[0]);
}

static struct open_stamps open_all(const struct stamps *stamps, size_t n)
{
    struct open_stamps all = {.stamps = stamps, .n = n};
    all.open = mem_alloc((n + 1) * sizeof *all.open);
    all.waiting = mem_alloc((n + 1) * sizeof *all.waiting);
    for (size_t i = 0; i < n; i++)
        all.waiting[i] = (uint32_t)i;
    qsort_r(all.waiting, n, sizeof *all.waiting, by_first_stamp, (void *)stamps);
    return all;
}

/* What the strips say at the stamp; stamps are asked in order. */
static void look_at(struct open_stamps *all, time_ms stamp, const struct meaning *meanings,
                    struct picture *picture)
{
    for (; all->begun < all->n; all->begun++) {
        uint32_t strip = all->waiting[all->begun];
        if (all->stamps[strip].t[0] > stamp)
            break;
        size_t at = all->open_n++;
        for (; at > 0 && all->open[at - 1].strip > strip; at--)
            all->open[at] = all->open[at - 1];
        all->open[at] = (struct open_list){strip, 0};
    }
    size_t kept = 0;
    for (size_t i = 0; i < all->open_n; i++) {
        struct open_list open = all->open[i];
        if (all->stamps[open.strip].t[open.next] == stamp) {
            look(picture, &meanings[open.strip]);
            open.next++;
        }
        if (open.next < all->stamps[open.strip].n)
            all->open[kept++] = open;
    }
    all->open_n = kept;
}

void places_find(struct device *device, const struct facts *facts, const struct meaning *meanings,
                 const struct stamps *stamps, const size_t *sample_of)
{
    struct open_stamps all = open_all(stamps, device->strips_n);
    for (size_t row = 0; row < device->own.n; row++) {
        struct picture picture = {.place = NULL};
        look_at(&all, device->own.t[row], meanings, &picture);
        if (!picture.place || sample_of[row] == SIZE_MAX)
            continue;
        finish(&picture, device, facts->names);
        add_layout(device, device_sample_start(device, facts->settings, sample_of[row]),
                   picture.parts, picture.parts_n);
        add_place(device, (struct place){sample_of[row], picture.place->node, picture.place->index,
                                         picture.place->strip->label[GPU_LABEL_MODEL]});
    }
    free(all.open);
    free(all.waiting);
}

void places_stand_still(struct device *device, const struct meaning *meaning)
{
    add_layout(device, TIME_MIN, NULL, 0);
    add_place(device, (struct place){0, meaning->node, meaning->index,
                                     meaning->strip->label[GPU_LABEL_MODEL]});
}
