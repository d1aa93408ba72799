/* Lines, heads and numbers.
 *
 * Every head that was tokenised once is remembered by a hash of its raw bytes (util/hash), their
 * number, and what the sink called its series. Its text is not kept: a fleet's heads weigh 300
 * bytes each. A head also remembers which head followed it; that is the guess for
 * the next line, and it is right for the same target scraped again, for a file that goes round the
 * same series at every step, and, as each head then follows itself, for a file that has a series'
 * lines together. A right guess gives the head's length, so that nothing is searched: the hash is
 * compared, then comes the number, which ends the line. In the third case the line's head is
 * compared with the bytes of the line before instead.
 *
 * A line that is not guessed right takes the long way: its end, its head's end, a look into the
 * table, the tokeniser where that does not know the head. */
#include "wire/promtext.h"

#include <stdlib.h>
#include <sys/random.h>

#include "util/hash.h"
#include "wire/number.h"
#include "wire/promtext_head.h"

#define LINE_TOO_LONG "the line is too long"
#define BEGINS_MAX 100 /* bytes of a bad line that are shown */
#define NO_HEAD 0u
#define AUTO_MS_FROM INT64_C(100000000000)
#define SLOTS_MIN 256u
#define TURNOVER 2u /* heads per head of the last text above which all are forgotten */
#define TURNOVER_MIN 4096u

/* Heads are numbered from 1; number 0 stands before a text's first. */
struct head {
    uint64_t hash;
    uint32_t bytes;  /* of the head's raw text */
    uint32_t series; /* the sink's id */
    uint32_t next;   /* the head that followed last time */
    uint32_t text;   /* the number of the text that it was in last */
    time_ms last;    /* its last stamp there */
};

struct promtext_layout {
    struct head *heads;
    size_t heads_n, heads_room;
    uint32_t *slots; /* head numbers by hash, NO_HEAD where empty; size a power of two */
    size_t slots_n;
    uint32_t text;     /* number of this text */
    size_t text_heads; /* heads seen in it */
};

struct promtext {
    struct promtext_sink sink;
    enum promtext_dialect dialect;
    struct promtext_stats stats;
    time_ms unstamped;
    bool discarding; /* inside a line that is too long */

    struct promtext_layout l;     /* what is known of the texts before … */
    struct promtext_layout *used; /* … and where it belongs; NULL: here */
    struct promtext_layout own;   /* while another one is used */
    uint32_t current;             /* head of the line before */
    struct str last;              /* its bytes, while they stand in the piece at hand */

    uint32_t batch_id[PROMTEXT_BATCH];
    time_ms batch_t[PROMTEXT_BATCH];
    double batch_v[PROMTEXT_BATCH];
    size_t batch_n;

    struct strbuf rest; /* a line's beginning whose end has not come */
    struct promtext_head tokens;
    unsigned char secret[HASH_SECRET_BYTES];
};

static void random_secret(unsigned char *secret, size_t n)
{
    ssize_t got = getrandom(secret, n, 0);
    if (got != (ssize_t)n) {
        uint64_t seed = (uint64_t)clock_now() ^ (uint64_t)(uintptr_t)secret;
        for (size_t i = 0; i < n; i++) {
            seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
            secret[i] = (unsigned char)(seed >> 56);
        }
    }
}

static void layout_begin(struct promtext *x)
{
    x->l.text = 1;
    promtext_forget(x);
}

struct promtext *promtext_new(enum promtext_dialect dialect, const struct promtext_sink *sink)
{
    struct promtext *x = mem_zalloc(1, sizeof *x);
    x->sink = *sink;
    x->dialect = dialect;
    x->unstamped = PROMTEXT_NO_TIME;
    random_secret(x->secret, sizeof x->secret);
    layout_begin(x);
    return x;
}

void promtext_free(struct promtext *x)
{
    if (!x)
        return;
    promtext_use(x, NULL);
    promtext_head_release(&x->tokens);
    strbuf_release(&x->rest);
    free(x->l.heads);
    free(x->l.slots);
    free(x);
}

static void slots_make(struct promtext *x, size_t n)
{
    free(x->l.slots);
    x->l.slots = mem_zalloc(n, sizeof *x->l.slots);
    x->l.slots_n = n;
    for (size_t i = 1; i < x->l.heads_n; i++) {
        size_t at = x->l.heads[i].hash & (n - 1);
        while (x->l.slots[at])
            at = (at + 1) & (n - 1);
        x->l.slots[at] = (uint32_t)i;
    }
}

void promtext_forget(struct promtext *x)
{
    struct head none = {0};
    x->l.heads_n = 0;
    mem_push(x->l.heads, x->l.heads_n, x->l.heads_room, none);
    slots_make(x, SLOTS_MIN);
    x->current = NO_HEAD;
    x->last = STR_NONE;
}

struct promtext_layout *promtext_layout_new(void)
{
    return mem_zalloc(1, sizeof(struct promtext_layout));
}

void promtext_layout_free(struct promtext_layout *layout)
{
    if (!layout)
        return;
    free(layout->heads);
    free(layout->slots);
    free(layout);
}

void promtext_use(struct promtext *x, struct promtext_layout *layout)
{
    if (x->used) {
        *x->used = x->l;
        x->l = x->own;
    }
    x->used = layout;
    if (layout) {
        x->own = x->l;
        x->l = *layout;
    }
    if (x->l.heads_n == 0)
        layout_begin(x);
    x->current = NO_HEAD;
}

size_t promtext_remembered(const struct promtext *x)
{
    return x->l.heads_n - 1;
}

size_t promtext_layout_bytes(const struct promtext_layout *layout)
{
    return sizeof *layout + layout->heads_room * sizeof *layout->heads +
           layout->slots_n * sizeof *layout->slots;
}

void promtext_vanished(const struct promtext *x, void (*each)(void *context, uint32_t series),
                       void *context)
{
    for (size_t i = 1; i < x->l.heads_n; i++)
        if (x->l.heads[i].text + 1 == x->l.text && x->l.heads[i].series != PROMTEXT_SKIP)
            each(context, x->l.heads[i].series);
}

void promtext_begin(struct promtext *x, time_ms unstamped)
{
    if (x->l.heads_n > TURNOVER * x->l.text_heads + TURNOVER_MIN)
        promtext_forget(x);
    x->stats = (struct promtext_stats){0};
    x->unstamped = unstamped;
    x->l.text++;
    x->l.text_heads = 0;
    x->discarding = false;
    x->current = NO_HEAD;
    x->last = STR_NONE;
    x->batch_n = 0;
    strbuf_clear(&x->rest);
}

const struct promtext_stats *promtext_stats(const struct promtext *x)
{
    return &x->stats;
}

static void deliver(struct promtext *x)
{
    if (x->batch_n)
        x->sink.samples(x->sink.context, x->batch_id, x->batch_t, x->batch_v, x->batch_n);
    x->batch_n = 0;
}

static inline void sample(struct promtext *x, uint32_t number, bool stamped, time_ms t, double v)
{
    struct head *head = &x->l.heads[number];
    x->current = number;
    x->stats.unstamped += !stamped;
    if (head->text != x->l.text) {
        head->text = x->l.text;
        x->l.text_heads++;
    } else if (head->last == t) {
        x->stats.duplicates++;
        return;
    }
    head->last = t;
    if (head->series == PROMTEXT_SKIP) {
        x->stats.skipped++;
        return;
    }
    x->stats.samples++;
    x->batch_id[x->batch_n] = head->series;
    x->batch_t[x->batch_n] = t;
    x->batch_v[x->batch_n] = v;
    if (++x->batch_n == PROMTEXT_BATCH)
        deliver(x);
}

static inline uint64_t hash_of(const struct promtext *x, const char *p, size_t n)
{
    return hash_bytes((struct str){p, n}, x->secret);
}

/* A stamp in the short form at p, up to the newline; NULL where the long way must look at it. */
static inline const char *quick_stamp(const struct promtext *x, const char *p, time_ms *ret)
{
    bool minus = *p == '-';
    int64_t value;
    p = number_scan_whole(p + minus, &value);
    if (!p)
        return NULL;
    bool ms = x->dialect == PROMTEXT_TEXT || (x->dialect == PROMTEXT_AUTO && value >= AUTO_MS_FROM);
    if (*p == '\n' && ms && value <= TIME_MAX) {
        *ret = minus ? -value : value;
        return p;
    }
    if (ms || value > TIME_MAX / 1000 - 1)
        return NULL;
    int64_t part = 0, unit = 1000;
    if (*p == '.')
        for (p++; *p >= '0' && *p <= '9' && unit > 1; p++)
            part += (*p - '0') * (unit /= 10);
    if (*p != '\n')
        return NULL;
    value = value * 1000 + part;
    *ret = minus ? -value : value;
    return p;
}

/* The line at p where its head is the one expected and the rest is in the short form: the next
 * line; NULL, and nothing done, where not. A newline stands before end. */
static inline const char *quick_line(struct promtext *x, const char *p, const char *end)
{
    uint32_t number = x->l.heads[x->current].next;
    const struct head *head = &x->l.heads[number];
    size_t n = head->bytes;
    if (number == NO_HEAD || (size_t)(end - p) <= n || p[n] != ' ')
        return NULL;
    if (number == x->current && x->last.n) {
        if (memcmp(p, x->last.p, n) != 0)
            return NULL;
    } else if (hash_of(x, p, n) != head->hash) {
        return NULL;
    }
    double v;
    const char *q = number_scan(p + n + 1, &v);
    if (!q)
        return NULL;
    time_ms t = x->unstamped;
    bool stamped = *q == ' ';
    if (stamped) {
        q = quick_stamp(x, q + 1, &t);
        if (!q)
            return NULL;
    } else if (*q != '\n') {
        return NULL;
    }
    if ((size_t)(q - p) > PROMTEXT_LINE_MAX)
        return NULL;
    x->last = (struct str){p, n};
    sample(x, number, stamped, t, v);
    return q + 1;
}

static void bad_line(struct promtext *x, const char *p, size_t n, const char *reason)
{
    x->stats.bad_lines++;
    if (x->sink.bad_line)
        x->sink.bad_line(x->sink.context, x->stats.lines,
                         (struct str){p, n < BEGINS_MAX ? n : BEGINS_MAX}, reason);
}

static uint32_t find(const struct promtext *x, const char *p, size_t n, uint64_t *ret_hash)
{
    uint64_t hash = *ret_hash = hash_of(x, p, n);
    for (size_t at = hash & (x->l.slots_n - 1);; at = (at + 1) & (x->l.slots_n - 1)) {
        uint32_t number = x->l.slots[at];
        if (number == NO_HEAD)
            return NO_HEAD;
        const struct head *head = &x->l.heads[number];
        if (head->hash == hash && head->bytes == n)
            return number;
    }
}

/* A head that is new: ask the sink for its series. */
static uint32_t add(struct promtext *x, size_t n, uint64_t hash)
{
    x->stats.heads++;
    if (x->l.heads_n > PROMTEXT_HEADS_MAX)
        promtext_forget(x);
    struct head head = {.hash = hash, .bytes = (uint32_t)n};
    head.series = x->sink.series(x->sink.context, x->tokens.labels, x->tokens.n);
    mem_push(x->l.heads, x->l.heads_n, x->l.heads_room, head);
    uint32_t number = (uint32_t)(x->l.heads_n - 1);
    if (x->l.heads_n * 2 > x->l.slots_n) {
        slots_make(x, x->l.slots_n * 2);
    } else {
        size_t at = hash & (x->l.slots_n - 1);
        while (x->l.slots[at])
            at = (at + 1) & (x->l.slots_n - 1);
        x->l.slots[at] = number;
    }
    return number;
}

/* The head at p of a line that ends at end: its number and its end, NO_HEAD and the reason. */
static uint32_t head_at(struct promtext *x, const char *p, const char *end, const char **ret_end,
                        const char **ret_reason)
{
    /* Mostly the last brace of the line ends the head; an exemplar has one too. Whether it does is
     * known as soon as the table knows these bytes, since no head begins with another in braces. */
    uint64_t hash = 0;
    const char *brace = memrchr(p, '}', (size_t)(end - p));
    uint32_t number = NO_HEAD;
    if (brace) {
        *ret_end = brace + 1;
        number = find(x, p, (size_t)(brace + 1 - p), &hash);
    }
    if (number)
        return number;
    const char *head_end = promtext_head_read(&x->tokens, p, end, ret_reason);
    if (!head_end)
        return NO_HEAD;
    if (!brace || head_end != brace + 1)
        number = find(x, p, (size_t)(head_end - p), &hash);
    *ret_end = head_end;
    return number ? number : add(x, (size_t)(head_end - p), hash);
}

static const char *skip_blanks(const char *p, const char *end)
{
    while (p < end && (*p == ' ' || *p == '\t'))
        p++;
    return p;
}

static struct str word(const char **p, const char *end)
{
    const char *from = *p;
    while (*p < end && **p != ' ' && **p != '\t')
        ++*p;
    return (struct str){from, (size_t)(*p - from)};
}

static bool read_stamp(const struct promtext *x, struct str text, time_ms *ret)
{
    long long ms;
    bool plus = text.n && text.p[0] == '+';
    bool whole = str_to_i64((struct str){text.p + plus, text.n - plus}, &ms);
    whole = whole && !(plus && ms < 0);
    if (x->dialect == PROMTEXT_TEXT ||
        (x->dialect == PROMTEXT_AUTO && whole && (ms >= AUTO_MS_FROM || ms <= -AUTO_MS_FROM))) {
        if (!whole || ms < TIME_MIN || ms > TIME_MAX)
            return false;
        *ret = ms;
        return true;
    }
    return number_parse_seconds(text, ret);
}

/* Behind the head: value, time stamp, exemplar. False and the reason where they are not. */
static bool read_tail(const struct promtext *x, const char *p, const char *end, double *ret_v,
                      bool *ret_stamped, time_ms *ret_t, const char **ret_reason)
{
    p = skip_blanks(p, end);
    *ret_reason = "no value";
    if (p == end)
        return false;
    *ret_t = x->unstamped;
    *ret_stamped = false;
    if (number_scan(p, ret_v) == end)
        return true;
    *ret_reason = "the value is no number";
    if (!number_parse(word(&p, end), ret_v))
        return false;
    p = skip_blanks(p, end);
    *ret_stamped = p < end && *p != '#';
    if (*ret_stamped) {
        *ret_reason = "the time stamp is none";
        if (!read_stamp(x, word(&p, end), ret_t))
            return false;
        p = skip_blanks(p, end);
    }
    *ret_reason = "more than a value and a time stamp";
    return p == end || *p == '#';
}

static void remark(struct promtext *x, const char *p, const char *end)
{
    if (str_eq((struct str){p, (size_t)(end - p)}, STR("# EOF")))
        x->stats.eof_mark = true;
}

/* Any line, from p to the newline at end. */
static void long_way(struct promtext *x, const char *p, const char *end)
{
    const char *line = p;
    size_t bytes = (size_t)(end - p);
    if (bytes > PROMTEXT_LINE_MAX) {
        bad_line(x, line, bytes, LINE_TOO_LONG);
        return;
    }
    if (end > p && end[-1] == '\r')
        end--;
    p = skip_blanks(p, end);
    if (p == end)
        return;
    if (*p == '#') {
        remark(x, p, end);
        return;
    }
    const char *reason, *head_end;
    uint32_t before = x->current, number = head_at(x, p, end, &head_end, &reason);
    double v;
    time_ms t;
    bool stamped;
    if (!number || !read_tail(x, head_end, end, &v, &stamped, &t, &reason)) {
        bad_line(x, line, bytes, reason);
        return;
    }
    if (before < x->l.heads_n)
        x->l.heads[before].next = number;
    x->last = p == line ? (struct str){p, (size_t)(head_end - p)} : STR_NONE;
    sample(x, number, stamped, t, v);
}

/* Whole lines: end is behind a newline. */
static void read_lines(struct promtext *x, const char *p, const char *end)
{
    x->last = STR_NONE;
    while (p < end) {
        x->stats.lines++;
        const char *next = *p == '#' ? NULL : quick_line(x, p, end);
        if (!next) {
            const char *newline = memchr(p, '\n', (size_t)(end - p));
            long_way(x, p, newline);
            next = newline + 1;
        }
        p = next;
    }
    x->last = STR_NONE;
}

/* Keep a piece of a line; one that is too long is reported now and dropped. */
static void keep_rest(struct promtext *x, const char *p, size_t n)
{
    size_t room = PROMTEXT_LINE_MAX + 1 - x->rest.n;
    strbuf_add(&x->rest, (struct str){p, n < room ? n : room});
    if (x->rest.n <= PROMTEXT_LINE_MAX)
        return;
    x->stats.lines++;
    bad_line(x, x->rest.text, x->rest.n, LINE_TOO_LONG);
    strbuf_release(&x->rest);
    x->discarding = true;
}

/* The end of a line that began in a piece before. */
static const char *end_rest(struct promtext *x, const char *p, const char *end)
{
    const char *newline = memchr(p, '\n', (size_t)(end - p));
    const char *stop = newline ? newline : end;
    if (!x->discarding)
        keep_rest(x, p, (size_t)(stop - p));
    if (!newline)
        return end;
    if (!x->discarding) {
        strbuf_addc(&x->rest, '\n');
        read_lines(x, x->rest.text, x->rest.text + x->rest.n);
    }
    x->discarding = false;
    strbuf_clear(&x->rest);
    return newline + 1;
}

void promtext_feed(struct promtext *x, struct str bytes)
{
    const char *p = bytes.p, *end = bytes.p + bytes.n;
    x->stats.bytes += bytes.n;
    if (bytes.n && (x->discarding || x->rest.n))
        p = end_rest(x, p, end);
    if (p == end)
        return;
    const char *last = memrchr(p, '\n', (size_t)(end - p));
    if (last) {
        read_lines(x, p, last + 1);
        p = last + 1;
    }
    if (p < end)
        keep_rest(x, p, (size_t)(end - p));
}

void promtext_finish(struct promtext *x)
{
    if (x->rest.n) {
        strbuf_addc(&x->rest, '\n');
        read_lines(x, x->rest.text, x->rest.text + x->rest.n);
        strbuf_clear(&x->rest);
    }
    x->discarding = false;
    deliver(x);
}
