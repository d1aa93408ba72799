/* Thresholds from the table, from the configuration's section, and back to text. */
#include "insight/threshold.h"

#include "util/config_table.h"

#define COUNT_MAX 1000000000

const struct threshold_def threshold_defs[THRESHOLD_COUNT_OF] = {
#define X(id, rule, name, unit, standard, meaning) {RULE_##rule, name, unit, standard, meaning},
    THRESHOLD_TABLE(X)
#undef X
};

void thresholds_defaults(struct thresholds *ret)
{
    *ret = (struct thresholds){0};
    for (size_t i = 0; i < THRESHOLD_COUNT_OF; i++)
        ret->values[i] = threshold_defs[i].standard;
}

static bool parse_value(enum threshold_unit unit, struct str text, int64_t *ret)
{
    bool percent = text.n && text.p[text.n - 1] == '%';
    long long count;
    switch (unit) {
    case THRESHOLD_DURATION:
        return duration_parse(text, 0, ret);
    case THRESHOLD_HOURS:
        return duration_parse(text, HOUR_MS, ret);
    case THRESHOLD_RATIO:
        return percent ? percent_parse(text, 7, NANO, ret) : decimal_parse(text, 9, NANO, ret);
    case THRESHOLD_COUNT:
        if (!str_to_i64(text, &count) || count < 0 || count > COUNT_MAX)
            return false;
        *ret = count;
        return true;
    }
    return false;
}

static enum err read_value(enum threshold_id id, struct config_node value, int64_t *ret,
                           struct error *err)
{
    static const char *const wanted[] = {
        [THRESHOLD_DURATION] = "a duration such as 30s, 6h or 3d",
        [THRESHOLD_RATIO] = "a ratio such as 90% or 0.9",
        [THRESHOLD_HOURS] = "GPU-hours such as 24h or 24",
        [THRESHOLD_COUNT] = "a whole number",
    };
    const struct threshold_def *def = &threshold_defs[id];
    if (parse_value(def->unit, config_text(value), ret))
        return ERR_OK;
    return config_error(value, err, "'%.*s' does not fit %s.%s: write %s",
                        STR_ARG(config_text(value)), rules[def->rule].name, def->name,
                        wanted[def->unit]);
}

/* RULE: {NAME: VALUE}, RULE: off */
static enum err read_rule(enum rule_id rule, struct config_node of, struct thresholds *ret,
                          struct error *err)
{
    const char *names[THRESHOLD_COUNT_OF + 1] = {"off"};
    enum threshold_id ids[THRESHOLD_COUNT_OF + 1];
    size_t n = 1;
    bool on;
    enum err code = ERR_OK;
    struct error ignored;
    if (config_kind(of) == CONFIG_NOTHING)
        return ERR_OK;
    if (config_kind(of) == CONFIG_SCALAR && config_as_bool(of, &on, &ignored) == ERR_OK) {
        ret->off[rule] = !on;
        return ERR_OK;
    }
    if (config_kind(of) != CONFIG_MAP)
        return config_error(of, err, "a rule is off, or a mapping such as {held: 48h}");
    for (size_t i = 0; i < THRESHOLD_COUNT_OF; i++)
        if (threshold_defs[i].rule == rule) {
            ids[n] = (enum threshold_id)i;
            names[n++] = threshold_defs[i].name;
        }
    for (size_t i = 0; i < config_count(of) && code == ERR_OK; i++) {
        struct config_node value, key = config_pair(of, i, &value);
        size_t k = 0;
        code = config_find_key(key, names, n, &k, err);
        if (!code && k == 0)
            code = config_as_bool(value, &ret->off[rule], err);
        else if (!code)
            code = read_value(ids[k], value, &ret->values[ids[k]], err);
    }
    return code;
}

static enum err read_target(enum target_kind kind, struct config_node key, struct config_node value,
                            struct thresholds *ret, struct error *err)
{
    struct target target = {.kind = kind, .glob = config_text(key)};
    enum err code = config_as_ratio(value, &target.use, err);
    if (code != ERR_OK)
        return code;
    if (target.use <= 0)
        return config_error(value, err, "a target is above 0%%");
    if (ret->targets_n == TARGETS_MAX)
        return config_error(key, err, "more than %d targets", TARGETS_MAX);
    ret->targets[ret->targets_n++] = target;
    return ERR_OK;
}

/* {KIND: {GLOB: RATIO}}, or GLOB: RATIO for teams. */
static enum err read_targets(struct config_node node, struct thresholds *ret, struct error *err)
{
    static const char *const kinds[] = {
#define X(id, key, word) key,
        TARGET_TABLE(X)
#undef X
    };
    if (config_kind(node) != CONFIG_NOTHING && config_kind(node) != CONFIG_MAP)
        return config_error(node, err, "targets is a mapping, such as {search: 60%%}");
    enum err code = ERR_OK;
    for (size_t i = 0; i < config_count(node) && code == ERR_OK; i++) {
        struct config_node value, key = config_pair(node, i, &value);
        size_t kind = 0;
        if (config_kind(value) != CONFIG_MAP) {
            code = read_target(TARGET_TEAM, key, value, ret, err);
            continue;
        }
        code = config_find_key(key, kinds, TARGET_KINDS, &kind, err);
        for (size_t k = 0; k < config_count(value) && code == ERR_OK; k++) {
            struct config_node use, name = config_pair(value, k, &use);
            code = read_target((enum target_kind)kind, name, use, ret, err);
        }
    }
    return code;
}

/* NAMESPACE/KIND/NAME, or NAMESPACE/NAME of it. */
static bool fits_workload(struct str glob, struct str text)
{
    const char *kind = text.n ? memchr(text.p, '/', text.n) : NULL;
    if (str_glob(glob, text))
        return true;
    size_t head = kind ? (size_t)(kind + 1 - text.p) : 0;
    const char *name = kind ? memchr(kind + 1, '/', text.n - head) : NULL;
    if (!name)
        return false;
    struct strbuf shorter = {0};
    strbuf_addf(&shorter, "%.*s%.*s", (int)head, text.p,
                STR_ARG(((struct str){name + 1, text.n - (size_t)(name + 1 - text.p)})));
    bool fits = str_glob(glob, strbuf_str(&shorter));
    strbuf_release(&shorter);
    return fits;
}

bool thresholds_target(const struct thresholds *thresholds, enum target_kind kind, struct str name,
                       int64_t *ret)
{
    for (size_t i = 0; i < thresholds->targets_n; i++) {
        const struct target *target = &thresholds->targets[i];
        if (target->kind == kind && (kind == TARGET_WORKLOAD ? fits_workload(target->glob, name)
                                                             : str_glob(target->glob, name))) {
            *ret = target->use;
            return true;
        }
    }
    return false;
}

enum err thresholds_read(const struct config *config, struct thresholds *ret, struct error *err)
{
    struct config_node node = config->sections[CONFIG_RULES_SECTION];
    const char *names[RULE_COUNT];
    struct thresholds read;
    thresholds_defaults(&read);
    for (int r = 0; r < RULE_COUNT; r++)
        names[r] = rules[r].name;
    if (config_kind(node) != CONFIG_NOTHING && config_kind(node) != CONFIG_MAP)
        return config_error(node, err, "rules is a mapping, such as {idle-workload: {held: 48h}}");
    for (size_t i = 0; i < config_count(node); i++) {
        struct config_node value, key = config_pair(node, i, &value);
        size_t r;
        enum err code = config_find_key(key, names, RULE_COUNT, &r, err);
        if (code == ERR_OK)
            code = read_rule((enum rule_id)r, value, &read, err);
        if (code != ERR_OK)
            return code;
    }
    enum err code = read_targets(config->sections[CONFIG_TARGETS_SECTION], &read, err);
    if (code == ERR_OK)
        *ret = read;
    return code;
}

/* value / unit with as many decimals as it has, at most `places`. */
static void add_decimal(struct strbuf *out, int64_t value, int64_t unit, int places)
{
    strbuf_addf(out, "%lld", (long long)(value / unit));
    int64_t rest = value % unit;
    for (int i = 0; i < places && rest; i++) {
        rest *= 10;
        strbuf_addf(out, "%s%lld", i ? "" : ".", (long long)(rest / unit));
        rest %= unit;
    }
}

void threshold_text(enum threshold_id id, int64_t value, struct strbuf *out)
{
    switch (threshold_defs[id].unit) {
    case THRESHOLD_DURATION:
        if (value >= 2 * DAY_MS && value % DAY_MS == 0)
            strbuf_addf(out, "%lld days", (long long)(value / DAY_MS));
        else if (value >= HOUR_MS)
            add_decimal(out, value, HOUR_MS, 3);
        else
            add_decimal(out, value, 60000, 3);
        if (value < HOUR_MS)
            strbuf_add(out, STR(" min"));
        else if (value < 2 * DAY_MS || value % DAY_MS)
            strbuf_add(out, STR(" h"));
        break;
    case THRESHOLD_RATIO:
        add_decimal(out, value, NANO / 100, 7);
        strbuf_add(out, STR(" %"));
        break;
    case THRESHOLD_HOURS:
        add_decimal(out, value, HOUR_MS, 3);
        strbuf_add(out, value == HOUR_MS ? STR(" GPU-hour") : STR(" GPU-hours"));
        break;
    case THRESHOLD_COUNT:
        strbuf_addf(out, "%lld", (long long)value);
        break;
    }
}

static void add_duration(struct strbuf *out, int64_t ms)
{
    static const struct {
        const char *name;
        int64_t ms;
    } units[] = {{"d", DAY_MS}, {"h", HOUR_MS}, {"m", 60000}, {"s", 1000}, {"ms", 1}};
    if (!ms)
        strbuf_add(out, STR("0s"));
    for (size_t i = 0; ms && i < sizeof units / sizeof *units; i++) {
        bool whole_day = i || ms >= 2 * DAY_MS;
        if (ms >= units[i].ms && whole_day) {
            strbuf_addf(out, "%lld%s", (long long)(ms / units[i].ms), units[i].name);
            ms %= units[i].ms;
        }
    }
}

void threshold_value_text(enum threshold_id id, int64_t value, struct strbuf *out)
{
    switch (threshold_defs[id].unit) {
    case THRESHOLD_DURATION:
        add_duration(out, value);
        break;
    case THRESHOLD_RATIO:
        add_decimal(out, value, NANO / 100, 7);
        strbuf_addc(out, '%');
        break;
    case THRESHOLD_HOURS:
        add_decimal(out, value, HOUR_MS, 3);
        strbuf_addc(out, 'h');
        break;
    case THRESHOLD_COUNT:
        strbuf_addf(out, "%lld", (long long)value);
        break;
    }
}

/* The id of a rule's threshold by name; THRESHOLD_COUNT_OF: it has none such. */
static enum threshold_id find_name(enum rule_id rule, struct str name)
{
    size_t i = 0;
    while (i < THRESHOLD_COUNT_OF &&
           (threshold_defs[i].rule != rule || !str_eq(name, str_of(threshold_defs[i].name))))
        i++;
    return (enum threshold_id)i;
}

void rule_text(enum rule_id rule, const struct thresholds *thresholds, struct strbuf *out)
{
    const char *at = rules[rule].thresholds, *open;
    while ((open = strchr(at, '{'))) {
        const char *close = strchr(open, '}');
        invariant(close);
        strbuf_add(out, (struct str){at, (size_t)(open - at)});
        enum threshold_id id = find_name(rule, (struct str){open + 1, (size_t)(close - open) - 1});
        invariant(id < THRESHOLD_COUNT_OF);
        threshold_text(id, thresholds->values[id], out);
        at = close + 1;
    }
    strbuf_add(out, str_of(at));
}
