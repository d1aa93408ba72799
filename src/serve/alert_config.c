/* The section `alerts:`. Each key is read by a row of a table; texts live in the result's arena. */
#include "serve/alert.h"

#include <stdlib.h>

#include "query/query.h"
#include "query/zone.h"
#include "source/http_site.h"
#include "util/config_table.h"

#define EVERY_STANDARD_MS ((time_ms)15 * 60 * 1000)
#define EVERY_MIN_MS ((time_ms)1000)
#define DAY_MINUTES (24 * 60)

const char *const alert_kind_words[ALERT_KINDS] = {
#define X(id, word) word,
    ALERT_KIND_TABLE(X)
#undef X
};
const char *const receiver_kind_words[RECEIVER_KINDS] = {
#define X(id, word) word,
    RECEIVER_KIND_TABLE(X)
#undef X
};
static const char *const day_words[] = {"mon", "tue", "wed", "thu", "fri", "sat", "sun"};

static enum err read_every(const struct config_reading *reading, void *into,
                           struct config_node node, struct error *err)
{
    enum err code = config_into_duration(reading, into, node, err);
    if (!code && *(time_ms *)into < EVERY_MIN_MS)
        return config_error(node, err, "every is 1s at the least");
    return code;
}

/* ---- quiet hours ---- */

static enum err read_minute(const struct config_reading *reading, void *into,
                            struct config_node node, struct error *err)
{
    struct str text = config_text(node);
    (void)reading;
    bool fits = text.n == 5 && text.p[2] == ':';
    for (size_t i = 0; fits && i < 5; i++)
        fits = i == 2 || (text.p[i] >= '0' && text.p[i] <= '9');
    int hour = fits ? (text.p[0] - '0') * 10 + text.p[1] - '0' : 99;
    int minute = fits ? (text.p[3] - '0') * 10 + text.p[4] - '0' : 99;
    if (hour > 23 || minute > 59)
        return config_error(node, err, "a time of day is meant here, such as \"22:00\"");
    *(int *)into = hour * 60 + minute;
    return ERR_OK;
}

static enum err read_days(const struct config_reading *reading, void *into, struct config_node node,
                          struct error *err)
{
    (void)reading;
    if (config_kind(node) != CONFIG_LIST)
        return config_error(node, err, "days is a list, such as [sat, sun]");
    for (size_t i = 0; i < config_count(node); i++) {
        struct config_node item = config_item(node, i);
        int day = 0;
        while (day < 7 && !str_eq(config_text(item), str_of(day_words[day])))
            day++;
        if (day == 7)
            return config_error(item, err, "a day is mon, tue, wed, thu, fri, sat or sun");
        *(uint32_t *)into |= 1u << day;
    }
    return ERR_OK;
}

static enum err read_zone(const struct config_reading *reading, void *into, struct config_node node,
                          struct error *err)
{
    const struct zone *zone;
    struct error why = {0};
    enum err code = config_into_text(reading, into, node, err);
    if (!code && zone_load(*(const char **)into, &zone, &why))
        return config_error(node, err, "%s", why.text);
    return code;
}

static enum err read_quiet(const struct config_reading *reading, void *into,
                           struct config_node node, struct error *err)
{
    static const struct config_key keys[] = {
        {"from", read_minute, offsetof(struct alert_quiet, from_min)},
        {"to", read_minute, offsetof(struct alert_quiet, to_min)},
        {"days", read_days, offsetof(struct alert_quiet, days)},
        {"tz", read_zone, offsetof(struct alert_quiet, tz)},
    };
    struct alert_quiet *quiet = into;
    quiet->on = true;
    return CONFIG_READ_TABLE(reading, node, keys, quiet, err);
}

/* ---- receivers, routes, budgets ---- */

static enum err read_receiver_kind(const struct config_reading *reading, void *into,
                                   struct config_node node, struct error *err)
{
    (void)reading;
    for (int kind = 0; kind < RECEIVER_KINDS; kind++)
        if (str_eq(config_text(node), str_of(receiver_kind_words[kind]))) {
            *(enum receiver_kind *)into = (enum receiver_kind)kind;
            return ERR_OK;
        }
    return config_error(node, err, "a receiver's kind is webhook, slack or alertmanager");
}

static enum err read_url(const struct config_reading *reading, void *into, struct config_node node,
                         struct error *err)
{
    enum err code = config_into_text(reading, into, node, err);
    if (!code && !http_url_has_scheme(*(const char **)into))
        return config_error(node, err, HTTP_SCHEME_NEEDED);
    return code;
}

static enum err read_receiver(const struct config_reading *reading, void *into,
                              struct config_node node, struct error *err)
{
    struct alert_config *config = into;
    static const struct config_key keys[] = {
        {"name", config_into_text, offsetof(struct alert_receiver, name)},
        {"kind", read_receiver_kind, offsetof(struct alert_receiver, kind)},
        {"url", read_url, offsetof(struct alert_receiver, url)},
        {"url_file", config_into_path, offsetof(struct alert_receiver, url_file)},
        {"secret_file", config_into_path, offsetof(struct alert_receiver, secret_file)},
        {"ca_file", config_into_path, offsetof(struct alert_receiver, ca_file)},
        {"bearer_token_file", config_into_path, offsetof(struct alert_receiver, bearer_token_file)},
    };
    if (config->receivers_n == ALERT_RECEIVERS_MAX)
        return config_error(node, err, "more than %d receivers", ALERT_RECEIVERS_MAX);
    struct alert_receiver *receiver = &config->receivers[config->receivers_n];
    *receiver = (struct alert_receiver){.kind = RECEIVER_KINDS, .at = node};
    enum err code = CONFIG_READ_TABLE(reading, node, keys, receiver, err);
    if (code)
        return code;
    if (!receiver->name || receiver->kind == RECEIVER_KINDS)
        return config_error(node, err, "a receiver needs a name and a kind");
    if (!receiver->url == !receiver->url_file)
        return config_error(node, err, "a receiver has either url or url_file");
    if (receiver->secret_file && receiver->kind != RECEIVER_WEBHOOK)
        return config_error(node, err, "only webhooks are signed: secret_file is for them");
    for (size_t i = 0; i < config->receivers_n; i++)
        if (strcmp(config->receivers[i].name, receiver->name) == 0)
            return config_error(node, err, "two receivers are called '%s'", receiver->name);
    config->receivers_n++;
    return ERR_OK;
}

static enum err read_alert_kind(const struct config_reading *reading, void *into,
                                struct config_node node, struct error *err)
{
    (void)reading;
    for (int kind = 0; kind < ALERT_TEST; kind++)
        if (str_eq(config_text(node), str_of(alert_kind_words[kind]))) {
            *(enum alert_kind *)into = (enum alert_kind)kind;
            return ERR_OK;
        }
    return config_error(node, err, "an alert's kind is finding, idle, lag or budget");
}

static enum err read_to(const struct config_reading *reading, void *into, struct config_node node,
                        struct error *err)
{
    const struct alert_config *config = reading->context;
    bool list = config_kind(node) == CONFIG_LIST;
    for (size_t i = 0; i < (list ? config_count(node) : 1); i++) {
        struct config_node item = list ? config_item(node, i) : node;
        size_t at = 0;
        while (at < config->receivers_n &&
               !str_eq(config_text(item), str_of(config->receivers[at].name)))
            at++;
        if (at == config->receivers_n)
            return config_error(item, err, "no receiver is called '%.*s'",
                                STR_ARG(config_text(item)));
        *(uint32_t *)into |= 1u << at;
    }
    return ERR_OK;
}

static enum err read_route(const struct config_reading *reading, void *into,
                           struct config_node node, struct error *err)
{
    struct alert_config *config = into;
    static const struct config_key keys[] = {
        {"owner", config_into_str, offsetof(struct alert_route, owner)},
        {"kind", read_alert_kind, offsetof(struct alert_route, kind)},
        {"to", read_to, offsetof(struct alert_route, receivers)},
    };
    if (config->routes_n == ALERT_ROUTES_MAX)
        return config_error(node, err, "more than %d routes", ALERT_ROUTES_MAX);
    struct alert_route *route = &config->routes[config->routes_n++];
    *route = (struct alert_route){.owner = STR("*"), .kind = ALERT_KINDS};
    enum err code = CONFIG_READ_TABLE(reading, node, keys, route, err);
    if (!code && !config_kind(config_get(node, STR("to"))))
        return config_error(node, err,
                            "a route needs to: the receivers that are told ([] is "
                            "nobody)");
    return code;
}

static enum err read_filter(const struct config_reading *reading, void *into,
                            struct config_node node, struct error *err)
{
    struct query query = {0};
    struct error why = {0};
    enum err code = config_into_str(reading, into, node, err);
    if (!code && query_parse_filter(*(struct str *)into, &query, &why))
        return config_error(node, err, "%s", why.text);
    return code;
}

static enum err read_budget(const struct config_reading *reading, void *into,
                            struct config_node node, struct error *err)
{
    struct alert_config *config = into;
    static const struct config_key keys[] = {
        {"name", config_into_str, offsetof(struct alert_budget, name)},
        {"filter", read_filter, offsetof(struct alert_budget, filter)},
        {"month", config_into_money, offsetof(struct alert_budget, month)},
        {"warn", config_into_ratio, offsetof(struct alert_budget, warn)},
    };
    if (config->budgets_n == ALERT_BUDGETS_MAX)
        return config_error(node, err, "more than %d budgets", ALERT_BUDGETS_MAX);
    struct alert_budget *budget = &config->budgets[config->budgets_n++];
    *budget = (struct alert_budget){.warn = NANO / 10 * 8};
    enum err code = CONFIG_READ_TABLE(reading, node, keys, budget, err);
    if (!code && (!budget->name.n || budget->month <= 0))
        return config_error(node, err, "a budget needs a name and money a month");
    return code;
}

static enum err read_routes(const struct config_reading *reading, void *into,
                            struct config_node node, struct error *err)
{
    return config_read_list(reading, node, read_route, into, err);
}

static enum err read_budgets(const struct config_reading *reading, void *into,
                             struct config_node node, struct error *err)
{
    return config_read_list(reading, node, read_budget, into, err);
}

/* ---- the section ---- */

enum err alert_config_read(const struct config *config, struct alert_config *ret, struct error *err)
{
    static const struct config_key keys[] = {
        {"receivers", NULL, 0},
        {"every", read_every, offsetof(struct alert_config, every_ms)},
        {"state", config_into_path, offsetof(struct alert_config, state_path)},
        {"findings", config_into_money, offsetof(struct alert_config, finding_month)},
        {"idle", config_into_duration, offsetof(struct alert_config, idle_ms)},
        {"lag", config_into_duration, offsetof(struct alert_config, lag_ms)},
        {"link", read_url, offsetof(struct alert_config, link)},
        {"quiet", read_quiet, offsetof(struct alert_config, quiet)},
        {"routes", read_routes, 0},
        {"budgets", read_budgets, 0},
    };
    struct config_node section = config->sections[CONFIG_ALERTS_SECTION];
    *ret = (struct alert_config){.every_ms = EVERY_STANDARD_MS, .finding_month = -1};
    if (config_kind(section) == CONFIG_NOTHING)
        return ERR_OK;
    /* Routes name receivers, wherever these stand in the file. */
    struct config_node receivers = config_get(section, STR("receivers"));
    struct config_reading reading = {.arena = &ret->arena, .context = ret};
    enum err code = config_kind(receivers)
                        ? config_read_list(&reading, receivers, read_receiver, ret, err)
                        : ERR_OK;
    if (!code)
        code = CONFIG_READ_TABLE(&reading, section, keys, ret, err);
    if (!code && !ret->receivers_n)
        return config_error(section, err,
                            "alerts need receivers: [{name: …, kind: webhook, url: "
                            "…}]");
    ret->on = !code && ret->receivers_n;
    return code;
}

void alert_config_release(struct alert_config *config)
{
    arena_release(&config->arena);
    *config = (struct alert_config){0};
}

uint32_t alert_config_receivers(const struct alert_config *config, const struct alert *alert)
{
    for (size_t i = 0; i < config->routes_n; i++) {
        const struct alert_route *route = &config->routes[i];
        if ((route->kind == ALERT_KINDS || route->kind == alert->kind) &&
            str_glob(route->owner, alert->owner))
            return route->receivers;
    }
    return config->routes_n ? 0 : (uint32_t)((UINT64_C(1) << config->receivers_n) - 1);
}

bool alert_quiet_at(const struct alert_quiet *quiet, time_ms now)
{
    if (!quiet->on)
        return false;
    const struct zone *zone;
    if (zone_load(quiet->tz, &zone, NULL))
        return false; /* was there when it was configured */
    time_ms local = now + zone_offset(zone, now);
    int weekday = (int)((local / DAY_MS + 3) % 7); /* 1970-01-01 was a Thursday */
    int minute = (int)(local % DAY_MS / 60000);
    if (quiet->days & 1u << weekday)
        return true;
    if (quiet->from_min == quiet->to_min)
        return false;
    return quiet->from_min < quiet->to_min ? minute >= quiet->from_min && minute < quiet->to_min
                                           : minute >= quiet->from_min || minute < quiet->to_min;
}
