/* Where an HTTP server is, and how to log in: what source/http.h asks by, and a scrape job. */
#ifndef GPUTALLY_SOURCE_HTTP_SITE_H
#define GPUTALLY_SOURCE_HTTP_SITE_H

#include "util/clock.h"
#include "util/error.h"
#include "util/str.h"

#define HTTP_SECRET_MAX ((size_t)64 << 10) /* bytes of a token or password file */

struct http_site_options {
    const char *url; /* http(s)://[user:password@]host[:port][/prefix]; without a scheme: http */
    bool whole;      /* the URL is asked as it is: its end and a part after ? stay */
    const char *bearer_token_file, *user, *password_file;
    const char *password; /* instead of its file */
    /* asked for before each try, instead of the file: *ret is the token, which is freed, or NULL */
    enum err (*token)(void *context, char **ret, struct error *err);
    void *token_context;
    const char *client_cert, *client_key, *ca_file;
    struct str client_cert_pem, client_key_pem, ca_pem; /* or their text; n 0: none */
    const char *connect_to; /* HOST:PORT:TO_HOST:TO_PORT: where the URL's host really is */
    bool insecure;
    const char *const *headers;
    size_t headers_n;
    const char *proxy;
    time_ms connect_timeout_ms, idle_timeout_ms;
    int retries;
    time_ms backoff_ms;
};

/* For configurations, where nothing is guessed. */
#define HTTP_SCHEME_NEEDED "an address begins with http:// or https:// here"
bool http_url_has_scheme(const char *url);

struct http_site;
/* ERR_USAGE: the URL or a header is none; ERR_IO: a secret file cannot be read. */
enum err http_site_new(const struct http_site_options *options, struct http_site **ret,
                       struct error *err);
void http_site_free(struct http_site *site); /* NULL is fine */
/* The URL without credentials, without a part after ?, and unless it is whole without a slash at
 * its end. */
const char *http_site_url(const struct http_site *site);

#endif
