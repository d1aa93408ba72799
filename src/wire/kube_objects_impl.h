/* What the readers of Kubernetes objects share. Seen by src/wire/kube_*.c only.
 *
 *     kube_objects.c   lists and documents; nodes, pods, namespaces, controllers
 *     kube_grants.c    claims and slices of dynamic allocation, quotas, priority classes
 *     kube_events.c    events of a watch */
#ifndef GPUTALLY_WIRE_KUBE_OBJECTS_IMPL_H
#define GPUTALLY_WIRE_KUBE_OBJECTS_IMPL_H

#include <jansson.h>

#include "wire/json_items.h"
#include "wire/kube_objects.h"

struct kube_reader {
    struct kube_sink sink;
    struct str kind; /* of items that do not say; empty: their list's */
    struct json_items *items;
    struct kube_counts counts;
    struct arena arena;
    struct strbuf fault, first_fault;
    /* of the item that is read */
    uint64_t document, index;
    char label[200]; /* "Pod serving/a" */
};

static inline struct str text_of(const json_t *value)
{
    return json_is_string(value) ? (struct str){json_string_value(value), json_string_length(value)}
                                 : STR_NONE;
}

static inline struct str text_at(const json_t *object, const char *key)
{
    return text_of(json_object_get(object, key));
}

static inline bool true_at(const json_t *object, const char *key)
{
    return json_is_true(json_object_get(object, key));
}

static inline size_t array_size_at(const json_t *object, const char *key, json_t **ret)
{
    *ret = json_object_get(object, key);
    return json_array_size(*ret); /* 0 of what is no array */
}

void kube_fault(struct kube_reader *r, bool lost, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
time_ms kube_time_at(struct kube_reader *r, const json_t *object, const char *key);
/* The quantities of two objects, those of the first before those of the second. */
size_t kube_quantities(struct kube_reader *r, json_t *first, json_t *second,
                       const struct kube_quantity **ret);
size_t kube_label_list(struct kube_reader *r, json_t *object, const struct label **ret);

/* One object, or a list inside one; list_kind: of the list that it stands in. */
void kube_read_object(struct kube_reader *r, const json_t *object, struct str list_kind,
                      int nested);
void kube_read_slice(struct kube_reader *r, const json_t *object);
void kube_read_claim(struct kube_reader *r, const json_t *object);
void kube_read_quota(struct kube_reader *r, const json_t *object);
void kube_read_priority(struct kube_reader *r, const json_t *object);

#endif
