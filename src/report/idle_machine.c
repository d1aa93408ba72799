/* The idle scan for machines (docs/formats.md): JSON with everything, CSV with a row for each GPU
 * and day. */
#include <stdlib.h>

#include "query/window.h"
#include "report/csv.h"
#include "report/idle_rows.h"
#include "report/text.h"

#define IDLE_SCHEMA "gputally.idle/1"

void idle_json_name(struct strbuf *out, const struct view *view, name_t name)
{
    struct str text = names_text(view->names, name);
    if (!text.n) {
        strbuf_add(out, STR("null"));
        return;
    }
    strbuf_addc(out, '"');
    text_json(out, text);
    strbuf_addc(out, '"');
}

static void add_time(struct strbuf *out, time_ms t)
{
    char text[TIME_TEXT_MAX];
    strbuf_addf(out, "\"%s\"", time_format(t, text));
}

/* A ratio of 1e-9 as percent, without loss: 166000000 -> 16.6 */
static void add_percent(struct strbuf *out, int64_t ratio)
{
    if (ratio < 0)
        strbuf_add(out, STR("null"));
    else
        text_nano_plain(out, (wide_t)ratio * 100);
}

void idle_json_unchecked(struct strbuf *out, const struct idle_device *device)
{
    const char *comma = "";
    strbuf_add(out, STR("\"unchecked\": ["));
    for (int s = 0; s < VIEW_SIGNALS; s++)
        if (device->unchecked[s]) {
            strbuf_addf(out, "%s\"%s\"", comma, view_signal_words[s]);
            comma = ", ";
        }
    strbuf_addc(out, ']');
}

static void add_since(struct strbuf *out, const struct idle_since *since)
{
    strbuf_add(out, STR("\"idle_since\": "));
    if (!since->any) {
        strbuf_add(out, STR("null"));
        return;
    }
    strbuf_add(out, STR("{\"from\": "));
    add_time(out, since->span.from);
    strbuf_add(out, STR(", \"to\": "));
    add_time(out, since->span.to);
    strbuf_add(out, STR(", \"hours\": "));
    text_nano_plain(out, (wide_t)(since->span.to - since->span.from) * NANO / HOUR_MS);
    strbuf_add(out, STR(", \"observed_hours\": "));
    text_nano_plain(out, (wide_t)since->observed_ms * NANO / HOUR_MS);
    strbuf_add(out, STR(", \"cost\": "));
    char money[MONEY_TEXT_MAX];
    if (since->priced)
        strbuf_addf(out, "\"%s\"", money_format(since->cost, money));
    else
        strbuf_add(out, STR("null"));
    strbuf_addf(out, ", \"finding\": %s, \"gaps\": [",
                idle_since_is_finding(since) ? "true" : "false");
    for (size_t i = 0; i < since->gaps_n; i++) {
        strbuf_add(out, str_of(i ? ", {\"from\": " : "{\"from\": "));
        add_time(out, since->gaps[i].span.from);
        strbuf_add(out, STR(", \"to\": "));
        add_time(out, since->gaps[i].span.to);
        strbuf_addf(out, ", \"unobserved_ms\": %lld}", (long long)since->gaps[i].ms);
    }
    strbuf_add(out, STR("]}"));
}

static void add_streaks(struct strbuf *out, const struct idle_run *longest,
                        const struct idle_recent *recent)
{
    strbuf_add(out, STR("\"longest_idle\": "));
    if (longest->any) {
        strbuf_add(out, STR("{\"from\": "));
        add_time(out, longest->span.from);
        strbuf_add(out, STR(", \"to\": "));
        add_time(out, longest->span.to);
        strbuf_add(out, STR(", \"hours\": "));
        text_nano_plain(out, (wide_t)(longest->span.to - longest->span.from) * NANO / HOUR_MS);
        strbuf_addc(out, '}');
    } else {
        strbuf_add(out, STR("null"));
    }
    strbuf_addf(out, ", \"last_3h\": {\"state\": \"%s\", \"observed_percent\": ",
                idle_badge_words[recent->badge]);
    add_percent(out, recent->observed);
    strbuf_addc(out, '}');
}

static void add_day(struct strbuf *out, const struct idle_report *report,
                    const struct idle_day *day, size_t d)
{
    char name[16];
    strbuf_addf(out, "{\"day\": \"%s\", \"mean\": {",
                day_name(report->scan->view->days[d].from, report->tz, name));
    for (int s = 0; s < VIEW_SIGNALS; s++) {
        strbuf_addf(out, "%s\"%s\": ", s ? ", " : "", view_signal_words[s]);
        add_percent(out, day->mean[s]);
    }
    strbuf_add(out, STR("}, \"checks\": {"));
    for (int s = 0; s < VIEW_SIGNALS; s++)
        strbuf_addf(out, "%s\"%s\": \"%s\"", s ? ", " : "", view_signal_words[s],
                    idle_check_words[day->check[s]]);
    strbuf_addf(out,
                "}, \"sufficient\": %s, \"failed\": %s, \"observed_ms\": %lld, \"up_ms\": %lld, "
                "\"held_ms\": %lld}",
                day->sufficient ? "true" : "false", day->failed ? "true" : "false",
                (long long)day->observed_ms, (long long)day->up_ms, (long long)day->held_ms);
}

static void add_device(struct strbuf *out, const struct idle_report *report,
                       const struct idle_device *device)
{
    const struct view *view = report->scan->view;
    strbuf_add(out, STR("    {\"cluster\": "));
    idle_json_name(out, view, device->device->cluster);
    strbuf_add(out, STR(", \"node\": "));
    idle_json_name(out, view, device->device->node);
    strbuf_add(out, STR(", \"gpu\": "));
    idle_json_name(out, view, device->device->device);
    strbuf_add(out, STR(", \"model\": "));
    idle_json_name(out, view, device->device->model);
    strbuf_addf(out, ", \"verdict\": \"%s\", ", idle_verdict_words[device->verdict]);
    idle_json_unchecked(out, device);
    strbuf_add(out, STR(", \"power_below_percent\": "));
    add_percent(out, device->power_below);
    strbuf_add(out, STR(", "));
    add_since(out, &device->since);
    strbuf_add(out, STR(", "));
    add_streaks(out, &device->longest, &device->recent);
    strbuf_add(out, STR(", \"days\": ["));
    for (size_t d = 0; d < view->days_n; d++) {
        strbuf_add(out, str_of(d ? ", " : ""));
        add_day(out, report, &device->days[d], d);
    }
    strbuf_add(out, STR("]}"));
}

static void add_host_day(struct strbuf *out, const struct idle_report *report,
                         const struct idle_host_day *day, size_t d)
{
    char name[16];
    strbuf_addf(out, "{\"day\": \"%s\", \"cpu_peak_percent\": ",
                day_name(report->scan->view->days[d].from, report->tz, name));
    add_percent(out, day->host.cpu_max);
    strbuf_add(out, STR(", \"network_bytes\": "));
    if (day->host.net_bytes < 0)
        strbuf_add(out, STR("null"));
    else
        strbuf_addf(out, "%lld", (long long)day->host.net_bytes);
    strbuf_add(out, STR(", \"checks\": {"));
    for (int s = 0; s < HOST_SIGNALS; s++)
        strbuf_addf(out, "%s\"%s\": \"%s\"", s ? ", " : "", idle_host_words[s],
                    idle_check_words[day->check[s]]);
    strbuf_addf(out, "}, \"sufficient\": %s, \"failed\": %s}", day->sufficient ? "true" : "false",
                day->failed ? "true" : "false");
}

static void add_offer(struct strbuf *out, const struct instead *instead)
{
    const struct price_offer *offer = &instead->offer;
    char money[MONEY_TEXT_MAX];
    strbuf_add(out, STR("{\"instance_type\": \""));
    text_json(out, offer->instance_type);
    strbuf_add(out, STR("\", \"vcpus\": "));
    text_nano_plain(out, (wide_t)offer->vcpus_milli * (NANO / 1000));
    strbuf_add(out, STR(", \"memory_gib\": "));
    text_nano_plain(out, (wide_t)offer->memory_milli_gib * (NANO / 1000));
    strbuf_addf(out,
                ", \"price\": \"%s\", \"saving_per_hour\": ", money_format(offer->price, money));
    strbuf_addf(out, "\"%s%s\", \"source\": \"", instead->saving < 0 ? "-" : "",
                money_format(instead->saving < 0 ? -instead->saving : instead->saving, money));
    text_json(out, str_of(offer->source ? offer->source : "catalogue "));
    if (!offer->source)
        text_json(out, offer->date);
    strbuf_addf(out, "%s\"}", offer->derived ? " (derived)" : "");
}

static void add_cpu_bound(struct strbuf *out, const struct idle_cpu_bound *bound)
{
    strbuf_addf(out, "\"cpu_bound\": %s, \"gpu_util_percent\": ", bound->is ? "true" : "false");
    add_percent(out, bound->util);
    strbuf_add(out, STR(", \"cpu_peak_percent\": "));
    add_percent(out, bound->cpu_max);
    strbuf_add(out, STR(", \"instead\": "));
    if (bound->is && bound->instead.found)
        add_offer(out, &bound->instead);
    else
        strbuf_add(out, STR("null"));
    strbuf_add(out, STR(", \"instead_reason\": "));
    if (bound->is && bound->instead.why) {
        strbuf_addc(out, '"');
        text_json(out, str_of(bound->instead.why));
        strbuf_addc(out, '"');
    } else {
        strbuf_add(out, STR("null"));
    }
}

void idle_json_node_head(struct strbuf *out, const struct idle_report *report,
                         const struct idle_node *node)
{
    const struct view *view = report->scan->view;
    const char *comma = "";
    strbuf_add(out, STR("\"cluster\": "));
    idle_json_name(out, view, node->node->cluster);
    strbuf_add(out, STR(", \"node\": "));
    idle_json_name(out, view, node->node->node);
    strbuf_add(out, STR(", \"instance_type\": "));
    idle_json_name(out, view, node->node->instance_type);
    strbuf_addf(out,
                ", \"capacity_type\": \"%s\", \"gpus\": %zu, \"verdict\": \"%s\", \"unchecked\": [",
                capacity_type_words[node->node->capacity], node->devices_n,
                idle_verdict_words[node->verdict]);
    for (int s = 0; s < HOST_SIGNALS; s++)
        if (node->unchecked[s]) {
            strbuf_addf(out, "%s\"%s\"", comma, idle_host_words[s]);
            comma = ", ";
        }
    strbuf_add(out, STR("], "));
}

static void add_node(struct strbuf *out, const struct idle_report *report,
                     const struct idle_node *node)
{
    strbuf_add(out, STR("    {"));
    idle_json_node_head(out, report, node);
    add_since(out, &node->since);
    strbuf_add(out, STR(", "));
    add_streaks(out, &node->longest, &node->recent);
    strbuf_add(out, STR(", "));
    add_cpu_bound(out, &node->cpu_bound);
    strbuf_add(out, STR(", \"days\": ["));
    for (size_t d = 0; d < report->scan->view->days_n; d++) {
        strbuf_add(out, str_of(d ? ", " : ""));
        add_host_day(out, report, &node->days[d], d);
    }
    strbuf_add(out, STR("]}"));
}

static void add_floors(struct strbuf *out, const struct idle_scan *scan)
{
    strbuf_add(out, STR("  \"idle_floor\": ["));
    for (size_t i = 0; i < scan->floors_n; i++) {
        strbuf_add(out, str_of(i ? ", {\"model\": " : "{\"model\": "));
        idle_json_name(out, scan->view, scan->floors[i].model);
        strbuf_add(out, STR(", \"percent\": "));
        add_percent(out, scan->floors[i].ratio);
        strbuf_addf(out, ", \"samples\": %lld}", (long long)scan->floors[i].samples);
    }
    strbuf_add(out, STR("],\n"));
}

void idle_json_head(struct strbuf *out, const struct idle_report *report)
{
    const struct view *view = report->scan->view;
    strbuf_add(out, STR("\"from\": "));
    add_time(out, view->days_n ? view->days[0].from : view->window.from);
    strbuf_add(out, STR(", \"to\": "));
    add_time(out, view->days_n ? view->days[view->days_n - 1].to : view->window.to);
    strbuf_add(out, STR(", \"tz\": \""));
    text_json(out, str_of(report->tz ? report->tz : "UTC"));
    strbuf_add(out, STR("\", \"currency\": \""));
    text_json(out, str_of(report->currency));
    strbuf_addf(out,
                "\",\n  \"thresholds\": {\"util_below_percent\": 10, \"memory_below_percent\": 20, "
                "\"power\": \"%s\", \"cpu_peak_below_percent\": 5, "
                "\"network_below_bytes\": 30000000, \"finding_hours\": 72, "
                "\"finding_observed_percent\": 90},\n",
                report->power_auto ? "auto" : "fixed");
    add_floors(out, report->scan);
}

void idle_report_json(const struct idle_report *report, struct strbuf *out)
{
    const struct idle_scan *scan = report->scan;
    strbuf_addf(out, "{\n  \"schema\": \"" IDLE_SCHEMA "\",\n  \"days\": %zu, ",
                scan->view->days_n);
    idle_json_head(out, report);
    strbuf_add(out, STR("  \"nodes\": [\n"));
    for (size_t i = 0; i < scan->nodes_n; i++) {
        add_node(out, report, &scan->nodes[i]);
        strbuf_add(out, str_of(i + 1 < scan->nodes_n ? ",\n" : "\n"));
    }
    strbuf_add(out, STR("  ],\n  \"devices\": [\n"));
    for (size_t i = 0; i < scan->devices_n; i++) {
        add_device(out, report, &scan->devices[i]);
        strbuf_add(out, str_of(i + 1 < scan->devices_n ? ",\n" : "\n"));
    }
    strbuf_add(out, STR("  ]\n}\n"));
}

static void csv_percent(struct strbuf *out, int64_t ratio)
{
    strbuf_addc(out, ',');
    if (ratio >= 0)
        text_nano_plain(out, (wide_t)ratio * 100);
}

static void csv_streaks(struct strbuf *out, const struct idle_device *device)
{
    const struct idle_run *longest = &device->longest;
    strbuf_addc(out, ',');
    if (longest->any)
        text_nano_plain(out, (wide_t)(longest->span.to - longest->span.from) * NANO / HOUR_MS);
    strbuf_addf(out, ",%s", idle_badge_words[device->recent.badge]);
    csv_percent(out, device->recent.observed);
}

static void csv_host(struct strbuf *out, const struct idle_node *node,
                     const struct idle_host_day *day)
{
    csv_percent(out, day->host.cpu_max);
    strbuf_addf(out, ",%s,", idle_check_words[day->check[HOST_CPU]]);
    if (day->host.net_bytes >= 0)
        strbuf_addf(out, "%lld", (long long)day->host.net_bytes);
    strbuf_addf(out, ",%s,%s", idle_check_words[day->check[HOST_NETWORK]],
                node->cpu_bound.is ? "true" : "false");
}

static void csv_device(struct strbuf *out, const struct idle_report *report,
                       const struct idle_node *node, const struct idle_device *device)
{
    const struct view *view = report->scan->view;
    char text[TIME_TEXT_MAX], name[16], money[MONEY_TEXT_MAX];
    for (size_t d = 0; d < view->days_n; d++) {
        const struct idle_day *day = &device->days[d];
        const name_t names[] = {device->device->cluster, device->device->node,
                                device->device->device, device->device->model};
        for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
            struct str each = names_text(view->names, names[i]);
            csv_text(out, each.n ? each : STR("-"));
            strbuf_addc(out, ',');
        }
        strbuf_addf(out, "%s,%s,%s", idle_verdict_words[node->verdict],
                    idle_verdict_words[device->verdict],
                    day_name(view->days[d].from, report->tz, name));
        for (int s = 0; s < VIEW_SIGNALS; s++) {
            csv_percent(out, day->mean[s]);
            strbuf_addf(out, ",%s", idle_check_words[day->check[s]]);
        }
        csv_percent(out, device->power_below);
        strbuf_addf(out, ",%s,%lld,%lld,%lld,", day->sufficient ? "true" : "false",
                    (long long)day->up_ms, (long long)day->observed_ms, (long long)day->held_ms);
        if (device->since.any)
            strbuf_add(out, str_of(time_format(device->since.span.from, text)));
        strbuf_addc(out, ',');
        if (device->since.any && device->since.priced)
            strbuf_add(out, str_of(money_format(device->since.cost, money)));
        csv_streaks(out, device);
        csv_host(out, node, &node->days[d]);
        strbuf_addc(out, '\n');
    }
}

void idle_report_csv(const struct idle_report *report, struct strbuf *out)
{
    strbuf_add(out, STR("cluster,node,gpu,model,node_verdict,verdict,day"));
    for (int s = 0; s < VIEW_SIGNALS; s++)
        strbuf_addf(out, ",%s_percent,%s_check", view_signal_words[s], view_signal_words[s]);
    strbuf_add(out, STR(",power_below_percent,sufficient,up_ms,observed_ms,held_ms,idle_since,"
                        "idle_since_cost,longest_idle_hours,last_3h,last_3h_observed_percent,"
                        "node_cpu_peak_percent,node_cpu_check,node_network_bytes,"
                        "node_network_check,cpu_bound\n"));
    for (size_t i = 0; i < report->scan->nodes_n; i++) {
        const struct idle_node *node = &report->scan->nodes[i];
        for (size_t d = 0; d < node->devices_n; d++)
            csv_device(out, report, node, &node->devices[d]);
    }
}
