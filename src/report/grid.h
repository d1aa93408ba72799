/* A grid of texts for people: headings, rows of cells, and rows that end in a sentence. Filled
 * once, rendered as aligned text or as a Markdown table. Every cell is copied and made harmless by
 * text_clean() when it is put in. One thread. */
#ifndef GPUTALLY_REPORT_GRID_H
#define GPUTALLY_REPORT_GRID_H

#include "util/str.h"

enum grid_align {
    GRID_NAME,  /* to the left; gives way where the terminal is narrow */
    GRID_RIGHT, /* figures */
    GRID_WORDS, /* to the left, last; runs over the edge rather than being cut */
};

struct grid;
struct grid *grid_new(void);
void grid_free(struct grid *grid); /* NULL is fine */

void grid_column(struct grid *grid, const char *heading, enum grid_align align);
/* Begin a row; cells are then added from the left. strong: it stands out (the total). */
void grid_row(struct grid *grid, bool strong);
void grid_cell(struct grid *grid, struct str text);
/* The rest of the row is a sentence of parts, broken between parts where it is too long. */
void grid_span(struct grid *grid, const struct str *parts, size_t n);

/* Columns of a terminal that it needs with its names at their shortest. */
size_t grid_least_width(const struct grid *grid);

struct grid_style {
    size_t columns; /* of the terminal; 0: no end */
    bool colour;
};
/* Names are shortened to fit the terminal, and nothing else is. */
void grid_text(const struct grid *grid, const struct grid_style *style, struct strbuf *out);
void grid_markdown(const struct grid *grid, struct strbuf *out);

/* Text as Markdown that shows it literally, also inside a table. */
void markdown_text(struct strbuf *out, struct str clean);

#endif
