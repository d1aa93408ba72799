/* Which alerts fire, and who was told: kept as a JSON file beside the database, replaced whole. A
 * damaged file costs repeated messages, and nothing else: it is told and begun anew. */
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <unistd.h>

#include "serve/alert.h"
#include "util/file.h"

#define STATE_SCHEMA "gputally.alert-state/1"
#define STATE_BYTES_MAX ((size_t)16 << 20)

static void entry_release(struct alert_entry *entry)
{
    free(entry->key);
    free(entry->owner);
    free(entry->title);
    free(entry->text);
}

void alert_book_release(struct alert_book *book)
{
    for (size_t i = 0; i < book->n; i++)
        entry_release(&book->items[i]);
    free(book->items);
    *book = (struct alert_book){0};
}

void alert_list_release(struct alert_list *list)
{
    free(list->items);
    arena_release(&list->arena);
    *list = (struct alert_list){0};
}

/* ---- a round ---- */

static void renew(char **text, struct str now)
{
    if (*text && str_eq(str_of(*text), now))
        return;
    free(*text);
    *text = str_dup(now);
}

static struct alert_entry *entry_of(struct alert_book *book, struct str key)
{
    for (size_t i = 0; i < book->n; i++)
        if (str_eq(str_of(book->items[i].key), key))
            return &book->items[i];
    return NULL;
}

void alert_book_update(struct alert_book *book, const struct alert_config *config,
                       const struct alert_list *now_firing, time_ms now)
{
    for (size_t i = 0; i < book->n; i++)
        book->items[i].gone++;
    for (size_t i = 0; i < now_firing->n; i++) {
        const struct alert *alert = &now_firing->items[i];
        struct alert_entry *entry = entry_of(book, alert->key);
        if (!entry) {
            struct alert_entry fresh = {.key = str_dup(alert->key), .fired = now};
            mem_push(book->items, book->n, book->room, fresh);
            entry = &book->items[book->n - 1];
        }
        renew(&entry->owner, alert->owner);
        renew(&entry->title, alert->title);
        renew(&entry->text, alert->text);
        entry->kind = alert->kind;
        entry->month = alert->month;
        entry->since = alert->since;
        entry->critical = alert->critical;
        entry->wanted = alert_config_receivers(config, alert);
        entry->gone = 0;
    }
}

void alert_book_forget(struct alert_book *book)
{
    size_t kept = 0;
    for (size_t i = 0; i < book->n; i++) {
        if (alert_is_over(&book->items[i]) && !book->items[i].told)
            entry_release(&book->items[i]);
        else
            book->items[kept++] = book->items[i];
    }
    book->n = kept;
}

/* ---- the file ---- */

static json_t *names_of(uint32_t receivers, const struct alert_config *config)
{
    json_t *list = json_array();
    for (size_t i = 0; i < config->receivers_n; i++)
        if (receivers & 1u << i)
            json_array_append_new(list, json_string(config->receivers[i].name));
    return list;
}

static uint32_t receivers_of(const json_t *names, const struct alert_config *config)
{
    uint32_t receivers = 0;
    for (size_t i = 0; i < json_array_size(names); i++) {
        const char *name = json_string_value(json_array_get(names, i));
        for (size_t k = 0; name && k < config->receivers_n; k++)
            if (strcmp(name, config->receivers[k].name) == 0)
                receivers |= 1u << k;
    }
    return receivers;
}

static const char *text_in(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

static void read_entry(struct alert_book *book, const json_t *from,
                       const struct alert_config *config)
{
    const char *key = text_in(from, "key");
    if (!*key)
        return;
    struct alert_entry entry = {.key = str_dup(str_of(key)),
                                .owner = str_dup(str_of(text_in(from, "owner"))),
                                .title = str_dup(str_of(text_in(from, "title"))),
                                .text = str_dup(str_of(text_in(from, "text"))),
                                .month = json_integer_value(json_object_get(from, "month_nano")),
                                .fired = json_integer_value(json_object_get(from, "fired_ms")),
                                .since = TIME_MIN,
                                .critical = json_is_true(json_object_get(from, "critical")),
                                .gone = (int)json_integer_value(json_object_get(from, "gone"))};
    const json_t *since = json_object_get(from, "since_ms");
    if (json_is_integer(since))
        entry.since = json_integer_value(since);
    for (int kind = 0; kind < ALERT_KINDS; kind++)
        if (strcmp(text_in(from, "kind"), alert_kind_words[kind]) == 0)
            entry.kind = (enum alert_kind)kind;
    entry.told = receivers_of(json_object_get(from, "told"), config);
    entry.wanted = receivers_of(json_object_get(from, "wanted"), config);
    mem_push(book->items, book->n, book->room, entry);
}

enum err alert_book_load(struct alert_book *book, const char *path,
                         const struct alert_config *config, struct error *err)
{
    struct strbuf text = {0};
    if (access(path, F_OK) != 0 && errno == ENOENT)
        return ERR_OK;
    enum err code = file_text(path, STATE_BYTES_MAX, &text, err);
    json_error_t why = {0};
    json_t *root = code ? NULL : json_loadb(text.text ? text.text : "", text.n, 0, &why);
    if (!code && strcmp(text_in(root, "schema"), STATE_SCHEMA) != 0)
        code = error_set(err, ERR_PARSE,
                         "%s is no list of alerts (%s): it is begun anew, and what fires is told "
                         "again",
                         path, root ? "another schema" : why.text);
    const json_t *alerts = json_object_get(root, "alerts");
    for (size_t i = 0; !code && i < json_array_size(alerts) && i < ALERTS_MAX * 2; i++)
        read_entry(book, json_array_get(alerts, i), config);
    json_decref(root);
    strbuf_release(&text);
    return code;
}

static json_t *entry_json(const struct alert_entry *entry, const struct alert_config *config)
{
    json_t *object =
        json_pack("{s:s, s:s, s:s, s:s, s:s, s:I, s:I, s:b, s:i}", "key", entry->key, "kind",
                  alert_kind_words[entry->kind], "owner", entry->owner, "title", entry->title,
                  "text", entry->text, "month_nano", (json_int_t)entry->month, "fired_ms",
                  (json_int_t)entry->fired, "critical", entry->critical, "gone", entry->gone);
    if (entry->since != TIME_MIN)
        json_object_set_new(object, "since_ms", json_integer(entry->since));
    json_object_set_new(object, "told", names_of(entry->told, config));
    json_object_set_new(object, "wanted", names_of(entry->wanted, config));
    return object;
}

enum err alert_book_save(const struct alert_book *book, const char *path,
                         const struct alert_config *config, struct error *err)
{
    json_t *alerts = json_array();
    for (size_t i = 0; i < book->n; i++)
        json_array_append_new(alerts, entry_json(&book->items[i], config));
    json_t *root = json_pack("{s:s, s:o}", "schema", STATE_SCHEMA, "alerts", alerts);
    char *text = json_dumps(root, JSON_INDENT(1) | JSON_PRESERVE_ORDER);
    enum err code = text ? file_replace(path, str_of(text), err)
                         : error_set(err, ERR_PARSE, "a text of an alert is no UTF-8");
    free(text);
    json_decref(root);
    return code;
}
