/* idle: the idle scan, over the complete days before the end of the window. */
#include <stdlib.h>

#include "cmd/cmd.h"
#include "cmd/flow.h"
#include "cmd/output.h"
#include "report/idle.h"

#define IDLE_DAYS_MAX 366

/* "auto", or the share of the power limit: "15%", "15". */
static enum err read_power(const struct options *options, struct idle_settings *ret,
                           struct error *err)
{
    const char *text = options_text(options, OPTION_POWER);
    if (!text)
        return ERR_OK;
    ret->power_auto = strcmp(text, "auto") == 0;
    if (ret->power_auto)
        return ERR_OK;
    struct str number = str_of(text);
    money_t percent;
    if (number.n && number.p[number.n - 1] == '%')
        number.n--;
    if (!money_parse(number, &percent) || percent > 100 * NANO)
        return options_refuse(options, OPTION_POWER, err,
                              "'%s' is neither auto nor a percentage such as 15%%", text);
    ret->power_below = percent / 100;
    return ERR_OK;
}

static enum err read_idle(struct flow *flow, struct idle_settings *ret, struct error *err)
{
    *ret = flow->config->idle;
    long long days = ret->days;
    enum err code = options_number(flow->options, OPTION_DAYS, 1, &days, err);
    if (code == ERR_OK && days > IDLE_DAYS_MAX)
        code = options_refuse(flow->options, OPTION_DAYS, err, "at most %d", IDLE_DAYS_MAX);
    if (code == ERR_OK)
        code = read_power(flow->options, ret, err);
    ret->days = (int)days;
    return code;
}

/* The days must be read whole, whatever the window is; "now" is its end. */
static enum err widen_window(struct flow *flow, int days_n, struct error *err)
{
    if (!flow->window_given && flow->has_server) {
        flow->window.to = hour_floor(clock_now());
        flow->window.from = flow->window.to;
        flow->window_given = true;
    }
    if (!flow->window_given)
        return ERR_OK;
    struct span *days = mem_zalloc((size_t)days_n, sizeof *days);
    enum err code = query_complete_days(flow->window.to, flow->tz, days_n, days, err);
    if (code == ERR_OK && hour_floor(days[0].from) < flow->window.from)
        flow->window.from = hour_floor(days[0].from);
    free(days);
    return code;
}

static enum err print_scan(struct flow *flow, const struct idle_settings *settings,
                           enum report_format format, const struct view *view, size_t *ret_findings,
                           struct error *err)
{
    struct idle_scan *scan = idle_scan_new(view, settings, flow->config->settings.gap_ms);
    struct idle_report report = {.scan = scan,
                                 .title = flow->title,
                                 .tz = flow->tz,
                                 .currency = flow->currency,
                                 .power_auto = settings->power_auto,
                                 .columns = output_columns(),
                                 .colour = output_colour()};
    struct strbuf text = {0};
    idle_report_render(&report, format, &text);
    *ret_findings = idle_report_findings(scan);
    enum err code = output_write(strbuf_str(&text), err);
    if (code == ERR_OK)
        code = output_finish(err);
    strbuf_release(&text);
    idle_scan_free(scan);
    return code;
}

static enum err run(struct flow *flow, size_t *ret_findings, struct error *err)
{
    struct idle_settings settings;
    enum report_format format;
    struct view *view = NULL;
    enum err code = read_idle(flow, &settings, err);
    if (code == ERR_OK)
        code = flow_format(flow->options, &format, err);
    if (code == ERR_OK)
        code = widen_window(flow, settings.days, err);
    if (code == ERR_OK)
        code = flow_collect(flow, err);
    if (code == ERR_OK && flow->sources_n == 0 && !flow->window_given)
        code = store_extent(flow->store, &flow->window, err);
    struct view_options options = {.window = flow->window,
                                   .days = settings.days,
                                   .tz = flow->tz,
                                   .limits = flow->config->power_limits,
                                   .limits_n = flow->config->power_limits_n,
                                   .prices = flow->config->prices};
    if (code == ERR_OK)
        code = view_read(flow->store, &options, &view, err);
    if (code == ERR_OK && view->devices_n == 0)
        code = error_set(err, ERR_NOT_FOUND,
                         "no GPU was seen in the days up to the end of the window%s",
                         flow->sources_n ? ""
                                         : ": a database that an older version filled has none "
                                           "(collect --rebook with its source reads them again)");
    if (code == ERR_OK)
        code = print_scan(flow, &settings, format, view, ret_findings, err);
    view_free(view);
    return code;
}

/* The days before the window's end, and since when things stand still as far as the store goes. */
enum err flow_idle_days_json(struct flow *flow, struct span window, const struct narrow *narrow,
                             struct strbuf *out, struct error *err)
{
    struct idle_settings settings = flow->config->idle;
    struct view *view = NULL;
    struct view_options options = {.window = window,
                                   .days = settings.days,
                                   .tz = flow->tz,
                                   .limits = flow->config->power_limits,
                                   .limits_n = flow->config->power_limits_n,
                                   .prices = flow->config->prices};
    enum err code = view_read(flow->store, &options, &view, err);
    if (code == ERR_OK) {
        struct idle_scan *scan = idle_scan_new(view, &settings, flow->config->settings.gap_ms);
        struct idle_report report = {.scan = scan,
                                     .narrow = narrow,
                                     .tz = flow->tz,
                                     .currency = flow->currency,
                                     .power_auto = settings.power_auto};
        idle_days_json(&report, out);
        idle_scan_free(scan);
    }
    view_free(view);
    return code;
}

int cmd_idle(const struct options *options)
{
    struct flow flow;
    struct error err = {0};
    size_t findings = 0;
    enum err code = flow_open(options, &flow, &err);
    if (code == ERR_OK)
        code = run(&flow, &findings, &err);
    flow_close(&flow);
    if (code != ERR_OK)
        return fail(&err);
    return options_switch(options, OPTION_EXIT_CODE) && findings ? EXIT_FINDINGS : EXIT_DONE;
}
