/* Parameters of a request, read as the command line reads its options: same words, same errors. */
#include <stdlib.h>

#include "query/window.h"
#include "query/zone.h"
#include "report/text.h"
#include "serve/api_impl.h"
#include "util/suggest.h"

#define WINDOW_MS (7 * DAY_MS) /* the last ones that the ledger has */
#define LIMIT_MAX 1000000

static const struct common {
    const char *name;
    unsigned takes;
} commons[] = {
    {"window", TAKES_WINDOW}, {"tz", TAKES_WINDOW}, {"by", TAKES_BY},
    {"filter", TAKES_FILTER}, {"sort", TAKES_SORT}, {"limit", TAKES_LIMIT},
};
#define COMMONS (sizeof commons / sizeof *commons)
#define WORDS_MAX 32

struct str api_text(const struct api_call *call, const char *name)
{
    return http_parameter(call->request, name);
}

bool api_is_view(const struct api_call *call)
{
    return call->request->access->view.limited;
}

enum err api_need(const struct api_call *call, const char *name, struct str *ret, struct error *err)
{
    *ret = api_text(call, name);
    return ret->n ? ERR_OK : error_set(err, ERR_USAGE, "the parameter %s is missing", name);
}

enum err api_number(const struct api_call *call, const char *name, int64_t least, int64_t most,
                    int64_t *ret, struct error *err)
{
    struct str text = api_text(call, name);
    long long value = 0;
    if (!text.n)
        return ERR_OK;
    if (!str_to_i64(text, &value) || value < least || value > most)
        return error_set(err, ERR_USAGE, "%s: \"%.*s\" is no whole number from %lld to %lld", name,
                         STR_ARG(text), (long long)least, (long long)most);
    *ret = value;
    return ERR_OK;
}

enum err api_window(const struct api_call *call, struct str text, struct span *ret,
                    bool *ret_widened, struct error *err)
{
    enum err code = window_parse(text, call->tz, call->now, ret, ret_widened, err);
    if (code != ERR_OK)
        error_prefix(err, "window");
    return code;
}

static enum err check_names(const struct api_call *call, const struct api_endpoint *endpoint,
                            struct error *err)
{
    const char *words[WORDS_MAX];
    size_t n = 0;
    for (size_t i = 0; i < COMMONS; i++)
        if (endpoint->takes & commons[i].takes)
            words[n++] = commons[i].name;
    for (const struct api_parameter *p = endpoint->parameters; p && p->name; p++)
        words[n++] = p->name;
    for (size_t i = 0; i < call->request->query_n; i++) {
        struct str name = call->request->query[i].name;
        size_t w = 0;
        while (w < n && !str_eq(name, str_of(words[w])))
            w++;
        if (w < n)
            continue;
        const char *near = n ? suggest(name, words, n) : NULL;
        return error_set(err, ERR_USAGE, "there is no parameter \"%.*s\"%s%s%s", STR_ARG(name),
                         near ? ": did you mean " : "", near ? near : "", near ? "?" : "");
    }
    return ERR_OK;
}

static struct span default_window(struct span extent)
{
    bool longer = extent.to - extent.from > WINDOW_MS;
    return (struct span){longer ? extent.to - WINDOW_MS : extent.from, extent.to};
}

bool api_asked_window(struct api *api, struct span extent, const char *text, struct span *ret)
{
    struct error none = {0};
    bool widened;
    *ret = default_window(extent);
    if (!text)
        return true;
    pthread_rwlock_rdlock(&api->settings_lock);
    enum err code = window_parse(str_of(text), api->settings.tz, clock_now(), ret, &widened, &none);
    pthread_rwlock_unlock(&api->settings_lock);
    return code == ERR_OK;
}

/* Endpoints that read their window by themselves get that of the last hours. */
static enum err read_window(struct api_call *call, const struct api_endpoint *endpoint,
                            struct error *err)
{
    struct str tz = api_text(call, "tz"), text = api_text(call, "window");
    const struct zone *zone;
    call->tz = tz.n ? tz.p : call->settings->tz;
    enum err code = zone_load(call->tz, &zone, err);
    if (code != ERR_OK)
        return code;
    if (text.n && (endpoint->takes & TAKES_WINDOW))
        return api_window(call, text, &call->window, &call->window_widened, err);
    call->window = default_window(call->extent);
    return ERR_OK;
}

static enum err read_filters(struct api_call *call, struct error *err)
{
    for (size_t i = 0; i < call->request->query_n; i++) {
        const struct http_pair *pair = &call->request->query[i];
        if (!str_eq(pair->name, STR("filter")))
            continue;
        enum err code = query_parse_filter(pair->value, &call->query, err);
        if (code != ERR_OK) {
            error_prefix(err, "filter");
            return code;
        }
    }
    return ERR_OK;
}

enum err api_read_parameters(struct api_call *call, const struct api_endpoint *endpoint,
                             struct error *err)
{
    enum err code = ERR_OK;
    int64_t limit = 0;
    if (!(endpoint->takes & TAKES_ANY))
        code = check_names(call, endpoint, err);
    if (code == ERR_OK)
        code = read_window(call, endpoint, err);
    if (code != ERR_OK)
        return code;
    call->query = (struct query){.window = call->window, .tz = call->tz};
    call->by_given = (endpoint->takes & TAKES_BY) && api_text(call, "by").n;
    code = query_parse_keys(call->by_given ? api_text(call, "by") : STR("team"), &call->query, err);
    if (code != ERR_OK)
        error_prefix(err, "by");
    if (code == ERR_OK && (endpoint->takes & TAKES_FILTER))
        code = read_filters(call, err);
    if (code == ERR_OK && (endpoint->takes & TAKES_LIMIT))
        code = api_number(call, "limit", 1, LIMIT_MAX, &limit, err);
    call->limit = (size_t)limit;
    if (endpoint->takes & TAKES_SORT)
        call->sort = api_text(call, "sort");
    return code;
}

/* ---- JSON ---- */

void api_put_string(struct strbuf *out, struct str text)
{
    strbuf_addc(out, '"');
    text_json(out, text);
    strbuf_addc(out, '"');
}

void api_put_or_null(struct strbuf *out, struct str text)
{
    if (text.n)
        api_put_string(out, text);
    else
        strbuf_add(out, STR("null"));
}

void api_put_money(struct strbuf *out, money_t amount)
{
    char text[MONEY_TEXT_MAX];
    strbuf_addf(out, "\"%s\"", money_format(amount, text));
}

void api_put_time(struct strbuf *out, time_ms t)
{
    char text[TIME_TEXT_MAX];
    api_put_or_null(out, t == TIME_MIN ? STR_NONE : str_of(time_format(t, text)));
}
