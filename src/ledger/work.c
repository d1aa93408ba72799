#include "ledger/work.h"

#include <stdlib.h>

static const enum load load_of[WORK_COUNT] = {
    [WORK_GENERATION_TOKENS] = LOAD_GENERATION_TOKENS,
    [WORK_PROMPT_TOKENS] = LOAD_PROMPT_TOKENS,
    [WORK_REQUESTS] = LOAD_REQUESTS,
};

static void add(struct work_book *book, struct idkey key, enum work work, int64_t increase)
{
    bool fresh;
    uint32_t at = idmap_add(&book->by_pod, key, (uint32_t)book->n, &fresh);
    if (fresh) {
        struct work_entry entry = {0};
        mem_push(book->entries, book->n, book->room, entry);
    }
    int64_t *done = &book->entries[at].done[work];
    if (__builtin_add_overflow(*done, increase, done))
        *done = INT64_MAX;
}

/* Increases of a pod's counter, each five minutes from the meter that is taken for them. */
static void gather_pod(struct work_book *book, const struct load_book *loads,
                       const struct meter_list *list, enum work work)
{
    const uint32_t *pod = list->key.part;
    for (size_t i = 0; i < list->n; i++)
        for (size_t k = 0; k < list->at[i]->bins_n; k++) {
            const struct load_bin *bin = &list->at[i]->bins[k];
            time_ms hour = hour_floor(bin->slot * LOAD_SLOT_MS);
            if (hour >= loads->hours.from && hour < loads->hours.to &&
                load_list_bin(list, bin->slot) == bin)
                add(book, IDKEY((uint32_t)(hour / HOUR_MS), pod[0], pod[1], pod[2]), work,
                    bin->sum);
        }
}

void work_gather(struct work_book *book, const struct load_book *loads)
{
    for (size_t i = 0; i < loads->lists_n; i++)
        for (int work = 0; work < WORK_COUNT; work++)
            if (!loads->lists[i].of_node && loads->lists[i].key.part[3] == (uint32_t)load_of[work])
                gather_pod(book, loads, &loads->lists[i], (enum work)work);
}

void work_place(struct work_book *book, struct row_batch *batch)
{
    for (size_t i = 0; book->n && i < batch->rows_n; i++) {
        struct row *row = &batch->rows[i];
        if (row->key.pod == NAME_NONE)
            continue;
        uint32_t at =
            idmap_get(&book->by_pod, IDKEY((uint32_t)(row->key.hour / HOUR_MS), row->key.cluster,
                                           row->key.namespace, row->key.pod));
        if (at == IDMAP_NONE || book->entries[at].placed)
            continue;
        book->entries[at].placed = true;
        for (int w = 0; w < WORK_COUNT; w++)
            row->work[w] += book->entries[at].done[w];
    }
}

void work_unplaced(const struct work_book *book, int64_t ret[WORK_COUNT])
{
    for (int w = 0; w < WORK_COUNT; w++) {
        ret[w] = 0;
        for (size_t i = 0; i < book->n; i++)
            ret[w] += book->entries[i].placed ? 0 : book->entries[i].done[w];
    }
}

void work_release(struct work_book *book)
{
    free(book->entries);
    idmap_release(&book->by_pod);
    *book = (struct work_book){0};
}
