/* The idle scan as a picture of GPUs and days: what a page draws. The whole scan as JSON has some
 * 3 kB a GPU, which is too much to mail for 10,000 of them; this has some 500 bytes. */
#include "insight/narrow.h"
#include "query/window.h"
#include "report/idle_rows.h"
#include "report/text.h"

#define IDLE_DAYS_SCHEMA "gputally.idle-days/1"
#define TENTH_OF_PERCENT (NANO / 1000)

/* To a tenth of a percent, half up: 166000000 -> 16.6 */
static void add_percent(struct strbuf *out, int64_t ratio)
{
    if (ratio < 0)
        strbuf_add(out, STR("null"));
    else
        text_nano_plain(out,
                        (wide_t)((ratio + TENTH_OF_PERCENT / 2) / TENTH_OF_PERCENT) * (NANO / 10));
}

static char device_letter(const struct idle_day *day)
{
    int unchecked = 0;
    for (int s = 0; s < VIEW_SIGNALS; s++)
        unchecked += day->check[s] == IDLE_UNCHECKED;
    if (day->up_ms == 0)
        return '.';
    if (!day->sufficient || unchecked == VIEW_SIGNALS)
        return 'N';
    return day->failed ? 'U' : unchecked ? 'P' : 'I';
}

/* A host without either signal says nothing, which is not the same as too little data. */
static char host_letter(const struct idle_host_day *day)
{
    bool cpu = day->check[HOST_CPU] != IDLE_UNCHECKED;
    bool network = day->check[HOST_NETWORK] != IDLE_UNCHECKED;
    if (!cpu && !network)
        return '-';
    if (!day->sufficient)
        return 'N';
    return day->failed ? 'U' : cpu && network ? 'I' : 'P';
}

static void add_since(struct strbuf *out, const struct idle_since *since)
{
    char text[TIME_TEXT_MAX], money[MONEY_TEXT_MAX];
    strbuf_add(out, STR(", \"idle_since\": "));
    if (!since->any) {
        strbuf_add(out, STR("null"));
        return;
    }
    strbuf_addf(out, "{\"from\": \"%s\", \"hours\": ", time_format(since->span.from, text));
    text_nano_plain(out, (wide_t)(since->span.to - since->span.from) * NANO / HOUR_MS);
    strbuf_add(out, STR(", \"observed_hours\": "));
    text_nano_plain(out, (wide_t)since->observed_ms * NANO / HOUR_MS);
    if (since->priced)
        strbuf_addf(out, ", \"cost\": \"%s\"", money_format(since->cost, money));
    else
        strbuf_add(out, STR(", \"cost\": null"));
    strbuf_addf(out, ", \"finding\": %s}", idle_since_is_finding(since) ? "true" : "false");
}

static void add_streaks(struct strbuf *out, const struct idle_run *longest,
                        const struct idle_recent *recent)
{
    strbuf_add(out, STR(", \"longest_idle_hours\": "));
    if (longest->any)
        text_nano_plain(out, (wide_t)(longest->span.to - longest->span.from) * NANO / HOUR_MS);
    else
        strbuf_add(out, STR("null"));
    strbuf_addf(out, ", \"last_3h\": \"%s\"", idle_badge_words[recent->badge]);
}

static void add_device(struct strbuf *out, const struct idle_scan *scan,
                       const struct idle_node *node, const struct idle_device *device)
{
    const struct view *view = scan->view;
    const struct idle_row row = {.node = node, .device = device};
    strbuf_add(out, STR("  {\"gpu\": "));
    idle_json_name(out, view, device->device->device);
    strbuf_add(out, STR(", \"model\": "));
    idle_json_name(out, view, device->device->model);
    strbuf_addf(out, ", \"verdict\": \"%s\", ", idle_verdict_words[device->verdict]);
    idle_json_unchecked(out, device);
    strbuf_add(out, STR(", \"days\": \""));
    for (size_t d = 0; d < view->days_n; d++)
        strbuf_addc(out, device_letter(&device->days[d]));
    strbuf_addc(out, '"');
    for (int s = 0; s < VIEW_SIGNALS; s++) {
        strbuf_addf(out, ", \"%s\": [", view_signal_words[s]);
        for (size_t d = 0; d < view->days_n; d++) {
            strbuf_add(out, str_of(d ? "," : ""));
            add_percent(out, device->days[d].mean[s]);
        }
        strbuf_addc(out, ']');
    }
    strbuf_add(out, STR(", \"power_below\": "));
    add_percent(out, device->power_below);
    strbuf_add(out, STR(", \"held\": "));
    add_percent(out, idle_row_held(&row, view->days_n));
    add_since(out, &device->since);
    add_streaks(out, &device->longest, &device->recent);
    strbuf_addc(out, '}');
}

static void add_host(struct strbuf *out, const struct idle_node *node, size_t days_n)
{
    strbuf_add(out, STR(", \"days\": \""));
    for (size_t d = 0; d < days_n; d++)
        strbuf_addc(out, host_letter(&node->days[d]));
    strbuf_add(out, STR("\", \"cpu_peak\": ["));
    for (size_t d = 0; d < days_n; d++) {
        strbuf_add(out, str_of(d ? "," : ""));
        add_percent(out, node->days[d].host.cpu_max);
    }
    strbuf_add(out, STR("], \"network_bytes\": ["));
    for (size_t d = 0; d < days_n; d++) {
        strbuf_add(out, str_of(d ? "," : ""));
        if (node->days[d].host.net_bytes < 0)
            strbuf_add(out, STR("null"));
        else
            strbuf_addf(out, "%lld", (long long)node->days[d].host.net_bytes);
    }
    strbuf_addc(out, ']');
}

static bool is_shown(const struct idle_report *report, const struct idle_device *device)
{
    const struct names *names = report->scan->view->names;
    return narrow_has_gpu(report->narrow, names_text(names, device->device->cluster),
                          names_text(names, device->device->node),
                          names_text(names, device->device->device));
}

static bool is_any_shown(const struct idle_report *report, const struct idle_node *node)
{
    for (size_t d = 0; d < node->devices_n; d++)
        if (is_shown(report, &node->devices[d]))
            return true;
    return false;
}

static void add_node(struct strbuf *out, const struct idle_report *report,
                     const struct idle_node *node)
{
    const struct idle_scan *scan = report->scan;
    strbuf_add(out, STR(" {"));
    idle_json_node_head(out, report, node);
    strbuf_addf(out, "\"cpu_bound\": %s", node->cpu_bound.is ? "true" : "false");
    add_host(out, node, scan->view->days_n);
    add_since(out, &node->since);
    add_streaks(out, &node->longest, &node->recent);
    strbuf_add(out, STR(", \"devices\": [\n"));
    size_t n = 0;
    for (size_t d = 0; d < node->devices_n; d++) {
        if (!is_shown(report, &node->devices[d]))
            continue;
        strbuf_add(out, str_of(n++ ? ",\n" : ""));
        add_device(out, scan, node, &node->devices[d]);
    }
    strbuf_add(out, STR("]}"));
}

void idle_days_json(const struct idle_report *report, struct strbuf *out)
{
    const struct view *view = report->scan->view;
    char name[16];
    strbuf_add(out, STR("{\"schema\": \"" IDLE_DAYS_SCHEMA "\", "));
    idle_json_head(out, report);
    strbuf_add(out, STR(" \"days\": ["));
    for (size_t d = 0; d < view->days_n; d++)
        strbuf_addf(out, "%s\"%s\"", d ? ", " : "", day_name(view->days[d].from, report->tz, name));
    strbuf_add(out, STR("],\n \"nodes\": [\n"));
    size_t n = 0;
    for (size_t i = 0; i < report->scan->nodes_n; i++) {
        if (!is_any_shown(report, &report->scan->nodes[i]))
            continue;
        strbuf_add(out, str_of(n++ ? ",\n" : ""));
        add_node(out, report, &report->scan->nodes[i]);
    }
    strbuf_add(out, STR("\n ]}\n"));
}
