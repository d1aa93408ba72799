/* Prices in the configuration: files, overrides, defaults of GPU models, discounts. All of them are
 * rules with one set of selectors; they differ in what the amount is. */
#include <stdio.h>

#include "fleet/config.h"
#include "fleet/config_sections.h"
#include "util/config_table.h"

#define SELECTOR_LABELS_MAX 16
#define PERCENT_PLACES 4 /* of a discount, whose unit is 1e-4 percent */
#define PERCENT_WHOLE 1000000

#define RULE_TABLE(X)                                                                              \
    X(CLUSTER, "cluster")                                                                          \
    X(NODE, "node")                                                                                \
    X(CLOUD, "cloud")                                                                              \
    X(REGION, "region")                                                                            \
    X(INSTANCE_TYPE, "instance_type")                                                              \
    X(GPU_MODEL, "gpu_model")                                                                      \
    X(CAPACITY_TYPE, "capacity_type")                                                              \
    X(LABELS, "labels")                                                                            \
    X(FROM, "from")                                                                                \
    X(TO, "to")                                                                                    \
    X(USD_PER_HOUR, "usd_per_hour")                                                                \
    X(USD_PER_GPU_HOUR, "usd_per_gpu_hour")                                                        \
    X(PERCENT, "percent")

enum rule_key {
#define X(name, text) RULE_##name,
    RULE_TABLE(X)
#undef X
        RULE_COUNT
};
static const char *const rule_keys[RULE_COUNT] = {
#define X(name, text) text,
    RULE_TABLE(X)
#undef X
};

/* "config.yaml:4:3", in the configuration's arena. */
static struct str place_of(struct config *config, struct config_node node)
{
    struct strbuf text = {0};
    strbuf_add(&text, config_file_name(node.file));
    strbuf_addf(&text, ":%d:%d", config_line(node), config_column(node));
    struct str place = str_keep(&config->arena, strbuf_str(&text));
    strbuf_release(&text);
    return place;
}

static enum err read_capacity(struct config_node node, struct price_selector *selector,
                              struct error *err)
{
    for (int type = 0; type < CAPACITY_UNKNOWN; type++)
        if (str_eq_nocase(config_text(node), str_of(capacity_type_words[type]))) {
            selector->capacity = (enum capacity_type)type;
            selector->any_capacity = false;
            return ERR_OK;
        }
    return config_error(node, err,
                        "unknown capacity_type '%.*s': write on-demand, spot or "
                        "reserved",
                        STR_ARG(config_text(node)));
}

static enum err read_labels(struct config_node node, struct label *labels, size_t *ret_n,
                            struct error *err)
{
    size_t n = config_count(node);
    if (config_kind(node) != CONFIG_MAP || n > SELECTOR_LABELS_MAX)
        return config_error(node, err, "labels is a mapping of at most %d, such as {pool: a100-*}",
                            SELECTOR_LABELS_MAX);
    for (size_t i = 0; i < n; i++) {
        struct config_node value, key = config_pair(node, i, &value);
        enum err result = config_as_text(value, &labels[i].value, err);
        if (result)
            return result;
        labels[i].name = config_text(key);
    }
    *ret_n = n;
    return ERR_OK;
}

/* The selector out of a rule's values; labels holds SELECTOR_LABELS_MAX. */
static enum err read_selector(const struct config_node *values, struct label *labels,
                              struct price_selector *ret, struct error *err)
{
    const struct {
        enum rule_key key;
        struct str *text;
    } texts[] = {
        {RULE_CLUSTER, &ret->cluster},
        {RULE_NODE, &ret->node},
        {RULE_CLOUD, &ret->cloud},
        {RULE_REGION, &ret->region},
        {RULE_INSTANCE_TYPE, &ret->instance_type},
        {RULE_GPU_MODEL, &ret->gpu_model},
    };
    enum err result = ERR_OK;
    *ret = (struct price_selector){
        .any_capacity = true, .labels = labels, .valid = {TIME_MIN, TIME_MAX}};
    for (size_t i = 0; i < sizeof texts / sizeof *texts && !result; i++)
        if (values[texts[i].key].file)
            result = config_as_text(values[texts[i].key], texts[i].text, err);
    if (!result && values[RULE_CAPACITY_TYPE].file)
        result = read_capacity(values[RULE_CAPACITY_TYPE], ret, err);
    if (!result && values[RULE_LABELS].file)
        result = read_labels(values[RULE_LABELS], labels, &ret->labels_n, err);
    if (!result && values[RULE_FROM].file)
        result = config_as_time(values[RULE_FROM], &ret->valid.from, err);
    if (!result && values[RULE_TO].file)
        result = config_as_time(values[RULE_TO], &ret->valid.to, err);
    if (!result && ret->valid.from >= ret->valid.to)
        result = config_error(values[values[RULE_TO].file ? RULE_TO : RULE_FROM], err,
                              "from has to be before to");
    return result;
}

static enum err read_percent(struct config_node node, int64_t *ret, struct error *err)
{
    if (percent_parse(config_text(node), PERCENT_PLACES, PERCENT_WHOLE, ret))
        return ERR_OK;
    return config_error(node, err, "percent is from 0 to 100, such as 30 or 12.5");
}

static enum err misplaced(const struct config_node *values, enum rule_key key, const char *list,
                          struct error *err)
{
    return config_error(values[key], err, "%s does not belong into %s", rule_keys[key], list);
}

/* What the amount of a rule of this list is; decides an override's kind. */
static enum err read_amount(struct config_node node, const struct config_node *values,
                            struct price_rule *rule, struct error *err)
{
    bool whole = values[RULE_USD_PER_HOUR].file, each = values[RULE_USD_PER_GPU_HOUR].file;
    if (rule->kind == PRICE_RULE_DISCOUNT) {
        if (whole || each)
            return misplaced(values, whole ? RULE_USD_PER_HOUR : RULE_USD_PER_GPU_HOUR, "discounts",
                             err);
        if (!values[RULE_PERCENT].file)
            return config_error(node, err, "a discount needs percent");
        return read_percent(values[RULE_PERCENT], &rule->amount, err);
    }
    if (values[RULE_PERCENT].file)
        return misplaced(values, RULE_PERCENT, "prices: it is what discounts have", err);
    if (rule->kind == PRICE_RULE_MODEL) {
        if (whole)
            return misplaced(values, RULE_USD_PER_HOUR, "model_prices: write usd_per_gpu_hour",
                             err);
        if (!each || !values[RULE_GPU_MODEL].file)
            return config_error(node, err, "a model price needs gpu_model and usd_per_gpu_hour");
    } else if (whole == each) {
        return config_error(node, err,
                            "an override needs one of usd_per_hour (the whole node) "
                            "and usd_per_gpu_hour");
    } else {
        rule->kind = each ? PRICE_RULE_GPU : PRICE_RULE_NODE;
    }
    return config_as_money(values[each ? RULE_USD_PER_GPU_HOUR : RULE_USD_PER_HOUR], PRICE_MAX,
                           &rule->amount, err);
}

static enum err read_rules(struct config *config, struct config_node list,
                           enum price_rule_kind kind, struct error *err)
{
    if (config_kind(list) == CONFIG_NOTHING)
        return ERR_OK;
    if (config_kind(list) != CONFIG_LIST)
        return config_error(list, err, "a list is needed here, each of it with - in front");
    for (size_t i = 0; i < config_count(list); i++) {
        struct config_node node = config_item(list, i), values[RULE_COUNT] = {{0}};
        struct label labels[SELECTOR_LABELS_MAX];
        struct price_rule rule = {.kind = kind, .source = place_of(config, node)};
        enum err result = ERR_OK;
        if (config_kind(node) != CONFIG_MAP)
            return config_error(node, err,
                                "a mapping is needed here, such as {node: gpu-*, "
                                "usd_per_hour: 12.5}");
        result = config_read_values(node, rule_keys, RULE_COUNT, values, err);
        if (!result)
            result = read_selector(values, labels, &rule.selector, err);
        if (!result)
            result = read_amount(node, values, &rule, err);
        if (result)
            return result;
        prices_add_rule(config->prices, &rule);
    }
    return ERR_OK;
}

/* {KEY: USD an hour}: of nodes, or of a GPU of a model. */
static enum err read_map(struct config *config, struct config_node map, enum price_rule_kind kind,
                         struct error *err)
{
    if (config_kind(map) != CONFIG_MAP)
        return config_error(map, err, "a mapping of names to prices is needed here");
    for (size_t i = 0; i < config_count(map); i++) {
        struct config_node value, key = config_pair(map, i, &value);
        struct price_rule rule = {
            .kind = kind,
            .selector = {.any_capacity = true, .valid = {TIME_MIN, TIME_MAX}},
            .source = place_of(config, key),
        };
        if (config_text(key).n == 0)
            return config_error(key, err, "a name is needed here");
        if (kind == PRICE_RULE_NODE)
            rule.selector.node = config_text(key);
        else
            rule.selector.gpu_model = config_text(key);
        enum err result = config_as_money(value, PRICE_MAX, &rule.amount, err);
        if (result)
            return result;
        prices_add_rule(config->prices, &rule);
    }
    return ERR_OK;
}

enum err config_price_overrides(struct config *config, struct config_node node, struct error *err)
{
    return read_map(config, node, PRICE_RULE_NODE, err);
}

enum err config_model_prices(struct config *config, struct config_node node, struct error *err)
{
    if (config_kind(node) == CONFIG_LIST)
        return read_rules(config, node, PRICE_RULE_MODEL, err);
    return read_map(config, node, PRICE_RULE_MODEL, err);
}

static enum err read_files(struct config *config, struct config_node node, struct error *err)
{
    bool list = config_kind(node) == CONFIG_LIST;
    for (size_t i = 0; i < (list ? config_count(node) : 1); i++) {
        struct config_node one = list ? config_item(node, i) : node;
        struct str text;
        enum err result = config_as_text(one, &text, err);
        if (!result)
            result = config_in_file(
                one, prices_add_csv(config->prices, config_path(config, one), err), err);
        if (result)
            return result;
    }
    return ERR_OK;
}

/* X(NAME, "key") of the mapping under `prices:` */
#define PRICES_TABLE(X)                                                                            \
    X(FILES, "files")                                                                              \
    X(CATALOGUE, "catalogue")                                                                      \
    X(OVERRIDES, "overrides")                                                                      \
    X(MODEL_PRICES, "model_prices")                                                                \
    X(DISCOUNTS, "discounts")                                                                      \
    X(NODE_SPLIT, "node_split")                                                                    \
    X(USD_PER_VCPU, "usd_per_vcpu")                                                                \
    X(USD_PER_GIB, "usd_per_gib")

enum prices_key {
#define X(name, text) PRICES_##name,
    PRICES_TABLE(X)
#undef X
        PRICES_COUNT
};
static const char *const prices_keys[PRICES_COUNT] = {
#define X(name, text) text,
    PRICES_TABLE(X)
#undef X
};

enum err config_prices_section(struct config *config, struct config_node node, struct error *err)
{
    struct config_node values[PRICES_COUNT] = {{0}};
    struct price_policy *policy = &config->price_policy;
    bool catalogue = true;
    if (config_kind(node) != CONFIG_MAP)
        return read_files(config, node, err);
    enum err result = config_read_values(node, prices_keys, PRICES_COUNT, values, err);
    for (int k = 0; k < PRICES_COUNT; k++)
        if (config_kind(values[k]) == CONFIG_NOTHING)
            values[k] = (struct config_node){0};
    if (!result && values[PRICES_FILES].file)
        result = read_files(config, values[PRICES_FILES], err);
    if (!result && values[PRICES_CATALOGUE].file)
        result = config_as_bool(values[PRICES_CATALOGUE], &catalogue, err);
    if (!result && values[PRICES_OVERRIDES].file)
        result = read_rules(config, values[PRICES_OVERRIDES], PRICE_RULE_NODE, err);
    if (!result && values[PRICES_MODEL_PRICES].file)
        result = config_model_prices(config, values[PRICES_MODEL_PRICES], err);
    if (!result && values[PRICES_DISCOUNTS].file)
        result = read_rules(config, values[PRICES_DISCOUNTS], PRICE_RULE_DISCOUNT, err);
    if (!result && values[PRICES_NODE_SPLIT].file)
        result = config_node_split(config, values[PRICES_NODE_SPLIT], err);
    if (!result && values[PRICES_USD_PER_VCPU].file)
        result = config_as_money(values[PRICES_USD_PER_VCPU], PRICE_MAX, &policy->vcpu, err);
    if (!result && values[PRICES_USD_PER_GIB].file)
        result = config_as_money(values[PRICES_USD_PER_GIB], PRICE_MAX, &policy->gib, err);
    policy->no_catalogue = !catalogue;
    return result;
}
