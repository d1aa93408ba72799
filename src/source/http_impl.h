/* What the files of the HTTP client share. Seen by src/source/http*.c only.
 *
 *     http_site.c    where the server is, how to log in
 *     http_answer.c  what statuses and broken transfers mean, in words
 *     http.c         one thread's connection; asking, and asking again */
#ifndef GPUTALLY_SOURCE_HTTP_IMPL_H
#define GPUTALLY_SOURCE_HTTP_IMPL_H

#include <curl/curl.h>
#include <stdatomic.h>

#include "source/http.h"

#define ERROR_BODY_MAX ((size_t)4096) /* bytes kept of an error answer */

struct http_site {
    char *url;             /* scheme://host[:port][/prefix] */
    char *query;           /* of a whole URL; may be a secret, and is in no text */
    char *user, *password; /* from the URL or the options; password NULL: from the file */
    char *bearer_token_file, *password_file;
    char *client_cert, *client_key, *ca_file, *proxy;
    char *client_cert_pem, *client_key_pem, *ca_pem;
    enum err (*token)(void *context, char **ret, struct error *err);
    void *token_context;
    struct curl_slist *headers, *connect_to;
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

/* A secret from a file: its text without the white space around it. The caller frees. */
enum err http_read_secret(const char *path, const char *what, char **ret, struct error *err);

/* Options of a handle that hold for all of its requests: certificates, proxy, time to connect. */
void http_prepare(CURL *curl, const struct http_site *site);
/* Log in as the files say now: tokens rotate. */
enum err http_login(CURL *curl, const struct http_site *site, struct error *err);

/* The error of a status that is not 2xx; *ret_again: trying again can help. */
enum err http_status_error(struct try *try, bool *ret_again, struct error *err);
/* The error of a transfer that broke. */
enum err http_transfer_error(struct try *try, CURLcode code, bool *ret_again, struct error *err);

#endif
