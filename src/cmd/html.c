/* report --output html: the page with a window's figures inside.
 *
 * A file has no server to ask, so it holds what its views may ask for: the reports of the first
 * view as they are, and the ledger summed by a few sets of keys that the page groups and filters
 * again (cubes). A cube has a cap; what is dearest goes in first, and the page says when it is not
 * all. */
#include "report/html.h"

#include <stdlib.h>

#include "cmd/flow.h"
#include "insight/narrow.h"
#include "report/cube_json.h"
#include "report/fleet_json.h"
#include "report/meta_json.h"
#include "report/text.h"

#define CUBE_ROWS_MAX 20000
#define FLEET_HOURS_MAX (62 * 24) /* a picture of more is not drawn in a file */

enum block {
    META,
    TITLE,
    REPORTS,
    PREVIOUS,
    CUBES,
    FINDINGS,
    EXPLANATIONS,
    IDLE,
    DOCTOR,
    FLEET,
    BLOCK_COUNT
};
static const char *const block_names[BLOCK_COUNT] = {
    [META] = "meta",
    [TITLE] = "title",
    [REPORTS] = "report",
    [PREVIOUS] = "previous",
    [CUBES] = "cubes",
    [FINDINGS] = "findings",
    [EXPLANATIONS] = "explanations",
    [IDLE] = "idle",
    [DOCTOR] = "doctor",
    [FLEET] = "fleet",
};

struct page {
    struct flow *flow;
    struct query query;    /* window, zone and filters; no keys */
    struct narrow *narrow; /* what the filters let through; NULL: everything */
    struct strbuf blocks[BLOCK_COUNT];
};

static enum err keyed(const struct page *page, const char *keys, struct query *ret,
                      struct error *err)
{
    *ret = page->query;
    ret->keys_n = 0;
    return query_parse_keys(str_of(keys), ret, err);
}

/* {"team": report, "day": report} of a window. */
static enum err add_reports(struct page *page, struct span window, enum block to,
                            bool *ret_incomplete, struct error *err)
{
    static const char *const keys[] = {"team", "day"};
    struct strbuf *out = &page->blocks[to];
    enum err code = ERR_OK;
    strbuf_addc(out, '{');
    for (size_t i = 0; code == ERR_OK && i < sizeof keys / sizeof *keys; i++) {
        struct query query;
        code = keyed(page, keys[i], &query, err);
        query.window = window;
        strbuf_addf(out, "%s\"%s\": ", i ? ",\n" : "", keys[i]);
        if (code == ERR_OK)
            code = flow_render(page->flow, &query, REPORT_JSON, 0, out, ret_incomplete, err);
    }
    strbuf_addc(out, '}');
    return code;
}

/* The time before the window that is as long, where the ledger has all of it. */
static enum err add_previous(struct page *page, struct span extent, struct error *err)
{
    struct span window = page->query.window;
    struct span before = {window.from - (window.to - window.from), window.from};
    bool incomplete;
    if (before.from < extent.from)
        return ERR_OK;
    return add_reports(page, before, PREVIOUS, &incomplete, err);
}

static enum err add_cube(struct page *page, const char *keys, struct error *err)
{
    struct query query;
    struct result *result = NULL;
    enum err code = keyed(page, keys, &query, err);
    if (code == ERR_OK)
        code = query_run(page->flow->store, &query, &result, err);
    if (code == ERR_OK)
        code = result_sort(result, STR("cost"), err);
    if (code == ERR_OK)
        cube_json(result, CUBE_ROWS_MAX, &page->blocks[CUBES]);
    result_free(result);
    return code;
}

static enum err add_cubes(struct page *page, struct error *err)
{
    static const char *const keys[] = {
        "cluster,namespace,team,workload,type,model",    "cluster,namespace,team,workload,pod",
        "cluster,pool,node,instance-type,gpu,model",     "cluster,node,gpu,namespace,team,workload",
        "day,cluster,node,namespace,team,workload",      "day,cluster,node,gpu",
        "region,cloud,capacity-type,instance-type,node", "day,team,type,model",
    };
    struct strbuf *out = &page->blocks[CUBES];
    enum err code = ERR_OK;
    strbuf_addc(out, '[');
    for (size_t i = 0; code == ERR_OK && i < sizeof keys / sizeof *keys; i++) {
        strbuf_add(out, str_of(i ? ",\n" : ""));
        code = add_cube(page, keys[i], err);
    }
    strbuf_addc(out, ']');
    return code;
}

static enum err add_meta(struct page *page, struct span extent, struct error *err)
{
    struct flow *flow = page->flow;
    struct query query;
    struct thresholds thresholds;
    struct result *result = NULL;
    enum err code = thresholds_read(flow->config, &thresholds, err);
    if (code == ERR_OK)
        code = keyed(page, "cluster", &query, err);
    if (code == ERR_OK)
        code = query_run(flow->store, &query, &result, err);
    if (code == ERR_OK)
        code = result_sort(result, STR("name"), err);
    if (code == ERR_OK) {
        struct str *clusters = mem_zalloc(result->groups_n + 1, sizeof *clusters);
        size_t n = 0;
        for (size_t i = 0; i < result->groups_n; i++)
            if (!str_eq(result->groups[i].keys[0], STR("-")))
                clusters[n++] = result->groups[i].keys[0];
        struct meta meta = {.version = GPUTALLY_VERSION,
                            .currency = flow->currency,
                            .tz = flow->tz,
                            .extent = extent,
                            .clusters = clusters,
                            .clusters_n = n,
                            .now = clock_now(),
                            .thresholds = &thresholds};
        meta_json(&meta, &page->blocks[META]);
        free(clusters);
    }
    result_free(result);
    return code;
}

/* What the report is called where no cluster has a name. */
static void add_title(struct page *page)
{
    const char *title = page->flow->title;
    struct strbuf *out = &page->blocks[TITLE];
    if (!title)
        return;
    strbuf_addc(out, '"');
    text_json(out, str_of(title));
    strbuf_addc(out, '"');
}

/* Where no window was asked for, "idle since" goes back as far as the ledger does: what the command
 * says, too. */
static enum err add_idle(struct page *page, struct span extent, struct error *err)
{
    struct span window = page->query.window;
    if (!page->flow->window_given && extent.from < window.from)
        window.from = extent.from;
    return flow_idle_days_json(page->flow, window, page->narrow, &page->blocks[IDLE], err);
}

static enum err fill(struct page *page, bool *ret_incomplete, struct error *err)
{
    struct flow *flow = page->flow;
    struct span window = page->query.window, extent = {0};
    struct error none = {0};
    if (store_extent(flow->store, &extent, &none) != ERR_OK)
        extent = (struct span){0}; /* empty: the page says so */
    add_title(page);
    enum err code = add_meta(page, extent, err);
    if (code == ERR_OK)
        code = add_reports(page, window, REPORTS, ret_incomplete, err);
    if (code == ERR_OK && page->query.filters_n)
        code = narrow_read(flow->store, &page->query, &page->narrow, err);
    if (code == ERR_OK)
        code = add_previous(page, extent, err);
    if (code == ERR_OK)
        code = add_cubes(page, err);
    if (code == ERR_OK)
        code = flow_findings_json(flow, page->narrow, &page->blocks[FINDINGS],
                                  &page->blocks[EXPLANATIONS], err);
    if (code == ERR_OK)
        code = add_idle(page, extent, err);
    if (code == ERR_OK)
        code = flow_doctor_json(flow, &page->query, &page->blocks[DOCTOR], err);
    if (code == ERR_OK && window.to - window.from <= FLEET_HOURS_MAX * HOUR_MS)
        code = fleet_json(flow->store, &page->query, FLEET_JSON_FULL, &page->blocks[FLEET], err);
    return code;
}

enum err flow_html(struct flow *flow, const struct query *query, struct strbuf *out,
                   bool *ret_incomplete, struct error *err)
{
    struct page page = {.flow = flow, .query = *query};
    struct html_block blocks[BLOCK_COUNT];
    page.query.window = flow->window;
    page.query.keys_n = 0;
    enum err code = fill(&page, ret_incomplete, err);
    for (int i = 0; i < BLOCK_COUNT; i++)
        blocks[i] = (struct html_block){block_names[i], strbuf_str(&page.blocks[i])};
    if (code == ERR_OK)
        code = html_page(STR("report.html"), blocks, BLOCK_COUNT, out, err);
    narrow_free(page.narrow);
    for (int i = 0; i < BLOCK_COUNT; i++)
        strbuf_release(&page.blocks[i]);
    return code;
}
