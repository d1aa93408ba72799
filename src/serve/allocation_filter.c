#include "serve/allocation_filter.h"

#include <stdlib.h>

struct reading {
    struct str text;
    size_t at;
    struct arena *arena;
    struct conditions *to;
    int depth;
    struct error *err;
};

/* ---- fields ---- */

static const struct {
    const char *field, *list; /* of the language; the parameter of before, NULL none */
    enum key key;
} fields[] = {
    {"cluster", "filterClusters", KEY_CLUSTER},
    {"node", "filterNodes", KEY_NODE},
    {"namespace", "filterNamespaces", KEY_NAMESPACE},
    {"controllerKind", "filterControllerKinds", KEY_KIND},
    {"controllerName", "filterControllers", KEY_WORKLOAD},
    {"controller", NULL, KEY_WORKLOAD},
    {"pod", "filterPods", KEY_POD},
    {"container", "filterContainers", KEY_CONTAINER},
    {"provider", NULL, KEY_CLOUD},
    {"team", "filterTeams", KEY_TEAM},
    {"owner", "filterOwners", KEY_TEAM},
    {"label[team]", NULL, KEY_TEAM},
    {"label[owner]", NULL, KEY_TEAM},
};
#define FIELDS_N (sizeof fields / sizeof *fields)

#define KNOWN_FIELDS                                                                               \
    "cluster, node, namespace, controllerKind, controllerName, pod, container, provider, team, "   \
    "label[team]"

const char *const allocation_filter_lists[] = {
    "filterClusters",    "filterNodes",        "filterNamespaces",  "filterControllerKinds",
    "filterControllers", "filterPods",         "filterContainers",  "filterTeams",
    "filterOwners",      "filterLabels",       "filterAnnotations", "filterServices",
    "filterDepartments", "filterEnvironments", "filterProducts",    NULL};

static bool find_field(struct str word, enum key *ret)
{
    for (size_t i = 0; i < FIELDS_N; i++)
        if (str_eq_nocase(word, str_of(fields[i].field))) {
            *ret = fields[i].key;
            return true;
        }
    return false;
}

/* ---- globs ---- */

/* Kinds and clouds are of lower case here and there, or not: [Dd]eployment. */
static void add_literal(struct strbuf *out, struct str value, bool any_case)
{
    for (size_t i = 0; i < value.n; i++) {
        char c = value.p[i];
        bool lower = c >= 'a' && c <= 'z', upper = c >= 'A' && c <= 'Z';
        if (any_case && (lower || upper))
            strbuf_addf(out, "[%c%c]", upper ? c : c - 32, upper ? c + 32 : c);
        else if (c == '*' || c == '?' || c == '[')
            strbuf_addf(out, "[%c]", c);
        else
            strbuf_addc(out, c);
    }
}

/* Ours is Kind/name, theirs is the name, or kind:name. */
static struct str glob_of(struct arena *arena, enum key key, const char *before, struct str value,
                          const char *after)
{
    struct strbuf glob = {0};
    if (str_eq(value, STR("__unallocated__")))
        return STR("-");
    if (key == KEY_WORKLOAD) {
        const char *colon = memchr(value.p, ':', value.n);
        struct str kind = {value.p, colon ? (size_t)(colon - value.p) : 0};
        if (colon)
            value = (struct str){colon + 1, value.n - kind.n - 1};
        add_literal(&glob, kind, true);
        strbuf_add(&glob, colon ? STR("/") : STR("*/"));
    }
    strbuf_add(&glob, str_of(before));
    add_literal(&glob, value, key == KEY_KIND || key == KEY_CLOUD);
    strbuf_add(&glob, str_of(after));
    struct str kept = str_keep(arena, strbuf_str(&glob));
    strbuf_release(&glob);
    return kept;
}

/* ---- the tree ---- */

/* Room for a group in front of what comes: its place. */
static size_t open_group(struct conditions *to, enum query_test test)
{
    mem_push(to->items, to->n, to->room, ((struct query_condition){.test = test}));
    return to->n - 1;
}

static void close_group(struct conditions *to, size_t group)
{
    to->items[group].inside = to->n - group - 1;
}

static void add_fit(struct conditions *to, enum key key, bool negate, struct str glob)
{
    struct query_filter filter = {.key = key, .negate = negate, .value = glob};
    mem_push(to->items, to->n, to->room, ((struct query_condition){.filter = filter}));
}

/* ---- tokens ---- */

static void skip_blanks(struct reading *reading)
{
    while (reading->at < reading->text.n && strchr(" \t\r\n", reading->text.p[reading->at]))
        reading->at++;
}

/* The next byte that is no blank; 0 at the end. */
static char peek(struct reading *reading)
{
    skip_blanks(reading);
    return reading->at < reading->text.n ? reading->text.p[reading->at] : 0;
}

static bool take(struct reading *reading, char c)
{
    if (peek(reading) != c || !c)
        return false;
    reading->at++;
    return true;
}

static enum err refuse(struct reading *reading, const char *what)
{
    size_t left = reading->text.n - reading->at;
    struct str rest = {reading->text.p + reading->at, left < 40 ? left : 40};
    if (!rest.n)
        return error_set(reading->err, ERR_USAGE, "filter: at its end: %s", what);
    return error_set(reading->err, ERR_USAGE, "filter: at byte %zu, \"%.*s\": %s", reading->at + 1,
                     STR_ARG(rest), what);
}

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || (unsigned char)c >= 128;
}

static enum err read_field(struct reading *reading, enum key *ret)
{
    skip_blanks(reading);
    size_t begin = reading->at;
    while (reading->at < reading->text.n && is_word(reading->text.p[reading->at]))
        reading->at++;
    if (reading->at == begin)
        return refuse(reading, "a field such as namespace is missing");
    if (reading->at < reading->text.n && reading->text.p[reading->at] == '[') {
        while (reading->at < reading->text.n && reading->text.p[reading->at] != ']')
            reading->at++;
        if (reading->at == reading->text.n)
            return refuse(reading, "a ] is missing");
        reading->at++;
    }
    struct str word = {reading->text.p + begin, reading->at - begin};
    if (find_field(word, ret))
        return ERR_OK;
    return error_set(reading->err, ERR_USAGE,
                     "filter: the ledger has no \"%.*s\": there are " KNOWN_FIELDS, STR_ARG(word));
}

struct operation {
    const char *sign, *before, *after;
};
static const struct operation operations[] = {
    {":", "", ""}, {"~:", "*", "*"}, {"<~:", "", "*"}, {"~>:", "*", ""}};

static const struct operation *read_operation(struct reading *reading, bool *ret_negate)
{
    *ret_negate = take(reading, '!');
    skip_blanks(reading);
    struct str rest = {reading->text.p + reading->at, reading->text.n - reading->at};
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++)
        if (str_starts(rest, str_of(operations[i].sign))) {
            reading->at += strlen(operations[i].sign);
            return &operations[i];
        }
    return NULL;
}

static enum err read_value(struct reading *reading, struct str *ret)
{
    bool quoted = take(reading, '"');
    size_t begin = reading->at;
    while (reading->at < reading->text.n &&
           (quoted ? reading->text.p[reading->at] != '"'
                   : !strchr(",+|() \t\r\n\"", reading->text.p[reading->at])))
        reading->at++;
    *ret = (struct str){reading->text.p + begin, reading->at - begin};
    if (quoted && !take(reading, '"'))
        return refuse(reading, "a value's closing quote is missing");
    if (!quoted && !ret->n)
        return refuse(reading, "a value such as \"a\" is missing");
    return ERR_OK;
}

/* ---- the grammar ---- */

static enum err read_comparison(struct reading *reading)
{
    struct conditions *to = reading->to;
    enum key key = KEY_COUNT;
    bool negate;
    struct str value;
    enum err code = read_field(reading, &key);
    if (code)
        return code;
    const struct operation *operation = read_operation(reading, &negate);
    if (!operation)
        return refuse(reading, "there is none of : !: ~: !~: <~: !<~: ~>: !~>:");
    size_t group = open_group(to, negate ? QUERY_ALL : QUERY_ANY);
    do {
        code = read_value(reading, &value);
        if (!code && to->n > ALLOCATION_FILTER_CONDITIONS_MAX)
            code = refuse(reading, "too many values");
        if (!code)
            add_fit(to, key, negate,
                    glob_of(reading->arena, key, operation->before, value, operation->after));
    } while (!code && take(reading, ','));
    close_group(to, group);
    return code;
}

static enum err read_filter(struct reading *reading);

static enum err read_element(struct reading *reading)
{
    if (!take(reading, '('))
        return read_comparison(reading);
    if (reading->depth == ALLOCATION_FILTER_DEPTH_MAX)
        return refuse(reading, "parentheses are too deep");
    reading->depth++;
    enum err code = read_filter(reading);
    reading->depth--;
    if (!code && !take(reading, ')'))
        code = refuse(reading, "a ) is missing");
    return code;
}

static enum err read_filter(struct reading *reading)
{
    size_t group = open_group(reading->to, QUERY_ALL);
    enum err code = read_element(reading);
    char sign = code ? 0 : peek(reading);
    if (sign != '+' && sign != '|')
        sign = 0;
    while (!code && sign && take(reading, sign))
        code = read_element(reading);
    if (!code && sign && (peek(reading) == '+' || peek(reading) == '|'))
        code = refuse(reading, "+ and | do not mix: put parentheses around one of them");
    reading->to->items[group].test = sign == '|' ? QUERY_ANY : QUERY_ALL;
    close_group(reading->to, group);
    return code;
}

enum err allocation_filter(struct str text, struct arena *arena, struct conditions *ret,
                           struct error *err)
{
    struct reading reading = {.text = text, .arena = arena, .to = ret, .err = err};
    if (text.n > ALLOCATION_FILTER_BYTES_MAX)
        return error_set(err, ERR_USAGE, "filter: longer than %zu bytes",
                         ALLOCATION_FILTER_BYTES_MAX);
    if (!peek(&reading))
        return ERR_OK;
    enum err code = read_filter(&reading);
    if (!code && reading.at < text.n && peek(&reading) == ')')
        code = refuse(&reading, "a ) without its (");
    if (!code && (skip_blanks(&reading), reading.at < text.n))
        code = refuse(&reading, "a + or | is missing (in an address, + is written %2B)");
    return code;
}

/* ---- lists ---- */

bool allocation_filter_list(const char *parameter, struct str values, struct arena *arena,
                            struct conditions *ret)
{
    enum key key = KEY_COUNT;
    for (size_t i = 0; i < FIELDS_N && key == KEY_COUNT; i++)
        if (fields[i].list && strcmp(fields[i].list, parameter) == 0)
            key = fields[i].key;
    if (key == KEY_COUNT)
        return false;
    size_t group = open_group(ret, QUERY_ANY);
    while (values.n) {
        const char *comma = memchr(values.p, ',', values.n);
        struct str value = {values.p, comma ? (size_t)(comma - values.p) : values.n};
        values = comma ? (struct str){comma + 1, values.n - value.n - 1} : STR_NONE;
        bool open = value.n && value.p[value.n - 1] == '*';
        value.n -= open;
        add_fit(ret, key, false, glob_of(arena, key, "", value, open ? "*" : ""));
    }
    close_group(ret, group);
    return true;
}
