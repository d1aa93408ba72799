/* recommend and explain: the rules over the window's ledger, as a ranked list or one by one. */
#include <stdlib.h>

#include "cmd/cmd.h"
#include "cmd/flow.h"
#include "cmd/output.h"
#include "cmd/patch.h"
#include "insight/narrow.h"
#include "report/explain.h"
#include "report/findings.h"
#include "report/text.h"

struct run {
    struct flow flow;
    struct books *books;
    struct findings *findings;
    struct exemptions exemptions;
};

static enum err open_run(const struct options *options, struct run *ret, struct error *err)
{
    *ret = (struct run){0};
    return flow_open(options, &ret->flow, err);
}

static enum err read_exemptions(const struct flow *flow, struct run *run, struct error *err)
{
    const struct options *options = flow->options;
    const struct option_values *values = &options->values[OPTION_IGNORE];
    for (size_t i = 0; i < values->n; i++) {
        struct error inner = {0};
        if (exemptions_add(&run->exemptions, str_of(values->items[i]), STR("--ignore"), &inner))
            return options_refuse(options, OPTION_IGNORE, err, "%s", inner.text);
    }
    return exemptions_add_config(&run->exemptions, flow->config, err);
}

/* The rules over the ledger of a flow that has collected. */
static enum err look(struct flow *flow, struct run *run, struct error *err)
{
    struct thresholds thresholds;
    enum err code = thresholds_read(flow->config, &thresholds, err);
    if (code == ERR_OK)
        code = books_read(flow->store, flow->window, &thresholds, &run->books, err);
    if (code == ERR_OK) {
        run->books->prices = flow->config->prices;
        exemptions_add_annotations(&run->exemptions, run->books);
        run->findings = recommend_except(run->books, flow->currency, &run->exemptions);
    }
    return code;
}

static enum err find(struct run *run, struct error *err)
{
    enum err code = read_exemptions(&run->flow, run, err);
    if (code == ERR_OK)
        code = flow_collect(&run->flow, err);
    return code == ERR_OK ? look(&run->flow, run, err) : code;
}

static void release_run(struct run *run)
{
    findings_free(run->findings);
    books_free(run->books);
    exemptions_release(&run->exemptions);
}

static void close_run(struct run *run)
{
    release_run(run);
    flow_close(&run->flow);
}

enum err flow_findings_json(struct flow *flow, const struct narrow *narrow, struct strbuf *out,
                            struct strbuf *explanations, struct error *err)
{
    struct run run = {0};
    enum err code = read_exemptions(flow, &run, err);
    if (code == ERR_OK)
        code = look(flow, &run, err);
    if (code == ERR_OK) {
        struct findings_report report = {
            .findings = run.findings, .title = flow->title, .currency = flow->currency};
        narrow_findings(narrow, run.findings);
        findings_render(&report, REPORT_JSON, out);
        explain_findings_json(run.findings, explanations);
    }
    release_run(&run);
    return code;
}

bool flow_findings_line(struct flow *flow, struct strbuf *out, struct error *err)
{
    struct run run = {0};
    bool any = read_exemptions(flow, &run, err) == ERR_OK && look(flow, &run, err) == ERR_OK &&
               run.findings->n > run.findings->exempt_n;
    size_t actions = 0;
    for (size_t i = 0; any && i < run.findings->n; i++)
        actions += run.findings->items[i].saving > 0;
    if (any && actions) {
        money_t saving = findings_saving(run.findings);
        text_money(out, saving, text_money_places(saving), flow->currency);
        strbuf_add(out, STR(" a month in "));
        text_plural(out, (wide_t)actions, "action", "actions");
    } else if (any) {
        text_plural(out, (wide_t)run.findings->n - (wide_t)run.findings->exempt_n, "finding",
                    "findings");
    }
    release_run(&run);
    return any;
}

static enum err print(const struct strbuf *text, struct error *err)
{
    enum err code = output_write(strbuf_str(text), err);
    return code == ERR_OK ? output_finish(err) : code;
}

static enum err read_options(const struct options *options, struct findings_report *ret,
                             enum report_format *ret_format, struct error *err)
{
    const char *by = options_text(options, OPTION_BY);
    long long limit = 0;
    if (by && !findings_group_read(str_of(by), &ret->group))
        return options_refuse(options, OPTION_BY, err,
                              "findings are grouped by owner or by user, not by '%s'", by);
    enum err code = options_number(options, OPTION_LIMIT, 1, &limit, err);
    ret->limit = (size_t)limit;
    return code == ERR_OK ? flow_format(options, ret_format, err) : code;
}

static enum err write_patches(const struct options *options, const struct findings_report *report,
                              struct error *err)
{
    const char *folder = options_text(options, OPTION_PATCH);
    if (!folder)
        return ERR_OK;
    struct patch_set *set = patch_new(report);
    enum err code = patch_write(set, folder, options_switch(options, OPTION_QUIET), err);
    patch_free(set);
    return code;
}

int cmd_recommend(const struct options *options)
{
    struct run run;
    struct error err = {0};
    struct strbuf text = {0};
    struct findings_report report = {.columns = output_columns(), .colour = output_colour()};
    enum report_format format;
    enum err code = open_run(options, &run, &err);
    if (code == ERR_OK)
        code = read_options(options, &report, &format, &err);
    if (code == ERR_OK)
        code = find(&run, &err);
    bool found = code == ERR_OK && run.findings->n > run.findings->exempt_n;
    if (code == ERR_OK) {
        report.findings = run.findings;
        report.title = run.flow.title;
        report.currency = run.flow.currency;
        code = write_patches(options, &report, &err);
    }
    if (code == ERR_OK) {
        findings_render(&report, format, &text);
        code = print(&text, &err);
    }
    strbuf_release(&text);
    close_run(&run);
    if (code != ERR_OK)
        return fail(&err);
    return options_switch(options, OPTION_EXIT_CODE) && found ? EXIT_FINDINGS : EXIT_DONE;
}

static enum err explain_it(struct run *run, enum report_format format, struct strbuf *out,
                           struct error *err)
{
    struct explain_request request = {.store = run->flow.store,
                                      .findings = run->findings,
                                      .settings = &run->flow.config->settings,
                                      .window = run->flow.window,
                                      .tz = run->flow.tz,
                                      .currency = run->flow.currency};
    struct explanation *explanation;
    enum err code = explain(&request, str_of(run->flow.options->positional[0]), &explanation, err);
    if (code != ERR_OK)
        return code;
    if (format == REPORT_JSON)
        explanation_json(explanation, out);
    else
        explanation_text(explanation, out);
    explanation_free(explanation);
    return ERR_OK;
}

int cmd_explain(const struct options *options)
{
    struct run run;
    struct error err = {0};
    struct strbuf text = {0};
    enum report_format format = REPORT_TABLE;
    enum err code = open_run(options, &run, &err);
    if (code == ERR_OK && options->positional_n != 1)
        code = error_set(&err, ERR_USAGE,
                         "explain what? Write %s explain ID, as %s recommend shows it",
                         options->program, options->program);
    if (code == ERR_OK)
        code = flow_format(options, &format, &err);
    if (code == ERR_OK && format != REPORT_TABLE && format != REPORT_JSON)
        code = options_refuse(options, OPTION_OUTPUT, &err, "explain writes table or json");
    if (code == ERR_OK)
        code = find(&run, &err);
    if (code == ERR_OK)
        code = explain_it(&run, format, &text, &err);
    if (code == ERR_OK)
        code = print(&text, &err);
    strbuf_release(&text);
    close_run(&run);
    return code == ERR_OK ? EXIT_DONE : fail(&err);
}
