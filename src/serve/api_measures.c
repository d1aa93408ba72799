/* What of a series only rows have, and no sum of rows: SM, tensor and DRAM activity by hour. Rows
 * are read of the nodes alone that the series is about, which the scan of its sums has found. */
#include <stdlib.h>

#include "query/keys.h"
#include "report/text.h"
#include "serve/api_impl.h"
#include "util/idmap.h"

#define SHARE_UNIT 1024     /* shares of a GPU are weighed in this */
#define STEP (NANO / 10000) /* what is printed */

static const struct {
    const char *name;
    enum measure measure;
} lines[] = {{"sm_activity", MEASURE_SM},
             {"tensor_activity", MEASURE_TENSOR},
             {"dram_activity", MEASURE_DRAM}};

struct hour_sums {
    wide_t sum[MEASURE_COUNT], seen_ms[MEASURE_COUNT]; /* x SHARE_UNIT */
};
struct measuring {
    const struct query *query;
    struct keys keys;
    struct filters filters;
    struct idmap nodes;
    struct hour_sums *hours;
    size_t n;
};

static bool wants(void *context, name_t cluster, name_t node)
{
    const struct measuring *measuring = context;
    return idmap_get(&measuring->nodes, IDKEY(cluster, node)) != IDMAP_NONE;
}

/* The part of a GPU that the row is of, while it was held. */
static int64_t share_of(const struct row *row)
{
    wide_t whole = (wide_t)row->held_ms * row->share_den;
    return whole > 0 ? (int64_t)(((wide_t)row->gpu_held_num * SHARE_UNIT + whole / 2) / whole) : 0;
}

static bool take_rows(void *context, const struct row_batch *batch)
{
    struct measuring *measuring = context;
    for (size_t i = 0; i < batch->rows_n; i++) {
        const struct row *row = &batch->rows[i];
        struct facets facets = {&row->key, &row->facts, -1};
        if (row->key.pod == NAME_NONE ||
            !filters_pass(&measuring->filters, FILTERS_OF_NODES, &facets) ||
            !filters_pass(&measuring->filters, FILTERS_OF_ROWS, &facets))
            continue;
        size_t h = (size_t)((row->key.hour - measuring->query->window.from) / HOUR_MS);
        int64_t share = share_of(row);
        for (int m = 0; h < measuring->n && m < MEASURE_COUNT; m++) {
            measuring->hours[h].sum[m] += (wide_t)row->measure[m] * share;
            measuring->hours[h].seen_ms[m] += (wide_t)row->measure_seen_ms[m] * share;
        }
    }
    return true;
}

/* Texts of a result's keys as names; those that nobody has any more are no node's. */
static name_t name_of(struct names *names, struct str text)
{
    name_t name = NAME_NONE;
    if (!str_eq(text, STR("-")))
        names_find(names, text, &name);
    return name;
}

static void add_nodes(struct measuring *measuring, const struct result *nodes)
{
    for (size_t i = 0; i < nodes->groups_n; i++)
        idmap_add(&measuring->nodes,
                  IDKEY(name_of(nodes->names, nodes->groups[i].keys[0]),
                        name_of(nodes->names, nodes->groups[i].keys[1])),
                  1, NULL);
}

static void write_lines(const struct measuring *measuring, struct strbuf *out)
{
    for (size_t l = 0; l < sizeof lines / sizeof *lines; l++) {
        strbuf_addf(out, ",\n  {\"name\": \"%s\", \"unit\": \"ratio\", \"v\": [", lines[l].name);
        for (size_t h = 0; h < measuring->n; h++) {
            wide_t seen = measuring->hours[h].seen_ms[lines[l].measure];
            strbuf_add(out, str_of(h ? "," : ""));
            if (seen > 0)
                text_nano_plain(out, (measuring->hours[h].sum[lines[l].measure] / seen + STEP / 2) /
                                         STEP * STEP);
            else
                strbuf_add(out, STR("null"));
        }
        strbuf_add(out, STR("]}"));
    }
}

enum err api_write_measures(struct api_call *call, const struct query *query,
                            const struct result *nodes, struct strbuf *out, struct error *err)
{
    struct measuring measuring = {.query = query};
    enum err code = keys_init(&measuring.keys, store_names(call->store), query->tz, err);
    if (code != ERR_OK)
        return code;
    filters_init(&measuring.filters, query, &measuring.keys);
    measuring.n = (size_t)((query->window.to - query->window.from) / HOUR_MS);
    measuring.hours = mem_zalloc(measuring.n + 1, sizeof *measuring.hours);
    add_nodes(&measuring, nodes);
    code = store_read_rows_of(call->store, query->window, wants, take_rows, &measuring, err);
    if (code == ERR_OK)
        write_lines(&measuring, out);
    free(measuring.hours);
    idmap_release(&measuring.nodes);
    filters_release(&measuring.filters);
    keys_release(&measuring.keys);
    return code;
}
