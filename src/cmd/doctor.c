/* doctor: what cannot be trusted in what the sources sent, and how to mend it. */
#include <stdlib.h>

#include "cmd/cmd.h"
#include "cmd/flow.h"
#include "cmd/output.h"
#include "report/doctor.h"
#include "source/examine.h"

static void render_doctor(const struct flow *flow, const struct doctor_reading *reading,
                          const struct doctor *doctor, enum report_format format,
                          struct strbuf *out)
{
    struct doctor_report report = {.doctor = doctor,
                                   .total = reading->total,
                                   .title = flow->title,
                                   .currency = flow->currency,
                                   .colour = output_colour()};
    doctor_report_render(&report, format, out);
}

/* What the sources say when they are asked. */
struct asked {
    struct exam exam;
    const char *ids[EXAM_COUNT];
    struct doctor_said *said;
};

static enum err ask_sources(struct flow *flow, struct asked *ret, struct doctor_facts *facts,
                            struct error *err)
{
    time_ms now = clock_now(), at = flow->window.to < now ? flow->window.to : now;
    struct exam *exam = &ret->exam;
    enum err code = ERR_OK;
    for (size_t i = 0; code == ERR_OK && i < flow->sources_n; i++) {
        struct source *source = flow->sources[i];
        struct progress progress = meter_progress(&flow->meter);
        if (source->ops->examine)
            code = source->ops->examine(source, at, exam, &progress, err);
    }
    for (int k = 0; k < EXAM_COUNT; k++)
        if (exam->asked[k])
            ret->ids[facts->asked_n++] = exam_ids[k];
    ret->said = mem_zalloc(exam->n + 1, sizeof *ret->said);
    for (size_t i = 0; i < exam->n; i++)
        ret->said[i] = (struct doctor_said){exam_ids[exam->items[i].kind], exam->items[i].text,
                                            exam->items[i].count};
    facts->asked = ret->ids;
    facts->said = ret->said;
    facts->said_n = exam->n;
    return code;
}

static enum err examine(struct flow *flow, const struct query *query, enum report_format format,
                        struct strbuf *out, size_t *ret_findings, struct error *err)
{
    struct doctor_reading reading;
    struct asked asked = {0};
    size_t problems_n = 0;
    enum err code = doctor_read(flow->store, query, &reading, err);
    const struct price_problem *problems = prices_problems(flow->config->prices, &problems_n);
    const char **texts = mem_zalloc(problems_n + 1, sizeof *texts);
    for (size_t i = 0; i < problems_n; i++)
        texts[i] = problems[i].text;
    if (code == ERR_OK) {
        struct error none = {0};
        struct doctor_facts *facts = &reading.facts;
        if (store_extent(flow->store, &facts->extent, &none) != ERR_OK)
            facts->extent = (struct span){0};
        bool usd = strcmp(flow->currency, "USD") == 0; /* the catalogue's */
        facts->list_prices = flow->sources_n && usd && !prices_configured(flow->config->prices);
        facts->settings_changed =
            flow->collected.settings_changed && !options_switch(flow->options, OPTION_REBOOK);
        facts->price_problems = texts;
        facts->price_problems_n = problems_n;
        code = ask_sources(flow, &asked, facts, err);
    }
    if (code == ERR_OK) {
        struct doctor_facts *facts = &reading.facts;
        struct doctor *doctor = doctor_new(facts);
        *ret_findings = doctor_report_findings(doctor);
        render_doctor(flow, &reading, doctor, format, out);
        doctor_free(doctor);
    }
    free(texts);
    free(asked.said);
    exam_release(&asked.exam);
    doctor_reading_release(&reading);
    return code;
}

enum err flow_doctor_json(struct flow *flow, const struct query *query, struct strbuf *out,
                          struct error *err)
{
    size_t findings;
    return examine(flow, query, REPORT_JSON, out, &findings, err);
}

int cmd_doctor(const struct options *options)
{
    struct flow flow;
    struct error err = {0};
    enum report_format format;
    struct strbuf text = {0};
    size_t findings = 0;
    enum err code = flow_open(options, &flow, &err);
    if (code == ERR_OK)
        code = flow_format(options, &format, &err);
    if (code == ERR_OK)
        code = flow_collect(&flow, &err);
    struct query query = {.window = flow.window, .tz = flow.tz};
    if (code == ERR_OK)
        code = examine(&flow, &query, format, &text, &findings, &err);
    if (code == ERR_OK)
        code = output_write(strbuf_str(&text), &err);
    if (code == ERR_OK)
        code = output_finish(&err);
    strbuf_release(&text);
    flow_close(&flow);
    if (code != ERR_OK)
        return fail(&err);
    return options_switch(options, OPTION_EXIT_CODE) && findings ? EXIT_FINDINGS : EXIT_DONE;
}
