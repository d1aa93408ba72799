#include "serve/metrics_text.h"

#include <math.h>

#include "report/text.h"

void metrics_begin(struct metrics_text *text, const char *name, enum metric_kind kind,
                   const char *help)
{
    static const char *const kinds[] = {"gauge", "counter", "histogram"};
    struct str family = str_of(name), total = STR("_total");
    text->name = name;
    if (text->openmetrics && kind == METRIC_COUNTER && family.n > total.n)
        family.n -= total.n;
    strbuf_addf(text->out, "# HELP %.*s %s\n# TYPE %.*s %s\n", STR_ARG(family), help,
                STR_ARG(family), kinds[kind]);
}

void metrics_sample(struct metrics_text *text, const char *suffix)
{
    strbuf_addf(text->out, "%s%s", text->name, suffix);
}

void metrics_label(struct metrics_text *text, const char *name, struct str value)
{
    struct strbuf *out = text->out;
    bool first = out->text[out->n - 1] != '"';
    strbuf_addf(out, "%s%s=\"", first ? "{" : ",", name);
    struct strbuf clean = {0};
    text_clean(&clean, value); /* valid UTF-8, no control characters */
    for (size_t i = 0; i < clean.n; i++) {
        char c = clean.text[i];
        if (c == '\\' || c == '"')
            strbuf_addc(out, '\\');
        strbuf_addc(out, c);
    }
    strbuf_release(&clean);
    strbuf_addc(out, '"');
}

static void before_value(struct metrics_text *text)
{
    struct strbuf *out = text->out;
    strbuf_add(out, out->text[out->n - 1] == '"' ? STR("} ") : STR(" "));
}

void metrics_whole(struct metrics_text *text, int64_t value)
{
    before_value(text);
    strbuf_addf(text->out, "%lld\n", (long long)value);
}

void metrics_nano(struct metrics_text *text, wide_t nano)
{
    before_value(text);
    text_nano_plain(text->out, nano);
    strbuf_addc(text->out, '\n');
}

void metrics_double(struct metrics_text *text, double value)
{
    before_value(text);
    if (isnan(value))
        strbuf_add(text->out, STR("NaN\n"));
    else if (isinf(value))
        strbuf_add(text->out, value > 0 ? STR("+Inf\n") : STR("-Inf\n"));
    else
        strbuf_addf(text->out, "%.15g\n", value);
}

void metrics_end(struct metrics_text *text)
{
    if (text->openmetrics)
        strbuf_add(text->out, STR("# EOF\n"));
}
