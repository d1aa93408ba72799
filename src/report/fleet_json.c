/* Rows come node by node, a chunk of nodes a thread; of a node's day device by device: its 24 cells
 * are added up side by side and then closed in order. A picture is kept a byte a cell; texts are
 * made at the end, from the chunks' strips side by side. */
#include "report/fleet_json.h"

#include <stdlib.h>

#include "query/hours.h"
#include "query/keys.h"
#include "report/text.h"
#include "util/idmap.h"

#define DIGITS 35
#define PICTURE_HOURS_MAX (400 * 24) /* wider windows show their last 400 days */

static const char letters[CATEGORY_COUNT + 1] = "USIETPCBHNA";
static const char digit_text[] = "0123456789abcdefghijklmnopqrstuvwxyz";

struct holder {
    name_t namespace, workload, team;
};
struct holder_run {
    uint32_t from, n;
    struct holder holder;
    uint32_t index; /* of the holder in the text */
};

/* What rows keep beside use: a digit an hour, where the exporter has it. */
#define ACTIVITIES 2
static const struct {
    enum measure measure;
    const char *field;
} activities[ACTIVITIES] = {{MEASURE_SM, "sm"}, {MEASURE_TENSOR, "tensor"}};

/* A GPU's row of the picture. */
struct strip {
    name_t cluster, node, device, model, instance_type, pool;
    char *cells, *use, *memory, *power; /* hours each; the latter two NULL where brief */
    char *activity[ACTIVITIES];         /* likewise; NULL where no hour has any */
    money_t cost;
    wide_t gpu_ms; /* x 2^20, so that shares add up */
    int64_t memory_total;
    struct holder_run *runs;
    size_t runs_n, runs_room;
};

/* An hour of the device that is being added up. */
struct cell {
    const struct day_series *of; /* the first one; NULL: no row */
    money_t category[CATEGORY_COUNT], cost;
    int64_t u, observed_ms, held_ms, idle_ms; /* weighted by share */
    wide_t gpu_ms;
    uint64_t mem_byte_ms;
    int64_t mem_seen_ms, mem_total, energy_mj;
    wide_t activity[ACTIVITIES], activity_seen[ACTIVITIES]; /* weighted by share */
    struct holder holder;                                   /* of the row with the longest share */
    int64_t holder_ms;
};

/* What a chunk of nodes adds to the picture; one thread has it at a time. */
struct part {
    const struct picture *picture;
    struct strip *strips;
    size_t strips_n, strips_room;
    struct idmap by_device;
    struct cell cells[24]; /* of a device and day */
    struct keys keys;      /* they remember what they looked up: each thread has its own */
    struct filters filters;
};

struct picture {
    struct names *names;
    const struct query *query;
    struct span window;
    size_t hours_n;
    bool full;
    struct part *parts;
    size_t parts_n;
    struct strip *strips; /* of all parts, in order */
    size_t strips_n;
    struct idmap by_holder;
    struct holder *holders;
    size_t holders_n, holders_room;
};

static char *new_cells(size_t n, char sign)
{
    char *cells = mem_alloc(n + 1);
    memset(cells, sign, n);
    cells[n] = '\0';
    return cells;
}

static struct strip *strip_of(struct part *part, const struct row_key *key)
{
    const struct picture *picture = part->picture;
    bool is_new;
    uint32_t at = idmap_add(&part->by_device, IDKEY(key->cluster, key->node, key->device),
                            (uint32_t)part->strips_n, &is_new);
    if (is_new) {
        struct strip strip = {.cluster = key->cluster,
                              .node = key->node,
                              .device = key->device,
                              .cells = new_cells(picture->hours_n, '.'),
                              .use = new_cells(picture->hours_n, '-'),
                              .memory = picture->full ? new_cells(picture->hours_n, '-') : NULL,
                              .power = picture->full ? mem_zalloc(picture->hours_n + 1, 1) : NULL};
        mem_push(part->strips, part->strips_n, part->strips_room, strip);
    }
    return &part->strips[at];
}

/* The category of most money; where nothing has a price, of most time. */
static char letter_of(const struct cell *cell)
{
    int most = 0;
    for (int i = 1; i < CATEGORY_COUNT; i++)
        if (cell->category[i] > cell->category[most])
            most = i;
    if (cell->category[most] > 0)
        return letters[most];
    if (cell->held_ms == 0)
        return letters[CATEGORY_EMPTY];
    if (cell->observed_ms * 2 < cell->held_ms)
        return letters[CATEGORY_UNOBSERVED];
    if (cell->idle_ms * 2 > cell->observed_ms)
        return letters[CATEGORY_HELD_IDLE];
    return letters[cell->u / NANO * 2 > cell->observed_ms ? CATEGORY_USED : CATEGORY_SLACK];
}

static void add_run(struct strip *strip, const struct cell *cell, uint32_t hour)
{
    if (cell->holder_ms == 0)
        return;
    struct holder_run *last = strip->runs_n ? &strip->runs[strip->runs_n - 1] : NULL;
    if (last && last->from + last->n == hour &&
        memcmp(&last->holder, &cell->holder, sizeof last->holder) == 0) {
        last->n++;
        return;
    }
    struct holder_run run = {hour, 1, cell->holder, 0};
    mem_push(strip->runs, strip->runs_n, strip->runs_room, run);
}

static char digit_of(wide_t share)
{
    return digit_text[share > DIGITS ? DIGITS : share];
}

static void close_activity(const struct picture *picture, struct strip *strip,
                           const struct cell *cell, uint32_t hour)
{
    for (int i = 0; i < ACTIVITIES; i++) {
        if (cell->activity_seen[i] <= 0)
            continue;
        if (!strip->activity[i])
            strip->activity[i] = new_cells(picture->hours_n, '-');
        wide_t mean = cell->activity[i] / cell->activity_seen[i];
        strip->activity[i][hour] = digit_of((mean * DIGITS + NANO / 2) / NANO);
    }
}

/* What is shown of memory and power, and who held it. */
static void close_full(const struct picture *picture, struct strip *strip, const struct cell *cell,
                       uint32_t hour)
{
    if (cell->mem_total > strip->memory_total)
        strip->memory_total = cell->mem_total;
    if (cell->mem_seen_ms > 0 && cell->mem_total > 0) {
        uint64_t mean = cell->mem_byte_ms / (uint64_t)cell->mem_seen_ms;
        uint64_t share = mean * DIGITS / (uint64_t)cell->mem_total;
        strip->memory[hour] = digit_text[share > DIGITS ? DIGITS : share];
    }
    /* mJ of an hour to W; kept in steps of 8 W until the most is known */
    int64_t watt = cell->energy_mj / 3600 / 1000;
    strip->power[hour] = (char)(watt / 8 > 127 ? 127 : watt / 8);
    close_activity(picture, strip, cell, hour);
    add_run(strip, cell, hour);
}

static void close_cell(const struct picture *picture, struct strip *strip, const struct cell *cell,
                       uint32_t hour)
{
    strip->model = cell->of->facts.model;
    strip->instance_type = cell->of->facts.instance_type;
    strip->pool = cell->of->facts.pool;
    strip->cost += cell->cost;
    strip->gpu_ms += cell->gpu_ms;
    strip->cells[hour] = letter_of(cell);
    if (cell->observed_ms > 0) {
        int64_t share = (cell->u / cell->observed_ms * DIGITS + NANO / 2) / NANO;
        strip->use[hour] = digit_of(share);
    }
    if (picture->full)
        close_full(picture, strip, cell, hour);
}

/* The cells of a device and day that have rows. */
static void close_cells(struct part *part, int64_t day)
{
    struct strip *strip = NULL;
    for (int h = 0; h < 24; h++) {
        struct cell *cell = &part->cells[h];
        if (!cell->of)
            continue;
        if (!strip)
            strip = strip_of(part, &cell->of->key);
        time_ms hour = day * DAY_MS + h * HOUR_MS;
        close_cell(part->picture, strip, cell,
                   (uint32_t)((hour - part->picture->window.from) / HOUR_MS));
        *cell = (struct cell){0};
    }
}

/* A part of a GPU counts as much as it is of the GPU. */
static void add_activity(struct cell *cell, int64_t *const *columns, size_t i)
{
    int64_t whole = columns[COLUMN_OBSERVED][i] * columns[COLUMN_SHARE_DEN][i];
    for (int a = 0; whole > 0 && a < ACTIVITIES; a++) {
        wide_t share = (wide_t)columns[COLUMN_GPU_OBSERVED][i] * 1024 / whole;
        cell->activity[a] += columns[COLUMN_SM + activities[a].measure][i] * share;
        cell->activity_seen[a] += columns[COLUMN_SM_SEEN + activities[a].measure][i] * share;
    }
}

static void add_memory(struct cell *cell, int64_t *const *columns, size_t i)
{
    cell->mem_byte_ms += (uint64_t)columns[COLUMN_MEM_BYTE_MS][i];
    if (columns[COLUMN_MEM_SEEN][i] > cell->mem_seen_ms)
        cell->mem_seen_ms = columns[COLUMN_MEM_SEEN][i];
    if (columns[COLUMN_MEM_TOTAL][i] > cell->mem_total)
        cell->mem_total = columns[COLUMN_MEM_TOTAL][i];
    cell->energy_mj += columns[COLUMN_ENERGY][i];
}

static void add_holder(struct cell *cell, const struct day_series *series, int64_t held_ms)
{
    if (series->key.pod == NAME_NONE || held_ms <= cell->holder_ms)
        return;
    cell->holder_ms = held_ms;
    cell->holder =
        (struct holder){series->key.namespace, series->facts.workload, series->facts.owner};
}

/* Row i of a series. */
static void add_row(const struct part *part, struct cell *cell, const struct day_series *series,
                    size_t i)
{
    int64_t *const *columns = series->columns;
    int64_t den = columns[COLUMN_SHARE_DEN][i] > 1 ? columns[COLUMN_SHARE_DEN][i] : 1;
    if (!cell->of)
        cell->of = series;
    for (int c = 0; c < CATEGORY_COUNT; c++)
        if (!(series->zero >> (COLUMN_USED + c) & 1))
            cell->category[c] += columns[COLUMN_USED + c][i];
    cell->cost += columns[COLUMN_COST][i];
    cell->gpu_ms += ((wide_t)columns[COLUMN_GPU][i] << 20) / den;
    cell->held_ms += columns[COLUMN_GPU_HELD][i] / den;
    cell->observed_ms += columns[COLUMN_GPU_OBSERVED][i] / den;
    cell->idle_ms += columns[COLUMN_GPU_IDLE][i] / den;
    cell->u += columns[COLUMN_GPU_U][i] / den;
    if (!part->picture->full)
        return;
    add_memory(cell, columns, i);
    add_activity(cell, columns, i);
    add_holder(cell, series, columns[COLUMN_GPU_HELD][i] / den);
}

/* Has row i money of a category that is asked for? */
static bool row_passes(struct filters *filters, const struct day_series *series, size_t i,
                       time_ms hour)
{
    struct row_key key = series->key;
    struct facets facets = {&key, &series->facts, -1};
    bool any = !filters->splits;
    key.hour = hour;
    for (int c = 0; c < CATEGORY_COUNT && !any; c++) {
        facets.category = c;
        any =
            series->columns[COLUMN_USED + c][i] && filters_pass(filters, FILTERS_OF_PARTS, &facets);
    }
    return any;
}

static void add_series(struct part *part, int64_t day, const struct day_series *series)
{
    uint32_t pass = filters_pass_hours(&part->filters, series), rest = series->hours;
    for (size_t i = series->from; rest; rest &= rest - 1, i++) {
        int hour = __builtin_ctz(rest);
        if (pass >> hour & 1 &&
            row_passes(&part->filters, series, i, day * DAY_MS + hour * HOUR_MS))
            add_row(part, &part->cells[hour], series, i);
    }
}

static void on_begin(void *context, size_t chunks)
{
    struct picture *picture = context;
    struct error none = {0};
    picture->parts = mem_zalloc(chunks, sizeof *picture->parts);
    picture->parts_n = chunks;
    for (size_t i = 0; i < chunks; i++) {
        struct part *part = &picture->parts[i];
        part->picture = picture;
        /* the zone was there a moment ago */
        invariant(keys_init(&part->keys, picture->names, picture->query->tz, &none) == ERR_OK);
        filters_init(&part->filters, picture->query, &part->keys);
    }
}

/* Series of a device stand together, in the order in which rows of an hour do. */
static bool on_day(void *context, size_t chunk, const struct node_day *day)
{
    struct picture *picture = context;
    struct part *part = &picture->parts[chunk];
    for (size_t s = 0; s < day->series_n; s++) {
        add_series(part, day->day, &day->series[s]);
        if (s + 1 == day->series_n || day->series[s + 1].key.device != day->series[s].key.device)
            close_cells(part, day->day);
    }
    return true;
}

static int compare_strips(const void *a, const void *b, void *names)
{
    const struct strip *x = a, *y = b;
    int order = str_cmp(names_text(names, x->cluster), names_text(names, y->cluster));
    if (order == 0)
        order = str_cmp(names_text(names, x->node), names_text(names, y->node));
    return order ? order : str_cmp(names_text(names, x->device), names_text(names, y->device));
}

/* The strips of all parts in one row. */
static void join_parts(struct picture *picture)
{
    size_t n = 0;
    for (size_t i = 0; i < picture->parts_n; i++)
        n += picture->parts[i].strips_n;
    picture->strips = mem_alloc((n + 1) * sizeof *picture->strips);
    for (size_t i = 0; i < picture->parts_n; i++) {
        struct part *part = &picture->parts[i];
        if (part->strips_n)
            memcpy(picture->strips + picture->strips_n, part->strips,
                   part->strips_n * sizeof *part->strips);
        picture->strips_n += part->strips_n;
        part->strips_n = 0;
    }
    if (n)
        qsort_r(picture->strips, n, sizeof *picture->strips, compare_strips, picture->names);
}

/* Holders by number, in the order in which they come in the text. */
static void number_holders(struct picture *picture)
{
    for (size_t s = 0; s < picture->strips_n; s++)
        for (size_t i = 0; i < picture->strips[s].runs_n; i++) {
            struct holder_run *run = &picture->strips[s].runs[i];
            const struct holder *holder = &run->holder;
            bool is_new;
            run->index = idmap_add(&picture->by_holder,
                                   IDKEY(holder->namespace, holder->workload, holder->team),
                                   (uint32_t)picture->holders_n, &is_new);
            if (is_new)
                mem_push(picture->holders, picture->holders_n, picture->holders_room, *holder);
        }
}

static void add_name(struct strbuf *out, const struct picture *picture, const char *field,
                     name_t name)
{
    strbuf_addf(out, "\"%s\": ", field);
    if (name == NAME_NONE) {
        strbuf_add(out, STR("null"));
        return;
    }
    strbuf_addc(out, '"');
    text_json(out, names_text(picture->names, name));
    strbuf_addc(out, '"');
}

static void add_full(struct strbuf *out, const struct strip *strip, size_t hours_n)
{
    int top = 1;
    for (size_t i = 0; i < hours_n; i++)
        top = strip->power[i] > top ? strip->power[i] : top;
    strbuf_addf(out,
                ", \"memory_total\": %lld, \"memory\": \"%s\", \"power_top\": %d, \"power\": \"",
                (long long)strip->memory_total, strip->memory, top * 8);
    for (size_t i = 0; i < hours_n; i++)
        strbuf_addc(out, strip->power[i] ? digit_text[strip->power[i] * DIGITS / top] : '-');
    strbuf_addc(out, '"');
    for (int i = 0; i < ACTIVITIES; i++)
        if (strip->activity[i])
            strbuf_addf(out, ", \"%s\": \"%s\"", activities[i].field, strip->activity[i]);
    strbuf_add(out, STR(", \"runs\": ["));
    for (size_t i = 0; i < strip->runs_n; i++)
        strbuf_addf(out, "%s%u,%u,%u", i ? "," : "", strip->runs[i].from, strip->runs[i].n,
                    strip->runs[i].index);
    strbuf_addc(out, ']');
}

static void add_strip(struct strbuf *out, const struct picture *picture, const struct strip *strip)
{
    strbuf_addc(out, '{');
    add_name(out, picture, "device", strip->device);
    strbuf_add(out, STR(", "));
    add_name(out, picture, "model", strip->model);
    strbuf_add(out, STR(", \"price_hour\": "));
    wide_t hour = (wide_t)HOUR_MS << 20;
    char text[MONEY_TEXT_MAX];
    if (strip->cost > 0 && strip->gpu_ms > 0)
        strbuf_addf(out, "\"%s\"",
                    money_format((money_t)(strip->cost * hour / strip->gpu_ms), text));
    else
        strbuf_add(out, STR("null"));
    strbuf_addf(out, ", \"hours\": \"%s\", \"use\": \"%s\"", strip->cells, strip->use);
    if (picture->full)
        add_full(out, strip, picture->hours_n);
    strbuf_addc(out, '}');
}

static void add_nodes(struct strbuf *out, const struct picture *picture)
{
    for (size_t i = 0; i < picture->strips_n; i++) {
        const struct strip *strip = &picture->strips[i], *before = i ? strip - 1 : NULL;
        if (before && before->node == strip->node && before->cluster == strip->cluster) {
            strbuf_add(out, STR(",\n"));
        } else {
            strbuf_add(out, str_of(before ? "]},\n{" : "\n{"));
            add_name(out, picture, "cluster", strip->cluster);
            strbuf_add(out, STR(", "));
            add_name(out, picture, "node", strip->node);
            strbuf_add(out, STR(", "));
            add_name(out, picture, "instance_type", strip->instance_type);
            strbuf_add(out, STR(", "));
            add_name(out, picture, "pool", strip->pool);
            strbuf_add(out, STR(", \"gpus\": [\n"));
        }
        add_strip(out, picture, strip);
    }
    strbuf_add(out, str_of(picture->strips_n ? "]}\n]" : "]"));
}

static void print(struct strbuf *out, const struct picture *picture)
{
    char text[TIME_TEXT_MAX];
    strbuf_add(out, STR("{\"schema\": \"gputally.fleet/1\", \"hours\": ["));
    for (size_t i = 0; i < picture->hours_n; i++)
        strbuf_addf(out, "%s\"%s\"", i ? "," : "",
                    time_format(picture->window.from + (time_ms)i * HOUR_MS, text));
    strbuf_add(out, STR("], \"categories\": ["));
    for (int i = 0; i < CATEGORY_COUNT; i++)
        strbuf_addf(out, "%s\"%s\"", i ? ", " : "", category_columns[i]);
    strbuf_add(out, STR("]"));
    if (picture->full) {
        strbuf_add(out, STR(", \"holders\": ["));
        for (size_t i = 0; i < picture->holders_n; i++) {
            const struct holder *holder = &picture->holders[i];
            strbuf_add(out, str_of(i ? ",\n{" : "\n{"));
            add_name(out, picture, "namespace", holder->namespace);
            strbuf_add(out, STR(", "));
            add_name(out, picture, "workload", holder->workload);
            strbuf_add(out, STR(", "));
            add_name(out, picture, "team", holder->team);
            strbuf_addc(out, '}');
        }
        strbuf_addc(out, ']');
    }
    strbuf_add(out, STR(", \"nodes\": ["));
    add_nodes(out, picture);
    strbuf_add(out, STR("}\n"));
}

static void strips_release(struct strip *strips, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        free(strips[i].cells);
        free(strips[i].use);
        free(strips[i].memory);
        free(strips[i].power);
        for (int k = 0; k < ACTIVITIES; k++)
            free(strips[i].activity[k]);
        free(strips[i].runs);
    }
    free(strips);
}

static void picture_release(struct picture *picture)
{
    for (size_t i = 0; i < picture->parts_n; i++) {
        strips_release(picture->parts[i].strips, picture->parts[i].strips_n);
        idmap_release(&picture->parts[i].by_device);
        filters_release(&picture->parts[i].filters);
        keys_release(&picture->parts[i].keys);
    }
    free(picture->parts);
    strips_release(picture->strips, picture->strips_n);
    free(picture->holders);
    idmap_release(&picture->by_holder);
}

enum err fleet_json(struct store *store, const struct query *query, enum fleet_json_detail detail,
                    struct strbuf *out, struct error *err)
{
    struct span window = {hour_floor(query->window.from), hour_ceil(query->window.to)};
    if (window.to - window.from > PICTURE_HOURS_MAX * HOUR_MS)
        window.from = window.to - PICTURE_HOURS_MAX * HOUR_MS;
    const struct zone *zone;
    struct picture picture = {.names = store_names(store),
                              .query = query,
                              .window = window,
                              .hours_n = (size_t)((window.to - window.from) / HOUR_MS),
                              .full = detail == FLEET_JSON_FULL};
    struct store_node_reader reader = {.context = &picture,
                                       .columns =
                                           picture.full ? NODE_COLUMNS_ROWS : NODE_COLUMNS_HOT,
                                       .begin = on_begin,
                                       .day = on_day};
    for (size_t i = 0; i < query->filters_n; i++)
        reader.pods |= query->filters[i].key == KEY_POD;
    enum err code = zone_load(query->tz, &zone, err);
    if (code == ERR_OK)
        code = query_nodes(store, window, &reader, err);
    if (code == ERR_OK) {
        join_parts(&picture);
        number_holders(&picture);
        print(out, &picture);
    }
    picture_release(&picture);
    return code;
}
