#include "util/idmap.h"

#include <stdlib.h>
#include <string.h>

#include "util/memory.h"

struct idmap_slot {
    struct idkey key;
    uint32_t value; /* IDMAP_NONE: free */
};

/* Ids are ours and dense: a mix of odd multipliers spreads them. */
static uint32_t hash_key(struct idkey key)
{
    uint64_t h = key.part[0] * 0x9e3779b97f4a7c15u;
    h = (h ^ key.part[1]) * 0xff51afd7ed558ccdu;
    h = (h ^ h >> 32 ^ key.part[2]) * 0xc4ceb9fe1a85ec53u;
    h = (h ^ h >> 29 ^ key.part[3]) * 0x9e3779b97f4a7c15u;
    return (uint32_t)(h >> 32);
}

static struct idmap_slot *slot_of(const struct idmap *map, struct idkey key)
{
    uint32_t at = hash_key(key) & map->mask;
    while (map->slots[at].value != IDMAP_NONE && memcmp(&map->slots[at].key, &key, sizeof key) != 0)
        at = (at + 1) & map->mask;
    return &map->slots[at];
}

static void resize(struct idmap *map, uint32_t room)
{
    struct idmap next = {mem_alloc(room * sizeof *next.slots), room - 1, map->count};
    memset(next.slots, 0xff, room * sizeof *next.slots);
    for (uint32_t i = 0; map->slots && i <= map->mask; i++)
        if (map->slots[i].value != IDMAP_NONE)
            *slot_of(&next, map->slots[i].key) = map->slots[i];
    free(map->slots);
    *map = next;
}

uint32_t idmap_get(const struct idmap *map, struct idkey key)
{
    return map->slots ? slot_of(map, key)->value : IDMAP_NONE;
}

uint32_t idmap_add(struct idmap *map, struct idkey key, uint32_t value, bool *ret_new)
{
    if (!map->slots)
        resize(map, 64);
    else if ((uint64_t)map->count * 2 > map->mask)
        resize(map, (map->mask + 1) * 2);
    struct idmap_slot *slot = slot_of(map, key);
    bool fresh = slot->value == IDMAP_NONE;
    if (ret_new)
        *ret_new = fresh;
    if (fresh) {
        *slot = (struct idmap_slot){key, value};
        map->count++;
    }
    return slot->value;
}

void idmap_set(struct idmap *map, struct idkey key, uint32_t value)
{
    idmap_add(map, key, value, NULL);
    slot_of(map, key)->value = value;
}

void idmap_clear(struct idmap *map)
{
    if (map->count)
        memset(map->slots, 0xff, ((size_t)map->mask + 1) * sizeof *map->slots);
    map->count = 0;
}

void idmap_release(struct idmap *map)
{
    free(map->slots);
    *map = (struct idmap){0};
}
