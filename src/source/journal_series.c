/* The series of a segment, by key: open addressing, three quarters full at most, never shrinks; it
 * goes with the segment. Keys are 128 bits under a secret, so that two series that meet in one are
 * not to be expected, and nobody can make them. */
#include <stdlib.h>

#include "source/journal_impl.h"

struct series_slot {
    struct journal_key key;
    live_ref live;
    uint32_t number; /* JOURNAL_UNKNOWN: an empty slot */
};

static struct series_slot *slots_new(size_t n)
{
    struct series_slot *slots = mem_alloc(n * sizeof *slots);
    for (size_t i = 0; i < n; i++)
        slots[i].number = JOURNAL_UNKNOWN;
    return slots;
}

void series_table_init(struct series_table *table)
{
    table->mask = 63;
    table->n = 0;
    table->slots = slots_new(64);
}

void series_table_release(struct series_table *table)
{
    free(table->slots);
    *table = (struct series_table){0};
}

static struct series_slot *slot_of(const struct series_table *table, struct journal_key key)
{
    uint32_t at = (uint32_t)key.low & table->mask;
    for (;; at = (at + 1) & table->mask) {
        struct series_slot *slot = &table->slots[at];
        if (slot->number == JOURNAL_UNKNOWN ||
            (slot->key.low == key.low && slot->key.high == key.high))
            return slot;
    }
}

void series_table_prefetch(const struct series_table *table, struct journal_key key)
{
    __builtin_prefetch(&table->slots[(uint32_t)key.low & table->mask]);
}

struct journal_series series_table_get(const struct series_table *table, struct journal_key key)
{
    const struct series_slot *slot = slot_of(table, key);
    return (struct journal_series){slot->number, slot->live};
}

static void grow(struct series_table *table)
{
    struct series_table wide = {.mask = table->mask * 2 + 1, .n = table->n};
    wide.slots = slots_new((size_t)wide.mask + 1);
    for (size_t i = 0; i <= table->mask; i++)
        if (table->slots[i].number != JOURNAL_UNKNOWN)
            *slot_of(&wide, table->slots[i].key) = table->slots[i];
    free(table->slots);
    *table = wide;
}

void series_table_put(struct series_table *table, struct journal_key key,
                      struct journal_series series)
{
    if ((table->n + 1) * 4 > (table->mask + 1) * 3)
        grow(table);
    struct series_slot *slot = slot_of(table, key);
    table->n += slot->number == JOURNAL_UNKNOWN;
    *slot = (struct series_slot){key, series.live, series.number};
}
