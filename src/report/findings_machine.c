/* Findings for machines (docs/formats.md). */
#include "report/findings_machine.h"

#include "report/csv.h"
#include "report/text.h"

#define FINDINGS_SCHEMA "gputally.findings/1"

static void add_field(struct strbuf *out, const char *name, struct str text)
{
    strbuf_addf(out, "\"%s\": ", name);
    if (!text.n) {
        strbuf_add(out, STR("null, "));
        return;
    }
    strbuf_addc(out, '"');
    text_json(out, text);
    strbuf_add(out, STR("\", "));
}

static void add_money(struct strbuf *out, const char *name, money_t amount)
{
    char text[MONEY_TEXT_MAX];
    strbuf_addf(out, "\"%s\": \"%s\", ", name, money_format(amount, text));
}

static void add_time(struct strbuf *out, const char *name, time_ms t)
{
    char text[TIME_TEXT_MAX];
    add_field(out, name, t > TIME_MIN ? str_of(time_format(t, text)) : STR_NONE);
}

static void add_thresholds(struct strbuf *out, const struct findings *findings, enum rule_id rule)
{
    struct strbuf text = {0};
    rule_text(rule, &findings->books->thresholds, &text);
    add_field(out, "thresholds", strbuf_str(&text));
    strbuf_release(&text);
}

static void add_finding(struct strbuf *out, const struct findings *findings,
                        const struct finding *finding)
{
    const struct rule *rule = &rules[finding->rule];
    strbuf_add(out, STR("    {"));
    add_field(out, "id", finding->id);
    add_field(out, "rule", str_of(rule->name));
    add_field(out, "title", str_of(rule->title));
    add_field(out, "subject", finding->subject);
    add_field(out, "who", str_of(rule->actor));
    add_field(out, "owner", finding->owner);
    add_field(out, "user", finding->user);
    add_field(out, "what", finding->what);
    add_time(out, "since", finding->since);
    add_money(out, "window_cost", finding->window_cost);
    add_money(out, "month_cost", finding->month);
    add_money(out, "month_saving", finding->saving);
    add_field(out, "joined", finding->joined);
    add_field(out, "exempt", finding->exempt);
    add_field(out, "exempt_ended", finding->ended);
    add_field(out, "arithmetic", finding->arithmetic);
    add_field(out, "price", finding->price);
    add_field(out, "depends_on", finding->depends);
    add_field(out, "confidence", str_of(confidence_words[finding->confidence]));
    add_field(out, "reasons", finding->reasons);
    add_field(out, "risk", finding->risk);
    add_field(out, "action", finding->action);
    add_field(out, "command", finding->command);
    add_thresholds(out, findings, finding->rule);
    strbuf_add(out, STR("\"evidence\": ["));
    for (size_t i = 0; i < finding->evidence_n; i++) {
        const struct evidence *evidence = &finding->evidence[i];
        strbuf_add(out, str_of(i ? ", {" : "{"));
        add_field(out, "name", evidence->name);
        add_field(out, "value", evidence->value);
        add_field(out, "threshold", evidence->threshold);
        out->n -= 2; /* the comma after the last field */
        strbuf_addc(out, '}');
    }
    strbuf_add(out, STR("]}"));
}

static void add_exemptions(struct strbuf *out, const struct exemptions *list)
{
    size_t n = list ? list->n : 0;
    strbuf_add(out, STR("  \"exemptions\": [\n"));
    for (size_t i = 0; i < n; i++) {
        const struct exemption *exemption = &list->items[i];
        strbuf_add(out, STR("    {"));
        add_field(out, "source", exemption->source);
        add_field(out, "status", str_of(exemption_status_words[exemption->status]));
        add_field(out, "id", exemption->id);
        add_field(out, "rule", exemption->rule);
        add_field(out, "subject", exemption->subject);
        add_time(out, "until", exemption->until == TIME_MAX ? TIME_MIN : exemption->until);
        add_field(out, "reason", exemption->reason);
        add_field(out, "problem", exemption->problem);
        strbuf_addf(out, "\"findings\": %zu}%s\n", exemption->matched, i + 1 < n ? "," : "");
    }
    strbuf_add(out, STR("  ],\n"));
}

static void add_off(struct strbuf *out, const struct thresholds *thresholds)
{
    size_t n = 0;
    strbuf_add(out, STR("  \"rules_off\": ["));
    for (int r = 0; r < RULE_COUNT; r++)
        if (thresholds->off[r])
            strbuf_addf(out, "%s\"%s\"", n++ ? ", " : "", rules[r].name);
    strbuf_add(out, STR("],\n"));
}

void findings_json(const struct findings_report *report, struct strbuf *out)
{
    const struct findings *findings = report->findings;
    size_t n = report->limit && report->limit < findings->n ? report->limit : findings->n;
    strbuf_add(out, STR("{\n  \"schema\": \"" FINDINGS_SCHEMA "\",\n  "));
    add_time(out, "from", findings->books->window.from);
    add_time(out, "to", findings->books->window.to);
    add_field(out, "currency", str_of(report->currency));
    add_money(out, "month_saving", findings_saving(findings));
    strbuf_addf(out, "\"month_hours\": %d,\n  \"findings_total\": %zu,\n  \"findings\": [\n",
                MONTH_HOURS, findings->n);
    for (size_t i = 0; i < n; i++) {
        add_finding(out, findings, &findings->items[i]);
        strbuf_add(out, str_of(i + 1 < n ? ",\n" : "\n"));
    }
    strbuf_add(out, STR("  ],\n"));
    add_exemptions(out, findings->exemptions);
    add_off(out, &findings->books->thresholds);
    strbuf_add(out, STR("  \"refused\": [\n"));
    for (size_t i = 0; i < findings->refusals_n; i++) {
        const struct refusal *refusal = &findings->refusals[i];
        strbuf_add(out, STR("    {"));
        add_field(out, "rule", str_of(rules[refusal->rule].name));
        add_field(out, "subject", refusal->subject);
        add_field(out, "owner", refusal->owner);
        add_field(out, "reason", refusal->reason);
        out->n -= 2;
        strbuf_add(out, str_of(i + 1 < findings->refusals_n ? "},\n" : "}\n"));
    }
    strbuf_add(out, STR("  ]\n}\n"));
}

void findings_csv(const struct findings_report *report, struct strbuf *out)
{
    const struct findings *findings = report->findings;
    char text[TIME_TEXT_MAX], money[MONEY_TEXT_MAX];
    strbuf_add(out, STR("id,rule,subject,owner,what,since,window_cost,month_cost,month_saving,"
                        "currency,confidence,risk,action,command,depends_on,exempt,user\n"));
    for (size_t i = 0; i < findings->n && (!report->limit || i < report->limit); i++) {
        const struct finding *finding = &findings->items[i];
        strbuf_addf(out, "%.*s,%s,", STR_ARG(finding->id), rules[finding->rule].name);
        csv_text(out, finding->subject);
        strbuf_addc(out, ',');
        csv_text(out, finding->owner);
        strbuf_addc(out, ',');
        csv_text(out, finding->what);
        strbuf_addf(out, ",%s", finding->since > TIME_MIN ? time_format(finding->since, text) : "");
        strbuf_addf(out, ",%s", money_format(finding->window_cost, money));
        strbuf_addf(out, ",%s", money_format(finding->month, money));
        strbuf_addf(out, ",%s,", money_format(finding->saving, money));
        csv_text(out, str_of(report->currency));
        strbuf_addf(out, ",%s,", confidence_words[finding->confidence]);
        csv_text(out, finding->risk);
        strbuf_addc(out, ',');
        csv_text(out, finding->action);
        strbuf_addc(out, ',');
        csv_text(out, finding->command);
        strbuf_addc(out, ',');
        csv_text(out, finding->depends);
        strbuf_addc(out, ',');
        csv_text(out, finding->exempt);
        strbuf_addc(out, ',');
        csv_text(out, finding->user);
        strbuf_addc(out, '\n');
    }
}
