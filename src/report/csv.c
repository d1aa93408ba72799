/* CSV as spreadsheets and scripts read it: RFC 4180, a fixed order of columns, money as decimals
 * with nine places, an empty field for what is absent. */
#include "report/csv.h"

#include "report/figure.h"
#include "report/report.h"

void csv_text(struct strbuf *out, struct str text)
{
    bool formula = text.n && strchr("=+-@\t\r", text.p[0]) && text.p[0] && !str_eq(text, STR("-"));
    bool quote = false;
    for (size_t i = 0; i < text.n; i++)
        quote |= text.p[i] == '"' || text.p[i] == ',' || text.p[i] == '\n' || text.p[i] == '\r';
    if (quote)
        strbuf_addc(out, '"');
    if (formula)
        strbuf_addc(out, '\'');
    for (size_t i = 0; i < text.n; i++) {
        if (text.p[i] == '"')
            strbuf_addc(out, '"');
        strbuf_addc(out, text.p[i]);
    }
    if (quote)
        strbuf_addc(out, '"');
}

static void add_flags(struct strbuf *out, const struct figures *figures)
{
    bool first = true;
    for (int flag = 0; flag < FLAG_COUNT; flag++)
        if (figures->flag_gpu_ns[flag] || figures->flag_cost[flag]) {
            strbuf_addf(out, "%s%s", first ? "" : ";", flag_words[flag]);
            first = false;
        }
}

void report_csv(const struct report *report, struct strbuf *out)
{
    const struct result *result = report->result;
    char from[TIME_TEXT_MAX], to[TIME_TEXT_MAX];
    time_format(result->query.window.from, from);
    time_format(result->query.window.to, to);

    strbuf_add(out, STR("window_from,window_to,currency"));
    for (size_t i = 0; i < result->query.keys_n; i++) {
        strbuf_addc(out, ',');
        key_machine(out, result->query.keys[i]);
    }
    for (int id = 0; id < FIGURE_COUNT; id++)
        strbuf_addf(out, ",%s", figure_defs[id].name);
    strbuf_add(out, STR(",flags\n"));

    for (size_t k = 0; k < report_rows(report); k++) {
        const struct group *group = &result->groups[k];
        strbuf_addf(out, "%s,%s,", from, to);
        csv_text(out, str_of(report->currency));
        for (size_t i = 0; i < result->query.keys_n; i++) {
            strbuf_addc(out, ',');
            csv_text(out, group->keys[i]);
        }
        for (int id = 0; id < FIGURE_COUNT; id++) {
            wide_t value;
            strbuf_addc(out, ',');
            if (figure_get(&group->figures, (enum figure_id)id, &value))
                figure_machine(out, figure_defs[id].unit, value);
        }
        strbuf_addc(out, ',');
        add_flags(out, &group->figures);
        strbuf_addc(out, '\n');
    }
}
