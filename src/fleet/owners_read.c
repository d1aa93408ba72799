/* Owner rules out of a file: which keys a rule has, and what is wrong with one, with its place. */
#include <stdlib.h>

#include "fleet/owners.h"
#include "fleet/owners_rules.h"
#include "util/config_table.h"

/* X(NAME, "key") */
#define KEY_TABLE(X)                                                                               \
    X(TEAM, "team")                                                                                \
    X(TYPE, "type")                                                                                \
    X(CLUSTER, "cluster")                                                                          \
    X(NAMESPACE, "namespace")                                                                      \
    X(KIND, "kind")                                                                                \
    X(WORKLOAD, "workload")                                                                        \
    X(POD_LABEL, "pod_label")                                                                      \
    X(ANNOTATION, "annotation")                                                                    \
    X(NAMESPACE_LABEL, "namespace_label")                                                          \
    X(VALUE, "value")

enum rule_key {
#define X(name, text) KEY_##name,
    KEY_TABLE(X)
#undef X
        KEY_COUNT
};
static const char *const key_names[KEY_COUNT] = {
#define X(name, text) text,
    KEY_TABLE(X)
#undef X
};

/* The values of a rule's keys, by key. */
static enum err read_keys(struct config_node node, struct config_node values[KEY_COUNT],
                          struct error *err)
{
    if (config_kind(node) != CONFIG_MAP)
        return config_error(node, err,
                            "a rule is needed here, such as {namespace: search-*, "
                            "team: search}");
    for (size_t i = 0; i < config_count(node); i++) {
        struct config_node value, key = config_pair(node, i, &value);
        size_t k;
        struct str text;
        enum err result = config_find_key(key, key_names, KEY_COUNT, &k, err);
        if (!result)
            result = config_as_text(value, &text, err);
        if (result)
            return result;
        values[k] = value;
    }
    return ERR_OK;
}

static struct str kept(struct owners *owners, struct config_node node)
{
    return node.file ? str_keep(&owners->arena, config_text(node)) : (struct str){NULL, 0};
}

static enum err read_carrier(struct owners *owners, const struct config_node *values,
                             struct owner_rule *rule, struct error *err)
{
    static const struct {
        enum rule_key key;
        enum carrier carrier;
    } carriers[] = {{KEY_POD_LABEL, CARRIER_POD_LABEL},
                    {KEY_ANNOTATION, CARRIER_ANNOTATION},
                    {KEY_NAMESPACE_LABEL, CARRIER_NAMESPACE_LABEL}};
    for (size_t i = 0; i < sizeof carriers / sizeof *carriers; i++) {
        struct config_node value = values[carriers[i].key];
        if (!value.file)
            continue;
        if (rule->carrier != CARRIER_NONE)
            return config_error(value, err,
                                "a rule takes one of pod_label, annotation and "
                                "namespace_label: write one rule for each");
        rule->carrier = carriers[i].carrier;
        rule->label = kept(owners, value);
    }
    if (values[KEY_VALUE].file && rule->carrier == CARRIER_NONE)
        return config_error(values[KEY_VALUE], err,
                            "value is that of a label: pod_label, "
                            "annotation or namespace_label is missing");
    rule->value = values[KEY_VALUE].file ? kept(owners, values[KEY_VALUE]) : STR("*");
    return ERR_OK;
}

static enum err read_type(struct config_node node, enum workload_type *ret, struct error *err)
{
    for (int type = WORKLOAD_TRAINING; type < WORKLOAD_TYPE_COUNT; type++)
        if (str_eq(config_text(node), str_of(workload_type_words[type]))) {
            *ret = (enum workload_type)type;
            return ERR_OK;
        }
    return config_error(node, err,
                        "unknown type '%.*s': write training, inference, interactive or "
                        "other",
                        STR_ARG(config_text(node)));
}

static enum err read_rule(struct owners *owners, struct config_node node, bool is_type,
                          struct owner_rule *rule, struct error *err)
{
    struct config_node values[KEY_COUNT] = {{0}};
    enum rule_key wanted = is_type ? KEY_TYPE : KEY_TEAM, other = is_type ? KEY_TEAM : KEY_TYPE;
    enum err result = read_keys(node, values, err);
    if (result)
        return result;
    if (!values[wanted].file)
        return config_error(node, err, "this rule has no %s: it says nothing", key_names[wanted]);
    if (values[other].file)
        return config_error(values[other], err,
                            "%s does not belong here: rules give teams, types "
                            "give types",
                            key_names[other]);
    *rule = (struct owner_rule){.cluster = kept(owners, values[KEY_CLUSTER]),
                                .namespace = kept(owners, values[KEY_NAMESPACE]),
                                .kind = kept(owners, values[KEY_KIND]),
                                .workload = kept(owners, values[KEY_WORKLOAD])};
    if (is_type)
        result = read_type(values[KEY_TYPE], &rule->type, err);
    else
        rule->team = kept(owners, values[KEY_TEAM]);
    return result ? result : read_carrier(owners, values, rule, err);
}

static enum err read_list(struct owners *owners, struct config_node list, bool is_type,
                          struct error *err)
{
    if (config_kind(list) == CONFIG_NOTHING)
        return ERR_OK;
    if (config_kind(list) != CONFIG_LIST)
        return config_error(list, err, "a list of rules is needed here");
    for (size_t i = 0; i < config_count(list); i++) {
        struct owner_rule rule;
        enum err result = read_rule(owners, config_item(list, i), is_type, &rule, err);
        if (result)
            return result;
        owners_add_rule(is_type ? &owners->types : &owners->teams, rule);
    }
    return ERR_OK;
}

enum err owners_from_config(struct config_node rules, struct config_node types, struct owners **ret,
                            struct error *err)
{
    struct owners *owners = mem_zalloc(1, sizeof *owners);
    owners->configured = config_kind(rules) != CONFIG_NOTHING;
    owners->digest = config_file_digest(rules.file ? rules.file : types.file);
    enum err result = read_list(owners, rules, false, err);
    if (!result)
        result = read_list(owners, types, true, err);
    if (!result && config_kind(rules) == CONFIG_NOTHING)
        owners_add_default_teams(&owners->teams);
    if (!result && config_kind(types) == CONFIG_NOTHING)
        owners_add_default_types(&owners->types);
    if (result)
        owners_free(owners);
    else
        *ret = owners;
    return result;
}

static enum err read_root(struct owners *owners, struct config_node root, struct error *err)
{
    static const char *const keys[] = {"rules", "types", "defaults"};
    bool defaults = false;
    if (config_kind(root) != CONFIG_MAP)
        return config_error(root, err, "an owner file has `rules:`, and maybe `types:`");
    if (config_get(root, STR("apiVersion")).file)
        return config_error(root, err,
                            "this is a list of Kubernetes objects, not of owner rules: "
                            "give it with --kube-json");
    for (size_t i = 0; i < config_count(root); i++) {
        struct config_node value, key = config_pair(root, i, &value);
        enum err result = ERR_OK;
        if (str_eq(config_text(key), STR("rules")))
            result = read_list(owners, value, false, err);
        else if (str_eq(config_text(key), STR("types")))
            result = read_list(owners, value, true, err);
        else if (str_eq(config_text(key), STR("defaults")))
            result = config_as_bool(value, &defaults, err);
        else
            result = config_unknown_key(key, keys, sizeof keys / sizeof *keys, err);
        if (result)
            return result;
    }
    if (defaults) {
        owners_add_default_teams(&owners->teams);
        owners_add_default_types(&owners->types);
    }
    return ERR_OK;
}

enum err owners_read(const char *path, struct owners **ret, struct error *err)
{
    struct config_file *file;
    enum err result = config_file_read(path, &file, err);
    if (result) {
        if (result != ERR_CONFIG)
            error_prefix(err, "owners");
        return result;
    }
    struct owners *owners = mem_zalloc(1, sizeof *owners);
    owners->configured = true;
    owners->digest = config_file_digest(file);
    struct config_node root = config_root(file);
    result = root.file ? read_root(owners, root, err)
                       : error_set(err, ERR_CONFIG,
                                   "%s: the file is empty: an owner file has "
                                   "`rules:`",
                                   path);
    config_file_free(file);
    if (result)
        owners_free(owners);
    else
        *ret = owners;
    return result;
}
