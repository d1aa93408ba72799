/* The idle scan for people: table, wide table, Markdown. */
#include "report/idle.h"

#include <stdlib.h>

#include "query/window.h"
#include "report/grid.h"
#include "report/idle_rows.h"
#include "report/text.h"

#define HELD_AT_ALL (NANO / 100) /* less is a pod that came and went */
#define MINUTE_MS 60000

static size_t count(const struct idle_scan *scan, enum idle_verdict verdict)
{
    size_t n = 0;
    for (size_t i = 0; i < scan->devices_n; i++)
        n += scan->devices[i].verdict == verdict;
    return n;
}

static void add_head(const struct idle_report *report, struct strbuf *out)
{
    const struct view *view = report->scan->view;
    char day[16];
    if (report->title) {
        text_clean(out, str_of(report->title));
        strbuf_add(out, STR(" · "));
    }
    strbuf_add(out, STR("idle scan"));
    if (view->days_n) {
        strbuf_addf(out, " · %zu complete days, %s", view->days_n,
                    day_name(view->days[0].from, report->tz, day));
        strbuf_addf(out, " to %s", day_name(view->days[view->days_n - 1].from, report->tz, day));
    }
    if (report->tz)
        strbuf_addf(out, " (%s)", report->tz);
    strbuf_add(out, STR(" · "));
    text_plural(out, (wide_t)view->devices_n, "GPU", "GPUs");
    strbuf_add(out, STR(" on "));
    text_plural(out, (wide_t)view->nodes_n, "node", "nodes");
}

static void add_verdicts(const struct idle_report *report, struct strbuf *out)
{
    const struct idle_scan *scan = report->scan;
    size_t nodes = 0;
    for (size_t i = 0; i < scan->nodes_n; i++)
        nodes += scan->nodes[i].verdict == VERDICT_IDLE;
    strbuf_add(out, STR("idle "));
    text_plural(out, (wide_t)count(scan, VERDICT_IDLE), "GPU", "GPUs");
    strbuf_add(out, STR(" ("));
    text_plural(out, (wide_t)nodes, "whole node", "whole nodes");
    strbuf_addf(out, ") · partly idle %zu · not idle %zu · not enough data %zu",
                count(scan, VERDICT_PARTLY), count(scan, VERDICT_NOT),
                count(scan, VERDICT_UNKNOWN));
}

static void add_thresholds(const struct idle_report *report, struct strbuf *out)
{
    const struct idle_scan *scan = report->scan;
    int64_t power = scan->devices_n ? scan->devices[0].power_below : IDLE_POWER_BELOW;
    strbuf_add(out, STR("idle: on every day GPU_UTIL below 10 %, memory below 20 %, power below "));
    text_percent(out, report->power_auto ? IDLE_POWER_BELOW : power, 0);
    strbuf_add(out,
               STR(" of the limit; its node's CPU never above 5 % for 5 min, network below 30 MB a "
                   "day"));
    for (size_t i = 0; report->power_auto && i < scan->floors_n; i++) {
        const struct idle_floor *floor = &scan->floors[i];
        if (floor->ratio + IDLE_FLOOR_MARGIN <= IDLE_POWER_BELOW)
            continue;
        strbuf_add(out, STR("; "));
        text_clean(out, names_text(scan->view->names, floor->model));
        strbuf_addc(out, ' ');
        text_percent(out, floor->ratio + IDLE_FLOOR_MARGIN, 1);
        strbuf_add(out, STR(": it draws "));
        text_percent(out, floor->ratio, 1);
        strbuf_add(out, STR(" when idle ("));
        text_plural(out, floor->samples, "sample", "samples");
        strbuf_addc(out, ')');
    }
}

static void add_unchecked(const struct idle_scan *scan, struct strbuf *out)
{
    const char *head = "unchecked: ";
    for (int s = 0; s < HOST_SIGNALS; s++) {
        size_t n = 0;
        for (size_t i = 0; i < scan->nodes_n; i++)
            n += scan->nodes[i].unchecked[s];
        if (!n)
            continue;
        strbuf_addf(out, "%s%s of ", head, idle_host_words[s]);
        text_plural(out, (wide_t)n, "node", "nodes");
        head = "; ";
    }
    if (*head == ';')
        strbuf_add(out, STR(" (no node_exporter): its work may be on the CPU, so ask before a node "
                            "is removed"));
    for (int s = 0; s < VIEW_SIGNALS; s++) {
        size_t n = 0;
        for (size_t i = 0; i < scan->devices_n; i++)
            n += scan->devices[i].unchecked[s];
        if (n) {
            strbuf_addf(out, "%s%s of ", head, view_signal_words[s]);
            text_plural(out, (wide_t)n, "GPU", "GPUs");
            head = "; ";
        }
    }
    if (*head != ';')
        strbuf_add(out, STR("unchecked: nothing"));
}

static void add_columns(struct grid *grid, bool wide)
{
    grid_column(grid, "NODE", GRID_NAME);
    grid_column(grid, "GPU", GRID_NAME);
    grid_column(grid, "VERDICT", GRID_NAME);
    grid_column(grid, "UTIL", GRID_RIGHT);
    grid_column(grid, "MEMORY", GRID_RIGHT);
    grid_column(grid, "POWER", GRID_RIGHT);
    if (wide) {
        grid_column(grid, "POWER BELOW", GRID_RIGHT);
        grid_column(grid, "NODE CPU", GRID_RIGHT);
        grid_column(grid, "NETWORK", GRID_RIGHT);
    }
    grid_column(grid, "HELD", GRID_RIGHT);
    if (wide)
        grid_column(grid, "DAYS", GRID_RIGHT);
    grid_column(grid, "IDLE SINCE", GRID_NAME);
    grid_column(grid, "HOURS", GRID_RIGHT);
    grid_column(grid, "COST", GRID_RIGHT);
    grid_column(grid, "LONGEST", GRID_RIGHT);
    grid_column(grid, "LAST 3 H", GRID_NAME);
    grid_column(grid, wide ? "MODEL" : "ADVICE", GRID_WORDS);
    if (wide)
        grid_column(grid, "UNCHECKED", GRID_WORDS);
}

static void cell_percent(struct grid *grid, struct strbuf *text, int64_t ratio)
{
    strbuf_clear(text);
    if (ratio < 0)
        strbuf_add(text, STR("–"));
    else
        text_percent(text, ratio, 0);
    grid_cell(grid, strbuf_str(text));
}

/* The end of the window is always a little later than the last sample. */
static bool has_gaps(const struct idle_since *since)
{
    int64_t ms = since->span.to - since->span.from;
    return (ms - since->observed_ms) * 100 > ms;
}

static void cells_since(const struct idle_report *report, struct grid *grid, struct strbuf *text,
                        const struct idle_since *since, int places)
{
    strbuf_clear(text);
    if (!since->any) {
        grid_cell(grid, STR("–"));
        grid_cell(grid, STR("–"));
        grid_cell(grid, STR("–"));
        return;
    }
    text_time(text, since->span.from - since->span.from % MINUTE_MS);
    grid_cell(grid, strbuf_str(text));
    strbuf_clear(text);
    text_nano(text, (wide_t)(since->span.to - since->span.from) * NANO / HOUR_MS, 1);
    if (has_gaps(since))
        strbuf_add(text, STR("*"));
    grid_cell(grid, strbuf_str(text));
    strbuf_clear(text);
    if (since->priced)
        text_money(text, since->cost, places, report->currency);
    else
        strbuf_add(text, STR("unpriced"));
    grid_cell(grid, strbuf_str(text));
}

static void cells_recent(struct grid *grid, struct strbuf *text, const struct idle_row *row)
{
    strbuf_clear(text);
    if (row->longest->any)
        text_nano(text, (wide_t)(row->longest->span.to - row->longest->span.from) * NANO / HOUR_MS,
                  1);
    else
        strbuf_add(text, STR("–"));
    grid_cell(grid, strbuf_str(text));
    strbuf_clear(text);
    strbuf_addf(text, "%s, ", idle_badge_words[row->recent->badge]);
    text_percent(text, row->recent->observed, 0);
    strbuf_add(text, STR(" seen"));
    grid_cell(grid, strbuf_str(text));
}

/* The highest of the days; –: not known. */
static void cells_host(struct grid *grid, struct strbuf *text, const struct idle_node *node,
                       size_t days_n)
{
    struct view_host most = {-1, -1};
    for (size_t d = 0; d < days_n; d++) {
        const struct view_host *host = &node->days[d].host;
        most.cpu_max = host->cpu_max > most.cpu_max ? host->cpu_max : most.cpu_max;
        most.net_bytes = host->net_bytes > most.net_bytes ? host->net_bytes : most.net_bytes;
    }
    cell_percent(grid, text, most.cpu_max);
    strbuf_clear(text);
    if (most.net_bytes < 0) {
        strbuf_add(text, STR("–"));
    } else {
        text_nano(text, (wide_t)most.net_bytes * (NANO / 1000000), 0);
        strbuf_add(text, STR(" MB"));
    }
    grid_cell(grid, strbuf_str(text));
}

/* Advice to stop only where it has lasted and is observed; else whom to ask. */
static struct str advice_of(const struct idle_row *row, size_t days_n)
{
    bool held = idle_row_held(row, days_n) > HELD_AT_ALL;
    if (row->node->cpu_bound.is)
        return STR("its work is on the CPU: see below");
    if (row->node->node->capacity == CAPACITY_RESERVED && !held)
        return STR("use it: it is reserved, giving it back saves nothing");
    if (!row->advice)
        return held ? STR("ask its holder what it is kept for") : STR("watch it");
    if (held)
        return STR("ask its holder to give it back");
    if (idle_host_works(row->node, days_n) && !(row->device && row->node->devices_n > 1))
        return STR("its CPUs or network are at work: ask what runs there");
    return row->device && row->node->devices_n > 1
               ? STR("pack the node fuller, or use a smaller one")
               : STR("remove the node");
}

static void cell_unchecked(struct grid *grid, struct strbuf *text, const struct idle_row *row)
{
    strbuf_clear(text);
    for (int s = 0; s < VIEW_SIGNALS; s++)
        if (row->device->unchecked[s])
            strbuf_addf(text, "%s%s", text->n ? ", " : "", view_signal_words[s]);
    grid_cell(grid, text->n ? strbuf_str(text) : STR("–"));
}

static void add_row(const struct idle_report *report, struct grid *grid, const struct idle_row *row,
                    bool wide, int places)
{
    const struct view *view = report->scan->view;
    size_t days_n = view->days_n;
    struct strbuf text = {0};
    grid_row(grid, false);
    grid_cell(grid, names_text(view->names, row->node->node->node));
    if (row->device) {
        grid_cell(grid, names_text(view->names, row->device->device->device));
    } else {
        strbuf_addf(&text, "all %zu", row->node->devices_n);
        grid_cell(grid, strbuf_str(&text));
    }
    grid_cell(grid, str_of(idle_verdict_words[row->verdict]));
    for (int s = 0; s < VIEW_SIGNALS; s++)
        cell_percent(grid, &text, idle_row_mean(row, days_n, (enum view_signal)s));
    if (wide) {
        cell_percent(grid, &text, row->device->power_below);
        cells_host(grid, &text, row->node, days_n);
    }
    cell_percent(grid, &text, idle_row_held(row, days_n));
    if (wide) {
        strbuf_clear(&text);
        strbuf_addf(&text, "%zu/%zu", row->device->sufficient_days, days_n);
        grid_cell(grid, strbuf_str(&text));
    }
    cells_since(report, grid, &text, row->since, places);
    cells_recent(grid, &text, row);
    if (wide) {
        grid_cell(grid, names_text(view->names, row->device->device->model));
        cell_unchecked(grid, &text, row);
    } else {
        grid_cell(grid, advice_of(row, days_n));
    }
    strbuf_release(&text);
}

static struct grid *lay_out(const struct idle_report *report, bool wide, size_t *ret_n,
                            bool *ret_gaps)
{
    struct grid *grid = grid_new();
    struct idle_row *rows = idle_rows(report->scan, wide, ret_n);
    money_t largest = 0;
    *ret_gaps = false;
    for (size_t i = 0; i < *ret_n; i++) {
        const struct idle_since *since = rows[i].since;
        largest = since->any && since->priced && since->cost > largest ? since->cost : largest;
        *ret_gaps |= since->any && has_gaps(since);
    }
    add_columns(grid, wide);
    for (size_t i = 0; i < *ret_n; i++)
        add_row(report, grid, &rows[i], wide, text_money_places(largest));
    free(rows);
    return grid;
}

static void render_table(const struct idle_report *report, bool wide, struct strbuf *out)
{
    size_t n;
    bool gaps;
    struct grid *grid = lay_out(report, wide, &n, &gaps);
    add_head(report, out);
    strbuf_addc(out, '\n');
    add_verdicts(report, out);
    strbuf_add(out, STR("\n\n"));
    if (n) {
        struct grid_style style = {.columns = report->columns, .colour = report->colour};
        grid_text(grid, &style, out);
        strbuf_addc(out, '\n');
        strbuf_add(out, STR("UTIL, MEMORY, POWER: average of the highest day; LONGEST: hours of "
                            "the longest run "
                            "without work in the window\n"));
        if (gaps)
            strbuf_add(out,
                       STR("* more than 1 % of it is not observed (--output json has the gaps)\n"));
    } else {
        strbuf_add(out, STR("nothing stands idle\n"));
    }
    idle_cpu_text(report, out);
    add_thresholds(report, out);
    strbuf_addc(out, '\n');
    add_unchecked(report->scan, out);
    strbuf_addc(out, '\n');
    grid_free(grid);
}

static void add_paragraph(struct strbuf *out, struct strbuf *text)
{
    markdown_text(out, strbuf_str(text));
    strbuf_add(out, STR("\n\n"));
    strbuf_clear(text);
}

static void render_markdown(const struct idle_report *report, struct strbuf *out)
{
    size_t n;
    bool gaps;
    struct strbuf text = {0};
    struct grid *grid = lay_out(report, false, &n, &gaps);
    strbuf_add(out, STR("### "));
    add_head(report, &text);
    add_paragraph(out, &text);
    add_verdicts(report, &text);
    add_paragraph(out, &text);
    if (n)
        grid_markdown(grid, out);
    else
        strbuf_add(out, STR("nothing stands idle\n"));
    strbuf_addc(out, '\n');
    idle_cpu_markdown(report, out);
    add_thresholds(report, &text);
    add_paragraph(out, &text);
    add_unchecked(report->scan, &text);
    markdown_text(out, strbuf_str(&text));
    strbuf_addc(out, '\n');
    strbuf_release(&text);
    grid_free(grid);
}

void idle_report_render(const struct idle_report *report, enum report_format format,
                        struct strbuf *out)
{
    switch (format) {
    case REPORT_TABLE:
    case REPORT_WIDE:
        render_table(report, format == REPORT_WIDE, out);
        break;
    case REPORT_CSV:
        idle_report_csv(report, out);
        break;
    case REPORT_JSON:
        idle_report_json(report, out);
        break;
    case REPORT_MARKDOWN:
        render_markdown(report, out);
        break;
    case REPORT_FORMAT_COUNT:
        break;
    }
}
