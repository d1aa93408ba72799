/* In a cluster, and what each request logs in by.
 *
 * Tokens are asked for by the HTTP client before each try (http_site_options.token): a file's is
 * read then, a plugin's is taken from memory until it nears its end. So nothing has to be told when
 * a token rotates. A refused one (401) makes the plugin run again, at most every 10 s. */
#include "source/kube_access_impl.h"

#include <stdio.h>
#include <stdlib.h>

#include "source/http_impl.h"

static enum err in_cluster(struct kube_access *access, const struct kube_access_options *options,
                           struct error *err)
{
    const char *host = options->host ? options->host : getenv("KUBERNETES_SERVICE_HOST");
    const char *port = options->port ? options->port : getenv("KUBERNETES_SERVICE_PORT");
    const char *folder = options->account_folder ? options->account_folder : KUBE_ACCOUNT_FOLDER;
    struct strbuf text = {0};
    if (!host || !*host)
        return error_set(err, ERR_USAGE,
                         "this is no pod of a cluster (KUBERNETES_SERVICE_HOST is not set): give a "
                         "kubeconfig file");
    bool v6 = strchr(host, ':') != NULL;
    strbuf_addf(&text, "https://%s%s%s:%s", v6 ? "[" : "", host, v6 ? "]" : "",
                port && *port ? port : "443");
    access->url = str_dup(strbuf_str(&text));
    strbuf_clear(&text);
    strbuf_addf(&text, "%s/token", folder);
    access->token_file = str_dup(strbuf_str(&text));
    strbuf_clear(&text);
    strbuf_addf(&text, "%s/ca.crt", folder);
    access->ca_file = str_dup(strbuf_str(&text));
    strbuf_release(&text);
    return ERR_OK;
}

/* Run the plugin, where what it gave is not good any more. Called with the lock held. */
static enum err renew(struct kube_access *access, struct error *err)
{
    time_ms now = clock_now();
    if (access->has_credential && now < access->credential.expires - KUBE_EXEC_EARLY_MS)
        return ERR_OK;
    bool usable = access->has_credential && now < access->credential.expires;
    if (access->failed != TIME_MIN && now >= access->failed &&
        now < access->failed + KUBE_EXEC_PAUSE_MS)
        return usable ? ERR_OK
                      : error_set(err, ERR_AUTH,
                                  "the exec plugin of the kubeconfig failed a moment "
                                  "ago");
    struct strbuf printed = {0};
    struct kube_credential fresh;
    enum err e =
        kube_exec_run(&access->exec, KUBE_EXEC_TIMEOUT_MS, KUBE_EXEC_OUTPUT_MAX, &printed, err);
    if (e == ERR_OK) {
        e = kube_credential_read(strbuf_str(&printed), str_of(access->exec.version), &fresh, err);
        if (e != ERR_OK)
            error_prefix(err, "the exec plugin %s of the kubeconfig", access->exec.argv[0]);
    }
    if (printed.text)
        explicit_bzero(printed.text, printed.room);
    strbuf_release(&printed);
    access->failed = e == ERR_OK ? TIME_MIN : now;
    if (e != ERR_OK)
        return usable ? ERR_OK : e;
    bool other =
        !str_eq(strbuf_str(&fresh.certificate), strbuf_str(&access->credential.certificate));
    access->generation += other;
    kube_credential_release(&access->credential);
    access->credential = fresh;
    access->has_credential = true;
    return ERR_OK;
}

/* The token of a request, for the HTTP client. */
static enum err token_of(void *context, char **ret, struct error *err)
{
    struct kube_access *access = context;
    *ret = NULL;
    if (access->token_file)
        return http_read_secret(access->token_file, "token", ret, err);
    if (access->has_exec) {
        pthread_mutex_lock(&access->lock);
        enum err e = renew(access, err);
        if (e == ERR_OK && access->credential.token.n)
            *ret = str_dup(strbuf_str(&access->credential.token));
        pthread_mutex_unlock(&access->lock);
        return e;
    }
    if (access->token)
        *ret = str_dup(str_of(access->token));
    return ERR_OK;
}

enum err kube_access_new(const struct kube_access_options *options, struct kube_access **ret,
                         struct error *err)
{
    struct kube_access *access = mem_zalloc(1, sizeof *access);
    pthread_mutex_init(&access->lock, NULL);
    access->failed = TIME_MIN;
    enum err e = options->kubeconfig ? kubeconfig_read(access, options, err)
                                     : in_cluster(access, options, err);
    struct http_site *site = NULL;
    if (e == ERR_OK && !access->has_exec) /* is what it names there? */
        e = kube_access_site(access, 1000, 1000, &site, err);
    char *token = NULL;
    if (e == ERR_OK && access->token_file)
        e = token_of(access, &token, err);
    if (token)
        explicit_bzero(token, strlen(token));
    free(token);
    http_site_free(site);
    if (e != ERR_OK) {
        kube_access_free(access);
        return e;
    }
    if (access->insecure) {
        struct strbuf text = {0};
        strbuf_addf(&text,
                    "the certificate of %s is not checked (insecure-skip-tls-verify): whoever "
                    "stands between can read and change everything, tokens included",
                    access->url);
        access->warning = text.text;
    }
    *ret = access;
    return ERR_OK;
}

void kube_access_free(struct kube_access *access)
{
    if (!access)
        return;
    char *const secrets[] = {access->token, access->password};
    for (size_t i = 0; i < sizeof secrets / sizeof *secrets; i++) {
        if (secrets[i])
            explicit_bzero(secrets[i], strlen(secrets[i]));
        free(secrets[i]);
    }
    char *const texts[] = {access->url,        access->connect_to, access->proxy,
                           access->warning,    access->ca_file,    access->cert_file,
                           access->key_file,   access->token_file, access->user,
                           access->impersonate};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        free(texts[i]);
    if (access->key_pem.text)
        explicit_bzero(access->key_pem.text, access->key_pem.room);
    strbuf_release(&access->ca_pem);
    strbuf_release(&access->cert_pem);
    strbuf_release(&access->key_pem);
    kube_exec_release(&access->exec);
    kube_credential_release(&access->credential);
    pthread_mutex_destroy(&access->lock);
    free(access);
}

const char *kube_access_url(const struct kube_access *access)
{
    return access->url;
}

const char *kube_access_warning(const struct kube_access *access)
{
    return access->warning;
}

enum err kube_access_site(struct kube_access *access, time_ms connect_ms, time_ms idle_ms,
                          struct http_site **ret, struct error *err)
{
    const char *headers[] = {access->impersonate};
    struct http_site_options options = {
        .url = access->url,
        .user = access->user,
        .client_cert = access->cert_file,
        .client_key = access->key_file,
        .ca_file = access->ca_file,
        .client_cert_pem = strbuf_str(&access->cert_pem),
        .client_key_pem = strbuf_str(&access->key_pem),
        .ca_pem = strbuf_str(&access->ca_pem),
        .connect_to = access->connect_to,
        .insecure = access->insecure,
        .headers = headers,
        .headers_n = access->impersonate ? 1 : 0,
        .proxy = access->proxy,
        .connect_timeout_ms = connect_ms,
        .idle_timeout_ms = idle_ms,
        .password = access->password,
    };
    if (access->token || access->token_file || access->has_exec) {
        options.token = token_of;
        options.token_context = access;
    }
    if (!access->has_exec)
        return http_site_new(&options, ret, err);
    pthread_mutex_lock(&access->lock);
    enum err e = renew(access, err);
    if (e == ERR_OK && access->credential.certificate.n) {
        options.client_cert = options.client_key = NULL;
        options.client_cert_pem = strbuf_str(&access->credential.certificate);
        options.client_key_pem = strbuf_str(&access->credential.key);
    }
    if (e == ERR_OK)
        e = http_site_new(&options, ret, err);
    pthread_mutex_unlock(&access->lock);
    return e;
}

uint64_t kube_access_generation(struct kube_access *access)
{
    pthread_mutex_lock(&access->lock);
    uint64_t generation = access->generation;
    pthread_mutex_unlock(&access->lock);
    return generation;
}

void kube_access_refused(struct kube_access *access)
{
    pthread_mutex_lock(&access->lock);
    if (access->has_exec)
        access->credential.expires = TIME_MIN + KUBE_EXEC_EARLY_MS;
    pthread_mutex_unlock(&access->lock);
}
