#include "ledger/work.h"

#include <stdlib.h>

#define COUNTER_MAX 1e15 /* what is above is no count of tokens */
#define DONE_MAX INT64_C(1000000000000000000)

static bool counter_of(enum record_metric metric, enum work *ret)
{
    switch (metric) {
    case RECORD_GENERATION_TOKENS:
        *ret = WORK_GENERATION_TOKENS;
        return true;
    case RECORD_PROMPT_TOKENS:
        *ret = WORK_PROMPT_TOKENS;
        return true;
    case RECORD_REQUESTS:
        *ret = WORK_REQUESTS;
        return true;
    default:
        return false;
    }
}

static void add(struct work_book *book, struct idkey key, enum work work, double increase)
{
    bool fresh;
    uint32_t at = idmap_add(&book->by_pod, key, (uint32_t)book->n, &fresh);
    if (fresh) {
        struct work_entry entry = {0};
        mem_push(book->entries, book->n, book->room, entry);
    }
    int64_t *done = &book->entries[at].done[work];
    if (increase > 0 && *done < DONE_MAX)
        *done += (int64_t)increase;
}

void work_gather(struct work_book *book, const struct facts *facts, const struct intake *intake,
                 struct span hours)
{
    for (size_t i = 0; i < intake->records_n; i++) {
        const struct record *record = intake->records[i];
        enum work work;
        if (!counter_of(record->metric, &work))
            continue;
        struct idkey key =
            IDKEY(0, facts_label(facts, record, "cluster"), facts_label(facts, record, "namespace"),
                  facts_label(facts, record, "pod"));
        bool has = false;
        double before = 0;
        for (size_t k = 0; k < record->n; k++)
            for (uint32_t j = 0; j < record->runs[k].n; j++) {
                time_ms t = record->runs[k].t0 + record->runs[k].dt * (time_ms)j;
                double now = record->runs[k].v;
                if (!(now >= 0 && now < COUNTER_MAX))
                    break; /* no count: the next one reaches back over it */
                double increase = now >= before ? now - before : now; /* a reset starts from 0 */
                time_ms hour = hour_floor(t - 1);
                if (has && hour >= hours.from && hour < hours.to) {
                    key.part[0] = (uint32_t)(hour / HOUR_MS);
                    add(book, key, work, increase);
                }
                has = true;
                before = now;
            }
    }
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
