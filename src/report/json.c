/* The JSON report (docs/formats.md). Written as a stream: the fields and their order are fixed, and
 * amounts keep all their digits because they never pass through a double. */
#include "report/figure.h"
#include "report/report.h"
#include "report/statement.h"
#include "report/text.h"

#define REPORT_SCHEMA "gputally.report/1"

static void add_string(struct strbuf *out, struct str text)
{
    strbuf_addc(out, '"');
    text_json(out, text);
    strbuf_addc(out, '"');
}

static void add_time(struct strbuf *out, time_ms t)
{
    char text[TIME_TEXT_MAX];
    strbuf_addf(out, "\"%s\"", time_format(t, text));
}

static void add_span(struct strbuf *out, struct span span)
{
    strbuf_add(out, STR("{\"from\": "));
    add_time(out, span.from);
    strbuf_add(out, STR(", \"to\": "));
    add_time(out, span.to);
}

static void add_money(struct strbuf *out, money_t amount)
{
    char text[MONEY_TEXT_MAX];
    strbuf_addf(out, "\"%s\"", money_format(amount, text));
}

/* "cost": "1.000000000", …, "flags": {…} without the braces around. */
static void add_figures(struct strbuf *out, const struct figures *figures)
{
    for (int id = 0; id < FIGURE_COUNT; id++) {
        const struct figure *figure = &figure_defs[id];
        wide_t value;
        strbuf_addf(out, "\"%s\": ", figure->name);
        bool quoted = figure->unit == UNIT_MONEY;
        if (figure_get(figures, (enum figure_id)id, &value)) {
            strbuf_add(out, str_of(quoted ? "\"" : ""));
            figure_machine(out, figure->unit, value);
            strbuf_add(out, str_of(quoted ? "\"" : ""));
        } else
            strbuf_add(out, STR("null"));
        strbuf_add(out, STR(", "));
    }
    strbuf_add(out, STR("\"flags\": {"));
    bool first = true;
    for (int flag = 0; flag < FLAG_COUNT; flag++) {
        if (!figures->flag_gpu_ns[flag] && !figures->flag_cost[flag])
            continue;
        strbuf_addf(out, "%s\"%s\": {\"gpu_hours\": ", first ? "" : ", ", flag_words[flag]);
        text_nano_plain(out, (figures->flag_gpu_ns[flag] + 1800) / 3600);
        strbuf_add(out, STR(", \"cost\": "));
        add_money(out, figures->flag_cost[flag]);
        strbuf_addc(out, '}');
        first = false;
    }
    strbuf_addc(out, '}');
}

static void add_head(struct strbuf *out, const struct report *report)
{
    const struct result *result = report->result;
    strbuf_add(out, STR("{\n  \"schema\": \"" REPORT_SCHEMA "\",\n  \"window\": "));
    add_span(out, result->query.window);
    strbuf_add(out, STR(", \"tz\": "));
    add_string(out, str_of(report->tz ? report->tz : "UTC"));
    strbuf_add(out, STR("},\n  \"recorded\": "));
    if (result->recorded.from < result->recorded.to) {
        add_span(out, result->recorded);
        strbuf_addc(out, '}');
    } else
        strbuf_add(out, STR("null"));
    strbuf_add(out, STR(",\n  \"currency\": "));
    add_string(out, str_of(report->currency));
    strbuf_add(out, STR(",\n  \"by\": ["));
    for (size_t i = 0; i < result->query.keys_n; i++) {
        strbuf_add(out, str_of(i ? ", \"" : "\""));
        key_machine(out, result->query.keys[i]);
        strbuf_addc(out, '"');
    }
    strbuf_add(out, STR("],\n  \"filters\": ["));
    for (size_t i = 0; i < result->query.filters_n; i++) {
        const struct query_filter *filter = &result->query.filters[i];
        strbuf_add(out, str_of(i ? ", {\"key\": \"" : "{\"key\": \""));
        key_machine(out, filter->key);
        strbuf_addf(out, "\", \"not\": %s, \"value\": ", filter->negate ? "true" : "false");
        add_string(out, filter->value);
        strbuf_addc(out, '}');
    }
    strbuf_addf(out, "],\n  \"fleet\": {\"gpus\": %llu, \"nodes\": %llu, \"node_hours\": %llu},\n",
                (unsigned long long)result->gpus, (unsigned long long)result->nodes,
                (unsigned long long)result->node_hours);
}

static void add_rows(struct strbuf *out, const struct report *report)
{
    const struct result *result = report->result;
    size_t n = report_rows(report);
    strbuf_addf(out, "  \"rows_total\": %zu,\n  \"rows\": [", result->groups_n);
    for (size_t k = 0; k < n; k++) {
        strbuf_add(out, str_of(k ? ",\n    {" : "\n    {"));
        for (size_t i = 0; i < result->query.keys_n; i++) {
            strbuf_addc(out, '"');
            key_machine(out, result->query.keys[i]);
            strbuf_add(out, STR("\": "));
            if (str_eq(result->groups[k].keys[i], STR("-")))
                strbuf_add(out, STR("null"));
            else
                add_string(out, result->groups[k].keys[i]);
            strbuf_add(out, STR(", "));
        }
        add_figures(out, &result->groups[k].figures);
        strbuf_addc(out, '}');
    }
    strbuf_add(out, str_of(n ? "\n  ],\n" : "],\n"));
}

static void add_notes(struct strbuf *out, const struct report *report)
{
    struct statements list = {0};
    statements_of(report, &list);
    strbuf_add(out, STR("  \"notes\": ["));
    for (size_t i = 0; i < list.n; i++) {
        const struct statement *note = &list.items[i];
        strbuf_addf(out, "%s\n    {\"code\": \"%s\", \"level\": \"%s\", \"text\": ", i ? "," : "",
                    note->code, statement_level_words[note->level]);
        add_string(out, note->text);
        if (note->subject.n) {
            strbuf_add(out, STR(", \"subject\": "));
            add_string(out, note->subject);
        }
        if (note->gpu_ns >= 0) {
            strbuf_add(out, STR(", \"gpu_hours\": "));
            text_nano_plain(out, (note->gpu_ns + 1800) / 3600);
        }
        if (note->money >= 0) {
            strbuf_add(out, STR(", \"cost\": "));
            add_money(out, note->money);
        }
        if (note->count >= 0)
            strbuf_addf(out, ", \"count\": %lld", (long long)note->count);
        strbuf_addc(out, '}');
    }
    strbuf_add(out, str_of(list.n ? "\n  ]\n}\n" : "]\n}\n"));
    statements_release(&list);
}

void report_json(const struct report *report, struct strbuf *out)
{
    const struct result *result = report->result;
    add_head(out, report);
    strbuf_add(out, STR("  \"totals\": {"));
    add_figures(out, &result->total);
    strbuf_add(out, STR("},\n"));
    add_rows(out, report);
    strbuf_add(out, STR("  \"balance\": {\"price\": "));
    add_money(out, result->price);
    strbuf_add(out, STR(", \"booked\": "));
    add_money(out, result->booked);
    strbuf_addf(out, ", \"balanced\": %s},\n", result->price == result->booked ? "true" : "false");
    add_notes(out, report);
}
