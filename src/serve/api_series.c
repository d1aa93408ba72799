/* /series: figures over time, an array a figure. /fleet, /fleet/cell: the picture, and who held one
 * of its cells. */
#include <stdlib.h>

#include "query/window.h"
#include "report/figure.h"
#include "report/fleet_json.h"
#include "report/text.h"
#include "serve/api_impl.h"

#define POINTS_MAX 20000

/* ---- series ---- */

/* Parameters that stand for a filter. */
static const struct of_key {
    const char *name;
    enum key key;
} subjects[] = {
    {"cluster", KEY_CLUSTER}, {"node", KEY_NODE},           {"device", KEY_GPU},
    {"team", KEY_TEAM},       {"namespace", KEY_NAMESPACE}, {"workload", KEY_WORKLOAD},
    {"pod", KEY_POD},         {"model", KEY_MODEL},         {"pool", KEY_POOL},
};

enum err api_add_subjects(struct api_call *call, struct query *query, struct error *err)
{
    for (size_t i = 0; i < sizeof subjects / sizeof *subjects; i++) {
        struct str value = api_text(call, subjects[i].name);
        if (!value.n)
            continue;
        if (query->filters_n == QUERY_FILTERS_MAX)
            return error_set(err, ERR_USAGE, "at most %d filters can be given", QUERY_FILTERS_MAX);
        query->filters[query->filters_n++] =
            (struct query_filter){.key = subjects[i].key, .value = value};
    }
    return ERR_OK;
}

struct series {
    struct api_call *call;
    bool days;
    time_ms *points;
    const struct figures **at; /* [points_n]; NULL: no row */
    size_t points_n;
};

static void add_point(struct series *series, size_t room, time_ms t)
{
    invariant(series->points_n < room);
    series->points[series->points_n++] = t;
}

static enum err make_points(struct series *series, struct error *err)
{
    struct api_call *call = series->call;
    struct span window = call->window;
    size_t room = (size_t)((window.to - window.from) / HOUR_MS) / (series->days ? 12 : 1) + 3;
    if (room > POINTS_MAX)
        return error_set(err, ERR_USAGE, "the window has more than %d points: ask for step=day",
                         POINTS_MAX);
    series->points = arena_alloc(call->request->arena, room * sizeof *series->points);
    series->at = arena_zalloc(call->request->arena, room * sizeof *series->at);
    if (!series->days)
        for (time_ms t = window.from; t < window.to; t += HOUR_MS)
            add_point(series, room, t);
    else if (window.from < window.to)
        for (time_ms t = day_start(window.from, call->tz); t < window.to;
             t = day_start(t + 36 * HOUR_MS, call->tz)) /* days have 23 to 25 hours */
            add_point(series, room, t);
    return ERR_OK;
}

/* Groups are in order of their hour or day, and so are points. */
static void place_groups(struct series *series, const struct result *result)
{
    char buf[TIME_TEXT_MAX];
    size_t group = 0;
    for (size_t p = 0; p < series->points_n && group < result->groups_n; p++) {
        const char *name = series->days ? day_name(series->points[p], series->call->tz, buf)
                                        : time_format(series->points[p], buf);
        if (str_eq(result->groups[group].keys[0], str_of(name)))
            series->at[p] = &result->groups[group++].figures;
    }
}

/* Mean power while it was seen is not known: energy over all time of the GPUs. */
static bool power_of(const struct figures *figures, wide_t *ret)
{
    if (figures->energy_mj == 0 || figures->gpu_ns == 0)
        return false;
    *ret = figures->energy_mj * NANO * 1000000 / figures->gpu_ns; /* mJ / ns = MW */
    return true;
}

static void begin_series(struct strbuf *out, const char *name, const char *unit, bool first)
{
    strbuf_addf(out, "%s\n  {\"name\": \"%s\", \"unit\": \"%s\", \"v\": [", first ? "" : ",", name,
                unit);
}

static void write_power(const struct series *series, struct strbuf *out)
{
    begin_series(out, "power_avg_w", "W", false);
    for (size_t p = 0; p < series->points_n; p++) {
        wide_t value;
        strbuf_add(out, str_of(p ? "," : ""));
        if (series->at[p] && power_of(series->at[p], &value))
            text_nano_plain(out, (value + 500000) / 1000000 * 1000000); /* to the mW */
        else
            strbuf_add(out, STR("null"));
    }
    strbuf_add(out, STR("]}"));
}

/* Money as plain numbers: a chart's heights, not books. */
static void write_figure(const struct series *series, enum figure_id id, bool first,
                         struct strbuf *out)
{
    const struct figure *figure = &figure_defs[id];
    begin_series(out, figure->name, figure_unit_words[figure->unit], first);
    for (size_t p = 0; p < series->points_n; p++) {
        wide_t value;
        strbuf_add(out, str_of(p ? "," : ""));
        if (!series->at[p] || !figure_get(series->at[p], id, &value))
            strbuf_add(out, STR("null"));
        else if (figure->unit == UNIT_MONEY)
            text_nano_plain(out, value);
        else
            figure_machine(out, figure->unit, value);
    }
    strbuf_add(out, STR("]}"));
}

/* Of a node, a GPU, a workload, a pod: rows of few nodes. */
static bool is_of_one(const struct api_call *call)
{
    return api_text(call, "node").n || api_text(call, "device").n || api_text(call, "workload").n ||
           api_text(call, "pod").n;
}

/* nodes: that have rows of it, by cluster and node; NULL: activity is not told. */
static enum err write_series(const struct series *series, const struct query *query,
                             const struct result *nodes, struct strbuf *out, struct error *err)
{
    enum err code = ERR_OK;
    strbuf_addf(out, "{\"schema\": \"gputally.series/1\", \"step\": \"%s\", \"t\": [",
                series->days ? "day" : "hour");
    for (size_t p = 0; p < series->points_n; p++) {
        strbuf_add(out, str_of(p ? "," : ""));
        api_put_time(out, series->points[p]);
    }
    strbuf_add(out, STR("], \"series\": ["));
    for (int id = 0; id < FIGURE_COUNT; id++)
        write_figure(series, (enum figure_id)id, id == 0, out);
    write_power(series, out);
    if (nodes)
        code = api_write_measures(series->call, query, nodes, out, err);
    strbuf_add(out, STR("\n]}\n"));
    return code;
}

enum err api_series(struct api_call *call, struct strbuf *out, struct error *err)
{
    struct str step = api_text(call, "step");
    struct series series = {.call = call, .days = str_eq(step, STR("day"))};
    struct query query = call->query, queries[2];
    struct result *results[2] = {NULL, NULL};
    if (step.n && !series.days && !str_eq(step, STR("hour")))
        return error_set(err, ERR_USAGE, "step is hour or day, not \"%.*s\"", STR_ARG(step));
    query.keys_n = 1;
    query.keys[0] = series.days ? KEY_DAY : KEY_HOUR;
    enum err code = api_add_subjects(call, &query, err);
    if (code == ERR_OK)
        code = make_points(&series, err);
    queries[0] = queries[1] = query;
    queries[1].keys_n = 2;
    queries[1].keys[0] = KEY_CLUSTER;
    queries[1].keys[1] = KEY_NODE;
    bool activity = !series.days && is_of_one(call);
    if (code == ERR_OK)
        code = query_run_beside(call->store, queries, activity ? 2 : 1, results, err);
    if (code == ERR_OK)
        code = result_sort(results[0], STR("name"), err);
    if (code == ERR_OK) {
        place_groups(&series, results[0]);
        code = write_series(&series, &query, results[1], out, err);
    }
    result_free(results[0]);
    result_free(results[1]);
    return code;
}

/* ---- the picture ---- */

enum err api_fleet(struct api_call *call, struct strbuf *out, struct error *err)
{
    struct query query = {.window = call->window, .tz = call->tz};
    return fleet_json(call->store, &query, FLEET_JSON_BRIEF, out, err);
}

static void write_key(struct strbuf *out, const char *name, struct str key)
{
    strbuf_addf(out, "\"%s\": ", name);
    api_put_or_null(out, str_eq(key, STR("-")) ? STR_NONE : key);
    strbuf_add(out, STR(", "));
}

static void write_value(struct strbuf *out, const struct figures *figures, enum figure_id id,
                        const char *name)
{
    wide_t value;
    strbuf_addf(out, "\"%s\": ", name);
    if (figure_get(figures, id, &value))
        figure_machine(out, figure_defs[id].unit, value);
    else
        strbuf_add(out, STR("null"));
}

static void write_holder(struct strbuf *out, const struct group *group)
{
    const struct figures *figures = &group->figures;
    static const char *const names[] = {"namespace", "pod", "workload", "team"};
    strbuf_addc(out, '{');
    for (size_t k = 0; k < 4; k++)
        write_key(out, names[k], group->keys[k]);
    strbuf_add(out, STR("\"cost\": "));
    api_put_money(out, figures->cost);
    strbuf_add(out, STR(", \"categories\": {"));
    bool any = false;
    for (int c = 0; c < CATEGORY_COUNT; c++) {
        if (!figures->category[c])
            continue;
        strbuf_addf(out, "%s\"%s\": ", any ? ", " : "", category_columns[c]);
        api_put_money(out, figures->category[c]);
        any = true;
    }
    strbuf_add(out, STR("}, "));
    write_value(out, figures, FIGURE_UTILISATION, "utilisation");
    strbuf_add(out, STR(", "));
    write_value(out, figures, FIGURE_MEMORY_MAX_BYTES, "memory_max");
    wide_t power;
    strbuf_add(out, STR(", \"power_avg\": "));
    if (power_of(figures, &power))
        text_nano_plain(out, (power + 500000) / 1000000 * 1000000);
    else
        strbuf_add(out, STR("null"));
    strbuf_addc(out, '}');
}

enum err api_fleet_cell(struct api_call *call, struct strbuf *out, struct error *err)
{
    struct str device, hour;
    time_ms t = 0;
    struct result *result = NULL;
    struct query query = {
        .tz = call->tz, .keys = {KEY_NAMESPACE, KEY_POD, KEY_WORKLOAD, KEY_TEAM}, .keys_n = 4};
    enum err code = api_need(call, "device", &device, err);
    if (code == ERR_OK)
        code = api_need(call, "hour", &hour, err);
    if (code == ERR_OK && !time_parse(hour, &t))
        code = error_set(err, ERR_USAGE, "hour: \"%.*s\" is no time such as 2026-11-30T14:00:00Z",
                         STR_ARG(hour));
    query.window = (struct span){hour_floor(t), hour_floor(t) + HOUR_MS};
    if (code == ERR_OK)
        code = api_add_subjects(call, &query, err);
    if (code == ERR_OK)
        code = query_run(call->store, &query, &result, err);
    if (code == ERR_OK)
        code = result_sort(result, STR("cost"), err);
    if (code == ERR_OK) {
        strbuf_addc(out, '[');
        for (size_t i = 0; i < result->groups_n; i++) {
            strbuf_add(out, str_of(i ? ",\n" : ""));
            write_holder(out, &result->groups[i]);
        }
        strbuf_add(out, STR("]\n"));
    }
    result_free(result);
    return code;
}
