/* The comparison for machines (docs/formats.md). Amounts keep all their digits. */
#include "report/csv.h"
#include "report/diff.h"
#include "report/text.h"

#define DIFF_SCHEMA "gputally.diff/1"

static void add_text(struct strbuf *out, struct str text)
{
    strbuf_addc(out, '"');
    text_json(out, text);
    strbuf_addc(out, '"');
}

static void add_money(struct strbuf *out, const char *name, bool known, money_t amount)
{
    char text[MONEY_TEXT_MAX];
    if (known)
        strbuf_addf(out, ", \"%s\": \"%s\"", name, money_format(amount, text));
    else
        strbuf_addf(out, ", \"%s\": null", name);
}

static void add_ratio(struct strbuf *out, const char *name, money_t part, money_t whole)
{
    strbuf_addf(out, ", \"%s\": ", name);
    if (whole > 0)
        text_nano_plain(out, (wide_t)part * NANO / whole);
    else
        strbuf_add(out, STR("null"));
}

static bool hours_known(const struct diff *diff)
{
    return diff->a->hours_known && diff->b->hours_known;
}

static void add_amounts(struct strbuf *out, const char *name, const struct diff *diff,
                        const struct diff_amounts *amounts, money_t total)
{
    char money[MONEY_TEXT_MAX];
    strbuf_addf(out, ", \"%s\": {\"cost\": \"%s\"", name, money_format(amounts->cost, money));
    add_money(out, "used", true, amounts->used);
    strbuf_add(out, STR(", \"gpu_hours\": "));
    if (hours_known(diff))
        text_nano_plain(out, amounts->gpu_nano);
    else
        strbuf_add(out, STR("null"));
    add_ratio(out, "share", amounts->cost, total);
    add_ratio(out, "used_share", amounts->used, amounts->cost);
    strbuf_addc(out, '}');
}

static void add_row(struct strbuf *out, const struct diff *diff, const struct diff_row *row)
{
    strbuf_addf(out, "\"presence\": \"%s\"", diff_presence_words[row->presence]);
    add_amounts(out, "a", diff, &row->a, diff->a->total.cost);
    add_amounts(out, "b", diff, &row->b, diff->b->total.cost);
    add_money(out, "change", true, row->b.cost - row->a.cost);
    add_money(out, "price", row->split, row->price);
    add_money(out, "volume", row->split, row->volume);
    add_money(out, "used_change", true, row->b.used - row->a.used);
    add_money(out, "used_price", row->used_split, row->used_price);
    add_money(out, "used_volume", row->used_split, row->used_volume);
    add_money(out, "efficiency", row->used_split, row->efficiency);
}

static void add_span(struct strbuf *out, struct span span)
{
    char from[TIME_TEXT_MAX], to[TIME_TEXT_MAX];
    if (span.from < span.to)
        strbuf_addf(out, "{\"from\": \"%s\", \"to\": \"%s\"}", time_format(span.from, from),
                    time_format(span.to, to));
    else
        strbuf_add(out, STR("null"));
}

static void add_side(struct strbuf *out, const char *name, const struct diff_side *side)
{
    strbuf_addf(out, "  \"%s\": {\"window\": ", name);
    add_span(out, side->window);
    strbuf_add(out, STR(", \"recorded\": "));
    add_span(out, side->recorded);
    if (side->name.n) {
        strbuf_add(out, STR(", \"file\": "));
        add_text(out, side->name);
    }
    strbuf_add(out, STR(", \"filters\": "));
    add_text(out, side->filters);
    strbuf_add(out, STR("},\n"));
}

static size_t rows_shown(const struct diff_report *report)
{
    size_t n = report->diff->rows_n;
    return report->limit && n > report->limit ? report->limit : n;
}

static void add_notes(struct strbuf *out, const struct diff_report *report)
{
    struct strbuf text = {0};
    const char *comma = "";
    strbuf_add(out, STR("  \"notes\": ["));
    for (size_t i = 0; diff_report_note(report, i, &text); i++) {
        if (!text.n)
            continue;
        strbuf_add(out, str_of(comma));
        add_text(out, strbuf_str(&text));
        comma = ", ";
    }
    strbuf_add(out, STR("]\n}\n"));
    strbuf_release(&text);
}

void diff_report_json(const struct diff_report *report, struct strbuf *out)
{
    const struct diff *diff = report->diff;
    size_t n = rows_shown(report);
    strbuf_add(out, STR("{\n  \"schema\": \"" DIFF_SCHEMA "\",\n  \"currency\": "));
    add_text(out, str_of(report->currency));
    strbuf_add(out, STR(",\n  \"by\": ["));
    for (size_t k = 0; k < diff->a->keys_n; k++) {
        strbuf_add(out, str_of(k ? ", " : ""));
        add_text(out, diff->a->keys[k]);
    }
    strbuf_add(out, STR("],\n"));
    add_side(out, "a", diff->a);
    add_side(out, "b", diff->b);
    strbuf_add(out, STR("  \"totals\": {"));
    add_row(out, diff, &diff->total);
    strbuf_addf(out, "},\n  \"rows_total\": %zu,\n  \"rows\": [", diff->rows_n);
    for (size_t i = 0; i < n; i++) {
        strbuf_add(out, str_of(i ? ",\n    {" : "\n    {"));
        for (size_t k = 0; k < diff->a->keys_n; k++) {
            add_text(out, diff->a->keys[k]);
            strbuf_add(out, STR(": "));
            if (str_eq(diff->rows[i].keys[k], STR("-")))
                strbuf_add(out, STR("null"));
            else
                add_text(out, diff->rows[i].keys[k]);
            strbuf_add(out, STR(", "));
        }
        add_row(out, diff, &diff->rows[i]);
        strbuf_addc(out, '}');
    }
    strbuf_add(out, str_of(n ? "\n  ],\n" : "],\n"));
    add_notes(out, report);
}

static void csv_money(struct strbuf *out, bool known, money_t amount)
{
    char text[MONEY_TEXT_MAX];
    strbuf_addc(out, ',');
    if (known)
        strbuf_add(out, str_of(money_format(amount, text)));
}

static void csv_row(struct strbuf *out, const struct diff *diff, const struct diff_row *row)
{
    for (size_t k = 0; k < diff->a->keys_n; k++) {
        csv_text(out, row->keys[k]);
        strbuf_addc(out, ',');
    }
    strbuf_add(out, str_of(diff_presence_words[row->presence]));
    csv_money(out, true, row->a.cost);
    csv_money(out, true, row->b.cost);
    csv_money(out, true, row->b.cost - row->a.cost);
    csv_money(out, row->split, row->price);
    csv_money(out, row->split, row->volume);
    for (int s = 0; s < 2; s++) {
        strbuf_addc(out, ',');
        if (hours_known(diff))
            text_nano_plain(out, s ? row->b.gpu_nano : row->a.gpu_nano);
    }
    csv_money(out, true, row->a.used);
    csv_money(out, true, row->b.used);
    csv_money(out, true, row->b.used - row->a.used);
    csv_money(out, row->used_split, row->used_price);
    csv_money(out, row->used_split, row->used_volume);
    csv_money(out, row->used_split, row->efficiency);
    strbuf_addc(out, '\n');
}

void diff_report_csv(const struct diff_report *report, struct strbuf *out)
{
    const struct diff *diff = report->diff;
    for (size_t k = 0; k < diff->a->keys_n; k++) {
        csv_text(out, diff->a->keys[k]);
        strbuf_addc(out, ',');
    }
    strbuf_add(out, STR("presence,cost_a,cost_b,change,price,volume,gpu_hours_a,gpu_hours_b,"
                        "used_a,used_b,used_change,used_price,used_volume,efficiency\n"));
    for (size_t i = 0; i < rows_shown(report); i++)
        csv_row(out, diff, &diff->rows[i]);
}
