/* What an answer that is none means, in one line with the next step. */
#include <ctype.h>

#include "source/http_impl.h"

#define TIMEOUT_TRIES 1

/* The words of an error answer, on one line: of Prometheus's JSON its "error", of Kubernetes's its
 * "message", of a web page none. */
static void answer_said(const struct try *try)
{
    const char *from = try->head;
    char *to = try->answer->said;
    size_t room = sizeof try->answer->said - 1, n = 0;
    static const char *const keys[] = {"\"error\":\"", "\"message\":\""};
    bool quoted = false;
    for (size_t i = 0; !quoted && try->head[0] == '{' && i < sizeof keys / sizeof *keys; i++) {
        const char *json = strstr(from, keys[i]);
        quoted = json != NULL;
        from = quoted ? json + strlen(keys[i]) : from;
    }
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

enum err http_status_error(struct try *try, bool *ret_again, struct error *err)
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

enum err http_transfer_error(struct try *try, CURLcode code, bool *ret_again, struct error *err)
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
