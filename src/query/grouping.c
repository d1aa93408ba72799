#include "query/grouping.h"

#include <stdlib.h>

static uint64_t mix(uint64_t hash, uint64_t v)
{
    hash = (hash ^ v) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ (hash >> 29);
}

static void grow_table(struct grouping *grouping)
{
    size_t mask = grouping->table_mask ? grouping->table_mask * 2 + 1 : 1023;
    uint32_t *table = mem_zalloc(mask + 1, sizeof *table);
    for (size_t g = 0; g < grouping->result->groups_n; g++) {
        uint64_t hash = 0;
        for (size_t k = 0; k < grouping->result->query.keys_n; k++)
            hash = mix(hash, grouping->atoms[g][k]);
        size_t at = hash & mask;
        while (table[at])
            at = (at + 1) & mask;
        table[at] = (uint32_t)g + 1;
    }
    free(grouping->table);
    grouping->table = table;
    grouping->table_mask = mask;
}

static void new_group(struct grouping *grouping, const atom_t *atoms)
{
    struct result *result = grouping->result;
    size_t room = grouping->groups_room;
    mem_reserve(result->groups, result->groups_n, room, 1);
    if (room != grouping->groups_room) {
        grouping->atoms = mem_realloc(grouping->atoms, room, sizeof *grouping->atoms);
        grouping->groups_room = room;
    }
    memset(&result->groups[result->groups_n], 0, sizeof *result->groups);
    memcpy(grouping->atoms[result->groups_n], atoms, sizeof *grouping->atoms);
    result->groups_n++;
}

static struct figures *group_of(struct grouping *grouping, const struct facets *facets)
{
    struct result *result = grouping->result;
    const struct query *query = &result->query;
    atom_t atoms[QUERY_KEYS_MAX] = {0};
    uint64_t hash = 0;
    for (size_t k = 0; k < query->keys_n; k++) {
        atoms[k] = keys_atom(grouping->keys, query->keys[k], facets);
        hash = mix(hash, atoms[k]);
    }
    if (result->groups_n * 2 >= grouping->table_mask)
        grow_table(grouping);
    size_t at = hash & grouping->table_mask, bytes = query->keys_n * sizeof *atoms;
    while (grouping->table[at] &&
           memcmp(grouping->atoms[grouping->table[at] - 1], atoms, bytes) != 0)
        at = (at + 1) & grouping->table_mask;
    if (!grouping->table[at]) {
        new_group(grouping, atoms);
        grouping->table[at] = (uint32_t)result->groups_n;
    }
    return &result->groups[grouping->table[at] - 1].figures;
}

/* A row's money by category: a part has its money and nothing else, since hours of a row that was
 * busy for some of them cannot be told apart by its money (an unpriced row has none). */
static void add_by_category(struct grouping *grouping, struct facets facets,
                            const struct figures *whole)
{
    for (int c = 0; c < CATEGORY_COUNT; c++) {
        facets.category = c;
        if (!whole->category[c] || !filters_pass(grouping->filters, FILTERS_OF_PARTS, &facets))
            continue;
        struct figures part = {.cost = whole->category[c]};
        part.category[c] = whole->category[c];
        figures_add(group_of(grouping, &facets), &part);
    }
}

void grouping_add(struct grouping *grouping, const struct facets *facets,
                  const struct figures *figures)
{
    if (grouping->splits)
        add_by_category(grouping, *facets, figures);
    else
        figures_add(group_of(grouping, facets), figures);
}

void grouping_finish(struct grouping *grouping)
{
    struct result *result = grouping->result;
    const struct query *query = &result->query;
    char buf[TIME_TEXT_MAX];
    for (size_t g = 0; g < result->groups_n; g++) {
        struct group *group = &result->groups[g];
        figures_add(&result->total, &group->figures);
        for (size_t k = 0; k < query->keys_n; k++)
            group->keys[k] = str_keep(&result->arena, keys_text(grouping->keys, query->keys[k],
                                                                grouping->atoms[g][k], buf));
    }
}

void grouping_release(struct grouping *grouping)
{
    free(grouping->atoms);
    free(grouping->table);
}
