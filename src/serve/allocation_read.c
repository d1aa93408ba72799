/* Parameters of OpenCost's and Kubecost's Allocation API. Both spellings of what differs are taken:
 * idle and includeIdle, the filter language (namespace:"a","b"+node!:"x") and the older
 * filterNamespaces=a,b. */
#include <stdlib.h>

#include "serve/allocation_impl.h"
#include "util/config_file.h"

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

static bool word_step(struct str word, time_ms *ret)
{
    static const struct {
        const char *word;
        time_ms step;
    } steps[] = {{"hour", HOUR_MS}, {"day", DAY_MS}, {"week", 7 * DAY_MS}};
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
        if (str_eq_nocase(word, str_of(steps[i].word))) {
            *ret = steps[i].step;
            return true;
        }
    return false;
}

/* accumulate=true makes one set of the window; accumulate=day and step=1d sets of a day. */
static enum err read_step(struct api_call *call, struct allocation_request *ret, struct error *err)
{
    struct str accumulate = api_text(call, "accumulateBy"), step = api_text(call, "step");
    time_ms whole = ret->window.to - ret->window.from;
    if (!accumulate.n)
        accumulate = api_text(call, "accumulate");
    ret->step = whole;
    if (is_true(accumulate) || str_eq_nocase(accumulate, STR("all")))
        return ERR_OK;
    if (word_step(accumulate, &ret->step))
        return ERR_OK;
    if (accumulate.n && !str_eq_nocase(accumulate, STR("false")) &&
        !str_eq_nocase(accumulate, STR("none")) && !str_eq(accumulate, STR("0")))
        return error_set(err, ERR_USAGE,
                         "accumulate: \"%.*s\" is none of true, false, all, none, hour, day, week",
                         STR_ARG(accumulate));
    if (!step.n || word_step(step, &ret->step))
        return ERR_OK;
    if (!duration_parse(step, 0, &ret->step) || ret->step <= 0)
        return error_set(err, ERR_USAGE, "step: \"%.*s\" is no duration such as 1d", STR_ARG(step));
    ret->step = hour_ceil(ret->step);
    return ERR_OK;
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

static const struct {
    const char *field, *list; /* of the filter language; the older parameter */
    enum key key;
} filter_fields[] = {
    {"cluster", "filterClusters", KEY_CLUSTER},
    {"node", "filterNodes", KEY_NODE},
    {"namespace", "filterNamespaces", KEY_NAMESPACE},
    {"pod", "filterPods", KEY_POD},
    {"container", "filterContainers", KEY_CONTAINER},
    {"controllerKind", "filterControllerKinds", KEY_KIND},
    {"controllerName", "filterControllers", KEY_WORKLOAD},
    {"controller", NULL, KEY_WORKLOAD},
    {"label[team]", NULL, KEY_TEAM},
    {"team", NULL, KEY_TEAM},
};

/* Adds key = before VALUE after, as a glob. */
static enum err add_filter(struct api_call *call, struct allocation_request *ret, enum key key,
                           bool negate, const char *before, struct str value, const char *after,
                           struct error *err)
{
    struct query *query = &ret->query;
    struct strbuf text = {0};
    if (query->filters_n == QUERY_FILTERS_MAX)
        return error_set(err, ERR_USAGE, "filter: at most %d values", QUERY_FILTERS_MAX);
    if (key == KEY_WORKLOAD) { /* ours is Kind/name, theirs name or kind:name */
        const char *colon = memchr(value.p, ':', value.n);
        if (colon) {
            size_t kind_n = (size_t)(colon - value.p);
            value = (struct str){colon + 1, value.n - kind_n - 1};
        }
        strbuf_add(&text, STR("*/"));
    }
    strbuf_addf(&text, "%s%.*s%s", before, STR_ARG(value), after);
    query->filters[query->filters_n++] = (struct query_filter){
        .key = key, .negate = negate, .value = str_keep(call->request->arena, strbuf_str(&text))};
    strbuf_release(&text);
    return ERR_OK;
}

static bool find_field(struct str field, enum key *ret)
{
    for (size_t i = 0; i < sizeof filter_fields / sizeof *filter_fields; i++)
        if (str_eq_nocase(field, str_of(filter_fields[i].field))) {
            *ret = filter_fields[i].key;
            return true;
        }
    return false;
}

/* Kinds are lower-case in OpenCost: "deployment" is our Deployment. Globs know no case: [Dd]. */
static struct str kind_pattern(struct api_call *call, struct str value)
{
    struct strbuf text = {0};
    for (size_t i = 0; i < value.n; i++) {
        char c = value.p[i], up = c >= 'a' && c <= 'z' ? (char)(c - 32) : c;
        if (up != c)
            strbuf_addf(&text, "[%c%c]", up, c);
        else
            strbuf_addc(&text, c);
    }
    struct str kept = str_keep(call->request->arena, strbuf_str(&text));
    strbuf_release(&text);
    return kept;
}

struct operation {
    const char *sign, *before, *after;
    bool negate;
};
static const struct operation operations[] = {
    /* longer signs first */
    {"!<~:", "", "*", true}, {"!~>:", "*", "", true}, {"<~:", "", "*", false},
    {"~>:", "*", "", false}, {"!~:", "*", "*", true}, {"~:", "*", "*", false},
    {"!:", "", "", true},    {":", "", "", false},
};

static const struct operation *find_operation(struct str clause, size_t *ret_at)
{
    for (size_t at = 0; at < clause.n; at++)
        for (size_t i = 0; i < sizeof operations / sizeof *operations; i++) {
            struct str rest = {clause.p + at, clause.n - at};
            if (str_starts(rest, str_of(operations[i].sign))) {
                *ret_at = at;
                return &operations[i];
            }
        }
    return NULL;
}

/* namespace:"a","b" */
static enum err read_clause(struct api_call *call, struct str clause,
                            struct allocation_request *ret, struct error *err)
{
    size_t at = 0;
    const struct operation *operation = find_operation(clause, &at);
    enum key key;
    if (!operation)
        return error_set(err, ERR_USAGE, "filter: \"%.*s\" is no clause such as namespace:\"a\"",
                         STR_ARG(clause));
    struct str field = trimmed((struct str){clause.p, at});
    size_t sign_n = strlen(operation->sign);
    struct str values = {clause.p + at + sign_n, clause.n - at - sign_n};
    if (!find_field(field, &key))
        return error_set(err, ERR_USAGE,
                         "filter: the ledger has no \"%.*s\": there are cluster, node, namespace, "
                         "controllerKind, controllerName, pod, container, label[team]",
                         STR_ARG(field));
    enum err code = ERR_OK;
    while (values.n && code == ERR_OK) {
        struct str value = next_item(&values, ',');
        if (value.n >= 2 && value.p[0] == '"' && value.p[value.n - 1] == '"')
            value = (struct str){value.p + 1, value.n - 2};
        if (key == KEY_KIND)
            value = kind_pattern(call, value);
        code = add_filter(call, ret, key, operation->negate, operation->before, value,
                          operation->after, err);
    }
    return code;
}

static enum err read_filters(struct api_call *call, struct allocation_request *ret,
                             struct error *err)
{
    struct str text = api_text(call, "filter");
    enum err code = ERR_OK;
    if (memchr(text.p, '|', text.n) || memchr(text.p, '(', text.n))
        return error_set(err, ERR_USAGE, "filter: clauses are joined with + only");
    while (text.n && code == ERR_OK) {
        struct str clause = next_item(&text, '+');
        if (clause.n)
            code = read_clause(call, clause, ret, err);
    }
    for (size_t i = 0; i < sizeof filter_fields / sizeof *filter_fields && code == ERR_OK; i++) {
        struct str list = filter_fields[i].list ? api_text(call, filter_fields[i].list) : STR_NONE;
        while (list.n && code == ERR_OK) {
            struct str value = next_item(&list, ',');
            if (filter_fields[i].key == KEY_KIND)
                value = kind_pattern(call, value);
            code = add_filter(call, ret, filter_fields[i].key, false, "", value, "", err);
        }
    }
    return code;
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
    enum err code = read_window(call, &ret->window, err);
    if (code == ERR_OK)
        code = read_step(call, ret, err);
    if (code == ERR_OK && (ret->window.to - ret->window.from) / ret->step > SETS_MAX)
        code = error_set(err, ERR_USAGE, "step: the window would be cut into more than %d sets",
                         SETS_MAX);
    if (code == ERR_OK)
        code = read_aggregate(call, ret, err);
    return code == ERR_OK ? read_filters(call, ret, err) : code;
}
