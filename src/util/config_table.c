#include "util/config_table.h"

enum err config_find_key(struct config_node key, const char *const *names, size_t n, size_t *ret,
                         struct error *err)
{
    for (size_t k = 0; k < n; k++)
        if (str_eq(config_text(key), str_of(names[k]))) {
            *ret = k;
            return ERR_OK;
        }
    return config_unknown_key(key, names, n, err);
}

enum err config_read_values(struct config_node map, const char *const *names, size_t n,
                            struct config_node *values, struct error *err)
{
    for (size_t i = 0; i < config_count(map); i++) {
        struct config_node value, key = config_pair(map, i, &value);
        size_t k;
        enum err code = config_find_key(key, names, n, &k, err);
        if (code)
            return code;
        values[k] = value;
    }
    return ERR_OK;
}

enum err config_read_table(const struct config_reading *reading, struct config_node map,
                           const struct config_key *keys, size_t n, void *base, struct error *err)
{
    const char *names[CONFIG_KEYS_MAX];
    invariant(n <= CONFIG_KEYS_MAX);
    if (config_kind(map) == CONFIG_NOTHING)
        return ERR_OK;
    if (config_kind(map) != CONFIG_MAP)
        return config_error(map, err, "a mapping is meant here, such as {%s: …}", keys[0].name);
    for (size_t k = 0; k < n; k++)
        names[k] = keys[k].name;
    for (size_t i = 0; i < config_count(map); i++) {
        struct config_node value, key = config_pair(map, i, &value);
        size_t k;
        enum err code = config_find_key(key, names, n, &k, err);
        if (!code && keys[k].read && config_kind(value) != CONFIG_NOTHING)
            code = keys[k].read(reading, (char *)base + keys[k].at, value, err);
        if (code)
            return code;
    }
    return ERR_OK;
}

enum err config_read_list(const struct config_reading *reading, struct config_node list,
                          config_read_fn each, void *at, struct error *err)
{
    enum err code = ERR_OK;
    if (config_kind(list) != CONFIG_LIST)
        return config_error(list, err, "a list is meant here");
    for (size_t i = 0; !code && i < config_count(list); i++)
        code = each(reading, at, config_item(list, i), err);
    return code;
}

enum err config_into_text(const struct config_reading *reading, void *at, struct config_node node,
                          struct error *err)
{
    struct str text;
    enum err code = config_as_text(node, &text, err);
    if (!code && !text.n)
        return config_error(node, err, "an empty text: leave the key out where nothing is meant");
    if (!code)
        *(const char **)at = str_keep(reading->arena, text).p;
    return code;
}

enum err config_into_str(const struct config_reading *reading, void *at, struct config_node node,
                         struct error *err)
{
    const char *text = "";
    enum err code = config_into_text(reading, &text, node, err);
    if (!code)
        *(struct str *)at = str_of(text);
    return code;
}

enum err config_into_path(const struct config_reading *reading, void *at, struct config_node node,
                          struct error *err)
{
    enum err code = config_into_text(reading, at, node, err);
    struct strbuf whole = {0};
    if (code)
        return code;
    config_file_path(node, &whole);
    *(const char **)at = str_keep(reading->arena, strbuf_str(&whole)).p;
    strbuf_release(&whole);
    return ERR_OK;
}

enum err config_into_duration(const struct config_reading *reading, void *at,
                              struct config_node node, struct error *err)
{
    (void)reading;
    return config_as_duration(node, 0, at, err);
}

enum err config_into_bool(const struct config_reading *reading, void *at, struct config_node node,
                          struct error *err)
{
    (void)reading;
    return config_as_bool(node, at, err);
}

enum err config_into_ratio(const struct config_reading *reading, void *at, struct config_node node,
                           struct error *err)
{
    (void)reading;
    return config_as_ratio(node, at, err);
}

enum err config_into_money(const struct config_reading *reading, void *at, struct config_node node,
                           struct error *err)
{
    (void)reading;
    return config_as_money(node, INT64_MAX / 2, at, err);
}
