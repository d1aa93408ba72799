/* One request over libcurl, and the rules by which it is tried again.
 *
 * Each thread that asks has a client of its own, with one easy handle: the connection is kept, the
 * body is decoded inside the write callback while it is still in the cache, and a decoder that is
 * slow holds the server back through TCP. (A multi handle with a queue of blocks to workers costs a
 * copy of every byte and code for pausing, and gains nothing where a handful of requests run.) */
#include <ctype.h>
#include <stdlib.h>
#include <time.h>

#include "source/http_impl.h"

#define ERROR_BODY_READ ((uint64_t)1 << 16) /* read before it is given up */
#define RECEIVE_BYTES 262144L
#define BROKEN_TRIES 2          /* bodies that cannot be read are asked again so often */
#define SLOW_BYTES_A_SECOND 64L /* slower than this is standing still */
#define PAUSE_STEP_MS 50
/* A server that sends a frame a series wakes us for a few kB each time: where so little came, a
 * pause lets more of it gather, and the next call of the kernel brings it at once. Measured with
 * Prometheus 2.42: 40 % less CPU, no more time. */
#define GATHER_BYTES 262144
#define GATHER_NS 1000000L
#define KEEPALIVE_S 30L

static bool stopped(const struct http_client *client)
{
    return client->stop && __atomic_load_n(client->stop, __ATOMIC_RELAXED) != 0;
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
    struct curl_header *header;
    try->answer->victoria_metrics =
        curl_easy_header(curl, "X-Server-Hostname", 0, CURLH_HEADER, -1, &header) == CURLHE_OK;
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

/* Certificates and keys as text. */
static void set_pem(CURL *curl, CURLoption option, const char *pem)
{
    struct curl_blob blob = {(void *)(uintptr_t)pem, pem ? strlen(pem) : 0, CURL_BLOB_COPY};
    if (pem)
        curl_easy_setopt(curl, option, &blob);
}

void http_prepare(CURL *curl, const struct http_site *site)
{
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(curl, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(curl, CURLOPT_USERAGENT, "gputally/" GPUTALLY_VERSION);
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, (long)site->connect_timeout_ms);
    curl_easy_setopt(curl, CURLOPT_PROXY, site->proxy);
    curl_easy_setopt(curl, CURLOPT_SSLCERT, site->client_cert);
    curl_easy_setopt(curl, CURLOPT_SSLKEY, site->client_key);
    if (site->ca_file)
        curl_easy_setopt(curl, CURLOPT_CAINFO, site->ca_file);
    set_pem(curl, CURLOPT_CAINFO_BLOB, site->ca_pem);
    set_pem(curl, CURLOPT_SSLCERT_BLOB, site->client_cert_pem);
    set_pem(curl, CURLOPT_SSLKEY_BLOB, site->client_key_pem);
    curl_easy_setopt(curl, CURLOPT_CONNECT_TO, site->connect_to);
    curl_easy_setopt(curl, CURLOPT_TCP_KEEPALIVE,
                     1L); /* a quiet answer whose server is gone ends */
    curl_easy_setopt(curl, CURLOPT_TCP_KEEPIDLE, KEEPALIVE_S);
    curl_easy_setopt(curl, CURLOPT_TCP_KEEPINTVL, KEEPALIVE_S);
    if (site->insecure) {
        curl_easy_setopt(curl, CURLOPT_SSL_VERIFYPEER, 0L);
        curl_easy_setopt(curl, CURLOPT_SSL_VERIFYHOST, 0L);
    }
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
    http_prepare(curl, site);
    curl_easy_setopt(curl, CURLOPT_BUFFERSIZE, RECEIVE_BYTES);
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, client->curl_text);
    curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, SLOW_BYTES_A_SECOND);
    curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, (long)(site->idle_timeout_ms + 999) / 1000);
    curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, on_progress);
    curl_easy_setopt(curl, CURLOPT_XFERINFODATA, client);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_piece);
    return client;
}

void http_client_free(struct http_client *client)
{
    if (!client)
        return;
    curl_easy_cleanup(client->curl);
    free(client);
}

enum err http_login(CURL *curl, const struct http_site *site, struct error *err)
{
    char *secret = NULL;
    enum err e = ERR_OK;
    if (site->token || site->bearer_token_file) {
        e = site->token ? site->token(site->token_context, &secret, err)
                        : http_read_secret(site->bearer_token_file, "bearer token", &secret, err);
        if (e == ERR_OK && secret) {
            curl_easy_setopt(curl, CURLOPT_HTTPAUTH, (long)CURLAUTH_BEARER);
            curl_easy_setopt(curl, CURLOPT_XOAUTH2_BEARER, secret);
        }
    } else if (site->user) {
        if (site->password_file)
            e = http_read_secret(site->password_file, "password", &secret, err);
        if (e == ERR_OK) {
            const char *password = secret ? secret : site->password ? site->password : "";
            curl_easy_setopt(curl, CURLOPT_HTTPAUTH, (long)CURLAUTH_BASIC);
            curl_easy_setopt(curl, CURLOPT_USERNAME, site->user);
            curl_easy_setopt(curl, CURLOPT_PASSWORD, password);
        }
    }
    if (secret)
        explicit_bzero(secret, strlen(secret));
    free(secret);
    return e;
}

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
    const char *own = try->client->site->query;
    if (own)
        strbuf_addf(&url, "?%s", own);
    if (request->query.n) {
        strbuf_addc(&url, own ? '&' : '?');
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
    enum err e = http_login(client->curl, client->site, err);
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
        e = http_status_error(try, ret_again, err);
    } else if (code != CURLE_OK) {
        e = http_transfer_error(try, code, ret_again, err);
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
