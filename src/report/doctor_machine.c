/* doctor for machines (docs/formats.md): every check, with its status. */
#include "report/csv.h"
#include "report/doctor_rows.h"
#include "report/text.h"

#define DOCTOR_SCHEMA "gputally.doctor/1"

static void add_text(struct strbuf *out, const char *name, struct str text)
{
    strbuf_addf(out, ", \"%s\": \"", name);
    text_json(out, text);
    strbuf_addc(out, '"');
}

/* GPU time in ns as GPU-hours, to 1e-9. */
static void add_hours(struct strbuf *out, wide_t gpu_ns)
{
    text_nano_plain(out, (gpu_ns + 1800) / 3600);
}

static void add_amounts(struct strbuf *out, const struct doctor_finding *finding)
{
    char money[MONEY_TEXT_MAX];
    if (finding->gpu_ns >= 0) {
        strbuf_add(out, STR(", \"gpu_hours\": "));
        add_hours(out, finding->gpu_ns);
    }
    if (finding->money >= 0)
        strbuf_addf(out, ", \"cost\": \"%s\"", money_format(finding->money, money));
    if (finding->count >= 0)
        strbuf_addf(out, ", \"count\": %lld", (long long)finding->count);
    if (finding->count >= 0 && finding->check->unit)
        add_text(out, "unit", str_of(finding->check->unit));
}

static void add_examples(struct strbuf *out, const struct doctor_finding *finding)
{
    strbuf_add(out, STR(", \"examples\": ["));
    for (size_t i = 0; i < finding->examples_n; i++) {
        const struct doctor_example *example = &finding->examples[i];
        strbuf_add(out, str_of(i ? ", {\"name\": \"" : "{\"name\": \""));
        text_json(out, example->name);
        strbuf_addc(out, '"');
        if (example->gpu_ns >= 0) {
            strbuf_add(out, STR(", \"gpu_hours\": "));
            add_hours(out, example->gpu_ns);
        }
        if (example->count >= 0)
            strbuf_addf(out, ", \"count\": %lld", (long long)example->count);
        strbuf_addc(out, '}');
    }
    strbuf_addf(out, "], \"more\": %zu", finding->more);
}

static void add_check(struct strbuf *out, const struct doctor_finding *finding)
{
    const struct doctor_check *check = finding->check;
    strbuf_addf(out, "    {\"id\": \"%s\", \"severity\": \"%s\", \"status\": \"%s\"", check->id,
                doctor_severity_words[check->severity], doctor_status_words[finding->status]);
    add_text(out, "title", str_of(check->title));
    if (finding->status == DOCTOR_UNCHECKED)
        add_text(out, "reason", str_of(finding->reason));
    if (finding->status == DOCTOR_FOUND) {
        add_amounts(out, finding);
        add_examples(out, finding);
        add_text(out, "effect", str_of(check->effect));
        add_text(out, "mend", str_of(check->mend));
    }
    strbuf_addf(out, ", \"doc\": \"docs/doctor.md#%s\"}", check->id);
}

void doctor_report_json(const struct doctor_report *report, struct strbuf *out)
{
    const struct doctor *doctor = report->doctor;
    const struct result *total = report->total;
    char from[TIME_TEXT_MAX], to[TIME_TEXT_MAX];
    strbuf_addf(out,
                "{\n  \"schema\": \"" DOCTOR_SCHEMA "\",\n  \"window\": {\"from\": \"%s\", "
                "\"to\": \"%s\"},\n  \"currency\": \"",
                time_format(total->query.window.from, from),
                time_format(total->query.window.to, to));
    text_json(out, str_of(report->currency));
    strbuf_addf(out,
                "\",\n  \"fleet\": {\"gpus\": %llu, \"nodes\": %llu, \"node_hours\": %llu},\n"
                "  \"counts\": {\"error\": %zu, \"warning\": %zu, \"info\": %zu, \"unchecked\": "
                "%zu},\n  \"checks\": [\n",
                (unsigned long long)total->gpus, (unsigned long long)total->nodes,
                (unsigned long long)total->node_hours, doctor->counts[DOCTOR_ERROR],
                doctor->counts[DOCTOR_WARNING], doctor->counts[DOCTOR_INFO], doctor->unchecked);
    for (size_t i = 0; i < doctor_checks_n; i++) {
        add_check(out, &doctor->findings[i]);
        strbuf_add(out, str_of(i + 1 < doctor_checks_n ? ",\n" : "\n"));
    }
    strbuf_add(out, STR("  ]\n}\n"));
}

static void csv_check(struct strbuf *out, const struct doctor_finding *finding)
{
    const struct doctor_check *check = finding->check;
    bool found = finding->status == DOCTOR_FOUND;
    char money[MONEY_TEXT_MAX];
    struct strbuf examples = {0};
    strbuf_addf(out, "%s,%s,%s,", check->id, doctor_severity_words[check->severity],
                doctor_status_words[finding->status]);
    csv_text(out, str_of(check->title));
    strbuf_addc(out, ',');
    if (found && finding->gpu_ns >= 0)
        add_hours(out, finding->gpu_ns);
    strbuf_addc(out, ',');
    if (found && finding->money >= 0)
        strbuf_add(out, str_of(money_format(finding->money, money)));
    strbuf_addc(out, ',');
    if (found && finding->count >= 0)
        strbuf_addf(out, "%lld", (long long)finding->count);
    strbuf_addf(out, ",%s,", check->unit ? check->unit : "");
    doctor_examples(finding, &examples);
    csv_text(out, strbuf_str(&examples));
    strbuf_addc(out, ',');
    csv_text(out, str_of(check->effect));
    strbuf_addc(out, ',');
    csv_text(out, str_of(check->mend));
    strbuf_addc(out, '\n');
    strbuf_release(&examples);
}

void doctor_report_csv(const struct doctor_report *report, struct strbuf *out)
{
    strbuf_add(out,
               STR("id,severity,status,title,gpu_hours,cost,count,unit,examples,effect,mend\n"));
    for (size_t i = 0; i < doctor_checks_n; i++)
        csv_check(out, &report->doctor->findings[i]);
}
