/* The comparison for people: table, wide table, Markdown. */
#include "report/diff.h"

#include "report/grid.h"
#include "report/text.h"

static int64_t hours_of(struct span span)
{
    return span.from < span.to ? (span.to - span.from) / HOUR_MS : 0;
}

bool diff_report_incomplete(const struct diff *diff)
{
    const struct diff_side *sides[] = {diff->a, diff->b};
    for (int s = 0; s < 2; s++)
        if (hours_of(sides[s]->recorded) < hours_of(sides[s]->window) ||
            sides[s]->unpriced_nano > 0)
            return true;
    return false;
}

/* ---- notes ---- */

static void note_recorded(const struct diff_side *side, char letter, struct strbuf *out)
{
    int64_t asked = hours_of(side->window), have = hours_of(side->recorded);
    if (have < asked)
        strbuf_addf(out, "not all recorded: the ledger has %lld of the %lld hours of %c",
                    (long long)have, (long long)asked, letter);
}

static void note_unpriced(const struct diff_side *side, char letter, struct strbuf *out)
{
    if (side->unpriced_nano <= 0)
        return;
    strbuf_add(out, STR("unpriced: "));
    text_nano(out, side->unpriced_nano, 1);
    strbuf_addf(out, " GPU-hours of %c have no known price and stand here as 0", letter);
}

static void note_lengths(const struct diff *diff, struct strbuf *out)
{
    int64_t a = hours_of(diff->a->window), b = hours_of(diff->b->window);
    if (a != b)
        strbuf_addf(out, "windows: A has %lld hours, B %lld: amounts are not scaled", (long long)a,
                    (long long)b);
}

static void note_filters(const struct diff *diff, struct strbuf *out)
{
    const struct diff_side *a = diff->a, *b = diff->b;
    if (str_eq(a->filters, b->filters)) {
        if (a->filters.n) {
            strbuf_add(out, STR("filtered: "));
            text_clean(out, a->filters);
        }
        return;
    }
    strbuf_add(out, STR("filters differ: A has "));
    text_clean(out, a->filters.n ? a->filters : STR("none"));
    strbuf_add(out, STR("; B has "));
    text_clean(out, b->filters.n ? b->filters : STR("none"));
}

static void note_hours(const struct diff *diff, struct strbuf *out)
{
    if (!diff->a->hours_known || !diff->b->hours_known)
        strbuf_add(out, STR("parts: category and cause divide money and not hours, so changes "
                            "have no price and volume"));
}

bool diff_report_note(const struct diff_report *report, size_t i, struct strbuf *out)
{
    const struct diff *diff = report->diff;
    strbuf_clear(out);
    switch (i) {
    case 0:
        note_recorded(diff->a, 'A', out);
        return true;
    case 1:
        note_recorded(diff->b, 'B', out);
        return true;
    case 2:
        note_unpriced(diff->a, 'A', out);
        return true;
    case 3:
        note_unpriced(diff->b, 'B', out);
        return true;
    case 4:
        note_lengths(diff, out);
        return true;
    case 5:
        note_filters(diff, out);
        return true;
    case 6:
        note_hours(diff, out);
        return true;
    case 7:
        if (report->window_widened)
            strbuf_add(out, STR("window: widened to whole hours"));
        return true;
    default:
        return false;
    }
}

/* ---- cells ---- */

struct cells {
    const struct diff_report *report;
    struct grid *grid;
    struct strbuf text;
    int places;
};

static void cell(struct cells *cells)
{
    grid_cell(cells->grid, cells->text.n ? strbuf_str(&cells->text) : STR("–"));
    strbuf_clear(&cells->text);
}

static void add_change(struct cells *cells, money_t change)
{
    if (change)
        strbuf_addc(&cells->text, change < 0 ? '-' : '+');
    text_money(&cells->text, change < 0 ? -change : change, cells->places, cells->report->currency);
}

static void cell_change(struct cells *cells, bool known, money_t change)
{
    if (known)
        add_change(cells, change);
    cell(cells);
}

static void cell_money(struct cells *cells, bool known, money_t amount)
{
    if (known)
        text_money(&cells->text, amount, cells->places, cells->report->currency);
    cell(cells);
}

static void cell_share(struct cells *cells, money_t part, money_t whole)
{
    if (whole > 0)
        text_percent(&cells->text, (int64_t)((wide_t)part * NANO / whole), 0);
    cell(cells);
}

/* "+12 %", "new", "gone". */
static void cell_relative(struct cells *cells, const struct diff_row *row)
{
    money_t change = row->b.cost - row->a.cost;
    money_t size = change < 0 ? -change : change;
    if (row->presence != DIFF_BOTH) {
        strbuf_add(&cells->text, str_of(diff_presence_words[row->presence]));
    } else if (row->a.cost > 0) {
        wide_t part = (wide_t)size * NANO / row->a.cost;
        if (change)
            strbuf_addc(&cells->text, change < 0 ? '-' : '+');
        if (part < (wide_t)100 * NANO)
            text_percent(&cells->text, (int64_t)part, 0);
        else
            strbuf_add(&cells->text, STR("× >100"));
    }
    cell(cells);
}

static void cell_hours(struct cells *cells, wide_t nano)
{
    if (cells->report->diff->a->hours_known && cells->report->diff->b->hours_known)
        text_nano(&cells->text, nano, 1);
    cell(cells);
}

/* Money of a GPU-hour. */
static void cell_rate(struct cells *cells, const struct diff_amounts *amounts)
{
    wide_t rate = amounts->gpu_nano > 0 ? (wide_t)amounts->cost * NANO / amounts->gpu_nano : -1;
    if (rate >= 0 && rate <= MONEY_MAX)
        text_money(&cells->text, (money_t)rate, text_money_places((money_t)rate),
                   cells->report->currency);
    cell(cells);
}

static void add_columns(const struct diff_report *report, struct grid *grid, bool wide)
{
    static const char *const figures[] = {"A",      "B",      "CHANGE",    "%",
                                          "PRICE",  "VOLUME", "SHARE A",   "SHARE B",
                                          "USED A", "USED B", "EFFICIENCY"};
    static const char *const more[] = {"GPU-H A", "GPU-H B", "/GPU-H A", "/GPU-H B"};
    const struct diff_side *side = report->diff->a;
    for (size_t k = 0; k < side->keys_n; k++) {
        char heading[64];
        size_t n = side->keys[k].n < sizeof heading - 1 ? side->keys[k].n : sizeof heading - 1;
        for (size_t i = 0; i < n; i++) {
            char c = side->keys[k].p[i];
            heading[i] = c == '_' ? ' ' : c >= 'a' && c <= 'z' ? (char)(c - 32) : c;
        }
        heading[n] = 0;
        grid_column(grid, heading, GRID_NAME);
    }
    if (!side->keys_n)
        grid_column(grid, "", GRID_NAME);
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++)
        grid_column(grid, figures[i], GRID_RIGHT);
    for (size_t i = 0; wide && i < sizeof more / sizeof *more; i++)
        grid_column(grid, more[i], GRID_RIGHT);
}

static void add_figures(struct cells *cells, const struct diff_row *row, bool wide)
{
    const struct diff *diff = cells->report->diff;
    cell_money(cells, row->presence != DIFF_NEW, row->a.cost);
    cell_money(cells, row->presence != DIFF_GONE, row->b.cost);
    add_change(cells, row->b.cost - row->a.cost);
    cell(cells);
    cell_relative(cells, row);
    cell_change(cells, row->split, row->price);
    cell_change(cells, row->split, row->volume);
    cell_share(cells, row->a.cost, row->presence != DIFF_NEW ? diff->a->total.cost : 0);
    cell_share(cells, row->b.cost, row->presence != DIFF_GONE ? diff->b->total.cost : 0);
    cell_share(cells, row->a.used, row->a.cost);
    cell_share(cells, row->b.used, row->b.cost);
    cell_change(cells, row->used_split, row->efficiency);
    if (!wide)
        return;
    cell_hours(cells, row->a.gpu_nano);
    cell_hours(cells, row->b.gpu_nano);
    cell_rate(cells, &row->a);
    cell_rate(cells, &row->b);
}

static struct str name_of(struct str value)
{
    return str_eq(value, STR("-")) ? STR("(not held)") : value;
}

static void add_row(struct cells *cells, const struct diff_row *row, bool wide)
{
    const struct diff_side *side = cells->report->diff->a;
    grid_row(cells->grid, false);
    for (size_t k = 0; k < side->keys_n; k++)
        grid_cell(cells->grid, name_of(row->keys[k]));
    if (!side->keys_n)
        grid_cell(cells->grid, STR("all"));
    add_figures(cells, row, wide);
}

static void add_total(struct cells *cells, bool wide)
{
    const struct diff *diff = cells->report->diff;
    grid_row(cells->grid, true);
    grid_cell(cells->grid, STR("TOTAL"));
    for (size_t k = 1; k < diff->a->keys_n; k++)
        grid_cell(cells->grid, STR_NONE);
    add_figures(cells, &diff->total, wide);
}

static struct grid *lay_out(const struct diff_report *report, bool wide)
{
    const struct diff *diff = report->diff;
    struct cells cells = {.report = report, .grid = grid_new()};
    money_t largest =
        diff->a->total.cost > diff->b->total.cost ? diff->a->total.cost : diff->b->total.cost;
    cells.places = text_money_places(largest);
    add_columns(report, cells.grid, wide);
    for (size_t i = 0; i < diff->rows_n && (!report->limit || i < report->limit); i++)
        add_row(&cells, &diff->rows[i], wide);
    add_total(&cells, wide);
    strbuf_release(&cells.text);
    return cells.grid;
}

/* ---- around the table ---- */

static void add_side(const struct diff_side *side, char letter, struct strbuf *out)
{
    strbuf_addf(out, "%c: ", letter);
    text_time(out, side->window.from);
    strbuf_add(out, STR(" to "));
    text_time(out, side->window.to);
    if (side->name.n) {
        strbuf_add(out, STR(" · "));
        text_clean(out, side->name);
    }
}

static void add_head(const struct diff_report *report, struct strbuf *out)
{
    if (report->title) {
        text_clean(out, str_of(report->title));
        strbuf_add(out, STR(" · "));
    }
    strbuf_add(out, STR("what changed from A to B"));
}

static size_t hidden(const struct diff_report *report)
{
    size_t n = report->diff->rows_n;
    return report->limit && n > report->limit ? n - report->limit : 0;
}

#define LEGEND                                                                                     \
    "CHANGE = PRICE (the GPU-hour) + VOLUME (GPU-hours); EFFICIENCY: what is used in B beyond "    \
    "A's share"

static void render_table(const struct diff_report *report, bool wide, struct strbuf *out)
{
    struct strbuf text = {0};
    struct grid *grid = lay_out(report, wide);
    struct grid_style style = {.columns = report->columns, .colour = report->colour};
    add_head(report, out);
    strbuf_addc(out, '\n');
    add_side(report->diff->a, 'A', out);
    strbuf_addc(out, '\n');
    add_side(report->diff->b, 'B', out);
    strbuf_addc(out, '\n');
    for (size_t i = 0; diff_report_note(report, i, &text); i++)
        if (text.n)
            strbuf_addf(out, "%s\n", text.text);
    strbuf_addc(out, '\n');
    grid_text(grid, &style, out);
    if (hidden(report))
        strbuf_addf(out, "%zu more rows are in the total (--limit)\n", hidden(report));
    strbuf_add(out, STR(LEGEND "\n"));
    strbuf_release(&text);
    grid_free(grid);
}

static void add_paragraph(struct strbuf *out, struct strbuf *text)
{
    markdown_text(out, strbuf_str(text));
    strbuf_add(out, STR("\n\n"));
    strbuf_clear(text);
}

static void render_markdown(const struct diff_report *report, struct strbuf *out)
{
    struct strbuf text = {0};
    struct grid *grid = lay_out(report, false);
    strbuf_add(out, STR("### "));
    add_head(report, &text);
    add_paragraph(out, &text);
    add_side(report->diff->a, 'A', &text);
    add_paragraph(out, &text);
    add_side(report->diff->b, 'B', &text);
    add_paragraph(out, &text);
    for (size_t i = 0; diff_report_note(report, i, &text); i++)
        if (text.n)
            add_paragraph(out, &text);
    grid_markdown(grid, out);
    strbuf_addc(out, '\n');
    if (hidden(report))
        strbuf_addf(out, "%zu more rows are in the total.\n\n", hidden(report));
    strbuf_add(out, STR(LEGEND "\n"));
    strbuf_release(&text);
    grid_free(grid);
}

void diff_report_render(const struct diff_report *report, enum report_format format,
                        struct strbuf *out)
{
    switch (format) {
    case REPORT_TABLE:
    case REPORT_WIDE:
        render_table(report, format == REPORT_WIDE, out);
        break;
    case REPORT_CSV:
        diff_report_csv(report, out);
        break;
    case REPORT_JSON:
        diff_report_json(report, out);
        break;
    case REPORT_MARKDOWN:
        render_markdown(report, out);
        break;
    case REPORT_FORMAT_COUNT:
        break;
    }
}
