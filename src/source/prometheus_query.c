/* The HTTP API's JSON answers: range selectors in instant queries, which give raw samples, instant
 * queries of the survey, and lists of names. All are decoded as they come.
 *
 * A range selector [N] at T is (T-N, T] since Prometheus 3 and in VictoriaMetrics, [T-N, T] before:
 * N is one ms longer than the piece, so that the first stamp is in it either way, and what is too
 * much is cut by the delivery. T is a whole second, since servers read decimals as floating point.
 */
#include "source/prometheus_impl.h"

#include <inttypes.h>
#include <math.h>

#include "fleet/loads.h"
#include "wire/query_json.h"

#define GET_MAX ((size_t)1500) /* bytes of a query that still goes into the URL */

struct answering {
    struct asker *asker;
    struct query_json_sink sink;
    struct query_json *json;
    bool nan_is_stale;
    prometheus_value_fn value;
    prometheus_name_fn name;
    void *context;
    const struct prometheus_load *load;
    /* the series that a vector's value belongs to */
    struct arena arena;
    struct label *labels;
    size_t labels_n;
};

enum err prometheus_check_type(const struct prometheus *prometheus,
                               const struct http_answer *answer, struct error *err)
{
    if (strncmp(answer->content_type, "text/html", 9) == 0)
        return error_set(err, ERR_PROTOCOL,
                         "%s answers with a web page, not as a Prometheus server: is the address "
                         "right, with its port and path prefix?",
                         http_site_url(prometheus->site));
    return ERR_OK;
}

static enum err json_begin(void *context, const struct http_answer *answer, struct error *err)
{
    struct answering *answering = context;
    query_json_free(answering->json);
    answering->json = query_json_new(&answering->sink);
    answering->nan_is_stale = answer->victoria_metrics;
    return prometheus_check_type(answering->asker->prometheus, answer, err);
}

static enum err json_piece(void *context, struct str bytes, struct error *err)
{
    struct answering *answering = context;
    atomic_fetch_add_explicit(&answering->asker->tally->bytes, bytes.n, memory_order_relaxed);
    return query_json_feed(answering->json, bytes, err);
}

static enum err json_finish(void *context, struct error *err)
{
    struct answering *answering = context;
    struct asker *asker = answering->asker;
    enum err e = query_json_finish(answering->json, err);
    if (asker->delivery)
        delivery_flush(asker->delivery);
    const struct query_json_answer *answer = query_json_answer(answering->json);
    if (e == ERR_OK && !answer->success)
        e = error_set(err, ERR_PROTOCOL, "%s answers: %.*s", http_site_url(asker->prometheus->site),
                      STR_ARG(answer->error));
    for (size_t i = 0; e == ERR_OK && asker->intake && i < answer->warnings_n; i++)
        intake_note(asker->intake, NOTE_PARTIAL, str_of(http_site_url(asker->prometheus->site)), 1,
                    answer->warnings[i]);
    return e;
}

/* What is no JSON with a status is no Prometheus. */
static enum err no_prometheus(const struct answering *answering, enum err e, struct error *err)
{
    const char *url = http_site_url(answering->asker->prometheus->site);
    const struct query_json_answer *answer =
        answering->json ? query_json_answer(answering->json) : NULL;
    if ((e != ERR_PARSE && e != ERR_PROTOCOL) || !answer || answer->status_seen || !err ||
        str_starts(str_of(err->text), str_of(url)))
        return e;
    struct error why = *err;
    return error_set(err, e,
                     "%s does not answer as a Prometheus server (%.300s): is the address right, "
                     "with its port and path prefix?",
                     url, why.text);
}

/* GET, or POST where the question is long. form: url-encoded. */
static enum err ask_json(struct answering *answering, const char *path, struct str form,
                         struct error *err)
{
    struct http_answer answer = {0};
    struct http_request request = {.path = path,
                                   .begin = json_begin,
                                   .piece = json_piece,
                                   .finish = json_finish,
                                   .context = answering};
    if (form.n <= GET_MAX) {
        request.query = form;
    } else {
        request.body = form;
        request.content_type = "application/x-www-form-urlencoded";
    }
    enum err e = http_ask(answering->asker->client, &request, &answer, err);
    answering->asker->too_large = answer.too_large;
    e = no_prometheus(answering, e, err);
    query_json_free(answering->json);
    arena_release(&answering->arena);
    return e;
}

static void add_parameter(struct strbuf *form, const char *name, struct str value)
{
    if (form->n)
        strbuf_addc(form, '&');
    strbuf_add(form, str_of(name));
    strbuf_addc(form, '=');
    http_encode(form, value);
}

/* Seconds, with ms where there are any. */
static void add_time(struct strbuf *form, const char *name, time_ms t)
{
    char text[48];
    if (t % 1000 == 0)
        snprintf(text, sizeof text, "%" PRId64, t / 1000);
    else
        snprintf(text, sizeof text, "%.3f", (double)t / 1000);
    add_parameter(form, name, str_of(text));
}

static bool piece_series(void *context, const struct label *labels, size_t n)
{
    return delivery_series(((struct answering *)context)->asker->delivery, labels, n);
}

/* VictoriaMetrics stores no value that is not a number, but stale markers, and gives them as NaN.
 */
static void piece_samples(void *context, const time_ms *t, const double *v, size_t n)
{
    struct answering *answering = context;
    for (size_t from = 0, to; from < n; from = to + 1) {
        for (to = from; to < n && !(answering->nan_is_stale && isnan(v[to]));)
            to++;
        delivery_samples(answering->asker->delivery, t + from, v + from, to - from);
    }
}

enum err prometheus_query_piece(struct asker *asker, const struct piece *piece, struct error *err)
{
    time_ms at = (piece->last + 999) / 1000 * 1000;
    const char *match = piece->metric->match, *more = asker->prometheus->matcher;
    struct strbuf query = {0}, form = {0};
    strbuf_addf(&query, "%s{%s%s%s}[%" PRId64 "ms]", piece->metric->name, match,
                *match && *more ? "," : "", more, at - piece->first + 1);
    add_parameter(&form, "query", strbuf_str(&query));
    add_time(&form, "time", at);
    struct answering answering = {.asker = asker};
    answering.sink = (struct query_json_sink){
        .context = &answering, .series = piece_series, .samples = piece_samples};
    delivery_range(asker->delivery, piece->first, piece->last);
    enum err e = ask_json(&answering, "/api/v1/query", strbuf_str(&form), err);
    strbuf_release(&query);
    strbuf_release(&form);
    return e;
}

static bool load_series(void *context, const struct label *labels, size_t n)
{
    struct answering *answering = context;
    return prometheus_load_series(answering->load, answering->asker->delivery, labels, n);
}

/* A range query on the grid of five minutes. */
enum err prometheus_load_piece(struct asker *asker, const struct piece *piece, struct error *err)
{
    const struct prometheus_load *load = prometheus_load_of(piece);
    time_ms first = (load_slot(piece->first) + 1) * LOAD_SLOT_MS;
    time_ms last = load_slot(piece->last + 1) * LOAD_SLOT_MS;
    if (first > last)
        return ERR_OK;
    struct strbuf form = {0};
    add_parameter(&form, "query", prometheus_load_query(load));
    add_time(&form, "start", first);
    add_time(&form, "end", last);
    add_parameter(&form, "step", STR("300"));
    add_parameter(&form, "nocache", STR("1")); /* VictoriaMetrics: what came late counts */
    struct answering answering = {.asker = asker, .load = load};
    answering.sink = (struct query_json_sink){
        .context = &answering, .series = load_series, .samples = piece_samples};
    delivery_range(asker->delivery, piece->first, piece->last);
    enum err e = ask_json(&answering, "/api/v1/query_range", strbuf_str(&form), err);
    strbuf_release(&form);
    return e;
}

static bool value_series(void *context, const struct label *labels, size_t n)
{
    struct answering *answering = context;
    arena_clear(&answering->arena);
    answering->labels = arena_alloc(&answering->arena, n * sizeof *labels);
    answering->labels_n = n;
    for (size_t i = 0; i < n; i++)
        answering->labels[i] = (struct label){str_keep(&answering->arena, labels[i].name),
                                              str_keep(&answering->arena, labels[i].value)};
    return true;
}

static void value_samples(void *context, const time_ms *t, const double *v, size_t n)
{
    struct answering *answering = context;
    (void)t;
    if (n)
        answering->value(answering->context, answering->labels, answering->labels_n, v[n - 1]);
}

enum err prometheus_instant(struct asker *asker, struct str query, time_ms t,
                            prometheus_value_fn each, void *context, struct error *err)
{
    struct strbuf form = {0};
    add_parameter(&form, "query", query);
    if (t != TIME_MIN)
        add_time(&form, "time", t);
    struct answering answering = {.asker = asker, .value = each, .context = context};
    answering.sink = (struct query_json_sink){
        .context = &answering, .series = value_series, .samples = value_samples};
    enum err e = ask_json(&answering, "/api/v1/query", strbuf_str(&form), err);
    strbuf_release(&form);
    return e;
}

enum err prometheus_selector(struct asker *asker, struct str query,
                             const struct query_json_sink *sink, struct error *err)
{
    struct strbuf form = {0};
    add_parameter(&form, "query", query);
    struct answering answering = {.asker = asker, .sink = *sink};
    enum err e = ask_json(&answering, "/api/v1/query", strbuf_str(&form), err);
    strbuf_release(&form);
    return e;
}

static bool no_series(void *context, const struct label *labels, size_t n)
{
    (void)context, (void)labels, (void)n;
    return false;
}

static void no_samples(void *context, const time_ms *t, const double *v, size_t n)
{
    (void)context, (void)t, (void)v, (void)n;
}

static void name_text(void *context, struct str text)
{
    struct answering *answering = context;
    answering->name(answering->context, text);
}

enum err prometheus_names(struct asker *asker, time_ms from, time_ms to, prometheus_name_fn each,
                          void *context, struct error *err)
{
    struct strbuf form = {0};
    if (from != TIME_MIN) {
        add_time(&form, "start", from);
        add_time(&form, "end", to);
    }
    struct answering answering = {.asker = asker, .name = each, .context = context};
    answering.sink = (struct query_json_sink){
        .context = &answering, .series = no_series, .samples = no_samples, .text = name_text};
    enum err e = ask_json(&answering, "/api/v1/label/__name__/values", strbuf_str(&form), err);
    strbuf_release(&form);
    return e;
}
