/* Parameters of OpenCost's and Kubecost's Allocation API. Both spellings of what differs are taken:
 * idle and includeIdle, the filter language (allocation_filter.h) and the lists of before. */
#include <stdlib.h>

#include "serve/allocation_filter.h"
#include "serve/allocation_impl.h"

#define SETS_MAX 2000

/* ---- windows ---- */

static bool read_stamp(struct str text, time_ms *ret)
{
    long long seconds;
    if (!str_to_i64(text, &seconds) || seconds < 0 || seconds > TIME_LAST / 1000)
        return false;
    *ret = seconds * 1000;
    return true;
}

/* "60m", "1.5h": whole hours up to the last one. Unix stamps: FROM,TO. The rest as everywhere. */
static enum err read_window(struct api_call *call, struct span *ret, struct error *err)
{
    struct str text = api_text(call, "window");
    time_ms duration;
    bool widened = false;
    if (!text.n)
        return error_set(err, ERR_USAGE, "the parameter window is missing: window=7d");
    const char *comma = memchr(text.p, ',', text.n);
    if (comma) {
        struct str from = {text.p, (size_t)(comma - text.p)};
        struct str to = {comma + 1, text.n - from.n - 1};
        struct span stamps;
        if (read_stamp(from, &stamps.from) && read_stamp(to, &stamps.to)) {
            *ret = (struct span){hour_floor(stamps.from), hour_ceil(stamps.to)};
            return stamps.from < stamps.to
                       ? ERR_OK
                       : error_set(err, ERR_USAGE, "window: it ends before it begins");
        }
    } else if (text.p[text.n - 1] == 'm' && duration_parse(text, 0, &duration) && duration > 0) {
        ret->to = hour_floor(call->now);
        ret->from = ret->to - hour_ceil(duration);
        return ERR_OK;
    }
    return api_window(call, text, ret, &widened, err);
}

static bool is_true(struct str text)
{
    return str_eq_nocase(text, STR("true")) || str_eq(text, STR("1")) ||
           str_eq_nocase(text, STR("t"));
}

static const struct {
    const char *word;
    enum allocation_sets sets;
    time_ms step;
} accumulations[] = {
    {"hour", SETS_OF_STEP, HOUR_MS}, {"day", SETS_OF_STEP, DAY_MS},    {"week", SETS_OF_WEEKS, 0},
    {"month", SETS_OF_MONTHS, 0},    {"quarter", SETS_OF_QUARTERS, 0},
};

static bool word_sets(struct str word, struct allocation_request *ret)
{
    for (size_t i = 0; i < sizeof accumulations / sizeof *accumulations; i++)
        if (str_eq_nocase(word, str_of(accumulations[i].word))) {
            ret->sets = accumulations[i].sets;
            ret->step = accumulations[i].step;
            return true;
        }
    return false;
}

/* accumulate=true makes one set of the window; accumulate=month, sets of calendar months; step=1d,
 * sets of a day from the window's begin on. */
static enum err read_step(struct api_call *call, struct allocation_request *ret, struct error *err)
{
    struct str accumulate = api_text(call, "accumulateBy"), step = api_text(call, "step");
    if (!accumulate.n)
        accumulate = api_text(call, "accumulate");
    ret->sets = SETS_OF_STEP;
    ret->step = ret->window.to - ret->window.from;
    if (is_true(accumulate) || str_eq_nocase(accumulate, STR("all")))
        return ERR_OK;
    if (word_sets(accumulate, ret))
        return ERR_OK;
    if (accumulate.n && !str_eq_nocase(accumulate, STR("false")) &&
        !str_eq_nocase(accumulate, STR("none")) && !str_eq(accumulate, STR("0")))
        return error_set(err, ERR_USAGE,
                         "accumulate: \"%.*s\" is none of true, false, all, none, hour, day, week, "
                         "month, quarter",
                         STR_ARG(accumulate));
    if (!step.n || word_sets(step, ret))
        return ERR_OK;
    if (!duration_parse(step, 0, &ret->step) || ret->step <= 0)
        return error_set(err, ERR_USAGE, "step: \"%.*s\" is no duration such as 1d", STR_ARG(step));
    ret->step = hour_ceil(ret->step);
    return ERR_OK;
}

/* The first of the next month or quarter, by a clock on the wall. */
static time_ms next_month(time_ms local, int months)
{
    char text[TIME_TEXT_MAX];
    time_ms next = local;
    time_format(local, text);
    int year = atoi(text), month = atoi(text + 5);
    month += months - (month - 1) % months;
    snprintf(text, sizeof text, "%04d-%02d-01T00:00:00Z", year + (month > 12),
             month > 12 ? month - 12 : month);
    if (!time_parse(str_of(text), &next))
        next = TIME_MAX / 2;
    return next;
}

/* Weeks begin on Sundays, as OpenCost's do. */
static time_ms next_sunday(time_ms local)
{
    int64_t day = local / DAY_MS, since_sunday = (day + 4) % 7; /* 1970 began on a Thursday */
    return (day + 7 - since_sunday) * DAY_MS;
}

time_ms allocation_set_end(const struct allocation_request *request, time_ms from)
{
    const struct zone *zone = request->zone;
    time_ms local = from + zone_offset(zone, from), to = from + request->step;
    if (request->sets == SETS_OF_WEEKS)
        to = hour_ceil(zone_instant(zone, next_sunday(local)));
    else if (request->sets != SETS_OF_STEP)
        to = hour_ceil(
            zone_instant(zone, next_month(local, request->sets == SETS_OF_MONTHS ? 1 : 3)));
    return to > from && to < request->window.to ? to : request->window.to;
}

/* ---- aggregate ---- */

static const struct {
    const char *word;
    struct property property;
} known_properties[] = {
    {"cluster", {PROPERTY_KEY, KEY_CLUSTER, NULL, "cluster"}},
    {"node", {PROPERTY_KEY, KEY_NODE, NULL, "node"}},
    {"namespace", {PROPERTY_KEY, KEY_NAMESPACE, NULL, "namespace"}},
    {"pod", {PROPERTY_KEY, KEY_POD, NULL, "pod"}},
    {"container", {PROPERTY_KEY, KEY_CONTAINER, NULL, "container"}},
    {"controllerkind", {PROPERTY_KEY, KEY_KIND, NULL, "controllerKind"}},
    {"controller", {PROPERTY_CONTROLLER, KEY_WORKLOAD, NULL, "controller"}},
    {"controllernamespace", {PROPERTY_CONTROLLER, KEY_WORKLOAD, NULL, "controller"}},
    {"deployment", {PROPERTY_OF_KIND, KEY_WORKLOAD, "Deployment", "controller"}},
    {"statefulset", {PROPERTY_OF_KIND, KEY_WORKLOAD, "StatefulSet", "controller"}},
    {"daemonset", {PROPERTY_OF_KIND, KEY_WORKLOAD, "DaemonSet", "controller"}},
    {"job", {PROPERTY_OF_KIND, KEY_WORKLOAD, "Job", "controller"}},
    {"team", {PROPERTY_KEY, KEY_TEAM, NULL, NULL}},
    {"owner", {PROPERTY_KEY, KEY_TEAM, NULL, NULL}},
    {"label:team", {PROPERTY_KEY, KEY_TEAM, NULL, NULL}},
    {"label:owner", {PROPERTY_KEY, KEY_TEAM, NULL, NULL}},
    {"service", {PROPERTY_UNKNOWN, KEY_COUNT, NULL, NULL}},
    {"department", {PROPERTY_UNKNOWN, KEY_COUNT, NULL, NULL}},
    {"environment", {PROPERTY_UNKNOWN, KEY_COUNT, NULL, NULL}},
    {"product", {PROPERTY_UNKNOWN, KEY_COUNT, NULL, NULL}},
    {"providerid", {PROPERTY_UNKNOWN, KEY_COUNT, NULL, NULL}},
};

static struct str trimmed(struct str s)
{
    while (s.n && s.p[0] == ' ')
        s.p++, s.n--;
    while (s.n && s.p[s.n - 1] == ' ')
        s.n--;
    return s;
}

static bool find_property(struct str word, struct property *ret)
{
    for (size_t i = 0; i < sizeof known_properties / sizeof *known_properties; i++)
        if (str_eq_nocase(word, str_of(known_properties[i].word))) {
            *ret = known_properties[i].property;
            return true;
        }
    if (!str_starts(word, STR("label:")) && !str_starts(word, STR("annotation:")))
        return false;
    *ret = (struct property){PROPERTY_UNKNOWN, KEY_COUNT, NULL, NULL};
    return true;
}

static struct str next_item(struct str *rest, char separator)
{
    const char *end = rest->n ? memchr(rest->p, separator, rest->n) : NULL;
    struct str item = {rest->p, end ? (size_t)(end - rest->p) : rest->n};
    *rest = end ? (struct str){end + 1, rest->n - item.n - 1} : STR_NONE;
    return trimmed(item);
}

static enum err read_aggregate(struct api_call *call, struct allocation_request *ret,
                               struct error *err)
{
    struct str text = api_text(call, "aggregate");
    if (str_eq(text, STR("all")))
        return ERR_OK;
    if (!text.n)
        text = STR("cluster,node,namespace,pod,container");
    while (text.n) {
        struct str word = next_item(&text, ',');
        if (!word.n)
            continue;
        if (ret->properties_n == PROPERTIES_MAX)
            return error_set(err, ERR_USAGE, "aggregate: at most %d properties", PROPERTIES_MAX);
        if (!find_property(word, &ret->properties[ret->properties_n]))
            return error_set(err, ERR_USAGE, "aggregate: \"%.*s\" is no property", STR_ARG(word));
        ret->properties_n++;
    }
    return ERR_OK;
}

/* ---- filters ---- */

/* The language, and the lists of before: all of them hold. */
static enum err read_filters(struct api_call *call, struct allocation_request *ret,
                             struct error *err)
{
    struct arena *arena = call->request->arena;
    struct conditions conditions = {0};
    mem_push(conditions.items, conditions.n, conditions.room,
             ((struct query_condition){.test = QUERY_ALL}));
    enum err code = allocation_filter(api_text(call, "filter"), arena, &conditions, err);
    for (const char *const *list = allocation_filter_lists; *list && !code; list++) {
        struct str values = api_text(call, *list);
        if (values.n && !allocation_filter_list(*list, values, arena, &conditions))
            code = error_set(err, ERR_USAGE, "%s: the ledger has no such field", *list);
    }
    conditions.items[0].inside = conditions.n - 1;
    if (!code && conditions.n > 1) {
        ret->query.where = memcpy(arena_alloc(arena, conditions.n * sizeof *conditions.items),
                                  conditions.items, conditions.n * sizeof *conditions.items);
        ret->query.where_n = conditions.n;
    }
    free(conditions.items);
    return code;
}

/* What would move money in a way that is not done here is refused, not left out. */
static enum err refuse_sharing(struct api_call *call, struct error *err)
{
    static const char *const names[] = {"shareNamespaces", "shareLabels", "shareCost"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct str text = api_text(call, names[i]);
        if (text.n && !str_eq(text, STR("0")) && !str_eq(text, STR("0.0")))
            return error_set(err, ERR_USAGE, "%s: only what is idle is shared out (shareIdle)",
                             names[i]);
    }
    return ERR_OK;
}

enum err allocation_read(struct api_call *call, struct allocation_request *ret, struct error *err)
{
    *ret = (struct allocation_request){.query = {.tz = call->tz}};
    struct str idle = api_text(call, "includeIdle"), share = api_text(call, "shareIdle");
    if (!idle.n)
        idle = api_text(call, "idle");
    ret->idle = is_true(idle);
    ret->idle_by_node = is_true(api_text(call, "idleByNode"));
    if (is_true(share) || str_eq_nocase(share, STR("weighted")))
        ret->share = SHARE_IDLE_WEIGHTED;
    if (str_eq_nocase(share, STR("even")) ||
        (ret->share && str_eq_nocase(api_text(call, "shareSplit"), STR("even"))))
        ret->share = SHARE_IDLE_EVEN;
    enum err code = zone_load(call->tz, &ret->zone, err);
    if (code == ERR_OK)
        code = read_window(call, &ret->window, err);
    if (code == ERR_OK)
        code = read_step(call, ret, err);
    if (code == ERR_OK && ret->sets == SETS_OF_STEP &&
        (ret->window.to - ret->window.from) / ret->step > SETS_MAX)
        code = error_set(err, ERR_USAGE, "step: the window would be cut into more than %d sets",
                         SETS_MAX);
    if (code == ERR_OK)
        code = read_aggregate(call, ret, err);
    if (code == ERR_OK)
        code = refuse_sharing(call, err);
    return code == ERR_OK ? read_filters(call, ret, err) : code;
}
