#include "wire/promtext_head.h"

#include "wire/utf8.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

enum { NAME_START = 1, NAME_REST = 2, COLON = 4, BLANK = 8 };

static const uint8_t kinds[256] = {
    ['a' ... 'z'] = NAME_START | NAME_REST,
    ['A' ... 'Z'] = NAME_START | NAME_REST,
    ['_'] = NAME_START | NAME_REST,
    ['0' ... '9'] = NAME_REST,
    [':'] = COLON,
    [' '] = BLANK,
    ['\t'] = BLANK,
};

static inline bool is(char c, unsigned kind)
{
    return kinds[(unsigned char)c] & kind;
}

static const char *skip_blanks(const char *p)
{
    while (is(*p, BLANK))
        p++;
    return p;
}

/* A bare name at p, kind COLON for a metric's. Its end, or p where there is none. */
static const char *skip_name(const char *p, unsigned kind)
{
    if (!is(*p, NAME_START | kind))
        return p;
    do
        p++;
    while (is(*p, NAME_REST | kind));
    return p;
}

/* The first quote, backslash or newline at or after p; end, where a newline stands, at the latest.
 */
static inline const char *find_stop(const char *p, const char *end)
{
#if defined(__SSE2__)
    const __m128i quote = _mm_set1_epi8('"'), slash = _mm_set1_epi8('\\');
    for (; end - p >= 16; p += 16) {
        __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)p);
        __m128i hit = _mm_or_si128(_mm_cmpeq_epi8(bytes, quote), _mm_cmpeq_epi8(bytes, slash));
        unsigned mask = (unsigned)_mm_movemask_epi8(hit);
        if (mask)
            return p + __builtin_ctz(mask);
    }
#endif
    while (p < end && *p != '"' && *p != '\\')
        p++;
    return p;
}

/* The rest of a quoted text that has escapes; p is at the first backslash. */
static const char *unescape(struct promtext_head *head, const char *from, const char *p,
                            const char *end, struct str *ret)
{
    size_t at = head->unescaped.n;
    char *to = head->unescaped.text + at;
    memcpy(to, from, (size_t)(p - from));
    to += p - from;
    while (p < end && *p != '"') {
        if (*p == '\\' && p + 1 < end && (p[1] == '\\' || p[1] == '"' || p[1] == 'n')) {
            *to++ = p[1] == 'n' ? '\n' : p[1];
            p += 2;
        } else {
            *to++ = *p++;
        }
    }
    if (p == end)
        return NULL;
    head->unescaped.n = (size_t)(to - head->unescaped.text);
    *ret = (struct str){head->unescaped.text + at, head->unescaped.n - at};
    return p + 1;
}

/* A quoted text behind its opening quote: what follows the closing one, NULL where there is none.
 * An escape that is not known stands for itself, backslash and all, as in Prometheus. */
static inline const char *quoted(struct promtext_head *head, const char *p, const char *end,
                                 struct str *ret)
{
    const char *stop = find_stop(p, end);
    if (stop == end)
        return NULL;
    if (*stop == '\\')
        return unescape(head, p, stop, end, ret);
    *ret = (struct str){p, (size_t)(stop - p)};
    return stop + 1;
}

static bool names_unique(const struct label *labels, size_t n)
{
    for (size_t i = 1; i < n; i++)
        for (size_t k = 0; k < i; k++)
            if (str_eq(labels[i].name, labels[k].name))
                return false;
    return true;
}

/* Remember a beginning; false where it does not fit. */
static bool shape_keep(struct promtext_shape *shape, const char *from, const char *to)
{
    size_t n = (size_t)(to - from);
    if (n >= PROMTEXT_SHAPE_BYTES)
        return false;
    memset(shape->text, 0, sizeof shape->text);
    memcpy(shape->text, from, n);
    shape->n = (uint32_t)n;
    shape->mask = (UINT32_C(1) << n) - 1;
    return true;
}

/* Does p begin as this part of the head before did? */
static inline bool has_shape(const struct promtext_shape *shape, const char *p, const char *end)
{
#if defined(__SSE2__)
    if (end - p >= PROMTEXT_SHAPE_BYTES) {
        const __m128i *a = (const __m128i *)(const void *)p;
        const __m128i *b = (const __m128i *)(const void *)shape->text;
        __m128i low = _mm_cmpeq_epi8(_mm_loadu_si128(a), _mm_loadu_si128(b));
        __m128i high = _mm_cmpeq_epi8(_mm_loadu_si128(a + 1), _mm_loadu_si128(b + 1));
        uint32_t same = (uint32_t)_mm_movemask_epi8(low) | (uint32_t)_mm_movemask_epi8(high) << 16;
        return (same & shape->mask) == shape->mask;
    }
#endif
    return shape->n <= (size_t)(end - p) && memcmp(p, shape->text, shape->n) == 0;
}

/* A label's name or the quoted metric name at p. Returns behind the label's opening quote, or, with
 * *ret_is_metric, behind the metric's name. */
static const char *label_name(struct promtext_head *head, const char *p, const char *end,
                              struct str *ret, bool *ret_is_metric, const char **ret_reason)
{
    *ret_reason = "a label has no name";
    const char *behind;
    bool quotes = *p == '"';
    if (quotes) {
        behind = quoted(head, p + 1, end, ret);
        if (!behind) {
            *ret_reason = "a quoted text does not end";
            return NULL;
        }
    } else {
        behind = skip_name(p, 0);
        *ret = (struct str){p, (size_t)(behind - p)};
    }
    p = skip_blanks(behind);
    *ret_is_metric = quotes && *p != '=';
    if (*ret_is_metric)
        return behind;
    if (ret->n == 0) {
        if (p == end)
            *ret_reason = "the labels do not end";
        return NULL;
    }
    *ret_reason = "no = after a label's name";
    if (*p != '=')
        return NULL;
    p = skip_blanks(p + 1);
    *ret_reason = "a label's value is not quoted";
    return *p == '"' ? p + 1 : NULL;
}

/* The label that is not where the head before had it: its name by the grammar. Returns behind the
 * value's opening quote, or NULL; with *ret_is_metric, behind the quoted metric name. */
static const char *new_label(struct promtext_head *head, const char *p, const char *end, size_t i,
                             bool *shaped, bool *ret_is_metric, const char **ret_reason)
{
    const char *from = p;
    struct str name;
    if (head->n == PROMTEXT_LABELS_MAX) {
        *ret_reason = "too many labels";
        return NULL;
    }
    p = label_name(head, p, end, &name, ret_is_metric, ret_reason);
    if (!p)
        return NULL;
    if (*ret_is_metric) {
        *ret_reason = "the metric's name stands twice";
        if (head->labels[0].value.n)
            return NULL;
        head->labels[0].value = name;
        return p;
    }
    head->labels[head->n].name = name;
    bool usual = *from != '"' && (size_t)(p - from) == name.n + 2;
    *shaped = *shaped && usual && shape_keep(&head->shape[i], from, p);
    if (*shaped)
        head->shape_n = i + 1;
    else if (i < head->shape_n)
        head->shape_n = i;
    return p;
}

/* What stands behind a label: *ret_more where another may follow. */
static const char *after_label(const char *p, const char *end, bool *ret_more,
                               const char **ret_reason)
{
    *ret_more = true;
    if (*p == ',')
        return p + 1;
    p = skip_blanks(p);
    if (*p == ',')
        return p + 1;
    *ret_more = false;
    if (*p == '}')
        return p + 1;
    *ret_reason = p == end ? "the labels do not end" : "no comma between labels";
    return NULL;
}

/* The labels behind the opening brace; returns behind the closing one. *ret_same: every name stood
 * at the same place in the head before. */
static const char *each_label(struct promtext_head *head, const char *p, const char *end,
                              bool *ret_same, const char **ret_reason)
{
    bool shaped = true; /* every name so far has its place in shape */
    bool more = true;
    for (size_t i = 0; more;) {
        bool is_metric = false;
        if (i < head->shape_n && has_shape(&head->shape[i], p, end)) {
            size_t n = head->shape[i].n;
            head->labels[head->n].name = (struct str){p, n - 2};
            p += n;
        } else {
            p = skip_blanks(p);
            if (*p == '}') {
                p++;
                break;
            }
            *ret_same = false;
            p = new_label(head, p, end, i, &shaped, &is_metric, ret_reason);
            if (!p)
                return NULL;
        }
        if (!is_metric) {
            *ret_reason = "a quoted text does not end";
            p = quoted(head, p, end, &head->labels[head->n].value);
            if (!p)
                return NULL;
            head->n++;
            i++;
        }
        p = after_label(p, end, &more, ret_reason);
        if (!p)
            return NULL;
    }
    return p;
}

/* The same, with names that are unique. A shape of which that is not known, since its head broke
 * off or has a name twice, must not vouch for the next head. */
static const char *read_labels(struct promtext_head *head, const char *p, const char *end,
                               const char **ret_reason)
{
    bool same = true;
    p = each_label(head, p, end, &same, ret_reason);
    if (same)
        return p;
    if (p && names_unique(head->labels, head->n))
        return p;
    head->shape_n = 0;
    if (p)
        *ret_reason = "a label stands twice";
    return NULL;
}

/* The metric's name at p, which may be empty, as the label that it is; behind it. */
static const char *read_name(struct promtext_head *head, const char *p, const char *end)
{
    const char *behind;
    if (head->metric.n && has_shape(&head->metric, p, end)) {
        behind = p + head->metric.n - 1;
    } else {
        behind = skip_name(p, COLON);
        if (*behind == '{' && behind > p && !shape_keep(&head->metric, p, behind + 1))
            head->metric.n = 0;
    }
    head->labels[0] = (struct label){STR("__name__"), {p, (size_t)(behind - p)}};
    head->n = 1;
    return behind;
}

const char *promtext_head_read(struct promtext_head *head, const char *p, const char *end,
                               const char **ret_reason)
{
    const char *from = p, *name_end = read_name(head, p, end);
    head->unescaped.n = 0;
    mem_reserve(head->unescaped.text, head->unescaped.n, head->unescaped.room,
                (size_t)(end - p) + 1);
    p = skip_blanks(name_end);
    if (*p == '{') {
        p = read_labels(head, p + 1, end, ret_reason);
        if (!p)
            return NULL;
    } else {
        p = name_end;
        *ret_reason = "no blank after the metric's name";
        if (p > from && p < end && !is(*p, BLANK))
            return NULL;
    }
    *ret_reason = "no metric name";
    if (head->labels[0].value.n == 0)
        return NULL;
    *ret_reason = "not UTF-8";
    return utf8_valid((struct str){from, (size_t)(p - from)}) ? p : NULL;
}

void promtext_head_release(struct promtext_head *head)
{
    strbuf_release(&head->unescaped);
}
