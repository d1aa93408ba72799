/* Asking an HTTP server: one request, with login, certificates, time limits and retries.
 *
 * A `struct http_site` says where the server is and how to log in; it is immutable and shared by
 * all threads. A `struct http_client` is one thread's connection to it (a libcurl handle stays on
 * its thread). An answer's body is handed on piece by piece as it comes, so that its length costs
 * no memory and a reader that is slow slows the server down.
 *
 * http_ask tries again, with growing and jittered pauses, where that can help: refused and cut
 * connections, time-outs, 429 and 5xx (Retry-After is honoured), and a body that its reader finds
 * broken. Redirects are not followed. Only http and https. No secret gets into a text. */
#ifndef GPUTALLY_SOURCE_HTTP_H
#define GPUTALLY_SOURCE_HTTP_H

#include <stdint.h>

#include "source/http_site.h"

#define HTTP_SAID_MAX 400                      /* bytes kept of what an error answer says */
#define HTTP_PAUSE_MAX_MS ((time_ms)60 * 1000) /* the longest pause before a retry */

/* What is known of an answer when its body begins. */
struct http_answer {
    int status;               /* 0: none came */
    char content_type[128];   /* lower case, as sent otherwise */
    char said[HTTP_SAID_MAX]; /* first words of an error answer, printable, on one line */
    time_ms retry_after_ms;   /* -1: not said */
    uint64_t bytes;           /* of bodies, of all tries */
    int tries;
    bool victoria_metrics; /* it is one, by a header that all of its answers have */
    bool too_large;        /* the server says that the question is too large: ask for less */
};

struct http_request {
    const char *path; /* "/api/v1/query", after the site's prefix */
    struct str query; /* url-encoded, appended after '?'; may be empty */
    struct str body;  /* posted where content_type is given */
    const char *content_type;
    const char *const *headers; /* more of them, "Name: value" */
    size_t headers_n;
    /* A 2xx answer begins (again, after a retry: what came before is void). */
    enum err (*begin)(void *context, const struct http_answer *answer, struct error *err);
    /* The next piece of its body. An error ends the try: ERR_PARSE is tried again. */
    enum err (*piece)(void *context, struct str bytes, struct error *err);
    /* The body is complete. As above; ERR_NETWORK (cut) is tried again too. */
    enum err (*finish)(void *context, struct error *err);
    void *context;
};

struct http_client;
/* stop: may be NULL; when it becomes non-zero, requests end with ERR_STOPPED. */
struct http_client *http_client_new(const struct http_site *site, const volatile int *stop);
void http_client_free(struct http_client *client); /* NULL is fine */

/* Ask until there is an answer or no sense in asking. ret_answer is filled also on errors:
 *   ERR_NETWORK      no connection, cut, timed out, 429 or 5xx, after all retries
 *   ERR_AUTH         401, 403
 *   ERR_UNSUPPORTED  404, 405, 406, 415, 501: not this question
 *   ERR_LIMIT        too_large: 413, or 422, 400, 503 and a text that says so
 *   ERR_PROTOCOL     other statuses, redirects
 *   ERR_IO           a secret or certificate file
 *   ERR_STOPPED
 * and whatever the request's functions return. */
enum err http_ask(struct http_client *client, const struct http_request *request,
                  struct http_answer *ret_answer, struct error *err);

/* Append text to buf, url-encoded. */
void http_encode(struct strbuf *buf, struct str text);

#endif
