/* The configuration file: one table of settings, each with the spellings it may have, and a
 * function for each section that is more than a value.
 *
 * The settings may stand at the top or under `settings:`. Durations have two spellings: `step: 30s`
 * for people, `step_s: 30` (a bare number of seconds) as fleetsim writes it. A value of null leaves
 * the default. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "fleet/config.h"
#include "fleet/config_sections.h"
#include "util/config_table.h"

#define DAYS_MAX 366
#define SAMPLES_MAX 1000000
#define XID_MAX 100000
#define POWER_MAX_MW 100000000

enum setting_kind {
    SETTING_DURATION, /* with a unit */
    SETTING_SECONDS,  /* a bare number */
    SETTING_RATIO,
    SETTING_MONEY,
    SETTING_TIME,
    SETTING_TEXT,
    SETTING_OWN, /* read by a function */
};

typedef enum err (*setting_fn)(struct config *config, struct config_node node, struct error *err);

struct setting {
    const char *name;
    enum setting_kind kind;
    size_t at;       /* of the value in struct config */
    setting_fn read; /* of SETTING_OWN */
};

static enum err read_share_policy(struct config *config, struct config_node node, struct error *err)
{
    struct str text = config_text(node);
    if (!str_eq(text, STR("replicas")) && !str_eq(text, STR("even")))
        return config_error(node, err, "unknown share_policy '%.*s': write replicas or even",
                            STR_ARG(text));
    config->settings.share_policy =
        str_eq(text, STR("even")) ? SHARE_POLICY_EVEN : SHARE_POLICY_REPLICAS;
    return ERR_OK;
}

enum err config_node_split(struct config *config, struct config_node node, struct error *err)
{
    struct str text = config_text(node);
    if (!str_eq(text, STR("whole")) && !str_eq(text, STR("residual")))
        return config_error(node, err, "unknown node_split '%.*s': write whole or residual",
                            STR_ARG(text));
    config->settings.node_split =
        str_eq(text, STR("residual")) ? NODE_SPLIT_RESIDUAL : NODE_SPLIT_WHOLE;
    return ERR_OK;
}

static enum err list_size(struct config_node node, struct error *err)
{
    if (config_kind(node) != CONFIG_LIST)
        return config_error(node, err, "a list is needed here, such as [a, b]");
    if (config_count(node) > SETTINGS_LIST_MAX)
        return config_error(node, err, "more than %d of them", SETTINGS_LIST_MAX);
    return ERR_OK;
}

static enum err read_lost_xids(struct config *config, struct config_node node, struct error *err)
{
    enum err result = list_size(node, err);
    size_t n = config_count(node);
    for (size_t i = 0; i < n && !result; i++) {
        int64_t xid = 0;
        result = config_as_int(config_item(node, i), 0, XID_MAX, &xid, err);
        config->settings.lost_xids[i] = (int)xid;
    }
    if (!result)
        config->settings.lost_xids_n = n;
    return result;
}

static enum err read_exporter_containers(struct config *config, struct config_node node,
                                         struct error *err)
{
    enum err result = list_size(node, err);
    size_t n = config_count(node);
    for (size_t i = 0; i < n && !result; i++) {
        struct str text = STR_NONE;
        result = config_as_text(config_item(node, i), &text, err);
        config->settings.exporter_containers[i] = str_keep(&config->arena, text);
    }
    if (!result)
        config->settings.exporter_containers_n = n;
    return result;
}

static enum err read_idle_days(struct config *config, struct config_node node, struct error *err)
{
    int64_t days = config->idle.days;
    enum err result = config_as_int(node, 1, DAYS_MAX, &days, err);
    config->idle.days = (int)days;
    return result;
}

static enum err read_idle_floor(struct config *config, struct config_node node, struct error *err)
{
    int64_t samples = config->idle.floor_samples;
    enum err result = config_as_int(node, 1, SAMPLES_MAX, &samples, err);
    config->idle.floor_samples = (int)samples;
    return result;
}

/* auto, or percent of the power limit, with or without the sign. */
static enum err read_idle_power(struct config *config, struct config_node node, struct error *err)
{
    struct str text = config_text(node);
    config->idle.power_auto = str_eq(text, STR("auto"));
    if (config->idle.power_auto)
        return ERR_OK;
    if (percent_parse(text, 7, NANO, &config->idle.power_below))
        return ERR_OK;
    return config_error(node, err, "idle_power is auto or a percentage such as 15%%");
}

static enum err read_power_limits(struct config *config, struct config_node node, struct error *err)
{
    if (config_kind(node) != CONFIG_MAP)
        return config_error(node, err, "a mapping is needed here, such as {NVIDIA H20: 500}");
    for (size_t i = 0; i < config_count(node); i++) {
        struct config_node value, key = config_pair(node, i, &value);
        int64_t mw;
        if (!decimal_parse(config_text(value), 3, POWER_MAX_MW, &mw))
            return config_error(value, err, "'%.*s' is no power: write W such as 700",
                                STR_ARG(config_text(value)));
        struct power_limit limit = {str_keep(&config->arena, config_text(key)), (int32_t)mw};
        mem_push(config->power_limits, config->power_limits_n, config->power_limits_room, limit);
    }
    return ERR_OK;
}

#define AT(field) offsetof(struct config, field)
#define DURATION(name, field)                                                                      \
    {name, SETTING_DURATION, AT(settings.field), NULL},                                            \
    {                                                                                              \
        name "_s", SETTING_SECONDS, AT(settings.field), NULL                                       \
    }
#define OWN(name, function)                                                                        \
    {                                                                                              \
        name, SETTING_OWN, 0, function                                                             \
    }

static const struct setting settings_table[] = {
    DURATION("step", step_ms),
    DURATION("gap", gap_ms),
    DURATION("node_break", node_break_ms),
    DURATION("starting_max", starting_max_ms),
    DURATION("frozen", frozen_ms),
    {"idle_below", SETTING_RATIO, AT(settings.idle_below), NULL},
    {"busy_from", SETTING_RATIO, AT(settings.busy_from), NULL},
    {"usd_per_vcpu", SETTING_MONEY, AT(price_policy.vcpu), NULL},
    {"usd_per_gib", SETTING_MONEY, AT(price_policy.gib), NULL},
    {"from", SETTING_TIME, AT(from), NULL},
    {"to", SETTING_TIME, AT(to), NULL},
    {"tz", SETTING_TEXT, AT(tz), NULL},
    {"currency", SETTING_TEXT, AT(currency), NULL},
    {"cluster", SETTING_TEXT, AT(cluster), NULL},
    OWN("share_policy", read_share_policy),
    OWN("node_split", config_node_split),
    OWN("lost_xids", read_lost_xids),
    OWN("exporter_containers", read_exporter_containers),
    OWN("price_overrides", config_price_overrides),
    OWN("model_prices", config_model_prices),
    OWN("idle_days", read_idle_days),
    OWN("idle_floor_samples", read_idle_floor),
    OWN("idle_power", read_idle_power),
    OWN("power_limit_w", read_power_limits),
};
#define SETTINGS_N (sizeof settings_table / sizeof *settings_table)

static enum err read_setting(struct config *config, const struct setting *setting,
                             struct config_node node, struct error *err)
{
    void *at = (char *)config + setting->at;
    struct str text;
    enum err result;
    if (config_kind(node) == CONFIG_NOTHING)
        return ERR_OK;
    switch (setting->kind) {
    case SETTING_DURATION:
        return config_as_duration(node, 0, at, err);
    case SETTING_SECONDS:
        return config_as_duration(node, 1000, at, err);
    case SETTING_RATIO:
        return config_as_ratio(node, at, err);
    case SETTING_MONEY:
        return config_as_money(node, PRICE_MAX, at, err);
    case SETTING_TIME:
        return config_as_time(node, at, err);
    case SETTING_TEXT:
        result = config_as_text(node, &text, err);
        if (!result)
            *(struct str *)at = str_keep(&config->arena, text);
        return result;
    case SETTING_OWN:
        break;
    }
    return setting->read(config, node, err);
}

const char *config_path(struct config *config, struct config_node node)
{
    struct strbuf whole = {0};
    config_file_path(node, &whole);
    const char *result = str_keep(&config->arena, strbuf_str(&whole)).p;
    strbuf_release(&whole);
    return result;
}

enum err config_in_file(struct config_node node, enum err code, struct error *err)
{
    struct error why = err && code == ERR_IO ? *err : (struct error){0};
    return code == ERR_IO ? config_error(node, err, "%s", why.text) : code;
}

/* options: {NAME: a value or a list of values}: kept as text, cmd/ knows which there are. */
static enum err read_options(struct config *config, struct config_node node, struct error *err)
{
    if (config_kind(node) != CONFIG_MAP)
        return config_error(node, err, "options is a mapping, such as {prometheus: http://…}");
    for (size_t i = 0; i < config_count(node); i++) {
        struct config_node value, key = config_pair(node, i, &value);
        bool list = config_kind(value) == CONFIG_LIST;
        for (size_t k = 0; k < (list ? config_count(value) : 1); k++) {
            struct config_node one = list ? config_item(value, k) : value;
            struct str text;
            enum err result = config_as_text(one, &text, err);
            if (result)
                return result;
            struct config_option option = {.name = str_keep(&config->arena, config_text(key)),
                                           .value = str_keep(&config->arena, text),
                                           .line = config_line(key),
                                           .column = config_column(key)};
            mem_push(config->options, config->options_n, config->options_room, option);
        }
    }
    return ERR_OK;
}

/* owners: a file, a list of rules, or {rules, types}; types: a list. */
static enum err read_owners(struct config *config, struct config_node owners,
                            struct config_node types, struct error *err)
{
    static const char *const keys[] = {"rules", "types"};
    struct config_node parts[2] = {{0}};
    enum err result = ERR_OK;
    if (config_kind(owners) == CONFIG_SCALAR) {
        if (types.file)
            return config_error(types, err, "types stand in the file that owners names");
        return config_in_file(owners, config_set_owners(config, config_path(config, owners), err),
                              err);
    }
    if (config_kind(owners) == CONFIG_MAP)
        result = config_read_values(owners, keys, 2, parts, err);
    else
        parts[0] = owners;
    if (!result && types.file && parts[1].file)
        return config_error(types, err, "types stand here and under owners: keep one of them");
    if (types.file)
        parts[1] = types;
    struct owners *made;
    if (!result)
        result = owners_from_config(parts[0], parts[1], &made, err);
    if (result)
        return result;
    owners_free(config->owners);
    config->owners = made;
    return ERR_OK;
}

enum section {
    SECTION_SETTINGS,
    SECTION_PRICES,
    SECTION_OWNERS,
    SECTION_TYPES,
    SECTION_OPTIONS,
#define X(name, key) SECTION_##name,
    CONFIG_SECTION_TABLE(X)
#undef X
        SECTION_COUNT
};
#define SECTION_OF_OTHERS (SECTION_COUNT - (int)CONFIG_SECTIONS)

/* One mapping of settings; sections (may be NULL) gets the values of what is more than a setting.
 */
static enum err read_mapping(struct config *config, struct config_node map,
                             struct config_node *sections, struct error *err)
{
    const char *names[SECTION_COUNT + SETTINGS_N] = {"settings",
                                                     "prices",
                                                     "owners",
                                                     "types",
                                                     "options",
#define X(name, key) key,
                                                     CONFIG_SECTION_TABLE(X)
#undef X
    };
    const char *const *keys = sections ? names : names + SECTION_COUNT;
    size_t first = sections ? SECTION_COUNT : 0, n = SETTINGS_N + first;
    struct config_node values[SECTION_COUNT + SETTINGS_N] = {{0}};
    for (size_t i = 0; i < SETTINGS_N; i++)
        names[SECTION_COUNT + i] = settings_table[i].name;
    enum err result = config_read_values(map, keys, n, values, err);
    for (size_t i = 0; i < SETTINGS_N && !result; i++)
        if (values[first + i].file)
            result = read_setting(config, &settings_table[i], values[first + i], err);
    for (size_t i = 0; i < first; i++)
        sections[i] =
            config_kind(values[i]) == CONFIG_NOTHING ? (struct config_node){0} : values[i];
    return result;
}

static enum err read_root(struct config *config, struct config_node root, struct error *err)
{
    struct config_node sections[SECTION_COUNT] = {{0}};
    enum err result = ERR_OK;
    if (config_kind(root) == CONFIG_NOTHING)
        return ERR_OK;
    if (config_kind(root) != CONFIG_MAP)
        return config_error(root, err, "a configuration is a mapping, such as `prices: FILE`");
    result = read_mapping(config, root, sections, err);
    struct config_node settings = sections[SECTION_SETTINGS];
    if (!result && settings.file) {
        if (config_kind(settings) != CONFIG_MAP)
            return config_error(settings, err, "settings is a mapping, such as {step: 30s}");
        result = read_mapping(config, settings, NULL, err);
    }
    if (!result && sections[SECTION_PRICES].file)
        result = config_prices_section(config, sections[SECTION_PRICES], err);
    if (!result && (sections[SECTION_OWNERS].file || sections[SECTION_TYPES].file))
        result = read_owners(config, sections[SECTION_OWNERS], sections[SECTION_TYPES], err);
    if (!result && sections[SECTION_OPTIONS].file)
        result = read_options(config, sections[SECTION_OPTIONS], err);
    for (int i = 0; i < CONFIG_SECTIONS && !result; i++)
        config->sections[i] = sections[SECTION_OF_OTHERS + i];
    return result;
}

static enum err read_file(struct config *config, struct config_file *file, struct error *err)
{
    config->path = str_keep(&config->arena, config_file_name(file));
    enum err result = read_root(config, config_root(file), err);
    config_file_free(config->file);
    config->file = file; /* what is read later stands in it */
    return result;
}

enum err config_read_text(struct config *config, const char *name, struct str text,
                          struct error *err)
{
    struct config_file *file;
    enum err result = config_file_parse(name, text, &file, err);
    return result ? result : read_file(config, file, err);
}

enum err config_read(struct config *config, const char *path, struct error *err)
{
    struct config_file *file;
    enum err result = config_file_read(path, &file, err);
    if (result == ERR_IO)
        error_prefix(err, "configuration");
    return result ? result : read_file(config, file, err);
}
