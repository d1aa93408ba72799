/* A push parser: the stack of open containers and what the next byte may be are the whole state,
 * and a token that a piece cuts is kept until the rest has come.
 *
 * Every value has a part to play, known from its container's part and its key: the table of parts
 * is the shape of an answer. What plays no part is skipped by the same machine. Lists of [time,
 * "value"] pairs are all of the bytes of a large answer; they have a loop of their own
 * (quick_pairs), which gives up on anything unusual and leaves it to the machine. */
#include "wire/query_json.h"

#include <stdlib.h>

#include "wire/json_token.h"
#include "wire/number.h"
#include "wire/query_json_parts.h"
#include "wire/utf8.h"

#define MESSAGE_MAX ((size_t)1000) /* bytes of an error or warning that are kept */

/* What the next token may be. */
enum expect {
    EXPECT_VALUE,
    EXPECT_VALUE_OR_END,
    EXPECT_KEY,
    EXPECT_KEY_OR_END,
    EXPECT_COLON,
    EXPECT_COMMA_OR_END,
};

struct span_pair {
    size_t name_at, name_n, value_at, value_n;
};

struct query_json {
    struct query_json_sink sink;
    struct query_json_answer answer;
    struct arena arena; /* the answer's texts */
    struct strbuf rest; /* a token that was cut */
    size_t searched;    /* bytes of rest, a string, that hold no closing quote */
    uint64_t at;        /* bytes before the piece at hand */
    struct strbuf scratch;

    unsigned char parts[QUERY_JSON_DEPTH_MAX]; /* of the open containers */
    bool objects[QUERY_JSON_DEPTH_MAX];
    size_t depth;
    enum expect expect;
    enum part next; /* the part of the value that comes next */

    struct strbuf label_text;
    struct span_pair labels[QUERY_JSON_LABELS_MAX];
    size_t labels_n;
    bool labels_bad;
    bool told, wanted; /* the series at hand */

    size_t pair_n; /* elements of the pair at hand */
    bool pair_bad;
    time_ms pair_t;
    double pair_v;

    time_ms t[QUERY_JSON_BATCH];
    double v[QUERY_JSON_BATCH];
    size_t n;
    time_ms *early_t; /* values that stand before their metric */
    double *early_v;
    size_t early_n, early_room;
};

struct query_json *query_json_new(const struct query_json_sink *sink)
{
    struct query_json *x = mem_zalloc(1, sizeof *x);
    x->sink = *sink;
    x->next = PART_ANSWER;
    x->answer.error = x->answer.error_type = STR_NONE;
    return x;
}

void query_json_free(struct query_json *x)
{
    if (!x)
        return;
    arena_release(&x->arena);
    strbuf_release(&x->rest);
    strbuf_release(&x->scratch);
    strbuf_release(&x->label_text);
    free(x->early_t);
    free(x->early_v);
    free(x);
}

const struct query_json_answer *query_json_answer(const struct query_json *x)
{
    return &x->answer;
}

static void deliver(struct query_json *x)
{
    if (x->n && x->wanted) {
        x->answer.samples += x->n;
        x->sink.samples(x->sink.context, x->t, x->v, x->n);
    }
    x->n = 0;
}

static inline void sample(struct query_json *x, time_ms t, double v)
{
    x->t[x->n] = t;
    x->v[x->n] = v;
    if (++x->n == QUERY_JSON_BATCH)
        deliver(x);
}

/* The labels are whole: ask whether the series is wanted, and give it what stood before them. */
static void tell_series(struct query_json *x)
{
    struct label labels[QUERY_JSON_LABELS_MAX];
    struct str text = strbuf_str(&x->label_text);
    x->told = true;
    x->wanted = false;
    if (x->labels_bad || !utf8_valid(text)) {
        x->answer.refused_series++;
    } else {
        for (size_t i = 0; i < x->labels_n; i++) {
            const struct span_pair *at = &x->labels[i];
            labels[i] = (struct label){{text.p + at->name_at, at->name_n},
                                       {text.p + at->value_at, at->value_n}};
        }
        x->answer.series++;
        x->wanted = x->sink.series(x->sink.context, labels, x->labels_n);
    }
    for (size_t i = 0; i < x->early_n; i++)
        sample(x, x->early_t[i], x->early_v[i]);
    x->early_n = 0;
}

static enum err pair_done(struct query_json *x, struct error *err)
{
    bool good = x->pair_n == 2 && !x->pair_bad;
    x->pair_n = 0;
    if (!good) {
        x->answer.bad_values++;
        return ERR_OK;
    }
    if (x->told) {
        sample(x, x->pair_t, x->pair_v);
        return ERR_OK;
    }
    if (x->early_n == QUERY_JSON_EARLY_MAX)
        return error_set(err, ERR_LIMIT, "more than %zu values stand before their metric",
                         QUERY_JSON_EARLY_MAX);
    if (x->early_n == x->early_room) {
        x->early_room = x->early_room ? x->early_room * 2 : QUERY_JSON_BATCH;
        x->early_t = mem_realloc(x->early_t, x->early_room, sizeof *x->early_t);
        x->early_v = mem_realloc(x->early_v, x->early_room, sizeof *x->early_v);
    }
    x->early_t[x->early_n] = x->pair_t;
    x->early_v[x->early_n++] = x->pair_v;
    return ERR_OK;
}

static enum err limit(const struct query_json *x, const char *what, struct error *err)
{
    return error_set(err, ERR_LIMIT, "query answer, near byte %llu: %s", (unsigned long long)x->at,
                     what);
}

static enum err open(struct query_json *x, bool object, struct error *err)
{
    if (x->depth == QUERY_JSON_DEPTH_MAX)
        return limit(x, "nested too deep", err);
    enum part part = x->next;
    x->answer.histograms += part == PART_HISTOGRAM;
    if (part == PART_PAIR_ITEM)
        x->pair_bad = true;
    if (part == PART_LABEL)
        x->labels_bad = true;
    if (!query_part_opens(part, object))
        part = PART_SKIP;
    if (part == PART_SERIES || part == PART_METRIC || part == PART_DATA_ITEM) {
        strbuf_clear(&x->label_text);
        x->labels_n = 0;
        x->labels_bad = false;
    }
    if (part == PART_SERIES) {
        x->told = false;
        x->early_n = 0;
    }
    if (part == PART_PAIR || part == PART_RESULT) {
        x->pair_n = 0;
        x->pair_bad = false;
    }
    x->parts[x->depth] = (unsigned char)part;
    x->objects[x->depth++] = object;
    x->expect = object ? EXPECT_KEY_OR_END : EXPECT_VALUE_OR_END;
    x->next = object ? PART_SKIP : query_part_of(part, false, STR_NONE);
    return ERR_OK;
}

/* A value is over: what may come behind it. */
static void value_done(struct query_json *x)
{
    x->expect = x->depth ? EXPECT_COMMA_OR_END : EXPECT_VALUE;
    if (!x->depth)
        x->next = PART_ANSWER;
}

/* A result that is a pair itself: a scalar, as a series without labels. */
static enum err scalar_done(struct query_json *x, struct error *err)
{
    if (!x->pair_n)
        return ERR_OK;
    strbuf_clear(&x->label_text);
    x->labels_n = 0;
    x->labels_bad = false;
    x->early_n = 0;
    tell_series(x);
    enum err code = pair_done(x, err);
    deliver(x);
    return code;
}

static enum err shut(struct query_json *x, struct error *err)
{
    enum err code = ERR_OK;
    switch ((enum part)x->parts[--x->depth]) {
    case PART_METRIC:
        deliver(x);
        tell_series(x);
        break;
    case PART_DATA_ITEM:
        tell_series(x);
        break;
    case PART_SERIES:
        if (!x->told)
            tell_series(x);
        deliver(x);
        break;
    case PART_PAIR:
        code = pair_done(x, err);
        break;
    case PART_RESULT:
        code = scalar_done(x, err);
        break;
    default:
        break;
    }
    value_done(x);
    return code;
}

static struct str keep(struct query_json *x, struct str text)
{
    text.n = text.n < MESSAGE_MAX ? text.n : MESSAGE_MAX;
    return str_keep(&x->arena, text);
}

static enum err label_value(struct query_json *x, struct str text, struct error *err)
{
    if (x->label_text.n + text.n > QUERY_JSON_LABELS_BYTES_MAX)
        return limit(x, "too many bytes of labels", err);
    struct span_pair *label = &x->labels[x->labels_n++];
    label->value_at = x->label_text.n;
    label->value_n = text.n;
    strbuf_add(&x->label_text, text);
    return ERR_OK;
}

static enum err key(struct query_json *x, struct str text, struct error *err)
{
    x->next = query_part_of(x->parts[x->depth - 1], true, text);
    x->expect = EXPECT_COLON;
    if (x->next != PART_LABEL)
        return ERR_OK;
    if (x->labels_n == QUERY_JSON_LABELS_MAX)
        return limit(x, "too many labels", err);
    if (x->label_text.n + text.n > QUERY_JSON_LABELS_BYTES_MAX)
        return limit(x, "too many bytes of labels", err);
    struct span_pair *label = &x->labels[x->labels_n];
    label->name_at = x->label_text.n;
    label->name_n = text.n;
    strbuf_add(&x->label_text, text);
    return ERR_OK;
}

/* An element of a pair: the time is a number, the value a number in a string (or bare). */
static void pair_item(struct query_json *x, struct str text, bool string)
{
    size_t i = x->pair_n++;
    if (i == 0 && (string || !number_parse_seconds(text, &x->pair_t)))
        x->pair_bad = true;
    if (i == 1 && !number_parse(text, &x->pair_v)) {
        x->pair_bad = true;
        if (string && x->parts[x->depth - 1] == PART_RESULT && x->sink.text)
            x->sink.text(x->sink.context, text);
    }
}

static enum err string(struct query_json *x, struct str text, struct error *err)
{
    enum err code = ERR_OK;
    struct query_json_answer *answer = &x->answer;
    switch (x->next) {
    case PART_STATUS:
        answer->success = str_eq(text, STR("success")) && (answer->success || !answer->status_seen);
        answer->status_seen = true;
        break;
    case PART_ERROR:
        answer->error = keep(x, text);
        break;
    case PART_ERROR_TYPE:
        answer->error_type = keep(x, text);
        break;
    case PART_WARNING:
        answer->warnings_total++;
        if (answer->warnings_n < QUERY_JSON_WARNINGS_MAX)
            answer->warnings[answer->warnings_n++] = keep(x, text);
        break;
    case PART_INFO:
        answer->infos_total++;
        break;
    case PART_DATA_ITEM:
        answer->texts++;
        if (x->sink.text)
            x->sink.text(x->sink.context, text);
        break;
    case PART_LABEL:
        code = label_value(x, text, err);
        break;
    case PART_SERIES: /* an element of a result that is a pair */
    case PART_PAIR_ITEM:
        pair_item(x, text, true);
        break;
    default:
        break;
    }
    value_done(x);
    return code;
}

static void plain(struct query_json *x, struct str word)
{
    if (x->next == PART_PAIR_ITEM || x->next == PART_SERIES)
        pair_item(x, word, false);
    else if (x->next == PART_LABEL)
        x->labels_bad = true;
    value_done(x);
}

static enum err no_json(const struct query_json *x, const char *p, const char *from,
                        struct error *err)
{
    return error_set(err, ERR_PARSE, "no JSON answer: unexpected byte 0x%02x at byte %llu",
                     (unsigned char)*p, (unsigned long long)(x->at + (uint64_t)(p - from)));
}

/* A pair in its usual form at p, where a bracket comes at or after it before the piece ends: what
 * follows it, or NULL. */
static inline const char *quick_pair(const char *p, const char *bracket, time_ms *ret_t,
                                     double *ret_v)
{
    int64_t seconds, part = 0, unit = 1000;
    if (*p != '[')
        return NULL;
    const char *time = p + 1;
    p = number_scan_whole(time, &seconds);
    if (!p || seconds > TIME_MAX / 1000 - 1 || (*time == '0' && p - time > 1))
        return NULL;
    if (*p == '.')
        for (p++; *p >= '0' && *p <= '9' && unit > 1; p++)
            part += (*p - '0') * (unit /= 10);
    if (*p != ',' || p[-1] == '.')
        return NULL;
    p++;
    p += *p == ' ';
    if (*p != '"')
        return NULL;
    p++;
    const char *end = number_scan(p, ret_v);
    if (!end || *end != '"') {
        end = memchr(p, '"', (size_t)(bracket - p));
        if (!end || !number_parse((struct str){p, (size_t)(end - p)}, ret_v))
            return NULL;
    }
    *ret_t = seconds * 1000 + part;
    return end[1] == ']' ? end + 2 : NULL;
}

/* Pairs in their usual form from p on, while they and the comma behind them are whole. Leaves the
 * machine at the value that it did not take. */
static const char *quick_pairs(struct query_json *x, const char *p, const char *bracket)
{
    time_ms t;
    double v;
    while (p < bracket) {
        const char *next = quick_pair(p, bracket, &t, &v);
        if (!next || next > bracket || *next != ',')
            break;
        sample(x, t, v);
        p = next + 1;
        p += *p == ' ';
        x->expect = EXPECT_VALUE;
    }
    return p;
}

static bool is_space(char c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

/* A string at p: *ret behind it, or NULL where it is cut. */
static enum err string_token(struct query_json *x, const char *p, const char *end, const char *from,
                             const char **ret, struct error *err)
{
    const char *resume, *close = json_token_string_end(p + 1 + x->searched, end, &resume);
    *ret = NULL;
    size_t n = (size_t)((close ? close : end) - p);
    if (n > QUERY_JSON_TOKEN_MAX)
        return limit(x, "a string is too long", err);
    x->searched = close ? 0 : (size_t)(resume - (p + 1));
    if (!close)
        return ERR_OK;
    struct str text;
    if (!json_token_string((struct str){p + 1, n - 1}, &x->scratch, &text))
        return no_json(x, p, from, err);
    *ret = close + 1;
    bool is_key = x->expect == EXPECT_KEY || x->expect == EXPECT_KEY_OR_END;
    return is_key ? key(x, text, err) : string(x, text, err);
}

/* A number, true, false or null at p; as above. A word that the piece ends may go on. */
static enum err word_token(struct query_json *x, const char *p, const char *end, bool last,
                           const char *from, const char **ret, struct error *err)
{
    const char *stop = json_token_word_end(p, end);
    *ret = NULL;
    if ((size_t)(stop - p) > QUERY_JSON_TOKEN_MAX)
        return limit(x, "a number is too long", err);
    if (stop == end && !last)
        return ERR_OK;
    struct str word = {p, (size_t)(stop - p)};
    if (!json_token_is_word(word))
        return no_json(x, p, from, err);
    plain(x, word);
    *ret = stop;
    return ERR_OK;
}

/* A mark at p; false where it may not stand there. */
static bool mark(struct query_json *x, char c, enum err *ret, struct error *err)
{
    bool value = x->expect == EXPECT_VALUE || x->expect == EXPECT_VALUE_OR_END;
    bool in_object = x->depth && x->objects[x->depth - 1];
    bool end_fits =
        x->depth && (x->expect == EXPECT_COMMA_OR_END ||
                     x->expect == (in_object ? EXPECT_KEY_OR_END : EXPECT_VALUE_OR_END));
    *ret = ERR_OK;
    if ((c == '{' || c == '[') && value) {
        *ret = open(x, c == '{', err);
    } else if ((c == '}' && in_object && end_fits) || (c == ']' && !in_object && end_fits)) {
        *ret = shut(x, err);
    } else if (c == ',' && x->expect == EXPECT_COMMA_OR_END) {
        x->expect = in_object ? EXPECT_KEY : EXPECT_VALUE;
        x->next = in_object ? PART_SKIP : query_part_of(x->parts[x->depth - 1], false, STR_NONE);
    } else if (c == ':' && x->expect == EXPECT_COLON) {
        x->expect = EXPECT_VALUE;
    } else {
        return false;
    }
    return true;
}

/* Tokens from p on; *ret_stop is the first that is cut, or end. */
static enum err consume(struct query_json *x, const char *p, const char *end, bool last,
                        const char **ret_stop, struct error *err)
{
    const char *from = p, *bracket = p < end ? memrchr(p, ']', (size_t)(end - p)) : NULL;
    enum err code = ERR_OK;
    *ret_stop = end;
    while (p < end && !code) {
        if (is_space(*p)) {
            p++;
            continue;
        }
        bool value = x->expect == EXPECT_VALUE || x->expect == EXPECT_VALUE_OR_END;
        bool is_key = x->expect == EXPECT_KEY || x->expect == EXPECT_KEY_OR_END;
        const char *next = p + 1;
        if (*p == '[' && value && x->next == PART_PAIR && x->told && bracket &&
            x->parts[x->depth - 1] == PART_VALUES) {
            next = quick_pairs(x, p, bracket);
            if (next != p) {
                p = next;
                continue;
            }
            next = p + 1;
        }
        if (*p == '"' && (value || is_key)) {
            code = string_token(x, p, end, from, &next, err);
        } else if (value && json_token_word_end(p, p + 1) > p) {
            code = word_token(x, p, end, last, from, &next, err);
        } else if (!mark(x, *p, &code, err)) {
            return no_json(x, p, from, err);
        }
        if (!next) {
            *ret_stop = p;
            break;
        }
        p = next;
    }
    return code;
}

static enum err take(struct query_json *x, struct str bytes, bool last, struct error *err)
{
    bool kept = x->rest.n > 0;
    if (kept) {
        strbuf_add(&x->rest, bytes);
        bytes = strbuf_str(&x->rest);
    }
    const char *stop, *end = bytes.p + bytes.n;
    enum err code = consume(x, bytes.p, end, last, &stop, err);
    if (code)
        return code;
    x->at += (uint64_t)(stop - bytes.p);
    size_t left = (size_t)(end - stop);
    if (!kept)
        strbuf_add(&x->rest, (struct str){stop, left});
    else if (stop != bytes.p)
        memmove(x->rest.text, stop, left);
    x->rest.n = left;
    return ERR_OK;
}

enum err query_json_feed(struct query_json *x, struct str bytes, struct error *err)
{
    x->answer.bytes += bytes.n;
    return bytes.n ? take(x, bytes, false, err) : ERR_OK;
}

enum err query_json_finish(struct query_json *x, struct error *err)
{
    enum err code = take(x, STR_NONE, true, err);
    if (code)
        return code;
    if (x->depth || x->rest.n)
        return error_set(err, ERR_NETWORK, "query answer: cut after %llu bytes",
                         (unsigned long long)x->answer.bytes);
    if (!x->answer.status_seen)
        return error_set(err, ERR_PROTOCOL,
                         x->answer.bytes ? "JSON, but no answer of the Prometheus API (no status)"
                                         : "an empty answer");
    return ERR_OK;
}
