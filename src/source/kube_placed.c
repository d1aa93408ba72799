/* Where claims put pods now: from the slices and claims as they were last seen. A claim is reserved
 * for pods that run, or are about to; Kubernetes takes a pod out when it has ended. */
#include <stdlib.h>

#include "source/kube_claims.h"
#include "source/kube_history_impl.h"

struct placing {
    struct names *texts;
    struct arena arena;
    struct kube_claims *claims;
    struct kube_pod *pods; /* that claims are reserved for: namespace, name and uid */
    size_t n, room;
};

static void on_slice(void *context, const struct kube_slice *slice)
{
    struct placing *placing = context;
    kube_claims_add_slice(placing->claims, slice);
}

static struct str kept(struct placing *placing, struct str text)
{
    return names_text(placing->texts, names_put(placing->texts, text));
}

static void on_claim(void *context, const struct kube_claim *claim)
{
    struct placing *placing = context;
    kube_claims_add_claim(placing->claims, claim);
    for (size_t i = 0; i < claim->consumers_n && claim->allocations_n; i++)
        mem_push(placing->pods, placing->n, placing->room,
                 ((struct kube_pod){.namespace = kept(placing, claim->namespace),
                                    .name = kept(placing, claim->consumers[i].name),
                                    .uid = kept(placing, claim->consumers[i].uid)}));
}

static void read_objects(struct kube_history *h, struct str cluster, enum kube_kind kind,
                         struct placing *placing)
{
    struct kube_sink sink = {.context = placing, .slice = on_slice, .claim = on_claim};
    struct arena one = {0};
    for (size_t i = 0; i < h->objects_n; i++) {
        const struct kube_object *object = &h->objects[i];
        const struct kube_log *log = &h->logs[object->log];
        const struct kube_version *version = &object->versions[object->n - 1];
        if (log->kind != kind || object->gone != TIME_MAX || !str_eq(str_of(log->cluster), cluster))
            continue;
        arena_clear(&one);
        kube_record_object(kind, (struct str){version->bytes, version->n}, &one, &sink, NULL);
    }
    arena_release(&one);
}

void kube_history_placed(struct kube_history *h, struct str cluster,
                         void (*each)(void *context, const struct kube_placed *placed),
                         void *context)
{
    struct placing placing = {.texts = names_new()};
    placing.claims = kube_claims_new(placing.texts, &placing.arena);
    pthread_mutex_lock(&h->lock);
    read_objects(h, cluster, KUBE_KIND_CLAIM, &placing);
    if (placing.n)
        read_objects(h, cluster, KUBE_KIND_SLICE, &placing);
    pthread_mutex_unlock(&h->lock);
    for (size_t i = 0; i < placing.n; i++) {
        const struct kube_pod *pod = &placing.pods[i];
        int64_t unknown = 0;
        size_t n;
        const struct str *devices = kube_claims_devices(placing.claims, pod, NULL, 0, &n, &unknown);
        for (size_t k = 0; k < n; k++)
            each(context, &(struct kube_placed){pod->namespace, pod->name, devices[k]});
    }
    kube_claims_free(placing.claims);
    names_free(placing.texts);
    arena_release(&placing.arena);
    free(placing.pods);
}
