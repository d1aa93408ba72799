/* What of a series only rows have, and no sum of rows: SM, tensor and DRAM activity by hour. Rows
 * are read of the nodes alone that the series is about, which the scan of its sums has found. */
#include <pthread.h>
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
    struct idmap nodes;
    pthread_mutex_t lock; /* of what follows: adding up is little beside unpacking */
    struct keys keys;
    struct filters filters;
    struct hour_sums *hours;
    size_t n;
};

static bool wants(void *context, name_t cluster, name_t node)
{
    const struct measuring *measuring = context;
    return idmap_get(&measuring->nodes, IDKEY(cluster, node)) != IDMAP_NONE;
}

/* The part of a GPU that row i is of, while it was held. */
static int64_t share_of(int64_t *const *columns, size_t i)
{
    wide_t whole = (wide_t)columns[COLUMN_HELD][i] * columns[COLUMN_SHARE_DEN][i];
    return whole > 0
               ? (int64_t)(((wide_t)columns[COLUMN_GPU_HELD][i] * SHARE_UNIT + whole / 2) / whole)
               : 0;
}

/* Row i of a series. */
static void add_row(struct hour_sums *to, int64_t *const *columns, size_t i)
{
    int64_t share = share_of(columns, i);
    for (int m = 0; m < MEASURE_COUNT; m++) {
        to->sum[m] += (wide_t)columns[COLUMN_SM + m][i] * share;
        to->seen_ms[m] += (wide_t)columns[COLUMN_SM_SEEN + m][i] * share;
    }
}

static void add_series(struct measuring *measuring, int64_t day, const struct day_series *series)
{
    uint32_t pass = filters_pass_hours(&measuring->filters, series), rest = series->hours;
    for (size_t i = series->from; rest; rest &= rest - 1, i++) {
        time_ms hour = day * DAY_MS + __builtin_ctz(rest) * HOUR_MS;
        size_t h = (size_t)((hour - measuring->query->window.from) / HOUR_MS);
        if (h < measuring->n && (pass & rest & (0 - rest)))
            add_row(&measuring->hours[h], series->columns, i);
    }
}

static void begin(void *context, size_t chunks)
{
    (void)context, (void)chunks;
}

static bool take_day(void *context, size_t chunk, const struct node_day *day)
{
    struct measuring *measuring = context;
    (void)chunk;
    pthread_mutex_lock(&measuring->lock);
    for (size_t s = 0; s < day->series_n; s++)
        if (day->series[s].key.pod != NAME_NONE)
            add_series(measuring, day->day, &day->series[s]);
    pthread_mutex_unlock(&measuring->lock);
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
    const struct store_node_reader reader = {.context = &measuring,
                                             .columns = NODE_COLUMNS_ROWS,
                                             .pods = measuring.filters.on[KEY_POD],
                                             .wants = wants,
                                             .begin = begin,
                                             .day = take_day};
    pthread_mutex_init(&measuring.lock, NULL);
    code = store_read_nodes(call->store, query->window, &reader, err);
    pthread_mutex_destroy(&measuring.lock);
    if (code == ERR_OK)
        write_lines(&measuring, out);
    free(measuring.hours);
    idmap_release(&measuring.nodes);
    filters_release(&measuring.filters);
    keys_release(&measuring.keys);
    return code;
}
