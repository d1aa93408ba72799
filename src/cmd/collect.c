/* collect: fill a database, and say in a line what was done. */
#include "cmd/cmd.h"
#include "cmd/flow.h"
#include "cmd/help.h"
#include "report/text.h"

static void describe(const struct flow *flow, struct strbuf *out)
{
    const struct collect_report *report = &flow->collected;
    const char *path = options_text(flow->options, OPTION_DB);
    if (report->booked.from >= report->booked.to) {
        strbuf_addf(out, "nothing to do: %s has all hours of ", path);
        text_time(out, flow->window.from);
        strbuf_add(out, STR(" to "));
        text_time(out, flow->window.to);
    } else {
        strbuf_add(out, STR("booked "));
        text_time(out, report->booked.from);
        strbuf_add(out, STR(" to "));
        text_time(out, report->booked.to);
        strbuf_addf(out, " into %s: ", path);
        text_plural(out, (wide_t)report->rows, "row", "rows");
        strbuf_add(out, STR(" from "));
        text_plural(out, (wide_t)report->series, "series", "series");
        strbuf_add(out, STR(", "));
        text_plural(out, (wide_t)report->samples, "sample", "samples");
        if (report->partial)
            strbuf_add(out, STR("; some data was missing: the report says what"));
    }
    strbuf_addc(out, '\n');
}

int cmd_collect(const struct options *options)
{
    struct flow flow = {0};
    struct error err = {0};
    struct strbuf text = {0};
    bool partial = false;
    enum err code = ERR_OK;
    if (!options_text(options, OPTION_DB))
        code = error_set(&err, ERR_USAGE, "collect needs a database to fill: give --db FILE");
    if (code == ERR_OK)
        code = flow_open(options, &flow, &err);
    if (code == ERR_OK)
        code = flow_collect(&flow, &err);
    if (code == ERR_OK) {
        describe(&flow, &text);
        partial = flow.collected.partial;
    }
    flow_close(&flow);
    if (code != ERR_OK)
        return fail(&err);
    int status = print_text(&text);
    if (status == EXIT_DONE && partial && options_switch(options, OPTION_STRICT))
        status = EXIT_INCOMPLETE;
    return status;
}
