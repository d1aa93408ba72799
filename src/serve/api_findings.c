/* /findings, /explain, /idle, /idle/days, /doctor: what the commands of these names print. */
#include <stdlib.h>

#include "insight/exempt.h"
#include "report/doctor.h"
#include "report/explain.h"
#include "report/findings.h"
#include "report/idle.h"
#include "serve/api_impl.h"

#define IDLE_DAYS_MAX 366

/* ---- findings ---- */

/* Rules of which a view has all that they read: those about what a team holds. A rule about nodes
 * would take the GPUs of others for idle. */
static bool rule_is_of_holders(enum rule_id rule)
{
    return strcmp(rules[rule].actor, "the holder's team") == 0;
}

static void cut_to_view(struct findings *findings)
{
    size_t n = 0, exempt_n = 0, refusals_n = 0, first_exempt = findings->n - findings->exempt_n;
    for (size_t i = 0; i < findings->n; i++) {
        struct finding finding = findings->items[i];
        if (rule_is_of_holders(finding.rule)) {
            exempt_n += i >= first_exempt;
            findings->items[n++] = finding;
        } else {
            free(finding.claims);
        }
    }
    findings->n = n;
    findings->exempt_n = exempt_n;
    for (size_t i = 0; i < findings->refusals_n; i++)
        if (rule_is_of_holders(findings->refusals[i].rule))
            findings->refusals[refusals_n++] = findings->refusals[i];
    findings->refusals_n = refusals_n;
}

enum err found_read(struct api_call *call, struct span window, struct found *ret, struct error *err)
{
    struct thresholds thresholds;
    const struct config *config = call->settings->config;
    enum err code = thresholds_read(config, &thresholds, err);
    if (code == ERR_OK)
        code = exemptions_add_config(&ret->exemptions, config, err);
    if (code == ERR_OK)
        code = books_read(call->store, window, &thresholds, &ret->books, err);
    if (code != ERR_OK)
        return code;
    ret->books->prices = config->prices;
    exemptions_add_annotations(&ret->exemptions, ret->books);
    ret->findings = recommend_except(ret->books, call->settings->currency, &ret->exemptions);
    if (api_is_view(call)) {
        cut_to_view(ret->findings);
        ret->exemptions.n = 0; /* of everybody: ids and reasons */
    }
    return ERR_OK;
}

void found_release(struct found *found)
{
    findings_free(found->findings);
    books_free(found->books);
    exemptions_release(&found->exemptions);
}

enum err api_findings(struct api_call *call, struct strbuf *out, struct error *err)
{
    struct found found = {0};
    struct str by = api_text(call, "by");
    enum findings_group group = FINDINGS_UNGROUPED;
    if (by.n && !findings_group_read(by, &group))
        return error_set(err, ERR_USAGE,
                         "by: findings are grouped by owner or by user, not by \"%.*s\"",
                         STR_ARG(by));
    enum err code = found_read(call, call->window, &found, err);
    if (code == ERR_OK) {
        struct findings_report report = {.findings = found.findings,
                                         .title = call->settings->title,
                                         .currency = call->settings->currency,
                                         .group = group,
                                         .limit = call->limit};
        findings_render(&report, REPORT_JSON, out);
    }
    found_release(&found);
    return code;
}

/* ---- explain ---- */

enum err api_explain(struct api_call *call, struct strbuf *out, struct error *err)
{
    struct str what;
    struct found found = {0};
    struct explanation *explanation = NULL;
    enum err code = api_need(call, "of", &what, err);
    if (code == ERR_OK)
        code = found_read(call, call->window, &found, err);
    if (code == ERR_OK) {
        struct explain_request request = {.store = call->store,
                                          .findings = found.findings,
                                          .settings = &call->settings->config->settings,
                                          .window = call->window,
                                          .tz = call->tz,
                                          .currency = call->settings->currency};
        code = explain(&request, what, &explanation, err);
    }
    if (code == ERR_OK)
        explanation_json(explanation, out);
    explanation_free(explanation);
    found_release(&found);
    return code;
}

/* ---- idle ---- */

static enum err read_power(struct str text, struct idle_settings *ret, struct error *err)
{
    money_t percent;
    if (!text.n)
        return ERR_OK;
    ret->power_auto = str_eq(text, STR("auto"));
    if (ret->power_auto)
        return ERR_OK;
    struct str number = text;
    number.n -= number.p[number.n - 1] == '%';
    if (!money_parse(number, &percent) || percent > 100 * NANO)
        return error_set(err, ERR_USAGE,
                         "power: \"%.*s\" is neither auto nor a percentage such as 15%%",
                         STR_ARG(text));
    ret->power_below = percent / 100;
    return ERR_OK;
}

static enum err scan_idle(struct api_call *call, bool as_days, struct strbuf *out,
                          struct error *err)
{
    const struct config *config = call->settings->config;
    struct idle_settings settings = config->idle;
    int64_t days = settings.days;
    struct view *view = NULL;
    enum err code = api_number(call, "days", 1, IDLE_DAYS_MAX, &days, err);
    settings.days = (int)days;
    if (code == ERR_OK)
        code = read_power(api_text(call, "power"), &settings, err);
    struct view_options options = {.window = call->window,
                                   .days = settings.days,
                                   .tz = call->tz,
                                   .limits = config->power_limits,
                                   .limits_n = config->power_limits_n,
                                   .prices = config->prices};
    if (!api_text(call, "window").n && !api_is_view(call)) /* through a lens rows are read for it */
        options.window = call->extent;
    if (code == ERR_OK)
        code = view_read(call->store, &options, &view, err);
    if (code == ERR_OK) {
        struct idle_scan *scan = idle_scan_new(view, &settings, config->settings.gap_ms);
        if (api_is_view(call))
            idle_scan_doubt_nodes(scan);
        struct idle_report report = {.scan = scan,
                                     .title = call->settings->title,
                                     .tz = call->tz,
                                     .currency = call->settings->currency,
                                     .power_auto = settings.power_auto};
        if (as_days)
            idle_days_json(&report, out);
        else
            idle_report_render(&report, REPORT_JSON, out);
        idle_scan_free(scan);
    }
    view_free(view);
    return code;
}

enum err api_idle(struct api_call *call, struct strbuf *out, struct error *err)
{
    return scan_idle(call, false, out, err);
}

enum err api_idle_days(struct api_call *call, struct strbuf *out, struct error *err)
{
    return scan_idle(call, true, out, err);
}

/* ---- doctor ---- */

enum err api_doctor(struct api_call *call, struct strbuf *out, struct error *err)
{
    const struct api_settings *settings = call->settings;
    struct doctor_reading reading;
    size_t problems_n = 0;
    struct query query = {.window = call->window, .tz = call->tz};
    enum err code = doctor_read(call->store, &query, &reading, err);
    if (code == ERR_OK) {
        struct doctor_facts *facts = &reading.facts;
        const struct price_problem *problems =
            prices_problems(settings->config->prices, &problems_n);
        const char **texts = arena_zalloc(call->request->arena, (problems_n + 1) * sizeof *texts);
        for (size_t i = 0; i < problems_n; i++)
            texts[i] = problems[i].text;
        bool usd = strcmp(settings->currency, "USD") == 0; /* the catalogue's */
        facts->extent = call->extent;
        facts->list_prices =
            settings->has_sources && usd && !prices_configured(settings->config->prices);
        facts->settings_changed = settings->settings_changed;
        if (api_is_view(call)) { /* hours of GPUs have gaps where others held them */
            facts->states = NULL;
            facts->states_n = 0;
        } else {
            facts->price_problems = texts;
            facts->price_problems_n = problems_n;
        }
        struct doctor *doctor = doctor_new(facts);
        struct doctor_report report = {.doctor = doctor,
                                       .total = reading.total,
                                       .title = settings->title,
                                       .currency = settings->currency};
        doctor_report_render(&report, REPORT_JSON, out);
        doctor_free(doctor);
    }
    doctor_reading_release(&reading);
    return code;
}
