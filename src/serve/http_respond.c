/* From an answer to what is sent: headers that every answer has, ETag and 304, gzip. */
#include <stdlib.h>

#define XXH_NO_INLINE_HINTS 1
#include <xxhash.h>

#include "report/text.h"
#include "serve/http_impl.h"

/* The page is served from here and loads nothing from elsewhere. */
static const struct {
    const char *name, *value;
} headers_of_all[] = {
    {"X-Content-Type-Options", "nosniff"},
    {"Referrer-Policy", "no-referrer"},
    {"X-Frame-Options", "DENY"},
    {"Cross-Origin-Resource-Policy", "same-origin"},
    {"Cross-Origin-Opener-Policy", "same-origin"},
    {"Permissions-Policy", "camera=(), geolocation=(), microphone=()"},
};
#define POLICY                                                                                     \
    "default-src 'none'; script-src 'self'%s%s; style-src 'self'%s%s; img-src 'self' data:; "      \
    "connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'none'; "                   \
    "frame-ancestors 'none'"
#define POLICY_MAX 512

void http_answer_header(struct http_answer *answer, const char *name, struct str value)
{
    invariant(answer->headers_n < sizeof answer->headers / sizeof *answer->headers);
    answer->headers[answer->headers_n].name = name;
    answer->headers[answer->headers_n++].value = value;
}

static void add_text(struct strbuf *out, const char *name, const char *text)
{
    strbuf_addf(out, "\"%s\": \"", name);
    text_json(out, str_of(text));
    strbuf_addc(out, '"');
}

void http_answer_error(struct http_answer *answer, int status, const char *code,
                       const char *message, const char *hint)
{
    answer->status = status;
    answer->content_type = "application/json";
    answer->cache_control = "no-store";
    strbuf_clear(&answer->body);
    strbuf_add(&answer->body, STR("{\"error\": {"));
    add_text(&answer->body, "code", code);
    strbuf_add(&answer->body, STR(", "));
    add_text(&answer->body, "message", message);
    strbuf_add(&answer->body, STR(", \"hint\": "));
    if (hint) {
        strbuf_addc(&answer->body, '"');
        text_json(&answer->body, str_of(hint));
        strbuf_add(&answer->body, STR("\"}}\n"));
    } else {
        strbuf_add(&answer->body, STR("null}}\n"));
    }
}

void http_answer_failed(struct http_answer *answer, const struct error *err)
{
    switch (err->code) {
    case ERR_USAGE:
    case ERR_PARSE:
    case ERR_CONFIG:
        http_answer_error(answer, 400, "bad_request", err->text, NULL);
        break;
    case ERR_NOT_FOUND:
        http_answer_error(answer, 404, "not_found", err->text, NULL);
        break;
    case ERR_AUTH:
        http_answer_error(answer, 403, "forbidden", err->text, NULL);
        break;
    case ERR_LIMIT:
        http_answer_error(answer, 413, "too_large", err->text, NULL);
        break;
    case ERR_STOPPED:
        http_answer_error(answer, 503, "stopping", "the server is being stopped", NULL);
        break;
    default: /* texts of the store name files of this machine */
        http_answer_error(answer, 503, "unavailable", "the ledger cannot be read",
                          "the log and /readyz say why");
        break;
    }
}

/* ---- ETag ---- */

#define ETAG_MAX 48

static void write_etag(const uint64_t digest[2], bool gzip, char *buf)
{
    snprintf(buf, ETAG_MAX, "\"%016llx%016llx%s\"", (unsigned long long)digest[0],
             (unsigned long long)digest[1], gzip ? "-gz" : "");
}

/* If-None-Match: "a", W/"b", or *. */
static bool is_known(struct str wanted, const char *etag)
{
    size_t n = strlen(etag);
    if (str_eq(wanted, STR("*")))
        return true;
    for (size_t i = 0; i + n <= wanted.n; i++)
        if (memcmp(wanted.p + i, etag, n) == 0)
            return true;
    return false;
}

/* ---- bodies ---- */

/* Bytes that somebody keeps until the response is gone. */
struct kept {
    struct strbuf text;
    void (*free)(void *context);
    void *context;
};

static void release_kept(void *context)
{
    struct kept *kept = context;
    strbuf_release(&kept->text);
    if (kept->free)
        kept->free(kept->context);
    free(kept);
}

static struct MHD_Response *response_of(struct str bytes, struct kept *kept)
{
    return MHD_create_response_from_buffer_with_free_callback_cls(bytes.n, (void *)bytes.p,
                                                                  release_kept, kept);
}

/* The body as it is sent; *ret_gzip: packed. Takes body and fixed out of the answer. */
static struct MHD_Response *body_response(struct exchange *exchange, bool accepted, bool *ret_gzip)
{
    struct http_answer *answer = &exchange->answer;
    struct kept *kept = mem_zalloc(1, sizeof *kept);
    struct str plain = answer->fixed, packed = answer->fixed_gzip;
    *kept = (struct kept){
        .text = answer->body, .free = answer->fixed_free, .context = answer->fixed_context};
    answer->fixed_free = NULL;
    answer->body = (struct strbuf){0};
    bool fixed = plain.n || packed.n;
    if (!fixed)
        plain = strbuf_str(&kept->text);
    *ret_gzip = accepted && packed.n;
    if (*ret_gzip) {
        exchange->bytes = packed.n;
        return response_of(packed, kept);
    }
    if (!plain.n && packed.n) {
        if (!gzip_unpack(packed, answer->fixed_size, &kept->text))
            strbuf_clear(&kept->text);
        exchange->bytes = kept->text.n;
        return response_of(strbuf_str(&kept->text), kept);
    }
    if (!fixed && accepted && http_is_worth_packing(answer->content_type, plain.n)) {
        struct strbuf smaller = {0};
        http_pack(plain, &smaller);
        if (smaller.n && smaller.n < plain.n) {
            strbuf_release(&kept->text);
            kept->text = smaller;
            *ret_gzip = true;
            exchange->bytes = smaller.n;
            return response_of(strbuf_str(&smaller), kept);
        }
        strbuf_release(&smaller);
    }
    exchange->bytes = plain.n;
    return response_of(plain, kept);
}

static void add(struct MHD_Response *response, const char *name, const char *value)
{
    MHD_add_response_header(response, name, value);
}

static void add_policy(const struct http_answer *answer, struct MHD_Response *response)
{
    char policy[POLICY_MAX];
    const char *script = answer->script_hash, *style = answer->style_hash;
    int n = snprintf(policy, sizeof policy, POLICY, script ? " " : "", script ? script : "",
                     style ? " " : "", style ? style : "");
    invariant(n > 0 && (size_t)n < sizeof policy);
    add(response, "Content-Security-Policy", policy);
}

static void add_headers(struct exchange *exchange, struct MHD_Response *response, bool body)
{
    struct http_answer *answer = &exchange->answer;
    add_policy(answer, response);
    for (size_t i = 0; i < sizeof headers_of_all / sizeof *headers_of_all; i++)
        add(response, headers_of_all[i].name, headers_of_all[i].value);
    for (size_t i = 0; i < answer->headers_n; i++) {
        struct str value = str_keep(&exchange->arena, answer->headers[i].value);
        add(response, answer->headers[i].name, value.p);
    }
    if (body)
        add(response, "Content-Type", answer->content_type);
    add(response, "Cache-Control", answer->cache_control);
    add(response, "Vary", "Accept-Encoding, Authorization");
}

static void find_digest(struct http_answer *answer)
{
    if (answer->digest[0] || answer->digest[1])
        return;
    struct str plain = answer->fixed.n ? answer->fixed : strbuf_str(&answer->body);
    XXH128_hash_t hash = XXH3_128bits(plain.p, plain.n);
    answer->digest[0] = hash.high64;
    answer->digest[1] = hash.low64;
}

static enum MHD_Result queue(struct exchange *exchange, struct MHD_Response *response)
{
    exchange->answered = true;
    exchange->status = exchange->answer.status;
    link_expect(exchange->server, exchange->connection, exchange->server->limits.answer_ms);
    enum MHD_Result result =
        MHD_queue_response(exchange->connection, (unsigned)exchange->answer.status, response);
    MHD_destroy_response(response);
    return result;
}

/* 304 where the client has it already. False: it has not. */
static bool not_modified(struct exchange *exchange, bool accepted, enum MHD_Result *ret)
{
    struct http_answer *answer = &exchange->answer;
    struct str wanted = http_header(&exchange->request, "If-None-Match");
    char plain[ETAG_MAX], packed[ETAG_MAX];
    write_etag(answer->digest, false, plain);
    write_etag(answer->digest, true, packed);
    const char *known = accepted && is_known(wanted, packed) ? packed : plain;
    if (!wanted.n || !is_known(wanted, known))
        return false;
    struct MHD_Response *response =
        MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT);
    answer->status = 304;
    add_headers(exchange, response, false);
    add(response, "ETag", known);
    *ret = queue(exchange, response);
    return true;
}

enum MHD_Result exchange_respond(struct exchange *exchange)
{
    struct http_answer *answer = &exchange->answer;
    bool accepted = gzip_is_accepted(http_header(&exchange->request, "Accept-Encoding"));
    bool gzip = false;
    enum MHD_Result result;
    answer->status = answer->status ? answer->status : 200;
    if (!answer->content_type)
        answer->content_type = "application/json";
    if (!answer->cache_control)
        answer->cache_control = "no-cache";
    if (answer->stream && answer->status == 200) {
        struct MHD_Response *response = stream_response(exchange, accepted);
        if (response) {
            add_headers(exchange, response, true);
            if (accepted)
                add(response, "Content-Encoding", "gzip");
            return queue(exchange, response);
        }
        http_answer_error(answer, 503, "busy", "too many exports are running",
                          "try again when one has ended");
        http_answer_header(answer, "Retry-After", STR("30"));
    }
    bool tagged = answer->status == 200 && exchange->request.method == HTTP_GET;
    if (tagged) {
        find_digest(answer);
        if (not_modified(exchange, accepted, &result))
            return result;
    }
    struct MHD_Response *response =
        body_response(exchange, accepted && answer->status != 204, &gzip);
    bool body = answer->status != 204;
    add_headers(exchange, response, body);
    if (gzip)
        add(response, "Content-Encoding", "gzip");
    if (tagged) {
        char etag[ETAG_MAX];
        write_etag(answer->digest, gzip, etag);
        add(response, "ETag", etag);
    }
    exchange->bytes = exchange->head_only ? 0 : exchange->bytes;
    return queue(exchange, response);
}
