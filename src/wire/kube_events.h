/* Events of a Kubernetes watch: one JSON document a line, as long as the watch lasts.
 *
 *     {"type":"ADDED","object":{…}}   MODIFIED, DELETED (with the last state)
 *     {"type":"BOOKMARK","object":{"kind":"Pod","metadata":{"resourceVersion":"12746"}}}
 *     {"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","message":"…"}}
 *
 * Bytes come in pieces of any size. A line that is over KUBE_EVENT_MAX, no JSON or no event is
 * counted as lost and left out, the next one is read; a line that the end cuts off is no event.
 * Source: kubernetes.io/docs/reference/using-api/api-concepts. One thread. */
#ifndef GPUTALLY_WIRE_KUBE_EVENTS_H
#define GPUTALLY_WIRE_KUBE_EVENTS_H

#include "wire/kube_objects.h"

#define KUBE_EVENT_MAX ((size_t)16 << 20) /* bytes of a line */

enum kube_event_type {
    KUBE_EVENT_ADDED,
    KUBE_EVENT_MODIFIED,
    KUBE_EVENT_DELETED,
    KUBE_EVENT_BOOKMARK,
    KUBE_EVENT_ERROR,
};

struct kube_event {
    enum kube_event_type type;
    struct str version; /* metadata.resourceVersion; empty: not said */
    bool initial_end;   /* a bookmark after which the initial list is complete */
    /* of an ERROR */
    int code;
    struct str reason, message;
};

/* What an event is comes first, then its object (of ADDED, MODIFIED, DELETED) to the function of
 * its kind. Views live during the call. */
struct kube_event_sink {
    void (*event)(void *context, const struct kube_event *event);
    struct kube_sink objects; /* its context is event's too */
};

struct kube_events;
/* kind as in kube_reader_kind(); may be empty. */
struct kube_events *kube_events_new(const struct kube_event_sink *sink, struct str kind);
void kube_events_feed(struct kube_events *events, const char *p, size_t n);
/* The connection ended: a line that is not complete is dropped, the next bytes begin a new one. */
void kube_events_cut(struct kube_events *events);
/* Events that were whole; lost: lines that were none, or whose object was not readable. */
void kube_events_count(const struct kube_events *events, uint64_t *ret_whole, uint64_t *ret_lost);
void kube_events_free(struct kube_events *events); /* NULL is fine */

/* A Status, as error answers carry it: its reason and message, cut to the room. False: it is none.
 */
bool kube_status_read(struct str json, int *ret_code, char *ret_reason, size_t reason_room,
                      char *ret_message, size_t message_room);

#endif
