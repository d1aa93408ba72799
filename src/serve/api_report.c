/* /report, /diff and /meta: the query and its rendering, as the commands print them. */
#include <stdlib.h>

#include "fleet/catalogue.h"
#include "report/diff.h"
#include "report/gather.h"
#include "report/meta_json.h"
#include "serve/api_impl.h"

#define REPORT_ROWS_MAX 50000

static const char **price_problems(const struct api_call *call, size_t *ret_n)
{
    const struct price_problem *problems = prices_problems(call->settings->config->prices, ret_n);
    const char **texts = arena_zalloc(call->request->arena, (*ret_n + 1) * sizeof *texts);
    for (size_t i = 0; i < *ret_n; i++)
        texts[i] = problems[i].text;
    return texts;
}

/* In a view nobody's hours of nodes are seen: the books of a view balance with themselves. */
static void balance_view(struct result *result)
{
    if (result)
        result->price = result->booked;
}

/* An answer is made in memory as a whole: what is larger goes by export, or piece by piece. */
static enum err check_size(const struct api_call *call, const struct result *result,
                           struct error *err)
{
    size_t rows = call->limit && call->limit < result->groups_n ? call->limit : result->groups_n;
    if (rows <= REPORT_ROWS_MAX)
        return ERR_OK;
    return error_set(err, ERR_LIMIT,
                     "the report has %zu rows, and %d is the most: give limit, a filter or fewer "
                     "keys, or take /api/v1/export/ledger",
                     rows, REPORT_ROWS_MAX);
}

enum err api_report(struct api_call *call, struct strbuf *out, struct error *err)
{
    const struct api_settings *settings = call->settings;
    struct gathered gathered = {0};
    enum err code = gather_report(call->store, &call->query, call->sort, &gathered, err);
    if (code == ERR_OK)
        code = check_size(call, gathered.rows, err);
    if (code == ERR_OK) {
        bool view = api_is_view(call);
        if (view) {
            balance_view(gathered.rows);
            balance_view(gathered.overview);
        }
        struct report report = {
            .result = gathered.rows,
            .overview = gathered.overview,
            .unpriced = gathered.unpriced,
            .title = settings->title,
            .tz = call->tz,
            .currency = settings->currency,
            .limit = call->limit,
            .window_widened = call->window_widened,
            .settings_changed = settings->settings_changed,
            .residual = settings->config->settings.node_split == NODE_SPLIT_RESIDUAL,
        };
        if (!view)
            report.problems = price_problems(call, &report.problems_n);
        bool usd = strcmp(settings->currency, "USD") == 0; /* the catalogue's */
        if (settings->has_sources && usd && !prices_configured(settings->config->prices))
            report.list_prices = catalogue_date();
        report_render(&report, REPORT_JSON, out);
    }
    gathered_release(&gathered);
    return code;
}

/* ---- diff ---- */

static enum err read_side(struct api_call *call, struct span window, struct diff_side *ret,
                          struct error *err)
{
    struct query query = call->query;
    struct result *result = NULL;
    query.window = window;
    enum err code = query_run(call->store, &query, &result, err);
    if (code != ERR_OK)
        return code;
    diff_side_of_result(result, ret);
    result_free(result);
    return ERR_OK;
}

/* a and b; b alone: a is the time before it; none: the last 7 days and those before. */
static enum err read_windows(struct api_call *call, struct span *ret_a, struct span *ret_b,
                             struct error *err)
{
    struct str a = api_text(call, "a"), b = api_text(call, "b");
    bool widened = false;
    enum err code = ERR_OK;
    *ret_b = call->window;
    if (b.n)
        code = api_window(call, b, ret_b, &widened, err);
    call->window_widened |= widened;
    *ret_a = (struct span){ret_b->from - (ret_b->to - ret_b->from), ret_b->from};
    if (code == ERR_OK && a.n && !b.n)
        code = error_set(err, ERR_USAGE, "a is given, and b is not: write a=WINDOW&b=WINDOW");
    if (code == ERR_OK && a.n)
        code = api_window(call, a, ret_a, &widened, err);
    call->window_widened |= widened;
    return code;
}

enum err api_diff(struct api_call *call, struct strbuf *out, struct error *err)
{
    struct span a, b;
    struct diff_side of_a = {0}, of_b = {0};
    for (size_t k = 0; k < call->query.keys_n; k++)
        if (call->query.keys[k] == KEY_DAY || call->query.keys[k] == KEY_HOUR)
            return error_set(err, ERR_USAGE, "by: no %s of one window is in the other",
                             key_words[call->query.keys[k]]);
    enum err code = read_windows(call, &a, &b, err);
    if (code == ERR_OK)
        code = read_side(call, a, &of_a, err);
    if (code == ERR_OK)
        code = read_side(call, b, &of_b, err);
    if (code == ERR_OK) {
        struct diff *diff = diff_new(&of_a, &of_b);
        struct diff_report report = {.diff = diff,
                                     .title = call->settings->title,
                                     .currency = call->settings->currency,
                                     .limit = call->limit,
                                     .window_widened = call->window_widened};
        diff_report_render(&report, REPORT_JSON, out);
        diff_free(diff);
    }
    diff_side_release(&of_a);
    diff_side_release(&of_b);
    return code;
}

/* ---- meta ---- */

enum err api_meta(struct api_call *call, struct strbuf *out, struct error *err)
{
    struct thresholds thresholds;
    struct result *clusters = NULL;
    struct query query = {
        .window = call->window, .tz = call->tz, .keys = {KEY_CLUSTER}, .keys_n = 1};
    enum err code = thresholds_read(call->settings->config, &thresholds, err);
    if (code == ERR_OK && call->window.from < call->window.to)
        code = query_run(call->store, &query, &clusters, err);
    if (code == ERR_OK && clusters)
        code = result_sort(clusters, STR("name"), err);
    if (code != ERR_OK) {
        result_free(clusters);
        return code;
    }
    size_t n = 0;
    struct str *names =
        arena_alloc(call->request->arena, (clusters ? clusters->groups_n + 1 : 1) * sizeof *names);
    for (size_t i = 0; clusters && i < clusters->groups_n; i++)
        if (!str_eq(clusters->groups[i].keys[0], STR("-")))
            names[n++] = clusters->groups[i].keys[0];
    struct meta meta = {.version = GPUTALLY_VERSION,
                        .currency = call->settings->currency,
                        .tz = call->tz,
                        .clusters = names,
                        .clusters_n = n,
                        .extent = call->extent,
                        .now = call->now,
                        .thresholds = &thresholds};
    meta_json(&meta, out);
    result_free(clusters);
    return ERR_OK;
}
