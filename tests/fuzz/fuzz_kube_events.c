/* Events of a watch in two pieces: nothing is read past the bytes, what is told is whole, and the
 * same comes whichever way the bytes are cut. */
#include <stdlib.h>

#include "wire/kube_events.h"
#include "wire/kube_record.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct told {
    uint64_t events, objects, faults;
    size_t bytes;
};

static void on_event(void *context, const struct kube_event *event)
{
    struct told *told = context;
    told->events++;
    told->bytes += event->version.n + event->reason.n + event->message.n;
}

/* Each object can be written down and read again. */
static void check_object(struct told *told, enum kube_kind kind, struct strbuf *object, bool named)
{
    struct arena arena = {0};
    struct kube_sink none = {.context = told};
    told->objects++;
    told->bytes += object->n;
    if (object->n && named)
        invariant(kube_record_object(kind, strbuf_str(object), &arena, &none, NULL) != ERR_PARSE);
    arena_release(&arena);
    strbuf_release(object);
}

static void on_pod(void *context, const struct kube_pod *pod)
{
    struct strbuf object = {0};
    kube_record_pod(&object, pod);
    check_object(context, KUBE_KIND_POD, &object, pod->name.n <= KUBE_RECORD_TEXT_MAX);
}

static void on_node(void *context, const struct kube_node *node)
{
    struct strbuf object = {0};
    kube_record_node(&object, node);
    check_object(context, KUBE_KIND_NODE, &object, node->name.n <= KUBE_RECORD_TEXT_MAX);
}

static void on_owner(void *context, const struct kube_owner *owner)
{
    struct strbuf object = {0};
    kube_record_owner(&object, owner);
    check_object(context, KUBE_KIND_OWNER, &object,
                 owner->name.n <= KUBE_RECORD_TEXT_MAX && owner->kind.n <= KUBE_RECORD_TEXT_MAX);
}

static void on_claim(void *context, const struct kube_claim *claim)
{
    struct strbuf object = {0};
    kube_record_claim(&object, claim);
    check_object(context, KUBE_KIND_CLAIM, &object, claim->name.n <= KUBE_RECORD_TEXT_MAX);
}

static void on_fault(void *context, const struct kube_fault *fault)
{
    struct told *told = context;
    told->faults++;
    invariant(fault->text.n > 0);
}

static void feed(const char *p, size_t n, size_t first, struct told *told, uint64_t counts[2])
{
    struct kube_event_sink sink = {.event = on_event,
                                   .objects = {.context = told,
                                               .pod = on_pod,
                                               .node = on_node,
                                               .owner = on_owner,
                                               .claim = on_claim,
                                               .fault = on_fault}};
    struct kube_events *events = kube_events_new(&sink, STR_NONE);
    kube_events_feed(events, p, first);
    kube_events_feed(events, p + first, n - first);
    kube_events_cut(events);
    kube_events_count(events, &counts[0], &counts[1]);
    kube_events_free(events);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *copy = malloc(size + 1);
    struct told whole = {0}, cut = {0};
    uint64_t a[2], b[2];
    memcpy(copy, data, size);
    feed(copy, size, size, &whole, a);
    feed(copy, size, size / 3, &cut, b);
    invariant(a[0] == b[0] && a[1] == b[1] && whole.events == cut.events &&
              whole.objects == cut.objects && whole.bytes == cut.bytes);
    int code;
    char reason[16], message[32];
    kube_status_read((struct str){copy, size}, &code, reason, sizeof reason, message,
                     sizeof message);
    free(copy);
    return 0;
}
