#include "report/gather.h"

/* Days and hours in their order, everything else by cost. */
static enum err sort_rows(struct result *result, struct str by, struct error *err)
{
    enum key first = result->query.keys_n ? result->query.keys[0] : KEY_COUNT;
    if (!by.n)
        by = first == KEY_DAY || first == KEY_HOUR ? STR("name") : STR("cost");
    return result_sort(result, by, err);
}

enum err gather_check_sort(const struct query *query, struct str sort, struct error *err)
{
    struct result empty = {.query = *query};
    return sort_rows(&empty, sort, err);
}

/* The same rows by two other keys. */
static enum err run_beside(struct store *store, const struct query *query, enum key first,
                           enum key second, struct result **ret, struct error *err)
{
    struct query beside = *query;
    beside.keys[0] = first;
    beside.keys[1] = second;
    beside.keys_n = 2;
    return query_run(store, &beside, ret, err);
}

enum err gather_report(struct store *store, const struct query *query, struct str sort,
                       struct gathered *ret, struct error *err)
{
    enum err code = gather_check_sort(query, sort, err);
    if (code == ERR_OK)
        code = query_run(store, query, &ret->rows, err);
    if (code == ERR_OK)
        code = run_beside(store, query, KEY_CLUSTER, KEY_TEAM, &ret->overview, err);
    if (code == ERR_OK && ret->overview->total.flag_gpu_ns[FLAG_INDEX_UNPRICED] > 0)
        code = run_beside(store, query, KEY_INSTANCE_TYPE, KEY_MODEL, &ret->unpriced, err);
    if (code == ERR_OK && ret->unpriced)
        code = result_sort(ret->unpriced, STR("gpu_hours"), err);
    return code == ERR_OK ? sort_rows(ret->rows, sort, err) : code;
}

void gathered_release(struct gathered *gathered)
{
    result_free(gathered->rows);
    result_free(gathered->overview);
    result_free(gathered->unpriced);
    *gathered = (struct gathered){0};
}
