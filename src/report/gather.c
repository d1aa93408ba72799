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
static struct query beside(const struct query *query, enum key first, enum key second)
{
    struct query other = *query;
    other.keys[0] = first;
    other.keys[1] = second;
    other.keys_n = 2;
    return other;
}

enum err gather_report(struct store *store, const struct query *query, struct str sort,
                       struct gathered *ret, struct error *err)
{
    struct query queries[] = {*query, beside(query, KEY_CLUSTER, KEY_TEAM),
                              beside(query, KEY_INSTANCE_TYPE, KEY_MODEL)};
    struct result *results[3];
    enum err code = gather_check_sort(query, sort, err);
    if (code == ERR_OK)
        code = query_run_beside(store, queries, 3, results, err);
    if (code != ERR_OK)
        return code;
    *ret = (struct gathered){results[0], results[1], results[2]};
    if (ret->overview->total.flag_gpu_ns[FLAG_INDEX_UNPRICED] > 0) {
        code = result_sort(ret->unpriced, STR("gpu_hours"), err);
    } else {
        result_free(ret->unpriced);
        ret->unpriced = NULL;
    }
    return code == ERR_OK ? sort_rows(ret->rows, sort, err) : code;
}

void gathered_release(struct gathered *gathered)
{
    result_free(gathered->rows);
    result_free(gathered->overview);
    result_free(gathered->unpriced);
    *gathered = (struct gathered){0};
}
