/* One request over libcurl, and the rules by which it is tried again.
 *
 * Each thread that asks has a client of its own, with one easy handle: the connection is kept, the
 * body is decoded inside the write callback while it is still in the cache, and a decoder that is
 * slow holds the server back through TCP. (A multi handle with a queue of blocks to workers costs a
 * copy of every byte and code for pausing, and gains nothing where a handful of requests run.) */
#include "source/http.h"

#include <ctype.h>
#include <curl/curl.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <strings.h>
#include <time.h>

#define ERROR_BODY_MAX ((size_t)4096)       /* bytes kept of an error answer */
#define ERROR_BODY_READ ((uint64_t)1 << 16) /* read before it is given up */
#define RECEIVE_BYTES 262144L
#define BROKEN_TRIES 2 /* bodies that cannot be read are asked again so often */
#define TIMEOUT_TRIES 1
#define SLOW_BYTES_A_SECOND 64L /* slower than this is standing still */
#define PAUSE_STEP_MS 50
/* A server that sends a frame a series wakes us for a few kB each time: where so little came, a
 * pause lets more of it gather, and the next call of the kernel brings it at once. Measured with
 * Prometheus 2.42: 40 % less CPU, no more time. */
#define GATHER_BYTES 262144
#define GATHER_NS 1000000L

struct http_site {
    char *url;             /* scheme://host[:port][/prefix] */
    char *user, *password; /* from the URL or the options; password NULL: from the file */
    char *bearer_token_file, *password_file;
    char *client_cert, *client_key, *ca_file, *proxy;
    struct curl_slist *headers;
    bool insecure;
    time_ms connect_timeout_ms, idle_timeout_ms, backoff_ms;
    int retries;
    atomic_bool met; /* it has answered once: a wrong address is then no more the likely cause */
};

struct http_client {
    const struct http_site *site;
    struct http_site *met; /* the same, for its flag */
    const volatile int *stop;
    CURL *curl;
    uint64_t random;
    curl_off_t told; /* bytes of the answer at the last look */
    char curl_text[CURL_ERROR_SIZE];
};

/* One try. */
struct
try {
    struct http_client *client;
    const struct http_request *request;
    struct http_answer *answer;
    struct error *err;
    enum err body_err;
    bool begun, ok; /* ok: a 2xx status */
    uint64_t bytes;
    char head[ERROR_BODY_MAX + 1];
    size_t head_n;
};

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

/* A secret from a file: its text without the white space around it. The caller frees. */
static enum err read_secret(const char *path, const char *what, char **ret, struct error *err)
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

/* --- the site --- */

static void strip_end(char *url, const char *end)
{
    size_t n = strlen(url), m = strlen(end);
    if (n > m && strcmp(url + n - m, end) == 0)
        url[n - m] = '\0';
}

/* Take the URL apart: credentials go to the site, the rest is put together again without them. */
static enum err site_url(struct http_site *site, const char *text, struct error *err)
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
    if (curl_url_get(url, CURLUPART_QUERY, &query, 0) == CURLUE_OK ||
        curl_url_get(url, CURLUPART_FRAGMENT, &fragment, 0) == CURLUE_OK) {
        e = error_set(err, ERR_USAGE, "the server's URL has a part after %c: give its address only",
                      query ? '?' : '#');
        goto out;
    }
    if (curl_url_get(url, CURLUPART_USER, &user, CURLU_URLDECODE) == CURLUE_OK)
        site->user = str_dup(str_of(user));
    if (curl_url_get(url, CURLUPART_PASSWORD, &password, CURLU_URLDECODE) == CURLUE_OK)
        site->password = str_dup(str_of(password));
    curl_url_set(url, CURLUPART_USER, NULL, 0);
    curl_url_set(url, CURLUPART_PASSWORD, NULL, 0);
    if (curl_url_get(url, CURLUPART_URL, &whole, 0) != CURLUE_OK) {
        e = error_set(err, ERR_USAGE, "the server's URL is not usable");
        goto out;
    }
    site->url = str_dup(str_of(whole));
    /* People paste the address of a page or of the API. */
    static const char *const ends[] = {"/", "/graph", "/read", "/query", "/api/v1", "/"};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
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
        e = read_secret(site->bearer_token_file, "bearer token", &secret, err);
    free(secret);
    secret = NULL;
    if (e == ERR_OK && site->password_file)
        e = read_secret(site->password_file, "password", &secret, err);
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

enum err http_site_new(const struct http_site_options *options, struct http_site **ret,
                       struct error *err)
{
    pthread_once(&curl_once, curl_begin);
    struct http_site *site = mem_zalloc(1, sizeof *site);
    enum err e = site_url(site, options->url ? options->url : "", err);
    if (e == ERR_OK)
        e = site_headers(site, options, err);
    if (e != ERR_OK)
        goto out;
    if (options->user) {
        free(site->user);
        site->user = str_dup(str_of(options->user));
    }
    site->password_file = dup_or_null(options->password_file);
    site->bearer_token_file = dup_or_null(options->bearer_token_file);
    site->client_cert = dup_or_null(options->client_cert);
    site->client_key = dup_or_null(options->client_key);
    site->ca_file = dup_or_null(options->ca_file);
    site->proxy = dup_or_null(options->proxy);
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
    char *const texts[] = {site->url,           site->user,        site->password,
                           site->password_file, site->client_cert, site->client_key,
                           site->ca_file,       site->proxy,       site->bearer_token_file};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        free(texts[i]);
    curl_slist_free_all(site->headers);
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

/* --- the client --- */

static bool stopped(const struct http_client *client)
{
    return client->stop && *client->stop;
}

static int on_progress(void *context, curl_off_t dt, curl_off_t dn, curl_off_t ut, curl_off_t un)
{
    struct http_client *client = context;
    (void)dt, (void)ut, (void)un;
    if (dn > client->told && dn - client->told < GATHER_BYTES) {
        struct timespec pause = {0, GATHER_NS};
        nanosleep(&pause, NULL);
    }
    client->told = dn;
    return stopped(client);
}

static void answer_type(struct try *try)
{
    const char *type = NULL;
    curl_easy_getinfo(try->client->curl, CURLINFO_CONTENT_TYPE, &type);
    char *to = try->answer->content_type;
    size_t room = sizeof try->answer->content_type - 1, n = 0;
    for (; type && type[n] && n < room; n++)
        to[n] = (char)tolower((unsigned char)type[n]);
    to[n] = '\0';
}

/* The status and the type are known: tell the reader, where it is an answer to the question. */
static void try_begin(struct try *try)
{
    long status = 0;
    curl_off_t wait = 0;
    CURL *curl = try->client->curl;
    try->begun = true;
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    try->answer->status = (int)status;
    if (status)
        atomic_store_explicit(&try->client->met->met, true, memory_order_relaxed);
    answer_type(try);
    if (curl_easy_getinfo(curl, CURLINFO_RETRY_AFTER, &wait) == CURLE_OK && wait > 0)
        try->answer->retry_after_ms =
            wait > HTTP_PAUSE_MAX_MS / 1000 ? HTTP_PAUSE_MAX_MS : (time_ms)wait * 1000;
    try->ok = status >= 200 && status < 300;
    if (try->ok && try->request->begin)
        try->body_err = try->request->begin(try->request->context, try->answer, try->err);
}

static size_t on_piece(char *bytes, size_t size, size_t n, void *context)
{
    struct try *try = context;
    n *= size;
    if (!try->begun)
        try_begin(try);
    if (try->body_err != ERR_OK)
        return n + 1; /* anything but n ends the transfer */
    try->bytes += n;
    if (try->ok) {
        if (try->request->piece)
            try->body_err =
                try->request->piece(try->request->context, (struct str){bytes, n}, try->err);
        return try->body_err == ERR_OK ? n : n + 1;
    }
    size_t keep = ERROR_BODY_MAX - try->head_n < n ? ERROR_BODY_MAX - try->head_n : n;
    memcpy(try->head + try->head_n, bytes, keep);
    try->head_n += keep;
    return try->bytes > ERROR_BODY_READ ? n + 1 : n;
}

struct http_client *http_client_new(const struct http_site *site, const volatile int *stop)
{
    struct http_client *client = mem_zalloc(1, sizeof *client);
    client->site = site;
    client->met = (struct http_site *)(uintptr_t)site;
    client->stop = stop;
    client->random = (uint64_t)clock_now() ^ (uint64_t)(uintptr_t)client;
    client->curl = curl_easy_init();
    invariant(client->curl);
    CURL *curl = client->curl;
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(curl, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(curl, CURLOPT_BUFFERSIZE, RECEIVE_BYTES);
    curl_easy_setopt(curl, CURLOPT_USERAGENT, "gputally/" GPUTALLY_VERSION);
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, client->curl_text);
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, (long)site->connect_timeout_ms);
    curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, SLOW_BYTES_A_SECOND);
    curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, (long)(site->idle_timeout_ms + 999) / 1000);
    curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, on_progress);
    curl_easy_setopt(curl, CURLOPT_XFERINFODATA, client);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_piece);
    curl_easy_setopt(curl, CURLOPT_PROXY, site->proxy);
    curl_easy_setopt(curl, CURLOPT_SSLCERT, site->client_cert);
    curl_easy_setopt(curl, CURLOPT_SSLKEY, site->client_key);
    if (site->ca_file)
        curl_easy_setopt(curl, CURLOPT_CAINFO, site->ca_file);
    if (site->insecure) {
        curl_easy_setopt(curl, CURLOPT_SSL_VERIFYPEER, 0L);
        curl_easy_setopt(curl, CURLOPT_SSL_VERIFYHOST, 0L);
    }
    return client;
}

void http_client_free(struct http_client *client)
{
    if (!client)
        return;
    curl_easy_cleanup(client->curl);
    free(client);
}

/* Log in as the files say now: tokens rotate. */
static enum err set_login(struct http_client *client, struct error *err)
{
    const struct http_site *site = client->site;
    char *secret = NULL;
    enum err e = ERR_OK;
    if (site->bearer_token_file) {
        e = read_secret(site->bearer_token_file, "bearer token", &secret, err);
        if (e == ERR_OK) {
            curl_easy_setopt(client->curl, CURLOPT_HTTPAUTH, (long)CURLAUTH_BEARER);
            curl_easy_setopt(client->curl, CURLOPT_XOAUTH2_BEARER, secret);
        }
    } else if (site->user) {
        if (site->password_file)
            e = read_secret(site->password_file, "password", &secret, err);
        if (e == ERR_OK) {
            const char *password = secret ? secret : site->password ? site->password : "";
            curl_easy_setopt(client->curl, CURLOPT_HTTPAUTH, (long)CURLAUTH_BASIC);
            curl_easy_setopt(client->curl, CURLOPT_USERNAME, site->user);
            curl_easy_setopt(client->curl, CURLOPT_PASSWORD, password);
        }
    }
    if (secret)
        explicit_bzero(secret, strlen(secret));
    free(secret);
    return e;
}

/* --- what an answer means --- */

/* The words of an error answer, on one line: of Prometheus's JSON its "error", of a web page none.
 */
static void answer_said(const struct try *try)
{
    const char *from = try->head;
    char *to = try->answer->said;
    size_t room = sizeof try->answer->said - 1, n = 0;
    const char *json = strstr(from, "\"error\":\"");
    bool quoted = json && try->head[0] == '{';
    if (quoted)
        from = json + strlen("\"error\":\"");
    if (strspn(from, " \t\r\n") < strlen(from) && from[strspn(from, " \t\r\n")] == '<')
        from = "";
    for (; *from && n < room && !(quoted && *from == '"'); from++) {
        unsigned char c = (unsigned char)*from;
        if (quoted && c == '\\' && from[1])
            c = (unsigned char)*++from;
        if (c < 0x20 || c == 0x7f)
            c = ' ';
        if (c == ' ' && (n == 0 || to[n - 1] == ' '))
            continue;
        to[n++] = (char)c;
    }
    while (n && to[n - 1] == ' ')
        n--;
    to[n] = '\0';
}

static bool says_too_large(const struct http_answer *answer)
{
    static const char *const words[] = {"too many",  "exceed",    "limit",
                                        "too large", "timed out", "timeout"};
    int status = answer->status;
    if (status == 413 || status == 504 || status == 408)
        return true;
    if (status != 400 && status != 422 && status != 503 && status != 500)
        return false;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcasestr(answer->said, words[i]))
            return true;
    return false;
}

static enum err refused_login(const struct http_site *site, const struct http_answer *answer,
                              struct error *err)
{
    const char *next;
    if (strcasestr(answer->said, "org id"))
        next = "give --header 'X-Scope-OrgID: TENANT'";
    else if (answer->status == 403)
        next = "the login needs to read the query API";
    else if (site->bearer_token_file)
        next = "is the token in --bearer-token-file still good?";
    else if (site->user)
        next = "are --basic-auth-user and its password file right?";
    else
        next = "give --bearer-token-file, or --basic-auth-user and --basic-auth-password-file";
    return error_set(err, ERR_AUTH, "%s refused the login (%d%s%s): %s", site->url, answer->status,
                     *answer->said ? ": " : "", answer->said, next);
}

/* The error of a status that is not 2xx; *ret_again: trying again can help. */
static enum err status_error(struct try *try, bool *ret_again, struct error *err)
{
    const struct http_site *site = try->client->site;
    struct http_answer *answer = try->answer;
    int status = answer->status;
    answer_said(try);
    answer->too_large = says_too_large(answer);
    *ret_again = !answer->too_large && (status == 429 || status >= 500) && status != 501;
    if (status == 401 || status == 403 || status == 407)
        return refused_login(site, answer, err);
    const char *colon = *answer->said ? ": " : "";
    if (status >= 300 && status < 400) {
        const char *target = NULL;
        curl_easy_getinfo(try->client->curl, CURLINFO_REDIRECT_URL, &target);
        return error_set(err, ERR_PROTOCOL,
                         "%s sends elsewhere (%d), which is not followed: give the address "
                         "itself%s%.200s",
                         site->url, status, target && !strchr(target, '@') ? ", " : "",
                         target && !strchr(target, '@') ? target : "");
    }
    enum err code = answer->too_large ? ERR_LIMIT : ERR_PROTOCOL;
    if (status == 404 || status == 405 || status == 406 || status == 415 || status == 501)
        code = ERR_UNSUPPORTED;
    else if (*ret_again)
        code = ERR_NETWORK;
    return error_set(err, code, "%s answers %s with status %d%s%s", site->url, try->request->path,
                     status, colon, answer->said);
}

/* The error of a transfer that broke. */
static enum err transfer_error(struct try *try, CURLcode code, bool *ret_again, struct error *err)
{
    struct http_client *client = try->client;
    const char *url = client->site->url;
    const char *text = *client->curl_text ? client->curl_text : curl_easy_strerror(code);
    bool met = atomic_load_explicit(&client->met->met, memory_order_relaxed);
    *ret_again = false;
    switch (code) {
    case CURLE_ABORTED_BY_CALLBACK:
        return error_set(err, ERR_STOPPED, "stopped while reading %s", url);
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_ISSUER_ERROR:
        return error_set(err, ERR_PROTOCOL,
                         "the certificate of %s is not trusted (%s): give --ca-file", url, text);
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CACERT_BADFILE:
        return error_set(err, ERR_IO, "a certificate or key file is not usable for %s: %s", url,
                         text);
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_WEIRD_SERVER_REPLY:
        return error_set(err, ERR_PROTOCOL, "%s does not answer as a web server: %s", url, text);
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_CONNECT:
    case CURLE_SSL_CONNECT_ERROR:
        *ret_again = met;
        return error_set(err, ERR_NETWORK, "cannot reach %s: %s; is the address right?", url, text);
    case CURLE_OPERATION_TIMEDOUT:
        *ret_again = try->answer->tries <= TIMEOUT_TRIES;
        try->answer->too_large = met;
        return error_set(err, ERR_NETWORK, "%s does not answer in time: %s", url, text);
    case CURLE_OUT_OF_MEMORY:
        return error_set(err, ERR_LIMIT, "out of memory while reading %s", url);
    default:
        *ret_again = true;
        return error_set(err, ERR_NETWORK, "the answer of %s was cut: %s", url, text);
    }
}

/* --- asking --- */

static struct curl_slist *request_headers(const struct http_client *client,
                                          const struct http_request *request)
{
    struct curl_slist *list = curl_slist_append(NULL, "Expect:");
    for (const struct curl_slist *own = client->site->headers; own; own = own->next)
        list = curl_slist_append(list, own->data);
    for (size_t i = 0; i < request->headers_n; i++)
        list = curl_slist_append(list, request->headers[i]);
    if (request->content_type) {
        char line[160];
        snprintf(line, sizeof line, "Content-Type: %s", request->content_type);
        list = curl_slist_append(list, line);
    }
    return list;
}

static CURLcode transfer(struct try *try)
{
    CURL *curl = try->client->curl;
    const struct http_request *request = try->request;
    struct strbuf url = {0};
    strbuf_addf(&url, "%s%s", try->client->site->url, request->path);
    if (request->query.n) {
        strbuf_addc(&url, '?');
        strbuf_add(&url, request->query);
    }
    struct curl_slist *headers = request_headers(try->client, request);
    curl_easy_setopt(curl, CURLOPT_URL, url.text);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, try);
    if (request->content_type) {
        curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->body.n);
        curl_easy_setopt(curl, CURLOPT_POSTFIELDS, request->body.p);
    } else {
        curl_easy_setopt(curl, CURLOPT_HTTPGET, 1L);
    }
    try->client->curl_text[0] = '\0';
    CURLcode code = curl_easy_perform(curl);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, NULL);
    curl_slist_free_all(headers);
    strbuf_release(&url);
    return code;
}

static enum err ask_once(struct http_client *client, const struct http_request *request,
                         struct http_answer *answer, bool *ret_again, struct error *err)
{
    struct try *try = mem_zalloc(1, sizeof *try);
    *try = (struct try){.client = client, .request = request, .answer = answer, .err = err};
    *ret_again = false;
    answer->status = 0;
    answer->said[0] = '\0';
    answer->too_large = false;
    answer->retry_after_ms = -1;
    enum err e = set_login(client, err);
    if (e != ERR_OK)
        goto out;
    CURLcode code = transfer(try);
    if (code == CURLE_OK && !try->begun)
        try_begin(try);
    if (code == CURLE_OK && try->ok && try->body_err == ERR_OK && request->finish)
        try->body_err = request->finish(request->context, err);
    answer->bytes += try->bytes;
    if (try->body_err != ERR_OK) {
        e = try->body_err;
        *ret_again = (e == ERR_PARSE || e == ERR_NETWORK) && answer->tries <= BROKEN_TRIES;
    } else if (try->begun && !try->ok) {
        e = status_error(try, ret_again, err);
    } else if (code != CURLE_OK) {
        e = transfer_error(try, code, ret_again, err);
    }
out:
    free(try);
    return e;
}

/* False: stopped. */
static bool pause_before_retry(struct http_client *client, const struct http_answer *answer)
{
    time_ms pause = client->site->backoff_ms;
    for (int i = 1; i < answer->tries && pause < HTTP_PAUSE_MAX_MS; i++)
        pause *= 2;
    if (pause > HTTP_PAUSE_MAX_MS)
        pause = HTTP_PAUSE_MAX_MS;
    client->random = client->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    time_ms jitter = (time_ms)(client->random >> 33) % (pause / 2 + 1);
    pause = pause / 2 + jitter;
    if (answer->retry_after_ms > pause)
        pause = answer->retry_after_ms + jitter / 4;
    for (time_ms end = clock_monotonic() + pause; !stopped(client);) {
        time_ms left = end - clock_monotonic();
        if (left <= 0)
            return true;
        struct timespec step = {0, (left < PAUSE_STEP_MS ? left : PAUSE_STEP_MS) * 1000000};
        nanosleep(&step, NULL);
    }
    return false;
}

enum err http_ask(struct http_client *client, const struct http_request *request,
                  struct http_answer *ret_answer, struct error *err)
{
    *ret_answer = (struct http_answer){.retry_after_ms = -1};
    for (;;) {
        bool again = false;
        if (stopped(client))
            return error_set(err, ERR_STOPPED, "stopped while reading %s", client->site->url);
        ret_answer->tries++;
        enum err e = ask_once(client, request, ret_answer, &again, err);
        if (e == ERR_OK || !again || ret_answer->tries > client->site->retries) {
            if (e != ERR_OK && err && ret_answer->tries > 1)
                snprintf(err->text + strlen(err->text), sizeof err->text - strlen(err->text),
                         " (after %d tries)", ret_answer->tries);
            return e;
        }
        if (!pause_before_retry(client, ret_answer))
            return error_set(err, ERR_STOPPED, "stopped while reading %s", client->site->url);
    }
}
