/* Tables for people: the default one, the wide one, and the same as Markdown.
 *
 * The default table says what share of each row's money went where; what nobody held is the
 * platform's, and its row says in a sentence why. The wide table has every category in money. */
#include <stdlib.h>

#include "report/figure.h"
#include "report/grid.h"
#include "report/report.h"
#include "report/statement.h"
#include "report/text.h"

/* What a narrow terminal can do without, in this order: the header says what is unobserved. */
static const enum figure_id droppable[] = {FIGURE_UNOBSERVED, FIGURE_UTILISATION,
                                           FIGURE_EFFECTIVE_PRICE};
#define DROPPABLE_N (sizeof droppable / sizeof *droppable)

/* What all rows of a table have in common. */
struct layout {
    const struct report *report;
    struct grid *grid;
    bool wide;
    size_t dropped;     /* so many of the droppable columns are left out */
    bool parts;         /* by category or cause: only cost and its share of all */
    bool platform_last; /* one key: the row of what nobody held comes after the others */
    bool platform_name_taken;
    enum figure_id columns[FIGURE_COUNT];
    size_t columns_n;
    int money_places, price_places;
    struct figures rest; /* of the groups that --limit leaves out */
    size_t rest_n;
};

static bool is_holder_key(enum key key)
{
    return key == KEY_NAMESPACE || key == KEY_TEAM || key == KEY_WORKLOAD || key == KEY_KIND ||
           key == KEY_TYPE || key == KEY_POD || key == KEY_CONTAINER;
}

/* Is this the row of slots that nobody held? */
static bool is_platform(const struct layout *layout, const struct group *group)
{
    const struct query *query = &layout->report->result->query;
    if (layout->wide || layout->parts || group->figures.gpu_held_ns != 0)
        return false;
    for (size_t i = 0; i < query->keys_n; i++)
        if (is_holder_key(query->keys[i]) && str_eq(group->keys[i], STR("-")))
            return true;
    return false;
}

static bool any_has(const struct layout *layout, enum figure_id id)
{
    const struct result *result = layout->report->result;
    for (size_t i = 0; i < result->groups_n; i++) {
        wide_t value;
        if (!is_platform(layout, &result->groups[i]) &&
            figure_get(&result->groups[i].figures, id, &value) && value != 0)
            return true;
    }
    return false;
}

static bool is_column(const struct layout *layout, enum figure_id id)
{
    unsigned shown = figure_defs[id].shown;
    for (size_t i = 0; i < layout->dropped; i++)
        if (droppable[i] == id)
            return false;
    if (layout->parts)
        return id == FIGURE_COST;
    unsigned always = layout->wide ? SHOWN_WIDE : SHOWN_TABLE;
    unsigned if_any = layout->wide ? SHOWN_WIDE_IF_ANY : SHOWN_IF_ANY;
    return (shown & always) || ((shown & if_any) && any_has(layout, id));
}

static void choose_columns(struct layout *layout)
{
    for (int id = 0; id < FIGURE_COUNT; id++)
        if (is_column(layout, (enum figure_id)id))
            layout->columns[layout->columns_n++] = (enum figure_id)id;
}

/* Decimals of money: those of the largest amount. */
static void choose_places(struct layout *layout)
{
    const struct result *result = layout->report->result;
    wide_t largest_price = 0, value;
    for (size_t i = 0; i < result->groups_n; i++)
        if (figure_get(&result->groups[i].figures, FIGURE_EFFECTIVE_PRICE, &value) &&
            value > largest_price)
            largest_price = value;
    layout->money_places = text_money_places(result->total.cost);
    layout->price_places = largest_price < NANO && largest_price > 0 ? 4 : 2;
}

static void add_headings(struct layout *layout)
{
    const struct query *query = &layout->report->result->query;
    for (size_t i = 0; i < query->keys_n; i++) {
        struct strbuf heading = {0};
        for (const char *p = key_words[query->keys[i]]; *p; p++)
            strbuf_addc(&heading, *p == '-' ? ' ' : (char)(*p >= 'a' && *p <= 'z' ? *p - 32 : *p));
        grid_column(layout->grid, heading.text, GRID_NAME);
        strbuf_release(&heading);
    }
    if (query->keys_n == 0)
        grid_column(layout->grid, "", GRID_NAME);
    for (size_t i = 0; i < layout->columns_n; i++) {
        const struct figure *figure = &figure_defs[layout->columns[i]];
        struct strbuf heading = {0};
        if (figure->heading[0] == '/') {
            const char *currency = layout->report->currency;
            strbuf_addf(&heading, "%s", strcmp(currency, "USD") == 0 ? "$" : currency);
        }
        strbuf_add(&heading, str_of(figure->heading));
        grid_column(layout->grid, heading.text, GRID_RIGHT);
        strbuf_release(&heading);
    }
    if (layout->parts)
        grid_column(layout->grid, "OF ALL", GRID_RIGHT);
    if (layout->wide)
        grid_column(layout->grid, "FLAGS", GRID_WORDS);
}

static void add_share(struct strbuf *text, money_t part, money_t whole)
{
    if (whole <= 0)
        strbuf_add(text, STR("–"));
    else
        text_percent(text, (int64_t)((wide_t)part * NANO / whole), 0);
}

/* No hour of it has a price: its money is not known, which is not $0. */
static bool is_unpriced(const struct figures *figures)
{
    return figures->cost == 0 && figures->gpu_ns > 0 &&
           figures->flag_gpu_ns[FLAG_INDEX_UNPRICED] == figures->gpu_ns;
}

static void add_value(const struct layout *layout, struct strbuf *text,
                      const struct figures *figures, enum figure_id id)
{
    const struct figure *figure = &figure_defs[id];
    const char *currency = layout->report->currency;
    wide_t value;
    if (figure->unit == UNIT_MONEY && is_unpriced(figures)) {
        strbuf_add(text, id == FIGURE_COST ? STR("unpriced") : STR("–"));
        return;
    }
    if (!figure_get(figures, id, &value)) {
        strbuf_add(text, STR("–"));
        return;
    }
    switch (figure->unit) {
    case UNIT_MONEY:
        if (!layout->wide && (figure->shown & SHOWN_AS_SHARE))
            add_share(text, (money_t)value, figures->cost);
        else
            text_money(text, (money_t)value,
                       id == FIGURE_EFFECTIVE_PRICE ? layout->price_places : layout->money_places,
                       currency);
        break;
    case UNIT_GPU_HOURS:
    case UNIT_KWH:
        text_nano(text, value, 1);
        break;
    case UNIT_RATIO:
        text_percent(text, (int64_t)value, 0);
        break;
    case UNIT_BYTES:
        text_nano(text, value * NANO / (1 << 30), 1);
        break;
    case UNIT_COUNT:
        text_count(text, value);
        break;
    }
}

static void add_figures(const struct layout *layout, const struct figures *figures)
{
    struct strbuf text = {0};
    for (size_t i = 0; i < layout->columns_n; i++) {
        strbuf_clear(&text);
        add_value(layout, &text, figures, layout->columns[i]);
        grid_cell(layout->grid, strbuf_str(&text));
    }
    if (layout->parts) {
        strbuf_clear(&text);
        add_share(&text, figures->cost, layout->report->result->total.cost);
        grid_cell(layout->grid, strbuf_str(&text));
    }
    if (layout->wide) {
        strbuf_clear(&text);
        for (int flag = 0; flag < FLAG_COUNT; flag++)
            if (figures->flag_gpu_ns[flag] || figures->flag_cost[flag])
                strbuf_addf(&text, "%s%s", text.n ? " " : "", flag_words[flag]);
        grid_cell(layout->grid, strbuf_str(&text));
    }
    strbuf_release(&text);
}

/* "node idle: empty $9,800 · stranded $5,450 · unobserved $12" */
static void add_causes(const struct layout *layout, const struct figures *figures)
{
    struct str parts[CATEGORY_COUNT];
    struct strbuf texts[CATEGORY_COUNT] = {0};
    size_t n = 0;
    for (int i = CATEGORY_NODE_IDLE_FIRST; i < CATEGORY_COUNT; i++) {
        if (figures->category[i] == 0)
            continue;
        bool idle = i <= CATEGORY_NODE_IDLE_LAST;
        strbuf_addf(&texts[n], "%s%s%s ", n ? "· " : "", n == 0 && idle ? "node idle: " : "",
                    category_words[i]);
        text_money(&texts[n], figures->category[i], layout->money_places, layout->report->currency);
        n++;
    }
    if (n == 0)
        strbuf_addf(&texts[n++], "held by nobody");
    for (size_t i = 0; i < n; i++)
        parts[i] = strbuf_str(&texts[i]);
    grid_span(layout->grid, parts, n);
    for (size_t i = 0; i < n; i++)
        strbuf_release(&texts[i]);
}

static void add_key(const struct layout *layout, enum key key, struct str text, bool platform)
{
    if (platform && is_holder_key(key) && str_eq(text, STR("-")))
        text =
            key == KEY_TEAM && !layout->platform_name_taken ? STR("platform") : STR("(not held)");
    grid_cell(layout->grid, str_eq(text, STR("-")) ? STR("–") : text);
}

static void add_group(const struct layout *layout, const struct group *group)
{
    const struct query *query = &layout->report->result->query;
    bool platform = is_platform(layout, group);
    grid_row(layout->grid, false);
    for (size_t i = 0; i < query->keys_n; i++)
        add_key(layout, query->keys[i], group->keys[i], platform);
    if (query->keys_n == 0)
        grid_cell(layout->grid, STR("all"));
    if (platform) {
        struct strbuf text = {0};
        for (size_t i = 0; i < 2; i++) { /* GPU-hours and cost: first in the table */
            strbuf_clear(&text);
            add_value(layout, &text, &group->figures, layout->columns[i]);
            grid_cell(layout->grid, strbuf_str(&text));
        }
        add_causes(layout, &group->figures);
        strbuf_release(&text);
    } else
        add_figures(layout, &group->figures);
}

static void add_sum(const struct layout *layout, struct str name, const struct figures *figures,
                    bool strong)
{
    grid_row(layout->grid, strong);
    grid_cell(layout->grid, name);
    for (size_t i = 1; i < layout->report->result->query.keys_n; i++)
        grid_cell(layout->grid, STR_NONE);
    add_figures(layout, figures);
}

static void add_rows(struct layout *layout)
{
    const struct result *result = layout->report->result;
    const struct group *last = NULL;
    size_t shown = 0, limit = layout->report->limit;
    for (size_t i = 0; i < result->groups_n; i++) {
        const struct group *group = &result->groups[i];
        if (layout->platform_last && is_platform(layout, group))
            last = group;
        else if (limit && shown == limit) {
            figures_add(&layout->rest, &group->figures);
            layout->rest_n++;
        } else {
            add_group(layout, group);
            shown++;
        }
    }
    if (layout->rest_n) {
        struct strbuf name = {0};
        text_count(&name, (wide_t)layout->rest_n);
        strbuf_add(&name, STR(" more"));
        add_sum(layout, strbuf_str(&name), &layout->rest, false);
        strbuf_release(&name);
    }
    if (last)
        add_group(layout, last);
    if (result->query.keys_n)
        add_sum(layout, STR("TOTAL"), &result->total, true);
}

static struct grid *lay_out(const struct report *report, bool wide, size_t dropped)
{
    const struct query *query = &report->result->query;
    struct layout layout = {.report = report, .grid = grid_new(), .wide = wide, .dropped = dropped};
    layout.platform_last = query->keys_n == 1;
    for (size_t i = 0; i < query->keys_n; i++) {
        layout.parts |= query->keys[i] == KEY_CATEGORY || query->keys[i] == KEY_CAUSE;
        for (size_t k = 0; k < report->result->groups_n; k++)
            layout.platform_name_taken |=
                query->keys[i] == KEY_TEAM &&
                str_eq(report->result->groups[k].keys[i], STR("platform"));
    }
    choose_columns(&layout);
    choose_places(&layout);
    add_headings(&layout);
    add_rows(&layout);
    return layout.grid;
}

/* "topic: text", wrapped at the terminal's width with the rest indented. */
static void add_statement(const struct report *report, const struct statement *statement,
                          struct strbuf *out)
{
    struct strbuf line = {0};
    text_clean(&line, statement->text);
    bool strong = report->colour && statement->level != STATEMENT_INFO;
    strbuf_addf(out, "%s%.*s:%s ", strong ? "\x1b[33m" : "", STR_ARG(statement->topic),
                strong ? "\x1b[0m" : "");
    size_t at = text_width(statement->topic) + 2, start = 0;
    while (start < line.n) {
        size_t end = start;
        while (end < line.n && line.text[end] != ' ')
            end++;
        struct str word = {line.text + start, end - start};
        size_t width = text_width(word);
        if (start && report->columns && at + 1 + width > report->columns) {
            strbuf_add(out, STR("\n  "));
            at = 2;
        } else if (start) {
            strbuf_addc(out, ' ');
            at++;
        }
        strbuf_add(out, word);
        at += width;
        start = end + 1;
    }
    strbuf_addc(out, '\n');
    strbuf_release(&line);
}

void report_table(const struct report *report, bool wide, struct strbuf *out)
{
    struct statements list = {0};
    statements_for_people(report, &list);
    report_headline(report, out);
    strbuf_addc(out, '\n');
    for (size_t i = 0; i < list.n; i++)
        add_statement(report, &list.items[i], out);
    statements_release(&list);
    strbuf_addc(out, '\n');

    size_t dropped = 0;
    struct grid *grid = lay_out(report, wide, 0);
    while (!wide && report->columns && dropped < DROPPABLE_N &&
           grid_least_width(grid) > report->columns) {
        grid_free(grid);
        grid = lay_out(report, wide, ++dropped);
    }
    struct grid_style style = {.columns = report->columns, .colour = report->colour};
    grid_text(grid, &style, out);
    grid_free(grid);

    report_balance(report, out);
    strbuf_addc(out, '\n');
    for (size_t i = 0; i < dropped; i++)
        strbuf_addf(out, "%s%s%s", i ? ", " : "no room for: ", figure_defs[droppable[i]].name,
                    i + 1 == dropped ? " (--output wide has all)\n" : "");
    if (report->next_n)
        strbuf_addc(out, '\n');
    for (size_t i = 0; i < report->next_n; i++)
        strbuf_addf(out, "%s %s\n", i ? "     " : "next:", report->next[i]);
}

void report_markdown(const struct report *report, struct strbuf *out)
{
    struct strbuf text = {0};
    report_headline(report, &text);
    strbuf_add(out, STR("### "));
    markdown_text(out, strbuf_str(&text));
    strbuf_add(out, STR("\n\n"));

    struct statements list = {0};
    statements_for_people(report, &list);
    for (size_t i = 0; i < list.n; i++) {
        strbuf_clear(&text);
        text_clean(&text, list.items[i].text);
        strbuf_addf(out, "- **%.*s:** ", STR_ARG(list.items[i].topic));
        markdown_text(out, strbuf_str(&text));
        strbuf_addc(out, '\n');
    }
    if (list.n)
        strbuf_addc(out, '\n');
    statements_release(&list);

    struct grid *grid = lay_out(report, false, 0);
    grid_markdown(grid, out);
    grid_free(grid);

    strbuf_clear(&text);
    report_balance(report, &text);
    strbuf_addc(out, '\n');
    markdown_text(out, strbuf_str(&text));
    strbuf_addc(out, '\n');
    strbuf_release(&text);
}
