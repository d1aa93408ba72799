#include "ledger/row.h"

#include <stdlib.h>

const char *const category_columns[CATEGORY_COUNT] = {
#define X(name, column, words) column,
    CATEGORY_TABLE(X)
#undef X
};

const char *const category_words[CATEGORY_COUNT] = {
#define X(name, column, words) words,
    CATEGORY_TABLE(X)
#undef X
};

const char *const work_columns[WORK_COUNT] = {
#define X(name, column) column,
    WORK_TABLE(X)
#undef X
};

void row_batch_clear(struct row_batch *batch)
{
    batch->rows_n = batch->node_hours_n = batch->device_hours_n = batch->notes_n = 0;
    batch->machine_hours_n = batch->workload_hours_n = batch->namespace_hours_n = 0;
}

void row_batch_release(struct row_batch *batch)
{
    free(batch->rows);
    free(batch->node_hours);
    free(batch->device_hours);
    free(batch->machine_hours);
    free(batch->workload_hours);
    free(batch->namespace_hours);
    free(batch->notes);
    *batch = (struct row_batch){0};
}

/* As the written ledger spells it: "-" stands for none, and orders as such. */
static struct str written(const struct names *names, name_t id)
{
    return id == NAME_NONE ? STR("-") : names_text(names, id);
}

int row_key_cmp(const struct names *names, const struct row_key *a, const struct row_key *b)
{
    if (a->hour != b->hour)
        return a->hour < b->hour ? -1 : 1;
    const name_t left[] = {a->cluster,   a->node, a->device,  a->instance,
                           a->namespace, a->pod,  a->pod_uid, a->container};
    const name_t right[] = {b->cluster,   b->node, b->device,  b->instance,
                            b->namespace, b->pod,  b->pod_uid, b->container};
    for (size_t i = 0; i < sizeof left / sizeof *left; i++) {
        int order =
            left[i] == right[i] ? 0 : str_cmp(written(names, left[i]), written(names, right[i]));
        if (order)
            return order;
    }
    return 0;
}
