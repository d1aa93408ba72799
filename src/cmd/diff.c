/* diff: two windows of the ledger, or two saved JSON reports.
 *
 *     diff              the 7 days before the last 7 days, and these
 *     diff W            the time just before W that is as long, and W
 *     diff A B          two windows
 *     diff A.json B.json */
#include <errno.h>
#include <stdlib.h>

#include "cmd/cmd.h"
#include "cmd/flow.h"
#include "cmd/output.h"
#include "query/window.h"
#include "report/diff.h"
#include "report/saved.h"

#define FILE_MAX_BYTES ((size_t)1 << 30)

struct comparison {
    struct diff_side a, b;
    const char *title, *currency;
    bool widened;
};

/* ---- printing ---- */

static enum err print_diff(const struct options *options, const struct comparison *comparison,
                           bool *ret_incomplete, struct error *err)
{
    enum report_format format;
    long long limit = 0;
    enum err code = flow_format(options, &format, err);
    if (code == ERR_OK)
        code = options_number(options, OPTION_LIMIT, 1, &limit, err);
    if (code != ERR_OK)
        return code;
    struct diff *diff = diff_new(&comparison->a, &comparison->b);
    struct diff_report report = {.diff = diff,
                                 .title = comparison->title,
                                 .currency = comparison->currency,
                                 .limit = (size_t)limit,
                                 .window_widened = comparison->widened,
                                 .columns = output_columns(),
                                 .colour = output_colour()};
    struct strbuf text = {0};
    diff_report_render(&report, format, &text);
    *ret_incomplete = diff_report_incomplete(diff);
    code = output_write(strbuf_str(&text), err);
    if (code == ERR_OK)
        code = output_finish(err);
    strbuf_release(&text);
    diff_free(diff);
    return code;
}

/* ---- saved reports ---- */

static bool is_file(const char *word)
{
    struct str text = str_of(word), end = STR(".json");
    return text.n > end.n && str_eq((struct str){text.p + text.n - end.n, end.n}, end);
}

static enum err read_file(const char *path, struct strbuf *ret, struct error *err)
{
    FILE *file = fopen(path, "rb");
    char bytes[65536];
    size_t n;
    if (!file)
        return error_set(err, ERR_IO, "opening %s: %s", path, strerror(errno));
    while ((n = fread(bytes, 1, sizeof bytes, file)) > 0 && ret->n <= FILE_MAX_BYTES)
        strbuf_add(ret, (struct str){bytes, n});
    bool failed = ferror(file);
    fclose(file);
    if (failed)
        return error_set(err, ERR_IO, "reading %s: %s", path, strerror(errno));
    if (ret->n > FILE_MAX_BYTES)
        return error_set(err, ERR_LIMIT, "%s is larger than 1 GiB", path);
    return ERR_OK;
}

static enum err read_report(const char *path, struct diff_side *ret, struct error *err)
{
    struct strbuf text = {0};
    enum err code = read_file(path, &text, err);
    if (code == ERR_OK)
        code = saved_report_read(strbuf_str(&text), path, ret, err);
    strbuf_release(&text);
    return code;
}

static enum err check_alike(const struct diff_side *a, const struct diff_side *b, struct error *err)
{
    bool alike = a->keys_n == b->keys_n;
    for (size_t k = 0; alike && k < a->keys_n; k++)
        alike = str_eq(a->keys[k], b->keys[k]);
    if (!alike)
        return error_set(err, ERR_USAGE,
                         "the reports have other keys: save both with the same --by");
    if (!str_eq(a->currency, b->currency))
        return error_set(err, ERR_USAGE, "the reports are in %.*s and %.*s: nothing is converted",
                         STR_ARG(a->currency), STR_ARG(b->currency));
    return ERR_OK;
}

static enum err diff_files(const struct options *options, struct comparison *ret,
                           bool *ret_incomplete, struct error *err)
{
    static const enum option_id of_ledgers[] = {OPTION_BY, OPTION_FILTER, OPTION_WINDOW};
    for (size_t i = 0; i < sizeof of_ledgers / sizeof *of_ledgers; i++)
        if (options->values[of_ledgers[i]].n && !options->values[of_ledgers[i]].origin)
            return options_refuse(options, of_ledgers[i], err,
                                  "saved reports have theirs; give it when they are made");
    enum err code = read_report(options->positional[0], &ret->a, err);
    if (code == ERR_OK)
        code = read_report(options->positional[1], &ret->b, err);
    if (code == ERR_OK)
        code = check_alike(&ret->a, &ret->b, err);
    if (code != ERR_OK)
        return code;
    ret->currency = ret->a.currency.p;
    return print_diff(options, ret, ret_incomplete, err);
}

/* ---- windows ---- */

static struct span before(struct span window)
{
    return (struct span){window.from - (window.to - window.from), window.from};
}

static enum err parse_window(const struct flow *flow, const char *text, struct span *ret,
                             bool *ret_widened, struct error *err)
{
    bool widened = false;
    struct error inner = {0};
    if (window_parse(str_of(text), flow->tz, clock_now(), ret, &widened, &inner) != ERR_OK)
        return error_set(err, ERR_USAGE, "diff %s: %s", text, inner.text);
    *ret_widened |= widened;
    return ERR_OK;
}

/* What is asked for; *ret_a is empty where the ledger must say first what it has. */
static enum err choose_windows(const struct flow *flow, struct span *ret_a, struct span *ret_b,
                               bool *ret_widened, struct error *err)
{
    const struct options *options = flow->options;
    size_t n = options->positional_n;
    *ret_a = *ret_b = (struct span){0};
    if (n && options_text(options, OPTION_WINDOW) && !options->values[OPTION_WINDOW].origin)
        return options_refuse(options, OPTION_WINDOW, err,
                              "the windows stand there already: diff A B");
    if (n == 2) {
        enum err code = parse_window(flow, options->positional[0], ret_a, ret_widened, err);
        return code != ERR_OK ? code
                              : parse_window(flow, options->positional[1], ret_b, ret_widened, err);
    }
    if (n == 1) {
        enum err code = parse_window(flow, options->positional[0], ret_b, ret_widened, err);
        if (code != ERR_OK)
            return code;
    } else if (flow->window_given) {
        *ret_b = flow->window;
        *ret_widened = flow->window_widened;
    } else if (flow->has_server) {
        enum err code = parse_window(flow, "7d", ret_b, ret_widened, err);
        if (code != ERR_OK)
            return code;
    } else {
        return ERR_OK;
    }
    *ret_a = before(*ret_b);
    return ERR_OK;
}

static enum err ask(struct flow *flow, const struct query *query, struct span window,
                    struct diff_side *ret, struct error *err)
{
    struct query asked = *query;
    struct result *result = NULL;
    asked.window = window;
    enum err code = query_run(flow->store, &asked, &result, err);
    if (code != ERR_OK)
        return code;
    diff_side_of_result(result, ret);
    result_free(result);
    return ERR_OK;
}

static enum err read_query(const struct flow *flow, struct query *ret, struct error *err)
{
    enum err code = flow_query(flow, ret, err);
    for (size_t k = 0; code == ERR_OK && k < ret->keys_n; k++)
        if (ret->keys[k] == KEY_DAY || ret->keys[k] == KEY_HOUR)
            code = options_refuse(flow->options, OPTION_BY, err,
                                  "no %s of one window is in the other", key_words[ret->keys[k]]);
    return code;
}

static enum err diff_windows(struct flow *flow, struct comparison *ret, bool *ret_incomplete,
                             struct error *err)
{
    struct span a, b;
    struct query query;
    enum err code = read_query(flow, &query, err);
    if (code == ERR_OK)
        code = choose_windows(flow, &a, &b, &ret->widened, err);
    if (code != ERR_OK)
        return code;
    if (a.from < a.to) {
        flow->window.from = a.from < b.from ? a.from : b.from;
        flow->window.to = a.to > b.to ? a.to : b.to;
        flow->window_given = true;
    }
    code = flow_collect(flow, err);
    if (code != ERR_OK)
        return code;
    if (a.from >= a.to) {
        b = flow->window;
        b.from = b.to - b.from > 7 * DAY_MS ? b.to - 7 * DAY_MS : b.from;
        a = before(b);
    }
    code = ask(flow, &query, a, &ret->a, err);
    if (code == ERR_OK)
        code = ask(flow, &query, b, &ret->b, err);
    ret->title = flow->title;
    ret->currency = flow->currency;
    return code == ERR_OK ? print_diff(flow->options, ret, ret_incomplete, err) : code;
}

static enum err check_words(const struct options *options, bool *ret_files, struct error *err)
{
    size_t files = 0;
    for (size_t i = 0; i < options->positional_n; i++)
        files += is_file(options->positional[i]);
    if (options->positional_n > 2)
        return error_set(err, ERR_USAGE, "diff: unexpected argument '%s'", options->positional[2]);
    *ret_files = files > 0;
    if (files && files != 2)
        return error_set(err, ERR_USAGE, "diff takes two windows, or two saved JSON reports");
    return ERR_OK;
}

int cmd_diff(const struct options *options)
{
    struct flow flow = {0};
    struct error err = {0};
    struct comparison comparison = {0};
    enum report_format format;
    bool files = false, incomplete = false;
    long long limit = 0;
    enum err code = check_words(options, &files, &err);
    if (code == ERR_OK)
        code = flow_format(options, &format, &err);
    if (code == ERR_OK)
        code = options_number(options, OPTION_LIMIT, 1, &limit, &err);
    if (code == ERR_OK && files)
        code = diff_files(options, &comparison, &incomplete, &err);
    else if (code == ERR_OK) {
        code = flow_open(options, &flow, &err);
        if (code == ERR_OK)
            code = diff_windows(&flow, &comparison, &incomplete, &err);
    }
    diff_side_release(&comparison.a);
    diff_side_release(&comparison.b);
    if (!files)
        flow_close(&flow);
    if (code != ERR_OK)
        return fail(&err);
    return options_switch(options, OPTION_STRICT) && incomplete ? EXIT_INCOMPLETE : EXIT_DONE;
}
