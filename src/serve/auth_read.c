/* The section `access:` of the configuration.
 *
 *     access:
 *       allow_anonymous: false
 *       tokens:
 *         - name: grafana
 *           hash: sha256:5e88…
 *           scopes: [read]
 *         - name: search
 *           hash: sha256:…
 *           teams: [search]
 *           namespaces: [svc]
 *       certificates:
 *         - name: prometheus-*               (common name, * and ? allowed)
 *           scopes: [metrics]
 *       proxy:
 *         addresses: [10.0.0.0/8]
 *         header: X-Forwarded-User
 *         users:
 *           - name: "*"
 *             scopes: [read] */
#include <arpa/inet.h>
#include <stdlib.h>
#include <xxhash.h>

#include "serve/auth_impl.h"
#include "util/config_table.h"

#define NAMES_IN_VIEW_MAX 1000
#define GRANTS_MAX 10000

/* ---- addresses ---- */

static bool address_parse(struct str text, unsigned char ret[16])
{
    char buf[64];
    struct in_addr v4;
    if (text.n >= sizeof buf)
        return false;
    memcpy(buf, text.p, text.n);
    buf[text.n] = 0;
    if (inet_pton(AF_INET, buf, &v4) == 1) {
        memset(ret, 0, 10);
        memset(ret + 10, 0xff, 2);
        memcpy(ret + 12, &v4, 4);
        return true;
    }
    return inet_pton(AF_INET6, buf, ret) == 1;
}

bool network_parse(struct str text, struct network *ret)
{
    const char *slash = text.n ? memchr(text.p, '/', text.n) : NULL;
    struct str address = {text.p, slash ? (size_t)(slash - text.p) : text.n};
    bool v4 = memchr(address.p, '.', address.n) && !memchr(address.p, ':', address.n);
    long long bits = v4 ? 32 : 128;
    if (!address_parse(address, ret->bytes))
        return false;
    if (slash && (!str_to_i64((struct str){slash + 1, text.n - address.n - 1}, &bits) || bits < 0 ||
                  bits > (v4 ? 32 : 128)))
        return false;
    ret->bits = (int)bits + (v4 ? 96 : 0);
    return true;
}

bool address_in(struct str address, const struct network *network)
{
    unsigned char bytes[16];
    if (!address_parse(address, bytes))
        return false;
    for (int bit = 0; bit < network->bits; bit++) {
        int mask = 0x80 >> bit % 8;
        if ((bytes[bit / 8] & mask) != (network->bytes[bit / 8] & mask))
            return false;
    }
    return true;
}

/* ---- the section ---- */

static enum err read_keys(struct config_node map, const char *const *keys, size_t n,
                          struct config_node *values, struct error *err)
{
    if (config_kind(map) != CONFIG_MAP)
        return config_error(map, err, "a mapping is needed here");
    return config_read_values(map, keys, n, values, err);
}

static enum err read_names(struct auth *auth, struct config_node list, const struct str **ret,
                           size_t *ret_n, struct error *err)
{
    if (config_kind(list) == CONFIG_NOTHING)
        return ERR_OK;
    if (config_kind(list) != CONFIG_LIST || config_count(list) == 0 ||
        config_count(list) > NAMES_IN_VIEW_MAX)
        return config_error(list, err, "a list of names is needed here, such as [search]");
    size_t n = config_count(list);
    struct str *names = arena_alloc(&auth->arena, n * sizeof *names);
    for (size_t i = 0; i < n; i++) {
        struct config_node item = config_item(list, i);
        enum err code = config_as_text(item, &names[i], err);
        if (code != ERR_OK)
            return code;
        if (!names[i].n)
            return config_error(item, err, "a name is empty");
        names[i] = str_keep(&auth->arena, names[i]);
    }
    *ret = names;
    *ret_n = n;
    return ERR_OK;
}

static enum err read_scopes(struct config_node list, unsigned *ret, struct error *err)
{
    *ret = SCOPE_BIT(SCOPE_READ) | SCOPE_BIT(SCOPE_METRICS);
    if (config_kind(list) == CONFIG_NOTHING)
        return ERR_OK;
    if (config_kind(list) != CONFIG_LIST || config_count(list) == 0)
        return config_error(list, err, "a list of scopes is needed here, such as [read]");
    *ret = 0;
    for (size_t i = 0; i < config_count(list); i++) {
        struct str word = config_text(config_item(list, i));
        int scope = SCOPE_NONE + 1;
        while (scope < SCOPE_COUNT && !str_eq(word, str_of(scope_words[scope])))
            scope++;
        if (scope == SCOPE_COUNT)
            return config_error(config_item(list, i), err,
                                "'%.*s' is no scope: there are read, write and metrics",
                                STR_ARG(word));
        *ret |= SCOPE_BIT(scope);
        if (scope == SCOPE_READ) /* /metrics says nothing that /report does not */
            *ret |= SCOPE_BIT(SCOPE_METRICS);
    }
    return ERR_OK;
}

static void find_digest(struct view_of *view)
{
    uint64_t digest = 1;
    for (size_t i = 0; i < view->teams_n; i++)
        digest = XXH3_64bits_withSeed(view->teams[i].p, view->teams[i].n, digest);
    digest = XXH3_64bits_withSeed("/", 1, digest);
    for (size_t i = 0; i < view->namespaces_n; i++)
        digest = XXH3_64bits_withSeed(view->namespaces[i].p, view->namespaces[i].n, digest);
    view->digest = digest ? digest : 1;
}

static bool unhex(struct str text, unsigned char *ret, size_t n)
{
    static const char digits[] = "0123456789abcdef";
    if (text.n != 2 * n)
        return false;
    for (size_t i = 0; i < text.n; i++) {
        char c = text.p[i];
        const char *at = strchr(digits, c >= 'A' && c <= 'F' ? c + 32 : c);
        if (!c || !at)
            return false;
        ret[i / 2] = (unsigned char)(ret[i / 2] << 4 | (at - digits));
    }
    return true;
}

static enum err read_hash(struct config_node node, unsigned char *ret, struct error *err)
{
    struct str text = config_text(node), head = STR("sha256:");
    if (str_starts(text, head) &&
        unhex((struct str){text.p + head.n, text.n - head.n}, ret, AUTH_HASH_BYTES))
        return ERR_OK;
    return config_error(node, err,
                        "a token's hash is sha256: and 64 hexadecimal digits; gputally config "
                        "token makes a token and prints its hash");
}

static enum err read_grant(struct auth *auth, enum grant_kind kind, struct config_node item,
                           struct error *err)
{
    static const char *const keys[] = {"name", "scopes", "teams", "namespaces", "hash"};
    struct config_node values[5] = {0};
    struct grant grant = {.kind = kind};
    enum err code = read_keys(item, keys, kind == GRANT_TOKEN ? 5 : 4, values, err);
    if (code == ERR_OK && !config_text(values[0]).n)
        code = config_error(item, err, "a name is missing: name: …");
    if (code == ERR_OK)
        code = read_scopes(values[1], &grant.scopes, err);
    if (code == ERR_OK)
        code = read_names(auth, values[2], &grant.view.teams, &grant.view.teams_n, err);
    if (code == ERR_OK)
        code = read_names(auth, values[3], &grant.view.namespaces, &grant.view.namespaces_n, err);
    if (code == ERR_OK && kind == GRANT_TOKEN)
        code =
            read_hash(config_kind(values[4]) == CONFIG_NOTHING ? item : values[4], grant.hash, err);
    if (code != ERR_OK)
        return code;
    grant.name = str_keep(&auth->arena, config_text(values[0]));
    grant.view.limited = grant.view.teams_n || grant.view.namespaces_n;
    if (grant.view.limited)
        find_digest(&grant.view);
    mem_push(auth->grants, auth->grants_n, auth->grants_room, grant);
    return ERR_OK;
}

static enum err read_grants(struct auth *auth, enum grant_kind kind, struct config_node list,
                            struct error *err)
{
    if (config_kind(list) == CONFIG_NOTHING)
        return ERR_OK;
    if (config_kind(list) != CONFIG_LIST || config_count(list) > GRANTS_MAX)
        return config_error(list, err, "a list of at most %d is needed here", GRANTS_MAX);
    enum err code = ERR_OK;
    for (size_t i = 0; i < config_count(list) && code == ERR_OK; i++)
        code = read_grant(auth, kind, config_item(list, i), err);
    return code;
}

static enum err read_proxy(struct auth *auth, struct config_node node, struct error *err)
{
    static const char *const keys[] = {"addresses", "header", "users"};
    struct config_node values[3] = {0};
    if (config_kind(node) == CONFIG_NOTHING)
        return ERR_OK;
    enum err code = read_keys(node, keys, 3, values, err);
    if (code != ERR_OK)
        return code;
    if (config_kind(values[0]) != CONFIG_LIST || config_count(values[0]) == 0 ||
        config_count(values[0]) > AUTH_PROXIES_MAX)
        return config_error(node, err, "addresses: a list such as [10.0.0.7, 10.1.0.0/16]");
    for (size_t i = 0; i < config_count(values[0]); i++) {
        struct config_node item = config_item(values[0], i);
        if (!network_parse(config_text(item), &auth->proxies[auth->proxies_n++]))
            return config_error(item, err, "'%.*s' is no address and no network such as 10.0.0.0/8",
                                STR_ARG(config_text(item)));
    }
    if (!config_text(values[1]).n)
        return config_error(node, err, "header: the name of the header, such as X-Forwarded-User");
    auth->proxy_header = str_keep(&auth->arena, config_text(values[1]));
    return read_grants(auth, GRANT_PROXY, values[2], err);
}

enum err auth_read(struct auth *auth, struct config_node section, struct error *err)
{
    static const char *const keys[] = {"allow_anonymous", "tokens", "certificates", "proxy"};
    struct config_node values[4] = {0};
    if (config_kind(section) == CONFIG_NOTHING)
        return ERR_OK;
    enum err code = read_keys(section, keys, 4, values, err);
    if (code == ERR_OK && config_kind(values[0]) != CONFIG_NOTHING)
        code = config_as_bool(values[0], &auth->allow_anonymous, err);
    if (code == ERR_OK)
        code = read_grants(auth, GRANT_TOKEN, values[1], err);
    if (code == ERR_OK)
        code = read_grants(auth, GRANT_CERTIFICATE, values[2], err);
    auth->wants_certificate = config_count(values[2]) > 0;
    return code == ERR_OK ? read_proxy(auth, values[3], err) : code;
}
