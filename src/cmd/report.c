/* report: the query that the options describe, and its rendering. */
#include "report/report.h"
#include "report/page.h"

#include <stdlib.h>

#include "cmd/cmd.h"
#include "cmd/flow.h"
#include "cmd/output.h"
#include "fleet/catalogue.h"
#include "query/query.h"
#include "report/doctor.h"
#include "report/gather.h"
#include "util/suggest.h"

enum err flow_format(const struct options *options, enum report_format *ret, struct error *err)
{
    const char *text = options_text(options, OPTION_OUTPUT);
    *ret = REPORT_TABLE;
    for (int i = 0; text && i < REPORT_FORMAT_COUNT; i++)
        if (strcmp(text, report_format_words[i]) == 0) {
            *ret = (enum report_format)i;
            return ERR_OK;
        }
    if (!text)
        return ERR_OK;
    if (strcmp(text, "html") == 0)
        return options_refuse(options, OPTION_OUTPUT, err,
                              "report writes html; here markdown, json and csv are");
    const char *near = suggest(str_of(text), report_format_words, REPORT_FORMAT_COUNT);
    return options_refuse(options, OPTION_OUTPUT, err,
                          "'%s' is none of table, wide, csv, json, markdown%s%s%s", text,
                          near ? ": did you mean " : "", near ? near : "", near ? "?" : "");
}

enum err flow_query(const struct flow *flow, struct query *ret, struct error *err)
{
    const struct options *options = flow->options;
    const char *by = options_text(options, OPTION_BY);
    const struct option_values *filters = &options->values[OPTION_FILTER];
    struct error inner = {0};
    *ret = (struct query){.window = flow->window, .tz = flow->tz};
    if (query_parse_keys(str_of(by ? by : "team"), ret, &inner) != ERR_OK)
        return options_refuse(options, OPTION_BY, err, "%s", inner.text);
    for (size_t i = 0; i < filters->n; i++)
        if (query_parse_filter(str_of(filters->items[i]), ret, &inner) != ERR_OK)
            return options_refuse(options, OPTION_FILTER, err, "%s", inner.text);
    return ERR_OK;
}

/* report and demo write a page; it is put together in html.c. */
static bool wants_html(const struct options *options)
{
    const char *text = options_text(options, OPTION_OUTPUT);
    return text && strcmp(text, "html") == 0;
}

static enum err check_sort(const struct options *options, const struct query *query,
                           struct error *err)
{
    const char *by = options_text(options, OPTION_SORT);
    struct error inner = {0};
    if (gather_check_sort(query, by ? str_of(by) : STR_NONE, &inner) != ERR_OK)
        return options_refuse(options, OPTION_SORT, err, "%s", inner.text);
    return ERR_OK;
}

static enum err run_queries(struct flow *flow, const struct query *query, struct gathered *ret,
                            struct error *err)
{
    const char *by = options_text(flow->options, OPTION_SORT);
    return gather_report(flow->store, query, by ? str_of(by) : STR_NONE, ret, err);
}

/* What was wrong in the price files, in an array that the caller frees. */
static const char **price_problems(const struct flow *flow, size_t *ret_n)
{
    const struct price_problem *problems = prices_problems(flow->config->prices, ret_n);
    const char **texts = mem_zalloc(*ret_n + 1, sizeof *texts);
    for (size_t i = 0; i < *ret_n; i++)
        texts[i] = problems[i].text;
    return texts;
}

/* What to look at next, as commands that can be typed as they stand. The doctor's is what the
 * report itself shows to be wrong, without reading more. */
#define CHEAP_ROWS 300000 /* the rules take under half a second for so many */
#define NEXT_MAX 3
struct next {
    struct strbuf recommend, doctor;
    const char *lines[NEXT_MAX];
    size_t n;
};

/* What there is to do and what it saves, where the rows are few enough to be looked at again. */
static void add_recommend(struct flow *flow, const struct gathered *results, struct next *next)
{
    struct error ignored;
    bool all = !flow->options->values[OPTION_FILTER].n;
    strbuf_add(&next->recommend, STR("gputally recommend    "));
    if (all && results->overview->total.rows <= CHEAP_ROWS &&
        flow_findings_line(flow, &next->recommend, &ignored))
        next->lines[next->n++] = next->recommend.text;
}

static void add_doctor(const struct gathered *results, struct next *next)
{
    struct doctor_facts facts = {
        .total = results->overview, .teams = results->overview, .types = results->unpriced};
    struct doctor *doctor = doctor_new(&facts);
    strbuf_add(&next->doctor, STR("gputally doctor       "));
    doctor_report_line(doctor, &next->doctor);
    if (doctor_report_findings(doctor))
        next->lines[next->n++] = next->doctor.text;
    doctor_free(doctor);
}

static void next_lines(struct flow *flow, const struct gathered *results, struct next *ret)
{
    if (options_text(flow->options, OPTION_BY))
        return;
    if (flow->options->command->bit == IN_DEMO) {
        ret->lines[ret->n++] = "gputally demo --by workload             the same by workload";
        return;
    }
    add_recommend(flow, results, ret);
    add_doctor(results, ret);
    ret->lines[ret->n++] =
        "the same with --by workload, node, type or day (gputally help keys lists all)";
}

static void render(struct flow *flow, const struct gathered *results, enum report_format format,
                   size_t limit, struct strbuf *out, bool *ret_incomplete)
{
    struct next next = {0};
    if (format == REPORT_TABLE || format == REPORT_WIDE)
        next_lines(flow, results, &next);
    struct report report = {.result = results->rows,
                            .overview = results->overview,
                            .unpriced = results->unpriced,
                            .title = flow->title,
                            .tz = flow->tz,
                            .currency = flow->currency,
                            .limit = limit,
                            .window_widened = flow->window_widened,
                            .settings_changed = flow->collected.settings_changed &&
                                                !options_switch(flow->options, OPTION_REBOOK),
                            .residual = flow->config->settings.node_split == NODE_SPLIT_RESIDUAL,
                            .columns = output_columns(),
                            .colour = output_colour(),
                            .next = next.lines,
                            .next_n = next.n};
    const char **problems = price_problems(flow, &report.problems_n);
    report.problems = problems;
    bool usd = strcmp(flow->currency, "USD") == 0; /* the catalogue's */
    if (flow->sources_n && usd && !prices_configured(flow->config->prices))
        report.list_prices = catalogue_date();
    report_render(&report, format, out);
    *ret_incomplete = report_incomplete(&report);
    strbuf_release(&next.recommend);
    strbuf_release(&next.doctor);
    free(problems);
}

enum err flow_render(struct flow *flow, const struct query *query, enum report_format format,
                     size_t limit, struct strbuf *out, bool *ret_incomplete, struct error *err)
{
    struct gathered results = {0};
    enum err code = run_queries(flow, query, &results, err);
    if (code == ERR_OK)
        render(flow, &results, format, limit, out, ret_incomplete);
    gathered_release(&results);
    return code;
}

enum err flow_report(struct flow *flow, bool *ret_incomplete, struct error *err)
{
    struct query query;
    struct strbuf text = {0};
    enum report_format format;
    long long limit = 0;
    enum err code = flow_query(flow, &query, err);
    if (code == ERR_OK && wants_html(flow->options)) {
        code = flow_html(flow, &query, &text, ret_incomplete, err);
    } else if (code == ERR_OK) {
        code = flow_format(flow->options, &format, err);
        if (code == ERR_OK)
            code = options_number(flow->options, OPTION_LIMIT, 1, &limit, err);
        if (code == ERR_OK)
            code = flow_render(flow, &query, format, (size_t)limit, &text, ret_incomplete, err);
    }
    if (code == ERR_OK)
        code = output_write(strbuf_str(&text), err);
    if (code == ERR_OK)
        code = output_finish(err);
    strbuf_release(&text);
    return code;
}

/* Refuse what cannot be printed before anything is read. */
static enum err check_printing(const struct flow *flow, struct error *err)
{
    struct query query;
    enum report_format format;
    long long limit = 0;
    enum err code = flow_query(flow, &query, err);
    if (code == ERR_OK)
        code = check_sort(flow->options, &query, err);
    if (code == ERR_OK)
        code =
            wants_html(flow->options) ? page_check(err) : flow_format(flow->options, &format, err);
    if (code == ERR_OK)
        code = options_number(flow->options, OPTION_LIMIT, 1, &limit, err);
    return code;
}

/* A source that fails half-way leaves what was booked before: that is reported as partial, and the
 * error and the exit status still say that the run failed. */
int flow_finish_report(struct flow *flow)
{
    struct error err = {0};
    bool incomplete = false, strict = options_switch(flow->options, OPTION_STRICT);
    enum err code = check_printing(flow, &err);
    if (code == ERR_OK)
        code = flow_collect(flow, &err);
    bool some = flow->collected.booked.from < flow->collected.booked.to && !signals_caught();
    struct error report_err = {0};
    if (code == ERR_OK)
        code = flow_report(flow, &incomplete, &err);
    else if (some && flow_report(flow, &incomplete, &report_err) != ERR_OK)
        fail(&report_err);
    flow_close(flow);
    if (code != ERR_OK)
        return fail(&err);
    return strict && incomplete ? EXIT_INCOMPLETE : EXIT_DONE;
}

int cmd_report(const struct options *options)
{
    struct flow flow;
    struct error err = {0};
    if (flow_open(options, &flow, &err) != ERR_OK) {
        flow_close(&flow);
        return fail(&err);
    }
    return flow_finish_report(&flow);
}
