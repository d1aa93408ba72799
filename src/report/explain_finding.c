/* A finding with everything that it rests on. */
#include "report/explain.h"
#include "report/text.h"

#define MINUTE_MS 60000

static void add(struct explanation *explanation, const char *name, struct str text)
{
    if (text.n)
        explain_line(explanation, "%-12s %.*s", name, STR_ARG(text));
}

static void add_money(const struct findings *findings, struct explanation *explanation,
                      const char *name, money_t amount)
{
    struct strbuf text = {0};
    text_money(&text, amount, 2, findings->currency);
    add(explanation, name, strbuf_str(&text));
    strbuf_release(&text);
}

static void add_since(struct explanation *explanation, time_ms since)
{
    struct strbuf text = {0};
    if (since <= TIME_MIN)
        return;
    text_time(&text, since - since % MINUTE_MS);
    add(explanation, "since", strbuf_str(&text));
    strbuf_release(&text);
}

static void add_evidence(const struct finding *finding, struct explanation *explanation)
{
    size_t width = 0, value_width = 0;
    explain_section_add(explanation, "evidence");
    for (size_t i = 0; i < finding->evidence_n; i++) {
        const struct evidence *evidence = &finding->evidence[i];
        width = evidence->name.n > width ? evidence->name.n : width;
        bool longer = evidence->value.n > value_width && evidence->value.n <= 40;
        value_width = longer ? evidence->value.n : value_width;
    }
    for (size_t i = 0; i < finding->evidence_n; i++) {
        const struct evidence *evidence = &finding->evidence[i];
        if (evidence->threshold.n)
            explain_line(explanation, "%-*.*s  %-*.*s  (threshold: %.*s)", (int)width,
                         STR_ARG(evidence->name), (int)value_width, STR_ARG(evidence->value),
                         STR_ARG(evidence->threshold));
        else
            explain_line(explanation, "%-*.*s  %.*s", (int)width, STR_ARG(evidence->name),
                         STR_ARG(evidence->value));
    }
}

/* Every threshold of the rule, with what sets it otherwise. */
static void add_thresholds(const struct findings *findings, enum rule_id rule,
                           struct explanation *explanation)
{
    const struct thresholds *thresholds = &findings->books->thresholds;
    struct strbuf text = {0};
    explain_section_add(explanation, "thresholds");
    rule_text(rule, thresholds, &text);
    explain_line(explanation, "rule %s: %.*s (docs/rules/%s.md)", rules[rule].name,
                 STR_ARG(strbuf_str(&text)), rules[rule].name);
    for (size_t i = 0; i < THRESHOLD_COUNT_OF; i++) {
        const struct threshold_def *def = &threshold_defs[i];
        if (def->rule != rule)
            continue;
        strbuf_clear(&text);
        threshold_value_text((enum threshold_id)i, thresholds->values[i], &text);
        if (thresholds->values[i] != def->standard) {
            strbuf_add(&text, STR(" (configured; default "));
            threshold_value_text((enum threshold_id)i, def->standard, &text);
            strbuf_addc(&text, ')');
        }
        explain_line(explanation, "%-14s %.*s: %s", def->name, STR_ARG(strbuf_str(&text)),
                     def->meaning);
    }
    strbuf_release(&text);
}

/* Which figure would have to be on the other side of its threshold. */
static void add_verdict(const struct finding *finding, struct explanation *explanation)
{
    explain_section_add(explanation, "what would change the verdict");
    for (size_t i = 0; i < finding->evidence_n; i++) {
        const struct evidence *evidence = &finding->evidence[i];
        if (evidence->threshold.n && evidence->threshold.n <= 40)
            explain_line(explanation, "%.*s: it is %.*s, held against %.*s",
                         STR_ARG(evidence->name), STR_ARG(evidence->value),
                         STR_ARG(evidence->threshold));
    }
    explain_line(explanation, "another threshold: rules: {%s: {NAME: VALUE}} in the configuration",
                 rules[finding->rule].name);
    if (!finding->exempt.n)
        explain_line(explanation,
                     "an exemption: --ignore %.*s,until=DATE,reason=TEXT, or the annotation "
                     "gputally.io/ignore",
                     STR_ARG(finding->id));
}

void explain_finding(const struct findings *findings, const struct finding *finding,
                     struct explanation *explanation)
{
    const struct rule *rule = &rules[finding->rule];
    struct strbuf title = {0};
    strbuf_addf(&title, "finding %.*s: %s", STR_ARG(finding->id), rule->title);
    explain_section_add(explanation, str_keep(&explanation->arena, strbuf_str(&title)).p);
    strbuf_release(&title);
    add(explanation, "it", finding->what);
    add(explanation, "owner", finding->owner);
    add(explanation, "can act", str_of(rule->actor));
    add_since(explanation, finding->since);
    add_money(findings, explanation, "in window", finding->window_cost);
    add_money(findings, explanation, "a month", finding->month);
    add_money(findings, explanation, "saves", finding->saving);
    add(explanation, "joined", finding->joined);
    add(explanation, "ignored", finding->exempt);
    add(explanation, "no longer", finding->ended);
    add(explanation, "arithmetic", finding->arithmetic);
    add(explanation, "price", finding->price);
    add(explanation, "depends on", finding->depends);
    add(explanation, "confidence", str_of(confidence_words[finding->confidence]));
    add(explanation, "because", finding->reasons);
    add(explanation, "risk", finding->risk);
    add(explanation, "action", finding->action);
    add(explanation, "command", finding->command);
    add_evidence(finding, explanation);
    add_thresholds(findings, finding->rule, explanation);
    add_verdict(finding, explanation);
}
