/* Reading a report back. The file may be anybody's: every field is checked, numbers have ranges,
 * and rows that do not add up to the totals are refused rather than compared. */
#include "report/saved.h"

#include <jansson.h>
#include <math.h>

#define SCHEMA "gputally.report/1"
#define GPU_HOURS_MAX 1e9 /* beyond any fleet; keeps sums in range */
#define ROWS_MAX 10000000

static enum err refuse(const char *path, const char *what, struct error *err)
{
    return error_set(err, ERR_PARSE, "%s: %s is missing or not as gputally writes it", path, what);
}

static struct str text_of(const json_t *value)
{
    return json_is_string(value) ? (struct str){json_string_value(value), json_string_length(value)}
                                 : STR_NONE;
}

static bool money_of(const json_t *object, const char *name, money_t *ret)
{
    struct str text = text_of(json_object_get(object, name));
    return text.n && money_parse(text, ret);
}

static bool hours_of(const json_t *value, wide_t *ret)
{
    double hours = json_number_value(value);
    if (!json_is_number(value) || !(hours >= 0 && hours <= GPU_HOURS_MAX))
        return false;
    *ret = (wide_t)llrint(hours * 1e9);
    return true;
}

static bool amounts_of(const json_t *object, struct diff_amounts *ret)
{
    return money_of(object, "cost", &ret->cost) && money_of(object, "used", &ret->used) &&
           hours_of(json_object_get(object, "gpu_hours"), &ret->gpu_nano);
}

static bool span_of(const json_t *object, struct span *ret)
{
    return json_is_object(object) &&
           time_parse(text_of(json_object_get(object, "from")), &ret->from) &&
           time_parse(text_of(json_object_get(object, "to")), &ret->to);
}

static bool divides(struct str key)
{
    return str_eq(key, STR("category")) || str_eq(key, STR("cause"));
}

static bool read_filters(const json_t *filters, struct diff_side *side)
{
    struct strbuf text = {0};
    bool fine = json_is_array(filters);
    for (size_t i = 0; fine && i < json_array_size(filters); i++) {
        const json_t *filter = json_array_get(filters, i);
        struct str key = text_of(json_object_get(filter, "key"));
        strbuf_addf(&text, "%s%.*s%s%.*s", i ? ", " : "", STR_ARG(key),
                    json_is_true(json_object_get(filter, "not")) ? "!=" : "=",
                    STR_ARG(text_of(json_object_get(filter, "value"))));
        side->hours_known &= !divides(key);
    }
    side->filters = str_keep(&side->arena, strbuf_str(&text));
    strbuf_release(&text);
    return fine;
}

static bool read_keys(const json_t *by, struct diff_side *side)
{
    if (!json_is_array(by) || json_array_size(by) > QUERY_KEYS_MAX)
        return false;
    side->keys_n = json_array_size(by);
    for (size_t k = 0; k < side->keys_n; k++) {
        side->keys[k] = str_keep(&side->arena, text_of(json_array_get(by, k)));
        if (!side->keys[k].n)
            return false;
        side->hours_known &= !divides(side->keys[k]);
    }
    return true;
}

static bool read_row(const json_t *object, struct diff_side *side)
{
    struct diff_entry entry = {0};
    for (size_t k = 0; k < side->keys_n; k++) {
        const json_t *key = json_object_get(object, side->keys[k].p);
        if (!json_is_string(key) && !json_is_null(key))
            return false;
        entry.keys[k] = str_keep(&side->arena, json_is_null(key) ? STR("-") : text_of(key));
    }
    if (!amounts_of(object, &entry.amounts))
        return false;
    mem_push(side->entries, side->entries_n, side->entries_room, entry);
    return true;
}

static enum err check_sums(const struct diff_side *side, const char *path, struct error *err)
{
    wide_t cost = 0, used = 0;
    for (size_t i = 0; i < side->entries_n; i++) {
        cost += side->entries[i].amounts.cost;
        used += side->entries[i].amounts.used;
    }
    if (cost == side->total.cost && used == side->total.used)
        return ERR_OK;
    return error_set(err, ERR_PARSE,
                     "%s: its rows do not add up to its totals: save the report without --limit",
                     path);
}

static enum err read_document(const json_t *root, const char *path, struct diff_side *ret,
                              struct error *err)
{
    const json_t *totals = json_object_get(root, "totals"), *rows = json_object_get(root, "rows");
    const json_t *recorded = json_object_get(root, "recorded");
    const json_t *unpriced =
        json_object_get(json_object_get(json_object_get(totals, "flags"), "unpriced"), "gpu_hours");
    if (!str_eq(text_of(json_object_get(root, "schema")), STR(SCHEMA)))
        return error_set(
            err, ERR_PARSE,
            "%s is no report that gputally report --output json writes (schema " SCHEMA ")", path);
    ret->currency = str_keep(&ret->arena, text_of(json_object_get(root, "currency")));
    if (!ret->currency.n)
        return refuse(path, "currency", err);
    if (!span_of(json_object_get(root, "window"), &ret->window) ||
        (!json_is_null(recorded) && !span_of(recorded, &ret->recorded)))
        return refuse(path, "window or recorded", err);
    if (!read_keys(json_object_get(root, "by"), ret))
        return refuse(path, "by", err);
    if (!read_filters(json_object_get(root, "filters"), ret))
        return refuse(path, "filters", err);
    if (!amounts_of(totals, &ret->total) || (unpriced && !hours_of(unpriced, &ret->unpriced_nano)))
        return refuse(path, "totals", err);
    if (!json_is_array(rows) || json_array_size(rows) > ROWS_MAX)
        return refuse(path, "rows", err);
    for (size_t i = 0; i < json_array_size(rows); i++)
        if (!read_row(json_array_get(rows, i), ret))
            return refuse(path, "a row", err);
    return check_sums(ret, path, err);
}

enum err saved_report_read(struct str text, const char *path, struct diff_side *ret,
                           struct error *err)
{
    json_error_t where;
    *ret = (struct diff_side){.hours_known = true};
    ret->name = str_keep(&ret->arena, str_of(path));
    json_t *root = json_loadb(text.p, text.n, JSON_REJECT_DUPLICATES, &where);
    if (!root)
        return error_set(err, ERR_PARSE, "%s:%d:%d: %s", path, where.line, where.column,
                         where.text);
    enum err code = read_document(root, path, ret, err);
    json_decref(root);
    return code;
}
