/* Thresholds from the table, the configuration's texts, and back to text. The configuration is read
 * by fleet/, which knows no rule: what it kept as texts with their places is understood here. */
#include "insight/threshold.h"

#include "util/config_file.h"
#include "util/suggest.h"

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

static enum err refuse(const struct config *config, const struct config_word *at, struct error *err,
                       const char *what)
{
    return error_set(err, ERR_CONFIG, "%.*s:%d:%d: %s", STR_ARG(config->path), at->line, at->column,
                     what);
}

/* "unknown WHAT 'x': did you mean 'y'?", or what there is. */
static enum err refuse_unknown(const struct config *config, const struct config_word *at,
                               const char *what, const char *const *known, size_t n,
                               struct error *err)
{
    struct strbuf text = {0};
    const char *near = suggest(at->text, known, n);
    strbuf_addf(&text, "unknown %s '%.*s': ", what, STR_ARG(at->text));
    if (near)
        strbuf_addf(&text, "did you mean '%s'?", near);
    else
        for (size_t i = 0; i < n; i++)
            strbuf_addf(&text, "%s%s", i ? ", " : "known here are ", known[i]);
    enum err code = refuse(config, at, err, text.text);
    strbuf_release(&text);
    return code;
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

static enum err read_value(const struct config *config, enum threshold_id id,
                           const struct config_word *value, int64_t *ret, struct error *err)
{
    static const char *const wanted[] = {
        [THRESHOLD_DURATION] = "a duration such as 30s, 6h or 3d",
        [THRESHOLD_RATIO] = "a ratio such as 90% or 0.9",
        [THRESHOLD_HOURS] = "GPU-hours such as 24h or 24",
        [THRESHOLD_COUNT] = "a whole number",
    };
    const struct threshold_def *def = &threshold_defs[id];
    if (parse_value(def->unit, value->text, ret))
        return ERR_OK;
    struct strbuf text = {0};
    strbuf_addf(&text, "'%.*s' does not fit %s.%s: write %s", STR_ARG(value->text),
                rules[def->rule].name, def->name, wanted[def->unit]);
    enum err code = refuse(config, value, err, text.text);
    strbuf_release(&text);
    return code;
}

static enum err read_off(const struct config *config, const struct config_word *value, bool *ret,
                         struct error *err)
{
    bool yes = str_eq_nocase(value->text, STR("true")) || str_eq_nocase(value->text, STR("yes"));
    if (!yes && !str_eq_nocase(value->text, STR("false")) && !str_eq_nocase(value->text, STR("no")))
        return refuse(config, value, err, "off is true or false");
    *ret = yes;
    return ERR_OK;
}

static enum err find_rule(const struct config *config, const struct config_word *word,
                          enum rule_id *ret, struct error *err)
{
    const char *names[RULE_COUNT];
    for (int r = 0; r < RULE_COUNT; r++) {
        names[r] = rules[r].name;
        if (str_eq(word->text, str_of(names[r]))) {
            *ret = (enum rule_id)r;
            return ERR_OK;
        }
    }
    return refuse_unknown(config, word, "rule", names, RULE_COUNT, err);
}

static enum err read_one(const struct config *config, const struct config_rule *of,
                         struct thresholds *ret, struct error *err)
{
    const char *names[THRESHOLD_COUNT_OF + 1] = {"off"};
    size_t n = 1;
    enum rule_id rule = RULE_COUNT;
    enum err code = find_rule(config, &of->rule, &rule, err);
    if (code != ERR_OK)
        return code;
    if (str_eq(of->name.text, STR("off")))
        return read_off(config, &of->value, &ret->off[rule], err);
    for (size_t i = 0; i < THRESHOLD_COUNT_OF; i++) {
        if (threshold_defs[i].rule != rule)
            continue;
        names[n++] = threshold_defs[i].name;
        if (str_eq(of->name.text, str_of(threshold_defs[i].name)))
            return read_value(config, (enum threshold_id)i, &of->value, &ret->values[i], err);
    }
    return refuse_unknown(config, &of->name, "threshold", names, n, err);
}

enum err thresholds_read(const struct config *config, struct thresholds *ret, struct error *err)
{
    struct thresholds read;
    thresholds_defaults(&read);
    for (size_t i = 0; i < config->rules_n; i++) {
        enum err code = read_one(config, &config->rules[i], &read, err);
        if (code != ERR_OK)
            return code;
    }
    *ret = read;
    return ERR_OK;
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
