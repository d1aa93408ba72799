/* The second pattern of the idle scan: nodes whose GPUs stand still while their CPUs work, with the
 * machine that could do the work instead, or why none is named. */
#include "report/grid.h"
#include "report/idle_rows.h"
#include "report/text.h"

#define MONTH_HOURS 730
#define GIB (INT64_C(1) << 30)

size_t idle_cpu_nodes(const struct idle_scan *scan)
{
    size_t n = 0;
    for (size_t i = 0; i < scan->nodes_n; i++)
        n += scan->nodes[i].cpu_bound.is;
    return n;
}

static void cell_money(const struct idle_report *report, struct grid *grid, struct strbuf *text,
                       money_t amount, int places)
{
    strbuf_clear(text);
    text_money(text, amount, places, report->currency);
    grid_cell(grid, strbuf_str(text));
}

static void cells_instead(const struct idle_report *report, struct grid *grid, struct strbuf *text,
                          const struct idle_cpu_bound *bound)
{
    const struct instead *instead = &bound->instead;
    struct str no = STR("–");
    if (!instead->found) {
        for (int i = 0; i < 3; i++)
            grid_cell(grid, no);
        grid_cell(grid, str_of(instead->why));
        return;
    }
    grid_cell(grid, instead->offer.instance_type);
    cell_money(report, grid, text, instead->offer.price, 4);
    if (instead->saving <= 0) {
        grid_cell(grid, no);
        grid_cell(grid, STR("it costs no less"));
        return;
    }
    cell_money(report, grid, text, instead->saving * MONTH_HOURS,
               text_money_places(instead->saving * MONTH_HOURS));
    grid_cell(grid, instead->offer.source    ? str_of(instead->offer.source)
                    : instead->offer.derived ? STR("catalogue (derived)")
                                             : STR("catalogue"));
}

static void add_row(const struct idle_report *report, struct grid *grid,
                    const struct idle_node *node)
{
    const struct view_node *of = node->node;
    struct strbuf text = {0};
    grid_row(grid, false);
    grid_cell(grid, names_text(report->scan->view->names, of->node));
    text_percent(&text, node->cpu_bound.util, 0);
    grid_cell(grid, strbuf_str(&text));
    strbuf_clear(&text);
    text_percent(&text, node->cpu_bound.cpu_max, 0);
    grid_cell(grid, strbuf_str(&text));
    strbuf_clear(&text);
    if (of->requested_mcpu > 0) {
        text_nano_plain(&text, (wide_t)of->requested_mcpu * (NANO / 1000));
        strbuf_add(&text, STR(" CPUs, "));
        text_nano(&text,
                  (wide_t)(of->requested_memory_bytes > 0 ? of->requested_memory_bytes : 0) * NANO /
                      GIB,
                  1);
        strbuf_add(&text, STR(" GiB"));
    } else {
        strbuf_add(&text, STR("–"));
    }
    grid_cell(grid, strbuf_str(&text));
    cells_instead(report, grid, &text, &node->cpu_bound);
    strbuf_release(&text);
}

static struct grid *lay_out(const struct idle_report *report)
{
    struct grid *grid = grid_new();
    grid_column(grid, "NODE", GRID_NAME);
    grid_column(grid, "GPU_UTIL", GRID_RIGHT);
    grid_column(grid, "CPU PEAK", GRID_RIGHT);
    grid_column(grid, "ITS PODS REQUEST", GRID_RIGHT);
    grid_column(grid, "INSTEAD", GRID_NAME);
    grid_column(grid, "AN HOUR", GRID_RIGHT);
    grid_column(grid, "SAVES A MONTH", GRID_RIGHT);
    grid_column(grid, "PRICE FROM", GRID_WORDS);
    for (size_t i = 0; i < report->scan->nodes_n; i++)
        if (report->scan->nodes[i].cpu_bound.is)
            add_row(report, grid, &report->scan->nodes[i]);
    return grid;
}

static const struct str heading =
    STR("CPU work on GPU machines: GPU_UTIL below 10 % over the days, CPU above 50 % for 5 min");

void idle_cpu_text(const struct idle_report *report, struct strbuf *out)
{
    if (!idle_cpu_nodes(report->scan))
        return;
    struct grid *grid = lay_out(report);
    struct grid_style style = {.columns = report->columns, .colour = report->colour};
    strbuf_addc(out, '\n');
    strbuf_add(out, heading);
    strbuf_add(out, STR("\n\n"));
    grid_text(grid, &style, out);
    strbuf_addc(out, '\n');
    grid_free(grid);
}

void idle_cpu_markdown(const struct idle_report *report, struct strbuf *out)
{
    if (!idle_cpu_nodes(report->scan))
        return;
    struct grid *grid = lay_out(report);
    markdown_text(out, heading);
    strbuf_add(out, STR("\n\n"));
    grid_markdown(grid, out);
    strbuf_addc(out, '\n');
    grid_free(grid);
}
