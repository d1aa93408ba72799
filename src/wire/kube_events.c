/* Lines to events. A line is the unit of everything: events are cut by line ends, which JSON may
 * not hold inside, so that what is wrong with one costs that one. The lines of most servers are a
 * few kB; a line that is already whole in the piece is parsed where it lies. */
#include "wire/kube_events.h"

#include <stdio.h>
#include <stdlib.h>

#include "wire/kube_objects_impl.h"

struct kube_events {
    struct kube_event_sink sink;
    struct kube_reader reader;
    struct strbuf line; /* what came of one that is not complete */
    bool skipping;      /* the line is too long: up to its end */
    uint64_t whole, lost;
};

static bool type_of(struct str text, enum kube_event_type *ret)
{
    static const struct {
        const char *text;
        enum kube_event_type type;
    } types[] = {
        {"ADDED", KUBE_EVENT_ADDED},     {"MODIFIED", KUBE_EVENT_MODIFIED},
        {"DELETED", KUBE_EVENT_DELETED}, {"BOOKMARK", KUBE_EVENT_BOOKMARK},
        {"ERROR", KUBE_EVENT_ERROR},
    };
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (str_eq(text, str_of(types[i].text))) {
            *ret = types[i].type;
            return true;
        }
    return false;
}

/* True where a document is an event that is whole. */
static bool read_event(struct kube_events *e, const json_t *document)
{
    const json_t *object = json_object_get(document, "object");
    const json_t *metadata = json_object_get(object, "metadata");
    const json_t *annotations = json_object_get(metadata, "annotations");
    struct kube_event event = {
        .version = text_at(metadata, "resourceVersion"),
        .initial_end = str_eq(text_at(annotations, "k8s.io/initial-events-end"), STR("true")),
        .code = (int)json_integer_value(json_object_get(object, "code")),
        .reason = text_at(object, "reason"),
        .message = text_at(object, "message"),
    };
    if (!type_of(text_at(document, "type"), &event.type) || !json_is_object(object))
        return false;
    e->sink.event(e->sink.objects.context, &event);
    if (event.type == KUBE_EVENT_BOOKMARK || event.type == KUBE_EVENT_ERROR)
        return true;
    uint64_t before = e->reader.counts.lost;
    kube_read_object(&e->reader, object, STR_NONE, 1);
    return e->reader.counts.lost == before;
}

static void read_line(struct kube_events *e, struct str line)
{
    while (line.n && (line.p[line.n - 1] == '\r' || line.p[line.n - 1] == ' '))
        line.n--;
    if (line.n == 0)
        return;
    json_error_t error;
    e->reader.label[0] = '\0';
    json_t *document = json_loadb(line.p, line.n, 0, &error);
    if (document && read_event(e, document)) {
        e->whole++;
    } else {
        e->lost++;
        if (!document)
            kube_fault(&e->reader, true, "an event is no JSON: %.120s", error.text);
    }
    json_decref(document);
    arena_clear(&e->reader.arena);
}

struct kube_events *kube_events_new(const struct kube_event_sink *sink, struct str kind)
{
    struct kube_events *e = mem_zalloc(1, sizeof *e);
    e->sink = *sink;
    e->reader.sink = sink->objects;
    e->reader.kind = kind;
    return e;
}

void kube_events_feed(struct kube_events *e, const char *p, size_t n)
{
    while (n > 0) {
        const char *end = memchr(p, '\n', n);
        size_t here = end ? (size_t)(end - p) : n;
        if (!e->skipping && e->line.n + here > KUBE_EVENT_MAX) {
            e->skipping = true;
            e->lost++;
            strbuf_clear(&e->line);
            e->reader.label[0] = '\0';
            kube_fault(&e->reader, true, "an event is longer than %zu MiB", KUBE_EVENT_MAX >> 20);
        }
        if (end && !e->skipping && e->line.n == 0)
            read_line(e, (struct str){p, here});
        else if (!e->skipping)
            strbuf_add(&e->line, (struct str){p, here});
        if (!end)
            return;
        if (e->line.n)
            read_line(e, strbuf_str(&e->line));
        strbuf_clear(&e->line);
        e->skipping = false;
        p += here + 1;
        n -= here + 1;
    }
}

void kube_events_cut(struct kube_events *e)
{
    strbuf_release(&e->line);
    e->skipping = false;
}

void kube_events_count(const struct kube_events *e, uint64_t *ret_whole, uint64_t *ret_lost)
{
    *ret_whole = e->whole;
    *ret_lost = e->lost;
}

void kube_events_free(struct kube_events *e)
{
    if (!e)
        return;
    arena_release(&e->reader.arena);
    strbuf_release(&e->reader.fault);
    strbuf_release(&e->reader.first_fault);
    strbuf_release(&e->line);
    free(e);
}

bool kube_status_read(struct str json, int *ret_code, char *ret_reason, size_t reason_room,
                      char *ret_message, size_t message_room)
{
    json_t *status = json_loadb(json.p, json.n, 0, NULL);
    bool is_one = str_eq(text_at(status, "kind"), STR("Status"));
    if (is_one) {
        *ret_code = (int)json_integer_value(json_object_get(status, "code"));
        snprintf(ret_reason, reason_room, "%s", text_at(status, "reason").p);
        snprintf(ret_message, message_room, "%s", text_at(status, "message").p);
    }
    json_decref(status);
    return is_one;
}
