#include "report/top.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>

#include "report/grid.h"
#include "report/text.h"
#include "util/config_file.h"

#define BAR_CELLS 8
#define HEAD_LINES 4                  /* above the rows: title, sums, an empty line, headings */
#define PRICE_MAX (NANO * 1000000000) /* an hour */
#define OLD_MS (5 * 60 * 1000)        /* of samples: what is older is not "now" */
#define TITLE_COLUMNS 100             /* from here on there is room for the server's address */
#define GIB (INT64_C(1) << 30)

const char *const top_sort_words[TOP_SORTS] = {
#define X(id, word) word,
    TOP_SORT_TABLE(X)
#undef X
};

/* ---- reading ---- */

void top_list_release(struct top_list *list)
{
    free(list->gpus);
    arena_release(&list->arena);
    *list = (struct top_list){0};
}

static struct str text_in(struct top_list *list, const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    if (!json_is_string(value))
        return STR_NONE;
    struct str text = {json_string_value(value), json_string_length(value)};
    return str_keep(&list->arena, text);
}

/* scale: what 1 of the answer is here; -1 where it is absent. */
static int64_t number_in(const json_t *object, const char *key, double scale)
{
    const json_t *value = json_object_get(object, key);
    double v = json_is_number(value) ? json_number_value(value) * scale : -1;
    return v >= 0 && v < 9e18 ? (int64_t)llround(v) : -1;
}

static time_ms time_in(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    time_ms t;
    return text && time_parse(str_of(text), &t) ? t : TIME_MIN;
}

static money_t price_in(const json_t *object)
{
    const char *text = json_string_value(json_object_get(object, "price_hour"));
    money_t price;
    return text && decimal_parse(str_of(text), 9, PRICE_MAX, &price) ? price : -1;
}

static void read_gpu(struct top_list *list, const json_t *from)
{
    const json_t *holder = json_object_get(from, "holder");
    struct top_gpu gpu = {.cluster = text_in(list, from, "cluster"),
                          .node = text_in(list, from, "node"),
                          .device = text_in(list, from, "device"),
                          .model = text_in(list, from, "model"),
                          .namespace = text_in(list, holder, "namespace"),
                          .workload = text_in(list, holder, "workload"),
                          .team = text_in(list, holder, "team"),
                          .util = number_in(from, "util", (double)NANO),
                          .sm = number_in(from, "sm", (double)NANO),
                          .memory_used = number_in(from, "memory_used", 1),
                          .memory_total = number_in(from, "memory_total", 1),
                          .power_w = number_in(from, "power_w", 1),
                          .price_hour = price_in(from),
                          .idle_since = time_in(from, "idle_since"),
                          .at = time_in(from, "at"),
                          .of_hour = str_eq(text_in(list, from, "basis"), STR("hour"))};
    if (!gpu.workload.n) /* its first hour is not booked yet */
        gpu.workload = text_in(list, holder, "pod");
    mem_push(list->gpus, list->n, list->room, gpu);
}

static int by_node(const void *a, const void *b)
{
    const struct top_gpu *x = a, *y = b;
    int order = str_cmp(x->cluster, y->cluster);
    order = order ? order : str_cmp(x->node, y->node);
    return order ? order : str_cmp(x->device, y->device);
}

static void number_gpus(struct top_list *list)
{
    if (list->n)
        qsort(list->gpus, list->n, sizeof *list->gpus, by_node);
    for (size_t i = 0; i < list->n; i++) {
        struct top_gpu *gpu = &list->gpus[i];
        bool same = i && str_eq(gpu[-1].node, gpu->node) && str_eq(gpu[-1].cluster, gpu->cluster);
        gpu->index = same ? gpu[-1].index + 1 : 0;
    }
}

enum err top_read(struct str json, struct top_list *ret, struct error *err)
{
    json_error_t why;
    json_t *root = json_loadb(json.p, json.n, 0, &why);
    if (!json_is_array(root) || json_array_size(root) > TOP_GPUS_MAX) {
        json_decref(root);
        return error_set(err, ERR_PARSE, "the answer is no list of GPUs%s%s", root ? "" : ": ",
                         root ? "" : why.text);
    }
    top_list_release(ret);
    for (size_t i = 0; i < json_array_size(root); i++)
        read_gpu(ret, json_array_get(root, i));
    json_decref(root);
    number_gpus(ret);
    return ERR_OK;
}

void top_currency(struct str json, char *ret, size_t room)
{
    json_t *root = json_loadb(json.p, json.n, 0, NULL);
    const char *text = json_string_value(json_object_get(root, "currency"));
    snprintf(ret, room, "%s", text && strlen(text) < room ? text : "USD");
    json_decref(root);
}

/* ---- what is shown ---- */

static int64_t use_of(const struct top_gpu *gpu)
{
    return gpu->sm >= 0 ? gpu->sm : gpu->util;
}

static int descending(int64_t a, int64_t b)
{
    return a < b ? 1 : a > b ? -1 : 0;
}

static int by_cost(const void *a, const void *b)
{
    const struct top_gpu *x = a, *y = b;
    int order = descending(x->price_hour, y->price_hour);
    return order ? order : by_node(a, b);
}

/* Held without work, nobody knows since when, comes after what is known; then the rest. */
static time_ms idle_key(const struct top_gpu *gpu)
{
    if (gpu->idle_since != TIME_MIN)
        return gpu->idle_since;
    return gpu->namespace.n && use_of(gpu) == 0 ? TIME_MAX - 1 : TIME_MAX;
}

/* Idle the longest first. */
static int by_idle(const void *a, const void *b)
{
    const struct top_gpu *x = a, *y = b;
    time_ms since_x = idle_key(x), since_y = idle_key(y);
    int order = descending(since_y, since_x);
    order = order ? order : descending(x->namespace.n > 0, y->namespace.n > 0);
    return order ? order : by_node(a, b);
}

static int by_use(const void *a, const void *b)
{
    int order = descending(use_of(a), use_of(b));
    return order ? order : by_node(a, b);
}

static int by_memory(const void *a, const void *b)
{
    const struct top_gpu *x = a, *y = b;
    int order = descending(x->memory_used, y->memory_used);
    return order ? order : by_node(a, b);
}

static int by_power(const void *a, const void *b)
{
    const struct top_gpu *x = a, *y = b;
    int order = descending(x->power_w, y->power_w);
    return order ? order : by_node(a, b);
}

static int (*const orders[TOP_SORTS])(const void *, const void *) = {by_node, by_cost,   by_idle,
                                                                     by_use,  by_memory, by_power};

static bool has_part(struct str text, struct str part)
{
    return part.n == 0 || (text.n >= part.n && memmem(text.p, text.n, part.p, part.n));
}

/* team=NAME: all of that team and nothing else; "free" is nobody's. */
static bool is_shown(const struct top_gpu *gpu, struct str filter)
{
    struct str head = STR("team=");
    if (str_starts(filter, head)) {
        struct str team = {filter.p + head.n, filter.n - head.n};
        return str_eq(gpu->namespace.n ? gpu->team : STR("free"), team);
    }
    return has_part(gpu->node, filter) || has_part(gpu->workload, filter) ||
           has_part(gpu->team, filter) || has_part(gpu->model, filter) ||
           has_part(gpu->namespace, filter);
}

/* ---- cells ---- */

static void cell(struct grid *grid, struct strbuf *text)
{
    grid_cell(grid, text->n ? strbuf_str(text) : STR("–"));
    strbuf_clear(text);
}

/* A terminal of 80 columns has room for what matters, not for where the node stands. */
static bool is_narrow(const struct top_view *view)
{
    return view->columns && view->columns < TITLE_COLUMNS;
}

static void add_bar(struct strbuf *out, int64_t ratio, const struct top_view *view)
{
    static const char *const parts[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    if (ratio < 0)
        return;
    int64_t cells = is_narrow(view) ? BAR_CELLS / 2 : BAR_CELLS;
    int64_t eighths = (ratio * cells * 8 + NANO / 2) / NANO;
    for (int64_t i = 0; i < eighths / 8; i++)
        strbuf_add(out, STR("█"));
    strbuf_add(out, str_of(parts[eighths % 8]));
    if (!out->n)
        strbuf_add(out, STR("·"));
}

static void add_since(struct strbuf *out, time_ms since, time_ms now)
{
    if (since == TIME_MIN || since > now)
        return;
    long long minutes = (now - since) / 60000;
    if (minutes < 60)
        strbuf_addf(out, "%lld min", minutes);
    else if (minutes < 48 * 60)
        strbuf_addf(out, "%lld h %02lld", minutes / 60, minutes % 60);
    else
        strbuf_addf(out, "%lld d %lld h", minutes / 1440, minutes / 60 % 24);
}

/* What is not of now any more has its age, in brackets, in place of the use. */
static bool is_old(const struct top_gpu *gpu, const struct top_view *view)
{
    return !gpu->of_hour && gpu->at != TIME_MIN && view->now - gpu->at >= OLD_MS;
}

static void gpu_row(struct grid *grid, const struct top_gpu *gpu, const struct top_view *view)
{
    struct strbuf text = {0};
    grid_row(grid, false);
    if (gpu->cluster.n && !is_narrow(view))
        strbuf_addf(&text, "%.*s/", STR_ARG(gpu->cluster));
    strbuf_add(&text, gpu->node);
    cell(grid, &text);
    strbuf_addf(&text, "%d", gpu->index);
    cell(grid, &text);
    if (gpu->namespace.n)
        strbuf_addf(&text, "%.*s/%.*s", STR_ARG(gpu->namespace), STR_ARG(gpu->workload));
    else
        strbuf_add(&text, STR("free"));
    cell(grid, &text);
    strbuf_add(&text, gpu->team);
    cell(grid, &text);
    bool old = is_old(gpu, view);
    if (old) {
        strbuf_addc(&text, '(');
        add_since(&text, gpu->at, view->now);
        strbuf_addc(&text, ')');
    } else {
        add_bar(&text, use_of(gpu), view);
    }
    cell(grid, &text);
    if (use_of(gpu) >= 0 && !old)
        text_percent(&text, use_of(gpu), 0);
    cell(grid, &text);
    if (!is_narrow(view)) {
        if (gpu->util >= 0 && !old)
            text_percent(&text, gpu->util, 0);
        cell(grid, &text);
    }
    if (gpu->memory_used >= 0)
        strbuf_addf(&text, "%lld", (long long)((gpu->memory_used + GIB / 2) / GIB));
    if (gpu->memory_total > 0)
        strbuf_addf(&text, "/%lld", (long long)((gpu->memory_total + GIB / 2) / GIB));
    cell(grid, &text);
    if (gpu->power_w >= 0)
        strbuf_addf(&text, "%lld", (long long)gpu->power_w);
    cell(grid, &text);
    if (gpu->price_hour >= 0)
        text_money(&text, gpu->price_hour, 2, view->currency);
    cell(grid, &text);
    add_since(&text, gpu->idle_since, view->now);
    cell(grid, &text);
    strbuf_release(&text);
}

static size_t show_gpus(struct top_list *list, const struct top_view *view, size_t rows,
                        struct grid *grid)
{
    static const struct {
        const char *heading;
        enum grid_align align;
        bool wide; /* only where there is room */
    } columns[] = {
        {"NODE", GRID_NAME, false},   {"GPU", GRID_RIGHT, false}, {"HOLDER", GRID_NAME, false},
        {"TEAM", GRID_NAME, false},   {"USE", GRID_NAME, false},  {"", GRID_RIGHT, false},
        {"UTIL", GRID_RIGHT, true},   {"GIB", GRID_RIGHT, false}, {"W", GRID_RIGHT, false},
        {"/HOUR", GRID_RIGHT, false}, {"IDLE", GRID_RIGHT, false}};
    size_t shown = 0;
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
        if (!columns[i].wide || !is_narrow(view))
            grid_column(grid, columns[i].heading, columns[i].align);
    if (list->n)
        qsort(list->gpus, list->n, sizeof *list->gpus, orders[view->sort]);
    for (size_t i = 0; i < list->n; i++) {
        if (!is_shown(&list->gpus[i], view->filter))
            continue;
        if (shown >= view->offset && shown - view->offset < rows)
            gpu_row(grid, &list->gpus[i], view);
        shown++;
    }
    return shown;
}

/* ---- teams ---- */

struct team {
    struct str name;
    size_t gpus, idle, known;
    wide_t use;
    money_t price, idle_price;
};

static bool is_idle(const struct top_gpu *gpu)
{
    return gpu->idle_since != TIME_MIN || (gpu->namespace.n && use_of(gpu) == 0);
}

static void add_gpu(struct team *team, const struct top_gpu *gpu)
{
    money_t price = gpu->price_hour > 0 ? gpu->price_hour : 0;
    team->gpus++;
    team->price += price;
    if (is_idle(gpu)) {
        team->idle++;
        team->idle_price += price;
    }
    if (use_of(gpu) >= 0) {
        team->known++;
        team->use += use_of(gpu);
    }
}

static int dearest_first(const void *a, const void *b)
{
    const struct team *x = a, *y = b;
    int order = descending(x->price, y->price);
    return order ? order : str_cmp(x->name, y->name);
}

static struct team *teams_of(const struct top_list *list, struct str filter, size_t *ret_n)
{
    struct team *teams = NULL;
    size_t n = 0, room = 0;
    for (size_t i = 0; i < list->n; i++) {
        const struct top_gpu *gpu = &list->gpus[i];
        struct str name = gpu->namespace.n ? gpu->team : STR("free");
        size_t at = 0;
        if (!is_shown(gpu, filter))
            continue;
        while (at < n && !str_eq(teams[at].name, name))
            at++;
        if (at == n)
            mem_push(teams, n, room, ((struct team){.name = name}));
        add_gpu(&teams[at], gpu);
    }
    if (n)
        qsort(teams, n, sizeof *teams, dearest_first);
    *ret_n = n;
    return teams;
}

static size_t show_teams(const struct top_list *list, const struct top_view *view, size_t rows,
                         struct grid *grid)
{
    static const char *const headings[] = {"TEAM", "GPUS",  "USE",       "",
                                           "IDLE", "/HOUR", "IDLE /HOUR"};
    struct strbuf text = {0};
    size_t n;
    struct team *teams = teams_of(list, view->filter, &n);
    for (size_t i = 0; i < sizeof headings / sizeof *headings; i++)
        grid_column(grid, headings[i], i == 0 || i == 2 ? GRID_NAME : GRID_RIGHT);
    for (size_t i = view->offset; i < n && i - view->offset < rows; i++) {
        const struct team *team = &teams[i];
        int64_t use = team->known ? (int64_t)(team->use / (wide_t)team->known) : -1;
        grid_row(grid, false);
        grid_cell(grid, team->name);
        strbuf_addf(&text, "%zu", team->gpus);
        cell(grid, &text);
        add_bar(&text, use, view);
        cell(grid, &text);
        if (use >= 0)
            text_percent(&text, use, 0);
        cell(grid, &text);
        strbuf_addf(&text, "%zu", team->idle);
        cell(grid, &text);
        text_money(&text, team->price, 2, view->currency);
        cell(grid, &text);
        text_money(&text, team->idle_price, 2, view->currency);
        cell(grid, &text);
    }
    free(teams);
    strbuf_release(&text);
    return n;
}

/* ---- the screen ---- */

static void add_clipped(struct strbuf *out, const struct strbuf *line, size_t columns)
{
    struct strbuf clean = {0};
    text_clean(&clean, strbuf_str(line));
    if (columns >= 3)
        text_shorten(out, strbuf_str(&clean), columns);
    else
        strbuf_add(out, strbuf_str(&clean));
    strbuf_addc(out, '\n');
    strbuf_release(&clean);
}

/* How old what is shown is: of samples the newest, since a GPU that is silent says so in its row.
 */
static void add_age(const struct top_list *list, const struct top_view *view, struct strbuf *out)
{
    time_ms newest = TIME_MIN, hour = TIME_MIN;
    size_t hours = 0;
    for (size_t i = 0; i < list->n; i++) {
        const struct top_gpu *gpu = &list->gpus[i];
        time_ms *to = gpu->of_hour ? &hour : &newest;
        *to = gpu->at > *to ? gpu->at : *to;
        hours += gpu->of_hour;
    }
    if (newest != TIME_MIN && view->now >= newest) {
        time_ms age = view->now - newest;
        strbuf_add(out, STR(" · "));
        if (age < 60000)
            strbuf_addf(out, "%lld s", (long long)(age / 1000));
        else
            add_since(out, newest, view->now);
        strbuf_add(out, STR(" old"));
    }
    if (hours && hour != TIME_MIN) {
        strbuf_add(out, STR(" · "));
        if (hours < list->n)
            strbuf_addf(out, "%zu of the ", hours);
        strbuf_add(out, STR("hour up to "));
        add_since(out, hour, view->now);
        strbuf_add(out, STR(" ago"));
    }
}

static void add_head(const struct top_list *list, const struct top_view *view, struct strbuf *out)
{
    struct strbuf line = {0};
    struct team all = {0}, idle_held = {0};
    size_t free_n = 0, nodes = 0;
    char time[TIME_TEXT_MAX];
    for (size_t i = 0; i < list->n; i++) {
        const struct top_gpu *gpu = &list->gpus[i];
        add_gpu(&all, gpu);
        nodes += gpu->index == 0;
        free_n += gpu->namespace.n == 0;
        if (gpu->namespace.n && is_idle(gpu))
            add_gpu(&idle_held, gpu);
    }
    if (!is_narrow(view))
        strbuf_addf(&line, "gputally top · %s · ", view->title);
    strbuf_addf(&line, "%zu GPU%s on %zu node%s · ", list->n, list->n == 1 ? "" : "s", nodes,
                nodes == 1 ? "" : "s");
    text_money(&line, all.price, 2, view->currency);
    strbuf_add(&line, STR(" an hour"));
    add_age(list, view, &line);
    if (!is_narrow(view))
        strbuf_addf(&line, " · %s", time_format(view->now / 1000 * 1000, time));
    add_clipped(out, &line, view->columns);
    strbuf_clear(&line);
    if (view->trouble)
        strbuf_addf(&line, "! %s", view->trouble);
    else if (view->typing)
        strbuf_addf(&line, "filter: %.*s_", STR_ARG(view->filter));
    else
        strbuf_addf(
            &line, "idle and held %zu · free %zu · by %s%s%.*s%s", idle_held.gpus, free_n,
            view->teams ? "team" : top_sort_words[view->sort], view->filter.n ? " · filter " : "",
            STR_ARG(view->filter),
            view->filter.n && is_narrow(view) ? "" : " · keys: s sort, / filter, t teams, q quit");
    add_clipped(out, &line, view->columns);
    strbuf_addc(out, '\n');
    strbuf_release(&line);
}

size_t top_render(struct top_list *list, const struct top_view *view, struct strbuf *out)
{
    size_t rows = view->lines == 0           ? SIZE_MAX
                  : view->lines > HEAD_LINES ? view->lines - HEAD_LINES
                                             : 1;
    struct grid *grid = grid_new();
    struct grid_style style = {view->columns, view->colour};
    add_head(list, view, out);
    size_t n = view->teams ? show_teams(list, view, rows, grid) : show_gpus(list, view, rows, grid);
    grid_text(grid, &style, out);
    if (n == 0)
        strbuf_add(out, list->n ? STR("no GPU matches the filter\n") : STR("no GPUs\n"));
    grid_free(grid);
    return n;
}
