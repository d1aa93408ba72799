/* A scanner that knows four things of JSON: strings, escapes, brackets, and the keys of the
 * outermost object. That is enough to cut a list of any length into items, and it keeps the memory
 * of a 500 MB `kubectl get pods -A -o json` at that of its largest pod; a parser for whole
 * documents needs some twenty times the file.
 *
 * Where a byte belongs:
 *
 *     OUTSIDE   between documents              -> '{' DOCUMENT
 *     DOCUMENT  in a document, copied to head  -> '[' after the key "items" LIST; end OUTSIDE
 *     LIST      between items                  -> '{' ITEM; ']' DOCUMENT; other SCALAR
 *     ITEM      in an item, copied to text     -> its last bracket LIST
 *     SCALAR    an item that is no object      -> ',' or ']' LIST
 *     GARBAGE   text where a document should be -> '{' DOCUMENT
 *
 * A closing bracket of the wrong kind closes all that are open since the nearest opening one of its
 * kind, or nothing where there is none: so a lost bracket costs the item it is lost in. A raw
 * control byte ends a string, since JSON allows none inside: a lost quote costs a line. */
#include "wire/json_items.h"

#include <stdbool.h>
#include <stdlib.h>

enum place { OUTSIDE, DOCUMENT, LIST, ITEM, SCALAR, GARBAGE };
enum key { KEY_OTHER, KEY_ITEMS, KEY_KIND };

struct json_items {
    struct json_items_sink sink;
    enum place place;
    uint64_t offset; /* of the next byte fed */

    bool in_string, escaped;
    size_t depth; /* open brackets of the document (DOCUMENT) or of the item (ITEM) */
    char open[JSON_ITEM_DEPTH_MAX];

    struct strbuf head, text;
    bool head_over, text_over;

    uint64_t document, document_offset, index, item_offset;
    bool is_list;
    const char *broken; /* of the document or item that is read */

    /* keys: of the outermost object in DOCUMENT, of all in ITEM */
    bool want_key;    /* the next string is one */
    bool keep_word;   /* the string that is read goes to word */
    bool unwanted;    /* the value after the key is (ITEM) */
    size_t skip_from; /* depth outside the value that is skipped; 0: none is */
    enum key key;     /* DOCUMENT */
    char word[JSON_LIST_KIND_MAX];
    size_t word_n;
    char kind[JSON_LIST_KIND_MAX];
    size_t kind_n;
};

struct json_items *json_items_new(const struct json_items_sink *sink)
{
    struct json_items *s = mem_zalloc(1, sizeof *s);
    s->sink = *sink;
    return s;
}

void json_items_free(struct json_items *s)
{
    if (!s)
        return;
    strbuf_release(&s->head);
    strbuf_release(&s->text);
    free(s);
}

static void keep(struct strbuf *buf, bool *over, const char *p, size_t n)
{
    if (*over || buf->n + n > JSON_ITEM_MAX)
        *over = true;
    else
        strbuf_add(buf, (struct str){p, n});
}

static void push(struct json_items *s, char c)
{
    if (s->depth < JSON_ITEM_DEPTH_MAX)
        s->open[s->depth] = c;
    s->depth++;
}

static void pop(struct json_items *s, char c)
{
    char opener = c == '}' ? '{' : '[';
    size_t at = s->depth;
    while (at > 0 && at <= JSON_ITEM_DEPTH_MAX && s->open[at - 1] != opener)
        at--;
    if (at > 0)
        s->depth = at - 1;
}

static void hand_on(struct json_items *s, const struct strbuf *text, bool over, uint64_t index,
                    uint64_t offset)
{
    struct json_item item = {
        .text = over ? STR_NONE : strbuf_str(text),
        .kind = {s->kind, index ? s->kind_n : 0},
        .document = s->document,
        .index = index,
        .offset = offset,
        .broken = over ? "larger than 16 MiB" : s->broken,
    };
    s->sink.item(s->sink.context, &item);
}

static void end_item(struct json_items *s)
{
    hand_on(s, &s->text, s->text_over, s->index, s->item_offset);
    s->broken = NULL;
    s->place = LIST;
    s->depth = 1; /* of the document again */
    s->open[0] = '{';
}

static void end_document(struct json_items *s)
{
    if (!s->is_list)
        hand_on(s, &s->head, s->head_over, 0, s->document_offset);
    else if (s->sink.list)
        s->sink.list(s->sink.context, &(struct json_list){
                                          .rest = s->head_over ? STR_NONE : strbuf_str(&s->head),
                                          .document = s->document,
                                          .items = s->index,
                                          .offset = s->document_offset,
                                      });
    s->broken = NULL;
    s->place = OUTSIDE;
}

static void begin_document(struct json_items *s, uint64_t offset)
{
    s->place = DOCUMENT;
    s->document++;
    s->document_offset = offset;
    s->index = 0;
    s->is_list = s->in_string = s->escaped = s->head_over = false;
    strbuf_clear(&s->head);
    s->broken = NULL;
    s->want_key = true;
    s->key = KEY_OTHER;
    s->kind_n = 0;
    s->depth = 0;
    push(s, '{');
}

static void begin_item(struct json_items *s, enum place place, uint64_t offset)
{
    s->place = place;
    s->index++;
    s->item_offset = offset;
    s->in_string = s->escaped = s->text_over = false;
    strbuf_clear(&s->text);
    s->depth = 0;
    s->broken = place == SCALAR ? "not an object" : NULL;
    s->want_key = true;
    s->keep_word = s->unwanted = false;
    s->skip_from = 0;
    if (place == ITEM)
        push(s, '{');
}

/* The bytes of a string from p on; returns where it ends (behind the quote) or `end`. */
static const char *scan_string(struct json_items *s, const char *p, const char *end)
{
    for (; p < end; p++) {
        unsigned char c = (unsigned char)*p;
        if (s->escaped) {
            s->escaped = false;
        } else if (c == '\\') {
            s->escaped = true;
        } else if (c == '"') {
            s->in_string = false;
            return p + 1;
        }
        if (c < 0x20) { /* kept: a parser must see it too */
            s->in_string = s->escaped = false;
            return p + 1;
        }
        if (s->keep_word && s->word_n < sizeof s->word)
            s->word[s->word_n++] = (char)c;
    }
    return p;
}

/* A string of the outermost object has ended: a key, or a value that may be the list's kind. */
static void end_word(struct json_items *s)
{
    struct str word = {s->word, s->word_n};
    if (s->want_key) {
        s->want_key = false;
        s->key = str_eq(word, STR("items"))  ? KEY_ITEMS
                 : str_eq(word, STR("kind")) ? KEY_KIND
                                             : KEY_OTHER;
    } else if (s->key == KEY_KIND && s->word_n < sizeof s->word) {
        memcpy(s->kind, s->word, s->word_n);
        s->kind_n = s->word_n;
    }
}

/* Bytes of a document outside its items. */
static const char *scan_document(struct json_items *s, const char *p, const char *end)
{
    const char *from = p;
    while (p < end && s->place == DOCUMENT) {
        if (s->in_string) {
            p = scan_string(s, p, end);
            if (!s->in_string && s->depth == 1)
                end_word(s);
            continue;
        }
        char c = *p++;
        if (c == '"') {
            s->in_string = true;
            s->keep_word = s->depth == 1;
            s->word_n = 0;
        } else if (c == '{' || c == '[') {
            if (c == '[' && s->depth == 1 && s->key == KEY_ITEMS && !s->want_key) {
                s->is_list = true;
                s->place = LIST;
            } else {
                push(s, c);
            }
        } else if (c == '}' || c == ']') {
            pop(s, c);
            if (s->depth == 0)
                s->place = OUTSIDE;
        } else if (c == ',' && s->depth == 1) {
            s->want_key = true;
            s->key = KEY_OTHER;
        }
    }
    keep(&s->head, &s->head_over, from, (size_t)(p - from));
    if (s->place == OUTSIDE)
        end_document(s);
    return p;
}

static bool is_space(char c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

/* A string of an item has ended: was it the key of something that nobody needs? */
static void end_item_word(struct json_items *s)
{
    s->unwanted = false;
    if (!s->want_key)
        return;
    s->want_key = false;
    for (size_t i = 0; i < s->sink.unwanted_n && !s->unwanted; i++)
        s->unwanted = str_eq(s->sink.unwanted[i], (struct str){s->word, s->word_n});
}

/* A byte of an item outside strings and white space; true: it opens a value that is skipped. */
static bool item_byte(struct json_items *s, char c)
{
    bool skip = false;
    if (c == '"') {
        s->in_string = true;
        s->keep_word = s->want_key;
        s->word_n = 0;
    } else if (c == '{' || c == '[') {
        skip = s->unwanted && s->skip_from == 0;
        if (skip)
            s->skip_from = s->depth;
        push(s, c);
        s->want_key = c == '{';
    } else if (c == '}' || c == ']') {
        pop(s, c);
        s->want_key = false;
    } else if (c == ',') {
        s->want_key = s->depth <= JSON_ITEM_DEPTH_MAX && s->open[s->depth - 1] == '{';
    }
    s->unwanted = s->unwanted && c == ':';
    return skip;
}

static const char *scan_item(struct json_items *s, const char *p, const char *end)
{
    const char *from = p; /* what is not copied yet */
    while (p < end && s->depth > 0) {
        if (s->in_string) {
            p = scan_string(s, p, end);
            if (!s->in_string)
                end_item_word(s);
            continue;
        }
        const char *at = p;
        bool skipping = s->skip_from != 0, space = is_space(*p);
        bool skip = !space && item_byte(s, *p);
        p++;
        while (space && p < end && is_space(*p))
            p++;
        if (!skipping && (space || skip)) {
            keep(&s->text, &s->text_over, from, (size_t)(at - from));
            from = p;
            if (skip)
                keep(&s->text, &s->text_over, "null", 4);
        } else if (skipping && s->depth <= s->skip_from) {
            s->skip_from = 0;
            from = p;
        }
    }
    if (s->skip_from == 0)
        keep(&s->text, &s->text_over, from, (size_t)(p - from));
    if (s->depth == 0)
        end_item(s);
    return p;
}

static const char *scan_scalar(struct json_items *s, const char *p, const char *end)
{
    while (p < end) {
        if (s->in_string) {
            p = scan_string(s, p, end);
            continue;
        }
        if (*p == ',' || *p == ']' || *p == '{' || *p == '}') {
            end_item(s);
            return p;
        }
        s->in_string = *p++ == '"';
    }
    return p;
}

/* `at`: the offset of *p. */
static const char *scan_list(struct json_items *s, const char *p, uint64_t at)
{
    char c = *p;
    if (is_space(c) || c == ',')
        return p + 1;
    if (c == '{') {
        begin_item(s, ITEM, at);
        keep(&s->text, &s->text_over, p, 1);
        return p + 1;
    }
    if (c == ']' || c == '}') { /* '}': the list's own bracket is lost */
        s->place = DOCUMENT;
        s->key = KEY_OTHER;
        s->want_key = false;
        if (c == '}')
            keep(&s->head, &s->head_over, "]", 1);
        keep(&s->head, &s->head_over, p, 1);
        if (c == '}') {
            s->depth = 0;
            end_document(s);
        }
        return p + 1;
    }
    begin_item(s, SCALAR, at);
    return p;
}

static const char *scan_outside(struct json_items *s, const char *p, uint64_t at)
{
    /* arrays around documents, and the separators of JSON text sequences and of UTF-8 files */
    static const char between[] = "[],\x1e\xef\xbb\xbf";
    char c = *p;
    if (c == '{') {
        begin_document(s, at);
        keep(&s->head, &s->head_over, p, 1);
        return p + 1;
    }
    if (is_space(c) || (c && strchr(between, c)))
        return p + 1;
    if (s->place != GARBAGE) {
        s->place = GARBAGE;
        s->document++;
        s->kind_n = 0;
        s->broken = "text that is no JSON object";
        strbuf_clear(&s->head);
        hand_on(s, &s->head, false, 0, at);
        s->broken = NULL;
    }
    return p + 1;
}

void json_items_feed(struct json_items *s, const char *p, size_t n)
{
    const char *begin = p, *end = p + n;
    while (p < end) {
        uint64_t at = s->offset + (uint64_t)(p - begin);
        switch (s->place) {
        case OUTSIDE:
        case GARBAGE:
            p = scan_outside(s, p, at);
            break;
        case DOCUMENT:
            p = scan_document(s, p, end);
            break;
        case LIST:
            p = scan_list(s, p, at);
            break;
        case ITEM:
            p = scan_item(s, p, end);
            break;
        case SCALAR:
            p = scan_scalar(s, p, end);
            break;
        }
    }
    s->offset += n;
}

void json_items_end(struct json_items *s)
{
    if (s->place == ITEM || s->place == SCALAR) {
        s->broken = "cut off";
        end_item(s);
    } else if (s->place == LIST || (s->place == DOCUMENT && s->is_list)) {
        s->index++;
        s->broken = "cut off";
        strbuf_clear(&s->text);
        hand_on(s, &s->text, false, s->index, s->offset);
    } else if (s->place == DOCUMENT) {
        s->broken = "cut off";
        end_document(s);
    }
    s->place = OUTSIDE;
    s->broken = NULL;
}
