/* A kubeconfig: clusters, users and contexts by name; a context joins one of each.
 *
 * What stands as *-data goes before the file of the same name, and a token file before a token, as
 * kubectl has it. Relative paths are relative to the kubeconfig. Keys that are not known are passed
 * over; those that would change who logs in, and cannot be honoured, are refused. */
#include <errno.h>
#include <stdlib.h>

#include "source/kube_access_impl.h"
#include "util/config_file.h"

struct reading {
    struct kube_access *access;
    const struct kube_access_options *options;
    struct config_file *file;
    struct str folder; /* of the kubeconfig, with the slash at its end; empty: here */
};

static char *text_or_null(struct config_node node)
{
    struct str text = config_text(node);
    return text.n ? str_dup(text) : NULL;
}

static char *path_or_null(const struct reading *r, struct config_node node)
{
    struct str text = config_text(node);
    struct strbuf path = {0};
    if (text.n == 0)
        return NULL;
    if (text.p[0] != '/')
        strbuf_add(&path, r->folder);
    strbuf_add(&path, text);
    return path.text;
}

static int digit_of(char c)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *at = c ? strchr(digits, c) : NULL;
    return at ? (int)(at - digits) : -1;
}

/* Base64 with padding; white space between is passed over. False where it is none. */
static bool decode_base64(struct str text, struct strbuf *ret)
{
    uint32_t bits = 0;
    int held = 0, padding = 0;
    for (size_t i = 0; i < text.n; i++) {
        if (strchr(" \t\r\n", text.p[i]) && text.p[i])
            continue;
        int digit = digit_of(text.p[i]);
        padding += text.p[i] == '=';
        if ((digit < 0 && text.p[i] != '=') || (digit >= 0 && padding) || padding > 2)
            return false;
        if (digit < 0)
            continue;
        bits = bits << 6 | (uint32_t)digit;
        held += 6;
        if (held >= 8) {
            held -= 8;
            strbuf_addc(ret, (char)(bits >> held & 0xff));
        }
    }
    return held < 6 && (held == 0 || (bits & ((1u << held) - 1)) == 0);
}

/* KEY-data as PEM, else KEY as a path. */
static enum err certificate(const struct reading *r, struct config_node map, const char *key,
                            struct strbuf *ret_pem, char **ret_file, struct error *err)
{
    char name[64];
    snprintf(name, sizeof name, "%s-data", key);
    struct config_node data = config_get(map, str_of(name));
    struct str text = config_text(data);
    if (text.n == 0) {
        *ret_file = path_or_null(r, config_get(map, str_of(key)));
        return ERR_OK;
    }
    if (text.n > KUBE_PEM_MAX)
        return config_error(data, err, "%s is longer than %zu MiB", name, KUBE_PEM_MAX >> 20);
    if (!decode_base64(text, ret_pem))
        return config_error(data, err, "%s is not base64", name);
    if (!ret_pem->text || !strstr(ret_pem->text, "-----BEGIN "))
        return config_error(data, err, "%s holds no PEM", name);
    return ERR_OK;
}

/* The item of a list of {name, KEY} with this name: its KEY. */
static enum err named(const struct reading *r, const char *list, const char *key, struct str name,
                      struct config_node asked_by, struct config_node *ret, struct error *err)
{
    struct config_node items = config_get(config_root(r->file), str_of(list));
    for (size_t i = 0; i < config_count(items) && config_kind(items) == CONFIG_LIST; i++) {
        struct config_node item = config_item(items, i);
        if (!str_eq(config_text(config_get(item, STR("name"))), name))
            continue;
        *ret = config_get(item, str_of(key));
        if (config_kind(*ret) == CONFIG_MAP)
            return ERR_OK;
        if (config_kind(*ret) == CONFIG_NOTHING && strcmp(key, "user") == 0)
            return ERR_OK; /* nobody in particular */
        return config_error(item, err, "%s of %s '%.*s' is no mapping", key, list, STR_ARG(name));
    }
    return config_error(asked_by, err, "there is no '%.*s' among %s", STR_ARG(name), list);
}

/* tls-server-name: the certificate is of that name, the server at the URL's address. */
static enum err server_name(struct kube_access *access, struct config_node node, struct error *err)
{
    struct str name = config_text(node);
    struct strbuf url = {0}, to = {0};
    const char *host = strstr(access->url, "://");
    host = host ? host + 3 : access->url;
    const char *rest = host + strcspn(host, "/"), *port = NULL;
    const char *after = *host == '[' ? strchr(host, ']') : host;
    if (after)
        port = memchr(after, ':', (size_t)(rest - after));
    if (!after || name.n == 0 || name.n > 253)
        return config_error(node, err, "tls-server-name cannot be used");
    struct str address = {host, (size_t)((port ? port : rest) - host)};
    struct str number = port ? (struct str){port + 1, (size_t)(rest - port - 1)} : STR("443");
    strbuf_addf(&url, "https://%.*s:%.*s%s", STR_ARG(name), STR_ARG(number), rest);
    strbuf_addf(&to, "%.*s:%.*s:%.*s:%.*s", STR_ARG(name), STR_ARG(number), STR_ARG(address),
                STR_ARG(number));
    free(access->url);
    access->url = url.text;
    access->connect_to = to.text;
    return ERR_OK;
}

static enum err read_cluster(const struct reading *r, struct config_node cluster, struct error *err)
{
    struct kube_access *access = r->access;
    struct config_node server = config_get(cluster, STR("server"));
    struct config_node unchecked = config_get(cluster, STR("insecure-skip-tls-verify"));
    struct config_node other = config_get(cluster, STR("tls-server-name"));
    access->url = text_or_null(server);
    if (!access->url)
        return config_error(cluster, err, "the cluster has no server");
    access->proxy = text_or_null(config_get(cluster, STR("proxy-url")));
    enum err e =
        certificate(r, cluster, "certificate-authority", &access->ca_pem, &access->ca_file, err);
    if (e == ERR_OK && config_kind(unchecked) != CONFIG_NOTHING)
        e = config_as_bool(unchecked, &access->insecure, err);
    if (e == ERR_OK && access->insecure && (access->ca_pem.n || access->ca_file))
        e = config_error(unchecked, err,
                         "insecure-skip-tls-verify and certificate-authority exclude each other");
    if (e == ERR_OK && config_kind(other) != CONFIG_NOTHING)
        e = server_name(access, other, err);
    return e;
}

static void push_word(char ***words, size_t *n, size_t *room, char *word)
{
    mem_push(*words, *n, *room, word);
}

/* The server, for plugins that ask for it (KUBERNETES_EXEC_INFO). */
static char *exec_info(const struct kube_access *access, const char *version, bool with_cluster)
{
    struct strbuf text = {0};
    strbuf_addf(&text,
                "{\"apiVersion\":\"%s\",\"kind\":\"ExecCredential\",\"spec\":{"
                "\"interactive\":false",
                version);
    bool plain = !strpbrk(access->url, "\"\\");
    if (with_cluster && plain)
        strbuf_addf(&text, ",\"cluster\":{\"server\":\"%s\"%s}", access->url,
                    access->insecure ? ",\"insecure-skip-tls-verify\":true" : "");
    strbuf_add(&text, STR("}}"));
    return text.text;
}

static enum err exec_words(struct kube_exec *exec, struct config_node node, struct error *err)
{
    struct config_node args = config_get(node, STR("args")), env = config_get(node, STR("env"));
    if (config_count(args) + config_count(env) > KUBE_EXEC_WORDS_MAX)
        return config_error(node, err, "more than %d arguments", KUBE_EXEC_WORDS_MAX);
    for (size_t i = 0; config_kind(args) == CONFIG_LIST && i < config_count(args); i++)
        push_word(&exec->argv, &exec->argc, &exec->argv_room,
                  str_dup(config_text(config_item(args, i))));
    push_word(&exec->argv, &exec->argc, &exec->argv_room, NULL);
    exec->argc--;
    for (size_t i = 0; config_kind(env) == CONFIG_LIST && i < config_count(env); i++) {
        struct config_node item = config_item(env, i);
        struct str name = config_text(config_get(item, STR("name")));
        struct strbuf word = {0};
        if (name.n == 0 || memchr(name.p, '=', name.n))
            return config_error(item, err, "an environment variable without a name");
        strbuf_addf(&word, "%.*s=%.*s", STR_ARG(name),
                    STR_ARG(config_text(config_get(item, STR("value")))));
        push_word(&exec->env, &exec->env_n, &exec->env_room, word.text);
    }
    return ERR_OK;
}

static enum err read_exec(const struct reading *r, struct config_node node, struct error *err)
{
    static const char *const versions[] = {"client.authentication.k8s.io/v1",
                                           "client.authentication.k8s.io/v1beta1"};
    struct kube_exec *exec = &r->access->exec;
    struct str version = config_text(config_get(node, STR("apiVersion")));
    struct str command = config_text(config_get(node, STR("command")));
    bool cluster = false;
    if (command.n == 0)
        return config_error(node, err, "exec has no command");
    if (!r->options->allow_exec)
        return config_error(node, err,
                            "this user logs in by running '%.*s', and running commands of a "
                            "kubeconfig is not allowed: allow it (exec plugins), or use a user "
                            "with a token or a certificate",
                            STR_ARG(command));
    for (size_t i = 0; i < 2; i++)
        if (str_eq(version, str_of(versions[i])))
            exec->version = str_dup(version);
    if (!exec->version)
        return config_error(node, err, "exec of apiVersion '%.*s'; known are %s and %s",
                            STR_ARG(version), versions[0], versions[1]);
    if (str_eq(config_text(config_get(node, STR("interactiveMode"))), STR("Always")))
        return config_error(node, err, "the plugin wants to ask people, and nobody is there");
    bool has_slash = memchr(command.p, '/', command.n) != NULL;
    push_word(&exec->argv, &exec->argc, &exec->argv_room,
              has_slash ? path_or_null(r, config_get(node, STR("command"))) : str_dup(command));
    struct config_node provide = config_get(node, STR("provideClusterInfo"));
    enum err e = exec_words(exec, node, err);
    if (e == ERR_OK && config_kind(provide) != CONFIG_NOTHING)
        e = config_as_bool(provide, &cluster, err);
    exec->hint = text_or_null(config_get(node, STR("installHint")));
    exec->info = exec_info(r->access, exec->version, cluster);
    r->access->has_exec = true;
    return e;
}

static enum err read_user(const struct reading *r, struct config_node user, struct error *err)
{
    struct kube_access *access = r->access;
    static const char *const refused[] = {"auth-provider", "as-uid", "as-groups", "as-user-extra"};
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        struct config_node node = config_get(user, str_of(refused[i]));
        if (config_kind(node) != CONFIG_NOTHING)
            return config_error(node, err,
                                "%s is not supported: use a token, a certificate or "
                                "exec",
                                refused[i]);
    }
    enum err e =
        certificate(r, user, "client-certificate", &access->cert_pem, &access->cert_file, err);
    if (e == ERR_OK)
        e = certificate(r, user, "client-key", &access->key_pem, &access->key_file, err);
    bool has_certificate = access->cert_pem.n || access->cert_file;
    if (e == ERR_OK && has_certificate != (access->key_pem.n || access->key_file))
        e = config_error(user, err, "a client certificate and its key belong together");
    access->token_file = path_or_null(r, config_get(user, STR("tokenFile")));
    access->token = text_or_null(config_get(user, STR("token")));
    access->user = text_or_null(config_get(user, STR("username")));
    access->password = text_or_null(config_get(user, STR("password")));
    struct config_node as = config_get(user, STR("as")), exec = config_get(user, STR("exec"));
    if (e == ERR_OK && config_text(as).n) {
        struct strbuf header = {0};
        strbuf_addf(&header, "Impersonate-User: %.*s", STR_ARG(config_text(as)));
        access->impersonate = header.text;
    }
    if (e == ERR_OK && config_kind(exec) != CONFIG_NOTHING && !access->token &&
        !access->token_file && !has_certificate)
        e = read_exec(r, exec, err);
    return e;
}

enum err kubeconfig_read(struct kube_access *access, const struct kube_access_options *options,
                         struct error *err)
{
    struct reading r = {.access = access, .options = options};
    const char *slash = strrchr(options->kubeconfig, '/');
    r.folder =
        (struct str){options->kubeconfig, slash ? (size_t)(slash - options->kubeconfig) + 1 : 0};
    enum err e = config_file_read(options->kubeconfig, &r.file, err);
    if (e != ERR_OK)
        return e;
    struct config_node root = config_root(r.file), context, cluster, user;
    struct config_node current = config_get(root, STR("current-context"));
    struct str name = options->context ? str_of(options->context) : config_text(current);
    if (config_kind(root) != CONFIG_MAP ||
        config_kind(config_get(root, STR("clusters"))) != CONFIG_LIST) {
        e = config_error(root, err, "is no kubeconfig: it has no clusters");
        goto out;
    }
    if (name.n == 0) {
        e = config_error(root, err, "has no current-context: name a context");
        goto out;
    }
    e = named(&r, "contexts", "context", name, options->context ? root : current, &context, err);
    if (e != ERR_OK)
        goto out;
    e = named(&r, "clusters", "cluster", config_text(config_get(context, STR("cluster"))), context,
              &cluster, err);
    if (e == ERR_OK)
        e = read_cluster(&r, cluster, err);
    struct str who = config_text(config_get(context, STR("user")));
    if (e == ERR_OK && who.n)
        e = named(&r, "users", "user", who, context, &user, err);
    if (e == ERR_OK && who.n && config_kind(user) == CONFIG_MAP)
        e = read_user(&r, user, err);
out:
    config_file_free(r.file);
    return e;
}
