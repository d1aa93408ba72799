/* A grid of texts for people.
 *
 * Columns are as wide as their widest cell. Where the terminal is narrower, headings go on two
 * lines and then names give way (to a floor), never figures: one that is cut would be another
 * figure. Sentences start after the last cell before them and are broken between their parts, under
 * themselves. */
#include "report/grid.h"

#include <stdlib.h>

#include "report/text.h"
#include "util/error.h"

#define GAP 2         /* blanks between columns */
#define NAME_FLOOR 12 /* names are not shortened below this */
#define SPAN_FLOOR 30 /* a sentence that has less room than this is not broken */

struct cell {
    struct str text;
    size_t width;
};

struct grid_line {
    struct cell *cells;
    size_t cells_n, cells_room;
    struct str *parts; /* of the sentence at its end */
    size_t parts_n;
    bool strong;
};

struct grid {
    struct arena arena;
    struct grid_heading {
        struct cell cell;
        enum grid_align align;
    } * headings;
    size_t headings_n, headings_room;
    struct grid_line *lines;
    size_t lines_n, lines_room;
};

struct grid *grid_new(void)
{
    return mem_zalloc(1, sizeof(struct grid));
}

void grid_free(struct grid *grid)
{
    if (!grid)
        return;
    for (size_t i = 0; i < grid->lines_n; i++) {
        free(grid->lines[i].cells);
        free(grid->lines[i].parts);
    }
    free(grid->lines);
    free(grid->headings);
    arena_release(&grid->arena);
    free(grid);
}

static struct str kept_clean(struct grid *grid, struct str text)
{
    struct strbuf clean = {0};
    text_clean(&clean, text);
    struct str kept = str_keep(&grid->arena, strbuf_str(&clean));
    strbuf_release(&clean);
    return kept;
}

void grid_column(struct grid *grid, const char *heading, enum grid_align align)
{
    struct str text = kept_clean(grid, str_of(heading));
    struct grid_heading column = {{text, text_width(text)}, align};
    mem_push(grid->headings, grid->headings_n, grid->headings_room, column);
}

void grid_row(struct grid *grid, bool strong)
{
    struct grid_line line = {.strong = strong};
    mem_push(grid->lines, grid->lines_n, grid->lines_room, line);
}

void grid_cell(struct grid *grid, struct str text)
{
    invariant(grid->lines_n > 0);
    struct grid_line *line = &grid->lines[grid->lines_n - 1];
    invariant(line->cells_n < grid->headings_n && line->parts_n == 0);
    struct str clean = kept_clean(grid, text);
    struct cell cell = {clean, text_width(clean)};
    mem_push(line->cells, line->cells_n, line->cells_room, cell);
}

void grid_span(struct grid *grid, const struct str *parts, size_t n)
{
    invariant(grid->lines_n > 0);
    struct grid_line *line = &grid->lines[grid->lines_n - 1];
    invariant(line->parts_n == 0 && line->cells_n > 0);
    line->parts = mem_zalloc(n ? n : 1, sizeof *line->parts);
    for (size_t i = 0; i < n; i++)
        line->parts[line->parts_n++] = kept_clean(grid, parts[i]);
}

static size_t total_width(const struct grid *grid, const size_t *widths)
{
    size_t total = 0, n = 0;
    for (size_t i = 0; i < grid->headings_n; i++)
        if (grid->headings[i].align != GRID_WORDS) {
            total += widths[i];
            n++;
        }
    return n ? total + (n - 1) * GAP : 0;
}

/* Where a heading is broken if it stands on two lines: at its last blank; SIZE_MAX: nowhere. */
static size_t heading_break(struct str heading)
{
    for (size_t i = heading.n; i > 0; i--)
        if (heading.p[i - 1] == ' ')
            return i - 1;
    return SIZE_MAX;
}

static struct cell heading_part(const struct cell *heading, bool upper)
{
    size_t at = heading_break(heading->text);
    struct str text = heading->text;
    if (at == SIZE_MAX)
        text = upper ? STR_NONE : text;
    else if (upper)
        text.n = at;
    else
        text = (struct str){text.p + at + 1, text.n - at - 1};
    return (struct cell){text, text_width(text)};
}

/* Take from the widest name columns until the grid fits or none can give more. */
static void squeeze(const struct grid *grid, size_t columns, size_t *widths)
{
    while (total_width(grid, widths) > columns) {
        size_t widest = SIZE_MAX;
        for (size_t i = 0; i < grid->headings_n; i++) {
            size_t floor = heading_part(&grid->headings[i].cell, false).width;
            if (grid->headings[i].align == GRID_NAME && widths[i] > NAME_FLOOR &&
                widths[i] > floor && (widest == SIZE_MAX || widths[i] > widths[widest]))
                widest = i;
        }
        if (widest == SIZE_MAX)
            return;
        widths[widest]--;
    }
}

static void add_blanks(struct strbuf *out, size_t n)
{
    while (n-- > 0)
        strbuf_addc(out, ' ');
}

static void add_cell(struct strbuf *out, const struct cell *cell, size_t width,
                     enum grid_align align, bool last)
{
    struct strbuf text = {0};
    if (cell->width > width)
        text_shorten(&text, cell->text, width < 3 ? 3 : width);
    else
        strbuf_add(&text, cell->text);
    size_t wide = text_width(strbuf_str(&text)), fill = wide < width ? width - wide : 0;
    if (align == GRID_RIGHT)
        add_blanks(out, fill);
    strbuf_add(out, strbuf_str(&text));
    if (align != GRID_RIGHT && !last)
        add_blanks(out, fill);
    strbuf_release(&text);
}

static void add_parts(struct strbuf *out, const struct grid_line *line, size_t indent,
                      size_t columns)
{
    size_t at = indent;
    for (size_t i = 0; i < line->parts_n; i++) {
        size_t width = text_width(line->parts[i]);
        bool full = columns > indent + SPAN_FLOOR && at + 1 + width > columns;
        if (i && full) {
            strbuf_addc(out, '\n');
            add_blanks(out, indent);
            at = indent;
        } else if (i) {
            strbuf_addc(out, ' ');
            at++;
        }
        strbuf_add(out, line->parts[i]);
        at += width;
    }
}

static void add_line(const struct grid *grid, const struct grid_line *line, const size_t *widths,
                     const struct grid_style *style, struct strbuf *out)
{
    bool strong = line->strong && style->colour;
    size_t indent = 0, start;
    if (strong)
        strbuf_add(out, STR("\x1b[1m"));
    start = out->n;
    for (size_t i = 0; i < line->cells_n; i++) {
        if (i)
            add_blanks(out, GAP);
        bool last = i + 1 == line->cells_n && line->parts_n == 0;
        add_cell(out, &line->cells[i], widths[i], grid->headings[i].align, last);
        indent += widths[i] + GAP;
    }
    if (line->parts_n) {
        add_blanks(out, GAP);
        add_parts(out, line, indent, style->columns);
    }
    while (out->n > start && out->text[out->n - 1] == ' ')
        out->text[--out->n] = 0;
    if (strong)
        strbuf_add(out, STR("\x1b[0m"));
    strbuf_addc(out, '\n');
}

static void measure(const struct grid *grid, bool stacked, size_t *widths)
{
    for (size_t i = 0; i < grid->headings_n; i++) {
        const struct cell *heading = &grid->headings[i].cell;
        size_t upper = heading_part(heading, true).width,
               lower = heading_part(heading, false).width;
        widths[i] = !stacked ? heading->width : upper > lower ? upper : lower;
    }
    for (size_t k = 0; k < grid->lines_n; k++)
        for (size_t i = 0; i < grid->lines[k].cells_n; i++)
            if (grid->lines[k].cells[i].width > widths[i])
                widths[i] = grid->lines[k].cells[i].width;
}

size_t grid_least_width(const struct grid *grid)
{
    size_t *widths = mem_zalloc(grid->headings_n + 1, sizeof *widths);
    measure(grid, true, widths);
    squeeze(grid, 0, widths);
    size_t width = total_width(grid, widths);
    free(widths);
    return width;
}

static void add_headings(const struct grid *grid, bool stacked, const size_t *widths,
                         const struct grid_style *style, struct strbuf *out)
{
    for (int part = stacked ? 0 : 1; part < 2; part++) {
        struct grid_line line = {.strong = true};
        for (size_t i = 0; i < grid->headings_n; i++) {
            const struct cell *heading = &grid->headings[i].cell;
            struct cell cell = stacked ? heading_part(heading, part == 0) : *heading;
            mem_push(line.cells, line.cells_n, line.cells_room, cell);
        }
        add_line(grid, &line, widths, style, out);
        free(line.cells);
    }
}

void grid_text(const struct grid *grid, const struct grid_style *style, struct strbuf *out)
{
    size_t *widths = mem_zalloc(grid->headings_n + 1, sizeof *widths);
    bool stacked = false;
    measure(grid, false, widths);
    if (style->columns && total_width(grid, widths) > style->columns) {
        stacked = true;
        measure(grid, true, widths);
        squeeze(grid, style->columns, widths);
    }
    add_headings(grid, stacked, widths, style, out);
    for (size_t k = 0; k < grid->lines_n; k++)
        add_line(grid, &grid->lines[k], widths, style, out);
    free(widths);
}

void markdown_text(struct strbuf *out, struct str clean)
{
    for (size_t i = 0; i < clean.n; i++) {
        if (clean.p[i] == '<')
            strbuf_add(out, STR("&lt;"));
        else if (clean.p[i] == '&')
            strbuf_add(out, STR("&amp;"));
        else {
            if (strchr("\\|`*_[]~#", clean.p[i]) && clean.p[i])
                strbuf_addc(out, '\\');
            strbuf_addc(out, clean.p[i]);
        }
    }
}

static void add_markdown_line(const struct grid *grid, const struct grid_line *line,
                              struct strbuf *out)
{
    for (size_t i = 0; i < grid->headings_n; i++) {
        const char *mark = line->strong ? "**" : "";
        struct str text = i < line->cells_n ? line->cells[i].text : STR_NONE;
        strbuf_add(out, STR("| "));
        if (text.n) {
            strbuf_add(out, str_of(mark));
            markdown_text(out, text);
            strbuf_add(out, str_of(mark));
            strbuf_addc(out, ' ');
        } else if (i == line->cells_n && line->parts_n) {
            for (size_t k = 0; k < line->parts_n; k++) {
                markdown_text(out, line->parts[k]);
                strbuf_addc(out, ' ');
            }
        }
    }
    strbuf_add(out, STR("|\n"));
}

void grid_markdown(const struct grid *grid, struct strbuf *out)
{
    struct grid_line heading = {0};
    for (size_t i = 0; i < grid->headings_n; i++)
        mem_push(heading.cells, heading.cells_n, heading.cells_room, grid->headings[i].cell);
    add_markdown_line(grid, &heading, out);
    free(heading.cells);
    for (size_t i = 0; i < grid->headings_n; i++)
        strbuf_add(out, str_of(grid->headings[i].align == GRID_RIGHT ? "| --: " : "| :-- "));
    strbuf_add(out, STR("|\n"));
    for (size_t k = 0; k < grid->lines_n; k++)
        add_markdown_line(grid, &grid->lines[k], out);
}
