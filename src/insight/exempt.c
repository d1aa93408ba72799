/* One reader of `key=value` for the three places that exemptions come from. The command line and
 * the configuration are refused where they are wrong; an annotation is somebody else's text, and
 * becomes an exemption that says what is wrong with it. */
#include "insight/exempt.h"

#include <ctype.h>
#include <stdlib.h>

#include "insight/finding.h"
#include "util/config_table.h"

#define EXEMPTIONS_MAX 10000

const char *const exemption_status_words[] = {"unused", "holds", "ended", "malformed"};

enum key { KEY_ID, KEY_RULE, KEY_SUBJECT, KEY_UNTIL, KEY_REASON, KEY_COUNT };
static const char *const keys[KEY_COUNT] = {"id", "rule", "subject", "until", "reason"};

void exemptions_release(struct exemptions *list)
{
    free(list->items);
    arena_release(&list->arena);
    *list = (struct exemptions){0};
}

static struct str trimmed(struct str text)
{
    while (text.n && isspace((unsigned char)text.p[0]))
        text = (struct str){text.p + 1, text.n - 1};
    while (text.n && isspace((unsigned char)text.p[text.n - 1]))
        text.n--;
    return text;
}

/* "key=": which key, KEY_COUNT where none begins the text; *ret is what follows. */
static enum key key_of(struct str text, struct str *ret)
{
    text = trimmed(text);
    for (int k = 0; k < KEY_COUNT; k++) {
        size_t n = strlen(keys[k]);
        if (text.n > n && memcmp(text.p, keys[k], n) == 0 && text.p[n] == '=') {
            *ret = trimmed((struct str){text.p + n + 1, text.n - n - 1});
            return (enum key)k;
        }
    }
    return KEY_COUNT;
}

/* The place of the comma after which a known key stands; text.n where there is none. */
static size_t part_end(struct str text)
{
    struct str rest;
    for (size_t i = 0; i < text.n; i++)
        if (text.p[i] == ',' &&
            key_of((struct str){text.p + i + 1, text.n - i - 1}, &rest) < KEY_COUNT)
            return i;
    return text.n;
}

static bool rule_is_known(struct str glob)
{
    for (int r = 0; r < RULE_COUNT; r++)
        if (str_glob(glob, str_of(rules[r].name)))
            return true;
    return false;
}

static enum err set_key(struct exemption *exemption, enum key key, struct str value,
                        struct error *err)
{
    switch (key) {
    case KEY_ID:
        exemption->id = value;
        break;
    case KEY_RULE:
        if (!rule_is_known(value))
            return error_set(err, ERR_USAGE, "there is no rule '%.*s'", STR_ARG(value));
        exemption->rule = value;
        break;
    case KEY_SUBJECT:
        exemption->subject = value;
        break;
    case KEY_UNTIL:
        if (!time_parse(value, &exemption->until))
            return error_set(err, ERR_USAGE, "'%.*s' is no date such as 2026-12-31",
                             STR_ARG(value));
        break;
    case KEY_REASON:
        exemption->reason = value;
        break;
    case KEY_COUNT:
        break;
    }
    return ERR_OK;
}

/* Read parts into an exemption. bare: the first part may be an id without its key. */
static enum err read_parts(struct str text, bool bare, struct exemption *ret, struct error *err)
{
    bool first = true;
    text = trimmed(text);
    while (text.n) {
        struct str value, part = {text.p, part_end(text)};
        enum key key = key_of(part, &value);
        if (key == KEY_COUNT) {
            const char *comma = first && bare ? memchr(part.p, ',', part.n) : NULL;
            struct str what = trimmed(
                comma ? (struct str){comma + 1, part.n - (size_t)(comma - part.p) - 1} : part);
            if (!first || !bare || comma)
                return error_set(err, ERR_USAGE,
                                 "'%.*s' is neither until=DATE nor reason=TEXT nor rule=RULE",
                                 STR_ARG(what));
            key = KEY_ID;
            value = trimmed(part);
        }
        enum err code = set_key(ret, key, value, err);
        if (code != ERR_OK)
            return code;
        text = part.n < text.n ? (struct str){text.p + part.n + 1, text.n - part.n - 1} : STR_NONE;
        first = false;
    }
    return ERR_OK;
}

enum err exemptions_add(struct exemptions *list, struct str text, struct str source,
                        struct error *err)
{
    struct exemption exemption = {.until = TIME_MAX, .source = str_keep(&list->arena, source)};
    enum err code = read_parts(str_keep(&list->arena, text), true, &exemption, err);
    if (code == ERR_OK && !exemption.id.n && !exemption.rule.n && !exemption.subject.n)
        code = error_set(err, ERR_USAGE, "a finding's id is missing");
    if (code == ERR_OK)
        mem_push(list->items, list->n, list->room, exemption);
    return code;
}

/* ---- configuration ---- */

static enum err read_map(struct exemptions *list, struct config_node node,
                         struct exemption *exemption, struct error *err)
{
    for (size_t i = 0; i < config_count(node); i++) {
        struct config_node value, key = config_pair(node, i, &value);
        struct str text;
        size_t k;
        enum err code = config_find_key(key, keys, KEY_COUNT, &k, err);
        if (code == ERR_OK)
            code = config_as_text(value, &text, err);
        if (code != ERR_OK)
            return code;
        struct error inner = {0};
        if (set_key(exemption, (enum key)k, str_keep(&list->arena, text), &inner) != ERR_OK)
            return config_error(value, err, "%s", inner.text);
    }
    return ERR_OK;
}

static enum err add_config(struct exemptions *list, const struct config *config,
                           struct config_node node, struct error *err)
{
    struct exemption exemption = {.until = TIME_MAX};
    struct strbuf source = {0};
    struct error inner = {0};
    strbuf_addf(&source, "%.*s:%d:%d", STR_ARG(config->path), config_line(node),
                config_column(node));
    exemption.source = str_keep(&list->arena, strbuf_str(&source));
    strbuf_release(&source);
    if (config_kind(node) == CONFIG_MAP) {
        enum err code = read_map(list, node, &exemption, err);
        if (code != ERR_OK)
            return code;
    } else if (config_kind(node) != CONFIG_SCALAR) {
        return config_error(node, err,
                            "an exemption is a text such as ID,until=2026-12-31, or a "
                            "mapping such as {rule: low-use, subject: svc/*}");
    } else if (read_parts(str_keep(&list->arena, config_text(node)), true, &exemption, &inner)) {
        return config_error(node, err, "%s", inner.text);
    }
    if (!exemption.id.n && !exemption.rule.n && !exemption.subject.n)
        return config_error(node, err, "an exemption needs an id, a rule or a subject");
    mem_push(list->items, list->n, list->room, exemption);
    return ERR_OK;
}

enum err exemptions_add_config(struct exemptions *list, const struct config *config,
                               struct error *err)
{
    struct config_node node = config->sections[CONFIG_IGNORE_SECTION];
    if (config_kind(node) == CONFIG_NOTHING)
        return ERR_OK;
    if (config_kind(node) != CONFIG_LIST)
        return config_error(node, err,
                            "ignore is a list, such as [{rule: low-use, subject: svc/*}]");
    if (config_count(node) > EXEMPTIONS_MAX)
        return config_error(node, err, "more than %d of them", EXEMPTIONS_MAX);
    enum err code = ERR_OK;
    for (size_t i = 0; i < config_count(node) && code == ERR_OK; i++)
        code = add_config(list, config, config_item(node, i), err);
    return code;
}

/* ---- annotations ---- */

static enum err read_annotation(struct str text, struct exemption *ret, struct error *err)
{
    enum err code = read_parts(text, false, ret, err);
    if (code == ERR_OK && !trimmed(text).n)
        code = error_set(err, ERR_USAGE, "it says nothing: until=DATE, reason=TEXT");
    if (code == ERR_OK && (ret->id.n || ret->subject.n))
        code = error_set(err, ERR_USAGE,
                         "it can say until, reason and rule: what it is for is what bears it");
    return code;
}

enum err exemption_check(struct str text, struct error *err)
{
    struct exemption exemption = {.until = TIME_MAX};
    return read_annotation(text, &exemption, err);
}

static void add_annotation(struct exemptions *list, struct str subject, struct str text)
{
    struct exemption exemption = {.until = TIME_MAX, .bearer = true};
    struct strbuf source = {0};
    struct error err = {0};
    text = str_keep(&list->arena, text);
    strbuf_addf(&source, "annotation of %.*s", STR_ARG(subject));
    exemption.source = str_keep(&list->arena, strbuf_str(&source));
    strbuf_release(&source);
    if (read_annotation(text, &exemption, &err) != ERR_OK) {
        exemption.status = EXEMPTION_MALFORMED;
        exemption.problem = str_keep(&list->arena, str_of(err.text));
        exemption.rule = STR_NONE;
    }
    exemption.subject = str_keep(&list->arena, subject);
    mem_push(list->items, list->n, list->room, exemption);
}

/* Of several wishes of a bearer the newest counts; one that is not there any more in the last hours
 * was taken away. */
void exemptions_add_annotations(struct exemptions *list, const struct books *books)
{
    for (size_t i = 0; i < books->wishes_n; i++) {
        const struct note *note = &books->wishes[i];
        bool newest = books_is_now(books, note->to);
        for (size_t k = 0; k < books->wishes_n && newest; k++)
            newest = k == i || books->wishes[k].subject != note->subject ||
                     books->wishes[k].to < note->to || (books->wishes[k].to == note->to && k < i);
        if (newest)
            add_annotation(list, names_text(books->names, note->subject),
                           names_text(books->names, note->text));
    }
}

/* ---- which finding ---- */

/* What stands after the kind of a subject: "workload svc/…" -> "svc/…". */
static struct str after_kind(struct str subject)
{
    const char *space = subject.n ? memchr(subject.p, ' ', subject.n) : NULL;
    return space ? (struct str){space + 1, subject.n - (size_t)(space - subject.p) - 1} : subject;
}

/* Is it a workload of the namespace: NAMESPACE/KIND/NAME, with two parts after it? */
static bool is_in_namespace(struct str workload, struct str namespace)
{
    if (workload.n <= namespace.n || !str_starts(workload, namespace) ||
        workload.p[namespace.n] != '/')
        return false;
    size_t slashes = 0;
    for (size_t i = namespace.n + 1; i < workload.n; i++)
        slashes += workload.p[i] == '/';
    return slashes == 1;
}

static bool is_about(const struct exemption *exemption, struct str subject)
{
    struct str wanted = exemption->subject;
    if (exemption->bearer)
        return str_eq(wanted, subject) ||
               (str_starts(wanted, STR("namespace ")) && str_starts(subject, STR("workload ")) &&
                is_in_namespace(after_kind(subject), after_kind(wanted)));
    return !wanted.n || str_glob(wanted, subject) || str_glob(wanted, after_kind(subject));
}

static bool is_for(const struct exemption *exemption, const struct finding *finding)
{
    return (!exemption->id.n || str_glob(exemption->id, finding->id)) &&
           (!exemption->rule.n || str_glob(exemption->rule, str_of(rules[finding->rule].name))) &&
           is_about(exemption, finding->subject);
}

/* "reason, until 2026-12-31T00:00:00Z (--ignore)" */
static struct str words_of(struct findings *findings, const struct exemption *exemption)
{
    char text[TIME_TEXT_MAX];
    bool for_good = exemption->until == TIME_MAX;
    return finding_text(findings, "%.*s%s%s (%.*s)",
                        STR_ARG(exemption->reason.n ? exemption->reason : STR("accepted")),
                        for_good ? "" : ", until ",
                        for_good ? "" : time_format(exemption->until, text),
                        STR_ARG(exemption->source));
}

void exemptions_apply(struct exemptions *list, struct findings *findings)
{
    for (size_t e = 0; e < list->n; e++) {
        struct exemption *exemption = &list->items[e];
        bool ended = exemption->until <= findings->books->window.to;
        if (exemption->status == EXEMPTION_MALFORMED)
            continue;
        exemption->matched = 0;
        for (size_t i = 0; i < findings->n; i++) {
            struct finding *finding = &findings->items[i];
            if (!is_for(exemption, finding))
                continue;
            exemption->matched++;
            if (ended && !finding->ended.n)
                finding->ended = words_of(findings, exemption);
            if (!ended && !finding->exempt.n) {
                finding->exempt = words_of(findings, exemption);
                findings->exempt_n++;
            }
        }
        exemption->status = !exemption->matched ? EXEMPTION_UNUSED
                            : ended             ? EXEMPTION_ENDED
                                                : EXEMPTION_HOLDS;
    }
}
