/* The ranked list for people. */
#include "report/findings.h"

#include <stdlib.h>

#include "report/findings_machine.h"
#include "report/grid.h"
#include "report/text.h"

#define MINUTE_MS 60000

struct group_sum {
    struct str name;
    money_t saving;
    size_t n;
};

bool findings_group_read(struct str word, enum findings_group *ret)
{
    static const struct {
        const char *word;
        enum findings_group group;
    } words[] = {
        {"owner", FINDINGS_BY_OWNER}, {"team", FINDINGS_BY_OWNER}, {"user", FINDINGS_BY_USER}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (str_eq(word, str_of(words[i].word))) {
            *ret = words[i].group;
            return true;
        }
    return false;
}

/* Those that nobody has exempted. */
static size_t shown_of(const struct findings *findings)
{
    return findings->n - findings->exempt_n;
}

static struct str group_of(const struct findings_report *report, const struct finding *finding)
{
    if (report->group == FINDINGS_BY_OWNER)
        return finding->owner;
    return finding->user.n ? finding->user : STR("nobody by name");
}

static int by_saving(const void *a, const void *b)
{
    const struct group_sum *left = a, *right = b;
    if (left->saving != right->saving)
        return left->saving > right->saving ? -1 : 1;
    return str_cmp(left->name, right->name);
}

/* Groups by saving; the caller frees. */
static struct group_sum *groups_of(const struct findings_report *report, size_t *ret_n)
{
    const struct findings *findings = report->findings;
    struct group_sum *groups = NULL;
    size_t room = 0;
    *ret_n = 0;
    for (size_t i = 0; i < shown_of(findings); i++) {
        const struct finding *finding = &findings->items[i];
        struct group_sum fresh = {.name = group_of(report, finding)};
        size_t at = 0;
        while (at < *ret_n && !str_eq(groups[at].name, fresh.name))
            at++;
        if (at == *ret_n)
            mem_push(groups, *ret_n, room, fresh);
        groups[at].saving += finding->saving;
        groups[at].n++;
    }
    if (*ret_n)
        qsort(groups, *ret_n, sizeof *groups, by_saving);
    return groups;
}

static void add_head(const struct findings_report *report, struct strbuf *out)
{
    const struct findings *findings = report->findings;
    if (report->title) {
        text_clean(out, str_of(report->title));
        strbuf_add(out, STR(" · "));
    }
    text_time(out, findings->books->window.from);
    strbuf_add(out, STR(" to "));
    text_time(out, findings->books->window.to);
    strbuf_add(out, STR(" · "));
    text_plural(out, (wide_t)shown_of(findings), "finding", "findings");
    strbuf_add(out, STR(" · "));
    money_t saving = findings_saving(findings);
    text_money(out, saving, text_money_places(saving), report->currency);
    strbuf_add(out, STR(" a month can be saved, each dollar counted once"));
}

static void cell_money(struct grid *grid, struct strbuf *text, money_t amount, int places,
                       const char *currency)
{
    strbuf_clear(text);
    text_money(text, amount, places, currency);
    grid_cell(grid, strbuf_str(text));
}

static void add_finding(const struct findings_report *report, struct grid *grid,
                        const struct finding *finding, bool wide, int places)
{
    struct strbuf text = {0};
    grid_row(grid, false);
    cell_money(grid, &text, finding->saving, places, report->currency);
    cell_money(grid, &text, finding->month, places, report->currency);
    grid_cell(grid, finding->owner);
    grid_cell(grid, finding->subject);
    grid_cell(grid, str_of(rules[finding->rule].title));
    strbuf_clear(&text);
    if (finding->since > TIME_MIN)
        text_time(&text, finding->since - finding->since % MINUTE_MS);
    grid_cell(grid, text.n ? strbuf_str(&text) : STR("–"));
    grid_cell(grid, str_of(confidence_words[finding->confidence]));
    grid_cell(grid, finding->id);
    grid_cell(grid, wide ? finding->what : finding->action);
    if (wide)
        grid_cell(grid, finding->action);
    strbuf_release(&text);
}

static void add_group(const struct findings_report *report, struct grid *grid,
                      const struct group_sum *group, int places)
{
    struct strbuf text = {0}, count = {0};
    grid_row(grid, true);
    cell_money(grid, &text, group->saving, places, report->currency);
    text_plural(&count, (wide_t)group->n, "finding", "findings");
    grid_cell(grid, STR_NONE);
    grid_cell(grid, group->name);
    grid_cell(grid, strbuf_str(&count));
    strbuf_release(&text);
    strbuf_release(&count);
}

static struct grid *lay_out(const struct findings_report *report, bool wide)
{
    const struct findings *findings = report->findings;
    struct grid *grid = grid_new();
    money_t largest = 0;
    for (size_t i = 0; i < findings->n; i++)
        largest = findings->items[i].month > largest ? findings->items[i].month : largest;
    int places = text_money_places(largest);
    grid_column(grid, "SAVES A MONTH", GRID_RIGHT);
    grid_column(grid, "COSTS A MONTH", GRID_RIGHT);
    grid_column(grid, "OWNER", GRID_NAME);
    grid_column(grid, "SUBJECT", GRID_NAME);
    grid_column(grid, "FINDING", GRID_NAME);
    grid_column(grid, "SINCE", GRID_NAME);
    grid_column(grid, "CONFIDENCE", GRID_NAME);
    grid_column(grid, "ID", GRID_NAME);
    if (wide)
        grid_column(grid, "WHAT", GRID_WORDS);
    grid_column(grid, "ACTION", GRID_WORDS);
    size_t shown = 0, limit = report->limit ? report->limit : SIZE_MAX, groups_n = 1;
    struct group_sum *groups = report->group ? groups_of(report, &groups_n) : NULL;
    for (size_t g = 0; g < groups_n; g++) {
        if (groups && shown < limit)
            add_group(report, grid, &groups[g], places);
        for (size_t i = 0; i < shown_of(findings) && shown < limit; i++)
            if (!groups || str_eq(group_of(report, &findings->items[i]), groups[g].name)) {
                add_finding(report, grid, &findings->items[i], wide, places);
                shown++;
            }
    }
    free(groups);
    return grid;
}

static void add_refusals(const struct findings *findings, bool wide, struct strbuf *out)
{
    if (!findings->refusals_n)
        return;
    if (!wide) {
        text_plural(out, (wide_t)findings->refusals_n, "workload", "workloads");
        strbuf_add(out, STR(" looked at and left alone (--output wide says why)\n"));
        return;
    }
    strbuf_add(out, STR("looked at and left alone:\n"));
    for (size_t i = 0; i < findings->refusals_n; i++)
        refusal_explain(&findings->refusals[i], out);
}

static void add_exempted(const struct findings_report *report, const struct finding *finding,
                         const char *how, struct str why, struct strbuf *out)
{
    strbuf_addf(out, "%s: %.*s, ", how, STR_ARG(finding->id));
    text_clean(out, finding->subject);
    strbuf_add(out, STR(", "));
    text_money(out, finding->month, text_money_places(finding->month), report->currency);
    strbuf_add(out, STR(" a month: "));
    text_clean(out, why);
    strbuf_addc(out, '\n');
}

static void add_off(const struct findings *findings, struct strbuf *out)
{
    size_t n = 0;
    for (int r = 0; r < RULE_COUNT; r++)
        if (findings->books->thresholds.off[r])
            strbuf_addf(out, "%s%s", n++ ? ", " : "rules that are off: ", rules[r].name);
    if (n)
        strbuf_addc(out, '\n');
}

/* Never silent: what is exempt is listed with what it costs, what was exempt is said to count
 * again, and what asks for it in vain is told why. */
static void add_exempt(const struct findings_report *report, bool wide, struct strbuf *out)
{
    const struct findings *findings = report->findings;
    const struct exemptions *exemptions = findings->exemptions;
    for (size_t i = shown_of(findings); i < findings->n; i++)
        add_exempted(report, &findings->items[i], "ignored", findings->items[i].exempt, out);
    for (size_t i = 0; i < shown_of(findings); i++)
        if (findings->items[i].ended.n)
            add_exempted(report, &findings->items[i], "not ignored any more",
                         findings->items[i].ended, out);
    for (size_t i = 0; exemptions && i < exemptions->n; i++) {
        const struct exemption *exemption = &exemptions->items[i];
        bool malformed = exemption->status == EXEMPTION_MALFORMED;
        if (!malformed && !(wide && exemption->status == EXEMPTION_UNUSED))
            continue;
        strbuf_add(out, malformed ? STR("not obeyed: ") : STR("nothing to ignore: "));
        text_clean(out, exemption->source);
        if (malformed) {
            strbuf_add(out, STR(": "));
            text_clean(out, exemption->problem);
        }
        strbuf_addc(out, '\n');
    }
    add_off(findings, out);
}

static void render_table(const struct findings_report *report, bool wide, struct strbuf *out)
{
    const struct findings *findings = report->findings;
    add_head(report, out);
    strbuf_add(out, STR("\n\n"));
    if (shown_of(findings)) {
        struct grid *grid = lay_out(report, wide);
        struct grid_style style = {.columns = report->columns, .colour = report->colour};
        grid_text(grid, &style, out);
        grid_free(grid);
        strbuf_addc(out, '\n');
    } else {
        strbuf_add(out, STR("nothing to do\n"));
    }
    add_exempt(report, wide, out);
    add_refusals(findings, wide, out);
    if (shown_of(findings))
        strbuf_add(
            out,
            STR("next: gputally explain ID, with the same sources, says how it comes about\n"));
}

static void render_markdown(const struct findings_report *report, struct strbuf *out)
{
    struct strbuf text = {0};
    add_head(report, &text);
    strbuf_add(out, STR("### "));
    markdown_text(out, strbuf_str(&text));
    strbuf_add(out, STR("\n\n"));
    if (shown_of(report->findings)) {
        struct grid *grid = lay_out(report, false);
        grid_markdown(grid, out);
        grid_free(grid);
    } else {
        strbuf_add(out, STR("nothing to do\n"));
    }
    strbuf_clear(&text);
    add_exempt(report, false, &text);
    if (text.n) {
        strbuf_addc(out, '\n');
        markdown_text(out, strbuf_str(&text));
    }
    strbuf_release(&text);
}

void findings_render(const struct findings_report *report, enum report_format format,
                     struct strbuf *out)
{
    switch (format) {
    case REPORT_TABLE:
    case REPORT_WIDE:
        render_table(report, format == REPORT_WIDE, out);
        break;
    case REPORT_CSV:
        findings_csv(report, out);
        break;
    case REPORT_JSON:
        findings_json(report, out);
        break;
    case REPORT_MARKDOWN:
        render_markdown(report, out);
        break;
    case REPORT_FORMAT_COUNT:
        break;
    }
}

void refusal_explain(const struct refusal *refusal, struct strbuf *out)
{
    strbuf_add(out, STR("  "));
    text_clean(out, refusal->subject);
    strbuf_addf(out, ": %s: ", rules[refusal->rule].name);
    text_clean(out, refusal->reason);
    strbuf_addc(out, '\n');
}
