/* Where a server is and how to log in: the URL is taken apart, so that credentials never stand in a
 * text, and secrets are looked at once, so that a wrong path is said before anything is asked. */
#include <ctype.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "source/http_impl.h"

static pthread_once_t curl_once = PTHREAD_ONCE_INIT;

static void curl_begin(void)
{
    curl_global_init(CURL_GLOBAL_DEFAULT);
}

static char *dup_or_null(const char *text)
{
    return text ? str_dup(str_of(text)) : NULL;
}

static bool has_control(const char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < 0x20 || *text == 0x7f)
            return true;
    return false;
}

enum err http_read_secret(const char *path, const char *what, char **ret, struct error *err)
{
    FILE *file = fopen(path, "re");
    if (!file)
        return error_set(err, ERR_IO, "cannot read the %s file %s: %s", what, path,
                         strerror(errno));
    char *text = mem_alloc(HTTP_SECRET_MAX + 1);
    size_t n = fread(text, 1, HTTP_SECRET_MAX + 1, file);
    bool broken = ferror(file) != 0;
    fclose(file);
    if (broken || n > HTTP_SECRET_MAX) {
        free(text);
        return error_set(err, ERR_IO, "cannot read the %s file %s: %s", what, path,
                         broken ? strerror(errno) : "it is too long");
    }
    while (n && isspace((unsigned char)text[n - 1]))
        n--;
    text[n] = '\0';
    size_t skip = strspn(text, " \t\r\n");
    memmove(text, text + skip, n - skip + 1);
    if (!*text || has_control(text)) {
        free(text);
        return error_set(err, ERR_IO, "the %s file %s %s", what, path,
                         n == skip ? "is empty" : "holds more than one line");
    }
    *ret = text;
    return ERR_OK;
}

static void strip_end(char *url, const char *end)
{
    size_t n = strlen(url), m = strlen(end);
    if (n > m && strcmp(url + n - m, end) == 0)
        url[n - m] = '\0';
}

bool http_url_has_scheme(const char *url)
{
    return strncasecmp(url, "http://", 7) == 0 || strncasecmp(url, "https://", 8) == 0;
}

/* What curl cannot take apart would be told at each request only. */
static enum err check_proxy(const char *text, struct error *err)
{
    CURLU *url = curl_url();
    CURLUcode code =
        curl_url_set(url, CURLUPART_URL, text, CURLU_GUESS_SCHEME | CURLU_NON_SUPPORT_SCHEME);
    curl_url_cleanup(url);
    return code == CURLUE_OK ? ERR_OK
                             : error_set(err, ERR_USAGE,
                                         "the proxy's URL is not usable: %s: give it as "
                                         "http://HOST:PORT",
                                         curl_url_strerror(code));
}

/* Take the URL apart: credentials go to the site, the rest is put together again without them. */
static enum err site_url(struct http_site *site, const char *text, bool keep, struct error *err)
{
    CURLU *url = curl_url();
    char *scheme = NULL, *query = NULL, *fragment = NULL, *user = NULL, *password = NULL;
    char *whole = NULL;
    enum err e = ERR_OK;
    bool bare = !strstr(text, "://");
    CURLUcode code = curl_url_set(url, CURLUPART_URL, text, bare ? CURLU_DEFAULT_SCHEME : 0);
    if (bare)
        curl_url_set(url, CURLUPART_SCHEME, "http", 0);
    if (code == CURLUE_OK)
        code = curl_url_get(url, CURLUPART_SCHEME, &scheme, 0);
    if (code != CURLUE_OK || (strcmp(scheme, "http") != 0 && strcmp(scheme, "https") != 0)) {
        e = error_set(err, ERR_USAGE,
                      "the server's URL is not usable%s%s: give it as "
                      "http://HOST:PORT or https://HOST/PREFIX",
                      code == CURLUE_OK ? "" : ": ",
                      code == CURLUE_OK ? "" : curl_url_strerror(code));
        goto out;
    }
    if ((curl_url_get(url, CURLUPART_QUERY, &query, 0) == CURLUE_OK && !keep) ||
        curl_url_get(url, CURLUPART_FRAGMENT, &fragment, 0) == CURLUE_OK) {
        e = error_set(err, ERR_USAGE, "the server's URL has a part after %c: give its address only",
                      fragment ? '#' : '?');
        goto out;
    }
    if (curl_url_get(url, CURLUPART_USER, &user, CURLU_URLDECODE) == CURLUE_OK)
        site->user = str_dup(str_of(user));
    if (curl_url_get(url, CURLUPART_PASSWORD, &password, CURLU_URLDECODE) == CURLUE_OK)
        site->password = str_dup(str_of(password));
    curl_url_set(url, CURLUPART_USER, NULL, 0);
    curl_url_set(url, CURLUPART_PASSWORD, NULL, 0);
    curl_url_set(url, CURLUPART_QUERY, NULL, 0);
    site->query = dup_or_null(query);
    if (curl_url_get(url, CURLUPART_URL, &whole, 0) != CURLUE_OK) {
        e = error_set(err, ERR_USAGE, "the server's URL is not usable");
        goto out;
    }
    site->url = str_dup(str_of(whole));
    /* People paste the address of a page or of the API. */
    static const char *const ends[] = {"/", "/graph", "/read", "/query", "/api/v1", "/"};
    for (size_t i = 0; !keep && i < sizeof ends / sizeof *ends; i++)
        strip_end(site->url, ends[i]);
out:
    curl_free(scheme);
    curl_free(query);
    curl_free(fragment);
    curl_free(user);
    curl_free(password);
    curl_free(whole);
    curl_url_cleanup(url);
    return e;
}

static enum err site_headers(struct http_site *site, const struct http_site_options *options,
                             struct error *err)
{
    for (size_t i = 0; i < options->headers_n; i++) {
        const char *header = options->headers[i];
        const char *colon = strchr(header, ':');
        if (!colon || colon == header || has_control(header))
            return error_set(err, ERR_USAGE,
                             "header number %zu is none: give it as 'NAME: VALUE', on one line",
                             i + 1);
        site->headers = curl_slist_append(site->headers, header);
    }
    return ERR_OK;
}

/* Is everything there that each try will need? */
static enum err site_secrets(const struct http_site *site, struct error *err)
{
    char *secret = NULL;
    enum err e = ERR_OK;
    if (site->bearer_token_file)
        e = http_read_secret(site->bearer_token_file, "bearer token", &secret, err);
    free(secret);
    secret = NULL;
    if (e == ERR_OK && site->password_file)
        e = http_read_secret(site->password_file, "password", &secret, err);
    free(secret);
    const char *const files[] = {site->client_cert, site->client_key, site->ca_file};
    for (size_t i = 0; e == ERR_OK && i < 3; i++) {
        FILE *file = files[i] ? fopen(files[i], "re") : NULL;
        if (files[i] && !file)
            e = error_set(err, ERR_IO, "cannot read the certificate file %s: %s", files[i],
                          strerror(errno));
        if (file)
            fclose(file);
    }
    return e;
}

static char *pem_or_null(struct str text)
{
    return text.n ? str_dup(text) : NULL;
}

enum err http_site_new(const struct http_site_options *options, struct http_site **ret,
                       struct error *err)
{
    pthread_once(&curl_once, curl_begin);
    struct http_site *site = mem_zalloc(1, sizeof *site);
    enum err e = site_url(site, options->url ? options->url : "", options->whole, err);
    if (e == ERR_OK && options->proxy)
        e = check_proxy(options->proxy, err);
    if (e == ERR_OK)
        e = site_headers(site, options, err);
    if (e != ERR_OK)
        goto out;
    if (options->user) {
        free(site->user);
        site->user = str_dup(str_of(options->user));
    }
    if (options->password) {
        free(site->password);
        site->password = str_dup(str_of(options->password));
    }
    site->password_file = dup_or_null(options->password_file);
    site->bearer_token_file = dup_or_null(options->bearer_token_file);
    site->client_cert = dup_or_null(options->client_cert);
    site->client_key = dup_or_null(options->client_key);
    site->ca_file = dup_or_null(options->ca_file);
    site->proxy = dup_or_null(options->proxy);
    site->client_cert_pem = pem_or_null(options->client_cert_pem);
    site->client_key_pem = pem_or_null(options->client_key_pem);
    site->ca_pem = pem_or_null(options->ca_pem);
    site->token = options->token;
    site->token_context = options->token_context;
    if (options->connect_to)
        site->connect_to = curl_slist_append(NULL, options->connect_to);
    site->insecure = options->insecure;
    site->connect_timeout_ms = options->connect_timeout_ms;
    site->idle_timeout_ms = options->idle_timeout_ms;
    site->backoff_ms = options->backoff_ms;
    site->retries = options->retries;
    if (site->password_file && !site->user)
        e = error_set(err, ERR_USAGE, "a password file needs a user name: give one too");
    else
        e = site_secrets(site, err);
out:
    if (e != ERR_OK)
        http_site_free(site);
    else
        *ret = site;
    return e;
}

void http_site_free(struct http_site *site)
{
    if (!site)
        return;
    char *const texts[] = {site->url,
                           site->query,
                           site->user,
                           site->password,
                           site->password_file,
                           site->client_cert,
                           site->client_key,
                           site->ca_file,
                           site->proxy,
                           site->bearer_token_file,
                           site->client_cert_pem,
                           site->ca_pem};
    if (site->client_key_pem)
        explicit_bzero(site->client_key_pem, strlen(site->client_key_pem));
    free(site->client_key_pem);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        free(texts[i]);
    curl_slist_free_all(site->headers);
    curl_slist_free_all(site->connect_to);
    free(site);
}

const char *http_site_url(const struct http_site *site)
{
    return site->url;
}

void http_encode(struct strbuf *buf, struct str text)
{
    static const char hex[] = "0123456789ABCDEF";
    for (size_t i = 0; i < text.n; i++) {
        unsigned char c = (unsigned char)text.p[i];
        if (isalnum(c) || (c && strchr("-._~", c))) {
            strbuf_addc(buf, (char)c);
        } else {
            strbuf_addc(buf, '%');
            strbuf_addc(buf, hex[c >> 4]);
            strbuf_addc(buf, hex[c & 15]);
        }
    }
}
