/* doctor for people, as text and Markdown. Nothing is wrapped: what mends something is there to be
 * copied. */
#include "report/doctor.h"

#include "report/doctor_rows.h"
#include "report/grid.h"
#include "report/text.h"

#define LINE_TITLES_MAX 2 /* findings that other reports name */

static const char *const colours[DOCTOR_SEVERITIES] = {"\033[31m", "\033[33m", "\033[36m"};
static const char *const plurals[DOCTOR_SEVERITIES] = {"errors", "warnings", "infos"};
/* What a ledger of hours cannot show. */
#define NOT_SEEN                                                                                   \
    "not seen in a ledger: clock skew, scrape interval against exporter interval, what the "       \
    "series cost to keep"

void doctor_examples(const struct doctor_finding *finding, struct strbuf *out)
{
    for (size_t i = 0; i < finding->examples_n; i++) {
        const struct doctor_example *example = &finding->examples[i];
        strbuf_add(out, str_of(i ? ", " : ""));
        if (example->count > 1) {
            text_count(out, example->count);
            strbuf_addc(out, ' ');
        }
        text_clean(out, example->name);
    }
    if (finding->more) {
        strbuf_add(out, STR(" and "));
        text_count(out, (wide_t)finding->more);
        strbuf_add(out, STR(" more"));
    }
}

/* "168.0 GPU-hours · $672.00 (3 %) · gpu-7" */
static void add_figures(const struct doctor_report *report, const struct doctor_finding *finding,
                        struct strbuf *out)
{
    money_t cost = report->total->total.cost;
    if (finding->count > 0 && finding->check->unit) {
        strbuf_add(out, STR(" · "));
        text_count(out, finding->count);
        strbuf_addf(out, " %s", finding->check->unit);
    }
    if (finding->gpu_ns > 0) {
        strbuf_add(out, STR(" · "));
        text_nano(out, finding->gpu_ns / 3600, 1);
        strbuf_add(out, STR(" GPU-hours"));
    }
    if (finding->money > 0) {
        strbuf_add(out, STR(" · "));
        text_money(out, finding->money, text_money_places(cost), report->currency);
        if (cost > 0) {
            strbuf_add(out, STR(" ("));
            text_percent(out, (int64_t)((wide_t)finding->money * NANO / cost), 0);
            strbuf_addc(out, ')');
        }
    }
    if (finding->examples_n) {
        strbuf_add(out, STR(" · "));
        doctor_examples(finding, out);
    }
}

static void add_head(const struct doctor_report *report, struct strbuf *out)
{
    const struct result *total = report->total;
    if (report->title) {
        text_clean(out, str_of(report->title));
        strbuf_add(out, STR(" · "));
    }
    strbuf_add(out, STR("doctor · "));
    text_time(out, total->query.window.from);
    strbuf_add(out, STR(" to "));
    text_time(out, total->query.window.to);
    strbuf_add(out, STR(" · "));
    text_plural(out, (wide_t)total->gpus, "GPU on ", "GPUs on ");
    text_plural(out, (wide_t)total->nodes, "node", "nodes");
}

static void add_counts(const struct doctor *doctor, struct strbuf *out)
{
    for (int s = 0; s < DOCTOR_SEVERITIES; s++) {
        strbuf_add(out, str_of(s ? ", " : ""));
        text_plural(out, (wide_t)doctor->counts[s], doctor_severity_words[s], plurals[s]);
    }
    strbuf_add(out, STR(" · "));
    text_plural(out, (wide_t)(doctor_checks_n - doctor->found - doctor->unchecked), "check fine",
                "checks fine");
    if (doctor->unchecked)
        strbuf_addf(out, " · %zu not made", doctor->unchecked);
}

static void add_finding(const struct doctor_report *report, const struct doctor_finding *finding,
                        struct strbuf *out)
{
    const struct doctor_check *check = finding->check;
    const char *word = doctor_severity_words[check->severity];
    strbuf_addf(out, "\n%s%s%s%*s%s", report->colour ? colours[check->severity] : "", word,
                report->colour ? "\033[0m" : "", (int)(9 - strlen(word)), "", check->title);
    add_figures(report, finding, out);
    strbuf_addf(out, "\n         so:   %s\n         mend: %s\n", check->effect, check->mend);
}

static void render_table(const struct doctor_report *report, bool wide, struct strbuf *out)
{
    const struct doctor *doctor = report->doctor;
    add_head(report, out);
    strbuf_addc(out, '\n');
    add_counts(doctor, out);
    strbuf_addc(out, '\n');
    for (size_t i = 0; i < doctor->found; i++)
        add_finding(report, &doctor->findings[i], out);
    strbuf_addc(out, '\n');
    for (size_t i = doctor->found; wide && i < doctor_checks_n; i++) {
        const struct doctor_finding *finding = &doctor->findings[i];
        strbuf_addf(out, "%-10s%s", doctor_status_words[finding->status], finding->check->id);
        if (finding->status == DOCTOR_UNCHECKED)
            strbuf_addf(out, ": %s", finding->reason);
        strbuf_addc(out, '\n');
    }
    strbuf_add(out, STR(NOT_SEEN "\n"));
}

static void add_escaped(struct strbuf *out, struct strbuf *text)
{
    markdown_text(out, strbuf_str(text));
    strbuf_clear(text);
}

static void render_markdown(const struct doctor_report *report, struct strbuf *out)
{
    const struct doctor *doctor = report->doctor;
    struct strbuf text = {0};
    strbuf_add(out, STR("### "));
    add_head(report, &text);
    add_escaped(out, &text);
    strbuf_add(out, STR("\n\n"));
    add_counts(doctor, &text);
    add_escaped(out, &text);
    strbuf_add(out, STR("\n"));
    for (size_t i = 0; i < doctor->found; i++) {
        const struct doctor_check *check = doctor->findings[i].check;
        strbuf_addf(out, "\n- **%s**: ", doctor_severity_words[check->severity]);
        strbuf_add(&text, str_of(check->title));
        add_figures(report, &doctor->findings[i], &text);
        add_escaped(out, &text);
        strbuf_add(out, STR("  \n  So: "));
        markdown_text(out, str_of(check->effect));
        strbuf_add(out, STR("  \n  Mend: "));
        markdown_text(out, str_of(check->mend));
    }
    strbuf_add(out, STR("\n\n" NOT_SEEN "\n"));
    strbuf_release(&text);
}

size_t doctor_report_findings(const struct doctor *doctor)
{
    return doctor->counts[DOCTOR_ERROR] + doctor->counts[DOCTOR_WARNING];
}

void doctor_report_line(const struct doctor *doctor, struct strbuf *out)
{
    size_t n = doctor_report_findings(doctor);
    const char *between = "";
    for (int s = DOCTOR_ERROR; s <= DOCTOR_WARNING; s++) {
        if (!doctor->counts[s])
            continue;
        strbuf_add(out, str_of(between));
        text_plural(out, (wide_t)doctor->counts[s], doctor_severity_words[s], plurals[s]);
        between = ", ";
    }
    for (size_t i = 0; i < n && i < LINE_TITLES_MAX; i++)
        strbuf_addf(out, "%s%s", i ? "; " : ": ", doctor->findings[i].check->title);
    if (n > LINE_TITLES_MAX)
        strbuf_add(out, STR("; …"));
}

void doctor_report_render(const struct doctor_report *report, enum report_format format,
                          struct strbuf *out)
{
    switch (format) {
    case REPORT_TABLE:
    case REPORT_WIDE:
        render_table(report, format == REPORT_WIDE, out);
        break;
    case REPORT_CSV:
        doctor_report_csv(report, out);
        break;
    case REPORT_JSON:
        doctor_report_json(report, out);
        break;
    case REPORT_MARKDOWN:
        render_markdown(report, out);
        break;
    case REPORT_FORMAT_COUNT:
        break;
    }
}
