/* Messages. One a receiver and round, with everything that is to be told, so that a first round
 * over an old ledger is one message and not a hundred.
 *
 * - webhook: {"schema", "alerts": [{"status", "kind", "key", "owner", …}]}, signed if it has a
 *   secret: X-Gputally-Signature: t=UNIX,v1=HMAC-SHA256 of "UNIX.BODY", so that an old message
 *   cannot be played again.
 * - Slack: {"text"} in mrkdwn; &, < and > of names are escaped, so that no name can mention a
 *   channel.
 * - Alertmanager: POST /api/v2/alerts; what fires is sent again each round, and ends by itself if
 *   we fall silent. */
#include <gnutls/crypto.h>
#include <jansson.h>
#include <stdlib.h>

#include "serve/alert.h"
#include "source/http.h"

#define SLACK_LINES 20 /* more are counted */
#define SECRET_MAX ((size_t)4096)
#define URL_MAX ((size_t)4096)

/* ---- bodies ---- */

static json_t *text_json(const char *text)
{
    json_t *value = json_string(text);
    return value ? value : json_string("?"); /* no UTF-8 */
}

static json_t *time_json(time_ms t)
{
    char text[TIME_TEXT_MAX];
    return t == TIME_MIN ? json_null() : json_string(time_format(t, text));
}

static void add_money(struct strbuf *out, money_t amount)
{
    char text[MONEY_TEXT_MAX];
    strbuf_add(out, str_of(money_format(amount, text)));
}

static json_t *webhook_json(const struct alert_entry *const *entries, size_t n)
{
    json_t *alerts = json_array();
    for (size_t i = 0; i < n; i++) {
        const struct alert_entry *entry = entries[i];
        struct strbuf month = {0};
        add_money(&month, entry->month);
        json_t *alert = json_object();
        json_object_set_new(alert, "status",
                            json_string(alert_is_over(entry) ? "resolved" : "firing"));
        json_object_set_new(alert, "kind", json_string(alert_kind_words[entry->kind]));
        json_object_set_new(alert, "severity",
                            json_string(entry->critical ? "critical" : "warning"));
        json_object_set_new(alert, "key", text_json(entry->key));
        json_object_set_new(alert, "owner", text_json(entry->owner));
        json_object_set_new(alert, "title", text_json(entry->title));
        json_object_set_new(alert, "text", text_json(entry->text));
        json_object_set_new(alert, "month", json_string(month.text));
        json_object_set_new(alert, "since", time_json(entry->since));
        json_object_set_new(alert, "fired", time_json(entry->fired));
        json_array_append_new(alerts, alert);
        strbuf_release(&month);
    }
    return json_pack("{s:s, s:o}", "schema", "gputally.alerts/1", "alerts", alerts);
}

static void add_escaped(struct strbuf *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '&')
            strbuf_add(out, STR("&amp;"));
        else if (*text == '<')
            strbuf_add(out, STR("&lt;"));
        else if (*text == '>')
            strbuf_add(out, STR("&gt;"));
        else
            strbuf_addc(out, *text);
    }
}

static json_t *slack_json(const struct alert_config *config,
                          const struct alert_entry *const *entries, size_t n)
{
    struct strbuf text = {0};
    for (size_t i = 0; i < n && i < SLACK_LINES; i++) {
        const struct alert_entry *entry = entries[i];
        strbuf_add(&text, alert_is_over(entry) ? STR("Over: ")
                          : entry->critical    ? STR(":rotating_light: *")
                                               : STR("*"));
        add_escaped(&text, entry->title);
        strbuf_add(&text, alert_is_over(entry) ? STR("\n") : STR("*\n"));
        if (!alert_is_over(entry) && *entry->text) {
            add_escaped(&text, entry->text);
            strbuf_addc(&text, '\n');
        }
    }
    if (n > SLACK_LINES)
        strbuf_addf(&text, "and %zu more\n", n - SLACK_LINES);
    if (config->link)
        strbuf_addf(&text, "<%s|Open the dashboard>\n", config->link);
    json_t *body = json_object();
    json_object_set_new(body, "text", text_json(text.text ? text.text : ""));
    strbuf_release(&text);
    return body;
}

static json_t *alertmanager_json(const struct alert_config *config,
                                 const struct alert_entry *const *entries, size_t n, time_ms now)
{
    json_t *alerts = json_array();
    for (size_t i = 0; i < n; i++) {
        const struct alert_entry *entry = entries[i];
        bool over = alert_is_over(entry);
        json_t *labels = json_object(), *notes = json_object(), *alert = json_object();
        struct strbuf name = {0};
        strbuf_addf(&name, "Gputally%c%s", alert_kind_words[entry->kind][0] - 'a' + 'A',
                    alert_kind_words[entry->kind] + 1);
        json_object_set_new(labels, "alertname", json_string(name.text));
        strbuf_release(&name);
        json_object_set_new(labels, "key", text_json(entry->key));
        json_object_set_new(labels, "owner", text_json(entry->owner));
        json_object_set_new(labels, "severity",
                            json_string(entry->critical ? "critical" : "warning"));
        json_object_set_new(notes, "summary", text_json(entry->title));
        json_object_set_new(notes, "description", text_json(entry->text));
        json_object_set_new(alert, "labels", labels);
        json_object_set_new(alert, "annotations", notes);
        json_object_set_new(alert, "startsAt", time_json(entry->fired));
        json_object_set_new(alert, "endsAt", time_json(over ? now : now + 4 * config->every_ms));
        if (config->link)
            json_object_set_new(alert, "generatorURL", text_json(config->link));
        json_array_append_new(alerts, alert);
    }
    return alerts;
}

void alert_body(const struct alert_config *config, const struct alert_receiver *receiver,
                const struct alert_entry *const *entries, size_t n, time_ms now, struct strbuf *ret)
{
    json_t *body = NULL;
    switch (receiver->kind) {
    case RECEIVER_WEBHOOK:
        body = webhook_json(entries, n);
        break;
    case RECEIVER_SLACK:
        body = slack_json(config, entries, n);
        break;
    case RECEIVER_ALERTMANAGER:
        body = alertmanager_json(config, entries, n, now);
        break;
    case RECEIVER_KINDS:
        break;
    }
    char *text = json_dumps(body, JSON_COMPACT | JSON_PRESERVE_ORDER);
    strbuf_add(ret, str_of(text ? text : "{}"));
    free(text);
    json_decref(body);
}

void alert_signature(struct str secret, time_ms now, struct str body, struct strbuf *ret)
{
    unsigned char digest[32];
    struct strbuf text = {0};
    strbuf_addf(&text, "%lld.", (long long)(now / 1000));
    strbuf_add(&text, body);
    int rc = gnutls_hmac_fast(GNUTLS_MAC_SHA256, secret.p, secret.n, text.text, text.n, digest);
    invariant(rc == 0);
    strbuf_addf(ret, "t=%lld,v1=", (long long)(now / 1000));
    for (size_t i = 0; i < sizeof digest; i++)
        strbuf_addf(ret, "%02x", digest[i]);
    strbuf_release(&text);
}

/* ---- sending ---- */

static enum err begin(void *context, const struct http_answer *answer, struct error *err)
{
    (void)context, (void)answer, (void)err;
    return ERR_OK;
}
static enum err piece(void *context, struct str bytes, struct error *err)
{
    (void)context, (void)bytes, (void)err;
    return ERR_OK;
}
static enum err finish(void *context, struct error *err)
{
    (void)context, (void)err;
    return ERR_OK;
}

/* A secret: the file's text without the line break at its end. */
static enum err secret_of(const char *path, size_t max, struct strbuf *ret, struct error *err)
{
    enum err code = file_text(path, max, ret, err);
    while (!code && ret->n && (ret->text[ret->n - 1] == '\n' || ret->text[ret->n - 1] == '\r'))
        ret->text[--ret->n] = 0;
    if (!code && !ret->n)
        code = error_set(err, ERR_CONFIG, "%s is empty", path);
    return code;
}

static enum err open_site(const struct alert_receiver *receiver, const char *url,
                          struct http_site **ret, struct error *err)
{
    struct http_site_options options = {.url = url,
                                        .whole = receiver->kind != RECEIVER_ALERTMANAGER,
                                        .bearer_token_file = receiver->bearer_token_file,
                                        .ca_file = receiver->ca_file,
                                        .connect_timeout_ms = 10 * 1000,
                                        .idle_timeout_ms = 30 * 1000,
                                        .retries = 2,
                                        .backoff_ms = 500};
    return http_site_new(&options, ret, err);
}

static enum err post(const struct alert_receiver *receiver, const char *url, struct str body,
                     const char *header, const volatile int *stop, struct error *err)
{
    struct http_site *site;
    struct http_answer answer = {0};
    enum err code = open_site(receiver, url, &site, err);
    if (code)
        return code;
    struct http_client *client = http_client_new(site, stop);
    struct http_request request = {
        .path = receiver->kind == RECEIVER_ALERTMANAGER ? "/api/v2/alerts" : "",
        .body = body,
        .content_type = "application/json",
        .headers = &header,
        .headers_n = header ? 1 : 0,
        .begin = begin,
        .piece = piece,
        .finish = finish};
    code = http_ask(client, &request, &answer, err);
    http_client_free(client);
    http_site_free(site);
    return code;
}

static enum err url_of(const struct alert_receiver *receiver, struct strbuf *ret, struct error *err)
{
    if (!receiver->url_file) {
        strbuf_add(ret, str_of(receiver->url));
        return ERR_OK;
    }
    enum err code = secret_of(receiver->url_file, URL_MAX, ret, err);
    if (!code && !http_url_has_scheme(ret->text))
        code = error_set(err, ERR_CONFIG, "%s: " HTTP_SCHEME_NEEDED, receiver->url_file);
    return code;
}

enum err alert_check(const struct alert_config *config, struct error *err)
{
    enum err code = ERR_OK;
    for (size_t i = 0; i < config->receivers_n && !code; i++) {
        const struct alert_receiver *receiver = &config->receivers[i];
        struct strbuf url = {0}, secret = {0};
        struct http_site *site = NULL;
        struct error why = {0};
        code = url_of(receiver, &url, &why);
        if (!code && receiver->secret_file)
            code = secret_of(receiver->secret_file, SECRET_MAX, &secret, &why);
        if (!code)
            code = open_site(receiver, url.text, &site, &why);
        if (code)
            code = config_error(receiver->at, err, "%s", why.text);
        http_site_free(site);
        strbuf_release(&url);
        strbuf_release(&secret);
    }
    return code;
}

enum err alert_send(const struct alert_config *config, const struct alert_receiver *receiver,
                    const struct alert_entry *const *entries, size_t n, time_ms now,
                    const volatile int *stop, struct error *err)
{
    struct strbuf url = {0}, secret = {0}, header = {0}, body = {0};
    enum err code = url_of(receiver, &url, err);
    if (!code && receiver->secret_file)
        code = secret_of(receiver->secret_file, SECRET_MAX, &secret, err);
    if (!code) {
        alert_body(config, receiver, entries, n, now, &body);
        if (secret.n) {
            strbuf_add(&header, STR("X-Gputally-Signature: "));
            alert_signature(strbuf_str(&secret), now, strbuf_str(&body), &header);
        }
        code = post(receiver, url.text, strbuf_str(&body), header.text, stop, err);
        if (code && receiver->url_file) /* the address is a secret */
            error_set(err, code, "the address in %s was not reached, or refused",
                      receiver->url_file);
    }
    strbuf_release(&url);
    strbuf_release(&secret);
    strbuf_release(&header);
    strbuf_release(&body);
    return code;
}
