/* The series of a segment, by key. Entries lie in the order in which they came, a table of places
 * finds them by hash; both never shrink, they go with the segment.
 *
 * An entry remembers which key was asked for after its own: senders repeat their series in the same
 * order, so that the next one is found by a compare, where the table would be a miss of the cache
 * for each. Mostly it is the one beside it, which is looked at first. */
#include <stdlib.h>

#include "source/journal_impl.h"

struct series_entry {
    struct journal_key key;
    live_ref live;
    uint32_t number;
    uint32_t next; /* place of the entry asked for after this one; 0 to begin with */
};

void series_table_init(struct series_table *table)
{
    *table = (struct series_table){.mask = 63};
    table->slots = mem_zalloc((size_t)table->mask + 1, sizeof *table->slots);
}

void series_table_release(struct series_table *table)
{
    free(table->slots);
    free(table->entries);
    *table = (struct series_table){0};
}

static bool is_key(const struct series_entry *entry, struct journal_key key)
{
    return entry->key.low == key.low && entry->key.high == key.high;
}

/* The slot of a key: empty (0), or with its place. */
static uint32_t *slot_of(const struct series_table *table, struct journal_key key)
{
    uint32_t at = (uint32_t)key.low & table->mask;
    for (; table->slots[at]; at = (at + 1) & table->mask)
        if (is_key(&table->entries[table->slots[at] - 1], key))
            break;
    return &table->slots[at];
}

struct journal_series series_table_get(struct series_table *table, struct journal_key key,
                                       uint32_t *before)
{
    /* The neighbour first: where it stands need not be waited for. */
    uint32_t place = *before + 1;
    if (place >= table->n || !is_key(&table->entries[place], key))
        place = *before == SERIES_FIRST ? 0 : table->entries[*before].next;
    if (place >= table->n || !is_key(&table->entries[place], key)) {
        uint32_t slot = *slot_of(table, key);
        if (slot == 0)
            return (struct journal_series){JOURNAL_UNKNOWN, LIVE_NONE};
        place = slot - 1;
        if (*before != SERIES_FIRST)
            table->entries[*before].next = place;
    }
    *before = place;
    const struct series_entry *entry = &table->entries[place];
    return (struct journal_series){entry->number, entry->live};
}

static void grow(struct series_table *table)
{
    free(table->slots);
    table->mask = table->mask * 2 + 1;
    table->slots = mem_zalloc((size_t)table->mask + 1, sizeof *table->slots);
    for (uint32_t i = 0; i < table->n; i++) {
        uint32_t at = (uint32_t)table->entries[i].key.low & table->mask;
        while (table->slots[at])
            at = (at + 1) & table->mask;
        table->slots[at] = i + 1;
    }
}

void series_table_put(struct series_table *table, struct journal_key key,
                      struct journal_series series)
{
    if ((table->n + 1) * 4 > (table->mask + 1) * 3)
        grow(table);
    uint32_t *slot = slot_of(table, key);
    if (*slot == 0) {
        struct series_entry entry = {.key = key};
        mem_push(table->entries, table->n, table->room, entry);
        *slot = table->n;
    }
    table->entries[*slot - 1].live = series.live;
    table->entries[*slot - 1].number = series.number;
}
