/* Kubernetes JSON from strangers: nothing crashes, and how the bytes are cut into pieces changes
 * neither what is found nor what is refused. */
#include <stdlib.h>

#include "util/error.h"
#include "wire/kube_objects.h"

struct seen {
    uint64_t hash, calls;
};

static void mix(struct seen *seen, struct str text)
{
    for (size_t i = 0; i < text.n; i++)
        seen->hash = (seen->hash ^ (unsigned char)text.p[i]) * 1099511628211u;
    seen->hash = (seen->hash ^ text.n) * 1099511628211u;
    seen->calls++;
}

static void mix_labels(struct seen *seen, const struct label *labels, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        mix(seen, labels[i].name);
        mix(seen, labels[i].value);
    }
}

static void on_node(void *context, const struct kube_node *node)
{
    mix(context, node->name);
    mix_labels(context, node->labels, node->labels_n);
    for (size_t i = 0; i < node->capacity_n; i++) {
        mix(context, node->capacity[i].resource);
        invariant(node->capacity[i].milli >= 0);
    }
}

static void on_pod(void *context, const struct kube_pod *pod)
{
    mix(context, pod->name);
    mix_labels(context, pod->labels, pod->labels_n);
    mix_labels(context, pod->annotations, pod->annotations_n);
    for (size_t i = 0; i < pod->containers_n; i++) {
        mix(context, pod->containers[i].name);
        for (size_t k = 0; k < pod->containers[i].requests_n; k++)
            mix(context, pod->containers[i].requests[k].resource);
    }
    for (size_t i = 0; i < pod->claims_n; i++)
        mix(context, pod->claims[i]);
}

static void on_owner(void *context, const struct kube_owner *owner)
{
    mix(context, owner->name);
    mix(context, owner->owner_name);
}

static void on_namespace(void *context, const struct kube_namespace *ns)
{
    mix(context, ns->name);
    mix_labels(context, ns->labels, ns->labels_n);
}

static void on_slice(void *context, const struct kube_slice *slice)
{
    for (size_t i = 0; i < slice->devices_n; i++)
        mix(context, slice->devices[i].uuid);
}

static void on_claim(void *context, const struct kube_claim *claim)
{
    for (size_t i = 0; i < claim->allocations_n; i++)
        mix(context, claim->allocations[i].device);
    for (size_t i = 0; i < claim->consumers_n; i++)
        mix(context, claim->consumers[i].name);
}

static void on_fault(void *context, const struct kube_fault *fault)
{
    mix(context, fault->text);
}

static struct seen read_pieces(const char *p, size_t n, size_t piece)
{
    struct seen seen = {0};
    struct kube_counts counts;
    struct kube_sink sink = {
        .context = &seen,
        .node = on_node,
        .pod = on_pod,
        .owner = on_owner,
        .namespace = on_namespace,
        .slice = on_slice,
        .claim = on_claim,
        .fault = on_fault,
    };
    struct kube_reader *reader = kube_reader_new(&sink);
    for (size_t at = 0; at < n; at += piece)
        kube_reader_feed(reader, p + at, n - at < piece ? n - at : piece);
    enum err rc = kube_reader_end(reader, &counts, NULL);
    invariant(rc == ERR_OK || rc == ERR_PARSE);
    kube_reader_free(reader);
    return seen;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (n == 0)
        return 0;
    const char *p = (const char *)data + 1;
    struct seen whole = read_pieces(p, n - 1, n);
    struct seen pieces = read_pieces(p, n - 1, (size_t)data[0] % 13 + 1);
    invariant(whole.hash == pieces.hash && whole.calls == pieces.calls);
    return 0;
}
